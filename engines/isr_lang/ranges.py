"""Reads out of range: where a design, or a promise, asks a sequence for an item that it has not.

No operator is partial (isr_lang.nodes), so such a read gives a value that looks like any other: past the end of a
sequence of numbers it is the least number. `reading_in_range` adds to a design what finds that, in every engine: beside
each action one that is possible where the action or a guard of it would read out of range, and a promise that none is.

What is read follows the order in which the model is written. The right of `a & b` counts only where `a` holds, that of
`a | b` and of `a.implies(b)` only where it decides, a branch of `when` only where it is chosen, a guard only where
those before it hold, and an update only where all guards do. A quantifier reads all that it ranges over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial, reduce
from typing import cast

import attrs

from isr_lang.declare import Action, Definition, Guard, Property, Update
from isr_lang.design import Design
from isr_lang.nodes import Binder, Node, apply, literal
from isr_lang.scalars import Bool
from isr_lang.state import Struct, var
from isr_lang.types import BOOL, COUNT, MapType, NumberType, Scalar, Type

PROMISE, STEP_PROMISE = "reads-in-range", "steps-read-in-range"
FLAG, SUFFIX = "read_out_of_range", "_reads_out_of_range"

TRUE = literal(True, BOOL)
ZERO = literal(0, COUNT)


def both(a: Node, b: Node) -> Node:
    """Conjunction, of which nothing is left where a part is true."""
    return b if a is TRUE else a if b is TRUE else apply("and", a, b)


def if_so(condition: Node, then: Node) -> Node:
    """Implication, of which nothing is left where what follows is true."""
    return TRUE if then is TRUE else apply("implies", condition, then)


def all_of(nodes: Iterable[Node]) -> Node:
    return reduce(both, nodes, TRUE)


Own = Callable[[Node], Node]
"""The condition that an operator itself adds to those of its arguments."""


def reads(node: Node) -> Node:
    """The condition under which the operator reads nothing out of range."""
    args = node.args
    match node.op:
        case "at":
            return both(apply("at_most", ZERO, args[1]), apply("less", args[1], apply("length", args[0])))
        case "take":
            return both(apply("at_most", ZERO, args[1]), apply("at_most", args[1], apply("length", args[0])))
        case "get" | "put":
            return is_one_of(cast("MapType", args[0].type).key, args[1])
        case _:
            return TRUE


def is_one_of(type: Scalar, value: Node) -> Node:
    """The condition under which the value is in the range of the type, which of numbers need not be so."""
    if not isinstance(type, NumberType) or type.high is None:
        return TRUE
    return both(apply("at_most", literal(type.low, COUNT), value), apply("at_most", value, type.high))


@cache
def in_range(node: Node, own: Own = reads) -> Node:
    """The condition under which every operator that counts in the value of the node has its own condition.

    By default: that its value reads nothing out of range.
    """
    args, of = node.args, partial(in_range, own=own)
    if isinstance(node.attr, Binder) and node.op != "bound":
        body = of(args[1])
        within = TRUE if body is TRUE else Node("forall", (args[0], body), node.attr, BOOL)
        return all_of((of(args[0]), within, *map(of, args[2:])))
    match node.op:
        case "and" | "implies":
            return both(of(args[0]), if_so(args[0], of(args[1])))
        case "or":
            return both(of(args[0]), if_so(apply("not", args[0]), of(args[1])))
        case "when":
            chosen = (if_so(args[0], of(args[1])), if_so(apply("not", args[0]), of(args[2])))
            return all_of((of(args[0]), *chosen))
        case "call":
            called, primed = cast("tuple[Definition, bool]", node.attr)
            definition = _asking(called, own)
            asked = TRUE if definition is None else Node("call", args, (definition, primed), BOOL)
            return both(all_of(map(of, args)), asked)
        case _:
            return both(all_of(map(of, args)), own(node))


@cache
def _asking(definition: Definition, own: Own) -> Definition | None:
    """The definition that says whether this one is in range; None where it always is."""
    body = in_range(definition.body, own)
    if body is TRUE:
        return None
    doc = f"{definition.name} {own.__name__} nothing out of range."
    suffix = "in_range" if own is reads else f"{own.__name__}_in_range"
    return attrs.evolve(definition, name=f"{definition.name}_{suffix}", body=body, doc=doc)


def _of_update(update: Update, type: Type) -> Node:
    """The condition under which the value, and where it goes, is in range; `type` is that of the variable."""
    asked = in_range(update.value)
    for key in update.path:
        of = cast("MapType", type)
        asked, type = all_of((asked, in_range(key), is_one_of(of.key, key))), of.value
    return asked


def _of_action(action: Action, types: Mapping[str, Type]) -> Node:
    """The condition under which nothing that the action asks or computes is read out of range."""
    asked = all_of(_of_update(u, types[u.variable]) for u in action.updates)
    for guard in reversed(action.guards):
        asked = both(in_range(guard.condition), if_so(guard.condition, asked))
    return asked


def _beside(action: Action, types: Mapping[str, Type]) -> Action | None:
    """The action that is possible where this one reads out of range; None where it never can."""
    condition = _of_action(action, types)
    if condition is TRUE:
        return None
    return attrs.evolve(
        action,
        name=f"{action.name}{SUFFIX}",
        guards=(Guard(apply("not", condition), action.where),),
        updates=(Update(FLAG, (), literal(True, BOOL)),),
        doc=f"{action.name} would read out of range.",
    )


def _promise(name: str, kind: str, condition: Node, doc: str, like: Action) -> Property:
    return Property(name, kind, condition, doc, like.where)


def reading_in_range(design: Design) -> Design:
    """The design with a promise, `reads-in-range`, that it and its own promises read nothing out of range.

    Its behaviours are those of the design up to the first such read, which is a step of its own.
    """
    said = var("something was read out of range", ghost=True)
    state = type(f"{design.state.__name__}InRange", (design.state,), {"__annotations__": {FLAG: Bool}, FLAG: said})
    start = attrs.evolve(design.initial, updates=(Update(FLAG, (), literal(False, BOOL)),))
    types = {v.name: v.type for v in design.variables}
    beside = [a for a in (_beside(a, types) for a in design.actions) if a is not None]
    flag = Node("variable", (), (FLAG, False), BOOL)
    wider_design = attrs.evolve(design.in_state(cast("type[Struct]", state), start), actions=(*design.actions, *beside))
    properties = [(p, _of_property(p)) for p in design.properties]
    states = all_of(asked for p, asked in properties if not p.kind.endswith("step"))
    steps = all_of(asked for p, asked in properties if p.kind.endswith("step"))
    first = design.initial
    promises = [_promise(PROMISE, "always", both(apply("not", flag), states), "Nothing is read out of range.", first)]
    if steps is not TRUE:
        doc = "No promise about steps reads out of range."
        promises.append(_promise(STEP_PROMISE, "step", steps, doc, first))
    return attrs.evolve(wider_design, properties=tuple(promises), expected={})


def _of_property(p: Property) -> Node:
    """The condition under which the property, where it is promised, reads nothing out of range."""
    asked = all_of(in_range(n) for n in (p.trigger, p.condition) if n is not None)
    return asked if p.when is None else if_so(p.when, asked)
