"""What a runbook does to every partition of a cluster, step by step: whose records may be lost, and who has no leader.

Partitions that look alike to the runbook have the same first states, and are one exploration. Two are made of each:

- *restless*: whoever runs may lag, leaders move, records are written: may an acknowledged one be lost?
- *calm*: whoever runs keeps up, and may not be back yet: is there a leader, and are writes taken?
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final

import attrs

from isr_audit.cluster import MIN_INSYNC, UNCLEAN, Cluster, Partition, Release, Topic
from isr_audit.releases import TODAY, Running
from isr_drill.course import brokers_of
from isr_drill.exploration import Class, Exploration, Explored, Way, explore
from isr_drill.quorum import quorum_of
from isr_drill.runbook import (
    BRINGS,
    DESTROY,
    IN_SYNC,
    RunbookStep,
    backwards,
    missing_returns,
    one_by_one,
    with_gaps,
    with_returns,
    with_waits,
)
from isr_drill.situation import Protocol, Shape, Shapes, Situation, situations_of


class Records(IntEnum):
    """What becomes of acknowledged records of a partition, worst first."""

    MAY_BE_LOST = 0
    UNKNOWN = 1
    SAFE = 2


class Service(IntEnum):
    """What a partition does meanwhile, at worst; worst first."""

    UNKNOWN = 0
    LEADERLESS = 1
    REFUSES = 2
    AT_MINIMUM = 3
    WELL = 4


STOPPED: Final = (Service.LEADERLESS, Service.REFUSES)
"""A partition that takes no write with acks=all."""
AWAITS_SESSION: Final = "waits-for-session"
FEWER_STATES: Final = "a wait between its moves, fewer moves at once, or more --seconds may decide"
BEYOND: Final = "leaves-the-model"
BEYOND_THE_MODEL: Final = (
    "a reassignment may be asked for while nobody leads, or in place of another in a way that is not carried; "
    "a wait before it may decide"
)
_WORST: Final = (
    ("leaderless", Service.LEADERLESS),
    ("refuses-writes", Service.REFUSES),
    ("at-minimum", Service.AT_MINIMUM),
)
"""A property of the calm exploration -> what it says, worst first."""


@attrs.frozen
class Outcome:
    """A partition after a step, until the next one. `because`: what would decide where it is UNKNOWN. `awaits_session`:
    its leader may be down, stand still or be cut off, and be missed only once its session ends. `service` leaves that
    time out."""

    records: Records
    service: Service
    because: str = ""
    awaits_session: bool = False


@attrs.frozen
class PartitionDrill:
    """A partition under the runbook: its outcome by step, from "now" on. `way`: a shortest way to the first loss."""

    situation: Situation
    outcomes: tuple[Outcome, ...]
    way: Way | None = None

    @property
    def partition(self) -> Partition:
        return self.situation.partition

    @property
    def is_touched(self) -> bool:
        """Whether the runbook does anything to it, or may: where that is UNKNOWN, too."""
        return self.situation.phases > 0 or self.situation.gap_step is not None

    @property
    def loss_step(self) -> int | None:
        """The first step after which a record may be lost; 0 is before the first one."""
        lost = (i for i, o in enumerate(self.outcomes) if o.records is Records.MAY_BE_LOST)
        return next(lost, None)


@attrs.frozen
class Drill:
    """A runbook on a cluster. `classes`: how many explorations of each kind it took; `states`: of all of them."""

    steps: tuple[RunbookStep, ...]
    partitions: tuple[PartitionDrill, ...]
    classes: int
    states: int

    @property
    def in_reach(self) -> tuple[PartitionDrill, ...]:
        return tuple(p for p in self.partitions if p.is_touched)

    def with_records(self, verdict: Records) -> tuple[PartitionDrill, ...]:
        """The partitions that the runbook touches of which this is the verdict, all steps together."""
        return tuple(p for p in self.in_reach if min(o.records for o in p.outcomes) is verdict)

    def with_service(self, *services: Service) -> tuple[PartitionDrill, ...]:
        """The partitions that the runbook touches of which this is so after some step."""
        return tuple(p for p in self.in_reach if any(o.service in services for o in p.outcomes[1:]))

    @property
    def standstill(self) -> tuple[PartitionDrill, ...]:
        """The partitions that may have no leader or refuse writes after some step.

        Where the steps only bring brokers back, those do not count that stood still before: to leave them so is no
        better.
        """
        stopped = self.with_service(*STOPPED)
        brings = all(stage.kind in BRINGS for step in self.steps for stage in step.stages)
        return tuple(p for p in stopped if not (brings and p.outcomes[0].service in STOPPED))

    @property
    def awaiting_session(self) -> tuple[PartitionDrill, ...]:
        """The partitions that it touches which may have no leader until the session of a broker ends."""
        return tuple(p for p in self.in_reach if any(o.awaits_session for o in p.outcomes[1:]))

    @property
    def is_safe(self) -> bool:
        """Every record of every partition that it touches is safe."""
        return len(self.with_records(Records.SAFE)) == len(self.in_reach)

    @property
    def keeps_service(self) -> bool:
        """It is safe, and all that it touches have a leader and take writes, but until a session ends."""
        return self.is_safe and not (self.with_service(Service.UNKNOWN) or self.standstill)

    @property
    def worst(self) -> PartitionDrill | None:
        """The partition of which a record may be lost first, after fewest steps of the model."""
        lost = [p for p in self.with_records(Records.MAY_BE_LOST) if p.way is not None]
        return min(
            lost, key=lambda p: (p.loss_step, len(p.way.path.steps) if p.way else 0, p.partition.name), default=None
        )


def class_of(s: Situation) -> Class:
    return (s.setting, s.starts, s.phases)


def silent(count: int, total: int) -> None:
    """Tells nobody."""


@attrs.define
class Explorations:
    """What was explored, so that each class is explored once. `seconds`: for each exploration, at most. `tell` is told
    how many classes are explored, and of how many."""

    seconds: float
    tell: Callable[[int, int], object] = silent
    by_class: dict[Class, Explored] = attrs.field(factory=dict[Class, Explored])

    def of(self, s: Situation) -> Explored:
        key = class_of(s)
        if key not in self.by_class:
            self.by_class[key] = (
                explore(s.setting, s.starts, s.phases, restless=True, most_seconds=self.seconds),
                explore(s.setting, s.starts, s.phases, restless=False, most_seconds=self.seconds),
            )
        return self.by_class[key]

    def explore_all(self, situations: Iterable[Situation]) -> None:
        """Explore each class of these that was not explored yet."""
        new = {class_of(s): s for s in situations if s.starts}
        fresh = [s for key, s in new.items() if key not in self.by_class]
        for n, s in enumerate(fresh):
            self.tell(n, len(fresh))
            self.of(s)


def drill(cluster: Cluster, runs: Running, steps: Sequence[RunbookStep], explorations: Explorations) -> Drill:
    """Every partition under the runbook.

    Where more than one protocol may run, a record is safe where it is under each of them.
    """
    designs = [Protocol(design, runs.release) for design in (runs.design, *runs.also)]
    brokers = brokers_of(cluster, steps)
    shapes, shape_by_partition = Shapes.under(cluster, steps, brokers), list[tuple[Partition, Shape]]()
    situations: dict[Shape, list[tuple[Situation, ...]]] = {}
    for topic in cluster.topics:
        of_topic = shapes.of_topic(topic)
        for p in topic.partitions:
            shape = shapes.shape(p, of_topic)
            shape_by_partition.append((p, shape))
            if shape not in situations:
                situations[shape] = [situations_of(p, topic, cluster, d, steps, brokers) for d in designs]
    explorations.explore_all(s for by_design in situations.values() for several in by_design for s in several)

    def answer_of(by_design: Iterable[Sequence[Situation]]) -> PartitionDrill:
        several = [worst([of_partition(s, explorations, steps) for s in situations]) for situations in by_design]
        return with_directories(common(several, runs.doubt), steps, runs)

    def exactly(p: Partition) -> PartitionDrill:
        topic = next(t for t in cluster.topics if t.name == p.topic)
        return answer_of([situations_of(p, topic, cluster, d, steps, brokers) for d in designs])

    answers = {shape: answer_of(by_design) for shape, by_design in situations.items()}
    partitions = [like(answers[shape], p, shapes) for p, shape in shape_by_partition]
    used = explorations.by_class.values()
    whole = Drill(tuple(steps), tuple(partitions), len(used), sum(r.states + c.states for r, c in used))
    return whole if not shapes.has_drain or whole.worst is None else with_own_worst(whole, exactly)


def with_own_worst(whole: Drill, exactly: Callable[[Partition], PartitionDrill]) -> Drill:
    """The drill whose worst partition, of which the story is told, has the brokers that a drain chose for itself."""
    worst_one = whole.worst
    partitions = (exactly(p.partition) if p is worst_one else p for p in whole.partitions)
    return attrs.evolve(whole, partitions=tuple(partitions))


def like(answer: PartitionDrill, p: Partition, shapes: Shapes) -> PartitionDrill:
    """The answer of a partition that looks alike, with this one's brokers; whom a drain chooses stays the other's."""
    before = answer.situation
    if before.partition is p:
        return answer
    there, here = shapes.enumeration(before.partition), shapes.enumeration(p)
    named = dict(zip(there, here, strict=True))
    situation = attrs.evolve(before, partition=p, brokers=tuple(named.get(b, b) for b in before.brokers))
    return attrs.evolve(answer, situation=situation)


def of_partition(s: Situation, explorations: Explorations, runbook: Sequence[RunbookStep]) -> PartitionDrill:
    """One partition under one protocol."""
    steps = len(s.ends)
    if not s.starts:
        return PartitionDrill(s, (Outcome(Records.UNKNOWN, Service.UNKNOWN, s.gap),) * steps)
    restless, calm = explorations.of(s)
    outcomes: list[Outcome] = []
    way: Way | None = None
    for step in range(steps):
        first = s.ends[step - 1] + 1 if step and s.ends[step] > s.ends[step - 1] else s.ends[step]
        phases = range(first, s.ends[step] + 1)
        found = next((w for p in phases if (w := restless.phases[p].loss)), None)
        way = way or found
        returns = missing_returns(runbook[:step])
        outcomes.append(outcome_of(s, step, phases, restless, calm, returns, is_lost=way is not None))
    return PartitionDrill(s, tuple(outcomes), way)


def outcome_of(
    s: Situation, step: int, phases: range, restless: Exploration, calm: Exploration, returns: str, *, is_lost: bool
) -> Outcome:
    """What is said of one step, whose phases are these. `returns`: the steps that are missing before its waits."""
    because = ""
    if s.gap_step is not None and step >= s.gap_step:
        because = s.gap
    elif phases.stop > min(restless.whole_phases, calm.whole_phases):
        because = f"more than {restless.states + calm.states:,} states; {FEWER_STATES}"
    elif any(BEYOND in e.phases[p].witnessed for e in (restless, calm) for p in range(phases.stop)):
        because = BEYOND_THE_MODEL
    elif any(not calm.phases[p].states for p in range(phases.stop)):
        missing = f"without {returns} before it" if returns else "for a replica stays away"
        because = f"the runbook never gets so far: a wait does not end, {missing}"
    if because:
        return Outcome(Records.MAY_BE_LOST if is_lost else Records.UNKNOWN, Service.UNKNOWN, because)
    service = next(
        (says for name, says in _WORST if any(name in calm.phases[p].witnessed for p in phases)), Service.WELL
    )
    awaits_session = any(AWAITS_SESSION in calm.phases[p].witnessed for p in phases)
    return Outcome(Records.MAY_BE_LOST if is_lost else Records.SAFE, service, awaits_session=awaits_session)


def worst(answers: Sequence[PartitionDrill]) -> PartitionDrill:
    """The worst of all courses, step by step; the way is that of the course that loses first."""
    if len(answers) == 1:
        return answers[0]
    outcomes: list[Outcome] = []
    for several in zip(*(a.outcomes for a in answers), strict=True):
        records = min(o.records for o in several)
        because = next((o.because for o in several if o.records is records and o.because), "")
        awaits_session = any(o.awaits_session for o in several)
        outcomes.append(Outcome(records, min(o.service for o in several), because, awaits_session))
    first = min(answers, key=lambda a: (a.loss_step is None, a.loss_step or 0))
    return attrs.evolve(first, outcomes=tuple(outcomes))


def common(answers: Sequence[PartitionDrill], doubt: str) -> PartitionDrill:
    """What all protocols say that may run. `doubt`: why an older one may, under which nothing is known to be safe."""
    first = answers[0]
    outcomes: list[Outcome] = []
    for several in zip(*(a.outcomes for a in answers), strict=True):
        records, service = {o.records for o in several}, min(o.service for o in several)
        because = next((o.because for o in several if o.because), "")
        if len(records) > 1:
            records, because = {Records.UNKNOWN}, because or "which protocol runs was not told; give --elr or --kafka"
        elif doubt and records == {Records.SAFE} and first.is_touched:
            records, because = {Records.UNKNOWN}, doubt
        outcomes.append(Outcome(records.pop(), service, because, any(o.awaits_session for o in several)))
    return attrs.evolve(first, outcomes=tuple(outcomes))


FIRST_WITH_ELR: Final[Release] = (4, 0)
KEEPS_ELR: Final[Release] = (4, 3)
"""The release from which on a directory that a broker tells of leaves the ELR as it is (assigned-directory)."""


def with_directories(answer: PartitionDrill, steps: Sequence[RunbookStep], runs: Running) -> PartitionDrill:
    """The answer of a release in which an empty disk may be elected where nobody leads.

    Its broker tells of the directory, which empties the ELR, and that is not explored. So nothing is safe there.
    """
    before = runs.release is not None and FIRST_WITH_ELR <= runs.release[:2] < KEEPS_ELR
    if not before or TODAY not in (runs.design, *runs.also):
        return answer
    because = f"Kafka {runs.version} may elect an empty disk where nobody leads (insync show assigned-directory)"
    outcomes, empty, leaderless = list[Outcome](), False, False
    for index, outcome in enumerate(answer.outcomes):
        stages = steps[index - 1].stages if index else ()
        empty |= any(stage.kind == DESTROY and {*stage.brokers} & {*answer.situation.brokers} for stage in stages)
        leaderless |= empty and outcome.service <= Service.LEADERLESS
        unknown = leaderless and outcome.records == Records.SAFE
        outcomes.append(attrs.evolve(outcome, records=Records.UNKNOWN, because=because) if unknown else outcome)
    return attrs.evolve(answer, outcomes=tuple(outcomes))


# The same runbook, mended


@attrs.frozen
class TopicSetting:
    """A setting of a topic, as it is to be before the first step."""

    topic: str
    name: str
    value: str


@attrs.frozen
class Mend:
    """Another runbook of the same steps that is better, what was changed, and what is to be set before."""

    change: str
    drill: Drill
    settings: tuple[TopicSetting, ...] = ()


def other_runbooks(steps: Sequence[RunbookStep]) -> Iterable[tuple[str, tuple[RunbookStep, ...]]]:
    """Other orders, those that change least first."""
    waits, reverse = with_waits(steps), backwards(steps)
    yield "wait until all replicas are in sync after each start", waits
    yield "the other way round", reverse
    yield "the other way round, and wait after each start", with_waits(reverse)
    returns = with_returns(steps)
    if returns != tuple(steps):
        yield "bring back who is away before a wait, and wait after each start", with_waits(returns)
        yield "bring back who is away before a wait", returns
    if steps and steps[0].stages != IN_SYNC.stages:
        yield "wait until all replicas are in sync first", (IN_SYNC, *steps)
        yield "wait until all replicas are in sync first, and after each start", (IN_SYNC, *waits)
    single = one_by_one(steps)
    if single is not None:
        yield "one broker after the other, and wait until all replicas are in sync", single


def mend(cluster: Cluster, runs: Running, whole: Drill, explorations: Explorations) -> Mend | None:
    """The first of the other orders that is better; None where none is.

    Better: where a record may be lost, or is UNKNOWN, one that is safe; else one that nobody notices. Where no order
    is, one with other settings of the topics that may lose.
    """
    deadline = time.monotonic() + 4 * explorations.seconds
    voters, orders = quorum_of(cluster), dict[tuple[RunbookStep, ...], str]()
    for change, steps in other_runbooks(whole.steps):
        # Who of the controllers is down at a step depends on the order.
        orders.setdefault(tuple(with_gaps(steps, voters)), change)
    orders.pop(whole.steps, None)
    for steps, change in orders.items():
        if time.monotonic() > deadline:
            return None
        other = drill(cluster, runs, steps, explorations)
        if other.keeps_service or (other.is_safe and not whole.is_safe):
            return Mend(change, other)
    if whole.is_safe:
        return None
    mends: list[Mend] = []
    for steps, change in {whole.steps: "", **orders}.items():
        if time.monotonic() > deadline:
            break
        settings = least_settings(cluster, runs, steps, explorations)
        if settings is not None:
            other = drill(with_settings(cluster, settings), runs, steps, explorations)
            mends += [Mend(change, other, settings)] if other.is_safe else []
    return min(mends, key=lambda better: cost(cluster, better.settings), default=None)


def cost(cluster: Cluster, settings: Iterable[TopicSetting]) -> tuple[int, int]:
    """How much other settings cost: topics that take no write once a replica is out, then how much the minima rise."""
    by_name = {t.name: t for t in cluster.topics}
    minima = [(by_name[s.topic], int(s.value)) for s in settings if s.name == MIN_INSYNC]
    brittle = sum(minimum == topic.replicas for topic, minimum in minima)
    return brittle, sum(minimum - cluster.min_insync(topic) for topic, minimum in minima)


def least_settings(
    cluster: Cluster, runs: Running, steps: Sequence[RunbookStep], explorations: Explorations
) -> tuple[TopicSetting, ...] | None:
    """The least changes of settings of topics under which these steps lose nothing; None where there are none.

    Topics that are set alike are changed alike.
    """
    plain = drill(cluster, runs, steps, explorations)
    names = {p.partition.topic for p in plain.with_records(Records.MAY_BE_LOST)}
    alike: dict[tuple[int, int, bool], list[Topic]] = {}
    for t in cluster.topics:
        if t.name in names:
            alike.setdefault((cluster.min_insync(t), t.replicas, cluster.unclean(t)), []).append(t)
    settings: list[TopicSetting] = []
    for (minimum, replicas, is_unclean), topics in alike.items():
        clean = [(UNCLEAN, "false")] if is_unclean else []
        higher = [[*clean, (MIN_INSYNC, str(least))] for least in range(minimum + 1, replicas + 1)]
        for values in [clean, *higher] if clean else higher:
            others = tuple(TopicSetting(t.name, name, value) for t in topics for name, value in values)
            other = drill(with_settings(cluster, others), runs, steps, explorations)
            if not any(p.partition.topic in {t.name for t in topics} for p in other.with_records(Records.MAY_BE_LOST)):
                settings += others
                break
        else:
            return None
    return tuple(settings)


def with_settings(cluster: Cluster, settings: Iterable[TopicSetting]) -> Cluster:
    """The cluster once these are set, and every leader goes by them."""
    by_topic: dict[str, dict[str, str]] = {}
    for setting in settings:
        by_topic.setdefault(setting.topic, {})[setting.name] = setting.value
    topics = (attrs.evolve(t, configs={**t.configs, **by_topic.get(t.name, {})}) for t in cluster.topics)
    return attrs.evolve(cluster, topics=tuple(topics))
