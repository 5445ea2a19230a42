"""Changes of the voters: a leader adds, removes or updates one, and observers find out who leads (KIP-853).

A voter set is a record like others. It counts as soon as it is in a log (rule 11, in `state.voter_set`). Each action is
what an AddRaftVoter, RemoveRaftVoter or UpdateRaftVoter comes to at the leader. What the leader refuses changes
nothing. The ApiVersions that an AddRaftVoter waits for is asked and answered in the same step.

The numbers in brackets are the rules that re-implementations often miss, listed in kraft_model.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Maybe, Step, action, define, exists, forall
from isr_lang.blank import blank
from kraft_protocol.replication import appends
from kraft_protocol.state import (
    CHANGES,
    DYNAMIC,
    JOINERS,
    Request,
    Role,
    State,
    Voter,
    VoterSet,
    electors,
    end_of_voters,
    is_voter,
    log_end,
    names,
    voter_set,
)
from kraft_protocol.voter import becomes, first_of, follower, next_request, unattached, unchanged

# Before anything happens


def is_beginning(s: State) -> Bool:
    """Nothing has happened on any first disk."""
    return forall((s.epoch[q] == 0) & (s.role[q] == Role.UNATTACHED) & (s.directory[q] == 0) for q in Voter.all())


@action
def node_is_formatted_without_voters(old: State, new: State, r: Voter) -> Step:
    """Before anything else a node is formatted with --no-initial-controllers, so it is no voter at first."""
    return (
        DYNAMIC,
        is_beginning(old),
        old.alive == Voter.all(),
        ~old.joiners.has(r),
        old.joiners.size() < JOINERS,
        exists((q != r) & ~old.joiners.has(q) for q in Voter.all()),
        new.joiners == old.joiners.including(r),
    )


# At the leader


@define
def has_committed_own_epoch(s: State, leader: Voter) -> Bool:
    """(12) The leader knows a high watermark: it has committed a record of its epoch, and so fenced who led before."""
    return s.high_watermark[leader] != NONE


@define
def has_committed_voters(s: State, leader: Voter) -> Bool:
    """(12) The last voter set in the leader's log is committed."""
    return end_of_voters(s, leader) <= s.high_watermark[leader].or_else(0)


def appends_voters(old: State, new: State, leader: Voter, voters: VoterSet) -> Step:
    """(12) The leader appends this voter set, if it may. One at a time."""
    return (
        has_committed_own_epoch(old, leader),
        has_committed_voters(old, leader),
        *appends(old, new, leader, voters, old.voters_at[leader].put(log_end(old, leader), voters)),
    )


def changes_voters(old: State, new: State, leader: Voter, voters: VoterSet) -> Step:
    """The leader changes the voters to these."""
    return (
        DYNAMIC,
        old.changes < CHANGES,
        *appends_voters(old, new, leader, voters),
        new.changes == old.changes + 1,
    )


def adds_node(old: State, new: State, leader: Voter, v: Voter, may_join: Bool) -> Step:
    """The leader appends a voter set with a node that has caught up with it, on the disk with which it fetched.

    The node answers an ApiVersions, which takes the place of what the leader has asked it before.
    LeaderState.isReplicaCaughtUp.
    """
    asks_no_more = next_request(old, leader, v, Request.NONE).requests
    return (
        leader != v,
        may_join,
        old.alive.has(v),
        old.follower_end[leader][v] != NONE,
        old.awaited_end[leader][v] == NONE,
        old.follower_directory[leader][v] == old.directory[v],
        new.request[leader] == asks_no_more.kind,
        new.answer[leader] == asks_no_more.answer,
        new.answer_epoch[leader] == asks_no_more.epoch,
        new.answer_leader[leader] == asks_no_more.leader,
        *changes_voters(old, new, leader, voter_set(old, leader).put(v, Maybe.of(old.directory[v]))),
    )


@action
def leader_adds_voter(old: State, new: State, r: Voter, v: Voter) -> Step:
    """A leader adds a node that has caught up with it, and whose id is not among the voters.

    (10) Another disk of a voter has to wait until that voter was removed. AddVoterHandler.
    """
    return adds_node(old, new, r, v, voter_set(old, r)[v] == NONE)


@action
def leader_removes_voter(old: State, new: State, r: Voter, v: Voter) -> Step:
    """A leader removes a voter, which may be itself, but not the last one. RemoveVoterHandler, VoterSet.removeVoter."""
    voters = voter_set(old, r)
    return (
        voters[v] != NONE,
        electors(old, r).size() > 1,
        *changes_voters(old, new, r, voters.put(v, blank(voters[v]))),
    )


@action
def leader_updates_voter(old: State, new: State, r: Voter, v: Voter) -> Step:
    """A leader writes a voter set in which a voter has other endpoints, which are not seen here. UpdateVoterHandler."""
    voters = voter_set(old, r)
    return (r != v, names(voters[v], old.directory[v]), *changes_voters(old, new, r, voters))


# At an observer


@action
def observer_finds_leader(old: State, new: State, r: Voter, q: Voter) -> Step:
    """A node that is no voter asks any other one by a fetch who leads, and hears it at once.

    No leader begins its epoch with it. pollFollowerAsObserver, pollUnattached, maybeSendFetchToAnyBootstrap.
    """
    epoch, leader = old.epoch[q], old.leader[q]
    later, first = epoch > old.epoch[r], (epoch == old.epoch[r]) & (leader != NONE) & (old.leader[r] == NONE)
    n = first_of(
        unchanged(old, r),
        ((later | first) & (leader != NONE), follower(old, r, epoch, leader)),
        (later, unattached(old, r, epoch)),
    )
    return (
        DYNAMIC,
        r != q,
        old.alive.has(r),
        old.alive.has(q),
        ~is_voter(old, r),
        (old.role[r] == Role.UNATTACHED) | (old.role[r] == Role.FOLLOWER),
        leader != r,
        later | first,
        *becomes(old, new, r, n),
    )
