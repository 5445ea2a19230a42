"""A verdict that cannot be misread: bounds without room for the faults are TOO SMALL, promises about nothing VACUOUS.

Without these, `insync check` would say of the settings that lose a record under two faults that every promise holds.
"""

from pathlib import Path

import pytest
from tests.support.check_runs import check, run_of
from tests.support.sample import sample

TWO_FAULTS = "kip-966 --replicas 2 --crashes 1 --lossy-crashes 1"


@pytest.mark.explores
@pytest.mark.parametrize(
    "command",
    [
        TWO_FAULTS,
        "kip-966 --min-insync 1 --lossy-crashes 1 --crashes 0",
        "kip-966 --replicas 2 --crashes 2 --lossy-crashes 1 --sessions-lost 1 --shutdowns 1",
        pytest.param("kraft-3.5 --lossy-crashes 1 --crashes 0 --min-insync 2", marks=pytest.mark.slow),
        pytest.param(
            "kip-966 --replicas 3 --min-insync 2 --crashes 1 --lossy-crashes 1 --symmetry on", marks=pytest.mark.slow
        ),
    ],
)
def test_bounds_that_are_not_given_follow_the_faults(folder: Path, command: str) -> None:
    assert check(f"{command} --property acked-survives --memory 4G") == 12


@pytest.mark.explores
@pytest.mark.parametrize(
    "command",
    sample(
        [
            "kip-320 --unclean on",
            "kraft-3.5 --unclean on",
            "kip-966 --unclean on --min-insync 1",
            "kip-903 --unclean on",
            "kip-841 --unclean on",
            "kip-497 --unclean on",
            "jepsen-halt --unclean on",
        ],
        3,
    ),
)
def test_bounds_that_are_not_given_follow_a_setting(folder: Path, command: str) -> None:
    """At three replicas each of these once held, for one leader epoch leaves no unclean election any room."""
    assert check(f"{command} --property acked-survives --symmetry on --reduction on") == 12


@pytest.mark.explores
def test_bounds_without_room_for_what_a_setting_allows_are_too_small(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bounds = "--replicas 2 --epochs 1 --isr-changes 4"
    assert check(f"kraft-3.5 --unclean on {bounds} --property acked-survives") == 23
    line = capsys.readouterr().out.splitlines()[-1]
    assert "What is missing first: what the settings switch on happens, such as an unclean election" in line
    assert "Too small: --epochs 1. Enough: --epochs 2" in line


@pytest.mark.explores
@pytest.mark.parametrize("changes", [5, pytest.param(2, marks=pytest.mark.slow)])  # two were once the default
def test_bounds_that_leave_no_room_are_too_small_and_those_that_would_are_said(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: int
) -> None:
    assert check(f"{TWO_FAULTS} --epochs 1 --isr-changes {changes} --property acked-survives") == 23
    said = run_of(folder)
    assert said["verdict"] == "TOO SMALL"
    assert said["schema"] == "insync/run/2"
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("insync check kip-966: TOO SMALL - within these bounds no behaviour exists")
    assert f"Too small: --isr-changes {changes}. Enough: --isr-changes 6" in line


@pytest.mark.explores
def test_the_bounds_that_are_said_to_be_enough_are_enough(folder: Path) -> None:
    command = "kip-966 --replicas 2 --property acked-survives"
    assert check(f"{command} --isr-changes 2") == 23
    assert run_of(folder)["room"] == {
        "lacking": "follower-rejoins-after-them",
        "cut": {"isr_changes": 2},
        "enough": {"isr_changes": 3},
        "complete": True,
    }
    assert check(f"{command} --isr-changes 3") == 0
    assert run_of(folder)["room"] == {"lacking": None, "cut": {}, "enough": {}, "complete": False}


def test_a_violation_needs_no_room(folder: Path) -> None:
    assert check("kafka-15583 --property leaders-complete") == 12
    assert run_of(folder)["room"] is None


@pytest.mark.explores
def test_an_expectation_of_too_little_room_can_be_said(folder: Path) -> None:
    assert check("kip-966 --replicas 2 --isr-changes 2 --property acked-survives --expect acked-survives=HOLDS") == 22


@pytest.mark.parametrize(
    "how",
    ["--acks 0 --property acked-survives", "--acks 0"],
)
def test_what_is_promised_of_something_that_never_happens_is_vacuous(folder: Path, how: str) -> None:
    assert check(f"kip-966 --replicas 2 {how}") == 21
    verdicts = {line["name"]: line["verdict"] for line in run_of(folder)["properties"]}
    assert verdicts["acked-survives"] == "VACUOUS"


def test_what_random_walks_did_not_meet_may_happen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One walk that acknowledges nothing does not say that nothing is ever acknowledged."""
    assert check("kafka-0.8 --replicas 2 --simulate 1 --property acked-survives") == 20
    said = capsys.readouterr().out
    assert "what it speaks about was not met in these walks" in " ".join(said.split())
    assert said.splitlines()[-1].startswith("insync check kafka-0.8: SAMPLED(1, seed 1)")
    assert run_of(folder)["without_encounter"] == ["acked-survives"]
    assert check("kafka-0.8 --replicas 2 --simulate 300 --property committed-only-grows --quiet") == 20
    assert run_of(folder)["without_encounter"] == []


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("kip-966 --replicas 9", "--replicas is a whole number from 1 to 7, not 9"),
        ("kip-966 --lossy-crashes 1 --min-insync 4", "--min-insync is above --replicas"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_settings_that_cannot_be_are_refused_before_bounds_follow_them(
    command: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(command) == 64
    assert says in capsys.readouterr().err
