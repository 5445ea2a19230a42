"""What others reported of KRaft with a fixed set of voters, and what mended it, each by its number in Kafka's JIRA."""

from __future__ import annotations

import attrs

from isr_lang import Bool, Step, action, always, define, forall, step, when
from kraft_model import KRAFT
from kraft_protocol.designs.noted_end import (
    NotedEnd,
    grants_pre_vote_after_end,
    memory_is_lost,
    no_end_yet,
    voter_notes_end,
)
from kraft_protocol.elections import up_to_date
from kraft_protocol.faults import is_former_leader, starts
from kraft_protocol.leadership import hears_who_leads, with_news_of_leader
from kraft_protocol.messages import arrives
from kraft_protocol.promises import (
    committed_only_grows,
    leaders_complete,
    one_leader_per_epoch,
    watermark_is_committed,
    watermark_within_log,
)
from kraft_protocol.state import LOG, RESTARTS, Answer, Offset, Request, Role, State, Voter, leads, log_end
from kraft_protocol.voter import becomes, new_leader, stopped

# A disk is lost


@define
def any_truncation(s: State, r: Voter, end: Offset) -> Bool:
    """A follower truncates wherever its leader says, below its high watermark, too."""
    return end <= log_end(s, r) + log_end(s, r)


LOST_DISK = (
    KRAFT.replacing(
        "kafka-14077",
        "KRaft where a voter comes back with an empty disk, and votes",
        because="with a static quorum nothing tells the voter from the one that it was (KAFKA-14077, KAFKA-12181).",
    )
    .with_defaults(voters=3, epochs=1, lost_disks=1)
    .failing("a voter that lost its disk has forgotten what it holds and for whom it voted.", one_leader_per_epoch)
)
TRUNCATES_BELOW = (
    KRAFT.replacing(
        "kafka-12460",
        "KRaft where a follower truncates below its high watermark",
        because="KafkaMetadataLog did not look (KAFKA-12460); today the follower stops.",
        may_truncate=any_truncation,
    )
    .with_defaults(voters=3, epochs=2, lost_disks=1)
    .failing("a leader that lacks what was committed takes it from whoever has it.", watermark_within_log)
)

# What was not flushed


@action
def unflushed_records_are_lost(old: State, new: State, r: Voter, survivors: Offset) -> Step:
    """A process ends, and only some first records of its log had reached the disk."""
    return (
        old.alive.has(r),
        old.restarts < RESTARTS,
        survivors <= log_end(old, r),
        new.alive == old.alive.excluding(r),
        new.restarts == old.restarts + 1,
        *becomes(old, new, r, attrs.evolve(stopped(old, r), log=old.log[r].take(survivors))),
    )


@action
def former_leader_leads(old: State, new: State, r: Voter) -> Step:
    """A process starts with what is on its disk. Who led its epoch leads it once more, and appends a LeaderChange."""
    room = ~is_former_leader(old, r) | (log_end(old, r) < LOG)
    return (room, *starts(old, new, r, new_leader(old, r, old.epoch[r])))


@always
def leader_has_its_epoch(s: State) -> Bool:
    """Where anybody has a record of an epoch, its leader has one.

    So a record is known by its epoch and offset, for a leader only appends (Raft, 5.3).
    """
    return forall(
        (leads(s, r) & (o < log_end(s, q)) & (s.log[q][o] == s.epoch[r])).implies(o < log_end(s, r))
        for r in Voter.all()
        for q in Voter.all()
        for o in Offset.all()
    )


NOT_FLUSHED = (
    KRAFT.replacing(
        "kafka-10533",
        "KRaft where records are fetched and acknowledged before they are on disk",
        because="appends were not flushed (KAFKA-10533).",
        voter_crashes=unflushed_records_are_lost,
    )
    .promising(leader_has_its_epoch)
    .with_defaults(restarts=1)
    .failing(
        "what a majority had is then on fewer disks.", leaders_complete, watermark_is_committed, committed_only_grows
    )
)
LEADS_AGAIN = NOT_FLUSHED.replacing(
    "kafka-10527",
    "KRaft where a leader that starts again leads the same epoch, without what had not reached its disk",
    because="a voter started in the role that it had (KAFKA-10527); today it has resigned.",
    voter_starts=former_leader_leads,
).failing(
    "others have records of its epoch that it lacks, and it writes others there.",
    leader_has_its_epoch,
    leaders_complete,
    watermark_is_committed,
    committed_only_grows,
)

