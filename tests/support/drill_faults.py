"""Faults to plant in the drill's coarse model."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import attrs
import pytest

from isr_drill import exploration, record_fate
from isr_drill.record_fate import Fate
from isr_lang import Step, action
from isr_protocol.state import Replica


@action
def disk_survives(old: Fate, new: Fate, r: Replica) -> Step:
    """A broker whose disk is destroyed comes back with all that it had."""
    return (
        record_fate.due(old, record_fate.Happening.DESTROY, r),
        new.alive == old.alive.excluding(r),
        new.to_do == old.to_do.excluding(r),
    )


@contextmanager
def disks_that_survive() -> Generator[None]:
    """While it lasts, drills are explored with `disk_survives`."""
    planted = tuple(
        attrs.evolve(disk_survives, name=a.name) if a is record_fate.disk_is_destroyed else a
        for a in record_fate.HAPPENINGS
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_fate, "HAPPENINGS", planted)
        exploration.evaluator.cache_clear()
        try:
            yield
        finally:
            exploration.evaluator.cache_clear()
