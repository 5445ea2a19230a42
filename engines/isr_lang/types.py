"""The types a variable can have: every one finite once the bounds are fixed.

A type describes the *values* that the engines compute with:

    Bool      False, True
    number    an int in low..high
    sort      an int in 0..size-1, names that have no order; symmetric if renaming them changes nothing
    choice    an int, the position of the member's name
    maybe     0 for none, otherwise 1 + the position of the value in its own type; a number below its range, of
              which the position is negative, is that position itself (maybe_of, position_in)
    set       an int, bit i set when the element at position i is a member
    map       a tuple, one value per key, in the order of the key's type
    seq       a tuple, at most as long as the number type of its index has positions

Two types are equal when their declarations are, to the last word: models that use one name for different
things can live in one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from isr_lang.nodes import Node


@attrs.frozen(cache_hash=True)
class BoolType:
    def __str__(self) -> str:
        return "Bool"


@attrs.frozen(cache_hash=True)
class NumberType:
    """low..high, both expressions over the bounds; `high` is None for the unbounded `Count`."""

    name: str
    low: int = 0
    high: Node | None = None
    doc: str = ""

    def __str__(self) -> str:
        return self.name


@attrs.frozen(cache_hash=True)
class SortType:
    name: str
    size: Node
    symmetric: bool
    prefix: str
    doc: str = ""

    def __str__(self) -> str:
        return self.name


@attrs.frozen(cache_hash=True)
class ChoiceType:
    name: str
    members: tuple[str, ...]
    doc: str = ""

    def __str__(self) -> str:
        return self.name


Scalar = BoolType | NumberType | SortType | ChoiceType


@attrs.frozen(cache_hash=True)
class MaybeType:
    of: Scalar

    def __str__(self) -> str:
        return f"Maybe[{self.of}]"


@attrs.frozen(cache_hash=True)
class SetType:
    of: Scalar

    def __str__(self) -> str:
        return f"Set[{self.of}]"


@attrs.frozen(cache_hash=True)
class MapType:
    key: Scalar
    value: Type

    def __str__(self) -> str:
        return f"Map[{self.key}, {self.value}]"


@attrs.frozen(cache_hash=True)
class SeqType:
    """Positions are 0-based; the longest sequence has as many items as the index type's `high`."""

    index: NumberType
    of: Scalar

    def __str__(self) -> str:
        return f"Seq[{self.index}, {self.of}]"


Type = BoolType | NumberType | SortType | ChoiceType | MaybeType | SetType | MapType | SeqType


def maybe_of(position: int) -> int:
    """The number of a maybe that holds the value at this position. No two positions share one, and none has 0."""
    return position + 1 if position >= 0 else position


def position_in(maybe: int) -> int:
    """The position of the value that a maybe holds, by its number, which is not 0."""
    return maybe - 1 if maybe > 0 else maybe


BOOL = BoolType()
COUNT = NumberType("Count")
