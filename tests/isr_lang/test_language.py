"""The language as its package's docstring teaches it, and what every table of operators must cover."""

import inspect
import textwrap
from pathlib import Path

import pytest
from tests.support.sources import load

import isr_lang
from isr_check.engine import Verdict
from isr_check.explorer import explore
from isr_check.reference import MEANING, Evaluator
from isr_lang import OPERATORS, Design, Instance, text, walk
from isr_lang.nodes import Node, apply, literal
from isr_lang.printing import PRINTERS
from isr_lang.types import BOOL, COUNT


def test_the_example_in_the_docstring_is_a_model(tmp_path: Path) -> None:
    doc = inspect.getdoc(isr_lang) or ""
    example = doc[doc.index("    from isr_lang") : doc.index("An engine visits")]
    lock = load(textwrap.dedent(example), tmp_path)["LOCK"]
    assert isinstance(lock, Design)
    found = explore(Instance(lock, {"clients": 3}))
    assert (found.complete, found.distinct) == (True, 20)
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}


@pytest.mark.parametrize("table", [MEANING, PRINTERS], ids=["reference", "printing"])
def test_a_table_of_operators_has_exactly_one_entry_for_each(table: dict[str, object]) -> None:
    assert set(table) == set(OPERATORS)


def test_equal_expressions_are_one_node() -> None:
    one, two = literal(1, COUNT), literal(2, COUNT)
    assert apply("less", one, two) is apply("less", literal(1, COUNT), two)
    assert literal(True, BOOL) is not literal(1, COUNT)


ONE_NAME = """
from isr_lang import *
SIZE = bound("size", "How many.", default={default}, high=5)
class Thing(Sort, size=SIZE, prefix="{prefix}", symmetric=True): "A thing."
class Level(Number, high=SIZE): "How high."
class State(Struct):
    seen: Set[Thing] = var("Seen so far.")
    level: Level = var("Up to here.")
@initial
def init(new: State) -> Step:
    return (new.seen == Set.empty(Thing), new.level == 0)
@action
def see(old: State, new: State, t: Thing) -> Step:
    return (new.seen == old.seen.including(t),)
DESIGN = Design("d", "d", State, init, (see,), ())
"""


def test_two_models_may_call_different_things_by_one_name(tmp_path: Path) -> None:
    small = load(ONE_NAME.format(default=2, prefix="a"), tmp_path)["DESIGN"]
    large = load(ONE_NAME.format(default=4, prefix="b"), tmp_path)["DESIGN"]
    assert isinstance(small, Design)
    assert isinstance(large, Design)
    assert [explore(Instance(d)).distinct for d in (small, large, small)] == [4, 16, 4]


HIDING = """
from isr_lang import *
class Thing(Sort, size=bound("size", "How many.", default=2, high=3), prefix="t"): "A thing."
class State(Struct):
    below: Map[Thing, Set[Thing]] = var("What lies below.")
def covered(s: State, t: Thing) -> Bool:
    return exists(s.below[u].has(t) for u in Thing.all())
@initial
def init(new: State) -> Step:
    return (new.below == Map.build(Thing, lambda _: Set.empty(Thing)),)
@action
def put(old: State, new: State, u: Thing) -> Step:
    return (~covered(old, u), forall(~covered(old, u) for u in Thing.all()), new.below[u] == Thing.all())
DESIGN = Design("d", "d", State, init, (put,), ())
"""


def test_a_bound_variable_never_hides_another_name(tmp_path: Path) -> None:
    design = load(HIDING, tmp_path)["DESIGN"]
    assert isinstance(design, Design)
    first, second = (text(g.condition) for g in design.actions[0].guards)
    assert first == "~exists(old.below[u2].has(u) for u2 in Thing.all())"
    assert second == "forall(~exists(old.below[u3].has(u2) for u3 in Thing.all()) for u2 in Thing.all())"


def test_folding_a_definition_does_not_trust_what_it_is_called_with(tmp_path: Path) -> None:
    design = load(
        """
        from isr_lang import *
        class Level(Number, high=1): "How high."
        class State(Struct):
            level: Level = var("Up to here.")
        @define
        def fits(n: Level) -> Bool:
            return n <= 1
        @initial
        def init(new: State) -> Step:
            return (new.level == 0,)
        @action
        def climb(old: State, new: State) -> Step:
            return (fits(old.level + 1), new.level == old.level + 1)
        DESIGN = Design("d", "d", State, init, (climb,), ())
        """,
        tmp_path,
    )["DESIGN"]
    assert isinstance(design, Design)
    found = explore(Instance(design))
    assert (found.distinct, found.finding("type-ok").verdict) == (2, Verdict.HOLDS)


def test_walk_visits_children_first_and_each_node_once() -> None:
    leaf = literal(True, BOOL)
    twice = apply("and", apply("not", leaf), apply("not", leaf))
    assert [n.op for n in walk(twice)] == ["literal", "not", "and"]


def test_the_reference_can_be_read(tmp_path: Path) -> None:
    design = load(ONE_NAME.format(default=2, prefix="a"), tmp_path)["DESIGN"]
    assert isinstance(design, Design)
    assert "for p_t in range(0, 2):" in Evaluator(Instance(design)).source


def test_a_node_prints_as_the_model_would_write_it() -> None:
    assert repr(Node("not", (literal(True, BOOL),), None, BOOL)) == "~true"
