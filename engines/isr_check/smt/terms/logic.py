"""z3 behind functions that fold: a value that is known never becomes a formula.

A truth is a Python bool or a z3 term; a whole number is a Python int or a z3 term. This is the only module that makes
z3 terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

z3: Any = import_module("z3")
"""z3 has no annotations; what comes out of it is given a type in this module."""


class Term(Protocol):
    """A term of z3."""

    def eq(self, other: Term, /) -> bool: ...
    def sort(self) -> object: ...
    def get_id(self) -> int: ...


Truth = bool | Term
Whole = int | Term


def identity(term: Term) -> int:
    """Equal terms have equal numbers, as long as one of them is alive."""
    known = vars(term).get("number")
    if known is None:
        known = vars(term)["number"] = term.get_id()
    return int(known)


def bool_symbol(name: str, args: Sequence[Term] = ()) -> Term:
    return _symbol(name, args, z3.BoolSort())


def int_symbol(name: str, args: Sequence[Term] = ()) -> Term:
    return _symbol(name, args, z3.IntSort())


def _symbol(name: str, args: Sequence[Term], sort: object) -> Term:
    if not args:
        return cast("Term", z3.Const(name, sort))
    return cast("Term", z3.Function(name, *(a.sort() for a in args), sort)(*args))


def term(value: bool | int | Term) -> Term:
    if isinstance(value, bool):
        return cast("Term", z3.BoolVal(value))
    return cast("Term", z3.IntVal(value)) if isinstance(value, int) else value


APPLICATION, QUANTIFIER, BOUND = range(3)
"""What a term is at its top: a function or constant, a quantifier, or a variable of a quantifier around it."""


class Top(NamedTuple):
    """What stands at the top of a term, which is so kept alive; large terms are searched many times, and z3 is slow.

    `kind` is one of the three above. `function` is the number of the function or constant, and `operator` z3's for it;
    both are -1 where there is none. `inside` are the terms right below.
    """

    term: Term
    kind: int
    function: int
    operator: int
    inside: list[Term]


_tops: dict[int, Top] = {}
"""By the identity of the term."""


def top(t: Term) -> Top:
    entry = _tops.get(identity(t))
    if entry is None:
        x = cast("Any", t)
        if z3.is_app(t):
            declaration = x.decl()
            entry = Top(t, APPLICATION, declaration.get_id(), declaration.kind(), x.children())
        elif z3.is_quantifier(t):
            entry = Top(t, QUANTIFIER, -1, -1, [x.body()])
        else:
            entry = Top(t, BOUND, -1, -1, [])
        _tops[identity(t)] = entry
    return entry


def children(t: Term) -> list[Term]:
    return top(t).inside


def z3_equal(a: Term, b: Term) -> Term:
    return cast("Term", cast("Any", a) == b)


# truth


def _negated_term(a: Term) -> Term | None:
    """The term whose negation this is, if `not_` made it; asking z3 would take longer."""
    return vars(a).get("negated")


def not_(a: Truth) -> Truth:
    if isinstance(a, bool):
        return not a
    inner = _negated_term(a)
    if inner is not None:
        return inner
    made = cast("Term", z3.Not(a))
    vars(made)["negated"] = a
    return made


def all_of(truths: Iterable[Truth]) -> Truth:
    return _join_truths(truths, False)


def any_of(truths: Iterable[Truth]) -> Truth:
    return _join_truths(truths, True)


def _join_truths(truths: Iterable[Truth], decides: bool) -> Truth:
    """The disjunction if `decides` is true, else the conjunction; one truth equal to `decides` decides it."""
    parts: dict[int, Term] = {}
    parts_key = "any of" if decides else "all of"
    for t in truths:
        if isinstance(t, bool):
            if t is decides:
                return decides
            continue
        for piece in vars(t).get(parts_key, (t,)):
            parts[identity(piece)] = piece
    for piece in parts.values():
        inner = _negated_term(piece)
        if inner is not None and identity(inner) in parts:
            return decides
    if len(parts) < 2:
        return next(iter(parts.values()), not decides)
    chosen = list(parts.values())
    made = cast("Term", z3.Or(chosen) if decides else z3.And(chosen))
    vars(made)[parts_key] = chosen
    return made


def and_(*truths: Truth) -> Truth:
    return all_of(truths)


def or_(*truths: Truth) -> Truth:
    return any_of(truths)


def implies(a: Truth, b: Truth) -> Truth:
    return or_(not_(a), b)


def same_truth(a: Truth, b: Truth) -> Truth:
    if isinstance(a, bool):
        return b if a else not_(b)
    if isinstance(b, bool):
        return a if b else not_(a)
    return True if a.eq(b) else z3_equal(a, b)


def if_truth(c: Truth, a: Truth, b: Truth) -> Truth:
    if isinstance(c, bool):
        return a if c else b
    if isinstance(a, bool):
        return or_(c, b) if a else and_(not_(c), b)
    if isinstance(b, bool):
        return or_(not_(c), a) if b else and_(c, a)
    return a if a.eq(b) else cast("Term", z3.If(c, a, b))


# numbers


_counts: dict[int, tuple[Term, tuple[Truth, ...]]] = {}
"""Numbers made by `how_many`: identity -> (the number, the truths that it is at least 1, at least 2, ...)."""


def how_many(truths: Iterable[Truth]) -> Whole:
    at_least: list[Truth] = []
    for t in truths:
        before: list[Truth] = [True, *at_least, False]
        at_least = [or_(before[k + 1], and_(before[k], t)) for k in range(len(at_least) + 1)]
    known = sum(1 for t in at_least if t is True)
    possible = [t for t in at_least if not isinstance(t, bool)]
    number: Whole = known + len(possible)
    for k, t in reversed(list(enumerate(possible))):
        number = if_whole(t, number, known + k)
    if not isinstance(number, int):
        _counts[identity(number)] = (number, tuple(at_least))
    return number


def if_whole(c: Truth, a: Whole, b: Whole) -> Whole:
    if isinstance(c, bool):
        return a if c else b
    if same_term(a, b):
        return a
    return cast("Term", z3.If(c, term(a), term(b)))


def same_term(a: Whole, b: Whole) -> bool:
    """Whether the two are the same term, so that they are equal."""
    if isinstance(a, int) or isinstance(b, int):
        return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
    return bool(a.eq(b))


def _thresholds_of(a: Whole) -> tuple[Truth, ...] | None:
    found = None if isinstance(a, int) else _counts.get(identity(a))
    return found[1] if found else None


def at_most(a: Whole, b: Whole) -> Truth:
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    if same_term(a, b):
        return True
    if (truths := _thresholds_of(b)) is not None:
        return all_of(or_(t, at_most(a, k)) for k, t in enumerate((*truths, False)))
    if (truths := _thresholds_of(a)) is not None:
        return all_of(or_(not_(t), at_most(k, b)) for k, t in enumerate((True, *truths)))
    return cast("Term", cast("Any", term(a)) <= term(b))


def less(a: Whole, b: Whole) -> Truth:
    return not_(at_most(b, a))


def same_whole(a: Whole, b: Whole) -> Truth:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if same_term(a, b):
        return True
    if _thresholds_of(a) is not None or _thresholds_of(b) is not None:
        return and_(at_most(a, b), at_most(b, a))
    return z3_equal(term(a), term(b))


def plus(a: Whole, b: Whole) -> Whole:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(b, int) and not isinstance(a, int):
        return _add_constant(a, b)
    return (
        _add_constant(b, a)
        if isinstance(a, int) and not isinstance(b, int)
        else cast("Term", cast("Any", term(a)) + term(b))
    )


def _add_constant(a: Term, by: int) -> Whole:
    """a + by. Numbers in a sum are added up, so that equal sums become the same term."""
    if _is_sum(a) and len(parts := children(a)) == 2 and z3.is_int_value(parts[1]):
        by += cast("Any", parts[1]).as_long()
        a = parts[0]
    return cast("Term", cast("Any", a) + by) if by else a


def minus(a: Whole, b: Whole) -> Whole:
    if isinstance(b, int):
        return plus(a, -b)
    return 0 if same_term(a, b) else cast("Term", cast("Any", term(a)) - b)


# quantifiers


def constants_in(terms: Iterable[Term], among: dict[int, Term]) -> list[Term]:
    """The constants in `among` that occur in the terms, in the order of `among`."""
    found: set[int] = set()
    for t in _below(terms):
        if identity(t) in among:
            found.add(identity(t))
    return [t for i, t in among.items() if i in found]


def is_symbol(t: Term) -> bool:
    """Whether the term is an unknown, or an application of an unknown function."""
    return bool(top(t).operator == z3.Z3_OP_UNINTERPRETED)


def _is_sum(t: Term) -> bool:
    return bool(top(t).operator == z3.Z3_OP_ADD)


class Occurring:
    """The functions and unknowns that occur in terms; each term is searched once."""

    def __init__(self) -> None:
        self._occurrences: dict[int, tuple[Term, frozenset[int], frozenset[int], frozenset[int]]] = {}

    def functions(self, t: Term) -> frozenset[int]:
        """The numbers (`function`) of all functions and constants in a term."""
        return self._of(t)[1]

    def symbols(self, t: Term) -> frozenset[int]:
        """The identities of all unknowns, and of all applications of unknown functions, in a term."""
        return self._of(t)[2]

    def summands(self, t: Term) -> frozenset[int]:
        """The functions (`function`) of all unknowns, and applications of unknown functions, that are added up."""
        return self._of(t)[3]

    def _of(self, t: Term) -> tuple[Term, frozenset[int], frozenset[int], frozenset[int]]:
        i = identity(t)
        if i not in self._occurrences:
            apps = [x for x in _below([t]) if top(x).kind == APPLICATION]
            self._occurrences[i] = (
                t,
                frozenset(map(function, apps)),
                frozenset(identity(x) for x in apps if is_symbol(x)),
                frozenset(
                    function(a) for x in apps if top(x).operator == z3.Z3_OP_ADD for a in children(x) if is_symbol(a)
                ),
            )
        return self._occurrences[i]


OTHER = "other "
"""The beginning of the name of a bound variable that ranges over elements without a name."""


def about_others(t: Term) -> bool:
    """Whether a formula speaks of every element without a name; a condition inside a number does not count."""
    if top(t).kind == QUANTIFIER:
        q = cast("Any", t)
        return (q.is_forall() and str(q.var_name(0)).startswith(OTHER)) or about_others(q.body())
    joined = z3.is_and(t) or z3.is_or(t) or z3.is_not(t) or z3.is_implies(t)
    return joined and any(about_others(x) for x in children(t))


def _below(terms: Iterable[Term]) -> Iterator[Term]:
    """These terms and all terms inside them, each once."""
    waiting, visited = list(terms), set[int]()
    while waiting:
        t = waiting.pop()
        if identity(t) in visited:
            continue
        visited.add(identity(t))
        yield t
        waiting += children(t)


def _is_application(t: Term) -> bool:
    """Whether the term is an application of an unknown function."""
    return is_symbol(t) and bool(children(t))


def _patterns(x: Term, body: Term) -> list[Term]:
    """The patterns of a quantifier over x: every application of an unknown function to x itself.

    The solver instantiates the quantifier only at terms that match one of them.
    """
    patterns: list[Term] = []
    for t in _below([body]):
        if not _is_application(t) or not any(a.eq(x) for a in children(t)):
            continue
        if not any(top(below).kind == BOUND or z3.is_bool(below) for a in children(t) for below in _below([a])):
            patterns.append(t)
    return sorted(patterns, key=str)


def forall(x: Term, body: Truth) -> Truth:
    if isinstance(body, bool):
        return body
    return cast("Term", z3.ForAll([x], body, patterns=_patterns(x, body)))


def forall_at(xs: Sequence[Term], body: Truth, *patterns: Term) -> Truth:
    """The body for every x, instantiated only where all the patterns match together."""
    if isinstance(body, bool) or not xs:
        return body
    pattern = patterns[0] if len(patterns) == 1 else z3.MultiPattern(*patterns)
    return cast("Term", z3.ForAll(list(xs), body, patterns=[pattern]))


def exists(x: Term, body: Truth) -> Truth:
    if isinstance(body, bool):
        return body
    return cast("Term", z3.Exists([x], body, patterns=_patterns(x, body)))


def replace_term(body: Truth, x: Term, by: Term) -> Truth:
    return body if isinstance(body, bool) else cast("Term", z3.substitute(body, (x, by)))


def conjuncts(t: Term) -> list[Term]:
    """The parts of a conjunction."""
    known: list[Term] | None = vars(t).get("all of")
    return known if known is not None else children(t) if z3.is_and(t) else [t]


def function(t: Term) -> int:
    """The number of the function or constant at the top of a term."""
    return top(t).function
