"""The values a model computes with: thin typed wrappers around nodes.

Two readers are served. At run time the wrappers build the graph and refuse what Python cannot express
symbolically. For the type checkers the signatures are narrow, so that `leader == high_watermark` or a map
indexed by the wrong sort is an error before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypeVar, cast, get_args, get_origin

from isr_lang.errors import ModelError, Where, model_line
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

# The binders created while a generator expression is read; quantify.py pushes and pops.
frames: list[list[Binder]] = []
# What each binder ranges over, and the typed wrapper of each scalar type.
domains: dict[Binder, Node] = {}
classes: dict[Type, type[Expr]] = {}


def _doc(cls: type) -> str:
    return (cls.__doc__ or "").strip()


class Expr:
    """A symbolic value. It has no truth, no order and no length while the model is read."""

    __slots__ = ("node", "site")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.site: Where = model_line()

    def __bool__(self) -> NoReturn:
        raise ModelError(
            "a symbolic value has no truth here. Write & | ~ for and/or/not, x.implies(y) for a filter, "
            "when(c, a, b) for if, S.has(x) for in, and (a < b) & (b < c), each comparison in parentheses"
        )

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return repr(self.node)

    if not TYPE_CHECKING:  # the type checkers know better: these operators do not exist

        def _refused(self, other):
            raise ModelError(
                f"this operator does not apply to {self.node!r}: {self.node.type}. "
                "If an & or | is meant, put each comparison in parentheses: (a == b) & (c == d)"
            )

        __and__ = __rand__ = __or__ = __ror__ = __add__ = __radd__ = __sub__ = __rsub__ = _refused
        __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __mod__ = __floordiv__ = __truediv__ = _refused

        def __contains__(self, item):
            raise ModelError("write S.has(x) instead of x in S")

        def __len__(self):
            raise ModelError("write size(S) or s.length() instead of len()")

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise ModelError(f"{self.node.type} has no '{name}'{nearest(name, dir(type(self)))}")


def nearest(name: str, choices: list[str] | tuple[str, ...]) -> str:
    """'; did you mean …?' or nothing."""
    import difflib

    close = difflib.get_close_matches(name, [c for c in choices if not c.startswith("_")], n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


class Bool(Expr):
    """A condition."""

    __slots__ = ()
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
    """An integer of a named range: `class Offset(Number, high=LOG)`. Numbers of two ranges do not mix."""

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
    def all(cls) -> Set[Self]:
        """Every number of the range."""
        return Set(Node("every", (), None, SetType(cls.type)))

    @classmethod
    def below(cls, end: Self | Count | int) -> Set[Self]:
        """The numbers of the range that are less than `end`."""
        return Set(apply("below", lift(end, cls.type)))


class Count(Number, high=0):
    """A plain integer: a bound, or how many there are. Not the type of a variable."""

    __slots__ = ()

    if TYPE_CHECKING:  # a count may be compared with any number; the result keeps the number's type

        def __add__(self, other: Count | int) -> Count: ...  # type: ignore[override]
        def __sub__(self, other: Count | int) -> Count: ...  # type: ignore[override]
        def __lt__(self, other: Number | int) -> Bool: ...
        def __le__(self, other: Number | int) -> Bool: ...
        def __gt__(self, other: Number | int) -> Bool: ...
        def __ge__(self, other: Number | int) -> Bool: ...
        def __eq__(self, other: Number | int) -> Bool: ...  # type: ignore[override]
        def __ne__(self, other: Number | int) -> Bool: ...  # type: ignore[override]


class Sort(Expr):
    """Names without an order: `class Replica(Sort, size=REPLICAS, prefix="r", symmetric=True)`."""

    __slots__ = ()
    type: ClassVar[SortType]

    def __init_subclass__(cls, *, size: Count, prefix: str, symmetric: bool = True) -> None:
        cls.type = SortType(cls.__name__, size.node, symmetric, prefix, _doc(cls))
        classes[cls.type] = cls

    def __eq__(self, other: Self | Maybe[Self]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(other, self) if isinstance(other, Maybe) else equal(self, other)

    def __ne__(self, other: Self | Maybe[Self]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~(self == other)

    __hash__ = Expr.__hash__

    @classmethod
    def all(cls) -> Set[Self]:
        """Every element of the sort."""
        return Set(Node("every", (), None, SetType(cls.type)))


class Choice(Expr):
    """One of a few names: `class Mail(Choice): NONE: ClassVar[Mail]; SENT: ClassVar[Mail]`."""

    __slots__ = ()
    type: ClassVar[ChoiceType]

    def __init_subclass__(cls) -> None:
        members = tuple(n for n in cls.__annotations__ if n.isupper())
        cls.type = ChoiceType(cls.__name__, members, _doc(cls))
        classes[cls.type] = cls
        for position, name in enumerate(members):
            setattr(cls, name, cls(literal(position, cls.type)))

    def __eq__(self, other: Self) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Self) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__


class Nothing:
    """The value of a Maybe that is not there; written NONE."""


NONE = Nothing()

E = TypeVar("E", bound="Bool | Number | Sort | Choice")
K = TypeVar("K", bound="Bool | Number | Sort | Choice")
I_ = TypeVar("I_", bound=Number)
V = TypeVar("V", bound=Expr)


class Maybe(Expr, Generic[E]):
    """A value of E, or NONE."""

    __slots__ = ()

    def __eq__(self, other: E | Maybe[E] | Nothing) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: E | Maybe[E] | Nothing) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__

    def or_else(self, other: E) -> E:
        """The value or, when there is none, `other`."""
        of = cast("MaybeType", self.node.type).of
        return cast("E", wrap(apply("or_else", self.node, lift(other, of))))


class Set(Expr, Generic[E]):
    """A set of E. Iterating it inside forall(...), exists(...) and their kin binds one member."""

    __slots__ = ()

    def __iter__(self) -> Iterator[E]:
        if not frames:
            raise ModelError("iterate a set only in a generator: forall(... for x in S), S.where(lambda x: ...)")
        binder = Binder(cast("SetType", self.node.type).of)
        frames[-1].append(binder)
        domains[binder] = self.node
        yield cast("E", wrap(Node("bound", (), binder, binder.type)))

    def _set(self, op: str, other: Expr | object) -> Set[E]:
        return Set(apply(op, self.node, lift(other, self.node.type)))

    def _of(self) -> Scalar:
        return cast("SetType", self.node.type).of

    @staticmethod
    def of(*members: E) -> Set[E]:
        """The set of these."""
        kind = cast("Scalar", members[0].node.type)
        node = literal(0, SetType(kind))
        for member in members:
            node = apply("with", node, member.node)
        return Set(node)

    @staticmethod
    def empty(kind: type[E]) -> Set[E]:
        return Set(literal(0, SetType(kind.type)))  # type: ignore[attr-defined, unused-ignore]  # not on Bool

    def has(self, member: E) -> Bool:
        return Bool(apply("has", self.node, lift(member, self._of())))

    def including(self, member: E) -> Set[E]:
        return Set(apply("with", self.node, lift(member, self._of())))

    def excluding(self, member: E) -> Set[E]:
        return Set(apply("without", self.node, lift(member, self._of())))

    def __or__(self, other: Set[E]) -> Set[E]:
        return self._set("union", other)

    def __and__(self, other: Set[E]) -> Set[E]:
        return self._set("intersection", other)

    def __sub__(self, other: Set[E]) -> Set[E]:
        return self._set("difference", other)

    def __le__(self, other: Set[E]) -> Bool:
        return Bool(apply("subset", self.node, lift(other, self.node.type)))

    def is_empty(self) -> Bool:
        return equal(self, Set(literal(0, self.node.type)))

    def size(self) -> Count:
        return Count(apply("size", self.node))

    def where(self, condition: Callable[[E], Bool]) -> Set[E]:
        """The members for which the condition holds."""
        binder, node = bind(condition, self._of())
        return Set(apply("select", self.node, node, attr=binder))

    def __eq__(self, other: Set[E]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Set[E]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__


class Map(Expr, Generic[K, V]):
    """A total function from K to V."""

    __slots__ = ()

    def __getitem__(self, key: K) -> V:
        kind = cast("MapType", self.node.type).key
        return cast("V", wrap(apply("get", self.node, lift(key, kind))))

    def put(self, key: K, value: V | int | Nothing) -> Map[K, V]:
        """The map with another value at one key."""
        t = cast("MapType", self.node.type)
        return Map(apply("put", self.node, lift(key, t.key), lift(value, t.value)))

    @staticmethod
    def build(key: type[K], value: Callable[[K], V]) -> Map[K, V]:
        """The map whose value at each key is `value(key)`."""
        kind: Scalar = key.type  # type: ignore[attr-defined, unused-ignore]  # not on Bool
        binder, node = bind(value, kind)
        return Map(apply("build", Node("every", (), None, SetType(kind)), node, attr=binder))

    def __iter__(self) -> NoReturn:
        raise ModelError("iterate the keys: forall(... m[k] ... for k in K.all())")

    def __eq__(self, other: Map[K, V]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Map[K, V]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__


class Seq(Expr, Generic[I_, E]):
    """A bounded sequence of E with 0-based positions of the number type I_."""

    __slots__ = ()

    def _t(self) -> SeqType:
        return cast("SeqType", self.node.type)

    def length(self) -> I_:
        return cast("I_", wrap(apply("length", self.node)))

    def __getitem__(self, position: I_ | int) -> E:
        return cast("E", wrap(apply("at", self.node, lift(position, self._t().index))))

    def append(self, item: E) -> Seq[I_, E]:
        return Seq(apply("append", self.node, lift(item, self._t().of)))

    def take(self, n: I_ | int) -> Seq[I_, E]:
        """The first n items, or all when there are fewer."""
        return Seq(apply("take", self.node, lift(n, self._t().index)))

    def is_prefix_of(self, other: Seq[I_, E]) -> Bool:
        return Bool(apply("prefix", self.node, lift(other, self.node.type)))

    @staticmethod
    def empty(index: type[I_], of: type[E]) -> Seq[I_, E]:
        kind: Scalar = of.type  # type: ignore[attr-defined, unused-ignore]  # not on Bool
        return Seq(literal((), SeqType(index.type, kind)))

    def __iter__(self) -> NoReturn:
        raise ModelError("iterate the positions: forall(... s[i] ... for i in Offset.below(s.length()))")

    def __eq__(self, other: Seq[I_, E]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Seq[I_, E]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__


classes[BOOL] = Bool
Number.type = COUNT
Count.type = COUNT
classes[COUNT] = Count
Bool.true, Bool.false = Bool(literal(True, BOOL)), Bool(literal(False, BOOL))


def wrap(node: Node) -> Expr:
    """The typed value for a node."""
    match node.type:
        case BoolType() | NumberType() | SortType() | ChoiceType():
            return classes[node.type](node)
        case MaybeType():
            return Maybe(node)
        case SetType():
            return Set(node)
        case MapType():
            return Map(node)
        case SeqType():
            return Seq(node)


def lift(value: object, type: Type) -> Node:
    """The node for an operand: a symbolic value, or a Python constant where one is unambiguous."""
    if isinstance(value, Expr):
        if isinstance(type, MaybeType) and value.node.type == type.of:
            return apply("some", value.node)
        return value.node
    if isinstance(value, bool) and isinstance(type, BoolType):
        return literal(value, type)
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(type, NumberType):
        return literal(value, type)
    if isinstance(value, Nothing) and isinstance(type, MaybeType):
        return literal(0, type)
    raise ModelError(f"{value!r} is not a value of {type}")


def equal(a: Expr, b: object) -> Bool:
    left, right = a.node, lift(b, a.node.type)
    if isinstance(right.type, MaybeType) and right.type.of == left.type:
        left = apply("some", left)
    return Bool(apply("equal", left, right))


def bind(body: Callable[[Any], Expr], type: Scalar) -> tuple[Binder, Node]:
    """A lambda traced with one bound variable, named after its parameter."""
    names = body.__code__.co_varnames[: body.__code__.co_argcount]
    if len(names) != 1:
        raise ModelError("expected a function of one parameter")
    binder = Binder(type, names[0])
    result: object = body(wrap(Node("bound", (), binder, type)))
    if isinstance(result, bool):
        result = Bool(literal(result, BOOL))
    if not isinstance(result, Expr):
        raise ModelError(f"the body must be a symbolic value, not {result!r}")
    return binder, result.node


def type_of(annotation: Any) -> Type:
    """The type that an annotation such as `Map[Replica, Set[Replica]]` stands for."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Maybe:
        return MaybeType(cast("Scalar", type_of(args[0])))
    if origin is Set:
        return SetType(cast("Scalar", type_of(args[0])))
    if origin is Map:
        return MapType(cast("Scalar", type_of(args[0])), type_of(args[1]))
    if origin is Seq:
        return SeqType(cast("NumberType", type_of(args[0])), cast("Scalar", type_of(args[1])))
    if annotation is Bool:
        return BOOL
    if isinstance(annotation, type) and issubclass(annotation, Number | Sort | Choice):
        return annotation.type
    raise ModelError(f"{annotation!r} is not a type of the language")
