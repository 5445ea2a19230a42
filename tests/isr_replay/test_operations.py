"""The broker's cores do what kafka-4.4-mended says, while people reassign, set the minimum and lose logs.

Without these the broker's reassignment would be another than the one for which losses are looked for, and proved.

`make slow ARGS="-k test_operations"` replays larger bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs
import pytest

import isr_broker.core.controller
import isr_broker.core.elections
import isr_broker.core.leader
import isr_broker.core.node
import isr_broker.core.reassignments
import isr_broker.topic_configs
from isr_broker.core.effects import DeleteLog, SetAside
from isr_broker.core.elections import Brokers, Change
from isr_broker.core.inputs import LearnMetadata
from isr_broker.core.messages import BrokerId, PartitionMetadata, TopicPartition
from isr_broker.core.node import Node, NodeStep
from isr_broker.core.replica_state import Replica, Step, leading
from isr_broker.designs import KIP_966, Design
from isr_check.native import explore
from isr_lang import Instance
from isr_lang.declare import Value
from isr_protocol.by_name import DESIGNS
from isr_replay import Kind, NoSuchCores, ReplayResult, replay
from isr_replay.environment import COMMITS_BEFORE_PROPOSAL

pytestmark = pytest.mark.explores

MENDED: Final = DESIGNS["kafka-4.4-mended"]
REST: Final[Mapping[str, Value]] = {
    **{"replicas": 2, "log": 1, "records": 1, "epochs": 1, "isr_changes": 2},
    **{"sessions_lost": 0, "reassignments": 0},
}
"""Two brokers, nobody does anything, and nothing goes wrong."""
MOVED: Final = {"reassignments": 1}
CANCELLED: Final = {"reassignments": 2}
SET: Final = {"minimum_changes": 1}
SWITCHED: Final = {"unclean_switches": 1}
ELECTED_UNCLEAN: Final = {"min_insync": 1, "unclean_switches": 1, "sessions_lost": 1, "epochs": 2, "isr_changes": 3}
EMPTY_DISK: Final = {"disks_replaced": 1, "crashes": 1}
EMPTY_AFTER_ALL: Final = {"directories_removed": 1, "shutdowns": 1}


def bounds(more: Mapping[str, Value]) -> Mapping[str, Value]:
    return {**REST, **more}


def assert_every_edge(more: Mapping[str, Value], explained: int = 0) -> ReplayResult:
    """The cores took every edge that an exploration of the model alone counts, but for so many, and nothing else."""
    done = replay(bounds(more), design=MENDED)
    assert done.mismatches == ()
    assert done.complete
    known = explore(Instance(MENDED, bounds(more)), ("type-ok",), workers=1)
    assert (done.states, done.edges) == (known.distinct, known.generated)
    assert done.replayed + explained == done.edges
    assert done.pairs[0] == done.pairs[1]
    return done


WORLDS: Final[Sequence[tuple[Mapping[str, Value], Sequence[str]]]] = [
    (MOVED, ("controller_starts_reassignment", "controller_accepts_and_completes", "controller_reassigns_at_once")),
    (CANCELLED, ("controller_cancels_reassignment", "replica_is_deleted")),
    (SET, ("controller_sets_minimum", "broker_learns_minimum")),
    (SWITCHED, ("controller_switches_unclean_election",)),
    (EMPTY_DISK, ("disk_is_replaced",)),
    (EMPTY_AFTER_ALL, ("directory_is_removed", "broker_shuts_down")),
    ({"reassignments": 1, "crashes": 1}, ("replica_is_deleted", "broker_restarts")),
]


@pytest.mark.parametrize(("more", "actions"), WORLDS, ids=[", ".join(m) for m, _ in WORLDS])
def test_two_brokers_take_every_edge_of_what_people_do(more: Mapping[str, Value], actions: Sequence[str]) -> None:
    done = assert_every_edge(more)
    for action in actions:
        assert done.edges_by_action[action][0] > 0, action


LARGER: Final[Sequence[Mapping[str, Value]]] = [
    {"reassignments": 1, "sessions_lost": 1, "isr_changes": 3},
    {"reassignments": 1, "shutdowns": 1},
    {"minimum_changes": 1, "isr_changes": 3},
    {"disks_replaced": 1, "crashes": 1, "epochs": 2, "isr_changes": 3},
    {"reassignments": 1, "minimum_changes": 1, "isr_changes": 3},
    {"reassignments": 1, "unclean": True, "sessions_lost": 1, "epochs": 2, "isr_changes": 3},
]


@pytest.mark.slow
@pytest.mark.parametrize("more", LARGER, ids=", ".join)
def test_two_brokers_take_every_edge_where_more_happens_at_a_time(more: Mapping[str, Value]) -> None:
    assert_every_edge(more)


@pytest.mark.slow
def test_an_unclean_election_is_allowed_and_held() -> None:
    """Under a minimum of one, for with two everybody stays eligible. There some proposals commit first."""
    done = assert_every_edge(ELECTED_UNCLEAN, explained=688)
    assert set(done.known_differences) == {COMMITS_BEFORE_PROPOSAL}
    assert done.edges_by_action["controller_elects_unclean_since_switched"][0] > 0


@pytest.mark.slow
def test_two_replicas_and_a_spare_take_every_edge() -> None:
    done = assert_every_edge({"replicas": 3, "reassignments": 1})
    assert done.edges > 4_000_000


# Planted bugs, one for each action, beside the worlds above, in which they are not.


def forgets_whom_to_remove(old: PartitionMetadata, target: tuple[BrokerId, ...]) -> PartitionMetadata:
    return attrs.evolve(original_towards(old, target), removing_replicas=())


original_towards = isr_broker.core.reassignments._towards  # pyright: ignore[reportPrivateUsage]


def adds_whom_an_earlier_target_added(old: PartitionMetadata, target: tuple[BrokerId, ...]) -> PartitionMetadata:
    """So to cancel leads back to the replicas before the first target, and who is added and removed is awaited."""
    new = original_towards(old, target)
    return attrs.evolve(new, adding_replicas=tuple(sorted({*new.adding_replicas, *old.adding_replicas})))


def adds_who_is_no_replica_now(old: PartitionMetadata, target: tuple[BrokerId, ...]) -> PartitionMetadata:
    """Kafka's rule, with both fields written."""
    new = original_towards(old, target)
    return attrs.evolve(new, adding_replicas=tuple(sorted(set(target) - set(old.replicas))))


