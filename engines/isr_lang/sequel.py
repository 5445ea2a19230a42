"""Steps of two actions: one follows the other within the same step, or is taken as if another had come before."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from isr_lang.declare import Action, Guard, Update
from isr_lang.design import Design
from isr_lang.errors import ModelError
from isr_lang.nodes import Node, apply
from isr_lang.quantify import rename_apart
from isr_lang.refine import Reading, put
from isr_lang.state import Struct
from isr_lang.types import MapType


def with_sequels(design: Design, **sequels: Action) -> Design:
    """The design where some actions, by name, are followed by another one within the same step.

    `old` of a sequel is the state after the action. A sequel has no guards, gives variables as a whole, and its
    parameters are some of the action's. What it calls is written out, so that later replacements do not reach it.
    """
    for slot, sequel in sequels.items():
        known = dict(design.action_named(slot).parameters)
        if any(known.get(name) != type for name, type in sequel.parameters):
            raise ModelError(f"{sequel.name} has a parameter that {slot} has not", sequel.where)
        if sequel.guards or any(u.path for u in sequel.updates):
            raise ModelError(f"{sequel.name} has a guard, or gives a part of a variable", sequel.where)
    actions = (_in_one_step(a, sequels[a.name], design.state) if a.name in sequels else a for a in design.actions)
    return attrs.evolve(design, actions=tuple(actions))


def _in_one_step(action: Action, sequel: Action, state: type[Struct]) -> Action:
    updates = {u.variable: u for u in action.updates}
    reading = Reading(_images(action, state))
    for u in sequel.updates:
        value = reading.node(u.value)
        rename_apart(value, frozenset(name for name, _ in action.parameters))
        updates[u.variable] = Update(u.variable, (), value)
    return attrs.evolve(action, updates=tuple(updates.values()))


def as_if(action: Action, before: Action, state: type[Struct], part: str, **parameters: str) -> Action:
    """The action as if `before` had changed the state first. What `before` changes does not last.

    Of each map by the type of the parameter `part` only the value at that parameter changes. `parameters`: what the
    action calls those of `before`, where it is not the same. What the action calls is written out.
    """
    types = dict(action.parameters)
    here = Node("parameter", (), part, types[part])
    before = _with_parameters(
        before, {n: Node("parameter", (), known, types[known]) for n, known in parameters.items()}
    )
    reading = Reading(_images(before, state))
    updates: list[Update] = []
    for u in action.updates:
        path, value = tuple(map(reading.node, u.path)), reading.node(u.value)
        if not path and isinstance(value.type, MapType) and value.type.key == here.type:
            path, value = (here,), apply("get", value, here)
        rename_apart(value, frozenset(types))
        updates.append(Update(u.variable, path, value))
    guards = [*before.guards, *(Guard(reading.node(g.condition), g.where) for g in action.guards)]
    for guard in guards:
        rename_apart(guard.condition, frozenset(types))
    return attrs.evolve(action, guards=tuple(guards), updates=tuple(updates))


def _with_parameters(action: Action, parameters: Mapping[str, Node]) -> Action:
    reading = Reading({}, parameters=parameters)
    guards = (Guard(reading.node(g.condition), g.where) for g in action.guards)
    updates = (Update(u.variable, tuple(map(reading.node, u.path)), reading.node(u.value)) for u in action.updates)
    return attrs.evolve(action, guards=tuple(guards), updates=tuple(updates))


def _images(action: Action, state: type[Struct]) -> dict[tuple[str, bool], Node]:
    """What the action makes of each variable that it changes."""
    variables = {
        u.variable: Node("variable", (), (u.variable, False), state.variable(u.variable).type) for u in action.updates
    }
    return {(u.variable, False): put(variables[u.variable], u.path, u.value) for u in action.updates}
