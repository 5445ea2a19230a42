"""The types of a design under constants, some of which may be left open, and the operations that all operators share.

A type is finite when its bounds are known. A quantifier over a finite type is written out; one over another type
becomes a quantifier of the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Term, Truth, Whole, all_of, and_, any_of, at_most, less, or_
from isr_check.smt.terms.sizes import Sizes
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
    same_name,
    with_memory,
)
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
    position_in,
)

WRITTEN_ELEMENTS = 5
"""How many elements are written out of a sort that has any number of them."""
OF_MANY = "[]"
"""A part of a function's name: once for each argument that is an element of a sort with any number of elements."""
WRITTEN_OUT = 8
"""The most numbers in a range that is written out although its type has no end."""


class Shapes:
    """The operations on values that need their types only: symbols, choice, equality, quantifiers."""

    def __init__(self, number: Callable[[object], Whole]) -> None:
        self._number = number
        self._bounds: dict[Scalar, tuple[int, Whole]] = {}
        self._fresh = 0
        self.sizes = Sizes(self)
        self.bound: dict[int, Term] = {}
        """Every variable that a quantifier of the solver binds."""
        self.below: dict[int, list[Whole]] = {}
        """Bound variable -> limits that it is known to be below, wherever its value matters."""
        self.ranging: dict[int, Scalar] = {}
        """Bound variable or parameter -> a type in whose range it is known to be, wherever its value matters."""
        self.appended: dict[int, tuple[Term, Whole]] = {}
        """Length of a sequence made by `append` -> that length, and the length without the last item."""

    # types

    def bounds(self, type: Scalar) -> tuple[int, Whole]:
        if type not in self._bounds:
            match type:
                case BoolType():
                    self._bounds[type] = 0, 1
                case NumberType():
                    if type.high is None:
                        raise NotTranslatable(f"{type} has no bounds; nothing ranges over it")
                    self._bounds[type] = type.low, self._number(type.high)
                case SortType():
                    self._bounds[type] = 0, logic.minus(self._number(type.size), 1)
                case ChoiceType():
                    self._bounds[type] = 0, len(type.members) - 1
        return self._bounds[type]

    def size(self, type: Scalar) -> int | None:
        """The number of values of a scalar type; None if a bound is left open."""
        low, high = self.bounds(type)
        return max(0, high - low + 1) if isinstance(high, int) else None

    def elements(self, type: Scalar) -> list[Value]:
        """The values of a finite scalar type, in order."""
        size, low = self.size(type), self.bounds(type)[0]
        assert size is not None
        if isinstance(type, BoolType):
            return [False, True]
        return [low + k for k in range(size)]

    def few(self, type: Scalar) -> bool:
        """Whether a value of the type is a Pick: one truth for each name."""
        return isinstance(type, SortType | ChoiceType) and self.size(type) is not None

    def inside(self, type: Scalar, x: Whole) -> Truth:
        low, high = self.bounds(type)
        return and_(at_most(low, x), at_most(x, high))

    def is_element(self, type: Scalar, value: Value, position: int) -> Truth:
        """Whether a value is the one at this position of its type."""
        if isinstance(type, BoolType):
            return cast("Truth", value) if position else logic.not_(cast("Truth", value))
        if isinstance(type, NumberType):
            return logic.same_whole(cast("Whole", value), type.low + position)
        return is_at(cast("int | Pick", value), position)

    def first(self, type: Type) -> Value:
        """The first value of a type: the answer of operators out of range."""
        match type:
            case BoolType():
                return False
            case SortType() | ChoiceType():
                return 0
            case NumberType():
                return type.low
            case MaybeType():
                return self.lift(type, 0)
            case SetType():
                return self.lift(type, 0)
            case SeqType():
                return Items(0, ())
            case MapType():
                first, size = self.first(type.value), self.size(type.key)
                return Table(lambda _: first) if size is None else (first,) * size

    def lift(self, type: Type, value: object) -> Value:
        """A Python value (isr_lang.types) as a value of terms (`values`)."""
        match type:
            case BoolType():
                return bool(value)
            case NumberType() | SortType() | ChoiceType():
                return cast("int", value)
            case MaybeType():
                return self._lift_maybe(type.of, cast("int", value))
            case SetType():
                size, low, mask = self.size(type.of), self.bounds(type.of)[0], cast("int", value)
                if size is not None:
                    return tuple(mask >> k & 1 == 1 for k in range(size))
                numbers = [low + k for k in range(mask.bit_length()) if mask >> k & 1]
                end = numbers[-1] + 1 if numbers else low
                return Members(lambda x: any_of(logic.same_whole(x, n) for n in numbers), end)
            case SeqType():
                given = cast("tuple[object, ...]", value)
                return Items(len(given), tuple(self.lift(type.of, v) for v in given))
            case MapType():
                values = tuple(self.lift(type.value, v) for v in cast("tuple[object, ...]", value))
                if self.size(type.key) is not None:
                    return values
                low = self.bounds(type.key)[0]
                return Table(with_memory(lambda x: self.nth(type.value, values, logic.minus(x, low))))

    def _lift_maybe(self, of: Scalar, value: int) -> Value:
        if self.few(of):
            return value
        there, first = value != 0, self.bounds(of)[0]
        of_value = first + position_in(value) if there else first
        return Option(there, bool(of_value) if isinstance(of, BoolType) else of_value)

    # variables of the solver

    def fresh(self, name: str) -> str:
        self._fresh += 1
        return f"{name}!{self._fresh}"

    def bind(self, name: str, *below: Whole) -> Term:
        """A new variable for a quantifier of the solver, which is known to be below these limits."""
        x = logic.int_symbol(self.fresh(name))
        self.bound[logic.identity(x)] = x
        self.below[logic.identity(x)] = list(below)
        return x

    def ranges_over(self, x: Whole, type: Scalar) -> bool:
        """Whether x is known to be in the range of the type wherever its value matters."""
        return not isinstance(x, int) and self.ranging.get(logic.identity(x)) == type

    def is_below(self, x: Whole, limit: Whole) -> bool:
        """Whether x is known to be below the limit wherever its value matters."""
        known = [] if isinstance(x, int) else self.below.get(logic.identity(x), [])
        return any(logic.same_term(k, limit) for k in known)

    def symbol(self, type: Type, name: str, args: tuple[Term, ...] = ()) -> Value:
        """An unknown value of a type; with `args`, an unknown function of them."""
        match type:
            case BoolType():
                return logic.bool_symbol(name, args)
            case SortType() | ChoiceType() if self.few(type):
                return self._pick_symbol(name, self.names(type), args)
            case NumberType() | SortType() | ChoiceType():
                low, high = self.bounds(type)
                return low if high == low and isinstance(high, int) else logic.int_symbol(name, args)
            case MaybeType():
                if isinstance(type.of, SortType | ChoiceType) and self.few(type.of):
                    return self._pick_symbol(name, ("none", *self.names(type.of)), args)
                of = cast("Truth | Whole", self.symbol(type.of, f"{name}.value", args))
                return Option(logic.bool_symbol(f"{name}.there", args), of)
            case SetType():
                size = self.size(type.of)
                if size is None:
                    return self._set_symbol(type.of, name, args)
                return tuple(logic.bool_symbol(f"{name}({e})", args) for e in self.labels(type.of))
            case MapType():
                if self.size(type.key) is None:
                    mark = OF_MANY if isinstance(type.key, SortType) else ""
                    return Table(self._function(type.value, name + mark, args))
                return tuple(self.symbol(type.value, f"{name}[{e}]", args) for e in self.labels(type.key))
            case SeqType():
                length = cast("Whole", self.symbol(type.index, f"#{name}", args))
                longest = self.bounds(type.index)[1]
                if not isinstance(longest, int):
                    return Items(length, self._function(type.of, name, args))
                return Items(length, tuple(self.symbol(type.of, f"{name}[{i}]", args) for i in range(longest)))

    def _set_symbol(self, of: Scalar, name: str, args: tuple[Term, ...]) -> Members:
        many = OF_MANY if isinstance(of, SortType) else ""
        members = Members(cast("Callable[[Whole], Truth]", self._function(BoolType(), name + many, args)))
        if many:
            self.sizes.register_size(members, lambda: logic.int_symbol(f"|{name}|", args))
        return members

    def _function(self, type: Type, name: str, args: tuple[Term, ...]) -> Callable[[Whole], Value]:
        return with_memory(lambda x: self.symbol(type, name, (*args, logic.term(x))))

    def _pick_symbol(self, name: str, names: tuple[str, ...], args: tuple[Term, ...]) -> Value:
        if len(names) == 1:
            return 0
        if len(names) == 2:
            second = logic.bool_symbol(f"{name}={names[1]}", args)
            return Pick((logic.not_(second), second))
        return Pick(tuple(logic.bool_symbol(f"{name}={n}", args) for n in names))

    def names(self, type: SortType | ChoiceType) -> tuple[str, ...]:
        if isinstance(type, ChoiceType):
            return type.members
        return tuple(f"{type.prefix}{k + 1}" for k in range(self.size(type) or 0))

    def labels(self, type: Scalar) -> tuple[str, ...]:
        if isinstance(type, SortType | ChoiceType):
            return self.names(type)
        return tuple(str(e) for e in self.elements(type))

    # operations on values of any type

    def choose(self, type: Type, c: Truth, a: Value, b: Value) -> Value:
        """a if c else b."""
        if isinstance(c, bool):
            return a if c else b
        if a is b:
            return a
        match type:
            case BoolType():
                return logic.if_truth(c, cast("Truth", a), cast("Truth", b))
            case SortType() | ChoiceType() if self.few(type):
                return self._choose_name(self.size(type) or 0, c, a, b)
            case NumberType() | SortType() | ChoiceType():
                return logic.if_whole(c, cast("Whole", a), cast("Whole", b))
            case MaybeType():
                if self.few(type.of):
                    return self._choose_name(1 + (self.size(type.of) or 0), c, a, b)
                x, y = cast("Option", a), cast("Option", b)
                either = y.value if x.there is False else x.value if y.there is False else None
                value = self.choose(type.of, c, x.value, y.value) if either is None else either
                return Option(logic.if_truth(c, x.there, y.there), cast("Truth | Whole", value))
            case SetType():
                if isinstance(a, Members) and isinstance(b, Members):
                    return self._choose_members(type.of, c, a, b)
                return self._each(BoolType(), c, a, b)
            case MapType():
                if isinstance(a, Table) and isinstance(b, Table):
                    return Table(with_memory(lambda x: self.choose(type.value, c, a.at(x), b.at(x))))
                return self._each(type.value, c, a, b)
            case SeqType():
                return self._choose_items(type, c, cast("Items", a), cast("Items", b))

    def _choose_members(self, of: Scalar, c: Truth, a: Members, b: Members) -> Members:
        chosen = Members(lambda x: logic.if_truth(c, a.has(x), b.has(x)))
        if isinstance(of, SortType):
            self.sizes.register_size(chosen, lambda: logic.if_whole(c, self.sizes.of(of, a), self.sizes.of(of, b)))
        return chosen

    def _each(self, type: Type, c: Truth, a: Value, b: Value) -> Value:
        pairs = zip(cast("tuple[Value, ...]", a), cast("tuple[Value, ...]", b), strict=True)
        return tuple(self.choose(type, c, x, y) for x, y in pairs)

    def _choose_name(self, size: int, c: Truth, a: Value, b: Value) -> Value:
        x, y = cast("int | Pick", a), cast("int | Pick", b)
        return pick(tuple(logic.if_truth(c, is_at(x, k), is_at(y, k)) for k in range(size)))

    def _choose_items(self, type: SeqType, c: Truth, a: Items, b: Items) -> Items:
        length = logic.if_whole(c, a.length, b.length)
        if not callable(a.items) and not callable(b.items):
            both, longer = zip(a.items, b.items, strict=False), max(a.items, b.items, key=len)
            shared = tuple(self.choose(type.of, c, x, y) for x, y in both)
            return Items(length, shared + longer[len(shared) :])
        return Items(
            length, with_memory(lambda i: self.choose(type.of, c, self.item(type, a, i), self.item(type, b, i)))
        )

    def item(self, type: SeqType, s: Items, i: Whole) -> Value:
        """The item at a position, which must be below the length; any value elsewhere."""
        return s.items(i) if callable(s.items) else self.nth(type.of, s.items, i)

    def nth(self, type: Type, items: tuple[Value, ...], i: Whole) -> Value:
        """The item of a tuple at a position; beyond the end, the first value of the type."""
        if isinstance(i, int):
            return items[i] if 0 <= i < len(items) else self.first(type)
        found = self.first(type)
        for k in reversed(range(len(items))):
            found = self.choose(type, logic.same_whole(i, k), items[k], found)
        return found

    def same(self, type: Type, a: Value, b: Value) -> Truth:
        """a == b."""
        if a is b:
            return True
        match type:
            case BoolType():
                return logic.same_truth(cast("Truth", a), cast("Truth", b))
            case SortType() | ChoiceType() if self.few(type):
                return same_name(cast("int | Pick", a), cast("int | Pick", b))
            case NumberType() | SortType() | ChoiceType():
                return logic.same_whole(cast("Whole", a), cast("Whole", b))
            case MaybeType():
                if self.few(type.of):
                    return same_name(cast("int | Pick", a), cast("int | Pick", b))
                x, y = cast("Option", a), cast("Option", b)
                alike = or_(logic.not_(x.there), self.same(type.of, x.value, y.value))
                return and_(logic.same_truth(x.there, y.there), alike)
            case SetType():
                if isinstance(a, Members) and isinstance(b, Members):
                    return self.every_number(type.of, lambda x: logic.same_truth(a.has(x), b.has(x)))
                return self._all_same(BoolType(), a, b)
            case MapType():
                if isinstance(a, Table) and isinstance(b, Table):
                    return self.every_number(type.key, lambda x: self.same(type.value, a.at(x), b.at(x)))
                return self._all_same(type.value, a, b)
            case SeqType():
                s, t = cast("Items", a), cast("Items", b)
                return and_(logic.same_whole(s.length, t.length), self.agree(type, s, t))

    def _all_same(self, type: Type, a: Value, b: Value) -> Truth:
        pairs = zip(cast("tuple[Value, ...]", a), cast("tuple[Value, ...]", b), strict=True)
        return all_of(self.same(type, x, y) for x, y in pairs)

    def agree(self, type: SeqType, a: Items, b: Items) -> Truth:
        """Whether `b` begins with the items of `a`; it must be known to be as long as `a` at least."""
        if not callable(a.items) and a.items is b.items:
            return True

        def same_item(i: Whole) -> Truth:
            return self.same(type.of, self.item(type, a, i), self.item(type, b, i))

        shortest = min((c for c in (a.capacity, b.capacity) if c is not None), default=None)
        if shortest is not None:
            return all_of(or_(at_most(a.length, i), same_item(i)) for i in range(shortest))
        return self.every_below(a.length, same_item)

    def every_number(self, type: Scalar, body: Callable[[Whole], Truth]) -> Truth:
        """The formula that the body holds of every value of a type that is not finite."""
        return self.over(type, body, str(type).lower())

    def over(self, of: Scalar, body: Callable[[Whole], Truth], name: str, universal: bool = True) -> Truth:
        """The formula that the body holds of every value of a type that is not finite, or (not `universal`) of some.

        The first NAMED elements of a sort are written out: most questions are about these, and all others are alike.
        """
        named_count = WRITTEN_ELEMENTS if isinstance(of, SortType) else 0
        quantified, parts = (logic.forall if universal else logic.exists), list[Truth]()
        for k in range(named_count):
            parts += _guarded(self.inside(of, k), body(k), universal)
        x = self.bind(f"{logic.OTHER}{name}" if named_count else name)
        self.ranging[logic.identity(x)] = of
        guard = and_(at_most(named_count, x) if named_count else True, self.inside(of, x))
        parts += [quantified(x, p) for p in _guarded(guard, body(x), universal)]
        return (all_of if universal else any_of)(parts)

    def every_below(self, end: Whole, body: Callable[[Whole], Truth]) -> Truth:
        """The formula that the body holds of every number from 0 up to, not including, `end`."""
        if isinstance(end, int) and end <= WRITTEN_OUT:
            return all_of(body(i) for i in range(end))
        parts: list[Truth] = []
        while not isinstance(end, int) and (longer := self.appended.get(logic.identity(end))):
            end = longer[1]
            parts.append(body(end))
        i = self.bind("i", end)
        parts.append(logic.forall(i, logic.implies(and_(at_most(0, i), less(i, end)), body(i))))
        return all_of(parts)


def _guarded(guard: Truth, body: Truth, universal: bool) -> list[Truth]:
    """The body under a guard: for `exists` their conjunction; for `forall` implications, one per part of the body."""
    if not universal:
        return [and_(guard, body)]
    return [logic.implies(guard, p) for p in ([body] if isinstance(body, bool) else logic.conjuncts(body))]
