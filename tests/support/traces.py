"""Traces that several tests start from."""

from collections.abc import Mapping
from functools import cache
from random import Random

from isr_check.explorer import explore
from isr_check.reference import Evaluator
from isr_lang import Design, Instance, Value
from isr_trace.replay import Move, Replay, goal, record
from isr_trace.trace import Trace


@cache
def _evaluator(design: Design, constants: tuple[tuple[str, Value], ...]) -> Evaluator:
    return Evaluator(Instance(design, dict(constants)))


def evaluator(design: Design, constants: Mapping[str, Value] | None = None) -> Evaluator:
    return _evaluator(design, tuple((constants or {}).items()))


@cache
def _violation(design: Design, name: str, constants: tuple[tuple[str, Value], ...]) -> Trace:
    runs = _evaluator(design, constants)
    found = explore(runs.instance, (name,)).finding(name)
    assert found.path is not None
    return record(runs, found.path.initial, found.path.steps, property_name=name, verdict=found.verdict, shortest=True)


def violation(design: Design, name: str = "acked-survives", constants: Mapping[str, Value] | None = None) -> Trace:
    """The shortest counterexample or witness of a property."""
    return _violation(design, name, tuple((constants or {}).items()))


def wander(runs: Evaluator, name: str, seed: int, longest: int = 60) -> Trace:
    """A random run up to where it decides the property, usually a long one."""
    random, replay, reached = Random(seed), Replay(runs), goal(runs, name)
    while True:
        initial, state = random.choice(list(replay.starts.items()))
        moves: list[Move] = []
        while len(moves) < longest and (options := list(replay.successors(state).items())):
            before = state
            move, state = random.choice(options)
            moves.append(move)
            if reached(before, state):
                steps = [(m.action, m.parameters) for m in moves]
                return record(runs, initial, steps, property_name=name, verdict="VIOLATED")
