"""The size of a set whose sort has any number of elements: a symbol with a few axioms.

Four axioms say all that a proof may use of a size. They are true of finite sets: a set has a member exactly if its
size is not 0; it has two members if its size is neither 0 nor 1; a set is not larger than another unless it has a
member that the other lacks; and a part of a set is smaller than the set unless it is the whole. (So sets with the same
members have the same size. Of infinite sets the last is false, and every sort is finite.) The size of `when(c, a, b)`
is the size of a or that of b.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import attrs

from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Term, Truth, Whole, all_of, and_, at_most, less, not_, or_
from isr_check.smt.terms.values import Members
from isr_lang.types import Scalar


class Scope(Protocol):
    """What this module needs of Shapes: names, bound variables and quantifiers."""

    @property
    def bound(self) -> dict[int, Term]: ...
    def fresh(self, name: str) -> str: ...
    def inside(self, type: Scalar, x: Whole) -> Truth: ...
    def over(self, of: Scalar, body: Callable[[Whole], Truth], name: str, universal: bool = True) -> Truth: ...


@attrs.frozen(eq=False)
class Size:
    """A symbol (`number`) for the size of a set of elements `of` a sort."""

    of: Scalar
    members: Members
    number: Term


class Sizes:
    """The sizes that were asked for, and the axioms about them."""

    def __init__(self, shapes: Scope) -> None:
        self.shapes = shapes
        self._how: dict[int, tuple[Members, Callable[[], Whole]]] = {}
        self._size_numbers: dict[int, Whole] = {}
        self._symbols: dict[int, Size] = {}
        self._alike: dict[int, tuple[Term, Term]] = {}
        self._axioms: dict[tuple[int, int], list[Term]] = {}

    def register_size(self, members: Members, how: Callable[[], Whole]) -> None:
        """Register how the size of this set is computed, if somebody asks for it."""
        self._how[id(members)] = members, how

    def of(self, of: Scalar, members: Members) -> Whole:
        """The size of a set."""
        if id(members) in self._size_numbers:
            return self._size_numbers[id(members)]
        _, how = self._how.get(id(members), (members, lambda: self._symbol(of, members)))
        self._how[id(members)] = members, how
        number = self._size_numbers[id(members)] = how()
        if (
            not isinstance(number, int)
            and logic.is_symbol(number)
            and not logic.constants_in([number], self.shapes.bound)
        ):
            self._symbols.setdefault(logic.identity(number), Size(of, members, number))
        return number

    def _symbol(self, of: Scalar, members: Members) -> Whole:
        """The symbol for the size of a set: the same for sets with the same formula; a function of bound variables."""
        probe = logic.int_symbol("element")
        has = logic.term(members.has(probe))
        if logic.identity(has) not in self._alike:
            outer = logic.constants_in([has], self.shapes.bound)
            self._alike[logic.identity(has)] = has, logic.int_symbol(self.shapes.fresh("size"), outer)
        return self._alike[logic.identity(has)][1]

    def defining(self, symbols: Collection[int], compared_sizes: Collection[int]) -> Iterator[Term]:
        """The axioms about the sizes among these symbols (identities), except sizes that depend on bound variables.

        Axioms that name a member of a set are given only for sizes in `compared_sizes`: every further element makes the
        solver slower.
        """
        sizes = [self._symbols[i] for i in sorted(self._symbols.keys() & symbols)]
        for a in sizes:
            for b in sizes:
                i, j = logic.identity(a.number), logic.identity(b.number)
                if a is b or i in compared_sizes or j in compared_sizes:
                    if (i, j) not in self._axioms:
                        self._axioms[i, j] = self._about(a) if a is b else self._comparison(a, b)
                    yield from self._axioms[i, j] if a is not b or i in compared_sizes else self._axioms[i, j][:-2]

    def _about(self, a: Size) -> list[Term]:
        shapes = self.shapes
        some = shapes.over(a.of, a.members.has, "x", universal=False)
        at_least_one = shapes.over(a.of, lambda x: logic.implies(a.members.has(x), at_most(1, a.number)), "x")
        one, two = (logic.int_symbol(shapes.fresh("member")) for _ in range(2))
        members = all_of(and_(shapes.inside(a.of, w), a.members.has(w)) for w in (one, two))
        several = and_(members, not_(logic.same_whole(one, two)))
        return _parts(
            [at_most(0, a.number), at_least_one, or_(at_most(a.number, 0), some), or_(at_most(a.number, 1), several)]
        )

    def _comparison(self, a: Size, b: Size) -> list[Term]:
        if a.of != b.of:
            return []
        w = logic.int_symbol(self.shapes.fresh("only_in"))
        only = and_(self.shapes.inside(a.of, w), a.members.has(w), not_(b.members.has(w)))
        return _parts([or_(at_most(a.number, b.number), only), or_(self._part_and_whole(a, b), only)])

    def _part_and_whole(self, a: Size, b: Size) -> Truth:
        """What is so if `a` is a part of `b`: it is smaller, or it is the whole."""
        whole = self.shapes.over(b.of, lambda x: logic.implies(b.members.has(x), a.members.has(x)), "x")
        return or_(less(a.number, b.number), whole)


def _parts(truths: Sequence[Truth]) -> list[Term]:
    joined = all_of(truths)
    return [] if joined is True else logic.conjuncts(logic.term(joined))
