"""The voter's core as a system under test: `insync conform kraft --sut "python -m isr_conform.voter_sut"`.

The same for `kraft-853`, where voters change.

The voters of a quorum, their disks, and what is on its way between them. A step of the model is one input of one core,
and what it asks for is done within that step: the disk first, then messages. Which answer is lost, and which timer runs
out, is the driver's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.core.log_view import LogView
from isr_broker.core.messages import Error
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    DirectoryId,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    SnapshotId,
    VoteRequest,
    VoteResponse,
    VoterId,
    VoterNode,
    VoterSet,
)
from isr_broker.core.record_batch import batches, new_batch, stamped
from isr_broker.core.voter import handle, started
from isr_broker.core.voter_state import (
    AddVoter,
    AnswerFetchSnapshot,
    AnswerQuorumFetch,
    AppendLeaderChange,
    AppendQuorumLog,
    AppendVoters,
    ChangeVoters,
    EndProcess,
    Failure,
    InstallSnapshot,
    KeepSnapshot,
    LeaderFound,
    Nominee,
    Propose,
    QuorumFollower,
    QuorumLeader,
    QuorumState,
    RefuseChange,
    RemoveVoter,
    RequestArrived,
    ResponseArrived,
    SaveQuorumState,
    SendRequest,
    SendResponse,
    Signal,
    TakeSnapshot,
    TruncateQuorumLog,
    UpdateVoter,
    Voter,
    VoterEffect,
    VoterInput,
    VoterSets,
    VoterStep,
    fixed_voters,
    part_name,
)
from isr_conform.kit import Adapter, Refused, Step, run

Pair: TypeAlias = "tuple[VoterId, VoterId]"
"""Who asks, and who is asked."""

TIMERS: Final = {
    "voter_stands": (Signal.TIMER, ("unattached", "follower", "candidate")),
    "prospective_gives_up": (Signal.TIMER, ("prospective",)),
    "resigned_stands": (Signal.TIMER, ("resigned",)),
    "leader_resigns": (Signal.RESIGN, ("leader",)),
}
"""Which input each of these actions is, and in which roles it is one."""

ARRIVALS: Final = {
    "voter_answers_pre_vote": ("nominee", "pre_vote"),
    "voter_answers_vote": ("nominee", "vote"),
    "voter_answers_begin": ("leader", "begin"),
    "voter_answers_end": ("leader", "end"),
    "leader_answers_fetch": ("f", "fetch"),
    "leader_answers_fetch_snapshot": ("f", "fetch_snapshot"),
}
"""The parameter that names the sender, and the kind of request that arrives."""

ANSWERS: Final = {
    "prospective_counts": ("pre_vote",),
    "candidate_counts": ("vote",),
    "leader_hears_error": ("begin", "end"),
    "follower_takes_fetch": ("fetch",),
    "follower_takes_snapshot": ("fetch_snapshot",),
}
"""The kinds of request to which an answer comes back."""

VARIABLES: Final[tuple[str, ...]] = (
    *("epoch", "vote", "leader", "log", "alive", "role", "high_watermark", "has_fetched", "granting", "rejecting"),
    *("follower_end", "request", "answer", "answer_epoch", "answer_leader", "answer_record", "answer_last_epoch"),
    *("answer_end", "answer_watermark", "writes", "restarts", "lost_disks", "leaders", "committed"),
)
"""All of the model with fixed voters, but that which says whether something was out of its range."""

CHANGING: Final[tuple[str, ...]] = (
    "directory",
    "vote_directory",
    "voters_at",
    "follower_directory",
    "answer_voters",
    "joiners",
    "changes",
)
"""What it has beside that where voters change, and `awaited_end` where they do."""

WITH_SNAPSHOTS: Final[tuple[str, ...]] = ("log_start", "fetching_snapshot", "answer_log", "snapshots")
"""What it has beside that where voters take snapshots."""

NO_RECORD: Final = new_batch(b"")
WITH_VOTERS: Final = new_batch(b"", 3)
"""A LeaderChange with the version of the log and its first voters. In the model it is one record, the first one."""


@attrs.frozen
class Disk:
    """What a voter keeps when its process ends: its quorum-state, the batches of its log, and which voters they have.

    `directory`: its id, None where that does not count. `snapshot`: the last one. The log has the records before that,
    too, which no core reads.
    """

    sets: VoterSets
    directory: DirectoryId | None = None
    quorum: QuorumState = attrs.field(factory=QuorumState)
    log: tuple[bytes, ...] = ()
    snapshot: SnapshotId | None = None

    @property
    def log_start(self) -> int:
        """Where the log begins."""
        return 0 if self.snapshot is None else self.snapshot.end

    def position(self, offset: int | None) -> int | None:
        """Which record of the model this offset is; a first batch with voters is one."""
        return offset if offset is None or self.directory is None else max(0, offset - 2)

    def view(self) -> LogView:
        """The log as a core knows it."""
        start = self.log_start
        whole = b"".join(self.log[self.position(start) :])
        return LogView(start=start, end=start).appended(batches(whole), flushed=True)

    def epochs(self) -> list[int]:
        """The epoch of each record."""
        return [batch.leader_epoch for data in self.log for batch in batches(data)]


@attrs.define
class Quorum:
    """A world: processes that run, disks, messages on their way, and what has happened so far."""

    voters: dict[VoterId, Voter | None]
    disks: dict[VoterId, Disk]
    requests: dict[Pair, RequestArrived] = attrs.field(factory=dict[Pair, RequestArrived])
    answers: dict[Pair, ResponseArrived] = attrs.field(factory=dict[Pair, ResponseArrived])
    joiners: frozenset[VoterId] = frozenset()
    changes: int = 0
    snapshots: int = 0
    writes: int = 0
    restarts: int = 0
    lost_disks: int = 0
    leaders: dict[int, frozenset[VoterId]] = attrs.field(factory=dict[int, frozenset[VoterId]])
    committed: tuple[int, ...] = ()
    committed_sets: tuple[tuple[int, VoterSet], ...] = ()
    failure: Failure | None = None
    refusal: Error | None = None

    def __deepcopy__(self, _: object) -> Quorum:
        """The values in it are shared, for they never change."""
        return attrs.evolve(
            self,
            voters=dict(self.voters),
            disks=dict(self.disks),
            requests=dict(self.requests),
            answers=dict(self.answers),
            leaders=dict(self.leaders),
            failure=None,
            refusal=None,
        )

    def running(self, r: VoterId) -> Voter:
        """The core of a voter; Refused if its process does not run."""
        voter = self.voters[r]
        if voter is None:
            raise Refused("its process does not run")
        return voter

    def tell(self, r: VoterId, voter_input: VoterInput) -> None:
        """Give a core an input, and do what it asks for."""
        self.take(r, handle(self.running(r), voter_input))

    def take(self, r: VoterId, step: VoterStep) -> None:
        """A voter after a step, with the effects of that."""
        self.voters[r] = step.voter
        self.disks[r] = attrs.evolve(self.disks[r], sets=step.voter.sets)
        for effect in step.effects:
            self._perform(r, effect)
        self._drop_what_nobody_awaits()
        self._note_history(r)

    def _perform(self, r: VoterId, effect: VoterEffect) -> None:
        disk = self.disks[r]
        match effect:
            case SaveQuorumState(quorum):
                self.disks[r] = attrs.evolve(disk, quorum=quorum)
            case AppendLeaderChange(epoch=epoch, offset=offset):
                batch = NO_RECORD if effect.first_voters is None else WITH_VOTERS
                self.disks[r] = attrs.evolve(disk, log=(*disk.log, stamped(batch, offset, epoch)))
            case AppendVoters(epoch=epoch, offset=offset):
                self.disks[r] = attrs.evolve(disk, log=(*disk.log, stamped(NO_RECORD, offset, epoch)))
            case RefuseChange(error):
                self.refusal = error
            case AppendQuorumLog(records):
                self.disks[r] = attrs.evolve(disk, log=(*disk.log, records))
            case TruncateQuorumLog(end):
                self.disks[r] = attrs.evolve(disk, log=disk.log[: disk.position(end)])
            case SendRequest(to=to, number=number, request=request):
                self.requests[r, to] = RequestArrived(sender=r, number=number, request=request)
                self.answers.pop((r, to), None)
            case SendResponse(to=to, number=number, response=response):
                self._answer(r, to, number, response)
            case AnswerQuorumFetch(to=to, number=number, response=response, slice=read):
                self._note_committed(r, response.high_watermark)
                at = disk.position(read.offset)
                records = b"".join(disk.log[at:][:1])
                ends = [batch.next_offset for batch in batches(records)]
                sets = tuple(s for s in disk.sets.records if ends and read.offset <= s[0] < ends[-1])
                self._answer(r, to, number, attrs.evolve(response, records=records, voters=sets))
            case AnswerFetchSnapshot(to=to, number=number, response=response):
                assert response.snapshot is not None
                contents = b"".join(disk.log[: disk.position(response.snapshot.end)])
                self._answer(r, to, number, attrs.evolve(response, contents=contents))
            case KeepSnapshot(snapshot):
                self.disks[r] = attrs.evolve(disk, snapshot=snapshot)
            case InstallSnapshot(snapshot, contents):
                log = tuple(contents[b.position : b.position + b.size] for b in batches(contents))
                self.disks[r] = attrs.evolve(disk, log=log, snapshot=snapshot)
            case EndProcess(failure):
                self.failure = failure

    def _answer(self, r: VoterId, to: VoterId, number: int, response: QuorumResponse) -> None:
        """An answer is on its way. One that says only that a leader was heard arrives at once, and changes nothing."""
        self.requests.pop((to, r), None)
        answer = ResponseArrived(sender=r, number=number, response=response)
        if isinstance(response, QuorumEpochResponse) and response.error is Error.NONE:
            self.take(to, handle(self.running(to), answer))
        else:
            self.answers[to, r] = answer

    def _drop_what_nobody_awaits(self) -> None:
        def is_awaited(pair: Pair, number: int) -> bool:
            voter = self.voters[pair[0]]
            opened = voter.requests.get(pair[1]) if voter is not None else None
            return opened is not None and opened.number == number

        self.requests = {pair: m for pair, m in self.requests.items() if is_awaited(pair, m.number)}
        self.answers = {pair: m for pair, m in self.answers.items() if is_awaited(pair, m.number)}

    def _note_history(self, r: VoterId) -> None:
        voter = self.voters[r]
        if voter is None or not isinstance(voter.part, QuorumLeader):
            return
        self.leaders[voter.epoch] = self.leaders.get(voter.epoch, frozenset()) | {r}
        self._note_committed(r, voter.high_watermark)

    def _note_committed(self, r: VoterId, watermark: int | None) -> None:
        disk, before = self.disks[r], len(self.committed)
        end = disk.position(watermark) or 0
        if end > before:
            self.committed = tuple(disk.epochs()[:end])
            new = ((disk.position(o) or 0, voters) for o, voters in disk.sets.records)
            self.committed_sets = (*self.committed_sets, *((o, voters) for o, voters in new if before <= o < end))

    def end_process(self, r: VoterId) -> None:
        """A process ends, with all that it asked; its answers to others are on their way still."""
        self.running(r)
        self.voters[r] = None
        self._drop_what_nobody_awaits()

    def start_process(self, r: VoterId) -> None:
        """A process starts with what is on its disk."""
        if self.voters[r] is not None:
            raise Refused("its process runs")
        disk = self.disks[r]
        self.take(r, started(r, disk.directory, disk.sets, disk.quorum, disk.view(), disk.snapshot))

    def all_running(self) -> Quorum:
        """Every process runs, and has done nothing so far."""
        self.voters = {
            r: Voter(me=r, directory=disk.directory, sets=disk.sets, snapshot=disk.snapshot)
            for r, disk in self.disks.items()
        }
        return self


def new_disks(voters: Iterable[VoterId], joiners: frozenset[VoterId] = frozenset()) -> dict[VoterId, Disk]:
    """Disks with the first directory id of each node, formatted with the voters that are no joiners, or without any."""
    voters, first = tuple(voters), bytes(1)
    of_voters = VoterSets(VoterSet({q: VoterNode(first) for q in voters if q not in joiners}))
    of_voter, of_joiner = Disk(of_voters, first, snapshot=SnapshotId(0, 0)), Disk(VoterSets(VoterSet()), first)
    return {r: of_joiner if r in joiners else of_voter for r in voters}


class VoterSut(Adapter[Quorum]):
    """A quorum of the voter's cores."""

    name = "the voter's core"
    variables: Sequence[str] | None = VARIABLES

    def refusal(self) -> str | None:
        """It is a voter of today's design."""
        if self.design not in ("kraft", "kraft-853"):
            return f"the voter's core is compared with kraft and kraft-853, not with {self.design}"
        parts: list[Sequence[str]] = [VARIABLES]
        if self.is_dynamic:
            parts += [CHANGING, ("committed_voters",), ("awaited_end",) if self.constants.get("changes") else ()]
        if self.constants.get("snapshots"):
            parts.append(WITH_SNAPSHOTS)
        self.variables = [name for names in parts for name in names]
        return None

    @property
    def is_dynamic(self) -> bool:
        """Voters have directory ids, and change."""
        return self.constants.get("dynamic") in (True, "on", 1)

    def reset(self, state: Mapping[str, object]) -> Quorum:
        """Every voter runs with an empty disk."""
        ids = [voter_id(name) for name in cast("dict[str, object]", state["epoch"])]
        return Quorum(
            dict.fromkeys(ids), new_disks(ids) if self.is_dynamic else {r: Disk(fixed_voters(ids)) for r in ids}
        ).all_running()

    def step(self, world: Quorum, action: str, parameters: Mapping[str, object]) -> None:
        """One input of the core of `r`."""
        ids = {name: voter_id(str(value)) for name, value in parameters.items() if name != "end"}
        r = ids.pop("r")
        other = next(iter(ids.values()), r)
        if action in TIMERS:
            signal, roles = TIMERS[action]
            if part_name(world.running(r)) not in roles:
                raise Refused(f"it is {part_name(world.running(r))}")
            if action == "voter_stands" and not world.running(r).votes:
                raise Refused("it is no voter")
            world.tell(r, signal)
        elif action in ARRIVALS:
            world.tell(r, request_at(world, r, other, (ARRIVALS[action][1],)))
        elif action in ANSWERS:
            world.tell(r, answer_at(world, r, other, ANSWERS[action]))
        elif action == "voter_takes_snapshot":
            take_snapshot(world, r, cast("int", parameters["end"]))
        else:
            FURTHER[action](world, r, other)
            return self._check_bounds(world)
        if world.failure is not None:
            raise Refused(f"its process ends: {world.failure.value}")
        self._check_bounds(world)

    def _check_bounds(self, world: Quorum) -> None:
        names = ("epochs", "log", "writes", "restarts", "lost_disks", "changes", "joiners", "snapshots")
        limits = {name: cast("int", self.constants[name]) for name in names}
        counts = {"writes": world.writes, "restarts": world.restarts, "lost_disks": world.lost_disks}
        counts |= {"changes": world.changes, "joiners": len(world.joiners), "snapshots": world.snapshots}
        counts["epochs"] = max(disk.quorum.epoch for disk in world.disks.values())
        counts["log"] = max(len(disk.log) for disk in world.disks.values())
        beyond = [name for name, count in counts.items() if count > limits[name]]
        if beyond:
            raise Refused(f"beyond the model's --{beyond[0]}")

    def candidates(self, world: Quorum) -> Iterable[Step]:
        """Every step that there is a name for."""
        for r in world.voters:
            for end in range(1, cast("int", self.constants["log"]) + 1):
                yield "voter_takes_snapshot", {"r": voter_name(r), "end": end}
            for action in (*TIMERS, *(name for name in FURTHER if name not in BETWEEN_TWO)):
                yield action, {"r": voter_name(r)}
            for q in world.voters:
                for action in (*ARRIVALS, *ANSWERS, *BETWEEN_TWO) if q != r else ("leader_removes_voter",):
                    yield action, {"r": voter_name(r), other_parameter(action): voter_name(q)}

    def snapshot(self, world: Quorum) -> Mapping[str, object]:
        """All variables of the model, but that which says whether something was out of its range."""
        epochs = cast("int", self.constants["epochs"])
        longest = cast("int", self.constants["log"])
        return {
            **of_voters(world),
            **of_messages(world),
            **(of_changes(world, longest) if self.is_dynamic else {}),
            **(of_snapshots(world) if self.constants.get("snapshots") else {}),
            "writes": world.writes,
            "restarts": world.restarts,
            "lost_disks": world.lost_disks,
            "leaders": {str(e): names(world.leaders.get(e, ())) for e in range(epochs + 1)},
            "committed": list(world.committed),
        }