# The rule of the own epoch, off by one


@define
def commits_up_to_own_epoch(s: State, leader: Voter, up_to: Offset) -> Bool:
    """The new watermark is at the start of the leader's epoch, or above it."""
    return (up_to > 0) & (
        (s.log[leader][up_to - 1] == s.epoch[leader])
        | ((up_to < log_end(s, leader)) & (s.log[leader][up_to] == s.epoch[leader]))
    )


OFF_BY_ONE = (
    KRAFT.replacing(
        "kafka-12619",
        "KRaft where a leader commits up to the start of its epoch before it commits a record of it",
        because="the check was off by one (KAFKA-12619).",
        may_commit=commits_up_to_own_epoch,
    )
    .with_defaults(voters=3, epochs=4)
    .failing("what a majority has of an older epoch may yet be replaced.", leaders_complete)
)

# A leader that resigned


@step
def resigned_leader_is_no_obstacle(old: State, new: State) -> Bool:
    """Whoever was told that its leader resigned grants a pre-vote to a log that is not behind."""
    return forall(
        (
            (old.request[c][r] == Request.PRE_VOTE)
            & (old.answer[c][r] == Answer.NONE)
            & (new.answer[c][r] == Answer.REJECTION)
            & (old.epoch[c] == old.epoch[r])
            & (old.role[r] == Role.FOLLOWER)
            & (old.leader[r] == q)
            & (old.role[q] == Role.RESIGNED)
            & (old.epoch[q] == old.epoch[r])
            & (old.request[q][r] == Request.NONE)
        ).implies(~up_to_date(old, c, r))
        for c in Voter.all()
        for r in Voter.all()
        for q in Voter.all()
    )


@action
def end_clears_fetch(old: State, new: State, r: Voter, leader: Voter) -> Step:
    """A voter hears that its leader resigned, and that it had fetched from it counts no more."""
    n = with_news_of_leader(old, r, leader)
    follows = (n.role == Role.FOLLOWER) & (n.leader == leader)
    n = attrs.evolve(n, has_fetched=when(follows, Bool.false, n.has_fetched))
    return (*arrives(old, leader, r, Request.END), *hears_who_leads(old, new, r, leader, n))


RESIGNED_LEADER = (
    KRAFT.replacing(
        "kafka-20895",
        "KRaft, and whether a leader that resigned stands in the way of the next one",
        because="a follower that has fetched grants no pre-vote, whoever its leader is by now (KAFKA-20895).",
    )
    .promising(resigned_leader_is_no_obstacle)
    .with_defaults(voters=3, epochs=1)
    .failing(
        "a follower that was told of the end still counts as one that hears from its leader.",
        resigned_leader_is_no_obstacle,
    )
)
CLEARED_FETCH = RESIGNED_LEADER.replacing(
    "kraft-end-clears-fetch",
    "KRaft where the end of an epoch clears that the follower has fetched",
    because="it looks like a mend of KAFKA-20895.",
    voter_answers_end=end_clears_fetch,
).failing("the answer to an earlier fetch arrives after that, and sets it again.", resigned_leader_is_no_obstacle)
NOTED_END = (
    RESIGNED_LEADER.in_state(NotedEnd, no_end_yet)
    .replacing(
        "kraft-notes-end",
        "KRaft where a follower notes that its leader resigned",
        because="it mends KAFKA-20895 (pull request 23168).",
        voter_answers_end=voter_notes_end,
        grants_pre_vote=grants_pre_vote_after_end,
    )
    .extending(voter_starts=memory_is_lost)
)

DESIGNS = (LOST_DISK, TRUNCATES_BELOW, NOT_FLUSHED, LEADS_AGAIN, OFF_BY_ONE, RESIGNED_LEADER, CLEARED_FETCH, NOTED_END)
