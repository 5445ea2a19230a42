"""What is promised where the controllers are a quorum: what one reliable controller promises, and the quorum's own."""

from __future__ import annotations

from collections.abc import Mapping

from controller_protocol.state import State, is_active
from isr_lang import Bool, Property, always, exists, forall, sometimes, sometimes_step
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    committed_only_grows,
    epochs_only_grow,
    fenced_out_of_isr,
    isr_and_elr_apart,
    leader_in_isr,
    leaders_complete,
    leads_now,
    maximal_isr_covers,
    no_divergence,
    one_leader_per_epoch,
    record_commits,
    strong_isr,
    watermark_within_log,
    weak_isr,
)
from isr_protocol.state import Alter, Replica
from kraft_protocol.abstract_quorum import (
    QUORUM_PROMISES,
    AbstractQuorum,
    end,
    later_leader_commits,
    leader_knows_what_is_committed,
    leaders_have_committed,
    one_leader_a_term,
    one_vote_a_term,
    quorum_logs_match,
    quorum_only_grows,
)
from kraft_protocol.state import Voter


@always
def no_leader_is_stuck(s: State) -> Bool:
    """A leader that waits for an answer has a request on its way, an answer, or newer metadata to hear of.

    Otherwise it never asks again: it has proposed an in-sync set, and nobody will decide on it (KAFKA-14154).
    """
    return forall(
        (leads_now(s, r) & ~s.pending_isr[r].is_empty() & (s.alter[r] == Alter.NONE)).implies(
            s.partition_epoch[r] != s.controller_partition_epoch
        )
        for r in Replica.all()
    )


@sometimes
def two_controllers_are_active(s: State) -> Bool:
    """Two controllers are active at a time, the older one without knowing of the other."""
    return exists(is_active(s, c) & is_active(s, d) & (c != d) for c in Voter.all() for d in Voter.all())


@sometimes_step
def controller_reverts(old: State, new: State) -> Bool:
    """A controller takes back a record that it had replayed."""
    return exists(
        is_active(old, c) & ~old.quorum_log[c].is_prefix_of(new.quorum_log[c]) & (old.lost_disks == new.lost_disks)
        for c in Voter.all()
    )


PROMISES = (
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    no_divergence,
    committed_only_grows,
    weak_isr,
    strong_isr,
    watermark_within_log,
    one_leader_per_epoch,
    leader_in_isr,
    maximal_isr_covers,
    fenced_out_of_isr,
    isr_and_elr_apart,
    epochs_only_grow,
    no_leader_is_stuck,
    *QUORUM_PROMISES,
)
REACHABLE = (later_leader_commits, two_controllers_are_active, controller_reverts)

# Premises


@sometimes
def record_is_acked(s: State) -> Bool:
    """A record is acknowledged."""
    return ~s.acked.is_empty()


@sometimes
def leader_waits_for_an_answer(s: State) -> Bool:
    """A leader has proposed an in-sync set, and does not know yet what became of it."""
    return exists(leads_now(s, r) & ~s.pending_isr[r].is_empty() for r in Replica.all())


@sometimes
def another_replica_leads(s: State) -> Bool:
    """A replica leads in a later epoch than the first."""
    return exists(leads_now(s, r) & (s.leader_epoch[r] > 0) for r in Replica.all())


@sometimes
def replica_was_out(s: State) -> Bool:
    """A replica is out of the ISR."""
    return s.controller_isr != Replica.all()


@sometimes
def controller_is_elected_later(s: AbstractQuorum) -> Bool:
    """A voter leads a later epoch than that of a committed record."""
    n = s.quorum_committed.length()
    return (n > 0) & exists(s.quorum_leaders.has(v) & (s.quorum_committed[n - 1] < s.term[v]) for v in Voter.all())


@sometimes
def two_voters_lead(s: AbstractQuorum) -> Bool:
    """Two voters lead at a time."""
    return s.quorum_leaders.size() > 1


@sometimes
def voter_supports_another(s: AbstractQuorum) -> Bool:
    """A voter supports another."""
    return exists((s.support[r] == v) & (r != v) for r in Voter.all() for v in Voter.all())


@sometimes
def logs_have_two_records(s: AbstractQuorum) -> Bool:
    """Two logs have a second record of the same epoch."""
    return exists(
        (r != q) & (end(s, r) > 1) & (end(s, q) > 1) & (s.quorum_log[r][1] == s.quorum_log[q][1])
        for r in Voter.all()
        for q in Voter.all()
    )


PREMISES: Mapping[str, Property] = {
    promise.name: premise
    for premise, promises in (
        (record_is_acked, (acked_survives,)),
        (record_commits, (committed_only_grows, weak_isr, strong_isr, watermark_within_log)),
        (another_replica_leads, (committed_on_new_leader, leaders_complete, no_divergence, one_leader_per_epoch)),
        (replica_was_out, (leader_in_isr, maximal_isr_covers, fenced_out_of_isr, isr_and_elr_apart, epochs_only_grow)),
        (leader_waits_for_an_answer, (no_leader_is_stuck,)),
        (two_voters_lead, (one_leader_a_term,)),
        (voter_supports_another, (one_vote_a_term,)),
        (logs_have_two_records, (quorum_logs_match,)),
        (
            controller_is_elected_later,
            (leaders_have_committed, quorum_only_grows, leader_knows_what_is_committed),
        ),
    )
    for promise in promises
}
"""By the name of the promise: what must happen in some behaviour, or else the promise says nothing."""
