"""Apache Kafka's own classes along the edges of the model, in both directions.

Without these, the model could say something of Kafka that Kafka's own code does not do.
"""

from collections.abc import Mapping

import pytest

from isr_conform.conformance import conform
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_kafka.known_differences import explain
from isr_kafka.system import Kafka
from isr_lang import Design, Instance
from isr_model import KIP_966
from isr_protocol.designs.leader_bugs import KAFKA_KEEPS_POSITIONS, KAFKA_OVERTAKEN_REQUEST
from isr_protocol.designs.new_directory import KAFKA_4_4_NEW_DIRECTORY
from isr_protocol.designs.releases import KAFKA_4_4

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

EVERYTHING = Limits()
SMALLEST: dict[str, int | str | bool] = {"replicas": 2, "crashes": 0, "isr_changes": 1}


def held(
    kafka: Kafka,
    constants: Mapping[str, int | str | bool],
    limits: Limits = EVERYTHING,
    properties: Mapping[str, str] | None = None,
) -> ConformanceResult:
    instance = Instance(KIP_966, dict(constants))
    return conform(instance, kafka.command(properties=properties), limits, patience=120.0)


def test_every_edge_of_the_smallest_bounds_in_both_directions(each: Kafka) -> None:
    """Without it a release whose parts have moved would be noticed by the first who drives it."""
    done = held(each, SMALLEST)
    assert done.conforms, done.differences
    assert done.edges == done.of_edges
    assert not done.cannot
    assert done.name == f"Apache Kafka {each.release}"


def test_whatever_differs_in_unclean_elections_is_difference_d(newest: Kafka) -> None:
    """Without it what is counted apart as known could hide another difference, or be none any more."""
    constants = {"replicas": 2, "min_insync": 1, "isr_changes": 3, "unclean": True, "crashes": 0, "sessions_lost": 1}
    done = conform(Instance(KIP_966, constants), newest.command(), EVERYTHING, patience=120.0, explain=explain)
    assert done.conforms, done.differences
    assert [why[:2] for why in done.known_differences] == ["D:"]
    assert done.edges + done.known_differences.total() == done.of_edges


AT_WORK = {"replicas": 2, "sessions_lost": 0, "epochs": 1, "isr_changes": 2, "log": 1, "records": 1}
REASSIGNS = {
    "controller_starts_reassignment",
    "controller_reassigns_at_once",
    "controller_cancels_reassignment",
    "controller_accepts_and_completes",
    "replica_is_deleted",
}
PEOPLE: dict[str, tuple[Design, dict[str, int], set[str]]] = {
    "settings": (
        KAFKA_4_4,
        {"reassignments": 0, "minimum_changes": 1},
        {"controller_sets_minimum", "broker_learns_minimum"},
    ),
    "empty disks": (KAFKA_4_4, {"reassignments": 0, "crashes": 1, "disks_replaced": 1}, {"disk_is_replaced"}),
    "disks with another directory id": (
        KAFKA_4_4_NEW_DIRECTORY,
        {"reassignments": 0, "crashes": 1, "disks_replaced": 1, "isr_changes": 3},
        {"disk_is_replaced", "controller_learns_directory"},
    ),
    "a directory less": (
        KAFKA_4_4,
        {"reassignments": 0, "crashes": 0, "shutdowns": 1, "directories_removed": 1},
        {"directory_is_removed"},
    ),
    "a directory less, and another id": (
        KAFKA_4_4_NEW_DIRECTORY,
        {
            "reassignments": 0,
            "crashes": 0,
            "shutdowns": 1,
            "directories_removed": 1,
            "disks_replaced": 0,
            "isr_changes": 4,
        },
        {"directory_is_removed", "controller_learns_directory"},
    ),
    "copies": (
        KAFKA_4_4,
        {"reassignments": 0, "min_insync": 1, "sessions_lost": 1, "copies": 1},
        {"controller_refuses_later_copy"},
    ),
    "late news": (
        KAFKA_4_4,
        {"reassignments": 0, "min_insync": 1, "isr_changes": 3, "late_news": 1},
        {"leader_hears_known_version"},
    ),
    "unclean elections": (
        KAFKA_4_4,
        {
            "reassignments": 0,
            "min_insync": 1,
            "sessions_lost": 1,
            "epochs": 2,
            "isr_changes": 3,
            "unclean_switches": 1,
        },
        {"controller_switches_unclean_election", "controller_elects_unclean_since_switched"},
    ),
    "reassignment": (KAFKA_4_4, {"reassignments": 2, "min_insync": 1}, REASSIGNS),
    "reassignment under the minimum": (KAFKA_4_4, {"reassignments": 2, "isr_changes": 3}, REASSIGNS),
}
"""What people and networks do, in a design of the newest release, and the actions that must be taken then."""


