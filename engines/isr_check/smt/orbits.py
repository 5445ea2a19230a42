"""The sorts whose elements no expression tells apart, so that one choice of elements stands for all others.

This is the test of isr_check.symmetry, but on expressions as they are written. So it holds for every value of the
bounds.
"""

from __future__ import annotations

from collections.abc import Iterable

from isr_lang import Definition, Node
from isr_lang.nodes import walk
from isr_lang.types import MapType, MaybeType, NumberType, SeqType, SetType, SortType, Type


def told_apart(roots: Iterable[Node]) -> set[SortType]:
    """The sorts with an expression that could name one certain element."""
    sorts: set[SortType] = set()
    visited: set[Definition] = set()
    waiting = list(roots)
    while waiting:
        for n in walk(waiting.pop()):
            if n.op == "literal":
                blank = bool(n.attr == 0 or n.attr == ())
                sorts |= bare(n.type) if blank else sorts_in(n.type)
            elif n.op == "get" and isinstance(n.args[1].type, NumberType):
                sorts |= bare(n.type)  # the first of them, for a key that there is not
            elif n.op == "call" and n.attr[0] not in visited:
                visited.add(n.attr[0])
                waiting.append(n.attr[0].body)
    return sorts


def sorts_in(type: Type) -> set[SortType]:
    match type:
        case SortType():
            return {type}
        case MaybeType() | SetType() | SeqType():
            return sorts_in(type.of)
        case MapType():
            return sorts_in(type.key) | sorts_in(type.value)
        case _:
            return set()


def bare(type: Type) -> set[SortType]:
    """The sorts of which the type's first value names an element."""
    if isinstance(type, MapType):
        return bare(type.value)
    return {type} if isinstance(type, SortType) else set()
