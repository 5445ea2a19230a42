"""A run of `bench/controller_faults.py`: controllers are killed, paused and robbed of a disk, and nothing is lost.

Without it the figures of docs/broker.md would be of a script that nobody has run since.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.controller_faults import endure_controllers

pytestmark = [pytest.mark.processes, pytest.mark.sockets, pytest.mark.slow]


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_when_controllers_fail_in_any_order(tmp_path: Path, seed: int) -> None:
    run = endure_controllers(tmp_path, seed)
    assert run.good, run
    assert len(run.faults) == 5
    assert run.epochs >= 2, "or no leader was ever lost"
