"""Liveness on packed states: the steps between a trigger and its goal, as arrays.

An exploration keeps states and not steps. So the steps of the states between a trigger and its goal are computed again,
level by level. The kernels for it are made from the same actions, and also tell which instance of an action each step
is. The states that the steps reach are looked up in the visited set.

Where the exploration's states are compressed or in files, those between trigger and goal are first brought to arrays,
with the states of the goal that are one step away from them. Memory has to hold these, then, and not all states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

import attrs
import numpy as np

from isr_check.engine import Exploration, Finding, Verdict
from isr_check.lasso import finding_for
from isr_check.liveness import GOAL, Labels, LassoSearch, Positions, Region, Small, Stem, Truths
from isr_check.native.actions import DECISIONS, Check, checks
from isr_check.native.assembly import Code
from isr_check.native.buffers import Worker, address, scarce
from isr_check.native.expressions import Definitions
from isr_check.native.kernels import DECLARATIONS, Job, Marks, Program, tables
from isr_check.native.machine import Machine
from isr_check.native.search import Search
from isr_check.native.space import BLOCK
from isr_check.native.steps import LabelledActionWriter, LabelledKernels
from isr_check.native.team import Span, Team, spans
from isr_check.native.traces import least_path
from isr_check.reference import Evaluator
from isr_lang import Property

CHUNK = 2048
"""States whose steps are computed by one call."""
MANY = 1 << 20
"""The number of steps after which optimising the machine code is worth its time."""
TRIGGER, GOAL_BIT = 1, 2
"""Bits of what holds in a state: the trigger; the goal."""


def _program(search: Search, p: Property, labels: Labels) -> Program:
    shared = Definitions(search.layout)
    actions = [
        LabelledActionWriter(shared, f"action{i}", a, labels.first[i]) for i, a in enumerate(search.instance.actions)
    ]
    assert p.trigger is not None, "a liveness property has a trigger"
    begins = Check(attrs.evolve(p, condition=p.trigger), True, 0)
    kernels = _Steps(search.layout, search.program.most, Marks(None, None), None)
    parts = [a.text() for a in actions]
    parts += [
        checks(shared, "states", [begins, Check(p, True, 1)], "%cells"),
        kernels.unpack(),
        *kernels.visited.texts(),
    ]
    parts += [
        kernels.labelled_successors(len(actions)),
        kernels.check(),
        kernels.edges(),
        kernels.begin(),
        kernels.grow(),
    ]
    text = "\n".join([*tables(search.layout), *DECLARATIONS, *shared.texts, *parts])
    guards = max((len(a.guards) for a in search.instance.actions), default=0)
    return Program(text, ("check", "edges", "begin", "grow"), search.layout, search.program.most, guards, ())


class _Steps(LabelledKernels):
    """The kernels of a module whose steps have labels and known targets."""

    def edges(self) -> str:
        """RESULTS[i]: how many steps the state at LISTED[START+i] has.

        REACHED gets the position of every step's target, in order, and LABELS every step's label.
        """
        code, job = self._kernel("edges")
        states, out, table, mask = (job(j) for j in (Job.STATES, Job.OUT, Job.TABLE, Job.MASK))
        listed, labels, target_positions, results = (job(j) for j in (Job.LISTED, Job.LABELS, Job.REACHED, Job.RESULTS))
        start, total = job(Job.START), code.slot(0)
        with code.loop(start, job(Job.END)) as (i, _):
            words = self.visited.state(code, states, code.load(listed, i))
            so_far = code.load(total, 0)
            n = self._labelled_call(code, job, words, code.element(labels, so_far))
            code.store(results, code.sub(i, start), n)
            with code.loop(0, n) as (k, _):
                at = self.visited.state(code, out, k)
                position = code.value(f"call i64 @find(ptr {at}, ptr {table}, i64 {mask}, ptr {states})")
                code.store(target_positions, code.raw("add", so_far, k), position)
            code.store(total, 0, code.raw("add", so_far, n))
        code.effect("ret void")
        return code.text()

    def _labelled_call(self, code: Code, job: Callable[[Job], str], words: str, labels: str) -> str:
        return code.value(
            f"call i64 @successors(ptr {job(Job.CELLS)}, ptr {job(Job.NEW)}, ptr {words}, i64 1, ptr {job(Job.OUT)}, "
            f"ptr {job(Job.REFUSED)}, ptr {job(Job.REPORT)}, i64 0, ptr {labels})"
        )

    def begin(self) -> str:
        """Add those of the states of SOURCE where the trigger holds and the goal does not; stop early without room.

        REPORT[DECISIONS] tells what holds in any of the states.
        """
        code, job = self._kernel("begin")
        source, cells, out, report = (job(j) for j in (Job.SOURCE, Job.CELLS, Job.OUT, Job.REPORT))
        free = code.slot(job(Job.NEXT))
        with self._while_room(code, job, free) as s:
            words = self.visited.state(code, source, s)
            code.effect(f"call void @unpack(ptr {words}, ptr {cells})")
            bits = code.value(f"call i64 @states(ptr {cells}, ptr {cells}, i64 {TRIGGER | GOAL_BIT})")
            code.include(report, DECISIONS, bits)
            with code.when(code.compare("eq", bits, TRIGGER)):
                for w in range(self.words):
                    code.store(out, w, code.load(words, w))
                self._insert_call(code, job, 1, free)
        return code.text()

    def grow(self) -> str:
        """Add the states that one step from the states at LISTED[START..END] leads to; stop early without room."""
        code, job = self._kernel("grow")
        states, listed, labels = (job(j) for j in (Job.STATES, Job.LISTED, Job.LABELS))
        free = code.slot(job(Job.NEXT))
        with self._while_room(code, job, free) as i:
            n = self._labelled_call(code, job, self.visited.state(code, states, code.load(listed, i)), labels)
            self._insert_call(code, job, n, free)
        return code.text()

    @contextmanager
    def _while_room(self, code: Code, job: Callable[[Job], str], free: str) -> Generator[str]:
        """A loop over START..END that ends early where a state's successors may not fit below LIMIT, and the return."""
        at, limit = code.slot(job(Job.START)), job(Job.LIMIT)
        with code.loop(job(Job.START), job(Job.END)) as (i, done):
            code.leave_if(code.compare("sgt", code.raw("add", code.load(free, 0), self.most), limit), done)
            yield i
            code.store(at, 0, code.raw("add", i, 1))
        code.store("%job", Job.START, code.load(at, 0))
        code.store("%job", Job.NEXT, code.load(free, 0))
        code.effect("ret void")


