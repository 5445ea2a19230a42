"""Three controllers on their quorum in simulated time, and brokers that ask them: what was said stays so.

Controllers crash and messages are lost. Without these a controller could answer before a majority has its records, or
begin without those of the leader before, and a topic that somebody was told of would be gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

import attrs
import pytest
from tests.isr_broker.test_voter_runtime import BUSY, PLACES, THREE, Member, World

from isr_broker.controller_runtime import ControllerRuntime
from isr_broker.core.controller import controller_begins
from isr_broker.core.controller_state import Controller, has
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.inputs import Written
from isr_broker.core.messages import (
    NOTHING_READ,
    AdminAnswer,
    AlterPartitionRequest,
    BrokerRegistered,
    CreateTopic,
    Error,
    FetchMetadata,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    Metadata,
    MetadataPosition,
    Millis,
    RegisterBroker,
    error_of,
)
from isr_broker.core.stamps import bare
from isr_broker.core.topics import uuid_of
from isr_broker.core.voter_state import QuorumLeader
from isr_broker.settings import Settings
from isr_broker.storage.quorum_disk import QuorumDisk
from isr_broker.voter_runtime import VoterRuntime
from isr_broker.wire import protocol
from isr_broker.wire.controller_channels import AlterPartitions, Lifecycle
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.protocol import Answer, Request
from isr_broker.wire.quorum_requests import Quorum

SETTINGS = Settings.from_properties({"default.replication.factor": "3", "min.insync.replicas": "2"})
BROKERS = (11, 12, 13)
CALLS_EVERY: Millis = 200


@attrs.define
class Controllers(World):
    """Controllers in place of voters, and brokers that call them.

    `answered` are the topics that somebody was told of, by their names; `read` where brokers have read the log;
    `refused` what ends a broker.
    """

    runs: type[ControllerRuntime] = ControllerRuntime
    core_settings: Settings = SETTINGS
    callers: dict[int, Caller] = attrs.field(init=False)
    answered: dict[str, int] = attrs.field(factory=dict[str, int])
    read: set[MetadataPosition] = attrs.field(factory=set[MetadataPosition])
    refused: list[Message] = attrs.field(factory=list[Message])
    active: list[int] = attrs.field(factory=list[int])

    def __attrs_post_init__(self) -> None:
        World.__attrs_post_init__(self)
        self.callers = {broker: Caller(self, broker) for broker in BROKERS}
        for caller in self.callers.values():
            caller.calls()

    def start(self, me: int) -> None:
        quorum = Quorum(me=me, cluster="c", directory=bytes([me] * 16), listener="CONTROLLER", places=PLACES)
        files = QuorumDisk.open(self.disks[me], THREE, Settings())
        outside = Member(self, me)
        runtime = self.runs(quorum, self.settings, files, outside, core_settings=self.core_settings, post=self.post)
        self.runtimes[me] = runtime
        runtime.start(self.now)

    def post(self, to: int, address: tuple[str, int], message: Message) -> None:
        if self.chance_of.random() >= self.loss:
            self.later(self.chance_of.randrange(1, 10), lambda: self.callers[to].hears(message))

    def crash_one(self) -> None:
        """The active controller, if there is one."""
        me = self.leader() or self.chance_of.choice(sorted(self.runtimes))
        self.crash(me)
        self.later(1_000, lambda: self.start(me))

    def controller(self) -> Controller | None:
        """The core of the controller that leads."""
        me = self.leader()
        return None if me is None else cast("ControllerRuntime", self.runtimes[me]).controller

    def look(self) -> None:
        """Which controllers were active; that voters keep what is committed has its own tests."""
        for me, voter in self.runtimes.items():
            runtime = cast("ControllerRuntime", voter)
            if runtime.controller is not None and self.active[-1:] != [me]:
                self.active.append(me)

    def losses(self) -> list[str]:
        """What somebody was told, and is not so at the end."""
        core = self.controller()
        assert core is not None, "nobody leads at the end"
        topics = {tp.topic: p.topic_id for tp, p in core.partitions.items()}
        lost = [f"topic {name}" for name, topic_id in self.answered.items() if topics.get(name) != topic_id]
        lost += [f"{position} was read" for position in sorted(self.read, key=str) if not has(core, position)]
        return lost + [f"a broker was refused: {message}" for message in self.refused]


@attrs.define
class Caller:
    """A broker as controllers see it: it registers, shows that it lives, reads the metadata, and wants topics."""

    world: Controllers
    me: int
    lives: Lifecycle = attrs.field(init=False)
    to: int = 1
    broker_epoch: int = -1
    position: MetadataPosition = NOTHING_READ
    asked_at: Millis | None = None
    names: dict[int, str] = attrs.field(factory=dict[int, str])
    gone: bool = False

    def __attrs_post_init__(self) -> None:
        self.lives = Lifecycle(self.me, "c")

    def calls(self) -> None:
        world = self.world
        if self.gone:
            return
        world.later(CALLS_EVERY, self.calls)
        if self.asked_at is not None and world.now - self.asked_at > 5 * CALLS_EVERY:
            self.goes(None)
        if self.asked_at is None:
            self.lives.put(self.says())
            frame = self.lives.next()
            assert frame is not None
            request = protocol.parse(frame[4:], ControllerRuntime.versions)
            assert isinstance(request, Request)
            self.asked_at, to = world.now, self.to
            self.travels(lambda: self.arrives(to, request))
        if self.broker_epoch >= 0:
            self.reads()

    def says(self) -> RegisterBroker | Heartbeat:
        if self.broker_epoch < 0:
            directory = "A" * 20 + "Z" + "AQgw"[self.me % 10]
            return RegisterBroker(
                broker=self.me, incarnation=self.me, host="h", port=self.me, cluster="c", directory=directory
            )
        return Heartbeat(broker=self.me, broker_epoch=self.broker_epoch, metadata_offset=self.position.offset)

    def reads(self) -> None:
        offset, life, number = self.position.offset, self.position.life, len(self.names)
        news = FetchMetadata(broker=self.me, broker_epoch=self.broker_epoch, offset=offset, life=life)
        topic = CreateTopic(request=number, topic=f"t{self.me}.{number}", partitions=2)
        self.names[number] = topic.topic
        to = self.to
        self.travels(lambda: self.tells(to, [news, topic]))

    def travels(self, then: Callable[[], None]) -> None:
        if self.world.chance_of.random() >= self.world.loss:
            self.world.later(self.world.chance_of.randrange(1, 10), then)

    def tells(self, to: int, messages: list[Message]) -> None:
        runtime = self.world.runtimes.get(to)
        if isinstance(runtime, ControllerRuntime):
            runtime.receive_messages([(self.me, CONTROLLER, message) for message in messages], self.world.now)

    def arrives(self, to: int, request: Request) -> None:
        def reply(answer: Answer) -> None:
            frame = protocol.answer_to(request, answer)[4:]
            self.travels(lambda: self.takes(frame))

        if to in self.world.runtimes:
            self.world.runtimes[to].serve(request, reply, self.world.now)

    def takes(self, frame: bytes) -> None:
        try:
            parcels = self.lives.take_answer(frame)
        except BadFrame:
            return self.goes(self.lives.elsewhere)
        self.asked_at = None
        for _, _, envelope in parcels:
            self.hears(bare(envelope))

    def goes(self, elsewhere: tuple[str, int] | None) -> None:
        self.asked_at = None
        found = [me for me, place in PLACES.items() if place == elsewhere]
        self.to = found[0] if found else self.to % len(PLACES) + 1

    def hears(self, message: Message) -> None:
        match message:
            case BrokerRegistered(error=Error.NONE, broker_epoch=epoch):
                self.broker_epoch = epoch
            case Metadata(since=since, offset=offset, life=life) if since <= self.position.offset < offset:
                self.position = MetadataPosition(offset, life)
                self.world.read.add(self.position)
            case AdminAnswer(request=number, error=Error.NONE, topic_id=topic_id):
                self.world.answered[self.names[number]] = topic_id
            case BrokerRegistered(error=error) | HeartbeatAnswer(error=error) if error is not Error.NONE:
                self.world.refused.append(message)
            case _:
                pass


FAULTS = range(3_000, 28_000, 3_000)
SEEDS = (1, 2, 3)


def run(runs: type[ControllerRuntime] = ControllerRuntime, seed: int = 1, loss: float = 0.05) -> Controllers:
    world = Controllers(BUSY, VoterRuntime, random.Random(seed), loss, runs=runs)
    world.run(30_000, faults=FAULTS)
    world.loss = 0.0
    world.run(35_000)
    return world


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_a_controller_said_is_lost_when_leaders_crash(seed: int) -> None:
    world = run(seed=seed)
    assert not world.losses()
    assert len(world.active) > len(FAULTS) // 2, "or no controller was ever lost"
    assert len(world.answered) > 50, "or nobody was told anything"
    assert len(world.read) > 50


def test_what_the_log_says_is_what_its_active_controller_decided() -> None:
    world = Controllers(BUSY, VoterRuntime)
    world.run(10_000)
    (leader,) = [r for r in world.runtimes.values() if isinstance(r.voter.part, QuorumLeader)]
    assert isinstance(leader, ControllerRuntime)
    core = leader.controller
    assert core is not None
    for voter in world.runtimes.values():
        assert isinstance(voter, ControllerRuntime)
        image = voter.image.controller
        assert core.offset - image.offset < 20
        same = [tp for tp, p in image.partitions.items() if core.partitions.get(tp) == p]
        assert len(same) == len(image.partitions) > 100
        assert image.brokers == core.brokers
    assert not any(b.fenced for b in core.brokers.values())


def answered_when_cut_off(runs: type[ControllerRuntime]) -> list[Error]:
    """What a controller says of an unknown registration and of a partition, while nobody hears it that could vote."""
    world = Controllers(BUSY, VoterRuntime, runs=runs)
    world.run(10_000)
    first = world.leader()
    assert first is not None
    world.apart = {first}
    runtime, codes = world.runtimes[first], list[Error]()
    stale = Lifecycle(14, "c")
    stale.put(Heartbeat(broker=14, broker_epoch=1, metadata_offset=1))
    core = world.controller()
    assert core is not None
    partition = next(p for p in core.partitions.values() if p.leader == 11)
    proposal = AlterPartitionRequest(
        partition=partition.partition,
        leader=11,
        broker_epoch=core.brokers[11].epoch,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch + 1,
        isr=((11, -1),),
    )
    alters = AlterPartitions(11, "c", lambda topic: uuid_of(partition.topic_id))
    alters.put(proposal)
    for says in (stale, alters):
        frame = says.next()
        assert frame is not None
        request = protocol.parse(frame[4:], ControllerRuntime.versions)
        assert isinstance(request, Request)
        runtime.serve(request, lambda answer: codes.append(error_of(cast("int", answer.get("error_code", 0)))), 10_000)
    world.run(16_000)
    assert world.leader() not in (None, first)
    return codes


def test_a_leader_that_is_cut_off_neither_refuses_nor_confirms() -> None:
    assert answered_when_cut_off(ControllerRuntime) == [Error.NOT_CONTROLLER] * 2


class Hasty(ControllerRuntime):
    """It says at once what needs no record."""

    def waits_for_commit(self, message: Message) -> bool:
        return False


def test_one_that_does_is_noticed() -> None:
    assert answered_when_cut_off(Hasty) != [Error.NOT_CONTROLLER] * 2


class AnswersAtOnce(ControllerRuntime):
    """What its own disk has it takes for committed."""

    def _confirms(self, now: Millis) -> bool:
        if self.proposal_end is not None and self.controller is not None:
            for answer in self._tell(Written(self.controller.offset, False), now):
                self._send(answer)
        return ControllerRuntime._confirms(self, now)


class BeginsAnew(ControllerRuntime):
    """It leads, and begins with nothing."""

    def _claims(self, now: Millis) -> None:
        ControllerRuntime._claims(self, now)
        self.controller = controller_begins(Controller(settings=SETTINGS, cluster=self.cluster), now)


class BeginsEarly(ControllerRuntime):
    """It leads, and decides before it knows all that was committed."""

    def _step(self, now: Millis) -> bool:
        if isinstance(self.voter.part, QuorumLeader) and self.controller is None:
            self._claims(now)
            return True
        return ControllerRuntime._step(self, now)


@pytest.mark.long
@pytest.mark.parametrize("planted", [AnswersAtOnce, BeginsAnew, BeginsEarly])
def test_what_a_controller_must_not_do_is_noticed(planted: type[ControllerRuntime]) -> None:
    assert any(run(planted, seed).losses() for seed in SEEDS)
