"""The expression graph: hash-consed nodes and the one table of operators.

Every engine, exporter and printer is a table with one entry per operator of `OPERATORS`; a test compares
each with this one, so that no operator can be forgotten somewhere.

All operators are total. The answers outside the usual domain, the same in every engine:
`at` beyond the end of a sequence or `get` beyond the keys of a map is the first value of the type (a model
whose answer would depend on the order of a symmetric sort is refused); `take` of more items than a sequence
has is the whole sequence; `smallest` and `largest` of nothing are their last argument; a set has no member, and a
map no key, outside of its type. Arithmetic is on the integers, and a maybe has any number: only what is *stored* in
a variable must be in range, and `type-ok` is violated where it is not, or where a set or a map leaves something out
(isr_lang.left_out).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import attrs

from isr_lang.errors import ModelError
from isr_lang.types import (
    BOOL,
    COUNT,
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    SeqType,
    SetType,
    SortType,
    Type,
)


class Node:
    """One operator applied to nodes. Equal nodes are the same object; compare with `is`."""

    __slots__ = ("args", "attr", "op", "type")
    _interned: ClassVar[dict[tuple[object, ...], Node]] = {}

    op: str
    args: tuple[Node, ...]
    attr: Any  # its type depends on the operator, see OPERATORS
    type: Type

    def __new__(cls, op: str, args: tuple[Node, ...], attr: Any, type: Type) -> Node:
        key = (op, args, attr.__class__, attr, type)
        node = cls._interned.get(key)
        if node is None:
            node = object.__new__(cls)
            node.op, node.args, node.attr, node.type = op, args, attr, type
            cls._interned[key] = node
        return node

    def __reduce__(self) -> tuple[object, ...]:
        return Node, (self.op, self.args, self.attr, self.type)

    def __repr__(self) -> str:
        from isr_lang.printing import text

        return text(self)


@attrs.frozen(eq=False)
class Binder:
    """A variable bound by a quantifier, named as in the model's generator expression."""

    type: Type
    name: str = "?"

    def set_name(self, name: str) -> None:
        object.__setattr__(self, "name", name)


Rule = Callable[..., Type | None]
"""The type of the result from the types of the operands, or None if they do not fit."""


@attrs.frozen
class Operator:
    """`arity` counts the arguments that are nodes, -1 for any number."""

    arity: int
    rule: Rule
    meaning: str


def _same(a: Type, b: Type) -> bool:
    return a == b or (isinstance(a, NumberType) and isinstance(b, NumberType) and COUNT in (a, b))


def _leaf(*_: Type) -> None:
    """Leaves and calls are made with their type: Node(...), not apply(...)."""


def _bools(*types: Type) -> Type | None:
    return BOOL if all(isinstance(t, BoolType) for t in types) else None


def _when(c: Type, a: Type, b: Type) -> Type | None:
    return a if _bools(c) and _same(a, b) else None


def _equal(a: Type, b: Type) -> Type | None:
    return BOOL if _same(a, b) else None


def _compare(a: Type, b: Type) -> Type | None:
    return BOOL if isinstance(a, NumberType) and isinstance(b, NumberType) and _same(a, b) else None


def _arithmetic(a: Type, b: Type) -> Type | None:
    return (b if a == COUNT else a) if _compare(a, b) else None


def _some(a: Type) -> Type | None:
    return MaybeType(a) if isinstance(a, BoolType | NumberType | SortType | ChoiceType) else None


def _or_else(m: Type, x: Type) -> Type | None:
    return m.of if isinstance(m, MaybeType) and _same(m.of, x) else None


def _has(s: Type, x: Type) -> Type | None:
    return BOOL if _element(s, x) else None


def _element(s: Type, x: Type) -> Type | None:
    return s if isinstance(s, SetType) and _same(s.of, x) else None


def _sets(a: Type, b: Type) -> Type | None:
    return a if isinstance(a, SetType) and a == b else None


def _subset(a: Type, b: Type) -> Type | None:
    return BOOL if _sets(a, b) else None


def _size(s: Type) -> Type | None:
    return COUNT if isinstance(s, SetType) else None


def _get(m: Type, k: Type) -> Type | None:
    return m.value if isinstance(m, MapType) and _same(m.key, k) else None


def _put(m: Type, k: Type, v: Type) -> Type | None:
    return m if isinstance(m, MapType) and _same(m.key, k) and _same(m.value, v) else None


def _length(s: Type) -> Type | None:
    return s.index if isinstance(s, SeqType) else None


def _at(s: Type, i: Type) -> Type | None:
    return s.of if isinstance(s, SeqType) and _same(s.index, i) else None


def _append(s: Type, x: Type) -> Type | None:
    return s if isinstance(s, SeqType) and _same(s.of, x) else None


def _take(s: Type, n: Type) -> Type | None:
    return s if isinstance(s, SeqType) and _same(s.index, n) else None


def _prefix(s: Type, t: Type) -> Type | None:
    return BOOL if isinstance(s, SeqType) and s == t else None


def _quantifier(d: Type, body: Type) -> Type | None:
    return BOOL if isinstance(d, SetType) and _bools(body) else None


def _count(d: Type, body: Type) -> Type | None:
    return COUNT if _quantifier(d, body) else None


def _extreme(d: Type, body: Type, otherwise: Type) -> Type | None:
    return body if isinstance(d, SetType) and _compare(body, otherwise) else None


def _select(d: Type, body: Type) -> Type | None:
    return d if _quantifier(d, body) else None


def _build(d: Type, body: Type) -> Type | None:
    return MapType(d.of, body) if isinstance(d, SetType) else None


def _below(n: Type) -> Type | None:
    return SetType(n) if isinstance(n, NumberType) else None


