"""Apache Kafka itself, audited: what it tells of features, racks, eligible leader replicas and the ends of its logs.

Without it nobody would notice that a client, or a broker, tells something else than the stand-ins of the other tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import clients

from insync_cli.clusters.metadata_source import described_by_metadata
from insync_cli.main import main
from isr_audit import live, live_replicas
from isr_audit.cluster import Cluster, Partition
from isr_audit.condition import conditions, ends_of
from isr_audit.live import read_cluster
from isr_audit.live_replicas import with_replicas
from isr_cluster import kafka as kafka_module
from isr_cluster.admin import Admin
from isr_cluster.kafka import KafkaProcesses, archive
from isr_cluster.ports import HOST, free_ports
from isr_kafka import Unavailable
from isr_kafka.node import NodeFiles, new_id, node_files

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets]

RACKS = {1: "a", 2: "b", 3: "b"}
TOPICS = {
    "payments": (3, {"min.insync.replicas": "2"}),
    "clicks": (3, {"min.insync.replicas": "1"}),
    "scratch": (1, {"flush.messages": "1", "retention.ms": "3600000"}),
}


def with_archive() -> NodeFiles:
    """The newest release, quick to start; a visible skip where it cannot be had, a failure under CI."""
    try:
        files = node_files()
        archive(files)
    except Unavailable as problem:
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{problem}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(str(problem))
    return files


@pytest.fixture
def kafka(tmp_path: Path) -> Generator[KafkaProcesses]:
    """A cluster that notices within seconds whom the test kills."""
    yield from three_brokers(tmp_path, {"replica.lag.time.max.ms": "2000", "broker.session.timeout.ms": "3000"})


@pytest.fixture
def calm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[KafkaProcesses]:
    """A cluster, and clients, that wait for whoever is slow: on a busy machine nobody leaves an ISR."""
    monkeypatch.setattr(live, "PATIENCE_S", 60.0)
    monkeypatch.setattr(live_replicas, "PATIENCE_MS", 60_000)
    yield from three_brokers(tmp_path, {"replica.lag.time.max.ms": "90000", "broker.session.timeout.ms": "90000"})


def three_brokers(tmp_path: Path, properties: Mapping[str, str]) -> Generator[KafkaProcesses]:
    files = with_archive()
    *ports, controller = free_ports(4)
    nodes = KafkaProcesses(
        tmp_path,
        dict(zip(RACKS, ports, strict=True)),
        cluster=new_id(),
        files=files,
        controller=((HOST, controller), (HOST, controller)),
        own={broker: {"broker.rack": rack} for broker, rack in RACKS.items()},
        properties=dict(properties),
    )
    try:
        nodes.start_all()
        with Admin((HOST, ports[0]), 30.0) as admin:
            for name, (replicas, config) in TOPICS.items():
                admin.create(name, 1, replicas, config)
        yield nodes
    finally:
        nodes.kill_all()


def audited(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["audit", "--bootstrap", bootstrap, "--json", "-"])
    said = capsys.readouterr()
    assert said.out, said.err
    return code, json.loads(said.out)


def test_three_topics_of_apache_kafka(calm: KafkaProcesses, capsys: pytest.CaptureFixture[str]) -> None:
    for port in calm.ports.values():  # whichever of them is asked has heard of all topics
        look(f"{HOST}:{port}", lambda at: len(at) == len(TOPICS) and all(p.whole for p in at.values()))
    code, report = audited(calm.bootstrap, capsys)
    assert (code, report["release"], report["design"]) == (1, "4.4", "kip-966"), "features are told by the cluster"
    assert report["notes"] == []
    rows = {row["topics"][0]: row for row in report["rows"]}
    assert {name: row["at_risk"] for name, row in rows.items()} == {"payments": False, "clicks": True, "scratch": True}
    assert rows["payments"]["settings"]["in_rack"] == 2
    assert rows["payments"]["racks"] == [{"rack": "b", "without_leader": 0, "below_minimum": 1}]
    assert rows["scratch"]["settings"]["flushed"]
    assert any("deleted after 1 hour" in note for note in rows["scratch"]["notes"])


def look(bootstrap: str, wanted: Callable[[Mapping[str, Partition]], bool]) -> Cluster:
    """The cluster as it is when its partitions are as wanted, for a minute at most."""
    end = time.monotonic() + 60
    while True:
        found = with_replicas(read_cluster(bootstrap, {}), bootstrap, {})
        if wanted({p.name: p for p in found.partitions}):
            return found
        assert time.monotonic() < end, found.partitions
        time.sleep(0.5)


def state_of(cluster: Cluster) -> dict[str, tuple[object, ...]]:
    """Each partition, without what only a running broker tells."""
    return {p.name: (p.leader, p.replicas, set(p.isr), set(p.elr or ())) for p in cluster.partitions}


def test_the_ends_of_logs_and_who_is_eligible(
    kafka: KafkaProcesses, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Broker 3 misses seven records, and then broker 2 is gone, which alone has those of `pair`."""
    with Admin((HOST, kafka.ports[1]), 30.0) as admin:
        admin.create("pair", config={"min.insync.replicas": "1"}, on=[[2, 3]])
        admin.create("all", config={"min.insync.replicas": "2"}, on=[[2, 3, 1]])
    send(kafka.bootstrap, 5)
    kafka.kill(3)
    look(kafka.bootstrap, lambda at: 3 not in at["pair-0"].isr and 3 not in at["all-0"].isr)
    send(kafka.bootstrap, 7)
    first = look(kafka.bootstrap, lambda at: len(at["all-0"].ends) == 2)
    at = {p.name: p for p in first.partitions}
    assert dict(at["all-0"].ends) == {2: 12, 1: 12}, "a follower tells where its log ends, too"
    assert dict(at["pair-0"].ends) == {2: 12}
    assert set(at["all-0"].sizes) == {1, 2}
    before = ends_of(first, {})

    kafka.kill(2)
    second = look(kafka.bootstrap, lambda at: at["all-0"].isr == (1,) and bool(at["all-0"].elr))
    files = described_by_metadata(tmp_path / "1")
    assert state_of(files) == state_of(second), "the controller's files tell what the running cluster does"
    assert files.features.items() <= second.features.items()
    assert (files.racks, files.living) == (RACKS, second.living)
    assert next(p.elr for p in second.partitions if p.name == "all-0") == (2,)
    kafka.start(3)
    third = look(kafka.bootstrap, lambda at: at["pair-0"].leader is None and 3 in at["pair-0"].ends)
    offline = next(c for c in conditions(third, before) if c.partition.name == "pair-0")
    (candidate,) = offline.candidates
    assert (candidate.replica, candidate.lacks, candidate.remembered) == (3, 7, (2,))
    code, report = audited(kafka.bootstrap, capsys)
    assert code == 2
    (told,) = next(n for n in report["now"] if n["partition"] == "pair-0")["unclean"]
    assert (told["replica"], told["lacks"], told["unheard"]) == (3, None, [2]), "who does not answer may have more"


