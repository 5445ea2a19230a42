"""Blank values, for variables that nothing reads any more."""

from __future__ import annotations

from typing import TypeVar, cast

from isr_lang.errors import ModelError
from isr_lang.expr import Expr, wrap
from isr_lang.nodes import Binder, Node, literal
from isr_lang.types import BoolType, MapType, MaybeType, NumberType, SeqType, SetType, SortType, Type

V = TypeVar("V", bound=Expr)

_binders: dict[tuple[Type, int], Binder] = {}
"""By type, and how many maps are around it.

Names are given in place. A model that has a map deeper down would rename it for all models, and then their hashes would
depend on which was read first. A map of plain values has one name alone and in one other map, as hashes are stored.
"""


def blank(like: V) -> V:
    """The first value of the type of `like`: none, empty, the lowest number, false; a map has it at every key.

    `new.position[r] == blank(old.position[r])` resets a value that nobody will read again. Without it, states that
    differ in such leftovers only would count as different. ModelError for a sort, which has no first element.
    """
    return cast("V", wrap(_blank(like.node.type)))


def _blank(type: Type, depth: int = 0) -> Node:
    match type:
        case BoolType():
            return literal(False, type)
        case NumberType():
            return literal(type.low, type)
        case SeqType():
            return literal((), type)
        case MapType():
            is_shared = depth == 1 and not isinstance(type.value, MapType)
            binder = _binders.setdefault((type, 0 if is_shared else depth), Binder(type.key, "k"))
            every = Node("every", (), None, SetType(type.key))
            return Node("build", (every, _blank(type.value, depth + 1)), binder, type)
        case MaybeType() | SetType():
            return literal(0, type)
        case SortType():
            raise ModelError(f"a {type} has no blank; use Maybe[{type}]")
        case _:
            return literal(0, type)
