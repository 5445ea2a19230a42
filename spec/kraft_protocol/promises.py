"""What is promised, what must be reachable, and what each promise speaks about.

A promise that speaks of what never happens holds of nothing. So each has a premise here, and holds only where some
behaviour fulfils it.
"""

from __future__ import annotations

from collections.abc import Mapping

from isr_lang import NONE, Bool, Count, Property, always, count, exists, forall, sometimes, sometimes_step, step
from isr_lang.blank import blank
from kraft_protocol.state import (
    DYNAMIC,
    EPOCHS,
    LOST_DISKS,
    Epoch,
    Offset,
    State,
    Voter,
    VoterSet,
    leads,
    log_end,
    members,
    names,
    voter_set,
)

# Safety


@always
def one_leader_per_epoch(s: State) -> Bool:
    """Nobody else ever leads an epoch that somebody has led (Raft, 5.2: election safety)."""
    return forall(s.leaders[e].size() <= 1 for e in Epoch.all())


@always
def leaders_complete(s: State) -> Bool:
    """The leader of the latest epoch has all that was ever committed (Raft, 5.4: leader completeness)."""
    return forall(
        (leads(s, r) & forall(s.leaders[e].is_empty() | (e <= s.epoch[r]) for e in Epoch.all())).implies(
            s.committed.is_prefix_of(s.log[r])
        )
        for r in Voter.all()
    )


@always
def watermark_is_committed(s: State) -> Bool:
    """What is below a voter's high watermark is what was committed (Raft, 5.4: state machine safety)."""
    return forall(
        (s.high_watermark[r] != NONE).implies(s.log[r].take(s.high_watermark[r].or_else(0)).is_prefix_of(s.committed))
        for r in Voter.all()
    )


@always
def logs_match(s: State) -> Bool:
    """Two logs with a record of one epoch at one offset are equal up to there (Raft, 5.3: log matching)."""
    return forall(
        ((o < log_end(s, r)) & (o < log_end(s, q)) & (s.log[r][o] == s.log[q][o]) & (p <= o)).implies(
            s.log[r][p] == s.log[q][p]
        )
        for r in Voter.all()
        for q in Voter.all()
        for o in Offset.all()
        for p in Offset.all()
    )


@always
def watermark_within_log(s: State) -> Bool:
    """No high watermark is past the end of its log."""
    return forall(s.high_watermark[r].or_else(0) <= log_end(s, r) for r in Voter.all())


@step
def watermark_only_grows(old: State, new: State) -> Bool:
    """A voter that knows a high watermark never knows a smaller one, unless it forgot it on the way."""
    return forall(
        ((old.high_watermark[r] != NONE) & (new.high_watermark[r] != NONE)).implies(
            old.high_watermark[r].or_else(0) <= new.high_watermark[r].or_else(0)
        )
        for r in Voter.all()
    )


@step
def committed_only_grows(old: State, new: State) -> Bool:
    """What was committed is neither replaced nor forgotten."""
    return old.committed.is_prefix_of(new.committed)


@step
def one_vote_per_epoch(old: State, new: State) -> Bool:
    """Within an epoch, and with one disk, a voter never votes for another."""
    return forall(
        ((old.epoch[r] == new.epoch[r]) & (old.vote[r] != NONE) & (new.vote[r] != NONE)).implies(
            old.vote[r] == new.vote[r]
        )
        for r in Voter.all()
    )


SAFETY = (
    one_leader_per_epoch,
    leaders_complete,
    watermark_is_committed,
    logs_match,
    watermark_within_log,
    watermark_only_grows,
    committed_only_grows,
    one_vote_per_epoch,
)

# Of voters that change


def difference(a: VoterSet, b: VoterSet) -> Count:
    """How many voters are in one of them only. Two disks of one node are two voters."""
    replaced = count((a[q] != b[q]) & (a[q] != NONE) & (b[q] != NONE) for q in Voter.all())
    return count(a[q] != b[q] for q in Voter.all()) + replaced


def has_voters(s: State, o: Offset) -> Bool:
    return s.committed_voters[o] != blank(s.committed_voters[o])


@always(when=DYNAMIC)
def neighbouring_voters_overlap(s: State) -> Bool:
    """Voter sets that were committed one after the other differ in one voter, so that their majorities overlap."""
    return forall(
        (
            (o < p)
            & has_voters(s, o)
            & has_voters(s, p)
            & forall(((o < between) & (between < p)).implies(~has_voters(s, between)) for between in Offset.all())
        ).implies(difference(s.committed_voters[o], s.committed_voters[p]) <= 1)
        for o in Offset.all()
        for p in Offset.all()
    )


