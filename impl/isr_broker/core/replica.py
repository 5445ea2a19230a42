"""One replica of a partition: `handle(replica, input, now)`, and when it next wants to be woken (`deadline`).

While a disk operation is under way (`replica.pending_operation`) only its report is taken; the node keeps the rest in
order.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from isr_broker.core import deletion, follower, leader, watermark
from isr_broker.core.effects import AnswerConsume, AnswerDelete, AnswerProduce, AssignEpoch, ReplicaEffect
from isr_broker.core.inputs import (
    Appended,
    Consume,
    DeleteRecords,
    DiskDone,
    DiskFailed,
    EpochAssigned,
    LearnMetadata,
    Produce,
    ReplicaInput,
    Retained,
    Tick,
    Truncated,
    Withdrawal,
)
from isr_broker.core.messages import (
    NO_EPOCH,
    AlterPartitionResponse,
    Error,
    FetchRequest,
    FetchResponse,
    Millis,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from isr_broker.core.replica_state import (
    EnteringEpoch,
    FollowerAppend,
    FollowerTruncation,
    Following,
    Leading,
    ProducerAppend,
    Replica,
    Step,
    without_consumers,
)
from isr_broker.core.truncation import refuses_to_say
from isr_broker.core.watermark import refuses_fetch

Question: TypeAlias = Produce | Consume | DeleteRecords | FetchRequest | OffsetForLeaderEpochRequest
DISK_DONE: Final = (Appended, Truncated, EpochAssigned, Retained, DiskFailed)


def handle(replica: Replica, replica_input: ReplicaInput, now: Millis) -> Step:
    """One input of one replica, which is one action of the protocol or none."""
    if isinstance(replica_input, DISK_DONE):
        return _disk_done(replica, replica_input, now)
    assert replica.pending_operation is None, (
        f"{replica.partition}: {type(replica_input).__name__} while the disk is busy"
    )
    match replica_input:
        case LearnMetadata():
            return deletion.answer_deletions(_learns(replica, replica_input, now))
        case Tick():
            return _ticks(replica, now)
        case FetchResponse() | OffsetForLeaderEpochResponse():
            follows = isinstance(replica.role, Following)
            return follower.follower_gets_answer(replica, replica_input, now) if follows else Step(replica)
        case AlterPartitionResponse():
            leads = isinstance(replica.role, Leading)
            return leader.leader_hears(replica, replica_input, now) if leads else Step(replica)
        case Withdrawal():
            return Step(without_consumers(replica, lambda c: c.request.request == replica_input.request)[0])
        case Produce() | Consume() | DeleteRecords() | FetchRequest() | OffsetForLeaderEpochRequest():
            return _answer_question(replica, replica_input, now)


def deadline(replica: Replica) -> Millis | None:
    """When the replica next wants a Tick: 0 for at once, None while it wants none."""
    if replica.pending_operation is not None:
        return None
    match replica.role:
        case Leading():
            times: list[Millis | None] = [leader.next_deadline(replica)]
        case Following():
            times = [follower.next_deadline(replica)]
        case _:
            return None
    times.append(replica.consumers_until)
    return min((at for at in times if at is not None), default=None)


def _ticks(replica: Replica, now: Millis) -> Step:
    match replica.role:
        case Leading():
            return leader.on_tick(replica, now)
        case Following():
            served, read = watermark.answer_late_consumers(replica, now)
            return Step(served, tuple(read)) if read else follower.on_tick(replica, now)
        case None:
            return Step(replica)


def _answer_question(replica: Replica, question: Question, now: Millis) -> Step:
    if isinstance(replica.role, Leading):
        match question:
            case Produce():
                return leader.leader_is_asked_to_append(replica, question, now)
            case Consume():
                return watermark.consumer_reads(replica, question, now)
            case DeleteRecords():
                return deletion.leader_deletes_records(replica, question, now)
            case FetchRequest():
                return deletion.answer_deletions(leader.leader_answers_fetch(replica, question, now))
            case OffsetForLeaderEpochRequest():
                return leader.leader_answers_epoch_end(replica, question)
    follows = isinstance(replica.role, Following) and replica.leader is not None
    if isinstance(question, Consume) and follows and replica.settings.insync_follower_reads:
        return watermark.consumer_reads(replica, question, now)
    return Step(replica, (_not_leader(replica, question),))


def _not_leader(replica: Replica, question: Question) -> ReplicaEffect:
    error = Error.NOT_LEADER_OR_FOLLOWER
    match question:
        case Produce():
            return AnswerProduce(request=question.request, partition=question.partition, error=error)
        case Consume():
            return AnswerConsume(request=question.request, partition=question.partition, error=error)
        case DeleteRecords():
            return AnswerDelete(request=question.request, partition=question.partition, error=error)
        case FetchRequest():
            return refuses_fetch(replica, question, _wrong_epoch(replica, question) or error)
        case OffsetForLeaderEpochRequest():
            return refuses_to_say(replica.me, question, _wrong_epoch(replica, question) or error)


def _wrong_epoch(replica: Replica, question: FetchRequest | OffsetForLeaderEpochRequest) -> Error | None:
    """FENCED or UNKNOWN_LEADER_EPOCH, where requests are fenced; a fetch of a newer epoch has always been refused so.

    Who names no epoch is told about the role.
    """
    if question.leader_epoch == NO_EPOCH:
        return None
    wrong = watermark.epoch_error(replica, question.leader_epoch)
    newer = isinstance(question, FetchRequest) and wrong is Error.UNKNOWN_LEADER_EPOCH
    fences = replica.settings.insync_design.fences_fetches or newer
    return wrong if fences and wrong is not Error.NONE else None


def _learns(replica: Replica, news: LearnMetadata, now: Millis) -> Step:
    """Newer metadata: a new epoch is entered by way of the disk, a new ISR of the same one at once.

    Model: behind. Metadata that is no newer tells at most who may join.
    """
    metadata, state = news.metadata, replica.role
    if metadata.leader_epoch > replica.leader_epoch:
        if metadata.leader == replica.me and not replica.settings.insync_design.notes_epoch_start:
            return _leaving(replica, leader.becomes_leader(replica, news, replica.log, now))
        if metadata.leader == replica.me:
            note = AssignEpoch(partition=replica.partition, epoch=metadata.leader_epoch, start=replica.log.end)
            return Step(attrs.evolve(replica, pending_operation=EnteringEpoch(news)), (note,))
        return _leaving(replica, follower.follower_enters_epoch(replica, news, now))
    if metadata.leader_epoch == replica.leader_epoch and metadata.partition_epoch > replica.partition_epoch:
        if isinstance(state, Leading):
            return leader.leader_learns_isr(replica, news, now)
        return Step(attrs.evolve(replica, metadata=metadata, partition_epoch=metadata.partition_epoch))
    if isinstance(state, Leading):
        return leader.learns_minimum(replica, news, now)
    return Step(replica)


def _leaving(before: Replica, step: Step) -> Step:
    """A step into another epoch: whoever waited for it in the last one is told."""
    if step.core.pending_operation is not None or not (isinstance(before.role, Leading) or before.consumers):
        return step
    core, _ = without_consumers(step.core, lambda _: True)
    fenced = core.leader_epoch > before.leader_epoch and before.settings.insync_design.fences_fetches
    return attrs.evolve(step, core=core, effects=(*leader.steps_down(before, fenced), *step.effects))


def _disk_done(replica: Replica, report: DiskDone, now: Millis) -> Step:
    """A disk operation is reported: now the action that asked for it is taken."""
    match report, replica.pending_operation:
        case Retained(log=log), _:
            kept = attrs.evolve(replica, log=log, high_watermark=max(replica.high_watermark, log.start))
            kept, read = watermark.without_unreadable(kept)
            return deletion.answer_deletions(Step(kept, tuple(read)))
        case Appended(), ProducerAppend():
            return leader.leader_appends(replica, report, now)
        case Appended(), FollowerAppend():
            return follower.follower_appends(replica, report, now)
        case Truncated(), FollowerTruncation():
            return follower.follower_truncates(replica, report, now)
        case EpochAssigned(), EnteringEpoch(news):
            return _leaving(replica, leader.becomes_leader(replica, news, report.log, now))
        case Truncated(), EnteringEpoch(news):
            known = min(replica.high_watermark, report.log.end)
            cut = attrs.evolve(replica, log=report.log, high_watermark=known)
            return _leaving(replica, follower.becomes_follower(cut, news, now))
        case DiskFailed(), _:
            return _leaving(replica, Step(attrs.evolve(replica, role=None, pending_operation=None)))
        case _:
            raise AssertionError(
                f"{replica.partition}: {type(report).__name__} while {replica.pending_operation} is awaited"
            )
