"""run.json: exactly the keys of the schema insync/run/2, and numbers that are those of the engine."""

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import cast

import pytest
from tests.support.models.ticket_desk import CAREFUL

from insync_cli.main import main
from isr_check.engine import Verdict
from isr_check.explorer import explore
from isr_lang import Instance

VERDICTS = list(Verdict)
NULL = type(None)

Shape = type | tuple[type, ...] | dict[str, "Shape"] | list["Shape"]
"""A JSON value: of these types; an object with exactly these keys ('*': any keys); a list of one shape."""

PROPERTY: Shape = {"name": str, "kind": str, "verdict": str, "trace": (str, NULL), "depth": (int, NULL)}
STATS: Shape = {
    "generated": int,
    "distinct": int,
    "depth": int,
    "seconds": float,
    "distinct_per_second": float,
    "peak_rss_bytes": int,
    "collision_policy": str,
    "unreduced": (int, NULL),
    "walks": (int, NULL),
    "estimate": (dict, NULL),
}
ESTIMATE: Shape = {
    "walks": int,
    "meetings": int,
    "once": int,
    "twice": int,
    "new_per_walk": float,
    "new_share": float,
    "least_states": int,
}
RUN: Shape = {
    "schema": str,
    "command": [str],
    "version": str,
    "model_hash": str,
    "design": str,
    "bounds": {"*": (int, str, bool)},
    "engine": str,
    "workers": int,
    "seed": (int, NULL),
    "verdict": str,
    "properties": [PROPERTY],
    "stats": STATS,
    "coverage": {"actions": {"*": int}, "guards": {"*": {"*": [int]}}},
    "room": (dict, NULL),
    "precursor": (dict, NULL),
    "notice": (dict, NULL),
    "slack": {"*": {"*": int}},
    "without_encounter": [str],
    "omissions": [str],
}


