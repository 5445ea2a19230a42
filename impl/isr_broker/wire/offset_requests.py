"""Requests about offsets: where a log starts and ends, what was written when (ListOffsets), where an epoch ends.

docs: ReplicaManager.fetchOffset, Partition.fetchOffsetForTimestamp, ReplicaManager.lastOffsetForLeaderEpoch. Followers
ask the cores where epochs end (`epoch_requests`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

from isr_broker.core.messages import NO_EPOCH, Error, LeaderEpoch, Offset, TopicPartition
from isr_broker.core.node import error_without_replica
from isr_broker.core.record_batch import BadBatch
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.core.watermark import epoch_error
from isr_broker.runtime import Runtime
from isr_broker.wire.protocol import Answer, Fields
from isr_broker.wire.turns import Work

Question: TypeAlias = Callable[[TopicPartition, Fields], Answer]
Reply: TypeAlias = Callable[[Answer], None]

_PIECES_AT_ONCE: Final = 2_000
"""Partitions that are answered in one turn."""
_PIECES_OF_LOOKUP: Final = _PIECES_AT_ONCE
"""What a look for a time counts as: a batch is read from the disk, and its records, of which 1 MB has 100,000."""

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
"""The offset of the record with the largest timestamp (KIP-734)."""
_EARLIEST_LOCAL: Final = -4
"""Where the part of the log starts that is on this broker's disk, which is all of it (KIP-405)."""
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
"""What is in a remote storage, or goes there (KIP-1005, KIP-1023): there is none."""

