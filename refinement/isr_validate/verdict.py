"""What a validation ends in: how far it came, and why no further."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

STUTTERS: Final = frozenset(
    """
    AlterPartitionRequest AlterPartitionResponse BrokerRegistered Consume CreateTopic DeleteTopic
    FetchMetadata FetchRequest FetchResponse Heartbeat HeartbeatAnswer LogOpened
    Metadata OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse Produce RegisterBroker ShutDown Start Tick
    Written Appended Truncated EpochAssigned DiskFailed ElectPreferredLeader ElectUncleanLeader
    """.split()  # noqa: SIM905 - a list of names
)
"""Inputs that may take no action, by the second table of docs/conformance.md; in a trace they change nothing."""


@attrs.frozen
class FalseGuard:
    """An action with its parameters, its first guard that is false, and the parts that make it so, with values."""

    action: str
    guard: str
    values: tuple[str, ...] = ()


@attrs.frozen
class Way:
    """One way to take a line that fails: from which state, the first false guards, or what differs at the nearest."""

    state: str
    why: str
    guards: tuple[str, ...] = ()
    differences: Mapping[str, tuple[str, str]] = attrs.field(factory=dict[str, tuple[str, str]])


@attrs.frozen
class Rejected:
    """The first line that no step of the model explains; `ways` from every state of its owner still possible."""

    life: str
    line: int
    action: str
    why: str
    guards: tuple[str, ...] = ()
    differences: Mapping[str, tuple[str, str]] = attrs.field(factory=dict[str, tuple[str, str]])
    messages: tuple[str, ...] = ()
    place: int = 0
    owner: str = ""
    ways: tuple[Way, ...] = ()
    states: tuple[str, ...] = ()
    table: tuple[FalseGuard, ...] = ()
    legend: str = ""


@attrs.define
class Validated:
    """What came of a trace: lines accepted until the end or until the first that was rejected.

    `unknown`: the budget was spent before either was known, for the owner that it names. `widest` is how many states
    of one owner were possible at a line, `hidden` how many steps were chosen that no line names.
    """

    events: int = 0
    steps: Counter[str] = attrs.field(factory=Counter[str])
    stutters: Counter[str] = attrs.field(factory=Counter[str])
    outside: list[tuple[str, int, str]] = attrs.field(factory=list[tuple[str, int, str]])
    unchecked: int = 0
    successors: int = 0
    rejected: Rejected | None = None
    unknown: str | None = None
    level: str = "full"
    lines: int = 0
    widest: int = 0

    @property
    def accepted(self) -> bool:
        """Every line is explained, and nothing was left undecided."""
        return self.rejected is None and self.unknown is None


class Refused(Exception):
    """No step of the model explains a line."""

    def __init__(
        self, why: str, guards: Iterable[str] = (), differences: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        super().__init__(why)
        self.why, self.guards, self.differences = why, tuple(guards), dict(differences or {})
