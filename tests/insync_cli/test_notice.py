"""What `insync check` says of known mistakes: a promise that would miss one of its own kind is not green.

Without these HOLDS would be printed where one record is written, and no two logs can differ.
"""

from pathlib import Path

import pytest
from tests.support.check_runs import check, run_of

from insync_cli.model.check import USAGE, Options, exploring_for, question_of
from insync_cli.options import read_options
from insync_cli.registry import instance_that_notices, property_names
from insync_cli.room_line import notice_line, notice_sentence
from isr_check.engine import TYPE_OK
from isr_lang import Design
from isr_protocol.by_name import DESIGNS
from isr_protocol.planted.notice import PROMISES, notice

TOP = Path(__file__).resolve().parents[2]
MODELS = TOP / "tests" / "support" / "models"
COUNTS_EARLY = f"rewritten --design-file {MODELS / 'counts_early.py'} --property acked-survives --quiet"
NEVER_COMPARED = f"never-compared --design-file {MODELS / 'never_compared.py'} --property logs-agree --quiet"
ONE_RECORD = "kip-966 --replicas 2 --log 1 --records 1"


@pytest.mark.explores
def test_one_record_cannot_diverge_so_it_is_too_small(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{ONE_RECORD} --property no-divergence") == 23
    notice = run_of(folder)["notice"]
    assert notice is not None
    assert "matched-by-offset" in notice["unnoticed"]["no-divergence"]
    assert notice["noticed"] == []
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("insync check kip-966: TOO SMALL - no-divergence may miss known mistakes")
    assert f"these bounds are known to notice 0 of {len(notice['known'])} mistakes; --" in line
    assert line in " ".join((TOP / "docs" / "bounds.md").read_text(encoding="utf-8").split())


def test_the_readme_says_what_the_bounds_of_make_demo_notice() -> None:
    design = DESIGNS["kip-966"]
    instance, _ = instance_that_notices(design, {}, property_names(design))
    promises = [p.name for p in instance.properties if p.kind in PROMISES]
    sentence = notice_line(notice(design, instance.constants, [*promises, TYPE_OK]))
    assert sentence is not None
    assert f"({notice_sentence(sentence)})" in (TOP / "README.md").read_text(encoding="utf-8")


@pytest.mark.explores
def test_the_bounds_that_are_said_to_notice_all_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{ONE_RECORD} --property no-divergence --quiet") == 23
    notice = run_of(folder)["notice"]
    assert notice is not None
    larger = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in notice["enough"].items())
    kept = [w for w in ("--log 1", "--records 1") if w.split()[0] not in larger]
    assert check(f"kip-966 --replicas 2 {' '.join(kept)} {larger} --property no-divergence --quiet") == 0
    notice = run_of(folder)["notice"]
    assert notice is not None
    assert notice["known"] == notice["noticed"]
    assert f"(these bounds notice all {len(notice['known'])} known mistakes)" in capsys.readouterr().out


@pytest.mark.explores
def test_at_other_settings_nobody_says_that_mistakes_are_noticed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a minimum of one no write is under the minimum, whatever a leader forgets."""
    assert check("kip-966 --replicas 2 --min-insync 1 --property writes-meet-minimum --quiet") == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert "(at --min-insync 2, where mistakes were tried, these bounds " in line
    assert run_of(folder)["notice"] is not None


@pytest.mark.explores
def test_bounds_that_are_not_given_notice_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("kip-966 --replicas 2") == 0
    run = run_of(folder)
    assert run["notice"] is not None
    assert run["notice"]["unnoticed"] == {}
    assert run["bounds"]["records"] == 2
    assert run["stats"]["unreduced"] is not None
    text = capsys.readouterr().out
    assert "to notice known mistakes, one state of each orbit" in text


@pytest.mark.explores
def test_symmetry_off_is_off_within_chosen_bounds(folder: Path) -> None:
    assert check("kip-966 --replicas 2 --property no-divergence --symmetry off --quiet") == 0
    run = run_of(folder)
    assert run["bounds"]["records"] == 2
    assert run["stats"]["unreduced"] is None


@pytest.mark.explores
@pytest.mark.parametrize(
    "more",
    ["--property leader-is-elected", "--engine reference --isr-changes 1", "--coverage strict --isr-changes 1"],
)
def test_where_orbits_answer_nothing_bounds_stay_as_they_are(folder: Path, more: str) -> None:
    check(f"kip-966 --replicas 2 {more} --quiet")
    assert run_of(folder)["bounds"]["records"] == 1


def test_what_is_violated_asks_for_no_larger_bounds(folder: Path) -> None:
    assert check("kafka-15583 --property leaders-complete --log 1 --records 1") == 12
    assert run_of(folder)["notice"] is None


OWN = '''
from isr_lang import Bool, define
from isr_model import KIP_966
from isr_protocol.state import Replica, State, log_end


@define
def by_offset(s: State, leader: Replica, follower: Replica) -> Bool:
    """The fetch offset is not past the leader's log end; epochs are not looked at."""
    return s.fetch_offset[follower] <= log_end(s, leader)


