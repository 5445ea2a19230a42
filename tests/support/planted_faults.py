"""Faults planted in the layers that all engines share, and in the engines: the differential test must catch each.

A fault is a patch. It is caught by the first design about which some way to explore differs. `CONTROL` changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import attrs
import numpy as np
import pytest
from tests.support.differential import Question, problems, question
from tests.support.engines import WAYS

from isr_check import explorer, reduction_rules, reference, symmetry
from isr_check.inlining import Inlined
from isr_check.liveness import STRONG, UNFAIR, WEAK, Labels
from isr_check.native import expressions, merging, renaming, space, visited
from isr_check.native import layout as layouts
from isr_check.native import ranges as native_ranges
from isr_check.native.assembly import Code
from isr_check.native.buffers import Marks, Words, Worker
from isr_check.native.compressed import Compressed
from isr_check.native.team import Span
from isr_check.reference import Evaluator
from isr_check.reference import State as Packed
from isr_lang import Instance, Node, Property
from isr_lang import instance as folding
from isr_lang.nodes import literal
from isr_lang.types import MaybeType, NumberType, SetType, Type

Patch = pytest.MonkeyPatch
DESIGNS = 300
"""Designs among which a fault must be caught; those that are too large are not compared."""
MOST = 300
"""States of a design, so that many are compared in little time."""
SEED = "0"


@attrs.frozen
class Fault:
    """`ways`: the names of those that are asked; the others do not see it, or see it as well."""

    name: str
    layer: str
    ways: tuple[str, ...]
    plant: Callable[[Patch], None]


@attrs.frozen
class Catch:
    """`designs`: how many were compared until one differed, that one with them; `difference`: the first of it."""

    designs: int
    difference: str


def catches(faults: Sequence[Fault], designs: int = DESIGNS) -> dict[str, Catch]:
    """By fault, which design it was caught by; a fault that was not caught is not in it."""
    pending, compared, catch_by_fault = list(faults), 0, dict[str, Catch]()
    for number in range(designs):
        subject = question(SEED, number, MOST) if pending else None
        if subject is None:
            continue
        compared += 1
        for fault in list(pending):
            if difference := planted_difference(fault, subject):
                catch_by_fault[fault.name] = Catch(compared, difference)
                pending.remove(fault)
    return catch_by_fault


def planted_difference(fault: Fault, subject: Question) -> str:
    """How the first of the fault's ways differs about a design while it is planted; empty if none does."""
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        found = problems(subject, tuple(w for w in WAYS if w.name in fault.ways))
    return next((f"{way}: {said[0]}" for way, said in found.items()), "")


def _always(*_: object) -> bool:
    return True


def _no_sentence(*_: object) -> str:
    return ""


def _no_names(*_: object) -> Iterator[str]:
    return iter(())


def _no_effect(*_: object) -> None:
    pass


# folding


def _sums_are_in_range(patch: Patch) -> None:
    def interval(self: Instance, node: Node) -> tuple[int, int] | None:
        return self.bounds(node.type) if isinstance(node.type, NumberType) and node.type.high else own(self, node)

    own = Instance.interval
    patch.setattr(Instance, "interval", interval)


def _ranges_end_early(patch: Patch) -> None:
    def interval(self: Instance, node: Node) -> tuple[int, int] | None:
        found = own(self, node)
        return (found[0], max(found[0], found[1] - 1)) if found and node.op != "literal" else found

    own = Instance.interval
    patch.setattr(Instance, "interval", interval)


def _rule(op: str, rule: folding.Rule) -> Callable[[Patch], None]:
    def plant(patch: Patch) -> None:
        own = folding.SIMPLIFY.get(op)

        def first(instance: Instance, node: Node) -> Node | None:
            found = rule(instance, node)
            return found if found is not None or own is None else own(instance, node)

        patch.setitem(folding.SIMPLIFY, op, first)

    return plant


def _conclusion_that_is_false(_: Instance, n: Node) -> Node | None:
    return folding.TRUE if n.args[1] is folding.FALSE else None


def _branches_alike(_: Instance, n: Node) -> Node | None:
    return n.args[2] if n.args[1].op == "literal" and n.args[2].op != "literal" else None


def _all_are_nothing_more(_: Instance, n: Node) -> Node | None:
    return n.args[0] if n.args[1].op == "every" else None


