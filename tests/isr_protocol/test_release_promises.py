"""Each promise that the designs of releases have beyond `kip-966` is broken by a mistake that is planted, and only so.

Without these a promise could hold because it says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from isr_check.engine import Verdict
from isr_check.native import explore
from isr_drill.changes import may_always_advance
from isr_lang import Design, Instance, Value
from isr_model import KIP_966
from isr_protocol.designs.earlier_releases import KAFKA_4_0
from isr_protocol.designs.history import never_struck, no_elr
from isr_protocol.designs.reassignment import completes as completes_with_all
from isr_protocol.designs.reassignment import completes_with_added
from isr_protocol.designs.releases import KAFKA_4_4, KAFKA_4_4_MENDED, added_by, completes, elr_of, removed_by
from isr_protocol.elections import awaited, electable

pytestmark = pytest.mark.explores

REST: Mapping[str, Value] = {"log": 1, "records": 1, "crashes": 0, "reassignments": 0, "sessions_lost": 0}
TWO: Mapping[str, Value] = {**REST, "replicas": 2, "min_insync": 2, "epochs": 1, "isr_changes": 3}


def planted(**parts: object) -> Design:
    return KAFKA_4_4_MENDED.replacing("planted", "the mended design with a mistake", because="to see it", **parts)  # type: ignore[arg-type]


BREACHES: Mapping[str, tuple[Design, Mapping[str, Value]]] = {
    "members-are-replicas": (planted(elr_within=elr_of), {**TWO, "reassignments": 1}),
    "leader-is-replica": (
        planted(elr_within=elr_of, electable_replica=electable, awaited_replica=awaited),
        {**TWO, "reassignments": 1, "sessions_lost": 1, "epochs": 2},
    ),
    "reassignment-can-complete": (
        planted(added_by_target=added_by, removed_by_target=removed_by),
        {**TWO, "reassignments": 2},
    ),
    "completion-keeps-minimum": (
        planted(completes_at_minimum=completes),
        {**TWO, "replicas": 3, "reassignments": 1, "sessions_lost": 1, "least_replicas": 2},
    ),
    "reassignment-is-not-held-up": (
        planted(completes_with_added_or_all=completes_with_all),
        {**TWO, "replicas": 3, "reassignments": 1, "sessions_lost": 1},
    ),
    "empty-is-no-member": (
        planted(struck=never_struck),
        {**TWO, "shutdowns": 1, "sessions_lost": 1, "disks_replaced": 1, "epochs": 2},
    ),
    "committed-is-acknowledged": (planted(may_advance_of_own=may_always_advance), {**TWO, "sessions_lost": 1}),
    "stays-eligible": (planted(elr_beside_of_minimum=no_elr), {**TWO, "sessions_lost": 1}),
}
"""A promise -> a design that breaks it, and bounds. The mended design keeps it there."""


def broken(design: Design, constants: Mapping[str, Value], name: str) -> bool:
    [found] = explore(Instance(design, constants), (name,), symmetry=True, reduction=True).findings
    assert found.verdict in (Verdict.HOLDS, Verdict.VIOLATED)
    return found.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("name", BREACHES)
def test_a_planted_mistake_breaks_the_promise(name: str) -> None:
    design, constants = BREACHES[name]
    assert broken(design, constants, name)


@pytest.mark.parametrize("name", BREACHES)
def test_without_the_mistake_it_holds(name: str) -> None:
    _, constants = BREACHES[name]
    assert not broken(KAFKA_4_4_MENDED, constants, name)


def test_every_promise_of_releases_has_its_mistake() -> None:
    usual = {p.name for p in KIP_966.properties}
    assert {p.name for p in KAFKA_4_4.properties if p.name not in usual} == set(BREACHES)


def test_with_those_added_in_sync_alone_a_reassignment_took_the_isr_under_the_minimum() -> None:
    """KAFKA-15665, with no session lost: the rule of 3.3.0 to 3.7.1, in the newest release."""
    before = KAFKA_4_4.replacing(
        "before", "Kafka 4.4 with it", because="", completes_with_added_or_all=completes_with_added
    )
    bounds = {**TWO, "replicas": 3, "reassignments": 1, "isr_changes": 2, "spares": 1}
    assert broken(before, bounds, "completion-keeps-minimum")
    assert not broken(KAFKA_4_4, bounds, "completion-keeps-minimum")


@pytest.mark.slow
def test_kafka_itself_takes_eligibility_away_with_a_new_minimum_and_trusts_an_empty_disk_without_an_elr() -> None:
    bounds = {**TWO, "sessions_lost": 1, "minimum_changes": 1}
    assert broken(KAFKA_4_4, bounds, "stays-eligible")
    assert not broken(KAFKA_4_4_MENDED, bounds, "stays-eligible")
    _, emptied = BREACHES["empty-is-no-member"]
    assert broken(KAFKA_4_0, {**emptied, "isr_changes": 4}, "empty-is-no-member")
    assert not broken(KAFKA_4_4, {**emptied, "isr_changes": 4}, "empty-is-no-member")
