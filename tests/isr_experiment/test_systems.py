"""Systems under test besides our own broker: what is read of Apache Kafka, how its nodes start, what it is spared.

Without these, an experiment on Apache Kafka could watch the wrong partition, cut the wrong links or call a crash an
orderly end, and `--system` could start something else than was asked for.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import cast

import attrs
import pytest
from tests.insync_cli.test_cluster import started, topics, wait_for

from insync_cli.main import main
from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import batch_around
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.meta_properties import Claim, claim
from isr_broker.wire.protocol import API_VERSIONS, ask
from isr_cluster.identity import OtherData, cluster_of
from isr_cluster.kafka import KafkaProcesses, archive, node_settings
from isr_cluster.kafka_metadata import KafkaDecisions, PartitionDecision
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Mishap, System
from isr_experiment.campaign import lacking, stands
from isr_experiment.catalogue import EXPERIMENTS
from isr_experiment.network import CLIENTS, source_of
from isr_experiment.power import durable
from isr_experiment.systems import OURS, ApacheKafka, SystemUnderTest
from isr_kafka import Unavailable
from isr_kafka.node import NodeFiles, new_id, node_files

FILES = NodeFiles(release="4.4.0", folder=Path("/nowhere"), program="java", path="kafka.jar", noting=True)
KAFKA = ApacheKafka(name="Apache Kafka 4.4.0", files=FILES)

# What its controller has decided

TOPIC_ID, OTHER_ID = bytes(range(16)), bytes(16)


def number(n: int) -> bytes:
    return n.to_bytes(4, "big", signed=True)


def numbers(*ns: int) -> bytes:
    return bytes([len(ns) + 1]) + b"".join(map(number, ns))


def tagged(**fields: bytes) -> bytes:
    told = sorted((int(name[1:]), value) for name, value in fields.items())
    return bytes([len(told)]) + b"".join(bytes([tag, len(value)]) + value for tag, value in told)


def topic_record(name: bytes, topic: bytes) -> bytes:
    return b"\x01\x02\x00" + bytes([len(name) + 1]) + name + topic + b"\x00"


def partition_record(topic: bytes, *, leader: int, epoch: int, isr: tuple[int, ...]) -> bytes:
    replicas = numbers(2, 3, 4) + numbers(*isr) + numbers() + numbers()
    directories = b"\x04" + bytes(48)
    return (
        b"\x01\x03\x02"
        + number(0)
        + topic
        + replicas
        + b"".join(map(number, (leader, epoch, 0)))
        + directories
        + b"\x00"
    )


def change_record(topic: bytes, **fields: bytes) -> bytes:
    return b"\x01\x05\x02" + number(0) + topic + tagged(**fields)


def signed(n: int) -> bytes:
    """Of variable size, in zigzag."""
    n, data = n << 1 ^ n >> 31, bytearray()
    while n > 0x7F:
        data.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*data, n])


def record(value: bytes) -> bytes:
    body = b"\x00" + signed(0) + signed(0) + signed(-1) + signed(len(value)) + value + signed(0)
    return signed(len(body)) + body


def log_of(*values: bytes) -> bytes:
    return b"".join(batch_around(record(value)) for value in values)


def test_decisions_about_the_partition_and_no_other_are_read_of_the_metadata_log() -> None:
    data = log_of(
        topic_record(b"other", OTHER_ID),
        topic_record(b"t", TOPIC_ID),
        partition_record(OTHER_ID, leader=4, epoch=9, isr=(4,)),
        partition_record(TOPIC_ID, leader=2, epoch=0, isr=(2, 3, 4)),
        change_record(TOPIC_ID, t0=numbers(4, 2)),
        change_record(OTHER_ID, t1=number(3)),
        change_record(TOPIC_ID, t0=numbers(4), t6=numbers(2, 3)),
        change_record(TOPIC_ID, t1=number(-1), t5=b"\x00"),
        change_record(TOPIC_ID, t1=number(-1)),
        change_record(TOPIC_ID, t1=number(4), t6=numbers()),
    )
    told: list[tuple[int | None, int, tuple[int, ...], tuple[int, ...]]] = [
        (2, 0, (2, 3, 4), ()),
        (2, 0, (2, 4), ()),
        (2, 0, (4,), (2, 3)),
        (None, 1, (4,), (2, 3)),
        (None, 2, (4,), (2, 3)),
        (4, 3, (4,), ()),
    ]
    wanted = [PartitionDecision(*one, version, (), (2, 3, 4)) for version, one in enumerate(told)]
    assert KafkaDecisions(TopicPartition("t", 0)).take(data) == (wanted, len(data))
    piecewise, found, done = KafkaDecisions(TopicPartition("t", 0)), list[PartitionDecision](), 0
    for end in range(0, len(data) + 1, 7):
        more, size = piecewise.take(data[done:end])
        found, done = found + more, done + size
    assert found + piecewise.take(data[done:])[0] == wanted, "a torn end is left for the next look"


# Whom a link is between


@pytest.mark.parametrize(
    ("client", "node"),
    [
        ("broker-3-fetcher-0", 3),
        ("raft-client-4", 4),
        ("2", 2),
        ("rdkafka", CLIENTS),
        ("raft-client-", CLIENTS),
        ("", CLIENTS),
    ],
)
def test_connections_of_apache_kafka_s_nodes_are_known_by_their_client_ids(client: str, node: int) -> None:
    assert source_of(ask(API_VERSIONS, 3, 1, client, {})) == node


def test_only_the_controller_s_node_has_its_listener_and_everybody_finds_it_behind_its_proxy() -> None:
    controller = ((HOST, 1001), (HOST, 2001))
    one = node_settings(1, (HOST, 1), (HOST, 11), controller)
    two = node_settings(2, (HOST, 2), (HOST, 12), controller)
    assert one["listeners"] == f"PLAINTEXT://{HOST}:1,CONTROLLER://{HOST}:1001"
    assert one["advertised.listeners"] == f"PLAINTEXT://{HOST}:11,CONTROLLER://{HOST}:2001"
    assert (two["listeners"], two["advertised.listeners"]) == (f"PLAINTEXT://{HOST}:2", f"PLAINTEXT://{HOST}:12")
    assert one["controller.quorum.voters"] == two["controller.quorum.voters"] == f"1@{HOST}:2001"
    assert (one["process.roles"], two["process.roles"]) == ("broker,controller", "broker")


# Which cells


def cells_on(system: SystemUnderTest, name: str) -> list[str]:
    left_out = lacking(EXPERIMENTS[name], system)
    return [c.name for c in EXPERIMENTS[name].cells(0) if c.name not in left_out and stands(c, left_out)]


def test_apache_kafka_is_spared_designs_that_it_has_not_and_ours_is_spared_nothing() -> None:
    assert cells_on(OURS, "quick") == ["kafka-0.8", "kip-966, min 2"]
    assert cells_on(KAFKA, "quick") == ["kip-966, settings of 2013", "kip-966, min 2"]
    assert cells_on(KAFKA, "planted-bug") == ["kip-966, the last member first"]
    assert cells_on(KAFKA, "last-replica-standing") == ["kraft-3.5, min 2", "kip-966, min 2"]
    assert lacking(EXPERIMENTS["jepsen-2013"], KAFKA) == {
        "kafka-0.8": "Apache Kafka 4.4.0 has not the design kafka-0.8",
        "kip-497, min 2": "Apache Kafka 4.4.0 has not the design kip-497",
    }
    assert not any(lacking(experiment, OURS) for experiment in EXPERIMENTS.values())


# Processes


@attrs.define
class Scripted(System):
    """A shell in place of each broker."""

    script: str = "exec sleep 60"

    def command(self, broker: int) -> list[str]:
        return ["sh", "-c", self.script]

    def serves(self, broker: int) -> bool:
        return False


class JvmLike(KafkaProcesses):
    """A shell that ends as a JVM does."""

    def command(self, broker: int) -> list[str]:
        return ["sh", "-c", "trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done"]


@pytest.mark.processes
def test_a_start_does_not_wait_and_an_end_before_it_serves_is_told_with_the_exception(tmp_path: Path) -> None:
    system = Scripted(root=tmp_path, ports={1: 1}, script="exec sleep 60")
    began = time.monotonic()
    system.start(1)
    assert time.monotonic() - began < 5
    assert system.early_exits() == {}
    assert system.kill(1)
    system.script = "echo out of order; exit 3"
    system.start(1)
    with pytest.raises(Mishap, match="broker 1 did not start: out of order"):
        system.awaits(1)
    said = [
        "starting",
        "ERROR fatal",
        "org.apache.kafka.common.config.ConfigException: Invalid value x",
        "\tat a.Exception.b",
    ]
    jvm = JvmLike(root=tmp_path, ports={1: 1}, files=FILES, controller=((HOST, 2), (HOST, 2)))
    assert jvm.reason(said) == said[2]


@pytest.mark.processes
def test_the_orderly_end_of_a_jvm_is_one_and_a_kill_is_not(tmp_path: Path) -> None:
    told: list[str] = []
    jvm = JvmLike(root=tmp_path, ports={1: 1}, tell=told.append, files=FILES, controller=((HOST, 2), (HOST, 2)))
    for number_, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -9)):
        told.clear()
        jvm.start(1)
        while not told:
            time.sleep(0.01)
        assert jvm.stop(1, number_) == code


def test_a_folder_of_another_system_is_refused(tmp_path: Path) -> None:
    for broker in (1, 2, 3):
        claim(RealDisk(tmp_path / str(broker)), Claim(broker, "ours"))
    assert cluster_of(tmp_path, 3) == "ours"
    with pytest.raises(OtherData, match="holds data of insync's own broker"):
        cluster_of(tmp_path, 3, ours=False)
    for broker in (1, 2, 3):
        theirs = f"cluster.id=ours\nnode.id={broker}\ndirectory.id={new_id()}\nversion=1\n"
        (tmp_path / str(broker) / "meta.properties").write_text(theirs)
    assert cluster_of(tmp_path, 3, ours=False) == "ours"
    with pytest.raises(OtherData, match="holds data of Apache Kafka"):
        cluster_of(tmp_path, 3)


def test_ids_are_as_kafka_makes_them() -> None:
    ids = {new_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(word) == 22 and not word.startswith("-") for word in ids)


# The command line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--system", "apache-kafak"], "there is no system 'apache-kafak'; did you mean 'apache-kafka'?"),
        (["--system", "apache-kafka="], "there is no system 'apache-kafka='"),
        (["--system", "insync=1"], "there is no system 'insync=1'"),
        (["--system", "apache-kafka=4.4.1"], "Kafka 4.4.1 cannot be started here; did you mean '4.4.0'?"),
        (["--system", "apache-kafka=3.9.1"], "Kafka 3.9.1 cannot be started here"),
        (["--kafka-home", "."], "--kafka-home goes with --system apache-kafka"),
        (["--keep-topic"], "--keep-topic goes with --bootstrap"),
        (["--bootstrap", "127.0.0.1:1"], "--bootstrap takes no experiment"),
    ],
)
def test_wrong_usage_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["experiment", "quick", "--out", str(tmp_path / "out"), *arguments]) == 64
    said = capsys.readouterr().err
    assert said.startswith(f"insync: {sentence}")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_another_broker_writes_no_trace_and_a_cell_may_be_nobody_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up = ["cluster", "up", "--system", "apache-kafka", "--data", str(tmp_path / "d"), "--trace", str(tmp_path / "t")]
    assert main(up) == 64
    assert "--trace goes with --system insync" in capsys.readouterr().err


@pytest.mark.sockets
def test_nobody_at_the_bootstrap_address_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "--bootstrap", f"{HOST}:1", "--out", str(tmp_path)]) == 64
    assert capsys.readouterr().err.startswith(f"insync: no broker answers at {HOST}:1: ")


@pytest.mark.parametrize("system", ["insync", "a.toml"])
def test_the_agent_is_for_apache_kafka(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "quick", "--system", system, "--agent"]) == 64
    assert "--agent goes with --system apache-kafka" in capsys.readouterr().err


# Apache Kafka itself


@pytest.fixture(scope="module")
def newest() -> NodeFiles:
    """The newest release, quick to start; a visible skip where it cannot be had, a failure under CI."""
    try:
        files = [node_files(noting=noting) for noting in (False, True)]
        for one in files:
            archive(one)
        return files[0]
    except Unavailable as problem:
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{problem}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(str(problem))


def performed(out: Path, *arguments: str) -> dict[str, object]:
    code = main(["experiment", *arguments, "--system", "apache-kafka", "--out", str(out), "--no-model", "--plain"])
    found: dict[str, object] = json.loads((out / "experiment.json").read_text())
    assert code == 0, found["verdict"]
    assert found["system"] == f"Apache Kafka {node_files().release}"
    return found


@pytest.mark.kafka
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
@pytest.mark.usefixtures("newest")
def test_apache_kafka_loses_with_the_settings_of_2013_and_nothing_with_safe_ones(tmp_path: Path) -> None:
    found = performed(tmp_path, "quick", "--network", "proxies")
    lost = {cell["name"]: cell["lost"] for cell in found["cells"]}  # type: ignore[attr-defined]
    assert lost["kip-966, settings of 2013"] > 20
    assert lost["kip-966, min 2"] == 0
    assert found["left_out"] == {"kafka-0.8": f"{found['system']} has not the design kafka-0.8"}


@pytest.mark.kafka
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
@pytest.mark.usefixtures("newest")
def test_a_power_failure_takes_from_apache_kafka_what_it_has_not_flushed_and_no_more(tmp_path: Path) -> None:
    cells = ("all at once, no flush", "all at once, each batch flushed")
    found = performed(tmp_path, "power-loss", *(word for cell in cells for word in ("--cell", cell)), "--keep")
    lost = {cell["name"]: cell["lost"] for cell in found["cells"]}  # type: ignore[attr-defined]
    assert lost[cells[0]] > 20
    assert lost[cells[1]] == 0
    noted = [durable(path) for path in tmp_path.glob("all-at-once-each-batch-flushed-*/flushed-[234]")]
    assert len(noted) == 3
    assert all(any(name.startswith("t-0/") and size > 0 for name, size in one.items()) for one in noted)


@pytest.mark.kafka
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
@pytest.mark.usefixtures("newest")
def test_a_cluster_of_apache_kafka_serves_topics_and_clients_and_ends_in_order(tmp_path: Path) -> None:
    port = free_ports(4)[0]
    up = ["cluster", "up", "--system", "apache-kafka", "--data", str(tmp_path / "d"), "--base-port", str(port)]
    process = started(*up, "--json", str(tmp_path / "up.json"))
    try:
        report = wait_for(tmp_path / "up.json", process)
        assert report["bootstrap"] == ",".join(f"{HOST}:{port + n}" for n in range(3))
        assert topics(port, "--create", "orders", "--partitions", "2", "--replicas", "3") == 0
        out = tmp_path / "observed"
        seen = ["experiment", "--bootstrap", f"{HOST}:{port}", "--observe-seconds", "4", "--out", str(out)]
        assert main(seen) == 0
        told = json.loads((out / "observed.json").read_text())
        assert (told["replicas"], told["whole"]["lost"], told["complete"]) == (3, 0, True)
        assert told["whole"]["acknowledged"] > 100
        assert main(["history", str(out / "history.jsonl"), "--plain", "--json", str(tmp_path / "h.json")]) == 0
        process.send_signal(signal.SIGINT)
        said, wrong = process.communicate(timeout=120)
        assert (process.returncode, wrong) == (0, "")
        assert "every broker has stopped in order" in said
    finally:
        process.kill()
        process.wait()


@pytest.mark.kafka
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
@pytest.mark.usefixtures("newest")
def test_what_the_agent_writes_in_a_run_of_apache_kafka_is_a_run_of_the_model(tmp_path: Path) -> None:
    """Without this the recorded trace of tests/isr_validate could be of an agent that no longer writes."""
    chosen = ("--cell", "acks=all", "--agent", "--keep", "--per-second", "20", "--network", "proxies")
    found = performed(tmp_path, "acks-1", *chosen)
    [cell] = cast("list[dict[str, list[dict[str, dict[str, int]]]]]", found["cells"])
    assert cell["runs"]
    assert all(run["traces"]["accepted"] and run["traces"]["events"] > 300 for run in cell["runs"])
    for folder in tmp_path.glob("*/trace"):
        assert main(["validate", str(folder), "--level", "client", "--plain"]) == 0
