"""What a promise speaks about. Where that never happens, the promise holds of nothing: it is vacuous.

"What was acknowledged survives" is true of a producer that never gets an acknowledgement, and of a checker that never
let one write. So each promise that speaks about something has a premise here, and holds only where some behaviour
fulfils it.

The harm begins with a precursor: a leader that lacks a committed record. What it writes and commits next breaks further
promises. Bounds that end there say of those that they hold, and have only not come to it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from isr_lang import NONE, Bool, Property, exists, sometimes
from isr_protocol.promises import safety
from isr_protocol.promises.committed_log import implements_committed_log
from isr_protocol.state import Offset, Replica, State


@sometimes
def record_is_acknowledged(s: State) -> Bool:
    """A record is acknowledged to its producer."""
    return ~s.acked.is_empty()


@sometimes
def record_is_committed(s: State) -> Bool:
    """A record is committed."""
    return s.committed.length() > 0


@sometimes
def record_is_written(s: State) -> Bool:
    """A leader appends a record."""
    return s.written_in.length() > 0


@sometimes
def two_know_of_a_commit(s: State) -> Bool:
    """Two replicas have watermarks above the start of their logs, or there is but one replica."""
    others = exists(
        (s.high_watermark[a] > 0) & (s.high_watermark[b] > 0) & (a != b) for a in Replica.all() for b in Replica.all()
    )
    return others | ((s.committed.length() > 0) & (Replica.all().size() == 1))


@sometimes
def record_is_read(s: State) -> Bool:
    """A consumer reads a record."""
    return s.consumed.length() > 0


@sometimes
def election_happens(s: State) -> Bool:
    """A leader is elected; the first one was not, and that nobody leads is no election."""
    return (s.controller_epoch > 0) & (s.controller_leader != NONE)


@sometimes
def elected_leader_leads(s: State) -> Bool:
    """A leader that was elected leads."""
    return exists(safety.leads_now(s, r) & (s.leader_epoch[r] > 0) for r in Replica.all())


@sometimes
def leader_follows_a_commit(s: State) -> Bool:
    """A leader that was elected leads, and a record from before its epoch is committed."""
    return exists(
        safety.leads_now(s, r) & (s.written_in[s.committed[o]] < s.leader_epoch[r])
        for r in Replica.all()
        for o in Offset.below(s.committed.length())
    )


@sometimes
def broker_shuts_down(s: State) -> Bool:
    """A broker asks to shut down."""
    return s.shutdowns > 0


@sometimes
def leader_lacks_committed(s: State) -> Bool:
    """A leader lacks a committed record."""
    return exists(safety.leads_now(s, r) & ~safety.has_committed(s, r) for r in Replica.all())


PRECURSOR = attrs.evolve(leader_lacks_committed, optional=True)
"""What comes before the harm to most promises about committed records; no exploration goes on to find it."""
OF_COMMITTED_RECORDS = frozenset(
    promise.name
    for promise in (
        safety.acked_survives_clean_steps,
        safety.leaders_complete,
        safety.no_divergence,
        safety.committed_only_grows,
        safety.weak_isr,
        safety.strong_isr,
        safety.reads_committed,
        safety.reads_stable,
        implements_committed_log,
    )
)
"""The names of the promises that a leader may break which lacks a committed record: what it commits next does.

`acked-survives` is none of them: a leader that lacks what is acknowledged breaks it at once. What is committed and not
acknowledged may be missing for good, as with two replicas, a minimum of two and unclean election.
"""

PREMISES: Mapping[str, Property] = {
    promise.name: premise
    for premise, promises in (
        (
            record_is_acknowledged,
            (safety.acked_survives, safety.acked_survives_clean_steps, safety.acks_meet_minimum),
        ),
        (
            record_is_committed,
            (
                safety.leaders_complete,
                safety.committed_only_grows,
                safety.weak_isr,
                safety.strong_isr,
                safety.watermark_within_log,
                implements_committed_log,
            ),
        ),
        (two_know_of_a_commit, (safety.no_divergence,)),
        (record_is_read, (safety.reads_committed, safety.reads_stable)),
        (leader_follows_a_commit, (safety.committed_on_new_leader,)),
        (election_happens, (safety.clean_election, safety.elected_is_available)),
        (elected_leader_leads, (safety.one_leader_per_epoch,)),
        (broker_shuts_down, (safety.leaving_does_not_join,)),
        (record_is_written, (safety.writes_meet_minimum,)),
    )
    for promise in promises
}
"""By the name of the promise: what must happen in some behaviour, or else the promise says nothing."""
