"""The body of one Murphi function or rule while it is written: statements, local variables, and what was computed.

Murphi's expressions have no sets, sequences or counting. So an expression of the language becomes statements that leave
their result in a local variable, and a Murphi expression that reads the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import cast

import attrs

from isr_check.export.murphi_values import Types
from isr_check.export.names import Names, snake
from isr_lang import Definition, Instance, Node
from isr_lang.extents import Ranges
from isr_lang.types import BoolType, MapType, Scalar, SeqType, SetType, Type


@attrs.frozen
class Shared:
    """The names, types and functions that all bodies of a module share."""

    instance: Instance
    types: Types
    names: Names
    ranges: Ranges
    variables: Mapping[str, str]
    functions: Mapping[Definition, str]
    rules: Mapping[str, Rule]


class Code:
    """Statements in nested blocks. A value computed in a block is used again in that block and inside it only."""

    def __init__(self, shared: Shared, formals: Mapping[str, str], definition: Definition | None = None) -> None:
        self.shared, self.types, self.instance = shared, shared.types, shared.instance
        self.doubtful = shared.ranges.doubtful(definition)
        self.local: dict[object, str] = {p: name for p, name in formals.items()}
        self.local_types: dict[str, str] = {}
        self.lines: list[str] = []
        self._indent = 1
        self._results: list[dict[Node, str]] = [{}]
        self._names_in_use: frozenset[str] = frozenset(formals.values())

    def emit(self, line: str) -> None:
        self.lines.append("  " * self._indent + line)

    def fresh(self, preferred_name: str) -> str:
        """A new name for a local of this body."""
        name = self.shared.names.free(snake(preferred_name), beside=self._names_in_use)
        self._names_in_use |= {name}
        return name

    def temporary(self, type: str) -> str:
        name = self.fresh("t")
        self.local_types[name] = type
        return name

    @contextmanager
    def block(self, opening: str, closing: str = "end;") -> Generator[None, None, None]:
        """Put `opening` and `closing` around the statements that are emitted inside the context."""
        if opening:
            self.emit(opening)
        self._indent += 1
        self._results.append({})
        yield
        self._results.pop()
        self._indent -= 1
        self.emit(closing)

    @contextmanager
    def aside(self) -> Generator[list[str], None, None]:
        """Collect the statements that are emitted inside the context, for `insert` to emit later."""
        outer_lines, indent = self.lines, self._indent
        collected = list[str]()
        self.lines, self._indent = collected, 0
        self._results.append({})
        yield collected
        self._results.pop()
        self.lines, self._indent = outer_lines, indent

    def insert(self, statements: list[str]) -> None:
        for line in statements:
            self.emit(line)

    @contextmanager
    def members(self, before: list[str], test: str) -> Generator[None, None, None]:
        """In a loop: emit the statements `before` the test, and run those of the context only where the test holds."""
        self.insert(before)
        if test:
            with self.block(f"if {test} then"):
                yield
        else:
            yield

    @contextmanager
    def inline_call(self, local: Mapping[str, str], definition: Definition) -> Generator[None, None, None]:
        """Write the body of a definition in place of a call: with other parameters, and nothing computed yet."""
        before = self.local, self.doubtful, self._results
        self.local, self._results = {p: value for p, value in local.items()}, [{}]
        self.doubtful = self.shared.ranges.doubtful(definition)
        yield
        self.local, self.doubtful, self._results = before

    def inside(self, node: Node, type: Scalar, expression: str) -> str:
        """The test that a value is in the range of the type; empty if it always is."""
        if self.types.empty(type):
            return "false"
        if self.shared.ranges.within(node, type, self.doubtful):
            return ""
        low, high = self.instance.bounds(type)
        return f"{low} <= {expression} & {expression} <= {high}"

    def expression(self, node: Node) -> str:
        """A Murphi expression for the node, valid at this place. If that takes statements, a block has them once."""
        known = next((k[node] for k in reversed(self._results) if node in k), None)
        if known is not None:
            return known
        before = len(self.lines)
        value = self.shared.rules[node.op](self, node)
        if len(self.lines) > before:
            self._results[-1][node] = value
        return value


def operands(code: Code, node: Node) -> list[str]:
    return [code.expression(a) for a in node.args]


def assign(code: Code, place: str, type: Type, value: object) -> None:
    """Emit assignments of a constant value to a place: a variable, a cell of one, or a local."""
    match type, value:
        case SetType(), int():
            low = code.types.low(type.of)
            x = code.fresh("i")
            with code.block(f"for {x}: {code.types.name(type.of)} do"):
                code.emit(f"{place}[{x}] := false;")
            for i in range(value.bit_length()):
                if value >> i & 1:
                    code.emit(f"{place}[{_key(type.of, i + low)}] := true;")
        case MapType(), tuple():
            values = cast("tuple[object, ...]", value) or (code.instance.first(type.value),)
            if len(set(values)) == 1:
                x = code.fresh("i")
                with code.block(f"for {x}: {code.types.name(type.key)} do"):
                    assign(code, f"{place}[{x}]", type.value, values[0])
            else:
                low = code.types.low(type.key)
                for i, v in enumerate(values):
                    assign(code, f"{place}[{_key(type.key, i + low)}]", type.value, v)
        case SeqType(), tuple():
            items = cast("tuple[object, ...]", value)
            code.emit(f"{place}.length := {len(items)};")
            for i in range(max(1, code.types.room(type))):
                item = items[i] if i < len(items) else code.instance.first(type.of)
                code.emit(f"{place}.item[{i}] := {code.types.literal(item, type.of)};")
        case _:
            code.emit(f"{place} := {code.types.literal(value, type)};")


def _key(type: Scalar, value: int) -> str:
    return ("false", "true")[value] if isinstance(type, BoolType) else str(value)


def guarded(code: Code, test: str, statement: str) -> None:
    code.emit(f"if {test} then {statement} end;" if test else statement)


Rule = Callable[[Code, Node], str]
