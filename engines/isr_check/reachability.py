"""Whether a state can be reached: an exploration that stops where it finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import attrs

from isr_check.engine import Engine, Exploration, Limits, Path, Progress, Verdict
from isr_lang import Design, Instance, Property, Value, Where
from isr_lang.nodes import Node, apply, literal

NAME = "this-state"


@attrs.frozen
class Reachability:
    """The answer: `path` leads to the state. Without a path the state is unreachable if `complete`, else undecided."""

    path: Path | None
    complete: bool
    distinct: int


def reach(
    design: Design,
    constants: Mapping[str, Value],
    state: Mapping[str, object],
    engine: Engine,
    limits: Limits,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Reachability:
    """Look for a state, given by variable, among all that the design reaches under these constants."""
    instance = Instance(design, constants)
    sought = attrs.evolve(design, properties=(never(instance, state),))
    found: Exploration = engine(Instance(sought, constants), (NAME,), limits, progress)
    finding = found.finding(NAME)
    # The search also ends where it has found what it looks for, and then it has not seen everything.
    decided = finding.verdict is Verdict.HOLDS
    return Reachability(finding.path, decided, found.distinct)


def never(instance: Instance, state: Mapping[str, object]) -> Property:
    """The promise that the model is never in this state."""
    same: Sequence[Node] = [
        apply("equal", Node("variable", (), (v.name, False), v.type), literal(state[v.name], v.type))
        for v in instance.variables
    ]
    condition = apply("not", reduce(lambda a, b: apply("and", a, b), same))
    return Property(NAME, "always", condition, "The state is not this one.", Where("", 0))
