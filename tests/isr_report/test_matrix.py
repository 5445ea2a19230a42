"""The guarantees matrix: its cells are the plan's, each has a run file, and its verdicts are those of `check`.

Without these, a cell could show the verdict of other bounds, or of a run that is gone, and designs could look better
than others because their bounds are smaller.
"""

import json
from pathlib import Path
from typing import cast

import attrs
import pytest

from insync_cli.main import main
from insync_cli.options import RunningEach
from insync_cli.review.matrix import exit_code, explored, result_line
from isr_check.engine import Limits, Verdict
from isr_check.native import explore
from isr_protocol.by_name import DESIGNS
from isr_protocol.planted.mistakes import MISTAKES
from isr_protocol.planted.notice import notice
from isr_report.matrix.grid import Matrix, read_matrix, verdict_of, violated
from isr_report.matrix.plan import assignments, cells, load_plan
from isr_trace.itf import read_itf
from isr_trace.trace import TraceError

TOP = Path(__file__).resolve().parents[2]
PROMISE_OF_THREE = "committed-only-grows"
"""It takes a third record to break it by a setting, so it is TOO SMALL where one of these is weak."""
SETTINGS = {mistake.name for mistake in MISTAKES if mistake.is_setting}
SAFETY = ("no-divergence", "one-leader-per-epoch")

pytestmark = [pytest.mark.explores, pytest.mark.processes]


@pytest.fixture(scope="module")
def made(small_matrix: Path) -> tuple[Path, Matrix]:
    return small_matrix, read_matrix(small_matrix / "matrix.json")


def test_the_standard_plan_names_designs_promises_and_bounds_that_exist() -> None:
    plan = load_plan()
    known = {p.name for p in DESIGNS["kip-966"].properties}
    assert set(plan.promises) | set(plan.probes) <= known
    for name in plan.designs:
        design = DESIGNS[name]
        named = [cell.name for cell, _ in cells(plan, design)]
        assert named
        assert len(set(named)) == len(named)


def test_the_page_counts_the_cells_of_the_standard_plan() -> None:
    plan, page = load_plan(), " ".join((TOP / "docs" / "report.md").read_text(encoding="utf-8").split())
    every = [fault for name in plan.designs for _, fault, _ in assignments(plan, DESIGNS[name])]
    recommended = [f for f in every if f.is_recommended]
    two = [f for f in every if f.count > 1 and not f.is_recommended]
    assert f"| {len(every)} cells, " in page
    assert len(recommended) == 8
    assert "Eight cells have three replicas and the settings that Kafka's documentation recommends" in page
    assert f"{len(two)} of the other cells have two faults" in page


def test_no_design_has_smaller_bounds_than_the_others() -> None:
    plan = load_plan()
    for design, own in plan.own_bounds.items():
        assert not {name for name, bound in own.items() if int(bound) < int(plan.bounds.get(name, 0))}, design


@pytest.mark.parametrize("name", load_plan().designs)
def test_bounds_of_every_cell_notice_the_known_mistakes_of_what_it_asks(name: str) -> None:
    """Else a cell would say that a promise holds where nothing could break it."""
    plan, judged = load_plan(), {"always", "step"}
    for cell, instance in cells(plan, DESIGNS[name]):
        safety = [p.name for p in instance.properties if p.name in cell.property_names and p.kind in judged]
        missed = notice(instance.design, instance.constants, safety).unnoticed_by_promise
        assert all(promise == PROMISE_OF_THREE and set(names) <= SETTINGS for promise, names in missed.items()), (
            cell.name
        )


def test_a_cell_whose_bounds_miss_a_known_mistake_is_too_small(tmp_path: Path) -> None:
    """`no-divergence` where a log holds one record: two such logs cannot differ at an offset."""
    plan = load_plan()
    small = attrs.evolve(plan, bounds={**plan.bounds, "log": 1, "records": 1}, promises=SAFETY, probes=())
    cell, instance = next(iter(cells(small, DESIGNS["kip-966"])))
    entry, _ = explored(cell, instance, RunningEach(), tmp_path, "0")
    verdicts = {promise["name"]: promise["verdict"] for promise in entry["promises"]}
    assert verdicts == {"no-divergence": "TOO SMALL", "one-leader-per-epoch": "HOLDS"}


def two_faults(fault: str, promise: str) -> tuple[Verdict, int | None]:
    """What today's design does under a fault that is two, at the usual settings."""
    plan = load_plan()
    found = [
        explore(instance, (promise,), Limits(), lambda _: None).finding(promise)
        for cell, instance in cells(plan, DESIGNS["kip-966"])
        if cell.fault == fault and cell.settings == plan.usual
    ]
    assert len(found) == 1
    return found[0].verdict, len(found[0].path.steps) if found[0].path is not None else None


