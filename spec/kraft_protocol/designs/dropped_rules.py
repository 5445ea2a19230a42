"""Single rules taken out: no design that anybody proposed, but mistakes that show what the rules are for."""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Maybe, Step, action, define
from isr_lang.blank import blank
from kraft_model import KRAFT
from kraft_protocol.elections import up_to_date
from kraft_protocol.liveness import majority_elects_a_leader
from kraft_protocol.promises import (
    leaders_complete,
    logs_match,
    one_leader_per_epoch,
    one_vote_per_epoch,
    watermark_only_grows,
)
from kraft_protocol.replication import smaller
from kraft_protocol.state import RESTARTS, Offset, Role, State, Voter, log_end
from kraft_protocol.voter import becomes, stopped


@define
def commits_any_epoch(s: State, leader: Voter, up_to: Offset) -> Bool:
    """Whatever a majority has is committed."""
    return up_to > 0


@define
def votes_again(s: State, r: Voter, nominee: Voter, role: Role, vote: Maybe[Voter], leader: Maybe[Voter]) -> Bool:
    """Nobody asks for whom the voter has voted."""
    free = (role == Role.UNATTACHED) | (role == Role.PROSPECTIVE)
    return free & (leader == NONE) & up_to_date(s, nominee, r)


@define
def longer_log_wins(s: State, nominee: Voter, r: Voter) -> Bool:
    """The length of the log alone says whose is behind."""
    return log_end(s, r) <= log_end(s, nominee)


@define
def any_fetch_continues(s: State, leader: Voter, f: Voter) -> Bool:
    """A fetch that is not past the leader's log acknowledges all before its offset."""
    return log_end(s, f) <= log_end(s, leader)


@define
def any_pre_vote(s: State, r: Voter, nominee: Voter, role: Role, has_fetched: Bool) -> Bool:
    """Every pre-vote is granted."""
    return has_fetched | ~has_fetched


@action
def vote_is_lost(old: State, new: State, r: Voter) -> Step:
    """A process ends, and its vote had not reached the disk."""
    return (
        old.alive.has(r),
        old.restarts < RESTARTS,
        new.alive == old.alive.excluding(r),
        new.restarts == old.restarts + 1,
        *becomes(old, new, r, attrs.evolve(stopped(old, r), vote=blank(old.vote[r]))),
    )


@define
def prospective_grants_nothing(s: State, r: Voter, nominee: Voter, role: Role, has_fetched: Bool) -> Bool:
    """Neither a leader grants a pre-vote, nor a follower that has fetched, nor who asks for pre-votes itself."""
    stays = (role == Role.LEADER) | (role == Role.PROSPECTIVE) | ((role == Role.FOLLOWER) & has_fetched)
    return up_to_date(s, nominee, r) & ~stays


@define
def hears_leader_at_once(s: State, r: Voter) -> Bool:
    """Who goes back to its leader counts as one that has fetched from it."""
    return Bool.true


@define
def unknown_watermark_is_zero(s: State, r: Voter, q: Voter, end: Offset) -> Maybe[Offset]:
    """A watermark that the leader does not know is taken for 0."""
    return Maybe.of(smaller(s.answer_watermark[r][q].or_else(0), end))


COMMITS_ANY_EPOCH = (
    KRAFT.replacing(
        "kraft-commits-any-epoch",
        "KRaft where a leader commits whatever a majority has",
        because="(1) says that a record of the own epoch comes first.",
        may_commit=commits_any_epoch,
    )
    .with_defaults(voters=3, epochs=4)
    .failing("what a majority has of an older epoch may yet be replaced.", leaders_complete)
)
VOTES_AGAIN = (
    KRAFT.replacing(
        "kraft-votes-again",
        "KRaft where a voter votes for whoever asks",
        because="(2) says that there is one vote an epoch.",
        grants_vote=votes_again,
    )
    .with_defaults(voters=3, epochs=1)
    .failing("two nominees have the vote of a third.", one_leader_per_epoch, one_vote_per_epoch)
)
LONGER_LOG = (
    KRAFT.replacing(
        "kraft-longer-log",
        "KRaft where the longer log wins",
        because="(3) says that the epoch of the last record comes first.",
        up_to_date=longer_log_wins,
    )
    .with_defaults(voters=3, epochs=3, log=3)
    .failing("a long log that nobody else has beats one that is committed.", leaders_complete)
)
ANY_FETCH = (
    KRAFT.replacing(
        "kraft-any-fetch",
        "KRaft where a leader takes every fetch within its log for an acknowledgement",
        because="(4) says that the follower's last epoch and end must be in the leader's log.",
        continues=any_fetch_continues,
    )
    .with_defaults(voters=3, epochs=2)
    .failing("a follower appends behind a record that the leader does not have.", logs_match)
)
ANY_PRE_VOTE = KRAFT.replacing(
    "kraft-any-pre-vote",
    "KRaft where every pre-vote is granted",
    because="(6) says who grants none; it keeps elections rare, and no promise of safety needs it.",
    grants_pre_vote=any_pre_vote,
)
VOTE_NOT_FLUSHED = (
    KRAFT.replacing(
        "kraft-vote-not-flushed",
        "KRaft where a vote is answered before it is on disk",
        because="(2) says that it is on disk first.",
        voter_crashes=vote_is_lost,
    )
    .with_defaults(voters=3, epochs=1, restarts=1)
    .failing("a voter that starts again has forgotten for whom it voted.", one_leader_per_epoch)
)

UNKNOWN_WATERMARK = (
    KRAFT.replacing(
        "kraft-unknown-watermark",
        "KRaft where a follower takes the watermark that a new leader does not know yet for 0",
        because="(8) says that a new leader knows none; KafkaRaftClient.handleFetchResponse takes -1 for no watermark.",
        watermark_of_answer=unknown_watermark_is_zero,
    )
    .with_defaults(voters=3, epochs=2)
    .failing("a follower of a new leader forgets what was committed.", watermark_only_grows)
)
PROSPECTIVE_REFUSES = (
    KRAFT.replacing(
        "kraft-prospective-refuses",
        "KRaft where whoever asks for pre-votes grants none",
        because="(6) says who grants none.",
        grants_pre_vote=prospective_grants_nothing,
    )
    .with_defaults(voters=2, epochs=2)
    .failing("two voters refuse each other for ever, if both ask at a time.", majority_elects_a_leader)
)
HEARS_AT_ONCE = (
    KRAFT.replacing(
        "kraft-hears-at-once",
        "KRaft where whoever goes back to its leader counts as one that has fetched from it",
        because="(9) says that nothing stays of a former role.",
        hears_leader_again=hears_leader_at_once,
    )
    .with_defaults(voters=3, epochs=1, log=2, writes=0, restarts=1)
    .failing("each of two voters takes the leader that is gone for alive.", majority_elects_a_leader)
)

DESIGNS = (
    COMMITS_ANY_EPOCH,
    VOTES_AGAIN,
    LONGER_LOG,
    ANY_FETCH,
    ANY_PRE_VOTE,
    VOTE_NOT_FLUSHED,
    UNKNOWN_WATERMARK,
    PROSPECTIVE_REFUSES,
    HEARS_AT_ONCE,
)
