"""A green verdict on a quorum says what happened: premises are met, and the bounds leave room for the faults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from insync_cli.main import main
from insync_cli.model import check
from isr_check import native
from isr_check.engine import Exploration, Limits, Verdict
from isr_lang import Design, Instance, Value
from kraft_model import KRAFT
from kraft_protocol.by_name import DESIGNS
from kraft_protocol.notice import MISTAKES, TABLE
from kraft_protocol.promises import OF_CHANGES, PREMISES, SAFETY
from kraft_protocol.quorum import QUORUM
from kraft_protocol.room import LEAST, MILESTONES

pytestmark = pytest.mark.explores


def verdicts(design: Design, constants: Mapping[str, Value]) -> tuple[dict[str, Verdict], str | None]:
    """The verdict on each promise of safety, as the family judges it, and the milestone that is lacking."""
    names = tuple(p.name for p in SAFETY)
    instance = Instance(design.promising(*QUORUM.probes(names)), constants)
    exploration: Exploration = native.explore(
        instance, (*names, *(p.name for p in QUORUM.probes(names))), Limits(), lambda _: None
    )
    worth = QUORUM.worth(Instance(design, constants), exploration, names, native.explore, Limits())
    lacking = worth.room.lacking.name if worth.room is not None and worth.room.lacking is not None else None
    return {f.name: f.verdict for f in worth.exploration.findings if f.name in names}, lacking


def test_every_promise_has_a_premise() -> None:
    assert PREMISES.keys() == {p.name for p in (*SAFETY, *OF_CHANGES)}


@pytest.mark.parametrize("faults", [{}, {"restarts": 1}])
def test_today_s_design_holds_with_room(faults: Mapping[str, Value]) -> None:
    judged, lacking = verdicts(KRAFT, {"epochs": 2, **faults})
    assert set(judged.values()) == {Verdict.HOLDS}
    assert lacking is None


def test_changes_take_no_room_where_the_voters_are_fixed() -> None:
    judged, lacking = verdicts(DESIGNS["kraft-853"], {"voters": 2, "epochs": 2, "log": 2, "dynamic": False})
    assert judged["one-vote-per-epoch"] is Verdict.HOLDS
    assert lacking is None


def test_one_epoch_leaves_no_room_for_a_later_leader() -> None:
    judged, lacking = verdicts(KRAFT, {"epochs": 1})
    assert judged["one-leader-per-epoch"] is Verdict.TOO_SMALL
    assert judged["leaders-complete"] is Verdict.VACUOUS
    assert lacking == "leader-is-elected-after-them"


class Clock:
    """Says that no time has passed, and from its second answer on that much has."""

    def __init__(self) -> None:
        self.answers = 0

    def monotonic(self) -> float:
        self.answers += 1
        return 0.0 if self.answers == 1 else 1e9


@pytest.mark.parametrize(("is_late", "code", "verdict"), [(False, 0, "HOLDS"), (True, 20, "BUDGETED")])
def test_the_search_for_room_ends_with_the_seconds(
    is_late: bool,
    code: int,
    verdict: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if is_late:
        monkeypatch.setattr(check, "time", Clock())
    assert main(["check", "kraft", "--property", "one-vote-per-epoch", "--max-seconds", "500", "--out", "run"]) == code
    assert json.loads(Path("run/run.json").read_text(encoding="utf-8"))["verdict"] == verdict
    said = " ".join(capsys.readouterr().out.split())
    assert ("stopped by --max-seconds 500, which left no time to look for room" in said) is is_late
    assert ("not violated, but whether these bounds" in said) is is_late


def test_where_nobody_votes_every_promise_is_vacuous() -> None:
    judged, _ = verdicts(KRAFT.without("voter_answers_vote"), {"epochs": 2})
    assert set(judged.values()) == {Verdict.VACUOUS} - {Verdict.HOLDS}


MISSED_BY_TWO = {"one-leader-per-epoch", "logs-match", "leaders-complete", "watermark-only-grows"}


@pytest.mark.parametrize(
    ("bounds", "unnoticed", "beyond", "noticed"),
    [
        ({"voters": 2, "epochs": 2}, MISSED_BY_TWO, set[str](), 1),
        ({"voters": 3, "epochs": 2}, {"leaders-complete"}, set[str](), 3),
        ({"voters": 3, "epochs": 2, "restarts": 1}, set[str](), {"leaders-complete"}, 5),
        ({"voters": 3, "epochs": 3, "log": 3}, set[str](), {"leaders-complete"}, 4),
        ({"voters": 3, "epochs": 4, "log": 3, "restarts": 1, "lost_disks": 1}, set[str](), set[str](), 10),
    ],
)
def test_bounds_notice_the_mistakes_that_they_have_room_for(
    bounds: Mapping[str, Value], unnoticed: set[str], beyond: set[str], noticed: int
) -> None:
    answer = TABLE.notice(Instance(KRAFT, bounds).constants, [p.name for p in SAFETY])
    assert answer.unnoticed_by_promise.keys() == unnoticed
    assert answer.beyond_by_promise.keys() == beyond
    assert len(answer.noticed_mistakes) == noticed
    assert not TABLE.notice(Instance(KRAFT, {**bounds, **answer.enough}).constants, [p.name for p in SAFETY]).enough


@pytest.mark.parametrize("voters", [2, 3])
@pytest.mark.parametrize("epochs", [1, 2, 3, 4])
@pytest.mark.parametrize("log", [1, 2, 3])
@pytest.mark.parametrize("is_own", [False, True])
def test_a_promise_of_which_no_known_mistake_is_noticed_is_too_small(
    voters: int, epochs: int, log: int, is_own: bool
) -> None:
    names = [p.name for p in SAFETY]
    constants = Instance(KRAFT, {"voters": voters, "epochs": epochs, "log": log}).constants
    answer = TABLE.notice(constants, names, is_own=is_own)
    for name in names:
        about = [m for m in MISTAKES if m.promise == name and TABLE.says_something(m, constants)]
        assert (name in answer.without_mistake) is not bool(about)
        if about and not any(TABLE.is_noticed(m, constants) for m in about):
            assert name in answer.unnoticed_by_promise


@pytest.mark.parametrize("voters", [2, 3])
@pytest.mark.parametrize("epochs", [1, 2, 3, 4])
def test_a_design_of_somebody_s_own_is_judged_at_least_as_strictly(voters: int, epochs: int) -> None:
    names = [p.name for p in SAFETY]
    constants = Instance(KRAFT, {"voters": voters, "epochs": epochs, "log": 3}).constants
    listed, own = (TABLE.notice(constants, names, is_own=is_own) for is_own in (False, True))
    small = {*own.unnoticed_by_promise, *own.short_of_base}
    assert small >= listed.unnoticed_by_promise.keys() | listed.beyond_by_promise.keys()
    assert not own.beyond_by_promise
    assert ("watermark-only-grows" in small) is (voters == 2 or epochs == 1)
    assert bool(small) is bool(own.enough)


OWN = """
import attrs
from kraft_model import KRAFT

