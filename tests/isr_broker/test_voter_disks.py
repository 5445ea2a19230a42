"""Three voters that are known by their disks, in simulated time: a disk is lost, and its node comes back with another.

It follows without a vote until it is put in again. Without this a voter that has forgotten its votes and its log could
vote once more, and what was committed could be lost, or an epoch have two leaders.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import pytest
from immutables import Map
from tests.isr_broker.test_voter_runtime import BUSY, CheckedRuntime, Member, World

from isr_broker.core.messages import Error
from isr_broker.core.quorum_messages import DirectoryId, VoteRequest, VoterNode, VoterSet
from isr_broker.core.voter_state import QuorumLeader, Voter
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.quorum_disk import QuorumDisk, write_first_checkpoint
from isr_broker.voter_runtime import VoterRuntime
from isr_broker.wire import protocol
from isr_broker.wire.control_records import checkpoint
from isr_broker.wire.protocol import Answer, Request
from isr_broker.wire.quorum_requests import Quorum

SERVERS = {-(2**31) + q: ("h", 9_000 + q) for q in (1, 2, 3)}
CHANGING = attrs.evolve(
    BUSY,
    metadata_max_idle_interval_ms=500,
    controller_quorum_voters="",
    controller_quorum_bootstrap_servers="h:9001,h:9002,h:9003",
    listeners="CONTROLLER://h:9001",
)


def node(me: int, disk: int) -> VoterNode:
    """A node, and how many disks it has lost."""
    return VoterNode(bytes([me, disk] * 8), (("CONTROLLER", "h", 9_000 + me),))


FIRST: VoterSet = Map({q: node(q, 0) for q in (1, 2, 3)})


@attrs.define
class Disks(World):
    """Voters whose disks can be lost; `lost` counts them, by the node."""

    lost: dict[int, int] = attrs.field(factory=dict[int, int])

    def start(self, me: int) -> None:
        """With a first disk it is formatted as a voter, and with a later one as none."""
        disk, count = self.disks[me], self.lost.get(me, 0)
        if not count and not disk.names("__cluster_metadata-0"):
            write_first_checkpoint(disk, checkpoint(FIRST, b"", 0, 0))
        directory = node(me, count).directory
        assert directory is not None
        quorum = Quorum(me=me, cluster="c", directory=directory, listener="CONTROLLER", places=SERVERS, dynamic=True)
        files = QuorumDisk.open(disk, None, Settings())
        self.runtimes[me] = self.kind(quorum, self.settings, files, Member(self, me))
        self.runtimes[me].start(self.now)

    def node_at(self, to: int) -> int:
        """A server that is asked for the leader has a number of its own."""
        return to + 2**31 if to < 0 else to

    def loses_disk(self, me: int) -> None:
        self.crash(me)
        self.lost[me] = self.lost.get(me, 0) + 1
        self.disks[me] = MemoryDisk()

    def asks(self, key: int, me: int, disk: int) -> list[Answer]:
        """The leader is asked for a change; the answers so far."""
        leader = self.leader()
        assert leader is not None
        fields = {
            "cluster_id": "c",
            "timeout": 5_000,
            "voter_id": me,
            "voter_directory_id": node(me, disk).directory,
            "listeners": [{"name": "CONTROLLER", "host": "h", "port": 9_000 + me}],
        }
        frame = protocol.ask(key, 0, 1, "", fields)
        request = protocol.parse(frame[4:], VoterRuntime.versions)
        assert isinstance(request, Request)
        answers = list[Answer]()
        self.runtimes[leader].serve(request, answers.append, self.now)
        return answers

    def answered(self, key: int, me: int, disk: int) -> Error:
        """What comes of it, once there is an answer; asked again of another leader, and while it takes too long."""
        for _ in range(20):
            answers = list[Answer]() if self.leader() is None else self.asks(key, me, disk)
            until = self.now + 6_000
            while not answers and self.now < until:
                self.run(self.now + 100)
            error = Error(answers[0]["error_code"]) if answers else Error.REQUEST_TIMED_OUT
            if error not in (Error.REQUEST_TIMED_OUT, Error.NOT_LEADER_OR_FOLLOWER):
                return error
        return Error.REQUEST_TIMED_OUT

    def puts_in_again(self, me: int) -> list[Error]:
        """The lost disk is removed, and the new one is added."""
        lost = self.lost[me]
        removed = self.answered(protocol.REMOVE_RAFT_VOTER, me, lost - 1)
        return [removed, self.answered(protocol.ADD_RAFT_VOTER, me, lost)]

    def commits_on(self) -> None:
        """More is committed."""
        before = len(self.committed)
        self.run(self.now + 10_000)
        assert len(self.committed) > before + 500


def test_a_node_with_another_disk_follows_without_a_vote_until_it_is_put_in_again() -> None:
    world = Disks(CHANGING).run(5_000)
    leader = world.leader()
    assert leader is not None
    me = min({1, 2, 3} - {leader})
    world.loses_disk(me)
    world.start(me)
    world.run(10_000)
    again = world.runtimes[me].voter
    assert again.log.end > world.runtimes[leader].voter.log.end - 4, "it has caught up"
    assert not again.votes
    part = world.runtimes[leader].voter.part
    assert isinstance(part, QuorumLeader)
    assert me not in part.ends or part.directories[me] == node(me, 0).directory, "it acknowledges nothing"
    assert world.answered(protocol.ADD_RAFT_VOTER, me, 1) is Error.DUPLICATE_VOTER
    assert world.answered(protocol.REMOVE_RAFT_VOTER, me, 1) is Error.VOTER_NOT_FOUND
    assert world.puts_in_again(me) == [Error.NONE, Error.NONE]
    world.commits_on()
    assert world.runtimes[me].voter.votes
    assert [r.voter.sets.last[me] for r in world.runtimes.values()] == [node(me, 1)] * 3
    assert not CheckedRuntime.breaches


def test_a_leader_that_is_removed_answers_and_resigns_and_may_be_added_again() -> None:
    world = Disks(CHANGING).run(5_000)
    leader = world.leader()
    assert leader is not None
    answers = world.asks(protocol.REMOVE_RAFT_VOTER, leader, 0)
    world.run(10_000)
    assert [answer["error_code"] for answer in answers] == [0]
    second = world.leader()
    assert second not in (None, leader)
    assert world.runtimes[leader].voter.quorum.leader == second, "it follows as an observer"
    assert world.answered(protocol.ADD_RAFT_VOTER, leader, 0) is Error.NONE
    world.commits_on()
    assert world.runtimes[leader].voter.votes


def test_all_voters_start_again_with_what_their_disks_have() -> None:
    world = Disks(CHANGING).run(5_000)
    for me in (1, 2, 3):
        world.crash(me)
    for me in (1, 2, 3):
        world.start(me)
        assert world.runtimes[me].voter.sets.last == FIRST
    world.commits_on()


SEEDS = (1, 2, 3, 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_disks_are_lost_one_after_the_other_and_nothing_that_was_committed(seed: int) -> None:
    """Among crashes and lost messages; whoever lost its disk is put in again before the next one does."""
    world = Disks(CHANGING, chance_of=random.Random(seed), loss=0.03).run(5_000)
    for _ in range(4):
        me = world.chance_of.choice([1, 2, 3])
        world.loses_disk(me)
        world.run(world.now + world.chance_of.randrange(4_000))
        world.start(me)
        world.run(world.now + world.chance_of.randrange(4_000))
        assert set(world.puts_in_again(me)) <= {Error.NONE, Error.VOTER_NOT_FOUND, Error.DUPLICATE_VOTER}
        world.run(world.now + 3_000)
        world.crash_one()
        world.run(world.now + 5_000)
    world.commits_on()
    assert len(world.leaders) > 2
    assert all(runtime.voter.votes for runtime in world.runtimes.values())
    assert not CheckedRuntime.breaches


def with_a_lost_disk(world: World, loses_disk: Callable[[int], None]) -> World:
    """What one voter and the leader have committed only the leader has, which is cut off; the third is back."""
    world.run(5_000)
    leader = world.leader()
    assert leader is not None
    behind, up_to_date = sorted({1, 2, 3} - {leader})
    world.apart = {behind}
    world.run(10_000)
    assert len(world.committed) > 800
    loses_disk(up_to_date)
    world.apart = {leader}
    world.start(up_to_date)
    return world.run(30_000)


def test_an_empty_disk_elects_nobody() -> None:
    world = Disks(CHANGING)
    with_a_lost_disk(world, world.loses_disk)
    assert world.leader() in (None, *world.apart)
    before = len(world.committed)
    world.apart = set()
    world.run(40_000)
    assert len(world.committed) > before


def test_one_that_votes_as_the_voter_that_it_was_loses_what_was_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(node: VoterNode | None, directory: DirectoryId | None) -> bool:
        return node is not None

    def is_asked(voter: Voter, request: VoteRequest) -> bool:
        return True

    monkeypatch.setattr("isr_broker.core.voter.is_asked", is_asked)
    monkeypatch.setattr("isr_broker.core.voter.names", names)
    world = Disks(CHANGING)
    with pytest.raises(AssertionError, match="startswith"):
        with_a_lost_disk(world, world.loses_disk)


def test_voters_that_are_known_by_their_ids_alone_lose_it_too() -> None:
    world = World(attrs.evolve(BUSY, metadata_max_idle_interval_ms=500))

    def loses_disk(me: int) -> None:
        world.crash(me)
        world.disks[me] = MemoryDisk()

    with pytest.raises(AssertionError, match="startswith"):
        with_a_lost_disk(world, loses_disk)
