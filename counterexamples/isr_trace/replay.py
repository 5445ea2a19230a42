"""Running a trace again: what is asked of an evaluator, how a behaviour becomes a trace, and when it counts.

A step is found again by its name and parameters, never by its position, so that a shortened or reordered
list of steps can be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import attrs

from isr_lang import Instance, Node, Property, show
from isr_lang.types import MapType, SortType, Type
from isr_trace.trace import FOREIGN, ActionNote, Minimisation, Step, Trace, TraceError, resolve_type

Values = tuple[object, ...]
"""A state by the position of its variables, or parameters by theirs."""

TYPE_OK = "type-ok"
DEADLOCK = "deadlock"
OUTSIDERS = ("controller", "producer", "consumer")
"""Who acts under its own name, which then is the first word of the action."""


Tell = Callable[[str, int, int], None]
"""Told how far some work is: of what so many are done, and of how many, at most."""


def tell_nobody(what: str, finished_count: int, of: int) -> None:
    """Tells nobody."""


class Evaluator(Protocol):
    """What the reference evaluator offers; anything else that answers alike will do."""

    @property
    def instance(self) -> Instance: ...
    def initial_states(self) -> Sequence[tuple[Values, Values]]: ...
    def successors(self, state: Values, /) -> Iterator[tuple[int, Values, Values]]: ...
    def holds(self, p: Property, old: Values, new: Values | None = None, /) -> bool: ...
    def leads(self, p: Property, /) -> tuple[Callable[[Values], bool], Callable[[Values], bool]]: ...
    def evaluate(self, node: Node, old: Values, new: Values | None = None, /) -> object: ...
    def in_range(self, state: Values, /) -> bool: ...


@attrs.frozen
class Move:
    """A step by name: the action and its parameters in the order of the action."""

    action: str
    parameters: Values


@attrs.frozen
class Run:
    """A behaviour: the parameters of the initial condition, the moves, and all states."""

    initial: Values
    moves: tuple[Move, ...]
    states: tuple[Values, ...]


def goal(evaluator: Evaluator, name: str) -> Callable[[Values | None, Values], bool]:
    """The test `(state before, state)` for what a trace of this property must end in: a violation, or for a
    `sometimes` the witness. Of a state out of range nothing but `type-ok` is asked (isr_check.engine)."""
    instance = evaluator.instance
    if name == TYPE_OK:
        return lambda _, state: not evaluator.in_range(state)
    if name == DEADLOCK:
        return lambda _, state: evaluator.in_range(state) and next(iter(evaluator.successors(state)), None) is None
    p = next((p for p in instance.properties if p.name == name), None)
    if p is None:
        why = "is not promised under these settings" if name in instance.off_properties else "does not exist"
        raise TraceError(f"the property {name} {why} in {instance.design.name}")
    if p.kind == "eventually":
        raise TraceError(f"{name} is a liveness property, and no last state decides that")
    seek = p.kind.startswith("sometimes")
    if p.kind in ("step", "sometimes-step"):
        return lambda before, state: (
            before is not None and evaluator.in_range(state) and evaluator.holds(p, before, state) is seek
        )
    return lambda _, state: evaluator.in_range(state) and evaluator.holds(p, state) is seek


class Replay:
    """Steps of one instance by name, each state expanded once."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.names = [a.name for a in evaluator.instance.actions]
        self.starts = {p: s for p, s in evaluator.initial_states()}
        self._next: dict[Values, dict[Move, Values]] = {}

    def successors(self, state: Values) -> dict[Move, Values]:
        """Every step that is possible, in the order of the model."""
        if state not in self._next:
            self._next[state] = dict(self.expand(state))
        return self._next[state]

    def expand(self, state: Values) -> Iterator[tuple[Move, Values]]:
        """The same, not remembered: for searches through many states."""
        for action, parameters, successor in self.evaluator.successors(state):
            yield Move(self.names[action], tuple(parameters)), successor

    def start(self, initial: Values) -> Values:
        if initial not in self.starts:
            raise TraceError(f"{self.evaluator.instance.design.name} has no initial state for {initial}")
        return self.starts[initial]

    def exact(self, initial: Values, moves: Iterable[Move]) -> Run | None:
        """The run of exactly these moves, None when one of them is impossible."""
        states = [self.start(initial)]
        move_tuple = tuple(moves)
        for move in move_tuple:
            successor = self.successors(states[-1]).get(move)
            if successor is None:
                return None
            states.append(successor)
        return Run(initial, move_tuple, tuple(states))

    def lenient(self, initial: Values, moves: Iterable[Move]) -> Run:
        """The run of those moves that are possible when their turn comes."""
        states, possible_moves = [self.start(initial)], list[Move]()
        for move in moves:
            successor = self.successors(states[-1]).get(move)
            if successor is not None:
                states.append(successor)
                possible_moves.append(move)
        return Run(initial, tuple(possible_moves), tuple(states))

    def until(self, run: Run, is_goal: Callable[[Values | None, Values], bool]) -> Run | None:
        """The run up to where it first reaches the goal, None when it never does."""
        for i, state in enumerate(run.states):
            if is_goal(run.states[i - 1] if i else None, state):
                return Run(run.initial, run.moves[:i], run.states[: i + 1])
        return None


