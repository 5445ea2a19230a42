"""A leader and time: what it wants to be woken for, and what it does then."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from isr_broker.core.consumers import sent_away, waited
from isr_broker.core.effects import AnswerProduce, ReplicaEffect
from isr_broker.core.leader import (
    asks_controller,
    candidates,
    leader_proposes_expansion,
    leader_proposes_shrink,
    leader_rolls_back,
)
from isr_broker.core.messages import Error, Millis
from isr_broker.core.replica_state import Leading, ParkedFetch, Replica, Step, Waiting, leading
from isr_broker.core.watermark import answer_to, refuses_fetch


def next_deadline(replica: Replica) -> Millis:
    """When the leader next wants a Tick; 0 for at once."""
    state = leading(replica)
    if candidates(replica):
        return 0
    times = [state.next_lag_check, *_deadlines(state.waiting), *_deadlines(state.fetches)]
    if state.pending and state.pending.in_flight:
        times.append(state.pending.sent_at + replica.settings.controller_socket_timeout_ms)
    return min(times)


def _deadlines(parked: Iterable[Waiting | ParkedFetch]) -> list[Millis]:
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
    effects: list[ReplicaEffect] = [
        AnswerProduce(request=w.request, partition=replica.partition, error=Error.REQUEST_TIMED_OUT) for w in late
    ]
    effects += [answer_to(replica, p.request) for p in fetches]
    replica, read = waited(replica, now)
    effects += read
    state = attrs.evolve(
        state,
        waiting=tuple(w for w in state.waiting if w.deadline > now),
        fetches=tuple(p for p in state.fetches if p.deadline > now),
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
    """Answers for everybody who waited for this replica: what became of it, another leader will say."""
    state, error = replica.role, Error.NOT_LEADER_OR_FOLLOWER
    if not isinstance(state, Leading):
        return sent_away(replica)
    return [
        *(AnswerProduce(request=w.request, partition=replica.partition, error=error) for w in state.waiting),
        *(refuses_fetch(replica, p.request, error) for p in state.fetches),
        *sent_away(replica),
    ]
