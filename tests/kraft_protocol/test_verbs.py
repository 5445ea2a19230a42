"""The verbs that explore, tell and export work for a quorum, and say nothing of partitions.

Without it what is known of a partition would be said of a design that has none.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.partition_words import PARTITION

from insync_cli.exits import Exit
from insync_cli.main import main

pytestmark = pytest.mark.explores

CHECK = "check kraft-votes-again --voters 3 --epochs 1 --property one-leader-per-epoch --out run"
TRACE = "run/one-leader-per-epoch.itf.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the counterexample of a design."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path := tmp_path_factory.mktemp("quorum"))
        assert main(CHECK.split()) == 12
    return path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (f"show {TRACE}", 0),
        (f"show {TRACE} --html page.html", 0),
        (f"explain {TRACE}", 0),
        (f"minimise {TRACE} --out shorter.itf.json", 0),
        ("sample kraft --count 2", 0),
        ("export kraft --tla tla", 0),
        ("designs kraft", 0),
        ("check kraft", 23),
        ("check kraft --epochs 1", 21),
    ],
)
def test_a_verb_says_nothing_of_partitions(
    command: str, code: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(command.split()) == code
    said = capsys.readouterr().out
    assert said
    assert not PARTITION.findall(said)


def test_a_schedule_is_compared_under_no_design_of_another_family(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(f"show {TRACE} --html other.html --against kip-966".split()) == Exit.USAGE
    assert "it is of another family than kraft-votes-again" in capsys.readouterr().err
    assert not Path("other.html").exists()
    assert main(f"show {TRACE} --html other.html --against kraft".split()) == Exit.HOLDS


@pytest.mark.parametrize("design", ["kraft", "kraft-controllers"])
def test_what_is_not_proved_points_to_what_is(design: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", design]) == Exit.USAGE
    assert "insync prove abstract-quorum" in capsys.readouterr().err


def test_designs_of_both_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["designs"]) == 0
    said = capsys.readouterr().out
    assert said.index("kip-966: ") < said.index("kraft: Today's KRaft") < said.index("kafka-14077: ")


def test_the_graph_is_by_who_leads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "kraft", "--epochs", "1", "--writes", "1"]) == 0
    graph = capsys.readouterr().out
    assert "v1 leads" in graph
    assert "nobody leads" in graph
    assert "ISR" not in graph


def test_the_graph_of_a_quorum_without_roles_is_by_who_leads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "abstract-quorum", "--voters", "2", "--terms", "1"]) == 0
    labels = re.findall(r'label="(\w+ leads)', capsys.readouterr().out)
    assert labels == ["nobody leads", "v1 leads", "v2 leads"]


def test_a_lost_disk_is_answered_by_directory_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--lost-disks", "1", "--property", "quorum-only-grows", "--out", "run"]
    assert main(["check", "abstract-quorum", *words]) == 12
    said = capsys.readouterr().out
    assert "abstract-quorum --dynamic on keeps the promise" in said
    assert "kafka-storage.sh format" in said


def test_a_controller_of_a_quorum_acts_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "kraft-controllers", "--count", "1", "--out", "run"]) == 0
    capsys.readouterr()
    (trace,) = Path("run").glob("*.itf.json")
    assert main(["show", str(trace), "--mermaid"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"participant (\w+)", said) == ["r1", "r2", "v1", "v2", "v3"]
    assert re.search(r"(over|v\d->>v\d|v\d->>r\d).*: T\d+ controller", said)
    assert main(["show", "minimum-of-one", "--mermaid"]) == 0
    assert "participant controller" in capsys.readouterr().out, "the one of a partition has no other name"


def test_the_designs_are_listed_by_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["designs"]) == 0
    partition, _, rest = capsys.readouterr().out.partition("\nVoters of a quorum\n")
    quorum, _, controllers = rest.partition("\nControllers on a quorum\n")
    assert partition.startswith("Replicas of a partition\n")
    assert PARTITION.findall(partition)
    assert not PARTITION.findall(quorum)
    assert "\n  --voters" in quorum
    assert "\nkraft-controllers: " in controllers


EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.itf.json"))


@pytest.mark.parametrize("trace", EXAMPLES, ids=lambda path: path.name)
def test_a_trace_of_the_docs_is_of_the_model_as_it_is(trace: Path) -> None:
    assert main(["explain", str(trace)]) == 0


def test_the_traces_of_a_quorum_are_not_followed_on_a_partitions_cores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["traces", "kraft", "--count", "2", "--replay", "--out", str(tmp_path / "traces")]) == 65
    assert "nor the quorum" in capsys.readouterr().err
    assert not (tmp_path / "traces").exists()


def test_no_late_request_where_a_voter_may_have_another_disk(capsys: pytest.CaptureFixture[str]) -> None:
    """Its request would have the directory of its sender as it is when it arrives."""
    given = ["check", "kraft-late-requests", "--voters", "2", "--epochs", "1", "--log", "1", "--writes", "0", "--quiet"]
    assert main([*given, "--lost-disks", "1", "--dynamic", "on"]) == Exit.USAGE
    assert "a request that is late does not say which disk sent it" in capsys.readouterr().err
