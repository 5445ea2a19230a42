"""The expression graph means the same as terms of the solver, and proofs by induction say what is so.

Without these, an operator that the translation gets wrong would prove promises of another model, and a solver that
gave up could count as a success.
"""

from collections.abc import Callable, Iterator
from typing import cast

import pytest
from hypothesis import given, settings
from tests.isr_check.test_random_models import some_states
from tests.support.models import two_phase_commit as tpc
from tests.support.strategies import Model, models, numbered_model

from isr_check.engine import Unsound
from isr_check.reference import Evaluator, Parameters, State, parameter_values
from isr_check.sample import sample
from isr_check.smt import Counterexample, Induction, Proved, Translation, Unknown, decide, instance_of, prove
from isr_check.smt.orbits import told_apart
from isr_check.smt.solver import ask
from isr_check.smt.terms import operators as table
from isr_check.smt.terms.design_terms import Choice
from isr_check.smt.terms.logic import Term, Truth, Whole, all_of, not_, same_truth, same_whole, term, z3
from isr_check.smt.terms.solver_values import Reader
from isr_check.smt.terms.values import Items, Option, Pick, Value
from isr_lang import OPERATORS, Action, Bool, Design, FoldedAction, Instance, Property, always, forall
from isr_lang import Value as Setting
from isr_lang.left_out import NAME as LEFT_OUT
from isr_lang.left_out import storing_in_range
from isr_lang.nodes import literal
from isr_lang.types import MaybeType, NumberType, SortType
from isr_model import KIP_966

pytestmark = [pytest.mark.solver, pytest.mark.processes]

# Term by term: the translation against the reference evaluator.


def same_symbols(symbol: Value, value: Value) -> Iterator[tuple[Term, Term]]:
    """The symbols of an unknown value, each with what it is in a given one."""
    match symbol, value:
        case tuple(), tuple():
            for s, v in zip(symbol, value, strict=True):
                yield from same_symbols(s, v)
        case Pick(), int():
            for k, s in enumerate(symbol.at):
                yield from same_symbols(s, k == value)
        case Option(), Option():
            yield from same_symbols(symbol.there, value.there)
            yield from same_symbols(symbol.value, value.value)
        case Items(), Items():
            yield from same_symbols(symbol.length, value.length)
            assert not callable(symbol.items)
            assert not callable(value.items)
            for s, v in zip(symbol.items, value.items, strict=False):
                yield from same_symbols(s, v)
        case _:
            if not isinstance(symbol, bool | int) and not z3.is_not(symbol):
                yield cast("Term", symbol), term(cast("bool | int", value))


class Comparison:
    """One design under constants, in both engines."""

    def __init__(self, design: Design, constants: dict[str, Setting]) -> None:
        design = storing_in_range(design)
        self.instance = Instance(design, constants)
        self.evaluator = Evaluator(self.instance)
        self.terms = Translation(design, self.instance.constants)
        self.old, self.new = self.terms.state("old."), self.terms.state("new.")
        self.types = {v.name: v.type for v in self.instance.variables}
        self.folded = {a.name: i for i, a in enumerate(self.instance.actions)}

    def bindings(self, state: State, symbols: dict[str, Value]) -> list[tuple[Term, Term]]:
        lifted = self.terms.lifted_state(dict(zip(self.types, state, strict=True)))
        return [pair for name in self.types for pair in same_symbols(symbols[name], lifted[name])]

    def ask(self, bindings: list[tuple[Term, Term]]) -> Callable[[Truth | Whole], bool | int]:
        def answer(value: Truth | Whole) -> bool | int:
            if isinstance(value, bool | int):
                return value
            found = z3.simplify(z3.substitute(value, *bindings)) if bindings else z3.simplify(value)
            assert z3.is_int_value(found) or z3.is_true(found) or z3.is_false(found), found
            return int(found.as_long()) if z3.is_int_value(found) else bool(z3.is_true(found))

        return answer

    def steps_agree(self, state: State) -> None:
        """What is in range; and of a state that is, every action with every parameter, its guards and its successor.

        `left_out` has one value in range, so that an unknown state has no symbol for it.
        """
        if dict(zip(self.types, state, strict=True)).get(LEFT_OUT):
            return
        ask = self.ask(self.bindings(state, self.old))
        in_range = self.evaluator.in_range(state)
        assert ask(all_of(self.terms.typed(self.old))) == in_range
        if not in_range:
            return
        expected = {(i, p): s for i, p, s in self.evaluator.successors(state)}
        for action in self.instance.design.actions:
            for parameters in self.parameters(action):
                lifted = {
                    n: self.terms.shapes.lift(t, v) for (n, t), v in zip(action.parameters, parameters, strict=True)
                }
                step = self.terms.step(action, Choice(lifted, ()), self.old)
                successor = expected.get((self.folded.get(action.name, -1), parameters))
                assert ask(all_of(g for _, g in step.guards)) == (successor is not None), (action.name, parameters)
                if successor is not None:
                    found = Reader(self.terms.shapes, ask).state(self.types, step.new)
                    assert tuple(found.values()) == successor, (action.name, parameters)

    def parameters(self, action: Action) -> Iterator[Parameters]:
        return parameter_values(self.instance, FoldedAction(action, (), ()))

    def properties_agree(self, state: State, after: State) -> None:
        ask = self.ask([*self.bindings(state, self.old), *self.bindings(after, self.new)])
        for folded in self.instance.properties:
            if folded.kind != "eventually":
                condition = self.instance.design.property_named(folded.name).condition
                found = self.terms.evaluate(condition, self.old, self.new)
                assert ask(cast("Truth", found)) == self.evaluator.holds(folded, state, after), folded.name


