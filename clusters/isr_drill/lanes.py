"""What becomes of each broker under a runbook, step by step, by its steps alone: for pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isr_audit.cluster import Cluster
from isr_drill.course import brokers_of
from isr_drill.runbook import (
    CUT,
    DESTROY,
    KILL,
    PAUSE,
    POWER_LOSS,
    RESUME,
    START,
    STOP,
    RunbookStep,
)

RUNS, DOWN, NOT_TOLD = "runs", "down", "not told"
AFTER: Final[Mapping[str, str]] = {
    STOP: "stopped",
    KILL: "killed",
    POWER_LOSS: "no power",
    DESTROY: "disk gone",
    PAUSE: "paused",
    START: "started",
    RESUME: RUNS,
}
"""A happening -> how a broker is after it."""
EMPTY: Final = "empty disk"
CUT_OFF: Final = "cut off"


def lanes(cluster: Cluster, steps: Sequence[RunbookStep]) -> tuple[Mapping[int, str], ...]:
    """By step, from "now" on, how each broker is, in a word or two."""
    brokers = brokers_of(cluster, steps)
    named = {b for step in steps for b in step.brokers}
    told = {r for p in cluster.partitions for r in p.replicas}
    now = {
        b: RUNS if b in brokers.running else NOT_TOLD if cluster.living is None else DOWN
        for b in sorted(brokers.names | named | told)
    }
    whole = [dict(now)]
    for step in steps:
        now = dict(now)
        for stage in step.stages:
            for b in stage.brokers:
                if stage.kind in AFTER:
                    now[b] = after(now[b], stage.kind, is_cut=step.text.split()[0] == CUT)
        whole.append(now)
    return tuple(whole)


def after(before: str, kind: str, *, is_cut: bool) -> str:
    """How a broker is after a happening; who starts after its disk was gone has an empty one."""
    if is_cut:
        return CUT_OFF
    return EMPTY if kind == START and before in (AFTER[DESTROY], EMPTY) else AFTER[kind]
