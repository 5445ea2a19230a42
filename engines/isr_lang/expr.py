"""What all symbolic values have in common: a node, the line of the model that made it, and no truth.

The classes that a model's author sees (scalars.py, containers.py) are thin typed wrappers around nodes. They
serve two readers: at run time they build the graph and refuse what Python cannot express symbolically; for
the type checkers their signatures are narrow, so that comparing two kinds of number or indexing a map by the
wrong sort is an error before anything runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from isr_lang.errors import ModelError, Where, asked_for_truth, model_line
from isr_lang.nodes import Binder, Node, apply, literal
from isr_lang.types import (
    BOOL,
    COUNT,
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    Scalar,
    SeqType,
    SetType,
    SortType,
    Type,
)

MYPY = False
"""mypy takes this for true. Its way to refuse `if x` is a class that has no `__bool__` (truthy-bool), and
pyright's is a `__bool__` that does not return."""


class Expr:
    """A symbolic value. It has no truth, no order and no length while the model is read."""

    __slots__ = ("node", "site")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.site: Where = model_line()

    if not MYPY:

        def __bool__(self) -> NoReturn:
            raise ModelError(f"a symbolic value is neither true nor false here. {asked_for_truth()}")

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return repr(self.node)

    if not TYPE_CHECKING:  # the type checkers know better: these operators do not exist

        def _refuse_operator(self, other=None):
            raise ModelError(
                f"this operator does not apply to {self.node!r}: {self.node.type}. "
                "If an & or | is meant, put each comparison in parentheses: (a == b) & (c == d)"
            )

        __and__ = __rand__ = __or__ = __ror__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse_operator
        __lt__ = __le__ = __gt__ = __ge__ = _refuse_operator
        __mul__ = __rmul__ = __mod__ = __floordiv__ = __truediv__ = __xor__ = __neg__ = _refuse_operator

        def __invert__(self):
            raise ModelError(f"~ negates a condition, and {self.node!r} is a {self.node.type}: ~(a == b)")

        def __contains__(self, item):
            raise ModelError("write S.has(x) instead of x in S")

        def __len__(self):
            raise ModelError("write S.size() for a set or s.length() for a sequence instead of len()")

        def __index__(self):
            raise ModelError("a symbolic value is no Python number; for range(n) write Number.below(n)")

        def __iter__(self):
            raise ModelError(f"iterate sets, forall(... for x in S): {self.node!r} is a {self.node.type}")

        def __getitem__(self, key):
            raise ModelError(f"only a map or a sequence has an index: {self.node!r} is a {self.node.type}")

        def __setitem__(self, key, value):
            raise ModelError("write new.x[i] == e (an update is an equation), not an assignment")

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise ModelError(f"a {self.node.type} has no '{name}'{nearest(name, dir(type(self)))}")


E = TypeVar("E", bound=Expr)

classes: dict[Type, type[Expr]] = {}
"""The class of each scalar type; each declaration of a model adds its own."""

containers: dict[type, Callable[[Node], Expr]] = {}
"""The class of each type that is made of others."""


def wrap(node: Node) -> Expr:
    """The typed value for a node."""
    made = containers.get(node.type.__class__) or classes[node.type]
    return made(node)


class Nothing:
    """The value of a Maybe that is not there; written NONE."""

    def __repr__(self) -> str:
        return "NONE"


NONE = Nothing()


def fits(actual_type: Type, expected_type: Type) -> bool:
    """Whether a value of one type can stand where the other is wanted."""
    numbers = isinstance(actual_type, NumberType) and isinstance(expected_type, NumberType)
    return actual_type == expected_type or (numbers and COUNT in (actual_type, expected_type))


def lift(value: object, type: Type) -> Node:
    """The node for an operand: a symbolic value, or a Python constant where one is unambiguous."""
    if isinstance(value, Expr):
        if isinstance(type, MaybeType) and value.node.type == type.of:
            return apply("some", value.node)
        if not fits(value.node.type, type):
            raise ModelError(f"{value!r} is a {value.node.type}, not the {type} needed here{_slip(type)}")
        return value.node
    if isinstance(value, bool) and isinstance(type, BoolType):
        return literal(value, type)
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(type, NumberType):
        return literal(value, type)
    if isinstance(value, Nothing) and isinstance(type, MaybeType):
        return literal(0, type)
    raise ModelError(f"{value!r} is not a value of {type}{_spelling(value, type)}")


def _slip(type: Type) -> str:
    """A hint for a wrong type that is often a slip: & and | bind more tightly than comparisons."""
    slipped = isinstance(type, BoolType)
    return ". Put each comparison in parentheses: (a == b) & (c == d)" if slipped else ""


def _spelling(value: object, type: Type) -> str:
    """What to write instead of a Python value that looks like one of the type."""
    if isinstance(type, ChoiceType) and isinstance(value, str):
        close = difflib.get_close_matches(value.upper(), type.members, n=1) or list(type.members[:1])
        return "; write " + "".join(f"{type}.{member}" for member in close)
    if value is None and isinstance(type, MaybeType):
        return "; write NONE"
    if isinstance(value, set | frozenset) and isinstance(type, SetType):
        return "; write Set.of(a, b) or Set.empty(...)"
    if isinstance(value, list | tuple) and isinstance(type, SeqType):
        return "; write Seq.empty(...).append(a)"
    if isinstance(value, dict) and isinstance(type, MapType):
        return "; write Map.build(..., lambda k: ...)"
    if isinstance(value, int) and isinstance(type, SortType):
        return "; the elements of a sort have no numbers: take one as a parameter"
    return ""


def bind(body: Callable[[E], Expr], type: Scalar) -> tuple[Binder, Node]:
    """A lambda traced with one bound variable, named after its parameter."""
    names = body.__code__.co_varnames[: body.__code__.co_argcount]
    if len(names) != 1:
        raise ModelError("write a function of one parameter: lambda x: ...")
    binder = Binder(type, names[0].strip("_") or "x")
    result = as_object(body(cast("E", wrap(Node("bound", (), binder, type)))))
    if isinstance(result, bool):
        return binder, literal(result, BOOL)
    if not isinstance(result, Expr):
        raise ModelError(f"the body of the function must be a symbolic value, not {result!r}")
    return binder, result.node


def as_object(value: object) -> object:
    """The same value, but of unknown type: a model without annotations may return something else than they promise."""
    return value


def nearest(name: str, choices: Iterable[str]) -> str:
    """The end of an error message: '; did you mean …?', or empty if no choice is near."""
    close = difflib.get_close_matches(name, [c for c in choices if not c.startswith("_")], n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
