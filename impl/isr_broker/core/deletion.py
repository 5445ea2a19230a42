"""Records that a client wants forgotten (DeleteRecords, KIP-107): logs start later, the leader's first.

No action of the model, whose logs have no start. Like retention it takes only what is committed, so no promise changes:
whoever has less begins anew at the leader's start.
"""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.effects import AdvanceLogStart, AnswerDelete, ReplicaEffect
from isr_broker.core.inputs import DeleteRecords
from isr_broker.core.messages import Error, Millis, Offset
from isr_broker.core.replica_state import Leading, Replica, Step, WaitingDeletion, leading

COMMITTED: Final[Offset] = -1
"""Asked for as an offset: all that is committed."""


def leader_deletes_records(replica: Replica, deletion: DeleteRecords, now: Millis) -> Step:
    """The leader's log starts at the offset from now on; the answer waits for the followers (deleteRecordsOnLeader)."""
    offset = replica.high_watermark if deletion.offset == COMMITTED else deletion.offset
    if not 0 <= offset <= replica.high_watermark:
        refusal = AnswerDelete(request=deletion.request, partition=replica.partition, error=Error.OFFSET_OUT_OF_RANGE)
        return Step(replica, (refusal,))
    state = leading(replica)
    waiting = WaitingDeletion(request=deletion.request, offset=offset, deadline=now + deletion.timeout_ms)
    replica = attrs.evolve(replica, role=attrs.evolve(state, deletions=(*state.deletions, waiting)))
    if offset > replica.log.start:
        return Step(replica, (AdvanceLogStart(partition=replica.partition, offset=offset),))
    return answer_deletions(Step(replica))


def low_watermark(replica: Replica) -> Offset:
    """Where the log starts that starts first, of the leader's and those of brokers that live (lowWatermarkIfLeader)."""
    state = leading(replica)
    others = (f.log_start for b, f in state.followers.items() if b not in state.ineligible)
    return min([replica.log.start, *others])


def answer_deletions(step: Step) -> Step:
    """Whoever waits for a start that every log has reached is answered (DelayedDeleteRecords)."""
    state = step.core.role
    if not isinstance(state, Leading) or not state.deletions:
        return step
    low = low_watermark(step.core)
    answers = tuple(
        AnswerDelete(request=d.request, partition=step.core.partition, low_watermark=low)
        for d in state.deletions
        if d.offset <= low
    )
    rest = tuple(d for d in state.deletions if d.offset > low)
    core = attrs.evolve(step.core, role=attrs.evolve(state, deletions=rest)) if answers else step.core
    return attrs.evolve(step, core=core, effects=(*step.effects, *answers))


def given_up(replica: Replica, now: Millis) -> tuple[Replica, list[ReplicaEffect]]:
    """Those who have waited long enough are told so; the leader's log starts where they wanted all the same."""
    state = leading(replica)
    late = [d for d in state.deletions if d.deadline <= now]
    if not late:
        return replica, []
    rest = tuple(d for d in state.deletions if d.deadline > now)
    return attrs.evolve(replica, role=attrs.evolve(state, deletions=rest)), [
        AnswerDelete(request=d.request, partition=replica.partition, error=Error.REQUEST_TIMED_OUT) for d in late
    ]


def sent_elsewhere(replica: Replica) -> list[ReplicaEffect]:
    """The replica stops leading: whoever waits asks the next leader."""
    return [
        AnswerDelete(request=d.request, partition=replica.partition, error=Error.NOT_LEADER_OR_FOLLOWER)
        for d in leading(replica).deletions
    ]
