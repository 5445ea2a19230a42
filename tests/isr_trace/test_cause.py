"""Why, not where: the step that took the guarantee away, the one after which it was too late, and the story of both."""

import pytest
from tests.support.pages import document_of, trace_file

from insync_cli.main import main
from insync_cli.registry import designs
from insync_cli.tracefiles import replayable
from insync_cli.view.pages import roomier, trace_document
from isr_trace.cause import Cause, cause_of
from isr_trace.explain import step_roles
from isr_trace.itf import trace_from_text
from isr_trace.replay import Replay, run_of
from isr_trace.story import PHRASES, story

# case -> the step that took the guarantee away, the first after which nothing restores it, the first broken promise,
# and the step that breaks the promise of the trace
KNOWN = {
    "jepsen-2013": (5, 5, 5, 6),
    "hw-truncation-loss": (7, 9, 7, 9),
    "overtaken-request": (14, 16, 14, 16),
    "last-replica-standing": (6, 7, 9, 11),
    "minimum-of-one": (5, 5, 8, 9),
    "kept-positions": (12, 13, 12, 13),
}


def cause(case: str) -> Cause:
    trace, runs = replayable(trace_file(case))
    replay = Replay(runs)
    run = run_of(trace, replay)
    more = roomier(runs.instance.design, trace.constants)
    found = cause_of(trace, run, runs, more, step_roles(trace, run, replay))
    assert found is not None
    return found


@pytest.mark.parametrize("case", KNOWN)
def test_the_cause_comes_before_the_symptom(case: str) -> None:
    found = cause(case)
    assert (found.step, found.too_late, found.first, found.symptom) == KNOWN[case]


def test_the_first_broken_promise_comes_before_that_of_the_trace() -> None:
    found = cause("overtaken-request")
    assert "leaders-complete" in found.broken_promises
    assert "acked-survives" not in found.broken_promises
    assert found.first < found.symptom


@pytest.mark.long
@pytest.mark.parametrize("case", KNOWN)
def test_a_story_has_five_sentences_that_name_who_acts(case: str) -> None:
    told = document_of(case)["story"]
    assert len(told["sentences"]) == 5
    assert [s["part"] for s in told["sentences"]][-2:] == ["symptom", "mend"]
    steps = [s["step"] for s in told["sentences"][:-1]]
    assert steps == sorted(steps, key=lambda step: step or 0)
    assert all(any(who in s["text"] for who in ("r1", "r2", "r3")) for s in told["sentences"][:-1])
    assert told["breaks"] == KNOWN[case][3]


def test_every_phrase_is_of_an_action_of_some_design() -> None:
    assert set(PHRASES) <= {a.name for design in designs().values() for a in design.actions}


@pytest.mark.long
def test_a_trace_of_one_s_own_gets_a_mend_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.mktemp("own") / "mine.itf.json"
    own.write_text(trace_file("jepsen-2013").read_text())
    trace, _ = replayable(own)
    told = trace_document(own, trace)
    assert told["case"] is None
    assert told["story"]["headline"] == "r2 leads without record 0, which was acknowledged"
    assert told["story"]["sentences"][-1]["text"].startswith(
        "kafka-0.8 --unclean off keeps the promise. There T5 is refused"
    )


def test_explain_says_cause_and_symptom(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(trace_file("hw-truncation-loss"))]) == 0
    out = capsys.readouterr().out
    assert "T7   Cause: r2 began to follow, and lost record 0" in out
    assert "T9   Symptom: r2 began to lead" in out


def test_another_program_s_trace_has_a_story_without_a_model() -> None:
    text = """{"vars": ["log", "leader", "acked"], "states": [
      {"log": {"#map": [["a", ["m1"]], ["b", []]]}, "leader": "a", "acked": {"#set": ["m1"]}},
      {"log": {"#map": [["a", ["m1"]], ["b", []]]}, "leader": "b", "acked": {"#set": ["m1"]}}]}"""
    told = story(trace_from_text(text))
    assert told.headline == "b leads without record m1, which was acknowledged"
    assert told.breaks == 1
