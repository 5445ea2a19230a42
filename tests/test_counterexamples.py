"""Every folder of counterexamples/ is what cases.toml and the model say today.

After a change of either, write them again and read the difference:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/test_counterexamples.py
"""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from isr_check.explorer import explore
from isr_check.reference import Evaluator
from isr_designs import DESIGNS
from isr_lang import Instance
from isr_trace.case import TRACE_FILE, index, stale, tell, write_files
from isr_trace.cases import Case, load_cases
from isr_trace.itf import trace_from_text
from isr_trace.replay import record

FOLDER = Path(__file__).resolve().parent.parent / "counterexamples"
CORPUS = load_cases(FOLDER / "cases.toml")
REWRITE = os.environ.get("INSYNC_REWRITE", "") not in ("", "0")


@cache
def told(name: str) -> Mapping[str, str]:
    """The files of a case's folder, from scratch."""
    case = CORPUS.case(name)
    evaluator = Evaluator(Instance(DESIGNS[case.design], case.settings))
    found = explore(evaluator.instance, (case.property_name,)).finding(case.property_name)
    assert found.path is not None, f"{case.command} finds nothing, but {case.name} is a case"
    trace = record(
        evaluator,
        found.path.initial,
        found.path.steps,
        property_name=found.name,
        verdict=found.verdict,
        shortest=True,
    )
    return tell(case, trace, evaluator)


def compared(folder: Path, files: Mapping[str, str]) -> None:
    if REWRITE:
        write_files(folder, files)
    outdated = stale(folder, files)
    assert not outdated, f"{', '.join(outdated)} in {folder.name}/ is outdated; see the top of this file"


@pytest.mark.parametrize("case", CORPUS.cases, ids=lambda c: c.name)
def test_the_folder_of_a_case_is_what_the_model_says_today(case: Case) -> None:
    compared(FOLDER / case.name, told(case.name))


def test_the_index_lists_what_there_is() -> None:
    traces = {case.name: trace_from_text(told(case.name)[TRACE_FILE]) for case in CORPUS.cases}
    compared(FOLDER, {"README.md": index(CORPUS, traces)})


def test_every_folder_belongs_to_a_case() -> None:
    folders = {path.parent.name for path in FOLDER.glob(f"*/{TRACE_FILE}")}
    assert folders == {case.name for case in CORPUS.cases}
