"""Disks that were formatted by mistake: lists of first voters that differ, and a lost disk made a quorum of one.

`kafka-storage format` writes the first voters to the disk of each node, and asks no other node (Formatter of Kafka
4.4.0). Nothing compares them later but the cluster id.
"""

from __future__ import annotations

from isr_lang import Bool, Map, Maybe, Number, Set, Step, action, always, bound, define, forall, initial, var, when
from isr_lang.blank import blank
from kraft_protocol.designs.voter_changes import KRAFT_853
from kraft_protocol.promises import (
    leader_counts_next_voters,
    leaders_complete,
    one_leader_per_epoch,
    watermark_is_committed,
)
from kraft_protocol.reconfiguration import is_beginning
from kraft_protocol.state import (
    Directory,
    Offset,
    State,
    Voter,
    VoterSet,
    electors,
    has_first_voters,
    log_end,
)

OMISSIONS = bound("omissions", "voters that lists of first voters leave out, all lists together", default=0, high=12)
LONE_DISKS = bound("lone_disks", "lost disks that are formatted as quorums of one", default=1, high=2, budget=True)
LIST_SIZE = bound("list_size", "voters that each of these lists has at least", default=1, low=1, high=4)


# Lists


class Omissions(Number, high=OMISSIONS):
    """How many omissions."""


class FirstLists(State):
    """The state with what is missing in the list of first voters that each disk was formatted with."""

    missing_voters: Map[Voter, Set[Voter]] = var("whom the list of each node leaves out")
    omissions: Omissions = var("omissions so far")


@initial
def one_list(new: FirstLists) -> Step:
    """All lists are one."""
    return (new.missing_voters == blank(new.missing_voters), new.omissions == 0)


@define
def voters_of_own_list(s: FirstLists, r: Voter) -> VoterSet:
    """The list with which this node was formatted. A joiner has none, nor has a later disk."""
    none = blank(s.voters_at[r][Offset.of(0)][r])
    listed = has_first_voters(s, r)
    return Map.build(
        Voter,
        lambda q: when(listed & ~s.joiners.has(q) & ~s.missing_voters[r].has(q), Maybe.of(Directory.of(0)), none),
    )


@action
def list_leaves_out(old: FirstLists, new: FirstLists, r: Voter, q: Voter) -> Step:
    """Before anything else the disk of r is formatted with a list that leaves q out.

    With r alone it is that of `--standalone`. Whoever is alone leads as soon as its process starts, so it has not
    started yet.
    """
    voters = electors(old, r).size()
    return (
        is_beginning(old),
        old.restarts == 0,
        r != q,
        electors(old, r).has(r),
        electors(old, r).has(q),
        voters > LIST_SIZE,
        old.omissions < OMISSIONS,
        new.omissions == old.omissions + 1,
        new.missing_voters[r] == old.missing_voters[r].including(q),
        new.alive == when(voters == 2, old.alive.excluding(r), old.alive),
    )


@action
def lists_are_one(old: FirstLists, new: FirstLists, r: Voter) -> Step:
    """Who joins later is in no list."""
    return (forall(old.missing_voters[q].is_empty() for q in Voter.all()),)


@always
def records_have_one_voter_set(s: FirstLists) -> Bool:
    """Two records of one epoch at one offset have the same voter set, or none (Raft, 5.3: one leader wrote both)."""
    return forall(
        ((o < log_end(s, r)) & (o < log_end(s, q)) & (s.log[r][o] == s.log[q][o])).implies(
            s.voters_at[r][o] == s.voters_at[q][o]
        )
        for r in Voter.all()
        for q in Voter.all()
        for o in Offset.all()
    )


LISTS_DIFFER = (
    KRAFT_853.in_state(FirstLists, one_list)
    .replacing(
        "kraft-lists-differ",
        "KRaft where the disks of the voters were formatted with lists that differ",
        because="kafka-storage format writes the first voters to each disk, and nothing compares them.",
        first_voters=voters_of_own_list,
    )
    .extending(node_is_formatted_without_voters=lists_are_one)
    .adding(list_leaves_out)
    .promising(records_have_one_voter_set)
    .with_defaults(epochs=1, log=2, changes=0, omissions=2)
    .failing(
        "two nodes that were formatted as a quorum of one each lead at once.",
        one_leader_per_epoch,
        leader_counts_next_voters,
        records_have_one_voter_set,
    )
)
LISTS_OF_THREE = (
    LISTS_DIFFER.replacing(
        "kraft-lists-of-three",
        "KRaft where two lists of three voters differ in one",
        because="it takes no list of one voter to have two quorums, where there are four nodes.",
    )
    .with_defaults(voters=4, log=1, list_size=3)
    .failing("majorities of two lists need not overlap.", one_leader_per_epoch)
)


# A lost disk


class LoneNodes(State):
    """The state with whose disk was formatted as a quorum of one."""

    lone_nodes: Set[Voter] = var("nodes whose later disk was formatted as a quorum of one")


@initial
def no_lone_node(new: LoneNodes) -> Step:
    """No disk was."""
    return (new.lone_nodes == blank(new.lone_nodes),)


@define
def voters_of_any_disk(s: LoneNodes, r: Voter) -> VoterSet:
    """The list that all first disks have. A later disk has the node itself, or nobody."""
    none = blank(s.voters_at[r][Offset.of(0)][r])
    listed = has_first_voters(s, r)
    return Map.build(
        Voter,
        lambda q: when(
            listed & ~s.joiners.has(q),
            Maybe.of(Directory.of(0)),
            when((q == r) & s.lone_nodes.has(r), Maybe.of(s.directory[r]), none),
        ),
    )


@action
def node_is_formatted_alone(old: LoneNodes, new: LoneNodes, r: Voter) -> Step:
    """A disk that takes the place of a lost one is formatted with --standalone, before its process starts.

    Its directory id is a new one.
    """
    return (
        ~old.alive.has(r),
        old.directory[r] > 0,
        old.epoch[r] == 0,
        log_end(old, r) == 0,
        ~old.lone_nodes.has(r),
        old.lone_nodes.size() < LONE_DISKS,
        new.lone_nodes == old.lone_nodes.including(r),
    )


@action
def next_disk_is_another(old: LoneNodes, new: LoneNodes, r: Voter) -> Step:
    """Who loses that disk, too, comes back without voters as long as nobody formats it so again."""
    return (new.lone_nodes == old.lone_nodes.excluding(r),)


FORMATTED_ALONE = (
    KRAFT_853.in_state(LoneNodes, no_lone_node)
    .replacing(
        "kraft-formatted-alone",
        "KRaft where a voter that lost its disk is formatted as a quorum of one",
        because="kafka-storage format --standalone with the cluster id of the others asks none of them.",
        first_voters=voters_of_any_disk,
    )
    .extending(voter_loses_disk=next_disk_is_another)
    .adding(node_is_formatted_alone)
    .with_defaults(lost_disks=1, changes=0)
    .failing(
        "the node leads at once, whoever leads the others.",
        one_leader_per_epoch,
        leader_counts_next_voters,
        leaders_complete,
        watermark_is_committed,
    )
)

DESIGNS = (LISTS_DIFFER, LISTS_OF_THREE, FORMATTED_ALONE)
