"""The table of what larger bounds find: a promise that holds, and is broken with more room, stands out and fails.

Without these the table could be green whatever its runs said.
"""

import json
import sys
from pathlib import Path

import attrs
import pytest
from bench import bounds
from bench.bounds import OWN_CHOICE, TWICE, Answer, Results, flips, questions, table

ROW = next(questions(["kip-320"], ["unclean on"], 2))


def answer_of(size: str, verdict: str) -> Answer:
    of = ROW.usual() if size == OWN_CHOICE else ROW.twice()
    promises = {"acked-survives": verdict, "weak-isr": "HOLDS"}
    return Answer(ROW.design.model_hash(), of, verdict, promises, distinct=1_000, seconds=1.0)


def results_with(folder: Path, smaller: str, larger: str) -> Results:
    results = Results(folder / "bounds.json")
    results.save(ROW, OWN_CHOICE, answer_of(OWN_CHOICE, smaller))
    results.save(ROW, TWICE, answer_of(TWICE, larger))
    return Results(folder / "bounds.json")


@pytest.mark.parametrize(("smaller", "larger", "bad"), [("HOLDS", "VIOLATED", 1), ("TOO SMALL", "VIOLATED", 0)])
def test_a_promise_that_holds_only_within_smaller_bounds_stands_out(
    tmp_path: Path, smaller: str, larger: str, bad: int
) -> None:
    text, count = table([ROW], results_with(tmp_path, smaller, larger))
    assert count == bad
    assert ("**acked-survives**" in text) is bool(bad)


def test_the_command_fails_on_such_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results_with(tmp_path, "HOLDS", "VIOLATED")
    options = ["--table", "--design", "kip-320", "--replicas", "2", "--results"]
    monkeypatch.setattr(sys, "argv", ["bounds.py", *options, str(tmp_path / "bounds.json")])
    assert bounds.main() == 1


def test_an_answer_of_another_model_or_of_other_bounds_is_no_answer(tmp_path: Path) -> None:
    results = results_with(tmp_path, "HOLDS", "HOLDS")
    stored = json.loads((tmp_path / "bounds.json").read_text(encoding="utf-8"))
    assert results.answer_to(ROW, OWN_CHOICE) is not None
    for answer in stored.values():
        answer["bounds"]["epochs"] += 1
    (tmp_path / "bounds.json").write_text(json.dumps(stored), encoding="utf-8")
    assert Results(tmp_path / "bounds.json").answer_to(ROW, OWN_CHOICE) is None


@pytest.mark.parametrize(("lacks", "promise", "again"), [("VIOLATED", "HOLDS", True), ("HOLDS", "HOLDS", False)])
def test_an_answer_for_which_check_has_other_words_by_now_is_no_answer(
    tmp_path: Path, lacks: str, promise: str, again: bool
) -> None:
    """HOLDS beside a leader that lacks a committed record; what speaks of other things may hold there."""
    promises = {"committed-on-new-leader": lacks, "committed-only-grows": promise, "type-ok": "HOLDS"}
    answer = attrs.evolve(answer_of(OWN_CHOICE, "VIOLATED"), promises=promises)
    results = Results(tmp_path / "bounds.json")
    results.save(ROW, OWN_CHOICE, answer)
    assert (results.answer_to(ROW, OWN_CHOICE) is None) is again
    results.save(ROW, OWN_CHOICE, attrs.evolve(answer, promises={**promises, "committed-only-grows": "TOO SMALL"}))
    assert results.answer_to(ROW, OWN_CHOICE) is not None


def test_twice_is_twice_the_room_and_as_many_faults() -> None:
    usual, twice = ROW.usual(), ROW.twice()
    assert {name for name in usual if usual[name] != twice[name]} == {"log", "records", "epochs", "isr_changes"}
    assert twice["epochs"] == 2 * int(usual["epochs"])
    assert flips(answer_of(OWN_CHOICE, "HOLDS"), answer_of(TWICE, "VIOLATED")) == ["acked-survives"]
