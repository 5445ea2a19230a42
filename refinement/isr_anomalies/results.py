"""What a check says: findings, how many, the least of them, and why something could not be judged."""

from __future__ import annotations

from bisect import insort
from enum import StrEnum
from typing import Final, NamedTuple

import attrs

EXAMPLES: Final = 8
"""How many witnesses are kept of an anomaly."""


class Verdict(StrEnum):
    """From bad to good. UNKNOWN and VACUOUS are no success."""

    VIOLATED = "VIOLATED"
    """Seen, although the claims exclude it."""
    UNKNOWN = "UNKNOWN"
    """The history does not say enough to exclude it."""
    VACUOUS = "VACUOUS"
    """The history has nothing that the anomaly speaks of."""
    PERMITTED = "PERMITTED"
    """Seen, and the claims allow it."""
    MEASURED = "MEASURED"
    """A figure without a limit."""
    HOLDS = "HOLDS"
    """Judged, and never seen."""


class Finding(NamedTuple):
    """One instance: the lines to quote and what they show. `size` is how far off (offsets, values or ns)."""

    permitted: bool
    lines: tuple[int, ...]
    partition: str
    says: str
    size: int

    def rank(self) -> tuple[bool, int, tuple[int, ...], str, str]:
        """Least first: what is forbidden, in the fewest lines, earliest."""
        return (self.permitted, len(self.lines), self.lines, self.partition, self.says)


@attrs.define
class Tally:
    """All findings of one anomaly, of which the least few are kept."""

    found: int = 0
    forbidden: int = 0
    largest: int = 0
    least: list[Finding] = attrs.field(factory=list[Finding])

    def add(self, finding: Finding) -> None:
        """Count it, and keep it if it is among the least."""
        self.found += 1
        self.forbidden += not finding.permitted
        self.largest = max(self.largest, finding.size)
        self._keep(finding)

    def merge(self, other: Tally) -> None:
        """Add what was found elsewhere; the order of merging does not matter."""
        self.found += other.found
        self.forbidden += other.forbidden
        self.largest = max(self.largest, other.largest)
        for finding in other.least:
            self._keep(finding)

    def _keep(self, finding: Finding) -> None:
        if len(self.least) < EXAMPLES or finding.rank() < self.least[-1].rank():
            insort(self.least, finding, key=Finding.rank)
            del self.least[EXAMPLES:]


class Lack(NamedTuple):
    """Why there is no judgement: nothing of the kind (vacuous), or not enough to tell."""

    vacuous: bool
    why: str


@attrs.define
class Part:
    """What one partition, or everything across partitions, says of one anomaly."""

    tally: Tally = attrs.field(factory=Tally)
    lack: Lack | None = None
    measured: str = ""
    """A figure in words, of those anomalies that are a figure."""


@attrs.define
class Counts:
    """How many sends had which fate. A value that was sent twice counts twice."""

    attempted: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    recovered: int = 0
    """Of unknown outcome, but read."""
    read: int = 0
    """Different records that anybody read."""

    def merge(self, other: Counts) -> None:
        """Add those of another partition."""
        self.attempted += other.attempted
        self.acked += other.acked
        self.failed += other.failed
        self.unknown += other.unknown
        self.recovered += other.recovered
        self.read += other.read


@attrs.frozen
class Judgement:
    """The verdict on one anomaly of the whole history."""

    number: int
    name: str
    verdict: Verdict
    found: int
    forbidden: int
    largest: int
    why: str
    """What could not be judged, or the figure."""
    witnesses: tuple[Finding, ...]
