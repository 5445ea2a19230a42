"""The operators of the language in TLA+: one entry per operator, and the writer that walks an expression.

Every operator stays total, as `isr_lang.nodes` prescribes: where a key may lie outside a map's domain, a helper gives
the answer instead of TLC's error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import attrs

from isr_check.export.layout import (
    ATOM,
    COMPARE,
    EQUIVALENT,
    IMPLIES,
    JUNCTION,
    MINUS,
    NOT,
    OPEN,
    PLUS,
    RANGE,
    SETS,
    Break,
    Loose,
    Term,
    at_least,
    junction,
)
from isr_check.export.names import small_camel
from isr_check.export.tla_scope import Scope
from isr_check.export.tla_sharing import LONG, shared, wanted_name
from isr_check.export.tla_values import Values
from isr_lang import Binder, Constant, Definition, Node, walk
from isr_lang.extents import Ranges
from isr_lang.types import BoolType, MapType, NumberType, Scalar, SetType, Type


class Writer:
    """Writes the expressions of one module as terms."""

    def __init__(
        self,
        values: Values,
        ranges: Ranges,
        variables: Mapping[str, str],
        definitions: Mapping[Definition, str],
    ) -> None:
        self.values, self.ranges = values, ranges
        self.variables, self.definitions = variables, definitions

    def term(self, node: Node, scope: Scope) -> Term:
        named = scope.local.get(node) if scope.primes == "written" else None
        return named if named is not None else TLA[node.op](self, node, scope)

    def bind(self, scope: Scope, what: object, name: str, type: Type | None = None) -> tuple[str, Scope]:
        """Choose a local name as close to the model's as possible; TLA+ forbids it to hide another name."""
        wanted = re.sub(r"\d+$", "", small_camel(name)) if name.strip("_") else "x"
        initial = wanted[0].upper() if isinstance(type, SetType) else wanted[0]
        chosen = self.values.names.free(wanted, initial, wanted, beside=scope.names_in_use)
        return chosen, scope.binding(what, chosen)

    def sharing(
        self, roots: Iterable[Node], scope: Scope, update_names: Mapping[Node, str]
    ) -> tuple[list[tuple[str, Term]], Scope]:
        """The LET definitions of long subexpressions that occur twice, and the scope in which their names stand."""
        definitions: list[tuple[str, Term]] = []
        for node in shared(roots):
            term = self.term(node, scope)
            if len(term.flat) >= LONG:
                name, scope = self.bind(scope, node, wanted_name(node, update_names))
                definitions.append((name, term))
        return definitions, scope

    def operand(self, node: Node, scope: Scope, level: int) -> Term:
        return at_least(self.term(node, scope), level)

    def within(self, node: Node, type: Scalar, scope: Scope) -> bool:
        return self.ranges.within(node, type, scope.doubtful)

    def application(self, name: str, *arguments: Term) -> Term:
        parts: list[str | Break | Loose | Term] = [f"{name}("]
        for i, argument in enumerate(arguments):
            parts += [",", Break(len(name) + 1), argument] if i else [argument]
        return Term((*parts, ")")) if arguments else Term((name,))

    def helper(self, name: str, *arguments: Term) -> Term:
        return self.application(self.values.helper(name), *arguments)


Rule = Callable[[Writer, Node, Scope], Term]


def _literal(w: Writer, n: Node, s: Scope) -> Term:
    return w.values.literal(n.attr, n.type)


def _variable(w: Writer, n: Node, s: Scope) -> Term:
    name, primed = cast("tuple[str, bool]", n.attr)
    shown = s.primes == "all" or (primed and s.primes == "written")
    return Term((w.variables[name] + ("'" if shown else ""),))


def _local(w: Writer, n: Node, s: Scope) -> Term:
    return s.local[n.attr]


def _reads_unprimed(node: Node) -> bool:
    return any(
        (n.op == "variable" and not n.attr[1]) or (n.op == "call" and n.attr[0].of_state and not n.attr[1])
        for n in walk(node)
    )


