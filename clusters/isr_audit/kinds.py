"""A kind of topic: what topics have in common that answers depend on."""

from __future__ import annotations

import attrs

from isr_audit.cluster import Release
from isr_audit.questions import FAULTS, Fault, Settings, rack_outage


@attrs.frozen
class Kind:
    """What topics have in common that answers depend on.

    `flushed`: each record is on disk before it is acknowledged. `in_rack`: of a partition's replicas, the most that are
    in one of the `racks`; 0 where racks were not told. `open`: the settings that were not told, which have the weakest
    value here and may have any. `doubt` and `also` are those of `isr_audit.releases.Running`.
    `release`, None where it was not told, and `brokers`, 0 where it was not told, bound what can be changed.
    """

    design: str
    settings: Settings
    flushed: bool = False
    in_rack: int = 0
    racks: int = 0
    open: tuple[str, ...] = ()
    doubt: str = ""
    also: tuple[str, ...] = ()
    release: Release | None = None
    brokers: int = 0

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What may fail: a rack only where racks were told."""
        return (*FAULTS, rack_outage(self.in_rack, self.settings.replicas)) if self.in_rack else FAULTS

    @property
    def stops(self) -> str:
        """When writes with acks=all stop: in words, so many replicas that are down or lag."""
        out = self.settings.replicas - self.settings.min_insync + 1
        return f"{out} of {self.settings.replicas} replicas {'is down or lags' if out == 1 else 'are down or lag'}"
