"""The size of a set whose sort has any number of elements: a symbol with a few axioms.

Five axioms say all that a proof may use of a size. They are true of finite sets: a set has a member exactly if its
size is not 0; it has two members if its size is neither 0 nor 1; a set is not larger than another unless it has a
member that the other lacks; a part of a set is smaller than the set unless it is the whole; and two sets that have
together more members than there are elements have one in common. (So sets with the same members have the same size. Of
infinite sets the last two are false, and every sort is finite.) The size of `when(c, a, b)` is the size of a or that of
b.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import Protocol, cast

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
    def bind(self, name: str, *below: Whole) -> Term: ...
    def bounds(self, type: Scalar) -> tuple[int, Whole]: ...
    def over(self, of: Scalar, body: Callable[[Whole], Truth], name: str, universal: bool = True) -> Truth: ...


@attrs.frozen(eq=False)
class Size:
    """A symbol (`number`) for the size of a set of elements `of` a sort, a function of the bound variables `outer`."""

    of: Scalar
    members: Members
    number: Term
    outer: tuple[Term, ...] = ()


class Sizes:
    """The sizes that were asked for, and the axioms about them."""

    def __init__(self, shapes: Scope) -> None:
        self.shapes = shapes
        self._how: dict[int, tuple[Members, Callable[[], Whole]]] = {}
        self._size_numbers: dict[int, Whole] = {}
        self._symbols: dict[int, Size] = {}
        self._alike: dict[int, tuple[Term, Term]] = {}
        self._axioms: dict[tuple[int, int], list[Term]] = {}
        self._by_function: dict[int, dict[int, Size]] = {}
        self._axioms_of_sums: dict[tuple[int, int], list[Term]] = {}

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
        if not isinstance(number, int) and logic.is_symbol(number):
            size = Size(of, members, number, tuple(logic.constants_in([number], self.shapes.bound)))
            self._by_function.setdefault(logic.function(number), {}).setdefault(logic.identity(number), size)
            if not size.outer:
                self._symbols.setdefault(logic.identity(number), size)
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

    def of_sums(self, summands: Collection[int], comparable: Collection[int]) -> Iterator[Term]:
        """The axioms about two sizes that are added up, as in "more than half": both sizes are functions `summands`.

        They are given where one of both is among the functions `comparable`. A size that depends on bound variables has
        these axioms only.
        """
        sizes = [size for f in sorted(self._by_function.keys() & summands) for size in self._by_function[f].values()]
        for a, b in combinations(sizes, 2):
            if a.of == b.of and {logic.function(a.number), logic.function(b.number)} & set(comparable):
                key = logic.identity(a.number), logic.identity(b.number)
                if key not in self._axioms_of_sums:
                    self._axioms_of_sums[key] = self._sum(a, self._apart(b, a.outer))
                yield from self._axioms_of_sums[key]

    def _apart(self, a: Size, variables: Sequence[Term]) -> Size:
        """The size with other names for these bound variables."""
        for x in variables:
            if x in a.outer:
                a = self._with_name(a, x, self.shapes.bind("other"))
        return a

    def _with_name(self, a: Size, x: Term, by: Term) -> Size:
        return Size(
            a.of,
            Members(lambda k: logic.replace_term(a.members.has(k), x, by)),
            logic.term(cast("Term", logic.replace_term(a.number, x, by))),
            tuple(by if y is x else y for y in a.outer),
        )

    def _sum(self, a: Size, b: Size) -> list[Term]:
        """Both have a member in common, or together not more members than there are elements."""
        shapes, outer = self.shapes, (*a.outer, *b.outer)
        w = logic.int_symbol(shapes.fresh("in_both"), outer)
        both = and_(shapes.inside(a.of, w), a.members.has(w), b.members.has(w))
        every = logic.plus(shapes.bounds(a.of)[1], 1)
        truths = [or_(at_most(logic.plus(a.number, b.number), every), both)]
        if outer:
            truths += [or_(at_most(x.number, y.number), self._only_in(x, y, outer)) for x, y in ((a, b), (b, a))]
        patterns = [x.number for x in (a, b) if x.outer]
        return _parts([logic.forall_at(outer, truth, *patterns) for truth in truths])

    def _only_in(self, a: Size, b: Size, outer: Sequence[Term] = ()) -> Truth:
        """The first has a member, for which there is a name, that the second lacks."""
        w = logic.int_symbol(self.shapes.fresh("only_in"), outer)
        return and_(self.shapes.inside(a.of, w), a.members.has(w), not_(b.members.has(w)))

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
        only = self._only_in(a, b)
        return _parts([or_(at_most(a.number, b.number), only), or_(self._part_and_whole(a, b), only)])

    def _part_and_whole(self, a: Size, b: Size) -> Truth:
        """What is so if `a` is a part of `b`: it is smaller, or it is the whole."""
        whole = self.shapes.over(b.of, lambda x: logic.implies(b.members.has(x), a.members.has(x)), "x")
        return or_(less(a.number, b.number), whole)


def _parts(truths: Sequence[Truth]) -> list[Term]:
    joined = all_of(truths)
    return [] if joined is True else logic.conjuncts(logic.term(joined))
