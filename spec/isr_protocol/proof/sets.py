"""The inductive invariant, second part: in-sync sets, who may be elected, zombies, and what is committed.

See isr_protocol.proof.invariant for the whole argument.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Set, always, define, exists, forall
from isr_protocol.membership import current, isr_without
from isr_protocol.promises.safety import leads_now
from isr_protocol.proof.logs import acknowledges, extended, extended_end, firm, follows
from isr_protocol.replication import may_advance, may_commit
from isr_protocol.state import (
    CONSUMERS,
    SHUTDOWNS,
    Alter,
    Fetch,
    Offset,
    Record,
    Replica,
    State,
    larger,
    leads,
    log_end,
    maximal_isr,
    smaller,
    start_of_own_epoch,
)

# The in-sync set: the controller's, and what leaders take it to be.


def came_back(s: State, most: int) -> Bool:
    """After at most so many shutdowns nobody is in a later incarnation; who stops, or has, is in an earlier one."""
    stopping = s.shutting_down | s.clean_shutdown
    return (s.shutdowns <= most).implies(
        forall(
            (s.broker_epoch[r] <= most) & stopping.has(r).implies(s.broker_epoch[r] + 1 <= most) for r in Replica.all()
        )
    )


@define
def stopped_in_order(s: State) -> Bool:
    """As long as nobody has crashed, whoever is down left the mark, and nobody came back more often than it stopped."""
    only_in_order = (SHUTDOWNS > 0) & (s.crashes == 0) & (s.lossy_crashes == 0)
    counted = came_back(s, 0) & came_back(s, 1) & came_back(s, 2) & came_back(s, 3)
    return only_in_order.implies(((Replica.all() - s.alive) <= s.clean_shutdown) & counted)


@define
def no_elr_to_wait_for(s: State) -> Bool:
    """Nobody of the ELR is awaited, which happens only where brokers shut down in order."""
    return (SHUTDOWNS == 0) | s.controller_elr.is_empty()


@always
def elected_leader(s: State) -> Bool:
    """The elected leader is in the ISR and has a session; without one, the partition waits for somebody it knows.

    It waits for the last known leader or, where the ISR keeps its last member, for that one; where brokers shut down in
    order, also for the ELR: the ISR may become empty when there is no leader any more who would be known as the last.
    """
    return (
        forall((s.controller_leader == r).implies(s.controller_isr.has(r) & ~s.fenced.has(r)) for r in Replica.all())
        & (s.controller_leader == NONE).implies(
            (s.controller_isr <= (s.fenced | s.shutting_down))
            & ~(s.controller_isr.is_empty() & no_elr_to_wait_for(s) & (s.last_known_leader == NONE))
        )
        & (s.controller_leader != NONE).implies(s.last_known_leader == NONE)
        & forall((s.controller_isr & s.fenced).has(r).implies(isr_without(s, r).has(r)) for r in Replica.all())
        & stopped_in_order(s)
    )


@always
def no_elr_beside_enough(s: State) -> Bool:
    """There is an ELR only where the ISR is under the minimum."""
    return may_commit(s, s.controller_isr).implies(s.controller_elr.is_empty())


@always
def own_isr(s: State) -> Bool:
    """A leader is in its own in-sync set and in what it asks for; one that is up to date has the controller's."""
    return forall(
        leads(s, q).implies(
            s.isr[q].has(q)
            & (s.pending_isr[q].is_empty() | s.pending_isr[q].has(q))
            & (s.alter[q] == Alter.ACCEPTED).implies(s.pending_isr[q].has(q))
        )
        & (leads_now(s, q) & (s.partition_epoch[q] == s.controller_partition_epoch)).implies(
            s.isr[q] == s.controller_isr
        )
        for q in Replica.all()
    )


@always
def requests_of_isr(s: State) -> Bool:
    """A leader's request is about what it knows, or about what is no longer so; an answer is about its last one."""
    return forall(
        (leads(s, q) & (s.alter[q] == Alter.REQUESTED) & (s.alter_leader_epoch[q] == s.leader_epoch[q])).implies(
            (s.alter_partition_epoch[q] <= s.partition_epoch[q])
            & ((s.alter_partition_epoch[q] == s.partition_epoch[q]) & current(s, q)).implies(
                s.alter_isr[q] == s.pending_isr[q]
            )
        )
        & (leads(s, q) & (s.alter[q] == Alter.REQUESTED)).implies(s.alter_leader_epoch[q] <= s.leader_epoch[q])
        & (s.alter[q] == Alter.REQUESTED).implies(s.alter_isr[q].has(q))
        & (s.alter[q] == Alter.ACCEPTED).implies(s.partition_epoch[q] < s.controller_partition_epoch)
        & (
            leads_now(s, q)
            & (s.alter[q] == Alter.ACCEPTED)
            & (s.partition_epoch[q] + 1 == s.controller_partition_epoch)
        ).implies(s.controller_isr == s.pending_isr[q])
        for q in Replica.all()
    )


