"""Runbooks with an answer that anybody can work out by hand, and what a description leaves open."""

from __future__ import annotations

import json
from functools import partial

import attrs
import pytest
from tests.support.drill_faults import disks_that_survive

from isr_audit.cluster import Cluster
from isr_audit.descriptions import read_description
from isr_audit.releases import running
from isr_check import explorer
from isr_drill import changes, exploration
from isr_drill import drill as drills
from isr_drill.drill import Drill, Explorations, Records, Service, TopicSetting, drill, mend, with_settings
from isr_drill.exploration import Setting
from isr_drill.quorum import quorum_of
from isr_drill.record_fate import Fate, fate_design, projection
from isr_drill.runbook import Surroundings, read_runbook, with_gaps
from isr_drill.story import story
from isr_lang import Instance, Set, Step, Struct, action, var
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.releases import elr_within
from isr_protocol.state import Replica

pytestmark = pytest.mark.long

LOST, UNKNOWN, SAFE = Records.MAY_BE_LOST, Records.UNKNOWN, Records.SAFE


def cluster_of(
    minimum: int = 2, isr: str = "1,2,3", leader: str = "1", elr: str = "", replicas: str = "1,2,3"
) -> Cluster:
    text = (
        f"Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: {len(replicas.split(','))}\t"
        f"Configs: min.insync.replicas={minimum}\n"
        f"\tTopic: t\tPartition: 0\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\tElr: {elr}\tLastKnownElr: \n"
    )
    cluster = read_description(text, "topics.txt")
    assert cluster is not None
    return cluster


TARGETS = {"move": [1, 2, 4], "back": [1, 2, 3], "fewer": [1, 2], "one": [1]}


def file_of(name: str) -> str:
    """A reassignment of the only partition."""
    return json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": TARGETS[name]}]})


def drilled(cluster: Cluster, text: str, *, elr: bool = True, release: tuple[int, ...] = (4, 4)) -> Drill:
    brokers = {b for p in cluster.partitions for b in p.replicas} | {4, 9}
    steps = read_runbook(text, Surroundings(brokers, cluster.racks, ["t"], file_of))
    return drill(cluster, running(cluster, release, elr), steps, Explorations(600.0))


def with_spares(cluster: Cluster, *spares: int) -> Cluster:
    """The cluster where these run, too, without a replica."""
    return attrs.evolve(cluster, living=(*cluster.partitions[0].replicas, *spares))


def records(whole: Drill) -> list[Records]:
    """Of the only partition, after each step."""
    return [o.records for o in whole.partitions[0].outcomes[1:]]


def services(whole: Drill) -> list[Service]:
    return [o.service for o in whole.partitions[0].outcomes[1:]]


@pytest.mark.parametrize(
    ("minimum", "isr", "text", "expected"),
    [
        (2, "1,2,3", "destroy 1", [SAFE]),
        (2, "1,2,3", "destroy 1; start 1", [SAFE, SAFE]),
        (2, "1,2,3", "destroy 1 2 3", [LOST]),
        (2, "1,2,3", "destroy 1 2", [LOST]),
        (3, "1,2,3", "destroy 1 2", [SAFE]),
        (2, "1,2,3", "destroy 1; start 1; destroy 2; destroy 3", [SAFE, SAFE, LOST, LOST]),
        (2, "1,2,3", "replace 1; wait in-sync; replace 2; wait in-sync; replace 3", [SAFE] * 5),
        (1, "1,2,3", "destroy 1", [LOST]),
        (1, "1,2,3", "kill 1; start 1; kill 2; start 2", [SAFE] * 4),
        (1, "1,2,3", "power-loss 1", [LOST]),
        (1, "1,2,3", "power-loss 1; start 1", [LOST, LOST]),
        (1, "1", "destroy 1", [LOST]),
        (1, "1", "stop 1", [SAFE]),
        (1, "1", "kill 1; elect unclean", [SAFE, LOST]),
        (2, "1,2,3", "roll 1 2 3", [SAFE]),
        (2, "1,2,3", "pause 1; start 1; pause 2", [SAFE] * 3),
        (2, "1,2,3", "stop 9; kill 9", [SAFE, SAFE]),
        (2, "1,2,3", "kill 1 2 3; start 1 2 3", [SAFE, SAFE]),
        (1, "1,2,3", "kill 1 2 3; start 1 2 3", [SAFE, SAFE]),
        (2, "1,2,3", "power-loss 1 2 3; start 1 2 3", [LOST, LOST]),
    ],
)
def test_by_hand_with_eligible_leader_replicas(minimum: int, isr: str, text: str, expected: list[Records]) -> None:
    assert records(drilled(cluster_of(minimum, isr), text)) == expected


