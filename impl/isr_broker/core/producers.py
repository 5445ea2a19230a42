"""Whether a producer's batch is taken: whole, one alone, and an idempotent producer's in its order (KIP-98)."""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.batch_records import Look, at_once, newest_timestamp
from isr_broker.core.log_view import Producers
from isr_broker.core.messages import Error, Offset
from isr_broker.core.record_batch import (
    BASE_OFFSET_BYTES,
    HEADER_BYTES,
    LENGTH_ENDS,
    MAGIC,
    BadBatch,
    Batch,
    header,
    is_whole,
)

_MAGIC_AT: Final = 16
_MAGIC_BYTE: Final = bytes([MAGIC])
_LEAST_LENGTH: Final = 14
"""LegacyRecord.RECORD_OVERHEAD_V0."""

_MOST_RATIO: Final = {1: 1_032, 2: 22, 3: 256, 4: 33_000}
"""How many bytes one byte of gzip, snappy, lz4 and zstd can become at most, by their formats."""
_LEAST_RECORD: Final = 7
"""Bytes of a record that has nothing in it."""


@attrs.frozen
class Verdict:
    """What a look at a batch and at all of its records has shown: an error, or their largest timestamp."""

    error: Error
    newest: int


@attrs.frozen(kw_only=True)
class Admission:
    """The verdict: an error, or how many offsets the batch takes; `duplicate` is where it already is in the log, if it
    is.

    - `duplicate`: the first offset and the number of offsets.
    - `size`: the bytes of the batch, after which there may be some that are none (UnifiedLog.trimInvalidBytes).
    - `newest`: its largest timestamp, where its header says another.
    """

    error: Error = Error.NONE
    count: int = 0
    duplicate: tuple[Offset, int] | None = None
    size: int = 0
    newest: int | None = None


def admission_of(producers: Producers, records: bytes, max_bytes: int, verdict: Verdict | None = None) -> Admission:
    """Whether a leader may append what it was sent: exactly one batch, as since Produce version 3.

    `verdict` is that on its records, where somebody has looked at them before.

    ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator, analyzeAndValidateProducerState,
    in this order; what each refusal is called is in docs/broker.md.
    """
    size = _size_at(records, 0)
    if size != len(records) or records[_MAGIC_AT : _MAGIC_AT + 1] != _MAGIC_BYTE:
        # Not just one batch, as nearly always.
        fault = batch_fault(records) or batch_fault(records, after_first=True)
        if fault is not None:
            return Admission(error=fault)
    if (error := _damage(records, size, max_bytes)) is not Error.NONE:
        return Admission(error=error)
    try:
        batch = header(records, 0)
    except BadBatch:
        # Offsets or a count that cannot be.
        return Admission(error=Error.INVALID_RECORD)
    verdict = verdict or at_once(look_at(records, batch))
    if verdict.error is not Error.NONE:
        return Admission(error=verdict.error)
    admission = _in_order(producers, batch) if batch.idempotent else Admission(count=batch.count)
    return attrs.evolve(admission, size=size, newest=None if verdict.newest == batch.max_timestamp else verdict.newest)


def _size_at(records: bytes, at: int) -> int:
    return int.from_bytes(records[at + 8 : at + LENGTH_ENDS], "big", signed=True) + LENGTH_ENDS


def batch_fault(records: bytes, after_first: bool = False) -> Error | None:
    """Why bytes are no batch, by their length and magic alone; None if they are (ByteBufferLogInputStream.nextBatch).

    With `after_first` it is asked of what follows the first, which should be no batch.
    """
    at = _size_at(records, 0) if after_first else 0
    bytes_left = len(records) - at
    nothing = None if after_first else Error.INVALID_RECORD
    if bytes_left < LENGTH_ENDS:
        return nothing
    size = _size_at(records, at)
    if size < _LEAST_LENGTH + LENGTH_ENDS:
        return Error.CORRUPT_MESSAGE
    if bytes_left <= _MAGIC_AT:
        return nothing
    magic = int.from_bytes(records[at + _MAGIC_AT : at + _MAGIC_AT + 1], "big", signed=True)
    if not 0 <= magic <= MAGIC:
        return Error.CORRUPT_MESSAGE
    if size > bytes_left:
        return nothing
    return Error.INVALID_RECORD if after_first or magic != MAGIC else None


def _damage(records: bytes, size: int, max_bytes: int) -> Error:
    """What is looked at before anything that the header says is believed (UnifiedLog.analyzeAndValidateRecords)."""
    if records[:BASE_OFFSET_BYTES].strip(b"\0"):
        return Error.INVALID_RECORD
    if size > max_bytes:
        return Error.MESSAGE_TOO_LARGE
    return Error.NONE if size >= HEADER_BYTES and is_whole(records, size) else Error.CORRUPT_MESSAGE


def look_at(records: bytes, batch: Batch | None = None) -> Look[Verdict]:
    """Look at what a batch says, and at its records, in turns (LogValidator.validateBatch, validateRecord)."""
    try:
        batch = batch or header(records, 0)
        error, newest = _fault(batch), batch.max_timestamp
        if error is Error.NONE and not batch.compressed:
            newest = yield from newest_timestamp(records, batch)
            if not -(2**63) <= newest < 2**63:
                error, newest = Error.INVALID_TIMESTAMP, -1
    except BadBatch:
        error, newest = Error.INVALID_RECORD, -1
    return Verdict(error, newest)


def _fault(batch: Batch) -> Error:
    """What is wrong with what a batch says of itself."""
    if batch.codec and batch.codec not in _MOST_RATIO:
        # Kafka's CompressionType.forId throws, which is no error of its protocol.
        return Error.UNKNOWN_SERVER_ERROR
    # Only a coordinator writes control batches.
    bad_sequence = batch.producer_id >= 0 and batch.base_sequence < 0
    if batch.count < 1 or batch.count != batch.last_offset_delta + 1 or batch.control or bad_sequence:
        return Error.INVALID_RECORD
    if batch.append_time:
        return Error.INVALID_TIMESTAMP
    if batch.transactional:
        # No transaction is open here: no coordinator knows a producer that may write one.
        return Error.INVALID_PRODUCER_ID_MAPPING
    # No batch is opened here, so nothing can grow; but a batch cannot say more than its codec could hold.
    room = (batch.size - HEADER_BYTES) * _MOST_RATIO.get(batch.codec, 1)
    return Error.INVALID_RECORD if batch.compressed and batch.count * _LEAST_RECORD > room else Error.NONE


def _in_order(producers: Producers, batch: Batch) -> Admission:
    """ProducerAppendInfo.checkProducerEpoch, checkSequence; ProducerStateEntry.findDuplicateBatch."""
    producer = producers.get(batch.producer_id)
    if producer is None:
        return Admission(count=batch.count)
    if batch.producer_epoch < producer.epoch:
        return Admission(error=Error.INVALID_PRODUCER_EPOCH)
    if batch.producer_epoch > producer.epoch:
        fresh = batch.base_sequence == 0
        return Admission(count=batch.count) if fresh else Admission(error=Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
    for sent in producer.batches:
        if (sent.first_sequence, sent.last_sequence) == (batch.base_sequence, batch.last_sequence):
            return Admission(count=batch.count, duplicate=(sent.offset, batch.count))
    if batch.base_sequence != producer.next_sequence:
        return Admission(error=Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
    return Admission(count=batch.count)