def with_liveness(search: Search, exploration: Exploration) -> Exploration:
    """The exploration with the verdicts on liveness properties added.

    They are BUDGETED unless every state was seen, and those between trigger and goal fit into memory with their steps.
    """
    start = time.monotonic()
    typed = search.marks.type_ok not in search.levels_by_check
    open_verdict = Verdict.BUDGETED if typed else Verdict.UNKNOWN
    findings = [Finding(p.name, p.kind, open_verdict) for p in search.liveness_properties]
    if exploration.complete:
        findings = [decide(search, p) for p in search.liveness_properties]
    if exploration.complete and any(f.verdict is Verdict.BUDGETED for f in findings):
        exploration = attrs.evolve(exploration, stopped="the memory or the time that liveness takes")
    findings = [*exploration.findings, *findings]
    return attrs.evolve(exploration, findings=tuple(findings), seconds=exploration.seconds + time.monotonic() - start)


class TooMuch(Exception):
    """The steps do not fit into memory, or a limit has been reached."""


class _Graph:
    """States in memory, numbered in order: the first worker's, then the next one's; `levels` has their positions.

    They are all of the exploration's, or where these are in files, those that `gather` brought from there. `truths` has
    the bits TRIGGER and GOAL_BIT of each. `has_trigger`: the trigger holds in some state of the exploration.
    """

    def __init__(self, search: Search, p: Property) -> None:
        self.search, self.labels = search, Labels.of(search.instance, p)
        self.fair: Truths = self.labels.fairness > 0
        program = _program(search, p, self.labels)
        self.machine = Machine(program.text, program.kernels)
        self.workers = [Worker(program, 0, (w.first, w.last)) for w in search.workers]
        self.team = Team(self.workers)
        self.levels, self.has_trigger = search.levels, False
        for worker, explored in zip(self.workers, search.workers, strict=True):
            worker.next = explored.next
            worker.set([
                (Job.STATES, address(search.space.states.array)),
                (Job.SOURCE, address(search.space.states.array)),
                (Job.TABLE, address(search.space.table.entries)),
                (Job.MASK, search.space.table.size - 1),
            ])  # fmt: skip

    @property
    def states_in_memory(self) -> int:
        """The number of states in memory."""
        return sum(w.next - w.first for w in self.workers)

    def number(self) -> None:
        """Number the states, and decide for each whether the trigger and whether the goal holds."""
        self.ends = np.cumsum([w.next - w.first for w in self.workers])
        self.shifts = np.array([w.first for w in self.workers]) - np.concatenate([[0], self.ends[:-1]])
        self.truths = np.zeros(self.states_in_memory, dtype=np.uint8)
        everything = [(w.first, w.next) for w in self.workers if w.next > w.first]
        self.team.share(spans(everything, 16 * CHUNK), self._check)
        self.has_trigger = self.has_trigger or bool((self.truths & TRIGGER).any())

    def numbers(self, positions: Positions) -> Small:
        owners = np.searchsorted([w.first for w in self.workers], positions, side="right") - 1
        found: Small = (positions - self.shifts[owners]).astype(np.int32)
        return found

    def positions(self, numbers: Small) -> Positions:
        found: Positions = numbers.astype(np.int64) + self.shifts[np.searchsorted(self.ends, numbers, side="right")]
        return found

    def _check(self, worker: Worker, span: Span) -> None:
        first = int(self.numbers(np.array([span[0]]))[0])
        self.truths[first : first + span[1] - span[0]] = self._truths(worker, span)

    def _truths(self, worker: Worker, span: Span) -> Positions:
        results = np.zeros(span[1] - span[0], dtype=np.int64)
        worker.set([(Job.RESULTS, address(results)), (Job.SOURCE, address(self.search.space.states.array))])
        worker.run(self.machine.run["check"], *span, TRIGGER | GOAL_BIT)
        return results

    def sources(self, level: int) -> Small:
        """The states of this level of the exploration where the trigger holds and the goal does not."""
        if level >= len(self.levels):
            return np.zeros(0, dtype=np.int32)
        ranges = [np.arange(start, end) for start, end in self.levels[level]]
        numbers = self.numbers(np.concatenate([np.zeros(0, dtype=np.int64), *ranges]))
        found: Small = numbers[self.truths[numbers] == TRIGGER]
        return found

    def expand(self, states: Small) -> tuple[Positions, Small, Small]:
        """The number of steps of each state, and the targets and labels of all steps; a target in the goal is GOAL."""
        listed = self.positions(states)
        parts: dict[int, tuple[Positions, Small, Small]] = {}
        todo = spans([(0, len(states))], CHUNK)
        self.team.share(todo, partial(self._expand, states, listed, parts))
        whole = [parts[start] for start in sorted(parts)]
        counts = np.concatenate([part[0] for part in whole])
        return counts, np.concatenate([part[1] for part in whole]), np.concatenate([part[2] for part in whole])

    def _expand(
        self,
        states: Small,
        state_positions: Positions,
        parts: dict[int, tuple[Positions, Small, Small]],
        worker: Worker,
        span: Span,
    ) -> None:
        start, end = span
        most = (end - start) * self.search.program.most + 1
        counts, target_positions, labels = (np.zeros(n, dtype=np.int64) for n in (end - start, most, most))
        worker.set([(Job.LISTED, address(state_positions)), (Job.RESULTS, address(counts))])
        worker.set([(Job.REACHED, address(target_positions)), (Job.LABELS, address(labels))])
        worker.run(self.machine.run["edges"], start, end, 0)
        total = int(counts.sum())
        rows = np.repeat(np.arange(end - start), counts)
        targets, kinds = self.numbers(target_positions[:total]), labels[:total].astype(np.int32)
        beyond = (self.truths[targets] & GOAL_BIT) != 0
        kept = (targets != states[start:end][rows]) & (~beyond | self.fair[kinds])
        targets[beyond] = GOAL
        parts[start] = np.bincount(rows[kept], minlength=end - start), targets[kept], kinds[kept]


