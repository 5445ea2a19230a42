"""The voter's core as a system under test: `insync conform kraft --sut "python -m isr_conform.voter_sut"`.

The voters of a quorum, their disks, and what is on its way between them. A step of the model is one input of one core,
and what it asks for is done within that step: the disk first, then messages. Which answer is lost, and which timer runs
out, is the driver's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.core.log_view import LogView
from isr_broker.core.messages import Error
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
    VoteResponse,
    VoterId,
)
from isr_broker.core.record_batch import batches, new_batch, stamped
from isr_broker.core.voter import handle, started
from isr_broker.core.voter_state import (
    AnswerQuorumFetch,
    AppendLeaderChange,
    AppendQuorumLog,
    EndProcess,
    Failure,
    Nominee,
    Propose,
    QuorumFollower,
    QuorumLeader,
    QuorumState,
    RequestArrived,
    ResponseArrived,
    SaveQuorumState,
    SendRequest,
    SendResponse,
    Signal,
    TruncateQuorumLog,
    Voter,
    VoterEffect,
    VoterInput,
    VoterStep,
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
}
"""The parameter that names the sender, and the kind of request that arrives."""

ANSWERS: Final = {
    "prospective_counts": ("pre_vote",),
    "candidate_counts": ("vote",),
    "leader_hears_error": ("begin", "end"),
    "follower_takes_fetch": ("fetch",),
}
"""The kinds of request to which an answer comes back."""

VARIABLES: Final = (
    *("epoch", "vote", "leader", "log", "alive", "role", "high_watermark", "has_fetched", "granting", "rejecting"),
    *("follower_end", "request", "answer", "answer_epoch", "answer_leader", "answer_record", "answer_last_epoch"),
    *("answer_end", "answer_watermark", "writes", "restarts", "lost_disks", "leaders", "committed"),
)
"""All of the model, but that which says whether something was out of its range."""

NO_RECORD: Final = new_batch(b"")


@attrs.frozen
class Disk:
    """What a voter keeps when its process ends: its quorum-state, and the batches of its log."""

    quorum: QuorumState = attrs.field(factory=QuorumState)
    log: tuple[bytes, ...] = ()

    def view(self) -> LogView:
        """The log as a core knows it."""
        return LogView().appended(batches(b"".join(self.log)), flushed=True)

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
    writes: int = 0
    restarts: int = 0
    lost_disks: int = 0
    leaders: dict[int, frozenset[VoterId]] = attrs.field(factory=dict[int, frozenset[VoterId]])
    committed: tuple[int, ...] = ()
    failure: Failure | None = None

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
                self.disks[r] = attrs.evolve(disk, log=(*disk.log, stamped(NO_RECORD, offset, epoch)))
            case AppendQuorumLog(records):
                self.disks[r] = attrs.evolve(disk, log=(*disk.log, records))
            case TruncateQuorumLog(end):
                self.disks[r] = attrs.evolve(disk, log=disk.log[:end])
            case SendRequest(to=to, number=number, request=request):
                self.requests[r, to] = RequestArrived(sender=r, number=number, request=request)
                self.answers.pop((r, to), None)
            case SendResponse(to=to, number=number, response=response):
                self._answer(r, to, number, response)
            case AnswerQuorumFetch(to=to, number=number, response=response, slice=read):
                self._answer(r, to, number, attrs.evolve(response, records=b"".join(disk.log[read.offset :][:1])))
            case EndProcess(failure):
                self.failure = failure

    def _answer(self, r: VoterId, to: VoterId, number: int, response: QuorumResponse) -> None:
        """An answer is on its way. One that says only that a leader was heard arrives at once, and changes nothing."""
        self.requests.pop((to, r))
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
        if (voter.high_watermark or 0) > len(self.committed):
            self.committed = tuple(self.disks[r].epochs()[: voter.high_watermark])

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
        self.take(r, started(r, frozenset(self.voters), disk.quorum, disk.view()))


class VoterSut(Adapter[Quorum]):
    """A fixed quorum of the voter's cores."""

    name = "the voter's core"
    variables = VARIABLES

    def refusal(self) -> str | None:
        """Voters that change, and snapshots, it does not have."""
        if self.design != "kraft":
            return f"the voter's core is compared with kraft, not with {self.design}"
        wanted = [name for name in ("dynamic", "snapshots") if self.constants.get(name) not in (0, False, "off", None)]
        return f"the voter's core has nothing of --{wanted[0]}" if wanted else None

    def reset(self, state: Mapping[str, object]) -> Quorum:
        """Every voter runs with an empty disk."""
        ids = [voter_id(name) for name in cast("dict[str, object]", state["epoch"])]
        voters = {r: started(r, frozenset(ids), QuorumState(), LogView()).voter for r in ids}
        return Quorum(dict(voters), {r: Disk() for r in ids})

    def step(self, world: Quorum, action: str, parameters: Mapping[str, object]) -> None:
        """One input of the core of `r`."""
        ids = {name: voter_id(str(value)) for name, value in parameters.items()}
        r = ids.pop("r")
        other = next(iter(ids.values()), r)
        if action in TIMERS:
            told, roles = TIMERS[action]
            if part_name(world.running(r)) not in roles:
                raise Refused(f"it is {part_name(world.running(r))}")
            world.tell(r, told)
        elif action in ARRIVALS:
            world.tell(r, request_at(world, r, other, (ARRIVALS[action][1],)))
        elif action in ANSWERS:
            world.tell(r, answer_at(world, r, other, ANSWERS[action]))
        else:
            FURTHER[action](world, r, other)
            return self._check_bounds(world)
        if world.failure is not None:
            raise Refused(f"its process ends: {world.failure.value}")
        self._check_bounds(world)

    def _check_bounds(self, world: Quorum) -> None:
        limits = {
            name: cast("int", self.constants[name]) for name in ("epochs", "log", "writes", "restarts", "lost_disks")
        }
        counts = {"writes": world.writes, "restarts": world.restarts, "lost_disks": world.lost_disks}
        counts["epochs"] = max(disk.quorum.epoch for disk in world.disks.values())
        counts["log"] = max(len(disk.log) for disk in world.disks.values())
        beyond = [name for name, count in counts.items() if count > limits[name]]
        if beyond:
            raise Refused(f"beyond the model's --{beyond[0]}")

    def candidates(self, world: Quorum) -> Iterable[Step]:
        """Every step that there is a name for."""
        for r in world.voters:
            for action in (*TIMERS, *(name for name in FURTHER if name not in BETWEEN_TWO)):
                yield action, {"r": voter_name(r)}
            for q in world.voters:
                if q != r:
                    for action in (*ARRIVALS, *ANSWERS, *BETWEEN_TWO):
                        yield action, {"r": voter_name(r), other_parameter(action): voter_name(q)}

    def snapshot(self, world: Quorum) -> Mapping[str, object]:
        """All variables of the model, but that which says whether something was out of its range."""
        epochs = cast("int", self.constants["epochs"])
        return {
            **of_voters(world),
            **of_messages(world),
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
    """A process ends, and its disk is gone."""
    world.end_process(r)
    world.disks[r] = Disk()
    world.lost_disks += 1


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
}
BETWEEN_TWO: Final = ("voter_fails_at_answer", "voter_fails_at_request")


