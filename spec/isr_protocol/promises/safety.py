"""What is promised: each property says what, under which settings, and where the promise comes from."""

from __future__ import annotations

from isr_lang import (
    NONE,
    Bool,
    Set,
    always,
    count,
    define,
    exists,
    forall,
    sometimes,
    sometimes_step,
    step,
)
from isr_protocol.state import (
    ACKS,
    CONSUMERS,
    FOLLOWER_READS,
    LOSSY_CRASHES,
    MIN_INSYNC,
    REPLICAS,
    SHUTDOWNS,
    UNCLEAN,
    Acks,
    Offset,
    Record,
    Replica,
    State,
    enough,
    holds,
    leads,
    log_end,
    maximal_isr,
)


@define
def leads_now(s: State, r: Replica) -> Bool:
    """The replica leads in the controller's present epoch: it is no zombie."""
    return leads(s, r) & (s.controller_leader == r) & (s.leader_epoch[r] == s.controller_epoch)


@define
def has_committed(s: State, r: Replica) -> Bool:
    """The replica's log begins with the true committed sequence."""
    return s.committed.is_prefix_of(s.log[r])


# Safety of records.


@always
def acked_survives(s: State) -> Bool:
    """A record acknowledged to its producer is in the log of whoever leads.

    Promised for acks=all, with unclean election off, while at most min.insync.replicas - 1 brokers stop uncleanly, if
    any of them loses unflushed records (before KIP-966: while none does). Kafka's documentation, Replication: "a
    committed message will not be lost, as long as there is at least one in sync replica alive, at all times". With
    acks=1 nothing is promised.
    """
    return forall(
        (leads_now(s, r) & s.acked.has(m)).implies(holds(s, r, m)) for r in Replica.all() for m in Record.all()
    )


@always
def committed_on_new_leader(s: State) -> Bool:
    """Whoever leads in the newest epoch has every committed record: committed implies present on the new leader.

    Promised as acked-survives is, for every record that was ever below a leader's watermark. KIP-101, KIP-279.
    """
    return forall(leads_now(s, r).implies(has_committed(s, r)) for r in Replica.all())


@always
def leaders_complete(s: State) -> Bool:
    """Every replica that could be elected cleanly (alive and in ISR or ELR) holds every committed record.

    Vanlightly's LeaderCandidateCompleteness; KIP-903 and KIP-966 exist for it.
    """
    return forall(
        (s.alive.has(r) & (s.controller_isr | s.controller_elr).has(r)).implies(has_committed(s, r))
        for r in Replica.all()
    )


@define
def met(s: State, leader: Replica, follower: Replica) -> Bool:
    """The leader has taken a fetch of the follower, which has truncated, and both are in one epoch."""
    return (
        leads(s, leader)
        & (s.alive - s.truncating).has(follower)
        & (s.follower_end[leader][follower] != NONE)
        & (s.leader_epoch[leader] == s.leader_epoch[follower])
    )


@always
def no_divergence(s: State) -> Bool:
    """Two logs agree on every offset that is below both replicas' watermarks.

    Where unflushed records may be lost, committed ones may be lost with them, and a replica that has not met
    the new leader may still hold them; then the promise is for a leader and the followers whose fetches it has
    taken. KIP-101, scenario 2; KIP-279. Vanlightly's LogMatching.
    """
    return forall(
        ((o < s.high_watermark[a]) & (o < s.high_watermark[b]) & ((LOSSY_CRASHES == 0) | met(s, a, b))).implies(
            s.log[a][o] == s.log[b][o]
        )
        for a in Replica.all()
        for b in Replica.all()
        for o in Offset.all()
    )


@step
def committed_only_grows(old: State, new: State) -> Bool:
    """The committed sequence is append-only: no leader ever commits another record at an offset."""
    return old.committed.is_prefix_of(new.committed)


@always(when=LOSSY_CRASHES == 0)
def weak_isr(s: State) -> Bool:
    """Below a leader's watermark, every living member of the leader's own in-sync set has the leader's records.

    hachikuji's WeakIsr. Promised without lossy crashes: a zombie is not told that a member lost its disk.
    """
    return forall(
        (leads(s, leader) & (s.isr[leader] & s.alive).has(r) & (o < s.high_watermark[leader])).implies(
            (o < log_end(s, r)) & (s.log[r][o] == s.log[leader][o])
        )
        for leader in Replica.all()
        for r in Replica.all()
        for o in Offset.all()
    )


@always
def strong_isr(s: State) -> Bool:
    """Below any leader's watermark, every living member of the controller's ISR has that leader's records.

    hachikuji's StrongIsr: zombies' watermarks count, too.
    """
    return forall(
        (leads(s, leader) & (s.controller_isr & s.alive).has(r) & (o < s.high_watermark[leader])).implies(
            (o < log_end(s, r)) & (s.log[r][o] == s.log[leader][o])
        )
        for leader in Replica.all()
        for r in Replica.all()
        for o in Offset.all()
    )


