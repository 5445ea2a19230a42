"""Spark Connect: a client without Java, whose tasks run where only a server of Spark is.

Without these, a verb could reach for Spark's own Java process, which the client of Spark Connect does not have.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest
from tests.support import s3
from tests.support.apart import bare
from tests.support.planted_anomalies import PLANTED
from tests.support.sparks import SPARK, environment, found_in, require_spark

from insync_cli.exits import Exit
from isr_check import native
from isr_cluster.ports import free_ports
from isr_lang import Instance
from isr_pipeline.explore import QUICKLY
from isr_pipeline.locations import Location
from isr_protocol.by_name import DESIGNS

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]
INSYNC = str(Path(sys.executable).with_name("insync"))


@attrs.frozen
class Server:
    """Where the server of Spark Connect is, and a bucket of a store."""

    master: str
    url: str

    def run(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """A verb by a client that finds no Java."""
        has = {"PATH": str(folder), "HOME": str(folder)}
        asked = [INSYNC, *words, "--engine", "spark", "--master", self.master]
        return subprocess.run(asked, cwd=folder, env=has, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require_spark()
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'pyspark[connect]'")
    folder = tmp_path_factory.mktemp("connect")
    (port,) = free_ports(1)
    settings = {"spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1"}
    settings |= {"spark.ui.enabled": "false", "spark.local.dir": folder / "local"}
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    asked = ["--class", main, "--master", "local[2]", "--driver-java-options", QUICKLY, *given, "spark-internal"]
    command = [str(SPARK / "bin" / "spark-submit"), *asked]
    with ExitStack() as closing:
        url, python = closing.enter_context(s3.server(folder)), closing.enter_context(bare())
        log = folder / "server.log"
        with log.open("wb") as said:
            has = {**environment(), "PYSPARK_PYTHON": python}
            process = subprocess.Popen(command, cwd=folder, env=has, stdout=said, stderr=said)
        closing.callback(process.wait)
        closing.callback(process.terminate)
        found_in(log, "Spark Connect server started")
        yield Server(f"sc://127.0.0.1:{port}", url)


def test_an_exploration(server: Server, tmp_path: Path) -> None:
    asked = "kip-966 --replicas 2 --isr-changes 1 --partitions 2 --handover 230 --quiet"
    ended = server.run(tmp_path, "check", *asked.split(), "--store", server.url.format("run"), "--out", "out")
    assert ended.returncode == Exit.TOO_SMALL, ended.stderr
    said = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    found = native.explore(Instance(DESIGNS["kip-966"], said["bounds"]))
    assert (said["stats"]["distinct"], said["stats"]["generated"]) == (found.distinct, found.generated)
    assert said["coverage"]["actions"] == found.steps_by_action
    assert ended.stderr == ""


def test_a_history(server: Server, tmp_path: Path) -> None:
    place = Location.of(server.url.format("history/one.jsonl"))
    place.put("\n".join(PLANTED[2][1]().lines).encode())
    ended = server.run(
        tmp_path, "history", server.url.format("history/one.jsonl"), "--out", server.url.format("tables"), "--quiet"
    )
    assert ended.returncode == 12, ended.stderr
    said = json.loads(Location.of(server.url.format("history/one.json")).read())
    assert {line["name"] for line in said["anomalies"] if line["verdict"] == "VIOLATED"} == {
        "lost-write",
        "unseen",
        "offset-gap",
    }
