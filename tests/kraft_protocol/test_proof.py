"""The quorum is proved by induction, with three voters and with any number, and mistakes of Raft are not.

Without these the invariant could be false, or so strong that it proves a quorum in which a rule is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from insync_cli.families import designs_of_all, family_of
from insync_cli.main import main
from isr_check import native
from isr_check.engine import Limits, Verdict
from isr_check.smt import Counterexample, Induction, Obligation, Proved, Result, decide
from isr_check.smt.strategy import Strategy
from isr_lang import Bool, Design, Instance, Value, define
from isr_lang.override import DefinitionFunction
from kraft_protocol.abstract_quorum import ABSTRACT_QUORUM, AbstractQuorum, Position, Term, end, is_majority
from kraft_protocol.proof import FIXED_CONSTANTS, FOLLOWS, INVARIANT, OPEN, PROMISES
from kraft_protocol.state import Voter

pytestmark = [pytest.mark.explores, pytest.mark.solver, pytest.mark.processes]

SMALL: Mapping[str, Value] = {"voters": 3, "terms": 2, "metadata_log": 2}


def test_every_conjunct_holds_where_it_is_explored() -> None:
    promises = [ABSTRACT_QUORUM.restated_property(c.promise) for c in INVARIANT]
    instance = Instance(ABSTRACT_QUORUM, SMALL).promising(*promises)
    explored = native.explore(instance, (), Limits(), lambda _: None, symmetry=True)
    assert explored.complete
    assert {f.name for f in explored.findings} >= {c.name for c in INVARIANT}
    assert {f.verdict for f in explored.findings} == {Verdict.HOLDS}


# What is proved of any number of epochs and records.


def asked(voters: int | None, only: Sequence[str] = ()) -> tuple[Induction, Strategy]:
    """The questions of the conjuncts `only`, or of all, and how the solver is asked them."""
    constants: dict[str, Value | None] = {c.name: c.default for c in ABSTRACT_QUORUM.constants()}
    constants |= FIXED_CONSTANTS
    constants |= dict.fromkeys(OPEN)
    constants["voters"] = voters
    conjuncts = [c for c in INVARIANT if not only or c.name in only]
    induction = Induction(ABSTRACT_QUORUM, constants, [ABSTRACT_QUORUM.restated_property(c.promise) for c in conjuncts])
    return induction, Strategy(induction, {**{c.name: c.by for c in conjuncts}, **FOLLOWS})


def proved(voters: int | None, action: str, *names: str) -> list[str]:
    """The obligations of these names that have questions, each proved."""
    induction, strategy = asked(voters)
    some = [o for o in induction.obligations((), names, [action]) if o.queries]
    for o in some:
        assert isinstance(decide(induction, o, 20.0, first=strategy.decide), Proved), o.name
    return [o.conjunct for o in some]


@pytest.mark.parametrize("voters", [2, 3, pytest.param(None, marks=pytest.mark.slow)])
def test_nobody_else_is_elected_in_an_epoch(voters: int | None) -> None:
    names = ("terms-fit", "leaders-note-what-they-write", "one-leader-ever")
    assert proved(voters, "voter_is_elected", *names) == sorted(names, key=[c.name for c in INVARIANT].index)


@pytest.mark.parametrize("action", ["voter_enters_term", "follower_cuts"])
def test_of_any_number_of_voters_a_majority_stays_bound(action: str) -> None:
    assert proved(None, action, "leaders-bind-a-majority") == ["leaders-bind-a-majority"]


OF_LEADERS = ("terms-fit", "leaders-bind-a-majority", "one-leader-ever", "leaders-note-what-they-write")
"""These alone are inductive, and one-leader-a-term follows."""


@pytest.mark.slow
def test_of_any_number_of_voters_one_leads_an_epoch() -> None:
    induction, strategy = asked(None, OF_LEADERS)
    promises = [p for p in ABSTRACT_QUORUM.properties if p.name in ("one-leader-a-term", "one-vote-a-term")]
    every = [o for o in induction.obligations(promises, ["type-ok", *OF_LEADERS]) if o.queries]
    assert {o.conjunct for o in every} >= {*OF_LEADERS, *(p.name for p in promises)}
    for o in every:
        assert isinstance(decide(induction, o, 20.0, first=strategy.decide), Proved), o.name


@pytest.mark.parametrize("action", ["voter_is_elected", "leader_commits"])
def test_whoever_is_elected_has_all_that_is_committed(action: str) -> None:
    names = ("leaders-are-complete", "majority-keeps-committed")
    assert sorted(proved(3, action, *names)) == sorted(names)


@pytest.mark.slow
def test_the_whole_is_proved_with_three_voters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = f"prove abstract-quorum --seconds 20 --look 0 --workers 1 --out {tmp_path} --json -"
    assert main(words.split()) == 0
    said = json.loads(capsys.readouterr().out)
    assert {line["name"] for line in said["promises"]} == set(PROMISES)
    assert {line["verdict"] for line in said["promises"]} == {"PROVED"}
    assert said["not_covered"] == ["lost-disks"]


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


def changed(**definitions: DefinitionFunction) -> Design:
    return ABSTRACT_QUORUM.replacing("changed", "A quorum without a rule", because="It is a mistake.", **definitions)


MISTAKES = [
    pytest.param(changed(is_free=votes_again), "one-leader-ever", "voter_is_elected", (1, 1), id="votes again"),
    pytest.param(changed(covers=longer_log_wins), "not-behind-are-complete", "leader_writes", (2, 2), id="longer log"),
    pytest.param(
        changed(may_commit_up_to=commits_any_epoch), "leaders-are-complete", "leader_commits", (3, 2), id="any epoch"
    ),
]
"""Design, conjunct, action, and the epochs and the records within which this shows."""


def decision(design: Design, conjunct: str, action: str, small: tuple[int, int]) -> tuple[Obligation, Result]:
    """What becomes of an obligation within small bounds, where each question has an answer."""
    bounds = {"voters": 3, "terms": small[0], "metadata_log": small[1]}
    constants = {**{c.name: c.default for c in design.constants()}, **bounds}
    promises = [design.restated_property(c.promise) for c in INVARIANT]
    induction = Induction(design, constants, promises)
    (obligation,) = (o for o in induction.obligations((), [conjunct], [action]) if o.conjunct == conjunct)
    return obligation, decide(induction, obligation, 60.0)


@pytest.mark.parametrize(("design", "conjunct", "action", "small"), MISTAKES)
def test_a_mistake_has_a_counterexample_to_induction(
    design: Design, conjunct: str, action: str, small: tuple[int, int]
) -> None:
    assert isinstance(decision(design, conjunct, action, small)[1], Counterexample)
    obligation, control = decision(ABSTRACT_QUORUM, conjunct, action, small)
    assert obligation.queries
    assert isinstance(control, Proved)


def test_what_is_built_on_the_quorum_has_no_invariant_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "kraft-activation"]) == 64
    assert "no invariant is known that speaks of kraft-activation" in capsys.readouterr().err
    assert family_of(designs_of_all()["kraft-activation"]) is family_of(ABSTRACT_QUORUM)