@always
def watermark_within_log(s: State) -> Bool:
    """No replica's watermark is above its log end; of a dead replica it is the one with which it will come back.

    Promised of every replica, in every design: what is read below a watermark is then a record. Kafka cuts the
    watermark to the log end wherever either moves, and the checkpoint that a broker finds when it starts: UnifiedLog's
    updateHighWatermark and truncateTo, Partition.createLog. A leader's may not even be asked to pass it
    (UnifiedLog.maybeIncrementHighWatermark throws).
    """
    return forall(s.high_watermark[r] <= log_end(s, r) for r in Replica.all())


@define
def safe(s: State, m: Record) -> Bool:
    """The record is in every log from which a leader may be chosen cleanly."""
    return forall((s.controller_isr | s.controller_elr).has(r).implies(holds(s, r, m)) for r in Replica.all())


def elected_from_outside(old: State, new: State) -> Bool:
    """A replica is elected that was neither in the ISR nor in the ELR."""
    return exists(
        (old.controller_leader != r) & (new.controller_leader == r) & ~(old.controller_isr | old.controller_elr).has(r)
        for r in Replica.all()
    )


@step(when=UNCLEAN & (ACKS == Acks.ALL) & (LOSSY_CRASHES == 0))
def acked_survives_clean_steps(old: State, new: State) -> Bool:
    """Since the last unclean election: what is acknowledged is safe, and stays so until the next one.

    Safe: in every log from which a leader may be chosen cleanly. What the unclean leader brought and what is
    acknowledged in the newest epoch is lost by another unclean election only; unclean election takes away nothing
    else. Without it acked-survives says as much. Promised without lossy crashes.
    """
    return elected_from_outside(old, new) | forall(
        (
            (old.acked.has(m) & safe(old, m))
            | ((new.acked - old.acked).has(m) & (new.written_in[m] == new.controller_epoch))
        ).implies(safe(new, m))
        for m in Record.all()
    )


# Safety of reads and acknowledgements.


@always(when=CONSUMERS > 0)
def reads_committed(s: State) -> Bool:
    """A consumer has read only committed records, in their order."""
    return s.consumed.is_prefix_of(s.committed)


@step(when=CONSUMERS > 0)
def reads_stable(old: State, new: State) -> Bool:
    """What a consumer has read stays readable, in order, also when it moves between replicas (KIP-392).

    Its position never goes back, and every replica that serves it has, below its watermark, what the consumer read.
    """
    return (old.position <= new.position) & forall(
        (
            new.alive.has(r)
            & ((new.leader[r] == r) | (FOLLOWER_READS & (new.leader[r] != NONE)))
            & (o < new.consumed.length())
            & (o < new.high_watermark[r])
        ).implies(new.log[r][o] == new.consumed[o])
        for r in Replica.all()
        for o in Offset.all()
    )


@step(when=(ACKS == Acks.ALL) & (LOSSY_CRASHES == 0))
def acks_meet_minimum(old: State, new: State) -> Bool:
    """An acks=all acknowledgement is given only when min.insync.replicas logs hold the record.

    Promised without lossy crashes: a copy can be lost between the follower's fetch and the acknowledgement.
    """
    return forall(
        (new.acked.has(m) & ~old.acked.has(m)).implies(count(holds(new, r, m) for r in Replica.all()) >= MIN_INSYNC)
        for m in Record.all()
    )


# Safety of leadership.


@always
def one_leader_per_epoch(s: State) -> Bool:
    """At most one replica acts as leader in an epoch."""
    return forall(
        (leads(s, a) & leads(s, b) & (a != b)).implies(s.leader_epoch[a] != s.leader_epoch[b])
        for a in Replica.all()
        for b in Replica.all()
    )


@always
def leader_in_isr(s: State) -> Bool:
    """The elected leader is in the ISR."""
    return forall((s.controller_leader == r).implies(s.controller_isr.has(r)) for r in Replica.all())


@always
def maximal_isr_covers(s: State) -> Bool:
    """The leader's maximal in-sync set contains the controller's ISR and, at or above the minimum, its ELR.

    Vanlightly's ReplicationQuorumSuperset (KIP-497, KIP-966): else a record could commit without a possible leader.
    """
    return forall(
        leads_now(s, r).implies(
            (s.controller_isr <= maximal_isr(s, r))
            & enough(s, r, s.isr[r]).implies(s.controller_elr <= maximal_isr(s, r))
        )
        for r in Replica.all()
    )


@define
def nobody_but_leader_in_isr(s: State) -> Bool:
    """The ISR has no member but, perhaps, the elected leader."""
    return forall(s.controller_isr.has(q).implies(s.controller_leader == q) for q in Replica.all())


@step
def clean_election(old: State, new: State) -> Bool:
    """Who is newly elected was in the ISR or, when that had nobody but the old leader, in the ELR.

    Promised with unclean election off; then at most the last known leader is elected from outside, when nobody is
    in either (KIP-966). PartitionChangeBuilder.isValidNewLeader, canElectFromElr.
    """
    return forall(
        ((old.controller_leader != r) & (new.controller_leader == r)).implies(
            UNCLEAN
            | old.controller_isr.has(r)
            | (old.controller_elr.has(r) & nobody_but_leader_in_isr(old))
            | ((old.controller_isr | old.controller_elr).is_empty() & (old.last_known_leader == r))
        )
        for r in Replica.all()
    )


