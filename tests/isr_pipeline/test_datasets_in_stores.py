"""Histories, sweeps, traces and logs of brokers in a store, by verbs without Spark; what is said of each mistake.

Without these, only paths of this machine might be read and written, or a mistake with a bucket end in a traceback.
test_spark_datasets_apart.py has the same on a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import s3
from tests.support.broker_traces import simulate_traced, write_trace
from tests.support.planted_anomalies import PLANTED

from insync_cli.main import main
from isr_pipeline.locations import Location
from isr_pipeline.trace_replays import validate_folder

pytestmark = [pytest.mark.processes, pytest.mark.sockets]

LOST = "\n".join(PLANTED[2][1]().lines)
SMALL = ["--replicas", "2", "--records", "1", "--log", "1", "--epochs", "1", "--isr-changes", "1", "--crashes", "0"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket of a real server, to which `format` gives a path."""
    with s3.server(tmp_path_factory.mktemp("s3")) as made:
        yield made


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said on stderr, which is one line without a secret."""
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert s3.SECRET not in said
    return said


def test_a_history_in_a_store_is_judged_as_here(url: str, tmp_path: Path) -> None:
    here, there = tmp_path / "history.jsonl", Location.of(url.format("histories/history.jsonl"))
    here.write_text(LOST, encoding="utf-8")
    there.put(LOST.encode())
    assert main(["history", str(here), "--quiet"]) == main(["history", url.format(there.path), "--quiet"]) == 12
    ours, theirs = (
        json.loads((tmp_path / "history.json").read_text()),
        json.loads((Location.of(url.format("histories")) / "history.json").read()),
    )
    assert theirs["history"] == f"s3://{s3.BUCKET}/histories/history.jsonl"
    assert s3.SECRET not in json.dumps(theirs)
    assert {**theirs, "history": "", "command": ""} == {**ours, "history": "", "command": ""}
    assert any(line["witnesses"] for line in theirs["anomalies"])


def test_traces_and_their_replay_are_the_same_files(url: str, tmp_path: Path) -> None:
    asked = ["traces", "kip-966", *SMALL, "--count", "6", "--steps", "10", "--parts", "2", "--replay", "--quiet"]
    there = Location.of(url.format("traces"))
    (there / "traces" / "part-00009" / "of-before.itf.json").put(b"{}")
    assert main([*asked, "--out", str(tmp_path)]) == main([*asked, "--out", url.format("traces")]) == 0
    names = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file())
    assert len(names) == 6 + 2 + 2
    assert list(there.files()) == names
    assert all((there / name).read() == (tmp_path / name).read_bytes() for name in names)


def test_a_matrix_in_a_store_is_not_replaced_by_a_part_of_it(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["matrix", "--design", "kafka-0.8", "--workers", "1", "--quiet", "--max-states", "2000", "--fault"]
    main([*small, "crash", "--out", str(tmp_path)])
    main([*small, "crash", "--out", url.format("matrix")])
    there = Location.of(url.format("matrix"))
    assert list(there.files()) == sorted(str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file())
    made, here = (json.loads(text) for text in ((there / "matrix.json").read(), (tmp_path / "matrix.json").read_text()))
    for cell in (*made["cells"], *here["cells"]):
        del cell["seconds"]
    assert made == here
    capsys.readouterr()
    assert main([*small, "none", "--out", url.format("matrix")]) == 64
    assert "that this run would not make, and would be replaced" in sentence(capsys)


def test_logs_of_brokers_in_a_store_are_validated(url: str, tmp_path: Path) -> None:
    write_trace(tmp_path, simulate_traced(1))
    there = Location.of(url.format("logs"))
    for file in tmp_path.iterdir():
        (there / file.name).put(file.read_bytes())
    assert main(["validate", url.format("logs"), "--quiet"]) == main(["validate", str(tmp_path), "--quiet"]) == 0
    here, away = validate_folder(str(tmp_path)), validate_folder(url.format("logs"))
    assert here["verdict"] == "accepted"
    assert {**away, "folder": ""} == {**here, "folder": ""}
    assert away["folder"] == f"s3://{s3.BUCKET}/logs"


def test_no_logs_are_not_accepted(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = url.replace(f"@{s3.BUCKET}/", "@elsewhere/").format("logs")
    for folder, why in ((str(tmp_path), "no trace"), (url.format("none"), "no trace"), (nowhere, "no such bucket")):
        row = validate_folder(folder)
        assert row["verdict"] == "bad"
        assert why in str(row["why"])
    assert main(["validate", url.format("none")]) == main(["validate", nowhere]) == 65
    assert s3.SECRET not in capsys.readouterr().err


CREDENTIALS = "its credentials were not found or not accepted, or do not allow this"
MISTAKES: dict[str, tuple[str, str, str]] = {
    "a bucket that is not there": (f"@{s3.BUCKET}/", "@elsewhere/", "there is no such bucket"),
    "the wrong secret": (s3.SECRET, "wrong", CREDENTIALS),
    "no credentials": (f"{s3.KEY}:{s3.SECRET}@", "", CREDENTIALS),
    "a port without a server": ("endpoint_override=127.0.0.1:", "endpoint_override=127.0.0.2:", "nobody answers"),
}


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize("mistake", [*list(MISTAKES)[:3], pytest.param(list(MISTAKES)[3], marks=pytest.mark.slow)])
def test_a_mistake_is_one_sentence(mistake: str, verb: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, after, says = MISTAKES[mistake]
    given = url.replace(before, after).format("folder/file.jsonl")
    asked = ["history", given] if verb == "read" else ["traces", "kip-966", *SMALL, "--out", given]
    assert main([*asked, "--quiet"]) == (65 if verb == "read" else 64)
    assert says in sentence(capsys)
