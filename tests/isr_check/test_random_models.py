"""Random models: the reference evaluator says what an interpreter says that shares nothing with it.

All engines are compared with the reference evaluator. Without these, a mistake in it would be everybody's, and no
comparison would show it.

`tests/support/strategies.py` makes the models; every engine and export can be held against them in the same way.
"""

from collections.abc import Iterator

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.interpreter import LOOPS, Scope, State, World
from tests.support.interpreter import OPERATORS as INTERPRETED
from tests.support.sample import sample
from tests.support.strategies import Model, models, numbered_model, trace

from isr_check.engine import TYPE_OK, Limits, Verdict
from isr_check.explorer import explore
from isr_check.mutation import replay
from isr_check.reference import Evaluator
from isr_check.reference import State as Packed
from isr_lang import OPERATORS, Design, Instance, Node, reads, text, walk
from isr_lang.left_out import NAME as LEFT_OUT

pytestmark = pytest.mark.explores

FEW = Limits(max_states=100)
thorough = settings(max_examples=150, deadline=None)


def friendly(world: World, instance: Instance, state: Packed) -> State:
    """A state of the reference evaluator as the interpreter has it, with the variables that are absent.

    What a step left out of a set or a map the interpreter tells apart from the state.
    """
    there = zip(instance.variables, state, strict=True)
    absent = {name: value for name, value in world.initial_states()[0].items() if name in world.absent()}
    return absent | {v.name: world.decode(v.type, value) for v, value in there if v.name != LEFT_OUT}


def some_states(evaluator: Evaluator, limit: int) -> list[Packed]:
    """The first states in breadth-first order."""
    seen = dict.fromkeys(s for _, s in evaluator.initial_states())
    for state in growing(seen):
        if len(seen) >= limit:
            break
        seen.update(dict.fromkeys(s for _, _, s in evaluator.successors(state)))
    return list(seen)[:limit]


def growing(seen: dict[Packed, None]) -> Iterator[Packed]:
    """The keys of a dictionary that grows meanwhile."""
    position = 0
    while position < len(seen):
        yield list(seen)[position]
        position += 1


@given(models())
@thorough
def test_the_reference_and_the_interpreter_take_the_same_steps(model: Model) -> None:
    instance, world = model.instance(), World(model.design, model.constants)
    evaluator = Evaluator(instance)
    initial = [friendly(world, instance, s) for _, s in evaluator.initial_states()]
    assert initial == world.initial_states()
    for state in some_states(evaluator, 30):
        if not evaluator.in_range(state):
            continue  # it has no next one
        expected = list(world.successors(friendly(world, instance, state)))
        taken: list[tuple[str, tuple[object, ...], State]] = []
        for position, parameters, successor in evaluator.successors(state):
            action = instance.actions[position]
            values = zip(action.parameters, parameters, strict=True)
            decoded = tuple(world.decode(t, v) for (_, t), v in values)
            taken.append((action.name, decoded, friendly(world, instance, successor)))
        assert taken == expected


@pytest.mark.parametrize("number", sample(range(10), 4))
def test_the_reference_and_the_interpreter_agree_about_properties(number: int) -> None:
    for model in (numbered_model(n, promises=12) for n in range(number * 20, number * 20 + 20)):
        agree_about_properties(model)


def agree_about_properties(model: Model) -> None:
    instance, world = model.instance(), World(model.design, model.constants)
    evaluator = Evaluator(instance)
    for state in some_states(evaluator, 6):
        old = friendly(world, instance, state)
        successors = [s for _, _, s in evaluator.successors(state)][:3]
        for folded in instance.properties:
            written = model.design.property_named(folded.name)
            for after in successors if "step" in folded.kind else [state]:
                new = friendly(world, instance, after)
                expected = Scope(world, old, new, {}).value(written.condition)
                assert evaluator.holds(folded, state, after) == expected, text(written.condition)


@pytest.mark.parametrize("number", sample(range(10), 4))
def test_folding_does_not_change_the_meaning(number: int) -> None:
    for model in (numbered_model(n, promises=12) for n in range(number * 20, number * 20 + 20)):
        fold_alike(model)


