"""Whoever asks a part of a question hears what was not judged, on the line that is quoted.

Without these a verdict on one promise, anomaly or topic could be quoted as that on all of them.
"""

import json
from pathlib import Path

import pytest
from tests.insync_cli.test_prove import SAFE, with_invariant
from tests.isr_anomalies.test_history_files import GOOD, LOST, write
from tests.support.histories import Story

from insync_cli.main import main
from insync_cli.omissions import omissions_text, others_text
from isr_anomalies import ANOMALIES, Answer, check, pair_operations, read_json
from isr_anomalies.catalogue import Anomaly


def last(capsys: pytest.CaptureFixture[str], command: str, code: int) -> str:
    assert main(command.split()) == code, command
    return capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ("", "4 promises hold in every reachable state; 2 probes reached; not judged: 1 liveness promise"),
        (
            "--reopen on",
            "3 promises hold in every reachable state; 2 probes reached; "
            "not judged: 1 liveness promise, 1 promise off at these settings",
        ),
        ("--property never-back", "HOLDS - never-back holds in every reachable state; not judged: 3 other promises"),
        (
            "--property never-back --property type-ok --property never-ahead",
            "never-ahead, never-back and type-ok hold in every reachable state; not judged: 2 other promises",
        ),
        (
            "--without jams",
            "hold in every reachable state; 2 probes reached; left out: jams; not judged: 1 liveness promise",
        ),
    ],
)
def test_a_check_says_which_promises_it_did_not_judge(
    desk: Path, capsys: pytest.CaptureFixture[str], options: str, ends: str
) -> None:
    line = last(capsys, f"check careful --out here {options}", 0)
    assert line.endswith(ends)
    left = json.loads((desk / "here" / "run.json").read_text(encoding="utf-8"))["omissions"]
    assert "everybody-served" in left
    assert set(left) <= {"never-ahead", "never-back", "closed-is-done", "everybody-served"}


def test_what_is_violated_is_not_followed_by_what_was_not_asked(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert last(capsys, "check hasty --property never-ahead --quiet", 12).endswith("VIOLATED - never-ahead violated")


@pytest.mark.processes
@pytest.mark.solver
@pytest.mark.parametrize(
    ("options", "code", "says", "left"),
    [
        (
            "",
            0,
            "PROVED - never-ahead, never-back and closed-is-done hold for every",
            ["everybody-served"],
        ),
        (
            "--reopen on",
            0,
            "PROVED - never-ahead and never-back hold for every",
            ["closed-is-done", "everybody-served"],
        ),
        (
            "--reopen on --property closed-is-done",
            21,
            "VACUOUS - closed-is-done vacuous (not promised at these settings)",
            ["never-ahead", "never-back", "everybody-served"],
        ),
        (
            "--property never-back",
            0,
            "PROVED - never-back holds for every",
            ["never-ahead", "closed-is-done", "everybody-served"],
        ),
    ],
)
def test_a_promise_that_the_settings_switch_off_is_not_judged_unless_it_is_named(
    desk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: str,
    code: int,
    says: str,
    left: list[str],
) -> None:
    """It was VACUOUS as the word for the whole, with exit code 0 beside it."""
    with_invariant(monkeypatch, SAFE)
    line = last(capsys, f"prove careful --tickets 2 --out here {options}", code)
    assert says in line
    answer = json.loads((desk / "here" / "prove.json").read_text(encoding="utf-8"))
    assert answer["omissions"] == left
    assert answer["verdict"] == ("PROVED" if code == 0 else "VACUOUS")
    assert (f"not judged: {len(left)} other promise" in line) is (code == 0)


def test_a_promise_that_was_asked_for_is_not_left_out_of_a_part(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was dropped without a word."""
    with_invariant(monkeypatch, SAFE)
    assert main(["prove", "careful", "--property", "never-back", "--only", "never-ahead"]) == 64
    assert "--only leaves out never-back, which --property asks for" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "options", "code", "says"),
    [
        (GOOD, "", 0, "HOLDS - 13 never seen, 2 measured; 14 vacuous"),
        (LOST, "duplicate", 0, "HOLDS - duplicate never seen; not judged: 28 other anomalies"),
        (LOST, "duplicate lost-write", 12, "VIOLATED - lost-write (1); duplicate never seen; not judged: 27 other"),
        (GOOD, "consume-counts", 21, "VACUOUS - consume-counts vacuous; not judged: 28 other anomalies"),
        (
            LOST,
            "ordered-cycle",
            21,
            "VACUOUS - ordered-cycle never seen; nothing that was judged can be VIOLATED; not judged: 28 other",
        ),
        (LOST, "unavailability realtime-lag int-send-skip", 21, "nothing that was judged can be VIOLATED; not judged"),
    ],
)
def test_a_history_says_which_anomalies_it_did_not_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], options: str, code: int, says: str
) -> None:
    """`--anomaly ordered-cycle`, which is always permitted, was HOLDS of a history that loses a record."""
    named = " ".join(f"--anomaly {name}" for name in options.split())
    assert says in last(capsys, f"history {write(tmp_path / 'h.jsonl', lines)} {named}", code)
    left = json.loads((tmp_path / "h.json").read_text(encoding="utf-8"))["omissions"]
    assert left == ([] if not options else [a.name for a in ANOMALIES if a.name not in options.split()])


def answer_about(anomaly: Anomaly, lines: list[str]) -> Answer:
    return check(pair_operations(read_json(lines)), (anomaly,))


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: str(anomaly.name))
@pytest.mark.parametrize("lines", [GOOD, LOST, Story().poll().lines], ids=("good", "lost", "nothing"))
def test_no_anomaly_alone_makes_a_history_good_that_cannot_make_it_bad(anomaly: Anomaly, lines: list[str]) -> None:
    answer = answer_about(anomaly, lines)
    [judgement] = answer.judgements
    if not judgement.can_fail:
        assert answer.verdict == "VACUOUS"
    else:
        assert answer.verdict == judgement.verdict


TOPICS = "".join(
    f"Topic: {name}\tTopicId: {name * 22}\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    f"\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
    for name in "abc"
)


@pytest.mark.parametrize(
    ("verb", "steps", "says"),
    [
        ("audit", "", "; not judged: 2 other topics"),
        ("drill", "stop 3", " throughout; not judged: 2 other topics, of which the steps may touch partitions"),
    ],
)
def test_an_answer_about_one_topic_says_how_many_it_leaves_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    steps: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "topics.txt"
    file.write_text(TOPICS, encoding="utf-8")
    command = f"{verb} --describe {file} --kafka 4.4.0 --elr on --json out.json {steps}"
    for options, left in (("", []), (" --topic b", ["a", "c"])):
        main(f"{command}{options}".split())
        said = " ".join(capsys.readouterr().out.split())
        assert (says.strip() in said) is bool(left), said
        assert json.loads(Path("out.json").read_text(encoding="utf-8"))["omissions"] == left


def test_counts_and_nouns() -> None:
    assert omissions_text((0, "promise", ""), (0, "cell", "")) == ""
    assert omissions_text((1, "promise", " off"), (2, "cell", "")) == "not judged: 1 promise off, 2 cells"
    assert others_text(["a", "b"], ["a", "b", "c"], "bug") == "not judged: 1 other bug"
    assert others_text(["a"], ["a"], "bug") == ""
