"""The values of expressions while a function is written: numbers, bits, and maps and sequences as functions.

A map or a sequence is never built. Its value is a Python function that writes the code for the item at a position. So
`m.put(k, v)[j]` becomes a choice between v and m[j], and reading an item of a variable becomes one load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs

from isr_check.native.assembly import Bit, Code, Int
from isr_check.native.layout import Layout
from isr_lang import Instance
from isr_lang.types import BoolType, MapType, MaybeType, Scalar, SeqType, SetType, Type


@attrs.frozen
class Items:
    """A map; `at` gives the value at a position 0..size-1."""

    at: Callable[[Int], Value]


@attrs.frozen
class Row:
    """A sequence; `at` gives the item at a position 0..longest-1. At `length` and beyond it gives any value."""

    length: Int
    longest: int
    at: Callable[[Int], Int | Bit]


Value = Int | Bit | Items | Row


def stored_value(code: Code, layout: Layout, pointer: str, type: Type, cell: Int) -> Value:
    """The value of a type whose cells begin at number `cell` of the array at the pointer."""
    match type:
        case MapType():
            step = layout.size(type.value)
            begin: Callable[[Int], Int] = lambda i: code.add(cell, code.mul(i, step))  # noqa: E731
            return Items(lambda i: stored_value(code, layout, pointer, type.value, begin(i)))
        case SeqType():
            longest = layout.longest(type)

            def item(position: Int) -> Int | Bit:
                inside = within(code, position, longest)
                found = stored_value(code, layout, pointer, type.of, code.add(cell, code.add(inside, 1)))
                return cast("Int | Bit", found)

            length = scalar(stored_value(code, layout, pointer, type.index, cell))
            return Row(length, longest, item if longest else lambda _: default(layout.instance, type.of))
        case BoolType():
            return code.truth(code.peek(pointer, cell))
        case _:
            return code.peek(pointer, cell)


def within(code: Code, position: Int, size: int) -> Int:
    """The position if it is below the size, else one that is safe to read."""
    if isinstance(position, int):
        return position if 0 <= position < size else 0
    return 0 if size == 1 else code.select(code.below(position, size), position, 0)


def default(instance: Instance, type: Scalar) -> Int | Bit:
    return cast("Int | Bit", instance.first(type))


def constant(code: Code, value: object, type: Type) -> Value:
    """A constant, given as a Python value (isr_lang.types)."""
    match type:
        case MapType():
            parts = [constant(code, v, type.value) for v in cast("tuple[object, ...]", value)]
            same = len(set(cast("tuple[object, ...]", value))) == 1
            return Items(lambda i: parts[0] if same else pick(code, i, parts, type.value))
        case SeqType():
            items = [constant(code, v, type.of) for v in cast("tuple[object, ...]", value)]
            items = items or [constant(code, 0, type.of)]
            length = len(cast("tuple[object, ...]", value))
            return Row(length, length, lambda i: bare(pick(code, i, items, type.of)))
        case BoolType():
            return bool(value)
        case _:
            return cast("int", value)


def pick(code: Code, position: Int, parts: list[Value], type: Type) -> Value:
    """The part at the position; the first part if the position is out of range."""
    if isinstance(position, int):
        return parts[position] if 0 <= position < len(parts) else parts[0]
    result = parts[0]
    for i, part in enumerate(parts[1:], 1):
        result = choose(code, code.equal(position, i), part, result, type)
    return result


def choose(code: Code, condition: Bit, a: Value, b: Value, type: Type) -> Value:
    """a if the condition holds, else b."""
    if isinstance(condition, bool):
        return a if condition else b
    match type:
        case MapType():
            m, n = cast("Items", a), cast("Items", b)
            return Items(lambda i: choose(code, condition, m.at(i), n.at(i), type.value))
        case SeqType():
            s, t = cast("Row", a), cast("Row", b)
            longest = max(s.longest, t.longest)
            length = code.select(condition, s.length, t.length)
            return Row(length, longest, lambda i: bare(choose(code, condition, s.at(i), t.at(i), type.of)))
        case BoolType():
            return code.select_bit(condition, bit(a), bit(b))
        case _:
            return code.select(condition, scalar(a), scalar(b))


def equal(code: Code, instance: Instance, a: Value, b: Value, type: Type) -> Bit:
    match type:
        case MapType():
            m, n = cast("Items", a), cast("Items", b)
            result: Bit = True
            for i in range(instance.positions(type.key)):
                result = code.both(result, equal(code, instance, m.at(i), n.at(i), type.value))
            return result
        case SeqType():
            s, t = cast("Row", a), cast("Row", b)
            return code.both(code.equal(s.length, t.length), begins(code, instance, s, t, type))
        case BoolType():
            return code.same(bit(a), bit(b))
        case _:
            return code.equal(scalar(a), scalar(b))


def begins(code: Code, instance: Instance, s: Row, t: Row, type: SeqType) -> Bit:
    """Whether the sequence t begins with the items of s; t must be known to be as long as s at least."""
    result: Bit = True
    for i in range(min(s.longest, t.longest)):
        same = equal(code, instance, s.at(i), t.at(i), type.of)
        result = code.both(result, code.either(code.at_most(s.length, i), same))
    return result


def scalar(value: Value) -> Int:
    assert isinstance(value, int | str)
    return value


def bit(value: Value) -> Bit:
    assert isinstance(value, bool | str)
    return value


def bare(value: Value) -> Int | Bit:
    assert isinstance(value, int | str)
    return value


def as_number(code: Code, value: Value, type: Type) -> Int:
    """A scalar, set or maybe as the number that a cell holds."""
    return code.number(bit(value)) if isinstance(type, BoolType) else scalar(value)


def from_number(code: Code, value: Int, type: Type) -> Int | Bit:
    return code.truth(value) if isinstance(type, BoolType) else value


def is_plain(type: Type) -> bool:
    """Whether a value of the type is one number."""
    return isinstance(type, BoolType | MaybeType | SetType) or not isinstance(type, MapType | SeqType)
