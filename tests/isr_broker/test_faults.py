"""Four ordinary clients write through kills, pauses and orderly stops of three real processes: nothing is lost.

Without these, a loss that takes real sockets, processes and clients' own retries would go unnoticed: the simulator has
none of them.

`make test` has a quick run of each client. `INSYNC_FAULT_WRITES=5000 make test ARGS="-k endures"` has the long ones,
as has `python bench/faults.py`, which prints the figures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.faults import ALL, endure, judged
from tests.support.sample import sample
from tests.support.writers import WRITERS

pytestmark = [pytest.mark.processes, pytest.mark.sockets]

WRITES = int(os.environ.get("INSYNC_FAULT_WRITES", "0"))
QUICK_WRITES, QUICK_KINDS = 300, ("kill the leader", "kill the controller")
PER_SECOND = 70


@pytest.mark.parametrize("client", sample(WRITERS, 4))
def test_no_acknowledged_write_is_lost_doubled_or_moved_while_it_endures_faults(
    tmp_path: Path, client: str, needs_package: Callable[[str], None]
) -> None:
    if client == "kcat":
        needs_package("kcat")
    kinds = ALL if WRITES else QUICK_KINDS
    verdict = endure(tmp_path, client, WRITES or QUICK_WRITES, PER_SECOND, kinds)
    assert verdict.good, str(verdict)
    assert verdict.acked == verdict.attempted, str(verdict)
    assert set(verdict.faults) == set(kinds), "or nothing was endured"
    assert verdict.epochs >= 2, str(verdict)
    assert verdict.isrs >= 4, str(verdict)


# Whoever judges must see what there is to see


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ("1 2 3", ("", "", "")),
        ("1 x 2 3", ("", "", "")),
        ("1 3", ("2", "", "")),
        ("1 2 2 3", ("", "2", "")),
        ("1 2 3 1", ("", "1", "")),
        ("1 3 2", ("", "", "2")),
        ("", ("1 2 3", "", "")),
    ],
)
def test_what_is_lost_doubled_or_late_is_seen(found: str, verdict: tuple[str, str, str]) -> None:
    values = [value.encode() for value in found.replace("x", "15").split()]
    assert judged([b"1", b"2", b"3"], values) == tuple(tuple(v.encode() for v in part.split()) for part in verdict)
