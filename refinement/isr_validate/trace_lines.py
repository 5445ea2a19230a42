"""The lines of a trace, taken apart: for each replica and each partition of the controller those that are about it.

Whatever a message or a client's request says is told at every level, so what one owner did says nothing more about
another, and each owner's lines can be searched alone.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, TypeAlias

import attrs

from isr_broker.trace_reader import Event
from isr_validate.line_values import Fields, Mail, Row
from isr_validate.replica_state import Held, Ruling

CONTROLLER: Final = "controller"
Owner: TypeAlias = tuple[str, str]
"""A node, and a partition."""


class Level(Enum):
    """How much of a trace is looked at; the rest is left free."""

    FULL = "full"
    """Every line's action, parameters and snapshot."""
    EVENTS = "events"
    """Actions and their parameters, no snapshots."""
    CLIENT = "client"
    """What clients and the wire say: requests, answers and messages; which steps were taken is hidden."""


@attrs.frozen
class Partition:
    """What does not change of a partition."""

    ids: tuple[int, ...]
    minimum: int
    unclean: bool
    fixed: tuple[str, ...] = ()


@attrs.frozen
class Answer:
    """What a client was told; of a produce its acks and where its batches end, of a read up to where it was given."""

    kind: str
    error: str
    offset: int
    end: int
    acks: int = 0
    high_watermark: int = -1
    own: bool = False
    halts: bool = False


@attrs.frozen
class Line:
    """A line as its owner's search takes it: the actions that it may be (None: none), and what comes with it."""

    place: int
    event: Event
    actions: tuple[str | None, ...] = (None,)
    mail: Mail | None = None
    news: tuple[int, int] = (0, 0)
    wrote: tuple[Row, ...] = ()
    found: Held | None = None
    begins: bool = False
    sent: tuple[Mail, ...] = ()
    answers: tuple[Answer, ...] = ()
    acks: int | None = None
    asked: int | None = None
    state: Fields | None = None
    ruling: Ruling | None = None
    joined: tuple[int, ...] = ()
    overtaken: bool = False

    @property
    def action(self) -> str | None:
        """The action, where the line names one."""
        return self.actions[0] if len(self.actions) == 1 else None


@attrs.define
class Lines:
    """A whole trace, taken apart; `refused` is where it is none, whatever the model says, and why."""

    level: Level
    design: str = "kip-966"
    waits: bool = False
    reads: bool = False
    chains: dict[Owner, list[Line]] = attrs.field(factory=dict[Owner, list[Line]])
    partitions: dict[str, Partition] = attrs.field(factory=dict[str, Partition])
    news: dict[Owner, list[Ruling]] = attrs.field(factory=dict[Owner, list[Ruling]])
    events: list[Event] = attrs.field(factory=list[Event])
    stutters: Counter[str] = attrs.field(factory=Counter[str])
    outside: list[tuple[str, int, str]] = attrs.field(factory=list[tuple[str, int, str]])
    unchecked: int = 0
    refused: tuple[int, Exception] | None = None


LEARNS: Final = ("becomes_leader", "becomes_follower", "leader_learns_isr")

QUESTIONS: Final = ("FetchRequest", "OffsetForLeaderEpochRequest")
"""What a follower asks its leader: one that may fetch, and one that has to truncate first."""

HIDDEN: Final[dict[str, tuple[str, ...]]] = {
    "Produce": ("leader_appends",),
    "FetchRequest": ("leader_answers_fetch", "leader_answers_diverging"),
    "FetchResponse": ("follower_appends", "follower_truncates"),
    "OffsetForLeaderEpochRequest": ("leader_answers_epoch_end", "leader_answers_undefined_epoch"),
    "OffsetForLeaderEpochResponse": ("follower_truncates", "follower_truncates_to_watermark"),
    "AlterPartitionResponse": ("leader_adopts_isr", "leader_rolls_back"),
    "Consume": ("consumer_reads",),
}
"""Which action an input may be, where the line is not asked. News are learned at any time (`LEARNS`)."""
