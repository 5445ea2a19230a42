"""The inductive invariant, first part: logs, epochs, what is in flight, and what leaders know of their followers.

See isr_protocol.proof.invariant for the whole argument.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Seq, always, define, forall, when
from isr_protocol.promises.safety import leads_now
from isr_protocol.replication import continues, takes
from isr_protocol.state import (
    LOG,
    Alter,
    Fetch,
    LeaderEpoch,
    Offset,
    Record,
    Replica,
    State,
    end_of_epoch,
    larger,
    leads,
    log_end,
    smaller,
)

# Logs, with what is on its way to them.


@define
def coming(s: State, f: Replica) -> Bool:
    """An answer with a record is on its way to the follower."""
    return (s.fetch[f] == Fetch.ANSWERED) & (s.fetch_record[f] != NONE)


@define
def extended(s: State, f: Replica) -> Seq[Offset, Record]:
    """The follower's log with the record that is on its way to it."""
    return when(coming(s, f), s.log[f].append(s.fetch_record[f].or_else(0)), s.log[f])


@define
def extended_end(s: State, f: Replica) -> Offset:
    """Where that ends."""
    return when(coming(s, f), log_end(s, f) + 1, log_end(s, f))


@define
def extended_epoch(s: State, f: Replica, o: Offset) -> LeaderEpoch:
    """The epoch of one of its records."""
    return s.written_in[extended(s, f)[o]]


@define
def cut(s: State, f: Replica) -> Offset:
    """Where the follower will truncate upon a diverging answer."""
    return smaller(s.fetch_offset[f], end_of_epoch(s, f, s.fetch_last_epoch[f]))


@define
def firm(s: State, f: Replica) -> Seq[Offset, Record]:
    """The part of the follower's log that it is not about to cut off."""
    return when(s.fetch[f] == Fetch.DIVERGED, s.log[f].take(cut(s, f)), s.log[f])


@always
def records_fit(s: State) -> Bool:
    """A record on its way to a log has room there."""
    return forall(extended_end(s, r) <= LOG for r in Replica.all())


@always
def records_are_named(s: State) -> Bool:
    """Every record in a log, or on its way to one, was produced; the committed and acknowledged ones too."""
    return forall(
        (extended(s, r)[o] < s.written_in.length()) for r in Replica.all() for o in Offset.below(extended_end(s, r))
    ) & forall(s.committed[o] < s.written_in.length() for o in Offset.below(s.committed.length()))


@always
def records_in_order(s: State) -> Bool:
    """A log holds its records in the order in which they were produced, and of their epochs."""
    return forall(
        ((o < p) & (p < extended_end(s, r))).implies(
            (extended(s, r)[o] < extended(s, r)[p]) & (extended_epoch(s, r, o) <= extended_epoch(s, r, p))
        )
        for r in Replica.all()
        for o in Offset.all()
        for p in Offset.all()
    )


@always
def one_epoch_one_log(s: State) -> Bool:
    """Two logs that have records of one epoch agree below the later of these, as far as that epoch goes."""
    return forall(
        (
            (o <= p)
            & (o < extended_end(s, a))
            & (p < extended_end(s, b))
            & (extended_epoch(s, a, o) == extended_epoch(s, b, p))
        ).implies(extended(s, a)[o] == extended(s, b)[o])
        for a in Replica.all()
        for b in Replica.all()
        for o in Offset.all()
        for p in Offset.all()
    )


@always
def logs_match(s: State) -> Bool:
    """Two logs with the same record at an offset agree on everything before it."""
    return forall(
        (
            (o <= p) & (p < extended_end(s, a)) & (p < extended_end(s, b)) & (extended(s, a)[p] == extended(s, b)[p])
        ).implies(extended(s, a)[o] == extended(s, b)[o])
        for a in Replica.all()
        for b in Replica.all()
        for o in Offset.all()
        for p in Offset.all()
    )


# Epochs and who leads in them.


@always
def epochs_are_the_controllers(s: State) -> Bool:
    """No replica, record or request is in an epoch that the controller has not opened."""
    return (
        forall(s.leader_epoch[r] <= s.controller_epoch for r in Replica.all())
        & forall(s.alter_leader_epoch[r] <= s.controller_epoch for r in Replica.all())
        & forall(s.alter_partition_epoch[r] <= s.controller_partition_epoch for r in Replica.all())
        & forall(s.partition_epoch[r] <= s.controller_partition_epoch for r in Replica.all())
        & forall(s.written_in[m] <= s.controller_epoch for m in Record.below(s.written_in.length()))
    )