@pytest.mark.parametrize(
    ("minimum", "text", "expected"),
    [
        (2, "power-loss 1", [SAFE]),
        (2, "power-loss 1; start 1", [SAFE, LOST]),  # the last replica standing, KIP-966
        (2, "kill 1; start 1", [SAFE, SAFE]),
        (2, "destroy 1; start 1", [SAFE, LOST]),
    ],
)
def test_by_hand_before_eligible_leader_replicas(minimum: int, text: str, expected: list[Records]) -> None:
    assert records(drilled(cluster_of(minimum), text, elr=False, release=(3, 9))) == expected


@pytest.mark.parametrize(
    ("minimum", "isr", "text", "expected"),
    [
        (2, "1,2,3", "stop 3", [Service.AT_MINIMUM]),
        (2, "1,2,3", "stop 3; stop 2", [Service.AT_MINIMUM, Service.REFUSES]),
        (2, "1,2,3", "stop 3; start 3; stop 2", [Service.AT_MINIMUM, Service.AT_MINIMUM, Service.REFUSES]),
        (
            2,
            "1,2,3",
            "stop 3; start 3; wait in-sync; stop 2",
            [Service.AT_MINIMUM] * 2 + [Service.WELL, Service.AT_MINIMUM],
        ),
        (1, "1", "stop 1", [Service.LEADERLESS]),
        (2, "1,2", "stop 1", [Service.REFUSES]),
    ],
)
def test_who_leads_and_who_refuses(minimum: int, isr: str, text: str, expected: list[Service]) -> None:
    assert services(drilled(cluster_of(minimum, isr), text)) == expected


@pytest.mark.parametrize(
    ("minimum", "text", "expected"),
    [
        (2, "set t min.insync.replicas=1", [SAFE]),
        (2, "set t min.insync.replicas=1; destroy 1", [SAFE, LOST]),
        (2, "set t min.insync.replicas=2; destroy 1", [SAFE, SAFE]),
        (3, "set t min.insync.replicas=2; destroy 1; destroy 2", [SAFE, SAFE, LOST]),
        (1, "set t min.insync.replicas=2", [SAFE]),
        (1, "set t min.insync.replicas=2; stop 1", [SAFE, LOST]),  # raised-min-insync
        (2, "set default min.insync.replicas=2; destroy 1", [SAFE, SAFE]),
        (2, "set t min.insync.replicas=2; set default min.insync.replicas=1; destroy 1", [SAFE, SAFE, SAFE]),
    ],
)
def test_a_minimum_that_changes(minimum: int, text: str, expected: list[Records]) -> None:
    assert records(drilled(cluster_of(minimum), text)) == expected


def test_a_default_for_a_topic_of_which_nobody_told_whether_its_minimum_is_its_own() -> None:
    """`kafka-topics.sh --describe` has a default under Configs, too, and a topic that goes by it would look safe."""
    text, described = "set default min.insync.replicas=1; destroy 1", cluster_of(2)
    assert records(drilled(described, text)) == [UNKNOWN, UNKNOWN]
    (topic,) = described.topics
    own = attrs.evolve(described, topics=(attrs.evolve(topic, has_own_configs=True),))
    assert records(drilled(own, text)) == [SAFE, SAFE]
    defaults = {"min.insync.replicas": "2"}
    inherited = attrs.evolve(described, topics=(attrs.evolve(topic, configs={}),), defaults=defaults)
    assert records(drilled(inherited, text)) == [SAFE, LOST]


