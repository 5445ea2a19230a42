"""A trace: one behaviour of a model with everything needed to read it years later.

The values are those of the engines (isr_lang.types); the types that explain them travel along, their sizes
written in, so that a file opens without the model it came from. A *foreign* trace was written by another
program: its variables have no types and its values stay as the file has them.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from isr_lang import Instance, Value, show
from isr_lang.nodes import literal
from isr_lang.types import (
    COUNT,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    Scalar,
    SeqType,
    SetType,
    SortType,
    Type,
)

SCHEMA = "insync/trace/1"

FOREIGN = "this trace was written by another program and names no design of ours; it can only be shown"

State = Mapping[str, object]


class TraceError(ValueError):
    """A trace that cannot be read, written or used here: one sentence for the command line (exit code 65)."""


@attrs.frozen
class Step:
    """What was done, by whom, towards whom; `after` is the step (from 1) whose message it takes up."""

    action: str
    parameters: Mapping[str, object]
    actor: str = ""
    peer: str = ""
    after: int | None = None


@attrs.frozen
class ActionNote:
    """What the trace remembers of an action: its parameters' types and the sentence of what it does."""

    parameters: Mapping[str, Type]
    does: str = ""


@attrs.frozen
class Minimisation:
    """From how many steps to how many; `shortest` when every shorter behaviour was looked at."""

    before: int
    after: int
    shortest: bool


@attrs.frozen
class Trace:
    """`states` has one entry more than `steps`, the first being the initial state chosen by `initial`.

    `without`: the actions of the design that were left out; `unfair`, `strong`: those that were fair otherwise than
    by design. With `loop` the behaviour never ends: the last state is that of index `loop` again, and what
    came after that comes again; if `loop` is the last state, nothing happens any more. A trace from `anywhere` starts
    in a state that need not be initial: a counterexample to induction, of which nobody says that it can be reached.
    `design_file`: the file that the design is from, where that is somebody's own; a reader has to bring it again.
    """

    design: str
    model_hash: str
    constants: Mapping[str, Value]
    property_name: str
    kind: str
    verdict: str
    promise: str
    variables: Mapping[str, Type | None]
    actions: Mapping[str, ActionNote]
    initial: Mapping[str, object]
    initial_types: Mapping[str, Type]
    steps: tuple[Step, ...]
    states: tuple[State, ...]
    minimisation: Minimisation | None = None
    loop: int | None = None
    without: tuple[str, ...] = ()
    unfair: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()
    anywhere: bool = False
    design_file: str = ""

    @property
    def foreign(self) -> bool:
        """Whether another program wrote it: variables only."""
        return not self.design

    def parameters_text(self, step: Step) -> str:
        """`r=r1, m=m2`."""
        note = self.actions.get(step.action, ActionNote({}))
        types = note.parameters
        return ", ".join(
            f"{name}={show(value, types[name]) if name in types else value}" for name, value in step.parameters.items()
        )

    def step_text(self, step: Step) -> str:
        """`leader_appends(r=r1, m=m2)`."""
        return f"{step.action}({self.parameters_text(step)})"


def require_version(trace: Trace, model_hash: str) -> None:
    """TraceError unless the trace is of this version of its model."""
    if trace.foreign:
        raise TraceError(FOREIGN)
    if trace.model_hash != model_hash:
        raise TraceError(
            f"this is a trace of another version of {trace.design} "
            f"(model hash {trace.model_hash}, now {model_hash}); "
            f"check {trace.property_name} again"
        )


def resolve_type(type: Type, instance: Instance) -> Type:
    """The type with its sizes written in as plain numbers."""
    match type:
        case NumberType(high=None):
            return type
        case NumberType():
            return NumberType(type.name, type.low, literal(instance.bounds(type)[1], COUNT))
        case SortType():
            return SortType(type.name, literal(instance.positions(type), COUNT), type.symmetric, type.prefix)
        case ChoiceType():
            return ChoiceType(type.name, type.members)
        case MaybeType():
            return MaybeType(_scalar(type.of, instance))
        case SetType():
            return SetType(_scalar(type.of, instance))
        case MapType():
            return MapType(_scalar(type.key, instance), resolve_type(type.value, instance))
        case SeqType():
            index = resolve_type(type.index, instance)
            assert isinstance(index, NumberType)
            return SeqType(index, _scalar(type.of, instance))
        case _:
            return type


def _scalar(type: Scalar, instance: Instance) -> Scalar:
    scalar = resolve_type(type, instance)
    assert not isinstance(scalar, MaybeType | SetType | MapType | SeqType)
    return scalar