def _difference_of_itself(_: Instance, n: Node) -> Node | None:
    return literal(0, n.type) if n.args[0] is n.args[1] or n.args[1].op == "literal" else None


def _one_above(instance: Instance, node: Node) -> Node | None:
    """`a <= b` is true where the highest a is one above the lowest b."""
    a, b = (instance.interval(x) for x in node.args)
    return folding.TRUE if a and b and a[1] - 1 == b[0] else None


def _parameters_everywhere(patch: Patch) -> None:
    def body(self: Instance, definition: object) -> Node:
        return self.fold(cast("Node", getattr(definition, "body")))  # noqa: B009 - whatever it is called with

    patch.setattr(Instance, "body", body)


def _off_is_first(patch: Patch) -> None:
    """A variable that is off has the first value of its type, and not its initial one."""

    def fold(self: Instance, node: Node) -> Node:
        off = cast("dict[str, Node]", vars(self)["_off"])
        if node.op == "variable" and node.attr[0] in off:
            return literal(self.first(node.type), node.type)
        return own(self, node)

    own = Instance.fold
    patch.setattr(Instance, "fold", fold)


# symmetry


def _no_obstacle(patch: Patch) -> None:
    patch.setattr(symmetry.Symmetry, "_naming_obstacle", _no_sentence)


def _sets_stay(patch: Patch) -> None:
    def rename(type: Type, value: object, renaming: symmetry.Renaming) -> object:
        return value if isinstance(type, SetType) else own(type, value, renaming)

    own = symmetry.rename_elements
    patch.setattr(symmetry, "rename_elements", rename)


def _maybes_stay(patch: Patch) -> None:
    def rename(type: Type, value: object, renaming: symmetry.Renaming) -> object:
        return value if isinstance(type, MaybeType) else own(type, value, renaming)

    own = symmetry.rename_elements
    patch.setattr(symmetry, "rename_elements", rename)


def _values_stay(patch: Patch) -> None:
    patch.setattr(renaming.Renaming, "_change_values", _no_effect)


# reduction


def _all_versions_grow(patch: Patch) -> None:
    patch.setattr(reduction_rules, "_grows", _always)


def _actions_do_not_read(patch: Patch) -> None:
    patch.setattr(reduction_rules, "_relevant_variables", _no_names)


def _promises_do_not_read(patch: Patch) -> None:
    own = reduction_rules.Model.__init__

    def init(self: reduction_rules.Model, instance: Instance, actions: object, conditions: object) -> None:
        own(self, instance, cast("list[Inlined]", actions), [])

    patch.setattr(reduction_rules.Model, "__init__", init)


def _equal_versions_are_passed(patch: Patch) -> None:
    def passed(self: merging.Merging, rule: reduction_rules.VersionRule, key: int) -> object:
        now, code = self._value(rule.current), self.code  # pyright: ignore[reportPrivateUsage]
        version = self._value(rule.versions, key)  # pyright: ignore[reportPrivateUsage]
        return code.negate(code.less(now, version))

    patch.setattr(merging.Merging, "_version_has_passed", passed)


def _phases_stay(patch: Patch) -> None:
    patch.setattr(reduction_rules._Phases, "_stays", _always)  # pyright: ignore[reportPrivateUsage]


# the reference


def _meaning(op: str, text: str) -> Callable[[Patch], None]:
    return lambda patch: patch.setitem(reference.MEANING, op, text)


def _steps_backwards(patch: Patch) -> None:
    def test(self: Evaluator, p: Property) -> Callable[..., bool]:
        return _turned(own(self, p)) if p.kind.endswith("step") else own(self, p)

    own = Evaluator.test
    patch.setattr(Evaluator, "test", test)


def _turned(test: Callable[..., bool]) -> Callable[..., bool]:
    def turned(old: Packed, new: Packed | None = None) -> bool:
        return test(new, old)

    return turned


def _steps_of_new_states_only(patch: Patch) -> None:
    """A step to a state that is there already is not tested."""

    def expand(self: explorer._Search, position: int) -> list[int]:  # pyright: ignore[reportPrivateUsage]
        def unless_known(test: Callable[..., bool], seek: bool) -> Callable[..., bool]:
            def of_step(old: Packed, new: Packed) -> bool:
                return not seek if new in self.index else test(old, new)

            return of_step

        tests = self.on_steps
        self.on_steps = [(name, unless_known(test, seek), seek) for name, test, seek in tests]
        added = own(self, position)
        self.on_steps = tests
        return added

    own = explorer._Search.expand  # pyright: ignore[reportPrivateUsage]
    patch.setattr(explorer._Search, "expand", expand)  # pyright: ignore[reportPrivateUsage]