def test_a_minimum_that_is_raised_without_eligible_leader_replicas() -> None:
    """The controller elects nobody who is out of sync, so the ISR is where all is."""
    assert (
        records(drilled(cluster_of(1), "set t min.insync.replicas=2; stop 1", elr=False, release=(3, 9))) == [SAFE] * 2
    )


def test_a_minimum_that_is_raised_above_the_isr_refuses_writes() -> None:
    assert services(drilled(cluster_of(2, "1,2"), "set t min.insync.replicas=3")) == [Service.REFUSES]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reassign move; wait reassigned", [SAFE, SAFE]),
        ("reassign move; wait reassigned; destroy 3", [SAFE, SAFE, SAFE]),
        ("reassign move; wait reassigned; destroy 1 2", [SAFE, SAFE, LOST]),
        ("reassign back; destroy 1", [SAFE, SAFE]),
        ("wait reassigned; stop 1", [SAFE, SAFE]),
        ("reassign fewer; wait reassigned; destroy 3; destroy 1", [SAFE] * 4),
        ("reassign one", [UNKNOWN]),  # fewer replicas than min.insync.replicas
        ("drain 3; wait reassigned; destroy 3", [SAFE, SAFE, SAFE]),
        ("drain 3; destroy 3", [SAFE, SAFE]),
        ("drain 9; wait reassigned", [SAFE, SAFE]),
        ("drain 3; wait reassigned; destroy 4 1", [SAFE, SAFE, LOST]),
        ("drain 2 3", [UNKNOWN]),  # one broker has no replica, and two are to go
        ("drain 3; wait in-sync; stop 1", [SAFE, SAFE, SAFE]),
        ("cancel move; stop 1", [SAFE, SAFE]),  # there is nothing to cancel
        ("reassign move; cancel move; wait in-sync; destroy 3", [SAFE] * 4),
        ("reassign move; cancel move; destroy 3", [SAFE, SAFE, LOST]),  # the record was on 3 and on 4, which is removed
        ("reassign move; cancel move; destroy 1 2", [SAFE, SAFE, LOST]),
        ("reassign move; wait reassigned; cancel move; destroy 1", [SAFE, SAFE, SAFE, SAFE]),
        ("reassign move; kill 1 2 3; cancel move", [SAFE, SAFE, UNKNOWN]),  # perhaps while nobody leads
        ("reassign move; cancel move; drain 3", [SAFE, SAFE, UNKNOWN]),
    ],
)
def test_replicas_that_change(text: str, expected: list[Records]) -> None:
    assert records(drilled(with_spares(cluster_of(), 4), text, release=(4, 3))) == expected


THERE_AND_BACK = "reassign move; wait reassigned; reassign back; stop 1 2 4"


def test_there_and_back_elects_who_was_removed() -> None:
    """The bug of Kafka's releases: who was removed stays in the ELR, and its log is gone (found/removed-replica)."""
    whole = drilled(with_spares(cluster_of(), 4), THERE_AND_BACK, release=(4, 3))
    assert records(whole)[-1] is LOST
    assert records(whole)[:2] == [SAFE, SAFE]
    worst = whole.worst
    assert worst is not None
    assert worst.way is not None
    assert any("deletes its log" in line for line in story(worst.situation, worst.way, whole.steps))


def test_a_cancelled_move_that_is_tried_again_elects_who_was_removed() -> None:
    """The other way of found/removed-replica: who was added and removed again is in the ELR, without its log."""
    text = "reassign move; kill 2 3; cancel move; reassign move; kill 1"
    whole = drilled(with_spares(cluster_of(), 4), text, release=(4, 3))
    assert records(whole)[-1] is LOST
    calm = drilled(with_spares(cluster_of(), 4), "reassign move; cancel move; wait in-sync; kill 1", release=(4, 3))
    assert set(records(calm)) == {SAFE}


def test_a_reassignment_that_is_under_way_goes_on() -> None:
    cluster = with_spares(cluster_of(replicas="1,2,3,4"), 4)
    topic = cluster.topics[0]
    moving = attrs.evolve(topic.partitions[0], adding=(4,), removing=(3,))
    cluster = attrs.evolve(cluster, topics=(attrs.evolve(topic, partitions=(moving,)),))
    assert records(drilled(cluster, "wait reassigned; destroy 3", release=(4, 3))) == [SAFE, SAFE]


