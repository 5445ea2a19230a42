"""Faults and returns: brokers crash, lose what was not flushed, shut down in order, and come back; consumers read."""

from __future__ import annotations

from typing import TypeVar

from isr_lang import NONE, Bool, Map, Step, action, define, when
from isr_lang.blank import blank
from isr_lang.expr import Expr
from isr_protocol.elections import relievable
from isr_protocol.membership import no_alter
from isr_protocol.metadata import answer_lapses
from isr_protocol.state import (
    CONSUMERS,
    CRASHES,
    FLUSH,
    FOLLOWER_READS,
    ISR_CHANGES,
    LOSSY_CRASHES,
    SHUTDOWNS,
    Fetch,
    Flush,
    Offset,
    Replica,
    State,
    log_end,
    smaller,
)

V = TypeVar("V", bound=Expr)


def remaining_field(fetches: Map[Replica, Fetch], field: Map[Replica, V]) -> Map[Replica, V]:
    """A field of the fetches that are left, blank where none is."""
    return Map.build(Replica, lambda f: when(fetches[f] == Fetch.NONE, blank(field[f]), field[f]))


def stops(old: State, new: State, r: Replica) -> Step:
    """The process ends: what it knew in memory is gone, and so is every fetch from it or on its way to it.

    A request that it sent to the controller is still on its way.
    """
    to_it = old.fetch_to
    fetches = Map.build(Replica, lambda f: when((f == r) | (to_it[f] == r), Fetch.NONE, old.fetch[f]))
    return (
        old.alive.has(r),
        new.alive == old.alive.excluding(r),
        new.leader[r] == NONE,
        new.leader_epoch[r] == 0,
        new.truncating == old.truncating.excluding(r),
        new.isr[r] == blank(new.controller_isr),
        new.pending_isr[r] == blank(new.controller_isr),
        new.partition_epoch[r] == 0,
        new.follower_end[r] == blank(new.follower_end[r]),
        new.follower_broker_epoch[r] == blank(new.follower_broker_epoch[r]),
        new.leading_since[r] == 0,
        new.known_away[r] == blank(new.fenced),
        new.fetch == fetches,
        new.fetch_to == remaining_field(fetches, old.fetch_to),
        new.fetch_epoch == remaining_field(fetches, old.fetch_epoch),
        new.fetch_offset == remaining_field(fetches, old.fetch_offset),
        new.fetch_last_epoch == remaining_field(fetches, old.fetch_last_epoch),
        new.fetch_record == remaining_field(fetches, old.fetch_record),
        new.fetch_watermark == remaining_field(fetches, old.fetch_watermark),
        *answer_lapses(old, new, r),
    )


@action
def broker_crashes(old: State, new: State, r: Replica, checkpoint: Offset) -> Step:
    """A broker dies and keeps its disk; of its watermarks some older one was checkpointed."""
    return (
        old.crashes < CRASHES,
        *stops(old, new, r),
        checkpoint <= old.high_watermark[r],
        new.high_watermark[r] == checkpoint,
        new.crashes == old.crashes + 1,
    )


@action
def broker_loses_power(old: State, new: State, r: Replica, survivors: Offset, checkpoint: Offset) -> Step:
    """A broker dies with its page cache: only some first records of its log had reached the disk."""
    return (
        old.lossy_crashes < LOSSY_CRASHES,
        FLUSH == Flush.NEVER,
        *stops(old, new, r),
        survivors < log_end(old, r),
        checkpoint <= smaller(old.high_watermark[r], survivors),
        new.log[r] == old.log[r].take(survivors),
        new.high_watermark[r] == checkpoint,
        new.lossy_crashes == old.lossy_crashes + 1,
    )


@action
def broker_asks_to_shut_down(old: State, new: State, r: Replica) -> Step:
    """A broker tells the controller that it wants to stop (controlled shutdown); it will be relieved of its duties."""
    return (
        old.shutdowns < SHUTDOWNS,
        old.alive.has(r),
        ~(old.fenced | old.shutting_down).has(r),
        new.shutting_down == old.shutting_down.including(r),
        new.shutdowns == old.shutdowns + 1,
    )


@action
def broker_shuts_down(old: State, new: State, r: Replica) -> Step:
    """A relieved broker flushes, leaves the mark of a clean shutdown, and stops; the controller fences it."""
    return (
        old.shutting_down.has(r),
        ~relievable(old, r),
        *stops(old, new, r),
        new.shutting_down == old.shutting_down.excluding(r),
        new.clean_shutdown == old.clean_shutdown.including(r),
        new.fenced == old.fenced.including(r),
    )


@define
def struck(s: State, r: Replica) -> Bool:
    """(6) The controller strikes the returning replica from ISR and ELR: it left no mark of a clean shutdown."""
    return (s.controller_isr | s.controller_elr).has(r) & ~s.clean_shutdown.has(r)


@action
def broker_restarts(old: State, new: State, r: Replica) -> Step:
    """A fenced broker starts and registers as a new incarnation, with the log that it finds on its disk.

    Recovery and registration are one step, for nothing can be observed between them. What the earlier
    incarnation asked is refused from now on (STALE_BROKER_EPOCH).
    ClusterControlManager.registerBroker;
    ReplicationControlManager.handleBrokerShutdown (before 4.0: handleBrokerUncleanShutdown).
    """
    isr, elr = old.controller_isr.excluding(r), old.controller_elr.excluding(r)
    strikes, version = struck(old, r), old.controller_partition_epoch
    return (
        old.fenced.has(r),
        ~old.alive.has(r),
        ~strikes | (version < ISR_CHANGES),
        new.alive == old.alive.including(r),
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
        new.clean_shutdown == old.clean_shutdown.excluding(r),
        new.shutting_down == old.shutting_down.excluding(r),
        *no_alter(new, r),
        new.controller_partition_epoch == when(strikes, version + 1, version),
        new.controller_isr == when(strikes, isr, old.controller_isr),
        new.controller_elr == when(strikes, elr, old.controller_elr),
    )


@action
def consumer_reads(old: State, new: State, r: Replica) -> Step:
    """A consumer reads the next record from a replica, below the watermark that this replica knows.

    From the leader, or with follower reads from any replica that has a leader. At a replica whose watermark is behind
    the consumer's position it gets nothing (KIP-392 proposed OFFSET_NOT_AVAILABLE; Kafka answers with no records, and
    past the replica's log end with OFFSET_OUT_OF_RANGE, upon which the client goes back to the leader).
    """
    return (
        CONSUMERS > 0,
        old.alive.has(r),
        (old.leader[r] == r) | (FOLLOWER_READS & (old.leader[r] != NONE)),
        old.position < old.high_watermark[r],
        new.position == old.position + 1,
        new.consumed == old.consumed.append(old.log[r][old.position]),
    )