def _ranges_are_not_tested(patch: Patch) -> None:
    patch.setattr(Evaluator, "in_range", _always)


def _items_are_not_tested(patch: Patch) -> None:
    def in_range(self: Evaluator, state: Packed) -> bool:
        return own(self, tuple(() if isinstance(value, tuple) else value for value in state))

    own = Evaluator.in_range
    patch.setattr(Evaluator, "in_range", in_range)


TAKE = "({0}[:max(0, {1})] if {1} <= len({0}) else ())"


def _maybe_below_is_none(patch: Patch) -> None:
    patch.setitem(reference.MEANING, "some", "max(0, {0} - {low} + 1)")


# the native engine


def _emit(op: str, like: str) -> Callable[[Patch], None]:
    return lambda patch: patch.setitem(expressions.EMIT, op, expressions.EMIT[like])


def _one_bit_too_few(patch: Patch) -> None:
    def width(self: layouts.Place) -> int:
        bits = max(0, self.high - self.low).bit_length()
        return bits - 1 if isinstance(self.type, NumberType) and bits > 1 else bits

    patch.setattr(layouts.Place, "width", property(width))


def _sums_are_in_cells(patch: Patch) -> None:
    def of_sum(self: native_ranges.Ranges, node: Node, _: object) -> native_ranges.Range:
        return self.layout.range(node.type) if cast("NumberType", node.type).high else (0, 1)

    patch.setattr(native_ranges.Ranges, "_sum", of_sum)


def _last_word_alike(patch: Patch) -> None:
    """Two states are taken for one when all words but the last are equal; the hash, too, is of these."""

    def hash_of_less(self: visited.Visited, code: object, pointer: str) -> str:
        return own_hash(visited.Visited(self.words - 1), cast("Code", code), pointer)

    def same_but_last(self: visited.Visited, code: object, a: str, b: str) -> str:
        return own_same(visited.Visited(self.words - 1), cast("Code", code), a, b)

    own_hash, own_same = visited.Visited.hash, visited.Visited._same  # pyright: ignore[reportPrivateUsage]
    patch.setattr(visited.Visited, "hash", hash_of_less)
    patch.setattr(visited.Visited, "_same", same_but_last)


def _files_lose_one(patch: Patch) -> None:
    def survivors(self: space.Space, marks: Marks) -> object:
        for block in own(self, marks):
            yield block[1:] if len(block) > 2 else block

    own = space.Space._survivors  # pyright: ignore[reportPrivateUsage]
    patch.setattr(space.Space, "_survivors", survivors)


def _compressed_lose_one(patch: Patch) -> None:
    def gather(self: Compressed, worker: Worker, buckets: Span, level: int, done: bool | None = None) -> Words:
        rows = own(self, worker, buckets, level, done)
        return rows[:-1] if len(rows) > 2 else rows

    own = Compressed.gather
    patch.setattr(Compressed, "gather", gather)


# the future


def _fairness(change: Callable[[int], int]) -> Callable[[Patch], None]:
    def plant(patch: Patch) -> None:
        def of(instance: Instance, p: Property) -> Labels:
            labels = own(instance, p)
            changed = np.array([change(int(f)) for f in labels.fairness], dtype=np.int32)
            return attrs.evolve(labels, fairness=changed)

        own = Labels.of
        patch.setattr(Labels, "of", staticmethod(of))

    return plant


def _trigger_for_goal(patch: Patch) -> None:
    """The goal is looked for where the trigger is, and nowhere later."""

    def leads(self: Evaluator, p: Property) -> tuple[Callable[[Packed], bool], Callable[[Packed], bool]]:
        trigger, goal = own(self, p)
        return trigger, lambda state: trigger(state) and goal(state)

    own = Evaluator.leads
    patch.setattr(Evaluator, "leads", leads)


def _nothing(_: Patch) -> None:
    pass


CONTROL = Fault("nothing", "none", tuple(w.name for w in WAYS), _nothing)

REFERENCE, NATIVE = ("reference",), ("native, 1 worker",)
SYMMETRY, REDUCTION = ("reference, symmetry",), ("reference, reduction",)

OUTSIDE = "definition_asked_out_of_range"

