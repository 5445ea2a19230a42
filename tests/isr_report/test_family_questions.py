"""The questions that a family brings to the report: each is a check, and its answer is that of the run.

Without these a report could answer a question of the quorum by words that no run has shown.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from controller_protocol.controllers import CONTROLLERS
from insync_cli import options
from insync_cli.exits import UsageError
from insync_cli.families import families
from insync_cli.options import RunningEach
from insync_cli.review.report import USAGE, Options, all_questions
from insync_cli.review.report_pages import Shelf, check_answer
from isr_check.family import Family
from isr_report.html import HOLDS
from isr_report.material import QUESTIONS, Question, questions
from kraft_protocol.quorum import QUORUM

pytestmark = pytest.mark.explores

ANSWERS = {
    "abstract-quorum --property quorum-only-grows --symmetry on": "No",
    "abstract-quorum --lost-disks 1 --property quorum-only-grows --symmetry on": "Yes",
    "abstract-quorum --lost-disks 1 --dynamic on --property quorum-only-grows --symmetry on": "No",
    "kafka-14077 --property one-leader-per-epoch --symmetry on": "Yes",
    "kraft --restarts 1 --property leaders-complete --symmetry on": "Yes",
    "kafka-10533 --property leaders-complete --symmetry on": "No",
    "kafka-20895 --property resigned-leader-is-no-obstacle --symmetry on": "No",
    "kraft-cut-off --property cut-off-leader-resigns": "Yes",
    "kafka-15489 --property cut-off-leader-resigns": "No",
    "kraft-853 --property committed-by-majority --symmetry on": "Yes",
    "kafka-19850 --property removed-voter-stays-out --symmetry on": "No",
    "kraft-controllers-static --property acked-survives --symmetry on": "Yes",
    "kraft-controllers-853 --property acked-survives --symmetry on": "No",
    "kraft-controllers-as-one --property decides-as-one --symmetry on": "Yes",
    "kraft-sessions --property stopped-brokers-have-sessions --symmetry on": "Yes",
    "kraft-sessions --property fenced-brokers-may-register --symmetry on": "Yes",
}
"""What is known of each check, from docs/kraft.md and the tests of its rows."""


def questions_of(family: Family) -> list[Question]:
    assert family.questions is not None
    return questions(family.questions, family.subject)


OF_QUORUM, OF_CONTROLLERS = questions_of(QUORUM), questions_of(CONTROLLERS)
EACH = [
    *(pytest.param(q, id=q.check.split(" --symmetry")[0]) for q in OF_QUORUM),
    *(pytest.param(q, id=q.check.split(" --symmetry")[0], marks=pytest.mark.slow) for q in OF_CONTROLLERS),
]


def answer(question: Question, folder: Path) -> str:
    """The word on the card."""
    found = check_answer(question, 1, RunningEach(), Shelf(folder, one=False))
    assert json.loads((folder / found.run.run).read_text("utf-8"))["properties"][0]["verdict"] == found.run.verdict
    assert found.run.command == f"insync check {question.check}"
    assert str(folder) not in (folder / found.run.run).read_text("utf-8"), "a report is shown on other machines"
    assert bool(found.page) is (found.run.verdict == "VIOLATED")
    assert not found.page or (folder / found.page).is_file()
    return question.holds if found.run.verdict in HOLDS else question.breaks if found.page else "Undecided"


def test_each_question_has_an_answer_that_is_known() -> None:
    assert [q.check for q in (*OF_QUORUM, *OF_CONTROLLERS)] == list(ANSWERS)


@pytest.mark.parametrize("question", EACH)
def test_a_question_has_the_answer_that_is_known(question: Question, tmp_path: Path) -> None:
    assert answer(question, tmp_path) == ANSWERS[question.check]


def test_the_same_question_of_a_design_with_the_mistake_has_the_other_answer(tmp_path: Path) -> None:
    asks = next(q for q in OF_QUORUM if q.check.startswith("kraft-cut-off"))
    planted = attrs.evolve(asks, check=asks.check.replace("kraft-cut-off", "kafka-15489"))
    assert answer(planted, tmp_path) == "No"
    spent = attrs.evolve(asks, check=f"{asks.check} --max-states 10")
    assert answer(spent, tmp_path / "spent") == "Undecided"


def questions_with(*words: str) -> list[Question]:
    return all_questions(options.read_options(Options, USAGE, list(words)))


def test_a_family_brings_its_questions_and_none_of_the_report_names_it() -> None:
    subjects = list(dict.fromkeys(q.subject for q in questions_with()))
    assert subjects == ["", *(family.subject for family in families() if family.questions is not None)]
    assert QUORUM.subject in subjects
    assert {q.subject for q in questions_with("--quick")} == {""}


def test_with_questions_of_ones_own_no_others_are_asked(tmp_path: Path) -> None:
    own = tmp_path / "questions.toml"
    own.write_text(QUESTIONS.read_text("utf-8"), "utf-8")
    assert {q.subject for q in questions_with("--questions", str(own))} == {""}


def test_a_check_that_is_none_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    own = tmp_path / "questions.toml"
    own.write_text('[[question]]\nasks = "?"\nholds = "Yes"\ncheck = "kraftt --property leaders-complete"\n', "utf-8")
    with pytest.raises(UsageError, match="kraft"):
        questions_with("--questions", str(own))