def _has_parameter(node: Node) -> bool:
    """Whether an argument in an unfolded body mentions a parameter; what was passed for it may be unprimed."""
    return any(n.op == "parameter" for n in walk(node))


def _call(w: Writer, n: Node, s: Scope) -> Term:
    definition, primed = cast("tuple[Definition, bool]", n.attr)
    name, whole = w.definitions[definition], s.primes == "all"
    if s.primes == "dropped" or not (primed or (whole and definition.of_state)):
        return w.application(name, *(w.term(a, s) for a in n.args))
    if not any(_has_parameter(a) if whole else _reads_unprimed(a) for a in n.args):
        # The prime covers the arguments too, so what is primed in them is not primed again.
        within_prime = attrs.evolve(s, primes="dropped")
        return Term((w.application(name, *(w.term(a, within_prime) for a in n.args)), "'"))
    # Def(x)' would mean x' as well; so the definition is unfolded, with its own variables primed.
    formals: dict[object, Term] = {}
    for (p, _), a in zip(definition.parameters, n.args, strict=True):
        formals[p] = at_least(w.term(a, s), ATOM)
    doubtful = w.ranges.doubtful(definition)
    unfolded = attrs.evolve(s, local={**s.local, **formals}, primes="all", doubtful=doubtful)
    return w.term(definition.body, unfolded)


def _infix(symbol: str, level: int, left_operand: int, right: int) -> Rule:
    def rule(w: Writer, n: Node, s: Scope) -> Term:
        a, b = w.operand(n.args[0], s, left_operand), w.operand(n.args[1], s, right)
        return Term((a, f" {symbol} ", b), level)

    return rule


def _order(symbol: str, converse: str) -> Rule:
    """A comparison. The language reads the model's `x > 3` as 3 < x; it is written x > 3 again."""

    def rule(w: Writer, n: Node, s: Scope) -> Term:
        a, b = (w.operand(x, s, COMPARE + 1) for x in n.args)
        fixed = ("variable", "constant", "literal")
        first, second = (fixed.index(x.op) if x.op in fixed else 0 for x in n.args)
        turn = first > second
        return Term((b, f" {converse} ", a) if turn else (a, f" {symbol} ", b), COMPARE)

    return rule


def _plus(w: Writer, n: Node, s: Scope) -> Term:
    """A sum. The language turns a count b into a number by 0 + b; that is written b."""
    a, b = n.args
    if a.op == "literal" and a.attr == 0:
        return w.term(b, s)
    return Term((w.operand(a, s, PLUS), " + ", w.operand(b, s, PLUS)), PLUS)


def _associative(symbol: str, level: int) -> Rule:
    def rule(w: Writer, n: Node, s: Scope) -> Term:
        a, b = (w.operand(x, s, level if x.op == n.op else level + 1) for x in n.args)
        return Term((a, Break(), f"{symbol} ", b), level)

    return rule


def _junction(bullet: str) -> Rule:
    return lambda w, n, s: junction(bullet, [w.term(a, s) for a in n.args])


def _implies(w: Writer, n: Node, s: Scope) -> Term:
    left, right = w.operand(n.args[0], s, IMPLIES + 1), w.term(n.args[1], s)
    premise = Loose(left) if left.bullet else left
    return Term((premise, Break(), "=> ", right if right.level == OPEN else at_least(right, IMPLIES + 1)), IMPLIES)


def _not(w: Writer, n: Node, s: Scope) -> Term:
    inner = n.args[0]
    symbol = {"equal": " # ", "has": r" \notin "}.get(inner.op)
    if symbol and not (inner.op == "equal" and isinstance(inner.args[0].type, BoolType)):
        a, b = inner.args if inner.op == "equal" else reversed(inner.args)
        return Term((w.operand(a, s, COMPARE + 1), symbol, w.operand(b, s, COMPARE + 1)), COMPARE)
    return Term(("~", w.operand(inner, s, ATOM)), NOT)


def _when(w: Writer, n: Node, s: Scope) -> Term:
    c, a, b = (w.term(x, s) for x in n.args)
    return Term(("IF ", c, Break(), "THEN ", a, Break(), "ELSE ", b), OPEN)


