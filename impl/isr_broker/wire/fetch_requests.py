"""Fetch, of consumers and followers (KafkaApis.handleFetchRequest).

Each partition of a fetch is a question to its replica's core, which may park it; the fetch is answered as soon as any
partition is, or, a consumer's, when all together have `min_bytes` (DelayedFetch). The questions of a session stay with
their replicas, so the next fetch asks those only that have answered, or of which something else is asked. A fetch with
a replica id is a follower's: its leader's core takes it, or refuses it if it is from no follower.

A follower's fetch that nothing comes of is answered here when it has waited long enough, all of it at once: none of its
replicas wakes to say nothing. The next one tells them that the follower is still there. A replica that is at rest, with
all its records committed and the follower in sync, hears of that before it appends the next record, and no sooner:
until then it would change nothing. While traces are written each replica is told, and answers, for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

import attrs

from isr_broker.core.effects import AnswerConsume
from isr_broker.core.inputs import Consume
from isr_broker.core.messages import (
    BrokerId,
    Error,
    FetchRequest,
    FetchResponse,
    Message,
    Millis,
    Offset,
    TopicPartition,
)
from isr_broker.core.node import Node
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.core.stamps import Stamp, Stamped, bare, stamp_of, stamps_in, with_stamp, written
from isr_broker.core.topics import Topics, topic_id_of
from isr_broker.runtime import ClientAnswer, Runtime
from isr_broker.settings import RACK_AWARE
from isr_broker.wire.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    Open,
    Part,
    Said,
    Session,
    SessionCache,
)
from isr_broker.wire.protocol import HEADER_TAGS, Answer, Request

_TOLD_DIVERGENCE: Final = 12
"""Since this version a fetch says the epoch of the last record, and its answer where logs part (KIP-595)."""
_NAMED_BY_ID: Final = 13
_WITH_SESSIONS: Final = 7

_UNTIL_ASKED_AGAIN: Final[Millis] = 2**31 - 1
"""How long a replica parks a question that the next fetch of its session replaces."""

Reply: TypeAlias = Callable[[Answer], None]


@attrs.frozen
class _Asking:
    """What all partitions of a fetch have in common."""

    replica: BrokerId
    broker_epoch: int
    rack: str
    wait: Millis
    limit: int


@attrs.define
class FetchRequests:
    """The fetches of one broker.

    - `waits`: by follower and partition, the session and the part that a replica's next answer belongs to.
    - `parked`: sessions of followers whose fetch is answered in any case once it has waited long enough.
    - `ready`: sessions whose fetch is answered at the end of this turn.
    - `short`: partitions that have records, but fewer than `min_bytes`. Their replicas are asked again at the end of
      this turn, to answer when there are more.
    """

    runtime: Runtime
    topics: Callable[[], Topics]
    cache: SessionCache = attrs.field(init=False)
    waits: dict[tuple[BrokerId, TopicPartition], tuple[Session, Part]] = attrs.field(
        factory=dict[tuple[BrokerId, TopicPartition], tuple[Session, Part]]
    )
    parked: set[Session] = attrs.field(factory=set[Session])
    ready: list[Session] = attrs.field(factory=list[Session])
    short: list[tuple[Session, Part]] = attrs.field(factory=list[tuple[Session, Part]])

    def __attrs_post_init__(self) -> None:
        settings, start = self.runtime.settings, self.runtime.node.start
        self.cache = SessionCache(
            settings.max_incremental_fetch_session_cache_slots,
            first=(start.incarnation // 1_000 if start is not None else 0) % 2**31,
        )
        self.runtime.after_turn = self.flush
        self.runtime.before_append = self.catch_up

    # Requests

    def serve(self, request: Request, now: Millis, reply: Reply) -> None:
        """Answer a fetch, now or later."""
        body = request.body
        state = body.part("replica_state")
        replica = state.number("replica_id", body.number("replica_id"))
        limit = min(
            body.number("max_bytes", self.runtime.settings.fetch_max_bytes), self.runtime.settings.fetch_max_bytes
        )
        common = _Asking(
            replica, state.number("replica_epoch"), body.text("rack_id"), body.number("max_wait"), max(limit, 0)
        )
        session, full = self._session(request, replica, now)
        if isinstance(session, Error):
            reply({"error_code": session.value, "session_id": NO_SESSION, "responses": []})
            return
        consumer = replica < 0
        least = min(body.number("min_bytes", 1), common.limit) if consumer else 0
        opened = Open(reply, full, glancing=consumer, limit=common.limit, least=least, until=now + common.wait)
        session.open, session.wait = opened, common.wait
        self._asks(session, opened, common, now)
        if opened.glancing:
            opened.glancing = False
            opened.answered = opened.answered or common.wait <= 0 or _suffices(session, opened)
            if not opened.answered:
                # Not enough there at once: now every replica is asked to answer when there is more.
                short = [part for part in session.parts.values() if part.held is not None and part.held.news]
                for part in session.parts.values():
                    part.held = part.held if part in short else None
                self._asks(session, opened, common, now, common.wait)
                for part in short:
                    self._asks_more(session, part, opened, now)
        opened.asking = False
        waits_here = not consumer and _waits_as_one(session)
        if opened.answered or not session.parts or (waits_here and common.wait <= 0):
            self._replies(session)
        elif waits_here:
            self.parked.add(session)

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted."""
        return min((s.open.until for s in self.parked if s.open is not None), default=None)

    def tick(self, now: Millis) -> None:
        """Followers' fetches that have waited long enough are answered."""
        for session in [s for s in self.parked if s.open is None or s.open.until <= now]:
            self.parked.discard(session)
            if session.open is not None:
                self._replies(session)

    def _session(self, request: Request, replica: BrokerId, now: Millis) -> tuple[Session | Error, bool]:
        """The session that a request begins, continues, or does without; and whether all of it is to be told."""
        body, by_id = request.body, request.version >= _NAMED_BY_ID
        session_id, epoch = body.number("session_id", NO_SESSION), body.number("session_epoch", FINAL_EPOCH)
        if request.version < _WITH_SESSIONS:
            session_id, epoch = NO_SESSION, FINAL_EPOCH
        stamps = stamps_in(request.tags)
        if epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            found = self.cache.find(session_id, epoch, by_id)
            if isinstance(found, Session) and found.replica == replica:
                found.update(body, stamps, self._name)
                self.cache.continues(found, now)
                return found, False
            return found if isinstance(found, Error) else Error.FETCH_SESSION_ID_NOT_FOUND, False
        self.cache.ends(session_id)
        session = Session(replica, by_id=by_id)
        session.update(body, stamps, self._name)
        if replica >= 0 and request.version < _TOLD_DIVERGENCE:
            for part in session.parts.values():
                part.held = _error(part, Error.INVALID_REQUEST)
        elif epoch == INITIAL_EPOCH:
            self.cache.admits(session, now)
        return session, True

    # Questions to replicas

    def _asks(self, session: Session, opened: Open, common: _Asking, now: Millis, wait: Millis = 0) -> None:
        """Ask the replicas that do not have the question yet, until the answer is full (KIP-74)."""
        taken = 0
        for part in list(session.parts.values()):
            open_question = part.asked is not None and not self._must_hear(session, part, common, now)
            if part.held is None and not open_question and (taken == 0 or taken < common.limit):
                room = common.limit - taken if common.limit > taken else common.limit
                self._ask(session, part, common, min(part.max_bytes, room), now, wait)
            if part.held is not None:
                taken += part.held.size
                opened.answered = opened.answered or session.privileged

    def _ask(self, session: Session, part: Part, common: _Asking, size: int, now: Millis, wait: Millis) -> None:
        tp = self._partition(part)
        if tp is None:
            part.held = _error(part, Error.UNKNOWN_TOPIC_ID)
            return
        if session.privileged:
            self._ask_for_follower(session, part, common, tp, now)
            return
        replica = self.runtime.node.held.get(tp)
        refused = _refused(replica, part)
        prefers = preferred_read_replica(self.runtime.node, replica, common.rack, part.offset) if replica else None
        if refused is not None or prefers is not None:
            part.held = _error(part, refused or Error.NONE, prefers, replica.high_watermark if replica else -1)
            return
        told = Consume(request=0, partition=tp, offset=part.offset, max_bytes=size, max_wait_ms=wait)
        self._consumes(session, part, told, now)

    def _must_hear(self, session: Session, part: Part, common: _Asking, now: Millis) -> bool:
        """Whether a replica that has a follower's question is to hear, after each wait, that the follower is there."""
        if not session.privileged or part.stamp is not None or now - part.asked_at < common.wait:
            return False
        request = part.request
        if request is None or request.broker_epoch != common.broker_epoch:
            return True
        replica, known = self.runtime.node.held.get(request.partition), self.runtime.node.brokers.get(session.replica)
        is_over = known is not None and common.broker_epoch < known.epoch
        rests = replica is not None and _rests(replica, session.replica)
        return is_over or not rests or self.waits.get((session.replica, request.partition), _NOBODY)[1] is not part

    def catch_up(self, tp: TopicPartition) -> None:
        """A replica is about to append: now it hears which of its followers have asked again, and when they did.

        From here on it counts how long a follower has not been at the log end (Replica.updateFetchStateOrThrow).
        """
        replica = self.runtime.node.held.get(tp)
        if replica is None or not isinstance(replica.role, Leading):
            return
        for follower in replica.role.followers:
            session, part = self.waits.get((follower, tp), _NOBODY)
            if session is None or part is None or part.request is None or session.parts.get(part.key) is not part:
                continue
            if part.stamp is None and session.used_at - part.asked_at >= session.wait:
                part.asked_at = session.used_at
                self.runtime.received([(follower, self.runtime.me, part.request)], session.used_at)

    def _asks_more(self, session: Session, part: Part, opened: Open, now: Millis) -> None:
        """What there is of a partition is too little: its replica is asked once more, to answer when there is more."""
        tp, held = self._partition(part), part.held
        if tp is None or held is None or opened.answered:
            return
        room = opened.limit - (session.holds() - held.size)
        self._consumes(
            session,
            part,
            Consume(
                request=0,
                partition=tp,
                offset=part.offset,
                max_bytes=min(part.max_bytes, max(room, 1)),
                max_wait_ms=max(opened.until - now, 0),
                seen=held.watermark,
            ),
            now,
        )

    def _consumes(self, session: Session, part: Part, told: Consume, now: Millis) -> None:
        part.asked, part.seen = object(), told.seen
        then = partial(self._consumed, session, part, part.asked)
        self.runtime.ask(lambda number: attrs.evolve(told, request=number), then, now)

    def _partition(self, part: Part) -> TopicPartition | None:
        """Which partition a name or an id means now; None if there is no such id."""
        name = part.topic if isinstance(part.topic, str) else self._name(part.topic)
        return TopicPartition(name, part.number) if isinstance(part.topic, str) or name else None

    def _name(self, uuid: bytes) -> str:
        """The topic with an id; before this broker has learned of any, as its logs have it (PartitionMetadataFile)."""
        name, wanted = self.topics().name(uuid), topic_id_of(uuid)
        if name or not wanted or self.runtime.knows_itself():
            return name
        return next((tp.topic for tp, known in self.runtime.node.topic_ids.items() if known == wanted), "")

    def _ask_for_follower(self, session: Session, part: Part, common: _Asking, tp: TopicPartition, now: Millis) -> None:
        part.asked, part.asked_at = object(), now
        self.waits[session.replica, tp] = (session, part)
        if part.request is None or part.request.broker_epoch != common.broker_epoch:
            part.request = FetchRequest(
                partition=tp,
                replica=session.replica,
                broker_epoch=common.broker_epoch,
                leader_epoch=part.leader_epoch,
                offset=part.offset,
                last_epoch=part.last_epoch,
                log_start=part.log_start,
                max_wait_ms=common.wait if part.stamp is not None else _UNTIL_ASKED_AGAIN,
                max_bytes=part.max_bytes,
            )
        self.runtime.received([(session.replica, self.runtime.me, with_stamp(part.request, part.stamp))], now)

    # Answers of replicas

    def _consumed(self, session: Session, part: Part, token: object, answer: ClientAnswer, records: bytes) -> None:
        assert isinstance(answer, AnswerConsume)
        if part.asked is not token:
            return
        replica = self.runtime.node.held.get(answer.partition)
        fields: Answer = {
            "partition_index": part.number,
            "error_code": answer.error.value,
            "high_watermark": answer.high_watermark,
            "last_stable_offset": answer.high_watermark,
            "log_start_offset": replica.log.start if replica is not None else -1,
            "aborted_transactions": None,
            "records": records,
        }
        self._said(session, part, Said(fields, len(records), bool(records) or answer.error is not Error.NONE))

    def answered(self, to: BrokerId, sent: Message | Stamped) -> None:
        """The core of a replica has answered a follower; only the answer to its last question is told."""
        response = bare(sent)
        assert isinstance(response, FetchResponse)
        session, part = self.waits.get((to, response.partition), _NOBODY)
        if session is None or part is None or part.request is None:
            return
        asked = (part.request.leader_epoch, part.request.offset, part.request.last_epoch)
        if asked != (response.leader_epoch, response.offset, response.last_epoch):
            return
        del self.waits[to, response.partition]
        replica = self.runtime.node.held.get(response.partition)
        fails = response.error is not Error.NONE
        fields: dict[str, object] = {
            "partition_index": part.number,
            "error_code": response.error.value,
            "high_watermark": -1 if fails else response.high_watermark,
            "last_stable_offset": -1 if fails else response.high_watermark,
            "log_start_offset": replica.log.start if replica is not None else -1,
            "aborted_transactions": None,
            "records": response.records,
        }
        if response.diverging is not None:
            fields["diverging_epoch"] = {"epoch": response.diverging.epoch, "end_offset": response.diverging.end}
        news = fails or response.diverging is not None or bool(response.records)
        self._said(session, part, Said(fields, len(response.records), news, stamp_of(sent)))

    def _said(self, session: Session, part: Part, said: Said) -> None:
        """An answer for a partition: told with the fetch that is open, or with the next, if there is room."""
        part.asked = None
        if session.parts.get(part.key) is not part:
            return
        opened, tells = session.open, said.news or said.stamp is not None
        if opened is not None:
            part.held = said
            # A replica that had nothing, or no more than before, has waited as long as it was to.
            over = not opened.glancing and (not tells or said.watermark <= part.seen)
            if over or (tells and _suffices(session, opened)):
                opened.answered = True
                self.ready.append(session)
            elif not opened.glancing:
                self.short.append((session, part))
        elif tells and session.holds() + said.size <= self.runtime.settings.replica_fetch_response_max_bytes:
            part.held = said

    # Answers

    def flush(self, now: Millis) -> None:
        """What one turn of the broker has answered is told together."""
        short, self.short = self.short, []
        for session, part in short:
            if session.open is not None and session.parts.get(part.key) is part and part.asked is None:
                self._asks_more(session, part, session.open, now)
        ready, self.ready = self.ready, []
        for session in ready:
            if session.open is not None and session.open.answered and not session.open.asking:
                self._replies(session)

    def _replies(self, session: Session) -> None:
        opened = session.open
        assert opened is not None
        session.open = None
        self.parked.discard(session)
        topics: dict[str | bytes, list[Answer]] = {}
        stamps: dict[tuple[str, int], Stamp] = {}
        for part in list(session.parts.values()):
            said, part.held = part.held, None
            if said is None and opened.full:
                said = self._nothing_yet(part)
            elif said is None and session.privileged:
                said = self._moved(part)
            if said is None:
                continue
            if part.seen:
                # What it would answer to the question for more is nothing new by then.
                part.asked, part.seen = None, 0
            now = (said.fields["high_watermark"], said.fields["log_start_offset"])
            if opened.full or said.news or said.stamp is not None or now != part.told:
                topics.setdefault(part.topic, []).append(said.fields)
                part.told = None if said.fields["error_code"] else now
                if said.stamp is not None and part.request is not None:
                    stamps[part.request.partition.topic, part.number] = said.stamp
            if said.size:
                session.last(part)
        named = (
            ({"topic": t} if isinstance(t, str) else {"topic_id": t}) | {"partitions": p} for t, p in topics.items()
        )
        opened.reply({"session_id": session.id, "responses": list(named), HEADER_TAGS: written(stamps)})

    def _moved(self, part: Part) -> Said | None:
        """What a follower is told whose question is parked with its leader: a watermark or log start that has moved.

        FetchSession.CachedPartition.maybeUpdateResponseData.
        """
        if part.asked is None or part.request is None or part.stamp is not None:
            return None
        replica = self.runtime.node.held.get(part.request.partition)
        if replica is None or part.told == (replica.high_watermark, replica.log.start):
            return None
        if not isinstance(replica.role, Leading) or part.request not in [p.request for p in replica.role.fetches]:
            # It waits for the disk, or is refused: whether the follower has the beginning of this log is not known.
            return None
        return _error(part, Error.NONE, None, replica.high_watermark, replica)

    def _nothing_yet(self, part: Part) -> Said:
        """A partition that a full answer has to name, though its replica has not answered, or there was no room."""
        tp = self._partition(part)
        replica = self.runtime.node.held.get(tp) if tp is not None else None
        return _error(part, Error.NONE, None, replica.high_watermark if replica else -1, replica)


