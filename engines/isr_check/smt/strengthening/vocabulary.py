"""The vocabulary of a design: expressions over its variables and definitions, and conditions made of them.

They are about elements of sorts, `a` and `b`. These are parameters until a conjunct quantifies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product

import attrs

from isr_lang import Definition, Design, Node, walk
from isr_lang.nodes import apply, literal
from isr_lang.types import (
    BOOL,
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

ELEMENTS = "abcdefgh"
MOST_ELEMENTS = 2


@attrs.frozen
class Element:
    """An element of a sort that a conjunct will be about, and its name."""

    name: str
    type: SortType

    @property
    def node(self) -> Node:
        return Node("parameter", (), self.name, self.type)


Context = tuple[Element, ...]


def contexts(design: Design) -> list[Context]:
    """The contexts of conjuncts: no element, one element of a sort, or two elements of the same or of two sorts."""
    sorts = [t for t in design.types() if isinstance(t, SortType)]
    elements = [Element(ELEMENTS[2 * i + k], t) for i, t in enumerate(sorts[:4]) for k in range(MOST_ELEMENTS)]
    found: list[Context] = [()]
    found += [(e,) for e in elements[::MOST_ELEMENTS]]
    for x, y in combinations(elements, 2):
        first = (ELEMENTS.index(x.name) % MOST_ELEMENTS, ELEMENTS.index(y.name) % MOST_ELEMENTS)
        if x.type == y.type or first == (0, 0):
            found.append((x, y))
    return found


def parameters(node: Node) -> frozenset[str]:
    """The names of the elements that an expression is about."""
    return frozenset(n.attr for n in walk(node) if n.op == "parameter")


def definitions(design: Design, more: Iterable[Node] = ()) -> list[Definition]:
    """The definitions of the design, and those that further expressions use."""
    found = dict.fromkeys(design.definitions())
    waiting = list(more)
    while waiting:
        for n in walk(waiting.pop()):
            if n.op == "call" and n.attr[0] not in found:
                found[n.attr[0]] = None
                waiting.append(n.attr[0].body)
    return list(found)


class Vocabulary:
    """The expressions and conditions of one design about some elements."""

    def __init__(self, design: Design, context: Context, named: Sequence[Definition]) -> None:
        self.context = context
        terms: dict[Node, None] = {}
        for v in design.variables:
            for t in self._reached(Node("variable", (), (v.name, False), v.type)):
                terms[t] = None
        for d in named:
            if d.of_state and all(isinstance(t, SortType) for _, t in d.parameters):
                for args in product(*(self._elements(t) for _, t in d.parameters)):
                    for t in self._reached(Node("call", args, (d, False), d.body.type)):
                        terms[t] = None
        self.terms = list(terms)

    def _elements(self, type: Type) -> list[Node]:
        return [e.node for e in self.context if e.type == type]

    def _reached(self, node: Node) -> Iterator[Node]:
        """What can be read from a value: a map's value at an element, a sequence's length, the value of a maybe."""
        match node.type:
            case MapType(key=key):
                for e in self._elements(key):
                    yield from self._reached(apply("get", node, e))
            case SeqType():
                yield node
                yield apply("length", node)
            case MaybeType(of=NumberType() as of):
                yield node
                yield apply("or_else", node, literal(of.low, of))
            case _:
                yield node

    def guards(self) -> list[Node]:
        """Plain conditions, for the left side of an implication."""
        found: dict[Node, None] = {}
        for x, y in combinations(self.context, 2):
            if x.type == y.type:
                found[apply("equal", x.node, y.node)] = None
        for t in self.terms:
            found |= dict.fromkeys(self._about(t))
        return [g for c in found for g in (c, negated(c))]

    def _about(self, t: Node) -> Iterator[Node]:
        match t.type:
            case BoolType():
                yield t
            case ChoiceType(members=members):
                yield from (apply("equal", t, literal(k, t.type)) for k in range(len(members)))
            case MaybeType(of=of):
                yield apply("equal", t, literal(0, t.type))
                yield from (apply("equal", apply("some", e), t) for e in self._elements(of))
            case SortType():
                yield from (apply("equal", t, e) for e in self._elements(t.type))
            case SetType(of=of):
                yield apply("equal", t, literal(0, t.type))
                if isinstance(of, SortType):
                    yield apply("equal", t, Node("every", (), None, t.type))
                    yield from (apply("has", t, e) for e in self._elements(of))
            case NumberType(low=low):
                yield apply("equal", t, literal(low, t.type))
            case _:
                pass

    def relations(self) -> list[Node]:
        """Conditions that compare two expressions of one type."""
        found: dict[Node, None] = {}
        by_type: dict[Type, list[Node]] = {}
        for t in self.terms:
            by_type.setdefault(t.type, []).append(t)
        by_type.pop(BOOL, None)  # two arrows say as much
        for type, terms in by_type.items():
            for x, y in combinations(terms, 2):
                match type:
                    case NumberType():
                        found |= dict.fromkeys((apply("at_most", x, y), apply("at_most", y, x)))
                        found |= dict.fromkeys((apply("less", x, y), apply("less", y, x)))
                    case SetType():
                        found |= dict.fromkeys((apply("subset", x, y), apply("subset", y, x)))
                    case SeqType():
                        found |= dict.fromkeys((apply("prefix", x, y), apply("prefix", y, x)))
                    case _:
                        pass
                found[apply("equal", x, y)] = None
        return list(found)


def negated(condition: Node) -> Node:
    """The negation in its plainest form: a < b for ~(b <= a)."""
    match condition.op:
        case "not":
            return condition.args[0]
        case "less":
            return apply("at_most", condition.args[1], condition.args[0])
        case "at_most":
            return apply("less", condition.args[1], condition.args[0])
        case _:
            return apply("not", condition)


def stronger(condition: Node) -> list[Node]:
    """Conditions that imply this one by their form alone, such as a < b for a <= b."""
    if condition.op == "at_most":
        a, b = condition.args
        return [apply("less", a, b), *equalities(a, b)]
    if condition.op == "not" and condition.args[0].op == "equal":
        t, value = condition.args[0].args
        if isinstance(t.type, NumberType) and value.op != "literal":
            return [apply("less", t, value), apply("less", value, t)]
        if isinstance(t.type, ChoiceType) and value.op == "literal":
            others = (k for k in range(len(t.type.members)) if k != value.attr)
            return [apply("equal", t, literal(k, t.type)) for k in others]
    if condition.op in ("subset", "prefix"):
        return equalities(*condition.args)
    return []


def equalities(a: Node, b: Node) -> list[Node]:
    return [apply("equal", a, b), apply("equal", b, a)]


def substituted(node: Node, meaning: Mapping[str, Node], done: dict[Node, Node] | None = None) -> Node:
    """The expression with some of its parameters replaced by other nodes."""
    done = {} if done is None else done
    if node not in done:
        if node.op == "parameter":
            done[node] = meaning.get(node.attr, node)
        else:
            args = tuple(substituted(a, meaning, done) for a in node.args)
            done[node] = node if args == node.args else Node(node.op, args, node.attr, node.type)
    return done[node]


def size(node: Node) -> int:
    """How much of an expression there is to read."""
    return 1 + sum(map(size, node.args))