def send(bootstrap: str, count: int) -> None:
    """So many records to each of the two topics, acknowledged by all that are in sync."""
    for topic in ("pair", "all"):
        clients.Confluent(bootstrap, {"acks": "all"}).send_all(topic, [str(n).encode() for n in range(count)])


def test_the_client_properties_of_kafkas_tools_with_sasl_and_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both clients take the file as it is: user and password by JAAS, a certificate in a PEM trust store."""
    files = with_archive()
    store, trusted = tmp_path / "keys.p12", tmp_path / "ca.pem"
    keytool(
        "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-dname", "CN=broker", "-ext", "san=ip:127.0.0.1", store
    )
    trusted.write_text(keytool("-exportcert", "-rfc", "-alias", "broker", store), encoding="utf-8")
    port, controller, secure = free_ports(3)
    plain, jaas = kafka_module.node_settings, "org.apache.kafka.common.security.plain.PlainLoginModule required"

    def also_secure(*given: Any) -> dict[str, str]:
        settings = plain(*given)
        for name in ("listeners", "advertised.listeners"):
            settings[name] += f",SECURE://{HOST}:{secure}"
        settings["listener.security.protocol.map"] += ",SECURE:SASL_SSL"
        own = {
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": "secret",
            "sasl.enabled.mechanisms": "PLAIN",
            "plain.sasl.jaas.config": f'{jaas} user_me="mine";',
        }
        return settings | {f"listener.name.secure.{name}": value for name, value in own.items()}

    monkeypatch.setattr(kafka_module, "node_settings", also_secure)
    at = ((HOST, controller), (HOST, controller))
    node = KafkaProcesses(tmp_path, {1: port}, cluster=new_id(), files=files, controller=at)
    client = tmp_path / "client.properties"
    told = f'security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas} \\\n  username="me" \\\n'
    told += f'  password="PASSWORD";\nssl.truststore.type=PEM\nssl.truststore.location={trusted}\n'
    try:
        node.start_all()
        with Admin((HOST, port), 30.0) as admin:
            admin.create("t", 1, 1)
        client.write_text(told.replace("PASSWORD", "mine"), encoding="utf-8")
        asked = ["audit", "--bootstrap", f"{HOST}:{secure}", "--client", str(client), "--json", "-"]
        assert main(asked) == 1
        report = json.loads(capsys.readouterr().out)
        assert (report["design"], report["release"], report["topics"]) == ("kip-966", "4.4", 1)
        assert [n for n in report["notes"] if "not told" in n or "not asked" in n] == [NO_RACK]
        client.write_text(told.replace("PASSWORD", "another"), encoding="utf-8")
        monkeypatch.setattr(live, "PATIENCE_S", 3.0)
        assert main(asked) == 2
        assert "no answer from the cluster" in capsys.readouterr().err
    finally:
        node.kill_all()


NO_RACK = "the loss of a rack is not judged: broker.rack was not told of every broker"


def keytool(command: str, *words: str | Path) -> str:
    """What keytool says; the last word is the store."""
    *options, store = map(str, words)
    asked = ["keytool", command, *options, "-keystore", store, "-storepass", "secret", "-storetype", "PKCS12"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout
