"""Leadership: a leader says that it begins, resigns, says that it ends, and leaves its epoch.

The numbers in brackets are the rules that re-implementations often miss, listed in kraft_model.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Maybe, Step, action, when
from isr_lang.blank import blank
from kraft_protocol.messages import Reply, arrives, comes_back, common_cases, replies
from kraft_protocol.state import EPOCHS, LOG, Answer, Request, Role, State, Voter, is_only_voter, is_voter, log_end
from kraft_protocol.voter import (
    VoterState,
    becomes,
    choice,
    commits_alone,
    first_of,
    follower,
    new_leader,
    next_request,
    prospective,
    resigned,
    unattached,
    unchanged,
)


def with_news_of_leader(old: State, r: Voter, leader: Voter) -> VoterState:
    """The voter hears who leads: it follows in a later epoch, or in its own where it knew of none (maybeTransition)."""
    later = old.epoch[leader] > old.epoch[r]
    first = (old.epoch[leader] == old.epoch[r]) & (old.leader[r] == NONE)
    return choice(later | first, follower(old, r, old.epoch[leader], Maybe.of(leader)), unchanged(old, r))


def hears_who_leads(old: State, new: State, r: Voter, leader: Voter, n: VoterState) -> Step:
    """The voter is n where the request is not of an older epoch. That is an error, which is answered.

    A success changes nothing at the leader, which is done with this voter in the same step. A request that names
    another leader of the voter's own epoch ends its process (`faults.voter_fails_at_request`).
    """
    older = old.epoch[leader] < old.epoch[r]
    n = choice(older, unchanged(old, r), n)
    reply = Reply(
        when(older, Answer.ERROR, Answer.NONE),
        when(older, n.epoch, blank(n.epoch)),
        when(older, n.leader, blank(n.leader)),
        blank(old.answer_record[leader][r]),
        blank(old.answer_voters[leader][r]),
        0,
        0,
        blank(old.answer_watermark[leader][r]),
    )
    consistent = (old.epoch[leader] > old.epoch[r]) | (old.leader[r] == NONE) | (old.leader[r] == leader)
    return (
        older | consistent,
        *replies(old, new, r, n, leader, reply, when(older, old.request[leader][r], Request.NONE)),
    )


@action
def voter_answers_begin(old: State, new: State, r: Voter, leader: Voter) -> Step:
    """A voter hears that an epoch has a leader. handleBeginQuorumEpochRequest."""
    n = with_news_of_leader(old, r, leader)
    return (*arrives(old, leader, r, Request.BEGIN), *hears_who_leads(old, new, r, leader, n))


@action
def voter_answers_end(old: State, new: State, r: Voter, leader: Voter) -> Step:
    """A voter hears that a leader resigned: its timer is due sooner, which is not seen here.

    It still has fetched from a leader, so that it grants no pre-vote (KAFKA-20895). handleEndQuorumEpochRequest.
    """
    n = with_news_of_leader(old, r, leader)
    return (*arrives(old, leader, r, Request.END), *hears_who_leads(old, new, r, leader, n))


@action
def leader_hears_error(old: State, new: State, r: Voter, q: Voter) -> Step:
    """A leader, or one that resigned, learns from the answer that its epoch is over.

    handleBeginQuorumEpochResponse, handleEndQuorumEpochResponse.
    """
    kind = when(old.role[r] == Role.LEADER, Request.BEGIN, Request.END)
    n = first_of(next_request(old, r, q, Request.NONE), *common_cases(old, r, q))
    return (*comes_back(old, r, q, kind), *becomes(old, new, r, n))


@action
def leader_resigns(old: State, new: State, r: Voter) -> Step:
    """A leader resigns: it is told to, or a majority has not fetched from it for too long (check-quorum).

    KafkaRaftClient.resign; pollLeader, LeaderState.timeUntilCheckQuorumExpires.
    """
    return (old.alive.has(r), old.role[r] == Role.LEADER, *becomes(old, new, r, resigned(old, r)))


def out_of_epoch(old: State, r: Voter) -> VoterState:
    """(7) A leader that resigned leaves for the next epoch. There it is unattached with no time left, and so stands.

    An only voter leads the epoch after that at once. Whoever is no voter any more stays unattached.
    """
    next_epoch = old.epoch[r] + 1
    stands = attrs.evolve(
        prospective(old, r),
        epoch=next_epoch,
        vote=blank(old.vote[r]),
        vote_directory=blank(old.vote_directory[r]),
        leader=blank(old.leader[r]),
    )
    alone = is_only_voter(old, r)
    return first_of(
        unattached(old, r, next_epoch),
        (alone, new_leader(old, r, next_epoch + 1)),
        (is_voter(old, r), stands),
    )


@action
def resigned_stands(old: State, new: State, r: Voter) -> Step:
    """The timer of a leader that resigned fires. pollResigned, QuorumState.transitionToUnattached."""
    n = out_of_epoch(old, r)
    return (
        old.alive.has(r),
        old.role[r] == Role.RESIGNED,
        old.epoch[r] < EPOCHS,
        ~is_only_voter(old, r) | ((old.epoch[r] + 1 < EPOCHS) & (log_end(old, r) < LOG)),
        *becomes(old, new, r, n),
        *commits_alone(old, new, r, n),
    )
