"""Operators that bind a variable, in Murphi: quantifiers where they fit into an expression, else loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from isr_check.export.murphi_code import Code, Rule, assign
from isr_lang import Binder, Node
from isr_lang.types import MapType, Scalar, SetType


def domain(code: Code, node: Node) -> tuple[Scalar, Callable[[str], str]]:
    """What a bound variable ranges over: its type, and a function that gives the test for a name of that type.

    The statements that compute the domain are emitted by this call; those of the test where the function is called. An
    empty test holds of every value.
    """
    of = cast("SetType", node.type).of
    if node.op == "every":
        return of, lambda _: ""
    if node.op == "below":
        end = code.expression(node.args[0])
        return of, lambda x: f"{x} < {end}"
    if node.op == "select":
        _, outer = domain(code, node.args[0])

        def test(x: str) -> str:
            code.local[node.attr] = x
            both = [t for t in (outer(x), code.expression(node.args[1])) if t]
            return " & ".join(both)

        return of, test
    whole = code.expression(node)
    return of, lambda x: f"{whole}[{x}]"


def quantifier(symbol: str, connective: str, vacuous: str) -> Rule:
    def rule(code: Code, n: Node) -> str:
        of, test = domain(code, n.args[0])
        if code.types.empty(of):
            return vacuous
        x = code.local[n.attr] = code.fresh(cast("Binder", n.attr).name)
        with code.aside() as before:
            member = test(x)
        with code.aside() as inside:
            body = code.expression(n.args[1])
        head = f"{x}: {code.types.name(of)} do"
        if not before and not inside:
            return f"({symbol} {head} {f'{member} {connective} ' if member else ''}{body} end)"
        place = code.temporary("boolean")
        code.emit(f"{place} := {vacuous};")
        undecided = place if vacuous == "true" else f"!{place}"
        loop = code.block(f"for {head}")
        with loop, code.block(f"if {undecided} then"), code.members(before, member):
            code.insert(inside)
            code.emit(f"{place} := {body};")
        return place

    return rule


def _emit_loop(code: Code, n: Node, each: Callable[[str, str], list[str]]) -> None:
    """Emit a loop over the domain; `each(member, body)` gives the statements for a member."""
    of, test = domain(code, n.args[0])
    if code.types.empty(of):
        return
    x = code.local[n.attr] = code.fresh(cast("Binder", n.attr).name)
    with code.block(f"for {x}: {code.types.name(of)} do"), code.members([], test(x)):
        body = code.expression(n.args[1])
        code.insert(each(x, body))


def count(code: Code, n: Node) -> str:
    place = code.temporary(code.types.intermediate(n.type))
    code.emit(f"{place} := 0;")
    _emit_loop(code, n, lambda _, b: [f"if {b} then {place} := {place} + 1; end;"])
    return place


def extreme(better: str) -> Rule:
    def rule(code: Code, n: Node) -> str:
        otherwise = code.expression(n.args[2])
        place, flag = code.temporary(code.types.intermediate(n.type)), code.temporary("boolean")
        code.emit(f"{place} := {otherwise};")
        code.emit(f"{flag} := false;")

        def each(_: str, b: str) -> list[str]:
            return [f"if !{flag} | {b} {better} {place} then {place} := {b}; {flag} := true; end;"]

        _emit_loop(code, n, each)
        return place

    return rule


def select(code: Code, n: Node) -> str:
    place = code.temporary(code.types.name(n.type))
    assign(code, place, n.type, 0)
    _emit_loop(code, n, lambda x, b: [f"{place}[{x}] := {b};"])
    return place


def build(code: Code, n: Node) -> str:
    place = code.temporary(code.types.name(n.type))
    if code.types.empty(cast("MapType", n.type).key):
        assign(code, place, n.type, ())
    _emit_loop(code, n, lambda x, b: [f"{place}[{x}] := {b};"])
    return place
