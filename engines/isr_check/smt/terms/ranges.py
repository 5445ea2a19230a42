"""The range of a type: formulas that are true of each of its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Truth, Whole, all_of, and_, any_of, at_most, or_
from isr_check.smt.terms.shapes import Shapes
from isr_check.smt.terms.values import Items, Option, Pick, Table, Value
from isr_lang.types import BoolType, ChoiceType, MapType, MaybeType, NumberType, SeqType, SetType, SortType, Type


def typed(s: Shapes, type: Type, value: Value) -> Iterator[Truth]:
    """The formulas that say that a value is in the range of its type.

    An open bound limits the lengths of sequences and the elements of sorts, but no number.
    """
    match type:
        case BoolType():
            pass
        case SortType() | ChoiceType() if s.few(type):
            yield one_name(cast("int | Pick", value))
        case NumberType() | SortType() | ChoiceType():
            low, high = s.bounds(type)
            number = cast("Whole", value)
            yield at_most(low, number)
            if isinstance(high, int) or isinstance(type, SortType):
                yield at_most(number, high)
        case MaybeType():
            if isinstance(value, Option):
                yield or_(logic.not_(value.there), all_of(typed(s, type.of, value.value)))
            else:
                yield one_name(cast("int | Pick", value))
        case SetType():
            pass
        case MapType():
            if isinstance(value, Table):
                yield s.every_number(type.key, lambda x: all_of(typed(s, type.value, value.at(x))))
            else:
                for part in cast("tuple[Value, ...]", value):
                    yield from typed(s, type.value, part)
        case SeqType():
            yield from _items(s, type, cast("Items", value))


def _items(s: Shapes, type: SeqType, value: Items) -> Iterator[Truth]:
    yield s.inside(type.index, value.length)
    if value.capacity is not None and not callable(value.items):
        for k, x in enumerate(value.items[: value.capacity]):
            yield or_(at_most(value.length, k), all_of(typed(s, type.of, x)))
    else:
        yield s.every_below(value.length, lambda i: all_of(typed(s, type.of, s.item(type, value, i))))


def one_name(name: int | Pick) -> Truth:
    """Exactly one of the truths of a Pick holds."""
    if isinstance(name, int):
        return True
    return and_(any_of(name.at), logic.same_whole(logic.how_many(name.at), 1)) if len(name.at) > 2 else True
