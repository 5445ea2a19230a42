"""Kafka as it is released: each mend is needed, all of them are enough, and nothing else is in the way.

Without it the mended design could hold because an action never happens, and another way to lose a record would not
show.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from isr_check.engine import Verdict
from isr_check.native import explore
from isr_lang import Design, Instance, Value
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.old_metadata import NEWS
from isr_protocol.designs.releases import (
    KAFKA_4_4,
    KAFKA_4_4_MENDED,
    MENDS,
    Operations,
    with_mends,
)

pytestmark = pytest.mark.explores

REST: Mapping[str, Value] = {"log": 1, "records": 1, "crashes": 0, "reassignments": 0}
TWO: Mapping[str, Value] = {**REST, "replicas": 2, "min_insync": 1}
WAYS: Mapping[str, tuple[str, Mapping[str, Value]]] = {
    "kafka-resets-positions": (
        "leaders-complete",
        {**REST, "replicas": 3, "sessions_lost": 1, "epochs": 2, "isr_changes": 2, "producers_wait": True},
    ),
    "proposal-kept": ("acked-survives", {**TWO, "sessions_lost": 0, "epochs": 1, "isr_changes": 3, "late_news": 1}),
    "refusal-in-new-version": (
        "acked-survives",
        {
            **TWO,
            "sessions_lost": 2,
            "epochs": 1,
            "isr_changes": 3,
            "producers_wait": True,
            "own_view": True,
            "copies": 1,
        },
    ),
    "minimum-in-new-version": (
        "acked-survives",
        {**TWO, "sessions_lost": 2, "epochs": 1, "isr_changes": 2, "minimum_changes": 1},
    ),
    "elr-of-replicas": (
        "acked-survives",
        {**TWO, "min_insync": 2, "sessions_lost": 1, "epochs": 2, "isr_changes": 3, "reassignments": 2},
    ),
    "elr-kept-below-minimum": (
        "acked-survives",
        {
            **REST,
            "replicas": 3,
            "min_insync": 2,
            "sessions_lost": 0,
            "shutdowns": 1,
            "epochs": 2,
            "isr_changes": 5,
            "disks_replaced": 1,
            "minimum_changes": 1,
        },
    ),
    "mark-of-all-directories": (
        "acked-survives",
        {
            **TWO,
            "min_insync": 2,
            "sessions_lost": 0,
            "shutdowns": 2,
            "epochs": 2,
            "isr_changes": 3,
            "directories_removed": 1,
        },
    ),
    "target-written-whole": (
        "reassignment-can-complete",
        {**TWO, "min_insync": 2, "sessions_lost": 0, "epochs": 1, "isr_changes": 3, "reassignments": 2},
    ),
    "completion-at-minimum": (
        "completion-keeps-minimum",
        {
            **REST,
            "replicas": 3,
            "min_insync": 2,
            "sessions_lost": 1,
            "epochs": 1,
            "isr_changes": 3,
            "reassignments": 1,
            "least_replicas": 2,
        },
    ),
}
"""What each mend is against: a promise, and bounds at which `kafka-4.4` breaks it in this way and in no other."""
UNNEEDED: Mapping[str, tuple[str, ...]] = {
    "elr-kept-below-minimum": ("leader_proposes_expansion", "controller_moves_leadership"),
    "completion-at-minimum": (
        "leader_proposes_shrink",
        "controller_moves_leadership",
        "controller_cancels_reassignment",
        "leader_rolls_back",
    ),
}
"""Actions without which a way is as long, where all of them make too many states."""
LONG = ("elr-kept-below-minimum",)
OF_RECORDS = ("acked-survives", "committed-on-new-leader", "leaders-complete", "committed-only-grows", "no-divergence")


def broken(design: Design, constants: Mapping[str, Value], *names: str) -> set[str]:
    found = explore(Instance(design, constants), names, symmetry=True, reduction=True)
    assert all(f.verdict in (Verdict.HOLDS, Verdict.VIOLATED) for f in found.findings), "it ends within its bounds"
    return {f.name for f in found.findings if f.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize("mend", [pytest.param(m, marks=[pytest.mark.slow] * (m in LONG)) for m in WAYS])
def test_without_one_mend_a_record_is_lost_and_with_all_of_them_none_is(mend: str) -> None:
    promise, constants = WAYS[mend]
    others = with_mends("without-one", "kafka-4.4 with every mend but one", *(m for m in MENDS if m != mend))
    unneeded = UNNEEDED.get(mend, ())
    assert broken(KAFKA_4_4.without(*unneeded), constants, promise) == {promise}
    assert broken(others.without(*unneeded), constants, promise) == {promise}
    assert broken(KAFKA_4_4_MENDED.without(*unneeded), constants, *OF_RECORDS, promise) == set()


def test_every_mend_has_a_way() -> None:
    assert set(WAYS) == set(MENDS)


def test_a_cancelled_reassignment_leaves_who_was_added_in_the_elr_too() -> None:
    """The same fault of the ELR: the record that cancels is built as the one that completes is."""
    cancels = KAFKA_4_4.without("controller_reassigns_at_once", "controller_accepts_and_completes")
    bounds: Mapping[str, Value] = {**TWO, "min_insync": 2, "sessions_lost": 0, "epochs": 1, "isr_changes": 3}
    constants = {**bounds, "replicas": 3, "spares": 2, "reassignments": 2}
    assert broken(cancels, constants, "members-are-replicas") == {"members-are-replicas"}
    assert broken(cancels.without("controller_cancels_reassignment"), constants, "members-are-replicas") == set()


def test_earlier_releases_differ_in_what_completes_a_reassignment_and_in_the_elr() -> None:
    (kept, constants), unneeded = WAYS["completion-at-minimum"], UNNEEDED["completion-at-minimum"]
    asked = ("reassignment-is-not-held-up", kept)
    for name in ("kafka-4.0", "kafka-4.2"):
        assert broken(DESIGNS[name].without(*unneeded), constants, *asked) == {"reassignment-is-not-held-up"}
    assert broken(KAFKA_4_4.without(*unneeded), constants, *asked) == {kept}
    assert broken(KAFKA_4_4_MENDED.without(*unneeded), constants, *asked) == set()
    _, removed = WAYS["elr-of-replicas"]
    assert broken(DESIGNS["kafka-4.2"], removed, "acked-survives") == {"acked-survives"}
    for name in ("kafka-4.0", "kafka-4.4-no-elr"):
        assert broken(DESIGNS[name], removed, "acked-survives") == set()


def test_without_elr_a_reassignment_completes_as_in_the_same_release_with_it() -> None:
    (kept, constants), unneeded = WAYS["completion-at-minimum"], UNNEEDED["completion-at-minimum"]
    without_elr = DESIGNS["kafka-4.4-no-elr"].without(*unneeded)
    assert broken(without_elr, constants, "reassignment-is-not-held-up", kept) == {kept}


def test_a_directory_that_is_told_of_empties_the_elr_before_4_3() -> None:
    """Two orderly stops and an empty disk with an id of its own; with the id of the disk before nobody tells."""
    stops = {**TWO, "min_insync": 2, "sessions_lost": 0, "shutdowns": 2, "epochs": 2, "isr_changes": 5}
    constants = {**stops, "disks_replaced": 1}
    asked = ("acked-survives", "stays-eligible")
    assert broken(DESIGNS["kafka-4.2"], constants, *asked) == set(asked)
    assert broken(DESIGNS["kafka-4.2"], {**constants, "new_directories": False}, *asked) == set()
    assert broken(KAFKA_4_4, constants, *asked) == set()


def test_with_no_budget_nobody_has_done_anything() -> None:
    """At rest the wider state has nothing to choose: its states are those of the same design without the variables."""
    idle = {"reassignments": 0, "sessions_lost": 1, "log": 1, "records": 1}
    names = {a.name for a in Instance(KAFKA_4_4, idle).actions}
    assert not names & {
        "controller_starts_reassignment",
        "controller_sets_minimum",
        "disk_is_replaced",
        "leader_hears_known_version",
        "leader_loads_snapshot",
        "image_is_delayed",
        *NEWS.values(),
        "controller_refuses_later_copy",
        "directory_is_removed",
        "controller_switches_unclean_election",
        "controller_elects_unclean_since_switched",
    }
    assert issubclass(KAFKA_4_4.state, Operations)
    assert not any(v.name.startswith(("image_", "snapshots_")) for v in Instance(KAFKA_4_4, idle).variables)