def test_a_reassignment_from_fewer_replicas_than_the_minimum_is_unknown() -> None:
    cluster = with_spares(cluster_of(replicas="1,2,3", isr="1"), 9)
    topic = cluster.topics[0]
    growing = attrs.evolve(topic.partitions[0], adding=(2, 3))
    cluster = attrs.evolve(cluster, topics=(attrs.evolve(topic, partitions=(growing,)),))
    assert records(drilled(cluster, "wait reassigned; destroy 1", release=(4, 3))) == [UNKNOWN, UNKNOWN]


def test_a_drain_takes_the_worst_of_all_choices() -> None:
    """Whether 4 or 9 takes the place of 3 was not said, and 9 is destroyed with 1."""
    cluster = with_spares(cluster_of(), 4, 9)
    text = "drain 3; wait reassigned; destroy 1 9"
    assert records(drilled(cluster, text, release=(4, 3))) == [SAFE, SAFE, LOST]
    only = with_spares(cluster_of(), 4)
    assert records(drilled(only, text, release=(4, 3))) == [SAFE, SAFE, SAFE]


@pytest.mark.parametrize(
    ("minimum", "text", "expected", "service"),
    [
        (2, "partition 1", SAFE, Service.REFUSES),
        (2, "partition 3", SAFE, Service.AT_MINIMUM),
        (1, "partition 1; destroy 1", LOST, Service.LEADERLESS),
        (2, "partition 1 2 3", SAFE, Service.LEADERLESS),
        (2, "partition 3; heal 3; wait in-sync; stop 2", SAFE, Service.AT_MINIMUM),
        (2, "partition 1; stop 1", UNKNOWN, Service.UNKNOWN),
    ],
)
def test_brokers_that_are_cut_off(minimum: int, text: str, expected: Records, service: Service) -> None:
    whole = drilled(cluster_of(minimum), text)
    assert records(whole)[-1] is expected
    assert min(services(whole)) is service


@pytest.mark.parametrize(
    ("release", "expected"),
    [((4, 2, 2), Records.UNKNOWN), ((4, 0), Records.UNKNOWN), ((4, 3), Records.SAFE), ((4, 4), Records.SAFE)],
)
def test_an_empty_disk_where_nobody_leads_is_unknown_up_to_4_2(release: tuple[int, ...], expected: Records) -> None:
    """assigned-directory, which Kafka 4.2.2 loses a record by, is in no model of a drill."""
    text = "stop 3; stop 2; stop 1; replace 1; start 2 3"
    whole = drilled(cluster_of(2, "1,2,3"), text, release=release)
    assert records(whole)[-1] == expected
    assert records(whole)[2] == Records.SAFE, "nobody has an empty disk yet"
    assert ("assigned-directory" in whole.partitions[0].outcomes[-1].because) == (expected == Records.UNKNOWN)
    led = drilled(cluster_of(2, "1,2,3"), "replace 1; wait in-sync; replace 2", release=release)
    assert records(led)[-1] == Records.SAFE, "somebody leads throughout"


@pytest.mark.parametrize(
    ("text", "service", "awaits"),
    [
        ("kill 1", Service.AT_MINIMUM, [True]),
        ("power-loss 1", Service.AT_MINIMUM, [True]),
        ("destroy 1; start 1; wait in-sync; stop 2", Service.AT_MINIMUM, [True, True, False, False]),
        ("pause 1", Service.AT_MINIMUM, [True]),
        ("partition 1", Service.REFUSES, [True]),  # it may reach the controller, and nobody else
        ("stop 1", Service.AT_MINIMUM, [False]),
        ("roll 1 2 3 wait in-sync", Service.AT_MINIMUM, [False]),
        ("kill 3", Service.AT_MINIMUM, [False]),  # 1 leads, and leaders stay where they are
        ("set t min.insync.replicas=1; kill 1", Service.WELL, [False, True]),
        ("set t min.insync.replicas=1; partition 1", Service.LEADERLESS, [False, True]),  # nobody is left in sync
        ("set t min.insync.replicas=1; pause 1", Service.WELL, [False, True]),
    ],
)
def test_who_ends_without_a_word_is_missed_once_its_session_ends(
    text: str, service: Service, awaits: list[bool]
) -> None:
    """That gap is said, and counts for nothing; what lasts longer counts. It was 0 and "all take writes throughout"
    of `kill 1`, and 1 of `pause 1`."""
    whole = drilled(cluster_of(2), text)
    assert min(services(whole)) is service
    assert [o.awaits_session for o in whole.partitions[0].outcomes] == [False, *awaits]
    assert bool(whole.awaiting_session) is any(awaits)


