"""What people have at hand is read: resources, compose files, environments, pretty JSON, greps; one bad file is named.

Without these a file would be refused that says all that is needed, or read as more than it says.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from insync_cli.main import main
from isr_audit.cluster import EVERY, Cluster, Contradiction, merge_clusters
from isr_audit.deployments import Unreadable, setting_name
from isr_audit.descriptions import read_description
from isr_audit.releases import running
from isr_audit.voters import voters_of

pytestmark = pytest.mark.long

STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata:
  name: my-cluster
spec:
  kafka:
    version: 4.1.0
    metadataVersion: 4.1-IV1
    config:
      min.insync.replicas: 2
      unclean.leader.election.enable: false
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata:
  name: orders-v1
spec:
  topicName: orders
  partitions: 12
  replicas: 3
  config:
    retention.ms: 86400000
"""
COMPOSE = """\
x-kafka: &common
  KAFKA_PROCESS_ROLES: broker,controller
  KAFKA_MIN_INSYNC_REPLICAS: 2
services:
  one:
    image: apache/kafka:4.1.0
    environment:
      <<: *common
      KAFKA_NODE_ID: 1
      KAFKA_BROKER_RACK: a
      KAFKA_HEAP_OPTS: -Xmx1g
  two:
    environment:
      - KAFKA_CFG_NODE_ID=2
      - KAFKA_CFG_PROCESS_ROLES=broker,controller
      - KAFKA_CFG_MIN_INSYNC_REPLICAS=3
      - KAFKA_CFG_BROKER_RACK=b
  postgres:
    environment: {POSTGRES_USER: x}
"""
TOPIC = """\
Topic: orders\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: {}
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: \n"""
ELR = "Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: 1\tEpoch: 1\n"
QUORUM = """\
ClusterId:              4L6g3nShT-eMCtK--X86sw
LeaderId:               3
LeaderEpoch:            72
CurrentVoters:          [{"id": 3, "directoryId": "x", "endpoints": ["CONTROLLER://c:1"]}]
"""
PLAN = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
DIRS = {
    "version": 1,
    "brokers": [
        {"broker": b, "logDirs": [{"partitions": [{"partition": "orders-0", "size": 9 * b, "isFuture": False}]}]}
        for b in (1, 2)
    ],
}


def read(text: str, source: str = "file") -> Cluster:
    cluster = read_description(text, source)
    assert cluster is not None
    return cluster


