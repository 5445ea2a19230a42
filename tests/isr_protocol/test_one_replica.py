"""One replica: every promise holds, and what takes a second replica is not asked."""

from __future__ import annotations

from isr_check.engine import Verdict
from isr_check.native import explore
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS


def test_one_replica_keeps_its_promises_and_no_probe_is_out_of_reach() -> None:
    found = explore(Instance(DESIGNS["kip-966"], {"replicas": 1, "min_insync": 1, "epochs": 2, "isr_changes": 4}))
    assert found.complete
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}
    assert "follower-log-shrinks" not in {f.name for f in found.findings}
