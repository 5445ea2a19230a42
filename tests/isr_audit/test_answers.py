"""The stored answers are what the model says today, and a run answers no more than it may.

Without these an audit would go on saying what an older model said, or what nobody explored.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path as File

import attrs
import pytest

from insync_cli import options
from insync_cli.proof import prove
from insync_cli.proof.question import question as proof_question
from insync_cli.tracefiles import CORPORA
from isr_audit.answers import (
    REFUSES_ONLY,
    TABLE,
    Answer,
    answer_among,
    explored,
    fewer,
    implies,
    loss_of_fewer,
    read_table,
)
from isr_audit.audit import MAY_BE_LOST, SURVIVES, UNKNOWN, AnswerSource, Line, line_of, with_change
from isr_audit.bugs import Bug, bugs, elsewhere
from isr_audit.kinds import Kind
from isr_audit.questions import (
    CRASH,
    DECISIVE_VERDICTS,
    DISK,
    FAULTS,
    LOSS,
    NOTHING,
    POWER,
    RESTART,
    TWO_POWER,
    Fault,
    Question,
    Settings,
    loss_question,
    refusal_question,
    stored_questions,
)
from isr_audit.releases import KRAFT, TODAY, ZOOKEEPER, Running, release_of
from isr_check.engine import Limits, Path, silent
from isr_check.native import explore
from isr_found.controllers import FAULTS as QUORUM_FAULTS
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS

TOP = File(__file__).parents[2]
MAKE = "make them again: python -m tests.support.audit_answers"
STORED = read_table()
PROOFS = [a for a in STORED if a.verdict == "PROVED"]
RUNS = [a for a in STORED if a.verdict != "PROVED"]
SMALL = [a for a in RUNS if a.question.constants["replicas"] != 3 and a.states < 20_000]


def test_no_stored_answer_is_stale() -> None:
    hashes = json.loads(TABLE.read_text(encoding="utf-8"))["hashes"]
    assert hashes == {name: DESIGNS[name].model_hash() for name in hashes}, MAKE


def test_answers_of_a_changed_design_are_not_used(tmp_path: File) -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    table["hashes"]["kip-966"] = "0" * 16
    (file := tmp_path / "answers.json").write_text(json.dumps(table), encoding="utf-8")
    assert {a.question.design for a in read_table(file)} == set(table["hashes"]) - {"kip-966"}


def test_every_usual_question_has_an_answer() -> None:
    open_ones = [q for q in stored_questions() if answer_among(STORED, q) is None and loss_of_fewer(STORED, q) is None]
    assert not [q.command() for q in open_ones], MAKE


def again(answer: Answer) -> None:
    found = explored(answer.question, Limits(), silent)
    assert (found.verdict, found.states, found.path) == (answer.verdict, answer.states, answer.path), MAKE


@pytest.mark.explores
@pytest.mark.parametrize("wanted", ["HOLDS", "VIOLATED"])
def test_a_stored_answer_is_found_again(wanted: str) -> None:
    again(next(a for a in SMALL if a.verdict == wanted and a.question.design == "kip-966" and a.states > 1000))


@pytest.mark.slow
@pytest.mark.explores
def test_every_small_stored_answer_is_found_again() -> None:
    """Without it a table that was edited, or made by another program, would be believed."""
    for answer in SMALL:
        again(answer)


@pytest.mark.slow
@pytest.mark.explores
@pytest.mark.parametrize(
    "answer",
    [a for a in RUNS if a not in SMALL and a.verdict in DECISIVE_VERDICTS and a.states <= 1_000_000],
    ids=lambda a: a.question.command(),
)
def test_larger_stored_answers_are_found_again(answer: Answer) -> None:
    """Those of tens of millions of states are made by the same program, and only there."""
    again(answer)


@pytest.mark.explores
def test_a_stored_loss_is_a_run_of_the_model() -> None:
    """Each is played step by step on the model, which refuses a step that it does not allow."""
    for answer in {(a.question.design, a.steps): a for a in STORED if a.path is not None}.values():
        trace = answer.trace()
        assert trace is not None
        assert len(trace.steps) == answer.steps


# What a run answers


def question(fault: int = 0, *, unclean: bool = False, minimum: int = 1, replicas: int = 2) -> Question:
    return loss_question("kip-966", Settings(replicas, minimum, unclean, "all"), FAULTS[fault])


def ran(asked: Question, verdict: str) -> Answer:
    return Answer(asked, verdict, 1)


def test_what_is_lost_under_some_faults_is_lost_under_more() -> None:
    lost = ran(question(FAULTS.index(POWER)), "VIOLATED")
    assert implies(lost, question(FAULTS.index(TWO_POWER)))
    assert implies(lost, question(FAULTS.index(POWER), unclean=True))
    assert not implies(lost, question(FAULTS.index(NOTHING)))
    assert not implies(lost, question(FAULTS.index(CRASH)))
    assert not implies(lost, question(FAULTS.index(TWO_POWER), minimum=2))
    assert not implies(lost, question(FAULTS.index(TWO_POWER), replicas=3))


def test_what_is_kept_under_some_faults_is_kept_under_fewer() -> None:
    held = ran(question(FAULTS.index(POWER), unclean=True), "HOLDS")
    assert implies(held, question(FAULTS.index(POWER)))
    assert implies(held, question(FAULTS.index(NOTHING)))
    assert not implies(held, question(FAULTS.index(TWO_POWER)))
    assert not implies(ran(question(FAULTS.index(POWER)), "HOLDS"), question(FAULTS.index(POWER), unclean=True))


@pytest.mark.parametrize("verdict", ["UNKNOWN", "TOO SMALL", "VACUOUS"])
def test_what_was_not_decided_answers_nothing_else(verdict: str) -> None:
    asked = question(FAULTS.index(POWER))
    assert not implies(ran(asked, verdict), asked)
    found = answer_among([ran(asked, verdict)], asked)
    assert found is not None
    assert found.verdict == verdict


def test_a_loss_with_fewer_replicas_is_never_kept_with_more() -> None:
    """The argument of `loss_of_fewer`, held against every pair of runs that were made."""
    pairs = [(a, answer_among(STORED, fewer(a.question, 2))) for a in STORED if a.question.constants["replicas"] == 3]
    both = [(a, b) for a, b in pairs if b is not None and {a.verdict, b.verdict} <= set(DECISIVE_VERDICTS)]
    assert len(both) > 5
    assert not [a.command for a, b in both if a.verdict != "VIOLATED" and b.verdict == "VIOLATED"]


def test_before_eligible_leader_replicas_a_larger_minimum_only_refuses() -> None:
    """The argument of `REFUSES_ONLY`, held against every pair of runs that were made, and against today's design."""
    assert set(REFUSES_ONLY) == {d for _, d in (*KRAFT, *ZOOKEEPER)}
    for design in ("kraft-3.5", "kip-966"):
        small, large = (loss_question(design, Settings(3, m, False, "all"), POWER) for m in (1, 2))
        assert implies(ran(small, "HOLDS"), large) is (design == "kraft-3.5")
        assert implies(ran(large, "VIOLATED"), small) is (design == "kraft-3.5")
        assert not implies(ran(large, "HOLDS"), small)
        assert not implies(ran(small, "VIOLATED"), large)
        refusal = refusal_question(design, Settings(3, 1, False, "all"))
        assert not implies(ran(refusal, "HOLDS"), refusal_question(design, Settings(3, 2, False, "all")))
    runs = {json.dumps([a.question.design, dict(a.question.constants)]): a for a in STORED if not a.open}
    pairs = 0
    for a in runs.values():
        if a.question.design not in REFUSES_ONLY or a.question.promise != LOSS or a.verdict not in DECISIVE_VERDICTS:
            continue
        larger = {**a.question.constants, "min_insync": int(a.question.constants["min_insync"]) + 1}
        other = runs.get(json.dumps([a.question.design, larger]))
        if other is not None and other.verdict in DECISIVE_VERDICTS:
            pairs += 1
            assert (a.verdict, other.verdict) not in (("HOLDS", "VIOLATED"), ("PROVED", "VIOLATED"))
    assert pairs > 20