@define
def may_be_accepted(s: State, q: Replica) -> Bool:
    """The controller may yet accept what the leader asks."""
    return (s.alter[q] == Alter.REQUESTED) & current(s, q)


@define
def candidates(s: State) -> Set[Replica]:
    """Who may be elected, now or once the in-sync set that is asked for has been accepted."""
    return Replica.all().where(
        lambda r: (
            (s.controller_isr | s.controller_elr).has(r)
            | (s.last_known_leader == r)
            | exists(may_be_accepted(s, q) & s.alter_isr[q].has(r) for q in Replica.all())
        )
    )


@always
def somebody_may_be_elected(s: State) -> Bool:
    """Somebody is in sync, the leader if there is one; or there is somebody who led when nobody was any more, or who is
    awaited after a shutdown in order."""
    return (s.controller_leader != NONE).implies(
        exists((s.controller_leader == r) & s.controller_isr.has(r) for r in Replica.all())
    ) & exists(
        s.controller_isr.has(r) | (s.last_known_leader == r) | ((SHUTDOWNS > 0) & s.controller_elr.has(r))
        for r in Replica.all()
    )


@define
def counts_all(s: State, members: Set[Replica]) -> Bool:
    """The set has every candidate."""
    return candidates(s) <= members


@always
def leaders_count_candidates(s: State) -> Bool:
    """An elected leader that may commit counts every candidate, whatever answer it gets to what it asked."""
    return forall(
        leads_now(s, q).implies(
            (s.controller_isr <= maximal_isr(s, q))
            & may_advance(s, q, s.isr[q]).implies(counts_all(s, maximal_isr(s, q)))
            & ((s.alter[q] == Alter.ACCEPTED) & may_advance(s, q, s.pending_isr[q])).implies(
                counts_all(s, s.pending_isr[q])
            )
            & (s.alter[q] == Alter.ACCEPTED).implies(s.controller_isr <= s.pending_isr[q])
            & (s.alter[q] == Alter.REFUSED).implies(s.controller_isr <= s.isr[q])
            & ((s.alter[q] == Alter.REFUSED) & may_advance(s, q, s.isr[q])).implies(counts_all(s, s.isr[q]))
        )
        for q in Replica.all()
    )


# Zombies: leaders that the controller has replaced.


@define
def zombie(s: State, z: Replica) -> Bool:
    """It believes that it leads, in an epoch that is over."""
    return leads(s, z) & (s.leader_epoch[z] < s.controller_epoch)


@define
def left_behind(s: State, z: Replica, f: Replica, members: Set[Replica]) -> Bool:
    """If the candidate still is in an epoch before the zombie's, the zombie waits for it."""
    waiting = (
        candidates(s).has(f) & (s.leader[f] != NONE) & (s.leader[f] != f) & (s.leader_epoch[f] < s.leader_epoch[z])
    )
    return waiting.implies(members.has(f))


@always
def zombies_wait_for_the_slow(s: State) -> Bool:
    """A candidate that has not learned of the zombie's epoch is in the zombie's set, so that it cannot commit."""
    return forall(
        zombie(s, z).implies(
            may_advance(s, z, s.isr[z]).implies(left_behind(s, z, f, maximal_isr(s, z)))
            & ((s.alter[z] == Alter.ACCEPTED) & may_advance(s, z, s.pending_isr[z])).implies(
                left_behind(s, z, f, s.pending_isr[z])
            )
            & ((s.alter[z] == Alter.REFUSED) & may_advance(s, z, s.isr[z])).implies(left_behind(s, z, f, s.isr[z]))
        )
        for z in Replica.all()
        for f in Replica.all()
    )


