"""Which bounds decide something under given settings: a budget for what the settings switch off decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isr_lang.constants import Constant, Value
from isr_lang.design import Design
from isr_lang.instance import Instance
from isr_lang.nodes import Node, constants_in
from isr_lang.types import MapType, MaybeType, NumberType, SeqType, SetType, SortType, Type


def constants_that_decide(instance: Instance) -> set[str]:
    """The constants that an action reads which the settings leave possible, or the size of what there is.

    An expression counts as it is written, whether or not the settings fold it away.
    """
    names = set[str]()
    present_names = {v.name for v in instance.variables}
    for v in instance.variables:
        names |= constants_of_type(v.type)
    for folded in (instance.initial, *instance.actions):
        action = folded.action
        for _, type in action.parameters:
            names |= constants_of_type(type)
        expressions = [guard.condition for guard in action.guards]
        expressions += [node for u in action.updates if u.variable in present_names for node in (*u.path, u.value)]
        for node in expressions:
            names |= constants_in(node)
    return names


def constants_of_type(type: Type) -> set[str]:
    """The constants that the size of a type reads."""
    return {name for node in _sizes(type) for name in constants_in(node)}


def _sizes(type: Type) -> Iterator[Node]:
    match type:
        case NumberType():
            if type.high is not None:
                yield type.high
        case SortType():
            yield type.size
        case MapType():
            yield from _sizes(type.key)
            yield from _sizes(type.value)
        case SeqType():
            yield from _sizes(type.index)
            yield from _sizes(type.of)
        case SetType() | MaybeType():
            yield from _sizes(type.of)
        case _:
            return


def without_effect(design: Design, constants: Mapping[str, Value]) -> list[Constant]:
    """Of these constants the budgets that were raised, and decide nothing at these settings.

    What the size of a variable reads that is always there decides something at any, and nothing is folded for it.
    """
    always = {name for v in design.variables if v.when is None for name in constants_of_type(v.type)}
    budgets = [c for c in design.constants() if not c.names and c.low == 0 and c.name not in always]
    raised_budgets = [c for c in budgets if constants.get(c.name, 0) != 0]
    if not raised_budgets:
        return []
    deciding = constants_that_decide(Instance(design, constants))
    return [c for c in raised_budgets if c.name not in deciding]


def switches_for(design: Design, constants: Mapping[str, Value], budget: Constant) -> list[str]:
    """The switches, as options, each of which alone makes the budget decide something where it is the other way."""
    values = Instance(design, constants).constants
    switches = [c for c in design.constants() if c.names and c.choice is None]
    return [
        f"{c.option} {c.names[not values[c.name]]}"
        for c in switches
        if budget.name in constants_that_decide(Instance(design, {**constants, c.name: not values[c.name]}))
    ]
