"""The meaning of the language in plain Python: the oracle that every other engine is compared with.

An instance becomes the source text of one Python module, with a function per definition and action. It is made from
the table `MEANING`, which has one Python expression per operator. `Evaluator.source` is that text. A property becomes a
function when it is first asked for.

A state is a tuple with the value of each variable (isr_lang.types says which value is what). In the text S is the state
before a step, and T the state after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from types import CodeType
from typing import Any, cast

import attrs

from isr_lang import FoldedAction, Instance, Node, Property
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
    maybe_of,
    position_in,
)

State = tuple[Any, ...]
Parameters = tuple[int, ...]


class _Bits(dict[int, tuple[int, ...]]):
    """The positions of the members of a set."""

    def __missing__(self, mask: int) -> tuple[int, ...]:
        self[mask] = tuple(i for i in range(mask.bit_length()) if mask >> i & 1)
        return self[mask]


def _get(m: tuple[Any, ...], position: int, otherwise: object) -> object:
    return m[position] if 0 <= position < len(m) else otherwise


def _put(m: tuple[Any, ...], position: int, value: object) -> tuple[Any, ...]:
    return (*m[:position], value, *m[position + 1 :]) if 0 <= position < len(m) else m


def _has(mask: int, position: int) -> bool:
    return position >= 0 and mask >> position & 1 == 1


def _bit(position: int, size: int) -> int:
    return 1 << position if 0 <= position < size else 0


HELPERS: dict[str, Any] = {
    "BITS": _Bits(),
    "_get": _get,
    "_put": _put,
    "_has": _has,
    "_bit": _bit,
    "maybe_of": maybe_of,
    "position_in": position_in,
}

# {0} {1} {2} are the operands; {low} and {size} belong to the scalar type by which the operator counts
# positions; {first} is the answer for 'no such thing'; {x} is the bound variable, {range} its values.
MEANING: dict[str, str] = {
    "literal": "{value!r}",
    "constant": "{value!r}",
    "variable": "{state}[{index}]",
    "parameter": "{name}",
    "bound": "{name}",
    "call": "{function}({state}{args})",
    "not": "(not {0})",
    "and": "({0} and {1})",
    "or": "({0} or {1})",
    "implies": "(not {0} or {1})",
    "when": "({1} if {0} else {2})",
    "equal": "({0} == {1})",
    "less": "({0} < {1})",
    "at_most": "({0} <= {1})",
    "plus": "({0} + {1})",
    "minus": "({0} - {1})",
    "some": "maybe_of({0} - {low})",
    "or_else": "((position_in({0}) + {low}) if {0} else {1})",
    "has": "_has({0}, {1} - {low})",
    "with": "({0} | _bit({1} - {low}, {size}))",
    "without": "({0} & ~_bit({1} - {low}, {size}))",
    "union": "({0} | {1})",
    "intersection": "({0} & {1})",
    "difference": "({0} & ~{1})",
    "subset": "({0} & ~{1} == 0)",
    "size": "({0}).bit_count()",
    "get": "_get({0}, {1} - {low}, {first})",
    "put": "_put({0}, {1} - {low}, {2})",
    "length": "len({0})",
    "at": "_get({0}, {1}, {first})",
    "append": "({0} + ({1},))",
    "take": "{0}[:max(0, {1})]",
    "prefix": "({1}[:len({0})] == {0})",
    "forall": "all({1} for {x} in {range})",
    "exists": "any({1} for {x} in {range})",
    "count": "sum(1 for {x} in {range} if {1})",
    "smallest": "min(({1} for {x} in {range}), default={2})",
    "largest": "max(({1} for {x} in {range}), default={2})",
    "select": "sum(1 << {x} - {low} for {x} in {range} if {1})",
    "build": "tuple({1} for {x} in {range})",
    "every": "{full}",
    "below": "((1 << min({size}, max(0, {0} - {low}))) - 1)",
}

# The same where the position is that of a name (an element of a sort, a member of a choice), which no arithmetic
# can take out of range.
OF_NAMES: dict[str, str] = {
    "has": "({0} >> {1} & 1 == 1)",
    "with": "({0} | 1 << {1})",
    "without": "({0} & ~(1 << {1}))",
    "get": "{0}[{1}]",
}

# The same where the operand is in the range of its type.
IN_RANGE: dict[str, str] = {
    "some": "({0} - {low} + 1)",
    "or_else": "(({0} - 1 + {low}) if {0} else {1})",
}


class _Writer:
    """Expressions of one instance as Python source."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.index = {v.name: i for i, v in enumerate(instance.variables)}
        self.functions: dict[Any, str] = {}
        self.lines: list[str] = []
        self.bound: dict[Any, str] = {}
        self.in_definition = False

    def copy(self) -> _Writer:
        """One that has written the same, and does not say so to this one when it writes more."""
        other = _Writer(self.instance)
        other.functions, other.lines, other.bound = dict(self.functions), [*self.lines], dict(self.bound)
        return other

    def expression(self, node: Node) -> str:
        fields: dict[str, Any] = {}
        op = node.op
        if op == "literal":
            fields["value"] = node.attr
        elif op == "variable":
            fields.update(state="T" if node.attr[1] else "S", index=self.index[node.attr[0]])
        elif op == "parameter":
            fields["name"] = f"p_{node.attr}"
        elif op == "bound":
            fields["name"] = self.bound[node.attr]
        elif op == "call":
            args = "".join(f", {self.expression(a)}" for a in node.args)
            function, state = self.definition(node.attr[0]), "T" if node.attr[1] else "S"
            fields.update(function=function, state=state, args=args)
            return MEANING[op].format(**fields)
        elif op in ("forall", "exists", "count", "smallest", "largest", "select", "build"):
            domain = node.args[0]
            fields["x"] = self.bound[node.attr] = f"{node.attr.name}_{len(self.bound)}"
            fields["low"] = self.instance.bounds(cast("SetType", domain.type).of)[0]
            fields["range"] = self.range(domain)
        if (position_type := _position_type(node)) is not None:
            fields.update(low=self.instance.bounds(position_type)[0], size=self.instance.positions(position_type))
        if op in ("get", "at"):
            fields["first"] = repr(self.instance.first(node.type))
        if op == "every":
            fields["full"] = (1 << self.instance.positions(cast("SetType", node.type).of)) - 1
        named = isinstance(position_type, SortType | ChoiceType) and op in OF_NAMES
        texts = OF_NAMES if named else IN_RANGE if op in IN_RANGE and self.is_in_range(node.args[0]) else MEANING
        return texts[op].format(*(self.expression(a) for a in node.args), **fields)

    def is_in_range(self, node: Node) -> bool:
        """Whether the value is in the range of its type, in every state that is."""
        type = node.type.of if isinstance(node.type, MaybeType) else node.type
        return not isinstance(type, NumberType) or self.instance.is_in_range(node, in_definition=self.in_definition)

    def range(self, domain: Node) -> str:
        low, high = self.instance.bounds(cast("SetType", domain.type).of)
        if domain.op == "every":
            return f"range({low}, {high + 1})"
        if domain.op == "below":
            return f"range({low}, min({high + 1}, {self.expression(domain.args[0])}))"
        members = f"BITS[{self.expression(domain)}]"
        return members if low == 0 else f"[i + {low} for i in {members}]"

    def definition(self, definition: Any) -> str:
        if definition not in self.functions:
            self.functions[definition] = f"{definition.name}_{len(self.functions)}"
            outside, self.in_definition = self.in_definition, True
            body = self.expression(self.instance.body(definition))
            self.in_definition = outside
            params = "".join(f", p_{name}" for name, _ in definition.parameters)
            self.lines += [f"def {self.functions[definition]}(S{params}):", f"    return {body}", ""]
        return self.functions[definition]

    def action(self, name: str, action: FoldedAction, guard_base: int) -> list[str]:
        lines, pad = [f"def {name}(S, false):", "    steps = []"], "    "
        for parameter, type in action.parameters:
            lines.append(f"{pad}for p_{parameter} in {self.values(type)}:")
            pad += "    "
        for i, guard in enumerate(action.guards):
            lines += [
                f"{pad}if not {self.expression(guard.condition)}:",
                f"{pad}    false[{guard_base + i}] += 1",
            ]
            lines += [f"{pad}else:"]
            pad += "    "
        updates = {u.variable: u for u in action.updates}
        parts: list[str] = []
        for v in self.instance.variables:
            old, update = f"S[{self.index[v.name]}]", updates.get(v.name)
            if update is not None:
                old = self.put(old, v.type, update.path, self.expression(update.value))
            parts.append(old)
        params = "".join(f"p_{p}, " for p, _ in action.parameters)
        successor = "".join(f"{part}, " for part in parts)
        lines += [f"{pad}steps.append((({params}), ({successor})))", "    return steps", ""]
        return lines

    def put(self, old: str, type: Type, path: tuple[Node, ...], value: str) -> str:
        if not path:
            return value
        assert isinstance(type, MapType)
        low, first = self.instance.bounds(type.key)[0], self.instance.first(type.value)
        position = f"{self.expression(path[0])} - {low}"
        was = f"{old}[{position}]" if isinstance(type.key, SortType) else f"_get({old}, {position}, {first!r})"
        inner = self.put(was, type.value, path[1:], value)
        return f"_put({old}, {position}, {inner})"

    def in_range(self, type: Type, value: str) -> str:
        """The test that a value is one of the type (Instance.contains); empty where it cannot be another."""
        match type:
            case NumberType() | SortType() | ChoiceType():
                low, high = self.instance.bounds(type)
                return f"{low} <= {value} <= {high}" if isinstance(type, NumberType) or high < low else ""
            case MaybeType():
                count = self.instance.positions(type.of)
                return f"0 <= {value} <= {count}" if isinstance(type.of, NumberType) else ""
            case MapType():
                x = f"v{len(value)}"
                inner = self.in_range(type.value, x)
                return f"all({inner} for {x} in {value})" if inner else ""
            case SeqType():
                inner, longest = self.in_range(type.of, "x"), self.instance.bounds(type.index)[1]
                return f"len({value}) <= {longest}" + (f" and all({inner} for x in {value})" if inner else "")
            case BoolType() | SetType():
                return ""

    def values(self, type: Type) -> str:
        if isinstance(type, SetType):
            return f"range({1 << self.instance.positions(type.of)})"
        low, high = self.instance.bounds(cast("Scalar", type))
        return f"range({low}, {high + 1})"


