"""What a system of cores consists of, as values: brokers with their disks, messages in flight, what happened so far.

A state of the system is one controller core and, for each broker, a `Broker`, the message of its fetch and the message
of its AlterPartition, at most one each as in the model, and a `History`, of which no core knows.
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
from isr_broker.core.record_batch import HEADER_BYTES, header, new_batch
from isr_broker.core.replica_state import Replica
from isr_broker.settings import MAX_LONG, Settings

TP: Final = TopicPartition("t", 0)
NOW: Final = 1_000_000_000
"""The time at which every input comes, unless time is what matters: then the core's memories are made old enough."""
FAR: Final = MAX_LONG


@attrs.frozen(cache_hash=True)
class Broker:
    """One broker: its process if it runs, and its disk.

    - `node`: the core; None while the process does not run.
    - `log`: the batches on disk, one record each; `checkpoint` the watermark there, which counts while no core does.
    - `incarnation`: the last broker epoch; `clean` that of the mark of a clean shutdown, -1 without one.
    """

    me: BrokerId
    node: Node | None
    log: tuple[bytes, ...] = ()
    checkpoint: int = 0
    incarnation: int = -1
    clean: int = -1

    @property
    def replica(self) -> Replica | None:
        """The core of its replica, None before its log is open."""
        return self.node.held.get(TP) if self.node is not None else None


@attrs.frozen(cache_hash=True)
class Asked:
    """A fetch on its way to the leader `to`."""

    to: BrokerId
    request: FetchRequest


@attrs.frozen(cache_hash=True)
class Answered:
    """The answer to a fetch on its way back."""

    response: FetchResponse


@attrs.frozen(cache_hash=True)
class Proposed:
    """An AlterPartition on its way; `joins` is whom it would add to what its leader took to be the ISR."""

    request: AlterPartitionRequest
    joins: BrokerId | None


@attrs.frozen(cache_hash=True)
class Decided:
    """The controller's answer on its way back."""

    response: AlterPartitionResponse


FetchMessage: TypeAlias = Asked | Answered | None
AlterMessage: TypeAlias = Proposed | Decided | None


@attrs.frozen(kw_only=True, cache_hash=True)
class History:
    """What the producer, the consumer and the environment did and saw; model: the variables that no core holds."""

    written_in: tuple[int, ...] = ()
    acked: int = 0
    committed: tuple[int, ...] = ()
    position: int = 0
    consumed: tuple[int, ...] = ()
    crashes: int = 0
    lossy_crashes: int = 0
    sessions_lost: int = 0
    shutdowns: int = 0


# Records: one batch is one record of the model, named by its payload.


def batch_of(record: int) -> bytes:
    """What a producer sends for the model's record of that name."""
    return new_batch(bytes([record]))


def record_in(batch: bytes) -> int:
    """The name of the record in a batch."""
    return batch[HEADER_BYTES]


def epoch_of(batch: bytes) -> int:
    """The leader epoch with which a batch is stamped."""
    return header(batch, 0).leader_epoch


def settings_for(minimum: int, unclean: bool, flush: bool, reads: bool, base: Settings) -> Settings:
    """The settings under which a core and the model do the same: nothing waits, one record per fetch, no timers of its
    own beside those that the model has."""
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
