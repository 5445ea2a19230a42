"""Conjuncts that the tool finds itself: from nothing to a proof of two-phase commit."""

import pytest
from tests.support.models import two_phase_commit as tpc

from insync_cli.exits import Exit
from insync_cli.main import main
from isr_check.engine import Limits
from isr_check.native import explore
from isr_check.native.states import states
from isr_check.reference import Evaluator
from isr_check.smt import Induction, Proved, prove
from isr_check.smt.strengthening.houdini import Houdini
from isr_check.smt.strengthening.samples import Sample
from isr_check.smt.strengthening.suggestions import Effort, Suggestions, suggest
from isr_check.smt.strengthening.templates import Clause, strongest
from isr_check.smt.strengthening.vocabulary import Vocabulary, contexts, definitions, negated, substituted
from isr_lang import Bool, Instance, Node, always, forall
from isr_lang.nodes import apply, literal

pytestmark = [pytest.mark.solver, pytest.mark.processes]

RMS = {"rms": 3}
SOON = 1e12


@pytest.fixture(scope="module")
def found() -> Suggestions:
    return suggest(tpc.DESIGN, RMS, [tpc.consistent], effort=Effort(states=300))


def test_two_phase_commit_is_proved_with_what_is_suggested(found: Suggestions) -> None:
    assert len(found.failing) == 3
    assert found.complete
    assert found.restores
    assert 1 < len(found.offered) < 12
    i = Induction(tpc.DESIGN, {"rms": 4}, [tpc.consistent, *(s.property for s in found.offered)])
    assert all(isinstance(r, Proved) for _, r in prove(i, list(i.obligations()), 10.0))


def test_what_is_kept_holds_and_is_inductive(found: Suggestions) -> None:
    instance = Instance(tpc.DESIGN, {"rms": 4})
    evaluator, some = Evaluator(instance), states(instance, Limits(), 40)
    for s in found.kept:
        condition = instance.fold(s.property.condition)
        assert all(evaluator.evaluate(condition, state) for state in some), s.text
    houdini = Houdini(tpc.DESIGN, RMS, [tpc.consistent], [], 10.0)
    houdini.add([s.property for s in found.kept])
    assert houdini.inductive(SOON) == [s.property.name for s in found.kept]
    assert not houdini.failures([s.property.name for s in found.kept])


def test_the_report_reads_like_the_model(found: Suggestions) -> None:
    lines = "\n".join(found.lines())
    assert "3 obligations fail: consistent / rm_chooses_to_abort" in lines
    assert "forall(s.rm[a] == committed => s.commit_sent for a in RM.all())" in lines
    assert "(rules out consistent / rm_" in lines
    assert "With these everything is proved at these bounds" in lines


def test_nothing_is_offered_where_a_promise_is_false() -> None:
    @always
    def never_commits(s: tpc.State) -> Bool:
        """False: it can."""
        return forall(s.rm[r] != tpc.Managed.COMMITTED for r in tpc.RM.all())

    found = suggest(tpc.DESIGN, {"rms": 2}, [never_commits], effort=Effort(states=100, rounds=2))
    assert not found.restores
    assert any("never-commits" in name for name in found.unproved)
    assert "Still not proved: never-commits" in "\n".join(found.lines())


def test_when_the_time_is_up_it_says_so() -> None:
    found = suggest(tpc.DESIGN, {"rms": 2}, [tpc.consistent], effort=Effort(states=50, seconds=0.01))
    assert not found.in_time
    assert not found.restores
    assert "The time was up before every candidate was decided." in found.lines()


def test_what_a_step_can_break_is_dropped() -> None:
    """Houdini: of two candidates that hold in all reachable states, the one that needs a third goes without it."""

    @always
    def working_said_nothing(s: tpc.State) -> Bool:
        """Inductive alone."""
        return forall(s.prepared_sent.has(r).implies(s.rm[r] != tpc.Managed.WORKING) for r in tpc.RM.all())

    @always
    def aborts_are_told(s: tpc.State) -> Bool:
        """Who is prepared aborts only when told: inductive beside the first."""
        told = s.prepared_sent.has
        return forall((told(r) & (s.rm[r] == tpc.Managed.ABORTED)).implies(s.abort_sent) for r in tpc.RM.all())

    def kept(*candidates: object) -> list[str] | None:
        houdini = Houdini(tpc.DESIGN, RMS, [], [], 10.0)
        houdini.add([c for c in (working_said_nothing, aborts_are_told) if c in candidates])
        return houdini.inductive(SOON)

    assert kept(working_said_nothing, aborts_are_told) == ["working-said-nothing", "aborts-are-told"]
    assert kept(aborts_are_told) == []


def test_a_sample_says_what_the_reference_says() -> None:
    instance = Instance(tpc.DESIGN, RMS)
    evaluator, some = Evaluator(instance), states(Instance(tpc.DESIGN, RMS), Limits(), 7)
    for context in contexts(tpc.DESIGN):
        vocabulary = Vocabulary(tpc.DESIGN, context, definitions(tpc.DESIGN))
        sample = Sample(tpc.DESIGN, RMS, context, vocabulary.terms, some)
        for condition in (*vocabulary.guards(), *vocabulary.relations()):
            expected: list[bool] = []
            for state in some:
                for choice in sample.choices:
                    meaning = {e.name: literal(k, e.type) for e, k in zip(context, choice, strict=True)}
                    node = instance.fold(substituted(condition, meaning))
                    expected.append(bool(evaluator.evaluate(node, state)))
            assert sample.truth(condition).tolist() == expected, condition


def test_states_are_those_of_an_exploration() -> None:
    instance = Instance(tpc.DESIGN, RMS)
    every = states(instance, Limits(), 10_000)
    assert len(set(every)) == len(every) == explore(instance, ("type-ok",)).distinct == tpc.PUBLISHED[3]
    assert set(states(instance, Limits(), 20)) < set(every)


def test_weaker_and_renamed_clauses_are_left_out() -> None:
    context = contexts(tpc.DESIGN)[2]
    a, b = (e.node for e in context)
    sent = Node("variable", (), ("prepared_sent", False), tpc.State.variable("prepared_sent").type)
    commit = Node("variable", (), ("commit_sent", False), tpc.State.variable("commit_sent").type)
    has_a, has_b = apply("has", sent, a), apply("has", sent, b)
    short = Clause(context, (has_a,), has_b)
    renamed = Clause(context, (negated(has_a),), negated(has_b))
    longer = Clause(context, (has_a, commit), has_b)
    assert strongest([longer, short, renamed]) == [short]


def test_the_command_line_refuses_what_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "kip-966", "--suggest", "--graph", "g.dot"]) == Exit.USAGE
    assert "--suggest and --graph are questions of their own" in capsys.readouterr().err
    assert main(["prove", "kip-966", "--graph", "g.txt"]) == Exit.USAGE
    assert "a file that ends in .svg, .pdf, .png, .dot, not 'g.txt'" in capsys.readouterr().err
