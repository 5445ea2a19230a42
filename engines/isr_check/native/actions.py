"""Actions, properties and range checks as LLVM functions over the cells of states.

An action takes several states, one after the other: what one function does stays in the processor's caches. For each
state it is nested loops over its parameters. Each guard is tested as soon as the parameters are bound on which it and
the guards before it depend. A successor is a copy of the old words with the changed cells replaced; it is appended to
`out`. Properties of steps are tested there too, on a copy of the cells that is changed and then restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from math import prod
from typing import cast

import attrs

from isr_check.native.assembly import Bit, Code, Int, signed_value
from isr_check.native.expressions import START, Definitions, Env, Expressions
from isr_check.native.layout import Cell
from isr_check.native.values import Items, Row, Value, as_number, bare, from_number, scalar, within
from isr_lang import FoldedAction, Node, Property, Update
from isr_lang.instance import FoldedGuard
from isr_lang.types import MapType, MaybeType, NumberType, Scalar, SeqType, SetType, Type

OVERFLOW, DECISIONS, PLACES = 0, 1, 2
"""The places in %report: 1 if a value did not fit its cell; the bits of the properties that were decided; and how many
places there are."""
MOVES = 1 << 63
"""In the traits of a state: it has a step. The other bits are those of the properties for which one is like no step."""

UNROLLED = 64
"""The most combinations of parameters for which the loops of an action are unrolled: LLVM needs long for more."""
TRAITS = "ptr noalias %every_traits"
"""One number per state."""
ACTION = (
    "ptr noalias readonly %every_cells",  # of the states, one after the other
    "ptr noalias %every_new",  # the same cells, to be changed and restored
    "ptr noalias readonly %every_words",  # of the states
    "i64 %states",  # how many there are
    "ptr noalias %out",  # successors, one after the other
    "ptr noalias %refused",  # one counter per guard of the whole instance
    "ptr noalias %report",
    TRAITS,
    "i64 %wanted",  # which properties of steps to test, by bit
)


@attrs.frozen
class Check:
    """A property to look for. The value `seek` decides it: true for a `sometimes`, else false. It has a mask bit."""

    property: Property
    seek: bool
    bit: int


@attrs.frozen
class Change:
    """A write of `value` to one cell, if `ok` holds. `cell` may be known at run time only, but is one of `cells`."""

    cell: Int
    cells: tuple[int, ...]
    value: Int
    range: tuple[int, int] | None
    ok: Bit


def primed_reads(node: Node, shared: Definitions, is_primed: bool = False) -> set[str]:
    """The variables of the state after the step that an expression over two states reads."""
    variable_names: set[str] = set()
    for n in _walk(node, {}):
        if n.op == "variable" and (n.attr[1] or is_primed):
            variable_names.add(n.attr[0])
        elif n.op == "call" and (n.attr[1] or is_primed):
            variable_names |= primed_reads(shared.instance.body(n.attr[0]), shared, is_primed=True)
    return variable_names


def _walk(node: Node, visited: dict[Node, None]) -> dict[Node, None]:
    if node not in visited:
        visited[node] = None
        for argument in node.args:
            _walk(argument, visited)
    return visited


class ActionWriter:
    """Writes one action as the LLVM function @name, which appends its successors in order and returns their number.

    `moves`: whether the traits of a state are to tell if it has a step.
    """

    def __init__(
        self,
        shared: Definitions,
        name: str,
        action: FoldedAction,
        base: int,
        steps: list[Check],
        *,
        moves: bool = False,
    ) -> None:
        self.shared, self.action, self.base = shared, action, base
        self.layout, self.instance = shared.layout, shared.instance
        self.code = Code(name, ACTION, "i64", "noinline")
        self.expressions = Expressions(shared, self.code)
        changed_variables = {u.variable for u in action.updates}
        reads = {c.bit: primed_reads(c.property.condition, shared) for c in steps}
        if (
            self.layout.slack.number
        ):  # a step to a value out of range is not tested, whatever it is that is out of range
            reads = dict.fromkeys(reads, changed_variables)
        self.steps = [c for c in steps if reads[c.bit] & changed_variables]
        self.traits = sum(1 << c.bit for c in steps if not reads[c.bit] & changed_variables) | (MOVES if moves else 0)
        self.tested_variables = changed_variables & set[str]().union(*(reads[c.bit] for c in self.steps))

    def text(self) -> str:
        code, count, cells, words = self.code, self.code.slot(0), len(self.layout.cells), self.layout.words
        refusal_counters = [code.slot(0) for _ in self.action.guards]
        with code.loop(0, "%states") as (state, _):
            for name, size in (("cells", cells), ("new", cells), ("words", words), ("traits", 1)):
                at = code.mul(state, size)
                code.effect(f"%{name} = getelementptr inbounds i64, ptr %every_{name}, i64 {at}")
            before = code.load(count, 0)
            self._steps_of_state(count, refusal_counters)
            if self.traits:
                more = code.raw("sub", code.load(count, 0), before)
                code.include("%traits", 0, code.select(code.truth(more), signed_value(self.traits), 0))
        for i, counter in enumerate(refusal_counters, self.base):
            code.increase("%refused", i, code.load(counter, 0))
        code.effect(f"ret i64 {code.load(count, 0)}")
        return code.text()

    def _steps_of_state(self, count: str, refusal_counters: list[str]) -> None:
        """Write the steps of the state whose cells are at %cells. `count` counts them, `refusal_counters` refusals."""
        code = self.code
        depends = [set(self.shared.free(g.condition)) for g in self.action.guards]
        guards = list(zip(self.action.guards, depends, refusal_counters, strict=True))
        env, unbound = START, list(self.action.parameters)
        unrolled = combinations(self.shared, unbound) <= UNROLLED
        with ExitStack() as stack:
            while True:
                names = {name for name, _ in unbound}
                while guards and not guards[0][1] & names:
                    guard, _, counter = guards.pop(0)
                    self._guard(stack, guard, counter, env, unbound)
                if not unbound:
                    break
                name, type = unbound.pop(0)
                low, high = parameter_range(self.shared, type)
                at = self._confining(name, [g.condition for g, _, _ in guards], unbound)
                if at is None:
                    value, _ = stack.enter_context(code.loop(low, high + 1, unrolled=unrolled))
                else:
                    guard, _, counter = guards.pop(at)
                    whole = self.expressions.number(guard.condition.args[1], env)
                    others = code.sub(high + 1, code.shift_left(1, code.population(whole)))
                    code.increase(counter, 0, code.mul(others, combinations(self.shared, unbound)))
                    value = stack.enter_context(code.subsets(whole))
                env = env.bind(name, from_number(code, value, type), (low, high))
            self._successor(count, env)

    def _confining(self, name: str, conditions: list[Node], later: list[tuple[str, Type]]) -> int | None:
        """Which condition refuses all sets but the subsets of one that is known before `name` is bound; None if none.

        The others need not be tried then. No condition before it may refuse one of them, so only "not empty" may
        stand there.
        """
        unknown = {name, *(other for other, _ in later)}
        for at, condition in enumerate(conditions):
            if condition.op == "subset" and _names(condition.args[0], name):
                return None if unknown & set(self.shared.free(condition.args[1])) else at
            if not _refuses_empty(condition, name):
                return None
        return None

    def _guard(
        self, stack: ExitStack, guard: FoldedGuard, counter: str, env: Env, unbound: list[tuple[str, Type]]
    ) -> None:
        number = combinations(self.shared, unbound)

        def refuse() -> None:
            self.code.increase(counter, 0, number)

        stack.enter_context(self.code.when(self.expressions.truth(guard.condition, env), refuse))

    def _successor(self, count: str, env: Env) -> None:
        code = self.code
        changes = [(u.variable, c) for u in self.action.updates for c in self._changes(u, env)]
        overflow: Bit = False
        words: list[Int] = [code.peek("%words", w) for w in range(self.layout.words)]
        for _, change in changes:
            words, bad = self._write(words, change)
            overflow = code.either(overflow, code.both(change.ok, bad))
        with code.when(code.negate(overflow), lambda: code.store("%report", OVERFLOW, 1)):
            if self.steps:
                self._test_step([c for variable, c in changes if variable in self.tested_variables])
            so_far = code.load(count, 0)
            begin = code.mul(so_far, self.layout.words)
            for w, word in enumerate(words):
                code.store("%out", code.add(begin, w), word)
            code.store(count, 0, code.add(so_far, 1))

    def _changes(self, update: Update, env: Env) -> Iterator[Change]:
        """The cells that an update writes; along its path the position may be known only at run time."""
        code = self.code
        type: Type = next(v.type for v in self.instance.variables if v.name == update.variable)
        cell: Int = self.layout.offset[update.variable]
        cells: tuple[int, ...] = (self.layout.offset[update.variable],)
        ok: Bit = True
        for node in update.path:
            assert isinstance(type, MapType)
            position, inside = self.expressions.position(node, env, type.key)
            size, step = self.instance.positions(type.key), self.layout.size(type.value)
            position = position if inside is True else within(code, position, size)
            cell, ok, type = code.add(cell, code.mul(position, step)), code.both(ok, inside), type.value
            every = range(size) if isinstance(position, str) else [position]
            cells = tuple(c + i * step for c in cells for i in every)
        value = self.expressions.value(update.value, env)
        value_range = (
            self.shared.ranges.parts(update.value, env.ranges)
            if isinstance(update.value.type, MapType | SeqType)
            else self.shared.ranges.of(update.value, env.ranges)
        )
        length = self.shared.ranges.length(update.value, env.ranges)
        for inner, number, is_length in self._flatten(value, type, 0):
            at = tuple(c + inner for c in cells)
            yield Change(code.add(cell, inner), at, number, length if is_length else value_range, ok)

    def _flatten(self, value: Value, type: Type, cell: int) -> Iterator[tuple[int, Int, bool]]:
        """(cell, number, whether it is a length) for each cell of a value."""
        code = self.code
        match type:
            case MapType():
                step = self.layout.size(type.value)
                for i in range(self.instance.positions(type.key)):
                    yield from self._flatten(cast("Items", value).at(i), type.value, cell + i * step)
            case SeqType():
                row = cast("Row", value)
                yield cell, row.length, True
                filler = self.layout.range(type.of)[0]
                for i in range(self.layout.longest(type)):
                    item = as_number(code, row.at(i), type.of) if i < row.longest else filler
                    yield cell + 1 + i, code.select(code.less(i, row.length), item, filler), False
            case _:
                yield cell, as_number(code, bare(value), type), False

    def _write(self, words: list[Int], change: Change) -> tuple[list[Int], Bit]:
        """The words with the cell replaced, and whether the value does not fit."""
        code = self.code
        places = [self.layout.cells[c] for c in change.cells]
        low, high = places[0].low, places[0].high
        fits = change.range is not None and low <= change.range[0] and change.range[1] <= high
        value = code.sub(change.value, low)
        bad = False if fits else code.negate(code.below(value, high - low + 1))
        if places[0].width == 0:
            return words, bad
        shift = self._shift(change, places)
        mask = code.shift_left(places[0].mask, shift)
        bits = code.shift_left(value, shift)
        result = list(words)
        holders = sorted({p.word for p in places})
        for word in holders:
            here = change.ok
            if len(holders) > 1:
                here = code.both(here, code.equal(self._lookup("word", change), word))
            kept = code.bits_and(words[word], code.bits_not(mask))
            result[word] = code.select(here, code.bits_or(kept, bits), words[word])
        return result, bad

    def _shift(self, change: Change, places: list[Cell]) -> Int:
        """Where the cell begins in its word: known, or linear in its index, or looked up."""
        if isinstance(change.cell, int):
            return places[0].shift
        first, step = change.cells[0], change.cells[1] - change.cells[0]
        slope, rest = divmod(places[1].shift - places[0].shift, step)
        expected = (places[0].shift + slope * (c - first) for c in change.cells)
        if rest == 0 and all(e == p.shift for e, p in zip(expected, places, strict=True)):
            return self.code.add(self.code.mul(self.code.sub(change.cell, first), slope), places[0].shift)
        return self._lookup("shift", change)

    def _lookup(self, table: str, change: Change) -> Int:
        return self.code.peek(f"@{table}", change.cell)

    def _test_step(self, changes: list[Change]) -> None:
        """Test the properties; if no cell that they read changes, leave them to the state's one test of no step."""
        code, bits = self.code, sum(1 << c.bit for c in self.steps)
        before = [code.peek("%cells", c.cell) for c in changes]
        after = [code.select(c.ok, c.value, old) for c, old in zip(changes, before, strict=True)]
        changed: Bit = False
        for old, new in zip(before, after, strict=True):
            changed = code.either(changed, code.negate(code.equal(old, new)))
        mask = code.bits_and("%wanted", bits)
        with code.when(code.both(code.truth(mask), changed), lambda: code.include("%traits", 0, bits)):
            for change, value in zip(changes, after, strict=True):
                code.store("%new", change.cell, value)
            code.include("%report", DECISIONS, code.value(f"call i64 @steps(ptr %cells, ptr %new, i64 {mask})"))
            for change, old in zip(changes, before, strict=True):
                code.store("%new", change.cell, old)


