"""Faults: voters crash, lose their disks, and start again."""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Step, action, define
from isr_lang.blank import blank
from kraft_protocol.state import LOST_DISKS, RESTARTS, State, Voter
from kraft_protocol.voter import becomes, candidate, first_of, follower, resigned, stopped, unchanged


@action
def voter_crashes(old: State, new: State, r: Voter) -> Step:
    """A process ends, and its disk stays."""
    return (
        old.alive.has(r),
        old.restarts < RESTARTS,
        new.alive == old.alive.excluding(r),
        new.restarts == old.restarts + 1,
        *becomes(old, new, r, stopped(old, r)),
    )


@action
def voter_loses_disk(old: State, new: State, r: Voter) -> Step:
    """A process ends, and its disk is gone: log and quorum-state. It comes back with an empty one (KAFKA-14077)."""
    n = attrs.evolve(
        stopped(old, r),
        epoch=blank(old.epoch[r]),
        vote=blank(old.vote[r]),
        leader=blank(old.leader[r]),
        log=blank(old.log[r]),
    )
    return (
        old.alive.has(r),
        old.lost_disks < LOST_DISKS,
        new.alive == old.alive.excluding(r),
        new.lost_disks == old.lost_disks + 1,
        *becomes(old, new, r, n),
    )


@define
def is_former_leader(s: State, r: Voter) -> Bool:
    """(7) By its quorum-state the voter leads its epoch, so it starts as one that resigned (KAFKA-10527)."""
    return s.leader[r] == r


@action
def voter_starts(old: State, new: State, r: Voter) -> Step:
    """A process starts with what is on its disk: who stood for election still stands, who followed still follows.

    QuorumState.initialize.
    """
    leader = old.leader[r]
    n = first_of(
        unchanged(old, r),
        (is_former_leader(old, r), resigned(old, r)),
        ((old.vote[r] == r) & (leader == NONE), candidate(old, r, old.epoch[r])),
        (leader != NONE, follower(old, r, old.epoch[r], leader)),
    )
    return (~old.alive.has(r), new.alive == old.alive.including(r), *becomes(old, new, r, n))
