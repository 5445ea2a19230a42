"""The operators as LLVM instructions: the table EMIT, one entry per operator of the language.

The code has no branches, with one exception: it skips the second operand of a connective, or the body of a quantifier,
where that is costly and cannot matter. A quantifier is written out value by value, or as a loop if that would be long.
A definition that is costly becomes a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import attrs

from isr_check.native.assembly import Bit, Code, Int
from isr_check.native.layout import Layout
from isr_check.native.ranges import Range, Ranges
from isr_check.native.values import (
    Items,
    Row,
    Value,
    as_number,
    bare,
    begins,
    bit,
    choose,
    constant,
    default,
    equal,
    from_number,
    scalar,
    stored_value,
    within,
)
from isr_check.native.weights import Weights
from isr_lang import Binder, Definition, Node
from isr_lang.types import MapType, MaybeType, NumberType, Scalar, SeqType, SetType, Type

LIGHT = 12
"""The greatest weight of an operand that is cheaper to compute than to skip."""
CELLS, SUCCESSOR = "%cells", "%new"


@attrs.frozen
class Env:
    """The values of parameters and bound variables, their ranges, and the array with the old state's cells."""

    values: Mapping[Binder | str, Int | Bit]
    ranges: Mapping[Binder | str, Range | None]
    old: str = CELLS

    def bind(self, name: Binder | str, value: Int | Bit, value_range: Range | None) -> Env:
        return Env({**self.values, name: value}, {**self.ranges, name: value_range}, self.old)

    def array(self, is_primed: bool) -> str:
        return SUCCESSOR if is_primed else self.old


START = Env({}, {})


