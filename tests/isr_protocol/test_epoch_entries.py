"""Entries of the leader epoch cache that outlive their records, put in: a leader that has written nothing leaves one.

Without it docs/model.md could call them harmless where they are not: a follower that cuts its log but not its cache
asks the same for ever (KAFKA-10706).
"""

from __future__ import annotations

import attrs
import pytest

from isr_check.engine import Exploration, Verdict
from isr_check.native import explore
from isr_lang import NONE, Action, Design, Instance, Map, Seq, Step, action, initial, var, when
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.metadata import newest, request_lives
from isr_protocol.replication import last_epoch_in
from isr_protocol.state import LeaderEpoch, Offset, Record, Replica, State, end_of_epoch, log_end, smaller

pytestmark = pytest.mark.explores


class Entries(State):
    """The state with the epoch of the last entry of each replica's cache, where no record is of it."""

    entry: Map[Replica, LeaderEpoch] = var("the epoch of an entry at the log end without a record; 0: there is none")


@initial
def no_entry(new: Entries) -> Step:
    """Every entry has a record."""
    return (new.entry == blank(new.entry),)


def latest(old: Entries, log: Seq[Offset, Record], entry: LeaderEpoch) -> LeaderEpoch:
    """LeaderEpochFileCache.latestEpoch: of the last entry, be there a record of it or not."""
    return when(entry == 0, last_epoch_in(old, log), entry)


# What the fetches of a follower name: taken with its actions in place of the epoch of its last record.


@action
def asks_with_entry(old: Entries, new: Entries, follower: Replica) -> Step:
    """Where it sends a fetch."""
    return (new.fetch_last_epoch[follower] == latest(old, old.log[follower], old.entry[follower]),)


@action
def appends_over_entry(old: Entries, new: Entries, follower: Replica) -> Step:
    """Where it appends: a record takes the place of an entry without one (maybeTruncateNonMonotonicEntries)."""
    record = old.fetch_record[follower]
    log = when(record == NONE, old.log[follower], old.log[follower].append(record.or_else(0)))
    entry = when(record == NONE, old.entry[follower], 0)
    return (new.entry[follower] == entry, new.fetch_last_epoch[follower] == latest(old, log, entry))


def cuts_entry(old: Entries, new: Entries, follower: Replica, left: LeaderEpoch) -> Step:
    """Where it cuts its log; where nothing is cut, the entry is what is `left` of it."""
    own = end_of_epoch(old, follower, old.fetch_last_epoch[follower])
    point = smaller(old.fetch_offset[follower], own)
    entry = when(point < log_end(old, follower), LeaderEpoch.of(0), left)
    log = old.log[follower].take(point)
    return (new.entry[follower] == entry, new.fetch_last_epoch[follower] == latest(old, log, entry))


@action
def cuts_cache(old: Entries, new: Entries, follower: Replica) -> Step:
    """As since 2.6.1: the cache is cut also where the log is not (Log.truncateTo)."""
    return cuts_entry(old, new, follower, LeaderEpoch.of(0))


@action
def cuts_log_only(old: Entries, new: Entries, follower: Replica) -> Step:
    """As to 2.6.0: a truncation to the log end has no effect, on the cache neither (KAFKA-10706)."""
    return cuts_entry(old, new, follower, old.entry[follower])


@action
def follows_with_entry(old: Entries, new: Entries, r: Replica) -> Step:
    """Where it learns of a leader."""
    own = when(newest(old).leader != NONE, latest(old, old.log[r], old.entry[r]), 0)
    return (new.fetch_last_epoch[r] == when(request_lives(old, r), old.fetch_last_epoch[r], own),)


# Where entries come from.


@action
def leads_with_entry(old: Entries, new: Entries, r: Replica) -> Step:
    """Where a replica begins to lead, it notes the epoch at its log end (Partition.makeLeader)."""
    return (new.entry[r] == old.controller_epoch,)


@action
def writes_in_entry(old: Entries, new: Entries, leader: Replica) -> Step:
    """Where a leader appends, its entry has a record."""
    return (new.entry[leader] == 0,)


ASKING = ("follower_sends_fetch", "follower_appends", "follower_truncates", "becomes_follower")


def with_entries(cuts: Action) -> Design:
    """KIP-966 with entries of the cache that outlive their records."""

    def less(a: Action) -> Action:
        if a.name not in ASKING:
            return a
        return attrs.evolve(a, updates=tuple(u for u in a.updates if u.variable != "fetch_last_epoch"))

    plain = attrs.evolve(KIP_966, actions=tuple(map(less, KIP_966.actions)))
    return plain.in_state(Entries, no_entry).extending(
        follower_sends_fetch=asks_with_entry,
        follower_appends=appends_over_entry,
        follower_truncates=cuts,
        becomes_follower=follows_with_entry,
        becomes_leader=leads_with_entry,
        leader_appends=writes_in_entry,
    )


BOUNDS = {"replicas": 2, "min_insync": 1, "crashes": 0, "epochs": 3, "isr_changes": 5}
RETURNS = "lagging-follower-returns"


def explored(design: Design) -> Exploration:
    names = [p.name for p in KIP_966.properties if p.kind in ("always", "step")]
    found = explore(Instance(design, BOUNDS), (*names, RETURNS, "type-ok"))
    assert found.complete
    return found


def broken(found: Exploration) -> set[str]:
    return {f.name for f in found.findings if f.verdict is Verdict.VIOLATED}


def test_an_entry_without_a_record_costs_an_answer_and_no_promise() -> None:
    plain, found = explored(KIP_966), explored(with_entries(cuts_cache))
    assert found.steps_by_action["leader_answers_diverging"] > plain.steps_by_action["leader_answers_diverging"]
    assert broken(found) == broken(plain) == set()


def test_a_follower_that_keeps_the_entry_truncates_for_ever() -> None:
    found = explored(with_entries(cuts_log_only))
    assert broken(found) == {RETURNS}
    path = found.finding(RETURNS).path
    assert path is not None
    assert path.loop is not None
    assert {"leader_answers_diverging", "follower_truncates"} <= {name for name, _ in path.steps[path.loop :]}
