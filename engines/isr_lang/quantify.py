"""Quantifiers over generator expressions: `forall(old.done.has(w) for w in Worker.all())`.

A generator expression over a symbolic set yields exactly once, with a bound variable. What it yields is the
body; the loop variables' names are kept for printing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import GeneratorType
from typing import TypeVar, cast

from isr_lang.containers import domains, frames
from isr_lang.errors import ModelError
from isr_lang.expr import Expr, Nothing, as_object, lift, wrap
from isr_lang.nodes import Binder, Node, apply, literal
from isr_lang.scalars import Bool, Count, Number
from isr_lang.types import BOOL

N = TypeVar("N", bound=Number)
V = TypeVar("V", bound=Expr)


def _read_generator(bodies: Iterable[object], name: str) -> tuple[list[Binder], Expr]:
    """The bound variables of a generator expression, outermost first, and its body."""
    if not isinstance(bodies, GeneratorType):
        raise ModelError(f"write a generator expression, {name}(... for x in S), not a {type(bodies).__name__}")
    generator = cast("GeneratorType[object, None, None]", bodies)
    frames.append([])
    try:
        body = next(cast("Generator[object, None, None]", generator), None)
        binders = frames[-1]
        scope = generator.gi_frame.f_locals if generator.gi_frame is not None else {}
        names = {b.node.attr: n for n, b in scope.items() if isinstance(b, Expr)}
        for binder in binders:
            if binder not in names:
                raise ModelError(
                    "iterate a set in the generator itself, forall(... for x in S), not in a list inside it"
                )
            binder.set_name(names[binder])
        if not binders or next(cast("Generator[object, None, None]", generator), None) is not None:
            raise ModelError(f"{name} ranges over symbolic sets: {name}(... for x in S)")
    finally:
        frames.pop()
    if isinstance(body, bool):
        body = Bool(literal(body, BOOL))
    if not isinstance(body, Expr):
        raise ModelError(f"the body of {name} must be a symbolic value, not {body!r}")
    return binders, body


def _nest(op: str, bodies: Iterable[object]) -> Bool:
    binders, body = _read_generator(bodies, op)
    node = lift(body, BOOL)
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
    binders, body = _read_generator(bodies, op)
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


def when(condition: Bool, then: V, otherwise: V | Nothing | int | bool) -> V:
    """`then` if the condition holds, else `otherwise`."""
    if not isinstance(as_object(condition), Bool) or not isinstance(as_object(then), Expr):
        raise ModelError("write when(condition, a, b) with a symbolic condition and a symbolic a")
    return cast("V", wrap(apply("when", condition.node, then.node, lift(otherwise, then.node.type))))


def rename_apart(
    node: Node, names_in_use: frozenset[str], visited: set[tuple[int, frozenset[str]]] | None = None
) -> None:
    """Number bound variables that would hide a name of an enclosing scope, `w` to `w2`.

    Python functions that build parts of a model bring their loop variables along. A reader of the printed model must
    be able to tell them apart, and TLA+ forbids one name to hide another.
    """
    visited = set() if visited is None else visited
    if (id(node), names_in_use) in visited:
        return
    visited.add((id(node), names_in_use))
    inner = names_in_use
    if isinstance(node.attr, Binder) and node.op != "bound":
        binder, number, name = node.attr, 1, node.attr.name
        while binder.name in names_in_use:
            number += 1
            binder.set_name(f"{name}{number}")
        inner = names_in_use | {binder.name}
    for position, argument in enumerate(node.args):
        rename_apart(argument, inner if position == 1 else names_in_use, visited)