def other_parameter(action: str) -> str:
    """What the model calls the second voter of an action."""
    if action in ARRIVALS:
        return ARRIVALS[action][0]
    return "leader" if action == "voter_fails_at_request" else "q"


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
        return {voter_name(q): part.ends.get(q) if isinstance(part, QuorumLeader) else None for q in world.voters}

    has_fetched = [r for r, v in alive.items() if isinstance(v.part, QuorumFollower) and v.part.has_fetched]
    return {
        "epoch": {name: disk.quorum.epoch for name, disk in disks.items()},
        "vote": {name: maybe_name(disk.quorum.vote) for name, disk in disks.items()},
        "leader": {name: maybe_name(disk.quorum.leader) for name, disk in disks.items()},
        "log": {name: disk.epochs() for name, disk in disks.items()},
        "alive": names(alive),
        "role": of_alive(part_name, "unattached"),
        "high_watermark": of_alive(lambda v: v.high_watermark, None),
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

    def of_fetches(value: Callable[[QuorumFetchResponse], object], otherwise: object) -> dict[str, object]:
        return of_answers(lambda a: value(a) if isinstance(a, QuorumFetchResponse) else otherwise, otherwise)

    return {
        "request": of_pairs(request),
        "answer": of_answers(answer_kind, "none"),
        "answer_epoch": of_answers(lambda a: a.epoch, 0),
        "answer_leader": of_answers(lambda a: maybe_name(a.leader), None),
        "answer_record": of_fetches(lambda a: next((b.leader_epoch for b in batches(a.records)), None), None),
        "answer_last_epoch": of_fetches(lambda a: a.diverging.epoch if a.diverging is not None else 0, 0),
        "answer_end": of_fetches(lambda a: a.diverging.end if a.diverging is not None else 0, 0),
        "answer_watermark": of_fetches(lambda a: a.high_watermark, None),
    }


def answer_kind(response: QuorumResponse) -> str:
    """The name of an answer in the model."""
    if response.error is not Error.NONE:
        return "error"
    match response:
        case VoteResponse(vote_granted=vote_granted):
            return "grant" if vote_granted else "rejection"
        case QuorumFetchResponse(diverging=diverging):
            return "fetched" if diverging is None else "diverging"
        case _:
            raise AssertionError(f"{response} arrives at once")


if __name__ == "__main__":
    run(VoterSut())
