"""Sorts with any number of elements: their translation for the solver, and proofs for any number of replicas.

Without these, an unsound shortcut (a few elements stand for all, names are exchanged, sizes have axioms) would prove a
promise that four replicas break, and `insync prove --replicas any` would say PROVED.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import cast

import pytest
from tests.isr_check.smt.test_smt import BOUNDS, CONJUNCTS, Comparison, sampled
from tests.isr_protocol.test_invariant import HINTS
from tests.support.models import two_phase_commit as tpc

from insync_cli.main import main
from isr_check.reference import State as Reached
from isr_check.smt import Counterexample, Induction, Obligation, Proved, Translation, decide
from isr_check.smt.goals import Element, Goals
from isr_check.smt.hypotheses import Guide
from isr_check.smt.induction import Witness
from isr_check.smt.solver import ask
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms import shapes
from isr_check.smt.terms.design_terms import Choice, Scope
from isr_check.smt.terms.design_terms import State as Values
from isr_check.smt.terms.logic import (
    Term,
    Truth,
    Whole,
    all_of,
    and_,
    any_of,
    at_most,
    implies,
    int_symbol,
    less,
    not_,
    or_,
    plus,
    same_truth,
    same_whole,
    term,
)
from isr_check.smt.terms.sizes import Size, Sizes
from isr_check.smt.terms.values import Members
from isr_check.symmetry import Symmetry
from isr_lang import Bool, Conjunct, Property, always, exists
from isr_lang.types import Scalar, SetType, SortType
from isr_model import KIP_966
from isr_protocol.proof.invariant import INVARIANT
from isr_protocol.proof.questions import FIXED_CONSTANTS, OPEN
from isr_protocol.state import Replica, State

pytestmark = pytest.mark.solver

Body = Callable[[Whole], Truth]
FEW = 2
"""Elements with a name: fewer than there are, so that what is said of the others is tried too."""
STATED = [p for p in KIP_966.properties if p.kind == "always" and p.when is None]


@always
def somebody_lives(s: State) -> Bool:
    """If not all are dead."""
    return (~s.alive.is_empty()).implies(exists(s.alive.has(r) for r in Replica.all()))


@always
def somebody_is_dead(s: State) -> Bool:
    """If not all live."""
    return (s.alive != Replica.all()).implies(exists(~s.alive.has(r) for r in Replica.all()))


WITH = [
    *(
        KIP_966.restated_property(c.promise)
        for c in INVARIANT
        if c.name in {"somebody-may-be-elected", "zombies-commit-nothing-new", "leaders-agree-with-committed"}
    ),
    somebody_lives,
    somebody_is_dead,
]
REPLICA = next(t for t in KIP_966.types() if isinstance(t, SortType))


def status(t: Translation, truths: Sequence[Truth]) -> str:
    asked = [term(x) for x in (*t.assumptions, *truths)]
    return ask([("", x) for x in (*asked, *t.defining(asked, asked))], 20.0).status


class Three:
    """The design with any number of replicas, of which then there are three."""

    def __init__(self) -> None:
        self.compared = Comparison(KIP_966, BOUNDS)
        self.free = Translation(
            KIP_966, {**self.compared.instance.constants, **dict.fromkeys(BOUNDS), "replicas": None}
        )
        given = {**BOUNDS, "replicas": 3}
        self.given = [same_whole(self.free.bounds[name], cast("int", value)) for name, value in given.items()]

    def states(self) -> list[Reached]:
        """A few that can be reached and a few of which every second variable is another's."""
        reached = [state for state, _ in sampled(self.compared.instance, self.compared.evaluator, 3)][::3]
        mixed = [tuple(a[i] if i % 2 else b[i] for i in range(len(a))) for a, b in pairwise(reached)]
        return [*reached[-1:], *mixed]

    def lifted(self, state: Reached) -> dict[str, object]:
        return dict(zip(self.compared.types, state, strict=True))

    def must_be(self, truth: Truth, value: bool) -> bool:
        return status(self.free, [*self.given, not_(same_truth(truth, value))]) == "unsat"


# What is said of any number, of three.


