"""Traces of designs with one bug of today's Kafka, as the same steps of the release that has all of them.

Kafka's adapter knows what people do to a cluster by the budgets of `kafka-4.4` (isr_protocol.designs.releases). The
designs that have one bug each have no budgets. Their stored traces are behaviours of the release as well, and as those
they are told to Kafka's classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, cast

from insync_cli import registry
from isr_check.reference import Evaluator
from isr_lang import Instance, Value
from isr_trace.replay import Move, Replay, trace_of
from isr_trace.trace import State, Trace, TraceError

RELEASE: Final = "kafka-4.4"
BUDGETS: Final[Mapping[str, str]] = {
    "controller_sets_minimum": "minimum_changes",
    "controller_removes_replica": "reassignments",
    "controller_adds_replica": "reassignments",
}
"""Which budget of the release an action takes that another design has without one."""


def needs_release(trace: Trace) -> bool:
    """Whether a step of the trace is one of people's that its design has no budget for."""
    return any(step.action in BUDGETS and BUDGETS[step.action] not in trace.constants for step in trace.steps)


def as_released(trace: Trace) -> tuple[Instance, Trace]:
    """The trace as a behaviour of kafka-4.4; TraceError where it is none, or does not end in the same state."""
    instance = Instance(registry.design_named(RELEASE), constants_of(trace))
    replay = Replay(Evaluator(instance))
    start = {"first": 0, "spares": 0, **trace.initial}
    initial = tuple(start[name] for name, _ in instance.initial.parameters)
    moves = [move_of(trace, number) for number in range(len(trace.steps))]
    run = replay.exact(initial, moves)
    if run is None:
        raise TraceError(f"{RELEASE} does not take the steps of this trace of {trace.design}")
    behaviour = trace_of(run, instance)
    last = {name: value for name, value in behaviour.states[-1].items() if name in trace.states[-1]}
    unlike = [name for name, value in last.items() if value != trace.states[-1][name]]
    if unlike:
        raise TraceError(f"in {RELEASE} this trace of {trace.design} ends in another {', '.join(unlike)}")
    return instance, behaviour


def constants_of(trace: Trace) -> dict[str, Value]:
    """Those of the trace that the release has, and the budgets that its steps take."""
    names = {constant.name for constant in registry.design_named(RELEASE).constants()}
    taken = Counter(BUDGETS[step.action] for step in trace.steps if step.action in BUDGETS)
    return {**{n: v for n, v in trace.constants.items() if n in names}, "reassignments": 0, **taken}


def move_of(trace: Trace, number: int) -> Move:
    """A step as the release has it: a replica is removed at once, and to add one is a reassignment that has to wait."""
    step, before = trace.steps[number], trace.states[number]
    values = tuple(cast("int", value) for value in step.parameters.values())
    match step.action:
        case "controller_removes_replica":
            return Move("controller_reassigns_at_once", (replicas_with(before, values[0]), leader_of(before)))
        case "controller_adds_replica":
            return Move("controller_starts_reassignment", (replicas_with(before, values[0]),))
        case name:
            return Move(name, values)


def replicas_with(state: State, changed_replica: int) -> int:
    """The assignment with this replica, or without it where it has it: as many bits as replicas."""
    return cast("int", state["replicas"]) ^ 1 << changed_replica


def leader_of(state: State) -> int:
    """Whom the controller has as leader; a state counts from 1, for 0 is nobody."""
    return cast("int", state["controller_leader"]) - 1