def test_a_lost_disk_is_a_power_loss_after_which_nothing_is_left() -> None:
    part = Answer(question(FAULTS.index(POWER)), "VIOLATED", 1, Path((0,), ((DOWN, (0, 1, 0)),)))
    whole = attrs.evolve(part, path=Path((0,), ((DOWN, (0, 0, 0)),)))
    settings = Settings(2, 1, False, "all")
    assert told(settings, FAULTS.index(DISK), part).verdict == UNKNOWN
    assert told(settings, FAULTS.index(DISK), whole).verdict == MAY_BE_LOST
    assert told(settings, FAULTS.index(DISK), whole, flushed=True).verdict == MAY_BE_LOST
    assert told(settings, FAULTS.index(DISK), ran(question(FAULTS.index(POWER)), "HOLDS")).verdict == SURVIVES
    held = ran(question(FAULTS.index(CRASH)), "HOLDS")
    assert told(settings, FAULTS.index(DISK), held, flushed=True).verdict == UNKNOWN, (
        "that the record was flushed is no help"
    )


# What an operator is told


def told(settings: Settings, fault: int, *known: Answer, flushed: bool = False) -> Line:
    answers = AnswerSource(list(known), lambda _: None)
    return line_of(Kind("kip-966", settings, flushed), settings.acks, FAULTS[fault], answers)


