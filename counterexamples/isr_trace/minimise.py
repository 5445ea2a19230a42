"""A shorter trace of the same property, then a calmer one: the same answer for the same trace, every time.

Shorter: leave out steps (delta debugging), then look for short cuts between its states, breadth first, with a
bounded effort. Calmer: of the orders and renamings that still work, the one in which whoever acts goes on
acting, and then the first in the order of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, permutations, product
from typing import cast

import attrs

from isr_lang.types import MaybeType, SetType, SortType, Type
from isr_trace.replay import (
    Evaluator,
    Move,
    Replay,
    Run,
    Tell,
    Values,
    actors_of,
    check_goal,
    goal,
    parties,
    run_of,
    tell_nobody,
    trace_of,
)
from isr_trace.trace import Minimisation, Trace, TraceError

EFFORT = 20_000
RENAMINGS = 720

GoalTest = Callable[[Values | None, Values], bool]


def minimise(trace: Trace, evaluator: Evaluator, effort: int = EFFORT, tell: Tell = tell_nobody) -> Trace:
    """The minimal trace; `effort` bounds the states that the search for short cuts may expand.

    TraceError when the trace does not run here or does not decide its property.
    """
    if trace.anywhere:
        raise TraceError("a counterexample to induction is one step from any state; there is nothing to leave out")
    if trace.loop is not None:
        raise TraceError("this behaviour goes round for ever, and only one that ends is made shorter")
    replay = Replay(evaluator)
    run = run_of(trace, replay)
    check_goal(run, evaluator, trace.property_name)
    reached = goal(evaluator, trace.property_name)
    sure = trace.minimisation is not None and trace.minimisation.shortest
    shortener, calmer = Shortener(replay, reached, effort, tell), Calmer(replay, reached, tell)
    if not sure:
        run, sure = shortener.shorten(run)
    calm = calmer.calm(run)
    while not sure and len((less := shortener.without_needless(calm)).moves) < len(calm.moves):
        calm = calmer.calm(less)  # in another order a step may have become needless
    made = trace_of(calm, evaluator.instance, property_name=trace.property_name, verdict=trace.verdict)
    before = trace.minimisation.before if trace.minimisation is not None else len(trace.steps)
    return attrs.evolve(made, minimisation=Minimisation(before, len(calm.moves), sure), without=trace.without)


class Shortener:
    """Leaves out what is not needed, then takes short cuts."""

    def __init__(self, replay: Replay, is_goal: GoalTest, effort: int, tell: Tell) -> None:
        self.replay, self.is_goal, self.effort, self.tell = replay, is_goal, effort, tell

    def shorten(self, run: Run) -> tuple[Run, bool]:
        """The shorter run, and whether nothing shorter exists."""
        run = self.without_needless(run)
        best, complete = self.from_the_start(run)
        run = best if best is not None else run
        if complete:
            return run, True
        while (cut := self.short_cut(run)) is not None:
            run = self.without_needless(cut)
        return run, False

    def without_needless(self, run: Run) -> Run:
        """Delta debugging: drop runs of steps, long ones first, and whatever is impossible without them."""
        size = max(1, len(run.moves) // 2)
        while True:
            for i in range(0, len(run.moves), size):
                self.tell("steps left out for a trial", i, len(run.moves))
                rest = run.moves[:i] + run.moves[i + size :]
                shorter = self.replay.until(self.replay.lenient(run.initial, rest), self.is_goal)
                if shorter is not None:
                    run = shorter
                    break
            else:
                if size == 1:
                    return run
                size //= 2
                continue
            size = max(1, min(size, len(run.moves) // 2))

    def from_the_start(self, run: Run) -> tuple[Run | None, bool]:
        """A shortest run to the goal if shorter than this one; whether all shorter ones were looked at."""
        room, complete = len(run.moves), True
        best: Run | None = None
        for initial, start in self.replay.starts.items():
            share = self.effort // max(1, len(self.replay.starts))
            search = Search(self.replay, start, share, partial(self.tell, "states, at most, looked at from the start"))
            found = next((s for s in search.levels(room - 1) if self.is_goal(*s)), None)
            if found is not None:
                moves = search.moves(found)
                best, room = self.replay.exact(initial, moves), len(moves)
            complete = complete and search.complete
        return best, complete

    def short_cut(self, run: Run) -> Run | None:
        """The run with the detour left out that saves most, None when there is none within the effort."""
        saving, best = 0, None
        share = self.effort // max(1, len(run.states))
        for i, state in enumerate(run.states[:-2]):
            later = {s: j for j, s in enumerate(run.states) if j > i + 1}
            self.tell("states from which a short cut is looked for", i, len(run.states) - 2)
            search = Search(self.replay, state, share)
            for before, after in search.levels(len(run.moves) - i - 1 - saving):
                steps = search.depth[after] if before is None else search.depth[before] + 1
                at_goal = before is not None and self.is_goal(before, after)
                j = len(run.moves) if at_goal else later.get(after, 0)
                if j - i - steps > saving:
                    tail = () if at_goal else run.moves[j:]
                    moves = (*run.moves[:i], *search.moves((before, after)), *tail)
                    cut = self.replay.exact(run.initial, moves)
                    short = self.replay.until(cut, self.is_goal) if cut is not None else None
                    if short is not None and len(run.moves) - len(short.moves) > saving:
                        saving, best = len(run.moves) - len(short.moves), short
        return best


class Search:
    """Breadth first from one state, every step looked at, at most `effort` states expanded."""

    def __init__(
        self, replay: Replay, start: Values, effort: int, tell: Callable[[int, int], None] = lambda done, of: None
    ) -> None:
        self.replay, self.start, self.effort, self.most, self.tell = replay, start, effort, effort, tell
        self.complete = True
        self.depth: dict[Values, int] = {start: 0}
        self.parent: dict[Values, tuple[Values, Move]] = {}

    def levels(self, deepest: int) -> Iterator[tuple[Values | None, Values]]:
        """Every step (before, after) at most `deepest` away, nearest first; the start as (None, start)."""
        yield None, self.start
        frontier = [self.start]
        for depth in range(1, deepest + 1):
            next_frontier: list[Values] = []
            for state in frontier:
                if self.effort == 0:
                    self.complete = False
                    return
                self.effort -= 1
                self.tell(self.most - self.effort, self.most)
                for move, successor in self.replay.expand(state):
                    if successor not in self.depth:
                        self.depth[successor] = depth
                        self.parent[successor] = state, move
                        next_frontier.append(successor)
                    yield state, successor
            frontier = next_frontier

    def moves(self, step: tuple[Values | None, Values]) -> tuple[Move, ...]:
        """The moves from the start to a step that `levels` gave."""
        before, after = step
        if before is None:
            return ()
        last = next(m for m, s in self.replay.expand(before) if s == after)
        chain = [last]
        while before in self.parent:
            before, move = self.parent[before]
            chain.append(move)
        return tuple(reversed(chain))


class Calmer:
    """The least of the orders and renamings that can be reached by moving one step at a time."""

    def __init__(self, replay: Replay, is_goal: GoalTest, tell: Tell) -> None:
        self.replay, self.is_goal, self.tell = replay, is_goal, tell
        instance = replay.evaluator.instance
        self.rank = {a.name: i for i, a in enumerate(instance.actions)}
        self.types = {a.name: dict(a.parameters) for a in instance.actions}
        self.initial_types = [t for _, t in instance.initial.parameters]
        self.actors = actors_of(v.type for v in instance.variables)
        kinds = (*self.initial_types, *(t for types in self.types.values() for t in types.values()))
        sorts = dict.fromkeys(s for s in map(_sort_of, kinds) if s is not None and s.symmetric)
        self.sorts = {s: instance.positions(s) for s in sorts}

    def calm(self, run: Run) -> Run:
        best = run
        while True:
            tried = self.reorder(self.rename_elements(best))
            if self.cost(tried) >= self.cost(best):
                return best
            best = tried

    def cost(self, run: Run) -> tuple[object, ...]:
        """How often the actor changes, then who starts, then the order of the model."""
        actors = [parties(m, self.types[m.action], self.actors)[0] for m in run.moves]
        switches = sum(a != b for a, b in pairwise(actors))
        return switches, run.initial, tuple((self.rank[m.action], m.parameters) for m in run.moves)

    def least(self, best: Run, tries: Iterator[tuple[Values, tuple[Move, ...]]]) -> Run:
        for initial, moves in tries:
            if initial not in self.replay.starts:
                continue
            run = Run(initial, moves, ())
            if self.cost(run) >= self.cost(best):
                continue
            tried = self.replay.exact(initial, moves)
            if tried is not None and self.replay.until(tried, self.is_goal) == tried:
                best = tried
        return best

    def reorder(self, run: Run) -> Run:
        """Move one step to another place as long as that makes the run calmer."""
        while True:
            n = len(run.moves)
            places = ((i, j) for i in self._steps_with_progress(n) for j in range(n) if i != j)
            calmer = self.least(run, ((run.initial, _move_step(run.moves, i, j)) for i, j in places))
            if calmer is run:
                return run
            run = calmer

    def _steps_with_progress(self, steps: int) -> Iterator[int]:
        for i in range(steps):
            self.tell("steps moved to calmer places", i, steps)
            yield i

    def rename_elements(self, run: Run) -> Run:
        """The least under renaming the elements of symmetric sorts."""
        ways = [list(permutations(range(size))) for size in self.sorts.values()]
        count = 1
        for each in ways:
            count *= len(each)
        if count > RENAMINGS:
            return run
        renamings = (dict(zip(self.sorts, way, strict=True)) for way in product(*ways))
        return self.least(run, (self._apply(run, r) for r in renamings))

    def _apply(self, run: Run, names: dict[SortType, tuple[int, ...]]) -> tuple[Values, tuple[Move, ...]]:
        def rename(values: Values, types: list[Type]) -> Values:
            return tuple(_rename_value(v, t, names) for v, t in zip(values, types, strict=True))

        moves = (Move(m.action, rename(m.parameters, [*self.types[m.action].values()])) for m in run.moves)
        return rename(run.initial, self.initial_types), tuple(moves)


def _move_step(moves: tuple[Move, ...], i: int, j: int) -> tuple[Move, ...]:
    rest = moves[:i] + moves[i + 1 :]
    return (*rest[:j], moves[i], *rest[j:])


def _sort_of(type: Type) -> SortType | None:
    of = type.of if isinstance(type, MaybeType | SetType) else type
    return of if isinstance(of, SortType) else None


def _rename_value(value: object, type: Type, names: dict[SortType, tuple[int, ...]]) -> object:
    sort = _sort_of(type)
    if sort is None or sort not in names:
        return value
    number, renaming = cast("int", value), names[sort]
    if isinstance(type, SetType):
        return sum(1 << renaming[i] for i in range(number.bit_length()) if number >> i & 1)
    if isinstance(type, MaybeType):
        return 1 + renaming[number - 1] if number else 0
    return renaming[number]
