"""In which directory a replica is, as the controller takes it: parts for `new_directory` and `earlier_releases`."""

from __future__ import annotations

from isr_lang import NONE, Bool, Design, Set, Step, action, always, define, forall, initial, switch, var, when
from isr_lang.blank import blank
from isr_protocol.designs.releases import Operations, removed_by
from isr_protocol.membership import metadata_changes
from isr_protocol.state import Replica

NEW_DIRECTORIES = switch("new_directories", "an empty disk has a directory id of its own", default=True)


class WithDirectories(Operations):
    """The state where the controller may not know in which directory a replica is."""

    elsewhere: Set[Replica] = var("replicas that the controller takes to be in a directory that their broker has not")
    to_register: Set[Replica] = var("brokers with a directory that they have yet to register")


@initial
def everybody_is_at_home(new: WithDirectories) -> Step:
    """Every replica is where the controller takes it to be."""
    return (new.elsewhere == blank(new.elsewhere), new.to_register == blank(new.to_register))


@action
def is_in_new_directory(old: WithDirectories, new: WithDirectories, r: Replica) -> Step:
    """Taken where a broker gets an empty disk, or is to start without a directory."""
    elsewhere = old.elsewhere.including(r) & old.replicas
    return (
        new.elsewhere == when(NEW_DIRECTORIES, elsewhere, old.elsewhere),
        new.to_register == when(NEW_DIRECTORIES, old.to_register.including(r), old.to_register),
    )


@action
def registers_directory(old: WithDirectories, new: WithDirectories, r: Replica) -> Step:
    """Taken where a broker starts, and so registers its directory."""
    return (new.to_register == old.to_register.excluding(r),)


def with_added(old: WithDirectories, target: Set[Replica]) -> Set[Replica]:
    """Who is elsewhere once replicas are added, each in the directory that its broker registered.

    ClusterControlManager.defaultDir; of several directories the controller would choose none.
    """
    return old.elsewhere | ((target - old.replicas) & old.to_register)


@action
def is_added_in_registered_directory(old: WithDirectories, new: WithDirectories, target: Set[Replica]) -> Step:
    """Taken where a reassignment begins."""
    return (new.elsewhere == with_added(old, target),)


@action
def is_added_and_removed(old: WithDirectories, new: WithDirectories, target: Set[Replica]) -> Step:
    """Taken where a reassignment is complete at once: who is no replica is in no directory."""
    return (new.elsewhere == with_added(old, target) - removed_by(old, target),)


@action
def is_added_no_more(old: WithDirectories, new: WithDirectories) -> Step:
    """Taken where a reassignment is cancelled."""
    return (new.elsewhere == old.elsewhere - old.adding,)


@action
def is_removed(old: WithDirectories, new: WithDirectories) -> Step:
    """Taken where a proposal completes a reassignment."""
    return (new.elsewhere == old.elsewhere - old.removing,)


def learns_directory(old: WithDirectories, new: WithDirectories, r: Replica, elr: Set[Replica]) -> Step:
    """A broker that has heard of its replica, and so has made a log, tells in which directory that is."""
    has_log = (old.leader[r] != NONE) | (old.leader_epoch[r] > 0)
    return (
        old.elsewhere.has(r),
        old.replicas.has(r),
        old.alive.has(r),
        has_log,
        *metadata_changes(old, new, old.controller_isr, elr),
        new.elsewhere == old.elsewhere.excluding(r),
    )


@action
def controller_learns_directory(old: WithDirectories, new: WithDirectories, r: Replica) -> Step:
    """A broker that has heard of its replica, and so has made a log, tells in which directory that is."""
    return learns_directory(old, new, r, old.controller_elr)


@define
def available_in_directory(s: WithDirectories, r: Replica) -> Bool:
    """The broker has a session and the directory that the controller takes its replica to be in."""
    return ~(s.fenced | s.shutting_down | s.elsewhere).has(r)


@define
def awaited_in_directory(s: WithDirectories, r: Replica) -> Bool:
    """The partition has no leader, and this replica may lead where it is."""
    eligible = s.controller_isr.has(r) | (s.controller_isr.is_empty() & s.controller_elr.has(r))
    return (s.controller_leader == NONE) & s.replicas.has(r) & eligible & ~s.elsewhere.has(r)


@define
def last_hope_in_directory(s: WithDirectories, r: Replica) -> Bool:
    """ISR and ELR are empty, and this replica led last, and is where the controller takes it to be."""
    nobody = (s.controller_isr | s.controller_elr).is_empty()
    return nobody & (s.last_known_leader == r) & ~s.elsewhere.has(r)


@always
def leader_is_placed(s: WithDirectories) -> Bool:
    """Whoever is elected is where the controller takes it to be, or its broker is down."""
    return forall(((s.controller_leader == r) & s.alive.has(r)).implies(~s.elsewhere.has(r)) for r in Replica.all())


def knowing_directories(design: Design, name: str, summary: str, because: str) -> Design:
    """A design of releases, under a name of its own, where an empty disk may have another directory id."""
    return (
        design.in_state(WithDirectories, everybody_is_at_home)
        .replacing(
            name,
            summary,
            because=because,
            available=available_in_directory,
            awaited_replica=awaited_in_directory,
            last_hope=last_hope_in_directory,
        )
        .extending(
            disk_is_replaced=is_in_new_directory,
            directory_is_removed=is_in_new_directory,
            broker_restarts=registers_directory,
            controller_starts_reassignment=is_added_in_registered_directory,
            controller_reassigns_at_once=is_added_and_removed,
            controller_cancels_reassignment=is_added_no_more,
            controller_accepts_and_completes=is_removed,
        )
        .adding(controller_learns_directory)
        .promising(leader_is_placed)
    )