def agree(design: Design, constants: dict[str, Setting], few: int) -> None:
    compared = Comparison(design, constants)
    states = some_states(compared.evaluator, few)
    for i, state in enumerate(states):
        compared.steps_agree(state)
        compared.properties_agree(state, states[i * 7 % len(states)])


def test_the_translation_knows_every_operator() -> None:
    special = Translation(tpc.DESIGN, {}).special
    assert {*special, *table.MEANING} == set(OPERATORS)
    assert not {*special} & {*table.MEANING}


@given(models(promises=3))
@settings(max_examples=40, deadline=None)
def test_random_models_mean_the_same(model: Model) -> None:
    agree(model.design, model.constants, 5)


@pytest.mark.parametrize("number", range(4))
def test_numbered_models_mean_the_same(number: int) -> None:
    for n in range(number * 15, number * 15 + 15):
        model = numbered_model(n, promises=8)
        agree(model.design, model.constants, 3)


def test_what_is_out_of_range_is_seen() -> None:
    compared = Comparison(KIP_966, {})
    (_, state), *_ = compared.evaluator.initial_states()
    for i, (_, type) in enumerate(compared.types.items()):
        if isinstance(type, NumberType) and compared.instance.positions(type) > 1:
            wrong = (*state[:i], compared.instance.bounds(type)[1] + 1, *state[i + 1 :])
            ask = compared.ask(compared.bindings(wrong, compared.old))
            assert ask(all_of(compared.terms.typed(compared.old))) is False
            assert not compared.evaluator.in_range(wrong)


BOUNDS: dict[str, Setting] = {"log": 2, "records": 2, "epochs": 2, "isr_changes": 3, "crashes": 1, "sessions_lost": 1}


def sampled(instance: Instance, evaluator: Evaluator, n: int) -> list[tuple[State, State]]:
    """Steps of random behaviours."""
    steps: list[tuple[State, State]] = []
    for path in sample(instance, evaluator, 1, n).paths:
        state = dict(evaluator.initial_states())[path.initial]
        for name, parameters in path.steps:
            i = [a.name for a in instance.actions].index(name)
            after = next(s for j, p, s in evaluator.successors(state) if (j, p) == (i, parameters))
            steps.append((state, after))
            state = after
    return steps


@pytest.mark.parametrize("every", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in (20, 5))])
def test_the_protocol_means_the_same(every: int) -> None:
    compared = Comparison(KIP_966, BOUNDS)
    steps = sampled(compared.instance, compared.evaluator, 3)
    assert len(steps) > 10
    for state, after in steps[::every]:
        compared.steps_agree(state)
        compared.properties_agree(state, after)


def test_without_bounds_the_protocol_means_the_same() -> None:
    """Asked of the solver: at these bounds, a property cannot differ from what the reference says of the state."""
    compared = Comparison(KIP_966, BOUNDS)
    free = Translation(KIP_966, {**compared.instance.constants, **dict.fromkeys(BOUNDS)})
    given = [same_whole(free.bounds[name], cast("int", value)) for name, value in BOUNDS.items()]
    for state, after in sampled(compared.instance, compared.evaluator, 2)[::4]:
        old, new = (free.lifted_state(dict(zip(compared.types, s, strict=True))) for s in (state, after))
        for folded in compared.instance.properties:
            if folded.kind != "eventually":
                found = free.evaluate(KIP_966.property_named(folded.name).condition, old, new)
                differs = not_(same_truth(cast("Truth", found), compared.evaluator.holds(folded, state, after)))
                asked = [term(t) for t in (*given, *free.assumptions, differs)]
                asked += free.defining(asked, asked)
                assert ask([("", t) for t in asked], 20.0).status == "unsat", folded.name


# The comparison can fail.


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("at_most", "less"),
        ("difference", "union"),
        ("prefix", "equal"),
    ],
)
def test_a_planted_other_operator_is_noticed(monkeypatch: pytest.MonkeyPatch, operator: str, wrong: str) -> None:
    monkeypatch.setitem(table.MEANING, operator, table.MEANING[wrong])
    with pytest.raises(AssertionError):
        test_numbered_models_mean_the_same(0)


