"""A leader and time: what it wants to be woken for, and what it does then; and consumers, who may wait as well."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from isr_broker.effects import AnswerConsume, AnswerProduce, ReplicaEffect
from isr_broker.inputs import Consume
from isr_broker.leader import (
    asks_controller,
    candidates,
    leader_proposes_expansion,
    leader_proposes_shrink,
    leader_rolls_back,
)
from isr_broker.messages import Error, Millis
from isr_broker.state import ParkedConsume, ParkedFetch, Replica, Step, Waiting, leading
from isr_broker.watermark import answer_to, readable, records_for, refuses_fetch

# Consumers.


def consumer_reads(replica: Replica, consume: Consume, now: Millis) -> Step:
    """A consumer reads below the watermark, or waits for it; past the log end it is out of range.

    Partition.fetchRecords up to HIGH_WATERMARK.
    """
    state = leading(replica)
    if not replica.log.start <= consume.offset <= replica.log.end:
        return Step(replica, (_consume_error(replica, consume, Error.OFFSET_OUT_OF_RANGE),))
    if consume.offset < readable(replica):
        return Step(replica, (records_for(replica, consume),), "consumer_reads")
    if consume.max_wait_ms == 0:
        return Step(replica, (records_for(replica, consume),))
    parked = ParkedConsume(consume, now + consume.max_wait_ms)
    return Step(attrs.evolve(replica, role=attrs.evolve(state, consumers=(*state.consumers, parked))))


def _consume_error(replica: Replica, consume: Consume, error: Error) -> AnswerConsume:
    return AnswerConsume(
        request=consume.request, partition=replica.partition, error=error, high_watermark=replica.high_watermark
    )


# Time.


def next_deadline(replica: Replica) -> Millis:
    """When the leader next wants a Tick; 0 for at once."""
    state = leading(replica)
    if candidates(replica):
        return 0
    times = [state.next_lag_check, *_deadlines(state.waiting), *_deadlines(state.fetches), *_deadlines(state.consumers)]
    if state.pending and state.pending.in_flight:
        times.append(state.pending.sent_at + replica.settings.controller_socket_timeout_ms)
    return min(times)


def _deadlines(parked: Iterable[Waiting | ParkedFetch | ParkedConsume]) -> list[Millis]:
    return [p.deadline for p in parked]


def on_tick(replica: Replica, now: Millis) -> Step:
    """One thing that is due: the lag check, a follower to propose, an answer that waited long, a request again."""
    state, joins = leading(replica), candidates(replica)
    if state.next_lag_check <= now:
        return leader_proposes_shrink(replica, now)
    if joins:
        return leader_proposes_expansion(replica, joins[0], now)
    late = [w for w in state.waiting if w.deadline <= now]
    fetches = [p for p in state.fetches if p.deadline <= now]
    consumers = [c for c in state.consumers if c.deadline <= now]
    effects: list[ReplicaEffect] = [
        AnswerProduce(request=w.request, partition=replica.partition, error=Error.REQUEST_TIMED_OUT) for w in late
    ]
    effects += [answer_to(replica, p.request) for p in fetches]
    effects += [records_for(replica, c.request) for c in consumers]
    state = attrs.evolve(
        state,
        waiting=tuple(w for w in state.waiting if w.deadline > now),
        fetches=tuple(p for p in state.fetches if p.deadline > now),
        consumers=tuple(c for c in state.consumers if c.deadline > now),
    )
    step = Step(attrs.evolve(replica, role=state), tuple(effects))
    pending = state.pending
    if pending and pending.in_flight and pending.sent_at + replica.settings.controller_socket_timeout_ms <= now:
        if replica.settings.insync_design.roll_back_on_unknown_outcome:
            return attrs.evolve(leader_rolls_back(step.core), effects=step.effects)
        again = asks_controller(step.core, pending.request, now)
        return attrs.evolve(again, effects=(*step.effects, *again.effects))
    return step


def steps_down(replica: Replica) -> list[ReplicaEffect]:
    """Answers for everybody who waited for this leader: what became of it, another leader will say."""
    state, error = leading(replica), Error.NOT_LEADER_OR_FOLLOWER
    return [
        *(AnswerProduce(request=w.request, partition=replica.partition, error=error) for w in state.waiting),
        *(refuses_fetch(replica, p.request, error) for p in state.fetches),
        *(AnswerConsume(request=c.request.request, partition=replica.partition, error=error) for c in state.consumers),
    ]