def _position_type(node: Node) -> Scalar | None:
    """The scalar type whose positions an operator computes with; None if it has none."""
    if node.op == "some":
        return cast("Scalar", node.args[0].type)
    if node.op == "or_else":
        return cast("MaybeType", node.args[0].type).of
    if node.op in ("has", "with", "without", "select", "below"):
        of = node.type if node.op == "below" else node.args[0].type
        return cast("SetType", of).of
    if node.op in ("get", "put"):
        return cast("MapType", node.args[0].type).key
    return None


@attrs.frozen
class _Program:
    """An instance as Python: its source, what that defines by name, and the writer that knows what it has written."""

    instance: Instance
    source: str
    writer: _Writer
    space: dict[str, Any]
    guard_base: list[int]
    guards: int

    def test(self, name: str, condition: Node) -> Callable[..., bool]:
        """A condition on a state, or on a step, as a function of this name; it is written once."""
        if name not in self.space:
            before = len(self.writer.lines)
            text = [f"def {name}(S, T=None):", f"    return {self.writer.expression(condition)}", ""]
            exec("\n".join(self.writer.lines[before:] + text), self.space)
        return cast("Callable[..., bool]", self.space[name])


@lru_cache(maxsize=4)
def _program(instance: Instance) -> _Program:
    """The instance's program; a command has several evaluators of one instance."""
    writer = _Writer(instance)
    body: list[str] = []
    guard_base: list[int] = []
    guards = 0
    for i, action in enumerate(instance.actions):
        guard_base.append(guards)
        body += writer.action(f"action_{i}", action, guards)
        guards += len(action.guards)
    body += writer.action("initial", instance.initial, 0)
    in_range = " and ".join(writer.in_range(v.type, f"S[{i}]") or "True" for i, v in enumerate(instance.variables))
    body += ["def in_range(S):", f"    return {in_range or True}", ""]
    source = "\n".join(writer.lines + body)
    space: dict[str, Any] = dict(HELPERS)
    exec(_compile_actions(source, f"<{instance.design.name}>"), space)
    return _Program(instance, source, writer, space, guard_base, guards)


