"""The quorum is proved by induction, with three voters and with any number, and mistakes of Raft are not.

Without these the invariant could be false, or so strong that it proves a quorum in which a rule is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from tests.isr_check.smt.test_certify import Json, changed
from tests.isr_check.smt.test_certify_model import call_it_unchanged, drop_an_obligation

from insync_cli.families import designs_of_all, family_of
from insync_cli.main import main
from isr_check import native
from isr_check.engine import Limits, Verdict
from isr_check.smt import Counterexample, Induction, Obligation, Proved, Result, decide
from isr_check.smt.cores import Cores
from isr_check.smt.strategy import Strategy
from isr_lang import NONE, Action, Bool, Design, Instance, Step, Value, action, define
from isr_lang.override import DefinitionFunction
from kraft_protocol.abstract_quorum import (
    ABSTRACT_QUORUM,
    AbstractQuorum,
    Position,
    Quorum,
    Term,
    end,
    follows,
    has_written,
    is_majority,
)
from kraft_protocol.proof import CORES, FIXED_CONSTANTS, FOLLOWS, INVARIANT, OPEN, PROMISES
from kraft_protocol.state import Voter

pytestmark = [pytest.mark.explores, pytest.mark.solver, pytest.mark.processes]

SMALL: Mapping[str, Value] = {"voters": 3, "terms": 2, "metadata_log": 2}


@pytest.mark.parametrize("lost_disks", [0, 1])
def test_every_conjunct_holds_where_it_is_explored(lost_disks: int) -> None:
    promises = [ABSTRACT_QUORUM.restated_property(c.promise) for c in INVARIANT]
    constants = {**SMALL, "lost_disks": lost_disks, "dynamic": bool(lost_disks)}
    instance = Instance(ABSTRACT_QUORUM, constants).promising(*promises)
    explored = native.explore(instance, (), Limits(), lambda _: None, symmetry=True)
    assert explored.complete
    assert {f.name for f in explored.findings} >= {c.name for c in INVARIANT}
    assert {f.verdict for f in explored.findings} == {Verdict.HOLDS}


# What is proved of any number of epochs and records.


def asked(voters: int | None, **others: Value | None) -> tuple[Induction, Strategy]:
    """The questions of the conjuncts, and how the solver is asked them."""
    constants: dict[str, Value | None] = {c.name: c.default for c in ABSTRACT_QUORUM.constants()}
    constants |= FIXED_CONSTANTS
    constants |= dict.fromkeys(OPEN)
    constants |= {"voters": voters, **others}
    induction = Induction(ABSTRACT_QUORUM, constants, [ABSTRACT_QUORUM.restated_property(c.promise) for c in INVARIANT])
    lemmas = {**{c.name: c.by for c in INVARIANT}, **FOLLOWS}
    return induction, Strategy(induction, lemmas, cores=Cores.read(CORES))


def proved(voters: int | None, action: str, *names: str, **others: Value | None) -> list[str]:
    """The obligations of these names, or of all, that have questions, each proved."""
    induction, strategy = asked(voters, **others)
    some = [o for o in induction.obligations((), names, [action]) if o.queries]
    for o in some:
        assert isinstance(decide(induction, o, 20.0, first=strategy.decide), Proved), o.name
    return [o.conjunct for o in some]


@pytest.mark.parametrize("voters", [2, 3])
def test_nobody_else_is_elected_in_an_epoch(voters: int | None) -> None:
    names = ("terms-fit", "leaders-note-what-they-write", "one-leader-ever")
    assert proved(voters, "voter_is_elected", *names) == sorted(names, key=[c.name for c in INVARIANT].index)


@pytest.mark.parametrize("action", ["voter_enters_term", "follower_cuts"])
def test_of_any_number_of_voters_a_majority_stays_bound(action: str) -> None:
    assert proved(None, action, "leaders-bind-a-majority") == ["leaders-bind-a-majority"]


@pytest.mark.parametrize("action", ["voter_is_elected", "leader_commits"])
def test_whoever_is_elected_has_all_that_is_committed(action: str) -> None:
    names = ("leaders-are-complete", "majority-keeps-committed")
    assert sorted(proved(3, action, *names)) == sorted(names)


def test_of_any_number_of_voters_with_directory_ids_a_lost_disk_breaks_no_conjunct() -> None:
    kept = proved(None, "voter_forgets", dynamic=True, lost_disks=None)
    assert {"leaders-bind-a-majority", "majority-keeps-committed", "leaders-are-complete"} <= set(kept)


DIRECTORY_IDS = "--dynamic on --lost-disks any"


def report(words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Mapping[str, object]:
    """What `insync prove abstract-quorum` says with these options, with its exit code as `exit`."""
    asked_words = f"prove abstract-quorum {words} --seconds 20 --look 0 --workers 1 --out {folder} --json -"
    code = main(asked_words.split())
    return {**json.loads(capsys.readouterr().out), "exit": code}


def verdicts(said: Mapping[str, object]) -> dict[str, str]:
    return {line["name"]: line["verdict"] for line in cast("list[dict[str, str]]", said["promises"])}


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "--voters any"])
def test_the_whole_is_proved(options: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = report(options, tmp_path, capsys)
    assert said["exit"] == 0
    assert verdicts(said) == dict.fromkeys(PROMISES, "PROVED")
    assert said["not_covered"] == ["lost-disks"]


def test_a_promise_takes_its_own_conjuncts_only() -> None:
    plan = family_of(ABSTRACT_QUORUM).proof_plan()
    taken = {p: [c.name for c in plan.conjuncts_for([p], INVARIANT)] for p in PROMISES}
    assert taken["one-vote-a-term"] == []
    assert "one-leader-ever" in taken["one-leader-a-term"]
    assert "leaders-are-complete" not in taken["one-leader-a-term"]
    assert len(taken["one-leader-a-term"]) < len(taken["quorum-logs-match"]) < len(taken["quorum-only-grows"])
    assert plan.conjuncts_for(PROMISES, INVARIANT) == list(INVARIANT)
    assert plan.conjuncts_for(["one-leader-a-term", "no-promise-of-it"], INVARIANT) == list(INVARIANT)


@pytest.mark.parametrize(
    ("options", "promise"),
    [
        ("--voters any", "one-vote-a-term"),
        (f"--voters any {DIRECTORY_IDS}", "one-vote-a-term"),
        pytest.param("--voters any", "one-leader-a-term", marks=pytest.mark.slow),
        pytest.param(f"--voters any {DIRECTORY_IDS}", "one-leader-a-term", marks=pytest.mark.slow),
    ],
)
def test_one_promise_is_proved_by_itself_and_its_file_certified(
    options: str, promise: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "proof.zip"
    said = report(f"{options} --property {promise} --proof {file}", tmp_path, capsys)
    assert (said["exit"], verdicts(said)) == (0, {promise: "PROVED"})
    asked_of = {line["conjunct"] for line in cast("list[dict[str, str]]", said["obligations"])}
    assert "leaders-are-complete" not in asked_of
    assert main(["certify", str(file), "--workers", "1", "--quiet"]) == 0

    def lost_disks(manifest: Json, files: dict[str, str]) -> None:
        """It is called a proof for voters that lost another number of disks."""
        cast("Json", manifest["constants"])["lost_disks"] = 2

    for edit in (drop_an_obligation, call_it_unchanged, lost_disks):
        assert main(["certify", str(changed(file, tmp_path, edit)), "--quiet"]) == 65


# What is not proved.


@define
def votes_again(s: AbstractQuorum, r: Voter, v: Voter, t: Term) -> Bool:
    """Nobody asks whom the voter supports already."""
    return s.term[r] <= t


@define
def longer_log_wins(s: AbstractQuorum, nominee: Voter, r: Voter) -> Bool:
    """The length of the log alone says whose is behind."""
    return end(s, r) <= end(s, nominee)


@define
def commits_any_epoch(s: AbstractQuorum, r: Voter, n: Position) -> Bool:
    """What a majority has is committed, of whatever epoch its last record is."""
    own = s.quorum_log[r]
    holders = Voter.all().where(lambda q: (s.term[q] == s.term[r]) & own.take(n).is_prefix_of(s.quorum_log[q]))
    return (n > 0) & (n <= own.length()) & is_majority(holders)


@define
def another_disk_votes(s: AbstractQuorum, r: Voter, v: Voter, t: Term) -> Bool:
    """Whoever comes back with another disk votes under its old id."""
    return (s.term[r] < t) | ((s.term[r] == t) & ((s.support[r] == NONE) | (s.support[r] == v)))


@action
def keeps_its_own(old: Quorum, new: Quorum, f: Voter, v: Voter, t: Term, n: Position) -> Step:
    """A follower keeps what it has, and appends what its leader has beyond that."""
    log, own = old.written_logs[t][v], old.quorum_log[f]
    return (
        f != v,
        has_written(old, v, t),
        own.length() < log.length(),
        n == 0,
        *follows(old, new, f, t, own.append(log[own.length()])),
    )


def mistaken(**parts: Action | DefinitionFunction) -> Design:
    return ABSTRACT_QUORUM.replacing("mistaken", "A quorum without a rule", because="It is a mistake.", **parts)


WITH_IDS: Mapping[str, Value] = {"voters": 3, "terms": 1, "metadata_log": 1, "lost_disks": 1, "dynamic": True}
WITHOUT_IDS: Mapping[str, Value] = {**WITH_IDS, "dynamic": False}


def within(terms: int, records: int) -> Mapping[str, Value]:
    return {"voters": 3, "terms": terms, "metadata_log": records}


MISTAKES = [
    pytest.param(mistaken(is_free=votes_again), "one-leader-ever", "voter_is_elected", within(1, 1), id="votes again"),
    pytest.param(
        mistaken(covers=longer_log_wins), "not-behind-are-complete", "leader_writes", within(2, 2), id="longer log"
    ),
    pytest.param(
        mistaken(may_commit_up_to=commits_any_epoch),
        "leaders-are-complete",
        "leader_commits",
        within(3, 2),
        id="any epoch",
    ),
    pytest.param(
        mistaken(follower_copies=keeps_its_own),
        "records-are-their-leaders",
        "follower_copies",
        within(2, 2),
        id="keeps its own",
    ),
    pytest.param(
        mistaken(is_free=another_disk_votes),
        "strangers-support-nobody",
        "voter_supports",
        WITH_IDS,
        id="another disk votes",
    ),
]
"""Design, conjunct, action, and the bounds within which this shows."""


def decision(
    design: Design, conjunct: str, action: str, bounds: Mapping[str, Value], seconds: float = 60.0
) -> tuple[Obligation, Result]:
    """What becomes of an obligation within small bounds, where each question has an answer."""
    constants = {**{c.name: c.default for c in design.constants()}, **bounds}
    promises = [design.restated_property(c.promise) for c in INVARIANT]
    induction = Induction(design, constants, promises)
    (obligation,) = (o for o in induction.obligations((), [conjunct], [action]) if o.conjunct == conjunct)
    return obligation, decide(induction, obligation, seconds)


@pytest.mark.parametrize(("design", "conjunct", "action", "bounds"), MISTAKES)
def test_a_mistake_has_a_counterexample_to_induction(
    design: Design, conjunct: str, action: str, bounds: Mapping[str, Value]
) -> None:
    assert isinstance(decision(design, conjunct, action, bounds)[1], Counterexample)
    obligation, control = decision(ABSTRACT_QUORUM, conjunct, action, bounds)
    assert obligation.queries
    assert isinstance(control, Proved)


@pytest.mark.parametrize("conjunct", ["leaders-bind-a-majority", "majority-keeps-committed"])
def test_a_majority_outlives_a_lost_disk_only_if_voters_have_directory_ids(conjunct: str) -> None:
    asked = conjunct, "voter_forgets"
    assert isinstance(decision(ABSTRACT_QUORUM, *asked, WITHOUT_IDS)[1], Counterexample)
    obligation, control = decision(ABSTRACT_QUORUM, *asked, WITH_IDS)
    assert obligation.queries
    assert isinstance(control, Proved)


def test_what_is_built_on_the_quorum_has_no_invariant_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "kraft-activation"]) == 64
    assert "no invariant is known that speaks of kraft-activation" in capsys.readouterr().err
    assert family_of(designs_of_all()["kraft-activation"]) is family_of(ABSTRACT_QUORUM)