class GatheredRegion(_Graph):
    """States brought from files to memory, level by level: those of the region, and the goal's next to them.

    A state of the exploration's level l with the trigger is found at level l here, too: a stem is a path.
    """

    def __init__(self, search: Search, p: Property) -> None:
        super().__init__(search, p)
        self.levels: list[list[Span]] = []
        self.of = {id(w): explored for w, explored in zip(self.workers, search.workers, strict=True)}
        self.full = False
        search.space.table.clear()

    def gather(self, room: Callable[[int], bool]) -> None:
        """Bring them; TooMuch where `room` says no, or where the memory that the exploration used is full."""
        explored, ahead = self.search.levels, np.zeros(0, dtype=np.int64)
        while len(ahead) or len(self.levels) < len(explored):
            starts = [w.next for w in self.workers]
            quota = (self.search.space.table.room - self.states_in_memory) // len(self.workers)
            for worker in self.workers:
                worker.limit = min(worker.next + quota, worker.last)
            self.team.share(spans([(0, len(ahead))], CHUNK), partial(self._grow, ahead))
            if len(self.levels) < len(explored):
                self.team.share(self.search.space.parts(len(self.levels), BLOCK), self._begin)
            if self.full or not room(0):
                raise TooMuch
            self.levels.append([(s, w.next) for s, w in zip(starts, self.workers, strict=True) if w.next > s])
            ahead = self._ahead(self.levels[-1])
            if self.states_in_memory > MANY:
                self.machine.improve()

    def _begin(self, worker: Worker, span: Span) -> None:
        rows = self.search.space.rows(self.of[id(worker)], span)
        worker.set([(Job.SOURCE, address(rows))])
        self._add(worker, "begin", 0, len(rows))
        if worker.report[DECISIONS] & TRIGGER:
            self.has_trigger = True

    def _grow(self, ahead: Positions, worker: Worker, span: Span) -> None:
        labels = np.zeros(self.search.program.most, dtype=np.int64)
        worker.set([(Job.LISTED, address(ahead)), (Job.LABELS, address(labels))])
        self._add(worker, "grow", *span)

    def _add(self, worker: Worker, kernel: str, start: int, end: int) -> None:
        if worker.run(self.machine.run[kernel], start, end, 0) < end:
            self.full = True

    def _ahead(self, new: list[Span]) -> Positions:
        """The positions of those of the new states that have not reached the goal."""
        positions_by_start: dict[int, Positions] = {}

        def look(worker: Worker, span: Span) -> None:
            positions_by_start[span[0]] = span[0] + np.flatnonzero((self._truths(worker, span) & GOAL_BIT) == 0)

        self.team.share(spans(new, 16 * CHUNK), look)
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(positions_by_start[start] for start in sorted(positions_by_start))]
        )