def voter_id(name: str) -> VoterId:
    """The number in a name of the model."""
    return int(name[1:])


def voter_name(r: VoterId) -> str:
    """Its name in the model."""
    return f"v{r}"


def names(voters: Iterable[VoterId]) -> list[str]:
    """Their names in the model."""
    return [voter_name(q) for q in sorted(voters)]


def kind(request: QuorumRequest) -> str:
    """The name of a request in the model."""
    match request:
        case VoteRequest(pre_vote=pre_vote):
            return "pre_vote" if pre_vote else "vote"
        case BeginQuorumEpochRequest():
            return "begin"
        case EndQuorumEpochRequest():
            return "end"
        case QuorumFetchRequest():
            return "fetch"
        case FetchSnapshotRequest():
            return "fetch_snapshot"


def request_at(world: Quorum, r: VoterId, sender: VoterId, kinds: Iterable[str]) -> RequestArrived:
    """The request of the sender that is at r; Refused if there is none of this kind."""
    message = world.requests.get((sender, r))
    if message is None or kind(message.request) not in kinds:
        raise Refused("there is no such request")
    return message


def answer_at(world: Quorum, r: VoterId, q: VoterId, kinds: Iterable[str]) -> ResponseArrived:
    """The answer of q that is at r; Refused if there is none to this kind of request."""
    message = world.answers.get((r, q))
    if message is None or kind(world.running(r).requests[q].request) not in kinds:
        raise Refused("there is no such answer")
    return message


