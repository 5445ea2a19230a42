"""An empty disk with a directory id of its own: nobody leads from a directory that the controller does not know.

Without these the design would say what Kafka's classes do, and nobody what comes of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from isr_check.engine import Verdict
from isr_check.native import explore
from isr_lang import Design, Instance, Value
from isr_protocol.designs.new_directory import (
    KAFKA_4_0_NEW_DIRECTORY,
    KAFKA_4_4_MENDED_NEW_DIRECTORY,
    KAFKA_4_4_NEW_DIRECTORY,
)
from isr_protocol.designs.releases import KAFKA_4_4
from isr_protocol.designs.replica_directory import leader_is_placed
from isr_protocol.elections import available

pytestmark = pytest.mark.explores

STOPS: Mapping[str, Value] = {
    "replicas": 2,
    "min_insync": 2,
    "crashes": 0,
    "shutdowns": 1,
    "sessions_lost": 0,
    "epochs": 2,
    "isr_changes": 4,
    "log": 1,
    "records": 1,
    "reassignments": 0,
    "disks_replaced": 1,
}
OF_RECORDS = ("acked-survives", "committed-on-new-leader", "leaders-complete", leader_is_placed.name)


def broken(design: Design, constants: Mapping[str, Value]) -> set[str]:
    done = explore(Instance(design, constants), OF_RECORDS, symmetry=True, reduction=True)
    return {f.name for f in done.findings if f.verdict is Verdict.VIOLATED}


def states(design: Design, constants: Mapping[str, Value]) -> int:
    return explore(Instance(design, constants), ("type-ok",), symmetry=True, reduction=False).distinct


@pytest.mark.parametrize("design", [KAFKA_4_4_NEW_DIRECTORY, KAFKA_4_4_MENDED_NEW_DIRECTORY], ids=lambda d: d.name)
def test_an_empty_disk_loses_nothing_where_there_is_an_elr(design: Design) -> None:
    assert broken(design, STOPS) == set()


def test_without_the_elr_the_record_is_lost_all_the_same() -> None:
    """The election comes once the broker has told of its directory, and that is no better."""
    assert broken(KAFKA_4_0_NEW_DIRECTORY, STOPS) == set(OF_RECORDS) - {leader_is_placed.name}


def test_who_is_available_anywhere_leads_from_an_unknown_directory() -> None:
    """The promise notices where the rule is not Kafka's."""
    anywhere = KAFKA_4_4_NEW_DIRECTORY.replacing(
        "anywhere", "the directory is not asked for", because="to see it", available_in_directory=available
    )
    assert leader_is_placed.name in broken(anywhere, {**STOPS, "shutdowns": 0, "crashes": 1, "epochs": 1})


def test_with_the_id_of_the_disk_before_it_is_the_release() -> None:
    bounds = {**STOPS, "shutdowns": 0, "crashes": 1, "epochs": 1, "isr_changes": 2}
    assert states(KAFKA_4_4_NEW_DIRECTORY, {**bounds, "new_directories": False}) == states(KAFKA_4_4, bounds)
