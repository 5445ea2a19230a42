"""Every folder of counterexamples/quorum_cases is what its cases.toml and the model say today.

Without it the traces and pages of what was reported of Kafka's Raft could be of another model. Bounds and steps stand
in `kraft_protocol.notice`, and the cases are compared with that. To write the folders again:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/kraft_protocol/test_cases.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from insync_cli.main import main
from isr_check import native
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_trace.case_folder import TRACE_FILE, index, stale, tell, write_files
from isr_trace.cases import Case, load_cases
from isr_trace.itf import trace_from_text
from isr_trace.replay import record
from kraft_protocol.by_name import DESIGNS
from kraft_protocol.notice import MISTAKES

NAME = "counterexamples/quorum_cases"
FOLDER = Path(__file__).parents[2] / NAME
CORPUS = load_cases(FOLDER / "cases.toml")
REWRITE = os.environ.get("INSYNC_REWRITE", "") not in ("", "0")
EACH = pytest.mark.parametrize("case", CORPUS.cases, ids=lambda c: c.name)


@cache
def files_of(name: str) -> Mapping[str, str]:
    """The files of a case's folder, from scratch."""
    case = CORPUS.case(name)
    evaluator = Evaluator(Instance(DESIGNS[case.design], case.settings))
    found = native.explore(evaluator.instance, (case.property_name,), symmetry=True).finding(case.property_name)
    assert found.path is not None
    trace = record(
        evaluator,
        found.path.initial,
        found.path.steps,
        property_name=found.name,
        verdict=found.verdict,
        shortest=True,
        without=(),
    )
    return tell(case, trace, evaluator, NAME)


def compared(folder: Path, files: Mapping[str, str]) -> None:
    if REWRITE:
        write_files(folder, files)
    assert not stale(folder, files), f"{folder.name}/ is outdated; see the top of this file"


@pytest.mark.explores
@EACH
def test_the_folder_of_a_case_is_what_the_model_says_today(case: Case) -> None:
    compared(FOLDER / case.name, files_of(case.name))


def test_the_index_lists_what_there_is() -> None:
    traces = {case.name: trace_from_text((FOLDER / case.name / TRACE_FILE).read_text("utf-8")) for case in CORPUS.cases}
    compared(FOLDER, {"README.md": index(CORPUS, traces)})
    assert {path.parent.name for path in FOLDER.glob(f"*/{TRACE_FILE}")} == set(traces)


@EACH
def test_a_case_is_a_known_mistake_with_its_bounds_steps_and_control(case: Case) -> None:
    """That the control keeps the promise for as many steps is asked in test_counterexamples.py."""
    (mistake,) = (m for m in MISTAKES if (m.design, m.promise) == (case.design, case.property_name) and m.is_shortest)
    trace = trace_from_text((FOLDER / case.name / TRACE_FILE).read_text("utf-8"))
    assert len(trace.steps) == mistake.steps
    broken = Instance(DESIGNS[mistake.design], mistake.bounds).constants
    assert dict(case.settings) == dict(broken)
    assert case.fixed_by is not None
    assert case.fixed_by.to_depth
    assert case.fixed_by.design == mistake.control
    kept = Instance(DESIGNS[mistake.control], {**case.settings, **case.fixed_by.settings}).constants
    control = {**broken, **mistake.control_bounds}
    assert dict(kept) == control


def test_a_report_is_shown_by_its_ticket(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "KAFKA-16530"]) == 0
    assert "committed-by-majority" in capsys.readouterr().out


@pytest.mark.long
def test_a_report_has_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["show", "KAFKA-16530", "--html", str(page)]) == 0
    assert "A leader that is no voter counts itself" in page.read_text("utf-8")