def append(world: Quorum, r: VoterId, other: VoterId) -> None:
    """A client writes a record to the leader."""
    if part_name(world.running(r)) != "leader":
        raise Refused(f"it is {part_name(world.running(r))}")
    world.writes += 1
    world.tell(r, Propose(NO_RECORD))


def crash(world: Quorum, r: VoterId, other: VoterId) -> None:
    """A process ends, and its disk stays."""
    world.end_process(r)
    world.restarts += 1


def lose_disk(world: Quorum, r: VoterId, other: VoterId) -> None:
    """A process ends, and its disk is gone. The next one has another directory id, and was formatted without voters."""
    world.end_process(r)
    directory = world.disks[r].directory
    if directory is None:
        world.disks[r] = Disk(fixed_voters(world.voters))
    else:
        world.disks[r] = Disk(VoterSets(VoterSet()), bytes([directory[0] + 1]))
    world.lost_disks += 1


def format_without_voters(world: Quorum, r: VoterId, other: VoterId) -> None:
    """Before anything else a node is formatted so that it is no voter at first."""
    is_new = all(disk == new_disks(world.voters, world.joiners)[q] for q, disk in world.disks.items())
    has_begun = any(v is None or part_name(v) != "unattached" for v in world.voters.values())
    joiners = world.joiners | {r}
    if not is_new or has_begun or r in world.joiners or len(joiners) == len(world.voters):
        raise Refused("it is too late")
    if world.disks[r].directory is None:
        raise Refused("voters do not change")
    world.joiners, world.disks = joiners, new_disks(world.voters, joiners)
    world.all_running()


