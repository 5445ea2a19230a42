"""Two instances are equivalent if no action and no property can tell them apart.

Without it `insync mutate --drop assignments` could call a mutant harmless that loses records.
"""

from __future__ import annotations

import attrs
import pytest
from tests.support.models.ticket_desk import CAREFUL, RUSH, TICKETS, Desk

from isr_check.engine import Limits
from isr_check.equivalence import Original, equivalent, simulates
from isr_check.mutation import Mutant, Part, mutants, without_part
from isr_check.native.states import states, values
from isr_lang import Bool, Design, Instance, Step, action, always, step
from isr_model import KIP_966

PLENTY = 10_000
SMALL = {"replicas": 2, "crashes": 0, "epochs": 0, "isr_changes": 1}


def alike(one: Design, other: Design, most: int = PLENTY) -> bool:
    return equivalent(Original(Instance(one, {})), Instance(other, {}), most)


def dropped(action: str, target: str) -> Mutant:
    found = mutants(KIP_966, (Part.ASSIGNMENT,))
    return next(m for m in found if (m.action, m.listed_as) == (action, target))


def same_without(action: str, target: str) -> bool:
    mutated = without_part(KIP_966, dropped(action, target))
    return equivalent(Original(Instance(KIP_966, SMALL)), Instance(mutated, SMALL), PLENTY)


def test_a_design_is_equivalent_to_itself() -> None:
    assert alike(CAREFUL, CAREFUL)


def test_a_value_that_is_blanked_where_nothing_reads_it_may_stay() -> None:
    assert same_without("leader_answers_fetch", "new.fetch_offset[follower]")


def test_a_value_that_is_read_may_not() -> None:
    assert not same_without("leader_answers_fetch", "new.follower_end[leader]")
    assert not same_without("leader_answers_fetch", "new.acked")


@action
def tears_without_count(old: Desk, new: Desk) -> Step:
    """A ticket is torn, and nobody counts it."""
    return (old.jams == 0, old.served < old.drawn, new.drawn == old.drawn - 1)


def test_a_guard_that_reads_the_difference_tells_them_apart() -> None:
    once = CAREFUL.replacing("once", "", because="one jam.", jams=attrs.evolve(tears_without_count, name="jams"))
    assert not alike(CAREFUL, once)


@always
def no_jam(s: Desk) -> Bool:
    """Nothing was torn."""
    return s.jams == 0


@step
def jams_stay(old: Desk, new: Desk) -> Bool:
    """Nothing is torn now."""
    return old.jams == new.jams


@action
def closes_and_counts(old: Desk, new: Desk) -> Step:
    """The desk closes, and a jam is noted that nobody had."""
    return (old.open, old.served == old.drawn, ~new.open, new.jams == 1)


def test_a_property_tells_apart_what_no_action_can() -> None:
    """Both desks can take the same steps; one counts what was torn."""
    counting = CAREFUL.replacing("counting", "", because="it counts.", closes=closes_and_counts)
    assert alike(CAREFUL.without("jams"), counting.without("jams"))
    for told in (no_jam, jams_stay):
        assert not alike(CAREFUL.without("jams").promising(told), counting.without("jams").promising(told))


def test_what_takes_too_long_to_find_out_is_not_equivalent() -> None:
    assert not alike(CAREFUL, CAREFUL, most=3)


@action
def hurries_with_everybody(old: Desk, new: Desk) -> Step:
    """The desk serves all at once, but only when every ticket is drawn."""
    return (old.served + RUSH < old.drawn, old.drawn == TICKETS, new.served == old.drawn)


def test_a_design_simulates_what_leaves_steps_out_and_not_the_other_way_round() -> None:
    fewer = attrs.evolve(hurries_with_everybody, name="hurries")
    slow = CAREFUL.replacing("slow", "", because="it waits.", hurries=fewer)
    tickets = {"tickets": 4, "rush": 1}
    assert simulates(Original(Instance(CAREFUL, tickets)), Instance(slow, tickets), PLENTY)
    assert not simulates(Original(Instance(slow, tickets)), Instance(CAREFUL, tickets), PLENTY)


def test_a_step_to_what_a_property_tells_apart_is_not_simulated() -> None:
    counting = CAREFUL.replacing("counting", "", because="it counts.", closes=closes_and_counts)
    assert not simulates(
        Original(Instance(CAREFUL.promising(no_jam), {})), Instance(counting.promising(no_jam), {}), PLENTY
    )


@pytest.mark.explores
def test_an_original_says_the_same_however_many_it_was_compared_with() -> None:
    """What is kept of one comparison must not answer for another mutant, whose action is not the original's."""
    original = Original(Instance(KIP_966, SMALL))
    every = mutants(KIP_966, (Part.ASSIGNMENT,))
    some = [m for m in every if m.action in ("leader_answers_fetch", "follower_appends", "leader_moves_watermark")]
    assert some
    once = [equivalent(original, Instance(without_part(KIP_966, m), SMALL), PLENTY) for m in some]
    again = [equivalent(original, Instance(without_part(KIP_966, m), SMALL), PLENTY) for m in reversed(some)]
    fresh = [same_without(m.action, m.listed_as) for m in some]
    assert once == again[::-1] == fresh
    assert {*fresh} == {True, False}


def test_an_action_that_both_have_is_another_one_where_its_constants_are() -> None:
    """The same design with fewer tickets: both have every action, and those that compare with the bound differ."""
    more, fewer = (Instance(CAREFUL, {"tickets": most}) for most in (4, 3))
    assert not equivalent(Original(more), fewer, PLENTY)
    assert not simulates(Original(fewer), more, PLENTY)
    assert simulates(Original(more), fewer, PLENTY)


def test_values_are_those_of_all_states() -> None:
    small, names = Instance(KIP_966, SMALL), {"log", "isr", "committed", "partition_epoch"}
    every, places = states(small, Limits(), PLENTY), [i for i, v in enumerate(small.variables) if v.name in names]
    found = values(small, names, Limits())
    assert found == (known := {tuple(state[i] for i in places) for state in every})
    assert 1 < len(known) < len(every)
    assert values(small, names, Limits(max_states=len(every) // 2)) is None, "which are not all"