class Definitions(Weights):
    """What all functions of one instance share; `texts` has the functions that were made of definitions."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.ranges = Ranges(layout)
        self.functions: dict[Definition, str] = {}
        self.texts: list[str] = []

    def function(self, definition: Definition) -> str:
        """The name of the function that computes a definition from an array of cells and the parameters."""
        if definition not in self.functions:
            name = self.functions[definition] = f"definition{len(self.functions)}"
            numbers = [f"i64 %a{i}" for i in range(len(definition.parameters))]
            parameters = ["ptr noalias readonly %cells", *numbers]
            code, env = Code(name, parameters, "i64", "willreturn memory(argmem: read)"), START
            for i, (parameter, type) in enumerate(definition.parameters):
                known = None if isinstance(type, NumberType) else self.instance.bounds(type)
                env = env.bind(parameter, from_number(code, f"%a{i}", type), known)
            body = self.instance.body(definition)
            result = as_number(code, Expressions(self, code).value(body, env), body.type)
            code.effect(f"ret i64 {result}")
            self.texts.append(code.text())
        return self.functions[definition]


class Expressions:
    """Writes expressions into one function."""

    def __init__(self, shared: Definitions, code: Code) -> None:
        self.shared, self.code = shared, code
        self.layout, self.instance = shared.layout, shared.instance

    def value(self, node: Node, env: Env) -> Value:
        key = (node, env.old, tuple(env.values[name] for name in self.shared.free(node)))
        found = self.code.known_result(key)
        if found is None:
            found = EMIT[node.op](self, node, env)
            self.code.remember(key, found)
        return cast("Value", found)

    def number(self, node: Node, env: Env) -> Int:
        return as_number(self.code, self.value(node, env), node.type)

    def truth(self, node: Node, env: Env) -> Bit:
        return bit(self.value(node, env))

    def lazily(self, condition: Bit, node: Node, env: Env, otherwise: bool) -> Bit:
        """The value of the node if the condition holds, else `otherwise`."""
        if isinstance(condition, bool) or self.shared.weight(node) > LIGHT:
            return self.code.lazily(condition, lambda: self.truth(node, env), otherwise)
        value = self.truth(node, env)
        if otherwise:
            return self.code.either(self.code.negate(condition), value)
        return self.code.both(condition, value)

    def position(self, node: Node, env: Env, type: Scalar) -> tuple[Int, Bit]:
        """The position of a scalar among the values of the type, and whether the scalar is one of them."""
        low, high = self.instance.bounds(type)
        position = self.code.sub(self.number(node, env), low)
        known = self.shared.ranges.of(node, env.ranges)
        if known is not None and low <= known[0] and known[1] <= high:
            return position, True
        return position, self.code.below(position, high - low + 1)

    def member(self, domain: Node, env: Env) -> Callable[[Int], Bit]:
        """Whether the value at a position (within the type) is in the set."""
        code, low = self.code, self.instance.bounds(cast("SetType", domain.type).of)[0]
        if domain.op == "every":
            return lambda _: True
        if domain.op == "below":
            end = code.sub(self.number(domain.args[0], env), low)
            return lambda position: code.less(position, end)
        members = scalar(self.value(domain, env))
        return lambda position: code.truth(code.bits_and(code.shift_right(members, position), 1))

    def bound(self, node: Node, env: Env, position: Int) -> Env:
        binder = cast("Binder", node.attr)
        of = cast("SetType", node.args[0].type).of
        low, high = self.instance.bounds(of)
        value = self.code.add(position, low)
        return env.bind(binder, from_number(self.code, value, of), (low, high))

    def fold(self, node: Node, env: Env, start: Int, step: Callable[[Int, Bit, Env, Int], Int]) -> Int:
        """Apply `step(result so far, is it a member, bindings, position)` to all positions, beginning with `start`."""
        code, member = self.code, self.member(node.args[0], env)
        size = self.shared.positions(node.args[0])
        if self.shared.written_out(node):
            result = start
            for i in range(size):
                result = step(result, member(i), self.bound(node, env, i), i)
            return result
        slot = code.slot(start)
        with code.loop(0, size) as (position, _), code.when(member(position)):
            inner = self.bound(node, env, position)
            code.store(slot, 0, step(code.load(slot, 0), True, inner, position))
        return code.load(slot, 0)

    def quantified(self, node: Node, env: Env, every: bool) -> Bit:
        """The quantifier `forall` if `every`, else `exists`."""
        code, member = self.code, self.member(node.args[0], env)
        size, body = self.shared.positions(node.args[0]), node.args[1]
        if not self.shared.written_out(node):
            slot = code.slot(int(every))
            with code.loop(0, size) as (position, done), code.when(member(position)):
                value = self.truth(body, self.bound(node, env, position))
                with code.when(code.negate(value) if every else value):
                    code.store(slot, 0, int(not every))
                    code.leave_if(True, done)
            return code.truth(code.load(slot, 0))
        result: Bit = every
        for i in range(size):
            inner = self.bound(node, env, i)
            open = code.both(result if every else code.negate(result), member(i))
            if self.shared.weight(body) > LIGHT:
                value = self.lazily(open, body, inner, every)
            else:
                value = self.lazily(member(i), body, inner, every)
            result = code.both(result, value) if every else code.either(result, value)
        return result

    def call(self, node: Node, env: Env) -> Value:
        definition, primed = cast("tuple[Definition, bool]", node.attr)
        pointer = env.array(primed)
        if self.shared.inlined(node):
            inner = Env({}, {}, pointer)
            for (name, _), argument in zip(definition.parameters, node.args, strict=True):
                value = bare(self.value(argument, env))
                known = self.shared.ranges.of(argument, env.ranges)
                inner = inner.bind(name, value, known)
            return self.value(self.instance.body(definition), inner)
        arguments = "".join(f", i64 {self.number(a, env)}" for a in node.args)
        result = self.code.pure(f"call i64 @{self.shared.function(definition)}(ptr {pointer}{arguments})")
        return from_number(self.code, result, node.type)


def _low(e: Expressions, type: Type) -> int:
    return e.instance.bounds(cast("Scalar", type))[0]


def _element(e: Expressions, n: Node, env: Env) -> Int:
    """A set with this element only; empty if the value is outside the range of the set's type."""
    of = cast("SetType", n.args[0].type).of
    position, ok = e.position(n.args[1], env, of)
    safe = e.code.select(ok, position, 0)
    return e.code.shift_left(e.code.number(ok), safe)


def _has(e: Expressions, n: Node, env: Env) -> Value:
    of = cast("SetType", n.args[0].type).of
    position, ok = e.position(n.args[1], env, of)
    bits = e.code.shift_right(scalar(e.value(n.args[0], env)), e.code.select(ok, position, 0))
    return e.code.both(ok, e.code.truth(e.code.bits_and(bits, 1)))


