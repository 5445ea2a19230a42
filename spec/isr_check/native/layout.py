"""Where each variable lives: a state as a few 64-bit words, and back.

A variable is flattened into *cells*, one integer each: a scalar, a set (its bits) and a maybe are one cell; a
map is the cells of its first key's value, then the next key's; a sequence is its length and then its items,
those beyond the length being their lowest value. Each cell gets the bits that its range needs, and no cell
crosses a word. States are equal exactly when their words are.

Ranges are as declared, plus `slack` where a first exploration met a value outside (see search.py): then the
values outside must be told apart too.
"""

from __future__ import annotations

from typing import cast

import attrs

from isr_lang import Instance
from isr_lang.types import (
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    Scalar,
    SeqType,
    SetType,
    SortType,
    Type,
)

WIDEST = 62
"""Bits of the widest cell: cells are computed with as signed 64-bit integers."""


class TooWide(ValueError):
    """The instance has a variable that the packed representation cannot hold."""


@attrs.frozen
class Cell:
    """Bits shift..shift+width of one word hold value - low, of a value in low..high."""

    word: int
    shift: int
    width: int
    low: int
    high: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1


@attrs.frozen
class Slack:
    """How far values may leave their declared ranges: numbers by `number`, sequences by `items`."""

    number: int = 0
    items: int = 0


SLACKS = (Slack(), Slack(3, 1), Slack(60, 6), Slack(4000, 40))


class Layout:
    """`cells` in order; the cells of a variable begin at `offset[name]`."""

    def __init__(self, instance: Instance, slack: Slack = SLACKS[0]) -> None:
        self.instance, self.slack = instance, slack
        self.offset: dict[str, int] = {}
        ranges: list[tuple[int, int]] = []
        for variable in instance.variables:
            self.offset[variable.name] = len(ranges)
            ranges += self._ranges(variable.type)
        used: list[int] = []
        self.cells = tuple(_place(low, high, used) for low, high in ranges)
        self.words = max(1, len(used))
        self.bits = sum(used)

    def longest(self, type: SeqType) -> int:
        """How many items a stored sequence can have."""
        return max(0, self.instance.bounds(type.index)[1]) + self.slack.items

    def size(self, type: Type) -> int:
        """How many cells a value of the type has."""
        match type:
            case MapType():
                return self.instance.positions(type.key) * self.size(type.value)
            case SeqType():
                return 1 + self.longest(type)
            case _:
                return 1

    def range(self, type: Type) -> tuple[int, int]:
        """The least and greatest value that a cell of the type can hold."""
        match type:
            case NumberType():
                low, high = self.instance.bounds(type)
                return low - self.slack.number, high + self.slack.number
            case MaybeType():
                slack = self.slack.number if isinstance(type.of, NumberType) else 0
                return -slack, self.instance.positions(type.of) + slack
            case SetType():
                return 0, (1 << self.instance.positions(type.of)) - 1
            case BoolType() | SortType() | ChoiceType():
                return self.instance.bounds(type)
            case MapType() | SeqType():
                raise AssertionError(f"{type} is not one cell")

    def _ranges(self, type: Type) -> list[tuple[int, int]]:
        match type:
            case MapType():
                return self._ranges(type.value) * self.instance.positions(type.key)
            case SeqType():
                return [(0, self.longest(type)), *[self.range(type.of)] * self.longest(type)]
            case _:
                return [self.range(type)]

    # between tuples of Python values (isr_lang.types) and words

    def pack(self, state: tuple[object, ...]) -> tuple[int, ...]:
        """The words of a state whose values fit the cells."""
        values: list[int] = []
        for variable, value in zip(self.instance.variables, state, strict=True):
            self._flatten(variable.type, value, values)
        words = [0] * self.words
        for cell, value in zip(self.cells, values, strict=True):
            assert cell.low <= value <= cell.high, f"{value} is not in {cell.low}..{cell.high}"
            words[cell.word] |= (value - cell.low) << cell.shift
        return tuple(words)

    def unpack(self, words: tuple[int, ...]) -> tuple[object, ...]:
        """The state that the words hold."""
        values = [(words[c.word] >> c.shift & c.mask) + c.low for c in self.cells]
        return tuple(self._gather(v.type, self.offset[v.name], values) for v in self.instance.variables)

    def _flatten(self, type: Type, value: object, into: list[int]) -> None:
        match type:
            case MapType():
                for part in cast("tuple[object, ...]", value):
                    self._flatten(type.value, part, into)
            case SeqType():
                items = cast("tuple[int, ...]", value)
                filler = self.range(type.of)[0]
                into += [len(items), *items, *[filler] * (self.longest(type) - len(items))]
            case _:
                into.append(int(cast("int", value)))

    def _gather(self, type: Type, offset: int, values: list[int]) -> object:
        match type:
            case MapType():
                step = self.size(type.value)
                positions = range(self.instance.positions(type.key))
                return tuple(self._gather(type.value, offset + i * step, values) for i in positions)
            case SeqType():
                items = values[offset + 1 : offset + 1 + values[offset]]
                return tuple(self._scalar(type.of, v) for v in items)
            case _:
                return self._scalar(type, values[offset])

    @staticmethod
    def _scalar(type: Scalar | MaybeType | SetType, value: int) -> object:
        return bool(value) if isinstance(type, BoolType) else value


def _place(low: int, high: int, used: list[int]) -> Cell:
    """The cell in the first word with room; `used` counts the bits taken of each word."""
    width = max(0, high - low).bit_length()
    if width > WIDEST:
        raise TooWide(f"a value of {width} bits does not fit a cell of {WIDEST}")
    if width == 0:
        return Cell(0, 0, 0, low, high)
    word = next((w for w, bits in enumerate(used) if bits + width <= 64), len(used))
    if word == len(used):
        used.append(0)
    used[word] += width
    return Cell(word, used[word] - width, width, low, high)
