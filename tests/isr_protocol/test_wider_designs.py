"""min.insync.replicas that changes, and replicas that come and go: which half of a mend loses what, and how.

Without it a page of found/ could call a mend enough that is not, as one did.
"""

import pytest

from isr_check.native import explore
from isr_lang import Design, Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.raised_minimum import KAFKA_RAISED_MIN_INSYNC, controller_sets_minimum_in_new_version
from isr_protocol.promises.room import observed
from isr_protocol.state import State

pytestmark = pytest.mark.explores

NEW_VERSION_ONLY = KAFKA_RAISED_MIN_INSYNC.replacing(
    "new-version-only",
    "kafka-raised-min-insync where a new min.insync.replicas is a new version of the partition",
    because="the other half of minimum-in-new-version.",
    controller_sets_minimum=controller_sets_minimum_in_new_version,
).with_defaults(isr_changes=3)
PROPOSALS = ("leader_proposes_shrink", "leader_proposes_expansion")
WIDER = [name for name, design in DESIGNS.items() if design.state is not State]


def loss(design: Design, without: tuple[str, ...] = ()) -> list[str] | None:
    """The actions of a shortest way to lose an acknowledged record, at the design's defaults."""
    instance = Instance(design.without(*without), {})
    path = explore(instance, ("acked-survives",)).finding("acked-survives").path
    return None if path is None else [name for name, _ in path.steps]


def test_a_raise_loses_a_record_on_both_ways_on_which_a_leader_learns_of_a_smaller_isr() -> None:
    by_answer = loss(KAFKA_RAISED_MIN_INSYNC)
    assert by_answer is not None
    assert len(by_answer) == 7
    assert "leader_adopts_isr" in by_answer
    by_metadata = loss(KAFKA_RAISED_MIN_INSYNC, PROPOSALS)
    assert by_metadata is not None
    assert len(by_metadata) == 7
    assert "leader_learns_isr" in by_metadata


def test_each_half_of_the_mend_alone_loses_it() -> None:
    first = loss(DESIGNS["configuration-first"])
    assert first is not None
    assert "leader_adopts_isr" in first
    assert loss(DESIGNS["configuration-first"], PROPOSALS) is None
    versions = loss(NEW_VERSION_ONLY)
    assert versions is not None
    assert "leader_learns_isr" in versions


def test_a_removed_replica_is_elected_from_the_elr() -> None:
    assert loss(DESIGNS["kafka-removed-replica"]) == [
        "controller_removes_replica",
        "becomes_leader",
        "leader_appends",
        "controller_adds_replica",
        "controller_fences_leader",
        "becomes_leader",
    ]


@pytest.mark.parametrize("name", WIDER)
def test_a_wider_state_can_be_watched_for_room(name: str) -> None:
    own = {v.name for v in DESIGNS[name].variables}
    assert {v.name for v in observed(DESIGNS[name]).variables} > own


def test_other_designs_have_not_grown() -> None:
    assert set(WIDER) == {
        "kafka-raised-min-insync",
        "configuration-first",
        "minimum-in-new-version",
        "kafka-removed-replica",
        "elr-of-replicas",
        "kafka-forgotten-proposal",
        "proposal-kept",
        "kip-966-calm",
        "kafka-15665",
        "kafka-19975",
        "reassigned-by-added",
        "kafka-16757",
        "kafka-16952",
        "registration-amended",
        "kafka-16540",
        "kafka-cleared-elr",
        "elr-kept-below-minimum",
        "kafka-16234",
        "directory-out-of-reach",
        "kafka-16297",
        "assignment-reverted",
        "recovery-balanced",
        "recovery-asks-all",
        "recovery-aggressive",
        "kafka-4.4",
        "kafka-4.4-mended",
        "kafka-4.2",
        "kafka-4.0",
        "kafka-4.4-no-elr",
    }
