"""Subexpressions that occur more than once: the long ones get a name in a LET.

A model computes a value once, in a Python local, and uses it in several places; in the graph it is one node. A short
text is repeated at each place. Repeating a long one would bury the action.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from isr_lang import Node, walk
from isr_lang.types import BoolType

LONG = 40
NAMES = {
    "smallest": "least",
    "largest": "greatest",
    "select": "those",
    "build": "table",
    "count": "number",
    "size": "number",
    "plus": "sum",
    "minus": "difference",
    "at": "item",
    "when": "value",
    "or_else": "value",
}


CHANGES = ("put", "with", "without", "append", "take", "union", "difference", "get")


def shared(roots: Iterable[Node]) -> list[Node]:
    """The nodes that occur in more than one place and have no free bound variable, inner ones first."""
    uses: dict[Node, int] = {}
    order: dict[Node, None] = {}
    for root in roots:
        uses[root] = uses.get(root, 0) + 1
        for node in walk(root):
            if node not in order:
                order[node] = None
                for child in node.args:
                    uses[child] = uses.get(child, 0) + 1
    free: dict[Node, frozenset[object]] = {}
    for node in order:  # children come first
        inner = frozenset[object]().union(*(free[a] for a in node.args))
        free[node] = frozenset([node.attr]) if node.op == "bound" else inner - {node.attr}
    return [n for n in order if uses[n] > 1 and n.args and not free[n]]


def wanted_name(node: Node, update_names: Mapping[Node, str]) -> str:
    """A name for a shared value: of the variable that gets it, of the definition that it calls, or of its operator."""
    if node in update_names:
        return f"new_{update_names[node]}"
    if node.op == "call":
        return cast("str", node.attr[0].name)
    if isinstance(node.type, BoolType):
        return "holds"
    changed = node
    while changed.op in CHANGES:
        changed = changed.args[0]
    if changed.op == "variable" and node.op != "get":
        return f"new_{changed.attr[0]}"
    return NAMES.get(node.op, "value")
