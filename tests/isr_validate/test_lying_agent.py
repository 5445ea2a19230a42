"""Agents that lie in the JVMs of real brokers: each lie is rejected, by the line and by what is wrong with it.

The agent is the product's but for one call in its writer (`lying_agent/`). Without these tests it could be that a lie
is only noticed in a trace that was recorded when all was well.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import isr_kafka.node
from insync_cli.main import main
from isr_kafka.system import SOURCES

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.sockets, pytest.mark.processes, pytest.mark.timeout(600)]

LIES = Path(__file__).parent / "lying_agent"
HONEST = "String thread = quote(Thread.currentThread().getName());"
LYING = f"more = Lie.told(what, more);\n    if (more == null) {{\n      return;\n    }}\n    {HONEST}"


@pytest.fixture
def lying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent that asks `Lie` what to write, in place of ours; a folder for what comes of it."""
    sources = tmp_path / "src"
    shutil.copytree(SOURCES, sources)
    shutil.copytree(LIES, sources / "trace", dirs_exist_ok=True)
    writer = sources / "trace" / "insync" / "trace" / "Trace.java"
    text = writer.read_text(encoding="utf-8")
    assert text.count(HONEST) == 1
    writer.write_text(text.replace(HONEST, LYING), encoding="utf-8")
    monkeypatch.setattr(isr_kafka.node, "SOURCES", sources)
    return tmp_path / "out"


def verdict_of(lie: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The exit code of a run in which a leader is cut off and another is elected, and why its trace is rejected."""
    monkeypatch.setenv("INSYNC_TEST_LIE", lie)
    command = ["experiment", "acks-1", "--cell", "acks=all", "--system", "apache-kafka=4.4.0", "--agent"]
    command += ["--network", "proxies", "--no-model", "--runs", "1", "--per-second", "40", "--out", str(out), "--quiet"]
    code = main(command)
    run = json.loads((out / "experiment.json").read_text(encoding="utf-8"))["cells"][0]["runs"][-1]
    assert run["valid"], run["invalid"]
    return code, run["traces"]["why"]


@pytest.mark.parametrize(
    ("lie", "rejection"),
    [
        ("raised-watermark", r", watermark: the step leads elsewhere in the model"),
        ("forged-end", r", fetched: the step leads elsewhere in the model"),
        # What comes first: its follower appends, or its leader takes a fetch from where the log ends now.
        (
            "dropped-truncation",
            r", copies: a batch at \d+ is appended to a log that ends at \d+"
            r"|, fetched: broker \d fetches from \d+, where its log has never ended",
        ),
    ],
)
def test_a_lie_in_a_broker_is_rejected(lying: Path, monkeypatch: pytest.MonkeyPatch, lie: str, rejection: str) -> None:
    code, why = verdict_of(lie, lying, monkeypatch)
    assert code == 12
    assert re.search(rejection, why), why


def test_the_same_agent_is_accepted_where_it_does_not_lie(lying: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict_of("none", lying, monkeypatch) == (0, "")