def _equal(w: Writer, n: Node, s: Scope) -> Term:
    if isinstance(n.args[0].type, BoolType):
        a, b = (w.operand(x, s, JUNCTION) for x in n.args)
        return Term((a, " <=> ", b), EQUIVALENT)
    a, b = (w.operand(x, s, COMPARE + 1) for x in n.args)
    return Term((a, " = ", b), COMPARE)


def _has(w: Writer, n: Node, s: Scope) -> Term:
    return Term((w.operand(n.args[1], s, COMPARE + 1), r" \in ", w.operand(n.args[0], s, COMPARE + 1)), COMPARE)


def _with(w: Writer, n: Node, s: Scope) -> Term:
    """s \\cup {a, b}. A number that may be outside the range of the set's type is left out, as by every engine."""
    of = cast("SetType", n.type).of
    members: list[Term] = []
    while n.op == "with" and w.within(n.args[1], of, s):
        members.insert(0, w.term(n.args[1], s))
        n = n.args[0]
    parts: list[str | Term] = ["{"]
    for i, m in enumerate(members):
        parts += [", ", m] if i else [m]
    fresh = Term((*parts, "}"))
    if not members:
        inside = Term(("({", w.term(n.args[1], s), r"} \cap ", w.values.domain(of), ")"))
        if n.args[0].op == "literal" and n.args[0].attr == 0:
            return inside
        return Term((_union_operand(w, n.args[0], s), Break(), r"\cup ", inside), SETS)
    if n.op == "literal" and n.attr == 0:
        return fresh
    return Term((_union_operand(w, n, s), Break(), r"\cup ", fresh), SETS)


def _union_operand(w: Writer, n: Node, s: Scope) -> Term:
    """What stands before a \\cup: in parentheses unless it is one, for TLA+ does not rank set operators."""
    return w.operand(n, s, SETS if n.op in ("union", "with") else SETS + 1)


def _without(w: Writer, n: Node, s: Scope) -> Term:
    return Term((w.operand(n.args[0], s, SETS + 1), r" \ {", w.term(n.args[1], s), "}"), SETS)


def _get(w: Writer, n: Node, s: Scope) -> Term:
    m, k = w.operand(n.args[0], s, ATOM), w.term(n.args[1], s)
    if w.within(n.args[1], cast("MapType", n.args[0].type).key, s):
        return Term((m, "[", k, "]"))
    return w.helper("Get", m, k, w.values.first(n.type))


def _put(w: Writer, n: Node, s: Scope) -> Term:
    m, k, v = (w.term(a, s) for a in n.args)
    return Term(("[", m, " EXCEPT", Break(4), "![", k, "] = ", v, "]"))


def _application(name: str, *, helper: bool = False) -> Rule:
    def rule(w: Writer, n: Node, s: Scope) -> Term:
        arguments = (w.term(a, s) for a in n.args)
        return w.helper(name, *arguments) if helper else w.application(name, *arguments)

    return rule


def _at(w: Writer, n: Node, s: Scope) -> Term:
    arguments = [w.term(a, s) for a in n.args]
    if len(w.values.beyond_end) == 1:
        return w.helper("At", *arguments)
    return w.helper("AtOr", *arguments, w.values.first(n.type))


def _or_else(w: Writer, n: Node, s: Scope) -> Term:
    w.values.none()
    return w.helper("OrElse", *(w.term(a, s) for a in n.args))


def _binder(w: Writer, n: Node, s: Scope) -> tuple[Term, str, Scope]:
    """The domain, the bound name and the scope of the body."""
    binder = cast("Binder", n.attr)
    name, inner = w.bind(s, binder, binder.name)
    return w.operand(n.args[0], s, COMPARE + 1), name, inner


