"""Packed states as columns that people can ask about: one per variable, with the names that the model has for things.

Bool      boolean             Set    array of its elements
number    int                 Seq    array of its items
sort      its name: r1        Map    map from each key (as text) to its value
choice    its name, small     Maybe  null for none
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isr_check.native.layout import Layout
from isr_check.native.memory import Numbers, Words
from isr_lang.printing import first, show
from isr_lang.types import BoolType, MapType, MaybeType, NumberType, Scalar, SeqType, SetType, Type

Column = object
"""An Arrow array."""
_array = cast("Callable[..., Column]", pa.array)
_dictionary = cast("Callable[..., Column]", vars(pa.DictionaryArray)["from_arrays"].__get__(None, pa.DictionaryArray))
_list = cast("Callable[..., Column]", vars(pa.ListArray)["from_arrays"].__get__(None, pa.ListArray))
_map = cast("Callable[..., Column]", vars(pa.MapArray)["from_arrays"].__get__(None, pa.MapArray))


class Decoder:
    """Of states with one layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.instance = layout, layout.instance

    def columns(self, states: Words) -> dict[str, Column]:
        """By the names of the variables."""
        return {v.name: self._column(states, v.type, [self.layout.offset[v.name]]) for v in self.instance.variables}

    def _cells(self, states: Words, cells: Sequence[int]) -> Numbers:
        """The values of these cells, one row for each state."""
        table = np.empty((len(states), len(cells)), dtype=np.int64)
        for i, number in enumerate(cells):
            cell = self.layout.cells[number]
            bits = states[:, cell.word] >> np.uint64(cell.shift) & np.uint64(cell.mask)
            table[:, i] = bits.astype(np.int64) + cell.low
        return table

    def _column(self, states: Words, type: Type, at: Sequence[int]) -> Column:
        """Values of the type that begin at these cells, all of a state's before the next state's."""
        match type:
            case MapType():
                size, step = self.instance.positions(type.key), self.layout.size(type.value)
                items = self._column(states, type.value, [cell + i * step for cell in at for i in range(size)])
                keys = _tiled([show(i + first(type.key), type.key) for i in range(size)], len(states) * len(at))
                return _map(_offsets(np.full(len(states) * len(at), size, dtype=np.int64)), keys, items)
            case SeqType():
                lengths = self._cells(states, at).ravel()
                longest = self.layout.longest(type)
                inside = self._cells(states, [cell + 1 + i for cell in at for i in range(longest)])
                rows = inside.reshape(-1, longest) if longest else inside.reshape(len(lengths), 0)
                there = np.arange(longest) < lengths[:, None]
                return _list(_offsets(lengths), self._scalars(rows[there], type.of))
            case SetType():
                sets = self._cells(states, at).ravel()
                members = sets[:, None] >> np.arange(self.instance.positions(type.of)) & 1
                _, positions = members.nonzero()
                return _list(_offsets(members.sum(axis=1)), self._scalars(positions + first(type.of), type.of))
            case MaybeType():
                values = self._cells(states, at).ravel()
                return self._scalars(values - 1 + first(type.of), type.of, none=values == 0)
            case _:
                return self._scalars(self._cells(states, at).ravel(), type)

    def _scalars(self, values: Numbers, type: Scalar, none: NDArray[np.bool_] | None = None) -> Column:
        match type:
            case BoolType():
                return _array(values != 0, mask=none)
            case NumberType():
                return _array(values.astype(np.int32), mask=none)
            case _:
                names = [show(i, type) for i in range(self.instance.positions(type))]
                known = np.where(none, 0, values) if none is not None else values
                return _dictionary(_array(known.astype(np.int32), mask=none), _array(names, pa.string()))


def _offsets(lengths: Numbers) -> Column:
    return _array(np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]).astype(np.int32))


def _tiled(names: Sequence[str], times: int) -> Column:
    return _array(list(names) * times, pa.string())


def chosen(names: Sequence[str], numbers: Numbers) -> Column:
    """The name that each number stands for."""
    return _dictionary(_array(numbers.astype(np.int32)), _array(list(names), pa.string()))
