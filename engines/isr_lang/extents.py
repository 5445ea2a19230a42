"""Which expressions are within their type's range in every state, so that a test of that may be left out.

This looks no deeper than the expression: a stored value, a parameter, a bound variable and the length of a sequence are
in range. Sums and differences may be out of range, and exporters guard them as the language prescribes. A parameter of
a definition is in range unless some call passes a value that may not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from isr_lang.constants import Constant
from isr_lang.declare import Definition
from isr_lang.nodes import Node, walk
from isr_lang.types import NumberType, Scalar

STORED_OPERATORS = ("variable", "get", "at", "parameter", "bound")
NOWHERE: frozenset[str] = frozenset()


def least(node: Node) -> int | None:
    """The least value that an expression over the constants can have; None if that is unknown."""
    return _extreme(node, -1)


def _extreme(node: Node, side: int) -> int | None:
    match node.op:
        case "literal" if isinstance(node.attr, int):
            return node.attr
        case "constant":
            constant = cast("Constant", node.attr)
            return constant.low if side < 0 else constant.high
        case "plus" | "minus":
            sign = 1 if node.op == "plus" else -1
            a, b = _extreme(node.args[0], side), _extreme(node.args[1], side * sign)
            return None if a is None or b is None else a + sign * b
        case _:
            return None


class Ranges:
    """Ranges of the expressions of one design. `least` gives a lower limit of a bound, None if there is none."""

    def __init__(
        self,
        roots: Iterable[Node],
        bodies: Mapping[Definition, Node],
        least: Callable[[Node], int | None] = least,
    ) -> None:
        self.bodies, self.least = bodies, least
        self._doubtful: dict[Definition, frozenset[str]] = dict.fromkeys(bodies, NOWHERE)
        calls = [(None, n) for root in roots for n in walk(root) if n.op == "call"]
        nested = [(d, n) for d, body in bodies.items() for n in walk(body) if n.op == "call"]
        while any([self._doubt(caller, call) for caller, call in (*calls, *nested)]):
            pass

    def _doubt(self, caller: Definition | None, call: Node) -> bool:
        """Note the parameters to which the call passes values that may be out of range; whether any is new."""
        callee = cast("Definition", call.attr[0])
        formals = zip(callee.parameters, call.args, strict=True)
        found = {name for (name, t), a in formals if not self.within(a, t, self.doubtful(caller))}
        before = self._doubtful[callee]
        self._doubtful[callee] = before | found
        return self._doubtful[callee] != before

    def doubtful(self, definition: Definition | None) -> frozenset[str]:
        """The parameters of a definition that may be out of range; those of an action never are."""
        return NOWHERE if definition is None else self._doubtful[definition]

    def within(self, node: Node, type: Scalar, doubtful: frozenset[str] = NOWHERE) -> bool:
        """Whether the node's value is in the type's range in every state whose variables are in theirs."""
        if not isinstance(type, NumberType):
            return True
        if type.high is None:
            return False
        highest = self.least(type.high)
        has_values = highest is not None and type.low <= highest
        match node.op:
            case "plus" if node.args[0].op == "literal" and node.args[0].attr == 0:
                return self.within(node.args[1], type, doubtful)  # a count as a number
            case "literal":
                return highest is not None and type.low <= node.attr <= highest
            case "when" | "smallest" | "largest":
                return all(self.within(a, type, doubtful) for a in node.args[1:])
            case "or_else":
                return self.within(node.args[1], type, doubtful)
            case "length":
                return type.low <= 0 and node.type == type
            case "call":
                callee = cast("Definition", node.attr[0])
                return self.within(self.bodies[callee], type, self.doubtful(callee))
            case "parameter" if node.attr in doubtful:
                return False
            case _:
                return (node.op in STORED_OPERATORS and node.type == type) or (has_values and node is type.high)