def agrees_of_three() -> None:
    three, seen = Three(), set[bool]()
    folded = {f.name: f for f in three.compared.instance.properties}
    for state in three.states():
        lifted = three.free.lifted_state(three.lifted(state))
        for p in STATED:
            said = cast("Truth", three.free.evaluate(p.condition, lifted))
            holds = three.compared.evaluator.holds(folded[p.name], state, state)
            assert three.must_be(said, holds), p.name
            seen.add(holds)
    assert seen == {False, True}


def test_of_three_replicas_it_says_what_the_reference_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "WRITTEN_ELEMENTS", FEW)
    agrees_of_three()


def named_only(self: shapes.Shapes, of: Scalar, body: Body, name: str, universal: bool = True) -> Truth:
    """As if there were no others than those that have a name."""
    parts = (implies(self.inside(of, k), body(k)) if universal else and_(self.inside(of, k), body(k)) for k in (0, 1))
    return (all_of if universal else any_of)(parts)


def test_to_forget_the_others_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes.Shapes, "over", named_only)
    with pytest.raises(AssertionError):
        agrees_of_three()


# What is proved instead of a condition, of a few elements for all.


def agrees_under_every_name() -> None:
    """A condition holds if its goals hold however the elements are called; also of states that nothing leads to."""
    three = Three()
    evaluator, folded = three.compared.evaluator, {f.name: f for f in three.compared.instance.properties}
    symmetry, goals = Symmetry(three.compared.instance), Goals(three.free, frozenset([REPLICA]))
    for state in three.states():
        images = [three.free.lifted_state(three.lifted(image)) for image in symmetry.images(state)]
        for p in STATED:
            parts = [x for image in images for x in goals.parts(p.condition, Scope(image, None, {}), {})]
            assert three.must_be(all_of(parts), evaluator.holds(folded[p.name], state, state)), p.name


def test_what_is_proved_of_a_few_under_every_name_is_what_is_promised() -> None:
    agrees_under_every_name()


def test_to_prove_nothing_of_one_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    each = Goals.each

    def only_named(self: Goals, sort: SortType, used: Mapping[SortType, int]) -> Iterator[Element]:
        yield from list(each(self, sort, used))[:-1]

    monkeypatch.setattr(Goals, "each", only_named)
    with pytest.raises(AssertionError):
        agrees_under_every_name()


# Somebody without a name gets one.


def can_be_called_so(step: int) -> int:
    """In every so manieth state, what is said together of somebody is true of some naming, the first one being named.

    Returns how often it is not true of the naming that there is.
    """
    three, named_anew = Three(), 0
    asked = Induction(KIP_966, {**three.compared.instance.constants, **dict.fromkeys(BOUNDS), "replicas": None}, WITH)
    three.free, symmetry = asked.translation, Symmetry(three.compared.instance)
    three.given = [same_whole(three.free.bounds["replicas"], 3)]
    states = [state for state, _ in sampled(three.compared.instance, three.compared.evaluator, 12)[::step]]
    for about, state in product(WITH, states):
        first_stays = asked.goals.depth(about.condition, REPLICA) > 0
        if about.name == "zombies-commit-nothing-new":
            continue
        images = [
            image
            for renaming, image in zip(symmetry.group, symmetry.images(state), strict=True)
            if not first_stays or renaming[REPLICA][0] == 0
        ]
        known = [three.free.lifted_state(three.lifted(image)) for image in images]
        said = [list(asked.witnesses(about, Choice({}, ()), [(c, old) for c in WITH])) for old in known]
        for together in zip(*said, strict=True):
            true = next((k for k, w in enumerate(together) if three.must_be(w.term, True)), None)
            assert true is not None
            named_anew += true > 0
    return named_anew


@pytest.mark.slow
@pytest.mark.parametrize("step", [90, 5])
def test_whoever_is_meant_can_be_called_the_next_one(step: int) -> None:
    assert can_be_called_so(step) > 0


def test_to_call_two_of_them_the_next_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Induction.witnesses

    def two(
        self: Induction, about: Property, choice: Choice, known: Sequence[tuple[Property, Values]]
    ) -> Iterator[Witness]:
        every = list(one(self, about, choice, known))
        yield from (Witness(x.of, term(and_(x.term, y.term))) for x in every for y in every[-3:])

    monkeypatch.setattr(Induction, "witnesses", two)
    with pytest.raises(AssertionError):
        can_be_called_so(90)


# Sizes.