def _some(e: Expressions, n: Node, env: Env) -> Value:
    """The number of a maybe (isr_lang.types.maybe_of); what is in range needs no test."""
    value, low = e.number(n.args[0], env), _low(e, n.args[0].type)
    position, known = e.code.sub(value, low), e.shared.ranges.of(n.args[0], env.ranges)
    if not isinstance(n.args[0].type, NumberType) or (known is not None and known[0] >= low):
        return e.code.add(position, 1)
    return e.code.add(position, e.code.select(e.code.less(position, 0), 0, 1))


def _or_else(e: Expressions, n: Node, env: Env) -> Value:
    of = cast("MaybeType", n.args[0].type).of
    maybe = scalar(e.value(n.args[0], env))
    known = e.shared.ranges.of(n.args[0], env.ranges)
    shift: Int = -1
    if isinstance(of, NumberType) and (known is None or known[0] < 0):
        shift = e.code.select(e.code.less(0, maybe), -1, 0)
    value = from_number(e.code, e.code.add(e.code.add(maybe, shift), _low(e, of)), of)
    return choose(e.code, e.code.truth(maybe), value, e.value(n.args[1], env), of)


def _get(e: Expressions, n: Node, env: Env) -> Value:
    type = cast("MapType", n.args[0].type)
    position, ok = e.position(n.args[1], env, type.key)
    m = cast("Items", e.value(n.args[0], env))
    if ok is False:
        return constant(e.code, e.instance.first(type.value), type.value)
    found = m.at(position if ok is True else e.code.select(ok, position, 0))
    return choose(e.code, ok, found, constant(e.code, e.instance.first(type.value), type.value), type.value)


def _put(e: Expressions, n: Node, env: Env) -> Value:
    type = cast("MapType", n.type)
    position, ok = e.position(n.args[1], env, type.key)
    m, value = cast("Items", e.value(n.args[0], env)), e.value(n.args[2], env)
    here: Callable[[Int], Bit] = lambda i: e.code.both(ok, e.code.equal(i, position))  # noqa: E731
    return Items(lambda i: choose(e.code, here(i), value, m.at(i), type.value))


def _at(e: Expressions, n: Node, env: Env) -> Value:
    row, position = cast("Row", e.value(n.args[0], env)), e.number(n.args[1], env)
    first = default(e.instance, cast("SeqType", n.args[0].type).of)
    if row.longest == 0:
        return first
    ok = e.code.both(e.code.at_most(0, position), e.code.less(position, row.length))
    return choose(e.code, ok, row.at(within(e.code, position, row.longest)), first, n.type)


def _append(e: Expressions, n: Node, env: Env) -> Value:
    row, item, code = cast("Row", e.value(n.args[0], env)), bare(e.value(n.args[1], env)), e.code
    of = cast("SeqType", n.type).of

    def at(i: Int) -> Int | Bit:
        if row.longest == 0:
            return item
        before = row.at(within(code, i, row.longest))
        return bare(choose(code, code.equal(i, row.length), item, before, of))

    return Row(code.add(row.length, 1), row.longest + 1, at)


def _take(e: Expressions, n: Node, env: Env) -> Value:
    row = cast("Row", e.value(n.args[0], env))
    wanted = e.code.greatest(0, e.number(n.args[1], env))
    return Row(e.code.least(row.length, wanted), row.longest, row.at)


def _prefix(e: Expressions, n: Node, env: Env) -> Value:
    s, t = (cast("Row", e.value(a, env)) for a in n.args)
    same = begins(e.code, e.instance, s, t, cast("SeqType", n.args[0].type))
    return e.code.both(e.code.at_most(s.length, t.length), same)


def _count(e: Expressions, n: Node, env: Env) -> Value:
    def step(so_far: Int, member: Bit, inner: Env, _: Int) -> Int:
        return e.code.add(so_far, e.code.number(e.lazily(member, n.args[1], inner, False)))

    return e.fold(n, env, 0, step)


def _select(e: Expressions, n: Node, env: Env) -> Value:
    def step(so_far: Int, member: Bit, inner: Env, position: Int) -> Int:
        chosen = e.code.number(e.lazily(member, n.args[1], inner, False))
        return e.code.bits_or(so_far, e.code.shift_left(chosen, position))

    return e.fold(n, env, 0, step)


