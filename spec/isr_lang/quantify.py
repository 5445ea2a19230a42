"""Quantifiers over generator expressions: `forall(old.isr.has(f) for f in Replica.all())`.

A generator expression over a symbolic set yields exactly once, with a bound variable. What it yields is the
body; the loop variables' names are kept for printing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import GeneratorType
from typing import TypeVar, cast

from isr_lang.errors import ModelError
from isr_lang.nodes import Binder, Node, apply, literal
from isr_lang.types import BOOL
from isr_lang.values import Bool, Count, Expr, Number, domains, frames, lift, wrap

N = TypeVar("N", bound=Number)
V = TypeVar("V", bound=Expr)


def _read(bodies: Iterable[object], name: str) -> tuple[list[Binder], Expr]:
    if not isinstance(bodies, GeneratorType):
        raise ModelError(f"{name} takes a generator expression: {name}(... for x in S)")
    generator = cast("Generator[object, None, None]", bodies)
    frames.append([])
    try:
        body = next(generator, None)
        binders = frames[-1]
        names = {b.node.attr: n for n, b in generator.gi_frame.f_locals.items() if isinstance(b, Expr)}
        for binder in binders:
            if binder not in names:
                raise ModelError("iterate a set only in the generator itself, not in a comprehension inside it")
            binder.renamed(names[binder])
        if next(generator, None) is not None or not binders:
            raise ModelError(f"{name} takes one generator over symbolic sets")
    finally:
        frames.pop()
    if isinstance(body, bool):
        body = Bool(literal(body, BOOL))
    if not isinstance(body, Expr):
        raise ModelError(f"the body of {name} must be a symbolic value, not {body!r}")
    return binders, body


def _nest(op: str, bodies: Iterable[object]) -> Bool:
    binders, body = _read(bodies, op)
    node = body.node
    for binder in reversed(binders):
        node = apply(op, domains[binder], node, attr=binder)
    return Bool(node)


def forall(bodies: Iterable[Bool]) -> Bool:
    """Every one of them holds."""
    return _nest("forall", bodies)


def exists(bodies: Iterable[Bool]) -> Bool:
    """At least one of them holds."""
    return _nest("exists", bodies)


def _single(op: str, bodies: Iterable[object], *rest: Callable[[Expr], Node]) -> Node:
    binders, body = _read(bodies, op)
    if len(binders) != 1:
        raise ModelError(f"{op} takes one loop variable")
    return apply(op, domains[binders[0]], body.node, *(r(body) for r in rest), attr=binders[0])


def count(bodies: Iterable[Bool]) -> Count:
    """How many of them hold."""
    return Count(_single("count", bodies))


def smallest(bodies: Iterable[N], *, or_else: N | int) -> N:
    """The least of them; `or_else` when there are none."""
    return cast("N", wrap(_single("smallest", bodies, lambda body: lift(or_else, body.node.type))))


def largest(bodies: Iterable[N], *, or_else: N | int) -> N:
    """The greatest of them; `or_else` when there are none."""
    return cast("N", wrap(_single("largest", bodies, lambda body: lift(or_else, body.node.type))))


def when(condition: Bool, then: V, otherwise: V | int | bool) -> V:
    """`then` if the condition holds, else `otherwise`."""
    if not isinstance(condition, Bool) or not isinstance(then, Expr):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError("write when(condition, a, b) with a symbolic condition and a symbolic a")
    return cast("V", wrap(apply("when", condition.node, then.node, lift(otherwise, then.node.type))))
