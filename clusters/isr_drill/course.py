"""What a runbook does to one partition, phase by phase: whom each step hits, and which replicas it gets.

Of a reassignment by a file the target is the file's. A drain names no targets. They may be any brokers that run and
have no replica, so there is a course for each choice that the runbook tells apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Final

import attrs

from isr_audit.cluster import MIN_INSYNC, UNCLEAN, Cluster, Partition, Topic
from isr_drill.runbook import (
    ALL_TOPICS,
    CANCEL,
    DRAIN,
    ELECT,
    LEAVES,
    REASSIGN,
    SET,
    START,
    WAIT_REASSIGNED,
    RunbookStep,
    Stage,
)

MOST_BROKERS: Final = 6
"""Brokers that have a replica at some time."""
MOST_COURSES: Final = 8


@attrs.frozen
class Entry:
    """One phase of a partition. `brokers`: whom it hits, or of REASSIGN the target; `minimum`: that of SET."""

    kind: str
    brokers: tuple[int, ...] = ()
    minimum: int = 0


@attrs.frozen
class Brokers:
    """All that a cluster may place replicas on, and which of these run for sure: they are in sync somewhere."""

    names: frozenset[int]
    running: frozenset[int]


@attrs.frozen
class Course:
    """`steps`: the entries of each step. `replicas`: the target that was asked for last, `origin` what it began with;
    where a reassignment was cancelled, which may have been over, the smaller of both. `brokers`: all that have a
    replica at some time. `is_told_apart`: whether it is known that the minimum is the topic's own, or that it is not;
    `kafka-topics.sh --describe` has either under Configs. `gap`: why the rest is UNKNOWN, from `gap_step` on; then the
    steps from there have no entries.
    """

    replicas: tuple[int, ...]
    brokers: frozenset[int]
    minimum: int
    has_own_minimum: bool
    is_told_apart: bool
    origin: tuple[int, ...] = ()
    is_moving: bool = False
    is_cancelled: bool = False
    steps: tuple[tuple[Entry, ...], ...] = ()
    down: frozenset[int] = frozenset()
    leavers: frozenset[int] = frozenset()
    gap: str = ""
    gap_step: int | None = None

    @property
    def is_changing(self) -> bool:
        """Whether replicas or the minimum change."""
        return self.is_moving or any(e.kind in (SET, REASSIGN) for step in self.steps for e in step)

    def within(self) -> tuple[list[Entry], tuple[int, ...]]:
        """The entries that hit this partition, and by step, from "now" on, how many of them there are by then."""
        plan, ends = list[Entry](), [0]
        for step in self.steps:
            for e in step:
                named = tuple(b for b in e.brokers if b in self.brokers)
                plan += [attrs.evolve(e, brokers=named)] if named or not e.brokers else []
            ends.append(len(plan))
        return plan, tuple(ends)


def brokers_of(cluster: Cluster, steps: Sequence[RunbookStep]) -> Brokers:
    """The brokers of a cluster; where it says who lives, only these."""
    replicas = {r for p in cluster.partitions for r in p.replicas}
    targets = {
        b
        for step in steps
        for stage in step.stages
        for _, several in stage.assignment.pairs
        for b in (*several, *stage.brokers)
    }
    names = {*replicas, *cluster.racks, *targets}
    living = names if cluster.living is None else set(cluster.living)
    in_sync = {r for p in cluster.partitions if p.leader is not None for r in p.isr if r not in p.offline}
    running = in_sync if cluster.living is None else set(cluster.living)
    return Brokers(frozenset((names | living) & living), frozenset(running & living))


def courses_of(
    p: Partition, topic: Topic, cluster: Cluster, steps: Sequence[RunbookStep], brokers: Brokers
) -> tuple[Course, ...]:
    """All courses that a runbook may take at a partition."""
    targets = tuple(r for r in p.replicas if r not in p.removing)
    courses = [
        Course(
            targets,
            frozenset(p.replicas),
            cluster.min_insync(topic),
            MIN_INSYNC in topic.configs,
            MIN_INSYNC not in topic.configs or topic.has_own_configs,
            tuple(r for r in p.replicas if r not in p.adding),
            bool(p.adding or p.removing),
        )
    ]
    for number, step in enumerate(steps, 1):
        courses = [
            later
            for course in courses
            for later in _after_step(course, number, step, Place(p, topic, cluster, steps, brokers))
        ]
    return tuple(courses)


@attrs.frozen
class Place:
    """Where a course is: a partition, and all around it."""

    partition: Partition
    topic: Topic
    cluster: Cluster
    steps: Sequence[RunbookStep]
    brokers: Brokers


def _after_step(course: Course, number: int, step: RunbookStep, place: Place) -> Iterable[Course]:
    fresh = attrs.evolve(course, steps=(*course.steps, ()))
    if course.gap:
        return (fresh,)
    if step.gap and step.topic in (ALL_TOPICS, place.partition.topic):
        return (attrs.evolve(fresh, gap=f"{step.text}: {step.gap}", gap_step=number),)
    later = [fresh]
    for stage in step.stages:
        later = [c for before in later for c in ((before,) if before.gap else _after_stage(before, stage, place))]
    named = (attrs.evolve(c, gap=f"{step.text}: {c.gap}", gap_step=number) if c.gap else c for c in later)
    return named


def _after_stage(course: Course, stage: Stage, place: Place) -> Iterable[Course]:
    """The courses after one stage; `gap` is set where it is not carried."""
    match stage.kind:
        case kind if kind == SET:
            return (_with_minimum(course, stage, place),)
        case kind if kind == REASSIGN:
            target = stage.assignment.replicas_of(place.partition.name)
            return (course if target is None else _reassigned(course, target, place),)
        case kind if kind == CANCEL:
            is_named = stage.assignment.replicas_of(place.partition.name) is not None
            return (_without_reassignment(course) if is_named and course.is_moving else course,)
        case kind if kind == DRAIN and course.is_cancelled:
            return (
                attrs.evolve(course, gap="a drain after a cancelled reassignment is not carried; reassign instead"),
            )
        case kind if kind == DRAIN:
            return _after_drain(course, stage, place)
        case kind if kind == WAIT_REASSIGNED:
            return (_with(course, Entry(stage.kind)) if course.is_moving else course,)
        case kind if kind == ELECT and course.is_moving:
            why = "an election of who is not in sync is not carried beside a reassignment; ask again when that is over"
            return (attrs.evolve(course, gap=why),)
        case _:
            hit = frozenset(stage.brokers)
            down = (
                course.down | hit if stage.kind in LEAVES else course.down - hit if stage.kind == START else course.down
            )
            return (attrs.evolve(_with(course, Entry(stage.kind, stage.brokers)), down=down),)


def _with(course: Course, entry: Entry) -> Course:
    return attrs.evolve(course, steps=(*course.steps[:-1], (*course.steps[-1], entry)))


def _with_minimum(course: Course, stage: Stage, place: Place) -> Course:
    """A default empties the ELR of topics, too, that have a value of their own."""
    own = stage.topic != ALL_TOPICS
    if own and stage.topic != place.partition.topic:
        return course
    if not own and any(MIN_INSYNC in settings for settings in place.cluster.dynamic.values()):
        return attrs.evolve(course, gap=f"a broker has {MIN_INSYNC} of its own, which goes before the default")
    keeps = not own and course.has_own_minimum
    if keeps and not course.is_told_apart and stage.minimum != course.minimum:
        why = f"whether {MIN_INSYNC} is the topic's own or comes from the default was not told; set the topic, or ask"
        return attrs.evolve(course, gap=f"{why} with --bootstrap")
    minimum = course.minimum if keeps else stage.minimum
    least = min(len(course.replicas), len(place.partition.replicas))
    if max(minimum, course.minimum) > least:
        return attrs.evolve(course, gap=_too_few(max(minimum, course.minimum), least))
    later = attrs.evolve(
        course,
        minimum=minimum,
        has_own_minimum=own or course.has_own_minimum,
        is_told_apart=own or course.is_told_apart,
    )
    return _with(later, Entry(SET, minimum=minimum))


def _too_few(minimum: int, replicas: int) -> str:
    return (
        f"{MIN_INSYNC}={minimum} is more than {replicas} replicas, and which number counts is not carried; "
        "ask with a smaller minimum"
    )


def _reassigned(course: Course, target: tuple[int, ...], place: Place) -> Course:
    if set(target) == set(course.replicas) and not course.is_moving:
        return course
    brokers = course.brokers | set(target)
    why = ""
    if len(brokers) > MOST_BROKERS:
        why = f"more than {MOST_BROKERS} brokers have a replica at some time, which is not explored; move fewer at once"
    elif course.minimum > min(len(target), len(course.replicas)):
        why = _too_few(course.minimum, min(len(target), len(course.replicas)))
    elif place.cluster.unclean(place.topic):
        why = f"{UNCLEAN} is not carried beside a reassignment; ask with it off"
    if why:
        return attrs.evolve(course, gap=why)
    origin = min(course.origin, course.replicas, key=len)
    moved = attrs.evolve(course, replicas=target, origin=origin, brokers=brokers, is_moving=True)
    return _with(moved, Entry(REASSIGN, target))


def _without_reassignment(course: Course) -> Course:
    fewer = min(course.origin, course.replicas, key=len)
    return _with(attrs.evolve(course, replicas=fewer, is_cancelled=True), Entry(CANCEL))


def _after_drain(course: Course, stage: Stage, place: Place) -> Iterator[Course]:
    """Every choice of who takes the place of those that leave, of brokers that look alike the first."""
    leavers = course.leavers | set(stage.brokers)
    course = attrs.evolve(course, leavers=leavers)
    stays = tuple(r for r in course.replicas if r not in leavers)
    leave = len(course.replicas) - len(stays)
    if not leave:
        yield course
        return
    groups = _alike(place, place.brokers.names - leavers - set(course.replicas) - course.down)
    choices = [c for c in _choices(groups, leave)]
    if not choices or len(choices) > MOST_COURSES:
        why = (
            "there are more ways to choose than are explored; give a file with reassign"
            if choices
            else "no brokers are described that run, have no replica and may take one; give a file with reassign"
        )
        yield attrs.evolve(course, gap=why)
    else:
        for choice in choices:
            yield _reassigned(course, (*stays, *choice), place)


def _alike(place: Place, candidates: Iterable[int]) -> list[list[int]]:
    """Brokers that the runbook and the description do not tell apart."""
    stages = [stage for step in place.steps for stage in step.stages if stage.brokers]
    last = place.partition.last_known_elr or ()
    groups: dict[tuple[object, ...], list[int]] = {}
    for b in sorted(candidates):
        named = tuple(b in stage.brokers for stage in stages)
        looks = (named, b in place.brokers.running, b in place.partition.replicas, b in last)
        groups.setdefault(looks, []).append(b)
    return list(groups.values())


def _choices(groups: Sequence[Sequence[int]], number: int) -> Iterator[tuple[int, ...]]:
    for several in combinations_with_replacement(range(len(groups)), number):
        counts = {g: several.count(g) for g in several}
        if all(len(groups[g]) >= n for g, n in counts.items()):
            yield tuple(b for g, n in counts.items() for b in groups[g][:n])