def misfits(value: object, shape: Shape, where: str = "run") -> list[str]:
    """Every place where a value is not of the shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        table = cast("dict[str, object]", value)
        if "*" in shape:
            return [m for k, v in table.items() for m in misfits(v, shape["*"], f"{where}.{k}")]
        if list(table) != list(shape):
            return [f"{where} has the keys {list(table)}"]
        return [m for k, v in table.items() for m in misfits(v, shape[k], f"{where}.{k}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [m for v in cast("list[object]", value) for m in misfits(v, shape[0], f"{where}[]")]
    return [] if isinstance(value, shape) else [f"{where} is {value!r}"]


def checked(capsys: pytest.CaptureFixture[str], command: str) -> dict[str, object]:
    main(["check", *command.split(), "--engine", "reference", "--json", "-", "--out", "out"])
    return cast("dict[str, object]", json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    "command",
    ["careful", "hasty --deadlock", "empty", "careful --property everybody-served", "careful --max-states 4"],
)
def test_every_run_has_exactly_the_keys_of_the_schema(
    desk: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run = checked(capsys, command)
    assert not misfits(run, RUN)
    assert run["schema"] == "insync/run/2"
    for line in cast("list[dict[str, object]]", run["properties"]):
        assert line["kind"] in ("always", "sometimes", "eventually")
        assert line["verdict"] in VERDICTS
        assert (line["trace"] is None) is (line["depth"] is None)
    assert json.loads((desk / "out" / "run.json").read_text()) == run


def test_only_walks_have_an_estimate_of_what_they_did_not_meet(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explored, walked = (
        cast("dict[str, object]", checked(capsys, command)["stats"]) for command in ("careful", "careful --simulate 3")
    )
    assert explored["estimate"] is None
    assert not misfits(walked["estimate"], ESTIMATE)


def test_a_missing_or_an_additional_key_is_seen() -> None:
    assert misfits({"name": "x"}, PROPERTY)
    assert misfits({"*": {"a": 1}}, {"*": {"a": str}})


def test_the_numbers_are_those_of_the_engine(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = checked(capsys, "careful --tickets 4 --calls all")
    instance = Instance(CAREFUL, {"tickets": 4, "calls": "all"})
    found = explore(instance)
    stats = cast("dict[str, object]", run["stats"])
    assert (stats["distinct"], stats["generated"], stats["depth"]) == (
        found.distinct,
        found.generated,
        found.depth,
    )
    assert run["bounds"] == {"tickets": 4, "paper_jams": 1, "calls": "all", "rush": 2, "reopen": False}
    assert run["model_hash"] == CAREFUL.model_hash()
    assert (run["engine"], run["workers"], run["version"]) == ("reference", 1, version("insync"))
    assert cast("list[str]", run["command"])[:3] == ["insync", "check", "careful"]
    assert cast("dict[str, object]", run["coverage"])["actions"] == found.steps_by_action
    assert cast("int", stats["peak_rss_bytes"]) > 1_000_000


def test_a_guard_is_counted_when_it_lets_through_and_when_it_refuses(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guards = cast("dict[str, dict[str, object]]", checked(capsys, "careful")["coverage"])["guards"]
    counted = cast("dict[str, dict[str, list[int]]]", guards)["closes"]
    assert list(counted) == ["old.open", "old.served == old.drawn"]
    open_, settled = counted.values()
    assert open_[0] == sum(settled)


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("careful", "HOLDS"),
        ("careful --property never-ahead --property everybody-served", "VIOLATED"),
        ("careful --tickets 2", "HOLDS"),
        ("careful --tickets 2 --property crowd", "VACUOUS"),
        ("careful --tickets 2 --coverage strict", "VACUOUS"),
        ("careful --max-states 5", "BUDGETED"),
        ("hasty", "VIOLATED"),
        ("empty", "VACUOUS"),
    ],
)
def test_the_whole_is_never_stronger_than_its_weakest_line_that_counts(
    desk: Path, capsys: pytest.CaptureFixture[str], command: str, verdict: str
) -> None:
    assert checked(capsys, command)["verdict"] == verdict


def test_a_violation_and_a_witness_have_their_traces(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = checked(capsys, "hasty")
    lines = {str(p["name"]): p for p in cast("list[dict[str, object]]", run["properties"])}
    assert (lines["never-ahead"]["verdict"], lines["never-ahead"]["depth"]) == ("VIOLATED", 1)
    assert (lines["roll-used-up"]["verdict"], lines["roll-used-up"]["depth"]) == ("HOLDS", 2)
    for name in ("never-ahead", "roll-used-up"):
        path = desk / str(lines[name]["trace"])
        assert "states" in json.loads(path.read_text())
        assert main(["show", str(path), "--json", str(desk / "shown.json")]) == 0
        shown = json.loads((desk / "shown.json").read_text())
        assert len(shown["steps"]) == lines[name]["depth"]


def test_the_same_question_is_written_to_the_same_folder(desk: Path) -> None:
    for _ in range(2):
        main(["check", "careful", "--quiet"])
    main(["check", "careful", "--tickets", "2", "--quiet"])
    assert len(list((desk / "runs").iterdir())) == 2
    assert all(re.fullmatch(r"careful-[0-9a-f]{8}", f.name) for f in (desk / "runs").iterdir())


def test_json_goes_to_a_file_beside_the_text(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "careful", "--json", "answer.json"]) == 0
    assert not misfits(json.loads((desk / "answer.json").read_text()), RUN)
    assert "insync check careful: HOLDS" in capsys.readouterr().out


@pytest.mark.processes
def test_the_memory_is_that_of_this_process_and_not_of_the_one_that_started_it() -> None:
    ask = "from insync_cli.runfile import peak_rss; print(peak_rss())"
    starter = f"held = bytearray(400 << 20); import subprocess, sys; subprocess.run([sys.executable, '-c', {ask!r}])"
    said = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True).stdout
    assert 1 << 20 < int(said) < 300 << 20
