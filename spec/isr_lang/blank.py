"""The value of a variable that nothing can observe any more."""

from __future__ import annotations

from typing import TypeVar, cast

from isr_lang.errors import ModelError
from isr_lang.expr import Expr, wrap
from isr_lang.nodes import Binder, Node, literal
from isr_lang.types import BoolType, MapType, MaybeType, NumberType, SeqType, SetType, SortType, Type

V = TypeVar("V", bound=Expr)

_binders: dict[Type, Binder] = {}


def blank(like: V) -> V:
    """The first value of the type of `like`: none, empty, 0, false; of a map, that for every key.

    `new.position[r] == blank(old.position[r])` resets what nobody will read again, so that states that
    differ in nothing but leftovers are one state.
    """
    return cast("V", wrap(_blank(like.node.type)))


def _blank(type: Type) -> Node:
    match type:
        case BoolType():
            return literal(False, type)
        case NumberType():
            return literal(type.low, type)
        case SeqType():
            return literal((), type)
        case MapType():
            binder = _binders.setdefault(type, Binder(type.key, "k"))
            return Node("build", (Node("every", (), None, SetType(type.key)), _blank(type.value)), binder, type)
        case MaybeType() | SetType():
            return literal(0, type)
        case SortType():
            raise ModelError(f"a {type} has no blank; use Maybe[{type}]")
        case _:
            return literal(0, type)
