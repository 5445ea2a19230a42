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
    Metadata Produce RegisterBroker ShutDown Start Tick
    Written Appended Truncated EpochAssigned DiskFailed ElectPreferredLeader
    """.split()  # noqa: SIM905 - a list of names
)
"""Inputs that may take no action, by the second table of docs/conformance.md; in a trace they change nothing."""


@attrs.frozen
class Rejected:
    """The first line that no step of the model explains."""

    life: str
    line: int
    action: str
    why: str
    guards: tuple[str, ...] = ()
    differences: Mapping[str, tuple[str, str]] = attrs.field(factory=dict[str, tuple[str, str]])
    messages: tuple[str, ...] = ()


@attrs.define
class Validated:
    """What came of a trace: lines accepted until the end or until the first that was rejected."""

    events: int = 0
    steps: Counter[str] = attrs.field(factory=Counter[str])
    stutters: Counter[str] = attrs.field(factory=Counter[str])
    outside: list[tuple[str, int, str]] = attrs.field(factory=list[tuple[str, int, str]])
    unchecked: int = 0
    successors: int = 0
    rejected: Rejected | None = None


class Refused(Exception):
    """No step of the model explains a line."""

    def __init__(
        self, why: str, guards: Iterable[str] = (), differences: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        super().__init__(why)
        self.why, self.guards, self.differences = why, tuple(guards), dict(differences or {})
