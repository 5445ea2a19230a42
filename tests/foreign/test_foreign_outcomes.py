"""How suites of others are judged: a failure that nobody expects fails, a pass that nobody expects is told."""

from pathlib import Path

import pytest
from cattrs import IterableValidationError
from tests.foreign.__main__ import SUITES, main, verdict
from tests.foreign.go_suites import Events
from tests.foreign.kafka_tools import STEPS, Step
from tests.foreign.kafka_tools import outcome_of as tool_outcome
from tests.foreign.librdkafka import against_a_broker, outcome_of
from tests.foreign.outcomes import Expected, Judged, Outcome, State, judge, read_expected, table
from tests.foreign.programs import Missing, Ran, program, run

from insync_cli.exits import Exit

PASSED, FAILED, SKIPPED = State.PASSED, State.FAILED, State.SKIPPED
KNOWN = Expected(fails={"TestTxn": "no transactions"}, may_fail={"TestSlow": "a clock"}, left_out={"TestHang": "hangs"})


def judged(*outcomes: Outcome) -> Judged:
    return judge("suite", outcomes, KNOWN)


def test_a_failure_that_is_not_expected_fails() -> None:
    row = judged(Outcome("TestNew", FAILED, "x.go:1: no"), Outcome("TestTxn", FAILED))
    assert [o.test for o in row.unexpected] == ["TestNew"]
    assert verdict([row]) == Exit.UNEXPECTED
    assert "suite: TestNew failed, unexpectedly: x.go:1: no" in table([row])


def test_what_is_expected_to_fail_and_what_fails_at_times_is_counted() -> None:
    row = judged(Outcome("TestTxn/commit", FAILED), Outcome("TestSlow", FAILED), Outcome("TestA", PASSED))
    assert (row.passed, row.expected, row.skipped, row.unexpected) == (1, 2, 1, ())
    assert verdict([row]) == Exit.HOLDS


def test_a_pass_that_is_not_expected_is_told_and_one_that_may_be_is_not() -> None:
    row = judged(Outcome("TestTxn", PASSED), Outcome("TestSlow", PASSED))
    assert row.better == ("TestTxn",)
    assert "TestTxn passed, though it is expected to fail" in table([row])
    assert verdict([row]) == Exit.HOLDS


def test_an_entry_is_no_prefix_of_a_name() -> None:
    assert judged(Outcome("TestTxnEtl", FAILED)).unexpected


def test_an_entry_of_which_nothing_was_run_is_told() -> None:
    assert judged(Outcome("TestA", PASSED)).absent == ("TestTxn",)
    assert not judge("suite", [Outcome("TestA", PASSED)], KNOWN, only=["TestA"]).absent


def test_a_suite_that_cannot_be_run_is_a_row_and_an_exit_code_of_its_own() -> None:
    row = Judged(suite="suite", missing="go is missing")
    assert verdict([row]) == Exit.ENDED
    assert table([row]).splitlines()[1:] == ["suite  not run", "suite: not run: go is missing"]


EVENTS = """\
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestB/one"}
{"Action":"output","Package":"p","Test":"TestB/one","Output":"    b_test.go:7: got 3\\n"}
{"Action":"output","Package":"p","Test":"TestB/one","Output":"--- FAIL: TestB/one\\n"}
{"Action":"fail","Package":"p","Test":"TestB/one"}
{"Action":"run","Package":"p","Test":"TestB/two"}
{"Action":"skip","Package":"p","Test":"TestB/two"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestC"}
"""


def outcomes(text: str, code: int | None = 1) -> dict[str, State]:
    events = Events(lambda line: None)
    for line in text.splitlines():
        events.line(line)
    return {o.test: o.state for o in events.outcomes(code)}


def test_go_tests_are_counted_where_they_have_nothing_below() -> None:
    """TestC began and did not end: the process was killed, or has panicked."""
    assert outcomes(EVENTS) == {"TestA": PASSED, "TestB/one": FAILED, "TestB/two": SKIPPED, "TestC": FAILED}


def test_a_go_test_that_fails_by_itself_is_counted_beside_those_below() -> None:
    events = EVENTS.replace('"fail","Package":"p","Test":"TestB/one"', '"pass","Package":"p","Test":"TestB/one"')
    found = {"TestA": PASSED, "TestB": FAILED, "TestB/one": PASSED, "TestB/two": SKIPPED, "TestC": FAILED}
    assert outcomes(events) == found


def test_a_go_run_that_fails_without_a_failed_test_has_failed() -> None:
    assert outcomes("x.go:3:1: undefined: y\n", 1) == {"go test": FAILED}
    assert outcomes("", 0) == {}