def test_two_faults_do_what_one_does_not() -> None:
    """With two in-sync replicas one unclean stop is borne, as promised, and not two; and somebody misses a leader."""
    assert two_faults("power-twice", "acked-survives") == (Verdict.VIOLATED, 12)
    assert two_faults("zombie-twice", "leader-is-elected") == (Verdict.HOLDS, None)


def test_two_faults_are_tried_where_one_does_little_and_have_more_room() -> None:
    plan = load_plan()
    twice = {f.name: f for f in plan.faults if f.count > 1}
    assert [f.name for f in plan.faults if not f.count] == ["none"]
    for design in plan.designs:
        here = [cell for cell, _ in cells(plan, DESIGNS[design]) if cell.fault in twice]
        assert {cell.fault for cell in here} >= {"crash-twice", "power-twice", "crash-and-power"}, design
        for cell in here:
            assert all(cell.settings.get(n, v) == v for n, v in twice[cell.fault].only.items())
            assert cell.constants["epochs"] == 3
            assert set(cell.property_names) <= set(twice[cell.fault].asks)


def test_every_cell_links_to_a_run_and_to_the_counterexamples_of_what_it_breaks(made: tuple[Path, Matrix]) -> None:
    folder, matrix = made
    assert {c["design"] for c in matrix["cells"]} == {"kafka-0.8", "kip-966"}
    for cell in matrix["cells"]:
        run = cast("dict[str, object]", json.loads((folder / cell["run"]).read_text(encoding="utf-8")))
        assert run["command"] == cell["command"]
        for promise in violated(cell):
            trace = read_itf(folder / str(promise["trace"]))
            assert (trace.design, trace.property_name) == (cell["design"], promise["name"])
            assert len(trace.steps) == promise["depth"]


def test_an_acknowledged_record_survives_a_crash_today_and_not_in_2013(made: tuple[Path, Matrix]) -> None:
    _, matrix = made
    verdicts = {
        (c["design"], *c["settings"].values()): said["verdict"]
        for c in matrix["cells"]
        if (said := verdict_of(c, "acked-survives")) is not None
    }
    assert verdicts["kip-966", "2", "on", "all"] == "HOLDS"
    assert verdicts["kip-966", "1", "on", "all"] == "VIOLATED"
    assert verdicts["kip-966", "2", "off", "1"] == "VIOLATED"
    assert {v for (design, *_), v in verdicts.items() if design == "kafka-0.8"} == {"VIOLATED"}


def test_a_cell_says_what_its_command_says(made: tuple[Path, Matrix], tmp_path: Path) -> None:
    _, matrix = made
    cell = next(c for c in matrix["cells"] if violated(c) and c["design"] == "kip-966")
    assert main([*cell["command"][1:], "--out", str(tmp_path), "--quiet", "--workers", "1"]) == 12
    again = cast("dict[str, list[dict[str, object]]]", json.loads((tmp_path / "run.json").read_text(encoding="utf-8")))
    said = {str(p["name"]): (p["verdict"], p["depth"]) for p in again["properties"]}
    assert said == {p["name"]: (p["verdict"], p["depth"]) for p in cell["promises"]}


