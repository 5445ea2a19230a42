"""The values of the language over z3 terms: Python objects whose smallest parts are truths and whole numbers.

Bool      a truth
number    a whole number
sort      an int, or a Pick: one truth per element, exactly one of which holds
choice    the same of its members
maybe     of a sort or choice: like it with 'none' in front; else an Option
set       a tuple of truths, one per element; of numbers without end, Members
map       a tuple of values, one per key; from numbers without end, a Table
seq       an Items: a length and its items, a tuple or, of unbounded length, a function of the position
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from isr_check.smt.terms.logic import Truth, Whole, all_of, identity, same_truth


class NotTranslatable(ValueError):
    """An expression that cannot be translated while a bound is open: one sentence says which."""


@attrs.frozen(eq=False)
class Pick:
    """One of a few names; at[k] says whether it is the name at position k."""

    at: tuple[Truth, ...]


@attrs.frozen(eq=False)
class Option:
    there: Truth
    value: Truth | Whole


@attrs.frozen(eq=False)
class Members:
    """A set of numbers, known by its test `has`, which is asked of numbers in range only; all are less than `below`."""

    has: Callable[[Whole], Truth]
    below: Whole | None = None


@attrs.frozen(eq=False)
class Table:
    """A map from numbers, known by its function `at`, which is asked of numbers in range only."""

    at: Callable[[Whole], Value]


@attrs.frozen(eq=False)
class Items:
    """A sequence; items beyond the length mean nothing."""

    length: Whole
    items: tuple[Value, ...] | Callable[[Whole], Value]

    @property
    def capacity(self) -> int | None:
        """The greatest length that this sequence can have; None if unknown."""
        if isinstance(self.length, int):
            return self.length
        return None if callable(self.items) else len(self.items)


Value = Truth | Whole | Pick | Option | Members | Table | Items | tuple["Value", ...]
Key = object


def key(value: Value) -> Key:
    """A key for dictionaries: values with equal keys are equal. It is valid while the value is alive."""
    if isinstance(value, bool | int):
        return value
    if isinstance(value, tuple):
        return tuple(map(key, value))
    if isinstance(value, Pick):
        return tuple(map(key, value.at))
    if isinstance(value, Option | Members | Table | Items):
        return ("object", id(value))
    return ("term", identity(value))


def with_memory(function: Callable[[Whole], Value]) -> Callable[[Whole], Value]:
    """The same function with a memory, so that it computes each answer once."""
    answers: dict[Key, tuple[Whole, Value]] = {}

    def answer(x: Whole) -> Value:
        k = key(x)
        if k not in answers:
            answers[k] = x, function(x)
        return answers[k][1]

    return answer


def pick(truths: tuple[Truth, ...]) -> int | Pick:
    """A name from its truths: an int if it is known, else a Pick."""
    return truths.index(True) if True in truths else Pick(truths)


def is_at(name: int | Pick, position: int) -> Truth:
    """Whether a name is the one at this position."""
    if isinstance(name, int):
        return name == position
    return name.at[position] if 0 <= position < len(name.at) else False


def same_name(a: int | Pick, b: int | Pick) -> Truth:
    if isinstance(a, int):
        return is_at(b, a)
    if isinstance(b, int):
        return is_at(a, b)
    if key(a) == key(b):
        return True
    return all_of(same_truth(x, y) for x, y in zip(a.at, b.at, strict=True))
