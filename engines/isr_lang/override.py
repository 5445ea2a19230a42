"""Replacing a definition: every action, property and definition that calls it calls the new one instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import attrs

from isr_lang.declare import Action, Definition, Guard, Property, Update
from isr_lang.errors import ModelError
from isr_lang.expr import Expr
from isr_lang.nodes import Node

DefinitionFunction = Callable[..., Expr]


def definition_of(function: DefinitionFunction) -> Definition:
    """The definition behind a function made by `define`."""
    found: object = getattr(function, "definition", None)
    if not isinstance(found, Definition):
        raise ModelError(f"{getattr(function, '__name__', function)!r} is not a definition; decorate it with @define")
    return found


@cache
def called_definitions(node: Node) -> frozenset[Definition]:
    """The definitions that an expression calls, itself or in the bodies of those that it calls."""
    found = frozenset[Definition]().union(*(called_definitions(argument) for argument in node.args))
    if node.op != "call":
        return found
    definition: Definition = node.attr[0]
    return found | {definition} | called_definitions(definition.body)


class Override:
    """Rewrites expressions so that they call other definitions; a replacement may still call what it replaces."""

    def __init__(self, replacements: Mapping[Definition, Definition]) -> None:
        for old, new in replacements.items():
            if [t for _, t in old.parameters] != [t for _, t in new.parameters] or old.body.type != new.body.type:
                raise ModelError(
                    f"{new.name} cannot stand for {old.name}: its parameters or its result differ", new.where
                )
        self.replacements = replacements
        self._stands_for = {new: old for old, new in replacements.items()}
        self._moving = self.replacements.keys() | self._stands_for.keys()
        self._nodes: dict[Node, Node] = {}
        self._definitions: dict[Definition, Definition] = {}

    def node(self, node: Node) -> Node:
        if self._moving.isdisjoint(called_definitions(node)):
            return node
        if node not in self._nodes:
            attr: object = node.attr
            if node.op == "call":
                attr = (self.definition(node.attr[0]), node.attr[1])
            self._nodes[node] = Node(node.op, tuple(self.node(a) for a in node.args), attr, node.type)
        return self._nodes[node]

    def definition(self, definition: Definition) -> Definition:
        """The definition that calls of this one are to call: its replacement, or else itself with its body rewritten.

        Calls inside the body of a replacement are rewritten, too, except those of the definition that it replaces.
        """
        definition = self._stands_for.get(definition, definition)
        if definition not in self._definitions:
            new = self.replacements.get(definition)
            others = {o: n for o, n in self.replacements.items() if o is not definition}
            rewrite = self if new is None else Override(others)
            self._definitions[definition] = rewrite.within(definition if new is None else new)
        return self._definitions[definition]

    def within(self, definition: Definition) -> Definition:
        """The definition, not replaced itself, but with the calls in its body rewritten."""
        body = self.node(definition.body)
        return definition if body is definition.body else attrs.evolve(definition, body=body)

    def action(self, action: Action) -> Action:
        if not self.replacements:
            return action
        guards = tuple(Guard(self.node(g.condition), g.where) for g in action.guards)
        updates = tuple(
            Update(u.variable, tuple(self.node(n) for n in u.path), self.node(u.value)) for u in action.updates
        )
        return attrs.evolve(action, guards=guards, updates=updates)

    def property(self, p: Property) -> Property:
        if not self.replacements:
            return p
        trigger = self.node(p.trigger) if p.trigger is not None else None
        return attrs.evolve(p, condition=self.node(p.condition), trigger=trigger)
