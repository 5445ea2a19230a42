"""Whether a producer's batch is taken: it must be whole, and an idempotent producer's must come in order (KIP-98)."""

from __future__ import annotations

import attrs

from isr_broker.core.log_view import Producers
from isr_broker.core.messages import Error, Offset
from isr_broker.core.record_batch import BadBatch, Batch, batches


@attrs.frozen(kw_only=True)
class Admission:
    """The verdict: an error, or how many offsets the batch takes; `duplicate` is where it already is in the log, if it
    is.

    `duplicate` is the first offset and the number of offsets.
    """

    error: Error = Error.NONE
    count: int = 0
    duplicate: tuple[Offset, int] | None = None


def admission_of(producers: Producers, records: bytes, max_bytes: int) -> Admission:
    """Whether a leader may append what it was sent: exactly one batch, as since Produce version 3.

    UnifiedLog.analyzeAndValidateRecords, analyzeAndValidateProducerState.
    """
    if len(records) > max_bytes:
        return Admission(error=Error.MESSAGE_TOO_LARGE)
    try:
        parsed_batches = list(batches(records, check=True))
    except BadBatch:
        return Admission(error=Error.CORRUPT_MESSAGE)
    if (
        len(parsed_batches) != 1
        or parsed_batches[0].count < 1
        or parsed_batches[0].count != parsed_batches[0].last_offset_delta + 1
    ):
        return Admission(error=Error.INVALID_RECORD)
    batch = parsed_batches[0]
    if batch.control or (batch.idempotent and batch.base_sequence < 0):
        # Only a coordinator writes control batches (LogValidator.validateBatch).
        return Admission(error=Error.INVALID_RECORD)
    return _in_order(producers, batch) if batch.idempotent else Admission(count=batch.count)


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
