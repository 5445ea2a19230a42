"""The language once more, as a tree walker over values that people would choose.

It shares nothing with the reference evaluator but the graph, and does no folding: sorts are names ("a1"),
sets are frozensets, maps are tuples of pairs, a Maybe is None or a tuple of one, a sequence is a tuple.
It is slow, and it is here only so that two people have to make the same mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import attrs

from isr_lang import Action, Constant, Design, Node, Update, Value
from isr_lang.types import (
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    SeqType,
    SetType,
    SortType,
    Type,
    position_in,
)

Friendly = Any
State = dict[str, Friendly]


@attrs.frozen
class World:
    """A design with its constants: what the types contain."""

    design: Design
    constants: dict[str, Value]
    _universes: dict[Type, list[Friendly]] = attrs.field(factory=dict[Type, list[Friendly]], init=False)
    left_out: list[Friendly] = attrs.field(factory=list[Friendly], init=False)
    """What the last step, or initial state, would have stored where a set or a map has no place for it."""

    def constant(self, constant: Constant) -> Friendly:
        value = self.constants.get(constant.name, constant.default)
        if constant.choice is not None:
            return constant.choice.members[constant.names.index(str(value))]
        return value

    def number(self, node: Node) -> int:
        return int(Scope(self, {}, {}, {}).value(node))

    def universe(self, type: Type) -> list[Friendly]:
        """All values of a type, in its order."""
        if type not in self._universes:
            self._universes[type] = self._universe(type)
        return self._universes[type]

    def _universe(self, type: Type) -> list[Friendly]:
        match type:
            case BoolType():
                return [False, True]
            case NumberType():
                assert type.high is not None
                return list(range(type.low, self.number(type.high) + 1))
            case SortType():
                return [f"{type.prefix}{i + 1}" for i in range(self.number(type.size))]
            case ChoiceType():
                return list(type.members)
            case SetType():
                parts = [[frozenset[Friendly](), frozenset([x])] for x in reversed(self.universe(type.of))]
                return [frozenset[Friendly]().union(*chosen) for chosen in product(*parts)]
            case _:
                raise NotImplementedError(type)

    def first(self, type: Type) -> Friendly:
        match type:
            case MaybeType():
                return None
            case SetType():
                return frozenset[Friendly]()
            case SeqType():
                return ()
            case MapType():
                return tuple((k, self.first(type.value)) for k in self.universe(type.key))
            case _:
                return self.universe(type)[0]

    def decode(self, type: Type, value: Any) -> Friendly:
        """A value of the engines (isr_lang.types) as a friendly one."""
        match type:
            case MaybeType():
                if isinstance(type.of, NumberType):
                    return None if value == 0 else (type.of.low + position_in(value),)
                return None if value == 0 else (self.universe(type.of)[value - 1],)
            case SetType():
                return frozenset(x for i, x in enumerate(self.universe(type.of)) if value >> i & 1)
            case MapType():
                values = (self.decode(type.value, v) for v in value)
                return tuple(zip(self.universe(type.key), values, strict=True))
            case SeqType():
                return tuple(self.decode(type.of, v) for v in value)
            case NumberType():
                return value
            case _:
                return self.universe(type)[value]

    def is_in_range(self, type: Type, value: Friendly) -> bool:
        """Whether a value that is stored in a variable of this type is within its range."""
        match type:
            case MaybeType():
                return value is None or self.is_in_range(type.of, value[0])
            case MapType():
                return all(self.is_in_range(type.value, v) for _, v in value)
            case SeqType():
                assert type.index.high is not None
                return len(value) <= self.number(type.index.high) and all(self.is_in_range(type.of, v) for v in value)
            case SetType():
                return bool(value <= frozenset(self.universe(type.of)))
            case _:
                return value in self.universe(type)

    def absent(self) -> frozenset[str]:
        """The variables that do not exist under these constants: they keep their first value."""
        alone = Scope(self, {}, {}, {})
        return frozenset(v.name for v in self.design.variables if v.when is not None and not alone.value(v.when))

    def initial_states(self) -> list[State]:
        return list(self.each_initial_state())

    def each_initial_state(self) -> Iterator[State]:
        for parameters in self.parameters(self.design.initial):
            scope = Scope(self, {}, {}, parameters)
            self.left_out.clear()
            yield {u.variable: scope.value(u.value) for u in self.design.initial.updates}

    def parameters(self, action: Action) -> Iterator[dict[str, Friendly]]:
        names = [name for name, _ in action.parameters]
        for values in product(*(self.universe(t) for _, t in action.parameters)):
            yield dict(zip(names, values, strict=True))

    def successors(self, state: State) -> Iterator[tuple[str, tuple[Friendly, ...], State]]:
        absent = self.absent()
        for action in self.design.actions:
            for parameters in self.parameters(action):
                scope = Scope(self, state, {}, parameters)
                if all(scope.value(g.condition) for g in action.guards):
                    self.left_out.clear()
                    changed = {u.variable: scope.updated(u) for u in action.updates if u.variable not in absent}
                    yield action.name, tuple(parameters.values()), state | changed


def put(mapping: Friendly, key: Friendly, value: Friendly) -> Friendly:
    return tuple((k, value if k == key else v) for k, v in mapping)


@attrs.frozen
class Scope:
    """Where an expression is evaluated."""

    world: World
    old: State
    new: State
    names: Mapping[Any, Friendly]

    def value(self, node: Node) -> Friendly:
        match node.op:
            case "literal":
                return self.world.decode(node.type, node.attr)
            case "constant":
                return self.world.constant(node.attr)
            case "variable":
                name, primed = node.attr
                return (self.new if primed else self.old)[name]
            case "parameter" | "bound":
                return self.names[node.attr]
            case "call":
                definition, primed = node.attr
                arguments = [self.value(a) for a in node.args]
                names = dict(zip((n for n, _ in definition.parameters), arguments, strict=True))
                return Scope(self.world, self.new if primed else self.old, {}, names).value(definition.body)
            case "and" | "or" | "implies":
                first = self.value(node.args[0])
                decides = not first if node.op == "and" else first if node.op == "or" else not first
                return node.op != "and" if decides else self.value(node.args[1])
            case "when":
                return self.value(node.args[1] if self.value(node.args[0]) else node.args[2])
            case "every":
                assert isinstance(node.type, SetType)
                return frozenset(self.world.universe(node.type.of))
            case op if op in LOOPS:
                return self.loop(node)
            case op:
                return OPERATORS[op](self.world, node.type, [self.value(a) for a in node.args])

    def loop(self, node: Node) -> Friendly:
        domain, body = node.args[:2]
        assert isinstance(domain.type, SetType)
        members = self.value(domain)
        pairs = [
            (x, Scope(self.world, self.old, self.new, {**self.names, node.attr: x}).value(body))
            for x in self.world.universe(domain.type.of)
            if x in members
        ]
        return LOOPS[node.op](pairs, [self.value(a) for a in node.args[2:]])

    def updated(self, update: Update) -> Friendly:
        return self.inside(self.old[update.variable], update.path, self.value(update.value))

    def inside(self, old: Friendly, path: tuple[Node, ...], value: Friendly) -> Friendly:
        if not path:
            return value
        before = len(self.world.left_out)
        key = self.value(path[0])
        del self.world.left_out[before:]  # a key is not stored
        if key not in dict(old):
            self.world.left_out.append(key)
            return old
        return put(old, key, self.inside(dict(old)[key], path[1:], value))


Pairs = list[tuple[Friendly, Friendly]]
"""The values of a bound variable, each with the value of the body."""

LOOPS: dict[str, Callable[[Pairs, list[Friendly]], Friendly]] = {
    "forall": lambda pairs, rest: all(b for _, b in pairs),
    "exists": lambda pairs, rest: any(b for _, b in pairs),
    "count": lambda pairs, rest: len([x for x, b in pairs if b]),
    "smallest": lambda pairs, rest: min((b for _, b in pairs), default=rest[0]),
    "largest": lambda pairs, rest: max((b for _, b in pairs), default=rest[0]),
    "select": lambda pairs, rest: frozenset(x for x, b in pairs if b),
    "build": lambda pairs, rest: tuple(pairs),
}

Operands = list[Friendly]


def _including(world: World, type: Type, a: Operands) -> Friendly:
    assert isinstance(type, SetType)
    if a[1] not in world.universe(type.of):
        world.left_out.append(a[1])
    return a[0] | ({a[1]} & frozenset(world.universe(type.of)))


def _put(world: World, _: Type, a: Operands) -> Friendly:
    if a[1] not in dict(a[0]):
        world.left_out.append(a[1])
    return put(a[0], a[1], a[2])


def _below(world: World, type: Type, a: Operands) -> Friendly:
    assert isinstance(type, SetType)
    return frozenset(x for x in world.universe(type.of) if x < a[0])


def _at(world: World, type: Type, a: Operands) -> Friendly:
    return a[0][a[1]] if 0 <= a[1] < len(a[0]) else world.first(type)


def _prefix(world: World, type: Type, a: Operands) -> Friendly:
    return len(a[0]) <= len(a[1]) and all(x == y for x, y in zip(a[0], a[1], strict=False))


OPERATORS: dict[str, Callable[[World, Type, Operands], Friendly]] = {
    "not": lambda world, type, a: not a[0],
    "equal": lambda world, type, a: a[0] == a[1],
    "less": lambda world, type, a: a[0] < a[1],
    "at_most": lambda world, type, a: a[0] <= a[1],
    "plus": lambda world, type, a: a[0] + a[1],
    "minus": lambda world, type, a: a[0] - a[1],
    "some": lambda world, type, a: (a[0],),
    "or_else": lambda world, type, a: a[1] if a[0] is None else a[0][0],
    "has": lambda world, type, a: a[1] in a[0],
    "with": _including,
    "without": lambda world, type, a: a[0] - {a[1]},
    "union": lambda world, type, a: a[0] | a[1],
    "intersection": lambda world, type, a: a[0] & a[1],
    "difference": lambda world, type, a: a[0] - a[1],
    "subset": lambda world, type, a: a[0] <= a[1],
    "size": lambda world, type, a: len(a[0]),
    "get": lambda world, type, a: dict(a[0]).get(a[1], world.first(type)),
    "put": _put,
    "length": lambda world, type, a: len(a[0]),
    "at": _at,
    "append": lambda world, type, a: (*a[0], a[1]),
    "take": lambda world, type, a: a[0][: a[1]] if a[1] > 0 else (),
    "prefix": _prefix,
    "below": _below,
}
"""An operator's meaning: the world, the type of the result, the values of the operands."""
