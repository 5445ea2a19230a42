"""A design's step seen through a map: what is a step of the abstract design, and what is none.

Without it a refinement could hold because it asks for nothing.
"""

from __future__ import annotations

import attrs
import pytest

from isr_check.engine import Verdict
from isr_check.explorer import explore
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
)
from isr_lang.blank import blank
from isr_lang.refine import implements

HANDS = bound("hands", "hands", default=2, low=1, high=3)
MOST = bound("most", "the last count", default=3, low=1, high=5)
HEIGHT = bound("height", "the highest level", default=3, low=1, high=5)


class Hand(Sort, size=HANDS, prefix="h"):
    """Who counts."""


class Tally(Number, high=MOST):
    """A count."""


class Level(Number, high=HEIGHT):
    """A level, in another range of numbers."""


class Counts(Struct):
    count: Map[Hand, Tally] = var("how far each hand has counted")


@initial
def from_nothing(new: Counts) -> Step:
    return (new.count == blank(new.count),)


@define
def may_count(s: Counts, h: Hand) -> Bool:
    """The hand has not counted to the end."""
    return s.count[h] < MOST


@action
def counts(old: Counts, new: Counts, h: Hand) -> Step:
    """A hand counts one more."""
    return (may_count(old, h), new.count[h] == old.count[h] + 1)


ABSTRACT = Design("counts", "Hands that count.", Counts, from_nothing, (counts,), ())


class Levels(Struct):
    level: Map[Hand, Level] = var("the level of each hand")
    seen: Set[Hand] = var("hands that were looked at")


@initial
def at_the_ground(new: Levels) -> Step:
    return (new.level == blank(new.level), new.seen == blank(new.seen))


@action
def rises(old: Levels, new: Levels, h: Hand) -> Step:
    return (old.level[h] < HEIGHT, new.level[h] == old.level[h] + 1)


@action
def is_looked_at(old: Levels, new: Levels, h: Hand) -> Step:
    """What the map does not show may change."""
    return (new.seen == old.seen.including(h),)


@action
def leaps(old: Levels, new: Levels, h: Hand) -> Step:
    return (old.level[h] + 1 < HEIGHT, new.level[h] == old.level[h] + 2)


@action
def falls(old: Levels, new: Levels, h: Hand) -> Step:
    return (old.level[h] > 0, new.level[h] == old.level[h] - 1)


IMPLEMENTS = implements(
    "implements-counts", "Every step counts.", ABSTRACT, Levels, {"count": lambda s: s.level}, {Tally: Level}
)
LEVELS = Design("levels", "Hands that rise.", Levels, at_the_ground, (rises, is_looked_at), (IMPLEMENTS,))


def verdict_on(design: Design) -> Verdict:
    return explore(Instance(design), (IMPLEMENTS.name,)).finding(IMPLEMENTS.name).verdict


def test_each_step_is_one_of_the_abstract_design_or_none() -> None:
    assert verdict_on(LEVELS) is Verdict.HOLDS


@pytest.mark.parametrize("mistake", [leaps, falls], ids=lambda mistake: mistake.name)
def test_a_step_that_is_none_of_them_is_noticed(mistake: Action) -> None:
    assert verdict_on(LEVELS.adding(mistake)) is Verdict.VIOLATED


def test_the_bounds_are_those_of_the_concrete_range() -> None:
    """The abstract count ends at three by its own bound, and the concrete level at five."""
    assert (
        explore(Instance(LEVELS, {"height": 5}), (IMPLEMENTS.name,)).finding(IMPLEMENTS.name).verdict is Verdict.HOLDS
    )


def test_of_an_environment_any_change_will_do() -> None:
    free = implements("free", "", ABSTRACT, Levels, {"count": lambda s: s.level}, {Tally: Level}, variables=["nothing"])
    design = attrs.evolve(LEVELS.adding(leaps), properties=(free,))
    assert explore(Instance(design), (free.name,)).finding(free.name).verdict is Verdict.HOLDS


def test_a_map_that_leaves_a_variable_out_is_refused() -> None:
    with pytest.raises(ModelError, match="the abstract state has count"):
        implements("partial", "", ABSTRACT, Levels, {})


def test_an_action_that_chooses_a_set_is_refused() -> None:
    @action
    def some_count(old: Counts, new: Counts, hands: Set[Hand]) -> Step:
        return (new.count == Map.build(Hand, lambda h: old.count[h]), ~hands.is_empty())

    with pytest.raises(ModelError, match="'hands' of some_count is a set"):
        implements("sets", "", ABSTRACT.adding(some_count), Levels, {"count": lambda s: s.level}, {Tally: Level})