def run_of(trace: Trace, replay: Replay) -> Run:
    """The trace run again; TraceError where the model does not do what the trace says."""
    instance = replay.evaluator.instance
    if trace.foreign:
        raise TraceError(FOREIGN)
    moves = tuple(Move(s.action, tuple(s.parameters.values())) for s in trace.steps)
    initial = tuple(trace.initial.values())
    names = [v.name for v in instance.variables]
    states = [_starting_state(trace, replay.evaluator) if trace.anywhere else replay.start(initial)]
    for i, (move, step) in enumerate(zip(moves, trace.steps, strict=True), 1):
        successor = replay.successors(states[-1]).get(move)
        if successor is None:
            raise TraceError(f"step {i}, {trace.step_text(step)}, is not possible there in {instance.design.name}")
        states.append(successor)
    for i, (state, recorded) in enumerate(zip(states, trace.states, strict=True)):
        for name, value in zip(names, state, strict=True):
            if recorded.get(name) != value:
                raise TraceError(f"after step {i} the trace has another '{name}' than {instance.design.name}")
    return Run(initial, moves, tuple(states))


def _starting_state(trace: Trace, evaluator: Evaluator) -> Values:
    """The state in which a trace from anywhere starts."""
    recorded, design = trace.states[0], evaluator.instance.design.name
    missing = [v.name for v in evaluator.instance.variables if v.name not in recorded]
    if missing:
        raise TraceError(f"its first state does not say what '{missing[0]}' is in {design}")
    state = tuple(recorded[v.name] for v in evaluator.instance.variables)
    if not evaluator.in_range(state):
        raise TraceError(f"its first state has values that {design} does not have at these bounds")
    return state


def check_goal(run: Run, evaluator: Evaluator, name: str) -> None:
    """TraceError unless the run ends in what a trace of this property must end in."""
    before = run.states[-2] if run.moves else None
    if not goal(evaluator, name)(before, run.states[-1]):
        raise TraceError(f"this trace does not end in a state that decides {name}")


def record(
    evaluator: Evaluator,
    initial: Values,
    steps: Iterable[tuple[str, Values]],
    *,
    property_name: str = "",
    verdict: str = "",
    shortest: bool = False,
    loop: int | None = None,
    without: Sequence[str] = (),
) -> Trace:
    """The trace of a behaviour given by names; TraceError when a step of it is impossible.

    `property_name` may be a property of the design, `type-ok`, `deadlock` or nothing (a sampled behaviour).
    `shortest`: whoever found it searched breadth first, so no shorter one exists, if it ends. `loop`: the state to
    which the last one leads back. `without`: the actions that the evaluator's design lacks of those that the design
    of this name has.
    """
    replay, moves = Replay(evaluator), tuple(Move(a, p) for a, p in steps)
    states = [replay.start(initial)]
    for i, move in enumerate(moves, 1):
        successor = replay.successors(states[-1]).get(move)
        if successor is None:
            raise TraceError(f"step {i}, {move.action}{move.parameters}, is not possible there")
        states.append(successor)
    run = Run(initial, moves, tuple(states))
    made = trace_of(run, evaluator.instance, property_name=property_name, verdict=verdict)
    minimised = Minimisation(len(moves), len(moves), True) if shortest and loop is None else None
    return attrs.evolve(made, minimisation=minimised, loop=loop, without=tuple(without))


