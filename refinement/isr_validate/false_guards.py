"""The table of false guards: for each action that the node could take, why a rejected line is not that action.

Replicas have the model's names and offsets are ranks there; the legend says which broker and which offset is which.
"""

from __future__ import annotations

from collections.abc import Mapping

from isr_lang import Node, text
from isr_lang.nodes import literal
from isr_trace.reasons import Explainer, Reason, substitute
from isr_validate.controller_steps import ControllerSteps
from isr_validate.model_step import ModelSteps
from isr_validate.replica_steps import ReplicaSteps
from isr_validate.trace_lines import CONTROLLER, Line, Owner, TraceLines
from isr_validate.trace_values import Fields
from isr_validate.verdict import FalseGuard, LineRefused


def false_guards(lines: TraceLines, owner: Owner, line: Line, state: object) -> tuple[tuple[FalseGuard, ...], str]:
    """The table for a rejected line, from one state of its owner, and its legend."""
    if owner[0] == CONTROLLER:
        return _of_controller(lines, owner, line, state)
    steps = ReplicaSteps(lines, *owner)
    replica = steps.first() if state is None else steps.as_state(state)
    rows: list[FalseGuard] = []
    legend = ""
    actions = [a.name for a in steps.model_steps().instance.actions]
    for action in actions:
        if action.startswith(("controller_", "broker_")):
            continue
        message_fields: Fields = line.mail.says if line.mail is not None else {}
        ranks = steps.ranks(line, replica, replica, message_fields, None)
        legend = ", ".join(f"offset {n} is {o}" for n, o in enumerate(ranks.points))
        variables = replica.variables(steps.ids, int(steps.node), ranks)
        try:
            slots = steps.message_variables(line, replica, action, message_fields, ranks)
        except LineRefused as no:
            rows.append(FalseGuard(action, "its message", (no.why,)))
            continue
        rows += first_false_guard(
            steps.model_steps(),
            action,
            {**variables, **dict(slots[0] if slots else {})},
            steps.known_parameters(action, message_fields),
        )
    brokers = ", ".join(f"r{n} is broker {b}" for n, b in enumerate(steps.ids, 1))
    return tuple(rows), f"{brokers}; {legend}"


def _of_controller(lines: TraceLines, owner: Owner, line: Line, state: object) -> tuple[tuple[FalseGuard, ...], str]:
    steps = ControllerSteps(lines, owner[1])
    controller = steps.as_state(state)
    rows: list[FalseGuard] = []
    if controller is not None:
        variables = steps.with_liveness(controller.variables(steps.ids))[0]
        if line.mail is not None and line.mail.kind == "AlterPartitionRequest":
            variables = {**variables, **steps.with_request(variables, line.mail)}
        replica = line.event.says.get("replica")
        for action in steps.model_steps().instance.actions:
            if action.name.startswith(("controller_", "broker_")):
                who = {action.parameters[0][0]: steps.ids.index(replica)} if replica in steps.ids else {}
                rows += first_false_guard(steps.model_steps(), action.name, variables, who)
    return tuple(rows), ", ".join(f"r{n} is broker {b}" for n, b in enumerate(steps.ids, 1))


def first_false_guard(
    steps: ModelSteps, action: str, variables: Mapping[str, object], who: Mapping[str, int]
) -> list[FalseGuard]:
    """The parameters for which the most guards hold, with the first guard that does not.

    Or that the step is enabled.
    """
    folded, state, evaluator = steps.at(action, variables)
    best: tuple[int, FalseGuard] | None = None
    for choice in steps.parameters(action):
        if any(choice.get(name, value) != value for name, value in who.items()):
            continue
        values: dict[object, Node] = {name: literal(choice[name], type) for name, type in folded.parameters}
        choice_text = ", ".join(f"{name} {text(values[name])}" for name in choice)
        for n, guard in enumerate(folded.guards):
            if not evaluator.evaluate(guard.condition, state, None, **choice):
                if best is None or n > best[0]:
                    reason = Explainer(evaluator, state, None).why(substitute(guard.condition, values), holds=False)
                    best = (n, FalseGuard(f"{action}({choice_text})", reason.text, _deciding_parts(reason)))
                break
        else:
            return [FalseGuard(f"{action}({choice_text})", "", ("enabled, but leads elsewhere",))]
    return [best[1]] if best is not None else []


def _deciding_parts(reason: Reason) -> tuple[str, ...]:
    """The parts of a guard that make it false, with the values in them."""
    found: list[str] = []
    for leaf in list(reason.leaves())[:4]:
        values = ", ".join(f"{name} = {value}" for name, value in leaf.values)
        found.append(f"{leaf.text}{f' ({values})' if values else ''}")
    return tuple(found)
