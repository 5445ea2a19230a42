"""Random runbooks on random small clusters, each made of one seed, for `drill_runs` to carry out in the simulator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

import attrs

from isr_audit.cluster import Cluster
from isr_audit.descriptions import read_description
from isr_audit.releases import running
from isr_drill.drill import Drill, Explorations, drill
from isr_drill.runbook import RunbookStep, Surroundings, read_runbook

RELEASES: Final[Mapping[str, tuple[int, ...]]] = {"kip-966": (4, 4), "kraft-3.5": (3, 9)}
"""A protocol -> a release that has it."""
DEEDS: Final = (
    *("stop", "stop", "kill", "kill", "power-loss", "destroy", "destroy", "pause", "replace", "partition", "heal"),
    *("start", "start", "start", "start", "wait in-sync", "roll", "elect unclean"),
)
PAST: Final = ("stop", "kill", "lag", "wipe", "wipe and kill")
"""What may have happened to a replica before the cluster is described: `lag` is away and runs, `wipe` is back with an
empty disk, and not in sync yet."""
MINIMUM: Final = "t min.insync.replicas=N"
SECONDS: Final = 60.0


@attrs.frozen
class Case:
    """A partition `t-0`, what happened to it before, and a runbook. `text`: its steps; `files`: their reassignments."""

    seed: int
    design: str
    brokers: int
    replicas: tuple[int, ...]
    minimum: int
    unclean: bool
    flushed: bool
    past: tuple[tuple[str, int], ...]
    text: str
    files: Mapping[str, str] = attrs.field(factory=dict[str, str])

    @property
    def is_elr(self) -> bool:
        return self.design == "kip-966"

    def __str__(self) -> str:
        settings = [f"min {self.minimum}", *(["unclean"] if self.unclean else []), *(["flush"] if self.flushed else [])]
        past = ", ".join(f"{deed} {broker}" for deed, broker in self.past)
        return (
            f"seed {self.seed}: {self.design}, {self.brokers} brokers, replicas {list(self.replicas)}, "
            f"{', '.join(settings)}, {past or 'healthy'}: {self.text} {dict(self.files) or ''}".rstrip()
        )


def random_case(seed: int) -> Case:
    """The case of a seed."""
    chance = Random(f"runbook {seed}")
    brokers = chance.choice((3, 3, 4, 5))
    factor = chance.choice((1, 2, 2, 3, 3, 3, 3))
    replicas = tuple(chance.sample(range(1, brokers + 1), factor))
    minimum = chance.choice([m for m in (1, 2, 2, 3) if m <= factor])
    struck = chance.sample(replicas, min(factor, chance.choice((0, 0, 0, 0, 1, 1, 1, 2))))
    past = tuple((chance.choice(PAST), broker) for broker in struck)
    files = {n: _plan(chance, brokers, minimum) for n in ("a", "b")}
    steps = _steps(chance, brokers, replicas, chance.choice((1, 2, 2, 3, 3, 4)))
    if chance.random() < 0.3:
        steps = [step for step in steps if step != "elect unclean"]
        change = chance.choice(("reassign a", "reassign a", "reassign b", f"set {MINIMUM}"))
        at = chance.randint(0, len(steps))
        steps.insert(at, change.replace(MINIMUM, f"t min.insync.replicas={chance.randint(1, factor)}"))
        if change.startswith("reassign") and chance.random() < 0.5:
            later = chance.choice(("wait reassigned", "reassign b", change.replace("reassign", "cancel")))
            steps.insert(at + 1, later)
    text = "; ".join(steps)
    return Case(
        seed,
        chance.choice(("kip-966", "kip-966", "kraft-3.5")),
        brokers,
        replicas,
        minimum,
        unclean=chance.random() < 0.1,
        flushed=chance.random() < 0.1,
        past=past,
        text=text,
        files={n: plan for n, plan in files.items() if f"reassign {n}" in text},
    )


def _plan(chance: Random, brokers: int, minimum: int) -> str:
    several = chance.sample(range(1, brokers + 1), chance.randint(minimum, min(3, brokers)))
    return json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": several}]})


def _steps(chance: Random, brokers: int, replicas: Sequence[int], number: int) -> list[str]:
    """Steps of which none stops or starts who is cut off: that is not carried."""
    steps, cut = list[str](), set[int]()
    for _ in range(number):
        deed = chance.choice(DEEDS)
        pool = [b for b in (replicas if chance.random() < 0.9 else range(1, brokers + 1)) if b not in cut]
        if deed in ("wait in-sync", "elect unclean"):
            steps.append(deed)
        elif deed == "heal":
            steps += [f"heal {_words(cut)}"] if cut else []
            cut.clear()
        elif pool:
            several = chance.sample(pool, min(chance.choice((1, 1, 1, 2, 3)), len(pool)))
            cut |= {*several} if deed == "partition" else set()
            steps.append(f"{deed} {_words(several)}{chance.choice(('', ' wait in-sync')) if deed == 'roll' else ''}")
    return steps or ["destroy 1"]


def _words(brokers: Iterable[int]) -> str:
    return " ".join(map(str, brokers))


@attrs.frozen
class Seen:
    """The partition as an operator sees it."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known: int | None
    living: tuple[int, ...]

    def description(self, case: Case) -> str:
        """What kafka-topics.sh --describe prints of it."""
        configs = f"min.insync.replicas={case.minimum},unclean.leader.election.enable={str(case.unclean).lower()}"
        configs += ",flush.messages=1" if case.flushed else ""
        leader = "none" if self.leader is None else self.leader
        elr = f"\tElr: {_names(self.elr)}\tLastKnownElr: {self.last_known or ''}"
        return (
            f"Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: {len(self.replicas)}\tConfigs: {configs}\n"
            f"\tTopic: t\tPartition: 0\tLeader: {leader}\tReplicas: {_names(self.replicas)}\t"
            f"Isr: {_names(self.isr)}{elr}\n"
        )

    def cluster(self, case: Case) -> Cluster:
        """The same as a drill reads it, with who lives."""
        cluster = read_description(self.description(case), "topics.txt")
        assert cluster is not None
        return attrs.evolve(cluster, living=self.living)


def _names(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def steps_of(case: Case) -> tuple[RunbookStep, ...]:
    """The runbook, read."""
    return read_runbook(case.text, Surroundings(set(range(1, case.brokers + 1)), {}, ["t"], case.files.__getitem__))


def drilled(case: Case, seen: Seen) -> Drill:
    """What a drill says of the case, from the state that was seen."""
    cluster = seen.cluster(case)
    return drill(cluster, running(cluster, RELEASES[case.design], case.is_elr), steps_of(case), Explorations(SECONDS))
