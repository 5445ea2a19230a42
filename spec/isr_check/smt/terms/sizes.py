"""How many elements a set has whose sort has nobody knows how many: a number of which only little is said.

A set's size is a symbol. Three axioms say all that a proof may use of it, all true of finite sets: a set has a member
exactly if its size is not 0; it has two if its size is neither 0 nor 1; and of two sets the first is not larger than
the second, unless it has a member that the second has not. (So sets with the same members have the same size.) Who
chooses between two sets, chooses between their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import attrs

from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Term, Truth, Whole, all_of, and_, at_most, not_, or_
from isr_check.smt.terms.values import Members
from isr_lang.types import Scalar


class Scope(Protocol):
    """What sizes need of the shapes that they are part of: names, bound variables and quantifiers."""

    @property
    def bound(self) -> dict[int, Term]: ...
    def fresh(self, name: str) -> str: ...
    def inside(self, type: Scalar, x: Whole) -> Truth: ...
    def over(self, of: Scalar, body: Callable[[Whole], Truth], name: str, universal: bool = True) -> Truth: ...


@attrs.frozen(eq=False)
class Size:
    """The size of a set as a symbol."""

    of: Scalar
    members: Members
    number: Term


class Sizes:
    """The sizes that have been asked for, and what is known of them."""

    def __init__(self, shapes: Scope) -> None:
        self.shapes = shapes
        self._how: dict[int, tuple[Members, Callable[[], Whole]]] = {}
        self._found: dict[int, Whole] = {}
        self._symbols: dict[int, Size] = {}
        self._alike: dict[int, tuple[Term, Term]] = {}
        self._said: dict[tuple[int, int], list[Term]] = {}

    def known(self, members: Members, how: Callable[[], Whole]) -> None:
        """What the size of this set is, computed if somebody asks."""
        self._how[id(members)] = members, how

    def of(self, of: Scalar, members: Members) -> Whole:
        """How many elements the set has."""
        if id(members) in self._found:
            return self._found[id(members)]
        _, how = self._how.get(id(members), (members, lambda: self._symbol(of, members)))
        self._how[id(members)] = members, how
        number = self._found[id(members)] = how()
        if not isinstance(number, int) and logic.is_symbol(number) and not logic.mentioned([number], self.shapes.bound):
            self._symbols.setdefault(logic.identity(number), Size(of, members, number))
        return number

    def _symbol(self, of: Scalar, members: Members) -> Whole:
        """One symbol for sets that are written alike, a function of the bound variables that occur."""
        probe = logic.int_symbol("element")
        has = logic.term(members.has(probe))
        if logic.identity(has) not in self._alike:
            outer = logic.mentioned([has], self.shapes.bound)
            self._alike[logic.identity(has)] = has, logic.int_symbol(self.shapes.fresh("size"), outer)
        return self._alike[logic.identity(has)][1]

    def defining(self, symbols: Collection[int], compared: Collection[int]) -> Iterator[Term]:
        """The axioms about the sizes among these symbols, other than those of bound variables.

        Those that name a member of a set are only given of some: every further element is one to think of.
        """
        sizes = [self._symbols[i] for i in sorted(self._symbols.keys() & symbols)]
        for a in sizes:
            for b in sizes:
                i, j = logic.identity(a.number), logic.identity(b.number)
                if a is b or i in compared or j in compared:
                    if (i, j) not in self._said:
                        self._said[i, j] = self._about(a) if a is b else self._compared(a, b)
                    yield from self._said[i, j] if a is not b or i in compared else self._said[i, j][:-2]

    def _about(self, a: Size) -> list[Term]:
        shapes = self.shapes
        some = shapes.over(a.of, a.members.has, "x", universal=False)
        counted = shapes.over(a.of, lambda x: logic.implies(a.members.has(x), at_most(1, a.number)), "x")
        one, two = (logic.int_symbol(shapes.fresh("member")) for _ in range(2))
        members = all_of(and_(shapes.inside(a.of, w), a.members.has(w)) for w in (one, two))
        several = and_(members, not_(logic.same_whole(one, two)))
        return _parts(
            [at_most(0, a.number), counted, or_(at_most(a.number, 0), some), or_(at_most(a.number, 1), several)]
        )

    def _compared(self, a: Size, b: Size) -> list[Term]:
        if a.of != b.of:
            return []
        w = logic.int_symbol(self.shapes.fresh("only_in"))
        only = and_(self.shapes.inside(a.of, w), a.members.has(w), not_(b.members.has(w)))
        return _parts([or_(at_most(a.number, b.number), only)])


def _parts(truths: Sequence[Truth]) -> list[Term]:
    joined = all_of(truths)
    return [] if joined is True else logic.conjuncts(logic.term(joined))
