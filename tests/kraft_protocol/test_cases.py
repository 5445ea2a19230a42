"""Every folder of counterexamples/quorum_cases is what its cases.toml and the model say today.

Without it the traces and pages of what was reported of Kafka's Raft, and of the controllers on it, could be of another
model. Bounds and steps stand in the `notice` of both families, and the cases are compared with that. To write the
folders again:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/kraft_protocol/test_cases.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import attrs
import pytest

from controller_protocol.notice import MISTAKES as OF_CONTROLLERS
from insync_cli.exits import Exit
from insync_cli.main import main
from insync_cli.registry import design_named
from isr_check import native
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_trace.case_folder import TRACE_FILE, index, stale, tell, write_files
from isr_trace.cases import Case, load_cases
from isr_trace.itf import itf_text, trace_from_text
from isr_trace.lasso import checked_run, promise_of, put_off_there
from isr_trace.replay import Replay, record
from isr_trace.trace import Trace, TraceError
from kraft_protocol.notice import MISTAKES as OF_QUORUM

NAME = "counterexamples/quorum_cases"
FOLDER = Path(__file__).parents[2] / NAME
CORPUS = load_cases(FOLDER / "cases.toml")
REWRITE = os.environ.get("INSYNC_REWRITE", "") not in ("", "0")
EACH = pytest.mark.parametrize("case", CORPUS.cases, ids=lambda c: c.name)


LARGE = ("truncated-below-12460", "early-watermark-12619")
"""Cases that take tens of seconds. Of these one state of each kind is explored."""
MISTAKES = (*OF_QUORUM, *OF_CONTROLLERS)
LASSOS = [c for c in CORPUS.cases if design_named(c.design).property_named(c.property_name).kind == "eventually"]
"""Cases whose traces go round. Their promise is decided on the whole graph, and so is that of their mend."""
EACH_LASSO = pytest.mark.parametrize("case", LASSOS, ids=lambda c: c.name)


def evaluator_of(case: Case) -> Evaluator:
    return Evaluator(Instance(design_named(case.design), case.settings))


def mend_of(case: Case) -> Evaluator:
    assert case.fixed_by is not None
    return Evaluator(Instance(design_named(case.fixed_by.design), {**case.settings, **case.fixed_by.settings}))


def counterexample(case: Case) -> Trace | None:
    """The shortest behaviour that breaks the promise within the bounds of the case, or none."""
    evaluator = evaluator_of(case)
    exploration = native.explore(
        evaluator.instance, (case.property_name,), symmetry=case not in LASSOS, reduction=case.name in LARGE
    )
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
        loop=found.path.loop,
        without=(),
    )


@cache
def files_of(name: str) -> Mapping[str, str]:
    """The files of a case's folder, from scratch."""
    case = CORPUS.case(name)
    trace = counterexample(case)
    assert trace is not None
    return tell(case, trace, evaluator_of(case), NAME, mend_of(case) if case in LASSOS else None)


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
    by = case.fixed_by
    if by is None or by.to_depth is (case in LASSOS) or by.design != mistake.control:
        return "control"
    kept = Instance(design_named(mistake.control), {**case.settings, **by.settings}).constants
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


# Traces that go round


def stored(case: Case) -> Trace:
    return trace_from_text((FOLDER / case.name / TRACE_FILE).read_text("utf-8"))


def cut(trace: Trace, steps: int, loop: int) -> Trace:
    """The beginning of a trace, as if it went round from its last state to another."""
    return attrs.evolve(trace, steps=trace.steps[:steps], states=trace.states[: steps + 1], loop=loop)


@EACH_LASSO
def test_a_stored_loop_closes_without_what_was_promised_and_its_mend_would_leave_it(case: Case) -> None:
    trace, evaluator = stored(case), evaluator_of(case)
    assert trace.loop is not None
    run = checked_run(trace, Replay(evaluator))
    assert run.states[trace.loop] == run.states[-1]
    promise = promise_of(evaluator, case.property_name)
    assert promise is not None
    _, goal = evaluator.leads(promise)
    assert not any(map(goal, run.states[trace.loop :]))
    assert str(put_off_there(trace, mend_of(case))).endswith(" is possible for ever and never taken")
    assert not put_off_there(trace, evaluator)


@pytest.mark.parametrize(
    ("name", "steps", "loop", "why"),
    [
        ("cut-off-leader-15489", 7, 6, "the loop does not close: T7 is another state than T6"),
        ("busy-log-13959", 6, 4, "the loop does not close: T6 is another state than T4"),
        ("cut-off-leader-15489", 6, 6, "what was promised comes in the loop, at T6"),
        ("busy-log-13959", 0, 0, "what was promised comes in the loop, at T0"),
        ("busy-log-13959", 3, 3, "broker_applies(r=r1) is possible for ever and never taken"),
    ],
)
def test_a_loop_that_is_none_is_noticed(
    name: str, steps: int, loop: int, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CORPUS.case(name)
    planted = cut(stored(case), steps, loop)
    with pytest.raises(TraceError, match=re.escape(why)):
        checked_run(planted, Replay(evaluator_of(case)))
    file = tmp_path / "planted.itf.json"
    file.write_text(itf_text(planted), "utf-8")
    for verb in ("show", "explain"):
        assert main([verb, str(file)]) == Exit.INPUT
        assert why in capsys.readouterr().err


def test_a_loop_that_its_mend_would_leave_is_none_of_the_mend() -> None:
    """The same states, and a fair step that is always possible and never taken."""
    case = CORPUS.case("cut-off-leader-15489")
    put_off = re.escape("check_quorum_expires(r=v1) is possible for ever and never taken")
    with pytest.raises(TraceError, match=put_off):
        checked_run(stored(case), Replay(mend_of(case)))


@pytest.mark.explores
@EACH_LASSO
def test_the_commands_of_a_loop_find_it_and_find_nothing_in_its_mend(case: Case) -> None:
    assert main(case.command.split()[1:]) == Exit.LIVENESS
    assert main(case.fixed_command.split()[1:]) == Exit.HOLDS


@EACH_LASSO
def test_every_form_of_a_loop_has_its_loop_or_is_refused(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ticket,) = case.tracker
    stays = stored(case).loop == len(stored(case).steps)

    def said(words: str, code: int = Exit.HOLDS) -> str:
        assert main(words.split()) == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    assert ("nothing happens any more" if stays else "    loop for ever") in said(f"show {ticket} --mermaid")
    assert ("note across: nothing happens any more" if stays else "\nloop for ever\n") in said(
        f"show {ticket} --plantuml"
    )
    assert "an event log ends" in said(f"show {ticket} --shiviz", Exit.INPUT)
    assert "only one that ends is made shorter" in said(f"minimise {ticket}", Exit.INPUT)
    assert f"{case.fixed_by and case.fixed_by.design} has to leave this loop: there " in said(f"show {ticket}")
    explained = said(f"explain {ticket}")
    assert "on, for ever" in explained
    assert (
        "None of them is possible in the loop." if stays else "broker_applies(r=r1): possible at T3, taken at T4"
    ) in explained
    assert said(f"show {ticket} --html {tmp_path / 'page.html'}")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert str(put_off_there(stored(case), mend_of(case))) in page


def test_a_report_is_shown_by_its_ticket(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "KAFKA-16530"]) == 0
    assert "committed-by-majority" in capsys.readouterr().out


@pytest.mark.long
def test_a_report_has_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["show", "KAFKA-16530", "--html", str(page)]) == 0
    assert "A leader that is no voter counts itself" in page.read_text("utf-8")