def test_verdicts_in_an_operators_words() -> None:
    settings, power = Settings(2, 1, False, "all"), FAULTS.index(POWER)
    asked = loss_question("kip-966", settings, POWER)
    assert told(settings, power, ran(asked, "HOLDS")).verdict == SURVIVES
    assert told(settings, power, ran(asked, "VIOLATED")).verdict == MAY_BE_LOST
    for verdict in ("UNKNOWN", "TOO SMALL", "VACUOUS"):
        assert told(settings, power, ran(asked, verdict)).verdict == UNKNOWN
    assert told(settings, power).because == "not explored"


def test_more_replicas_than_were_explored_may_lose_but_are_not_said_to_keep() -> None:
    six = Settings(6, 2, False, "all")
    asked = loss_question("kip-966", six, POWER)
    assert asked.constants["replicas"] == 3
    assert told(six, FAULTS.index(POWER), ran(asked, "HOLDS")).verdict == UNKNOWN
    lost = told(six, FAULTS.index(POWER), ran(asked, "VIOLATED"))
    assert lost.verdict == MAY_BE_LOST
    assert "explored with 3 replicas" in lost.because
    many = Settings(6, 4, False, "all")
    assert told(many, FAULTS.index(POWER), ran(loss_question("kip-966", many, POWER), "VIOLATED")).verdict == UNKNOWN


def test_a_proof_answers_for_every_value_of_the_bounds_that_it_leaves_open() -> None:
    unbounded = ("log", "records", "epochs", "isr_changes", "crashes", "shutdowns", "sessions_lost")
    three = attrs.evolve(ran(question(replicas=3, minimum=2), "PROVED"), open=unbounded)
    of_any = attrs.evolve(three, open=("replicas", *unbounded))
    for proof, replicas in ((three, 3), (of_any, 2), (of_any, 3)):
        for fault in (NOTHING, CRASH, RESTART):
            assert implies(proof, question(FAULTS.index(fault), minimum=2, replicas=replicas))
        assert not implies(proof, question(FAULTS.index(POWER), minimum=2, replicas=replicas))
        assert not implies(proof, question(minimum=1, replicas=replicas))
        assert not implies(proof, question(minimum=2, replicas=replicas, unclean=True))
    assert not implies(three, question(minimum=2))
    five, restart = Settings(5, 2, False, "all"), FAULTS.index(RESTART)
    assert told(five, restart, of_any).because == "proved for any number of replicas, crashes and restarts in order"
    assert told(five, restart, three).verdict == UNKNOWN
    assert told(five, FAULTS.index(TWO_POWER), of_any, flushed=True).verdict == SURVIVES
    assert told(attrs.evolve(five, acks="1"), restart, of_any).verdict == UNKNOWN


