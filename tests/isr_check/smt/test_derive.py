"""How much of an invariant is found without it: candidates from actions and templates, what is kept, what follows.

Without these, `--derive` could count a conjunct as found that follows from something false.
"""

import pytest
from tests.support.models import two_phase_commit as tpc

from isr_check.smt import Induction, Proved, prove
from isr_check.smt.strengthening import derivation
from isr_check.smt.strengthening.derivation import Derivation, derive, parts
from isr_check.smt.strengthening.provenance import provenances
from isr_check.smt.strengthening.suggestions import Effort, Search
from isr_check.smt.strengthening.templates import Clause
from isr_check.smt.strengthening.vocabulary import Vocabulary, contexts
from isr_lang import Bool, Design, Property, always, exists, forall

pytestmark = [pytest.mark.solver, pytest.mark.processes]

RMS, MORE_RMS = {"rms": 2}, {"rms": 3}
FEW = Effort(states=300, generated=300, asked=300, rounds=2)


@always
def commits_are_told(s: tpc.State) -> Bool:
    """By hand, in two parts: who commits was told to, and then the manager knows of everyone."""
    return forall(
        (s.rm[r] == tpc.Managed.COMMITTED).implies(s.commit_sent & s.tm_prepared.has(r)) for r in tpc.RM.all()
    )


@always
def somebody_works(s: tpc.State) -> Bool:
    """False, as everybody may prepare: nothing that is true implies it."""
    return exists(s.rm[r] == tpc.Managed.WORKING for r in tpc.RM.all())


BY_HAND = [commits_are_told, tpc.consistent, somebody_works]


@pytest.fixture(scope="module")
def found() -> Derivation:
    return derive(tpc.DESIGN, RMS, MORE_RMS, BY_HAND, [tpc.consistent], FEW)


def test_what_is_true_is_found_part_by_part(found: Derivation) -> None:
    assert [(s.conjunct, s.found, s.parts) for s in found.shares] == [
        ("commits-are-told", 2, 2),
        ("consistent", 1, 1),
        ("somebody-works", 0, 1),
    ]
    assert found.in_time
    assert not found.unproved
    said = "\n".join(found.lines())
    assert "Of 3 conjuncts 2 follow from these, and of their 4 parts 3." in said
    assert "  somebody-works: 0 of 1 parts" in said


def test_what_is_kept_is_inductive_with_more_elements(found: Derivation) -> None:
    kept = [c.property(f"kept-{k}") for k, c in enumerate(found.kept)]
    i = Induction(tpc.DESIGN, {"rms": 4}, kept)
    assert all(isinstance(r, Proved) for _, r in prove(i, list(i.obligations()), 10.0))


def test_actions_say_what_was_so_when_they_were_taken() -> None:
    said = [str(c) for c in provenances(tpc.DESIGN)]
    assert "s.tm == committed => s.tm_prepared == RM.all()" in said
    assert "s.commit_sent => s.tm_prepared == RM.all()" in said
    assert "forall(s.rm[a] == committed => s.commit_sent for a in RM.all())" in said
    assert "s.tm == committed => s.tm == init" not in said


def test_a_false_candidate_is_dropped_and_nothing_follows_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted where actions give candidates: that who is prepared has committed, which holds at the start."""

    context = contexts(tpc.DESIGN)[1]
    guards = {repr(g): g for g in Vocabulary(tpc.DESIGN, context, ()).guards()}
    wrong = Clause(context, (guards["old.rm[a] == prepared"],), guards["old.rm[a] == committed"])

    def unseen(_: Search, properties: list[Property]) -> list[Property]:
        """No state is looked at, so that Houdini has to drop it."""
        return properties

    def planted(design: Design) -> list[Clause]:
        return [*provenances(design), wrong]

    monkeypatch.setattr(derivation, "provenances", planted)
    monkeypatch.setattr(Search, "held", unseen)
    found = derive(tpc.DESIGN, RMS, MORE_RMS, BY_HAND, [tpc.consistent], FEW)
    assert wrong in planted(tpc.DESIGN)
    assert str(wrong) not in map(str, found.kept)
    assert [s.found for s in found.shares] == [2, 1, 0]


def test_the_parts_of_a_condition_are_the_condition() -> None:
    assert [repr(x) for x in parts(commits_are_told.condition)] == [
        "forall(old.rm[r] == committed => old.commit_sent for r in RM.all())",
        "forall(old.rm[r] == committed => old.tm_prepared.has(r) for r in RM.all())",
    ]