def add(world: Quorum, r: VoterId, v: VoterId) -> None:
    """A leader adds a node, which has to answer first."""
    world.running(v)
    change(world, r, AddVoter(v, VoterNode(world.disks[v].directory)))


def remove(world: Quorum, r: VoterId, v: VoterId) -> None:
    """A leader removes a voter, which may be itself."""
    node = world.running(r).sets.last.get(v)
    if node is None:
        raise Refused("it is no voter")
    change(world, r, RemoveVoter(v, node.directory))


def update(world: Quorum, r: VoterId, v: VoterId) -> None:
    """A leader notes where a voter listens, which is not seen here."""
    change(world, r, UpdateVoter(v, VoterNode(world.disks[v].directory)))


def change(world: Quorum, r: VoterId, changes: ChangeVoters) -> None:
    """A leader is told to change the voters; Refused if it refuses."""
    world.tell(r, changes)
    if world.refusal is not None:
        raise Refused(world.refusal.name)
    world.changes += 1


def take_snapshot(world: Quorum, r: VoterId, end: int) -> None:
    """A voter takes a snapshot of so many records."""
    before, is_dynamic = world.running(r), world.disks[r].directory is not None
    world.tell(r, TakeSnapshot(end + 2 if is_dynamic else end))
    if world.running(r) == before:
        raise Refused("it has one, or not all of that is committed")
    world.snapshots += 1


