"""Fetch, of consumers and followers (KafkaApis.handleFetchRequest): one request, from its arrival to its answer.

A fetch is about the partitions of its session (`fetch_sessions`). Each is a question to its replica's core, which may
park it (`fetch_questions`). The questions of a session stay with their replicas, so the next fetch asks only those that
have answered, or of which something else is asked. A fetch goes this way, and the functions here stand in this order:

    serve           the session is begun or continued, and the fetch is open
      LOOKS         only a consumer's: each replica says what there is at once
      ASKS          each replica without a question gets one, to answer when there is more
      WAITS         all are asked
    takes           a replica has answered: its answer waits in the partition, and the fetch may be due
    end_of_turn     what is due is sent; where there is too little, the replica is asked for more
    tick            a fetch has waited long enough, and is due, where no replica says so
    _send           the answer is sent, and the fetch is closed

Thousands of replicas are asked in turns, and what follows on the connection waits. No other request can continue the
session meanwhile.

A follower's fetch is due as soon as any of its replicas has something to say. A consumer's is due when all together
have `min_bytes`, when there is an error, or when a replica has waited as long as it was to (DelayedFetch). A follower's
fetch that nothing comes of is due here, all of it at once: none of its replicas wakes to say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from itertools import islice
from typing import Final, cast

import attrs

from isr_broker.core.messages import BrokerId, Error, Millis, TopicPartition
from isr_broker.core.stamps import Stamp, stamp_tags, stamps_in
from isr_broker.core.topics import Topics
from isr_broker.runtime import Runtime
from isr_broker.wire.cluster_ids import names_another_cluster
from isr_broker.wire.fetch_questions import FetchQuestions, part_answer
from isr_broker.wire.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    Fetch,
    Part,
    PartAnswer,
    Reply,
    Session,
    SessionCache,
    Stage,
)
from isr_broker.wire.leader_hints import FETCH_ERRORS, SINCE_FETCH, endpoints, leader_hint
from isr_broker.wire.protocol import HEADER_TAGS, Answer, Request
from isr_broker.wire.turns import Gate, Work

_WITH_DIVERGENCE: Final = 12
"""Since this version a fetch says the epoch of the last record, and its answer where logs part (KIP-595)."""
_WITH_TOPIC_IDS: Final = 13
_WITH_SESSIONS: Final = 7
_ASKED_AT_ONCE: Final = 1_000
"""Partitions that are looked at in one turn."""
OF_A_PART: Final = 1 << 10
"""Bytes of a partition that a consumer's fetch asks about, until its answer was taken."""