def record_step(
    evaluator: Evaluator,
    state: Values,
    move: Move | None,
    *,
    property_name: str,
    verdict: str,
    without: Sequence[str] = (),
) -> Trace:
    """The trace of a state from anywhere and, but for None, one step from it; TraceError if that is impossible."""
    states = [state]
    if move is not None:
        successor = Replay(evaluator).successors(state).get(move)
        if successor is None:
            raise TraceError(f"{move.action}{move.parameters} is not possible in the state that it should start from")
        states.append(successor)
    run = Run((), (move,) if move is not None else (), tuple(states))
    made = trace_of(run, evaluator.instance, property_name=property_name, verdict=verdict, anywhere=True)
    return attrs.evolve(made, without=tuple(without))


def trace_of(
    run: Run, instance: Instance, *, property_name: str = "", verdict: str = "", anywhere: bool = False
) -> Trace:
    """The run as a trace."""
    design = instance.design
    declaration = next((p for p in design.properties if p.name == property_name), None)
    used = {m.action for m in run.moves}
    notes = {
        a.name: ActionNote({n: resolve_type(t, instance) for n, t in a.parameters}, a.action.summary)
        for a in instance.actions
        if a.name in used
    }
    variables = {v.name: resolve_type(v.type, instance) for v in instance.variables}
    types = {} if anywhere else {n: resolve_type(t, instance) for n, t in instance.initial.parameters}
    return Trace(
        design.name,
        design.model_hash(),
        dict(instance.constants),
        property_name,
        declaration.kind if declaration else "always" if property_name else "",
        str(verdict),
        declaration.summary if declaration else "",
        dict(variables),
        notes,
        dict(zip(types, run.initial, strict=True)),
        types,
        _steps(run, notes, actors_of(variables.values())),
        tuple(dict(zip(variables, state, strict=True)) for state in run.states),
        anywhere=anywhere,
        design_file=design.file,
    )


def _steps(run: Run, notes: Mapping[str, ActionNote], actors: Sequence[SortType]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for move in run.moves:
        types = notes[move.action].parameters
        actor, peer = parties(move, types, actors)
        parameters = dict(zip(types, move.parameters, strict=True))
        steps.append(Step(move.action, parameters, actor, peer, _answered_step(steps, actor, peer)))
    return tuple(steps)


def parties(move: Move, types: Mapping[str, Type], actors: Sequence[SortType]) -> tuple[str, str]:
    """Who acts, towards whom: the first two parameters of the sort that acts most, after an outsider.

    An outsider that the model knows is named by its parameter, which is of another acting sort; else by its kind.
    """
    values = [(type, show(value, type)) for type, value in zip(types.values(), move.parameters, strict=True)]
    names, others = ([text for type, text in values if type in sorts] for sorts in (actors[:1], actors[1:]))
    kind = move.action.split("_")[0]
    if kind in OUTSIDERS:
        names = [*(others or [kind]), *names]
    actor, peer = (*(names or others), "", "")[:2]
    return actor, peer


def _answered_step(earlier: list[Step], actor: str, peer: str) -> int | None:
    """The step (counted from 1) whose message this one takes up: the last one from the peer to who acts now;
    without a peer, the last one to who acts now since it last acted."""
    for i, step in reversed(list(enumerate(earlier, 1))):
        if step.peer == actor and peer in ("", step.actor):
            return i
        if step.actor == actor and peer in ("", step.peer):
            return None
    return None


def actors_of(variables: Iterable[Type | None]) -> list[SortType]:
    """The sorts that act, by how many variables each indexes, the most first."""
    keys = [t.key for t in variables if isinstance(t, MapType) and isinstance(t.key, SortType)]
    return sorted(dict.fromkeys(keys), key=keys.count, reverse=True)


def names_of(actors: Sequence[SortType]) -> list[str]:
    """Everybody of these sorts."""
    sizes = [(sort, sort.size.attr) for sort in actors]
    return [show(i, sort) for sort, size in sizes if isinstance(size, int) for i in range(size)]