def find(world: Quorum, r: VoterId, q: VoterId) -> None:
    """An observer asks another node, and hears at once."""
    before, quorum = world.running(r), world.running(q).quorum
    world.tell(r, LeaderFound(quorum.epoch, quorum.leader))
    if world.running(r) == before:
        raise Refused("that is no news, or it is no observer")


def start(world: Quorum, r: VoterId, other: VoterId) -> None:
    """A process starts again."""
    world.start_process(r)


def fail_at(world: Quorum, r: VoterId, message: VoterInput) -> None:
    """A message names an impossible leader, and the process ends."""
    world.tell(r, message)
    if world.failure is not Failure.IMPOSSIBLE_LEADER:
        raise Refused("its process goes on")
    world.end_process(r)


def fail_at_answer(world: Quorum, r: VoterId, q: VoterId) -> None:
    """An answer names it."""
    fail_at(world, r, answer_at(world, r, q, [k for kinds in ANSWERS.values() for k in kinds]))


def fail_at_request(world: Quorum, r: VoterId, leader: VoterId) -> None:
    """A Begin- or EndQuorumEpoch names it."""
    fail_at(world, r, request_at(world, r, leader, ("begin", "end")))


FURTHER: Final[dict[str, Callable[[Quorum, VoterId, VoterId], None]]] = {
    "leader_appends": append,
    "voter_crashes": crash,
    "voter_loses_disk": lose_disk,
    "voter_starts": start,
    "voter_fails_at_answer": fail_at_answer,
    "voter_fails_at_request": fail_at_request,
    "node_is_formatted_without_voters": format_without_voters,
    "leader_adds_voter": add,
    "leader_removes_voter": remove,
    "leader_updates_voter": update,
    "observer_finds_leader": find,
}
BETWEEN_TWO: Final = {
    "voter_fails_at_answer": "q",
    "voter_fails_at_request": "leader",
    "leader_adds_voter": "v",
    "leader_removes_voter": "v",
    "leader_updates_voter": "v",
    "observer_finds_leader": "q",
}
"""The further actions that two voters have a part in, and what the model calls the second."""