FAULTS = (
    Fault("a sum is in the range of its type", "folding", REFERENCE, _sums_are_in_range),
    Fault("a range ends one earlier", "folding", REFERENCE, _ranges_end_early),
    Fault("what implies a falsehood is true", "folding", REFERENCE, _rule("implies", _conclusion_that_is_false)),
    Fault("a constant branch is never chosen", "folding", REFERENCE, _rule("when", _branches_alike)),
    Fault("a number less a constant is 0", "folding", REFERENCE, _rule("minus", _difference_of_itself)),
    Fault("an off variable has the first value", "folding", REFERENCE, _off_is_first),
    Fault("the first element may be named", "symmetry", SYMMETRY, _no_obstacle),
    Fault("sets are not renamed", "symmetry", SYMMETRY, _sets_stay),
    Fault("maybes are not renamed", "symmetry", SYMMETRY, _maybes_stay),
    Fault("cells move and their values stay", "symmetry", ("native, symmetry",), _values_stay),
    Fault("what actions read is forgotten", "reduction", REDUCTION, _actions_do_not_read),
    Fault("what promises read is forgotten", "reduction", REDUCTION, _promises_do_not_read),
    Fault("an equal version is passed", "reduction", ("native, symmetry and reduction",), _equal_versions_are_passed),
    Fault("at most is less", "reference", REFERENCE, _meaning("at_most", "({0} < {1})")),
    Fault("to take more than there is takes none", "reference", REFERENCE, _meaning("take", TAKE)),
    Fault("a subset is a superset", "reference", REFERENCE, _meaning("subset", "({1} & ~{0} == 0)")),
    Fault("the second is a prefix of the first", "reference", REFERENCE, _meaning("prefix", "({0}[:len({1})] == {1})")),
    Fault(
        "of nothing the least is 0",
        "reference",
        REFERENCE,
        _meaning("smallest", "min(({1} for {x} in {range}), default=0)"),
    ),
    Fault("steps are tested backwards", "reference", REFERENCE, _steps_backwards),
    Fault("steps to states seen before are not tested", "reference", REFERENCE, _steps_of_new_states_only),
    Fault("type-ok is never asked", "reference", REFERENCE, _ranges_are_not_tested),
    Fault("type-ok does not look into sequences and maps", "reference", REFERENCE, _items_are_not_tested),
    Fault("at most is less, in machine code", "native", NATIVE, _emit("at_most", "less")),
    Fault("a union is an intersection", "native", NATIVE, _emit("union", "intersection")),
    Fault("a number's cell has a bit too few", "native", NATIVE, _one_bit_too_few),
    Fault("a sum fits its cell", "native", NATIVE, _sums_are_in_cells),
    Fault("states that differ in the last word are one", "native", NATIVE, _last_word_alike),
    Fault("files lose a state of a block", "native", ("native, files",), _files_lose_one),
    Fault("compressed states lose one of a part", "native", ("native, fewer bytes",), _compressed_lose_one),
    Fault("no action is fair", "liveness", NATIVE, _fairness(lambda _: UNFAIR)),
    Fault("every action is fair", "liveness", NATIVE, _fairness(lambda f: f or WEAK)),
    Fault("the goal counts with the trigger only", "liveness", REFERENCE, _trigger_for_goal),
)

CAUGHT_BY_CASES = (
    (Fault("one above the least is at most", "folding", REFERENCE, _rule("at_most", _one_above)), "ranges_that_touch"),
    (Fault("all elements add nothing to a set", "folding", REFERENCE, _rule("union", _all_are_nothing_more)), OUTSIDE),
    (Fault("a definition's parameters are in range", "folding", REFERENCE, _parameters_everywhere), OUTSIDE),
    (Fault("a Maybe below its range is none", "reference", REFERENCE, _maybe_below_is_none), "maybe_below_its_range"),
    (Fault("strong fairness is weak", "liveness", NATIVE, _fairness(lambda f: min(f, WEAK))), "strong_fairness"),
    (
        Fault("weak fairness is strong", "liveness", NATIVE, _fairness(lambda f: STRONG if f else UNFAIR)),
        "weak_fairness",
    ),
)
"""Faults that a design which is kept catches, and the random ones not so soon."""
GAPS = (
    Fault("every version grows", "reduction", REDUCTION, _all_versions_grow),
    Fault("no phase leads to one in which members count", "reduction", REDUCTION, _phases_stay),
)
"""Faults that nothing catches yet."""
