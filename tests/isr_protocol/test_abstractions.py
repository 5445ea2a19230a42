"""What the model leaves out, put in: no verdict changes. docs/model.md names these tests beside what they show.

Without it an abstraction could hide a loss, and the page that calls it sound would be the only one to say so.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.reached import reached

from isr_check.engine import Exploration, Verdict
from isr_check.native import explore
from isr_lang import (
    NONE,
    Action,
    Bool,
    Design,
    Instance,
    Map,
    Maybe,
    Set,
    Step,
    Value,
    action,
    define,
    exists,
    forall,
    initial,
    var,
)
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.zookeeper import waits_for_leader
from isr_protocol.elections import available, departs, electable
from isr_protocol.faults import struck
from isr_protocol.membership import all_lag, asks, elects, free_to_ask, isr_without, no_alter
from isr_protocol.replication import acknowledged, advanced_watermark, answers, commits, continues, replicated, takes
from isr_protocol.state import (
    UNCLEAN,
    Fetch,
    LeaderEpoch,
    Offset,
    Replica,
    State,
    end_of_epoch,
    epoch_not_above,
    leads,
    log_end,
    maximal_isr,
)

pytestmark = pytest.mark.explores

TWO: Mapping[str, Value] = {
    "replicas": 2,
    "min_insync": 1,
    "crashes": 0,
    "sessions_lost": 1,
    "epochs": 2,
    "isr_changes": 3,
}


def variant(what: str, **parts: object) -> Design:
    return KIP_966.replacing("variant", what, because="Kafka can do so.", **parts)  # type: ignore[arg-type]


def explored(design: Design, constants: Mapping[str, Value]) -> Exploration:
    found = explore(Instance(design, constants))
    assert found.complete
    return found


def broken(found: Exploration) -> set[str]:
    return {f.name for f in found.findings if f.verdict is Verdict.VIOLATED}


def met(found: Exploration) -> set[str]:
    return {f.name for f in found.findings if f.kind.startswith("sometimes") and f.path is not None}


def test_answers_that_come_late_change_no_verdict() -> None:
    """AbstractFetcherThread.processFetchRequest looks at the broker and the offset, not at the epoch of its request."""
    late = variant("answers of an older epoch are taken if the offset fits", waits=waits_for_leader)
    constants = {**TWO, "records": 2, "epochs": 3}
    plain, found = explored(KIP_966, constants), explored(late, constants)
    assert found.distinct > plain.distinct
    assert broken(found) == broken(plain) == set()


@action
def leader_proposes_to_drop_all(old: State, new: State, leader: Replica, lagging: Set[Replica]) -> Step:
    """A leader asks to drop the members that lag, and leaves out none of them. Partition.maybeShrinkIsr."""
    isr = old.isr[leader] - lagging
    return (
        free_to_ask(old, leader),
        ~lagging.is_empty(),
        lagging <= old.isr[leader].excluding(leader),
        all_lag(old, leader, lagging),
        forall(old.follower_end[leader][f] == log_end(old, leader) for f in isr.excluding(leader)),
        new.pending_isr[leader] == isr,
        *asks(old, new, leader, isr, blank(new.broker_epoch[leader])),
    )


def test_dropping_all_that_lag_breaks_nothing_more() -> None:
    constants = {"replicas": 3, "crashes": 0, "epochs": 0}
    all_of_them = variant("all that lag are dropped", leader_proposes_shrink=leader_proposes_to_drop_all)
    plain, found = explored(KIP_966, constants), explored(all_of_them, constants)
    assert found.generated < plain.generated
    assert broken(found) == broken(plain) == set()
    assert met(found) == met(plain)


@action
def controller_replaces_leader_uncleanly(old: State, new: State, r: Replica, successor: Replica) -> Step:
    """The controller loses the leader, finds nobody eligible, and elects any available replica in the same record."""
    isr, elr = isr_without(old, r), old.controller_elr.excluding(r)
    return (
        UNCLEAN,
        *departs(old, new, r),
        old.controller_leader == r,
        successor != r,
        available(old, successor),
        ~exists(electable(old, q, isr, elr) for q in Replica.all().excluding(r)),
        *elects(old, new, successor, Set.of(successor), blank(elr)),
    )


def test_unclean_election_in_one_step_breaks_the_same_promises() -> None:
    constants = {**TWO, "unclean": True}
    plain = explored(KIP_966, constants)
    found = explored(KIP_966.adding(controller_replaces_leader_uncleanly), constants)
    assert found.generated > plain.generated
    assert broken(found) == broken(plain)
    assert "acked-survives" in broken(plain)
    assert "acked-survives-clean-steps" not in broken(plain)


# Answers that are made before the leader looks at its watermark again.


@action
def leader_answers_before_it_commits(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader reads for a follower, takes its fetch as its acknowledgement, and moves the watermark, in that order."""
    ends = old.follower_end[leader].put(follower, Maybe.of(old.fetch_offset[follower]))
    members = maximal_isr(old, leader)
    watermark = advanced_watermark(
        old, leader, replicated(old, leader, log_end(old, leader), ends, members), old.isr[leader]
    )
    return (
        takes(old, leader, follower),
        continues(old, leader, follower),
        new.follower_end[leader] == ends,
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, members),
        *answers(old, new, leader, follower, old.high_watermark[leader]),
    )


