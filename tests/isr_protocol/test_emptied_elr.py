"""An ELR that is emptied when min.insync.replicas is raised, and an empty disk: what it takes a seventh mend for.

Without it `kafka-4.4-mended` would be called safe by budgets at which this has no room.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.emptied_elr import BOUNDS, ELECTION, PLACED, TO_THE_ELECTION, Named

from isr_check.reference import Evaluator
from isr_lang import Design, Instance
from isr_protocol.designs.cleared_elr import ELR_KEPT_BELOW_MINIMUM, controller_sets_minimum_and_clears
from isr_protocol.designs.new_directory import (
    KAFKA_4_4_MENDED_NEW_DIRECTORY,
    KAFKA_4_4_NEW_DIRECTORY,
    with_new_directories,
)
from isr_protocol.designs.releases import KAFKA_4_4, KAFKA_4_4_MENDED, MENDS, counts_minimum, with_mends

WHOLE = (*TO_THE_ELECTION, *ELECTION)
LONGER = (*TO_THE_ELECTION, *PLACED, *ELECTION)
OTHERS = with_mends(
    "others", "kafka-4.4 with every other mend", *(m for m in MENDS if m != ELR_KEPT_BELOW_MINIMUM.name)
)
OTHERS_NEW_DIRECTORY = with_new_directories(OTHERS, "others-new-directory", "the same with directory ids")


def followed(design: Design, steps: Sequence[Named], isr_changes: int = 5) -> tuple[str, set[str]]:
    """The step that the design refuses, or nothing; and the promises about states that are broken in the end."""
    instance = Instance(design, {**BOUNDS, "isr_changes": isr_changes})
    evaluator = Evaluator(instance)
    state = evaluator.initial_states()[0][1]
    for name, parameters in steps:
        for number, values, after in evaluator.successors(state):
            action = instance.actions[number]
            if action.name == name and values == tuple(parameters.values()):
                state = after
                break
        else:
            return name, set()
    promises = [p for p in instance.properties if p.kind == "always"]
    return "", {p.name for p in promises if not evaluator.holds(p, state)}


@pytest.mark.parametrize(
    ("design", "steps", "isr_changes"),
    [
        (KAFKA_4_4, WHOLE, 5),
        (OTHERS, WHOLE, 5),
        (KAFKA_4_4_NEW_DIRECTORY, LONGER, 6),
        (OTHERS_NEW_DIRECTORY, LONGER, 6),
    ],
    ids=lambda value: value.name if isinstance(value, Design) else "",
)
def test_a_record_on_two_logs_is_lost_with_the_third(design: Design, steps: Sequence[Named], isr_changes: int) -> None:
    refused, broken = followed(design, steps, isr_changes)
    assert not refused
    assert broken >= {"acked-survives", "committed-on-new-leader", "leaders-complete"}


def test_the_same_number_again_is_enough_where_it_may_be_set() -> None:
    """`minimum-in-new-version` refuses it. Kafka does not, and neither does it with that fix in its byte code."""
    again = tuple((name, {"value": 2} if "value" in parameters else parameters) for name, parameters in WHOLE)
    assert followed(OTHERS, again)[0] == "controller_sets_minimum"
    taken = OTHERS.replacing(
        "again", "the same number is taken", because="", controller_sets_minimum=controller_sets_minimum_and_clears
    ).extending(controller_sets_minimum=counts_minimum)
    for design in (KAFKA_4_4, taken):
        refused, broken = followed(design, again)
        assert not refused
        assert "acked-survives" in broken


def test_another_directory_id_alone_puts_the_election_off() -> None:
    assert followed(KAFKA_4_4_NEW_DIRECTORY, WHOLE, 6)[0] == "controller_elects_last_known_leader"


def test_an_elr_that_is_kept_below_the_minimum_has_somebody_to_elect() -> None:
    assert followed(KAFKA_4_4_MENDED, WHOLE)[0] == "controller_fences_last_leader"
    assert followed(KAFKA_4_4_MENDED_NEW_DIRECTORY, LONGER, 6)[0] == "controller_fences_last_leader"
