"""One voter of the metadata quorum as it runs: its core, its files and Kafka's wire, without sockets or a clock.

What a core asks for is done in its order, the disk first, and flushed. So nothing is said that a crash could take back.
When a timer runs out is decided here, by Kafka's settings (KafkaRaftClient.poll), and so is how long a fetch waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Protocol, TypeAlias

import attrs

from isr_broker.core.messages import Error, Millis, Offset
from isr_broker.core.quorum_messages import (
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoterId,
    VoterSet,
)
from isr_broker.core.record_batch import BadBatch, batch_around, batches, encoded_record
from isr_broker.core.voter import fetch_request, handle, started
from isr_broker.core.voter_state import (
    AnswerFetchSnapshot,
    AnswerQuorumFetch,
    AppendLeaderChange,
    AppendQuorumLog,
    AppendVoters,
    ChangeVoters,
    EndProcess,
    InstallSnapshot,
    KeepSnapshot,
    LeaderFound,
    Propose,
    QuorumFollower,
    QuorumLeader,
    RefuseChange,
    RequestArrived,
    RequestExpired,
    Resigned,
    ResponseArrived,
    SaveQuorumState,
    SendRequest,
    SendResponse,
    Signal,
    TakeSnapshot,
    TruncateQuorumLog,
    Unattached,
    Voter,
    VoterEffect,
    VoterSets,
    VoterStep,
    fixed_voters,
    names,
    part_name,
)
from isr_broker.environment import Address
from isr_broker.quorum_settings import QuorumSettings
from isr_broker.storage.quorum_disk import DamagedQuorum, QuorumDisk
from isr_broker.wire import protocol
from isr_broker.wire.control_records import checkpoint, kraft_version, leader_change, voter_sets, voters_batch
from isr_broker.wire.metadata_records import encode
from isr_broker.wire.protocol import Answer, Request
from isr_broker.wire.quorum_channel import LeaderPlace, Outcome, QuorumChannel, RequestLost
from isr_broker.wire.quorum_requests import (
    CHANGES,
    CONTROLLERS,
    SERVED_VERSIONS,
    Question,
    Quorum,
    ReplicaProgress,
    answer_to,
    cast_of,
    change_of,
    continues_log,
    description,
    is_for,
    part_of_snapshot,
    question_of,
)

Reply: TypeAlias = Callable[[Answer], None]

STOPPED: Final = "stopped in order"


class Outside(Protocol):
    """What a voter needs of the world around it."""

    def wakes(self, to: VoterId) -> None:
        """There is something to ask of another voter."""
        ...

    def wall(self) -> Millis:
        """Milliseconds since 1970."""
        ...

    def chance(self, below: int) -> int:
        """A random number."""
        ...

    def stopped(self, why: str) -> None:
        """The voter has ended."""
        ...

    def log(self, line: str) -> None:
        """Something a person may want to know."""
        ...


@attrs.frozen
class _WaitingFetch:
    """A fetch that waits at the leader for news, and what it is answered if none come until then."""

    question: Question
    until: Millis
    response: QuorumFetchResponse


@attrs.define
class _Follower:
    """What a leader has noted of a voter's fetches, by the wall clock (ReplicaState of LeaderState).

    `watermark` is what it was told last, `end` where the log ended at its last fetch.
    """

    fetched_at: Millis = -1
    caught_up_at: Millis = -1
    end: Offset = 0
    watermark: Offset | None = None


@attrs.define
class _VotersChange:
    """A change of the voters that somebody waits for: until its node has caught up, and then for the commit.

    `end`: where the log is to be committed to, once it is in there.
    """

    change: ChangeVoters
    reply: Reply
    until: Millis
    waits_for_commit: bool
    end: Offset | None = None


@attrs.define
class VoterRuntime:
    """One voter. Whoever drives it gives it time and requests, and asks for its `deadline`."""

    versions: ClassVar[Mapping[int, tuple[int, int]]] = SERVED_VERSIONS | CHANGES
    quorum: Quorum
    settings: QuorumSettings
    files: QuorumDisk
    outside: Outside
    voter: Voter = attrs.field(init=False)
    channels: dict[VoterId, QuorumChannel] = attrs.field(init=False)
    running: bool = True
    stops_until: Millis | None = None
    timer: Millis = 0
    replies: dict[int, tuple[Question, Reply]] = attrs.field(factory=dict[int, tuple[Question, Reply]])
    request_count: int = 0
    waiting: dict[int, _WaitingFetch] = attrs.field(factory=dict[int, _WaitingFetch])
    backoffs: dict[VoterId, Millis] = attrs.field(factory=dict[VoterId, Millis])
    """Until when a voter is asked nothing, for it has given no answer, or an error."""
    delayed_requests: dict[VoterId, SendRequest] = attrs.field(factory=dict[VoterId, SendRequest])
    followers: dict[VoterId, _Follower] = attrs.field(factory=dict[VoterId, _Follower])
    fetchers: set[VoterId] = attrs.field(factory=set[VoterId])
    """Who has fetched from this leader since it last had a majority of them."""
    successors: tuple[VoterId, ...] = ()
    appended_at: Millis = 0
    change: _VotersChange | None = None
    snapshot_contents: bytes = b""
    searches: int = 0
    """How often an observer has asked somebody for the leader; such a request has a number below 0."""

    def start(self, now: Millis) -> None:
        """Begin with what is on the disk; DamagedQuorum if that is of a quorum whose voters change."""
        others = self.quorum.places.keys() - {self.quorum.me}
        self.channels = {q: QuorumChannel(self.quorum, q) for q in others}
        directory = self.quorum.directory if self.quorum.dynamic else None
        sets, files = self._first_sets(), self.files
        step = started(self.quorum.me, directory, sets, files.quorum, files.log.view, files.snapshot)
        self.voter = step.voter
        self._learns_voters()
        self._sets_timer(now)
        self._performs(step, now)
        self._tells_part()

    def _first_sets(self) -> VoterSets:
        """Who votes, by what is on the disk; DamagedQuorum if that is of a quorum whose voters change, and this not."""
        contents, snapshot = self.files.log.contents(), self.files.snapshot_contents()
        if not is_whole(snapshot):
            raise DamagedQuorum("the last snapshot is damaged: put the node's folder away, and format a new one")
        if self.files.voters is None:
            start = self.files.log.view.start
            later = tuple((offset, voters) for offset, voters in voter_sets(contents) if offset >= start)
            first = next((voters for _, voters in voter_sets(snapshot)), VoterSet())
            return VoterSets(VoterSet(), ((start - 1, first), *later)) if start else VoterSets(first, later)
        if kraft_version(contents) or kraft_version(snapshot):
            raise DamagedQuorum(
                "the log or a snapshot has voters that change (kraft.version 1), and those of controller.quorum.voters"
                " do not"
            )
        return fixed_voters(self.files.voters)

    # Where others are

    def _learns_voters(self) -> None:
        """The log says where the voters listen."""
        if self.quorum.dynamic:
            for voter, node in self.voter.sets.last.items():
                place = self.quorum.place_in(node.endpoints)
                if place is not None:
                    self._learns(voter, place)

    def _learns(self, voter: VoterId, place: Address) -> None:
        if self.quorum.dynamic and self.quorum.places.get(voter) != place:
            self.quorum = attrs.evolve(self.quorum, places={**self.quorum.places, voter: place})
            if voter != self.quorum.me:
                self.channels.setdefault(voter, QuorumChannel(self.quorum, voter))
            for channel in self.channels.values():
                channel.quorum = self.quorum

    def _looks_for_leader(self, now: Millis) -> None:
        """An observer asks who leads: the next of those that it asks nothing else (maybeSendFetchToAnyBootstrap)."""
        known = sorted(q for q in self.channels if q not in self.voter.requests)
        if known:
            to = known[self.searches % len(known)]
            self.searches += 1
            self.channels[to].put(-self.searches, fetch_request(self.voter))
            self.outside.wakes(to)
        self.timer = now + self.settings.controller_quorum_election_timeout_ms

    # What arrives

    def serve(self, request: Request, reply: Reply, now: Millis) -> None:
        """Answer a request, now or when there is an answer."""
        body = request.body
        match request.key:
            case protocol.API_VERSIONS:
                reply({"api_keys": protocol.api_keys(self.versions)})
            case protocol.DESCRIBE_CLUSTER if body.number("endpoint_type") != CONTROLLERS:
                reply({"error_code": Error.MISMATCHED_ENDPOINT_TYPE.value, "error_message": None})
            case protocol.DESCRIBE_CLUSTER:
                reply(cast_of(self.quorum, self.voter.voters, self.voter.quorum.leader))
            case protocol.DESCRIBE_QUORUM:
                reply(self._describes())
            case key if key in CHANGES:
                self._is_to_change(request, reply, now)
            case _:
                self._hears(request, reply, now)

    def _hears(self, request: Request, reply: Reply, now: Millis) -> None:
        """A request of the protocol: its checks, and then the core."""
        question = question_of(self.quorum, request)
        if isinstance(question, Error):
            reply({"error_code": question.value})
            return
        if not is_for(self.quorum, request):
            error = Error.INVALID_VOTER_KEY
            state = self.voter.quorum
            reply(answer_to(self.quorum, QuorumEpochResponse(error=error, epoch=state.epoch, leader=state.leader)))
            return
        if question.place is not None:
            self._learns(question.sender, question.place)
        self.request_count += 1
        number = self.request_count
        self.replies[number] = question, reply
        if isinstance(question.request, QuorumFetchRequest):
            self._answers_earlier(question.sender)
            self._notes_fetch(question.request, now)
        if isinstance(question.request, FetchSnapshotRequest):
            self._notes_voice(question.request, now)
        self._takes(handle(self.voter, _arrival(number, question)), now)
        part, state = self.voter.part, self.voter.quorum
        is_of_leader = isinstance(part, QuorumFollower) and state.leader == question.sender
        if question.successors and is_of_leader and state.epoch == question.request.epoch:
            self.timer = now + self._successor_wait(question.successors)

    def receive(self, outcomes: list[Outcome], now: Millis) -> None:
        """Answers of other voters, or that there are none."""
        for outcome in outcomes:
            if not self.running:
                return
            match outcome:
                case ResponseArrived():
                    self._takes_answer(outcome, now)
                case LeaderPlace(voter, address):
                    self._learns(voter, address)
                case RequestLost():
                    self._loses(outcome, now)

    def _takes_answer(self, answer: ResponseArrived, now: Millis) -> None:
        response = answer.response
        if response.error is not Error.NONE:
            self.backoffs[answer.sender] = now + self.settings.controller_quorum_retry_backoff_ms
        if answer.number < 0:
            return self._takes(handle(self.voter, LeaderFound(response.epoch, response.leader)), now)
        opened = self.voter.requests.get(answer.sender)
        is_expected = opened is not None and opened.number == answer.number
        if isinstance(response, QuorumFetchResponse) and is_expected and response.records:
            if not continues_log(response.records, self.voter.log.end):
                lost = RequestLost(answer.sender, answer.number, "its records do not continue this log")
                return self._loses(lost, now)
            if kraft_version(response.records) > 0 and not self.quorum.dynamic:
                return self._ends(
                    "voters are to change (kraft.version 1), and those of controller.quorum.voters do not"
                )
        if isinstance(response, FetchSnapshotResponse) and response.snapshot is not None:
            if not is_whole(response.contents):
                return self._loses(RequestLost(answer.sender, answer.number, "a snapshot that is not whole"), now)
            found = voter_sets(response.contents)
            answer = attrs.evolve(answer, response=attrs.evolve(response, voters=found[-1][1] if found else None))
        self._takes(handle(self.voter, answer), now)
        is_fetch = isinstance(response, QuorumFetchResponse | FetchSnapshotResponse)
        has_fetched = is_fetch and response.error is Error.NONE and is_expected
        if has_fetched and isinstance(self.voter.part, QuorumFollower):
            self.timer = now + self.settings.controller_quorum_fetch_timeout_ms

    def _loses(self, loss: RequestLost, now: Millis) -> None:
        self.backoffs[loss.voter] = now + self.settings.controller_quorum_retry_backoff_ms
        opened = self.voter.requests.get(loss.voter)
        if opened is not None and opened.number == loss.number:
            if loss.why:
                self.outside.log(f"request {loss.number} to voter {loss.voter}: {loss.why}")
            self._takes(handle(self.voter, RequestExpired(loss.voter)), now)

    def propose(self, records: bytes, now: Millis) -> None:
        """Have a leader append batches; nobody else does."""
        self._takes(handle(self.voter, Propose(records)), now)

    def keeps_snapshot(self, end: Offset, contents: bytes, now: Millis) -> None:
        """Keep a snapshot of what is committed before an offset; `contents` are batches that say all of that."""
        self.snapshot_contents = contents
        self._takes(handle(self.voter, TakeSnapshot(end)), now)

    # Voters change

    def _is_to_change(self, request: Request, reply: Reply, now: Millis) -> None:
        """Somebody wants other voters; one change at a time (AddVoterHandler, RemoveVoterHandler)."""
        change = change_of(self.quorum, request) if self.quorum.dynamic else Error.UNSUPPORTED_VERSION
        if isinstance(change, Error) or self.change is not None:
            error = change if isinstance(change, Error) else Error.REQUEST_TIMED_OUT
            return reply({"error_code": error.value, "error_message": error.name})
        wait = request.body.number("timeout", self.settings.controller_quorum_request_timeout_ms)
        waits_for_commit = request.body.number("ack_when_committed", 1) == 1
        self.change = _VotersChange(change, reply, now + wait, waits_for_commit)
        self._goes_on_with_change(now)

    def _goes_on_with_change(self, now: Millis) -> None:
        """It is tried, once nothing is in its way; and it is answered when it is committed, or too late.

        A node that is behind may catch up until then.
        """
        pending = self.change
        if pending is None:
            return
        if pending.end is None:
            step = handle(self.voter, pending.change)
            refusal = next((effect.error for effect in step.effects if isinstance(effect, RefuseChange)), None)
            if refusal is None:
                pending.end = step.voter.log.end
                self.outside.log(f"the voters are to be {', '.join(map(str, sorted(step.voter.voters)))}")
                self._takes(step, now)
            elif refusal is not Error.REQUEST_TIMED_OUT or pending.until <= now:
                self._answers_change(refusal)
        elif not isinstance(self.voter.part, QuorumLeader):
            self._answers_change(Error.NOT_LEADER_OR_FOLLOWER)
        elif not pending.waits_for_commit or pending.end <= (self.voter.high_watermark or 0):
            self._answers_change(Error.NONE)
        elif pending.until <= now:
            self._answers_change(Error.REQUEST_TIMED_OUT)

    def _is_committed(self, watermark: Offset) -> None:
        """So much is committed. A leader that was removed by that leads no more, and answers nevertheless."""
        if self.change is not None and self.change.end is not None and self.change.end <= watermark:
            self._answers_change(Error.NONE)

    def _answers_change(self, error: Error) -> None:
        if self.change is not None:
            reply, self.change = self.change.reply, None
            reply({"error_code": error.value, "error_message": None if error is Error.NONE else error.name})

    def nothing(self) -> bytes:
        """A batch that says nothing."""
        return batch_around(encoded_record(encode("NoOp", 0, {})), timestamp=self.outside.wall())

    # Time

    def deadline(self) -> Millis:
        """When `tick` is to be called at the latest."""
        times = [self.timer, *(fetch.until for fetch in self.waiting.values())]
        times += [self.backoffs[to] for to in self.delayed_requests]
        times += [] if self.stops_until is None else [self.stops_until]
        times += [] if self.change is None else [self.change.until]
        times += [self._idle_until()] if self._writes_when_idle() else []
        return min(times)

    def tick(self, now: Millis) -> None:
        """Whatever is due by now."""
        for to in [to for to in self.delayed_requests if self.backoffs[to] <= now]:
            self._sends(self.delayed_requests.pop(to), now)
        for number in [number for number, fetch in self.waiting.items() if fetch.until <= now]:
            self._answers_waiting(number)
        if self._writes_when_idle() and self._idle_until() <= now:
            self.propose(self.nothing(), now)
        self._goes_on_with_change(now)
        if self.stops_until is not None and self.stops_until <= now:
            self._ends(STOPPED)
        elif self.timer <= now and self._observes():
            self._looks_for_leader(now)
        elif self.timer <= now:
            self._takes(handle(self.voter, Signal.TIMER), now)
            self._sets_timer(now)

    def _observes(self) -> bool:
        """It is no voter, and waits for news of who leads."""
        return not self.voter.votes and isinstance(self.voter.part, Unattached | QuorumFollower)

    def shut_down(self, now: Millis) -> None:
        """A leader resigns, and its process ends when the others have heard of it, or after a time."""
        self.stops_until = now + self.settings.controller_quorum_request_timeout_ms
        self._takes(handle(self.voter, Signal.RESIGN), now)
        self._may_stop()

    def _may_stop(self) -> None:
        is_heard = not (isinstance(self.voter.part, Resigned) and self.voter.requests)
        if self.running and self.stops_until is not None and is_heard:
            self._ends(STOPPED)

    def _writes_when_idle(self) -> bool:
        return isinstance(self.voter.part, QuorumLeader) and self.settings.metadata_max_idle_interval_ms > 0

    def _idle_until(self) -> Millis:
        return self.appended_at + self.settings.metadata_max_idle_interval_ms

    def _sets_timer(self, now: Millis) -> None:
        """How long its part may last without news (the states below EpochState)."""
        election, fetch = (
            self.settings.controller_quorum_election_timeout_ms,
            self.settings.controller_quorum_fetch_timeout_ms,
        )
        match self.voter.part:
            case QuorumFollower():
                self.timer = now + fetch
            case QuorumLeader():
                self.timer = now + fetch * 3 // 2
            case _:
                self.timer = now + election + self.outside.chance(election)

    def _successor_wait(self, successors: tuple[VoterId, ...]) -> Millis:
        """The best of them stands at once, the others later (strictExponentialElectionBackoffMs)."""
        longest, me = self.settings.controller_quorum_election_backoff_max_ms, self.quorum.me
        position = successors.index(me) if me in successors else len(successors)
        if position == 0:
            return 0
        return (
            longest if position >= len(successors) else min(longest, longest >> (len(successors) - 1) << position - 1)
        )

    # Steps

    def _takes(self, step: VoterStep, now: Millis) -> None:
        """The core after an input: what it asks for is done, and where there is news, fetches that wait are told."""
        if not self.running:
            return
        before = self.voter
        self._notes_successors(before)
        self.voter = step.voter
        if before.sets != self.voter.sets:
            self._learns_voters()
        has_other_part = _part_of(before) != _part_of(self.voter)
        if has_other_part:
            self._sets_timer(now)
            self.fetchers, self.followers, self.delayed_requests = set(), {}, {}
            for channel in self.channels.values():
                channel.waiting = None
        self._performs(step, now)
        if has_other_part:
            self._tells_part()
        if _news_of(before) != _news_of(self.voter):
            for number, fetch in list(self.waiting.items()):
                if number in self.waiting and self.running:
                    del self.waiting[number]
                    self._performs(handle(self.voter, _arrival(number, fetch.question)), now, fetch.until)
            self._goes_on_with_change(now)
        self._may_stop()

    def _performs(self, step: VoterStep, now: Millis, until: Millis | None = None) -> None:
        self.voter = step.voter
        for effect in step.effects:
            if self.running:
                self._perform(effect, now, until)

    def _perform(self, effect: VoterEffect, now: Millis, until: Millis | None) -> None:
        match effect:
            case SaveQuorumState(state):
                self.files.save(state)
            case AppendLeaderChange(epoch=epoch, offset=offset, voters=voters, granting=granting):
                wall = self.outside.wall()
                first = effect.first_voters
                self.files.append(leader_change(self.quorum.me, voters, granting, epoch, offset, wall, first))
                self.appended_at = now
            case AppendQuorumLog(records):
                self.files.append(records)
                self.appended_at = now
            case AppendVoters(epoch=epoch, offset=offset, voters=voters):
                self.files.append(voters_batch(voters, epoch, offset, self.outside.wall()))
                self.appended_at = now
            case RefuseChange():
                pass
            case KeepSnapshot(snapshot, voters):
                of_log = voters if self.quorum.dynamic else VoterSet()
                wall = self.outside.wall()
                data = checkpoint(of_log, self.snapshot_contents, snapshot.epoch, wall)
                self.files.keep(snapshot, data)
                self.snapshot_contents = b""
            case InstallSnapshot(snapshot, contents):
                self.files.install(snapshot, contents)
            case AnswerFetchSnapshot(number=number, response=response):
                question, reply = self.replies.pop(number)
                reply(self._part_of_snapshot(question, response))
            case TruncateQuorumLog(end):
                self.files.truncate(end)
            case SendRequest(to=to):
                if now < self.backoffs.get(to, now):
                    self.delayed_requests[to] = effect
                else:
                    self._sends(effect, now)
            case SendResponse(number=number, response=response):
                _, reply = self.replies.pop(number)
                reply(answer_to(self.quorum, response))
            case AnswerQuorumFetch(number=number, response=response, slice=read):
                self._answers_fetch(number, attrs.evolve(response, records=self.files.read(read)), now, until)
                self._is_committed(response.high_watermark or 0)
            case EndProcess(failure):
                self._ends(failure.value)

    def _sends(self, effect: SendRequest, now: Millis) -> None:
        self.delayed_requests.pop(effect.to, None)
        if effect.to not in self.channels:
            self.backoffs[effect.to] = now + self.settings.controller_quorum_retry_backoff_ms
            self.delayed_requests[effect.to] = effect
            return
        successors = self.successors if isinstance(effect.request, EndQuorumEpochRequest) else ()
        self.channels[effect.to].put(effect.number, effect.request, successors)
        self.outside.wakes(effect.to)

    def _ends(self, why: str) -> None:
        self.running = False
        self.outside.stopped(why)

    # Fetches at a leader

    def _answers_fetch(self, number: int, response: QuorumFetchResponse, now: Millis, until: Millis | None) -> None:
        """Answer if there is news, and else wait for it (handleFetchRequest, with KIP-1166)."""
        question, _ = self.replies[number]
        follower = self.followers.setdefault(question.sender, _Follower())
        known = follower.watermark if question.watermark is None else question.watermark
        until = now + question.wait if until is None else until
        has_news = bool(response.records) or (response.high_watermark or 0) > max(known or 0, 0)
        self.waiting[number] = _WaitingFetch(question, until, response)
        if has_news or until <= now:
            self._answers_waiting(number)

    def _part_of_snapshot(self, question: Question, response: FetchSnapshotResponse) -> Answer:
        whole, position = self.files.snapshot_contents(), question.position
        if position >= len(whole):
            refusal = attrs.evolve(response, error=Error.POSITION_OUT_OF_RANGE)
            return part_of_snapshot(self.quorum, refusal, len(whole), position, question.most)
        part = attrs.evolve(response, contents=whole[position:])
        return part_of_snapshot(self.quorum, part, len(whole), position, question.most)

    def _answers_waiting(self, number: int) -> None:
        fetch, (question, reply) = self.waiting.pop(number), self.replies.pop(number)
        self.followers.setdefault(question.sender, _Follower()).watermark = fetch.response.high_watermark
        reply(answer_to(self.quorum, fetch.response))

    def _answers_earlier(self, sender: VoterId) -> None:
        """Whoever fetches again waits for no earlier answer, which must not acknowledge anything any more."""
        for number in [number for number, fetch in self.waiting.items() if fetch.question.sender == sender]:
            self._answers_waiting(number)

    def _notes_fetch(self, fetch: QuorumFetchRequest, now: Millis) -> None:
        """A voter fetches from this leader: of a majority it has heard, it goes on leading (updateCheckQuorum)."""
        if not isinstance(self.voter.part, QuorumLeader) or fetch.epoch != self.voter.epoch:
            return
        follower, wall = self.followers.setdefault(fetch.replica, _Follower()), self.outside.wall()
        if fetch.log_end >= self.voter.log.end:
            follower.caught_up_at = wall
        elif fetch.log_end >= follower.end:
            follower.caught_up_at = follower.fetched_at
        follower.fetched_at, follower.end = wall, self.voter.log.end
        self._notes_voice(fetch, now)

    def _notes_voice(self, fetch: QuorumFetchRequest | FetchSnapshotRequest, now: Millis) -> None:
        """Of a majority of the voters it has heard, so it goes on leading (updateCheckQuorumForFollowingVoter)."""
        if not isinstance(self.voter.part, QuorumLeader) or fetch.epoch != self.voter.epoch:
            return
        voters = self.voter.sets.last
        if names(voters.get(fetch.replica), fetch.directory):
            self.fetchers.add(fetch.replica)
        if 2 * (len(self.fetchers & self.voter.voters) + self.voter.votes) > len(voters):
            self.fetchers = set()
            self._sets_timer(now)

    # What is told of it

    def _notes_successors(self, voter: Voter) -> None:
        """The voters by how much of the log they have (nonLeaderVotersByDescendingFetchOffset)."""
        if isinstance(voter.part, QuorumLeader):
            ends = voter.part.ends
            others = voter.voters - {voter.me}
            self.successors = tuple(sorted(others, key=lambda q: (-ends.get(q, 0), q)))

    def _describes(self) -> Answer:
        voter, part = self.voter, self.voter.part
        error, rows, observers = Error.NOT_LEADER_OR_FOLLOWER, list[ReplicaProgress](), list[ReplicaProgress]()
        if isinstance(part, QuorumLeader):
            error, voters = Error.NONE, voter.sets.last
            rows = [self._describes_replica(q, part, node.directory) for q, node in sorted(voters.items())]
            others = sorted(q for q in part.ends if q not in voters)
            observers = [self._describes_replica(q, part, part.directories.get(q)) for q in others]
        response = QuorumEpochResponse(error=error, epoch=voter.epoch, leader=voter.quorum.leader)
        return description(self.quorum, response, voter.high_watermark, rows, observers)

    def _describes_replica(self, q: VoterId, part: QuorumLeader, directory: bytes | None) -> ReplicaProgress:
        is_own, follower = q == self.voter.me, self.followers.get(q, _Follower())
        at = (-1, self.outside.wall()) if is_own else (follower.fetched_at, follower.caught_up_at)
        return ReplicaProgress(
            voter=q,
            directory=directory,
            log_end=self.voter.log.end if is_own else part.ends.get(q),
            fetched_at=at[0],
            caught_up_at=at[1],
        )

    def _tells_part(self) -> None:
        leader = self.voter.quorum.leader
        whom = "" if leader in (None, self.quorum.me) else f" of {leader}"
        self.outside.log(f"epoch {self.voter.epoch}, log end {self.voter.log.end}: {part_name(self.voter)}{whom}")


def is_whole(data: bytes) -> bool:
    """Whether these are batches as they were written, and nothing else."""
    try:
        found = list(batches(data, check=True))
    except BadBatch:
        return False
    return sum(batch.size for batch in found) == len(data)


def _arrival(number: int, question: Question) -> RequestArrived:
    return RequestArrived(sender=question.sender, number=number, request=question.request)


def _part_of(voter: Voter) -> tuple[object, ...]:
    """Its part, and what its timer is about: a vote, too, gives it a new one."""
    return part_name(voter), voter.quorum


def _news_of(voter: Voter) -> tuple[object, ...]:
    return voter.log.end, voter.high_watermark, _part_of(voter)
