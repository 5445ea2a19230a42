"""What must come to pass: liveness, stated with the fairness that each promise needs.

`insync check --liveness on` decides these on the explored graph. An exploration has bounds, so every promise ends
where they are spent; and time is left out, so what only a timer ends is named where it matters.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, define, exists, forall, leads_to, when
from isr_protocol.promises.safety import leads_now
from isr_protocol.state import ACKS, EPOCHS, ISR_CHANGES, MIN_INSYNC, Acks, Replica, State, last_epoch, leads, log_end


def bounds_left(s: State) -> Bool:
    """The exploration's own bounds do not stand in the way."""
    return (s.controller_partition_epoch < ISR_CHANGES) & (s.controller_epoch < EPOCHS)


@define
def bounds_spent(s: State) -> Bool:
    """The exploration's own bounds may stand in the way from here on."""
    return ~bounds_left(s)


@define
def counts_the_dead(s: State) -> Bool:
    """A leader may still take a fenced broker for caught up; its lag time, which is left out, would end that."""
    return exists(
        leads_now(s, r) & (s.fenced | s.shutting_down).has(f) & (s.follower_end[r][f] != NONE)
        for r in Replica.all()
        for f in Replica.all()
    )


@define
def candidate(s: State) -> Bool:
    """A living replica of the ISR or, when that is empty, of the ELR could lead."""
    eligible = when(s.controller_isr.is_empty(), s.controller_elr, s.controller_isr)
    return ~(eligible & (s.alive - s.shutting_down)).is_empty()


@define
def accepted_and_uncommitted(s: State) -> Bool:
    """The elected leader holds a record that is not committed, with an in-sync set that may commit it."""
    return bounds_left(s) & exists(
        leads_now(s, r) & (s.high_watermark[r] < log_end(s, r)) & (s.isr[r].size() >= MIN_INSYNC) for r in Replica.all()
    )


@define
def all_committed(s: State) -> Bool:
    """Whoever leads has committed its whole log, or is under the minimum."""
    return (
        bounds_spent(s)
        | counts_the_dead(s)
        | forall(
            leads_now(s, r).implies((s.high_watermark[r] == log_end(s, r)) | (s.isr[r].size() < MIN_INSYNC))
            for r in Replica.all()
        )
    )


@define
def somebody_lags(s: State) -> Bool:
    """A living replica with a session is out of the ISR of a partition that has a leader."""
    return bounds_left(s) & exists(
        (s.alive - s.fenced - s.shutting_down - s.controller_isr).has(r) & (s.controller_leader != NONE)
        for r in Replica.all()
    )


@define
def nobody_lags(s: State) -> Bool:
    """Every living replica with a session is in the ISR, or the partition has no leader."""
    return (
        bounds_spent(s) | (s.controller_leader == NONE) | ((s.alive - s.fenced - s.shutting_down) <= s.controller_isr)
    )


@define
def leaderless_with_candidate(s: State) -> Bool:
    """The partition has no leader, and a living replica of ISR or ELR could lead."""
    return bounds_left(s) & (s.controller_leader == NONE) & candidate(s)


@define
def has_leader(s: State) -> Bool:
    """The partition has a leader, or nobody is left who could lead."""
    return (s.controller_leader != NONE) | ~candidate(s) | bounds_spent(s)


@define
def write_waits(s: State) -> Bool:
    """A leader holds an acks=all record of its own epoch above its watermark."""
    return (
        bounds_left(s)
        & (ACKS == Acks.ALL)
        & exists(
            leads(s, r)
            & (s.isr[r].size() >= MIN_INSYNC)
            & (s.high_watermark[r] < log_end(s, r))
            & (last_epoch(s, r) == s.leader_epoch[r])
            for r in Replica.all()
        )
    )


@define
def no_write_waits(s: State) -> Bool:
    """No leader holds a record of its own epoch above its watermark: each was answered, or its leader is gone."""
    return (
        bounds_spent(s)
        | counts_the_dead(s)
        | ~exists(
            leads(s, r)
            & (s.isr[r].size() >= MIN_INSYNC)
            & (s.high_watermark[r] < log_end(s, r))
            & (last_epoch(s, r) == s.leader_epoch[r])
            for r in Replica.all()
        )
    )


# Whatever a healthy cluster keeps doing: deliver messages, decide, learn, and take brokers back.
PROGRESS = (
    "follower_sends_fetch",
    "leader_answers_fetch",
    "leader_answers_diverging",
    "follower_appends",
    "follower_truncates",
    "leader_proposes_shrink",
    "leader_proposes_expansion",
    "controller_accepts_alter_partition",
    "controller_refuses_alter_partition",
    "controller_rejects_stale_alter_partition",
    "leader_adopts_isr",
    "leader_rolls_back",
    "becomes_leader",
    "becomes_follower",
    "leader_learns_isr",
    "leader_learns_brokers",
    "controller_fences_outsider",
    "controller_fences_follower",
    "controller_fences_leader",
    "controller_fences_last_leader",
    "controller_unfences",
    "controller_elects_returned",
    "controller_elects_last_known_leader",
    "broker_shuts_down",
    # of older designs
    "follower_asks_for_epoch_end",
    "leader_answers_epoch_end",
    "leader_answers_undefined_epoch",
    "follower_truncates_to_watermark",
)

LIVENESS = (
    leads_to(
        "healthy-partition-commits",
        "A partition with enough replicas in sync commits what it accepts. Kafka's documentation, Replication.",
        accepted_and_uncommitted,
        all_committed,
        state=State,
        fair=PROGRESS,
        strong=("leader_proposes_expansion",),
    ),
    leads_to(
        "lagging-follower-returns",
        "A living follower that fell behind comes back into the ISR. Partition.maybeExpandIsr; KAFKA-19996.",
        somebody_lags,
        nobody_lags,
        state=State,
        fair=PROGRESS,
        strong=("leader_proposes_expansion",),
    ),
    leads_to(
        "leader-is-elected",
        "With a member of ISR or ELR alive a leader is eventually elected: available after a short fail-over.",
        leaderless_with_candidate,
        has_leader,
        state=State,
        fair=PROGRESS,
        strong=("leader_proposes_expansion",),
    ),
    leads_to(
        "writes-are-answered",
        "Every acks=all write is answered, while the in-sync set may commit, or its leader ends; else Kafka's "
        "time-out answers it, which is not modelled.",
        write_waits,
        no_write_waits,
        state=State,
        fair=PROGRESS,
        strong=("leader_proposes_expansion",),
    ),
)
