"""Ranges in which numbers are known to be, so that tests that cannot fail are left out.

They hold in every state that is stored: a value read from a variable is in the range of its cell, and a sum is in the
sum of the ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from isr_check.native.layout import Layout
from isr_lang import Binder, Node
from isr_lang.types import (
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    Scalar,
    SeqType,
    SetType,
    SortType,
    Type,
    maybe_of,
    position_in,
)

Range = tuple[int, int]
KnownRanges = Mapping[Binder | str, Range | None]


def _join(*ranges: Range | None) -> Range | None:
    known = [r for r in ranges if r is not None]
    return (min(r[0] for r in known), max(r[1] for r in known)) if len(known) == len(ranges) else None


class Ranges:
    def __init__(self, layout: Layout) -> None:
        self.layout, self.instance = layout, layout.instance

    def of(self, node: Node, known_ranges: KnownRanges) -> Range | None:
        """The range of a scalar, set or maybe, None if unknown. `known_ranges`: of parameters and bound variables."""
        type = node.type
        if isinstance(type, BoolType | SortType | ChoiceType):
            return self.instance.bounds(type)
        if isinstance(type, SetType):
            return self.layout.range(type)
        args = node.args
        match node.op:
            case "literal":
                return (node.attr, node.attr) if isinstance(node.attr, int) else None
            case "parameter" | "bound":
                return known_ranges.get(node.attr)
            case "plus" | "minus":
                return self._sum(node, known_ranges)
            case "some":
                of = self.of(args[0], known_ranges)
                low = self.instance.bounds(cast("Scalar", args[0].type))[0]
                return (maybe_of(of[0] - low), maybe_of(of[1] - low)) if of else None
            case "or_else":
                return self._or_else(node, known_ranges)
            case "size":
                return 0, self.instance.positions(cast("SetType", args[0].type).of)
            case "count":
                return 0, self.instance.positions(cast("SetType", args[0].type).of)
            case "smallest" | "largest":
                return _join(self.of(args[1], self._bound(node, known_ranges)), self.of(args[2], known_ranges))
            case "length":
                return self.length(args[0], known_ranges)
            case _:
                return self.parts(node, known_ranges)

    def _bound(self, node: Node, known_ranges: KnownRanges) -> KnownRanges:
        binder = cast("Binder", node.attr)
        return {**known_ranges, binder: self.instance.bounds(cast("Scalar", binder.type))}

    def _sum(self, node: Node, known_ranges: KnownRanges) -> Range | None:
        a, b = (self.of(n, known_ranges) for n in node.args)
        if a is None or b is None:
            return None
        return (a[0] + b[0], a[1] + b[1]) if node.op == "plus" else (a[0] - b[1], a[1] - b[0])

    def _or_else(self, node: Node, known_ranges: KnownRanges) -> Range | None:
        of = self.of(node.args[0], known_ranges)
        low = self.instance.bounds(cast("MaybeType", node.args[0].type).of)[0]
        inner = (min(low, position_in(of[0]) + low), position_in(of[1]) + low) if of else None
        return _join(inner, self.of(node.args[1], known_ranges))

    def parts(self, node: Node, known_ranges: KnownRanges) -> Range | None:
        """A range that has every number in a map or sequence, and the first value of its type."""
        args, first = node.args, self._first(node.type)
        match node.op:
            case "variable":
                return self._cells(node.type)
            case "get" | "at" | "take":
                return _join(first, self.parts(args[0], known_ranges))
            case "put":
                return _join(self.parts(args[0], known_ranges), self._any(args[2], known_ranges))
            case "append":
                return _join(first, self.parts(args[0], known_ranges), self._any(args[1], known_ranges))
            case "build":
                return _join(first, self._any(args[1], self._bound(node, known_ranges)))
            case "when":
                return _join(self._any(args[1], known_ranges), self._any(args[2], known_ranges))
            case _:
                return None

    def _any(self, node: Node, known_ranges: KnownRanges) -> Range | None:
        return (
            self.parts(node, known_ranges) if isinstance(node.type, MapType | SeqType) else self.of(node, known_ranges)
        )

    def _cells(self, type: Type) -> Range:
        match type:
            case MapType():
                return self._cells(type.value)
            case SeqType():
                return self._cells(type.of)
            case _:
                return self.layout.range(type)

    def _first(self, type: Type) -> Range:
        match type:
            case MapType():
                return self._first(type.value)
            case SeqType():
                return self._first(type.of)
            case MaybeType() | SetType():
                return 0, 0
            case _:
                low = self.instance.bounds(type)[0]
                return low, low

    def length(self, node: Node, known_ranges: KnownRanges) -> Range | None:
        """The range of a sequence's length; for a map, of the lengths of its sequences. None if unknown."""
        args = node.args
        match node.op:
            case "literal":
                items = cast("tuple[object, ...]", node.attr)
                return (0, len(items)) if isinstance(node.type, SeqType) else None
            case "variable":
                type = node.type
                while isinstance(type, MapType):
                    type = type.value
                return (0, self.layout.longest(type)) if isinstance(type, SeqType) else None
            case "get" | "take":
                return _join((0, 0), self.length(args[0], known_ranges))
            case "append":
                of = self.length(args[0], known_ranges)
                return (0, of[1] + 1) if of else None
            case "when":
                return _join(self.length(args[1], known_ranges), self.length(args[2], known_ranges))
            case "put":
                return _join(self.length(args[0], known_ranges), self.length(args[2], known_ranges))
            case "build":
                return _join((0, 0), self.length(args[1], self._bound(node, known_ranges)))
            case _:
                return None
