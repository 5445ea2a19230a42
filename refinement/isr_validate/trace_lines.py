"""The lines of a trace by their owners: each replica, and the controller's state of each partition, is one owner.

Messages and requests of clients are known at every level. They are all that connects two owners, so the lines of each
owner can be searched without the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

import attrs

from isr_broker.trace_reader import Event
from isr_validate.replica_state import ControllerState, ReplicaState
from isr_validate.trace_values import Fields, Row, SentMessage
from isr_validate.verdict import LineRefused

CONTROLLER: Final = "controller"
Owner: TypeAlias = tuple[str, str]
"""A node and a partition: `("2", "t-0")` is a replica, `("controller", "t-0")` the controller's state."""


class Level(Enum):
    """How much of a trace must be explained. The less, the more runs of the model may explain it."""

    FULL = "full"
    """The action of every line, its parameters and its snapshot."""
    EVENTS = "events"
    """The action of every line and its parameters, but no snapshots."""
    CLIENT = "client"
    """Only requests, answers and messages. Which actions were taken is searched for."""


@attrs.frozen
class Partition:
    """A partition: its replicas and settings, which do not change. `fixed_fields`: what Metadata must repeat of it."""

    ids: tuple[int, ...]
    minimum: int
    unclean: bool
    fixed_fields: tuple[str, ...] = ()


@attrs.frozen
class Answer:
    """The answer to a client.

    `offset` and `end` are where the batches begin and end that were appended, or the records that were read. `own`: the
    line answers the request that it received. `halts`: the process ends with the line.
    """

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
    """A line, as the search over its owner's lines takes it.

    - `place`: its index in causal order; `actions`: what it may be, None for no action; `mail`: the message received.
    - `news`: the range of metadata that this life of the broker has received so far; `wrote`: batches appended.
    - `opened_replica`: the replica when its log was opened; `begins`: a new life starts here.
    - `messages`, `answers`: messages and answers to clients; `acks`, `read_offset`: acks of its produce, offset of its
      read.
    - `state`, `controller`: the snapshot; `registration_epochs`: broker epochs that its registration may get;
      `is_overtaken`: a newer heartbeat of the same life came before this one.
    """

    place: int
    event: Event
    actions: tuple[str | None, ...] = (None,)
    mail: SentMessage | None = None
    news: tuple[int, int] = (0, 0)
    wrote: tuple[Row, ...] = ()
    opened_replica: ReplicaState | None = None
    begins: bool = False
    messages: tuple[SentMessage, ...] = ()
    answers: tuple[Answer, ...] = ()
    acks: int | None = None
    read_offset: int | None = None
    state: Fields | None = None
    controller: ControllerState | None = None
    registration_epochs: tuple[int, ...] = ()
    is_overtaken: bool = False

    @property
    def action(self) -> str | None:
        """The action, if the line names one."""
        return self.actions[0] if len(self.actions) == 1 else None


@attrs.define
class TraceLines:
    """A trace by owners. `refusal` is the place of the first line that the reader refused, and why.

    `proposals`: of Kafka's traces, by partition, every AlterPartition that a leader prepared, but for those in
    `withdrawals`: it was told that they are refused, or never sent them.
    """

    level: Level
    design: str = "kip-966"
    waits: bool = False
    reads: bool = False
    by_owner: dict[Owner, list[Line]] = attrs.field(factory=dict[Owner, list[Line]])
    partitions: dict[str, Partition] = attrs.field(factory=dict[str, Partition])
    metadata: dict[Owner, list[ControllerState]] = attrs.field(factory=dict[Owner, list[ControllerState]])
    events: list[Event] = attrs.field(factory=list[Event])
    stutters: Counter[str] = attrs.field(factory=Counter[str])
    outside: list[tuple[str, int, str]] = attrs.field(factory=list[tuple[str, int, str]])
    proposals: dict[str, list[Fields]] = attrs.field(factory=dict[str, list[Fields]])
    withdrawals: dict[str, list[Fields]] = attrs.field(factory=dict[str, list[Fields]])
    unchecked_lines: int = 0
    refusal: tuple[int, LineRefused] | None = None

    def read(
        self, events: Sequence[Event], read_ahead: Callable[[Event], None], read: Callable[[int, Event], None]
    ) -> None:
        """Read all events ahead, for what only a later line says; then one by one, up to the first that is refused."""
        for event in events:
            read_ahead(event)
        for place, event in enumerate(events):
            self.events.append(event)
            try:
                read(place, event)
            except LineRefused as no:
                self.refusal = (place, no)
                return


LEARNS: Final = ("becomes_leader", "becomes_follower", "leader_learns_isr")

QUESTIONS: Final = ("FetchRequest", "OffsetForLeaderEpochRequest")
"""What a follower asks its leader: if it may fetch, and if it must truncate first."""

HIDDEN_ACTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Produce": ("leader_appends",),
    "FetchRequest": ("leader_answers_fetch", "leader_answers_diverging"),
    "FetchResponse": ("follower_appends", "follower_truncates"),
    "OffsetForLeaderEpochRequest": ("leader_answers_epoch_end", "leader_answers_undefined_epoch"),
    "OffsetForLeaderEpochResponse": ("follower_truncates", "follower_truncates_to_watermark"),
    "AlterPartitionResponse": ("leader_adopts_isr", "leader_rolls_back"),
    "Consume": ("consumer_reads",),
}
"""The actions that an input may be, at level `client`. Metadata may be learned before any line (`LEARNS`)."""
