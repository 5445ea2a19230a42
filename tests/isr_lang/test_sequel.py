"""What follows an action within the same step reads the state after it.

Without it a fetch that waits could be answered by what its leader had before the step.
"""

from __future__ import annotations

import attrs
import pytest

from isr_check.explorer import explore
from isr_check.reference import Evaluator
from isr_lang import (
    Action,
    Bool,
    Design,
    Instance,
    Map,
    ModelError,
    Number,
    Set,
    Sort,
    Step,
    Struct,
    action,
    bound,
    define,
    initial,
    var,
    when,
)
from isr_lang.blank import blank
from isr_lang.sequel import as_if, with_sequels

CUPS = bound("cups", "cups", default=2, low=1, high=3)
TOP = bound("top", "the highest level", default=2, low=1, high=3)


class Cup(Sort, size=CUPS, prefix="c"):
    """What is filled."""


class Level(Number, high=TOP):
    """How full it is."""


class Table(Struct):
    level: Map[Cup, Level] = var("how full each cup is")
    full: Set[Cup] = var("which cups are full")


@initial
def empty(new: Table) -> Step:
    return (new.level == blank(new.level), new.full == blank(new.full))


@define
def is_full(s: Table, c: Cup) -> Bool:
    """The cup is full."""
    return s.level[c] == TOP


@action
def fills(old: Table, new: Table, c: Cup) -> Step:
    """A cup that is not full is filled by one."""
    return (~is_full(old, c), new.level[c] == old.level[c] + 1)


@action
def looks(old: Table, new: Table) -> Step:
    """Which cups are full is noted."""
    return (new.full == Cup.all().where(lambda q: is_full(old, q)),)


@action
def empties(old: Table, new: Table, c: Cup) -> Step:
    """This cup is emptied if it is full, and all others stay."""
    return (new.level == old.level.put(c, when(is_full(old, c), blank(old.level[c]), old.level[c])),)


@action
def adds(old: Table, new: Table, c: Cup) -> Step:
    """A part of a variable is no sequel."""
    return (new.level[c] == 0,)


@action
def waits(old: Table, new: Table, c: Cup) -> Step:
    """Nor is what may be refused."""
    return (old.full.has(c), new.full == old.full)


@action
def names_a_level(old: Table, new: Table, lvl: Level) -> Step:
    """Nor is what has another parameter."""
    return (new.full == Cup.all().where(lambda q: old.level[q] == lvl),)


TABLE = Design("table", "Two cups.", Table, empty, (fills,), ())


def after(design: Design, *cups: int) -> tuple[object, ...]:
    """The state after these cups were filled."""
    evaluator = Evaluator(Instance(design, {}))
    (_, state), *_ = evaluator.initial_states()
    for cup in cups:
        state = evaluator.outcome(evaluator.instance.actions[0], (cup,), state)
    return state


def test_a_sequel_reads_what_the_action_has_written() -> None:
    noted = with_sequels(TABLE, fills=looks)
    assert after(noted, 0, 0) == ((2, 0), 0b01)
    assert after(TABLE, 0, 0) == ((2, 0), 0), "the control: nobody looks"


def test_a_sequel_writes_over_what_the_action_has_written_and_shares_its_parameters() -> None:
    emptied = with_sequels(TABLE, fills=empties)
    assert after(emptied, 0, 1, 0) == ((0, 1), 0)


def test_one_sequel_follows_another() -> None:
    assert after(with_sequels(with_sequels(TABLE, fills=looks), fills=empties), 0, 0) == ((0, 0), 0b01)
    assert after(with_sequels(with_sequels(TABLE, fills=empties), fills=looks), 0, 0) == ((0, 0), 0)


def test_guards_are_those_of_the_action() -> None:
    assert explore(Instance(TABLE, {})).distinct == 9
    assert explore(Instance(with_sequels(TABLE, fills=empties), {})).distinct == 4


@action
def was_empty(old: Table, new: Table, q: Cup) -> Step:
    """A cup that nobody has looked at was empty."""
    return (~old.full.has(q), new.level[q] == 0)


@action
def tops_up(old: Table, new: Table, c: Cup, q: Cup) -> Step:
    """A cup is filled from one that has as much, which is empty then."""
    poured = old.level.put(c, old.level[c] + old.level[q]).put(q, blank(old.level[q]))
    return (c != q, old.level[c] <= old.level[q], new.level == poured)


def outcomes(one: Action, level: tuple[int, int]) -> list[object]:
    """Where the action leads, with each choice of its parameters."""
    evaluator = Evaluator(Instance(attrs.evolve(TABLE, actions=(one,)), {}))
    return [state for _, _, state in evaluator.successors((level, 0))]


def test_as_if_something_had_been_before_changes_one_key_alone() -> None:
    poured = as_if(tops_up, was_empty, Table, "c")
    assert outcomes(tops_up, (1, 1)) == [((2, 0), 0), ((0, 2), 0)], "the control"
    assert outcomes(poured, (1, 1)) == [], "the other was empty, so it has less"
    assert outcomes(poured, (0, 2)) == [((0, 2), 0)], "nothing is poured, and the other keeps what it has"


def test_parameters_of_what_was_before_have_another_name() -> None:
    emptied = as_if(fills, was_empty, Table, "c", q="c")
    assert outcomes(emptied, (2, 2)) == [((1, 2), 0), ((2, 1), 0)]


def test_the_guards_of_what_was_before_are_asked_first() -> None:
    evaluator = Evaluator(Instance(attrs.evolve(TABLE, actions=(as_if(fills, was_empty, Table, "c", q="c"),)), {}))
    assert [state for _, _, state in evaluator.successors(((2, 2), 0b01))] == [((2, 1), 0b01)]


@pytest.mark.parametrize("sequel", [adds, waits, names_a_level], ids=lambda a: a.name)
def test_what_cannot_follow_is_refused(sequel: Action) -> None:
    with pytest.raises(ModelError):
        with_sequels(TABLE, fills=sequel)
