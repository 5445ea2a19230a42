"""A read out of range gives a plausible value; `reading_in_range` finds it, in every engine, and nothing else.

Without it a mistake of the model, or of a promise, could hide behind the least value of a type.
"""

from __future__ import annotations

import attrs
import pytest

from isr_check import explorer, native
from isr_check.engine import Engine, Limits, Progress, Verdict
from isr_lang import (
    Action,
    Bool,
    Design,
    Instance,
    Map,
    Number,
    Seq,
    Step,
    Struct,
    action,
    always,
    define,
    exists,
    initial,
    step,
    var,
    when,
)
from isr_lang.ranges import FLAG, PROMISE, STEP_PROMISE, SUFFIX, reading_in_range


class Place(Number, high=3):
    """A position."""


class Item(Number, high=1):
    """What is at it."""


class Shelf(Struct):
    items: Seq[Place, Item] = var("what stands on the shelf")
    seen: Place = var("how far somebody looked")
    marks: Map[Place, Item] = var("a mark for each place")


@initial
def empty(new: Shelf) -> Step:
    """Nothing stands there."""
    return (new.items == Seq.empty(Place, Item), new.seen == 0, new.marks == Map.build(Place, lambda p: Item.of(0)))


@action
def puts(old: Shelf, new: Shelf) -> Step:
    """Somebody puts a thing there."""
    return (old.items.length() < 2, new.items == old.items.append(Item.of(1)))


@action
def looks(old: Shelf, new: Shelf) -> Step:
    """Somebody looks at the next place, whether anything stands there or not."""
    return (old.seen < 3, old.items[old.seen] == 0, new.seen == old.seen + 1)


@action
def looks_if_there(old: Shelf, new: Shelf) -> Step:
    """The guard before asks whether anything stands there."""
    return (old.seen < old.items.length(), old.items[old.seen] == 1, new.seen == old.seen + 1)


@action
def takes_too_many(old: Shelf, new: Shelf) -> Step:
    """All but three things are taken away, of which there are fewer."""
    return (old.items.length() > 0, new.items == old.items.take(3))


@action
def marks_beyond(old: Shelf, new: Shelf) -> Step:
    """The place after the last one gets a mark."""
    return (new.marks[old.seen + 1] == 1,)


@action
def steps(old: Shelf, new: Shelf) -> Step:
    """The next place is looked at."""
    return (old.seen < 3, new.seen == old.seen + 1)


@define
def stands(s: Shelf, p: Place) -> Bool:
    """A thing stands at the place."""
    return s.items[p] == 1


@action
def calls(old: Shelf, new: Shelf, p: Place) -> Step:
    """A definition reads at any place."""
    return (stands(old, p), new.seen == p)


@action
def calls_where_there(old: Shelf, new: Shelf, p: Place) -> Step:
    """The same, at a place where something stands."""
    return ((p < old.items.length()) & stands(old, p), new.seen == p)


@action
def chooses(old: Shelf, new: Shelf, p: Place) -> Step:
    """Each branch, and each side, reads only where the other does not decide."""
    there = p < old.items.length()
    return (
        when(there, old.items[p] == 1, Bool.false) & (~there | (old.items[p] == 1)),
        there.implies(old.items[p] == 1),
        exists(old.items[q] == 1 for q in Place.below(old.items.length())),
        new.seen == p,
    )


@always
def first_is_one(s: Shelf) -> Bool:
    """A promise that reads an empty shelf."""
    return s.items[0] <= 1


@step
def last_stays(old: Shelf, new: Shelf) -> Bool:
    """A promise about a step that reads an empty shelf after it."""
    return new.items[0] <= 1


SHELF = Design("shelf", "A shelf.", Shelf, empty, (puts,), ())
ENGINES = {"reference": explorer.explore, "native": native.explore}


def verdicts(design: Design, engine: Engine) -> dict[str, str]:
    found = engine(Instance(reading_in_range(design)), (), *EXPLORED)
    return {f.name: f.verdict.name for f in found.findings if f.name in (PROMISE, STEP_PROMISE)}


def silent(_: Progress) -> None:
    """Nobody looks on."""


EXPLORED = (Limits(), silent)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("reads", [looks, takes_too_many, calls], ids=lambda a: a.name)
def test_an_action_that_reads_out_of_range_is_found(reads: Action, engine: Engine) -> None:
    design = SHELF.adding(reads)
    assert verdicts(design, engine)[PROMISE] == "VIOLATED"
    found = engine(Instance(reading_in_range(design)), (PROMISE,), *EXPLORED)
    path = found.finding(PROMISE).path
    assert path is not None
    assert path.steps[-1][0].endswith(SUFFIX)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_key_beyond_a_map_is_found(engine: Engine) -> None:
    assert verdicts(SHELF.adding(steps), engine)[PROMISE] == "HOLDS"
    assert verdicts(SHELF.adding(steps, marks_beyond), engine)[PROMISE] == "VIOLATED"


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("reads", [looks_if_there, calls_where_there, chooses], ids=lambda a: a.name)
def test_what_is_read_only_where_it_is_there_is_not(reads: Action, engine: Engine) -> None:
    assert verdicts(SHELF.adding(reads), engine)[PROMISE] == "HOLDS"


def test_a_promise_that_reads_out_of_range_is_found() -> None:
    assert verdicts(SHELF.promising(first_is_one), native.explore)[PROMISE] == "VIOLATED"
    said = verdicts(SHELF.adding(steps).promising(last_stays), native.explore)
    assert said == {PROMISE: "HOLDS", STEP_PROMISE: "VIOLATED"}


def test_the_behaviours_of_a_design_that_reads_in_range_stay_as_they_are() -> None:
    design = SHELF.adding(looks_if_there, chooses)
    plain = native.explore(Instance(design), (), *EXPLORED)
    found = native.explore(Instance(reading_in_range(design)), (), *EXPLORED)
    assert (found.distinct, found.generated) == (plain.distinct, plain.generated)
    assert [v.name for v in reading_in_range(design).variables] == ["items", "seen", "marks", FLAG]
    assert attrs.asdict(plain, recurse=False)["complete"]


def test_promises_are_asked_for_where_they_are_promised() -> None:
    never = attrs.evolve(first_is_one, when=Bool.false.node)
    assert verdicts(SHELF.promising(never), native.explore)[PROMISE] == Verdict.HOLDS.name
