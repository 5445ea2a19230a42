"""How long writes waited, what a majority would have waited for, what was dumped, and Jepsen's three rates."""

import json
from pathlib import Path

import attrs
import pytest

from isr_experiment.catalogue import EXPERIMENTS
from isr_experiment.cell_run import Result
from isr_experiment.clients import told_offset
from isr_experiment.conclusions import CellConclusion, rates
from isr_experiment.recorder import Recorder
from isr_experiment.verdicts import Fate, dumped_values
from isr_experiment.waits import Spread, majority_took, spread, waits

MS = 1_000_000


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """Values 0 to 9, sent a millisecond apart in two phases; the odd ones are acknowledged, later and later."""
    made = Recorder(tmp_path / "history.jsonl", {"acks": "all"})
    made.send_times = {v: v * MS for v in range(10)}
    made.acked = {v: 2 * v * MS for v in range(1, 10, 2)}
    made.marks = [("calm", 0), ("cut", 5 * MS)]
    return made


def test_a_spread_is_of_what_is_there() -> None:
    assert spread([]) is None
    assert spread(n * MS for n in range(1, 101)) == Spread(writes=100, p50=50.0, p99=99.0, longest=100.0)
    assert spread([3 * MS]) == Spread(writes=1, p50=3.0, p99=3.0, longest=3.0)


def test_each_phase_has_the_waits_of_what_was_sent_in_it(recorder: Recorder) -> None:
    calm, cut = waits(recorder, {0: 4 * MS, 9: 0})
    assert (calm.phase, cut.phase) == ("calm", "cut")
    assert calm.acknowledged == Spread(writes=2, p50=1.0, p99=3.0, longest=3.0)
    assert cut.acknowledged == Spread(writes=3, p50=7.0, p99=9.0, longest=9.0)
    assert calm.majority == Spread(writes=1, p50=4.0, p99=4.0, longest=4.0)
    assert cut.majority == Spread(writes=1, p50=0.0, p99=0.0, longest=0.0)
    assert waits(recorder, {})[0].majority is None


def test_a_majority_has_a_value_when_the_second_of_three_has_appended_what_the_first_had(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"history": 1, "settings": {}}]
    for at, node, value in ((30, "a", 1), (10, "b", 1), (20, "c", 1), (50, "b", 1), (7, "a", 2)):
        lines.append({"f": "append", "time": at, "node": node, "offset": value, "value": value})
    lines.append({"f": "truncate", "time": 40, "node": "a", "offset": 0})
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert majority_took(path, 3) == {1: 10}
    assert majority_took(path, 5) == {1: 20}
    assert majority_took(path, 1) == {1: 0, 2: 0}


def test_what_was_dumped_is_read_from_the_brokers_folders(tmp_path: Path) -> None:
    assert not dumped_values({1: tmp_path})
    text = [{"partition": "t-0", "offset": 1, "value": "17"}, {"offset": 2, "value": None}, {"value_base64": "/w=="}]
    (tmp_path / "dropped-records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in text))
    assert dumped_values({1: tmp_path, 2: tmp_path / "none"}) == {17}


def test_without_an_acknowledgement_no_offset_was_told() -> None:
    assert [told_offset(acks, 7) for acks in ("all", "1", "0")] == [7, 7, None]
    assert told_offset("all", -1) is told_offset("1", None) is None


def fate(**counts: int) -> Fate:
    zero = dict.fromkeys((f.name for f in attrs.fields(Fate) if f.name != "phase"), 0)
    return Fate(phase="all", **zero | counts)


def test_the_rates_of_2013_each_with_its_own_whole() -> None:
    result = Result.__new__(Result)
    object.__setattr__(result, "fates", (fate(attempted=1_000, acknowledged=987, lost=520, recovered=1),))
    [cell, *_] = EXPERIMENTS["recommendations"].cells(0)
    found = rates(CellConclusion(cell=cell, results=(result,), prediction=None, required_runs=1))
    assert [str(rate) for rate in found] == [
        "acknowledged of attempted 987 of 1,000, 98.7 %",
        "lost of acknowledged 520 of 987, 52.7 %",
        "found of unacknowledged 1 of 13, 7.7 %",
    ]
    assert str(attrs.evolve(found[0], part=0, of=0)).endswith("0 of 0, none")


def test_the_recommendations_alone_and_together_are_asked_of_the_model_and_dump() -> None:
    cells = {c.name: c for c in EXPERIMENTS["recommendations"].cells(0)}
    assert len(cells) == 4
    assert all(c.properties()["insync.dropped.records"] == "true" and c.questions for c in cells.values())
    assert {(c.min_insync, c.unclean) for c in cells.values()} == {(m, u) for m in (1, 2) for u in (True, False)}


def test_latency_has_every_acks_and_several_lags_and_is_timed() -> None:
    cells = EXPERIMENTS["latency"].cells(0)
    assert {c.acks for c in cells} == {"all", "1", "0"}
    assert len({c.properties()["replica.lag.time.max.ms"] for c in cells if c.acks == "all"}) >= 3
    assert all(c.shows_waits for c in cells)
