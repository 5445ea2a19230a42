"""The state in which a voter may be cut off from all others, and whether a leader that is cut off goes on."""

from __future__ import annotations

from isr_lang import Bool, Set, Step, action, define, initial, leads_to, var
from isr_lang.blank import blank
from kraft_model import KRAFT
from kraft_protocol.liveness import MESSAGES, TIMERS
from kraft_protocol.state import State, Voter, leads
from kraft_protocol.voter import becomes, resigned


class CutOff(State):
    """The state with who is cut off: no message reaches it, and none of its messages reaches anybody."""

    cut_off: Set[Voter] = var("voters that are cut off from all others")


@initial
def nobody_cut_off(new: CutOff) -> Step:
    """All are connected."""
    return (new.cut_off == blank(new.cut_off),)


@action
def voter_is_cut_off(old: CutOff, new: CutOff, r: Voter) -> Step:
    """A voter loses its connections to all others, for good. It is the only one to which that happens."""
    return (old.cut_off.is_empty(), new.cut_off == old.cut_off.including(r))


def connection(s: CutOff, r: Voter, q: Voter) -> Step:
    return (~s.cut_off.has(r), ~s.cut_off.has(q))


@action
def nominee_is_heard(old: CutOff, new: CutOff, r: Voter, nominee: Voter) -> Step:
    """A request for a vote arrives between two that are connected."""
    return connection(old, r, nominee)


@action
def leader_is_heard(old: CutOff, new: CutOff, r: Voter, leader: Voter) -> Step:
    """What a leader says arrives between two that are connected."""
    return connection(old, r, leader)


@action
def answer_is_heard(old: CutOff, new: CutOff, r: Voter, q: Voter) -> Step:
    """An answer arrives between two that are connected."""
    return connection(old, r, q)


@action
def follower_is_heard(old: CutOff, new: CutOff, r: Voter, f: Voter) -> Step:
    """A fetch arrives between two that are connected."""
    return connection(old, r, f)


@define
def connected_voters(s: CutOff) -> Set[Voter]:
    """Whose process runs, and who is not cut off."""
    return s.alive - s.cut_off


@define
def hears_majority(s: CutOff, r: Voter) -> Bool:
    """A majority of the voters can fetch from the leader, itself included."""
    connected_to_it = connected_voters(s).including(r)
    return ~s.cut_off.has(r) & (connected_to_it.size() + connected_to_it.size() > Voter.all().size())


@action
def check_quorum_expires(old: CutOff, new: CutOff, r: Voter) -> Step:
    """A majority has not fetched from a leader for too long, and it resigns.

    KafkaRaftClient.pollLeader, LeaderState.timeUntilCheckQuorumExpires.
    """
    return (leads(old, r), ~hears_majority(old, r), *becomes(old, new, r, resigned(old, r)))


@define
def leader_is_cut_off(s: CutOff) -> Bool:
    """A leader is cut off."""
    return ~Voter.all().where(lambda r: leads(s, r) & s.cut_off.has(r)).is_empty()


@define
def no_leader_is_cut_off(s: CutOff) -> Bool:
    """Nobody who is cut off leads."""
    return Voter.all().where(lambda r: leads(s, r) & s.cut_off.has(r)).is_empty()


cut_off_leader_resigns = leads_to(
    "cut-off-leader-resigns",
    "A leader that a majority cannot reach leads no more, whether or not others have elected one (KIP-595).",
    leader_is_cut_off,
    no_leader_is_cut_off,
    state=CutOff,
    fair=(*TIMERS, "check_quorum_expires"),
    strong=MESSAGES,
)

CHECK_QUORUM = (
    KRAFT.without("observer_finds_leader")
    .in_state(CutOff, nobody_cut_off)
    .replacing(
        "kraft-cut-off",
        "KRaft where a voter may be cut off from all others",
        because="without that nothing can be said of KAFKA-15489.",
        reachable_voters=connected_voters,
    )
    .extending(
        voter_answers_pre_vote=nominee_is_heard,
        voter_answers_vote=nominee_is_heard,
        prospective_counts=answer_is_heard,
        candidate_counts=answer_is_heard,
        voter_answers_begin=leader_is_heard,
        voter_answers_end=leader_is_heard,
        leader_hears_error=answer_is_heard,
        leader_answers_fetch=follower_is_heard,
        follower_takes_fetch=answer_is_heard,
        leader_answers_fetch_snapshot=follower_is_heard,
        follower_takes_snapshot=answer_is_heard,
        voter_fails_at_answer=answer_is_heard,
        voter_fails_at_request=leader_is_heard,
    )
    .adding(voter_is_cut_off, check_quorum_expires)
    .promising(cut_off_leader_resigns)
    .with_defaults(voters=2, epochs=2, log=2, writes=0)
)
NO_CHECK_QUORUM = (
    CHECK_QUORUM.without("check_quorum_expires")
    .replacing(
        "kafka-15489",
        "KRaft where a leader does not look whether a majority still fetches from it",
        because="check-quorum was not there (KAFKA-15489; before Kafka 3.7).",
    )
    .failing("a leader that is cut off leads for ever, whoever else is elected.", cut_off_leader_resigns)
)

DESIGNS = (CHECK_QUORUM, NO_CHECK_QUORUM)
