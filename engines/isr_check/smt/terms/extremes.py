"""The least and the greatest of some numbers: written out for a few numbers, otherwise a symbol with axioms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Term, Truth, Whole, and_, at_most, less, not_, or_
from isr_check.smt.terms.shapes import Shapes
from isr_check.smt.terms.values import Members
from isr_lang.types import Scalar, SortType


def extreme(candidates: Sequence[tuple[Whole, Truth]], otherwise: Whole, least: bool) -> Whole:
    """The least or the greatest of those numbers whose condition holds; `otherwise` if none does."""
    best, any_yet = otherwise, cast("Truth", False)
    for x, counts in candidates:
        better = less(x, best) if least else less(best, x)
        best = logic.if_whole(and_(counts, or_(not_(any_yet), better)), x, best)
        any_yet = or_(any_yet, counts)
    return best


def unbounded(
    s: Shapes, signature: tuple[str, str, Scalar], domain: Members, body: Callable[[Whole], Whole], otherwise: Whole
) -> tuple[Whole, list[tuple[Term, Term]]]:
    """A symbol for the least or greatest value of the body over the domain, and the axioms that define it.

    `signature` has the operator, the name of its variable and the variable's type. The domain is finite, so if it has a
    member, some member attains the least value.
    """
    op, name, of = signature
    x = s.bind(name, *(() if domain.below is None else (domain.below,)))
    upper = True if domain.below is None else less(x, domain.below)
    guard, value = and_(s.inside(of, x), domain.has(x), upper), body(x)
    among = [logic.term(t) for t in (guard, value, otherwise)]
    outer = [t for t in logic.constants_in(among, s.bound) if not t.eq(x)]
    symbol = logic.int_symbol(s.fresh(op), outer)

    def bounded(value: Whole) -> Truth:
        return at_most(symbol, value) if op == "smallest" else at_most(value, symbol)

    if isinstance(of, SortType):
        bound = s.over(of, lambda x: logic.implies(domain.has(x), bounded(body(x))), name)
        is_attained = s.over(
            of, lambda x: and_(domain.has(x), logic.same_whole(symbol, body(x))), name, universal=False
        )
        none = s.over(of, lambda x: not_(domain.has(x)), name)
    else:
        witness = logic.int_symbol(s.fresh(f"{op}_at"), outer)
        bound = logic.forall(x, logic.implies(guard, bounded(value)))
        is_attained = logic.replace_term(and_(guard, logic.same_whole(symbol, value)), x, witness)
        none = logic.forall(x, not_(guard))
    axioms = (bound, or_(is_attained, and_(none, logic.same_whole(symbol, otherwise))))
    closed = [logic.forall_at(outer, axiom, symbol) for axiom in axioms]
    return symbol, [(symbol, c) for c in closed if not isinstance(c, bool)]
