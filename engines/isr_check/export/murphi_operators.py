"""The operators of the language in Murphi: one entry per operator.

`MURPHI[op](code, node)` emits the statements that the operator needs. It returns an expression for a scalar; for a set,
map or sequence, the place (a variable, a cell, a local) that holds it.
"""

from __future__ import annotations

from typing import cast

from isr_check.export.murphi_binders import build, count, extreme, quantifier, select
from isr_check.export.murphi_code import Code, Rule, assign, guarded, operands
from isr_check.export.murphi_values import TOO_LONG, is_scalar
from isr_lang import Definition, Node
from isr_lang.extents import STORED_OPERATORS
from isr_lang.types import BoolType, MapType, MaybeType, NumberType, SeqType, SetType


def copy(code: Code, node: Node, of: str) -> str:
    """A new local that begins with the value of the place `of`, for statements that change it."""
    place = code.temporary(code.types.name(node.type))
    code.emit(f"{place} := {of};")
    return place


def _literal(code: Code, n: Node) -> str:
    if is_scalar(n.type):
        return code.types.literal(n.attr, n.type)
    place = code.temporary(code.types.name(n.type))
    assign(code, place, n.type, n.attr)
    return place


def _call(code: Code, n: Node) -> str:
    """A call: scalar definitions are functions; those of sets, maps and sequences are written out here."""
    definition = cast("Definition", n.attr[0])
    arguments = operands(code, n)
    if definition in code.shared.functions:
        return f"{code.shared.functions[definition]}({', '.join(arguments)})"
    formals = {p: a for (p, _), a in zip(definition.parameters, arguments, strict=True)}
    with code.inline_call(formals, definition):
        return code.expression(code.instance.body(definition))


def _lazily(symbol: str, first_decides: str) -> Rule:
    """An infix operator of booleans; the second operand's statements run only if the first does not decide."""

    def rule(code: Code, n: Node) -> str:
        a = code.expression(n.args[0])
        with code.aside() as statements:
            b = code.expression(n.args[1])
        if not statements:
            return f"({a} {symbol} {b})"
        place = code.temporary("boolean")
        code.emit(f"{place} := {a};")
        undecided = place if first_decides == "false" else f"!{place}"
        if symbol == "->":
            code.emit(f"{place} := !{place};")
        with code.block(f"if {undecided} then"):
            code.insert(statements)
            code.emit(f"{place} := {b};")
        return place

    return rule


def _when(code: Code, n: Node) -> str:
    c = code.expression(n.args[0])
    with code.aside() as first:
        a = code.expression(n.args[1])
    with code.aside() as second:
        b = code.expression(n.args[2])
    if is_scalar(n.type) and not first and not second:
        return f"({c} ? {a} : {b})"
    place = code.temporary(code.types.intermediate(n.type))
    with code.block(f"if {c} then", "else"):
        code.insert(first)
        code.emit(f"{place} := {a};")
    with code.block("", "end;"):
        code.insert(second)
        code.emit(f"{place} := {b};")
    return place


def _equal(code: Code, n: Node) -> str:
    """Records and arrays are compared as wholes. A comparison with an empty set or sequence makes no empty one."""
    a, b = n.args
    if b.op == "literal" and b.attr == 0 and isinstance(b.type, SetType):
        i = code.fresh("i")
        return f"(forall {i}: {code.types.name(b.type.of)} do !{code.expression(a)}[{i}] end)"
    if b.op == "literal" and b.attr == () and isinstance(b.type, SeqType):
        return f"({code.expression(a)}.length = 0)"
    return _infix("=")(code, n)


def _infix(symbol: str) -> Rule:
    return lambda code, n: f"({f' {symbol} '.join(operands(code, n))})"


def _some(code: Code, n: Node) -> str:
    (a,) = operands(code, n)
    of = cast("MaybeType", n.type).of
    if isinstance(of, BoolType):
        return f"({a} ? 2 : 1)"
    shift = 1 - code.types.low(of)
    there = a if shift == 0 else f"({a} + {shift})" if shift > 0 else f"({a} - {-shift})"
    if not code.inside(n.args[0], of, a):
        return there
    low = code.types.literal(code.types.low(of), of)
    return f"({a} < {low} ? {a} - {low} : {there})"


def _or_else(code: Code, n: Node) -> str:
    m, x = operands(code, n)
    of = cast("MaybeType", n.args[0].type).of
    if isinstance(of, BoolType):
        return f"({m} = 0 ? {x} : {m} = 2)"
    shift = code.types.low(of) - 1
    there = m if shift == 0 else f"{m} + {shift}" if shift > 0 else f"{m} - {-shift}"
    if isinstance(of, NumberType) and n.args[0].op not in STORED_OPERATORS:
        there = f"({m} > 0 ? {there} : {m} + {code.types.literal(code.types.low(of), of)})"
    return f"({m} = 0 ? {x} : {there})"


def _has(code: Code, n: Node) -> str:
    s, x = operands(code, n)
    test = code.inside(n.args[1], cast("SetType", n.args[0].type).of, x)
    return f"({test} & {s}[{x}])" if test else f"{s}[{x}]"


def _member(value: str) -> Rule:
    def rule(code: Code, n: Node) -> str:
        s, x = operands(code, n)
        place = copy(code, n, s)
        guarded(code, code.inside(n.args[1], cast("SetType", n.type).of, x), f"{place}[{x}] := {value};")
        return place

    return rule


def _set_algebra(shape: str) -> Rule:
    def rule(code: Code, n: Node) -> str:
        a, b = operands(code, n)
        place = code.temporary(code.types.name(n.type))
        x = code.fresh("i")
        with code.block(f"for {x}: {code.types.name(cast('SetType', n.type).of)} do"):
            code.emit(f"{place}[{x}] := {shape.format(f'{a}[{x}]', f'{b}[{x}]')};")
        return place

    return rule


