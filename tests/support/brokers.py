"""One partition on three brokers, for tests of the cores: a disk that is done at once, and shorthands."""

from __future__ import annotations

import attrs

from isr_broker.core import replica as replicas
from isr_broker.core.effects import AppendLog, AssignEpoch, ReplicaEffect, TruncateLog
from isr_broker.core.inputs import Appended, EpochAssigned, LearnMetadata, Produce, ReplicaInput, Truncated
from isr_broker.core.log_view import Epochs, EpochStart, LogView
from isr_broker.core.messages import FetchRequest, FetchResponse, PartitionMetadata, TopicPartition
from isr_broker.core.record_batch import batch_around, batches, new_batch, stamped
from isr_broker.core.replica_state import Replica, Step
from isr_broker.settings import Settings

TP = TopicPartition("t", 0)
SETTINGS = Settings.from_properties(
    {"min.insync.replicas": "2", "replica.fetch.wait.max.ms": "0", "insync.waits.for.joiners": "false"}
)


def metadata(
    leader: int | None, epoch: int = 0, isr: tuple[int, ...] = (1, 2, 3), version: int = 0, minimum: int = 2
) -> PartitionMetadata:
    return PartitionMetadata(
        partition=TP,
        replicas=(1, 2, 3),
        isr=frozenset(isr),
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=version,
        min_insync_replicas=minimum,
    )


def log(*epochs: int) -> LogView:
    """A log with one record per epoch that is given."""
    view = LogView()
    for offset, epoch in enumerate(epochs):
        if epoch != view.epochs.latest():
            view = attrs.evolve(view, epochs=Epochs((*view.epochs.entries, EpochStart(epoch, offset))))
        view = attrs.evolve(view, end=offset + 1)
    return view


def replica(me: int = 1, view: LogView | None = None, settings: Settings = SETTINGS, watermark: int = 0) -> Replica:
    return Replica(
        partition=TP, me=me, broker_epoch=me, settings=settings, log=view or LogView(), high_watermark=watermark
    )


def tell(core: Replica, told: ReplicaInput, now: int = 0) -> Step:
    """One input, and the disk does at once what is asked of it."""
    step = replicas.handle(core, told, now)
    effects: list[ReplicaEffect] = list(step.effects)
    while step.core.pending_operation is not None:
        operation = effects.pop()
        view = step.core.log
        match operation:
            case AppendLog(records=records, flush=flush):
                done: ReplicaInput = Appended(partition=TP, log=view.appended(batches(records), flush))
            case TruncateLog(offset=offset, anew=anew):
                cut = LogView(start=offset, end=offset) if anew else view.truncated(offset, view.producers)
                done = Truncated(partition=TP, log=cut)
            case AssignEpoch(epoch=epoch, start=start):
                done = EpochAssigned(partition=TP, log=attrs.evolve(view, epochs=view.epochs.assign(epoch, start)))
            case _:
                raise AssertionError(operation)
        step = replicas.handle(step.core, done, now)
        effects += step.effects
    return Step(step.core, tuple(effects), step.action)


def leader_of(
    view: LogView | None = None,
    epoch: int = 0,
    isr: tuple[int, ...] = (1, 2, 3),
    settings: Settings = SETTINGS,
    watermark: int = 0,
    minimum: int = 2,
) -> Replica:
    news = LearnMetadata(metadata=metadata(1, epoch, isr, minimum=minimum))
    return tell(replica(view=view, settings=settings, watermark=watermark), news).core


def follower_of(leader: int, view: LogView | None = None, epoch: int = 0, watermark: int = 0) -> Replica:
    return tell(replica(2, view, watermark=watermark), LearnMetadata(metadata=metadata(leader, epoch))).core


def fetch(by: int, offset: int, last_epoch: int = -1, epoch: int = 0, broker_epoch: int | None = None) -> FetchRequest:
    return FetchRequest(
        partition=TP,
        replica=by,
        broker_epoch=by if broker_epoch is None else broker_epoch,
        leader_epoch=epoch,
        offset=offset,
        last_epoch=last_epoch,
    )


def batch_at(offset: int, epoch: int = 0, count: int = 1, sequence: int = -1) -> bytes:
    """One batch as it stands in a log; it does not end with zeros, which a torn file may end with, too."""
    producer = (7, 0, sequence) if sequence >= 0 else (-1, -1, -1)
    return stamped(batch_around(b"r" * count, count=count, producer=producer), offset, epoch)


def answer(
    offset: int, records: bytes = b"", watermark: int = 0, epoch: int = 0, leader: int = 1, last_epoch: int = -1
) -> FetchResponse:
    return FetchResponse(
        partition=TP,
        leader=leader,
        leader_epoch=epoch,
        offset=offset,
        last_epoch=last_epoch,
        records=records,
        high_watermark=watermark,
    )


def produce(request: int = 1, acks: int = -1, producer: tuple[int, int, int] = (-1, -1, -1), count: int = 1) -> Produce:
    return Produce(
        request=request, partition=TP, records=new_batch(b"record", count=count, producer=producer), acks=acks
    )