def test_flushed_records_survive_a_power_loss() -> None:
    cluster = cluster_of(1)
    topic = cluster.topics[0]
    flushed = attrs.evolve(cluster, topics=(attrs.evolve(topic, configs={**topic.configs, "flush.messages": "1"}),))
    assert records(drilled(flushed, "power-loss 1; start 1")) == [SAFE, SAFE]


def test_unclean_election_loses_where_nobody_in_sync_is_left() -> None:
    cluster = cluster_of(1, "1")
    topic = cluster.topics[0]
    configs = {**topic.configs, "unclean.leader.election.enable": "true"}
    unclean = attrs.evolve(cluster, topics=(attrs.evolve(topic, configs=configs),))
    assert records(drilled(unclean, "stop 1")) == [LOST]


def test_a_partition_without_members_may_have_lost_already() -> None:
    whole = drilled(cluster_of(2, "", "none"), "start 1")
    assert whole.partitions[0].loss_step == 0


def test_members_of_the_elr_are_waited_for() -> None:
    whole = drilled(cluster_of(2, "", "none", elr="1,2"), "start 1 2")
    assert services(whole) == [Service.LEADERLESS]
    assert whole.partitions[0].outcomes[0].service is Service.LEADERLESS


def test_a_wait_that_never_ends_is_unknown_and_not_safe() -> None:
    without_third = attrs.evolve(cluster_of(2, "1,2"), living=(1, 2))
    assert records(drilled(without_third, "stop 1; wait in-sync; destroy 2")) == [SAFE, UNKNOWN, UNKNOWN]
    assert records(drilled(without_third, "start 3; wait in-sync; destroy 2")) == [SAFE, SAFE, SAFE]


@pytest.mark.parametrize("text", ["controller destroy 1", "set t min.insync.replicas=4"])
def test_what_is_not_carried_is_unknown_from_there_on(text: str) -> None:
    whole = drilled(cluster_of(), f"stop 1; {text}; start 1")
    assert records(whole) == [SAFE, UNKNOWN, UNKNOWN]
    assert text in whole.partitions[0].outcomes[2].because
    assert whole.partitions[0].outcomes[0].records is SAFE


def test_a_loss_before_a_gap_stays_a_loss() -> None:
    assert records(drilled(cluster_of(1), "destroy 1; controller stop 2")) == [LOST, LOST]


def test_what_was_not_told_is_unknown() -> None:
    text = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \n"
    cluster = read_description(text, "topics.txt")
    assert cluster is not None
    whole = drilled(cluster, "stop 1")
    assert records(whole) == [UNKNOWN]
    assert "min.insync.replicas" in whole.partitions[0].outcomes[1].because


def test_releases_that_are_not_carried_are_unknown() -> None:
    assert records(drilled(cluster_of(), "stop 1", elr=False, release=(3, 4))) == [UNKNOWN]


def test_two_protocols_that_may_run_have_to_agree() -> None:
    cluster = cluster_of()
    steps = read_runbook("power-loss 1; start 1", Surroundings({1, 2, 3}, {}, ["t"]))
    whole = drill(cluster, running(cluster, (4, 1), None), steps, Explorations(600.0))
    assert records(whole) == [SAFE, UNKNOWN]


