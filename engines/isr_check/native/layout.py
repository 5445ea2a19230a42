"""The layout of a state in a few 64-bit words: the place of each variable, packing and unpacking.

A variable is flattened into *cells*, one integer each. A scalar, a set (one bit per element) and a maybe are one cell.
A map has the cells of its first key's value, then those of the next key's. A sequence has its length and then its
items; items beyond the length have their lowest value. Each cell gets the bits that its range needs, and no cell
crosses a word. States are equal exactly when their words are.

With symmetry the cells of one element of a sort stand together in a word, beside those of the next element. So a few
instructions exchange two elements.

Ranges are those declared. If an exploration meets a value outside, it begins again with `slack` around the ranges (see
search.py), so that values outside can be told apart, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
"""The most bits of a cell, because values of cells are computed as signed 64-bit integers."""


class TooWide(ValueError):
    """The instance has a variable that the packed representation cannot hold."""


@attrs.frozen
class Cell:
    """A cell for a value in low..high: bits shift..shift+width of one word hold value - low."""

    word: int
    shift: int
    width: int
    low: int
    high: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1


@attrs.frozen
class Place:
    """What a cell holds: a value of the type in low..high, from a variable at these keys.

    `part` is 0 for a value of one cell; for a sequence 0 is the length and 1 is the first item.
    """

    variable: str
    keys: tuple[tuple[Scalar, int], ...]
    part: int
    type: Scalar | MaybeType | SetType
    low: int
    high: int

    @property
    def width(self) -> int:
        return max(0, self.high - self.low).bit_length()


@attrs.frozen
class Slack:
    """How far values may be outside their declared ranges: numbers by `number`, lengths of sequences by `items`."""

    number: int = 0
    items: int = 0


SLACKS = (Slack(), Slack(3, 1), Slack(60, 6), Slack(4000, 40), Slack(1 << 40, 40))
"""Each is tried after the one before. A state that needs any has no next one, so few are stored in wide cells."""


class Layout:
    """The layout: `cells` in order, and `places` for what they hold; a variable's cells begin at `offset[name]`."""

    def __init__(self, instance: Instance, slack: Slack = SLACKS[0], sorts: Sequence[SortType] = ()) -> None:
        self.instance, self.slack = instance, slack
        self.offset: dict[str, int] = {}
        places: list[Place] = []
        for variable in instance.variables:
            self.offset[variable.name] = len(places)
            places += self._places(variable.name, variable.type, ())
        self.places = tuple(places)
        bit_counts: list[int] = []
        cells: dict[int, Cell] = {}
        for sort in sorts:
            for block in self._blocks(sort, sorts):
                bit_counts.append(0)
                for i in block:
                    cells[i] = _place(places[i], bit_counts, len(bit_counts) - 1)
        for i, place in enumerate(places):
            if i not in cells:
                cells[i] = _place(place, bit_counts)
        self.cells = tuple(cells[i] for i in range(len(places)))
        self.words = max(1, len(bit_counts))
        self.bits = sum(bit_counts)

    def _blocks(self, sort: SortType, sorts: Sequence[SortType]) -> list[list[int]]:
        """The words for cells whose first symmetric key is of the sort: for each its cells, element by element."""
        columns: dict[object, list[int]] = {}
        for i, place in enumerate(self.places):
            at = next((n for n, (key, _) in enumerate(place.keys) if key in sorts), None)
            if at is not None and place.keys[at][0] == sort:
                rest = place.keys[:at] + place.keys[at + 1 :]
                columns.setdefault((place.variable, at, rest, place.part), []).append(i)
        words: list[list[list[int]]] = []
        for column in columns.values():
            size = sum(self.places[i].width for i in column)
            if size > 64:
                raise TooWide(f"the cells of all {sort} take {size} bits, and one word has 64")
            room = (w for w in words if sum(self.places[i].width for c in w for i in c) + size <= 64)
            if (word := next(room, None)) is None:
                words.append(word := [])
            word.append(column)
        return [[column[i] for i in range(self.instance.positions(sort)) for column in word] for word in words]

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

    def _places(self, variable: str, type: Type, keys: tuple[tuple[Scalar, int], ...]) -> Iterator[Place]:
        match type:
            case MapType():
                for i in range(self.instance.positions(type.key)):
                    yield from self._places(variable, type.value, (*keys, (type.key, i)))
            case SeqType():
                yield Place(variable, keys, 0, type.index, 0, self.longest(type))
                for i in range(self.longest(type)):
                    yield Place(variable, keys, 1 + i, type.of, *self.range(type.of))
            case _:
                yield Place(variable, keys, 0, type, *self.range(type))

    # between tuples of Python values (isr_lang.types) and words

    def pack(self, state: tuple[object, ...]) -> tuple[int, ...]:
        """The words of a state; AssertionError if a value does not fit its cell."""
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


def _place(place: Place, bit_counts: list[int], word: int | None = None) -> Cell:
    """Allocate a cell in the word, if None in the first with room; `bit_counts`: the taken bits of each."""
    width = place.width
    if width > WIDEST:
        raise TooWide(f"a value of {width} bits does not fit a cell of {WIDEST}")
    if width == 0:
        return Cell(0, 0, 0, place.low, place.high)
    if word is None:
        word = next((w for w, bits in enumerate(bit_counts) if bits + width <= 64), len(bit_counts))
    if word == len(bit_counts):
        bit_counts.append(0)
    bit_counts[word] += width
    return Cell(word, bit_counts[word] - width, width, place.low, place.high)
