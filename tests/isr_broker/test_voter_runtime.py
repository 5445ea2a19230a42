"""Three voters with files, wire and timers in simulated time: who leads, what is kept, and how often they ask.

Each message is checked as it leaves: the power of its sender fails, and what it says must be on the disk. Without these
a vote could be given that a crash takes back, or a quiet quorum could keep its processors busy.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Self

import attrs
import pytest

from isr_broker.core.effects import Slice
from isr_broker.core.messages import Millis
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    QuorumFetchRequest,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
    VoteResponse,
)
from isr_broker.core.voter_state import (
    AnswerQuorumFetch,
    QuorumLeader,
    SaveQuorumState,
    SendRequest,
    SendResponse,
    VoterEffect,
    VoterStep,
    part_name,
)
from isr_broker.quorum_settings import QuorumSettings
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import MemoryDisk, Nothing
from isr_broker.storage.quorum_disk import QuorumDisk
from isr_broker.voter_runtime import STOPPED, VoterRuntime
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer, Fields, Request
from isr_broker.wire.quorum_requests import SERVED_VERSIONS, Quorum

PLACES = {q: ("h", 9_000 + q) for q in (1, 2, 3)}
THREE = frozenset(PLACES)
VOTERS = ",".join(f"{q}@{host}:{port}" for q, (host, port) in PLACES.items())
BUSY = QuorumSettings(controller_quorum_voters=VOTERS, metadata_max_idle_interval_ms=50)
QUIET = QuorumSettings(controller_quorum_voters=VOTERS)
EVERYTHING = Slice(offset=0, up_to=2**62, max_bytes=2**30)


def is_kept(
    files: QuorumDisk, me: int, message: QuorumRequest | QuorumResponse, answered: QuorumRequest | None
) -> bool:
    """Whether what a voter has said with a message is on its disk."""
    quorum, log = files.quorum, files.log.view
    if quorum.epoch < message.epoch:
        return False
    is_now = quorum.epoch == message.epoch
    match message:
        case VoteResponse(vote_granted=True) if isinstance(answered, VoteRequest) and not answered.pre_vote:
            return not is_now or quorum.vote == answered.nominee
        case VoteRequest(pre_vote=False):
            return not is_now or quorum.vote == me
        case BeginQuorumEpochRequest():
            return not is_now or (quorum.leader == me and log.last_epoch == message.epoch)
        case QuorumFetchRequest(log_end=end):
            return log.end == end
        case _:
            return True


class CheckedRuntime(VoterRuntime):
    """A voter that is looked at whenever a message leaves it."""

    breaches: ClassVar[list[str]] = []
    checks: ClassVar[Counter[str]] = Counter()

    def _perform(self, effect: VoterEffect, now: Millis, until: Millis | None) -> None:
        match effect:
            case SendRequest(request=request):
                self.check(request, None)
            case SendResponse(number=number, response=response) | AnswerQuorumFetch(number=number, response=response):
                self.check(response, self.replies[number][0].request)
            case _:
                pass
        super()._perform(effect, now, until)

    def check(self, message: QuorumRequest | QuorumResponse, answered: QuorumRequest | None) -> None:
        """What the disk has now is what it would have after a power failure."""
        assert isinstance(self.files.disk, MemoryDisk)
        picture = self.files.disk.copy()
        picture.crash(Nothing())
        self.checks[type(message).__name__] += 1
        if not is_kept(QuorumDisk.open(picture, self.files.voters, Settings()), self.quorum.me, message, answered):
            self.breaches.append(f"voter {self.quorum.me} forgets {message}")


Event = tuple[Millis, int, Callable[[], None]]


@attrs.define
class World:
    """Processes, disks that keep nothing unflushed, and messages on their way, some of which are lost."""

    settings: QuorumSettings
    kind: type[VoterRuntime] = CheckedRuntime
    chance_of: random.Random = attrs.field(factory=lambda: random.Random(1))
    loss: float = 0.0
    now: Millis = 0
    events: list[tuple[Millis, int, Callable[[], None]]] = attrs.field(
        factory=list[tuple[Millis, int, Callable[[], None]]]
    )
    count: int = 0
    disks: dict[int, MemoryDisk] = attrs.field(factory=dict[int, MemoryDisk])
    runtimes: dict[int, VoterRuntime] = attrs.field(factory=dict[int, VoterRuntime])
    busy: dict[tuple[int, int], object] = attrs.field(factory=dict[tuple[int, int], object])
    apart: set[int] = attrs.field(factory=set[int])
    asked: Counter[tuple[int, int]] = attrs.field(factory=Counter[tuple[int, int]])
    ends: dict[int, str] = attrs.field(factory=dict[int, str])
    leaders: dict[int, set[int]] = attrs.field(factory=dict[int, set[int]])
    committed: bytes = b""

    def __attrs_post_init__(self) -> None:
        CheckedRuntime.breaches.clear()
        CheckedRuntime.checks.clear()
        for me in THREE:
            self.disks[me] = MemoryDisk()
            self.start(me)

    def start(self, me: int) -> None:
        quorum = Quorum(me=me, cluster="c", directory=bytes([me] * 16), listener="CONTROLLER", places=PLACES)
        files = QuorumDisk.open(self.disks[me], THREE, Settings())
        self.runtimes[me] = self.kind(quorum, self.settings, files, Member(self, me))
        self.runtimes[me].start(self.now)

    def crash(self, me: int) -> None:
        self.runtimes.pop(me).running = False
        self.disks[me].crash(Nothing())
        for (q, to), token in list(self.busy.items()):
            if q == me:
                del self.busy[q, to]
            elif to == me:
                self.later(1, partial(self.ends_wait, q, to, token, None))

    def later(self, after: Millis, do: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (self.now + after, self.count, do))

    def pump(self, me: int, to: int) -> None:
        """The next request of a conversation, if it has none on its way."""
        runtime = self.runtimes.get(me)
        if runtime is None or (me, to) in self.busy or (frame := runtime.channels[to].next()) is None:
            return
        token = self.busy[me, to] = object()
        self.asked[me, int.from_bytes(frame[4:6], "big")] += 1
        self.travels(me, to, lambda: self.arrives(me, to, frame, token))
        self.later(self.settings.controller_quorum_request_timeout_ms, lambda: self.ends_wait(me, to, token, None))

    def travels(self, me: int, to: int, then: Callable[[], None]) -> None:
        if self.chance_of.random() >= self.loss and not {self.node_at(me), self.node_at(to)} & self.apart:
            self.later(self.chance_of.randrange(1, 10), then)

    def arrives(self, me: int, to: int, frame: bytes, token: object) -> None:
        request = protocol.parse(frame[4:], SERVED_VERSIONS)
        assert isinstance(request, Request)

        def reply(answer: Answer) -> None:
            data = protocol.answer_to(request, answer)
            self.travels(to, me, lambda: self.ends_wait(me, to, token, data))

        node = self.node_at(to)
        if node in self.runtimes and node not in self.apart:
            self.runtimes[node].serve(request, reply, self.now)

    def node_at(self, to: int) -> int:
        """Which node has this number in a conversation."""
        return to

    def ends_wait(self, me: int, to: int, token: object, answer: bytes | None) -> None:
        if self.busy.get((me, to)) is token and me in self.runtimes:
            del self.busy[me, to]
            channel = self.runtimes[me].channels[to]
            self.runtimes[me].receive(
                channel.take_loss() if answer is None else channel.take_answer(answer[4:]), self.now
            )
            self.pump(me, to)

    def run(self, until: Millis, faults: Sequence[int] = ()) -> Self:
        """Until a time; a voter crashes at these times, and is back a second later."""
        for at in faults:
            self.later(at - self.now, self.crash_one)
        while self.now < until and not CheckedRuntime.breaches:
            due = [*(at for at, _, _ in self.events[:1]), *(r.deadline() for r in self.runtimes.values() if r.running)]
            self.now = max(self.now, min([until, *due]))
            if self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            for runtime in list(self.runtimes.values()):
                if runtime.running and runtime.deadline() <= self.now:
                    runtime.tick(self.now)
            self.look()
        return self

    def crash_one(self) -> None:
        me = self.chance_of.choice(sorted(self.runtimes))
        self.crash(me)
        self.later(1_000, lambda: self.start(me))

    def look(self) -> None:
        """No epoch has two leaders, and what is committed stays so."""
        for me, runtime in self.runtimes.items():
            voter = runtime.voter
            if isinstance(voter.part, QuorumLeader):
                self.leaders.setdefault(voter.epoch, set()).add(me)
                assert len(self.leaders[voter.epoch]) == 1
            if voter.high_watermark:
                known = runtime.files.read(attrs.evolve(EVERYTHING, up_to=voter.high_watermark))
                longer, shorter = sorted((known, self.committed), key=len, reverse=True)
                assert longer.startswith(shorter)
                self.committed = longer

    def leader(self) -> int | None:
        leading = [me for me, runtime in self.runtimes.items() if part_name(runtime.voter) == "leader"]
        return max(leading, key=lambda me: self.runtimes[me].voter.epoch, default=None)


@attrs.frozen
class Member:
    """The world as one voter sees it."""

    world: World
    me: int

    def wakes(self, to: int) -> None:
        self.world.later(0, lambda: self.world.pump(self.me, to))

    def wall(self) -> Millis:
        return 1_000_000 + self.world.now

    def chance(self, below: int) -> int:
        return self.world.chance_of.randrange(below)

    def stopped(self, why: str) -> None:
        self.world.ends[self.me] = why

    def log(self, line: str) -> None:
        pass


# Who leads, and what is kept


def test_a_leader_is_elected_and_its_records_are_committed_everywhere() -> None:
    world = World(BUSY, VoterRuntime).run(10_000)
    assert list(world.leaders) == [1], "one election, and nobody was cut off"
    marks = [runtime.voter.high_watermark or 0 for runtime in world.runtimes.values()]
    assert min(marks) > 100
    assert max(marks) - min(marks) < 4, "followers hear of a commit with the next answer"


@pytest.mark.long
def test_crashes_and_lost_messages_lose_nothing_that_was_said() -> None:
    settings = attrs.evolve(BUSY, metadata_max_idle_interval_ms=200)
    world = World(settings, loss=0.05).run(40_000, faults=range(3_000, 38_000, 2_500))
    assert not CheckedRuntime.breaches
    assert len(world.leaders) > 4, "or no leader was ever lost"
    assert len(world.committed) > 5_000, "or nothing was replicated"
    assert min(CheckedRuntime.checks[name] for name in ("VoteRequest", "VoteResponse", "QuorumFetchRequest")) > 20


class Hasty(CheckedRuntime):
    """Sends before it writes."""

    def _performs(self, step: VoterStep, now: Millis, until: Millis | None = None) -> None:
        effects = sorted(step.effects, key=lambda e: not isinstance(e, SendRequest | SendResponse))
        super()._performs(attrs.evolve(step, effects=tuple(effects)), now, until)


class Forgetful(CheckedRuntime):
    """Saves no vote."""

    def _perform(self, effect: VoterEffect, now: Millis, until: Millis | None) -> None:
        if isinstance(effect, SaveQuorumState):
            effect = SaveQuorumState(attrs.evolve(effect.quorum, vote=None))
        super()._perform(effect, now, until)


@pytest.mark.parametrize("kind", [Hasty, Forgetful])
def test_a_vote_that_leaves_before_it_is_on_the_disk_is_noticed(kind: type[CheckedRuntime]) -> None:
    World(BUSY, kind).run(20_000)
    assert any("forgets VoteRe" in breach for breach in CheckedRuntime.breaches)


def test_a_state_that_is_not_flushed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def replace_in_place(disk: MemoryDisk, path: str, text: bytes) -> None:
        file = disk.open(path)
        file.truncate(0)
        file.append(text)

    monkeypatch.setattr("isr_broker.storage.quorum_disk.replace", replace_in_place)
    World(BUSY).run(20_000)
    assert CheckedRuntime.breaches


# Time


def test_a_quiet_quorum_is_quiet() -> None:
    """A fetch waits half a second at the leader; without that a follower would ask a hundred times as often."""
    world = World(QUIET).run(5_000)
    before = Counter(world.asked)
    world.run(15_000)
    assert sorted(world.asked - before) == sorted((me, protocol.FETCH) for me in THREE - {world.leader()})
    assert all(18 <= count <= 22 for count in (world.asked - before).values())


def test_a_leader_without_followers_resigns_and_the_others_elect_another() -> None:
    """After one and a half times the fetch time-out; they themselves after that time-out and their election's."""
    world = World(QUIET).run(5_000)
    first = world.leader()
    assert first is not None
    world.apart = {first}
    world.run(5_000 + 2_400)
    assert part_name(world.runtimes[first].voter) == "leader"
    world.run(5_000 + 4_000)
    assert part_name(world.runtimes[first].voter) != "leader"
    world.run(15_000)
    second = world.leader()
    assert second not in (None, first)
    world.apart = set()
    world.run(20_000)
    assert world.runtimes[first].voter.quorum.leader == world.leader()


