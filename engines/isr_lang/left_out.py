"""What a step would store and cannot: a number in a set, or at a key of a map, outside of the range of its type.

A set has a place for each value of its type, and a map a value at each key. So every engine and export leaves out what
is outside, and by its variables alone no state would show that something is missing. `storing_in_range` adds a variable
that does: it has the range 0..0, and becomes 1 in a step that leaves something out. So that step violates `type-ok`.

A design that leaves nothing out, by the look of its expressions (isr_lang.extents), stays as it is. What guards and
promises compute is not stored, so there the answers of `isr_lang.nodes` stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast

import attrs

from isr_lang.declare import Action, Definition, Update
from isr_lang.design import Design
from isr_lang.errors import ModelError
from isr_lang.extents import NOWHERE, Ranges
from isr_lang.nodes import Node, apply, literal, walk
from isr_lang.ranges import TRUE, all_of, if_so, in_range, is_one_of
from isr_lang.scalars import Number
from isr_lang.state import Struct, var
from isr_lang.types import MapType, Scalar, SetType, Type

NAME = "left_out"


class LeftOut(Number, high=0):
    """1 where a step left something out."""


@cache
def storing_in_range(design: Design) -> Design:
    """The design with the variable `left_out`, if a step of it may leave something out; else the design itself."""
    types = {v.name: v.type for v in design.variables}
    if types.get(NAME) == LeftOut.type:
        return design  # it has the variable already
    ranges = Ranges(design.roots(), {d: d.body for d in design.definitions()})
    settings = {v.name: v.when for v in design.variables if v.when is not None}
    watched_actions = [_watched_action(design.initial, types, ranges, {})]  # an off variable has its initial value, too
    watched_actions += [_watched_action(a, types, ranges, settings) for a in design.actions]
    if watched_actions == [design.initial, *design.actions]:
        return design
    if NAME in types:
        raise ModelError(f"a variable cannot be called '{NAME}' where a set or a map may leave something out")
    left_out = var("1 if the step before left something out of a set or a map, because it is out of its range")
    parts = {"__annotations__": {NAME: LeftOut}, NAME: left_out}
    state = type(f"{design.state.__name__}Stored", (design.state,), parts)
    first, *actions = watched_actions
    if first is design.initial:
        first = attrs.evolve(first, updates=(*first.updates, Update(NAME, (), literal(0, LeftOut.type))))
    return attrs.evolve(design, state=cast("type[Struct]", state), initial=first, actions=tuple(actions))


def _watched_action(action: Action, types: Mapping[str, Type], ranges: Ranges, settings: Mapping[str, Node]) -> Action:
    """The action with an update of `left_out`, if it may leave something out; else the action itself.

    A variable that is off stores nothing, whatever an action would write to it.
    """
    if not any(_may_leave_out(u, types[u.variable], ranges) for u in action.updates):
        return action
    stores_all = all_of(
        if_so(settings.get(u.variable, TRUE), _stores_all(u, types[u.variable])) for u in action.updates
    )
    value = apply("when", stores_all, literal(0, LeftOut.type), literal(1, LeftOut.type))
    return attrs.evolve(action, updates=(*action.updates, Update(NAME, (), value)))


def _may_leave_out(update: Update, type: Type, ranges: Ranges) -> bool:
    if not all(ranges.within(key, of.key) for key, of in _keys(update, type)):
        return True
    roots = [(cast("Definition | None", None), update.value)]
    for definition, root in roots:
        doubtful = NOWHERE if definition is None else ranges.doubtful(definition)
        for n in walk(root):
            if (place := _place(n)) is not None and not ranges.within(n.args[1], place, doubtful):
                return True
            if n.op == "call" and all(n.attr[0] is not d for d, _ in roots):
                roots.append((n.attr[0], n.attr[0].body))
    return False


def _place(node: Node) -> Scalar | None:
    """The type of which the second argument must be, so that the operator does not leave it out."""
    match node.op:
        case "with":
            return cast("SetType", node.type).of
        case "put":
            return cast("MapType", node.type).key
        case _:
            return None


def stores(node: Node) -> Node:
    """The condition under which the operator leaves nothing out."""
    place = _place(node)
    return TRUE if place is None else is_one_of(place, node.args[1])


def _stores_all(update: Update, type: Type) -> Node:
    keys = (is_one_of(of.key, key) for key, of in _keys(update, type))
    return all_of((*keys, in_range(update.value, stores)))


def _keys(update: Update, type: Type) -> Iterator[tuple[Node, MapType]]:
    """The keys on the path of an update, each with the type of the map that it is a key of."""
    for key in update.path:
        of = cast("MapType", type)
        yield key, of
        type = of.value
