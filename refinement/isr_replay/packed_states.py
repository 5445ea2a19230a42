"""States of the model as integers, as sums of what each part of a system contributes.

The integer has the bits of the native layout (`isr_check.native.layout`). A part of the system contributes the cells of
the variables that it decides, so the abstraction of the whole system is a sum, and that of a part is computed once.
"""

from __future__ import annotations

from typing import cast

from isr_check.native.layout import Layout
from isr_lang import Instance
from isr_lang.types import BoolType, MapType, SeqType, Type

WORD = 64


class OutOfRange(ValueError):
    """A core holds a value that is out of the range of the model's variable; the message says which."""


class Packing:
    """The place of each cell of each variable in the integer."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.layout = Layout(instance)
        self.types = {v.name: v.type for v in instance.variables}

    def part(self, variable: str, value: object, *keys: int) -> int:
        """The contribution of a variable at some keys; 0 if the settings switch the variable off."""
        if variable not in self.types:
            return 0
        type, cell = self.types[variable], self.layout.offset[variable]
        for key in keys:
            assert isinstance(type, MapType)
            cell, type = cell + key * self.layout.size(type.value), type.value
        bits = 0
        for i, number in enumerate(self._cell_values(type, value)):
            place = self.layout.cells[cell + i]
            if not place.low <= number <= place.high:
                raise OutOfRange(f"{variable}{list(keys) if keys else ''} would be {value}")
            bits += number - place.low << WORD * place.word + place.shift
        return bits

    def mask(self, variable: str) -> int:
        """The bits that hold the values of a variable."""
        first = self.layout.offset[variable]
        cells = self.layout.cells[first : first + self.layout.size(self.types[variable])]
        return sum(cell.mask << WORD * cell.word + cell.shift for cell in cells)

    def member(self, variable: str, element: int) -> int:
        """The contribution of one element to a variable that is a set."""
        return self.part(variable, 1 << element)

    def _cell_values(self, type: Type, value: object) -> list[int]:
        match type:
            case MapType():
                parts = cast("tuple[object, ...]", value)
                return [number for part in parts for number in self._cell_values(type.value, part)]
            case SeqType():
                items = cast("tuple[int, ...]", value)
                longest = self.layout.longest(type)
                if len(items) > longest:
                    raise OutOfRange(f"a sequence of {len(items)} items, at most {longest} fit")
                return [len(items), *items, *[self.layout.range(type.of)[0]] * (longest - len(items))]
            case BoolType() | _:
                return [int(cast("int", value))]

    def packed(self, state: tuple[object, ...]) -> int:
        """A state of the reference evaluator as an integer."""
        return self.of_words(self.layout.pack(state))

    def of_words(self, words: tuple[int, ...]) -> int:
        """The words of a packed state as one integer."""
        return sum(word << WORD * i for i, word in enumerate(words))

    def unpack(self, bits: int) -> tuple[object, ...]:
        """The state of the reference evaluator that the integer holds."""
        mask = (1 << WORD) - 1
        return self.layout.unpack(tuple(bits >> WORD * i & mask for i in range(self.layout.words)))