def parameter_range(shared: Definitions, type: Type) -> tuple[int, int]:
    if isinstance(type, SetType):
        return 0, (1 << shared.instance.positions(type.of)) - 1
    return shared.instance.bounds(cast("Scalar", type))


def combinations(shared: Definitions, parameters: Iterable[tuple[str, Type]]) -> int:
    """How many values these parameters have together."""
    ranges = (parameter_range(shared, type) for _, type in parameters)
    return prod(high - low + 1 for low, high in ranges)


def _names(node: Node, parameter: str) -> bool:
    return node.op == "parameter" and node.attr == parameter


def _refuses_empty(condition: Node, parameter: str) -> bool:
    """Whether the condition is that this set has members."""
    if condition.op != "not" or condition.args[0].op != "equal":
        return False
    a, b = condition.args[0].args
    return _names(a, parameter) and b.op == "literal" and b.attr == 0


def checks(shared: Definitions, name: str, check_list: list[Check], state: str, type_ok: int | None = None) -> str:
    """The text of @name(cells, new, mask): it returns the bits of the mask whose checks this state or step decides.

    Where the cells at `state` hold a value out of range, which they can with slack only, it decides `type_ok` alone.
    """
    code = Code(name, ("ptr %cells", "ptr %new", "i64 %wanted"), "i64", "noinline memory(argmem: read)")
    expressions, decided_bits = Expressions(shared, code), code.slot(0)
    beyond = out_of_range(shared, code, state) if shared.layout.slack.number else False
    with code.when(code.negate(beyond)):
        for check in check_list:
            with code.when(code.truth(code.bits_and("%wanted", 1 << check.bit))):
                truth = expressions.truth(check.property.condition, START)
                hit = code.number(truth if check.seek else code.negate(truth))
                code.include(decided_bits, 0, code.shift_left(hit, check.bit))
    if type_ok is not None:
        code.include(decided_bits, 0, code.shift_left(code.number(beyond), type_ok))
    code.effect(f"ret i64 {code.load(decided_bits, 0)}")
    return code.text()