def _quantifier(symbol: str) -> Rule:
    """A quantifier. Quantifiers of one kind in a row are merged, unless a domain depends on an earlier variable."""

    def rule(w: Writer, n: Node, s: Scope) -> Term:
        parts: list[str | Break | Loose | Term] = [f"{symbol} "]
        bound: set[Binder] = set()
        last, op, inner = "", n.op, s
        while n.op == op and not any(x.op == "bound" and x.attr in bound for x in walk(n.args[0])):
            domain, name, inner = _binder(w, n, inner)
            if domain.flat == last:
                parts[-3:-3] = [f", {name}"]
            else:
                parts += [", "] * bool(bound) + [name, " ", r"\in ", domain]
            last = domain.flat
            bound.add(cast("Binder", n.attr))
            n = n.args[1]
        return Term((*parts, " :", Break(4), w.term(n, inner)), OPEN)

    return rule


def _count(w: Writer, n: Node, s: Scope) -> Term:
    return Term(("Cardinality(", _select(w, n, s), ")"))


def _select(w: Writer, n: Node, s: Scope) -> Term:
    domain, name, inner = _binder(w, n, s)
    return Term((f"{{{name} \\in ", domain, " : ", w.term(n.args[1], inner), "}"))


def _extreme(name: str) -> Rule:
    def rule(w: Writer, n: Node, s: Scope) -> Term:
        domain, bound, inner = _binder(w, n, s)
        body, otherwise = w.term(n.args[1], inner), w.term(n.args[2], s)
        if n.args[1].op == "bound" and n.args[1].attr is n.attr:
            return w.helper(name, w.term(n.args[0], s), otherwise)
        return w.helper(name, Term(("{", body, Break(1), f": {bound} \\in ", domain, "}")), otherwise)

    return rule


def _build(w: Writer, n: Node, s: Scope) -> Term:
    domain, name, inner = _binder(w, n, s)
    return Term((f"[{name} \\in ", domain, " |->", Break(4), w.term(n.args[1], inner), "]"))


def _every(w: Writer, n: Node, s: Scope) -> Term:
    return w.values.domain(cast("SetType", n.type).of)


def _below(w: Writer, n: Node, s: Scope) -> Term:
    type = cast("NumberType", cast("SetType", n.type).of)
    end = n.args[0]
    if w.within(end, type, s):
        if end.op == "literal":
            return Term((f"{type.low}..{cast('int', end.attr) - 1}",), RANGE)
        return Term((f"{type.low}..", w.operand(end, s, PLUS), " - 1"), RANGE)
    i = w.values.names.free("i", beside=s.names_in_use)
    return Term((f"{{{i} \\in ", w.values.domain(type), f" : {i} < ", w.operand(end, s, COMPARE + 1), "}"))


TLA: dict[str, Rule] = {
    "literal": _literal,
    "constant": lambda w, n, s: w.values.constant(cast("Constant", n.attr)),
    "variable": _variable,
    "parameter": _local,
    "bound": _local,
    "call": _call,
    "not": _not,
    "and": _junction("/\\"),
    "or": _junction("\\/"),
    "implies": _implies,
    "when": _when,
    "equal": _equal,
    "less": _order("<", ">"),
    "at_most": _order("<=", ">="),
    "plus": _plus,
    "minus": _infix("-", MINUS, PLUS, MINUS + 1),
    "some": lambda w, n, s: w.term(n.args[0], s),
    "or_else": _or_else,
    "has": _has,
    "with": _with,
    "without": _without,
    "union": _associative("\\cup", SETS),
    "intersection": _associative("\\cap", SETS),
    "difference": _infix("\\", SETS, SETS + 1, SETS + 1),
    "subset": _infix("\\subseteq", COMPARE, COMPARE + 1, COMPARE + 1),
    "size": _application("Cardinality"),
    "get": _get,
    "put": _put,
    "length": _application("Len"),
    "at": _at,
    "append": _application("Append"),
    "take": _application("Take", helper=True),
    "prefix": _application("IsPrefix", helper=True),
    "forall": _quantifier("\\A"),
    "exists": _quantifier("\\E"),
    "count": _count,
    "smallest": _extreme("Min"),
    "largest": _extreme("Max"),
    "select": _select,
    "build": _build,
    "every": _every,
    "below": _below,
}