def _waits_as_one(session: Session) -> bool:
    """Whether the session waits for its partitions, and not each replica: no question has a stamp, or all have one."""
    return all(part.stamp is None for part in islice(session.parts.values(), 1))


_NOBODY: Final[tuple[Session | None, Part | None]] = (None, None)


def _rests(replica: Replica, follower: BrokerId) -> bool:
    """A leader with this follower in sync and nothing to commit: that it asks again changes only when it was heard."""
    role = replica.role
    return isinstance(role, Leading) and follower in role.isr and replica.high_watermark == replica.log.end


def _suffices(session: Session, opened: Open) -> bool:
    """What is held is worth an answer: an error, another replica, or as many bytes as were asked for.

    ReplicaManager.fetchMessages, DelayedFetch.tryComplete.
    """
    held = [part.held for part in session.parts.values() if part.held is not None]
    return sum(said.size for said in held) >= opened.least or any(said.news and not said.size for said in held)


def _refused(replica: Replica | None, part: Part) -> Error | None:
    """A consumer believes in another leader epoch than this replica does (KIP-320)."""
    if replica is None or part.leader_epoch in (-1, replica.leader_epoch):
        return None
    return Error.FENCED_LEADER_EPOCH if part.leader_epoch < replica.leader_epoch else Error.UNKNOWN_LEADER_EPOCH