@pytest.mark.parametrize("work", PEOPLE)
def test_what_people_do_to_a_cluster_in_both_directions(work: str, newest: Kafka) -> None:
    """Without it the designs of releases would rest on reading."""
    design, budgets, actions = PEOPLE[work]
    some = Limits(per_action=100, seed=1)
    done = conform(Instance(design, AT_WORK | budgets), newest.command(), some, patience=120.0, explain=explain)
    assert done.conforms, done.differences
    assert {why[:2] for why in done.known_differences} <= {"D:", "P:"}
    assert not done.cannot
    assert actions <= {name for name, n in done.actions.items() if n}


def test_walks_through_all_that_people_do_at_once(newest: Kafka) -> None:
    """Three replicas and every budget: what differs is known."""
    once = ("crashes", "sessions_lost", "shutdowns", "disks_replaced", "minimum_changes", "late_news", "copies")
    budgets = dict.fromkeys(once, 1) | {"reassignments": 2, "spares": 1, "replicas": 3, "epochs": 3, "isr_changes": 8}
    some = Limits(walks=60, walk_length=60, seed=1)
    done = conform(Instance(KAFKA_4_4, AT_WORK | budgets), newest.command(), some, patience=120.0, explain=explain)
    assert done.conforms, done.differences
    assert {why[:2] for why in done.known_differences} <= {"D:", "F:", "I:", "J:", "K:", "L:"}
    assert REASSIGNS | {"disk_is_replaced", "controller_sets_minimum"} <= {
        name for name, n in done.actions.items() if n
    }


EXPLAINED = {"broker_restarts", "controller_fences_follower", "controller_fences_last_leader"}
"""Where differences E and F of docs/kafka-classes.md show."""


def test_walks_through_all_actions_differ_only_where_that_is_explained(newest: Kafka) -> None:
    constants = SMALLEST | {"crashes": 1, "shutdowns": 1, "lossy_crashes": 1, "consumers": 1, "isr_changes": 4}
    done = held(newest, constants, Limits(walks=20, walk_length=30, seed=1))
    assert {d.action for d in done.differences} <= EXPLAINED
    assert len(done.actions) > 20


def test_walks_without_copies_agree_too(newest: Kafka) -> None:
    """What a copy forgot to copy, or shared, would show here."""
    off = {"insync.in-place": "true", "insync.no-enabled": "true"}
    done = held(newest, {"replicas": 2}, Limits(walks=60, walk_length=40, seed=2), off)
    assert done.conforms, done.differences


OFF = {
    "insync.prompt-answers": set[str](),
    "insync.still": {"leader_answers_fetch", "leader_appends"},
    "insync.fetch-at-once": {"leader_answers_fetch"},
    "insync.own-view": {"leader_proposes_expansion"},
}
"""What the adapter does for the environment, and the actions that may differ without it."""


@pytest.mark.parametrize("steering", OFF)
def test_what_the_adapter_does_for_the_environment_can_be_turned_off(steering: str, newest: Kafka) -> None:
    done = held(newest, SMALLEST | {"crashes": 1}, Limits(max_steps=3000), {steering: "true"})
    assert {d.action for d in done.differences} <= OFF[steering]


def test_the_leaders_own_view_and_copies_of_a_request(newest: Kafka) -> None:
    """Nothing is set in the metadata cache, no time passes, every wait of the watermark is Kafka's (but D and H)."""
    instance = Instance(KAFKA_OVERTAKEN_REQUEST)
    done = conform(instance, newest.command(), Limits(walks=60, walk_length=30, seed=3), patience=120.0)
    assert {d.action for d in done.differences} <= {"leader_learns_brokers", "leader_answers_fetch"}  # H, D
    assert not done.cannot
    assert {"leader_learns_brokers", "controller_refuses_later_copy"} <= set(done.actions)


def test_unclean_elections_are_on_in_kafka_from_the_start(newest: Kafka) -> None:
    """Without it Kafka would be driven with the setting off, and elect nobody where the model does."""
    bounds = {"replicas": 2, "min_insync": 1, "sessions_lost": 1, "reassignments": 0, "unclean": True, "crashes": 1}
    instance = Instance(KAFKA_4_4, {**bounds, "epochs": 3, "isr_changes": 6, "log": 1, "records": 1})
    limits = Limits(walks=40, walk_length=60, seed=11)
    done = conform(instance, newest.command(), limits, patience=120.0, explain=explain)
    assert done.conforms, done.differences
    known = {why[:1] for why in done.known_differences}
    assert "P" in known
    assert known <= {"P", "D"}
    assert not done.cannot


def test_producers_that_wait_across_epochs_and_kept_positions(newest: Kafka) -> None:
    instance = Instance(KAFKA_KEEPS_POSITIONS, {"replicas": 2})
    done = conform(instance, newest.command(), Limits(walks=40, walk_length=30, seed=4), patience=120.0)
    assert done.conforms, done.differences
    assert set(done.cannot) <= {"this adapter has no controller_begins_new_epoch"}
