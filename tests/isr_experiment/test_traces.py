"""What an experiment makes of its brokers' traces: who held what was acknowledged (check 27), and planted bugs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from tests.isr_experiment.test_experiment import CELL, conclude, result

from isr_broker.snapshot import Json
from isr_broker.trace_reader import Event, Life
from isr_experiment.cells import Expected
from isr_experiment.conclusions import Verdict, totals
from isr_experiment.holders import MS, note_holders, trace_notes, values_of
from isr_experiment.recorder import PARTITION, Recorder
from isr_experiment.verdicts import TraceVerdict, judge_history

CLAIMS = {"acks": "all", "idempotence": True, "min_insync": 2, "unclean": False, "progress_within": 5_000_000_000}


def life(broker: int, *lines: Mapping[str, Json]) -> Life:
    events = [Event(f"{broker}.1", n, {}, {"partition": PARTITION, **line}) for n, line in enumerate(lines, 1)]
    return Life(f"{broker}.1", {}, tuple(events), has_torn_end=False)


def batch(offset: int, epoch: int, count: int = 1) -> Json:
    return [[offset, epoch, count, 77, -1, -1, -1]]


def wrote(at: int, offset: int, epoch: int, count: int = 1) -> Mapping[str, Json]:
    """At so many milliseconds."""
    return {"at": at, "wrote": batch(offset, epoch, count), "state": {"log_end": offset + count}}


def cut(at: int, end: int) -> Mapping[str, Json]:
    return {"at": at, "state": {"log_end": end}}


def told(folder: Path, *lives: Life, found: Mapping[tuple[int, int], int], late_ms: int = 0) -> dict[str, list[str]]:
    """One producer sends 7 and then 8, acknowledged at 0 and 1; `late_ms` is how late brokers' lines are."""
    recorder = Recorder(folder / "history.jsonl", CLAIMS)
    for offset, value in enumerate((7, 8)):
        recorder.sends("w", value, "all")
        recorder.note_outcome("w", value, offset)
    recorder.close()
    recorder.began = -late_ms * MS
    note_holders(recorder, lives, found)
    words: dict[str, list[str]] = {}
    for judgement in judge_history(recorder.path)[0].judgements:
        words.setdefault(judgement.verdict.value, []).append(judgement.name)
    return words


BOTH = {(0, 1): 7, (1, 1): 8}


@pytest.mark.parametrize(
    ("lives", "verdict"),
    [
        ([life(2, wrote(0, 0, 1, 2)), life(3, wrote(0, 0, 1), wrote(0, 1, 1))], "HOLDS"),
        ([life(2, wrote(0, 0, 1, 2)), life(3, wrote(0, 0, 1))], "VIOLATED"),
        ([life(2, wrote(0, 0, 1, 2)), life(3, wrote(0, 0, 1, 2), cut(0, 1))], "VIOLATED"),
        ([life(2, wrote(0, 0, 1, 2)), life(3, {"at": 0, "log": batch(0, 1, 2)})], "HOLDS"),
        ([life(2, wrote(0, 0, 1, 2)), life(3, wrote(0, 0, 1), wrote(0, 1, 2))], "VIOLATED"),
        ([], "VACUOUS"),
    ],
)
def test_what_is_acknowledged_was_on_so_many_brokers_or_the_contract_is_broken(
    lives: list[Life], verdict: str, tmp_path: Path
) -> None:
    assert "acks-contract" in told(tmp_path, *lives, found=BOTH)[verdict]


def test_a_broker_that_has_it_only_after_the_acknowledgement_did_not_hold_it(tmp_path: Path) -> None:
    lives = (life(2, wrote(0, 0, 1, 2)), life(3, wrote(0, 0, 1, 2)))
    assert "acks-contract" in told(tmp_path, *lives, found=BOTH, late_ms=-60_000)["HOLDS"]
    assert "acks-contract" in told(tmp_path, *lives, found=BOTH, late_ms=60_000)["VIOLATED"]


def test_a_value_that_is_gone_was_the_last_that_was_appended_at_its_offset_by_then() -> None:
    lives = [life(2, wrote(0, 0, 1, 2), cut(1, 1), wrote(2, 1, 2))]
    lines = list(trace_notes(lives, 0))
    everything = {(0, 1): 7, (1, 1): 8, (1, 2): 9}
    assert values_of(lines, {(0, 1): 7, (1, 2): 9}, [(7, 0, MS), (8, 1, MS), (9, 1, 3 * MS)]) == everything
    assert values_of(lines, {(0, 1): 7}, [(7, 0, MS), (8, 1, MS), (9, 1, 3 * MS)]) == everything
    assert values_of(lines, {}, [(8, 1, -1)]) == {}
    late = [(8, 1, 4 * MS), (9, 1, 3 * MS)]
    assert values_of(lines, {}, late) == {(1, 1): 8, (1, 2): 9}, "each has one, also if its acknowledgement was slow"
    assert [(one.at, one.end, one.appended) for one in lines] == [
        (0, None, ((0, 1), (1, 1))),
        (MS, 1, ()),
        (2 * MS, None, ((1, 2),)),
    ]


def test_a_trace_that_the_model_rejects_fails_its_cell() -> None:
    bad = attrs.evolve(
        result(), trace_verdict=TraceVerdict(accepted=False, events=1, steps=0, outside=0, why="1.1.jsonl:2")
    )
    assert conclude(CELL, bad).verdict is Verdict.REJECTED


def test_a_planted_bug_may_be_caught_by_its_traces_alone() -> None:
    bad = attrs.evolve(
        result(), trace_verdict=TraceVerdict(accepted=False, events=5, steps=0, outside=0, why="1.1.jsonl:2")
    )
    bug = attrs.evolve(CELL, expected=Expected.CAUGHT)
    assert conclude(bug, bad).verdict is Verdict.AS_EXPECTED
    assert conclude(bug, attrs.evolve(bad, invalid=("no fault struck",))).verdict is Verdict.INVALID
    assert conclude(
        bug, attrs.evolve(bad, trace_verdict=TraceVerdict(accepted=True, events=5, steps=1, outside=0))
    ).verdict is (Verdict.NOT_CAUGHT)
    assert totals([conclude(bug, bad)]).rejected == 0, "what the model says of bugs is counted apart"