def true_of_small_sets() -> None:
    """Whatever two sets of three elements are, nothing that is said of their sizes is false."""
    t = Translation(KIP_966, {**FIXED_CONSTANTS, **dict.fromkeys(OPEN), "replicas": None})
    a, b = (cast("Members", t.shapes.symbol(SetType(REPLICA), name)) for name in "ab")
    both = Members(lambda x: or_(a.has(x), b.has(x)))
    sizes = [t.shapes.sizes.of(REPLICA, x) for x in (a, b, both)]
    for first, second in product(range(8), repeat=2):
        truths = [same_whole(t.bounds["replicas"], 3)]
        for k in range(3):
            truths += [same_truth(a.has(k), first >> k & 1 == 1), same_truth(b.has(k), second >> k & 1 == 1)]
        counted = zip(sizes, (first, second, first | second), strict=True)
        truths += [same_whole(size, members.bit_count()) for size, members in counted]
        truths += [at_most(0, plus(x, y)) for x, y in pairwise(sizes)]
        assert status(t, truths) == "sat", (first, second)


def test_what_is_said_of_sizes_is_true_of_small_sets() -> None:
    true_of_small_sets()


def all_alike(_: Sizes, a: Size, b: Size) -> list[Term]:
    """No set is larger than another."""
    return [term(at_most(a.number, b.number))]


def every_part_is_smaller(sizes: Sizes, a: Size, b: Size) -> list[Term]:
    """A part of a set is smaller, also where it is the whole."""
    other = sizes.shapes.over(a.of, lambda x: and_(a.members.has(x), not_(b.members.has(x))), "x", universal=False)
    return [term(or_(less(a.number, b.number), other))]


def larger_has_all(sizes: Sizes, a: Size, b: Size) -> list[Term]:
    """A set that is not smaller than another has all of its members, also where it is no part of it."""
    every = sizes.shapes.over(b.of, lambda x: implies(b.members.has(x), a.members.has(x)), "x")
    return [term(or_(less(a.number, b.number), every))]


@pytest.mark.parametrize("planted", [all_alike, every_part_is_smaller, larger_has_all])
def test_a_planted_false_axiom_about_sizes_is_noticed(
    monkeypatch: pytest.MonkeyPatch, planted: Callable[[Sizes, Size, Size], list[Term]]
) -> None:
    monkeypatch.setattr(Sizes, "_comparison", planted)
    with pytest.raises(AssertionError):
        true_of_small_sets()


def of_part_and_whole(strict: bool) -> str:
    """Whether z3 refutes that a part as large as the whole (not `strict`: or smaller) lacks a member of it."""
    t = Translation(KIP_966, {**FIXED_CONSTANTS, **dict.fromkeys(OPEN), "replicas": None})
    part, whole = (cast("Members", t.shapes.symbol(SetType(REPLICA), name)) for name in ("part", "whole"))
    within = t.shapes.over(REPLICA, lambda x: implies(part.has(x), whole.has(x)), "x")
    some = t.shapes.over(REPLICA, lambda x: and_(whole.has(x), not_(part.has(x))), "x", universal=False)
    a, b = (t.shapes.sizes.of(REPLICA, x) for x in (part, whole))
    return status(t, [within, some, same_whole(a, b) if strict else at_most(a, b)])


def nothing_said(*_: object) -> bool:
    """Of the sizes of a part and of the whole."""
    return True


def test_a_part_as_large_as_the_whole_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_part_and_whole(strict=True) == "unsat"
    assert of_part_and_whole(strict=False) != "unsat"
    monkeypatch.setattr(Sizes, "_part_and_whole", nothing_said)
    assert of_part_and_whole(strict=True) != "unsat"


def always_meet(sizes: Sizes, a: Size, b: Size) -> list[Term]:
    """Two sets of half of the elements each have one in common."""
    w = int_symbol(sizes.shapes.fresh("in_both"))
    both = and_(sizes.shapes.inside(a.of, w), a.members.has(w), b.members.has(w))
    return [term(or_(less(plus(plus(a.number, b.number), 1), sizes.shapes.bounds(a.of)[1]), both))]


def test_a_planted_false_axiom_about_two_sizes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sizes, "_sum", always_meet)
    with pytest.raises(AssertionError):
        true_of_small_sets()


