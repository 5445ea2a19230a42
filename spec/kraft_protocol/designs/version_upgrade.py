"""The upgrade of kraft.version from 0 to 1: voters known by their ids become voters known by their directories, too.

At version 0 the voters stand in the configuration, and any disk of a node is its voter. A leader collects directory ids
from UpdateRaftVoter, in its memory. Once it knows all, it may write them as the first voter set of the log. Read of
Kafka: `UpdateVoterHandler`, `LeaderState.maybeAppendUpgradedKRaftVersion`. Kafka 4.1.0 has the class
`KRaftVersionUpgrade`, and 4.0.2 has not (byte code).
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Map, Maybe, Number, Step, action, bound, define, forall, initial, var
from isr_lang.blank import blank
from kraft_protocol.designs.voter_changes import KRAFT_853
from kraft_protocol.elections import counts
from kraft_protocol.promises import leader_counts_next_voters, leaders_complete
from kraft_protocol.reconfiguration import appends_voters
from kraft_protocol.state import DYNAMIC, Role, State, Voter, VoterSet, end_of_voters
from kraft_protocol.voter import new_leader

UPGRADES = bound("upgrades", "upgrades of kraft.version that leaders write", default=1, high=2, budget=True)


class Upgrades(Number, high=UPGRADES):
    """How many upgrades."""


class Upgrade(State):
    """The state with what each leader knows of directories that the log does not have yet."""

    upgrades: Upgrades = var("upgrades so far, those that were truncated included")
    known_voters: Map[Voter, VoterSet] = var("the directory of each voter, as far as each leader has heard of it")


@initial
def no_directory_is_known(new: Upgrade) -> Step:
    """Nobody has heard of any."""
    return (new.known_voters == blank(new.known_voters), new.upgrades == 0)


@define
def voters_of_configuration(s: State, r: Voter) -> VoterSet:
    """The voters of controller.quorum.voters: all nodes, each with whatever disk it has (VoterNode.isVoter)."""
    return Map.build(Voter, lambda q: Maybe.of(s.directory[q]))


@define
def nobody_has_first_voters(s: State, r: Voter) -> Bool:
    """No disk was formatted with voters."""
    return Bool.false


@action
def candidate_leads_at_any_version(old: Upgrade, new: Upgrade, r: Voter, q: Voter) -> Step:
    """As ever, but no leader writes voters on its own. What it knows of directories is new.

    LeaderState.appendStartOfEpochControlRecords, where the version supports no changes of voters.
    """
    leader = attrs.evolve(new_leader(old, r, old.epoch[r]), voters_at=old.voters_at[r])
    own = blank(old.known_voters[r]).put(r, Maybe.of(old.directory[r]))
    return (*counts(old, new, r, q, leader), new.known_voters[r] == own)


@action
def leader_hears_of_directory(old: Upgrade, new: Upgrade, r: Voter, v: Voter) -> Step:
    """A follower tells its leader which disk it has (UpdateRaftVoter). The leader keeps that in its memory.

    KafkaRaftClient.pollFollowerAsVoter; UpdateVoterHandler, VoterSet.updateVoterIgnoringDirectoryId.
    """
    return (
        r != v,
        old.alive.has(r),
        old.role[r] == Role.LEADER,
        old.alive.has(v),
        old.role[v] == Role.FOLLOWER,
        old.leader[v] == r,
        old.epoch[v] == old.epoch[r],
        end_of_voters(old, r) == 0,
        old.high_watermark[r] != NONE,
        old.known_voters[r][v] != old.directory[v],
        new.known_voters[r] == old.known_voters[r].put(v, Maybe.of(old.directory[v])),
    )


@define
def knows_all_directories(s: Upgrade, leader: Voter) -> Bool:
    """The leader has heard from every voter in this epoch of its own."""
    return forall(s.known_voters[leader][q] != NONE for q in Voter.all())


@action
def leader_upgrades_version(old: Upgrade, new: Upgrade, r: Voter) -> Step:
    """A leader writes version 1, and in one batch with it the voters that it knows. Both count from then on."""
    return (
        DYNAMIC,
        end_of_voters(old, r) == 0,
        old.upgrades < UPGRADES,
        knows_all_directories(old, r),
        *appends_voters(old, new, r, old.known_voters[r]),
        new.upgrades == old.upgrades + 1,
    )


@define
def voters_may_change(s: Upgrade, leader: Voter) -> Bool:
    """The version is 1, as far as the leader's log says."""
    return end_of_voters(s, leader) > 0


@action
def after_upgrade(old: Upgrade, new: Upgrade, r: Voter, v: Voter) -> Step:
    """Voters change at version 1 only."""
    return (voters_may_change(old, r),)


UPGRADE = (
    KRAFT_853.in_state(Upgrade, no_directory_is_known)
    .replacing(
        "kraft-version-upgrade",
        "KRaft whose kraft.version is upgraded from 0 to 1 by a leader that knows every voter's directory",
        because="at version 0 voters are known by their ids.",
        first_voters=voters_of_configuration,
        has_first_voters=nobody_has_first_voters,
        candidate_counts=candidate_leads_at_any_version,
    )
    .extending(leader_adds_voter=after_upgrade, leader_removes_voter=after_upgrade, leader_updates_voter=after_upgrade)
    .without("node_is_formatted_without_voters")
    .adding(leader_hears_of_directory, leader_upgrades_version)
    .with_defaults(log=4)
)


@define
def knows_own_directory(s: Upgrade, leader: Voter) -> Bool:
    """The leader knows its own directory, as it always does."""
    return s.known_voters[leader][leader] != NONE


EARLY_UPGRADE = (
    UPGRADE.replacing(
        "kraft-upgrades-early",
        "KRaft whose leader upgrades kraft.version before it knows every voter's directory",
        because="who is not known yet is no voter then.",
        knows_all_directories=knows_own_directory,
    )
    .with_defaults(voters=3, log=2, changes=0)
    .failing("the leader is then a majority by itself.", leaders_complete, leader_counts_next_voters)
)

DESIGNS = (UPGRADE, EARLY_UPGRADE)
