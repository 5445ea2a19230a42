"""A partition as it was described, and a runbook, as states of the model.

What is not told is taken for all that it may be, so one description stands for several states (docs/drill.md):

- who is out of the ISR runs, or is down, and may lack any record
- who is down in the ELR left the mark of a clean shutdown, or did not
- an acknowledged record is on the disks of the ISR and the ELR only; or none has been acknowledged yet
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Final

import attrs

from isr_audit.cluster import FLUSH, MIN_INSYNC, UNCLEAN, Cluster, Partition, Release, Topic
from isr_audit.releases import BEFORE_ELR, TODAY
from isr_check.reference import State
from isr_drill.changes import BEFORE_3_8, WITH_ELR, WITHOUT_ELR
from isr_drill.course import MOST_BROKERS, Brokers, Course, Entry, courses_of
from isr_drill.exploration import MOST_PHASES, ROOMS, Setting
from isr_drill.record_fate import Happening
from isr_drill.runbook import CANCEL, DRAIN, SET, RunbookStep

DESIGNS: Final = (TODAY, BEFORE_ELR)
"""The protocols that a drill carries: KRaft with eligible leader replicas, and without."""
MOST_REPLICAS: Final = 5
KIND: Final = {name: position for position, name in enumerate(Happening.type.members)}


@attrs.frozen
class Protocol:
    """What runs. `release` is the oldest that may, None where nothing was told."""

    design: str
    release: Release | None

    @property
    def changing(self) -> str:
        """The protocol where replicas or the minimum change (`isr_drill.changes`)."""
        if self.design == TODAY:
            return WITH_ELR
        return WITHOUT_ELR if self.release is not None and self.release >= (3, 8) else BEFORE_3_8


@attrs.frozen
class Standing:
    """What of a replica is told. `runs` is None where nobody said it."""

    leads: bool
    in_sync: bool
    eligible: bool
    runs: bool | None


@attrs.frozen
class Situation:
    """A partition under a runbook. `brokers`: by position in the model their ids. `starts`: the states in which it may
    be. `ends`: by step, from "now" on, how many phases have begun after it. `gap`: why a step, or all, is UNKNOWN;
    `gap_step` is the first step of which that is so, None where no step can hit it."""

    partition: Partition
    setting: Setting
    brokers: tuple[int, ...]
    starts: tuple[State, ...]
    ends: tuple[int, ...]
    gap: str = ""
    gap_step: int | None = None

    @property
    def phases(self) -> int:
        return self.ends[-1]


def standing_of(p: Partition, broker: int, living: tuple[int, ...] | None) -> Standing:
    """A member of the ISR of a partition that is led runs, unless the cluster says that it does not."""
    in_sync, eligible = broker in p.isr, broker in (p.elr or ())
    runs = None if living is None else broker in living
    if broker in p.offline:
        runs = False
    elif runs is None and in_sync and p.leader is not None:
        runs = True
    return Standing(p.leader == broker, in_sync, eligible, runs)


def gap_of(p: Partition, topic: Topic, cluster: Cluster, design: str) -> str:
    """Why a partition has no state of the model; "" where it has."""
    gaps_of_topic = [name for name in (MIN_INSYNC, UNCLEAN) if not cluster.is_known(topic, name)]
    if design not in DESIGNS:
        return f"the protocol of this release ({design}) is not carried; from 3.5 on with KRaft it is"
    if p.unread_columns or not p.replicas:
        return f"its {' and '.join(p.unread_columns) or 'replicas'} were not told, or make no sense"
    if len(p.replicas) > MOST_REPLICAS:
        return f"more than {MOST_REPLICAS} replicas are not explored"
    if not p.isr and p.elr is None and design == TODAY:
        return "its ISR is empty, and who is eligible (Elr) was not told"
    if gaps_of_topic:
        return f"{' and '.join(gaps_of_topic)} of the topic were not told; give what kafka-configs.sh describes"
    return ""


def gap_of_reassignment(p: Partition, topic: Topic, cluster: Cluster) -> str:
    """Why a reassignment that is under way is not carried; "" where it is, or there is none."""
    if not (p.adding or p.removing):
        return ""
    if cluster.unclean(topic):
        return f"{UNCLEAN} is not carried beside a reassignment; ask again when that is over"
    fewest = min(len(set(p.replicas) - set(several)) for several in (p.adding, p.removing))
    if cluster.min_insync(topic) > fewest:
        return f"{MIN_INSYNC} is more than its {fewest} replicas; ask again when the reassignment is over"
    return ""


def situations_of(
    p: Partition, topic: Topic, cluster: Cluster, runs: Protocol, steps: Sequence[RunbookStep], brokers: Brokers
) -> tuple[Situation, ...]:
    """A partition under a runbook, once for each course that it may take there."""
    gap = gap_of(p, topic, cluster, runs.design)
    courses = courses_of(p, topic, cluster, steps, brokers)
    cut = frozenset(b for step in steps if step.cuts for b in step.brokers)
    return tuple(situation_of(p, topic, cluster, runs, course, cut, gap) for course in courses)


def situation_of(
    p: Partition,
    topic: Topic,
    cluster: Cluster,
    runs: Protocol,
    course: Course,
    cut: frozenset[int] = frozenset(),
    gap: str = "",
) -> Situation:
    """One course; its brokers are put in an order in which those that look alike are exchangeable. `cut`: whom a step
    cuts off."""
    plan, ends = course.within()
    gap, gap_step = (gap, 0) if gap else (course.gap, course.gap_step or 0)
    if beside := gap_of_reassignment(p, topic, cluster):
        gap, gap_step = gap if gap and not gap_step else beside, 0
    if len(plan) > MOST_PHASES:
        gap, gap_step = gap if gap and not gap_step else f"more than {MOST_PHASES} things happen to it", 0
    least = max(1, min(cluster.min_insync(topic), len(p.replicas)))
    setting = Setting(
        runs.changing if course.is_changing else runs.design,
        len(course.brokers),
        least,
        cluster.unclean(topic),
        cluster.is_known(topic, FLUSH) and cluster.flushed(topic),
        bool(cut & course.brokers),
    )
    if gap and gap_step == 0:
        may_be_hit = bool(plan or course.gap or not p.replicas)
        return Situation(p, setting, p.replicas, (), tuple(ends), gap, 0 if may_be_hit else None)
    standings = {b: standing_of(p, b, cluster.living) for b in course.brokers}

    def looks(broker: int) -> tuple[object, ...]:
        s = standings[broker]
        last = broker in (p.last_known_elr or ())
        return (
            not s.leads,
            not s.in_sync,
            not s.eligible,
            last,
            s.runs is None,
            not s.runs,
            [broker not in e.brokers for e in plan],
            [broker not in several for several in (p.replicas, p.adding, p.removing)],
        )

    order = tuple(sorted(course.brokers, key=looks))
    first = Beginning(p, order, tuple(standings[b] for b in order), tuple(plan), setting)
    starts = tuple(dict.fromkeys(first.states()))
    return Situation(p, setting, order, starts, ends, gap, gap_step if gap else None)


Shape = tuple[object, ...]
"""What of a partition its situations depend on, but for the ids of brokers."""


@attrs.define
class Shapes:
    """Which partitions look alike to a runbook. `places`: by broker the stages that name it."""

    cluster: Cluster
    steps: Sequence[RunbookStep]
    brokers: Brokers
    places: Mapping[int, tuple[int, ...]]
    has_drain: bool

    @classmethod
    def under(cls, cluster: Cluster, steps: Sequence[RunbookStep], brokers: Brokers) -> Shapes:
        """The stages of the steps by the brokers that they name."""
        stages = [stage for step in steps for stage in step.stages]
        places: dict[int, tuple[int, ...]] = {}
        for number, stage in enumerate(stages):
            for b in stage.brokers:
                places[b] = (*places.get(b, ()), number)
        return cls(cluster, steps, brokers, places, any(stage.kind == DRAIN for stage in stages))

    def of_topic(self, topic: Topic) -> Shape:
        """What of a topic counts."""
        cluster = self.cluster
        return (
            cluster.min_insync(topic),
            MIN_INSYNC in topic.configs,
            cluster.unclean(topic),
            cluster.flushed(topic),
            tuple(cluster.is_known(topic, name) for name in (MIN_INSYNC, UNCLEAN, FLUSH)),
            tuple(step.topic == topic.name for step in self.steps),
            tuple(stage.topic == topic.name for step in self.steps for stage in step.stages),
        )

    def enumeration(self, p: Partition) -> tuple[int, ...]:
        """The brokers of a partition in the order in which they count."""
        targets = (b for several in self.targets(p) for b in several or ())
        return tuple(dict.fromkeys((*p.replicas, *targets, *p.isr, *(p.elr or ()), *(p.last_known_elr or ()))))

    def targets(self, p: Partition) -> list[tuple[int, ...] | None]:
        stages = (stage for step in self.steps for stage in step.stages if stage.assignment.pairs)
        return [stage.assignment.replicas_of(p.name) for stage in stages]

    def shape(self, p: Partition, topic: Shape) -> Shape:
        """What of a partition counts. A drain names nobody who takes a place: there it counts who else may."""
        brokers = self.enumeration(p)
        at = {b: i for i, b in enumerate(brokers)}
        several = (p.replicas, p.isr, p.elr, p.last_known_elr, p.adding, p.removing, p.offline, *self.targets(p))
        return (
            self.others_than(brokers) if self.has_drain else (),
            topic,
            p.unread_columns,
            None if p.leader is None else at.get(p.leader, -1),
            tuple(None if some is None else tuple(at[b] for b in some if b in at) for some in several),
            tuple(map(self.look, brokers)),
        )

    def look(self, b: int) -> tuple[object, ...]:
        """What of a broker counts."""
        living = self.cluster.living
        return (self.places.get(b, ()), living is not None and b in living, b in self.brokers.running)

    @cached_property
    def looks(self) -> Counter[tuple[object, ...]]:
        """How many brokers look so."""
        return Counter(map(self.look, self.brokers.names))

    def others_than(self, brokers: Iterable[int]) -> frozenset[object]:
        """How many other brokers look so, of many as many as a partition can have."""
        own = Counter(self.look(b) for b in brokers if b in self.brokers.names)
        return frozenset((look, min(n - own[look], MOST_BROKERS)) for look, n in self.looks.items())


def mask(positions: Iterable[int]) -> int:
    """Replicas by their positions as a set of the model."""
    return sum(1 << i for i in positions)


@attrs.frozen
class Beginning:
    """A partition before the first phase. `brokers` by position in the model, and `standing` of each of them."""

    partition: Partition
    brokers: tuple[int, ...]
    standing: tuple[Standing, ...]
    plan: tuple[Entry, ...]
    setting: Setting

    def mask_of(self, brokers: Collection[int]) -> int:
        """Some brokers as a set of the model."""
        return mask(i for i, b in enumerate(self.brokers) if b in brokers)

    def target_of(self, e: Entry) -> int:
        """The set of a phase. The minimum that is set is one of as many members; a cancellation has a member, too."""
        if e.kind == SET:
            return (1 << e.minimum) - 1
        return 1 if e.kind == CANCEL else self.mask_of(e.brokers)

    def runbook(self) -> dict[str, object]:
        """The phases."""
        room = next(r for r in ROOMS if len(self.plan) <= r)
        phases = [(KIND[e.kind], self.target_of(e)) for e in self.plan]
        kinds, targets = zip(*((0, 0), *phases, *[(0, 0)] * (room - len(phases))), strict=True)
        return {"kinds": kinds, "targets": targets, "phase": 0, "to_do": 0}

    def states(self) -> Iterator[State]:
        """All states that a description stands for."""
        p, standing, all_of = self.partition, self.standing, range(len(self.standing))
        members = [i for i in all_of if standing[i].in_sync or standing[i].eligible]
        isr = mask(i for i in all_of if standing[i].in_sync)
        strangers = self.mask_of([b for b in p.elr or () if b not in p.replicas or b in p.adding])
        shared = {
            "asleep": 0,
            "controller_leader": next((i + 1 for i in all_of if standing[i].leads), 0),
            "controller_isr": isr,
            "controller_elr": mask(i for i in all_of if standing[i].eligible and not standing[i].in_sync),
            "shutting_down": 0,
            "wounds": 0,
            "replicas": self.mask_of(p.replicas),
            "adding": self.mask_of(p.adding),
            "removing": self.mask_of(p.removing),
            "minimum": self.setting.min_insync,
            "least": self.setting.min_insync,
            "strangers": strangers,
            **self.runbook(),
        }
        for running in product(*([s.runs] if s.runs is not None else [True, False] for s in standing)):
            down = [i for i in all_of if not running[i]]
            holders = mask(members) & ~(strangers if self.setting.is_changing else 0)
            fenced = fenced_replicas(standing, down, members, is_led=p.leader is not None)
            for clean, last, acked in product(
                subsets([i for i in down if i in members]), last_leaders(p, self.brokers, isr), (False, True)
            ):
                values = {
                    **shared,
                    "alive": mask(i for i in all_of if running[i]),
                    "believers": mask(i for i in all_of if standing[i].leads or (running[i] and not acked)),
                    "first": holders,
                    "strays": mask(i for i in down if i not in members),
                    "last_known_leader": last,
                    "fenced": mask(fenced),
                    "clean_shutdown": mask(clean),
                    "acked": acked,
                    "holders": holders if acked else 0,
                }
                yield tuple(values[v.name] for v in self.setting.variables)


def fenced_replicas(
    standing: Sequence[Standing], down: Sequence[int], members: Sequence[int], *, is_led: bool
) -> list[int]:
    """Who has no session: who is down, but for a member that the controller has yet to miss; and where nobody leads
    whoever could."""
    if is_led:
        return [i for i in down if not standing[i].in_sync]
    return sorted({*down, *members})


def last_leaders(p: Partition, brokers: Sequence[int], isr: int) -> list[int]:
    """Who led last, of a partition without a leader whose ISR is empty: by the column LastKnownElr, else anybody."""
    if isr or p.leader is not None:
        return [0]
    if p.last_known_elr is not None:
        return [brokers.index(b) + 1 for b in p.last_known_elr[:1] if b in brokers] or [0]
    return list(range(len(brokers) + 1))


def subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for choice in product((False, True), repeat=len(items)):
        yield tuple(i for i, is_in in zip(items, choice, strict=True) if is_in)
