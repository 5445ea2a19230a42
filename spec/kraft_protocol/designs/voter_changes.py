"""Voters that change (KIP-853): today's design with kraft.version 1, what was reported, and single rules taken out."""

from __future__ import annotations

from isr_lang import NONE, Bool, Map, Maybe, Step, action, define, exists, when
from kraft_model import KRAFT
from kraft_protocol.designs.check_quorum import (
    CheckQuorum,
    leader_notes_fetch,
    memory_is_new,
    no_fetch_yet,
    only_a_majority_suffices,
)
from kraft_protocol.designs.joining import Joining, nobody_removed, removal_is_noted, removed_voter_stays_out
from kraft_protocol.promises import (
    OF_CHANGES,
    committed_by_majority,
    leader_counts_next_voters,
    leaders_complete,
    neighbouring_voters_overlap,
    one_leader_per_epoch,
)
from kraft_protocol.reconfiguration import adds_node, changes_voters
from kraft_protocol.state import Directory, Offset, State, Voter, electors, end_of_voters, log_end, voter_set

KRAFT_853 = (
    KRAFT.replacing(
        "kraft-853",
        "Today's KRaft with voters that change (KIP-853)",
        because="with kraft.version 1 the log has the voter sets, and a voter is its id and its directory.",
    )
    .promising(*OF_CHANGES)
    .with_defaults(voters=2, epochs=2, log=3, writes=0, dynamic=True, changes=1)
)

# Reports


@define
def always_counts_itself(entry: Maybe[Directory], d: Directory) -> Bool:
    """The leader counts its own log, whether it is in its voter set or not."""
    return (entry == NONE) | (entry != NONE) | (entry == d)


COUNTS_ITSELF = (
    KRAFT_853.replacing(
        "kafka-16530",
        "KRaft where a leader that is no voter counts itself for the high watermark",
        because="LeaderState took the leader for a voter (KAFKA-16530).",
        counts_itself=always_counts_itself,
    )
    .with_defaults(epochs=1, log=2)
    .failing("a leader that removed itself commits by its own log.", committed_by_majority)
)


@define
def leader_is_always_heard(s: CheckQuorum, leader: Voter, f: Voter) -> Bool:
    """The majority is one of the voters and the leader, whether that is in its voter set or not."""
    fetched = s.fetched_voters[leader]
    n = when(electors(s, leader).has(f), fetched.including(f), fetched).size()
    return n + n + 2 > electors(s, leader).size()


CHECK_QUORUM = (
    KRAFT_853.in_state(CheckQuorum, no_fetch_yet)
    .replacing(
        "kraft-check-quorum",
        "KRaft with who fetched since the check-quorum timer of a leader was set",
        because="without that nothing can be said of KAFKA-16531.",
    )
    .extending(
        leader_answers_fetch=leader_notes_fetch,
        candidate_counts=memory_is_new,
        voter_stands=memory_is_new,
        resigned_stands=memory_is_new,
        voter_starts=memory_is_new,
    )
    .promising(only_a_majority_suffices)
    .with_defaults(voters=3, epochs=1, log=2)
)
LEADER_IS_HEARD = CHECK_QUORUM.replacing(
    "kafka-16531",
    "KRaft where a leader that is no voter counts itself for check-quorum",
    because="LeaderState took the leader for a voter (KAFKA-16531).",
    timer_is_set_again=leader_is_always_heard,
).failing("one of two voters suffices for a leader that removed itself.", only_a_majority_suffices)


@define
def any_disk(entry: Maybe[Directory], d: Directory) -> Bool:
    """An entry without a directory id is any disk of the node."""
    return (entry != NONE) | (entry == d)


ANY_DISK = (
    KRAFT_853.replacing(
        "kafka-17426",
        "KRaft where the directory ids of voters are zero",
        because="a zero id is none, and a voter without one is any disk of its node (KAFKA-17426).",
        names=any_disk,
    )
    .with_defaults(voters=3, epochs=1, lost_disks=1, changes=0)
    .failing("a voter that lost its disk votes again.", one_leader_per_epoch)
)

# Rules taken out


@define
def any_voters(s: State, leader: Voter) -> Bool:
    """Nobody asks whether the last voter set is committed."""
    return end_of_voters(s, leader) >= 0


AT_ONCE = (
    KRAFT_853.replacing(
        "kraft-changes-at-once",
        "KRaft where a leader changes the voters again before the last change is committed",
        because="(12) says that one change is committed before the next.",
        has_committed_voters=any_voters,
    )
    .with_defaults(voters=3, epochs=1, log=3, changes=2)
    .failing("two changes away, a majority need not overlap with the former ones.", leader_counts_next_voters)
)


