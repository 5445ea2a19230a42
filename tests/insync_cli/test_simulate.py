"""`insync simulate`: seeds, violations, scenarios and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import isr_sim
from insync_cli.main import main

SCENARIOS = Path(isr_sim.__file__).parent / "scenarios"


@pytest.mark.long
def test_todays_design_keeps_its_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "kip-966", "--seeds", "3..4"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 seeds, ")
    assert " seeds/s: 0 violations; " in said


@pytest.mark.long
def test_a_violation_is_told_with_its_seed_and_its_last_steps(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["simulate", "kafka-0.8", "--set", "min.insync.replicas=1", "--without", "power-loss", "--until", "1"]
    assert main([*arguments, "--seeds", "0..30", "--lines", "3", "--json", "report.json"]) == 12
    said = capsys.readouterr().out.splitlines()
    violations = [line for line in said if line.startswith("seed ")]
    assert len(violations) == 1
    assert said[said.index(violations[0]) + 3].split(maxsplit=1)[1].startswith("violated: ")
    assert "1 violation;" in said[-1]
    seed = violations[0].split()[1].rstrip(":")
    found = json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert [v["seed"] for v in found["violations"]] == [int(seed)]
    assert main([*arguments, "--seeds", seed]) == 12
    assert capsys.readouterr().out.splitlines()[0] == violations[0], "the seed alone gives it again"


@pytest.mark.long
def test_an_operator_moves_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    """The last steps of a violation are those of the same run again, with its operator."""
    for wider in ([], ["--wider"]):
        assert main(["simulate", "--seeds", "8", "--moves", *wider]) == 0
    capsys.readouterr()
    assert main(["simulate", "read-above-watermark", "--seeds", "1", "--moves", "--lines", "2000"]) == 12
    assert "is to have replicas" in capsys.readouterr().out


@pytest.mark.processes
def test_so_many_processes_tell_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["simulate", "zookeeper", "--seeds", "0..11", "--json", "-"]
    reports: list[dict[str, object]] = []
    for workers in ("1", "2"):
        assert main([*arguments, "--workers", workers]) == 12
        report = json.loads(capsys.readouterr().out)
        reports.append({k: v for k, v in report.items() if not k.startswith("seconds") and k != "seeds_per_second"})
    assert reports[0] == reports[1]
    assert main([*arguments, "--workers", "2", "--until", "1"]) == 12
    assert len(json.loads(capsys.readouterr().out)["violations"]) == 1


def test_a_planted_bug_is_simulated_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "read-above-watermark", "--seeds", "0", "--plain"]) == 12
    assert "reads-committed" in capsys.readouterr().out


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
def test_a_scenario_is_as_expected_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jepsen = SCENARIOS / "jepsen-2013.txt"
    assert main(["simulate", "--scenario", str(jepsen), "--seeds", "1..2"]) == 0
    assert "as expected with every seed: " in capsys.readouterr().out
    other = tmp_path / "other.txt"
    other.write_text(jepsen.read_text(encoding="utf-8").replace("kafka-0.8", "kip-966"), encoding="utf-8")
    assert main(["simulate", "--scenario", str(other), "--seeds", "7"]) == 22
    assert "seed 7: not met: expect broken acked-survives; every promise was kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["kip-996"], 64, "there is no design 'kip-996' of the broker; did you mean 'kip-966'?"),
        (["--seeds", "9..3"], 64, "--seeds wants A..B with A not above B, not '9..3'"),
        (["--without", "powerloss"], 64, "there is no fault 'powerloss'; did you mean 'power-loss'?"),
        (["--set", "min.isr=1"], 64, "there is no setting 'min.isr'; did you mean 'min.insync.replicas'?"),
        (["--scenario", "nowhere.txt"], 64, "cannot read nowhere.txt: no such file"),
        (["--scenario", "bad.txt"], 65, "bad.txt: line 1: nobody can 'crush'; did you mean 'crash'?"),
        (["kip-966", "--scenario", "bad.txt"], 64, "a scenario says itself which design"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.txt").write_text("at 1 crush 2\nexpect kept\n", encoding="utf-8")
    assert main(["simulate", *arguments]) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
