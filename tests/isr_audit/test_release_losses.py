"""What an audit says of Kafka as it is released: each loss is a run of the model, and needs the bug that is named.

Without these a topic would be told of a bug that cannot reach it, or not of one that can.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest

from insync_cli.main import main as insync
from isr_audit.answers import Answer
from isr_audit.bugs import bugs
from isr_audit.cluster import MIN_INSYNC, Partition, Topic
from isr_audit.kinds import Kind
from isr_audit.questions import LOSS, Settings
from isr_audit.release_losses import (
    DEEDS,
    TABLE,
    Deed,
    Way,
    design_of,
    questions,
    questions_of,
    release_answers,
    ways_of,
)
from isr_check.engine import Limits, Verdict, silent
from isr_check.native import explore
from isr_check.reference import Evaluator
from isr_lang import Design, Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.releases import MENDS, with_mends
from isr_trace.cases import load_cases
from isr_trace.replay import Move, Replay, check_goal
from isr_trace.trace import TraceError

CASES: Final = Path(__file__).resolve().parents[2] / "counterexamples" / "cases" / "cases.toml"
MAKE: Final = "make them again: python -m tests.support.release_losses"
LOSSES: Final = [a for a in release_answers() if a.verdict == Verdict.VIOLATED]
MENDED_BY: Final[Mapping[str, str]] = {
    "kept-positions": "kafka-resets-positions",
    "forgotten-proposal": "proposal-kept",
    "overtaken-request": "refusal-in-new-version",
    "raised-min-insync": "minimum-in-new-version",
    "removed-replica": "elr-of-replicas",
    "removed-directory": "mark-of-all-directories",
}
"""The mend of each bug that a deed shows, where `kafka-4.4` has one."""


def kind(release: tuple[int, ...] | None, design: str = "kip-966", replicas: int = 3, minimum: int = 2) -> Kind:
    return Kind(design, Settings(replicas, minimum, False, "all"), release=release)


def ways_to_loss(ways: Sequence[Way]) -> tuple[Way, ...]:
    return tuple(way for way in ways if way.answer.verdict == Verdict.VIOLATED)


def loses(answer: Answer, design: Design) -> bool:
    """Whether the design takes every step of this loss, and breaks the promise at its end."""
    assert answer.path is not None
    evaluator = Evaluator(Instance(design, answer.question.constants))
    run = Replay(evaluator).exact(answer.path.initial, (Move(a, p) for a, p in answer.path.steps))
    if run is None:
        return False
    try:
        check_goal(run, evaluator, LOSS)
    except TraceError:
        return False
    return True


def deed_of(answer: Answer) -> Deed:
    return next(d for d in DEEDS if all(answer.question.constants[n] == v for n, v in d.budgets.items()))


def test_no_stored_answer_is_stale_and_none_is_missing() -> None:
    hashes = json.loads(TABLE.read_text(encoding="utf-8"))["hashes"]
    assert hashes == {name: DESIGNS[name].model_hash() for name in hashes}, MAKE
    asked = [a.question for a in release_answers()]
    assert not [q.command() for q in questions() if q not in asked], MAKE


def test_every_stored_loss_is_a_run_of_its_design() -> None:
    assert len(LOSSES) > len(DEEDS)
    assert not [a.command for a in LOSSES if not loses(a, DESIGNS[a.question.design])]


@pytest.mark.parametrize("bug", MENDED_BY)
def test_a_loss_that_names_a_bug_is_none_with_the_mend_of_that_bug(bug: str) -> None:
    """The control is the test before: without the mend each of them is a loss."""
    mended = with_mends("with-one-mend", "kafka-4.4 with one mend", MENDED_BY[bug])
    shown = [a for a in LOSSES if a.question.design == "kafka-4.4" and deed_of(a).bug == bug]
    assert shown, "there is one, or the deed shows nothing"
    assert not [a.command for a in shown if loses(a, mended)]


def test_every_bug_that_a_deed_names_is_known_and_every_mend_is_one() -> None:
    assert {d.bug for d in DEEDS} <= {bug.name for bug in bugs()}
    assert set(MENDED_BY.values()) <= set(MENDS)


@pytest.mark.explores
@pytest.mark.parametrize("wanted", [Verdict.HOLDS, Verdict.VIOLATED])
def test_a_stored_answer_is_found_again(wanted: Verdict) -> None:
    answer = next(a for a in release_answers() if a.verdict == wanted and 3_000 < a.states < 50_000)
    found = explore(answer.question.instance(), (LOSS,), Limits(), silent, symmetry=True, reduction=True)
    finding = found.finding(LOSS)
    assert (finding.verdict, found.distinct, finding.path) == (wanted, answer.states, answer.path), MAKE


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (kind((4, 4)), "kafka-4.4"),
        (kind((4, 3, 1)), "kafka-4.4"),
        (kind((4, 2, 2)), "kafka-4.2"),
        (kind((4, 1)), "kafka-4.2"),
        (kind((4, 2), "kraft-3.5"), "kafka-4.0"),
        (kind((4, 0, 1), "kraft-3.5"), "kafka-4.0"),
        (kind((4, 0)), ""),
        (kind((4, 4), "kraft-3.5"), "kafka-4.4-no-elr"),
        (kind((4, 3, 1), "kraft-3.5"), "kafka-4.4-no-elr"),
        (kind((5, 0), "kraft-3.5"), ""),
        (kind((3, 9, 1), "kraft-3.5"), "kafka-4.0"),
        (kind((3, 9), "kip-497"), ""),
        (kind((3, 9)), ""),
        (kind((3, 8), "kraft-3.5"), ""),
        (kind((5, 0)), ""),
        (kind(None), ""),
        (attrs.evolve(kind((4, 4)), doubt="two releases were told"), ""),
        (attrs.evolve(kind((4, 1), "kraft-3.5"), also=("kip-966",)), ""),
    ],
)
def test_a_release_has_its_own_design_or_none(topics: Kind, expected: str) -> None:
    assert design_of(topics) == expected
    assert bool(ways_of(topics)) == bool(expected)


def test_what_was_not_told_or_not_explored_is_not_spoken_of() -> None:
    assert ways_to_loss(ways_of(kind((4, 4))))
    assert not ways_of(attrs.evolve(kind((4, 4)), open=(MIN_INSYNC,)))
    assert not ways_of(kind((4, 4), replicas=5))
    assert not ways_of(kind((4, 4), replicas=1, minimum=1))


DONE_BY: Final[Mapping[str, str]] = {
    "elections": "controller_moves_leadership",
    "late-news": "leader_hears_known_version",
    "copies": "controller_refuses_later_copy",
    "minimum-changes": "controller_sets_minimum",
    "reassignments": "controller_reassigns_at_once",
    "moves": "controller_accepts_and_completes",
    "directories-removed": "directory_is_removed",
    "disks-replaced": "disk_is_replaced",
}
"""An action that is the deed."""


@pytest.mark.explores
@pytest.mark.parametrize(
    "answer",
    [a for a in release_answers() if a.verdict == Verdict.HOLDS and a.states < 50_000],
    ids=lambda a: f"{a.question.design}-{a.question.constants['min_insync']}-{deed_of(a).name}",
)
def test_where_no_way_was_found_the_deed_happens(answer: Answer) -> None:
    """Else there would be none because nobody could do it at these bounds."""
    found = explore(answer.question.instance(), (LOSS,), Limits(), silent, symmetry=True, reduction=True)
    assert found.steps_by_action[DONE_BY[deed_of(answer).name]] > 0


def test_of_partitions_with_different_replicas_and_of_unclean_elections_no_way_is_denied() -> None:
    """With three replicas more is lost than with two, and with unclean elections more than without."""
    two, three = Partition("t", 0, 1, (1, 2), (1, 2)), Partition("t", 1, 1, (1, 2, 3), (1, 2, 3))
    assert ways_of(kind((4, 4), replicas=2), [Topic("t", 2, (two,))])
    assert not ways_of(kind((4, 4), replicas=2), [Topic("t", 2, (two, three))])
    asked = kind((4, 4), replicas=2)
    unclean = attrs.evolve(asked, settings=attrs.evolve(asked.settings, unclean=True))
    assert ways_of(unclean) == ways_to_loss(ways_of(asked))
    assert len(ways_of(unclean)) < len(ways_of(asked))


def test_with_a_minimum_of_one_nobody_is_eligible_beside_the_isr_and_no_lost_disk_is_asked() -> None:
    """So a reassignment does not reach it: who leaves an in-sync set at its minimum is in no ELR."""
    names = {way.deed.name for way in ways_to_loss(ways_of(kind((4, 4), replicas=2, minimum=1)))}
    assert {"reassignments", "directories-removed", "disks-replaced"}.isdisjoint(names)
    assert {"late-news", "copies", "minimum-changes"} <= names
    usual = {way.deed.name for way in ways_to_loss(ways_of(kind((4, 4))))}
    assert {"reassignments", "directories-removed", "elections"} <= usual


def test_a_move_that_keeps_the_number_of_replicas_loses_a_record_since_4_3_with_elr() -> None:
    """KAFKA-19975. Before it, and without eligible leader replicas, the same move loses none."""
    moves = {a.question.design: a for a in release_answers() if deed_of(a).name == "moves"}
    assert {design: a.verdict for design, a in moves.items()} == {
        "kafka-4.4": Verdict.VIOLATED,
        "kafka-4.2": Verdict.HOLDS,
        "kafka-4.0": Verdict.HOLDS,
        "kafka-4.4-no-elr": Verdict.HOLDS,
    }
    assert loses(moves["kafka-4.4"], DESIGNS["kafka-4.4"])
    assert not [name for name in moves if name != "kafka-4.4" and loses(moves["kafka-4.4"], DESIGNS[name])]
    for release, expected in (((4, 4), True), ((4, 3, 1), True), ((4, 2, 2), False), ((4, 1), False)):
        for replicas in (2, 3):
            ways = {w.deed.name: w.answer.verdict for w in ways_of(kind(release, replicas=replicas))}
            assert ("moves" in ways) == expected
            assert ways.get("moves", Verdict.VIOLATED) == Verdict.VIOLATED
    assert "moves" not in {w.deed.name for w in ways_of(kind((4, 4), minimum=3))}


def test_the_move_is_that_of_the_corpus() -> None:
    (case,) = (case for case in load_cases(CASES).cases if case.name == "returned-replica")
    (asked,) = (q for deed, q in questions_of(case.design, 3, 2) if deed.name == "moves")
    assert asked.without == case.without
    assert {name: asked.constants[name] for name in case.settings} == dict(case.settings)


TOPICS: Final = (
    "Topic: t\tTopicId: AAAAAAAAAAAAAAAAAAAAAA\tPartitionCount: 1\tReplicationFactor: 3\t"
    "Configs: min.insync.replicas=2\n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
)


def test_words_json_and_page_say_the_same_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.txt").write_text(TOPICS, encoding="utf-8")
    asked = ["audit", "--describe", str(tmp_path / "t.txt"), "--kafka", "4.4", "--elr", "on"]
    insync([*asked, "--details", "--markdown", str(tmp_path / "t.md"), "--html", str(tmp_path / "t.html")])
    texts = [capsys.readouterr().out, *((tmp_path / f"t.{end}").read_text(encoding="utf-8") for end in ("md", "html"))]
    insync([*asked, "--json", "-"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    ways = ways_to_loss(ways_of(kind((4, 4))))
    assert [w["deed"] for w in row["as_released"] if w["verdict"] == "lost"] == [w.deed.name for w in ways]
    for way in ways:
        for text in texts:
            assert way.answer.command in text
            assert way.deed.says in " ".join(text.split())
    assert "by topic: --details" in texts[0]
    insync([*asked[:-1], "off", "--details"])
    assert "design kafka-4.4-no-elr" in " ".join(capsys.readouterr().out.split())
    insync([*asked[:3], "--kafka", "3.8", "--kraft", "on", "--details"])
    assert "as it is released" not in capsys.readouterr().out
