"""Why a trace ends where it does, in time: which step took the guarantee away, and after which it was too late.

The step in which a promise breaks is the symptom. The cause lies before it, and is found by asking the model what would
have been: the trace without a step, and what could still have happened after one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import attrs

from isr_trace.explain import StepRole
from isr_trace.replay import Evaluator, Replay, Run, Values, goal
from isr_trace.scene import NOBODY, View
from isr_trace.trace import Trace

STATES_LOOKED_AT = 1500
"""How far a search for a way back goes before it gives up."""


@attrs.frozen
class Cause:
    """Steps of a trace (0: its first state); of a trace that violates no promise about states or steps there is none.

    `symptom`: the first step that breaks the promise of the trace. `first`: the first that breaks any, and
    `broken_promises` says which. `step`: the one that took the guarantee away. `too_late`: the first after which no
    behaviour within the bounds restores it and keeps the promise; None where the search ended before it could tell.
    `role` and `enables` are those of `step` (isr_trace.explain.StepRole): what the same trace does without it.
    """

    symptom: int
    first: int
    broken_promises: tuple[str, ...]
    step: int
    too_late: int | None
    role: str
    enables: tuple[int, ...]


def promised_records(view: View) -> tuple[str, ...]:
    """The records that must not be lost: acknowledged, or committed."""
    return tuple(dict.fromkeys((*view.many("acked"), *view.many("committed"))))


def heirs(view: View) -> tuple[str, ...]:
    """Who leads, or may lead next without an unclean election: the elected leader, the ISR, the ELR."""
    elected = view.values_by_role.get("leader")
    named = {*view.many("isr"), *view.many("elr"), *((elected,) if isinstance(elected, str) else ())}
    return tuple(r for r in view.replicas if r in named)


def lacking(view: View) -> dict[str, tuple[str, ...]]:
    """Of each heir the promised records that its log does not have; heirs that have all are left out."""
    missing = {r: tuple(m for m in promised_records(view) if m not in view.log(r)) for r in heirs(view)}
    return {r: records for r, records in missing.items() if records}


def is_guaranteed(view: View) -> bool:
    """Whether every heir has every promised record, so that no clean election loses one, and somebody has each."""
    return not lacking(view) and all(any(m in view.log(r) for r in view.replicas) for m in promised_records(view))


def whole(view: View) -> bool:
    """Guaranteed, by an elected leader that is up, as is its whole ISR, and that knows of its election."""
    elected = view.values_by_role.get("leader")
    up = not any(view.down(r) for r in heirs(view))
    return is_guaranteed(view) and up and isinstance(elected, str) and elected != NOBODY and view.leads(elected)


def cause_of(
    trace: Trace,
    run: Run,
    evaluator: Evaluator,
    roomier: Evaluator,
    roles: Sequence[StepRole],
    parts: int | None = None,
) -> Cause | None:
    """`roomier`: the same model with room for one election more; `parts`: where the design that mends it does
    otherwise."""
    p = next((p for p in evaluator.instance.properties if p.name == trace.property_name), None)
    if p is None or not run.moves or p.kind not in ("always", "step"):
        return None
    broken_by_state = [tuple(_broken_promises(evaluator, run.states, i)) for i in range(len(run.states))]
    symptom = next((i for i, names in enumerate(broken_by_state) if p.name in names), None)
    if symptom is None:
        return None
    first = next(i for i, names in enumerate(broken_by_state) if names)
    views = [View(trace, i) for i in range(len(run.states))]
    step = _taken_away(views, first, symptom)
    if step == symptom:
        step = _earlier(views, roles, parts, symptom)
    role = next((r for r in roles if r.index == step), None)
    return Cause(
        symptom=symptom,
        first=first,
        broken_promises=broken_by_state[first],
        step=step,
        too_late=_too_late(trace, run, roomier, step, symptom),
        role=role.role if role is not None else "",
        enables=role.enables if role is not None else (),
    )


def _broken_promises(evaluator: Evaluator, states: Sequence[Values], i: int) -> Iterator[str]:
    for p in evaluator.instance.properties:
        if p.kind == "step" and i:
            holds = evaluator.holds(p, states[i - 1], states[i])
        else:
            holds = p.kind != "always" or evaluator.holds(p, states[i])
        if not holds:
            yield p.name


def _taken_away(views: Sequence[View], first: int, symptom: int) -> int:
    """The first step of the last stretch without guarantee, or the first broken promise if that comes before."""
    step = symptom
    while step and views[step].replicas and not is_guaranteed(views[step - 1]):
        step -= 1
    return min(step, first)


def _earlier(views: Sequence[View], roles: Sequence[StepRole], parts: int | None, symptom: int) -> int:
    """Where symptom and loss of the guarantee are one step: the last step before it that alone decided, else where the
    mended design does otherwise, else the symptom."""
    needed = [r.index for r in roles if r.role == "needed" and r.index < symptom and not _only_new(views, r.index)]
    if needed:
        return needed[-1]
    return parts if parts is not None and 0 < parts < symptom else symptom


def _only_new(views: Sequence[View], i: int) -> bool:
    """Whether the step brings a new record into the world, which is what every story begins with."""
    before, after = views[i - 1], views[i]
    return len(after.many("written in")) > len(before.many("written in"))


def _too_late(trace: Trace, run: Run, roomier: Evaluator, step: int, symptom: int) -> int | None:
    """The first step from which no way leads back to a whole state; only for who can lose something."""
    if not View(trace, 0).replicas:
        return None
    wanted = goal(roomier, trace.property_name)
    replay = Replay(roomier)
    earliest = symptom
    for i in range(symptom - 1, step - 1, -1):
        back = _way_back(trace, run.states[i], replay, wanted)
        if back is None:
            return None
        if back:
            break
        earliest = i
    return earliest


def _way_back(
    trace: Trace, state: Values, replay: Replay, breaks: Callable[[Values | None, Values], bool]
) -> bool | None:
    """Whether some behaviour from here keeps the promise and is whole in the end; None if the search grew too long."""
    visited, waiting = {state}, deque([state])
    while waiting:
        now = waiting.popleft()
        for _, after in replay.expand(now):
            if after in visited or breaks(now, after):
                continue
            if whole(View.of_values(trace, after)):
                return True
            if len(visited) >= STATES_LOOKED_AT:
                return None
            visited.add(after)
            waiting.append(after)
    return False


def first_loss(views: Sequence[View]) -> int | None:
    """Of a trace without a model: the first state from which something stays lost to the end."""
    at: int | None = None
    for i, view in enumerate(views):
        lost = any(line.startswith("LOST") for line in view.losses())
        at = (at if at is not None else i) if lost else None
    return at