@lru_cache(maxsize=4)
def _compile_actions(source: str, file: str) -> CodeType:
    """The source as code; instances that differ in their properties alone have the same."""
    return compile(source, file, "exec")


class Evaluator:
    """Executable form of an instance: initial states, successors, truth of properties.

    `false[i]` counts how often guard i was the first of its action's guards that did not hold. Guards are numbered
    through all actions; those of action a begin at `guard_base[a]`.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._program = program = _program(instance)
        self.source, self.guard_base = program.source, program.guard_base
        self._writer = program.writer.copy()
        self._space: dict[str, Any] = dict(program.space)
        self.false = [0] * program.guards
        self.actions: list[Callable[[State, list[int]], list[tuple[Parameters, State]]]] = [
            self._space[f"action_{i}"] for i in range(len(instance.actions))
        ]

    def initial_states(self) -> list[tuple[Parameters, State]]:
        blank = tuple(self.instance.first(v.type) for v in self.instance.variables)
        return cast("list[tuple[Parameters, State]]", self._space["initial"](blank, []))

    def successors(self, state: State) -> Iterator[tuple[int, Parameters, State]]:
        """(index of the action, its parameters, next state), in the order of the model."""
        for i, action in enumerate(self.actions):
            for parameters, successor in action(state, self.false):
                yield i, parameters, successor

    def outcome(self, action: FoldedAction, parameters: Parameters, state: State) -> State:
        """The state to which the updates of an action lead, whether its guards hold or not."""
        name = f"outcome_{action.name}"
        if name not in self._space:
            before = len(self._writer.lines)
            text = self._writer.action(name, attrs.evolve(action, guards=()), 0)
            exec("\n".join(self._writer.lines[before:] + text), self._space)
        return dict(cast("list[tuple[Parameters, State]]", self._space[name](state, [])))[parameters]

    def test(self, p: Property) -> Callable[..., bool]:
        """A property of the instance as a function of a state, or of a step."""
        return self._program.test(f"property_{self.instance.properties.index(p)}", p.condition)

    def holds(self, p: Property, old: State, new: State | None = None) -> bool:
        return bool(self.test(p)(old, new))

    def leads(self, p: Property) -> tuple[Callable[[State], bool], Callable[[State], bool]]:
        """The trigger and the goal of a liveness property, as tests of a state."""
        assert p.trigger is not None
        return self._program.test(f"trigger_{self.instance.properties.index(p)}", p.trigger), self.test(p)

    def evaluate(self, node: Node, old: State, new: State | None = None, **parameters: object) -> Any:
        """The value of one more (folded) expression, for explanations."""
        before = len(self._writer.lines)
        expression = self._writer.expression(node)
        exec("\n".join(self._writer.lines[before:]), self._space)
        names = {f"p_{k}": v for k, v in parameters.items()}
        return eval(expression, self._space | {"S": old, "T": new} | names)

    def in_range(self, state: State) -> bool:
        """Whether every variable is within its declared range: the property type-ok."""
        return bool(self._space["in_range"](state))


def parameter_values(instance: Instance, action: FoldedAction) -> Iterator[Parameters]:
    """Every combination of parameters, in the order in which they are tried."""
    ranges: list[range] = []
    for _, type in action.parameters:
        if isinstance(type, SetType):
            ranges.append(range(1 << instance.positions(type.of)))
        else:
            low, high = instance.bounds(cast("Scalar", type))
            ranges.append(range(low, high + 1))
    return product(*ranges)
