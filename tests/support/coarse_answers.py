"""Make `clusters/isr_audit/coarse.json`: `python -m tests.support.coarse_answers`, some minutes on one core."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from isr_audit.cluster import Cluster
from isr_audit.coarse import COARSE_DESIGNS, COARSE_FAULTS, MOST_COARSE, Survivor, write_survivors
from isr_audit.descriptions import read_description
from isr_audit.questions import CRASH, CRASH_AND_POWER, DISK, MOST_REPLICAS, POWER, TWO_POWER, Fault
from isr_audit.releases import running
from isr_drill.drill import Explorations, Records, drill
from isr_drill.runbook import Surroundings, read_runbook

RELEASES: Final = {"kip-966": (4, 1), "kraft-3.5": (3, 9)}
STRIKES: Final = {
    CRASH.name: ("kill",),
    POWER.name: ("power-loss",),
    DISK.name: ("destroy",),
    CRASH_AND_POWER.name: ("kill", "power-loss"),
    TWO_POWER.name: ("power-loss", "power-loss"),
}
"""A fault by its name -> what strikes, in any order."""


def runbooks(fault: Fault, replicas: int) -> Iterator[str]:
    """All ways in which a fault strikes a healthy partition led by broker 1: whom, in which order, who is back when.

    Followers are alike, so as many of them count as there are strikes.
    """
    names = STRIKES[fault.name]
    targets = range(1, min(replicas, 1 + len(names)) + 1)
    for verbs in dict.fromkeys(itertools.permutations(names)):
        for brokers in itertools.product(targets, repeat=len(verbs)):
            strikes = [f"{verb} {broker}" for verb, broker in zip(verbs, brokers, strict=True)]
            starts = [f"start {broker}" for broker in dict.fromkeys(brokers)]
            yield "; ".join(f"{strike}; start {broker}" for strike, broker in zip(strikes, brokers, strict=True))
            if len(set(brokers)) == len(verbs) > 1:
                yield from ("; ".join([*strikes, *order]) for order in itertools.permutations(starts))


def healthy(replicas: int, minimum: int, *, unclean: bool) -> Cluster:
    """One partition with all of its replicas in sync."""
    ids = ",".join(map(str, range(1, replicas + 1)))
    settings = f"min.insync.replicas={minimum},unclean.leader.election.enable={str(unclean).lower()}"
    cluster = read_description(
        f"Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: {replicas}\tConfigs: {settings}\n"
        f"\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: {ids}\tIsr: {ids}\tElr: \tLastKnownElr: \n",
        "topics.txt",
    )
    assert cluster is not None
    return cluster


def is_safe(design: str, replicas: int, minimum: int, fault: Fault, *, unclean: bool) -> bool:
    """Whether no way of the fault may lose a record."""
    cluster = healthy(replicas, minimum, unclean=unclean)
    runs = running(cluster, RELEASES[design], design == "kip-966")
    around = Surroundings(set(range(1, replicas + 1)), {}, ["t"])
    drills = (
        drill(cluster, runs, read_runbook(text, around), Explorations(600.0)) for text in runbooks(fault, replicas)
    )
    return all(o.records is Records.SAFE for d in drills for p in d.partitions for o in p.outcomes)


def main() -> None:
    found: list[Survivor] = []
    for design, replicas in itertools.product(COARSE_DESIGNS, range(MOST_REPLICAS + 1, MOST_COARSE + 1)):
        for minimum, unclean, fault in itertools.product(range(1, replicas + 1), (False, True), COARSE_FAULTS):
            if is_safe(design, replicas, minimum, fault, unclean=unclean):
                found.append((design, replicas, minimum, unclean, fault.name))
                print(*found[-1], flush=True)
    write_survivors(found)


if __name__ == "__main__":
    main()
