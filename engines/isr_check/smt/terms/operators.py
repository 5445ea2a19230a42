"""The operators of the language as terms of the solver: the table `MEANING`, one function per operator.

A function takes the shapes, the node and the values of its arguments. Operators that bind a variable or read a scope
are methods of `Translation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Truth, Whole, all_of, and_, any_of, at_most, less, not_, or_
from isr_check.smt.terms.shapes import WRITTEN_OUT, Shapes
from isr_check.smt.terms.values import (
    Items,
    Members,
    NotTranslatable,
    Option,
    Pick,
    Table,
    Value,
    is_at,
    pick,
    with_memory,
)
from isr_lang import Node
from isr_lang.types import ChoiceType, MapType, MaybeType, NumberType, Scalar, SeqType, SetType, SortType

Meaning = Callable[[Shapes, Node, tuple[Value, ...]], Value]


def _truths(operator: Callable[..., Truth]) -> Meaning:
    return lambda _s, _n, args: operator(*cast("tuple[Truth, ...]", args))


def _numbers(operator: Callable[[Whole, Whole], Value]) -> Meaning:
    return lambda _s, _n, args: operator(cast("Whole", args[0]), cast("Whole", args[1]))


def _when(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    return s.choose(n.type, cast("Truth", args[0]), args[1], args[2])


def _equal(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    return s.same(n.args[0].type, args[0], args[1])


def _some(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of = n.args[0].type
    if not isinstance(of, SortType | ChoiceType) or not s.few(of):
        return Option(True, cast("Truth | Whole", args[0]))
    name = cast("int | Pick", args[0])
    return name + 1 if isinstance(name, int) else Pick((False, *name.at))


def _or_else(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of = cast("MaybeType", n.args[0].type).of
    if isinstance(args[0], Option):
        return s.choose(of, args[0].there, args[0].value, args[1])
    maybe = cast("int | Pick", args[0])
    if isinstance(maybe, int):
        return maybe - 1 if maybe else args[1]
    rest = maybe.at[1:]
    other = cast("int | Pick", args[1])
    return pick(tuple(or_(t, and_(maybe.at[0], is_at(other, k))) for k, t in enumerate(rest)))


# sets


def _of(n: Node) -> Scalar:
    return cast("SetType", n.args[0].type).of


def _has(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of, element = _of(n), args[1]
    if isinstance(args[0], Members):
        inside = isinstance(of, SortType) or s.inside(of, cast("Whole", element))
        return and_(inside, args[0].has(cast("Whole", element)))
    members = cast("tuple[Truth, ...]", args[0])
    return any_of(and_(s.is_element(of, element, k), m) for k, m in enumerate(members) if m is not False)


def _with(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of, element = _of(n), args[1]
    if isinstance(args[0], Members):
        before = args[0]
        return Members(lambda x: or_(before.has(x), logic.same_whole(x, cast("Whole", element))))
    return tuple(or_(m, s.is_element(of, element, k)) for k, m in enumerate(cast("tuple[Truth, ...]", args[0])))


def _without(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of, element = _of(n), args[1]
    if isinstance(args[0], Members):
        before = args[0]
        return Members(lambda x: and_(before.has(x), not_(logic.same_whole(x, cast("Whole", element)))), before.below)
    members = cast("tuple[Truth, ...]", args[0])
    return tuple(and_(m, not_(s.is_element(of, element, k))) for k, m in enumerate(members))


def _pointwise(operator: Callable[[Truth, Truth], Truth]) -> Meaning:
    def meaning(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
        a, b = args
        if isinstance(a, Members) and isinstance(b, Members):
            return Members(lambda x: operator(a.has(x), b.has(x)))
        pairs = zip(cast("tuple[Truth, ...]", a), cast("tuple[Truth, ...]", b), strict=True)
        return tuple(operator(x, y) for x, y in pairs)

    return meaning


def _subset(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    a, b = args
    if isinstance(a, Members) and isinstance(b, Members):
        return s.every_number(_of(n), lambda x: logic.implies(a.has(x), b.has(x)))
    pairs = zip(cast("tuple[Truth, ...]", a), cast("tuple[Truth, ...]", b), strict=True)
    return all_of(logic.implies(x, y) for x, y in pairs)


def _size(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of = _of(n)
    if isinstance(of, SortType) and isinstance(args[0], Members) and not can_be_written_out(s, of, args[0]):
        return s.sizes.of(of, args[0])
    return logic.how_many(m for _, m in candidates(s, _of(n), args[0]))


def candidates(s: Shapes, of: Scalar, members: Value) -> list[tuple[Value, Truth]]:
    """Every value that can be in a set, and whether it is in it; NotTranslatable if there is no limit to them."""
    if not isinstance(members, Members):
        return list(zip(s.elements(of), cast("tuple[Truth, ...]", members), strict=True))
    low = s.bounds(of)[0]
    if not isinstance(members.below, int):
        raise NotTranslatable(f"how many {of} there are in a set cannot be counted without a bound")
    return [(x, and_(s.inside(of, x), members.has(x))) for x in range(low, members.below)]


def can_be_written_out(s: Shapes, of: Scalar, members: Value) -> bool:
    if not isinstance(members, Members):
        return True
    return isinstance(members.below, int) and members.below - s.bounds(of)[0] <= WRITTEN_OUT


def every(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of = cast("SetType", n.type).of
    size = s.size(of)
    if size is not None:
        return (True,) * size
    members = Members(lambda _: True)
    s.sizes.register_size(members, lambda: logic.plus(s.bounds(of)[1], 1))
    return members


def _below(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    of, end = cast("SetType", n.type).of, cast("Whole", args[0])
    if s.size(of) is None:
        return Members(lambda x: True if s.is_below(x, end) else less(x, end), end)
    return tuple(less(cast("Whole", e), end) for e in s.elements(of))


# maps


def _get(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    t, at = cast("MapType", n.args[0].type), args[1]
    return look_up(s, t, args[0], at)


def look_up(s: Shapes, t: MapType, m: Value, at: Value) -> Value:
    first = s.first(t.value)
    if isinstance(m, Table):
        x = cast("Whole", at)
        there = isinstance(t.key, SortType) or s.ranges_over(x, t.key) or s.inside(t.key, x)
        return s.choose(t.value, there, m.at(x), first)
    values = cast("tuple[Value, ...]", m)
    if isinstance(t.key, NumberType):
        return s.nth(t.value, values, logic.minus(cast("Whole", at), t.key.low))
    found = values[-1] if values else first
    for k in reversed(range(len(values) - 1)):
        found = s.choose(t.value, s.is_element(t.key, at, k), values[k], found)
    return found


def put(s: Shapes, t: MapType, m: Value, at: Value, value: Value) -> Value:
    """The map with another value at one key; the same map if it does not have the key."""
    if isinstance(m, Table):
        x = cast("Whole", at)
        return Table(with_memory(lambda y: s.choose(t.value, logic.same_whole(x, y), value, m.at(y))))
    return tuple(
        s.choose(t.value, s.is_element(t.key, at, k), value, old) for k, old in enumerate(cast("tuple[Value, ...]", m))
    )


def _put(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    return put(s, cast("MapType", n.type), args[0], args[1], args[2])


# sequences


def _at(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    t, items, i = cast("SeqType", n.args[0].type), cast("Items", args[0]), cast("Whole", args[1])
    if s.is_below(i, items.length):
        return s.item(t, items, i)
    within = and_(at_most(0, i), less(i, items.length))
    return s.first(t.of) if within is False else s.choose(t.of, within, s.item(t, items, i), s.first(t.of))


def _append(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    t, before, last = cast("SeqType", n.type), cast("Items", args[0]), args[1]
    length, end = logic.plus(before.length, 1), before.length
    if not isinstance(length, int):
        s.appended[logic.identity(length)] = length, end
    if not callable(before.items):
        kept = before.items[: before.capacity]
        changed = (s.choose(t.of, logic.same_whole(end, k), last, x) for k, x in enumerate(kept))
        return Items(length, (*changed, last))

    def item(i: Whole) -> Value:
        if s.is_below(i, end):
            return s.item(t, before, i)
        return s.choose(t.of, logic.same_whole(i, end), last, s.item(t, before, i))

    return Items(length, with_memory(item))


def _take(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    items, count = cast("Items", args[0]), cast("Whole", args[1])
    count = logic.if_whole(at_most(0, count), count, 0)
    return Items(logic.if_whole(at_most(count, items.length), count, items.length), items.items)


def _prefix(s: Shapes, n: Node, args: tuple[Value, ...]) -> Value:
    a, b = cast("Items", args[0]), cast("Items", args[1])
    return and_(at_most(a.length, b.length), s.agree(cast("SeqType", n.args[0].type), a, b))


MEANING: dict[str, Meaning] = {
    "not": _truths(not_),
    "and": _truths(and_),
    "or": _truths(or_),
    "implies": _truths(logic.implies),
    "when": _when,
    "equal": _equal,
    "less": _numbers(less),
    "at_most": _numbers(at_most),
    "plus": _numbers(logic.plus),
    "minus": _numbers(logic.minus),
    "some": _some,
    "or_else": _or_else,
    "has": _has,
    "with": _with,
    "without": _without,
    "union": _pointwise(or_),
    "intersection": _pointwise(and_),
    "difference": _pointwise(lambda a, b: and_(a, not_(b))),
    "subset": _subset,
    "size": _size,
    "get": _get,
    "put": _put,
    "length": lambda _s, _n, args: cast("Items", args[0]).length,
    "at": _at,
    "append": _append,
    "take": _take,
    "prefix": _prefix,
    "every": every,
    "below": _below,
}
