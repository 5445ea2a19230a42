"""Make `clusters/isr_drill/answers.json`: `python -m tests.support.drill_answers`, some minutes on one core.

The usual classes: a partition with its usual settings, healthy or with a replica missing, under the runbooks that
people have, from a described and from a live cluster.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Final

import attrs

from isr_audit.cluster import Cluster
from isr_audit.descriptions import read_description
from isr_audit.releases import running
from isr_drill.answers import write_table
from isr_drill.drill import Explorations, drill, other_runbooks
from isr_drill.runbook import Surroundings, read_runbook

RUNBOOKS: Final = (
    *("stop 1", "stop 2", "kill 1", "kill 2", "power-loss 1", "power-loss 2", "destroy 1", "destroy 2", "pause 1"),
    *("replace 1", "replace 2", "start 1", "start 2", "lose-rack a", "lose-rack b", "partition 1", "partition 2"),
    *("stop 1; start 1", "stop 2; start 2", "kill 1; start 1", "kill 2; start 2", "stop 1; wait in-sync"),
    *("stop 1; start 1; wait in-sync", "stop 2; start 2; wait in-sync", "replace 1; wait in-sync"),
    *("destroy 1; start 1", "destroy 2; start 2", "power-loss 1; start 1", "power-loss 2; start 2"),
    *("lose-rack a; start 1 2", "lose-rack b; start 3", "destroy 1 2; start 1 2", "destroy 2 3; start 2 3"),
    *("stop 1 2", "stop 2 3", "destroy 1 2", "destroy 2 3", "kill 1 2", "power-loss 1 2 3", "destroy 1; destroy 2"),
    *("roll 1 2 3", "roll 2 3 1", "roll 1 2 3 wait in-sync", "roll 2 3 1 wait in-sync", "roll a b c wait in-sync"),
    *("replace 1; replace 2; replace 3", "destroy 2; destroy 3", "stop 1; stop 2; start 1; start 2", "stop 4"),
)
MOST_REPLICAS: Final = 3
SECONDS: Final = 60.0


def cluster_of(factor: int, minimum: int, isr: str, *, is_live: bool, elr: bool) -> Cluster:
    replicas = ",".join(map(str, range(1, factor + 1)))
    configs = f"min.insync.replicas={minimum},unclean.leader.election.enable=false"
    members = "\tElr: \tLastKnownElr: " if elr else ""
    text = (
        f"Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: {factor}\tConfigs: {configs}\n"
        f"\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: {replicas}\tIsr: {isr}{members}\n"
    )
    cluster = read_description(text, "topics.txt")
    assert cluster is not None
    racks = {1: "a", 2: "a", 3: "b", 4: "c"}
    return attrs.evolve(cluster, racks=racks, living=(1, 2, 3, 4) if is_live else None)


def usual(explorations: Explorations) -> Iterator[str]:
    """Explore every usual class; a line for each kind of partition."""
    for (factor, minimum), elr, is_live in product([(3, 2), (3, 1), (2, 1)], (True, False), (True, False)):
        whole = list(range(1, factor + 1))
        isrs = [whole, whole[:-1]]
        for isr in isrs:
            cluster = cluster_of(factor, minimum, ",".join(map(str, isr)), is_live=is_live, elr=elr)
            runs = running(cluster, (4, 1) if elr else (3, 9), elr)
            for text in RUNBOOKS:
                steps = read_runbook(text, Surroundings({1, 2, 3, 4}, cluster.racks, ["t"]))
                drill(cluster, runs, steps, explorations)
                for _, other in other_runbooks(steps):
                    drill(cluster, runs, other, explorations)
            yield f"{factor} replicas, minimum {minimum}, ISR {isr}, ELR {elr}, live {is_live}"


def main() -> None:
    explorations, began = Explorations(SECONDS), time.monotonic()
    for line in usual(explorations):
        print(f"{time.monotonic() - began:6.0f} s, {len(explorations.by_class):5} classes: {line}", flush=True)
    print(f"{write_table(explorations.by_class.items())} answers")


if __name__ == "__main__":
    main()