@step
def elected_is_available(old: State, new: State) -> Bool:
    """Who is newly elected has a session and is not shutting down. PartitionChangeBuilder.isAcceptableLeader."""
    return forall(
        ((old.controller_leader != r) & (new.controller_leader == r)).implies(~(new.fenced | new.shutting_down).has(r))
        for r in Replica.all()
    )


@always
def fenced_out_of_isr(s: State) -> Bool:
    """No fenced broker is in the ISR, unless it is all that is left of it.

    KIP-841; Vanlightly's ValidControllerState.
    """
    return forall((s.controller_isr & s.fenced).has(r).implies(s.controller_isr == Set.of(r)) for r in Replica.all())


@step(when=SHUTDOWNS > 0)
def leaving_does_not_join(old: State, new: State) -> Bool:
    """No broker that is shutting down joins the ISR; one that is in it may stay until it is relieved.

    KIP-841's other half; ReplicationControlManager.ineligibleReplicasForIsr.
    """
    return ((new.controller_isr - old.controller_isr) & old.shutting_down).is_empty()


@always
def isr_and_elr_apart(s: State) -> Bool:
    """No replica is in ISR and ELR at once. KIP-966; Vanlightly's ValidControllerIsrAndElr, false of its model."""
    return (s.controller_isr & s.controller_elr).is_empty()


@step
def epochs_only_grow(old: State, new: State) -> Bool:
    """The controller's epochs never go back, a new leader has a new leader epoch, and no living replica goes back."""
    return (
        (old.controller_epoch <= new.controller_epoch)
        & (old.controller_partition_epoch <= new.controller_partition_epoch)
        & ((old.controller_leader == new.controller_leader) | (old.controller_epoch < new.controller_epoch))
        & forall(
            (old.alive & new.alive).has(r).implies(old.leader_epoch[r] <= new.leader_epoch[r]) for r in Replica.all()
        )
    )


@step(when=ACKS == Acks.ALL)
def writes_meet_minimum(old: State, new: State) -> Bool:
    """A leader appends an acks=all record only while its committed in-sync set has min.insync.replicas members.

    NOT_ENOUGH_REPLICAS; Partition.appendRecordsToLeader.
    """
    return (old.written_in == new.written_in) | exists(
        leads(old, r) & (log_end(old, r) < log_end(new, r)) & enough(old, r, old.isr[r]) for r in Replica.all()
    )


# Against vacuity: each of these happens somewhere.


@sometimes
def record_commits(s: State) -> Bool:
    """A record commits."""
    return s.committed.length() > 0


@sometimes
def isr_shrinks_to_one(s: State) -> Bool:
    """The ISR has one replica, after it shrank or from the start."""
    return s.controller_isr.size() == 1


@sometimes_step
def isr_grows_back(old: State, new: State) -> Bool:
    """A replica comes back into the ISR."""
    return (old.controller_isr <= new.controller_isr) & (old.controller_isr != new.controller_isr)


@sometimes_step(when=REPLICAS > 1)
def follower_log_shrinks(old: State, new: State) -> Bool:
    """A living follower truncates its log."""
    return exists(new.alive.has(r) & (log_end(new, r) < log_end(old, r)) for r in Replica.all())


@sometimes_step(when=UNCLEAN)
def unclean_election(old: State, new: State) -> Bool:
    """A replica outside ISR and ELR is elected."""
    return elected_from_outside(old, new)


@sometimes_step(when=MIN_INSYNC > 1)
def elr_member_elected(old: State, new: State) -> Bool:
    """A replica is elected from the ELR."""
    return exists(
        (old.controller_leader != r) & (new.controller_leader == r) & old.controller_elr.has(r) for r in Replica.all()
    )


@sometimes(when=(ACKS == Acks.ALL) & (MIN_INSYNC > 1))
def write_refused(s: State) -> Bool:
    """A leader's in-sync set is under the minimum, so it would refuse writes (NOT_ENOUGH_REPLICAS)."""
    return exists(leads_now(s, r) & (s.isr[r].size() < MIN_INSYNC) for r in Replica.all())


@sometimes_step
def watermark_goes_down(old: State, new: State) -> Bool:
    """A replica's own watermark goes down, as it may: only the true one is monotone."""
    return exists(new.high_watermark[r] < old.high_watermark[r] for r in Replica.all())


SAFETY = (
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    no_divergence,
    committed_only_grows,
    weak_isr,
    strong_isr,
    watermark_within_log,
    reads_committed,
    reads_stable,
    acks_meet_minimum,
    acked_survives_clean_steps,
    one_leader_per_epoch,
    leader_in_isr,
    maximal_isr_covers,
    clean_election,
    elected_is_available,
    fenced_out_of_isr,
    leaving_does_not_join,
    isr_and_elr_apart,
    epochs_only_grow,
    writes_meet_minimum,
)
REACHABLE = (
    record_commits,
    isr_shrinks_to_one,
    isr_grows_back,
    follower_log_shrinks,
    unclean_election,
    elr_member_elected,
    write_refused,
    watermark_goes_down,
)