def keeps_leader_epoch(
    old: PartitionMetadata, new: PartitionMetadata, brokers: Brokers, design: Design
) -> PartitionMetadata:
    """Whoever leads on then counts the fetches of a replica that is none any more."""
    return attrs.evolve(original_election(old, new, brokers, design), leader_epoch=old.leader_epoch)


original_election = isr_broker.core.elections.elects_for_assignment


def keeps_whom_it_added(partition: PartitionMetadata) -> tuple[BrokerId, ...]:
    return partition.replicas


def completes_nothing(
    old: PartitionMetadata, isr: frozenset[BrokerId], leader: BrokerId, brokers: Brokers, design: Design
) -> Change | None:
    return None


def deletes_no_log(node: Node, tp: TopicPartition, is_deleted: bool) -> NodeStep:
    step = original_drops(node, tp, is_deleted)
    return attrs.evolve(step, effects=tuple(e for e in step.effects if not isinstance(e, DeleteLog | SetAside)))


original_drops = isr_broker.core.node._drops  # pyright: ignore[reportPrivateUsage]


def goes_by_the_old_minimum(replica: Replica, news: LearnMetadata, now: int) -> Step:
    """The first way of found/raised-min-insync."""
    before = leading(replica).min_insync_replicas
    step = original_learns(replica, news, now)
    role = attrs.evolve(leading(step.core), min_insync_replicas=before)
    return attrs.evolve(step, core=attrs.evolve(step.core, role=role))


original_learns = isr_broker.core.leader.leader_learns_isr


def allows_no_unclean_election(configs: Mapping[str, str], settings: object) -> bool:
    return False


def elects_nobody(old: PartitionMetadata, brokers: Brokers) -> Change | None:
    return None


def strikes_nobody(old: PartitionMetadata, replica: BrokerId, clean: bool, design: Design) -> PartitionMetadata:
    return old


