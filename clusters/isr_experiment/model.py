"""What the model says of a cell: its questions explored, each within the bounds it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from isr_check.engine import Exploration, Limits, Verdict
from isr_check.native import explore
from isr_experiment.cells import Cell, Question
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.promises.worth import room_left

PROMISE = "acked-survives"
_SECONDS = 600.0
"""For one question; most take seconds."""


@attrs.frozen
class QuestionAnswer:
    """The verdict on one question; `steps` are the actions of a shortest way to lose an acknowledged record."""

    command: str
    verdict: str
    states: int
    steps: tuple[str, ...]


@attrs.frozen
class Prediction:
    """What the model expects of a cell: a loss, none, or (None) it could not say."""

    loses: bool | None
    answers: tuple[QuestionAnswer, ...]


def prediction(cell: Cell, stop: Callable[[], bool] = lambda: False) -> Prediction | None:
    """Put the questions of a cell, until told to stop; None if it has none."""
    if not cell.questions:
        return None
    answers: tuple[QuestionAnswer, ...] = ()
    for q in cell.questions:
        answers += (_answer_to(q, stop),)
        if answers[-1].verdict == Verdict.VIOLATED:
            break
    verdicts = {a.verdict for a in answers}
    if Verdict.VIOLATED in verdicts:
        return Prediction(True, answers)
    return Prediction(False if verdicts == {Verdict.HOLDS} else None, answers)


_ANSWERS: Final[dict[str, QuestionAnswer]] = {}
"""By the command that asks: many cells ask the same."""


def _answer_to(question: Question, stop: Callable[[], bool]) -> QuestionAnswer:
    command = question.command()
    if command not in _ANSWERS:
        instance = Instance(DESIGNS[question.design], dict(question.constants))
        limits = Limits(None, _SECONDS, stop)
        exploration: Exploration = explore(instance, (PROMISE,), limits, _quiet, symmetry=True)
        (finding,) = (f for f in exploration.findings if f.name == PROMISE)
        if finding.verdict is Verdict.HOLDS and not _has_room(instance, exploration, limits):
            finding = attrs.evolve(finding, verdict=Verdict.TOO_SMALL)
        steps = () if finding.path is None else tuple(action for action, _ in finding.path.steps)
        _ANSWERS[command] = QuestionAnswer(command, finding.verdict.value, exploration.distinct, steps)
    return _ANSWERS[command]


def _has_room(instance: Instance, exploration: Exploration, limits: Limits) -> bool:
    """Whether the bounds leave room for what is asked for; "nothing is lost" would otherwise say too little."""
    steps = exploration.steps_by_action
    left = room_left(instance.design, instance.constants, explore, limits, steps_by_action=steps)
    return left.witness is not None


def _quiet(*progress: object) -> None:
    """Nobody watches."""