DESIGN = attrs.evolve(KRAFT, name="mine")
"""


@pytest.mark.parametrize(
    ("words", "small", "line"),
    [
        (
            "kraft",
            MISSED_BY_TWO,
            "these bounds are known to notice 1 of 6 mistakes; --voters 3 --epochs 4 --log 3 would notice all; "
            "of 4 of these promises no mistake is known",
        ),
        ("kraft --property watermark-is-committed", set[str](), "of 1 of these promises no mistake is known"),
        (
            "kraft --property watermark-only-grows",
            {"watermark-only-grows"},
            "these bounds are known to notice 0 of 1 mistakes; --voters 3 would notice all",
        ),
        ("kraft --property one-vote-per-epoch", set[str](), "these bounds notice all 1 known mistakes"),
        ("kraft-any-fetch --property logs-match", {"logs-match"}, "these bounds are known to notice 0 of 1 mistakes"),
        (
            "kraft-notes-end --property resigned-leader-is-no-obstacle",
            {"resigned-leader-is-no-obstacle"},
            "these bounds are known to notice 0 of 2 mistakes",
        ),
        (
            "mine --design-file mine.py",
            {*(p.name for p in SAFETY), "type-ok"} - {"one-vote-per-epoch"},
            "--voters 3 --epochs 4 --log 3 would notice all",
        ),
    ],
)
def test_the_verdict_line_says_what_two_voters_notice(
    words: str,
    small: set[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    code = main(
        ["check", *words.split(), "--voters", "2", "--epochs", "2", "--log", "2", "--json", "run.json", "--quiet"]
    )
    run = json.loads((tmp_path / "run.json").read_text())
    verdicts = {p["name"]: p["verdict"] for p in run["properties"] if p["kind"] == "always"}
    assert {name for name, verdict in verdicts.items() if verdict == "TOO SMALL"} == small
    assert {v for n, v in verdicts.items() if n not in small} <= {"HOLDS"}
    assert code == (23 if small else 0)
    assert line in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bounds", "promise", "noticed", "enough"),
    [
        ({}, "committed-by-majority", {"kafka-16530"}, {}),
        ({}, "leader-counts-next-voters", set[str](), {"voters": 3, "changes": 2}),
        ({}, "neighbouring-voters-overlap", set[str](), {"voters": 3, "joiners": 2}),
        ({"voters": 3, "changes": 2}, "leader-counts-next-voters", {"kraft-changes-at-once"}, {}),
        ({"voters": 3, "joiners": 2}, "neighbouring-voters-overlap", {"kraft-adds-all"}, {}),
        ({"voters": 3, "lost_disks": 1}, "one-leader-per-epoch", {"kraft-votes-again", "kafka-17426"}, {}),
        (
            {"voters": 4, "epochs": 3, "log": 4, "changes": 2},
            "leader-counts-next-voters",
            {"kraft-changes-early"},
            {"voters": 3},
        ),
    ],
)
def test_of_voters_that_change_bounds_notice_what_they_have_room_for(
    bounds: Mapping[str, Value], promise: str, noticed: set[str], enough: Mapping[str, Value]
) -> None:
    answer = TABLE.notice(Instance(DESIGNS["kraft-853"], bounds).constants, [promise])
    assert set(answer.noticed_mistakes) == noticed
    assert answer.enough == enough
    assert bool(answer.unnoticed_by_promise) is bool(enough)


def test_with_directory_ids_what_a_static_quorum_loses_is_no_mistake() -> None:
    constants = Instance(DESIGNS["kraft-853"], {"lost_disks": 1}).constants
    assert TABLE.notice(constants, ["watermark-within-log"]).without_mistake == ("watermark-within-log",)


def test_the_verdict_line_of_voters_that_change_says_which_promises_say_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(["check", "kraft-853", "--symmetry", "on", "--json", "run.json", "--quiet"])
    run = json.loads((tmp_path / "run.json").read_text())
    small = {p["name"] for p in run["properties"] if p["verdict"] == "TOO SMALL"}
    assert code == 23
    assert small == {*MISSED_BY_TWO, "leader-counts-next-voters", "neighbouring-voters-overlap"}
    assert "may miss known mistakes within these bounds" in capsys.readouterr().out


def test_the_default_bounds_have_room() -> None:
    constants = Instance(KRAFT).constants
    assert all(isinstance(value := constants[name], int) and value >= least for name, least in LEAST.items())
    assert [m.name for m in MILESTONES] == [m.name for m in QUORUM.milestones()]


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_is_of_the_family(name: str) -> None:
    assert issubclass(DESIGNS[name].state, QUORUM.state)
    assert QUORUM.designs()[name] is DESIGNS[name]