Planted = tuple[object, str, object, Mapping[str, Value], Kind, str]
PLANTED: Final[Sequence[Planted]] = [
    (isr_broker.core.reassignments, "_towards", forgets_whom_to_remove, MOVED, Kind.INCONSISTENT,
     "controller_starts_reassignment"),
    (isr_broker.core.reassignments, "elects_for_assignment", keeps_leader_epoch, MOVED, Kind.INCONSISTENT,
     "controller_reassigns_at_once"),
    (isr_broker.core.reassignments, "elects_for_assignment", keeps_leader_epoch, MOVED, Kind.INCONSISTENT,
     "controller_accepts_and_completes"),
    (isr_broker.core.reassignments, "original_replicas", keeps_whom_it_added, CANCELLED, Kind.INCONSISTENT,
     "controller_cancels_reassignment"),
    (isr_broker.core.controller, "controller_accepts_and_completes", completes_nothing, MOVED, Kind.MISSING,
     "controller_accepts_and_completes"),
    (isr_broker.core.node, "_drops", deletes_no_log, MOVED, Kind.UNEXPECTED, "took no action"),
    (isr_broker.core.leader, "leader_learns_isr", goes_by_the_old_minimum, SET, Kind.INCONSISTENT, "leader_"),
    (isr_broker.topic_configs, "unclean", allows_no_unclean_election, SWITCHED, Kind.INCONSISTENT,
     "controller_switches_unclean_election"),
    (isr_broker.core.controller, "partition_after_restart", strikes_nobody, EMPTY_DISK, Kind.INCONSISTENT,
     "broker_restarts"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "name", "bug", "more", "kind", "action"), PLANTED, ids=[f"{p[1]}-{p[5]}" for p in PLANTED]
)
def test_a_planted_bug_is_found_in_what_people_do(
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    name: str,
    bug: Callable[..., object],
    more: Mapping[str, Value],
    kind: Kind,
    action: str,
) -> None:
    monkeypatch.setattr(where, name, bug)
    done = replay(bounds(more), design=MENDED)
    assert not done.conforms
    assert [m for m in done.mismatches if m.kind is kind and action in m.action], done.mismatches


@pytest.mark.slow
def test_an_unclean_election_that_is_not_held_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_broker.core.elections, "elects_unclean", elects_nobody)
    done = replay(bounds(ELECTED_UNCLEAN), design=MENDED)
    assert {(m.kind, m.action) for m in done.mismatches} == {(Kind.MISSING, "controller_elects_unclean_since_switched")}


REPLACED: Final = {"replicas": 3, "reassignments": 2}
SOON: Final = 2_000
"""So many states of the cores have targets of three brokers in place of others."""


def test_a_target_in_place_of_another_is_that_of_the_model_in_the_first_states() -> None:
    done = replay(bounds(REPLACED), design=MENDED, max_states=SOON)
    assert done.mismatches == ()


@pytest.mark.parametrize("bug", [adds_whom_an_earlier_target_added, adds_who_is_no_replica_now])
def test_another_choice_of_whom_a_replaced_target_adds_differs_there(
    monkeypatch: pytest.MonkeyPatch, bug: Callable[..., object]
) -> None:
    """The control is the test before."""
    monkeypatch.setattr(isr_broker.core.reassignments, "_towards", bug)
    done = replay(bounds(REPLACED), design=MENDED, max_states=SOON)
    assert {m.action for m in done.mismatches} & {"controller_starts_reassignment", "controller_reassigns_at_once"}


@pytest.mark.slow
def test_targets_in_place_of_others_take_every_edge_where_all_members_may_be_added() -> None:
    done = assert_every_edge({**CANCELLED, "unclean": True, "sessions_lost": 1, "epochs": 2, "isr_changes": 4})
    assert done.edges > 1_900_000


BUGS: Final[Sequence[tuple[Design, Mapping[str, Value], str]]] = [
    (attrs.evolve(KIP_966, keeps_elr_at_new_minimum=True), SET, "controller_sets_minimum"),
    (attrs.evolve(KIP_966, keep_elr=True), EMPTY_AFTER_ALL, "broker_restarts"),
]


@pytest.mark.parametrize(("bug", "more", "action"), BUGS, ids=["ELR kept at a new minimum", "ELR kept at a restart"])
def test_a_broker_with_a_known_bug_is_another_while_people_work(
    bug: Design, more: Mapping[str, Value], action: str
) -> None:
    done = replay(bounds(more), design=MENDED, planted=bug)
    assert action in {m.action for m in done.mismatches}


# What is not compared


@pytest.mark.parametrize("name", ["copies", "late_news", "snapshots_loaded", "old_metadata", "own_view"])
def test_what_no_core_is_given_is_refused_by_its_option(name: str) -> None:
    with pytest.raises(NoSuchCores, match="--" + name.replace("_", "-")):
        replay({**REST, name: True if name == "own_view" else 1}, design=MENDED)


def test_a_release_as_it_is_has_no_cores() -> None:
    with pytest.raises(NoSuchCores, match=r"not with kafka-4\.4: .* neither what a release does wrong"):
        replay(REST, design=DESIGNS["kafka-4.4"])