@always
def one_epoch_one_leader(s: State) -> Bool:
    """Whoever knows the leader of an epoch knows the same one."""
    return forall(
        ((s.leader_epoch[a] == s.leader_epoch[b]) & (s.leader[a] != NONE) & (s.leader[b] != NONE)).implies(
            s.leader[a] == s.leader[b]
        )
        for a in Replica.all()
        for b in Replica.all()
    ) & forall(
        ((s.leader_epoch[r] == s.controller_epoch) & (s.leader[r] != NONE)).implies(s.leader[r] == s.controller_leader)
        for r in Replica.all()
    )


@always
def own_epoch_is_last(s: State) -> Bool:
    """No record in a replica's log is of a later epoch than the replica knows."""
    return forall(
        ((s.leader[r] != NONE) & (o < extended_end(s, r))).implies(extended_epoch(s, r, o) <= s.leader_epoch[r])
        for r in Replica.all()
        for o in Offset.all()
    )


@always
def leaders_have_their_epoch(s: State) -> Bool:
    """Every record of a leader's epoch, wherever it is, is in the leader's log."""
    return forall(
        (leads(s, q) & (o < extended_end(s, r)) & (extended_epoch(s, r, o) == s.leader_epoch[q])).implies(
            (o < log_end(s, q)) & (s.log[q][o] == extended(s, r)[o])
        )
        for q in Replica.all()
        for r in Replica.all()
        for o in Offset.all()
    )


@define
def expected(s: State, r: Replica) -> Bool:
    """The replica is elected, alive, and does not know it yet."""
    return s.alive.has(r) & (s.controller_leader == r) & ~leads_now(s, r)


@always
def new_epochs_are_empty(s: State) -> Bool:
    """As long as the elected leader does not know of its epoch, there is no record, request or answer of it."""
    return (
        forall(
            expected(s, r).implies((s.leader_epoch[r] < s.controller_epoch) | (s.leader[r] == NONE))
            for r in Replica.all()
        )
        & forall(
            (expected(s, r) & (s.alter[r] == Alter.REQUESTED)).implies(s.alter_leader_epoch[r] < s.controller_epoch)
            for r in Replica.all()
        )
        & forall(
            (expected(s, r) & ((s.fetch[f] == Fetch.ANSWERED) | (s.fetch[f] == Fetch.DIVERGED))).implies(
                s.fetch_epoch[f] < s.controller_epoch
            )
            for r in Replica.all()
            for f in Replica.all()
        )
        & forall(
            (expected(s, r) & (o < extended_end(s, q))).implies(extended_epoch(s, q, o) < s.controller_epoch)
            for r in Replica.all()
            for q in Replica.all()
            for o in Offset.all()
        )
    )


# What is blank where nothing can observe it.


@always
def blanks(s: State) -> Bool:
    """The dead believe nothing, only leaders have an in-sync set, and only the living wait for answers."""
    return (
        forall(
            (~s.alive.has(r)).implies(
                (s.leader[r] == NONE)
                & (s.leader_epoch[r] == 0)
                & (s.fetch[r] == Fetch.NONE)
                & ((s.alter[r] == Alter.NONE) | (s.alter[r] == Alter.REQUESTED))
            )
            for r in Replica.all()
        )
        & forall(
            (s.leader[r] != r).implies(
                s.isr[r].is_empty()
                & s.pending_isr[r].is_empty()
                & forall(s.follower_end[r][f] == NONE for f in Replica.all())
                & ((s.alter[r] == Alter.NONE) | (s.alter[r] == Alter.REQUESTED))
            )
            for r in Replica.all()
        )
        & s.truncating.is_empty()
    )


@always
def fetches_make_sense(s: State) -> Bool:
    """A fetch is of its sender's epoch or an earlier one; its answer is read in the epoch in which it was asked."""
    return forall(
        (
            (s.fetch[f] == Fetch.NONE)
            | (
                (s.fetch[f] == Fetch.REQUESTED)
                & (s.fetch_to[f] != NONE)
                & (s.fetch_to[f] != f)
                & (s.fetch_epoch[f] <= s.leader_epoch[f])
                & (s.fetch_epoch[f] == s.leader_epoch[f]).implies(s.fetch_to[f] == s.leader[f])
            )
            | (
                ((s.fetch[f] == Fetch.ANSWERED) | (s.fetch[f] == Fetch.DIVERGED))
                & (s.fetch_epoch[f] == s.leader_epoch[f])
                & (s.leader[f] != NONE)
                & (s.leader[f] != f)
            )
        )
        for f in Replica.all()
    )


