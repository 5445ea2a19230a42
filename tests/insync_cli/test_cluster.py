"""`insync cluster`, `broker` and `topics`: what an operator sees, from the first start to the orderly end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest
from tests.support.clusters import Cluster
from tests.support.quorums import quorum_status

from insync_cli.clusters.cluster import defaults
from insync_cli.main import main
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.meta_properties import Claim, NotOurs, claim, read_claim
from isr_cluster.ports import HOST, free_ports

pytestmark = [pytest.mark.processes, pytest.mark.sockets]

TOP = Path(__file__).resolve().parents[2]
QUICK = [f"--set={name}={value}" for name, value in (("broker.heartbeat.interval.ms", 100),)]


def started(*arguments: str) -> subprocess.Popen[str]:
    roots = ("spec", "engines", "impl", "clusters", "counterexamples", "insync")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(TOP / root) for root in roots)}
    command = [sys.executable, "-m", "insync_cli.main", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(file: Path, process: subprocess.Popen[str]) -> dict[str, object]:
    end = time.monotonic() + 60
    while True:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        try:
            found: dict[str, object] = json.loads(file.read_text())
            return found
        except (OSError, ValueError):
            time.sleep(0.05)


def topics(port: int, *arguments: str) -> int:
    return main(["topics", "--bootstrap", f"{HOST}:{port}", *arguments])


def created(port: int) -> None:
    """Create the topic, once all three brokers have a session."""
    end = time.monotonic() + 30
    while topics(port, "--create", "orders", "--partitions", "2", "--replicas", "3") != 0:
        assert time.monotonic() < end
        time.sleep(0.2)


def test_a_cluster_comes_up_shows_its_topics_and_stops_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, file, port = tmp_path / "data", tmp_path / "up.json", free_ports(3)[0]
    up = ["cluster", "up", "--data", str(data), "--base-port", str(port), "--json", str(file), *QUICK]
    process = started(*up)
    report = wait_for(file, process)
    assert report["bootstrap"] == ",".join(f"{HOST}:{port + n}" for n in range(3))
    created(port)
    said = capsys.readouterr().out
    assert said.splitlines()[-3].split()[:4] == ["orders", "0", "1", "0"]
    assert "1 topic, 2 partitions: 0 without a leader" in said
    assert topics(port + 1, "--json", "-", "--topic", "orders") == 0
    found = json.loads(capsys.readouterr().out)
    assert [p["partition"] for p in found["partitions"]] == [0, 1]
    assert all(p["leader"] in p["isr"] and sorted(p["replicas"]) == [1, 2, 3] for p in found["partitions"])
    assert topics(port, "--topic", "order") == 64
    assert "did you mean 'orders'?" in capsys.readouterr().err
    assert topics(port, "--create", "orders") == 64
    assert "TOPIC_ALREADY_EXISTS" in capsys.readouterr().err
    assert topics(port, "--create", "other", "--config", "min.insync.replicas=two") == 64
    assert "topic other was not created: INVALID_CONFIG" in capsys.readouterr().err
    assert topics(port, "--delete", "order") == 64
    assert "UNKNOWN_TOPIC_OR_PARTITION" in capsys.readouterr().err
    assert main(["cluster", "up", "--data", str(data), "--base-port", str(port)]) == 64
    assert f"port {port}, for broker 1, is in use" in capsys.readouterr().err
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, err) == (0, "")
    lines = out.splitlines()
    assert lines[-1] == "every broker has stopped in order"
    (rights,) = (line for line in lines if line.startswith("broker 1: whoever connects"))
    assert f"{HOST}:{port} (PLAINTEXT) can read, write and delete everything; to" in rights
    assert "(BROKERS) can read, write and delete everything, act as a broker; to" in rights
    assert rights.endswith("(CONTROLLER) can change in-sync sets and fence brokers")
    ends = [line[9:] for line in lines if line.endswith("stopped in order")]
    assert ends[:3] == [f"broker {n}: stopped in order" for n in (3, 2, 1)]
    assert any("becomes_leader: orders-0 on broker 1" in line for line in lines)
    assert all((data / str(n) / ".kafka_cleanshutdown").exists() for n in (1, 2, 3))


def test_topics_show_who_may_lead_next_and_are_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(3) as cluster:
        assert topics(cluster.ports[1], "--create", "t", "--replicas", "3", "--config", "min.insync.replicas=2") == 0
        cluster.in_sync("t")
        for broker in (3, 2):
            cluster.kill(broker)
            cluster.in_sync("t", broker - 1)
        capsys.readouterr()
        cluster.wait(lambda: seen(cluster.ports[1], capsys)["elr"] == [2], "the ELR is shown")
        assert seen(cluster.ports[1], capsys)["isr"] == [1]
        assert topics(cluster.ports[1], "--delete", "t") == 0
        cluster.wait(lambda: topics(cluster.ports[1], "--topic", "t") == 64, "it is gone")


def seen(port: int, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """The first partition, as it is reported."""
    assert topics(port, "--json", "-") == 0
    return cast("list[dict[str, object]]", json.loads(capsys.readouterr().out)["partitions"])[0]


def test_a_killed_broker_is_reported_and_the_exit_code_says_so(tmp_path: Path) -> None:
    file, port = tmp_path / "up.json", free_ports(1)[0]
    arguments = ["--data", str(tmp_path / "data"), "--base-port", str(port), "--json", str(file), "--brokers", "1"]
    process = started("cluster", "up", *arguments)
    brokers = cast("list[dict[str, int]]", wait_for(file, process)["brokers"])
    os.kill(brokers[0]["pid"], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 30
    assert "broker 1 has ended: killed by SIGKILL; running: none" in out
    assert err == "insync: not in order ended broker 1 (-9)\n"


# What cannot be started, in one sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "min.isr=2"], "there is no setting 'min.isr'; did you mean 'min.insync.replicas'?"),
        (["--set", "min.insync.replicas=two"], "min.insync.replicas=two: it must be a whole number"),
        (["--set", "min.insync.replicas"], "--set wants name=value, not 'min.insync.replicas'"),
        (["--brokers", "99"], "--brokers 99 from port 9092 on is too many"),
        (["--set", "listeners=PLAINTEXT://:1"], "listeners is chosen by `cluster up`; `insync broker --set listeners="),
        (["--set", "controller.listener.names=C"], "no listeners are named, so nothing can be said of them"),
        (["--base-prot", "1"], "there is no option --base-prot; did you mean '--base-port'?"),
    ],
)
def test_wrong_usage_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["cluster", "up", "--data", str(tmp_path / "data"), *arguments]) == 64
    said = capsys.readouterr().err
    assert said.startswith("insync: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_a_folder_with_other_data_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(brokers: int = 3) -> str:
        assert main(["cluster", "up", "--data", str(tmp_path), "--brokers", str(brokers)]) == 64
        return capsys.readouterr().err

    (tmp_path / "photos").mkdir()
    assert "holds photos, which is no broker's data" in refused()
    for broker in (1, 2, 3):
        claim(RealDisk(tmp_path / str(broker)), Claim(broker, "ours"))
    assert "holds the data of broker 3, but there are to be 2 brokers" in refused(2)
    (tmp_path / "2" / "meta.properties").write_text("version=1\ncluster.id=theirs\nnode.id=2\n")
    assert "data of several clusters: 1 of ours, 2 of theirs, 3 of ours" in refused()
    (tmp_path / "2" / "meta.properties").write_text("version=1\ncluster.id=ours\nnode.id=3\n")
    assert "2 is the data of broker 3, not of broker 2" in refused()


def test_data_are_claimed_once(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    assert read_claim(disk) is None
    claim(disk, Claim(1, "a"))
    claim(disk, Claim(1, "a"))
    with pytest.raises(NotOurs, match="belongs to the cluster a, not to b"):
        claim(disk, Claim(1, "b"))
    with pytest.raises(NotOurs, match="is that of broker 1, not of broker 2"):
        claim(disk, Claim(2, "a"))


def test_a_broker_refuses_the_data_of_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim(RealDisk(tmp_path), Claim(2, "insync"))
    (port,) = free_ports(1)
    assert main(["broker", "--id", "1", "--port", str(port), "--data", str(tmp_path)]) == 64
    refusal = "insync: the data directory is that of broker 2, not of broker 1: node.id in meta.properties\n"
    assert capsys.readouterr().err == refusal


def test_a_broker_listens_where_it_is_told_to_and_has_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (port,) = free_ports(1)
    start = ["broker", "--port", str(port), "--data", str(tmp_path / "data")]
    assert main([*start, "--id", "1", "--set", "listeners=PLAINTEXT://:1"]) == 64
    assert f"none of them is {HOST}:{port}, as --host and --port say" in capsys.readouterr().err
    assert main([*start, "--id", str(2**31)]) == 64
    assert "it must be from 0 to 2147483647" in capsys.readouterr().err


def test_nobody_at_the_address_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)
    assert topics(port) == 64
    assert f"no broker answers at {HOST}:{port}: connection refused" in capsys.readouterr().err


@pytest.mark.parametrize(("design", "minimum"), [("kafka-0.8", None), ("zookeeper", "2"), ("", "2")])
def test_a_design_without_a_minimum_gets_none(design: str, minimum: str | None) -> None:
    """`min.insync.replicas` came with 0.8.2 (KAFKA-1555): a cluster of `kafka-0.8` is to lose what Kafka lost then."""
    assert defaults(3, design).get("min.insync.replicas") == minimum


def test_a_quorum_of_controllers_comes_up_and_goes_on_without_its_active_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, file, port = tmp_path / "data", tmp_path / "up.json", free_ports(3)[0]
    up = ["cluster", "up", "--data", str(data), "--base-port", str(port), "--json", str(file), "--controllers", "3"]
    process = started(*up, *QUICK)
    report = wait_for(file, process)
    created(port)
    pids = {row["controller"]: row["pid"] for row in cast("list[dict[str, int]]", report["controllers"])}
    places = {row["controller"]: row["listens"] for row in cast("list[dict[str, str]]", report["controllers"])}
    assert sorted(pids) == [101, 102, 103]
    status = quorum_status({int(n): (HOST, int(str(place).rpartition(":")[2])) for n, place in places.items()})
    assert status is not None
    os.kill(pids[status.leader], signal.SIGKILL)
    end = time.monotonic() + 60
    while topics(port, "--create", "after", "--partitions", "1", "--replicas", "3") != 0:
        assert time.monotonic() < end
        time.sleep(0.2)
    capsys.readouterr()
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert f"voter {status.leader} has ended: killed by SIGKILL" in said
    assert process.returncode == 30
    assert (data / "102" / "__cluster_metadata-0").is_dir()
    one = ["cluster", "up", "--data", str(data), "--base-port", str(port)]
    assert main(one) == 64
    assert "holds the data of broker 101, but there are to be 3 brokers" in capsys.readouterr().err


def test_a_quorum_that_cannot_be_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    for arguments, why in (
        (["--controllers", "10"], "--controllers 10 is too many; at most 9"),
        (["--controllers", "3", "--trace", "t"], "--trace is for one controller"),
        (
            ["--controllers", "3", "--system", "other.toml"],
            "--controllers is for brokers of insync and of Apache Kafka",
        ),
    ):
        assert main(["cluster", "up", "--data", data, *arguments]) == 64
        assert why in capsys.readouterr().err
    claim(RealDisk(tmp_path / "data" / "1"), Claim(1, "c"))
    (tmp_path / "data" / "1" / "metadata.log").write_bytes(b"")
    assert main(["cluster", "up", "--data", data, "--controllers", "3"]) == 64
    assert "holds data of a cluster with one controller" in capsys.readouterr().err
