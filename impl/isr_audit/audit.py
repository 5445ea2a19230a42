"""The audit: of each kind of topic what survives, what is lost and how, and which change of settings would prevent it.

Topics with the same settings on the same design are one row. Every answer is a run of the model (isr_audit.answers);
what is said beyond the run that was made says why it carries over, or it is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from isr_audit.answers import Answer, answer_among, loss_of_fewer
from isr_audit.cluster import Cluster, Topic
from isr_audit.questions import (
    CRASH,
    DECIDED,
    FAULTS,
    MOST_REPLICAS,
    NOTHING,
    POWER,
    Fault,
    Question,
    Settings,
    loss_question,
    refusal_question,
)
from isr_audit.releases import TODAY, Running
from isr_check.engine import Verdict

SURVIVES: Final = "survives"
LOST: Final = "MAY BE LOST"
UNKNOWN: Final = "UNKNOWN"
ACKS: Final = ("all", "1")
SINGLE: Final = (NOTHING, CRASH, POWER)
"""One failure, or none: a loss under these puts a topic at risk."""


@attrs.frozen
class Kind:
    """What topics have in common that answers depend on.

    `flushed`: each record is on disk before it is acknowledged.
    """

    design: str
    settings: Settings
    flushed: bool = False

    @property
    def stops(self) -> str:
        """When writes with acks=all stop: in words, so many replicas that are down or lag."""
        out = self.settings.replicas - self.settings.min_insync + 1
        return f"{out} of {self.settings.replicas} replicas {'is down or lags' if out == 1 else 'are down or lag'}"


@attrs.frozen
class Change:
    """Settings that would prevent a loss, what they cost, and the run that says so."""

    settings: tuple[str, ...]
    costs: tuple[str, ...]
    answer: Answer


@attrs.frozen
class Line:
    """What becomes of acknowledged records under a fault. `answer`: the run; `because`: why it says more or less than
    what was asked."""

    acks: str
    fault: Fault
    verdict: str
    answer: Answer | None
    because: str = ""
    change: Change | None = None


@attrs.frozen
class Row:
    """One kind of topic. `refusal`: the run behind what is said of writes that stop."""

    kind: Kind
    topics: tuple[Topic, ...]
    lines: tuple[Line, ...]
    refusal: Answer | None
    notes: tuple[str, ...] = ()

    @property
    def partitions(self) -> int:
        return sum(len(t.partitions) for t in self.topics)

    def line(self, acks: str, fault: Fault) -> Line:
        return next(x for x in self.lines if x.acks == acks and x.fault is fault)

    @property
    def worst(self) -> tuple[int, ...]:
        """To sort by: what acks=all loses with one failure counts most, then with two, then what is unknown."""
        of_all = [x for x in self.lines if x.acks == "all"]
        single = sum(x.verdict == LOST for x in of_all if x.fault in SINGLE)
        double = sum(x.verdict == LOST for x in of_all if x.fault not in SINGLE)
        return (-single, -double, -sum(x.verdict == UNKNOWN for x in of_all))

    @property
    def at_risk(self) -> bool:
        return any(x.verdict == LOST for x in self.lines if x.acks == "all" and x.fault in SINGLE)

    @property
    def undecided(self) -> bool:
        return any(x.verdict == UNKNOWN for x in self.lines if x.acks == "all" and x.fault in SINGLE)


@attrs.define
class Answers:
    """The runs that are known, and how to make one more; `explore` returns None where it may not."""

    known: list[Answer]
    explore: Callable[[Question], Answer | None]

    def ask(self, question: Question) -> Answer | None:
        found = answer_among(self.known, question)
        if found is None:
            found = self.explore(question)
            self.known += [found] if found is not None else []
        return found

    def recall(self, question: Question) -> Answer | None:
        """The answer of a run that was made and decided."""
        found = answer_among(self.known, question)
        return found if found is not None and found.verdict in DECIDED else None

    def lost_by_fewer(self, question: Question) -> Answer | None:
        return loss_of_fewer(self.known, question)


def unexplored(_: Question) -> None:
    """In place of an exploration: what was not run is not known."""


def audited(cluster: Cluster, runs: Running, answers: Answers) -> list[Row]:
    """All topics by their kind, worst first."""
    kinds: dict[Kind, list[Topic]] = {}
    notes: dict[Kind, tuple[str, ...]] = {}
    for topic in cluster.topics:
        kind, said = kind_of(topic, cluster, runs)
        kinds.setdefault(kind, []).append(topic)
        notes[kind] = said
    rows = [row_of(kind, tuple(topics), notes[kind], answers) for kind, topics in kinds.items()]
    return sorted(rows, key=lambda row: (*row.worst, row.topics[0].name))


def kind_of(topic: Topic, cluster: Cluster, runs: Running) -> tuple[Kind, tuple[str, ...]]:
    """What of a topic the answers depend on, and what has to be said about it."""
    minimum, replicas = cluster.min_insync(topic), max(1, topic.replicas)
    unclean = cluster.unclean(topic, default=runs.unclean_by_default)
    notes: list[str] = []
    if minimum > replicas:
        notes.append(
            f"min.insync.replicas={minimum} is above the replication factor: today's leaders take {replicas} for it, "
            "older ones refuse every write with acks=all"
        )
    settings = Settings(replicas, min(minimum, replicas), unclean, "all")
    return Kind(runs.design, settings, cluster.flushed(topic)), tuple(notes)


def row_of(kind: Kind, topics: tuple[Topic, ...], notes: tuple[str, ...], answers: Answers) -> Row:
    """The answers for one kind of topic."""
    lines = [line_of(kind, acks, fault, answers) for acks in ACKS for fault in FAULTS]
    changed = [attrs.evolve(x, change=change_for(kind, x, answers)) if x.verdict == LOST else x for x in lines]
    few = kind.settings.min_insync <= MOST_REPLICAS
    refusal = answers.ask(refusal_question(kind.design, kind.settings)) if few else None
    return Row(kind, topics, tuple(changed), refusal, notes)


def line_of(kind: Kind, acks: str, fault: Fault, answers: Answers) -> Line:
    """What becomes of what was acknowledged so, under this fault."""
    settings = attrs.evolve(kind.settings, acks=acks)
    if settings.min_insync > MOST_REPLICAS:
        why = f"min.insync.replicas above {MOST_REPLICAS} is not explored"
        return Line(acks, fault, UNKNOWN, None, why)
    happens = fault.flushed() if kind.flushed else fault
    question = loss_question(kind.design, settings, happens)
    answer = answers.recall(question) or answers.lost_by_fewer(question) or answers.ask(question)
    because = "flushed first, so a power loss is a crash" if happens != fault else ""
    if answer is None:
        return Line(acks, fault, UNKNOWN, None, "not explored")
    if answer.verdict == Verdict.VIOLATED:
        few = answer.question.constants["replicas"]
        carries = f"explored with {few} replicas; others may lag meanwhile, out of the ISR"
        return Line(acks, fault, LOST, answer, carries if settings.replicas != few else "")
    if answer.verdict == Verdict.HOLDS and settings.replicas <= MOST_REPLICAS:
        return Line(acks, fault, SURVIVES, answer, because)
    if answer.verdict == Verdict.HOLDS:
        return Line(acks, fault, UNKNOWN, answer, f"it survives with {MOST_REPLICAS} replicas; more were not explored")
    reasons = {
        Verdict.UNKNOWN.value: f"more than {answer.states // 1_000_000} million states",
        Verdict.TOO_SMALL.value: "the bounds leave no room for these faults",
        Verdict.VACUOUS.value: "nothing is ever acknowledged",
    }
    return Line(acks, fault, UNKNOWN, answer, reasons.get(answer.verdict, answer.verdict))


# What would prevent it


def change_for(kind: Kind, line: Line, answers: Answers) -> Change | None:
    """The smallest change that was tried and keeps what the line loses; None where no run that is known says so."""
    recalled = Answers(answers.known, unexplored)
    if line.acks != "all":
        better = line_of(kind, "all", line.fault, recalled)
        if better.verdict == SURVIVES and better.answer is not None:
            return Change(("acks=all in the producer",), ("a write waits for all in-sync replicas",), better.answer)
    for changed, settings, costs in changes(kind):
        tried = line_of(changed, line.acks, line.fault, recalled)
        if tried.verdict == SURVIVES and tried.answer is not None:
            return Change(settings, costs, tried.answer)
    return None


Tried = tuple[Kind, tuple[str, ...], tuple[str, ...]]


def changes(kind: Kind) -> Iterator[Tried]:
    """Other settings, those that cost least first: one setting, then two, then another design, then another replica."""
    alone = [*_minimum(kind), *_clean(kind)]
    yield from alone
    yield from _both(alone, _clean)
    yield from _flushing(kind)
    yield from _both(alone, _flushing)
    newer = [*_eligible(kind)]
    yield from newer
    yield from _both(newer, _minimum)
    yield from _both([*_both(newer, _minimum)], _clean)
    more = [*_replica(kind)]
    yield from _both(more, _minimum)
    yield from _both([*_both(more, _minimum)], _clean)


def _both(first: list[Tried], then: Callable[[Kind], Iterator[Tried]]) -> Iterator[Tried]:
    for kind, settings, costs in first:
        for changed, more, and_more in then(kind):
            yield changed, (*settings, *more), (*costs, *and_more)


def _minimum(kind: Kind) -> Iterator[Tried]:
    for minimum in range(kind.settings.min_insync + 1, kind.settings.replicas + 1):
        changed = attrs.evolve(kind, settings=attrs.evolve(kind.settings, min_insync=minimum))
        yield changed, (f"min.insync.replicas={minimum}",), (f"writes with acks=all stop when {changed.stops}",)


def _clean(kind: Kind) -> Iterator[Tried]:
    if kind.settings.unclean:
        changed = attrs.evolve(kind, settings=attrs.evolve(kind.settings, unclean=False))
        cost = "a partition stays without a leader until an in-sync replica is back"
        yield changed, ("unclean.leader.election.enable=false",), (cost,)


def _flushing(kind: Kind) -> Iterator[Tried]:
    if not kind.flushed:
        cost = "every write waits for the disks of all in-sync replicas"
        yield attrs.evolve(kind, flushed=True), ("flush.messages=1",), (cost,)


def _eligible(kind: Kind) -> Iterator[Tried]:
    if kind.design != TODAY:
        cost = "Kafka 4.1 or later with the feature turned on"
        yield attrs.evolve(kind, design=TODAY), ("eligible.leader.replicas.version=1",), (cost,)


def _replica(kind: Kind) -> Iterator[Tried]:
    replicas = kind.settings.replicas + 1
    if replicas <= MOST_REPLICAS:
        changed = attrs.evolve(kind, settings=attrs.evolve(kind.settings, replicas=replicas))
        yield changed, (f"replication factor {replicas}",), ("another copy of all data",)
