"""The parts of a system of cores, as values: brokers with their disks, messages in flight, and the history.

A state of the system has the core of the controller and a `History`. For each broker it has a `Broker`, the message of
its fetch, and the message of its AlterPartition: at most one of each is in flight, as in the model.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerId,
    FetchRequest,
    FetchResponse,
    TopicPartition,
)
from isr_broker.core.node import Node
from isr_broker.core.record_batch import new_batch
from isr_broker.core.replica_state import Replica
from isr_broker.settings import MAX_LONG, Settings

TP: Final = TopicPartition("t", 0)
NOW: Final = 1_000_000_000
"""The time of every input. Where a timer must fire, a time in the core is moved back instead (`canonical_form`)."""
FAR: Final = MAX_LONG
MARK_LOST: Final = -2
"""In place of the broker epoch in the mark of a clean shutdown: the broker stopped in order, and has no mark."""


@attrs.frozen(cache_hash=True)
class Broker:
    """A broker: its process, if it runs, and its disk.

    - `node`: the core, None while the process does not run.
    - `log`: the batches on disk, one record each.
    - `checkpoint`: the high watermark on disk; it is the broker's high watermark until the log is open.
    - `incarnation`: the last broker epoch. `clean`: the broker epoch in the mark of a clean shutdown, -1 without one,
      and MARK_LOST where that went with the disk.
    - `minimum`: min.insync.replicas in the metadata that it read last; 0 where nobody changes it.
    - `removed_in`: the leader epoch of the metadata by which it deleted its replica, 0 if it did not.
    """

    me: BrokerId
    node: Node | None
    log: tuple[bytes, ...] = ()
    checkpoint: int = 0
    incarnation: int = -1
    clean: int = -1
    minimum: int = 0
    removed_in: int = 0

    @property
    def replica(self) -> Replica | None:
        """The core of the replica, None before its log is open."""
        return self.node.replicas.get(TP) if self.node is not None else None


@attrs.frozen(cache_hash=True)
class FetchRequested:
    """A fetch request in flight to the leader `to`."""

    to: BrokerId
    request: FetchRequest


@attrs.frozen(cache_hash=True)
class FetchAnswered:
    """A fetch response in flight."""

    response: FetchResponse


@attrs.frozen(cache_hash=True)
class AlterRequested:
    """An AlterPartition request in flight; `joins` is the broker that it would add to the ISR of its leader."""

    request: AlterPartitionRequest
    joins: BrokerId | None


@attrs.frozen(cache_hash=True)
class AlterAnswered:
    """The controller's answer to an AlterPartition in flight."""

    response: AlterPartitionResponse


FetchMessage: TypeAlias = FetchRequested | FetchAnswered | None
AlterMessage: TypeAlias = AlterRequested | AlterAnswered | None


@attrs.frozen(kw_only=True, cache_hash=True)
class History:
    """What the producer, the consumer and the environment did and saw: the variables of the model that no core has."""

    written_in: tuple[int, ...] = ()
    acked: int = 0
    committed: tuple[int, ...] = ()
    position: int = 0
    consumed: tuple[int, ...] = ()
    crashes: int = 0
    lossy_crashes: int = 0
    sessions_lost: int = 0
    shutdowns: int = 0
    operations: tuple[tuple[str, int], ...] = ()
    """How often people did what the model has a budget for, by the name of the budget."""
    least: int = 0
    """The least number of logs that an acknowledgement has taken."""

    def times(self, budget: str) -> int:
        """How often people did what this budget is for."""
        return dict(self.operations).get(budget, 0)

    def with_one_more(self, budget: str) -> History:
        """The history in which people have done it once more."""
        counts = dict(self.operations) | {budget: self.times(budget) + 1}
        return attrs.evolve(self, operations=tuple(sorted(counts.items())))


# Records: a batch is one record of the model, whose name is its payload.


def batch_of(record: int) -> bytes:
    """The batch that a producer sends for a record of the model."""
    return new_batch(bytes([record]))


_VALUE_AT: Final = len(batch_of(0)) - 2
"""Where a batch of one record has its value of one byte; after it comes how many headers there are."""


def record_in(batch: bytes) -> int:
    """The record of the model that a batch holds."""
    return batch[_VALUE_AT]


def settings_for(minimum: int, unclean: bool, flush: bool, reads: bool, base: Settings) -> Settings:
    """The settings under which cores take the model's steps.

    No fetch waits for records, each fetch has at most one record, and there are no timers that the model does not have.
    """
    return attrs.evolve(
        base,
        min_insync_replicas=minimum,
        unclean_leader_election_enable=unclean,
        log_flush_interval_messages=1 if flush else MAX_LONG,
        replica_fetch_wait_max_ms=0,
        replica_fetch_max_bytes=1,
        insync_waits_for_joiners=False,
        insync_follower_reads=reads,
        auto_leader_rebalance_enable=False,
    )