@pytest.mark.parametrize("proof", PROOFS, ids=lambda a: a.command)
def test_the_command_of_a_stored_proof_asks_for_it(proof: Answer) -> None:
    asked = proof_question(options.read_options(prove.Options, prove.USAGE, proof.command.split()[2:]))
    assert set(asked.open) == set(proof.open)
    given = {n: v for n, v in asked.constants.items() if v is not None}
    assert given == {n: v for n, v in proof.question.constants.items() if n not in proof.open}
    assert [p.name for p in asked.properties] == [proof.question.promise]


def test_flushed_records_lose_nothing_by_power() -> None:
    settings = Settings(2, 1, False, "all")
    crash = ran(loss_question("kip-966", settings, CRASH), "HOLDS")
    line = told(settings, FAULTS.index(POWER), crash, flushed=True)
    assert (line.verdict, line.answer) == (SURVIVES, crash)
    assert told(settings, FAULTS.index(POWER), crash).verdict == UNKNOWN


def test_the_recommended_settings_survive_one_failure() -> None:
    """Three replicas, a minimum of two, unclean election off, eligible leader replicas on."""
    for fault in (NOTHING, CRASH, POWER):
        assert told(Settings(3, 2, False, "all"), FAULTS.index(fault), *STORED).verdict == SURVIVES
    assert told(Settings(3, 1, False, "all"), FAULTS.index(POWER), *STORED).verdict == MAY_BE_LOST
    below = answer_among(STORED, refusal_question("kip-966", Settings(3, 2, False, "all")))
    assert below is not None
    assert below.verdict == "HOLDS"


# Racks


def in_rack(settings: Settings, together: int, *known: Answer, flushed: bool = False) -> Line:
    kind = Kind("kip-966", settings, flushed, in_rack=together, racks=3)
    return line_of(kind, settings.acks, kind.faults[-1], AnswerSource(list(known), lambda _: None))


def fails(settings: Settings, fault: Fault, *steps: tuple[str, int]) -> Answer:
    """A loss in which these happen to these brokers."""
    return Answer(
        loss_question("kip-966", settings, fault), "VIOLATED", 1, Path((0,), tuple((a, (b,)) for a, b in steps))
    )


TWO, THREE = Settings(2, 2, False, "all"), Settings(3, 2, False, "all")
DOWN, BACK = "broker_loses_power", "broker_restarts"


def test_a_rack_with_one_replica_is_one_crash_or_one_power_loss() -> None:
    held = [ran(loss_question("kip-966", THREE, fault), "HOLDS") for fault in (CRASH, POWER)]
    assert in_rack(THREE, 1, *held).verdict == SURVIVES
    assert in_rack(THREE, 1, held[1]).verdict == UNKNOWN, "a replica that had flushed everything only crashes"
    lost = ran(loss_question("kip-966", THREE, POWER), "VIOLATED")
    assert in_rack(THREE, 1, held[0], lost).verdict == MAY_BE_LOST


def test_a_loss_is_one_of_a_rack_where_its_brokers_fail_in_one_outage() -> None:
    once = fails(TWO, TWO_POWER, (DOWN, 0), (DOWN, 1), (BACK, 0), (BACK, 1))
    assert in_rack(THREE, 2, once).verdict == MAY_BE_LOST
    assert in_rack(THREE, 3, once).verdict == MAY_BE_LOST
    for steps in (((DOWN, 0), (BACK, 0), (DOWN, 1)), ((DOWN, 0), (BACK, 0), (DOWN, 0))):
        assert in_rack(THREE, 2, fails(TWO, TWO_POWER, *steps)).verdict == UNKNOWN


def test_a_loss_needs_room_outside_of_the_rack_for_whoever_does_not_fail() -> None:
    """One of three replicas fails, and the other two go on: that is no outage of a rack with two of them."""
    loose = Settings(3, 1, False, "all")
    lost = fails(loose, POWER, (DOWN, 0), (BACK, 0))
    assert in_rack(loose, 1, lost, ran(loss_question("kip-966", loose, CRASH), "HOLDS")).verdict == MAY_BE_LOST
    assert in_rack(loose, 2, lost).verdict == UNKNOWN
    of_two = fails(Settings(2, 1, False, "all"), POWER, (DOWN, 0), (BACK, 0))
    assert in_rack(loose, 2, of_two).verdict == MAY_BE_LOST
    assert in_rack(loose, 3, of_two).verdict == UNKNOWN
    assert in_rack(loose, 3, fails(Settings(1, 1, False, "all"), POWER, (DOWN, 0), (BACK, 0))).verdict == MAY_BE_LOST