@attrs.define
class FetchRequests:
    """The fetches of one broker.

    - `due`: sessions whose fetch is answered at the end of this turn.
    - `short`: partitions whose replica has answered, while their fetch is not due. At the end of this turn their
      replicas are asked for more.
    - `timers`: sessions whose fetch is due once it has waited long enough, because no replica says so: those of
      followers, and of consumers where a replica has the question of an earlier fetch, which waits longer.
    - `owners`: of each connection of clients the sessions that it fetched last.
    - `later`: does something long a piece at a time.
    - `room`: how many bytes of records a consumer's fetch may have now.
    """

    runtime: Runtime
    topics: Callable[[], Topics]
    cache: SessionCache = attrs.field(init=False)
    questions: FetchQuestions = attrs.field(init=False)
    due: list[Session] = attrs.field(factory=list[Session])
    short: list[tuple[Session, Part]] = attrs.field(factory=list[tuple[Session, Part]])
    timers: set[Session] = attrs.field(factory=set[Session])
    owners: dict[Hashable | None, set[Session]] = attrs.field(factory=dict[Hashable | None, set[Session]])
    later: Callable[[Work], None] = attrs.field(init=False)
    room: Callable[[], int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        settings, start = self.runtime.settings, self.runtime.node.start
        self.room = lambda: settings.fetch_max_bytes
        self.cache = SessionCache(
            settings.max_incremental_fetch_session_cache_slots,
            first=(start.incarnation // 1_000 if start is not None else 0) % 2**31,
        )
        self.questions = FetchQuestions(self.runtime, self.topics, self.takes)
        self.cache.is_over = self._ends
        self.runtime.after_turn = self.end_of_turn
        self.runtime.before_append = self.questions.catch_up

    # The request

    def serve(self, request: Request, now: Millis, reply: Reply, gate: Gate | None = None) -> Work:
        """Answer a fetch, now or later; the work is done when all replicas are asked."""
        body = request.body
        if names_another_cluster(request, self.runtime.cluster):
            reply({"error_code": Error.INCONSISTENT_CLUSTER_ID.value, "session_id": NO_SESSION, "responses": []})
            return
        replica = body.part("replica_state").number("replica_id", body.number("replica_id"))
        session, full = self._session(request, replica, now)
        if isinstance(session, Error):
            reply({"error_code": session.value, "session_id": NO_SESSION, "responses": []})
            return
        fetch = self._opens(session, request, reply, full, now)
        if gate is not None and gate.owner is not None and not session.is_privileged:
            self._is_of(session, gate.owner)
            gate.holds(OF_A_PART * len(session.parts))
        now = yield from self._ask(session, fetch, now)
        if fetch.stage is Stage.LOOKS:
            fetch.due = fetch.due or fetch.wait <= 0 or _suffices(session, fetch)
            if not fetch.due:
                yield from self._ask_those_with_little(session, fetch, now)
        if session.fetch is not fetch:
            return
        fetch.stage = Stage.WAITS
        waits_as_one = session.is_privileged and _waits_as_one(session)
        if fetch.due or not session.parts or (waits_as_one and fetch.wait <= 0):
            self._send(session)
        elif waits_as_one or any(part.waits_until > fetch.until for part in session.parts.values()):
            self.timers.add(session)

    def _session(self, request: Request, replica: BrokerId, now: Millis) -> tuple[Session | Error, bool]:
        """The session that a request begins, continues, or does without; and whether its answer is to be full."""
        body, by_id = request.body, request.version >= _WITH_TOPIC_IDS
        session_id, epoch = body.number("session_id", NO_SESSION), body.number("session_epoch", FINAL_EPOCH)
        if request.version < _WITH_SESSIONS:
            session_id, epoch = NO_SESSION, FINAL_EPOCH
        stamps = stamps_in(request.tags)
        if epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            session = self.cache.find(session_id, epoch, by_id)
            if isinstance(session, Session) and session.is_asking:
                return Error.INVALID_FETCH_SESSION_EPOCH, False
            if isinstance(session, Session) and session.replica == replica:
                if session.fetch is not None and not session.is_privileged:
                    # It goes on elsewhere: whoever waits on another connection is answered with what there is.
                    self._send(session)
                self._withdraws(session.update(body, stamps, self.questions.topic_name))
                self.cache.continues(session, now)
                return session, False
            return session if isinstance(session, Error) else Error.FETCH_SESSION_ID_NOT_FOUND, False
        self.cache.ends(session_id)
        session = Session(replica, by_id=by_id)
        session.update(body, stamps, self.questions.topic_name)
        if replica >= 0 and request.version < _WITH_DIVERGENCE:
            for part in session.parts.values():
                part.answer = part_answer(part, Error.INVALID_REQUEST)
        elif epoch == INITIAL_EPOCH:
            self.cache.admits(session, now)
        return session, True

    def _opens(self, session: Session, request: Request, reply: Reply, full: bool, now: Millis) -> Fetch:
        body, most = request.body, self.runtime.settings.fetch_max_bytes
        wait, consumer = body.number("max_wait"), not session.is_privileged
        limit = max(min(body.number("max_bytes", most), most, self.room() if consumer else most), 0)
        session.wait, session.fetch = (
            wait,
            Fetch(
                reply=reply,
                full=full,
                broker_epoch=body.part("replica_state").number("replica_epoch"),
                rack=body.text("rack_id"),
                limit=limit,
                least=min(body.number("min_bytes", 1), limit) if consumer else 0,
                wait=wait,
                until=now + wait,
                stage=Stage.LOOKS if consumer else Stage.ASKS,
                hints=request.version >= SINCE_FETCH,
            ),
        )
        return session.fetch

    def _ask(self, session: Session, fetch: Fetch, now: Millis) -> Generator[None, Millis, Millis]:
        """Ask the replicas that do not have the question yet, until the answer is full (KIP-74); the time then."""
        size = 0
        for number, part in enumerate(list(session.parts.values())):
            if number % _ASKED_AT_ONCE == _ASKED_AT_ONCE - 1:
                now = yield
            has_question = part.question is not None and not self.questions.repeats(session, part, fetch, now)
            if part.answer is None and not has_question and (size == 0 or size < fetch.limit):
                room = fetch.limit - size if fetch.limit > size else fetch.limit
                self.questions.ask(session, part, fetch, min(part.max_bytes, room), now)
            if part.answer is not None:
                size += part.answer.size
                fetch.due = fetch.due or session.is_privileged
        return now

    def _ask_those_with_little(self, session: Session, fetch: Fetch, now: Millis) -> Work:
        """What there was at once does not suffice: now every replica is asked to answer when there is more."""
        fetch.stage = Stage.ASKS
        parts = list(session.parts.values())
        little = [part for part in parts if part.answer is not None and part.answer.news]
        for part in parts:
            part.answer = part.answer if part.answer is not None and part.answer.news else None
        now = yield from self._ask(session, fetch, now)
        for number, part in enumerate(little):
            if number % _ASKED_AT_ONCE == _ASKED_AT_ONCE - 1:
                now = yield
            self.questions.ask_for_more(session, part, fetch, now)

    # Answers of replicas

    def takes(self, session: Session, part: Part, answer: PartAnswer) -> None:
        """A replica's answer: it is sent with the fetch that is open, or with the next, if there is room."""
        part.question = None
        if session.parts.get(part.key) is not part:
            return
        fetch = session.fetch
        if fetch is None:
            if answer.news and session.size + answer.size <= self.runtime.settings.replica_fetch_response_max_bytes:
                session.puts(part, answer)
            return
        session.puts(part, answer)
        if fetch.stage is Stage.LOOKS:
            return
        # A replica that had nothing, or no more than before, has waited as long as it was to, for whichever fetch.
        has_waited = session.is_privileged or part.waits_until >= fetch.until
        is_late = has_waited and (not answer.news or answer.watermark <= part.more_than)
        if is_late or (answer.news and _is_enough(session, fetch, answer)):
            fetch.due = True
            self.due.append(session)
        else:
            self.short.append((session, part))

    def end_of_turn(self, now: Millis) -> None:
        """What one turn of the broker has brought is sent together."""
        short, self.short = self.short, []
        for session, part in short:
            if session.fetch is not None and session.parts.get(part.key) is part and part.question is None:
                self.questions.ask_for_more(session, part, session.fetch, now)
        due, self.due = self.due, []
        for session in due:
            if session.fetch is not None and session.fetch.due and session.fetch.stage is Stage.WAITS:
                self._send(session)

    # Time

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted."""
        return min((s.fetch.until for s in self.timers if s.fetch is not None), default=None)

    def tick(self, now: Millis) -> None:
        """Fetches that have waited long enough are answered, where no replica says so."""
        for session in [s for s in self.timers if s.fetch is None or s.fetch.until <= now]:
            self.timers.discard(session)
            if session.fetch is not None:
                self._send(session)

    # The answer

    def _send(self, session: Session) -> None:
        fetch = session.fetch
        assert fetch is not None
        session.fetch = None
        self.timers.discard(session)
        topics: dict[str | bytes, list[Answer]] = {}
        stamps: dict[tuple[str, int], Stamp] = {}
        leaders: list[BrokerId] = []
        with_little: list[Part] = []
        for part in list(session.parts.values()):
            answer = self._part_to_send(session, part, fetch)
            if answer is None:
                continue
            if part.more_than:
                # What it would answer to the question for more is nothing new by then.
                with_little.append(part)
                part.more_than = 0
            if fetch.full or answer.news or answer.position != part.position:
                hint = self._leader_hint(part, answer) if fetch.hints else None
                if hint is not None:
                    leaders.append(cast("int", hint["leader_id"]))
                hints = {} if hint is None else {"current_leader": hint}
                topics.setdefault(part.topic, []).append({**answer.fields, **hints})
                part.position = None if answer.fields["error_code"] else answer.position
                if answer.stamp is not None and part.request is not None:
                    stamps[part.request.partition.topic, part.number] = answer.stamp
            if answer.size:
                session.last(part)
        self._withdraws(with_little)
        topic_rows = (
            ({"topic": t} if isinstance(t, str) else {"topic_id": t}) | {"partitions": p} for t, p in topics.items()
        )
        fields: dict[str, object] = {
            "session_id": session.id,
            "responses": list(topic_rows),
            HEADER_TAGS: stamp_tags(stamps),
        }
        if leaders:
            fields["node_endpoints"] = endpoints(self.runtime.node, leaders)
        fetch.reply(fields)
        if self.cache.sessions.get(session.id) is not session:
            self._ends(session)

    # Who is gone

    def _is_of(self, session: Session, owner: Hashable | None) -> None:
        """A session is of the connection that fetched last."""
        if session.owner == owner:
            return
        if (sessions := self.owners.get(session.owner)) is not None:
            sessions.discard(session)
            if not sessions:
                del self.owners[session.owner]
        session.owner = owner
        if owner is not None:
            self.owners.setdefault(owner, set()).add(session)

    def abandon(self, owner: Hashable, now: Millis) -> Work:
        """A connection is gone: no replica need wait for it, not even for the time that it gave."""
        parts: list[Part] = []
        for session in self.owners.pop(owner, ()):
            session.fetch = session.owner = None
            parts += session.parts.values()
        yield from self._withdrawal(self._take_back(parts), now)

    def _ends(self, session: Session) -> None:
        """A session is over. What waits for it is withdrawn, unless its fetch is still to be answered."""
        if session.fetch is None and not session.is_privileged:
            self._is_of(session, None)
            self._withdraws(session.parts.values())

    def _withdraws(self, parts: Iterable[Part]) -> None:
        if questions := self._take_back(parts):
            self.later(self._withdrawal(questions))

    def _take_back(self, parts: Iterable[Part]) -> list[tuple[TopicPartition, int]]:
        return [question for part in parts if (question := self.questions.take_back(part)) is not None]

    def _withdrawal(self, questions: Sequence[tuple[TopicPartition, int]], now: Millis | None = None) -> Work:
        """Replicas hear that nobody waits for these; from the next turn on without a time."""
        if now is None:
            now = yield
        for number, question in enumerate(questions):
            if number % _ASKED_AT_ONCE == _ASKED_AT_ONCE - 1:
                now = yield
            self.runtime.withdraw(*question, now)

    def _leader_hint(self, part: Part, answer: PartAnswer) -> Answer | None:
        """Who leads, where the answer is that somebody else does (KIP-951)."""
        if answer.fields["error_code"] not in FETCH_ERRORS:
            return None
        topic = part.topic if isinstance(part.topic, str) else self.questions.topic_name(part.topic)
        return leader_hint(self.runtime.node, TopicPartition(topic, part.number))

    def _part_to_send(self, session: Session, part: Part, fetch: Fetch) -> PartAnswer | None:
        """The answer of a partition's replica; without one, what has to be said all the same."""
        answer = part.answer
        session.puts(part, None)
        if answer is None and fetch.full:
            return self.questions.empty_answer(part)
        if answer is None and session.is_privileged:
            return self.questions.moved_position(part)
        return answer


def _waits_as_one(session: Session) -> bool:
    """Whether the session waits for its partitions, and not each replica: no question has a stamp, or all have one."""
    return all(part.stamp is None for part in islice(session.parts.values(), 1))


def _is_enough(session: Session, fetch: Fetch, answer: PartAnswer) -> bool:
    """As `_suffices`, once one more has answered: most often that answer alone says it."""
    return not answer.size or answer.size >= fetch.least or session.size >= fetch.least


def _suffices(session: Session, fetch: Fetch) -> bool:
    """What replicas have answered is worth an answer: an error, another replica, or as many bytes as were asked for.

    ReplicaManager.fetchMessages, DelayedFetch.tryComplete.
    """
    answers = [part.answer for part in session.parts.values() if part.answer is not None]
    return session.size >= fetch.least or any(answer.news and not answer.size for answer in answers)
