"""Evaluators of one instance have one program, and else nothing in common.

Without these the refusals that one evaluator counts would be another's, too.
"""

from __future__ import annotations

from tests.support.models import copies

from isr_check.reference import Evaluator
from isr_lang import Instance

INSTANCE = Instance(copies.DESIGN, {"nodes": 2, "length": 1, "terms": 1})


def test_evaluators_of_one_instance_count_refusals_apart() -> None:
    one, other = Evaluator(INSTANCE), Evaluator(INSTANCE)
    [*_] = one.successors(one.initial_states()[0][1])
    assert sum(one.false) > 0
    assert sum(other.false) == 0


def test_what_one_evaluator_has_written_besides_another_writes_again() -> None:
    one, other = Evaluator(INSTANCE), Evaluator(INSTANCE)
    (_, start), *_ = one.initial_states()
    index, parameters, successor = next(one.successors(start))
    action = INSTANCE.actions[index]
    assert one.outcome(action, parameters, start) == successor
    assert other.outcome(action, parameters, start) == successor


def test_another_instance_has_its_own_program() -> None:
    larger = Instance(copies.DESIGN, {"nodes": 3, "length": 1, "terms": 1})
    assert Evaluator(larger).source != Evaluator(INSTANCE).source
    assert Evaluator(INSTANCE).source == Evaluator(INSTANCE).source