def other_parameter(action: str) -> str:
    """What the model calls the second voter of an action."""
    return ARRIVALS[action][0] if action in ARRIVALS else BETWEEN_TWO.get(action, "q")


def of_voters(world: Quorum) -> dict[str, object]:
    """The variables of voters, each by its name."""
    disks = {voter_name(r): disk for r, disk in world.disks.items()}
    alive = {r: voter for r, voter in world.voters.items() if voter is not None}

    def of_alive(value: Callable[[Voter], object], otherwise: object) -> dict[str, object]:
        return {voter_name(r): value(alive[r]) if r in alive else otherwise for r in world.voters}

    def of_nominee(value: Callable[[Nominee], Iterable[VoterId]]) -> dict[str, object]:
        return of_alive(lambda v: names(value(v.part)) if isinstance(v.part, Nominee) else [], [])

    def ends(voter: Voter) -> dict[str, object]:
        part = voter.part
        here = world.disks[voter.me]
        of_leader = part.ends if isinstance(part, QuorumLeader) else None
        return {voter_name(q): here.position(of_leader.get(q) if of_leader else None) for q in world.voters}

    has_fetched = [r for r, v in alive.items() if isinstance(v.part, QuorumFollower) and v.part.has_fetched]
    return {
        "epoch": {name: disk.quorum.epoch for name, disk in disks.items()},
        "vote": {name: maybe_name(disk.quorum.vote) for name, disk in disks.items()},
        "leader": {name: maybe_name(disk.quorum.leader) for name, disk in disks.items()},
        "log": {name: disk.epochs() for name, disk in disks.items()},
        "alive": names(alive),
        "role": of_alive(part_name, "unattached"),
        "high_watermark": of_alive(lambda v: world.disks[v.me].position(v.high_watermark), None),
        "has_fetched": names(has_fetched),
        "granting": of_nominee(lambda part: part.granting),
        "rejecting": of_nominee(lambda part: part.rejecting),
        "follower_end": of_alive(ends, dict.fromkeys(disks)),
    }


