"""The result of a validation: how many lines are explained, and why the next one is not."""

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
    CreatePartitions AlterTopicConfigs Written Appended Truncated EpochAssigned DiskFailed ElectPreferredLeader
    ElectUncleanLeader
    """.split()  # noqa: SIM905 - a list of names
)
"""Inputs that may be no action of the model (the second table of docs/replay.md); then they change no variable."""


@attrs.frozen
class FalseGuard:
    """An action with parameters, its first guard that is false, and the parts of the guard that make it false."""

    action: str
    guard: str
    values: tuple[str, ...] = ()


@attrs.frozen
class FailedAttempt:
    """An attempt to explain a line, from one state, that failed: by false guards, or by values that differ."""

    state: str
    why: str
    guards: tuple[str, ...] = ()
    differences: Mapping[str, tuple[str, str]] = attrs.field(factory=dict[str, tuple[str, str]])


@attrs.frozen
class Rejection:
    """The first line that no step of the model explains.

    `states` are those in which its owner could have been before the line; `attempts` say how the line fails from each.
    `differences` has variables with the model's value and the line's; `messages` the last messages sent before.
    """

    life: str
    line: int
    action: str
    why: str
    guards: tuple[str, ...] = ()
    differences: Mapping[str, tuple[str, str]] = attrs.field(factory=dict[str, tuple[str, str]])
    messages: tuple[str, ...] = ()
    place: int = 0
    owner: str = ""
    attempts: tuple[FailedAttempt, ...] = ()
    states: tuple[str, ...] = ()
    table: tuple[FalseGuard, ...] = ()
    legend: str = ""


@attrs.define
class Validation:
    """The result for a trace: all of its lines are explained, or up to the first that is rejected.

    - `events`: lines accepted; `lines`: all lines; `steps`, `stutters`: lines with an action, and inputs without one.
    - `outside`: life, line and reason of what the environment of the model never does, such as a message twice.
    - `unchecked_lines`: lines about partitions whose replicas no message has told.
    - `unknown`: the budget was spent before the search ended, for the owner that it names.
    - `successors`: states tried; `widest`: the most states of an owner that were possible after the same line.
    """

    events: int = 0
    steps: Counter[str] = attrs.field(factory=Counter[str])
    stutters: Counter[str] = attrs.field(factory=Counter[str])
    outside: list[tuple[str, int, str]] = attrs.field(factory=list[tuple[str, int, str]])
    unchecked_lines: int = 0
    successors: int = 0
    rejected: Rejection | None = None
    unknown: str | None = None
    level: str = "full"
    lines: int = 0
    widest: int = 0

    @property
    def accepted(self) -> bool:
        """Whether every line is explained."""
        return self.rejected is None and self.unknown is None


class LineRefused(Exception):
    """The line cannot be what it says, or no step of the model explains it."""

    def __init__(
        self, why: str, guards: Iterable[str] = (), differences: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        super().__init__(why)
        self.why, self.guards, self.differences = why, tuple(guards), dict(differences or {})
