"""Values of the broker as plain JSON: a replica's state under the names of the model's variables, and messages.

What is bytes is told by its size; a log by its ends, its epochs and, where it grows, its batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeAlias, cast

import attrs

from isr_broker.core.messages import BrokerId, BrokerMetadata, PartitionMetadata, TopicPartition
from isr_broker.core.record_batch import Batch
from isr_broker.core.replica_state import Following, Leading, Replica

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def plain(value: object) -> Json:
    """Any value that cores speak in, as JSON: sets sorted, errors by name, partitions as topic-number."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case TopicPartition():
            return str(value)
        case Enum():
            return value.name
        case bytes():
            return len(value)
        case frozenset() | set():
            return sorted((plain(v) for v in cast("Iterable[object]", value)), key=repr)
        case tuple() | list():
            return [plain(v) for v in cast("Iterable[object]", value)]
        case Mapping():
            return {str(k): plain(v) for k, v in cast("Mapping[object, object]", value).items()}
        case _:
            kind = type(value)
            assert attrs.has(kind), f"{value!r} is no value that cores speak in"
            return {f.name: plain(getattr(value, f.name)) for f in attrs.fields(kind)}


def batch_rows(batches: Iterable[Batch]) -> Json:
    """Of each batch its offset, leader epoch, number of records, CRC, and producer, its epoch and first sequence."""
    return [
        [b.base_offset, b.leader_epoch, b.count, b.crc, b.producer_id, b.producer_epoch, b.base_sequence]
        for b in batches
    ]


def replica_snapshot(replica: Replica) -> Json:
    """A replica's abstract state."""
    log = replica.log
    state: dict[str, Json] = {
        "log_start": log.start,
        "log_end": log.end,
        "log_flushed": log.flushed,
        "log_epochs": [[e.epoch, e.start] for e in log.epochs.entries],
        "high_watermark": replica.high_watermark,
        "leader": replica.leader,
        "leader_epoch": replica.leader_epoch,
        "partition_epoch": replica.partition_epoch,
        "broker_epoch": replica.broker_epoch,
        "awaits": None if replica.pending_operation is None else type(replica.pending_operation).__name__,
    }
    match replica.role:
        case Leading() as leading:
            pending = leading.pending
            state |= {
                "isr": plain(leading.isr),
                "pending_isr": None if pending is None else plain(pending.isr),
                "alter": None if pending is None or not pending.in_flight else plain(pending.request),
                "start_of_own_epoch": leading.epoch_start,
                "follower_end": {str(b): f.end for b, f in sorted(leading.followers.items())},
                "follower_broker_epoch": {str(b): f.broker_epoch for b, f in sorted(leading.followers.items())},
                "joining": plain(leading.joining),
                "waiting": [w.end for w in leading.waiting],
            }
        case Following(fetch=fetch, truncating=truncating):
            state["fetch"] = None if fetch is None else plain(fetch)
            if truncating:
                state["truncating"] = True
        case None:
            pass
    return state


def controller_snapshot(brokers: Mapping[BrokerId, BrokerMetadata], partition: PartitionMetadata) -> Json:
    """The controller's abstract state, as far as it is about one partition."""
    return {
        "controller_leader": partition.leader,
        "controller_epoch": partition.leader_epoch,
        "controller_partition_epoch": partition.partition_epoch,
        "controller_isr": plain(partition.isr),
        "controller_elr": plain(partition.elr),
        "last_known_leader": partition.last_known_leader,
        "fenced": plain({b for b, m in brokers.items() if m.fenced}),
        "shutting_down": plain({b for b, m in brokers.items() if m.shutting_down}),
        "broker_epoch": plain({b: m.epoch for b, m in sorted(brokers.items())}),
    }