def maybe_name(r: VoterId | None) -> str | None:
    """Its name in the model, if there is one."""
    return None if r is None else voter_name(r)


def of_messages(world: Quorum) -> dict[str, object]:
    """The variables of requests and their answers, each by its name."""

    def of_pairs(value: Callable[[VoterId, VoterId], object]) -> dict[str, object]:
        return {voter_name(r): {voter_name(q): value(r, q) for q in world.voters} for r in world.voters}

    def request(r: VoterId, q: VoterId) -> str:
        voter = world.voters[r]
        opened = voter.requests.get(q) if voter is not None else None
        return "none" if opened is None else kind(opened.request)

    def of_answers(value: Callable[[QuorumResponse], object], otherwise: object) -> dict[str, object]:
        def of_pair(r: VoterId, q: VoterId) -> object:
            answer = world.answers.get((r, q))
            return otherwise if answer is None else value(answer.response)

        return of_pairs(of_pair)

    position = next(iter(world.disks.values())).position

    def of_fetches(value: Callable[[QuorumFetchResponse], object], otherwise: object) -> dict[str, object]:
        return of_answers(lambda a: value(a) if isinstance(a, QuorumFetchResponse) else otherwise, otherwise)

    return {
        "request": of_pairs(request),
        "answer": of_answers(answer_kind, "none"),
        "answer_epoch": of_answers(lambda a: a.epoch, 0),
        "answer_leader": of_answers(lambda a: maybe_name(a.leader), None),
        "answer_record": of_fetches(lambda a: next((b.leader_epoch for b in batches(a.records)), None), None),
        "answer_last_epoch": of_fetches(lambda a: a.diverging.epoch if a.diverging is not None else 0, 0),
        "answer_end": of_fetches(lambda a: position(answer_end(a)), 0),
        "answer_watermark": of_fetches(lambda a: position(a.high_watermark), None),
    }


def number_of(directory: DirectoryId | None) -> int:
    """The directory id in the model."""
    return 0 if directory is None else directory[0]


