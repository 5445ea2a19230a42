"""Types, values and the few total operators that TLA+ lacks, as an exported module writes them."""

from __future__ import annotations

import re
from typing import cast

from isr_check.export.layout import ATOM, OPEN, PLUS, RANGE, Term, at_least
from isr_check.export.names import Names, camel
from isr_lang import Constant, Design, Node, walk
from isr_lang.types import (
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
    position_in,
)

RESERVED_WORDS = frozenset(
    re.findall(
        r"\w+",
        """ASSUME ASSUMPTION AXIOM BOOLEAN CASE CHOOSE CONSTANT CONSTANTS DOMAIN ELSE ENABLED EXCEPT
        EXTENDS FALSE IF IN INSTANCE LAMBDA LET LOCAL MODULE OTHER STRING SUBSET THEN THEOREM TRUE
        UNCHANGED UNION VARIABLE VARIABLES WITH Append BoundedSeq Cardinality Head Int IsFiniteSet
        Len Nat Permutations SelectSeq Seq SortSeq SubSeq Tail Any Assert JavaTime Print PrintT
        RandomElement TLCEval TLCExt TLCGet TLCSet ToString Init Next Spec Symmetry TypeOK None vars
        any other""",
    )
)

# The helpers: parameters and body. A module defines those that it uses. {x} becomes a name that hides none of the
# module's.
HELPERS: dict[str, tuple[tuple[str, ...], str]] = {
    "Min": (
        ("S", "otherwise"),
        r"IF {S} = {{}} THEN {otherwise} ELSE CHOOSE {m} \in {S} : \A {n} \in {S} : {m} <= {n}",
    ),
    "Max": (
        ("S", "otherwise"),
        r"IF {S} = {{}} THEN {otherwise} ELSE CHOOSE {m} \in {S} : \A {n} \in {S} : {m} >= {n}",
    ),
    "OrElse": (("m", "otherwise"), "IF {m} = None THEN {otherwise} ELSE {m}"),
    "Get": (("f", "k", "otherwise"), r"IF {k} \in DOMAIN {f} THEN {f}[{k}] ELSE {otherwise}"),
    "At": (("s", "i"), r"IF {i} \in 0..Len({s}) - 1 THEN {s}[{i} + 1] ELSE {first}"),
    "AtOr": (("s", "i", "otherwise"), r"IF {i} \in 0..Len({s}) - 1 THEN {s}[{i} + 1] ELSE {otherwise}"),
    "Take": (("s", "n"), "SubSeq({s}, 1, IF {n} < Len({s}) THEN {n} ELSE Len({s}))"),
    "IsPrefix": (("s", "t"), r"Len({s}) <= Len({t}) /\ SubSeq({t}, 1, Len({s})) = {s}"),
}
HELPER_DOCS = {
    "Min": "The least of a set of numbers, or of none the second argument.",
    "Max": "The greatest of a set of numbers, or of none the second argument.",
    "OrElse": "The value or, when there is none, the second argument.",
    "Get": "The value at a key, or the third argument outside of the domain.",
    "At": "The item at a position, the first at 0; beyond the end {first}.",
    "AtOr": "The item at a position, the first at 0; beyond the end the third argument.",
    "Take": "The first n items, or all when there are fewer.",
    "IsPrefix": "The second sequence begins with the first.",
}


def _nodes(design: Design) -> list[Node]:
    return [n for root in (*design.roots(), *(d.body for d in design.definitions())) for n in walk(root)]


def scalars(design: Design) -> list[Scalar]:
    """Every named scalar type of a design, also those that only a quantifier or a definition uses."""
    scalar_types: dict[Scalar, None] = dict.fromkeys(design.types())

    def visit(type: Type) -> None:
        match type:
            case MapType():
                visit(type.key)
                visit(type.value)
            case SeqType():
                visit(type.index)
                visit(type.of)
            case SetType() | MaybeType():
                visit(type.of)
            case _:
                scalar_types.setdefault(type)

    for node in _nodes(design):
        visit(node.type)
    return [t for t in scalar_types if not isinstance(t, BoolType) and getattr(t, "high", t) is not None]


