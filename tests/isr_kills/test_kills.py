"""The kill matrix: the table's bugs are the switches, and what its cells say is found again where they say so.

`make test ARGS="-m slow -k kills"` finds every cell again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import attrs
import pytest
from tests.support.sample import sample

from insync_cli.conformance.kills import MARKS, rewrite
from insync_cli.main import main
from isr_anomalies import Verdict, check, pair_operations, read_json
from isr_broker.designs import DESIGNS, KIP_966, PLANTED, Design
from isr_broker.settings import Settings
from isr_kills import HISTORIC, PLANS, Historic, Layer, historic_table, layers, repeat_cell, run_bug, run_fix, table
from isr_kills.crash_points import first_broken_promise
from isr_kills.situations import broken_in_a_situation
from isr_lang import Value
from isr_protocol.planted.bugs import PLANTED as MODEL_BUGS
from isr_replay import ReplayResult, replay
from isr_sim.histories import history, telling
from isr_sim.simulate import Config, finish_run

PAGE: Final = (Path(__file__).resolve().parents[2] / "docs" / "kills.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.explores


def part(name: str) -> str:
    """What stands between two marks of the page."""
    return PAGE.split(MARKS[name])[1].strip()


def rows(name: str) -> list[list[str]]:
    """The cells of the first table there."""
    lines = part(name).split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


MATRIX: Final = {
    (row[0].strip("`"), layer): cell for row in rows("matrix") for layer, cell in zip(Layer, row[1:], strict=True)
}
FOUND: Final = {place: cell for place, cell in MATRIX.items() if cell not in ("", "-")}


def test_the_bugs_of_the_table_are_the_switches_of_cores_and_model() -> None:
    named = list(dict.fromkeys(bug for bug, _ in MATRIX))
    assert named == list(PLANTED) == list(MODEL_BUGS) == list(PLANS)
    assert len(named) == 32


def planted_run_raises(package: str, error: Exception) -> Callable[[int, Config], object]:
    """A stand-in for `simulate`: a run with a bug fails in a file of a package, one without breaks no promise."""
    names: dict[str, object] = {"error": error}
    exec(compile("def fail():\n    raise error\n", f"/sources/{package}/some.py", "exec"), names)
    fail = cast("Callable[[], None]", names["fail"])

    def run(seed: int, config: Config) -> object:
        if config.settings.insync_design != KIP_966:
            fail()
        return SimpleNamespace(promise=None)

    return run


def test_what_the_simulator_itself_gets_wrong_finds_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it any mistake in the simulator's own code would be a cell of the matrix."""
    monkeypatch.setattr(layers, "simulate", planted_run_raises("isr_sim", KeyError("r9")))
    with pytest.raises(KeyError):
        layers.by_simulator(next(iter(PLANTED)), "usual", [1])


def test_a_core_that_fails_where_todays_does_not_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "simulate", planted_run_raises("isr_broker", AssertionError()))
    found = layers.by_simulator(next(iter(PLANTED)), "usual", [1])
    assert found is not None
    assert found.what == "a core fails: AssertionError"


def test_each_switch_is_off_in_every_real_design_and_alone_in_its_own() -> None:
    fields = [a.name for a in attrs.fields(Design) if a.name != "name"]
    for name, planted in PLANTED.items():
        changed = [field for field in fields if getattr(planted, field) != getattr(KIP_966, field)]
        assert len(changed) == 1, name
        new = name.replace("-", "_")
        if new in fields:
            assert changed == [new]
            assert not any(getattr(design, new) for design in DESIGNS.values())
        assert Settings.from_properties({"insync.design": name}).insync_design is planted


def test_every_bug_is_in_the_model_or_says_why_not() -> None:
    for bug in MODEL_BUGS.values():
        assert (bug.design is None) != (bug.without == ""), bug.name
        assert MATRIX[bug.name, Layer.MODEL] == "" or bug.design is not None


def test_the_summary_counts_the_cells() -> None:
    by = [sum((bug, layer) in FOUND for layer in Layer) for bug in PLANTED]
    assert f"{sum(n > 0 for n in by)} of 32 bugs are found, {sum(n > 1 for n in by)} by two layers or more." in PAGE
    assert min(by) >= 1
    assert sum(n > 1 for n in by) >= 19


def again(bug: str, layer: Layer) -> None:
    """The same cell; of a trace the same run, for which line is rejected first may change with the validator."""
    said, found = FOUND[bug, layer], repeat_cell(bug, layer, FOUND[bug, layer])
    if layer is Layer.TRACES:
        said, found = said.partition(" (")[2], found.partition(" (")[2]
    assert found == said