def of_changes(world: Quorum, log: int) -> dict[str, object]:
    """The variables of voters that change, each by its name; `log` is how long a log may get."""
    everybody = sorted(world.voters)

    def of_set(voters: VoterSet) -> dict[str, object]:
        return {voter_name(q): number_of(voters[q].directory) if q in voters else None for q in everybody}

    def of_log(sets: Iterable[tuple[int, VoterSet]]) -> dict[str, object]:
        found = dict(sets)
        return {str(o): of_set(found.get(o, VoterSet())) for o in range(log + 1)}

    def sets_of(disk: Disk) -> dict[str, object]:
        return of_log((disk.position(o) or 0, voters) for o, voters in disk.sets.records)

    def of_leader(r: VoterId, value: Callable[[QuorumLeader, VoterId], object], otherwise: object) -> dict[str, object]:
        voter = world.voters[r]
        part = voter.part if voter is not None else None
        return {voter_name(q): value(part, q) if isinstance(part, QuorumLeader) else otherwise for q in everybody}

    def answer_voters(r: VoterId, q: VoterId) -> dict[str, object]:
        answer = world.answers.get((r, q))
        if answer is not None and isinstance(answer.response, FetchSnapshotResponse):
            return of_set(answer.response.voters or VoterSet())
        sets = answer.response.voters if answer is not None and isinstance(answer.response, QuorumFetchResponse) else ()
        return of_set(sets[0][1] if sets else VoterSet())

    disks = {voter_name(r): disk for r, disk in world.disks.items()}
    position = next(iter(world.disks.values())).position
    return {
        "directory": {name: number_of(disk.directory) for name, disk in disks.items()},
        "vote_directory": {name: number_of(disk.quorum.vote_directory) for name, disk in disks.items()},
        "voters_at": {name: sets_of(disk) for name, disk in disks.items()},
        "follower_directory": {
            voter_name(r): of_leader(r, lambda part, q: number_of(part.directories.get(q)), 0) for r in everybody
        },
        "awaited_end": {
            voter_name(r): of_leader(r, lambda part, q: position(part.catch_up_ends.get(q)), None) for r in everybody
        },
        "answer_voters": {voter_name(r): {voter_name(q): answer_voters(r, q) for q in everybody} for r in everybody},
        "joiners": names(world.joiners),
        "changes": world.changes,
        "committed_voters": of_log(world.committed_sets),
    }


def answer_end(response: QuorumFetchResponse) -> int:
    """Where an epoch ends that a fetch is told of, or a snapshot."""
    if response.snapshot is not None:
        return response.snapshot.end
    return response.diverging.end if response.diverging is not None else 0


def of_snapshots(world: Quorum) -> dict[str, object]:
    """The variables of snapshots, each by its name."""
    everybody = sorted(world.voters)

    def fetching(r: VoterId) -> int:
        voter = world.voters[r]
        part = voter.part if voter is not None else None
        snapshot = part.snapshot if isinstance(part, QuorumFollower) else None
        return 0 if snapshot is None else world.disks[r].position(snapshot.end) or 0

    def answer_log(r: VoterId, q: VoterId) -> list[int]:
        answer = world.answers.get((r, q))
        response = answer.response if answer is not None else None
        contents = response.contents if isinstance(response, FetchSnapshotResponse) else b""
        return [batch.leader_epoch for batch in batches(contents)]

    return {
        "log_start": {voter_name(r): disk.position(disk.log_start) for r, disk in world.disks.items()},
        "fetching_snapshot": {voter_name(r): fetching(r) for r in everybody},
        "answer_log": {voter_name(r): {voter_name(q): answer_log(r, q) for q in everybody} for r in everybody},
        "snapshots": world.snapshots,
    }


def answer_kind(response: QuorumResponse) -> str:
    """The name of an answer in the model."""
    if response.error is Error.SNAPSHOT_NOT_FOUND:
        return "snapshot"
    if response.error is not Error.NONE:
        return "error"
    match response:
        case VoteResponse(vote_granted=vote_granted):
            return "grant" if vote_granted else "rejection"
        case FetchSnapshotResponse():
            return "snapshot"
        case QuorumFetchResponse(snapshot=SnapshotId()):
            return "snapshot_id"
        case QuorumFetchResponse(diverging=diverging):
            return "fetched" if diverging is None else "diverging"
        case _:
            raise AssertionError(f"{response} arrives at once")


if __name__ == "__main__":
    run(VoterSut())