def test_partitions_that_look_alike_are_explored_once() -> None:
    one = cluster_of()
    partition, topic = one.partitions[0], one.topics[0]
    alike = attrs.evolve(partition, number=1, leader=2, replicas=(2, 3, 1))
    other = attrs.evolve(partition, number=2, leader=4, replicas=(4, 5, 6), isr=(4, 5, 6))
    cluster = attrs.evolve(one, topics=(attrs.evolve(topic, partitions=(partition, alike, other), count=3),))
    assert drilled(cluster, "destroy 1 2 3").classes == 2
    assert drilled(cluster, "stop 3").classes == 2


def test_a_story_has_their_brokers() -> None:
    cluster = cluster_of(1, replicas="11,12,13", isr="11,12,13", leader="12")
    whole = drilled(cluster, "destroy 12")
    worst = whole.worst
    assert worst is not None
    assert worst.way is not None
    lines = story(worst.situation, worst.way, whole.steps)
    assert any("12 is gone with its disk" in line for line in lines)
    assert lines[-1].endswith("no disk has the record any more")


def test_a_better_order_is_found_and_explored() -> None:
    cluster = cluster_of()
    runs = running(cluster, (4, 1), True)
    steps = read_runbook("replace 1; replace 2; replace 3", Surroundings({1, 2, 3}, {}, ["t"]))
    explorations = Explorations(600.0)
    whole = drill(cluster, runs, steps, explorations)
    assert records(whole)[-1] is LOST
    better = mend(cluster, runs, whole, explorations)
    assert better is not None
    assert [s.text for s in better.drill.steps][:2] == ["replace 1", "wait in-sync"]
    assert set(records(better.drill)) == {SAFE}


MINIMUM, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


@pytest.mark.parametrize(
    ("minimum", "isr", "steps", "before", "first"),
    [
        (1, "1,2,3", "destroy 1", {MINIMUM: "2"}, "destroy 1"),
        (1, "1,2,3", "destroy 1 2", {MINIMUM: "3"}, "destroy 1 2"),
        (2, "1,3", "destroy 1 3", {MINIMUM: "3"}, "wait in-sync"),
        (1, "1,2,3", "destroy 1 2 3", None, ""),
    ],
)
def test_what_to_set_before(minimum: int, isr: str, steps: str, before: dict[str, str] | None, first: str) -> None:
    """Where no order of the steps is safe: the least change of a setting with which one is."""
    check_settings(cluster_of(minimum, isr), steps, before, first)


def test_an_unclean_election_is_switched_off_before() -> None:
    unclean = with_settings(cluster_of(2), [TopicSetting("t", UNCLEAN, "true")])
    check_settings(unclean, "kill 1; kill 2; kill 3; start 1", {UNCLEAN: "false"}, "kill 1")


def test_topics_that_are_set_alike_are_changed_alike_and_no_others() -> None:
    """The least change: one broker after the other needs no third disk, and who has two already is left alone."""
    one, other = cluster_of(1), cluster_of(2)
    (first,), (second,) = one.topics, other.topics
    others = tuple(attrs.evolve(p, topic="u") for p in second.partitions)
    cluster = attrs.evolve(one, topics=(first, attrs.evolve(second, name="u", partitions=others)))
    runs, explorations = running(cluster, (4, 1), True), Explorations(600.0)
    steps = read_runbook("destroy 1 2; start 1 2", Surroundings({1, 2, 3}, {}, ["t", "u"]))
    better = mend(cluster, runs, drill(cluster, runs, steps, explorations), explorations)
    assert better is not None
    assert better.settings == (TopicSetting("t", MINIMUM, "2"),)
    assert [step.text for step in better.drill.steps][:3] == ["destroy 1", "start 1", "wait in-sync"]
    assert better.drill.is_safe


def test_another_order_stops_no_majority_of_the_controllers_either() -> None:
    """Once the order with waits forgot that broker 1 is the only controller, and was called better."""
    cluster = attrs.evolve(cluster_of(2), voters=frozenset({1}))
    runs, explorations = running(cluster, (4, 1), True), Explorations(600.0)
    steps = read_runbook("roll 1 2 3", Surroundings({1, 2, 3}, {}, ["t"], quorum=quorum_of(cluster)))
    whole = drill(cluster, runs, steps, explorations)
    assert records(whole)[-1] is Records.UNKNOWN
    assert mend(cluster, runs, whole, explorations) is None
    apart = attrs.evolve(cluster, voters=frozenset({100}))
    alone = tuple(with_gaps(steps, quorum_of(apart)))
    better = mend(apart, runs, drill(apart, runs, alone, explorations), explorations)
    assert better is not None
    assert better.drill.steps[0].text == "roll 1 2 3 wait in-sync"


