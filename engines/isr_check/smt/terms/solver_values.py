"""Reads values of the language from a state that the solver has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from isr_check.smt.terms.logic import Truth, Whole
from isr_check.smt.terms.shapes import Shapes
from isr_check.smt.terms.values import Items, Members, Option, Pick, Table, Value
from isr_lang.types import BoolType, MapType, MaybeType, NumberType, Scalar, SeqType, SetType, Type, maybe_of

Ask = Callable[[Truth | Whole], bool | int]

LARGEST = 64
"""A state with larger numbers is not shown."""


class TooLarge(ValueError):
    """The state that was found has numbers above LARGEST, so a person could not read it."""


class Reader:
    """Reads values; `ask` gives the value of a term in the state that was found."""

    def __init__(self, shapes: Shapes, ask: Ask) -> None:
        self.shapes, self.ask = shapes, ask

    def read(self, type: Type, value: Value) -> object:
        """The value in the representation of its type (isr_lang.types)."""
        match type:
            case MaybeType():
                if isinstance(value, Option):
                    return maybe_of(self.position(type.of, value.value)) if self.ask(value.there) else 0
                return self._name(cast("int | Pick", value))
            case SetType():
                return sum(1 << k for k, x in enumerate(self.positions(type.of)) if self._has(value, k, x))
            case MapType():
                if isinstance(value, Table):
                    return tuple(self.read(type.value, value.at(x)) for x in self.positions(type.key))
                return tuple(self.read(type.value, v) for v in cast("tuple[Value, ...]", value))
            case SeqType():
                s = cast("Items", value)
                length = self._small(s.length)
                return tuple(self.read(type.of, self.shapes.item(type, s, i)) for i in range(length))
            case _:
                return self._scalar(type, value)

    def parameter(self, type: object, value: Value) -> int:
        """The value of a parameter, a scalar or a set."""
        return int(cast("int", self.read(cast("Type", type), value)))

    def position(self, of: Scalar, value: Value) -> int:
        return cast("int", self._scalar(of, value)) - self.shapes.bounds(of)[0]

    def positions(self, of: Scalar) -> range:
        low, high = self.shapes.bounds(of)
        return range(low, self._small(high) + 1)

    def _scalar(self, type: Type, value: Value) -> object:
        match type:
            case BoolType():
                return bool(self.ask(cast("Truth", value)))
            case NumberType():
                return self._small(cast("Whole", value))
            case _ if not isinstance(value, int | Pick):
                return self._small(cast("Whole", value))
            case _:
                return self._name(value)

    def _name(self, name: int | Pick) -> int:
        if isinstance(name, int):
            return name
        return next((k for k, t in enumerate(name.at) if self.ask(t)), 0)

    def _has(self, value: Value, position: int, x: int) -> bool:
        if isinstance(value, Members):
            return bool(self.ask(value.has(x)))
        return bool(self.ask(cast("tuple[Truth, ...]", value)[position]))

    def _small(self, value: Whole) -> int:
        found = int(self.ask(value))
        if not -LARGEST <= found <= LARGEST:
            raise TooLarge(f"a number of the state is {found}")
        return found

    def state(self, types: Mapping[str, Type], state: Mapping[str, Value]) -> dict[str, object]:
        return {name: self.read(type, state[name]) for name, type in types.items()}