def out_of_range(shared: Definitions, code: Code, state: str) -> Bit:
    """Whether some of the cells at `state` holds a value outside the declared range of its variable."""
    result: Bit = False
    exact = type(shared.layout)(shared.instance)

    def visit(type: Type, cell: int) -> None:
        nonlocal result
        match type:
            case MapType():
                step = shared.layout.size(type.value)
                for i in range(shared.instance.positions(type.key)):
                    visit(type.value, cell + i * step)
            case SeqType():
                test(cell, 0, shared.instance.bounds(type.index)[1])
                if isinstance(type.of, NumberType | MaybeType):
                    length = code.peek(state, cell)
                    for i in range(shared.layout.longest(type)):
                        test(cell + 1 + i, *exact.range(type.of), in_use=code.less(i, length))
            case NumberType() | MaybeType():
                test(cell, *exact.range(type))
            case _:
                pass

    def test(cell: int, low: int, high: int, in_use: Bit = True) -> None:
        nonlocal result
        value = code.sub(code.peek(state, cell), low)
        result = code.either(result, code.both(in_use, code.negate(code.below(value, high - low + 1))))

    for variable in shared.instance.variables:
        visit(variable.type, shared.layout.offset[variable.name])
    return result


__all__ = ["ACTION", "DECISIONS", "OVERFLOW", "ActionWriter", "Check", "checks", "out_of_range", "scalar"]