def test_answers_with_the_watermark_of_before_change_no_verdict() -> None:
    """Partition.fetchRecords reads before updateFollowerFetchState; only a fetch that is parked reads again."""
    for constants in (TWO, {**TWO, "sessions_lost": 0, "crashes": 1, "consumers": 1, "follower_reads": True}):
        plain = explored(KIP_966, constants)
        found = explored(KIP_966.adding(leader_answers_before_it_commits), constants)
        assert found.distinct > plain.distinct
        assert broken(found) == broken(plain) == set()


# A registration that strikes the last member elects who led last.


@action
def registration_elects_last_known_leader(old: State, new: State, r: Replica, leader: Replica) -> Step:
    """A broker is struck when it registers, nobody is left, and who led last is elected in the same record."""
    members = (old.controller_isr | old.controller_elr).excluding(r)
    return (
        r != leader,
        old.fenced.has(r),
        ~old.alive.has(r),
        struck(old, r),
        members.is_empty(),
        old.controller_leader == NONE,
        old.last_known_leader == leader,
        available(old, leader),
        new.alive == old.alive.including(r),
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
        new.clean_shutdown == old.clean_shutdown.excluding(r),
        new.shutting_down == old.shutting_down.excluding(r),
        *no_alter(new, r),
        *elects(old, new, leader, Set.of(leader), blank(old.controller_elr)),
    )


def test_an_election_in_the_record_of_a_registration_breaks_only_the_words_of_a_promise() -> None:
    """ReplicationControlManager.handleBrokerShutdown, PartitionChangeBuilder.build (4.3.1): one record does both.

    clean-election says who was in ISR and ELR before the step; here the last member is struck in it.
    """
    constants = {"replicas": 2, "min_insync": 2, "crashes": 2, "epochs": 2, "isr_changes": 4}
    plain = explored(KIP_966, constants)
    found = explored(KIP_966.adding(registration_elects_last_known_leader), constants)
    assert found.steps_by_action[registration_elects_last_known_leader.name] > 0
    assert broken(plain) == set()
    assert broken(found) == {"clean-election"}


# Two fetches of a follower on their way: one of an epoch before arrives after one of the next was sent.


class Overtaken(State):
    """The state with one more request of each follower, which was overtaken by those that it sent later."""

    late_to: Map[Replica, Maybe[Replica]] = var("the leader that is asked, none where there is no such request")
    late_epoch: Map[Replica, LeaderEpoch] = var("the current leader epoch in it")
    late_offset: Map[Replica, Offset] = var("the fetch offset in it")
    late_last_epoch: Map[Replica, LeaderEpoch] = var("the last fetched epoch in it")


def not_late(new: Overtaken) -> Step:
    """No request has been overtaken."""
    return (
        new.late_to == blank(new.late_to),
        new.late_epoch == blank(new.late_epoch),
        new.late_offset == blank(new.late_offset),
        new.late_last_epoch == blank(new.late_last_epoch),
    )


