"""The results of a check: findings, their counts, the least of them, and reasons for no verdict."""

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
    """One instance of an anomaly: the lines to quote, and a sentence about them.

    `size` says how bad it is, in offsets, values or nanoseconds. `is_permitted`: the claims allow it.
    """

    is_permitted: bool
    lines: tuple[int, ...]
    partition: str
    says: str
    size: int

    def rank(self) -> tuple[bool, int, tuple[int, ...], str, str]:
        """The order in which findings are shown: forbidden ones first, of these the one with the fewest lines."""
        return (self.is_permitted, len(self.lines), self.lines, self.partition, self.says)


@attrs.define
class Tally:
    """The count of the findings of one anomaly; only the least EXAMPLES are kept."""

    finding_count: int = 0
    forbidden: int = 0
    largest: int = 0
    least: list[Finding] = attrs.field(factory=list[Finding])

    def add(self, finding: Finding) -> None:
        """Count a finding, and keep it if it is among the EXAMPLES that come first."""
        self.finding_count += 1
        self.forbidden += not finding.is_permitted
        self.largest = max(self.largest, finding.size)
        self._keep(finding)

    def merge(self, other: Tally) -> None:
        """Add the findings of another tally; the order of merging does not matter."""
        self.finding_count += other.finding_count
        self.forbidden += other.forbidden
        self.largest = max(self.largest, other.largest)
        for finding in other.least:
            self._keep(finding)

    def _keep(self, finding: Finding) -> None:
        if len(self.least) < EXAMPLES or finding.rank() < self.least[-1].rank():
            insort(self.least, finding, key=Finding.rank)
            del self.least[EXAMPLES:]


class NoVerdict(NamedTuple):
    """Why there is no verdict: the history has nothing of the kind (vacuous), or does not say enough."""

    vacuous: bool
    why: str


@attrs.define
class Part:
    """The result for one anomaly, of one partition or of the whole history."""

    tally: Tally = attrs.field(factory=Tally)
    missing: NoVerdict | None = None
    figure: str = ""
    """The figure in words, for anomalies that are figures."""


@attrs.define
class Counts:
    """Counts of sends by outcome. A value that was sent twice counts twice."""

    attempted: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    recovered: int = 0
    """Sends of unknown outcome whose value was read."""
    read: int = 0
    """Distinct values that were read."""
    lost: int = 0
    """Values that were acknowledged and are gone."""
    lost_unacknowledged: int = 0
    """Values that were never acknowledged, but that a read proves, and that are gone."""

    def merge(self, other: Counts) -> None:
        """Add those of another partition."""
        self.attempted += other.attempted
        self.acked += other.acked
        self.failed += other.failed
        self.unknown += other.unknown
        self.recovered += other.recovered
        self.read += other.read
        self.lost += other.lost
        self.lost_unacknowledged += other.lost_unacknowledged


@attrs.frozen
class Judgement:
    """The verdict on one anomaly of the whole history."""

    number: int
    name: str
    verdict: Verdict
    finding_count: int
    forbidden: int
    largest: int
    why: str
    """The reason for no verdict, or the figure."""
    witnesses: tuple[Finding, ...]
    can_fail: bool
    """Whether it can be VIOLATED at all: what is always permitted, and a figure without a limit, never is."""