def _extreme(largest: bool) -> Callable[[Expressions, Node, Env], Value]:
    def emit(e: Expressions, n: Node, env: Env) -> Value:
        worst = -(1 << 62) if largest else 1 << 62
        better = e.code.greatest if largest else e.code.least

        def step(so_far: Int, member: Bit, inner: Env, _: Int) -> Int:
            return e.code.select(member, better(so_far, e.number(n.args[1], inner)), so_far)

        found = e.fold(n, env, worst, step)
        return e.code.select(e.code.equal(found, worst), e.number(n.args[2], env), found)

    return emit


def _build(e: Expressions, n: Node, env: Env) -> Value:
    assert n.args[0].op == "every", "a map is built for all keys"
    return Items(lambda i: e.value(n.args[1], e.bound(n, env, i)))


def _below(e: Expressions, n: Node, env: Env) -> Value:
    of = cast("SetType", n.type).of
    size = e.code.sub(e.number(n.args[0], env), _low(e, of))
    clipped = e.code.least(e.instance.positions(of), e.code.greatest(0, size))
    return e.code.sub(e.code.shift_left(1, clipped), 1)


def _binary(op: str) -> Callable[[Expressions, Node, Env], Value]:
    def emit(e: Expressions, n: Node, env: Env) -> Value:
        method = cast("Callable[[Int, Int], Value]", getattr(e.code, op))
        return method(e.number(n.args[0], env), e.number(n.args[1], env))

    return emit


def _without(e: Expressions, a: Int, b: Int) -> Int:
    return e.code.bits_and(a, e.code.bits_not(b))


def _args(e: Expressions, n: Node, env: Env) -> Iterator[Int]:
    return (scalar(e.value(a, env)) for a in n.args)


def _when(e: Expressions, n: Node, env: Env) -> Value:
    return choose(e.code, e.truth(n.args[0], env), e.value(n.args[1], env), e.value(n.args[2], env), n.type)


def _constant(e: Expressions, n: Node, env: Env) -> Value:
    raise AssertionError("constants are folded away before an instance is explored")


EMIT: dict[str, Callable[[Expressions, Node, Env], Value]] = {
    "literal": lambda e, n, env: constant(e.code, n.attr, n.type),
    "constant": _constant,
    "variable": lambda e, n, env: stored_value(
        e.code, e.layout, env.array(n.attr[1]), n.type, e.layout.offset[n.attr[0]]
    ),
    "parameter": lambda e, n, env: env.values[n.attr],
    "bound": lambda e, n, env: env.values[n.attr],
    "call": Expressions.call,
    "not": lambda e, n, env: e.code.negate(e.truth(n.args[0], env)),
    "and": lambda e, n, env: e.lazily(e.truth(n.args[0], env), n.args[1], env, False),
    "or": lambda e, n, env: e.lazily(e.code.negate(e.truth(n.args[0], env)), n.args[1], env, True),
    "implies": lambda e, n, env: e.lazily(e.truth(n.args[0], env), n.args[1], env, True),
    "when": _when,
    "equal": lambda e, n, env: equal(
        e.code, e.instance, e.value(n.args[0], env), e.value(n.args[1], env), n.args[0].type
    ),
    "less": _binary("less"),
    "at_most": _binary("at_most"),
    "plus": _binary("add"),
    "minus": _binary("sub"),
    "some": _some,
    "or_else": _or_else,
    "has": _has,
    "with": lambda e, n, env: e.code.bits_or(scalar(e.value(n.args[0], env)), _element(e, n, env)),
    "without": lambda e, n, env: _without(e, scalar(e.value(n.args[0], env)), _element(e, n, env)),
    "union": _binary("bits_or"),
    "intersection": _binary("bits_and"),
    "difference": lambda e, n, env: _without(e, *_args(e, n, env)),
    "subset": lambda e, n, env: e.code.equal(_without(e, *_args(e, n, env)), 0),
    "size": lambda e, n, env: e.code.population(scalar(e.value(n.args[0], env))),
    "get": _get,
    "put": _put,
    "length": lambda e, n, env: cast("Row", e.value(n.args[0], env)).length,
    "at": _at,
    "append": _append,
    "take": _take,
    "prefix": _prefix,
    "forall": lambda e, n, env: e.quantified(n, env, every=True),
    "exists": lambda e, n, env: e.quantified(n, env, every=False),
    "count": _count,
    "smallest": _extreme(largest=False),
    "largest": _extreme(largest=True),
    "select": _select,
    "build": _build,
    "every": lambda e, n, env: (1 << e.instance.positions(cast("SetType", n.type).of)) - 1,
    "below": _below,
}