def fold_alike(model: Model) -> None:
    """Every expression, as written and folded, in the interpreter, which does not fold."""
    instance, world = model.instance(), World(model.design, model.constants)
    states = [friendly(world, instance, s) for s in some_states(Evaluator(instance), 4)]
    for node, parameters in expressions(model.design, world):
        folded = with_folded_bodies(instance, instance.fold(node))
        for old in states:
            scope = Scope(world, old, states[-1], parameters)
            assert scope.value(folded) == scope.value(node), text(node)


def expressions(design: Design, world: World) -> Iterator[tuple[Node, dict[str, object]]]:
    for p in design.properties:
        yield p.condition, {}
    for action in design.actions:
        nodes = [g.condition for g in action.guards]
        nodes += [n for u in action.updates for n in (*u.path, u.value)]
        for parameters in world.parameters(action):
            yield from ((node, parameters) for node in nodes)


def with_folded_bodies(instance: Instance, node: Node) -> Node:
    attr = node.attr
    if node.op == "call":
        definition, primed = node.attr
        body = with_folded_bodies(instance, instance.body(definition))
        attr = (attrs.evolve(definition, body=body), primed)
    return Node(node.op, tuple(with_folded_bodies(instance, a) for a in node.args), attr, node.type)


@given(models())
@thorough
def test_what_is_stored_is_in_range(model: Model) -> None:
    """Every variable is; a member of a set that is not is left out, and that alone violates type-ok."""
    instance = model.instance()
    finding = explore(instance, (), FEW).finding(TYPE_OK)
    if finding.path is None:
        assert finding.verdict is not Verdict.VIOLATED
        return
    last = replay(Evaluator(instance), finding.path)[-1]
    beyond = {v.name for v, value in zip(instance.variables, last, strict=True) if not instance.contains(v.type, value)}
    assert beyond == {LEFT_OUT}


@given(models())
@thorough
def test_tracing_again_gives_the_same_text_and_hash(model: Model) -> None:
    again = trace(model.source)
    assert [text(n) for n in again.roots()] == [text(n) for n in model.design.roots()]
    assert again.model_hash() == model.design.model_hash()


@given(models(), st.data())
@thorough
def test_the_hash_tells_when_a_guard_is_dropped(model: Model, data: st.DataObject) -> None:
    guarded = [a for a in model.design.actions if a.guards]
    if guarded:
        action = data.draw(st.sampled_from(guarded))
        weaker = attrs.evolve(action, guards=action.guards[1:])
        changed = model.design.replacing("changed", "", because="", **{action.name: weaker})
        assert changed.model_hash() != model.design.model_hash()


@given(models())
@thorough
def test_bound_variables_have_names_of_their_own(model: Model) -> None:
    def check(node: Node, taken: frozenset[str]) -> None:
        inner = taken
        if node.op in LOOPS:
            assert node.attr.name not in taken
            inner = taken | {node.attr.name}
        for position, argument in enumerate(node.args):
            check(argument, inner if position == 1 else taken)

    for action in model.design.actions:
        parameters = frozenset(name for name, _ in action.parameters)
        for guard in action.guards:
            check(guard.condition, parameters)
        for update in action.updates:
            check(update.value, parameters)


@given(models())
@thorough
def test_a_variable_that_is_absent_is_not_read(model: Model) -> None:
    instance = model.instance()
    there = {v.name for v in instance.variables}
    for action in instance.actions:
        for node in (*(g.condition for g in action.guards), *(u.value for u in action.updates)):
            assert reads(node, instance) <= there


def test_the_interpreter_knows_every_operator() -> None:
    leaves = {"literal", "constant", "variable", "parameter", "bound", "call", "every", "and", "or", "implies", "when"}
    assert {*INTERPRETED, *LOOPS, *leaves} == set(OPERATORS)


def test_random_models_use_every_operator_and_move() -> None:
    """Over a few hundred models; otherwise the tests above would say little."""
    drawn = [numbered_model(n) for n in range(200)]
    used = {n.op for m in drawn for root in all_expressions(m.design) for n in walk(root)}
    assert used == set(OPERATORS)
    sizes = [explore(m.instance(), (TYPE_OK,), FEW).distinct for m in drawn]
    assert sum(size > 3 for size in sizes) > len(sizes) / 4
    assert max(sizes) >= 100


def all_expressions(design: Design) -> list[Node]:
    return design.roots() + [d.body for d in design.definitions()]
