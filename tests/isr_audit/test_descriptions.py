"""What Kafka's tools print is read as it is meant: whose setting wins, who leads, and what is no description at all."""

from __future__ import annotations

import attrs
import pytest

from isr_audit.audit import AnswerSource, RackLoss, audit_rows, no_exploration
from isr_audit.cluster import Cluster, Partition, Topic, merge_clusters
from isr_audit.condition import Trouble, candidates, conditions, ends_of
from isr_audit.descriptions import read_description
from isr_audit.live import client_settings
from isr_audit.live_replicas import UntranslatedSetting, python_settings
from isr_audit.releases import release_of, release_of_level, running

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
    assert topic.partitions[0] == Partition("t", 0, 3, (3, 1, 2), (3, 1, 2), (), last_known_elr=())
    assert topic.partitions[1] == Partition("t", 1, None, (1, 2, 3), (), (1, 2))


def test_spaces_in_place_of_tabs_and_the_tools_of_long_ago() -> None:
    text = "Topic:old\tPartitionCount:1\tReplicationFactor:2\tConfigs:\n"
    text += "\tTopic: old\tPartition: 0\tLeader: -1\tReplicas: 1,2\tIsr: 1"
    (old,) = read(text).topics
    assert old == Topic("old", 2, (Partition("old", 0, None, (1, 2), (1,)),), count=1)
    (same,) = read(TOPICS.replace("\t", "  ")).topics
    assert same == read(TOPICS).topics[0]


def test_a_topics_own_setting_wins_over_the_brokers_whatever_comes_first() -> None:
    parts = [read(CONFIGS), read(TOPICS), read("node.id=4\nmin.insync.replicas=1\nbroker.rack = a\n# x=y\n")]
    for cluster in (merge_clusters(parts), merge_clusters(reversed(parts)), read(TOPICS + CONFIGS)):
        topic = cluster.find_topic("t")
        assert topic is not None
        assert cluster.min_insync(topic) == 2
        assert cluster.unclean(topic)
    whole = merge_clusters(parts)
    assert whole.racks == {4: "a", 7: "b"}
    assert whole.min_insync(Topic("other", 3)) == 3, (
        "what was set of all brokers wins over a broker's file, as in Kafka"
    )


def test_the_weakest_of_what_brokers_say_counts() -> None:
    said = "log.flush.interval.messages={}\nmin.insync.replicas={}\nbroker.id={}\n"
    cluster = merge_clusters([read(said.format(1, 2, 1)), read(said.format(1, 3, 2))])
    assert cluster.min_insync(Topic("t", 3)) == 2
    assert cluster.flushed(Topic("t", 3))
    assert cluster.disagreeing() == ("min.insync.replicas",)
    assert not merge_clusters([cluster, read(said.format(2, 2, 3))]).flushed(Topic("t", 3))


def test_what_was_set_of_a_broker_wins_over_what_was_set_of_all_and_that_over_its_file() -> None:
    """Kafka's DynamicBrokerConfig, "the order of precedence"."""
    file = "broker.id=1\nmin.insync.replicas=4\n"
    own = "Dynamic configs for broker 1 are:\n  min.insync.replicas=2 sensitive=false synonyms={}\n"
    assert read(file).broker_values("min.insync.replicas") == ("4",)
    for parts in ([read(CONFIGS), read(file)], [read(file), read(CONFIGS)]):
        assert merge_clusters(parts).broker_values("min.insync.replicas") == ("3",)
        assert merge_clusters([*parts, read(own)]).broker_values("min.insync.replicas") == ("2", "3")
    assert read(CONFIGS.replace("broker 7", "topic u")).broker_values("min.insync.replicas") == ("3",)


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


LOGS = (
    "Querying brokers for log directories information\n"
    '{"version":1,"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"t-1","size":900,"offsetLag":0,'
    '"isFuture":false},{"partition":"t-1","size":5,"offsetLag":7,"isFuture":true}],"error":null,"logDir":"/d"}]},'
    '{"broker":2,"logDirs":[{"partitions":[{"partition":"t-1","size":300,"offsetLag":0,"isFuture":false}],'
    '"error":null,"logDir":"/d"}]}]}\n'
)


def test_the_bytes_of_logs_whichever_file_comes_first() -> None:
    for cluster in (
        read(TOPICS + LOGS),
        merge_clusters([read(TOPICS), read(LOGS)]),
        merge_clusters([read(LOGS), read(TOPICS)]),
    ):
        topic = cluster.find_topic("t")
        assert topic is not None
        assert [p.sizes for p in topic.partitions] == [{}, {1: 900, 2: 300}]
        assert topic.partitions[1].elr == (1, 2)
    assert read_description('{"brokers": 3}', "file") is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\nssl.endpoint.identification.algorithm=\n",
            {"ssl.ca.location": "/ca.pem", "ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            "ssl.keystore.type=PEM\nssl.keystore.location=/me.pem\nssl.key.password=p\nssl.protocol=TLSv1.3\n",
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem", "ssl.key.password": "p"},
        ),
        (
            "sasl.jaas.config=x.ScramLoginModule required \\\n  username='u' \\\n  password='p';\n",
            {"sasl.username": "u", "sasl.password": "p"},
        ),
    ],
)
def test_the_certificates_of_kafkas_tools(text: str, wanted: dict[str, str]) -> None:
    assert client_settings(text) == wanted