class Values:
    """How a module writes types and constant values. Asking for a helper makes the module define it."""

    def __init__(self, design: Design, names: Names) -> None:
        self.names = names
        self.types = scalars(design)
        self.sorts = [t for t in self.types if isinstance(t, SortType)]
        self.numbers = [t for t in self.types if isinstance(t, NumberType)]
        self.choices = [t for t in self.types if isinstance(t, ChoiceType)]
        # Settings claim names before types do, because the type of a setting is often not defined in the module.
        self.constants: dict[Constant, str] = {c: names.claim(camel(c.name)) for c in design.constants() if c.names}
        named: list[SortType | NumberType | ChoiceType] = [*self.sorts, *self.numbers, *self.choices]
        self.type_names: dict[Scalar, str] = {t: names.claim(camel(t.name), f"{camel(t.name)}s") for t in named}
        self.helpers: dict[str, str] = {}
        self.none_used = False
        # The first values of all sequences that are read. If there is only one, the helper At has it built in.
        self.beyond_end = sorted({self.first(n.type).flat for n in _nodes(design) if n.op == "at"})
        # A bound that is the size of a sort is not a constant of the module: the sort is.
        self.sorts_by_size: dict[Constant, SortType] = {}
        for t in self.sorts:
            if t.size.op == "constant":
                self.sorts_by_size.setdefault(cast("Constant", t.size.attr), t)
        for c in design.constants():
            if c not in self.sorts_by_size and c not in self.constants:
                self.constants[c] = names.claim(camel(c.name), f"Max{camel(c.name)}")
        self.value_types: set[Scalar] = set()

    def helper(self, name: str) -> str:
        if name not in self.helpers:
            self.helpers[name] = self.names.claim(name)
        return self.helpers[name]

    def none(self) -> str:
        self.none_used = True
        return "None"

    def constant(self, constant: Constant) -> Term:
        if constant in self.sorts_by_size:
            return Term((f"Cardinality({self.type_names[self.sorts_by_size[constant]]})",))
        return Term((self.constants[constant],))

    def domain(self, type: Type) -> Term:
        """The set of all values of a type, as TLA+ writes it."""
        match type:
            case BoolType():
                return Term(("BOOLEAN",))
            case NumberType() | SortType() | ChoiceType():
                self.value_types.add(type)
                return Term((self.type_names[type],))
            case MaybeType():
                return Term((self.domain(type.of), rf" \cup {{{self.none()}}}"), RANGE)
            case SetType():
                return Term(("SUBSET ", self.domain(type.of)), RANGE)
            case MapType():
                return Term(("[", self.domain(type.key), " -> ", self.domain(type.value), "]"))
            case SeqType():
                return Term((f"BoundedSeq({self.domain(type.of).flat}, {self.longest(type)})",))

    def longest(self, type: SeqType) -> str:
        assert type.index.high is not None
        return self.number(type.index.high).flat

    def number(self, node: Node) -> Term:
        """An expression over the bounds, such as the highest value of a type."""
        match node.op:
            case "literal":
                return Term((str(node.attr),))
            case "constant":
                return self.constant(cast("Constant", node.attr))
            case "plus" | "minus":
                left = at_least(self.number(node.args[0]), PLUS)
                right = at_least(self.number(node.args[1]), ATOM)
                return Term((left, " + " if node.op == "plus" else " - ", right), PLUS)
            case _:
                raise ValueError(f"the extent of a type is a sum of bounds, not {node!r}")

    def first(self, type: Type) -> Term:
        """The first value of a type: the answer of operators out of range."""
        match type:
            case SortType():
                return Term((f"CHOOSE any \\in {self.type_names[type]} : TRUE",), OPEN)
            case MapType():
                return self.everywhere(type, self.first(type.value))
            case SeqType():
                return Term(("<<>>",))
            case MaybeType() | SetType():
                return self.literal(0, type)
            case BoolType():
                return Term(("FALSE",))
            case ChoiceType():
                return self.literal(0, type)
            case NumberType():
                return self.literal(type.low, type)

    def everywhere(self, type: MapType, value: Term) -> Term:
        """The map [any \\in K |-> value]; `other` is the variable where the value has an `any` itself."""
        key = "other" if "[any " in value.flat else "any"
        return Term((f"[{key} \\in ", self.domain(type.key), " |-> ", value, "]"))

    def literal(self, value: object, type: Type) -> Term:
        match type, value:
            case BoolType(), _:
                return Term(("TRUE" if value else "FALSE",))
            case NumberType(), int():
                return Term((str(value),), ATOM if value >= 0 else RANGE)
            case ChoiceType(), int():
                return Term((f'"{member(type, value)}"',))
            case MaybeType(), int():
                low = type.of.low if isinstance(type.of, NumberType) else 0
                return Term((self.none(),)) if value == 0 else self.literal(position_in(value) + low, type.of)
            case SetType(), int():
                low = type.of.low if isinstance(type.of, NumberType) else 0
                there = [i for i in range(value.bit_length()) if value >> i & 1]
                return Term((f"{{{', '.join(self.literal(i + low, type.of).flat for i in there)}}}",))
            case SeqType(), tuple():
                items = cast("tuple[object, ...]", value)
                return Term((f"<<{', '.join(self.literal(v, type.of).flat for v in items)}>>",))
            case MapType(), tuple() if len(set(cast("tuple[object, ...]", value))) == 1:
                return self.everywhere(type, self.literal(cast("tuple[object, ...]", value)[0], type.value))
            case _:
                raise ValueError(f"{value!r} of {type} has no name in a module that is for all bounds")


def member(type: ChoiceType, value: int) -> str:
    """The member of a choice as the string that stands for it."""
    return type.members[value].lower()


def helper_definition(values: Values, name: str) -> tuple[str, str, str]:
    """Head, body and meaning of a helper, with parameters that hide nothing in the module."""
    parameters, body = HELPERS[name]
    local: dict[str, str] = {}
    for p in (*parameters, *(x for x in ("m", "n") if x not in parameters)):
        local[p] = values.names.free(p, beside=frozenset(local.values()))
    head = f"{values.helpers[name]}({', '.join(local[p] for p in parameters)})"
    first = ", ".join(values.beyond_end)
    return head, body.format(**local, first=first), HELPER_DOCS[name].format(first=first)
