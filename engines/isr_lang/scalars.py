"""Values without parts: conditions, numbers of a named range, names without an order, and choices.

A model declares its own kinds of number, sort and choice as subclasses; the class is the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, cast

from isr_lang.errors import ModelError
from isr_lang.expr import Expr, classes, lift, wrap
from isr_lang.nodes import Node, apply, literal
from isr_lang.types import BOOL, COUNT, BoolType, ChoiceType, MaybeType, NumberType, SetType, SortType

if TYPE_CHECKING:
    from isr_lang.containers import Maybe, Set


def _doc(cls: type) -> str:
    return (cls.__doc__ or "").strip()


def equal(a: Expr, b: object) -> Bool:
    """a == b; a value and a Maybe of its type are equal when the Maybe holds it."""
    if isinstance(b, Expr) and isinstance(b.node.type, MaybeType) and a.node.type == b.node.type.of:
        return Bool(apply("equal", apply("some", a.node), b.node))
    return Bool(apply("equal", a.node, lift(b, a.node.type)))


class Bool(Expr):
    """A condition. `a & b`, `a | b`, `~a`, `a.implies(b)`; each comparison in parentheses."""

    __slots__ = ()
    type: ClassVar[BoolType] = BOOL
    true: ClassVar[Bool]
    false: ClassVar[Bool]

    def __and__(self, other: Bool) -> Bool:
        return Bool(apply("and", self.node, lift(other, BOOL)))

    def __or__(self, other: Bool) -> Bool:
        return Bool(apply("or", self.node, lift(other, BOOL)))

    def __invert__(self) -> Bool:
        return Bool(apply("not", self.node))

    def implies(self, other: Bool) -> Bool:
        return Bool(apply("implies", self.node, lift(other, BOOL)))

    def __eq__(self, other: Bool | bool) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Bool | bool) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__


class Number(Expr):
    """An integer of a named range: `class Level(Number, high=TOP)`. Numbers of two ranges do not mix."""

    __slots__ = ()
    type: ClassVar[NumberType]

    def __init_subclass__(cls, *, low: int = 0, high: Count | int) -> None:
        top = high.node if isinstance(high, Expr) else literal(high, COUNT)
        cls.type = NumberType(cls.__name__, low, top, _doc(cls))
        classes[cls.type] = cls

    def __add__(self, other: Self | Count | int) -> Self:
        return cast("Self", wrap(apply("plus", self.node, lift(other, self.node.type))))

    def __sub__(self, other: Self | Count | int) -> Self:
        return cast("Self", wrap(apply("minus", self.node, lift(other, self.node.type))))

    def __lt__(self, other: Self | Count | int) -> Bool:
        return Bool(apply("less", self.node, lift(other, self.node.type)))

    def __le__(self, other: Self | Count | int) -> Bool:
        return Bool(apply("at_most", self.node, lift(other, self.node.type)))

    def __gt__(self, other: Self | Count | int) -> Bool:
        return Bool(apply("less", lift(other, self.node.type), self.node))

    def __ge__(self, other: Self | Count | int) -> Bool:
        return Bool(apply("at_most", lift(other, self.node.type), self.node))

    def __eq__(self, other: Self | Count | int) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Self | Count | int) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__

    @classmethod
    def of(cls, value: Count | int) -> Self:
        """A constant as a number of the range, where Python's own integer says too little."""
        return cast("Self", wrap(cls._node(value)))

    @classmethod
    def _node(cls, value: Number | int) -> Node:
        node = lift(value, cls.type)
        return node if node.type == cls.type else apply("plus", literal(0, cls.type), node)

    @classmethod
    def all(cls) -> Set[Self]:
        """Every number of the range."""
        return cast("Set[Self]", wrap(Node("every", (), None, SetType(cls.type))))

    @classmethod
    def below(cls, end: Self | Count | int) -> Set[Self]:
        """The numbers of the range that are less than `end`."""
        return cast("Set[Self]", wrap(apply("below", cls._node(end))))


class Count(Number, high=0):
    """A plain integer: a bound, or how many there are. Not the type of a variable."""

    __slots__ = ()

    if TYPE_CHECKING:  # a count may be compared with any number; the result keeps the number's type

        def __add__(self, other: Count | int) -> Count: ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __sub__(self, other: Count | int) -> Count: ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __lt__(self, other: Number | int) -> Bool: ...
        def __le__(self, other: Number | int) -> Bool: ...
        def __gt__(self, other: Number | int) -> Bool: ...
        def __ge__(self, other: Number | int) -> Bool: ...
        def __eq__(self, other: Number | int) -> Bool: ...  # type: ignore[override]
        def __ne__(self, other: Number | int) -> Bool: ...  # type: ignore[override]


class Sort(Expr):
    """Names without an order: `class Worker(Sort, size=WORKERS, prefix="w", symmetric=True)`."""

    __slots__ = ()
    type: ClassVar[SortType]

    def __init_subclass__(cls, *, size: Count, prefix: str, symmetric: bool = True) -> None:
        cls.type = SortType(cls.__name__, size.node, symmetric, prefix, _doc(cls))
        classes[cls.type] = cls

    def __eq__(self, other: Self | Maybe[Self]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Self | Maybe[Self]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__

    @classmethod
    def all(cls) -> Set[Self]:
        """Every element of the sort."""
        return cast("Set[Self]", wrap(Node("every", (), None, SetType(cls.type))))


class Choice(Expr):
    """One of a few names: `class Light(Choice)` with a line `RED: ClassVar["Light"]` for each."""

    __slots__ = ()
    type: ClassVar[ChoiceType]

    def __init_subclass__(cls) -> None:
        members = tuple(n for n in cls.__annotations__ if n.isupper())
        if not members:
            raise ModelError(f'write the members of {cls.__name__} as NAME: ClassVar["{cls.__name__}"]')
        cls.type = ChoiceType(cls.__name__, members, _doc(cls))
        classes[cls.type] = cls
        for position, name in enumerate(members):
            setattr(cls, name, cls(literal(position, cls.type)))

    def __eq__(self, other: Self) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Self) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__


Scalar = Bool | Number | Sort | Choice
"""What can be a member of a set, a key of a map or an item of a sequence."""

classes[BOOL] = Bool
classes[COUNT] = Count
Number.type = Count.type = COUNT
Bool.true, Bool.false = Bool(literal(True, BOOL)), Bool(literal(False, BOOL))