def test_that_a_whole_rack_loses_something_at_each_broker_and_nothing_is_lost_says_little() -> None:
    asked = loss_question("kip-966", THREE, TWO_POWER)
    assert in_rack(THREE, 2, ran(asked, "HOLDS")).verdict == UNKNOWN


def test_the_recommended_settings_lose_with_a_rack_that_has_two_of_three() -> None:
    assert in_rack(THREE, 1, *STORED).verdict == SURVIVES
    lost = in_rack(THREE, 2, *STORED)
    assert lost.verdict == MAY_BE_LOST
    kind = Kind("kip-966", THREE, in_rack=2, racks=3)
    spread = with_change(kind, lost, AnswerSource(list(STORED), lambda _: None)).change
    assert spread is not None
    assert spread.settings == ("at most 1 of the replicas in one rack",)
    flushed = with_change(attrs.evolve(kind, racks=1), lost, AnswerSource(list(STORED), lambda _: None)).change
    assert flushed is not None
    assert (flushed.settings, flushed.answer.verdict) == (("flush.messages=1",), "PROVED"), "of any number of crashes"


# Bugs


@pytest.mark.parametrize(
    ("version", "has"),
    [
        ("2.7.1", True),
        ("2.7", True),
        ("2.7.2", False),
        ("2.8.0", True),
        ("2.8.2", False),
        ("2.6.3", False),
        ("3.0", False),
    ],
)
def test_a_bug_that_came_and_went_is_one_of_its_releases(version: str, has: bool) -> None:
    bug = next(b for b in bugs() if b.name == "diverging-fetch-counts-13141")
    assert bug.applies(Running(release_of(version), "kip-497")) is has


FILES = [TOP / folder / "cases.toml" for folder in CORPORA]
QUORUM_CASES = {c["name"] for c in tomllib.loads(FILES[1].read_text("utf-8"))["case"]}
CASES = {c["name"]: c for file in FILES for c in tomllib.loads(file.read_text("utf-8"))["case"]}
RELEASED = tuple(dict.fromkeys((TODAY, *dict(KRAFT).values(), *dict(ZOOKEEPER).values())))
REASONS = ("a setting: ", "another way of ", "no release ", "nothing acknowledged is lost", "of the quorum ")


def test_every_bug_is_one_of_the_corpus_or_of_those_found_here() -> None:
    for bug in bugs():
        page = (TOP / bug.page).read_text(encoding="utf-8")
        assert set(bug.designs) <= set(RELEASED)
        assert not bug.designs or CASES[bug.name]["design"] == bug.designs[0]
        assert all(release in page for release in bug.reproduced)
        assert [bool(bug.since), bool(bug.designs), bool(bug.affected)].count(True) == 1
        assert bool(bug.affected) == bool(bug.mended)
        assert bool(bug.reproduced) or bug.name in CASES
        assert bool(bug.since) <= (bool(bug.read) or bug.since in page), "who read it at which tags"
    found = {page.parent.name for page in (TOP / "found").glob("*/TICKET.md")} - set(QUORUM_FAULTS)
    assert found == {b.name for b in bugs() if b.page.startswith("found/")}
    assert all(b.reproduced for b in bugs() if b.name in found)