@action
def request_is_overtaken(old: Overtaken, new: Overtaken, follower: Replica) -> Step:
    """A request of an epoch before is slow, and the follower goes on without it."""
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        old.fetch_epoch[follower] != old.leader_epoch[follower],
        old.late_to[follower] == NONE,
        new.late_to[follower] == old.fetch_to[follower],
        new.late_epoch[follower] == old.fetch_epoch[follower],
        new.late_offset[follower] == old.fetch_offset[follower],
        new.late_last_epoch[follower] == old.fetch_last_epoch[follower],
        new.fetch[follower] == Fetch.NONE,
        new.fetch_to[follower] == NONE,
        new.fetch_epoch[follower] == 0,
        new.fetch_offset[follower] == 0,
        new.fetch_last_epoch[follower] == 0,
    )


@define
def late_continues(s: Overtaken, leader: Replica, follower: Replica) -> Bool:
    """The follower's log, as that request describes it, is a prefix of the leader's."""
    epoch, offset = s.late_last_epoch[follower], s.late_offset[follower]
    return (offset == 0) | ((epoch_not_above(s, leader, epoch) == epoch) & (offset <= end_of_epoch(s, leader, epoch)))


def counted_late(old: Overtaken, new: Overtaken, leader: Replica, follower: Replica, offset: Offset) -> Step:
    """The leader counts a request that was overtaken; nobody waits for its answer."""
    ends, members = old.follower_end[leader].put(follower, Maybe.of(offset)), maximal_isr(old, leader)
    watermark = advanced_watermark(
        old, leader, replicated(old, leader, log_end(old, leader), ends, members), old.isr[leader]
    )
    return (
        leads(old, leader),
        old.late_to[follower] == leader,
        late_continues(old, leader, follower),
        new.follower_end[leader] == ends,
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, members),
        new.late_to[follower] == NONE,
        new.late_epoch[follower] == 0,
        new.late_offset[follower] == 0,
        new.late_last_epoch[follower] == 0,
    )


@action
def leader_takes_overtaken_fetch(old: Overtaken, new: Overtaken, leader: Replica, follower: Replica) -> Step:
    """A leader takes a fetch of its own epoch after the follower has gone on to another."""
    return (
        old.late_epoch[follower] == old.leader_epoch[leader],
        *counted_late(old, new, leader, follower, old.late_offset[follower]),
    )


@action
def leader_takes_any_fetch(old: Overtaken, new: Overtaken, leader: Replica, follower: Replica) -> Step:
    """Wrong since KIP-320: the leader takes it in whatever epoch it was sent."""
    return counted_late(old, new, leader, follower, old.late_offset[follower])


def with_overtaken(design: Design, takes: Action) -> Design:
    return design.in_state(Overtaken, initial(not_late)).adding(request_is_overtaken, takes)


PROPOSALS = ("leader_proposes_shrink", "leader_proposes_expansion")
ZOMBIE: Mapping[str, Value] = {"replicas": 3, "min_insync": 1, "crashes": 0, "epochs": 1, "isr_changes": 1}
"""A leader that was replaced, the next one, and a follower that moves from one to the other."""


@pytest.mark.parametrize("constants", [TWO, ZOMBIE], ids=["two", "zombie"])
def test_a_fetch_that_is_late_acknowledges_what_it_would_have_before(constants: Mapping[str, Value]) -> None:
    design = KIP_966.without(*PROPOSALS)
    more = with_overtaken(design, leader_takes_overtaken_fetch)
    assert explore(Instance(more, constants), ("type-ok",)).steps_by_action[leader_takes_overtaken_fetch.name] > 0
    assert reached(more, constants, ("fetch", "late_")) == reached(design, constants, ("fetch", "late_"))


def test_a_late_fetch_that_is_taken_in_any_epoch_acknowledges_what_was_cut_since() -> None:
    more = with_overtaken(KIP_966.without(*PROPOSALS), leader_takes_any_fetch)
    found = explore(Instance(more, {**ZOMBIE, "epochs": 2, "isr_changes": 2}), ("strong-isr",))
    assert broken(found) == {"strong-isr"}