def _region(graph: _Graph, room: Callable[[int], bool]) -> tuple[Region, Small]:
    """The region, and for each of its states the number in the graph."""
    index = np.full(len(graph.truths), -1, dtype=np.int32)
    ahead, begins = (np.zeros(len(index), dtype=np.bool_) for _ in range(2))
    levels, members, sources = [0], list[Small](), list[Truths]()
    parts: list[tuple[Positions, Small, Small]] = []
    steps = 0
    while ahead.any() or len(levels) <= len(graph.levels):
        begun = graph.sources(len(levels) - 1)
        begins[begun] = ahead[begun] = True
        here = np.flatnonzero(ahead).astype(np.int32)
        ahead[here] = False
        index[here] = np.arange(levels[-1], levels[-1] + len(here), dtype=np.int32)
        levels.append(levels[-1] + len(here))
        if not len(here):
            continue
        members.append(here)
        sources.append(begins[here])
        parts.append(graph.expand(here))
        steps += len(parts[-1][1])
        if steps > MANY:
            graph.machine.improve()
        if not room(steps):
            raise TooMuch
        targets = parts[-1][1]
        found = targets[targets >= 0]
        ahead[found[index[found] < 0]] = True
    counts = np.concatenate([np.zeros(1, dtype=np.int64), *(p[0] for p in parts)])
    targets = np.concatenate([np.zeros(0, dtype=np.int32), *(p[1] for p in parts)])
    targets = np.where(targets >= 0, index[targets], np.int32(GOAL))
    labels = np.concatenate([np.zeros(0, dtype=np.int32), *(p[2] for p in parts)])
    starts = np.concatenate([np.zeros(0, dtype=np.bool_), *sources])
    while len(levels) > 1 and levels[-1] == levels[-2]:
        levels.pop()
    region = Region(graph.labels, tuple(levels), starts, np.cumsum(counts), targets, labels)
    return region, np.concatenate([np.zeros(0, dtype=np.int32), *members])