@always(when=DYNAMIC)
def leader_counts_next_voters(s: State) -> Bool:
    """The voters of the leader of the latest epoch are those that were committed last, or one change from them."""
    return forall(
        (
            leads(s, r)
            & forall(s.leaders[e].is_empty() | (e <= s.epoch[r]) for e in Epoch.all())
            & has_voters(s, o)
            & forall((o < later).implies(~has_voters(s, later)) for later in Offset.all())
        ).implies(difference(voter_set(s, r), s.committed_voters[o]) <= 1)
        for r in Voter.all()
        for o in Offset.all()
    )


@step(when=DYNAMIC & (LOST_DISKS == 0))
def committed_by_majority(old: State, new: State) -> Bool:
    """What a leader commits is then in the logs of a majority of its voters."""
    end = new.committed.length()

    def hold(r: Voter) -> Count:
        return count(
            names(voter_set(new, r)[q], new.directory[q]) & (new.log[q].take(end) == new.committed) for q in Voter.all()
        )

    return (old.committed.length() < end).implies(
        exists(
            (leads(old, r) | leads(new, r)) & (hold(r) + hold(r) > members(voter_set(new, r)).size())
            for r in Voter.all()
        )
    )


OF_CHANGES = (neighbouring_voters_overlap, leader_counts_next_voters, committed_by_majority)

# Probes


@sometimes
def client_record_commits(s: State) -> Bool:
    """A client's record or a voter set is committed: one of the same epoch as the record before it."""
    return exists((o < s.committed.length()) & (o > 0) & (s.committed[o] == s.committed[o - 1]) for o in Offset.all())


@sometimes
def last_leader_commits(s: State) -> Bool:
    """The last epoch within the bounds has a leader that has committed."""
    return exists(leads(s, r) & (s.epoch[r] == EPOCHS) & (s.high_watermark[r] != NONE) for r in Voter.all())


REACHABLE = (client_record_commits, last_leader_commits)

# Premises


@sometimes
def voter_is_elected(s: State) -> Bool:
    """A voter is elected."""
    return exists(~s.leaders[e].is_empty() for e in Epoch.all())


@sometimes
def later_leader_is_elected(s: State) -> Bool:
    """A voter is elected after a record was committed, in a later epoch than that of the record."""
    return (s.committed.length() > 0) & exists(
        ~s.leaders[e].is_empty() & (s.committed[s.committed.length() - 1] < e) for e in Epoch.all()
    )


@sometimes
def two_know_of_a_commit(s: State) -> Bool:
    """Two voters know a high watermark."""
    return exists(
        (s.high_watermark[r].or_else(0) > 0) & (s.high_watermark[q].or_else(0) > 0) & (r != q)
        for r in Voter.all()
        for q in Voter.all()
    )


@sometimes
def two_hold_a_record(s: State) -> Bool:
    """Two voters have records."""
    return exists((log_end(s, r) > 0) & (log_end(s, q) > 0) & (r != q) for r in Voter.all() for q in Voter.all())


@sometimes
def another_voter_set_is_committed(s: State) -> Bool:
    """A second voter set is committed, which differs from the first."""
    return exists(
        (o < p) & has_voters(s, o) & has_voters(s, p) & (s.committed_voters[o] != s.committed_voters[p])
        for o in Offset.all()
        for p in Offset.all()
    )


@sometimes_step
def voter_votes_for_another(old: State, new: State) -> Bool:
    """A voter votes for another."""
    return exists((old.vote[r] == NONE) & (new.vote[r] == q) & (q != r) for r in Voter.all() for q in Voter.all())


PREMISES: Mapping[str, Property] = {
    promise.name: premise
    for premise, promises in (
        (voter_is_elected, (one_leader_per_epoch,)),
        (later_leader_is_elected, (leaders_complete, committed_only_grows)),
        (two_know_of_a_commit, (watermark_is_committed, watermark_within_log, watermark_only_grows)),
        (two_hold_a_record, (logs_match,)),
        (voter_votes_for_another, (one_vote_per_epoch,)),
        (another_voter_set_is_committed, OF_CHANGES),
    )
    for promise in promises
}
"""By the name of the promise: what must happen in some behaviour, or else the promise says nothing."""
