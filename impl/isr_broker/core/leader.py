"""A leader: appends, takes fetches as acknowledgements, commits, and keeps the in-sync set.

Each function is one action of the model, under its name, and says where Kafka does it. Numbers in brackets are the
rules that re-implementations often miss, numbered as in `isr_model`:

- (1) The watermark is the smallest log end over the *maximal* ISR (`watermark.maximal_isr`).
- (2) It is held while the committed ISR is under `min.insync.replicas` (`watermark.may_commit`).
- (3) A fetch counts only in the leader's own epoch and only if it does not diverge.
- (4) A follower joins only past the start of the leader's epoch.
- (5) Only INELIGIBLE_REPLICA rolls a proposed ISR back.
- (6) A replica that returns without the mark of a clean shutdown is in no set from which a leader is chosen. This
  one is the controller's, and stands in `elections`.
- (7) The minimum is asked before the append, of the committed ISR, and after it, of the maximal one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs
from immutables import Map

from isr_broker import topic_configs
from isr_broker.core.deletion import given_up, sent_elsewhere
from isr_broker.core.effects import CONTROLLER, AnswerProduce, AppendLog, ReplicaEffect, Send
from isr_broker.core.inputs import Appended, LearnMetadata, Produce
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerId,
    EpochEnd,
    Error,
    FetchRequest,
    Millis,
    Offset,
    OffsetForLeaderEpochRequest,
    PartitionMetadata,
)
from isr_broker.core.producers import admission_of
from isr_broker.core.record_batch import stamped
from isr_broker.core.replica_state import (
    Follower,
    Leading,
    ParkedFetch,
    PendingIsr,
    ProducerAppend,
    Replica,
    Step,
    Waiting,
    WaitingDeletion,
    flushes,
    leading,
)
from isr_broker.core.truncation import epoch_end, parting, refuses_to_say, says_epoch_end
from isr_broker.core.watermark import (
    advance_watermark,
    answer_late_consumers,
    answer_to,
    commits,
    epoch_error,
    is_caught_up,
    maximal_isr,
    may_commit,
    out_of_range,
    refuses_fetch,
    sent_away,
)

# Appending.


def leader_is_asked_to_append(replica: Replica, produce: Produce, now: Millis) -> Step:
    """A producer's batches reach a leader, which checks and stamps them and has them written.

    (7) With acks=all they are refused while the committed ISR is under the minimum (NOT_ENOUGH_REPLICAS). A batch that
    the producer has sent before is not written again; its first answer is given again (KIP-98).
    """
    state = leading(replica)

    def refuse(error: Error) -> Step:
        return Step(replica, (AnswerProduce(request=produce.request, partition=replica.partition, error=error),))

    if produce.acks not in (-1, 0, 1):
        return refuse(Error.INVALID_REQUIRED_ACKS)
    if produce.acks == -1 and len(state.isr) < state.min_insync_replicas:
        return refuse(Error.NOT_ENOUGH_REPLICAS)
    admission = admission_of(replica.log.producers, produce.records, state.max_message_bytes, produce.verdict)
    if admission.error is not Error.NONE:
        return refuse(admission.error)
    if admission.duplicate is not None and not replica.settings.insync_design.append_retries:
        first, count = admission.duplicate
        return _answers_when_committed(replica, produce, first, first + count, now)
    first, end = replica.log.end, replica.log.end + admission.count
    write = AppendLog(
        partition=replica.partition,
        records=stamped(produce.records[: admission.size], first, replica.leader_epoch, admission.newest),
        flush=flushes(replica, end),
    )
    return Step(attrs.evolve(replica, pending_operation=ProducerAppend(produce, first)), (write,))


def leader_appends(replica: Replica, report: Appended, now: Millis) -> Step:
    """A producer's record is in the leader's log, in the leader's own epoch; parked fetches can be answered.

    With acks=1 this is the acknowledgement, and a leader alone in the ISR commits. ReplicaManager.appendRecords,
    Partition.appendRecordsToLeader.
    """
    assert isinstance(replica.pending_operation, ProducerAppend)
    produce, first = replica.pending_operation.produce, replica.pending_operation.first
    replica = attrs.evolve(replica, log=report.log, pending_operation=None)
    step = _answers_when_committed(replica, produce, first, report.log.end, now)
    members = maximal_isr(step.core)
    watermark = advance_watermark(step.core, leading(step.core).isr, members, now)
    replica, committed = commits(step.core, members, watermark)
    state = leading(replica)
    fetched = [answer_to(replica, parked.request) for parked in state.fetches]
    replica = attrs.evolve(replica, role=attrs.evolve(state, fetches=()))
    return Step(replica, (*step.effects, *committed, *fetched), "leader_appends")


def _answers_when_committed(replica: Replica, produce: Produce, first: Offset, end: Offset, now: Millis) -> Step:
    """acks=0: no answer; acks=1, or committed already: at once; acks=all: when the watermark reaches `end`."""
    state = leading(replica)
    if produce.acks == -1 and replica.high_watermark < end:
        waiting = Waiting(request=produce.request, first=first, end=end, deadline=now + produce.timeout_ms)
        return Step(attrs.evolve(replica, role=attrs.evolve(state, waiting=(*state.waiting, waiting))))
    if produce.acks == 0:
        return Step(replica)
    return Step(replica, (AnswerProduce(request=produce.request, partition=replica.partition, offset=first),))


# Fetching.


def takes(replica: Replica, fetch: FetchRequest | OffsetForLeaderEpochRequest) -> Error:
    """(3) Whether this fetch is for this leader, in the very epoch in which it leads (KIP-320), by a living replica.

    A follower of an old version says neither its leader epoch nor its broker epoch, and is taken. A stranger that names
    the right leader epoch may only be ahead of this broker's metadata (Partition.followerReplicaOrThrow).
    """
    names_epoch = replica.settings.insync_design.fences_fetches and fetch.leader_epoch != NO_EPOCH
    wrong = epoch_error(replica, fetch.leader_epoch) if names_epoch else Error.NONE
    if wrong is not Error.NONE:
        return wrong
    known = leading(replica).followers.get(fetch.replica)
    if known is None:
        return Error.UNKNOWN_LEADER_EPOCH if names_epoch else Error.NOT_LEADER_OR_FOLLOWER
    if isinstance(fetch, FetchRequest) and NO_BROKER_EPOCH != fetch.broker_epoch < known.broker_epoch:
        return Error.NOT_LEADER_OR_FOLLOWER
    return Error.NONE


def leader_answers_fetch(replica: Replica, fetch: FetchRequest, now: Millis) -> Step:
    """A leader takes a follower's fetch as its acknowledgement, moves the watermark, and answers or parks it.

    A parked fetch has been taken; only its answer is later. ReplicaManager.fetchMessages,
    Partition.updateFollowerFetchState (recordFetchPosition), maybeIncrementLeaderHW (tryAdvanceHW).
    """
    error = takes(replica, fetch)
    if error is not Error.NONE:
        effects: list[ReplicaEffect] = []
        if replica.settings.insync_design.refused_fetch_counts and fetch.replica in leading(replica).followers:
            replica, effects = _acknowledges(replica, fetch, now)
        return Step(replica, (*effects, refuses_fetch(replica, fetch, error)))
    if fetch.offset < replica.log.start:
        # Nothing to send, whether or not they part: the follower begins anew where this log does.
        return Step(replica, (out_of_range(replica, fetch),))
    parts = parting(replica, fetch)
    if parts is not None:
        return leader_answers_diverging(replica, fetch, parts)
    if fetch.offset > replica.log.end and not replica.settings.insync_design.acknowledges_past_end:
        # Only a follower whose log is empty is above the end without diverging: its fetch has no last epoch. Counted as
        # an acknowledgement, it would commit what this leader writes next without having it.
        return Step(replica, (out_of_range(replica, fetch),))
    replica, effects = _acknowledges(replica, fetch, now)
    if fetch.offset < replica.log.end or fetch.max_wait_ms == 0:
        return Step(replica, (*effects, answer_to(replica, fetch)), "leader_answers_fetch")
    state = leading(replica)
    parked = ParkedFetch(fetch, now + fetch.max_wait_ms)
    return Step(
        attrs.evolve(replica, role=attrs.evolve(state, fetches=(*state.fetches, parked))),
        tuple(effects),
        "leader_answers_fetch",
    )


def _acknowledges(replica: Replica, fetch: FetchRequest, now: Millis) -> tuple[Replica, list[ReplicaEffect]]:
    """The follower has everything before its fetch offset."""
    state = leading(replica)
    seen = _follower_after_fetch(replica, state.followers[fetch.replica], fetch, now)
    others = tuple(p for p in state.fetches if p.request.replica != fetch.replica)
    state = attrs.evolve(state, followers=state.followers.set(fetch.replica, seen), fetches=others)
    replica = attrs.evolve(replica, role=state)
    members = maximal_isr(replica)
    replica, effects = commits(replica, members, advance_watermark(replica, state.isr, members, now))
    return _may_join(replica, fetch.replica), effects


def _follower_after_fetch(replica: Replica, before: Follower, fetch: FetchRequest, now: Millis) -> Follower:
    """Where the follower is now, and when it last had everything (Replica.updateFetchStateOrThrow)."""
    caught_up = before.caught_up_at
    if fetch.offset >= replica.log.end:
        caught_up = now if caught_up is None else max(caught_up, now)
    elif before.end is not None and fetch.offset >= before.leader_end_then:
        caught_up = before.fetched_at if caught_up is None else max(caught_up, before.fetched_at)
    return Follower(
        end=fetch.offset,
        broker_epoch=fetch.broker_epoch,
        caught_up_at=caught_up,
        fetched_at=now,
        leader_end_then=replica.log.end,
        log_start=fetch.log_start,
    )


def leader_answers_diverging(replica: Replica, fetch: FetchRequest, parts: EpochEnd) -> Step:
    """A leader tells a follower where their logs part; such a fetch acknowledges nothing (3) (KAFKA-13141).

    Nor does the answer carry a watermark (KAFKA-14704). Partition.readRecords, lastOffsetForLeaderEpoch.
    """
    return Step(replica, (answer_to(replica, fetch, parts),), "leader_answers_diverging")


def leader_answers_epoch_end(replica: Replica, request: OffsetForLeaderEpochRequest) -> Step:
    """A leader says where an epoch ends in its log, if it knows (before KIP-595; lastOffsetForLeaderEpoch)."""
    error = takes(replica, request)
    if error is not Error.NONE:
        return Step(replica, (refuses_to_say(replica.me, request, error),))
    ends = epoch_end(replica, request.last_epoch)
    action = "leader_answers_undefined_epoch" if ends == UNDEFINED_EPOCH_END else "leader_answers_epoch_end"
    return Step(replica, (says_epoch_end(replica.me, request, ends),), action)


# The in-sync set.


def free_to_ask(replica: Replica) -> bool:
    """Nothing that it asked is undecided as far as the leader knows."""
    return leading(replica).pending is None


def _asks(replica: Replica, isr: frozenset[BrokerId], now: Millis) -> Step:
    """AlterPartition for another ISR of the metadata that the leader knows (KIP-497)."""
    state = leading(replica)
    request = AlterPartitionRequest(
        partition=replica.partition,
        leader=replica.me,
        broker_epoch=replica.broker_epoch,
        leader_epoch=replica.leader_epoch,
        partition_epoch=replica.partition_epoch,
        isr=tuple(
            (m, state.followers[m].broker_epoch if m != replica.me else replica.broker_epoch) for m in sorted(isr)
        ),
    )
    return asks_controller(attrs.evolve(replica, role=attrs.evolve(state, joining=state.joining - isr)), request, now)


def asks_controller(replica: Replica, request: AlterPartitionRequest, now: Millis) -> Step:
    """Send a request for the first time, or once more because no answer came; only the last copy's answer is heard.

    NodeToControllerRequestThread, which sends on another connection, and so hears nothing of the copies before.
    """
    state = leading(replica)
    request = attrs.evolve(request, attempt=state.attempts + 1, broker_epoch=replica.broker_epoch)
    state = attrs.evolve(state, attempts=request.attempt, pending=PendingIsr(request=request, sent_at=now))
    return Step(attrs.evolve(replica, role=state), (Send(CONTROLLER, request),))


def lagging(replica: Replica, now: Millis) -> frozenset[BrokerId]:
    """Members that have not been at the log end for replica.lag.time.max.ms (Partition.getOutOfSyncReplicas)."""
    state = leading(replica)
    members = state.isr - {replica.me}
    return frozenset(m for m in members if not is_caught_up(replica, state.followers[m], now))


def leader_proposes_shrink(replica: Replica, now: Millis) -> Step:
    """A leader asks to drop the members that lag, all in one request (Partition.maybeShrinkIsr)."""
    state = leading(replica)
    next_check = now + max(1, replica.settings.replica_lag_time_max_ms // 2)
    replica = attrs.evolve(replica, role=attrs.evolve(state, next_lag_check=next_check))
    behind = lagging(replica, now)
    if behind and free_to_ask(replica):
        step = _asks(replica, state.isr - behind, now)
        return attrs.evolve(step, action="leader_proposes_shrink")
    if not replica.settings.insync_waits_for_joiners:
        return Step(replica)
    # Nobody to wait for may be left among those who were about to join.
    members = maximal_isr(replica)
    replica, effects = commits(replica, members, advance_watermark(replica, state.isr, members, now))
    return Step(replica, tuple(effects))


def _may_join(replica: Replica, broker: BrokerId) -> Replica:
    """Note, after its fetch, whether a follower may be proposed; Kafka asks only then (Partition.maybeExpandIsr)."""
    state = leading(replica)
    joins = broker not in state.isr and broker not in state.ineligible and is_in_sync(replica, broker)
    joining = state.joining | {broker} if joins else state.joining - {broker}
    return replica if joining == state.joining else attrs.evolve(replica, role=attrs.evolve(state, joining=joining))


def is_in_sync(replica: Replica, broker: BrokerId) -> bool:
    """The follower was seen at or past the watermark, and (4) the start of the leader's epoch (isFollowerInSync).

    At the watermark alone it may lack what an earlier leader committed (KAFKA-7128). Model: caught_up,
    past_epoch_start.
    """
    state = leading(replica)
    end = state.followers[broker].end
    if end is None or end < replica.high_watermark:
        return False
    design = replica.settings.insync_design
    if design.watermark_past_epoch_start and replica.high_watermark < state.epoch_start:
        return False
    return not design.joins_past_epoch_start or end >= state.epoch_start


def candidates(replica: Replica) -> list[BrokerId]:
    """Followers that can be proposed now."""
    state = leading(replica)
    joins = state.joining - state.ineligible - state.isr if free_to_ask(replica) else frozenset[BrokerId]()
    return sorted(b for b in joins if is_in_sync(replica, b))


def leader_proposes_expansion(replica: Replica, broker: BrokerId, now: Millis) -> Step:
    """A leader asks to add a follower that has caught up; from now on it counts for the watermark (1)."""
    step = _asks(replica, leading(replica).isr | {broker}, now)
    return attrs.evolve(step, action="leader_proposes_expansion")


def leader_hears(replica: Replica, answer: AlterPartitionResponse, now: Millis) -> Step:
    """An answer to an AlterPartition, if the leader still waits for it (AlterPartitionManager's callback)."""
    state = leading(replica)
    asked = state.pending.request if state.pending and state.pending.in_flight else None
    if asked is None or (asked.leader_epoch, asked.attempt) != (answer.leader_epoch, answer.attempt):
        return Step(replica)
    news = (answer.new_leader_epoch, answer.new_partition_epoch)
    if answer.error is Error.NONE and news[0] == replica.leader_epoch and news[1] >= replica.partition_epoch:
        return leader_adopts_isr(replica, answer.new_partition_epoch, now)
    if answer.error is Error.INELIGIBLE_REPLICA or replica.settings.insync_design.roll_back_on_unknown_outcome:
        return leader_rolls_back(replica)
    assert state.pending is not None
    if answer.error in _RETRIABLE_ERRORS:
        # The tick sends the same request once more.
        due = now + _RETRY_MS - replica.settings.controller_socket_timeout_ms
        again = attrs.evolve(state.pending, sent_at=due)
        return Step(attrs.evolve(replica, role=attrs.evolve(state, pending=again)))
    # (5) Any other answer leaves open what became of the request.
    unsettled = attrs.evolve(state.pending, in_flight=False)
    return Step(attrs.evolve(replica, role=attrs.evolve(state, pending=unsettled)))


_RETRY_MS: Final = 50
"""After this time a request is sent again that failed for no reason of its own (DefaultAlterPartitionManager)."""

_RETRIABLE_ERRORS: Final = frozenset({Error.STALE_BROKER_EPOCH, Error.UNKNOWN_SERVER_ERROR, Error.NOT_CONTROLLER})
"""Errors that say nothing about the request: Kafka's leader retries it (Partition.handleAlterPartitionError)."""


def leader_adopts_isr(replica: Replica, partition_epoch: int, now: Millis) -> Step:
    """A leader learns that its ISR was accepted, and moves the watermark under it (handleAlterPartitionUpdate)."""
    state = leading(replica)
    assert state.pending is not None
    isr = state.pending.isr
    replica = attrs.evolve(
        replica,
        partition_epoch=partition_epoch,
        role=attrs.evolve(state, isr=isr, pending=None),
    )
    replica, effects = commits(replica, isr, advance_watermark(replica, isr, isr, now))
    return Step(replica, tuple(effects), "leader_adopts_isr")


def leader_rolls_back(replica: Replica) -> Step:
    """(5) A leader learns that a proposed member is ineligible, and stops counting it (handleAlterPartitionError).

    It asks again when the follower has fetched again.
    """
    return Step(
        attrs.evolve(replica, role=attrs.evolve(leading(replica), pending=None, joining=frozenset[BrokerId]())),
        (),
        "leader_rolls_back",
    )


# What the controller says.


def _largest_batch(replica: Replica, news: LearnMetadata) -> int:
    """What the topic's own settings and this broker's come to."""
    return topic_configs.largest_batch(dict(news.metadata.configs), replica.settings)


def becomes_leader(replica: Replica, news: LearnMetadata, log: LogView, now: Millis) -> Step:
    """A replica learns that it leads in a new epoch, the start of which it has noted in its log.

    Alone in the ISR it commits its whole log; of the others it knows nothing yet, whatever it knew before. ISR
    members count as caught up now, the others never. Partition.makeLeader.
    """
    metadata, lag = news.metadata, replica.settings.replica_lag_time_max_ms
    others = [b for b in metadata.replicas if b != replica.me]
    state = Leading(
        isr=metadata.isr,
        followers=Map({b: Follower(caught_up_at=now if b in metadata.isr else None) for b in others}),
        epoch_start=log.end,
        min_insync_replicas=metadata.effective_min_isr,
        max_message_bytes=_largest_batch(replica, news),
        next_lag_check=now + max(1, lag // 2),
        ineligible=news.ineligible,
    )
    replica = attrs.evolve(
        replica,
        log=log,
        metadata=metadata,
        partition_epoch=metadata.partition_epoch,
        role=state,
        pending_operation=None,
    )
    watermark = replica.high_watermark
    if metadata.isr == frozenset({replica.me}) and may_commit(replica, metadata.isr):
        watermark = log.end
    return Step(attrs.evolve(replica, high_watermark=watermark), (), "becomes_leader")


def leader_learns_isr(replica: Replica, news: LearnMetadata, now: Millis) -> Step:
    """A leader learns newer metadata of its own epoch, which settles whatever it had asked (makeLeader)."""
    metadata, state = news.metadata, leading(replica)
    followers = _followers_of(state, metadata, replica.me)
    state = attrs.evolve(
        state,
        isr=metadata.isr,
        followers=followers,
        joining=state.joining & set(followers),
        pending=None,
        ineligible=news.ineligible,
        min_insync_replicas=metadata.effective_min_isr,
        max_message_bytes=_largest_batch(replica, news),
    )
    replica = attrs.evolve(replica, metadata=metadata, partition_epoch=metadata.partition_epoch, role=state)
    replica, effects = commits(replica, metadata.isr, advance_watermark(replica, metadata.isr, metadata.isr, now))
    return Step(replica, tuple(effects), "leader_learns_isr")


def _followers_of(state: Leading, metadata: PartitionMetadata, me: BrokerId) -> Map[BrokerId, Follower]:
    """What it knows of each other replica; those that are new it has not heard of yet (updateAssignmentAndIsr)."""
    others = set(metadata.replicas) - {me}
    if others == set(state.followers):
        return state.followers
    return Map({b: state.followers.get(b, Follower()) for b in others})


def next_deadline(replica: Replica) -> Millis:
    """When the leader next wants a Tick; 0 for at once."""
    state = leading(replica)
    if candidates(replica):
        return 0
    times = [state.next_lag_check, *_deadlines(state.waiting), *_deadlines(state.fetches)]
    times += _deadlines(state.deletions)
    if state.pending and state.pending.in_flight:
        times.append(state.pending.sent_at + replica.settings.controller_socket_timeout_ms)
    return min(times)


def _deadlines(waiters: Iterable[Waiting | ParkedFetch | WaitingDeletion]) -> list[Millis]:
    return [p.deadline for p in waiters]


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
    replica, read = answer_late_consumers(replica, now)
    replica, forgone = given_up(replica, now)
    effects += read + forgone
    state = attrs.evolve(
        leading(replica),
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


def learns_minimum(replica: Replica, news: LearnMetadata, now: Millis) -> Step:
    """A leader learns who cannot join now, and the topic's settings, if they were changed.

    A smaller minimum may let the watermark move. No action of the model, whose minimum is fixed.
    """
    state, minimum = leading(replica), news.metadata.effective_min_isr
    role = attrs.evolve(
        state,
        ineligible=news.ineligible,
        min_insync_replicas=minimum,
        max_message_bytes=_largest_batch(replica, news),
    )
    replica = attrs.evolve(replica, role=role)
    if minimum == state.min_insync_replicas:
        return Step(replica)
    members = maximal_isr(replica)
    replica, effects = commits(replica, members, advance_watermark(replica, state.isr, members, now))
    return Step(replica, tuple(effects))


def steps_down(replica: Replica, fenced: bool = False) -> list[ReplicaEffect]:
    """The replica stops leading: every parked request is answered with NOT_LEADER_OR_FOLLOWER.

    The producers' records may or may not survive; only the next leader knows. Without an answer the clients would wait
    until they time out. A follower's fetch is of the epoch that is over: `fenced`, it is told FENCED_LEADER_EPOCH
    (DelayedFetch.tryComplete).
    """
    state, error = replica.role, Error.NOT_LEADER_OR_FOLLOWER
    if not isinstance(state, Leading):
        return sent_away(replica)
    return [
        *(AnswerProduce(request=w.request, partition=replica.partition, error=error) for w in state.waiting),
        *(refuses_fetch(replica, p.request, Error.FENCED_LEADER_EPOCH if fenced else error) for p in state.fetches),
        *sent_elsewhere(replica),
        *sent_away(replica),
    ]