def test_a_keystore_of_java_is_said_to_be_one() -> None:
    with pytest.raises(ValueError, match=r"keytool -list -rfc -keystore /t\.jks > ca\.pem"):
        client_settings("ssl.truststore.location=/t.jks\nssl.truststore.password=p\n")


def test_the_second_client_has_the_settings_of_the_first() -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.username": "u", "ssl.ca.location": "/ca", "socket.timeout.ms": "9"}
    told = {"security_protocol": "SASL_SSL", "sasl_plain_username": "u", "ssl_cafile": "/ca"}
    assert python_settings(given) == told
    assert python_settings({"ssl.endpoint.identification.algorithm": "none"}) == {"ssl_check_hostname": False}
    with pytest.raises(UntranslatedSetting, match=r"kafka-python has no ssl\.ca\.pem"):
        python_settings({"ssl.ca.pem": "x"})


@pytest.mark.parametrize(
    ("level", "release"), [(1, (3, 0)), (11, (3, 5)), (25, (4, 0)), (26, (4, 1)), (33, (4, 4)), (99, (4, 4))]
)
def test_the_release_of_a_level_of_metadata(level: int, release: tuple[int, int]) -> None:
    assert release_of_level(level) == release


def test_racks_count_where_every_replica_s_is_told() -> None:
    replicas = (Partition("t", 0, 1, (1, 2, 3), (1, 2, 3)), Partition("t", 1, 1, (1, 3, 4), (1, 3, 4)))
    topic, racks = Topic("t", 3, replicas), {1: "a", 2: "b", 3: "c", 4: "c"}
    assert Cluster((topic,), racks=racks).in_rack(topic) == 2
    assert Cluster((topic,), racks={1: "a", 2: "b", 3: "c"}).in_rack(topic) == 0
    (row,) = audit_rows(Cluster((topic,), racks=racks), running(Cluster()), AnswerSource([], no_exploration))
    assert row.racks == ()
    strict = attrs.evolve(topic, configs={"min.insync.replicas": "2"})
    (row,) = audit_rows(Cluster((strict,), racks=racks), running(Cluster()), AnswerSource([], no_exploration))
    assert row.racks == (RackLoss("c", 0, 1),)
    (row,) = audit_rows(
        Cluster((strict,), racks=dict.fromkeys(racks, "a")), running(Cluster()), AnswerSource([], no_exploration)
    )
    assert row.racks == (RackLoss("a", 2, 0),)


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


def test_what_an_unclean_election_of_each_candidate_would_lose() -> None:
    """By the ends of logs where they are told, else by their bytes; who was not heard may have more."""
    seen = attrs.evolve(partition(None, (1,)), ends={2: 90, 3: 97}, sizes={2: 10, 3: 1})
    assert [(c.replica, c.lacks, c.unheard) for c in candidates(seen)] == [(3, 0, (1,)), (2, 7, (1,))]
    assert candidates(seen)[1].says == "electing 2 uncleanly would lose the last 7 records, and what only 1 may have"
    assert [c.replica for c in candidates(seen, (2,))] == [2]
    by_bytes = candidates(attrs.evolve(partition(1, (1,)), sizes={1: 900, 2: 300}))
    assert [(c.replica, c.bytes_short, c.is_known) for c in by_bytes] == [(2, 600, True), (3, None, False)]
    assert candidates(partition(None, (), (1, 2, 3))) == (), "the eligible are elected cleanly"


def test_a_leader_that_is_gone_counts_by_its_log_as_it_was() -> None:
    """The in-sync set had shrunk to the leader, and then it died: how far it had come is known from before."""
    led = Cluster((Topic("t", 3, (attrs.evolve(partition(1, (1,)), ends={1: 120, 2: 90}),)),))
    gone = Cluster((Topic("t", 3, (attrs.evolve(partition(None, (1,)), ends={2: 90}),)),), living=(2, 3))
    before = ends_of(gone, ends_of(led, {}))
    (found,) = conditions(gone, before)
    assert found.candidates[0].lacks == 30
    assert "the last 30 records (with the log of 1 as it was at an earlier look), and what only 3" in (
        found.candidates[0].says
    )
    (found,) = conditions(gone)
    assert not found.candidates[0].is_known
    whole = Cluster((Topic("t", 3, (partition(1, (1, 2, 3)),)),))
    assert ends_of(whole, before) == {}, "what was before it was whole again says nothing"


def test_settings_that_count_time_are_told_and_promise_nothing() -> None:
    day = {"retention.ms": "86400000"}
    topics = (Topic("a", 3, configs={**day, "flush.ms": "1000"}), Topic("b", 3, configs={"flush.ms": str(2**63 - 1)}))
    (row,) = audit_rows(Cluster(topics), running(Cluster()), AnswerSource([], no_exploration))
    assert row.notes == (
        "flush.ms=1000 flushes after the acknowledgement, and counts as never",
        "records are deleted after 1 day (retention.ms, of those topics that tell it), "
        "whether or not anybody has read them",
    )
    compacted = Topic("c", 3, configs={**day, "cleanup.policy": "compact"})
    (row,) = audit_rows(Cluster((compacted,)), running(Cluster()), AnswerSource([], no_exploration))
    assert row.notes == ()
