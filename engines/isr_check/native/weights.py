"""The weight of an expression, in instructions, and the names on which it depends."""

from __future__ import annotations

from typing import cast

from isr_check.native.layout import Layout
from isr_check.native.values import is_plain
from isr_lang import Binder, Definition, Node
from isr_lang.types import BOOL, NumberType, SetType, Type

BINDING = frozenset({"forall", "exists", "count", "smallest", "largest", "select", "build"})
WRITTEN_OUT = 250
"""The greatest weight of a quantifier that is written out value by value; heavier ones become loops."""
INLINED = 60
"""The greatest weight of a definition that is written where it is called; heavier ones become functions."""


class Weights:
    """The weights of the expressions of one instance."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.instance = layout, layout.instance
        self._weights: dict[Node, int] = {}
        self._free: dict[Node, tuple[Binder | str, ...]] = {}

    def positions(self, domain: Node) -> int:
        return self.instance.positions(cast("SetType", domain.type).of)

    def weight(self, node: Node) -> int:
        """Roughly how many instructions the node becomes."""
        if node not in self._weights:
            self._weights[node] = self._weigh(node)
        return self._weights[node]

    def _weigh(self, node: Node) -> int:
        if node.op in BINDING:
            body = self.positions(node.args[0]) * (2 + self.weight(node.args[1]))
            return sum(self.weight(a) for a in node.args[::2]) + (body if body <= WRITTEN_OUT else 40)
        own = sum(self.weight(a) for a in node.args)
        if node.op == "call":
            body = self.weight(self.instance.body(node.attr[0]))
            return own + (body if self.inlined(node) else 6)
        if node.op in ("equal", "prefix", "when") and node.args[-1].type != BOOL:
            own += self.layout.size(node.args[-1].type) if not _unbounded(node.args[-1].type) else 1
        return own + 1

    def written_out(self, node: Node) -> bool:
        return self.positions(node.args[0]) * (2 + self.weight(node.args[1])) <= WRITTEN_OUT

    def inlined(self, call: Node) -> bool:
        definition = cast("Definition", call.attr[0])
        return not is_plain(call.type) or self.weight(self.instance.body(definition)) <= INLINED

    def free(self, node: Node) -> tuple[Binder | str, ...]:
        """The parameters and bound variables on which the value of the node depends."""
        if node not in self._free:
            free_names: dict[Binder | str, None] = {}
            if node.op in ("parameter", "bound"):
                free_names[node.attr] = None
            for argument in node.args:
                free_names.update(dict.fromkeys(self.free(argument)))
            if node.op in BINDING:
                free_names.pop(node.attr, None)
            self._free[node] = tuple(free_names)
        return self._free[node]


def _unbounded(type: Type) -> bool:
    return isinstance(type, NumberType) and type.high is None