def test_a_leader_that_stops_in_order_tells_the_others_first() -> None:
    world = World(QUIET).run(5_000)
    first = world.leader()
    assert first is not None
    world.runtimes[first].shut_down(world.now)
    assert part_name(world.runtimes[first].voter) == "resigned"
    world.run(5_100)
    assert world.ends == {first: STOPPED}
    assert world.run(6_000).leader() in THREE - {first}, "the one that has most of the log does not wait"
    follower = next(iter(THREE - {first, world.leader()}))
    world.runtimes[follower].shut_down(world.now)
    assert world.ends[follower] == STOPPED, "a follower has nobody to tell"


def test_nobody_is_asked_often_by_a_voter_that_gets_errors_or_no_answer() -> None:
    """The leader is back, and leads no more: each fetch is an error, until a follower's time is over."""
    world = World(QUIET).run(5_000)
    first = world.leader()
    assert first is not None
    world.crash(first)
    world.start(first)
    before = Counter(world.asked)
    world.run(6_000)
    follower = next(iter(THREE - {first}))
    fetches = (world.asked - before)[follower, protocol.FETCH]
    assert 10 < fetches < 1_000 / QUIET.controller_quorum_retry_backoff_ms


# What is told


def test_a_leader_describes_the_quorum_and_the_others_name_it() -> None:
    world = World(BUSY).run(5_000)
    leader = world.leader()
    assert leader is not None
    partition = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    for me in THREE:
        (row,) = described(world.runtimes[me], {"topics": [partition]})
        assert row.number("leader_id") == leader
        assert row.number("error_code") == (0 if me == leader else 6)
        voters = {v.number("replica_id"): v for v in row.all("current_voters")}
        assert set(voters) == (THREE if me == leader else set())
        for q, voter in voters.items():
            assert world.runtimes[leader].voter.log.end - voter.number("log_end_offset") < 3
            assert (voter.number("last_fetch_timestamp") < 0) == (q == leader)
            assert world.now + 1_000_000 - voter.number("last_caught_up_timestamp") < 1_000


def described(runtime: VoterRuntime, fields: Answer) -> list[Fields]:
    frame = protocol.ask(protocol.DESCRIBE_QUORUM, 2, 1, "", fields)
    request = protocol.parse(frame[4:], SERVED_VERSIONS)
    assert isinstance(request, Request)
    answers = list[Answer]()
    runtime.serve(request, answers.append, 0)
    body = protocol.parse_answer(protocol.DESCRIBE_QUORUM, 2, protocol.answer_to(request, answers[0])[4:]).body
    return body.all("topics")[0].all("partitions")
