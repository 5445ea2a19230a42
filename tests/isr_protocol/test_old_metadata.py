"""Metadata as they come, in the designs of releases: old images and snapshots, and what would be noticed of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from isr_check.engine import Exploration, Verdict
from isr_check.native import explore
from isr_lang import Bool, Design, Instance, Value, define, text
from isr_protocol.designs.old_metadata import NEWS, WithImage
from isr_protocol.designs.releases import KAFKA_4_4, KAFKA_4_4_MENDED, MENDS, with_mends
from isr_protocol.state import Replica

pytestmark = pytest.mark.explores

TWO: Mapping[str, Value] = {
    "replicas": 2,
    "min_insync": 1,
    "log": 1,
    "records": 1,
    "crashes": 0,
    "reassignments": 0,
    "sessions_lost": 0,
}
ELECTIONS: Mapping[str, Value] = {**TWO, "sessions_lost": 1, "epochs": 2, "isr_changes": 3}
OF_RECORDS = ("acked-survives", "committed-on-new-leader", "leaders-complete", "strong-isr", "epochs-only-grow")
WORK: Mapping[str, tuple[Mapping[str, Value], set[str]]] = {
    "an answer first": (
        {**TWO, "epochs": 1, "isr_changes": 3, "late_news": 1},
        {"leader_learns_isr", "leader_hears_known_version"},
    ),
    "elections": (ELECTIONS, {"becomes_leader", "becomes_follower"}),
    "a new minimum": (
        {**TWO, "sessions_lost": 1, "epochs": 1, "isr_changes": 3, "minimum_changes": 1},
        {"leader_learns_isr", "broker_learns_minimum"},
    ),
    "reassignment": (
        {**TWO, "min_insync": 2, "sessions_lost": 1, "epochs": 2, "isr_changes": 4, "reassignments": 1},
        {"becomes_leader", "replica_is_deleted"},
    ),
}
"""What people and networks do, and what brokers then do by metadata that are old."""


def explored(design: Design, constants: Mapping[str, Value]) -> Exploration:
    found = explore(Instance(design, constants), OF_RECORDS, symmetry=True, reduction=True)
    assert found.complete or broken(found), "it ends within its bounds"
    return found


def broken(found: Exploration) -> set[str]:
    return {f.name for f in found.findings if f.verdict is Verdict.VIOLATED}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
def test_with_all_mends_a_broker_that_goes_by_old_metadata_loses_no_record(work: str) -> None:
    constants, news = WORK[work]
    found = explored(KAFKA_4_4_MENDED, {**constants, "old_metadata": 1})
    assert broken(found) == set()
    assert all(found.steps_by_action[NEWS[action]] > 0 for action in news), "or nothing comes late"


def test_every_kind_of_news_may_be_old() -> None:
    assert {action for _, news in WORK.values() for action in news} == set(NEWS)
    for design in (KAFKA_4_4, KAFKA_4_4_MENDED):
        assert {design.action_named(name).summary for name in NEWS.values()}


@define
def is_old_to_anybody(s: WithImage, r: Replica) -> Bool:
    """The image is applied by who has applied a newer one, too."""
    return s.alive.has(r) & ~s.image_readers.is_empty() & (s.image_version < s.controller_partition_epoch)


def test_a_broker_that_goes_back_to_older_metadata_loses_a_record() -> None:
    """Metadata are read in the order of their log: without that a broker would lead again in an epoch that it left."""
    back = KAFKA_4_4_MENDED.replacing(
        "back", "the mended design with a mistake", because="to see it", is_old_to=is_old_to_anybody
    )
    assert {"acked-survives", "epochs-only-grow"} <= broken(explored(back, {**ELECTIONS, "old_metadata": 1}))


def test_a_mend_is_there_in_what_is_done_by_an_old_image_too() -> None:
    """Else the mended design would do by old metadata what the release does."""
    for mend in ("proposal-kept", "minimum-in-new-version", "kafka-resets-positions"):
        mended = with_mends("one", "kafka-4.4 with one mend", mend)
        changed = {NEWS[slot] for slot in MENDS[mend] if slot in NEWS}
        if mend == "minimum-in-new-version":
            changed = {NEWS["leader_learns_isr"]}
        assert changed
        for name in changed:
            own, released = mended.action_named(name), KAFKA_4_4.action_named(name)
            assert [text(u.value) for u in own.updates] != [text(u.value) for u in released.updates]


SNAPSHOT: Mapping[str, Value] = {**TWO, "epochs": 1, "isr_changes": 3, "snapshots_loaded": 1}


def test_a_snapshot_makes_a_leader_forget_its_proposal_with_no_answer_before_its_metadata() -> None:
    """found/forgotten-proposal by another way; what mends that mends this."""
    assert {"acked-survives", "committed-on-new-leader"} <= broken(explored(KAFKA_4_4, SNAPSHOT))
    assert broken(explored(KAFKA_4_4_MENDED, SNAPSHOT)) == set()
    others = with_mends("without-one", "all mends but one", *(m for m in MENDS if m != "proposal-kept"))
    assert "acked-survives" in broken(explored(others, SNAPSHOT))