OWN = KIP_966.replacing("matches-by-offset", "Today's, without epochs", because="a try", continues=by_offset)
'''


@pytest.mark.explores
def test_a_design_of_ones_own_is_asked_where_a_mistake_shows(folder: Path) -> None:
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    own = "matches-by-offset --design-file own.py --replicas 2"
    assert check(f"{own} --property no-divergence --quiet") == 12
    assert check(f"{own} --property no-divergence --log 1 --records 1 --quiet") == 23


@pytest.mark.explores
def test_what_a_change_takes_away_makes_no_bounds_smaller(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known mistakes have no place in what it removed and rewrote, and its own one shows in the second record."""
    assert check(COUNTS_EARLY) == 12
    bounds = run_of(folder)["bounds"]
    assert (bounds["log"], bounds["records"]) == (2, 2)
    capsys.readouterr()
    assert check(f"{COUNTS_EARLY} --log 1 --records 1") == 23
    line = capsys.readouterr().out.splitlines()[-1]
    assert "TOO SMALL - acked-survives: what a change of your own breaks nobody knows" in line
    assert "smaller than those that notice what is known of kip-966. Enough: --log 2 --records 2" in line


@pytest.mark.explores
@pytest.mark.parametrize("how", ["--coverage strict", "--liveness on"])
def test_a_promise_of_ones_own_is_not_green_where_bounds_do_not_grow(folder: Path, how: str) -> None:
    """Of a promise that nobody knows no mistake is known, and so none is missed."""
    assert check(f"{NEVER_COMPARED} --isr-changes 3 {how}") == 23
    notice = run_of(folder)["notice"]
    assert notice is not None
    assert notice["without_mistake"] == notice["short_of_base"] == ["logs-agree"]
    larger = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in notice["enough"].items())
    assert check(f"{NEVER_COMPARED} --isr-changes 3 {larger} {how}") == 12


@pytest.mark.parametrize(
    ("design", "start"),
    [
        (DESIGNS["kip-966"], "these bounds notice all "),
        (DESIGNS["kip-966"].without("controller_moves_leadership"), "in the whole kip-966, where mistakes were tried"),
        (DESIGNS["kip-903"], "in kip-966 at --min-insync 2, where mistakes were tried, these bounds would notice all "),
    ],
)
def test_the_line_says_in_which_design_mistakes_were_tried(design: Design, start: str) -> None:
    instance, _ = instance_that_notices(design, {"replicas": 2}, property_names(design))
    line = notice_line(notice(design, instance.constants, [p.name for p in instance.properties if p.kind in PROMISES]))
    assert line is not None
    assert notice_sentence(line, design.name).startswith(start)


@pytest.mark.parametrize(
    ("command", "fewer"),
    [
        ("kip-966 --crashes 1 --lossy-crashes 1", (True, True)),
        ("kip-966 --crashes 1 --lossy-crashes 1 --symmetry off", (False, True)),
        ("kip-966 --crashes 1 --lossy-crashes 1 --reduction off", (True, False)),
        ("kip-966 --crashes 1 --lossy-crashes 1 --coverage strict", (False, False)),
        ("kip-966 --crashes 1 --lossy-crashes 1 --engine reference", (False, False)),
        ("kip-966 --crashes 1 --lossy-crashes 1 --simulate 3", (False, False)),
        ("kip-966 --log 1 --records 1", (False, False)),
        ("kafka-4.4 --log 1 --records 1 --reassignments 1 --isr-changes 1 --epochs 1", (True, True)),
        ("kafka-4.4 --log 1 --records 1 --reassignments 1 --isr-changes 1 --epochs 1 --symmetry off", (False, True)),
        ("kafka-4.4 --log 1 --records 1 --reassignments 0 --isr-changes 1 --epochs 1", (False, False)),
    ],
)
def test_bounds_that_follow_faults_are_explored_by_orbits_too(command: str, fewer: tuple[bool, bool]) -> None:
    """They are as large as those that notice mistakes; nobody chose them."""
    invocation = read_options(Options, USAGE, command.split())
    question = question_of(invocation)
    assert not question.grown_bounds
    large = exploring_for(question, invocation.exploring).large
    assert (large.symmetry, large.reduction) == fewer