def of_majorities(both: bool) -> str:
    """Whether z3 refutes that two sets have nobody in common; both are more than half, or (not `both`) one of them."""
    t = Translation(KIP_966, {**FIXED_CONSTANTS, **dict.fromkeys(OPEN), "replicas": None})
    one, other = (cast("Members", t.shapes.symbol(SetType(REPLICA), name)) for name in ("one", "other"))
    apart = t.shapes.over(REPLICA, lambda x: not_(and_(one.has(x), other.has(x))), "x")
    a, b = (t.shapes.sizes.of(REPLICA, x) for x in (one, other))
    every = t.bounds["replicas"]
    return status(t, [apart, less(every, plus(a, a)), less(every, plus(b, b)) if both else at_most(plus(b, b), every)])


def nothing_of_sums(*_: object) -> list[Term]:
    return []


def test_two_majorities_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_majorities(both=True) == "unsat"
    assert of_majorities(both=False) != "unsat"
    monkeypatch.setattr(Sizes, "_sum", nothing_of_sums)
    assert of_majorities(both=True) != "unsat"


# Proofs.


def test_two_phase_commit_is_proved_for_any_number_of_managers() -> None:
    asked = Induction(tpc.DESIGN, {"rms": None}, CONJUNCTS)
    first, every = Strategy(asked, {}).decide, list(asked.obligations([tpc.consistent]))
    assert [o.name for o in every if not isinstance(decide(asked, o, 10.0, first=first), Proved)] == []
    assert sum(bool(o.queries) for o in every) > 10


SETS = [
    c
    for c in INVARIANT
    if c.name
    in {
        "blanks",
        "one-epoch-one-leader",
        "epochs-are-the-controllers",
        "elected-leader",
        "no-elr-beside-enough",
        "own-isr",
        "requests-of-isr",
        "leaders-count-candidates",
    }
]
ACTIONS = ["leader_learns_isr", "broker_restarts"]


def of_sets(conjuncts: Sequence[Conjunct]) -> tuple[Induction, list[Obligation]]:
    asked = Induction(
        KIP_966,
        {**FIXED_CONSTANTS, **dict.fromkeys(OPEN), "replicas": None},
        [KIP_966.restated_property(c.promise) for c in conjuncts],
    )
    return asked, list(asked.obligations((), [c.name for c in conjuncts], ACTIONS))


@pytest.mark.parametrize("action", [ACTIONS[0], pytest.param(ACTIONS[1], marks=pytest.mark.slow)])
def test_in_sync_sets_are_proved_for_any_number_of_replicas(action: str) -> None:
    asked, every = of_sets(SETS)
    some = [o for o in every if o.name.endswith(f" / {action}")]
    first = Strategy(asked, HINTS).decide
    assert [o.name for o in some if not isinstance(decide(asked, o, 5.0, first=first), Proved)] == []
    assert sum(bool(o.queries) for o in every) > 8
    assert sum(bool(o.queries) for o in some) > 3


def test_a_conjunct_that_is_missing_is_noticed() -> None:
    asked, some = of_sets([c for c in SETS if c.name != "no-elr-beside-enough"])
    goal = next(o for o in some if o.name == "leaders-count-candidates / leader_learns_isr")
    assert Strategy(asked, HINTS).decide(goal, goal.queries[0], 0.2).status != "unsat"
    guide = Guide(KIP_966, asked.translation.settings, asked.conjuncts)
    assert isinstance(decide(asked, goal, 10.0, guide=guide), Counterexample)


@always
def somebody_is_prepared(s: tpc.State) -> Bool:
    """Nobody is, at the start."""
    return exists(s.tm_prepared.has(r) for r in tpc.RM.all())


def test_that_somebody_exists_at_the_start_does_not_follow_from_itself() -> None:
    asked = Induction(tpc.DESIGN, {"rms": None}, [somebody_is_prepared])
    start = next(o for o in asked.obligations() if o.kind == "initial" and o.conjunct == somebody_is_prepared.name)
    assert Strategy(asked, {}).decide(start, start.queries[0], 1.0).status != "unsat"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--acks", "any"], "--acks"),
    ],
)
def test_what_any_number_cannot_do_is_said(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["prove", "kip-966", "--replicas", "any", *words]) == 64
    assert says in capsys.readouterr().err
