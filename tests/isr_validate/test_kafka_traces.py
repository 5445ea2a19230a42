"""What our agent writes in Apache Kafka's brokers against the model: a real run is accepted, a forged one is not.

`kafka-4.4.0/` are the first seconds of a run of `insync experiment acks-1 --cell acks=all --system apache-kafka=4.4.0
--agent`: a leader that is cut off, a shrink, an election, two followers that truncate. In `kafka-4.4.0-deleted/` there
are 10 records when broker 4 is killed and 20 when the first 15 are deleted (DeleteRecords); then it is started, twice.
Without these tests a validator that accepts whatever the agent writes would look like a Kafka without bugs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from insync_cli.main import main
from isr_broker.snapshot import Json
from isr_validate import Level, Validation, read_traces, validate
from isr_validate.kafka_trace import FORMAT

pytestmark = pytest.mark.explores

RECORDED = Path(__file__).parent / "kafka-4.4.0"
DELETED = Path(__file__).parent / "kafka-4.4.0-deleted"
Says = dict[str, Json]
Files = dict[str, list[Says]]


@cache
def recorded(folder: Path) -> str:
    return json.dumps({file.stem: file.read_text().splitlines() for file in sorted(folder.glob("*.jsonl"))})


def lines(folder: Path = RECORDED) -> Files:
    return {
        life: [cast("Says", json.loads(line)) for line in text]
        for life, text in cast("dict[str, list[str]]", json.loads(recorded(folder))).items()
    }


def judged(files: Files, level: Level = Level.EVENTS) -> Validation:
    numbered = [
        (f"{life}.jsonl", "".join(json.dumps(one) + "\n" for one in told).encode()) for life, told in files.items()
    ]
    return validate(read_traces(numbered), level)


def one(files: Files, what: str, chosen: Callable[[Says], bool] = lambda says: True, nth: int = 0) -> tuple[str, int]:
    """The life and the place of a line."""
    found = [
        (life, n)
        for life, told in files.items()
        for n, says in enumerate(told)
        if says.get("what") == what and chosen(says)
    ]
    return found[nth]


def without(files: Files, at: tuple[str, int]) -> Files:
    """The trace of an agent that never wrote this line."""
    life, place = at
    after = [{**says, "n": cast("int", says["n"]) - 1} for says in files[life][place + 1 :]]
    return {**files, life: [*files[life][:place], *after]}


@pytest.mark.parametrize("level", [Level.EVENTS, Level.CLIENT])
def test_a_run_of_apache_kafka_is_a_run_of_the_model(level: Level) -> None:
    done = judged(lines(), level)
    assert done.accepted, done.rejected
    assert done.events == done.lines == sum(len(told) - 1 for told in lines().values()) > 500


def test_the_recorded_run_has_what_the_others_forge() -> None:
    steps = judged(lines()).steps
    for what in ("appends", "copies", "decides", "diverges", "fetched", "follows", "leads", "proposes", "watermark"):
        assert steps[what] > 0, what


# Agents that lie


def test_a_raised_watermark_is_rejected() -> None:
    files = lines()
    life, place = one(
        files, "watermark", lambda says: cast("int", says["high_watermark"]) < cast("int", says["log_end"])
    )
    told = files[life][place]
    told["high_watermark"] = told["log_end"]
    no = judged(files).rejected
    assert no is not None
    assert (no.life, no.line, no.action) == (life, place + 1, "watermark")
    assert no.differences["high_watermark"][1] == str(told["log_end"])


def test_a_truncation_that_was_dropped_is_rejected_at_the_next_copy() -> None:
    files = lines()
    cut = one(files, "truncates", lambda says: cast("int", says["log_end"]) > 0)
    no = judged(without(files, cut)).rejected
    assert no is not None
    assert (no.life, no.action) == (cut[0], "copies")
    assert no.why == "a batch at 38 is appended to a log that ends at 43"


def test_a_follower_s_end_that_is_forged_is_rejected() -> None:
    files = lines()
    life, place = one(files, "fetched", lambda says: cast("int", says["end"]) > 5)
    told = files[life][place]
    told["end"] = cast("int", told["end"]) + 1
    no = judged(files).rejected
    assert no is not None
    assert (no.life, no.line, no.action) == (life, place + 1, "fetched")
    assert no.differences == {f"follower_end of {told['follower']}": (str(told["offset"]), str(told["end"]))}


def test_a_fetch_that_is_forged_with_the_end_is_rejected() -> None:
    files = lines()
    life, place = one(files, "fetched", lambda says: cast("int", says["end"]) > 5)
    told = files[life][place]
    told["offset"] = told["end"] = 1_000
    no = judged(files).rejected
    assert no is not None
    assert no.why == f"broker {told['follower']} fetches from 1000, where its log has never ended"


def test_another_checksum_is_rejected() -> None:
    files = lines()
    life, place = one(files, "copies", lambda says: bool(says["wrote"]))
    cast("list[list[int]]", files[life][place]["wrote"])[0][3] += 1
    no = judged(files).rejected
    assert no is not None
    assert "no leader has written the batch" in no.why


@pytest.mark.parametrize("what", ["appends", "copies"])
def test_a_batch_with_a_number_too_few_is_rejected(what: str) -> None:
    files = lines()
    life, place = one(files, what, lambda says: bool(says["wrote"]))
    cast("list[list[int]]", files[life][place]["wrote"])[0].pop()
    if what == "appends":
        cast("list[list[int]]", files[life][place]["asked"])[0].pop()
    no = judged(files).rejected
    assert no is not None
    assert (no.life, no.line) == (life, place + 1)
    assert "has 6 numbers, where a batch has 7" in no.why


def test_an_acknowledgement_before_its_watermark_is_rejected_at_both_levels() -> None:
    for level in (Level.EVENTS, Level.CLIENT):
        files = lines()
        life, place = one(files, "fetched", lambda says: cast("int", says["end"]) > 5)
        later = [says for says in files[life][place:] if says.get("what") not in ("fetched", "watermark", "answers")]
        files[life] = [*files[life][:place], *({**says, "n": place + n} for n, says in enumerate(later))]
        for follower in ("2.1", "4.1"):
            files[follower] = [
                says for says in files[follower] if says.get("leader") != 3 or says.get("what") != "copies"
            ]
            files[follower] = [{**says, **({"n": n} if n else {})} for n, says in enumerate(files[follower])]
        no = judged(files, level).rejected
        assert no is not None
        assert no.action == "acknowledges"
        assert "what is acknowledged is not committed" in no.why


def test_an_isr_that_the_controller_has_not_decided_is_rejected() -> None:
    files = lines()
    life, place = one(files, "leads", nth=1)
    cast("list[int]", files[life][place]["isr"]).append(9)
    no = judged(files).rejected
    assert no is not None
    assert no.why == "the controller has not decided what is learned"


@pytest.mark.slow
def test_a_decision_without_a_proposal_is_rejected() -> None:
    files = lines()
    while any(says.get("what") == "proposes" for says in files["3.1"]):
        files = without(files, one(files, "proposes", lambda says: says["partition_epoch"] == 1))
    no = judged(files).rejected
    assert no is not None
    assert (no.life, no.action) == ("controller.1", "decides")
    assert no.differences["controller_isr"] == ("(3, 4)", "(2, 3, 4)")


def test_a_proposal_that_was_refused_is_not_accepted() -> None:
    files = lines()
    life, place = one(files, "proposes", lambda says: says["partition_epoch"] == 1, -1)
    told = files[life][place]
    refusal: Says = {**told, "what": "refused", "error": "INELIGIBLE_REPLICA", "rolled_back": True}
    later = [{**says, "n": cast("int", says["n"]) + 1} for says in files[life][place + 1 :]]
    files[life] = [*files[life][: place + 1], {**refusal, "n": place + 1, "since": place}, *later]
    no = judged(files).rejected
    assert no is not None
    assert (no.life, no.action, no.why) == (
        "controller.1",
        "decides",
        "the controller accepts a proposal that it has refused",
    )


def test_an_order_of_replicas_is_no_step_and_any_other_decision_without_a_cause_is_rejected() -> None:
    files = lines()
    told = files["controller.1"]
    last = [says for says in told if says.get("what") == "decides"][-1]
    version = cast("int", last["partition_epoch"]) + 1
    more: Says = {**last, "n": len(told), "partition_epoch": version, "replicas": [3, 2, 4]}
    done = judged({**files, "controller.1": [*told, more]})
    assert done.accepted, done.rejected
    assert ("controller.1", len(told) + 1, "the replicas are preferred in another order") in done.outside
    no = judged({**files, "controller.1": [*told, {**more, "replicas": last["replicas"]}]}).rejected
    assert no is not None
    assert no.why == "no steps of the model lead to this decision"


# A log that begins later


@pytest.mark.parametrize("level", [Level.EVENTS, Level.CLIENT])
def test_a_follower_may_begin_its_log_again_where_its_leader_s_begins(level: Level) -> None:
    done = judged(lines(DELETED), level)
    assert done.accepted, done.rejected
    assert [why for _, _, why in done.outside] == ["a follower begins its log where its leader's begins"]


def until(files: Files, last: Says) -> Files:
    """The trace as it was when this line was written, before the ISR had all three again."""
    now = cast("int", last["at"])
    cut = {life: [says for says in told if cast("int", says["at"]) <= now] for life, told in files.items()}
    again = next(n for n, says in enumerate(cut["controller.1"]) if says.get("partition_epoch") == 4)
    return {**cut, "controller.1": cut["controller.1"][:again]}


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (21, "a follower begins its log again at 21, which nobody has said to be committed"),
        (9, "a follower begins its log again at 9, but it leads, follows nobody, or has more than that"),
    ],
)
def test_a_log_that_begins_again_elsewhere_is_rejected(at: int, why: str) -> None:
    files = lines(DELETED)
    life, place = one(files, "restarts")
    files[life][place] |= {"to": at, "log_end": at, "high_watermark": at}
    no = judged(until(files, files[life][place])).rejected
    assert no is not None
    assert (no.life, no.line, no.action, no.why) == (life, place + 1, "restarts", why)


def test_a_log_that_begins_again_unsaid_is_rejected() -> None:
    files = lines(DELETED)
    no = judged(without(files, one(files, "restarts"))).rejected
    assert no is not None
    assert no.why == "broker 4 fetches from 15, where its log has never ended"


# Handlers at the same time


def swapped(files: Files, wide: bool) -> Files:
    """The trace in which a follower's end is written after the watermark that needs it; `wide` says that it may have
    been known before."""
    for told in files.values():
        for n in range(1, len(told) - 1):
            first, second = told[n + 1], told[n]
            needed = (second.get("what"), first.get("what")) == ("fetched", "watermark")
            if needed and second["end"] == first["high_watermark"]:
                numbers = (told[n]["n"], told[n + 1]["n"])
                since = told[n]["since"] if wide else numbers[0]
                told[n] = {
                    **first,
                    "n": numbers[0],
                    "since": min(cast("int", first["since"]), cast("int", told[n - 1]["n"])),
                }
                told[n + 1] = {**second, "n": numbers[1], "since": since}
                return files
    raise AssertionError("no such pair")


def test_lines_of_handlers_that_overlap_may_be_in_another_order() -> None:
    assert judged(swapped(lines(), wide=True)).accepted
    no = judged(swapped(lines(), wide=False)).rejected
    assert no is not None
    assert no.action == "watermark"


# The command


def test_the_command_judges_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(RECORDED), "--plain"]) == 0
    assert "accepted" in capsys.readouterr().out


def test_files_of_two_formats_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "2.1.jsonl").write_text(json.dumps({"format": FORMAT, "node": "2", "life": 1}) + "\n")
    (tmp_path / "3.1.jsonl").write_text(json.dumps({"format": "insync/trace/1", "node": "3", "life": 1}) + "\n")
    assert main(["validate", str(tmp_path)]) == 65
    assert "3.1 begins with the format insync/trace/1, not insync/kafka-trace/1" in capsys.readouterr().err
