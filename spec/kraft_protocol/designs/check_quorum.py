"""The state in which a leader remembers who fetched since its check-quorum timer was set, as LeaderState has it."""

from __future__ import annotations

from isr_lang import Bool, Map, Set, Step, action, always, define, initial, var, when
from isr_lang.blank import blank
from kraft_protocol.replication import continues
from kraft_protocol.state import DYNAMIC, Role, State, Voter, electors, is_voter, names, voter_set


class CheckQuorum(State):
    """The state with what a leader knows of its voters' fetches."""

    fetched_voters: Map[Voter, Set[Voter]] = var("who fetched from each leader since its timer was set")
    minority_sufficed: Bool = var("a timer was set again though no majority had fetched", ghost=True)


@initial
def no_fetch_yet(new: CheckQuorum) -> Step:
    """Nobody has fetched."""
    return (new.fetched_voters == blank(new.fetched_voters), ~new.minority_sufficed)


def fetched_with(s: CheckQuorum, leader: Voter, f: Voter) -> Set[Voter]:
    """Who has fetched, with this follower if it is a voter (LeaderState.updateFetchedVoters)."""
    before = s.fetched_voters[leader]
    return when(~DYNAMIC | names(voter_set(s, leader)[f], s.directory[f]), before.including(f), before)


@define
def majority_has_fetched(s: CheckQuorum, leader: Voter, f: Voter) -> Bool:
    """(13) A majority of the voters has fetched, the leader included where it is one."""
    n = fetched_with(s, leader, f).size()
    return when(is_voter(s, leader), n + n + 2, n + n) > electors(s, leader).size()


@define
def timer_is_set_again(s: CheckQuorum, leader: Voter, f: Voter) -> Bool:
    """The check-quorum timer starts anew (LeaderState.updateCheckQuorumForFollowingVoter)."""
    return majority_has_fetched(s, leader, f)


@action
def leader_notes_fetch(old: CheckQuorum, new: CheckQuorum, r: Voter, f: Voter) -> Step:
    """A leader notes who fetched, and forgets all of them when it sets its timer again."""
    takes = (old.role[r] == Role.LEADER) & (old.epoch[r] == old.epoch[f]) & continues(old, r, f)
    again = takes & timer_is_set_again(old, r, f)
    noted = when(takes, fetched_with(old, r, f), old.fetched_voters[r])
    return (
        new.fetched_voters[r] == when(again, blank(noted), noted),
        new.minority_sufficed == (old.minority_sufficed | (again & ~majority_has_fetched(old, r, f))),
    )


@action
def memory_is_new(old: CheckQuorum, new: CheckQuorum, r: Voter) -> Step:
    """Who begins to lead has heard nobody."""
    return (new.fetched_voters[r] == blank(old.fetched_voters[r]),)


@always
def only_a_majority_suffices(s: CheckQuorum) -> Bool:
    """A leader sets its check-quorum timer again only when a majority of its voters has fetched."""
    return ~s.minority_sufficed