def test_a_planted_off_by_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = table.MEANING["take"]

    def one_more(s: object, n: object, args: tuple[Value, ...]) -> Value:
        return right(s, n, (args[0], cast("int", args[1]) + 1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    monkeypatch.setitem(table.MEANING, "take", one_more)
    with pytest.raises(AssertionError):
        test_numbered_models_mean_the_same(0)


def test_names_that_could_be_told_apart_are_all_tried() -> None:
    assert not told_apart(KIP_966.roots())
    choices = Translation(KIP_966, {}).parameters(KIP_966.action_named("follower_sends_fetch"))
    assert [tuple(c.values.values()) for c in choices] == [(0, 0), (0, 1)]
    sort = cast("SortType", Instance(KIP_966).actions[0].parameters[0][1])
    assert told_apart([literal(1, sort)]) == {sort}
    assert told_apart([literal(1, MaybeType(sort))]) == {sort}
    assert not told_apart([literal(0, MaybeType(sort))])
    all_of_them = Translation(KIP_966, {}).parameters(KIP_966.action_named("follower_sends_fetch"), {sort})
    assert len(all_of_them) == 9


# Proofs.


@always
def tells_what_it_decided(s: tpc.State) -> Bool:
    """Messages follow the decision."""
    return (s.commit_sent == (s.tm == tpc.Outcome.COMMITTED)) & (s.abort_sent == (s.tm == tpc.Outcome.ABORTED))


@always
def commits_when_all_are_prepared(s: tpc.State) -> Bool:
    """Everybody had said so."""
    return (s.tm_prepared <= s.prepared_sent) & ((s.tm == tpc.Outcome.COMMITTED).implies(s.tm_prepared == tpc.RM.all()))


@always
def prepared_stays(s: tpc.State) -> Bool:
    """Who is prepared works no more, and aborts only when told."""
    return forall(
        s.prepared_sent.has(r).implies(
            (s.rm[r] != tpc.Managed.WORKING) & ((s.rm[r] == tpc.Managed.ABORTED).implies(s.abort_sent))
        )
        for r in tpc.RM.all()
    )


@always
def commits_when_told(s: tpc.State) -> Bool:
    """Nobody commits alone."""
    return forall((s.rm[r] == tpc.Managed.COMMITTED).implies(s.commit_sent) for r in tpc.RM.all())


@always
def never(s: tpc.State) -> Bool:
    """What no state satisfies."""
    return (s.tm == tpc.Outcome.INIT) & (s.tm != tpc.Outcome.INIT)


CONJUNCTS = (tells_what_it_decided, commits_when_all_are_prepared, prepared_stays, commits_when_told)


def induction(*conjuncts: Property) -> Induction:
    return Induction(tpc.DESIGN, {"rms": 4}, conjuncts)


def test_two_phase_commit_is_proved() -> None:
    i = induction(*CONJUNCTS)
    decided = prove(i, list(i.obligations([tpc.consistent])), 10.0, core=True)
    assert all(isinstance(r, Proved) for _, r in decided)
    implied = next(r for o, r in decided if o.kind == "implies")
    assert isinstance(implied, Proved)
    assert {"tells-what-it-decided", "commits-when-told"} <= set(implied.core)


def test_without_a_conjunct_there_is_a_counterexample_that_replays() -> None:
    i = induction(*(c for c in CONJUNCTS if c is not prepared_stays), tpc.consistent)
    found = [(o, r) for o, r in prove(i, list(i.obligations()), 10.0) if isinstance(r, Counterexample)]
    assert found
    for obligation, result in found:
        instance = instance_of(i, result)
        evaluator, names = Evaluator(instance), [v.name for v in instance.variables]
        before, after = (tuple(s[n] for n in names) for s in (result.state, result.successor))
        action = [a.name for a in instance.actions].index(obligation.action or "")
        assert (action, result.parameters, after) in list(evaluator.successors(before))
        conjunct = next(c for c in i.conjuncts if c.name == obligation.conjunct)
        assert evaluator.evaluate(instance.fold(conjunct.condition), before)
        assert not evaluator.evaluate(instance.fold(conjunct.condition), after)


def test_a_planted_false_conjunct_is_caught() -> None:
    i = induction(*CONJUNCTS, never)
    initial = [o for o in i.obligations() if o.kind == "initial" and o.conjunct == "never"]
    assert [type(decide(i, o, 10.0)) for o in initial] == [Counterexample]
    with pytest.raises(Unsound, match="no state satisfies"):
        prove(i, list(i.obligations()), 10.0)


def test_no_answer_in_time_is_no_success() -> None:
    constants = {**dict.fromkeys(BOUNDS), "replicas": 3}
    wanted = [p for p in KIP_966.properties if p.kind == "always" and p.when is None]
    i = Induction(KIP_966, constants, wanted)
    hard = next(o for o in i.obligations((), ["acked-survives"], ["leader_answers_fetch"]) if o.queries)
    assert isinstance(decide(i, hard, 0.0), Unknown)
