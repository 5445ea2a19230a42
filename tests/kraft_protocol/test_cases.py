"""Every folder of counterexamples/quorum_cases is what its cases.toml and the model say today.

Without it the traces and pages of what was reported of Kafka's Raft, and of the controllers on it, could be of another
model. Bounds and steps stand in the `notice` of both families, and the cases are compared with that. To write the
folders again:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/kraft_protocol/test_cases.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import attrs
import pytest

from controller_protocol.notice import MISTAKES as OF_CONTROLLERS
from insync_cli.main import main
from insync_cli.registry import design_named
from isr_check import native
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_trace.case_folder import TRACE_FILE, index, stale, tell, write_files
from isr_trace.cases import Case, load_cases
from isr_trace.itf import trace_from_text
from isr_trace.replay import record
from isr_trace.trace import Trace
from kraft_protocol.notice import MISTAKES as OF_QUORUM

NAME = "counterexamples/quorum_cases"
FOLDER = Path(__file__).parents[2] / NAME
CORPUS = load_cases(FOLDER / "cases.toml")
REWRITE = os.environ.get("INSYNC_REWRITE", "") not in ("", "0")
EACH = pytest.mark.parametrize("case", CORPUS.cases, ids=lambda c: c.name)


LARGE = ("truncated-below-12460", "early-watermark-12619")
"""Cases that take tens of seconds. Of these one state of each kind is explored."""
MISTAKES = (*OF_QUORUM, *OF_CONTROLLERS)


def evaluator_of(case: Case) -> Evaluator:
    return Evaluator(Instance(design_named(case.design), case.settings))


def counterexample(case: Case) -> Trace | None:
    """The shortest behaviour that breaks the promise within the bounds of the case, or none."""
    evaluator = evaluator_of(case)
    exploration = native.explore(evaluator.instance, (case.property_name,), symmetry=True, reduction=case.name in LARGE)
    found = exploration.finding(case.property_name)
    if found.path is None:
        return None
    return record(
        evaluator,
        found.path.initial,
        found.path.steps,
        property_name=found.name,
        verdict=found.verdict,
        shortest=True,
        without=(),
    )


@cache
def files_of(name: str) -> Mapping[str, str]:
    """The files of a case's folder, from scratch."""
    case = CORPUS.case(name)
    trace = counterexample(case)
    assert trace is not None
    return tell(case, trace, evaluator_of(case), NAME)


def compared(folder: Path, files: Mapping[str, str]) -> None:
    if REWRITE:
        write_files(folder, files)
    assert not stale(folder, files), f"{folder.name}/ is outdated; see the top of this file"


@pytest.mark.explores
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=pytest.mark.slow if c.name in LARGE else ()) for c in CORPUS.cases],
)
def test_the_folder_of_a_case_is_what_the_model_says_today(case: Case) -> None:
    compared(FOLDER / case.name, files_of(case.name))


def test_the_index_lists_what_there_is() -> None:
    traces = {case.name: trace_from_text((FOLDER / case.name / TRACE_FILE).read_text("utf-8")) for case in CORPUS.cases}
    compared(FOLDER, {"README.md": index(CORPUS, traces)})
    assert {path.parent.name for path in FOLDER.glob(f"*/{TRACE_FILE}")} == set(traces)


def difference(case: Case) -> str:
    """In what the case is not the known mistake of its design and promise; empty where it is in nothing."""
    (mistake,) = (m for m in MISTAKES if (m.design, m.promise) == (case.design, case.property_name) and m.is_shortest)
    trace = trace_from_text((FOLDER / case.name / TRACE_FILE).read_text("utf-8"))
    if len(trace.steps) != mistake.steps:
        return "steps"
    broken = Instance(design_named(mistake.design), mistake.bounds).constants
    if dict(case.settings) != dict(broken):
        return "settings"
    if case.fixed_by is None or not case.fixed_by.to_depth or case.fixed_by.design != mistake.control:
        return "control"
    kept = Instance(design_named(mistake.control), {**case.settings, **case.fixed_by.settings}).constants
    return "" if dict(kept) == {**broken, **mistake.control_bounds} else "settings of the control"


@EACH
def test_a_case_is_a_known_mistake_with_its_bounds_steps_and_control(case: Case) -> None:
    """That the control keeps the promise for as many steps is asked where the mistakes are."""
    assert difference(case) == ""


@pytest.mark.explores
@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("leader-again-10527", {"restarts": 0}),
        ("uncounted-leader-16530", {"changes": 0}),
        ("stale-controller-14154", {"metadata_log": 2}),
        ("no-sessions-18138", {"crashes": 0}),
        ("active-at-once-15345", {"metadata_log": 1}),
    ],
)
def test_bounds_that_do_not_reach_the_violation_are_noticed(name: str, bounds: Mapping[str, int]) -> None:
    case = CORPUS.case(name)
    smaller = attrs.evolve(case, settings={**case.settings, **bounds})
    assert counterexample(smaller) is None
    assert difference(smaller) == "settings"


def test_a_report_is_shown_by_its_ticket(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "KAFKA-16530"]) == 0
    assert "committed-by-majority" in capsys.readouterr().out


@pytest.mark.long
def test_a_report_has_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["show", "KAFKA-16530", "--html", str(page)]) == 0
    assert "A leader that is no voter counts itself" in page.read_text("utf-8")