@define
def already_in(s: State, z: Replica, r: Replica, members: Set[Replica]) -> Bool:
    """Some member that has moved on, or the replica itself, holds the zombie back to what is in the replica's log."""
    return exists(
        members.has(q)
        & (q != z)
        & ((q == r) | ~follows(s, q, z))
        & s.log[z].take(acknowledges(s, z, q)).is_prefix_of(firm(s, r))
        for q in Replica.all()
    )


@always
def zombies_commit_nothing_new(s: State) -> Bool:
    """All that a zombie can still commit is in the log of every candidate and of every later leader."""
    return forall(
        (
            zombie(s, z) & (r != z) & (candidates(s).has(r) | (leads(s, r) & (s.leader_epoch[z] < s.leader_epoch[r])))
        ).implies(
            may_advance(s, z, s.isr[z]).implies(already_in(s, z, r, maximal_isr(s, z)))
            & ((s.alter[z] == Alter.ACCEPTED) & may_advance(s, z, s.pending_isr[z])).implies(
                already_in(s, z, r, s.pending_isr[z])
            )
            & ((s.alter[z] == Alter.REFUSED) & may_advance(s, z, s.isr[z])).implies(already_in(s, z, r, s.isr[z]))
        )
        for z in Replica.all()
        for r in Replica.all()
    )


# What is committed.


@always
def candidates_are_complete(s: State) -> Bool:
    """Every candidate holds every committed record, and is not about to cut it off."""
    return forall(candidates(s).has(r).implies(s.committed.is_prefix_of(firm(s, r))) for r in Replica.all())


@always
def leaders_of_candidates_are_complete(s: State) -> Bool:
    """So does the leader that a candidate follows, be it a zombie."""
    return forall(
        (candidates(s).has(f) & leads(s, q) & (q != f) & follows(s, f, q)).implies(s.committed.is_prefix_of(s.log[q]))
        for q in Replica.all()
        for f in Replica.all()
    )


@define
def agrees(s: State, z: Replica, members: Set[Replica]) -> Bool:
    """Some member holds the leader back to what agrees with what is committed."""
    return exists(
        members.has(q)
        & (q != z)
        & forall(
            ((o < acknowledges(s, z, q)) & (o < s.committed.length())).implies(s.log[z][o] == s.committed[o])
            for o in Offset.all()
        )
        for q in Replica.all()
    )


@always
def leaders_agree_with_committed(s: State) -> Bool:
    """A leader, be it a zombie, holds what is committed, or can commit only what agrees with it."""
    return forall(
        (leads(s, z) & ~s.committed.is_prefix_of(s.log[z])).implies(
            may_advance(s, z, s.isr[z]).implies(agrees(s, z, maximal_isr(s, z)))
            & ((s.alter[z] == Alter.ACCEPTED) & may_advance(s, z, s.pending_isr[z])).implies(
                agrees(s, z, s.pending_isr[z])
            )
            & ((s.alter[z] == Alter.REFUSED) & may_advance(s, z, s.isr[z])).implies(agrees(s, z, s.isr[z]))
            & ~leads_now(s, z)
        )
        for z in Replica.all()
    )


@always
def committed_before_own_epoch(s: State) -> Bool:
    """What is committed and not below the elected leader's watermark is from before its epoch."""
    return forall(
        leads_now(s, q).implies(s.committed.length() <= larger(s.high_watermark[q], start_of_own_epoch(s, q)))
        for q in Replica.all()
    )


@always
def watermarks_are_committed(s: State) -> Bool:
    """What is below a replica's watermark, or will be when an answer arrives, is committed."""
    return forall(
        (s.high_watermark[r] <= log_end(s, r))
        & s.log[r].take(s.high_watermark[r]).is_prefix_of(s.committed)
        & (s.fetch[r] == Fetch.ANSWERED).implies(
            extended(s, r).take(smaller(s.fetch_watermark[r], extended_end(s, r))).is_prefix_of(s.committed)
        )
        for r in Replica.all()
    )


@always
def acked_is_committed(s: State) -> Bool:
    """Every acknowledged record is committed."""
    return forall(
        s.acked.has(m).implies(exists(s.committed[o] == m for o in Offset.below(s.committed.length())))
        for m in Record.all()
    )


@always(when=CONSUMERS > 0)
def reads_are_of_what_is_committed(s: State) -> Bool:
    """The consumer is where its records end, and they are the first that are committed."""
    return (s.position == s.consumed.length()) & s.consumed.is_prefix_of(s.committed)
