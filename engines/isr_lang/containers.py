"""Values made of others: Maybe, Set, Map and Seq. All are immutable: an "update" is another value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar, cast, get_args, get_origin

from isr_lang.errors import ModelError
from isr_lang.expr import Expr, Nothing, as_object, bind, containers, fits, lift, wrap
from isr_lang.nodes import Binder, Node, apply, literal
from isr_lang.scalars import Bool, Choice, Count, Number, Scalar, Sort, equal
from isr_lang.types import MapType, MaybeType, NumberType, SeqType, SetType, Type
from isr_lang.types import Scalar as ScalarType

frames: list[list[Binder]] = []
"""One list per generator expression that is being read (quantify.py): the binders it has made so far."""

domains: dict[Binder, Node] = {}
"""The set that each binder ranges over."""

E = TypeVar("E", bound=Scalar)
K = TypeVar("K", bound=Scalar)
I_ = TypeVar("I_", bound=Number)
V = TypeVar("V", bound=Expr)
# The type variables of static methods, which are called on the bare class: Set.empty(Worker).
E2 = TypeVar("E2", bound=Scalar)
K2 = TypeVar("K2", bound=Scalar)
J = TypeVar("J", bound=Number)
V2 = TypeVar("V2", bound=Expr)


class Maybe(Expr, Generic[E]):
    """A value of E, or NONE."""

    __slots__ = ()

    def __eq__(self, other: E | Maybe[E] | Nothing) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: E | Maybe[E] | Nothing) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__

    @staticmethod
    def of(value: E2) -> Maybe[E2]:
        """A Maybe that holds the value."""
        return Maybe(apply("some", value.node))

    def or_else(self, other: E | int) -> E:
        """The value or, when there is none, `other`."""
        of = cast("MaybeType", self.node.type).of
        return cast("E", wrap(apply("or_else", self.node, lift(other, of))))


class Set(Expr, Generic[E]):
    """A set of E. Iterating it inside forall(...), exists(...) and their kin binds one member."""

    __slots__ = ()

    def __iter__(self) -> Iterator[E]:
        if not frames:
            raise ModelError(
                "iterate a set in a generator for a quantifier, forall(... for x in S), or write S.where(lambda x: ...)"
            )
        binder = Binder(self._of())
        frames[-1].append(binder)
        domains[binder] = self.node
        yield cast("E", wrap(Node("bound", (), binder, binder.type)))

    def _of(self) -> ScalarType:
        return cast("SetType", self.node.type).of

    def _like(self, op: str, *operands: Node) -> Set[E]:
        return Set[E](apply(op, self.node, *operands))

    @staticmethod
    def of(*members: E2) -> Set[E2]:
        """The set of these members."""
        if not members:
            raise ModelError("write Set.empty(...) for a set of nothing")
        kind = cast("ScalarType", members[0].node.type)
        node = literal(0, SetType(kind))
        for member in members:
            node = apply("with", node, lift(member, kind))
        return Set[E2](node)

    @staticmethod
    def empty(kind: type[E2]) -> Set[E2]:
        return Set[E2](literal(0, SetType(kind.type)))

    def has(self, member: E) -> Bool:
        return Bool(apply("has", self.node, lift(member, self._of())))

    def including(self, member: E) -> Set[E]:
        return self._like("with", lift(member, self._of()))

    def excluding(self, member: E) -> Set[E]:
        return self._like("without", lift(member, self._of()))

    def __or__(self, other: Set[E]) -> Set[E]:
        return self._like("union", lift(other, self.node.type))

    def __and__(self, other: Set[E]) -> Set[E]:
        return self._like("intersection", lift(other, self.node.type))

    def __sub__(self, other: Set[E]) -> Set[E]:
        return self._like("difference", lift(other, self.node.type))

    def __le__(self, other: Set[E]) -> Bool:
        return Bool(apply("subset", self.node, lift(other, self.node.type)))

    def is_empty(self) -> Bool:
        return Bool(apply("equal", self.node, literal(0, self.node.type)))

    def size(self) -> Count:
        return Count(apply("size", self.node))

    def where(self, condition: Callable[[E], Bool]) -> Set[E]:
        """The members for which the condition holds."""
        binder, node = bind(condition, self._of())
        return Set[E](apply("select", self.node, node, attr=binder))

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
        if isinstance(found := as_object(key), Expr) and not fits(found.node.type, kind):
            raise ModelError(f"{self!r} is indexed by {kind}, and {key!r} is a {found.node.type}")
        return cast("V", wrap(apply("get", self.node, lift(key, kind))))

    def put(self, key: K, value: V | int | Nothing) -> Map[K, V]:
        """The map with another value at one key."""
        t = cast("MapType", self.node.type)
        return Map[K, V](apply("put", self.node, lift(key, t.key), lift(value, t.value)))

    @staticmethod
    def build(key: type[K2], value: Callable[[K2], V2]) -> Map[K2, V2]:
        """The map whose value at each key is `value(key)`."""
        binder, node = bind(value, key.type)
        return Map[K2, V2](apply("build", Node("every", (), None, SetType(key.type)), node, attr=binder))

    if not TYPE_CHECKING:  # a method that does not return would make code after it look unreachable

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
        return Seq[I_, E](apply("append", self.node, lift(item, self._t().of)))

    def take(self, n: I_ | int) -> Seq[I_, E]:
        """The first n items, or all when there are fewer."""
        return Seq[I_, E](apply("take", self.node, lift(n, self._t().index)))

    def is_prefix_of(self, other: Seq[I_, E]) -> Bool:
        return Bool(apply("prefix", self.node, lift(other, self.node.type)))

    @staticmethod
    def empty(index: type[J], of: type[E2]) -> Seq[J, E2]:
        return Seq[J, E2](literal((), SeqType(index.type, of.type)))

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise ModelError("iterate the positions: forall(... s[i] ... for i in Index.below(s.length()))")

    def __eq__(self, other: Seq[I_, E]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return equal(self, other)

    def __ne__(self, other: Seq[I_, E]) -> Bool:  # type: ignore[override]  # symbolic, not Python's
        return ~equal(self, other)

    __hash__ = Expr.__hash__


containers.update({MaybeType: Maybe, SetType: Set, MapType: Map, SeqType: Seq})


def type_of(annotation: object) -> Type:
    """The type that an annotation such as `Map[Worker, Set[Worker]]` stands for."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Maybe:
        return MaybeType(_scalar(args[0]))
    if origin is Set:
        return SetType(_scalar(args[0]))
    if origin is Map:
        return MapType(_scalar(args[0]), type_of(args[1]))
    if origin is Seq:
        return SeqType(_index(args[0]), _scalar(args[1]))
    if isinstance(annotation, type) and issubclass(annotation, Bool | Number | Sort | Choice):
        return annotation.type
    raise ModelError(f"{annotation!r} is not a type of the language")


def _scalar(annotation: object) -> ScalarType:
    kind = type_of(annotation)
    if isinstance(kind, MaybeType | SetType | MapType | SeqType):
        raise ModelError(f"a Maybe, Set or Seq is of plain values, and so are the keys of a Map: not a {kind}")
    return kind


def _index(annotation: object) -> NumberType:
    kind = type_of(annotation)
    if not isinstance(kind, NumberType) or kind.low != 0:
        raise ModelError(f"a Seq is indexed by a Number that starts at 0, not by {kind}")
    return kind