_DOMAIN = "the domain of the bound variable, then the body"

OPERATORS: dict[str, Operator] = {
    # leaves: what they are is in `attr`
    "literal": Operator(0, _leaf, "attr: the value, in the representation of its type"),
    "constant": Operator(0, _leaf, "attr: a Constant (bound, switch or setting), fixed when a run starts"),
    "variable": Operator(0, _leaf, "attr: (name, primed)"),
    "parameter": Operator(0, _leaf, "attr: the name of an action's or definition's parameter"),
    "bound": Operator(0, _leaf, "attr: the Binder of the enclosing quantifier"),
    "call": Operator(-1, _leaf, "attr: (Definition, primed); args: the actual parameters"),
    # truth
    "not": Operator(1, _bools, "negation"),
    "and": Operator(2, _bools, "conjunction"),
    "or": Operator(2, _bools, "disjunction"),
    "implies": Operator(2, _bools, "implication"),
    "when": Operator(3, _when, "the second if the first holds, else the third"),
    "equal": Operator(2, _equal, "equality of values of one type"),
    "less": Operator(2, _compare, "a < b"),
    "at_most": Operator(2, _compare, "a <= b"),
    # numbers
    "plus": Operator(2, _arithmetic, "a + b on the integers"),
    "minus": Operator(2, _arithmetic, "a - b on the integers"),
    # maybe
    "some": Operator(1, _some, "the value, as one that is there"),
    "or_else": Operator(2, _or_else, "the value or, of none, the second"),
    # sets
    "has": Operator(2, _has, "membership"),
    "with": Operator(2, _element, "the set and this element"),
    "without": Operator(2, _element, "the set less this element"),
    "union": Operator(2, _sets, "members of either"),
    "intersection": Operator(2, _sets, "members of both"),
    "difference": Operator(2, _sets, "members of the first only"),
    "subset": Operator(2, _subset, "every member of the first is in the second"),
    "size": Operator(1, _size, "how many members"),
    # maps
    "get": Operator(2, _get, "the value at a key"),
    "put": Operator(3, _put, "the map with another value at a key"),
    # sequences
    "length": Operator(1, _length, "how many items"),
    "at": Operator(2, _at, "the item at a position, from 0"),
    "append": Operator(2, _append, "the sequence with one more item"),
    "take": Operator(2, _take, "the first n items"),
    "prefix": Operator(2, _prefix, "the second begins with the first"),
    # binders: attr is the Binder; the first argument is its domain
    "forall": Operator(2, _quantifier, f"every one; {_DOMAIN}"),
    "exists": Operator(2, _quantifier, f"at least one; {_DOMAIN}"),
    "count": Operator(2, _count, f"how many; {_DOMAIN}"),
    "smallest": Operator(3, _extreme, f"the least; {_DOMAIN}, the answer for none"),
    "largest": Operator(3, _extreme, f"the greatest; {_DOMAIN}, the answer for none"),
    "select": Operator(2, _select, f"those of a set; {_DOMAIN}"),
    "build": Operator(2, _build, f"a map; {_DOMAIN}"),
    # domains of bound variables, beside sets
    "every": Operator(0, _leaf, "all values of a scalar type, as a set"),
    "below": Operator(1, _below, "the numbers from the type's low up to, not including, n, as a set"),
}
"""The one table: every engine, exporter and printer has an entry per operator, in a table of its own."""


def apply(op: str, *args: Node, attr: Any = None) -> Node:
    """The node `op(args)`, typed by the table; ModelError when the arguments do not fit."""
    rule = OPERATORS[op]
    result = rule.rule(*(a.type for a in args)) if len(args) == rule.arity else None
    if result is None:
        shown = ", ".join(f"{a!r}: {a.type}" for a in args)
        raise ModelError(f"'{op}' ({rule.meaning}) does not apply to ({shown})")
    if op == "at" and isinstance(args[0].type, SeqType) and isinstance(args[0].type.of, SortType):
        raise ModelError("a sequence of a sort has no item that could stand for 'beyond the end'; use a number type")
    return Node(op, args, attr, result)


def literal(value: object, type: Type) -> Node:
    return Node("literal", (), value, type)


def after(node: Node) -> Node:
    """A condition over one state, restated of the state after a step."""
    args = tuple(after(a) for a in node.args)
    if node.op in ("variable", "call"):
        return Node(node.op, args, (node.attr[0], True), node.type)
    return Node(node.op, args, node.attr, node.type)


def walk(*nodes: Node) -> list[Node]:
    """The nodes and everything below them, each once, children first."""
    return list(_walk(*nodes))


@lru_cache(maxsize=4096)
def _walk(*nodes: Node) -> tuple[Node, ...]:
    """As `walk` has them; the same definition is searched for each of its calls, and in each design that has it."""
    visited: dict[int, Node] = {}

    def visit(n: Node) -> None:
        if id(n) not in visited:
            for child in n.args:
                visit(child)
            visited[id(n)] = n

    for node in nodes:
        visit(node)
    return tuple(visited.values())


def variables_in(node: Node) -> set[str]:
    """The variables that an expression reads, itself or through the definitions that it calls, as they are written."""
    names: set[str] = set()
    for n in walk(node):
        if n.op == "variable":
            names.add(n.attr[0])
        elif n.op == "call":
            names |= variables_in(n.attr[0].body)
    return names


def constants_in(node: Node) -> set[str]:
    """The names of the constants that an expression reads, itself or through the definitions that it calls."""
    names: set[str] = set()
    for n in walk(node):
        if n.op == "constant":
            names.add(n.attr.name)
        elif n.op == "call":
            names |= constants_in(n.attr[0].body)
    return names
