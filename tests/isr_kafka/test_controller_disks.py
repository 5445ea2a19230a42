"""A controller's disk is lost on Apache Kafka's brokers and controllers, as docs/kraft.md says.

Without this the page could be right of a model alone. `bench/controller_disks.py` has all cases, on two releases.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.isr_audit.test_audit_kafka import with_archive
from tests.support.controller_disks import DiskCase, DiskOutcome, DiskTrial, NextDisk, Voters

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets]


def outcome(folder: Path, case: DiskCase) -> DiskOutcome:
    story = DiskTrial.on(with_archive(), folder, case)
    try:
        return story.tells()
    finally:
        story.trial.kafka.kill_all()


def test_a_static_quorum_loses_a_record_with_one_disk(tmp_path: Path) -> None:
    lost = outcome(tmp_path, DiskCase(Voters.STATIC, NextDisk.EMPTY))
    assert (lost.active, lost.verdict) == ("the third", "LOST")


def test_directory_ids_keep_it(tmp_path: Path) -> None:
    held = outcome(tmp_path, DiskCase(Voters.DIRECTORIES, NextDisk.EMPTY))
    assert (held.active, held.verdict) == ("none", "HELD")


def test_a_static_quorum_keeps_it_with_its_disks(tmp_path: Path) -> None:
    held = outcome(tmp_path, DiskCase(Voters.STATIC, NextDisk.KEPT))
    assert (held.active, held.verdict) == ("the second", "HELD")