@always
def requests_tell_the_truth(s: State) -> Bool:
    """A request of the follower's present epoch describes its log as it is."""
    return forall(
        ((s.fetch[f] == Fetch.REQUESTED) & (s.fetch_epoch[f] == s.leader_epoch[f])).implies(
            (s.fetch_offset[f] == log_end(s, f))
            & (log_end(s, f) > 0).implies(s.written_in[s.log[f][log_end(s, f) - 1]] == s.fetch_last_epoch[f])
        )
        for f in Replica.all()
    )


@always
def requests_of_own_epoch(s: State) -> Bool:
    """A request that ends in the leader's own epoch ends within the leader's log."""
    return forall(
        (
            (s.fetch[f] == Fetch.REQUESTED)
            & takes(s, q, f)
            & (s.fetch_offset[f] > 0)
            & (s.fetch_last_epoch[f] == s.leader_epoch[q])
        ).implies(
            (s.fetch_offset[f] <= log_end(s, q)) & (s.written_in[s.log[q][s.fetch_offset[f] - 1]] == s.leader_epoch[q])
        )
        for q in Replica.all()
        for f in Replica.all()
    )


@define
def matches(s: State, leader: Replica, f: Replica) -> Bool:
    """Where the follower's request says that its log ends, the leader has a record of the epoch that it names."""
    end = s.fetch_offset[f]
    return (end == 0) | ((end <= log_end(s, leader)) & (s.written_in[s.log[leader][end - 1]] == s.fetch_last_epoch[f]))


@always
def continuing_requests_match(s: State) -> Bool:
    """A request that continues the leader's log, as the leader reckons by epochs, does match it."""
    return forall(
        ((s.fetch[f] == Fetch.REQUESTED) & (q != f) & takes(s, q, f) & continues(s, q, f)).implies(matches(s, q, f))
        for q in Replica.all()
        for f in Replica.all()
    )


# What a leader knows of its followers.


@define
def follows(s: State, f: Replica, leader: Replica) -> Bool:
    """The follower is in the leader's epoch."""
    return (s.leader[f] == leader) & (s.leader_epoch[f] == s.leader_epoch[leader])


@define
def acknowledges(s: State, leader: Replica, f: Replica) -> Offset:
    """Up to where the leader takes its log to be on the follower, with the request that is on its way."""
    seen = s.follower_end[leader][f].or_else(0)
    asks = (s.fetch[f] == Fetch.REQUESTED) & takes(s, leader, f) & matches(s, leader, f)
    return when(asks, larger(seen, s.fetch_offset[f]), seen)


@always
def positions_within_log(s: State) -> Bool:
    """A leader has seen no follower beyond its own log end, and never itself."""
    return forall(
        leads(s, q).implies(s.follower_end[q][f].or_else(0) <= log_end(s, q)) & (s.follower_end[q][q] == NONE)
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def acknowledged_is_there(s: State) -> Bool:
    """What a follower has acknowledged to the leader of its epoch, or to the elected one, is firmly in its log."""
    return forall(
        ((q != f) & leads(s, q) & (leads_now(s, q) | follows(s, f, q))).implies(
            s.log[q].take(acknowledges(s, q, f)).is_prefix_of(firm(s, f))
        )
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def logs_part_at_the_cut(s: State) -> Bool:
    """Where a follower is about to cut its log, it differs from that of the leader that told it to."""
    return forall(
        (
            (s.fetch[f] == Fetch.DIVERGED)
            & (q != f)
            & leads(s, q)
            & follows(s, f, q)
            & (cut(s, f) < log_end(s, f))
            & (cut(s, f) < log_end(s, q))
        ).implies(s.log[f][cut(s, f)] != s.log[q][cut(s, f)])
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def positions_are_of_this_epoch(s: State) -> Bool:
    """A follower that a leader has heard of has learned of that leader's epoch, or has restarted since."""
    return forall(
        (leads(s, q) & (s.follower_end[q][f] != NONE) & (s.leader[f] != NONE)).implies(
            s.leader_epoch[q] <= s.leader_epoch[f]
        )
        for q in Replica.all()
        for f in Replica.all()
    )
