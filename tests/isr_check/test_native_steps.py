"""The steps that native code finds are those of the reference evaluator, in its order, with its labels."""

from __future__ import annotations

import numpy as np
import pytest

from isr_check.native.layout import Layout
from isr_check.native.steps import CHUNK, Stepper
from isr_check.reference import Evaluator, parameter_values
from isr_lang import Instance
from isr_model import KIP_966

pytestmark = pytest.mark.explores


def test_the_steps_of_every_state_are_those_of_the_reference_evaluator() -> None:
    instance = Instance(KIP_966, {"replicas": 2, "crashes": 1})
    evaluator, layout = Evaluator(instance), Layout(instance)
    named = [(a.name, p) for a in instance.actions for p in parameter_values(instance, a)]
    reached = dict.fromkeys(state for _, state in evaluator.initial_states())
    todo = list(reached)
    while todo:
        for _, _, successor in evaluator.successors(todo.pop()):
            if successor not in reached:
                reached[successor] = None
                todo.append(successor)
    assert len(reached) > 2 * CHUNK, "more than one call is made"
    rows = np.array([layout.pack(state) for state in reached], dtype=np.uint64)
    counts, labels, targets = Stepper(instance, layout).steps(rows)
    expected = [[(instance.actions[a].name, p, s) for a, p, s in evaluator.successors(state)] for state in reached]
    assert counts.tolist() == [len(steps) for steps in expected]
    found = [
        (*named[int(label)], layout.unpack(tuple(int(w) for w in row)))
        for label, row in zip(labels, targets, strict=True)
    ]
    assert found == [step for steps in expected for step in steps]


def test_no_states_have_no_steps() -> None:
    instance = Instance(KIP_966, {"replicas": 2})
    layout = Layout(instance)
    counts, labels, targets = Stepper(instance, layout).steps(np.zeros((0, layout.words), dtype=np.uint64))
    assert (len(counts), len(labels), targets.shape) == (0, 0, (0, layout.words))