def test_a_matrix_whose_run_is_gone_is_refused(made: tuple[Path, Matrix], tmp_path: Path) -> None:
    folder, _ = made
    (tmp_path / "matrix.json").write_text((folder / "matrix.json").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(TraceError, match=r"names .*run\.json, which is not there"):
        read_matrix(tmp_path / "matrix.json")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--fault", "flood"], 64, "there is no fault 'flood'"),
        (["--design", "kip-967"], 64, "there is no design 'kip-967'"),
        (["--design", "kraft"], 64, "kraft does not promise acked-survives, which this matrix is about"),
        (["--design", "kip-966", "--fault", "bounce"], 64, "kip-966 has none of these faults"),
        (["--plan", "nowhere.toml"], 65, "nowhere.toml: cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["matrix", *arguments, "--out", str(tmp_path)]) == code
    assert said in capsys.readouterr().err


TWO_VOTERS = """
designs = ["kraft"]
promises = ["one-leader-per-epoch"]
[bounds]
voters = 2
epochs = 2
log = 2
[settings]
[[fault]]
name = "none"
says = "nothing fails"
[fault.budget]
"""
"""A quorum of two cannot elect two leaders, whoever votes twice."""


def test_a_matrix_that_decides_nothing_is_not_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.toml").write_text(TWO_VOTERS)
    assert main(["matrix", "--plan", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out"), "--quiet"]) == 23
    assert capsys.readouterr().out.endswith("one-leader-per-epoch violated in 0, TOO SMALL in 1\n")


ONE_CELL = """
designs = ["kip-966", "kip-966"]
promises = ["acked-survives"]
bounds = { replicas = 2, log = 1, records = 1, epochs = 1, isr_changes = 2, consumers = 0 }
[settings]
min_insync = ["2"]
[usual]
min_insync = "2"
[[fault]]
name = "none"
says = "nothing fails"
budget = {}
"""


def said_of(plan: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit code, the last line and the error of a matrix of this plan."""
    (folder / "plan.toml").write_text(plan)
    code = main(["matrix", "--plan", str(folder / "plan.toml"), "--out", str(folder / "out"), "--quiet"])
    text = capsys.readouterr()
    return code, text.out, text.err


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            '["2"]',
            '["2", "9"]',
            "kip-966, fault none, min_insync = 9: --min-insync is a whole number from 1 to 7, not 9",
        ),
        ('["2"]', '["2", "two"]', "min_insync = two: --min-insync is a whole number from 1 to 7, not two"),
        ("budget = {}", "budget = { crashes = 40 }", "--crashes is a whole number from 0 to "),
        ("log = 1", "log = 99", "--log is a whole number from 1 to "),
        ("budget = {}", "budget = { crash = 1 }", "there is no bound or setting 'crash'; did you mean 'crashes'?"),
        ("min_insync =", "min_insinc =", "there is no bound or setting 'min_insinc'; did you mean 'min_insync'?"),
        ("budget = {}", 'budget = {}\nonly = { uncleam = "on" }', "'uncleam'; did you mean 'unclean'?"),
        (
            "budget = {}",
            'budget = {}\nneeds = ["broker_crash"]',
            "no action 'broker_crash'; did you mean 'broker_crashes'?",
        ),
        ("budget = {}", 'budget = {}\nasks = ["acked-survive"]', "there is no promise in the plan 'acked-survive'"),
        ("budget = {}", 'budget = {}\ndesigns = ["kip-967"]', "there is no design 'kip-967'; did you mean 'kip-966'?"),
        ('["acked-survives"]', '["acked-survives", "no-divergance"]', "did you mean 'no-divergence'?"),
        ('[usual]\nmin_insync = "2"', '[usual]\nmin_insync = "1"', "min_insync = 1 is usual, and none of its settings"),
        ("budget = {}", 'budget = {}\n[[fault]]\nname = "none"\nsays = ""\nbudget = {}', "two faults are called none"),
    ],
)
def test_what_a_plan_asks_is_not_left_out_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, says: str
) -> None:
    """Half of the cells were gone where a value was out of range, and the line was green."""
    assert ONE_CELL.count(before) >= 1
    code, out, err = said_of(ONE_CELL.replace(before, after, 1), tmp_path, capsys)
    assert (code, out) == (65, "")
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('["2"]', "1 cell, "),
        ('["2", "3", "4"]', "1 cell, "),
    ],
)
def test_cells_whose_settings_contradict_each_other_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, says: str
) -> None:
    """More replicas in sync than there are: no state begins so. A design that is named twice is asked once."""
    _, line, _ = said_of(ONE_CELL.replace('["2"]', settings), tmp_path, capsys)
    assert says in line
    left = "; not judged: 2 cells whose settings contradict each other\n"
    assert line.endswith(left) is (settings != '["2"]')


@pytest.mark.parametrize(
    ("verdicts", "code", "line"),
    [
        (["TOO SMALL", "TOO SMALL"], 23, "violated in 0, TOO SMALL in 2"),
        (["TOO SMALL", "VACUOUS"], 21, "violated in 0, TOO SMALL in 1, VACUOUS in 1"),
        (["VACUOUS", ""], 21, "violated in 0 of the 1 that ask it, VACUOUS in 1"),
        (["", ""], 21, "violated in 0 of the 0 that ask it"),
        (["TOO SMALL", "HOLDS"], 0, "violated in 0, HOLDS in 1, TOO SMALL in 1"),
        (["VACUOUS", "VIOLATED"], 0, "violated in 1, VACUOUS in 1"),
        (["HOLDS", "BUDGETED"], 20, "violated in 0, BUDGETED in 1, HOLDS in 1"),
        (["HOLDS", "UNKNOWN"], 20, "violated in 0, HOLDS in 1, UNKNOWN in 1"),
        (["HOLDS", "ERROR"], 70, "violated in 0, ERROR in 1, HOLDS in 1"),
    ],
)
def test_the_first_promise_decides_the_exit_code_and_the_line(
    made: tuple[Path, Matrix], verdicts: list[str], code: int, line: str
) -> None:
    """Another promise holds in every cell. An empty verdict: the cell does not ask the first one."""
    _, matrix = made
    first, second = list(matrix["promises"])[:2]
    cells_of = [
        {**cell, "promises": [{**cell["promises"][0], "name": name, "verdict": v} for name, v in answers if v]}
        for cell, answers in (
            (c, ((first, v), (second, "HOLDS"))) for c, v in zip(matrix["cells"], verdicts, strict=False)
        )
    ]
    judged = cast("Matrix", {**matrix, "cells": cells_of})
    assert exit_code(judged) == code
    assert result_line(judged).endswith(f"{first} {line}")
