"""Renaming the elements of symmetric sorts: which models allow it, and what it makes of a state.

States that differ in such names only form one *orbit*, and an exploration may look at one state of each orbit. That
is sound when no expression of the model tells the names apart. The language has no way to write one of them down. But
an operator out of range gives the first value of its type, which can be a name; a model in which that can happen is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from math import factorial, prod
from typing import cast

from isr_check.engine import Unsound
from isr_check.reference import State
from isr_lang import Definition, Instance, Node
from isr_lang.instance import FoldedAction
from isr_lang.nodes import walk
from isr_lang.types import MapType, MaybeType, SeqType, SetType, SortType, Type

MOST = 5040
"""The most renamings of a state: those of seven names."""

Renaming = Mapping[SortType, tuple[int, ...]]
"""For each sort the new position of each element."""


class Symmetry:
    """The renamings of an instance; Unsound if the model tells names apart, or if it has no names or too many."""

    def __init__(self, instance: Instance, property_names: Sequence[str] = ()) -> None:
        self.instance = instance
        found: dict[SortType, None] = {}
        for variable in instance.variables:
            found |= dict.fromkeys(_sorts(variable.type))
        self.sorts = tuple(s for s in found if s.symmetric and instance.positions(s) > 1)
        self.sizes = tuple(instance.positions(s) for s in self.sorts)
        self.order = prod(factorial(n) for n in self.sizes)
        problem = self._obstacle(property_names)
        if problem:
            raise Unsound(f"{instance.design.name} cannot be explored by symmetry: {problem}")
        self.group = tuple(
            dict(zip(self.sorts, chosen, strict=True))
            for chosen in product(*(permutations(range(n)) for n in self.sizes))
        )

    def images(self, state: State) -> Iterator[State]:
        """The state under every renaming."""
        types = [v.type for v in self.instance.variables]
        for renaming in self.group:
            yield tuple(rename_elements(t, v, renaming) for t, v in zip(types, state, strict=True))

    def representative(self, state: State) -> State:
        """The least of the orbit."""
        return min(self.images(state))

    def orbit(self, state: State) -> int:
        """How many states the orbit has."""
        return len(set(self.images(state)))

    # what is refused

    def _obstacle(self, property_names: Sequence[str]) -> str:
        kinds = {p.name: p.kind for p in self.instance.properties}
        live = [name for name in property_names if kinds.get(name) == "eventually"]
        if live:
            return f"{live[0]} is a liveness property, and a cycle of orbits need not be one of states"
        if not self.sorts:
            return "it has no symmetric sort of two or more elements"
        if self.order > MOST:
            return f"its states have {self.order:,} renamings each, more than {MOST:,}"
        for variable in self.instance.variables:
            if isinstance(variable.type, SeqType) and variable.type.of in self.sorts:
                return f"{variable.name} is a sequence of {variable.type.of}"
        return self._naming_obstacle()

    def _naming_obstacle(self) -> str:
        """A sentence about an expression that could name an element; empty if there is none."""
        for where, node in self._expressions():
            for n in walk(node):
                told = n.op == "literal" and self._tells(n.type, n.attr)
                beyond = n.op == "get" and self.instance.interval(n.args[1]) is None
                if told or (beyond and self._tells(n.type, self.instance.first(n.type))):
                    return f"'{n!r}' in {where} can be one certain element of a symmetric sort"
        return ""

    def _tells(self, type: Type, value: object) -> bool:
        """Whether some exchange of two neighbouring elements changes the value."""
        for sort, size in zip(self.sorts, self.sizes, strict=True):
            for i in range(size - 1):
                exchange = (*range(i), i + 1, i, *range(i + 2, size))
                if rename_elements(type, value, {sort: exchange}) != value:
                    return True
        return False

    def _expressions(self) -> Iterator[tuple[str, Node]]:
        """Every expression that decides anything, with the name of its action, property or definition."""
        roots: list[tuple[str, Node]] = []
        for action in (self.instance.initial, *self.instance.actions):
            roots += [(action.name, node) for node in _parts(action)]
        for p in self.instance.properties:
            roots += [(p.name, node) for node in (p.condition, p.trigger) if node is not None]
        visited: set[Definition] = set()
        while roots:
            where, node = roots.pop()
            yield where, node
            for n in walk(node):
                if n.op == "call" and n.attr[0] not in visited:
                    definition = cast("Definition", n.attr[0])
                    visited.add(definition)
                    roots.append((definition.name, self.instance.body(definition)))


def _parts(action: FoldedAction) -> Iterator[Node]:
    yield from (g.condition for g in action.guards)
    for update in action.updates:
        yield from (*update.path, update.value)


def _sorts(type: Type) -> Iterator[SortType]:
    match type:
        case SortType():
            yield type
        case MaybeType() | SetType() | SeqType():
            yield from _sorts(type.of)
        case MapType():
            yield from _sorts(type.key)
            yield from _sorts(type.value)
        case _:
            pass


def rename_elements(type: Type, value: object, renaming: Renaming) -> object:
    """The value with every element called by its new name."""
    match type:
        case SortType() if type in renaming:
            return renaming[type][cast("int", value)]
        case MaybeType(of=SortType() as of) if of in renaming and value:
            return 1 + renaming[of][cast("int", value) - 1]
        case SetType(of=SortType() as of) if of in renaming:
            members = cast("int", value)
            return sum(1 << new for old, new in enumerate(renaming[of]) if members >> old & 1)
        case SeqType():
            return tuple(rename_elements(type.of, item, renaming) for item in cast("tuple[object, ...]", value))
        case MapType():
            values = [rename_elements(type.value, part, renaming) for part in cast("tuple[object, ...]", value)]
            if isinstance(type.key, SortType) and type.key in renaming:
                places = renaming[type.key]
                return tuple(values[places.index(i)] for i in range(len(values)))
            return tuple(values)
        case _:
            return value
