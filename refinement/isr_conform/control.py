"""The control of a difference: what one system shows at a step, another must not show there.

A planted mistake that is found where the unchanged system differs, too, was not found at all.
"""

from __future__ import annotations

from isr_check.reference import Evaluator
from isr_conform.conformance import conform
from isr_conform.conformance_result import (
    ConformanceResult,
    Difference,
    Explain,
    Limits,
    Schedule,
    nothing_known,
)
from isr_lang import Instance
from isr_replay.packed_states import Packing
from isr_replay.replay import Kind, NamedStep


def agrees_there(
    instance: Instance,
    command: str,
    difference: Difference,
    *,
    patience: float = 10.0,
    explain: Explain = nothing_known,
) -> bool:
    """Whether another system, started by `command`, agrees with the model at the step of a difference, and on the way.

    Or differs there as `explain` knows it. False as well if it was not brought to that step. Of an unexpected action
    nobody asks: the system must not list it.
    """
    limits = Limits(schedule=schedule_to(instance, difference))
    result = conform(instance, command, limits, patience=patience, explain=explain)
    return result.conforms and _went_all_the_way(result, difference)


def schedule_to(instance: Instance, difference: Difference) -> Schedule:
    """The steps to a difference, with the step itself if the model allows it."""
    names = [name for name, _ in instance.initial.parameters]
    packing = Packing(instance)
    starts = Evaluator(instance).initial_states()
    start = next(given for given, state in starts if packing.packed(state) == difference.initial)
    last = [] if difference.kind is Kind.UNEXPECTED else [(difference.action, difference.parameters)]
    return Schedule(
        initial=dict(zip(names, start, strict=True)),
        steps=tuple(_with_names(instance, step) for step in [*difference.path, *last]),
    )


def _with_names(instance: Instance, step: NamedStep) -> tuple[str, dict[str, object]]:
    action, values = step
    folded = next(a for a in instance.actions if a.name == action)
    return action, {name: value for (name, _), value in zip(folded.parameters, values, strict=True)}


def _went_all_the_way(result: ConformanceResult, difference: Difference) -> bool:
    last = 0 if difference.kind is Kind.UNEXPECTED else 1
    refused = min(last, result.known_differences.total())  # the last step, as is known of the system
    steps = result.steps + result.alone_steps
    return len(result.skipped_steps) <= refused and not result.cannot and steps == len(difference.path) + last