def audit(tmp_path: Path, *texts: str, more: tuple[str, ...] = ()) -> int:
    files = [tmp_path / f"{n}.txt" for n in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return main(["audit", "--describe", *map(str, files), *more])


def test_a_kafka_and_its_topics_as_strimzi_has_them() -> None:
    cluster = read(STRIMZI)
    (topic,) = cluster.topics
    assert (topic.name, topic.replicas, topic.count, topic.resource) == ("orders", 3, 12, "orders-v1")
    assert (cluster.min_insync(topic), cluster.unclean(topic)) == (2, False)
    assert cluster.features == {"metadata.version": "4.1-IV1"}
    assert cluster.gaps == ("orders: how its partitions are now was not told (kafka-topics.sh tells it)",)
    assert running(cluster).release == (4, 1)


def test_a_topic_without_its_kafka_does_not_tell_the_brokers_settings() -> None:
    """Its own settings are told, and what brokers have is not: a default may be anything."""
    (topic,) = read(STRIMZI.split("---")[1]).topics
    assert not read(STRIMZI.split("---")[1]).is_known(topic, "min.insync.replicas")
    own = read(STRIMZI.split("---")[1] + "    min.insync.replicas: 2\n")
    assert own.is_known(own.topics[0], "min.insync.replicas")


def test_a_list_as_kubectl_prints_it_and_what_is_not_kafkas() -> None:
    topic = STRIMZI.split("---")[1]
    listed = "apiVersion: v1\nkind: List\nitems:\n" + "\n".join(
        f"{'- ' if n == 0 else '  '}{line}" for n, line in enumerate(topic.strip().splitlines())
    )
    assert [t.name for t in read(listed).topics] == ["orders"]
    assert read_description("kind: Deployment\nmetadata: {name: x}\n", "file") is None


@pytest.mark.parametrize(
    ("resource", "kraft"), [("", True), ("\n  zookeeper:\n    replicas: 3\n", False)], ids=["kraft", "zookeeper"]
)
def test_whether_strimzi_runs_zookeeper(resource: str, kraft: bool) -> None:
    text = f"kind: Kafka\nmetadata: {{name: k}}\nspec:\n  kafka:\n    config: {{min.insync.replicas: 2}}{resource}"
    assert ("process.roles" in read(text).brokers[EVERY]) is kraft


def test_compose_files_have_a_broker_a_service() -> None:
    cluster = read(COMPOSE)
    assert set(cluster.brokers) == {"1", "2"}
    assert cluster.brokers["1"] == {
        "process.roles": "broker,controller",
        "min.insync.replicas": "2",
        "node.id": "1",
        "broker.rack": "a",
    }
    assert cluster.racks == {1: "a", 2: "b"}
    whole = merge_clusters([cluster, read(TOPIC.format(""))])
    assert whole.min_insync(whole.topics[0]) == 2
    assert whole.disagreeing() == ("min.insync.replicas",)


def test_what_a_shell_would_fill_in_is_not_told() -> None:
    cluster = merge_clusters([read(COMPOSE.replace("=3", "=${MIN_ISR:-2}")), read(TOPIC.format(""))])
    assert not cluster.is_known(cluster.topics[0], "min.insync.replicas")


def test_two_services_with_one_id_are_refused() -> None:
    with pytest.raises(Contradiction, match="two services of broker 1"):
        read(COMPOSE.replace("NODE_ID=2", "NODE_ID=1"))


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("KAFKA_MIN_INSYNC_REPLICAS", "min.insync.replicas"),
        ("KAFKA_CFG_UNCLEAN_LEADER_ELECTION_ENABLE", "unclean.leader.election.enable"),
        ("KAFKA_A__B___C", "a_b-c"),
    ],
)
def test_the_name_of_a_variable(variable: str, setting: str) -> None:
    assert setting_name(variable) == setting


def test_single_settings_do_not_tell_what_stands_beside_them() -> None:
    """A grep for one setting, or some variables: that another one is not there says nothing about it."""
    texts = (
        "conf/1.properties:broker.id=1\nconf/1.properties:unclean.leader.election.enable=false\n"
        "conf/2.properties:7:broker.id=2\nconf/2.properties:9:min.insync.replicas=2\n",
        "KAFKA_BROKER_ID=1\nexport KAFKA_MIN_INSYNC_REPLICAS='2'\n",
    )
    for text in texts:
        cluster = merge_clusters([read(text), read(TOPIC.format(""))])
        assert "min.insync.replicas" not in cluster.brokers["1"] or cluster.brokers["1"]["min.insync.replicas"] == "2"
        assert cluster.partial == cluster.brokers.keys()
        assert not cluster.is_known(cluster.topics[0], "min.insync.replicas")
    whole = merge_clusters([read(texts[0]), read("broker.id=1\nunclean.leader.election.enable=false\n"),
                            read(TOPIC.format(""))])  # fmt: skip
    assert whole.partial == {"2"}


def test_log_dirs_may_be_printed_in_any_way() -> None:
    """As jq prints them, below what the tool says first."""
    plain = f"Received log directory information from brokers 1,2\n{json.dumps(DIRS)}\n"
    pretty = f"Received log directory information from brokers 1,2\n{json.dumps(DIRS, indent=2)}\nnode.id=7\n"
    assert read(pretty).partitions == read(plain).partitions
    assert read(pretty).partitions[0].sizes == {1: 9, 2: 18}
    assert set(read(pretty).brokers) == {"7"}
    cut = json.dumps(DIRS, indent=2)[:80]
    assert read_description(cut, "file") is None


