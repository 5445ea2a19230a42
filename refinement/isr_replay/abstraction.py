"""The abstraction function: which state of the model a system of cores stands for.

Each part of the system decides some variables alone; each method below is named after a part and lists its variables.
What a core holds beside that is in no variable. `canonical_form` makes most of it equal in all cores. The rest may
differ between cores of the same abstract state: `joining`, whether a follower ever caught up, and leader epochs that
were opened without a record.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.messages import NO_EPOCH, BrokerId, Error
from isr_broker.core.replica_state import Leading, Replica
from isr_protocol.state import Alter, Fetch
from isr_replay.core_driver import records
from isr_replay.packed_states import Packing
from isr_replay.system_state import (
    MARK_LOST,
    TP,
    AlterAnswered,
    AlterMessage,
    AlterRequested,
    Broker,
    FetchAnswered,
    FetchMessage,
    FetchRequested,
    History,
)
from isr_replay.system_state import record_in as name_in

FETCH = {name: i for i, name in enumerate(Fetch.type.members)}
ALTER = {name: i for i, name in enumerate(Alter.type.members)}


@attrs.frozen
class Abstraction:
    """The function for one instance; `ids` are the brokers, in the order of the model's replicas."""

    packing: Packing
    ids: tuple[BrokerId, ...]

    def index(self, broker: BrokerId) -> int:
        """The index of a broker among the model's replicas."""
        return self.ids.index(broker)

    def maybe(self, broker: BrokerId | None) -> int:
        """A Maybe[Replica]."""
        return 0 if broker is None else 1 + self.index(broker)

    def mask(self, brokers: Iterable[BrokerId]) -> int:
        """A Set[Replica]."""
        return sum(1 << self.index(broker) for broker in brokers)

    # The parts

    def broker(self, broker: Broker) -> int:
        """alive, log, high_watermark, leader, leader_epoch, broker_epoch, clean_shutdown, and those of a leader.

        Before its log is open, the values on disk are taken. Where people work, own_minimum, too: a leader's is the one
        that its core has.
        """
        part, i, replica = self.packing.part, self.index(broker.me), broker.replica
        bits = part("log", records(broker), i) + part("broker_epoch", broker.incarnation, i)
        if broker.node is not None:
            bits += self.packing.member("alive", i)
        elif broker.clean != -1:
            # The controller has it as shutting down until it registers again; in the model it has shut down by now.
            bits += self.packing.member("clean_shutdown", i) if broker.clean != MARK_LOST else 0
            bits -= self.packing.member("shutting_down", i)
        own = replica.metadata if replica is not None and isinstance(replica.role, Leading) else None
        bits += part("own_minimum", broker.minimum if own is None else own.min_insync_replicas, i)
        if replica is None:
            return bits + part("high_watermark", broker.checkpoint, i) + part("leader_epoch", broker.removed_in, i)
        bits += part("high_watermark", replica.high_watermark, i)
        bits += part("leader", self.maybe(replica.leader), i)
        bits += part("leader_epoch", max(0, replica.leader_epoch), i)
        return bits + (self._leading(replica, replica.role, i) if isinstance(replica.role, Leading) else 0)

    def _leading(self, replica: Replica, role: Leading, i: int) -> int:
        """isr, pending_isr, partition_epoch, follower_end, follower_broker_epoch; heard_of, own_replicas."""
        part = self.packing.part
        bits = part("isr", self.mask(role.isr), i) + part("partition_epoch", replica.partition_epoch, i)
        bits += part("pending_isr", self.mask(role.pending.isr) if role.pending else 0, i)
        for broker, known in role.followers.items():
            j = self.index(broker)
            bits += part("follower_end", 0 if known.end is None else 1 + known.end, i, j)
            bits += part("follower_broker_epoch", max(0, known.broker_epoch), i, j)
        bits += part("heard_of", self.mask(b for b, known in role.followers.items() if known.end is not None), i)
        return bits + part("own_replicas", self.mask((replica.me, *role.followers)), i)

    def fetch(self, follower: BrokerId, message: FetchMessage) -> int:
        """fetch, fetch_to, fetch_epoch, fetch_offset, fetch_last_epoch, fetch_record, fetch_watermark."""
        part, i = self.packing.part, self.index(follower)
        match message:
            case None:
                return 0
            case FetchRequested(to, request):
                return (
                    part("fetch", FETCH["REQUESTED"], i)
                    + part("fetch_to", self.maybe(to), i)
                    + part("fetch_epoch", request.leader_epoch, i)
                    + part("fetch_offset", request.offset, i)
                    + part("fetch_last_epoch", max(0, request.last_epoch), i)
                )
            case FetchAnswered(response):
                bits = part("fetch_epoch", response.leader_epoch, i)
                if response.diverging is not None:
                    # If the logs have nothing in common, the model names no epoch, and a core the one in the request.
                    end = response.diverging.end
                    epoch = response.diverging.epoch if end > 0 else NO_EPOCH
                    bits += part("fetch", FETCH["DIVERGED"], i) + part("fetch_offset", end, i)
                    return bits + part("fetch_last_epoch", max(0, epoch), i)
                bits += part("fetch", FETCH["ANSWERED"], i)
                bits += part("fetch_record", 1 + name_in(response.records) if response.records else 0, i)
                return bits + part("fetch_watermark", response.high_watermark, i)

    def alter(self, leader: BrokerId, message: AlterMessage) -> int:
        """alter, alter_isr, alter_leader_epoch, alter_partition_epoch, alter_broker_epoch."""
        part, i = self.packing.part, self.index(leader)
        match message:
            case None:
                return 0
            case AlterRequested(request, joins):
                broker_epoch = 0 if joins is None else dict(request.isr)[joins]
                return (
                    part("alter", ALTER["REQUESTED"], i)
                    + part("alter_isr", self.mask(request.members), i)
                    + part("alter_leader_epoch", request.leader_epoch, i)
                    + part("alter_partition_epoch", request.partition_epoch, i)
                    + part("alter_broker_epoch", broker_epoch, i)
                )
            case AlterAnswered(response):
                accepted = response.error is Error.NONE
                return part("alter", ALTER["ACCEPTED" if accepted else "REFUSED"], i)

    def controller(self, core: Controller) -> int:
        """controller_..., last_known_leader, fenced, shutting_down; replicas, adding, removing, and the settings."""
        part, partition = self.packing.part, core.partitions[TP]
        return (
            part("controller_leader", self.maybe(partition.leader))
            + part("controller_epoch", partition.leader_epoch)
            + part("controller_partition_epoch", partition.partition_epoch)
            + part("controller_isr", self.mask(partition.isr))
            + part("controller_elr", self.mask(partition.elr))
            + part("last_known_leader", self.maybe(partition.last_known_leader))
            + part("replicas", self.mask(partition.replicas))
            + part("adding", self.mask(partition.adding_replicas))
            + part("removing", self.mask(partition.removing_replicas))
            + part("minimum", partition.min_insync_replicas)
            + part("unclean_enabled", partition.unclean_leader_election)
            + part("fenced", self.mask(b for b, known in core.brokers.items() if known.fenced))
            + part("shutting_down", self.mask(b for b, known in core.brokers.items() if known.shutting_down))
        )

    def history(self, past: History) -> int:
        """written_in, acked, committed, position, consumed, least, and the counts of faults and of what people did."""
        part = self.packing.part
        return (
            part("written_in", past.written_in)
            + part("acked", past.acked)
            + part("committed", past.committed)
            + part("position", past.position)
            + part("consumed", past.consumed)
            + part("crashes", past.crashes)
            + part("lossy_crashes", past.lossy_crashes)
            + part("sessions_lost", past.sessions_lost)
            + part("shutdowns", past.shutdowns)
            + part("least", past.least)
            + sum(part(budget, number) for budget, number in past.operations)
        )
