"""Refinement: a promise about an abstract state, kept by a concrete one through a map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from isr_lang.declare import Property
from isr_lang.errors import ModelError
from isr_lang.expr import Expr
from isr_lang.nodes import Node
from isr_lang.state import Struct

S = TypeVar("S", bound=Struct)


def refines(
    name: str,
    step: Property,
    abstract: type[Struct],
    state: type[S],
    mapping: Mapping[str, Callable[[S], Expr]],
) -> Property:
    """The concrete step, seen through the map, is a step of the abstract specification.

    `step` is the abstract next-state relation, stuttering included (kind 'step'); `mapping` gives the value of
    each abstract variable in a concrete state. The result is a step property of the concrete state.
    """
    names = {v.name for v in abstract.variables()}
    if names != set(mapping):
        raise ModelError(
            f"the map is of {', '.join(sorted(mapping))}, the abstract state has {', '.join(sorted(names))}"
        )
    old, new = state(), state(primed=True)
    images = {(n, p): mapping[n](new if p else old).node for n in names for p in (False, True)}
    results: dict[Node, Node] = {}

    def through(node: Node) -> Node:
        if node not in results:
            if node.op == "variable":
                results[node] = images[node.attr]
            elif node.op == "call":
                raise ModelError(f"the abstract step calls {node.attr[0].name}; write it out", step.where)
            else:
                results[node] = Node(node.op, tuple(through(a) for a in node.args), node.attr, node.type)
        return results[node]

    return attrs.evolve(step, name=name, condition=through(step.condition))