def test_a_quorum_has_no_zookeeper() -> None:
    for text in (QUORUM, "NodeId\tDirectoryId\tLogEndOffset\tLag\tStatus\n3\tx\t9\t0\tLeader\n"):
        cluster = merge_clusters([read(TOPIC.format("").replace("\tElr: \tLastKnownElr: ", "")), read(text)])
        assert cluster.has_quorum
        assert running(cluster, (3, 6)).design == "kraft-3.5"


@pytest.mark.parametrize(
    ("told", "voters"),
    [
        ('[{"id": 3, "directoryId": "x7", "endpoints": ["CONTROLLER://c:19"]}]', {3}),
        ('[{"id": 3, "directoryId": null, "endpoints": ["C://c:1"]}, {"id": 41, "endpoints": []}]', {3, 41}),
        ("[3,41, 5]", {3, 5, 41}),
        ("[]", None),
    ],
)
def test_the_voters_of_a_quorum_are_told_in_both_forms(told: str, voters: set[int] | None) -> None:
    """kafka-metadata-quorum.sh of 3.9 and later, and of releases before."""
    cluster = merge_clusters([read(TOPIC.format("")), read(f"LeaderEpoch: 4\nCurrentVoters:          {told}\n")])
    assert cluster.voters == voters_of(cluster) == (None if voters is None else frozenset(voters))
    of_settings = attrs.evolve(cluster, defaults={"controller.quorum.voters": "7@a:1,8@b:1"})
    assert voters_of(of_settings) == frozenset({7, 8}), "the settings of a static quorum say it first"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_reassignment_is_a_plan_and_not_how_the_cluster_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], indent: int | None
) -> None:
    text = f"Current partition replica assignment\n{json.dumps(PLAN, indent=indent)}\n"
    assert audit(tmp_path, ELR + TOPIC.format("min.insync.replicas=2"), text) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "is a reassignment of 1 partition (orders), which is a plan, and was not judged: insync drill" in said
    assert "orders 2 2 survives" in said, "as it is, and not as it is planned"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (None, "cannot read"),
        ("hello\n", "nothing in it is recognised"),
        ("kind: Kafka\nspec: {{ .Values.kafka }}\n", "line 2: not YAML:"),
    ],
)
def test_one_bad_file_does_not_stop_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: str | None, says: str
) -> None:
    """It is named, and nobody says that all is well, for it may tell of partitions."""
    file = tmp_path / "bad.txt"
    if bad is not None:
        file.write_text(bad, encoding="utf-8")
    (tmp_path / "good.txt").write_text(ELR + TOPIC.format("min.insync.replicas=2"), encoding="utf-8")
    assert main(["audit", "--describe", str(file), str(tmp_path / "good.txt")]) == 20
    said = " ".join(capsys.readouterr().out.split())
    assert "left out: " in said
    assert "bad.txt" in said
    assert says in said
    assert "orders 2 2 survives" in said
    risky = ELR + TOPIC.format("min.insync.replicas=1")
    (tmp_path / "good.txt").write_text(risky, encoding="utf-8")
    assert main(["audit", "--describe", str(file), str(tmp_path / "good.txt")]) == 1
    assert "bad.txt" in capsys.readouterr().out
    assert main(["audit", "--describe", str(file)]) == 65
    assert says in capsys.readouterr().err


def test_yaml_that_is_none_is_one_sentence() -> None:
    with pytest.raises(Unreadable, match=r"^file, line 3: not YAML: "):
        read("kind: Kafka\nspec: [\n  a: }\n")
    with pytest.raises(Unreadable, match="not YAML"):
        read("kind: Kafka\nx: " + "[" * 5_000)