def _error(
    part: Part, error: Error, prefers: BrokerId | None = None, watermark: int = -1, replica: Replica | None = None
) -> Said:
    """An answer without records."""
    fields: Answer = {
        "partition_index": part.number,
        "error_code": error.value,
        "high_watermark": watermark,
        "last_stable_offset": watermark,
        "log_start_offset": replica.log.start if replica is not None else -1,
        "aborted_transactions": None,
        "preferred_read_replica": -1 if prefers is None else prefers,
        "records": b"",
    }
    return Said(fields, news=error is not Error.NONE or prefers is not None)


def preferred_read_replica(node: Node, replica: Replica, rack: str, offset: Offset) -> BrokerId | None:
    """The follower that a consumer of this rack is sent to; None to stay, at a follower or at its own rack's leader.

    In sync, with a session, and with the offset: of several the one whose log is longest.
    """
    state = replica.role
    if not isinstance(state, Leading) or not rack or node.settings.replica_selector_class != RACK_AWARE:
        return None
    here = {b for b, broker in node.brokers.items() if broker.rack == rack and not broker.fenced}
    if replica.me in here:
        return None
    ends = {b: f.end for b, f in state.followers.items() if b in here & state.isr and f.end is not None}
    able = sorted((end, b) for b, end in ends.items() if replica.log.start <= offset <= end)
    return able[-1][1] if able else None
