"""What clients did and saw: the lines of a history, the operations they pair up to, and what the clients claim.

Units: `time` is nanoseconds of one clock, `line` the number of the line in its file (for a merged history the
place in the merged order), offsets are Kafka's. A value is unique in its partition. There may be millions of these,
hence named tuples and not attrs classes.
"""

from __future__ import annotations

import sys
from typing import Final, Literal, NamedTuple

import attrs

Value = int | str | None
"""What was sent; None is a record whose bytes nobody can have written (its checksum or its decoding failed)."""

Record = tuple[int, Value, int]
"""Offset, value, leader epoch (NO_EPOCH where the client did not say)."""

Outcome = Literal["ok", "fail", "info"]
"""`ok`: done; `fail`: surely not done; `info`: unknown."""

NO_EPOCH: Final = -1
NEVER: Final = sys.maxsize
"""The line and time of a completion that never came."""

DEFINITE: Final = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_RECORD",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_TOPIC_EXCEPTION",
        "MESSAGE_TOO_LARGE",
        "NOT_ENOUGH_REPLICAS",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "PRODUCER_FENCED",
        "RECORD_LIST_TOO_LARGE",
        "TOPIC_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
)
"""Kafka's errors after which a record is surely not in the log. All others leave it open: also
NOT_LEADER_OR_FOLLOWER, and NOT_ENOUGH_REPLICAS_AFTER_APPEND, which says itself that there was an append."""


class MalformedHistory(Exception):
    """A file is not a history: what is wrong and in which line (0: nowhere in particular)."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}" if line else what)
        self.line = line


class SentRecord(NamedTuple):
    """A send of an operation, with the offset if the broker has answered it."""

    partition: str
    value: Value
    offset: int | None


class Polled(NamedTuple):
    """The records that a poll returned, by partition in the order of delivery."""

    records: dict[str, list[Record]]


Micro = SentRecord | Polled


class Event(NamedTuple):
    """One line about a client: an invocation, or how it ended. `token` tells overlapping operations apart."""

    line: int
    kind: Literal["invoke", "ok", "fail", "info"]
    f: str
    process: str
    time: int
    token: int | str | None
    micro: tuple[Micro, ...]
    extra: Extra | None


@attrs.frozen
class Extra:
    """Fields that only some lines have.

    `acks` and `group` are the client's settings, `error` is why an operation failed. `partitions` and `seek` belong to
    assign and subscribe. Polls have `rebalanced`, the partitions that changed hands meanwhile, and `diverged`, those
    where the consumer was told of a truncation (KIP-320). A final read has its partition in `partitions`, and covers
    the offsets [`start`, `end`); at `unseen` offsets there is nothing for a reader (control records, aborted records);
    None if the client does not know them.
    """

    acks: str | None = None
    group: str = ""
    error: str = ""
    partitions: tuple[str, ...] = ()
    seek: str | None = None
    rebalanced: frozenset[str] = frozenset()
    diverged: frozenset[str] = frozenset()
    start: int = 0
    end: int = 0
    unseen: frozenset[int] | None = None


NOTHING: Final = Extra()


class Dump(NamedTuple):
    """One replica's log after healing."""

    line: int
    replica: str
    partition: str
    in_sync: bool
    leader: bool
    high_watermark: int
    records: list[Record]
    epochs: tuple[tuple[int, int], ...]
    """Rows of the leader epoch cache: epoch, start offset."""


class HeldRecord(NamedTuple):
    """A report of a node: it has appended a record, or truncated its log to an offset (then `value` is None)."""

    line: int
    node: str
    partition: str
    offset: int
    value: Value
    truncates: bool


class Fault(NamedTuple):
    """The beginning of a fault, or (`heals`) the healing of all; `survivable`: enough brokers stayed alive to go on."""

    line: int
    time: int
    what: str
    heals: bool
    survivable: bool


Item = Event | Dump | HeldRecord | Fault


class Operation(NamedTuple):
    """An invocation with its completion (NEVER where none came)."""

    number: int
    f: str
    process: str
    invoked: int
    completed: int
    invoked_at: int
    completed_at: int
    outcome: Outcome
    micro: tuple[Micro, ...]
    extra: Extra


@attrs.frozen
class Claims:
    """The settings of clients and topic, with Kafka's defaults. They decide which anomalies are impossible."""

    acks: Literal["0", "1", "all"] = "all"
    idempotence: bool = True
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    exactly_once: bool = False
    unclean: bool = False
    min_insync: int | None = None
    retention: bool = True
    """Whether the oldest records may be deleted, so that a log may begin above offset 0."""
    progress_acks: int = 1
    progress_within: int = 30_000_000_000
    """Nanoseconds after a healing in which so many sends must be acknowledged."""
    max_lag: int | None = None
    max_unavailable: int | None = None
    """A limit in nanoseconds; None for no limit, so that there is only a figure."""