@define
def any_epoch(s: State, leader: Voter) -> Bool:
    """A leader need not have committed anything."""
    return end_of_voters(s, leader) >= 0


@define
def waits_for_own_change(s: State, leader: Voter) -> Bool:
    """A leader waits for a change of its own, and takes what it found in its log for committed.

    Its LeaderChange may have the voter set with which it was formatted, and that is no change.
    """
    end = end_of_voters(s, leader)
    is_own = exists((o + 1 < end) & (s.log[leader][o] == s.epoch[leader]) for o in Offset.below(log_end(s, leader)))
    return ~is_own | (end <= s.high_watermark[leader].or_else(0))


EARLY = (
    KRAFT_853.replacing(
        "kraft-changes-early",
        "KRaft where a leader changes the voters before it has committed a record of its epoch",
        because="(12) says that it has fenced who led before.",
        has_committed_own_epoch=any_epoch,
        has_committed_voters=waits_for_own_change,
    )
    .with_defaults(voters=4, epochs=3, log=4, changes=2)
    .failing("another leader has changed the same voters in another way.", leader_counts_next_voters, leaders_complete)
)


@action
def leader_adds_all(old: State, new: State, r: Voter, v: Voter) -> Step:
    """A leader adds every node that has fetched from it, in one record."""
    voters = voter_set(old, r)
    both = Map.build(
        Voter,
        lambda q: when(
            (voters[q] == NONE) & (old.follower_end[r][q] != NONE), Maybe.of(old.follower_directory[r][q]), voters[q]
        ),
    )
    return (
        r != v,
        voters[v] == NONE,
        old.follower_end[r][v] != NONE,
        *changes_voters(old, new, r, both),
    )


ADDS_ALL = (
    KRAFT_853.replacing(
        "kraft-adds-all",
        "KRaft where a leader adds all observers at once",
        because="(12) says one at a time.",
        leader_adds_voter=leader_adds_all,
    )
    .with_defaults(voters=3, epochs=1, log=2, joiners=2)
    .failing("a majority of the next voters need not overlap with one of the former.", neighbouring_voters_overlap)
)

# Snapshots, and nodes that join by themselves


@define
def was_voter(s: State, leader: Voter, v: Voter) -> Bool:
    """Some voter set in the leader's log has this disk of the node."""
    return exists(s.voters_at[leader][o][v] == s.directory[v] for o in Offset.all())


@action
def leader_lets_join(old: Joining, new: Joining, r: Voter, v: Voter) -> Step:
    """A node asks by itself to be a voter, and the leader refuses who is among the voters (4.3.1, auto-join)."""
    return (
        *adds_node(old, new, r, v, voter_set(old, r)[v] == NONE),
        new.joined_again == (old.joined_again | old.former_voters.has(v)),
    )


@action
def leader_lets_join_once(old: Joining, new: Joining, r: Voter, v: Voter) -> Step:
    """A leader refuses who is among the voters, and who was once, as far as its log says."""
    return (
        *adds_node(old, new, r, v, ~was_voter(old, r, v)),
        new.joined_again == (old.joined_again | old.former_voters.has(v)),
    )


JOINS = (
    KRAFT_853.in_state(Joining, nobody_removed)
    .replacing(
        "kafka-19850",
        "KRaft where nodes join by themselves",
        because="an observer asks to be a voter whether it was one before or not (KAFKA-19850).",
        leader_adds_voter=leader_lets_join,
    )
    .extending(leader_removes_voter=removal_is_noted)
    .promising(removed_voter_stays_out)
    .with_defaults(epochs=1, log=3, changes=2)
    .failing("a voter that was removed joins again.", removed_voter_stays_out)
)
JOINS_ONCE = (
    JOINS.replacing(
        "kraft-joins-once",
        "KRaft where a leader lets nobody join that was a voter before, as far as its log says",
        because="it looks like a mend of KAFKA-19850.",
        leader_adds_voter=leader_lets_join_once,
    )
    .with_defaults(snapshots=1)
    .failing(
        "a snapshot has the last voter set only, so a leader forgets who was a voter (pull request 21025).",
        removed_voter_stays_out,
    )
)

DESIGNS = (
    KRAFT_853,
    COUNTS_ITSELF,
    CHECK_QUORUM,
    LEADER_IS_HEARD,
    ANY_DISK,
    AT_ONCE,
    EARLY,
    ADDS_ALL,
    JOINS,
    JOINS_ONCE,
)