def test_every_case_that_loses_in_a_released_version_is_in_the_list() -> None:
    """The list against the corpus: a case is in it, or there is a reason that the corpus does not contradict."""
    listed, reasons = {b.name for b in bugs()}, {e.name: e.why for e in elsewhere()}
    assert listed | set(reasons) == set(CASES)
    assert not listed & set(reasons)
    for name, why in reasons.items():
        case = CASES[name]
        assert why.startswith(REASONS), name
        assert why.startswith("of the quorum ") == (name in QUORUM_CASES), name
        if why.startswith("no release "):
            assert case["design"] not in RELEASED, f"{name} is of a released design"
        if why.startswith("nothing acknowledged"):
            assert case["property"] not in ("acked-survives", "committed-on-new-leader", "strong-isr"), name
        if why.startswith("a setting"):
            assert case["fixed_by"]["design"] == case["design"], f"{name} is mended by another design, not by a setting"


@pytest.mark.parametrize("version", ["3.3", "3.4", "3.5", "3.8", "3.9.1", "4.0.1"])
def test_a_release_never_looks_safer_for_not_having_been_run(version: str) -> None:
    """Bugs that were run on newer releases, and whose code is older, by reading."""
    runs = Running(release_of(version), "kraft-3.5")
    names = {b.name for b in bugs() if b.applies(runs)}
    assert {"kept-positions", "overtaken-request", "forgotten-proposal", "last-replica-standing"} <= names
    kept = next(b for b in bugs() if b.name == "kept-positions")
    was_run = version in kept.reproduced
    assert kept.evidence(runs).startswith("by reading from 0.9.0.0 on, run on 4.4.0")
    assert kept.evidence(runs).endswith(f"; {version} was not run") is not was_run


@pytest.mark.parametrize(
    ("name", "version", "design", "has"),
    [
        ("kept-positions", "0.8.2", "kafka-0.8", False),
        ("kept-positions", "0.9.0.1", "zookeeper", True),
        ("kept-positions", "3.9", "kip-497", True),
        ("overtaken-request", "3.2", "kip-841", False),
        ("overtaken-request", "3.9", "kip-497", False),
        ("raised-min-insync", "4.0", "kip-966", True),
        ("raised-min-insync", "4.4", "kraft-3.5", False),
        ("lagging-watermark-join", "0.10", "zookeeper", True),
        ("lagging-watermark-join", "2.0", "kip-279", True),
        ("lagging-watermark-join", "2.0.1", "kip-279", False),
        ("skipped-truncation-7164", "0.8.1", "kafka-0.8", False),
        ("skipped-truncation-7164", "0.8.2.1", "kafka-0.8", True),
        ("unnoticed-bounce-7235", "2.1", "kip-320", True),
        ("unnoticed-bounce-7235", "2.7", "kip-497", False),
        ("back-before-fenced-18106", "3.9", "kraft-3.5", True),
        ("back-before-fenced-18106", "4.0", "kraft-3.5", False),
        ("recreated-replica-16234", "3.7", "kraft-3.5", True),
        ("recreated-replica-16234", "3.7.1", "kraft-3.5", False),
        ("last-replica-standing", "3.4", "kip-841", True),
    ],
)
def test_the_releases_of_a_bug(name: str, version: str, design: str, has: bool) -> None:
    bug = next(b for b in bugs() if b.name == name)
    assert bug.applies(Running(release_of(version), design)) is has


def test_a_release_that_was_not_told_may_be_any() -> None:
    unknown = Running(None, "kraft-3.5", also=("kip-966",))
    names = {b.name for b in bugs() if b.applies(unknown)}
    assert {"kept-positions", "raised-min-insync", "last-replica-standing", "last-leader-lost-more"} <= names


@pytest.mark.slow
@pytest.mark.explores
@pytest.mark.parametrize("bug", [b for b in bugs() if b.designs], ids=lambda b: b.name)
def test_the_model_breaks_the_promise_of_the_case_on_each_design_of_a_bug(bug: Bug) -> None:
    """Without it a list of designs could be anybody's guess."""
    case = CASES[bug.name]
    for name in bug.designs:
        design = DESIGNS[name]
        own = {c.name for c in design.constants()}
        left_out = [a for a in case.get("without", ()) if a in {action.name for action in design.actions}]
        constants = {n: v for n, v in case["settings"].items() if n in own}
        instance = Instance(design.without(*left_out) if left_out else design, constants)
        result = explore(instance, (case["property"],), Limits(), silent)
        assert result.finding(case["property"]).verdict.value == "VIOLATED", name
