"""TLC's counterexamples as JSON, which `-dumpTrace json FILE` writes (tla2tools 1.8).

A value is what TLA+'s module Json makes of it: a set and a sequence are both a list, a model value is its name. So the
types are gone, and the trace is shown as one of another program: its variables, and the actions with their parameters.
"""

from __future__ import annotations

from typing import Final

from isr_trace.codec import Json, items, table, whole, word
from isr_trace.trace import ActionNote, Step, Trace, TraceError

KEY: Final = "counterexample"
"""The field of such a document that no other trace has."""


def trace_of_tlc(document: dict[str, Json]) -> Trace:
    """The trace; TraceError where it is none. The last action of a lasso leads back to a state before."""
    body = table(document[KEY], KEY)
    numbers, states = list[int](), list[dict[str, Json]]()
    for place, entry in enumerate(items(body.get("state"), "the states")):
        number, values = _parts(entry, 2, f"state {place}")
        numbers.append(whole(number, f"the number of state {place}"))
        states.append(table(values, f"state {place}"))
    names = list(dict.fromkeys(name for state in states for name in state))
    if not names:
        raise TraceError("the trace has no variables")
    steps, loop = list[Step](), None
    for place, entry in enumerate(items(body.get("action"), "the actions"), 1):
        _, action, after = _parts(entry, 3, f"action {place}")
        number = whole(_parts(after, 2, f"what action {place} leads to")[0], f"what action {place} leads to")
        if place < len(states):
            steps.append(_step(table(action, f"action {place}"), place))
        elif number in numbers and place == len(states):
            loop = numbers.index(number)
        else:
            raise TraceError(f"action {place} leads to state {number}, which is not there")
    if len(steps) != len(states) - 1:
        raise TraceError(f"{len(states)} states do not fit {len(steps)} actions")
    notes = {step.action: ActionNote({}) for step in steps}
    plain = tuple({name: state[name] for name in names if name in state} for state in states)
    return Trace("", "", {}, "", "", "", "", dict.fromkeys(names), notes, {}, {}, tuple(steps), plain, None, loop)


def _parts(entry: Json, count: int, what: str) -> list[Json]:
    parts = items(entry, what)
    if len(parts) != count:
        raise TraceError(f"{what} should have {count} parts, not {len(parts)}")
    return parts


def _step(action: dict[str, Json], place: int) -> Step:
    context = table(action.get("context", {}), f"the context of action {place}")
    names = [word(p, f"a parameter of action {place}") for p in items(action.get("parameters", []), "the parameters")]
    return Step(word(action.get("name"), f"the name of action {place}"), {p: context[p] for p in names if p in context})