def test_a_go_failure_says_what_it_complained_of() -> None:
    events = Events(lambda line: None)
    for line in EVENTS.splitlines():
        events.line(line)
    assert {o.test: o.why for o in events.outcomes(1)}["TestB/one"] == "b_test.go:7: got 3"


TABLE = """
    _TEST(0001_multiobj, 0),
    _TEST(0004_conf, TEST_F_LOCAL),
    _TEST(0011_produce_batch,
          /* Produces a lot of messages */
          0,
    _TEST(0049_consume_conn_close, TEST_F_SOCKEM, TEST_BRKVER(0, 9, 0, 0)),
    _TEST(0107_topic_recreate,
          0,
          TEST_BRKVER(2, 4, 0, 0)),
"""


def test_librdkafkas_tests_that_need_a_broker() -> None:
    assert against_a_broker(TABLE) == ["0001_multiobj", "0011_produce_batch", "0107_topic_recreate"]


@pytest.mark.parametrize(
    ("ran", "report", "state"),
    [
        (Ran(0, ""), '{"tests": {"0001_x": {"state": "PASSED"}}}', PASSED),
        (Ran(0, ""), '{"tests": {"0001_x": {"state": "SKIPPED"}}}', SKIPPED),
        (Ran(1, "[0001_x] TEST FAILURE: no"), '{"tests": {"0001_x": {"state": "FAILED"}}}', FAILED),
        (Ran(-11, ""), "", FAILED),
        (Ran(None, ""), '{"tests": {"0001_x": {"state": "PASSED"}}}', FAILED),
        (Ran(0, ""), '{"tests": {}}', FAILED),
        (Ran(-6, "free(): invalid pointer"), '{"tests": {"0001_x": {"state": "PASSED"}}}', FAILED),
        (Ran(1, ""), '{"tests": {"0001_x": {"state": "SKIPPED"}}}', FAILED),
    ],
)
def test_what_librdkafkas_runner_reports(ran: Ran, report: str, state: State) -> None:
    assert outcome_of("0001_x", ran, report).state is state


SILENT = next(step for step in STEPS if step.name == "topics-alter")
GONE = next(step for step in STEPS if step.name == "topics-deleted")


@pytest.mark.parametrize(
    ("step", "ran", "state"),
    [
        (SILENT, Ran(0, ""), PASSED),
        (SILENT, Ran(-9, ""), FAILED),
        (SILENT, Ran(1, ""), FAILED),
        (SILENT, Ran(None, ""), FAILED),
        (SILENT, Ran(0, "Error while executing topic command"), FAILED),
        (GONE, Ran(1, "Error: Topic 'steps' does not exist as expected"), PASSED),
        (GONE, Ran(137, "Error: Topic 'steps' does not exist as expected"), FAILED),
    ],
)
def test_a_tool_has_to_say_it_and_to_end_in_order(step: Step, ran: Ran, state: State) -> None:
    """Six tools have nothing to say: without the exit code one that was killed would have passed."""
    assert tool_outcome(step, ran).state is state


def test_a_suite_of_which_no_test_was_run_has_not_passed() -> None:
    for outcomes in ([], [Outcome("TestA", SKIPPED)]):
        row = judged(*outcomes)
        assert row.missing == "no test of it was run"
        assert verdict([row]) == Exit.ENDED


def test_the_list_of_what_is_expected_is_of_suites_that_there_are(tmp_path: Path) -> None:
    expected = read_expected()
    assert set(expected) <= set(SUITES)
    assert all(all({**of.fails, **of.may_fail, **of.left_out}.values()) for of in expected.values())
    assert set(expected["kafka-tools"].fails) <= {step.name for step in STEPS}
    (tmp_path / "wrong.toml").write_text('[franz-go.fials]\nTestA = "no"\n')
    with pytest.raises(IterableValidationError):
        read_expected(tmp_path / "wrong.toml")


def test_a_name_that_is_no_suite_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["franzgo"]) == Exit.USAGE
    assert "there is no suite 'franzgo'; did you mean 'franz-go'?" in capsys.readouterr().err


def test_a_missing_program_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match=r"go, which runs tests, is missing \(Debian: apt-get install golang-go\)"):
        program("go", "runs tests", "golang-go")


@pytest.mark.processes
def test_a_program_that_hangs_is_killed_with_what_it_started() -> None:
    assert run(["sh", "-c", "echo said; sleep 60 & sleep 60"], 0.3) == Ran(None, "said\n")
    assert run(["sh", "-c", "cat; exit 3"], 10, stdin="told\n") == Ran(3, "told\n")
