"""Types and constant values as Murphi writes them, for the fixed sizes of one instance.

Scalars are subranges from the least value to the greatest. Sorts begin at 0, members of choices are named constants,
and in a Maybe 0 is none. A set is an array of booleans, a map an array. A sequence is a record of its length and an
array; unused cells hold the first value of their type, so that equal sequences are equal records. A type without values
becomes one with a single value, over which nothing ever ranges.

A sequence in an intermediate result may be longer than any that may be stored. The type has room for it, and a sequence
is checked when it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from isr_check.export.names import Names, snake
from isr_lang import Instance, Node, walk
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
)

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """alias array assert assume begin bool boolean by case clear const cover do else elsif end
        endalias endexists endfor endforall endfunction endif endprocedure endrecord endrule
        endruleset endstartstate endswitch endwhile enum error exists false for forall function if
        in invariant ismember isundefined liveness multiset of procedure property put record return
        rule ruleset scalarset startstate switch then to true type undefine undefined union var
        while length item whole""",
    )
)
WHOLE = "Whole"
"""The type of intermediate numbers, which may leave the ranges of variables."""
TOO_LONG = 'error "a sequence grows beyond its bound";'


class Types:
    """The names of the types that a module uses, declared in the order in which they were first asked for."""

    def __init__(self, instance: Instance, names: Names, spare: int) -> None:
        self.instance, self.names, self.spare = instance, names, spare
        self.constants: list[str] = []
        self.declarations: list[str] = [f"{WHOLE}: -32000..32000;"]
        self._type_names: dict[Type, str] = {}
        self._members: dict[ChoiceType, tuple[str, ...]] = {}

    def low(self, type: Scalar) -> int:
        return self.instance.bounds(type)[0]

    def high(self, type: Scalar) -> int:
        return self.instance.bounds(type)[1]

    def empty(self, type: Scalar) -> bool:
        return self.instance.positions(type) == 0

    def longest(self, type: SeqType) -> int:
        """The most items of a sequence that is stored."""
        return max(0, self.high(type.index))

    def room(self, type: SeqType) -> int:
        """The most items of a sequence that is an intermediate result."""
        return self.longest(type) + self.spare

    def name(self, type: Type) -> str:
        """The Murphi name of a type; declares it when it is new."""
        if isinstance(type, BoolType):
            return "boolean"
        if type not in self._type_names:
            meaning = self._meaning(type)
            self._type_names[type] = self.names.claim(re.sub(r"\W+", "_", str(type)).strip("_"))
            self.declarations.append(f"{self._type_names[type]}: {meaning};")
        return self._type_names[type]

    def intermediate(self, type: Type) -> str:
        """The Murphi type for intermediate values of a type, in locals and parameters."""
        return WHOLE if isinstance(type, NumberType | SortType | ChoiceType | MaybeType) else self.name(type)

    def _meaning(self, type: Type) -> str:
        match type:
            case SetType():
                return f"array [{self.name(type.of)}] of boolean"
            case MapType():
                return f"array [{self.name(type.key)}] of {self.name(type.value)}"
            case SeqType():
                last = max(1, self.room(type)) - 1
                item = f"array [0..{last}] of {self.name(type.of)}"
                return f"record length: 0..{self.room(type)}; item: {item}; end"
            case MaybeType():
                return f"0..{self.instance.positions(type.of)}"
            case _:
                low, high = self.instance.bounds(type)
                return f"{low}..{max(low, high)}"

    def literal(self, value: object, type: Type) -> str:
        """A constant scalar or Maybe."""
        match type, value:
            case BoolType(), _:
                return "true" if value else "false"
            case ChoiceType(), int():
                return self.member(type, value)
            case _, int():
                return str(value) if value >= 0 else f"({value})"
            case _:
                raise ValueError(f"{value!r} is not a scalar")

    def member(self, type: ChoiceType, position: int) -> str:
        if type not in self._members:
            claimed = tuple(self.names.claim(f"{type.name}_{snake(m)}") for m in type.members)
            self._members[type] = claimed
            self.constants += [f"{name}: {i};" for i, name in enumerate(claimed)]
        return self._members[type][position]


def spare_room(update_values: Iterable[Node], others: Iterable[Node]) -> int:
    """By how many items an intermediate sequence can exceed the longest that may be stored.

    `update_values` are the values of updates, `others` all other expressions. The last append to a stored value needs
    no room, because the result may not exceed the bound.
    """

    @cache
    def excess(node: Node, is_stored: bool = False) -> int:
        if not isinstance(node.type, SeqType | MapType):
            return 0
        if node.op == "append":
            return excess(node.args[0]) + (not is_stored)
        if node.op == "call":
            return excess(node.attr[0].body)
        inner = is_stored and node.op in ("when", "build", "put")
        return max((excess(a, inner) for a in node.args), default=0)

    parts = [excess(n) for root in others for n in walk(root)]
    for root in update_values:
        parts.append(excess(root, True))
        parts += [excess(a) for n in walk(root) if n.op not in ("when", "build", "put") for a in n.args]
    return max(parts, default=0)


def has_sequence(type: Type) -> bool:
    return isinstance(type, SeqType) or (isinstance(type, MapType) and has_sequence(type.value))


def is_scalar(type: Type) -> bool:
    """Whether a value is one number or boolean, which Murphi computes in expressions."""
    return not isinstance(type, SetType | MapType | SeqType)
