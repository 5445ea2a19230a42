"""Expressions without calls: every definition written out where it is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, combinations
from typing import cast

import attrs

from isr_lang import Instance, Node
from isr_lang.instance import FoldedAction
from isr_lang.nodes import after, walk


@attrs.frozen
class Write:
    """What an action writes: a variable, or at a path of keys in it, and the value."""

    variable: str
    path: tuple[Node, ...]
    value: Node


@attrs.frozen(eq=False)
class Inlined:
    """An action without calls."""

    name: str
    guards: tuple[Node, ...]
    updates: tuple[Write, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """All expressions of which it is made."""
        return (*self.guards, *(n for u in self.updates for n in (*u.path, u.value)))

    def overwrites(self, path: tuple[Node, ...]) -> set[str]:
        """The variables to which it writes at this path."""
        return {u.variable for u in self.updates if u.path == path}


class Inliner:
    """Writes out the definitions of an instance."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._nodes: dict[Node, Node] = {}

    def node(self, node: Node) -> Node:
        if node not in self._nodes:
            args = tuple(map(self.node, node.args))
            if node.op == "call":
                definition, primed = node.attr
                body = self.node(self.instance.body(definition))
                names = (Node("parameter", (), name, type) for name, type in definition.parameters)
                meaning = dict(zip(names, args, strict=True))
                (self._nodes[node],) = replace_parts([after(body) if primed else body], meaning)
            else:
                self._nodes[node] = Node(node.op, args, node.attr, node.type)
        return self._nodes[node]

    def action(self, action: FoldedAction) -> Inlined:
        updates = (Write(u.variable, tuple(map(self.node, u.path)), self.node(u.value)) for u in action.updates)
        return Inlined(action.name, tuple(self.node(g.condition) for g in action.guards), tuple(updates))


def replace_parts(nodes: Sequence[Node], meaning: Mapping[Node, Node]) -> list[Node]:
    """The expressions with these parts replaced, all at once."""
    results = dict(meaning)

    def visit(n: Node) -> Node:
        if n not in results:
            args = tuple(map(visit, n.args))
            results[n] = n if args == n.args else Node(n.op, args, n.attr, n.type)
        return results[n]

    return [visit(n) for n in nodes]


def is_variable(node: Node, name: str) -> bool:
    """Whether the node is this variable, before the step."""
    return node.op == "variable" and node.attr == (name, False)


def cell(node: Node) -> str:
    """x, if the node is the value x[k] of a map before the step; else nothing."""
    if node.op == "get" and node.args[0].op == "variable" and not node.args[0].attr[1]:
        return cast("str", node.args[0].attr[0])
    return ""


def whole(nodes: Sequence[Node]) -> set[str]:
    """The variables that are read otherwise than at a key."""
    read = {a for n in walk(*nodes) for i, a in enumerate(n.args) if n.op != "get" or i == 1} | set(nodes)
    return {n.attr[0] for n in read if n.op == "variable"}


def variables(nodes: Sequence[Node]) -> set[str]:
    """The variables that the expressions read, before or after the step."""
    return {n.attr[0] for n in walk(*nodes) if n.op == "variable"}


@cache
def bound(node: Node) -> bool:
    """Whether it speaks of what a quantifier binds."""
    return node.op == "bound" or any(map(bound, node.args))


def conjuncts(nodes: Sequence[Node]) -> Iterator[Node]:
    for n in nodes:
        yield from conjuncts(n.args) if n.op == "and" else (n,)


def subsets(keys: Sequence[Node]) -> Iterator[tuple[Node, ...]]:
    """Which of some keys may be one and the same element: all choices."""
    return chain.from_iterable(combinations(keys, n) for n in range(len(keys) + 1))
