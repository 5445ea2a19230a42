"""Elections: a voter asks whether it could be elected (KIP-996), then asks to be, and whoever has a majority leads.

The numbers in brackets are the rules that re-implementations often miss, listed in kraft_model.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Map, Maybe, Set, Step, action, define, when
from isr_lang.blank import blank
from kraft_protocol.messages import Reply, arrives, comes_back, common_cases, replies
from kraft_protocol.state import (
    DYNAMIC,
    EPOCHS,
    LOG,
    Answer,
    Request,
    Role,
    State,
    Voter,
    electors,
    is_only_voter,
    is_voter,
    last_epoch,
    log_end,
    names,
    voter_set,
)
from kraft_protocol.voter import (
    VoterState,
    becomes,
    candidate,
    choice,
    commits_alone,
    first_of,
    follower,
    in_role,
    new_leader,
    next_request,
    others,
    prospective,
    unattached,
    unchanged,
)

# Who gets a vote


@define
def up_to_date(s: State, nominee: Voter, r: Voter) -> Bool:
    """(3) The nominee's log is not behind that of r: the epoch of the last record decides first, then the length.

    OffsetAndEpoch.compareTo.
    """
    own, of_nominee = last_epoch(s, r), last_epoch(s, nominee)
    return (own < of_nominee) | ((own == of_nominee) & (log_end(s, r) <= log_end(s, nominee)))


@define
def grants_pre_vote(s: State, r: Voter, nominee: Voter, role: Role, has_fetched: Bool) -> Bool:
    """(6) Neither a leader grants a pre-vote, nor a follower that has fetched from its leader.

    EpochState.canGrantVote of each state.
    """
    return up_to_date(s, nominee, r) & (role != Role.LEADER) & ~((role == Role.FOLLOWER) & has_fetched)


@define
def grants_vote(s: State, r: Voter, nominee: Voter, role: Role, vote: Maybe[Voter], leader: Maybe[Voter]) -> Bool:
    """(2) One vote an epoch, none where a leader of it is known, and none to a log that is behind.

    To whom it voted already, it says so again. QuorumState.unattachedOrProspectiveCanGrantVote.
    """
    free = (role == Role.UNATTACHED) | (role == Role.PROSPECTIVE)
    again = (vote == nominee) & (s.vote_directory[r] == s.directory[nominee])
    return free & (again | ((vote == NONE) & (leader == NONE) & up_to_date(s, nominee, r)))


# Timers


@define
def hears_leader_again(s: State, r: Voter) -> Bool:
    """(9) Who goes back to its leader has not fetched from it, until it has again (FollowerState)."""
    return Bool.false


def back_to_leader(old: State, r: Voter, alone: VoterState) -> VoterState:
    """A prospective voter that was not encouraged: it follows its leader again, or is `alone` where it knows none."""
    again = attrs.evolve(follower(old, r, old.epoch[r], old.leader[r]), has_fetched=hears_leader_again(old, r))
    return choice(old.leader[r] != NONE, again, alone)


@action
def voter_stands(old: State, new: State, r: Voter) -> Step:
    """A timer fires: a voter without a leader, or that heard too little of it, asks whether it could be elected.

    An only voter leads the next epoch at once. pollUnattached, pollFollowerAsVoter, pollCandidate;
    QuorumState.transitionToProspective.
    """
    waits = (old.role[r] == Role.UNATTACHED) | (old.role[r] == Role.FOLLOWER) | (old.role[r] == Role.CANDIDATE)
    alone = is_only_voter(old, r)
    n = choice(alone, new_leader(old, r, old.epoch[r] + 1), prospective(old, r))
    return (
        old.alive.has(r),
        waits,
        is_voter(old, r),
        ~alone | ((old.epoch[r] < EPOCHS) & (log_end(old, r) < LOG)),
        *becomes(old, new, r, n),
        *commits_alone(old, new, r, n),
    )


@action
def prospective_gives_up(old: State, new: State, r: Voter) -> Step:
    """The timer of a prospective voter fires: it goes back to its leader, and without one it asks again.

    Without a leader it is unattached with no time left, so that it asks again at once.
    prospectiveTransitionAfterElectionLoss, QuorumState.transitionToUnattached.
    """
    n = back_to_leader(old, r, prospective(old, r))
    return (old.alive.has(r), old.role[r] == Role.PROSPECTIVE, *becomes(old, new, r, n))


# A request for a vote arrives


@define
def takes_over_epoch(s: State, r: Voter, nominee: Voter) -> Bool:
    """(6) A later epoch is taken over at once, whether the vote is then granted or not, and of a pre-vote, too."""
    return s.epoch[nominee] > s.epoch[r]


def is_asked(s: State, nominee: Voter, r: Voter) -> Bool:
    """(10) The node is the voter whom the nominee asks: it has the disk that the nominee's voter set has.

    INVALID_VOTER_KEY otherwise (KafkaRaftClient.isValidVoterKey).
    """
    return ~DYNAMIC | names(voter_set(s, nominee)[r], s.directory[r])


def vote_reply(old: State, nominee: Voter, r: Voter, n: VoterState, grant: Bool) -> Reply:
    """The answer to a request for a vote. An older epoch is an error, and every answer has the epoch and the leader."""
    kind = when(grant, Answer.GRANT, Answer.REJECTION)
    return Reply(
        when((old.epoch[nominee] < old.epoch[r]) | ~is_asked(old, nominee, r), Answer.ERROR, kind),
        n.epoch,
        n.leader,
        blank(old.answer_record[nominee][r]),
        blank(old.answer_voters[nominee][r]),
        0,
        0,
        blank(old.answer_watermark[nominee][r]),
    )


@action
def voter_answers_pre_vote(old: State, new: State, r: Voter, nominee: Voter) -> Step:
    """A voter says whether it would vote. It notes nothing of that. handleVoteRequest."""
    n = choice(takes_over_epoch(old, r, nominee), unattached(old, r, old.epoch[nominee]), unchanged(old, r))
    current = (old.epoch[nominee] >= old.epoch[r]) & is_asked(old, nominee, r)
    grant = current & grants_pre_vote(old, r, nominee, n.role, n.has_fetched)
    return (
        *arrives(old, nominee, r, Request.PRE_VOTE),
        *replies(old, new, r, n, nominee, vote_reply(old, nominee, r, n, grant)),
    )


@action
def voter_answers_vote(old: State, new: State, r: Voter, nominee: Voter) -> Step:
    """A voter votes, and its vote is on disk before anybody hears of it. handleVoteRequest.

    A prospective voter that grants its vote counts its own pre-votes anew, and asks those again of which it has the
    answers (QuorumState.prospectiveAddVotedState makes another ProspectiveState).
    """
    n = choice(takes_over_epoch(old, r, nominee), unattached(old, r, old.epoch[nominee]), unchanged(old, r))
    current = (old.epoch[nominee] >= old.epoch[r]) & is_asked(old, nominee, r)
    grant = current & grants_vote(old, r, nominee, n.role, n.vote, n.leader)
    first = grant & (n.vote == NONE)
    anew = first & (n.role == Role.PROSPECTIVE)
    asks = Map.build(
        Voter,
        lambda q: when(
            others(old, r).has(q) & (n.requests.kind[q] == Request.NONE), Request.PRE_VOTE, n.requests.kind[q]
        ),
    )
    n = attrs.evolve(
        n,
        vote=when(grant, Maybe.of(nominee), n.vote),
        vote_directory=when(grant, old.directory[nominee], n.vote_directory),
        granting=when(anew, Set.of(r), n.granting),
        rejecting=when(anew, blank(n.rejecting), n.rejecting),
        requests=attrs.evolve(n.requests, kind=when(anew, asks, n.requests.kind)),
    )
    return (
        *arrives(old, nominee, r, Request.VOTE),
        *replies(old, new, r, n, nominee, vote_reply(old, nominee, r, n, grant)),
    )


# Its answer comes back


def with_vote_of(old: State, r: Voter, q: Voter) -> VoterState:
    """The nominee r has counted the answer of q. (10) Another disk of a voter it asks again, as long as it may win.

    KafkaRaftClient.maybeSendVoteRequests.
    """
    yes, no = old.answer[r][q] == Answer.GRANT, old.answer[r][q] == Answer.REJECTION
    may_win = old.rejecting[r].size() + old.rejecting[r].size() < electors(old, r).size()
    again = (old.answer[r][q] == Answer.ERROR) & may_win
    return attrs.evolve(
        next_request(old, r, q, when(again, old.request[r][q], Request.NONE)),
        granting=when(yes, old.granting[r].including(q), old.granting[r].excluding(q)),
        rejecting=when(no, old.rejecting[r].including(q), old.rejecting[r].excluding(q)),
    )


def wins(old: State, r: Voter, q: Voter, n: VoterState) -> Bool:
    """The answer of q makes a majority (EpochElection.isVoteGranted)."""
    return (old.answer[r][q] == Answer.GRANT) & (n.granting.size() + n.granting.size() > electors(old, r).size())


def loses(old: State, r: Voter, q: Voter, n: VoterState) -> Bool:
    """The answer of q leaves no majority to be had (EpochElection.isVoteRejected)."""
    return (old.answer[r][q] == Answer.REJECTION) & (n.rejecting.size() + n.rejecting.size() >= electors(old, r).size())


def brings_news(old: State, r: Voter, q: Voter) -> Bool:
    """The answer is handled before anybody looks whether it grants the vote."""
    news, *others = (condition for condition, _ in common_cases(old, r, q))
    for condition in others:
        news |= condition
    return news


@action
def prospective_counts(old: State, new: State, r: Voter, q: Voter) -> Step:
    """An answer reaches a prospective voter: it becomes a candidate of the next epoch, goes back, or waits.

    handleVoteResponse, maybeTransitionToCandidate, maybeHandleElectionLoss.
    """
    n = with_vote_of(old, r, q)
    majority, no_majority = wins(old, r, q, n), loses(old, r, q, n)
    stands = candidate(old, r, old.epoch[r] + 1)
    back = back_to_leader(old, r, in_role(old, r, Role.UNATTACHED))
    return (
        *comes_back(old, r, q, Request.PRE_VOTE),
        brings_news(old, r, q) | ~majority | (old.epoch[r] < EPOCHS),
        *becomes(old, new, r, first_of(n, *common_cases(old, r, q), (majority, stands), (no_majority, back))),
    )


def counts(old: State, new: State, r: Voter, q: Voter, leader: VoterState) -> Step:
    """An answer reaches a candidate, which is this leader if it has a majority then."""
    n = with_vote_of(old, r, q)
    majority = wins(old, r, q, n)
    return (
        *comes_back(old, r, q, Request.VOTE),
        brings_news(old, r, q) | ~majority | (log_end(old, r) < LOG),
        *becomes(old, new, r, first_of(n, *common_cases(old, r, q), (majority, leader))),
    )


@action
def candidate_counts(old: State, new: State, r: Voter, q: Voter) -> Step:
    """An answer reaches a candidate: with a majority it leads, else it waits. handleVoteResponse, onBecomeLeader."""
    return counts(old, new, r, q, new_leader(old, r, old.epoch[r]))