def _subset(code: Code, n: Node) -> str:
    a, b = operands(code, n)
    x = code.fresh("i")
    of = code.types.name(cast("SetType", n.args[0].type).of)
    return f"(forall {x}: {of} do {a}[{x}] -> {b}[{x}] end)"


def _size(code: Code, n: Node) -> str:
    (s,) = operands(code, n)
    place, x = code.temporary(code.types.intermediate(n.type)), code.fresh("i")
    code.emit(f"{place} := 0;")
    with code.block(f"for {x}: {code.types.name(cast('SetType', n.args[0].type).of)} do"):
        code.emit(f"if {s}[{x}] then {place} := {place} + 1; end;")
    return place


def _get(code: Code, n: Node) -> str:
    m, k = operands(code, n)
    test = code.inside(n.args[1], cast("MapType", n.args[0].type).key, k)
    if not test:
        return f"{m}[{k}]"
    first = code.instance.first(n.type)
    if is_scalar(n.type):
        return f"({test} ? {m}[{k}] : {code.types.literal(first, n.type)})"
    place = code.temporary(code.types.name(n.type))
    with code.block(f"if {test} then", "else"):
        code.emit(f"{place} := {m}[{k}];")
    with code.block(""):
        assign(code, place, n.type, first)
    return place


def _put(code: Code, n: Node) -> str:
    m, k, v = operands(code, n)
    place = copy(code, n, m)
    guarded(code, code.inside(n.args[1], cast("MapType", n.type).key, k), f"{place}[{k}] := {v};")
    return place


def _at(code: Code, n: Node) -> str:
    s, i = operands(code, n)
    first = code.types.literal(code.instance.first(n.type), n.type)
    return f"(0 <= {i} & {i} < {s}.length ? {s}.item[{i}] : {first})"


def _append(code: Code, n: Node) -> str:
    s, x = operands(code, n)
    place = copy(code, n, s)
    full = f"{place}.length = {code.types.room(cast('SeqType', n.type))}"
    with code.block(f"if {full} then", "else"):
        code.emit(TOO_LONG)
    with code.block(""):
        code.emit(f"{place}.item[{place}.length] := {x};")
        code.emit(f"{place}.length := {place}.length + 1;")
    return place


def _take(code: Code, n: Node) -> str:
    s, count = operands(code, n)
    type = cast("SeqType", n.type)
    place, i = copy(code, n, s), code.fresh("i")
    first = code.types.literal(code.instance.first(type.of), type.of)
    with code.block(f"if {count} < {place}.length then"):
        code.emit(f"{place}.length := ({count} < 0 ? 0 : {count});")
        with code.block(f"for {i} := 0 to {max(1, code.types.room(type)) - 1} do"):
            code.emit(f"if {i} >= {place}.length then {place}.item[{i}] := {first}; end;")
    return place


def _prefix(code: Code, n: Node) -> str:
    s, t = operands(code, n)
    i, last = code.fresh("i"), max(1, code.types.room(cast("SeqType", n.args[0].type))) - 1
    same = f"forall {i} := 0 to {last} do {i} < {s}.length -> {s}.item[{i}] = {t}.item[{i}] end"
    return f"({s}.length <= {t}.length & ({same}))"


def _every(code: Code, n: Node) -> str:
    place, x = code.temporary(code.types.name(n.type)), code.fresh("i")
    of = cast("SetType", n.type).of
    there = "false" if code.types.empty(of) else "true"
    with code.block(f"for {x}: {code.types.name(of)} do"):
        code.emit(f"{place}[{x}] := {there};")
    return place


def _below(code: Code, n: Node) -> str:
    end = code.expression(n.args[0])
    place, x = code.temporary(code.types.name(n.type)), code.fresh("i")
    of = cast("SetType", n.type).of
    there = "false" if code.types.empty(of) else f"{x} < {end}"
    with code.block(f"for {x}: {code.types.name(of)} do"):
        code.emit(f"{place}[{x}] := {there};")
    return place


def _known_local(code: Code, n: Node) -> str:
    return code.local[n.attr]


def _no_constant(_: Code, n: Node) -> str:
    raise AssertionError(f"an instance has no constants left, but there is {n!r}")


MURPHI: dict[str, Rule] = {
    "literal": _literal,
    "constant": _no_constant,
    "variable": lambda code, n: code.shared.variables[n.attr[0]],
    "parameter": _known_local,
    "bound": _known_local,
    "call": _call,
    "not": lambda code, n: f"!{code.expression(n.args[0])}",
    "and": _lazily("&", "false"),
    "or": _lazily("|", "true"),
    "implies": _lazily("->", "true"),
    "when": _when,
    "equal": _equal,
    "less": _infix("<"),
    "at_most": _infix("<="),
    "plus": _infix("+"),
    "minus": _infix("-"),
    "some": _some,
    "or_else": _or_else,
    "has": _has,
    "with": _member("true"),
    "without": _member("false"),
    "union": _set_algebra("{0} | {1}"),
    "intersection": _set_algebra("{0} & {1}"),
    "difference": _set_algebra("{0} & !{1}"),
    "subset": _subset,
    "size": _size,
    "get": _get,
    "put": _put,
    "length": lambda code, n: f"{code.expression(n.args[0])}.length",
    "at": _at,
    "append": _append,
    "take": _take,
    "prefix": _prefix,
    "forall": quantifier("forall", "->", "true"),
    "exists": quantifier("exists", "&", "false"),
    "count": count,
    "smallest": extreme("<"),
    "largest": extreme(">"),
    "select": select,
    "build": build,
    "every": _every,
    "below": _below,
}