def decide(search: Search, p: Property) -> Finding:
    """The verdict on a liveness property after a complete exploration."""
    space = search.space
    apart = space.outside or space.compressed is not None
    if space.compressed is not None:
        space.spare()
    graph = GatheredRegion(search, p) if apart else _Graph(search, p)

    def late() -> bool:
        spent = time.monotonic() - search.start
        return search.limits.stop() or (search.limits.max_seconds is not None and spent > search.limits.max_seconds)

    def room(steps: int) -> bool:
        """Whether the steps fit into memory (deciding takes some forty bytes for each) and there is time left."""
        fits = not apart or space.budget is None or space.holding(graph.states_in_memory) + 40 * steps <= space.budget
        return fits and steps < 1 << 31 and not scarce(40 * steps) and not late()

    try:
        if isinstance(graph, GatheredRegion):
            graph.gather(room)
        graph.number()
        region, members = _region(graph, room)
    except TooMuch:
        if space.compressed is not None and not late() and space.leave():
            return decide(search, p)
        return Finding(p.name, p.kind, Verdict.BUDGETED)
    finally:
        graph.team.close()

    def stem(ends: Positions, level: int) -> Stem:
        words = search.space.states.at(graph.positions(members[ends]))
        path = least_path(search, words, level)
        last = _last_state(search, path.initial, path.steps)
        (found,) = (words == np.array(search.layout.pack(last), dtype=np.uint64)).all(axis=1).nonzero()
        return path.initial, path.steps, int(ends[found[0]])

    return finding_for(p, LassoSearch(region, stem, graph.has_trigger))


def _last_state(
    search: Search, initial: tuple[int, ...], steps: tuple[tuple[str, tuple[int, ...]], ...]
) -> tuple[object, ...]:
    evaluator = Evaluator(search.instance)
    names = [a.name for a in search.instance.actions]
    state = dict(evaluator.initial_states())[initial]
    for step in steps:
        state = next(s for a, q, s in evaluator.successors(state) if (names[a], q) == step)
    return state