def test_who_is_safe_needs_no_other_setting() -> None:
    cluster = cluster_of(2, "1,2")
    runs, explorations = running(cluster, (4, 1), True), Explorations(600.0)
    steps = read_runbook("stop 1; start 3; stop 2", Surroundings({1, 2, 3}, {}, ["t"]))
    whole = drill(cluster, runs, steps, explorations)
    assert whole.is_safe
    assert not whole.keeps_service
    better = mend(cluster, runs, whole, explorations)
    assert better is None or not better.settings


def check_settings(cluster: Cluster, text: str, before: dict[str, str] | None, first: str) -> None:
    runs, explorations = running(cluster, (4, 1), True), Explorations(600.0)
    whole = drill(cluster, runs, read_runbook(text, Surroundings({1, 2, 3}, {}, ["t"])), explorations)
    assert records(whole)[-1] is LOST
    better = mend(cluster, runs, whole, explorations)
    if before is None:
        assert better is None
        return
    assert better is not None
    assert {setting.name: setting.value for setting in better.settings} == before
    assert better.drill.steps[0].text == first
    again = drill(with_settings(cluster, better.settings), runs, better.drill.steps, Explorations(600.0))
    assert set(records(again)) == {SAFE}


def test_a_disk_that_keeps_its_records_would_be_noticed() -> None:
    """The planted fault: a broker whose disk is destroyed comes back with all that it had."""
    with disks_that_survive():
        assert records(drilled(cluster_of(), "destroy 1 2 3")) == [SAFE]


def test_a_removed_replica_that_leaves_the_elr_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the coarse model is made of Kafka as it should be, and calls safe what is not."""
    mended = changes.KAFKA_AS_CHANGED.replacing(
        "elr-of-replicas-only", "who is removed leaves the ELR", because="planted.", elr_of=elr_within
    )
    monkeypatch.setitem(changes.PROTOCOLS, changes.WITH_ELR, mended)
    exploration.evaluator.cache_clear()
    try:
        assert records(drilled(with_spares(cluster_of(), 4), THERE_AND_BACK, release=(4, 3)))[-1] is SAFE
    finally:
        exploration.evaluator.cache_clear()


def test_the_projection_refuses_what_it_cannot_say() -> None:
    @action
    def adopts(old: Fate, new: Fate) -> Step:
        return (new.holders == old.wounds,)

    class Less(Struct):
        """A state without the wounds."""

        holders: Set[Replica] = var("disks that have the record")

    with pytest.raises(TypeError, match="computes holders of wounds"):
        projection(adopts, Less)


@pytest.mark.parametrize(("most", "whole"), [(30, 0), (60, 1), (1_000, 1), (200_000, 3)])
def test_the_steps_before_there_are_too_many_states_are_answered(
    monkeypatch: pytest.MonkeyPatch, most: int, whole: int
) -> None:
    """It was UNKNOWN "now", too, where a runbook has too many states later on."""
    monkeypatch.setattr(drills, "explore", partial(exploration.explore, most_states=most))
    found = drilled(with_spares(cluster_of(), 4), "reassign move; reassign back", release=(4, 3)).partitions[0]
    assert [o.records for o in found.outcomes] == [SAFE] * whole + [UNKNOWN] * (3 - whole)
    assert all("states; a wait between its moves" in o.because for o in found.outcomes[whole:])


def test_an_engine_of_the_contract_sees_the_same_states() -> None:
    setting = Setting("kip-966", 3, 2)
    instance = Instance(fate_design(DESIGNS["kip-966"], restless=True), setting.constants(1))
    steps = exploration.evaluator("kip-966", tuple(setting.constants(1).items()), True)
    starts = [state for _, state in steps.initial_states()]
    found = exploration.explore(setting, starts, 1, restless=True)
    assert explorer.explore(instance).distinct == found.states
