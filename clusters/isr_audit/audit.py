"""The audit: of each kind of topic what survives, what is lost and how, and which change of settings would prevent it.

Topics with the same settings on the same design are one row. Every answer is a run of the model (isr_audit.answers);
what is said beyond the run that was made says why it carries over, or it is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from isr_audit.answers import Answer, answer_among, is_of_whole_disks, loss_in_rack, loss_of_disk, loss_of_fewer
from isr_audit.changes import changes, spread
from isr_audit.cluster import (
    CLEANUP,
    FLUSH,
    FLUSH_TIME,
    MIN_INSYNC,
    NEVER,
    OF_BROKER,
    RETENTION,
    UNCLEAN,
    Cluster,
    Topic,
    ids_text,
    number_of,
)
from isr_audit.coarse import COARSE, survives
from isr_audit.kinds import Kind
from isr_audit.questions import (
    CRASH,
    DECISIVE_VERDICTS,
    DISK,
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
from isr_audit.release_losses import Way, ways_of
from isr_audit.releases import Running
from isr_check.engine import Verdict

SURVIVES: Final = "survives"
MAY_BE_LOST: Final = "MAY BE LOST"
UNKNOWN: Final = "UNKNOWN"
ACKS: Final = ("all", "1")
SINGLE: Final = (NOTHING, CRASH, POWER, DISK)
"""One failure, or none: a loss under these puts a topic at risk."""


@attrs.frozen
class Change:
    """Settings that would prevent a loss, what they cost, and the run that says so. `to`: what the topics would be."""

    settings: tuple[str, ...]
    costs: tuple[str, ...]
    answer: Answer
    to: Kind


@attrs.frozen
class Line:
    """What becomes of acknowledged records under a fault. `answer`: the run; `because`: why it says more or less than
    what was asked. `advice_is_whole`: whether a run is known of every change of settings up to the one that helps."""

    acks: str
    fault: Fault
    verdict: str
    answer: Answer | None
    because: str = ""
    change: Change | None = None
    advice_is_whole: bool = True


@attrs.frozen
class RackLoss:
    """How many partitions of a row have no replica outside of a rack, and how many fewer than the minimum."""

    rack: str
    without_leader: int
    below_minimum: int


@attrs.frozen
class Row:
    """One kind of topic. `refusal`: the run behind what is said of writes that stop. `racks`: those whose loss stops
    writes. `plan`: the smallest change that keeps what acks=all loses by any one failure, if one is known. `ways`: what
    is known of deeds by which Kafka as it is released loses a record."""

    kind: Kind
    topics: tuple[Topic, ...]
    lines: tuple[Line, ...]
    refusal: Answer | None
    notes: tuple[str, ...] = ()
    racks: tuple[RackLoss, ...] = ()
    plan: Change | None = None
    ways: tuple[Way, ...] = ()

    @property
    def ways_to_loss(self) -> tuple[Way, ...]:
        """The deeds by which a record is lost."""
        return tuple(way for way in self.ways if way.answer.verdict == Verdict.VIOLATED)

    @property
    def partitions(self) -> int:
        return sum(len(t.partitions) or t.count or 0 for t in self.topics)

    def line(self, acks: str, fault: Fault) -> Line:
        return next(x for x in self.lines if x.acks == acks and x.fault is fault)

    @property
    def worst(self) -> tuple[int, ...]:
        """To sort by: what acks=all loses with one failure counts most, then with two, then what is unknown."""
        of_all = [x for x in self.lines if x.acks == "all"]
        single = sum(x.verdict == MAY_BE_LOST for x in of_all if x.fault in SINGLE)
        double = sum(x.verdict == MAY_BE_LOST for x in of_all if x.fault not in SINGLE)
        return (-single, -double, -sum(x.verdict == UNKNOWN for x in of_all))

    @property
    def at_risk(self) -> bool:
        return bool(self.lost_singly)

    @property
    def lost_singly(self) -> tuple[Line, ...]:
        """What acks=all loses by one failure, or by none."""
        return tuple(x for x in self.lines if x.acks == "all" and x.fault in SINGLE and x.verdict == MAY_BE_LOST)

    @property
    def plans(self) -> tuple[tuple[str, Change], ...]:
        """What to change, and against what: the smallest change for each fault, then the one that is enough for all."""
        faults: dict[tuple[str, ...], list[str]] = {}
        by_settings = {x.change.settings: x.change for x in self.lost_singly if x.change is not None}
        for line in self.lost_singly:
            if line.change is not None:
                faults.setdefault(line.change.settings, []).append(line.fault.says)
        some = [(", ".join(faults[s]), c) for s, c in by_settings.items() if not self.plan or s != self.plan.settings]
        return (*some, ("all of it" if some else "", self.plan)) if self.plan is not None else tuple(some)

    @property
    def is_undecided(self) -> bool:
        return any(x.verdict == UNKNOWN for x in self.lines if x.acks == "all" and x.fault in SINGLE)


@attrs.define
class AnswerSource:
    """The runs that are known, and how to make one more; `explore` returns None where it may not."""

    runs: list[Answer]
    explore: Callable[[Question], Answer | None]

    def ask(self, question: Question) -> Answer | None:
        found = answer_among(self.runs, question)
        if found is None:
            found = self.explore(question)
            self.runs += [found] if found is not None else []
        return found

    def recall(self, question: Question) -> Answer | None:
        """The answer of a run that was made and decided."""
        found = answer_among(self.runs, question)
        return found if found is not None and found.verdict in DECISIVE_VERDICTS else None

    def lost_by_fewer(self, question: Question) -> Answer | None:
        return loss_of_fewer(self.runs, question)

    def proof(self, question: Question) -> Answer | None:
        """A proof of any number of replicas, and of any minimum."""
        whole = (a for a in self.runs if {"replicas", "min_insync"} <= set(a.open))
        return answer_among(whole, question)

    def lost_with_disk(self, question: Question) -> Answer | None:
        return loss_of_disk(self.runs, question)

    def lost_in_rack(self, question: Question, kind: Kind) -> Answer | None:
        return loss_in_rack(self.runs, question, kind.settings.replicas, kind.in_rack)


def no_exploration(_: Question) -> None:
    """In place of an exploration: what was not run is not known."""


def kinds_of(cluster: Cluster, runs: Running) -> dict[Kind, list[Topic]]:
    """The topics by their kind."""
    kinds: dict[Kind, list[Topic]] = {}
    brokers = len(cluster.broker_ids)
    for topic in (t for t in cluster.topics if t.replicas):
        kinds.setdefault(kind_of(topic, cluster, runs, brokers), []).append(topic)
    return kinds


def audit_rows(cluster: Cluster, runs: Running, answers: AnswerSource) -> list[Row]:
    """All topics by their kind, worst first."""
    rows = [
        row_of(
            kind,
            tuple(topics),
            (
                *open_notes(kind),
                *silence_notes(cluster, topics),
                *minimum_notes(cluster, topics),
                *time_notes(cluster, topics),
            ),
            answers,
        )
        for kind, topics in kinds_of(cluster, runs).items()
    ]
    rows = [
        attrs.evolve(row, racks=tuple(rack_losses(cluster, row)), ways=ways_of(row.kind, row.topics)) for row in rows
    ]
    return sorted(rows, key=lambda row: (*row.worst, row.topics[0].name))


def kind_of(topic: Topic, cluster: Cluster, runs: Running, brokers: int = 0) -> Kind:
    """What of a topic the answers depend on; `brokers`: how many were told of, 0 where nobody knows."""
    minimum, replicas = cluster.min_insync(topic), max(1, topic.replicas)
    unclean = cluster.unclean(topic, default=runs.unclean_by_default)
    settings = Settings(replicas, min(minimum, replicas), unclean, "all")
    in_rack, racks = cluster.in_rack(topic), len(set(cluster.racks.values()))
    unknown = tuple(name for name in (MIN_INSYNC, UNCLEAN, FLUSH) if not cluster.is_known(topic, name))
    settings = attrs.evolve(settings, unclean=settings.unclean or UNCLEAN in unknown)
    settings = attrs.evolve(settings, min_insync=1) if MIN_INSYNC in unknown else settings
    flushed = cluster.flushed(topic) and FLUSH not in unknown
    return Kind(
        runs.design,
        settings,
        flushed,
        in_rack,
        racks if in_rack else 0,
        unknown,
        runs.doubt,
        runs.also,
        runs.release,
        brokers,
    )


def open_notes(kind: Kind) -> Iterator[str]:
    """Of settings that were not told: no answer is given that depends on them."""
    if kind.open:
        were, are, them = ("was", "is", "it") if len(kind.open) == 1 else ("were", "are", "them")
        yield f"{' and '.join(kind.open)} {were} not told, or {are} no value, so what depends on {them} is UNKNOWN"


def silence_notes(cluster: Cluster, topics: Iterable[Topic]) -> Iterator[str]:
    """Of brokers whose settings would decide, and were not told."""
    silence: dict[tuple[int, ...], list[str]] = {}
    for name in (MIN_INSYNC, UNCLEAN, FLUSH):
        ids = {b for t in topics for b in cluster.silent_brokers(t, name)}
        silence.setdefault(tuple(sorted(ids)), []).append(OF_BROKER[name])
    for brokers, names in silence.items():
        if brokers:
            yield f"nobody told {' and '.join(names)} of {ids_text(brokers)}: give the settings of each, or of all"


def minimum_notes(cluster: Cluster, topics: Iterable[Topic]) -> Iterator[str]:
    """Of topics whose minimum is above the replication factor."""
    above = {(cluster.min_insync(t), max(1, t.replicas)) for t in topics if cluster.min_insync(t) > max(1, t.replicas)}
    for minimum, replicas in sorted(above):
        yield (
            f"min.insync.replicas={minimum} is above the replication factor: today's leaders take {replicas} for it, "
            "older ones refuse every write with acks=all"
        )


def time_notes(cluster: Cluster, topics: Sequence[Topic]) -> Iterator[str]:
    """What settings that count time, or several records, do to records; none of them promises that a record is kept."""
    deleting_topics = [t for t in topics if cluster.values(t, CLEANUP) != ("compact",)]
    told = {name: {v for t in topics for v in cluster.values(t, name)} for name in (FLUSH, FLUSH_TIME)}
    often = [f"{FLUSH}={v}" for v in sorted(told[FLUSH], key=len) if 1 < (number_of(v) or 0) < NEVER]
    often += [f"{FLUSH_TIME}={v}" for v in sorted(told[FLUSH_TIME], key=len) if (number_of(v) or NEVER) < NEVER]
    if often:
        yield f"{' and '.join(often)} flushes after the acknowledgement, and counts as never"
    retention = (number_of(v) for t in deleting_topics for v in cluster.values(t, RETENTION))
    kept = sorted({n for n in retention if n is not None})
    if kept:
        said = " to ".join(lasting(ms) for ms in dict.fromkeys((kept[0], kept[-1])))
        some = "" if all(cluster.values(t, RETENTION) for t in deleting_topics) else ", of those topics that tell it"
        yield f"records are deleted after {said} ({RETENTION}{some}), whether or not anybody has read them"


def lasting(ms: int) -> str:
    """A time in the largest unit of which it is a whole number."""
    for unit, length in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)):
        if ms and ms % length == 0:
            return f"{ms // length} {unit}{'' if ms == length else 's'}"
    return f"{ms} ms"


def rack_losses(cluster: Cluster, row: Row) -> Iterator[RackLoss]:
    """The racks without which a partition of the row has no leader, or refuses writes with acks=all."""
    kind = row.kind
    if not kind.in_rack:
        return
    partitions = [p for t in row.topics for p in t.partitions]
    for rack in sorted(set(cluster.racks.values())):
        left = [sum(cluster.racks[r] != rack for r in p.replicas) for p in partitions]
        gone, few = left.count(0), sum(0 < n < kind.settings.min_insync for n in left)
        if gone or few:
            yield RackLoss(rack, gone, few)


def row_of(kind: Kind, topics: tuple[Topic, ...], notes: tuple[str, ...], answers: AnswerSource) -> Row:
    """The answers for one kind of topic."""
    lines = [line_of(kind, acks, fault, answers) for acks in ACKS for fault in kind.faults]
    changed = [with_change(kind, x, answers) if x.verdict == MAY_BE_LOST else x for x in lines]
    few = kind.settings.min_insync <= MOST_REPLICAS
    is_settled = MIN_INSYNC not in kind.open and not kind.doubt
    refusal = answers.ask(refusal_question(kind.design, kind.settings)) if few and is_settled else None
    return Row(kind, topics, tuple(changed), refusal, notes, plan=plan_of(kind, changed, answers))


def line_of(kind: Kind, acks: str, fault: Fault, answers: AnswerSource) -> Line:
    """What becomes of what was acknowledged so, under this fault; UNKNOWN where what was not told decides it."""
    if kind.open:
        return _line_of_any(kind, acks, fault, answers)
    line = _line_of_one(kind, acks, fault, answers)
    if kind.doubt and line.verdict == SURVIVES:
        return attrs.evolve(line, verdict=UNKNOWN, because=kind.doubt)
    for design in kind.also if line.verdict != UNKNOWN else ():
        other = _line_of_one(attrs.evolve(kind, design=design), acks, fault, answers)
        if other.verdict != line.verdict:
            both = f"{line.verdict} on {kind.design}, {other.verdict} on {design}"
            return attrs.evolve(line, verdict=UNKNOWN, because=f"{both}; which of them runs was not told")
    return line


def _line_of_any(kind: Kind, acks: str, fault: Fault, answers: AnswerSource) -> Line:
    """The answer that all values of the open settings have in common. Only runs that were made are asked."""
    lines = [line_of(one, acks, fault, AnswerSource(answers.runs, no_exploration)) for one in _closed(kind)]
    if len({x.verdict for x in lines}) == 1 and lines[0].verdict != UNKNOWN:
        return lines[0]
    return Line(acks, fault, UNKNOWN, None, f"{' and '.join(kind.open)} would decide")


def _closed(kind: Kind) -> list[Kind]:
    """The kind with every value of the settings that were not told, the weakest first."""
    of = kind.settings
    minima = range(1, of.replicas + 1) if MIN_INSYNC in kind.open else (of.min_insync,)
    elections = (True, False) if UNCLEAN in kind.open else (of.unclean,)
    flushes = (False, True) if FLUSH in kind.open else (kind.flushed,)
    return [
        attrs.evolve(kind, settings=attrs.evolve(of, min_insync=m, unclean=u), flushed=f, open=())
        for m in minima
        for u in elections
        for f in flushes
    ]


def _line_of_one(kind: Kind, acks: str, fault: Fault, answers: AnswerSource) -> Line:
    """What becomes of it where every setting is told; with more replicas than are explored, by the coarse model."""
    line, settings = _line_explored(kind, acks, fault, answers), attrs.evolve(kind.settings, acks=acks)
    is_larger = settings.replicas > MOST_REPLICAS and fault in FAULTS and line.verdict == UNKNOWN
    happens = fault.flushed() if kind.flushed else fault
    if is_larger and survives(kind.design, settings, happens):
        because = "; ".join([COARSE, *([FLUSHED] if happens != fault else [])])
        return attrs.evolve(line, verdict=SURVIVES, because=because)
    return line


def _line_explored(kind: Kind, acks: str, fault: Fault, answers: AnswerSource) -> Line:
    """The same by a run of the whole protocol."""
    settings = attrs.evolve(kind.settings, acks=acks)
    happens = fault.flushed() if kind.flushed else fault
    because = FLUSHED if happens != fault else ""
    if settings.min_insync > MOST_REPLICAS:
        proof = answers.proof(loss_question(kind.design, settings, happens)) if fault in FAULTS else None
        if proof is not None:
            return line_for_answer(settings, fault, proof, because)
        return Line(acks, fault, UNKNOWN, None, f"min.insync.replicas above {MOST_REPLICAS} is not explored")
    if fault not in FAULTS:
        return rack_line(kind, settings, fault, answers)
    question = loss_question(kind.design, settings, happens)
    answer = answers.recall(question) or answers.lost_by_fewer(question) or answers.ask(question)
    if fault.takes_disk and answer is not None and answer.verdict == Verdict.VIOLATED and not is_of_whole_disks(answer):
        whole = answers.lost_with_disk(question)
        if whole is None:
            return Line(acks, fault, UNKNOWN, answer, "a part of a log may be lost; of a whole one no run is known")
        answer = whole
    return line_for_answer(settings, fault, answer, because)


def rack_line(kind: Kind, settings: Settings, fault: Fault, answers: AnswerSource) -> Line:
    """The same when a rack loses power.

    Of one replica that is a crash or a power loss, whichever is worse: where nothing was unflushed, nothing is lost.
    """
    if kind.in_rack == 1:
        alone = [line_of(kind, settings.acks, one, answers) for one in (POWER, CRASH)]
        worst = next((x for verdict in (MAY_BE_LOST, UNKNOWN) for x in alone if x.verdict == verdict), alone[0])
        return attrs.evolve(worst, fault=fault)
    happens = fault.flushed() if kind.flushed else fault
    question = loss_question(kind.design, settings, happens)
    loss = answers.lost_in_rack(question, kind)
    answer = loss or answers.ask(question)
    if loss is None and answer is not None and answer.verdict == Verdict.VIOLATED:
        loss = answers.lost_in_rack(question, kind)
    if answer is not None and answer.verdict == Verdict.VIOLATED and loss is None:
        return Line(settings.acks, fault, UNKNOWN, answer, "lost, but by brokers that are not all of one rack")
    if answer is not None and answer.verdict == Verdict.HOLDS and not kind.flushed:
        return Line(settings.acks, fault, UNKNOWN, answer, "explored only with losses at every broker of the rack")
    return line_for_answer(settings, fault, loss or answer, FLUSHED if happens != fault else "")


FLUSHED: Final = "flushed first, so a power loss is a crash"


def line_for_answer(settings: Settings, fault: Fault, answer: Answer | None, because: str) -> Line:
    """The line that an answer allows; `because` is why it says more than what was asked."""
    acks = settings.acks
    if answer is None:
        return Line(acks, fault, UNKNOWN, None, "not explored")
    if answer.verdict == Verdict.VIOLATED:
        few = answer.question.constants["replicas"]
        carries = f"explored with {few} replica{'' if few == 1 else 's'}; others may lag meanwhile, out of the ISR"
        return Line(acks, fault, MAY_BE_LOST, answer, carries if settings.replicas != few else "")
    if answer.verdict in (Verdict.HOLDS, Verdict.PROVED):
        if settings.replicas <= MOST_REPLICAS or "replicas" in answer.open:
            return Line(acks, fault, SURVIVES, answer, "; ".join(filter(None, (because, proved(answer)))))
        return Line(acks, fault, UNKNOWN, answer, f"it survives with {MOST_REPLICAS} replicas; {PROOF_GAP}")
    millions = answer.states // 1_000_000
    reasons = {
        Verdict.UNKNOWN.value: f"more than {f'{millions} million' if millions else f'{answer.states:,}'} states",
        Verdict.TOO_SMALL.value: "the bounds leave no room for these faults",
        Verdict.VACUOUS.value: "nothing is ever acknowledged",
    }
    return Line(acks, fault, UNKNOWN, answer, reasons.get(answer.verdict, answer.verdict))


def proved(answer: Answer) -> str:
    """Of what a proof is for any number; nothing for what was explored."""
    many = [words for name, words in MANY.items() if name in answer.open]
    return f"proved for any number of {' and '.join(filter(None, (', '.join(many[:-1]), *many[-1:])))}" if many else ""


PROOF_GAP: Final = "with more it takes a proof, and of these faults none is known"
"""What would decide the answer for more replicas than are explored."""
MANY: Final = {"replicas": "replicas", "crashes": "crashes", "shutdowns": "restarts in order"}


# What would prevent it


def with_change(kind: Kind, line: Line, answers: AnswerSource) -> Line:
    """The line with the smallest change that keeps what it loses. Nothing is explored for that: where no run that was
    made says so of any change, and of some no run was made, the line says that instead of an advice."""
    made = AnswerSource(answers.runs, no_exploration)
    tries = list(_tries(kind, line, made))
    kept = ((to, settings, costs, x.answer) for to, settings, costs, x in tries if x.verdict == SURVIVES)
    change = next((Change(settings, costs, answer, to) for to, settings, costs, answer in kept if answer), None)
    return attrs.evolve(line, change=change, advice_is_whole=all(x.verdict != UNKNOWN for *_, x in tries))


def plan_of(kind: Kind, lines: Sequence[Line], answers: AnswerSource) -> Change | None:
    """The smallest change that keeps what acks=all loses by any one failure; None where nothing is lost, or where of no
    change it is known."""
    lost = [x for x in lines if x.acks == "all" and x.fault in SINGLE and x.verdict == MAY_BE_LOST]
    made = AnswerSource(answers.runs, no_exploration)
    for to, settings, costs in changes(kind) if lost else ():
        after = [line_of(to, "all", fault, made) for fault in SINGLE]
        if all(x.verdict == SURVIVES for x in after) and (answer := after[-1].answer) is not None:
            return Change(settings, costs, answer, to)
    return None


def _tries(
    kind: Kind, line: Line, answers: AnswerSource
) -> Iterator[tuple[Kind, tuple[str, ...], tuple[str, ...], Line]]:
    """Each change with its costs and what becomes of the line, cheapest first."""
    if line.acks != "all":
        better = line_of(kind, "all", line.fault, answers)
        yield kind, ("acks=all in the producer",), ("a write waits for all in-sync replicas",), better
    for changed, settings, costs in (*(spread(kind) if line.fault not in FAULTS else ()), *changes(kind)):
        yield changed, settings, costs, line_of(changed, line.acks, line.fault, answers)