_SINCE_VERSION: Final = {
    _EARLIEST: 1,
    _LATEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version that may ask so (ReplicaManager.timestampMinSupportedVersion)."""

_CONSUMER: Final = -1
_DEBUGGER: Final = -2
"""A tool that asks any replica, not only the leader (ListOffsetsRequest.DEBUGGING_REPLICA_ID)."""

_LEADER_NOT_AVAILABLE: Final = 5
_SINCE_NOT_AVAILABLE: Final = 5
"""The first version whose clients know OFFSET_NOT_AVAILABLE (KIP-207)."""


@attrs.frozen
class OffsetRequests:
    """The handlers of one broker."""

    runtime: Runtime

    def list_offsets(self, body: Fields, version: int, reply: Reply) -> Work:
        """ListOffsets: each partition's leader answers, or any replica if a tool asks (replica id -2).

        Some are answered in each turn. One that is named twice is refused (ListOffsetsRequest.duplicatePartitions).
        """
        asks = Counter((t.text("name"), p.number("partition_index")) for t in body.all("topics") for p in _rows(t))
        asker = body.number("replica_id")

        def answer(tp: TopicPartition, fields: Fields) -> Answer:
            at = fields.number("timestamp")
            if asks[tp.topic, tp.partition] > 1:
                return _nowhere(Error.INVALID_REQUEST.value)
            if at < 0 and version < _SINCE_VERSION.get(at, version + 1):
                return _nowhere(Error.UNSUPPORTED_VERSION.value)
            replica, error = self._replica(tp, fields.number("current_leader_epoch"), asker != _DEBUGGER)
            if replica is None:
                return _nowhere(error.value)
            said = self._offset(replica, at, asker == _CONSUMER)
            old = said is Error.OFFSET_NOT_AVAILABLE and version < _SINCE_NOT_AVAILABLE
            if isinstance(said, Error):
                return _nowhere(_LEADER_NOT_AVAILABLE if old else said.value)
            return said

        topics: list[Answer] = []
        pieces = 0
        for topic in body.all("topics"):
            name, answers = topic.text("name"), list[Answer]()
            for number, p in {p.number("partition_index"): p for p in _rows(topic)}.items():
                if pieces >= _PIECES_AT_ONCE:
                    pieces = 0
                    yield
                tp, at = TopicPartition(name, number), p.number("timestamp")
                answers.append({"partition_index": number, **answer(tp, p)})
                is_lookup = tp in self.runtime.node.replicas and asks[name, number] == 1
                pieces += _PIECES_OF_LOOKUP if is_lookup and (at >= 0 or at == _MAX_TIMESTAMP) else 1
            topics.append({"name": name, "partitions": answers})
        reply({"topics": topics})

    def epoch_ends(self, body: Fields, reply: Reply) -> Work:
        """OffsetForLeaderEpoch (KIP-320), for consumers that want to know whether their log was truncated."""
        topics: list[Answer] = []
        pieces = 0
        for topic in body.all("topics"):
            name, answers = topic.text("topic"), list[Answer]()
            for p in _rows(topic):
                number, epoch = p.number("partition"), p.number("leader_epoch")
                replica, error = self._replica(TopicPartition(name, number), p.number("current_leader_epoch"))
                row: Answer = {"partition": number, "error_code": error.value}
                if replica is not None and 0 <= epoch <= replica.log.epochs.latest():
                    end = replica.log.epochs.end_of(epoch, replica.log.end)
                    answers.append({**row, "leader_epoch": end.epoch, "end_offset": end.end})
                else:
                    # Of an epoch later than all that it has, a log knows nothing (LeaderEpochFileCache.endOffsetFor).
                    answers.append({**row, "leader_epoch": -1, "end_offset": -1})
                pieces += 1
                if pieces % _PIECES_AT_ONCE == 0:
                    yield
            topics.append({"topic": name, "partitions": answers})
        reply({"topics": topics})

    def _replica(
        self, tp: TopicPartition, epoch: LeaderEpoch, leads: bool = True
    ) -> tuple[Replica, Error] | tuple[None, Error]:
        """The replica that may answer, or why none here does; a leader epoch is judged before the role."""
        node = self.runtime.node
        replica = node.replicas.get(tp)
        if replica is None or replica.role is None:
            return None, error_without_replica(node, tp)
        wrong = Error.NONE if epoch == NO_EPOCH else epoch_error(replica, epoch)
        if wrong is not Error.NONE:
            return None, wrong
        if leads and not isinstance(replica.role, Leading):
            return None, Error.NOT_LEADER_OR_FOLLOWER
        return replica, Error.NONE

    def _offset(self, replica: Replica, at: int, consumer: bool) -> Answer | Error:
        """One partition of ListOffsets; consumers learn of nothing above the watermark.

        Until the watermark of a new leader covers the start of its epoch, an earlier leader may have committed more
        than it knows of. So then it does not say where the end is, nor that nothing is as late as a time (KIP-207).
        """
        if at in (_EARLIEST, _EARLIEST_LOCAL):
            return _answer(replica.log.start, epoch=_earliest_epoch(replica))
        if at in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
            return _nowhere()
        role, end = replica.role, replica.high_watermark if consumer else replica.log.end
        lags = consumer and isinstance(role, Leading) and replica.high_watermark < role.epoch_start
        unknown: Answer | Error = Error.OFFSET_NOT_AVAILABLE if lags else _nowhere()
        if at == _LATEST:
            return unknown if lags else _answer(end, epoch=replica.leader_epoch)
        try:
            log = self.runtime.logs.logs[replica.partition]
            there = log.newest_record() if at == _MAX_TIMESTAMP else log.first_record_since(at)
        except (OSError, BadBatch) as error:
            self.runtime.take_offline(replica.partition, str(error))
            return Error.KAFKA_STORAGE_ERROR
        if there is None or there.offset >= end:
            return unknown
        return _answer(there.offset, there.epoch, there.timestamp)


def _rows(topic: Fields) -> list[Fields]:
    return topic.all("partitions")


def _earliest_epoch(replica: Replica) -> LeaderEpoch:
    """The leader epoch in which the log starts, if it is noted (UnifiedLog.fetchOffsetByTimestamp)."""
    first = replica.log.epochs.entries[:1]
    return next((entry.epoch for entry in first if entry.start <= replica.log.start), NO_EPOCH)


def _answer(offset: Offset, epoch: LeaderEpoch = NO_EPOCH, timestamp: int = -1) -> Answer:
    return {"error_code": 0, "offset": offset, "timestamp": timestamp, "leader_epoch": epoch}


def _nowhere(error: int = 0) -> Answer:
    """An error, or none, and no offset."""
    return {**_answer(-1), "error_code": error}
