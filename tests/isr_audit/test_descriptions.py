"""What Kafka's tools print is read as it is meant: whose setting wins, who leads, and what is no description at all."""

from __future__ import annotations

import pytest

from isr_audit.cluster import Cluster, Partition, Topic, merged
from isr_audit.condition import Trouble, conditions
from isr_audit.descriptions import read_description
from isr_audit.live import client_settings
from isr_audit.releases import release_of, running

TOPICS = """\
Topic: t\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 3\t\
Configs: cleanup.policy=compact,delete,min.insync.replicas=2
\tTopic: t\tPartition: 0\tLeader: 3\tReplicas: 3,1,2\tIsr: 3,1,2\tElr: \tLastKnownElr:\x20
\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: 1,2\tLastKnownElr: N/A
"""
CONFIGS = """\
Dynamic configs for topic t are:
  unclean.leader.election.enable=true sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:unclean.leader.election.enable=\
true}
Default configs for brokers in the cluster are:
  min.insync.replicas=3 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=3}
All configs for broker 7 are:
  broker.rack=b sensitive=false synonyms={STATIC_BROKER_CONFIG:broker.rack=b}
"""


def read(text: str) -> Cluster:
    found = read_description(text, "file")
    assert found is not None
    return found


def test_topics_with_their_partitions() -> None:
    (topic,) = read(TOPICS).topics
    assert topic.configs == {"cleanup.policy": "compact,delete", "min.insync.replicas": "2"}
    assert topic.replicas == 3
    assert topic.partitions[0] == Partition("t", 0, 3, (3, 1, 2), (3, 1, 2), ())
    assert topic.partitions[1] == Partition("t", 1, None, (1, 2, 3), (), (1, 2))


def test_spaces_in_place_of_tabs_and_the_tools_of_long_ago() -> None:
    text = "Topic:old\tPartitionCount:1\tReplicationFactor:2\tConfigs:\n"
    text += "\tTopic: old\tPartition: 0\tLeader: -1\tReplicas: 1,2\tIsr: 1"
    (old,) = read(text).topics
    assert old == Topic("old", 2, (Partition("old", 0, None, (1, 2), (1,)),))
    (same,) = read(TOPICS.replace("\t", "  ")).topics
    assert same == read(TOPICS).topics[0]


def test_a_topics_own_setting_wins_over_the_brokers_whatever_comes_first() -> None:
    parts = [read(CONFIGS), read(TOPICS), read("node.id=4\nmin.insync.replicas=1\nbroker.rack = a\n# x=y\n")]
    for cluster in (merged(parts), merged(reversed(parts)), read(TOPICS + CONFIGS)):
        topic = cluster.named("t")
        assert topic is not None
        assert cluster.min_insync(topic) == 2
        assert cluster.unclean(topic)
    whole = merged(parts)
    assert whole.racks == {4: "a", 7: "b"}
    assert whole.min_insync(Topic("other", 3)) == 1, "a broker's own file wins over the default of all brokers"


def test_the_weakest_of_what_brokers_say_counts() -> None:
    said = "log.flush.interval.messages={}\nmin.insync.replicas={}\nbroker.id={}\n"
    cluster = merged([read(said.format(1, 2, 1)), read(said.format(1, 3, 2))])
    assert cluster.min_insync(Topic("t", 3)) == 2
    assert cluster.flushed(Topic("t", 3))
    assert cluster.disagreeing() == ("min.insync.replicas",)
    assert not merged([cluster, read(said.format(2, 2, 3))]).flushed(Topic("t", 3))


def test_a_broker_that_says_nothing_has_the_default_of_all() -> None:
    cluster = merged([read(CONFIGS), read("broker.id=1\nmin.insync.replicas=4\n")])
    assert cluster.told("min.insync.replicas") == ("3", "4")
    assert read(CONFIGS.replace("broker 7", "topic u")).told("min.insync.replicas") == ("3",)


def test_the_security_settings_of_kafkas_tools() -> None:
    text = """\
# a comment
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p=1";
"""
    assert client_settings(text) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p=1",
    }


@pytest.mark.parametrize("text", ["", "hello: world\n", "a.b=c\nlog4j.rootLogger=INFO\n", "Topic: t\n", "{}"])
def test_what_is_no_description_is_not_recognised(text: str) -> None:
    assert read_description(text, "file") is None


@pytest.mark.parametrize(
    ("features", "settings", "said", "elr", "design"),
    [
        ({}, {}, "4.1.1", True, "kip-966"),
        ({}, {}, "4.1.1", None, "kraft-3.5"),
        ({"metadata.version": "4.1-IV1", "eligible.leader.replicas.version": "1"}, {}, None, None, "kip-966"),
        ({"metadata.version": "4.1-IV1", "eligible.leader.replicas.version": "0"}, {}, None, None, "kraft-3.5"),
        ({"metadata.version": "3.4-IV0"}, {}, "3.9", None, "kraft-3.5"),
        ({"metadata.version": "3.4-IV0"}, {}, None, None, "kip-841"),
        ({}, {"process.roles": "broker"}, "3.3.2", None, "kip-841"),
        ({}, {"zookeeper.connect": "z:2181"}, "3.9", None, "kip-497"),
        ({}, {"zookeeper.connect": "z:2181", "inter.broker.protocol.version": "2.5"}, None, None, "kip-320"),
        ({}, {}, "3.6", None, "kip-497"),
        ({}, {}, "2.0.1", None, "kip-279"),
        ({}, {}, "1.1", None, "kip-101"),
        ({}, {}, "0.10.2", None, "zookeeper"),
        ({}, {}, "0.8.2", None, "kafka-0.8"),
        ({}, {}, None, None, "kraft-3.5"),
    ],
)
def test_the_design_that_runs(
    features: dict[str, str], settings: dict[str, str], said: str | None, elr: bool | None, design: str
) -> None:
    """The table of docs/versions.md; what is not told is taken to be the weaker."""
    cluster = Cluster(brokers={"1": settings}, features=features)
    assert running(cluster, release_of(said) if said else None, elr).design == design


def test_an_elr_that_somebody_saw_is_on() -> None:
    assert running(read(TOPICS), (4, 1)).design == "kip-966"


def partition(leader: int | None, isr: tuple[int, ...], elr: tuple[int, ...] | None = None) -> Partition:
    return Partition("t", 0, leader, (1, 2, 3), isr, elr)


@pytest.mark.parametrize(
    ("seen", "trouble", "says"),
    [
        (partition(None, (), (2,)), Trouble.OFFLINE, "it waits for 2, of the ELR"),
        (partition(None, (3,)), Trouble.OFFLINE, "it waits for 3, of the ISR"),
        (partition(None, (), ()), Trouble.OFFLINE, "the last known leader or an operator"),
        (partition(1, (1,)), Trouble.UNDER_MINIMUM, "1 replica in sync of 2 required"),
        (partition(1, (1, 3)), Trouble.UNDER_REPLICATED, "not in sync: 2"),
        (partition(2, (1, 2, 3)), Trouble.NOT_PREFERRED, "2 leads; 1 is preferred"),
        (partition(1, (3, 2, 1)), None, ""),
    ],
)
def test_what_is_wrong_now(seen: Partition, trouble: Trouble | None, says: str) -> None:
    found = conditions(Cluster((Topic("t", 3, (seen,), {"min.insync.replicas": "2"}),)))
    assert [c.trouble for c in found] == ([trouble] if trouble is not None else [])
    assert all(says in c.says for c in found)