SAMPLE: Final = {
    Layer.MODEL: ("elect-outside-isr", "keep-elr"),
    Layer.REPLAY: ("commit-under-minimum", "truncate-to-watermark"),
    Layer.TRACES: ("read-above-watermark", "watermark-of-diverging"),
    Layer.SIMULATOR: ("no-broker-epoch-check", "join-at-watermark"),
    Layer.HISTORY: ("append-retries", "keep-elr"),
    Layer.CRASH_POINTS: ("epoch-file-behind", "checkpoint-in-place"),
}
"""Two bugs for each layer, always the same; the slow test finds all of them again."""


@pytest.mark.parametrize(("bug", "layer"), [(bug, layer) for layer, bugs in SAMPLE.items() for bug in bugs])
def test_what_a_cell_says_is_found_again(bug: str, layer: Layer) -> None:
    again(bug, layer)


LOSSES: Final = (
    "acknowledges-past-end",
    "cut-keeps-start",
    "cuts-damaged-metadata",
    "trusts-clean-mark",
    "refusals-outlive-topics",
    "goes-on-without-timers",
    "keeps-elr-at-new-minimum",
    "starts-without-metadata",
    "trusts-log-start",
    "sends-damaged-batches",
    "no-cluster-id-check",
)


@pytest.mark.parametrize("bug", LOSSES)
def test_what_lost_records_outside_of_the_cores_is_found_by_the_simulator(bug: str) -> None:
    again(bug, Layer.SIMULATOR)


def test_the_sample_has_every_layer() -> None:
    assert list(SAMPLE) == list(Layer)


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "layer"), sorted(FOUND))
def test_what_any_cell_says_is_found_again(bug: str, layer: Layer) -> None:
    again(bug, layer)


def test_the_replay_finds_nothing_where_todays_cores_differ_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference of today's cores would be called a bug's otherwise. Here the control has the bug as well."""
    detection = layers.by_replay("keep-elr", {"replicas": 2})
    assert detection is not None

    def always(bounds: Mapping[str, Value], **_: object) -> ReplayResult:
        return replay(bounds, planted=PLANTED["keep-elr"], until_differs=True)

    monkeypatch.setattr(layers, "replay", always)
    assert layers.by_replay("keep-elr", {"replicas": 2}) is None


def test_todays_design_stands_every_situation() -> None:
    assert broken_in_a_situation(KIP_966) is None


def test_todays_log_directory_breaks_no_promise_at_any_write() -> None:
    assert first_broken_promise(KIP_966) is None


@pytest.mark.parametrize("seed", range(6))
def test_what_the_clients_of_todays_design_tell_has_no_anomaly(seed: int) -> None:
    run = telling(Config(), seed)
    finish_run(run)
    told = history(run)
    answer = check(pair_operations(read_json(told)))
    assert [j.name for j in answer.judgements if j.forbidden or j.verdict is Verdict.UNKNOWN] == []
    assert answer.counts.acked > 10
    assert sum('"final-read"' in line for line in told) == 2


# The designs of history


def seed_in(cell: str) -> int:
    found = re.search(r"seed (\d+)$", cell)
    assert found is not None, cell
    return int(found[1])


SEEDS: Final = {row[0].strip("`"): seed_in(row[2]) for row in rows("historic")}


def test_the_table_of_history_is_what_the_code_says() -> None:
    assert part("historic") == historic_table(SEEDS).strip()
    without = {"kip-966"}
    assert set(SEEDS) == set(DESIGNS) - without


@pytest.mark.parametrize("case", sample(HISTORIC, 3), ids=lambda case: case.design)
def test_a_design_has_its_bug_and_what_fixed_it_has_not(case: Historic) -> None:
    assert run_bug(case, SEEDS[case.design]).promise == case.promise
    fixed = run_fix(case, SEEDS[case.design])
    assert fixed.promise is None, fixed.violation


# The command


def test_the_command_finds_some_and_writes_between_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kills", "checkpoint-in-place", "--layer", "crash points", "--plain"]) == 0
    assert "1 of 1 bugs are found" in capsys.readouterr().out
    assert main(["kills", "append-retries", "--layer", "model", "--plain"]) == 22
    page = tmp_path / "page.md"
    page.write_text("".join(f"before\n{mark}\nold\n{mark}\nafter\n" for mark in MARKS.values()))
    rewrite(page, {"matrix": table({}), "historic": "| new |\n"})
    assert "old" not in page.read_text()
    assert page.read_text().count("after") == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["keep-err"], "no bug is called 'keep-err'; did you mean 'keep-elr'?"),
        (["--layer", "luck"], "no layer is called 'luck'; they are model, replay"),
        (["keep-elr", "--write", "x"], "--write takes the whole matrix"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kills", *arguments]) == 64
    assert complaint in capsys.readouterr().err
