"""Stored traces told to a system step by step: which of them can it still take?

The steps are asked for as the trace has them, whatever today's design would allow, until the system refuses one. Where
it takes them all, the state of its last snapshot is compared with the trace's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs

from isr_conform.sut_client import ProcessClient, SutClient, SutFailure
from isr_conform.sut_messages import greet
from isr_conform.value_json import checked_json, json_text, parameters_json, to_json
from isr_lang import Instance
from isr_trace.trace import Trace


@attrs.frozen(kw_only=True)
class StoryProgress:
    """How far a system followed a story."""

    name: str
    steps: int
    steps_taken: int
    action: str = ""
    """The step that it did not take."""
    why: str = ""
    unlike: tuple[str, ...] = ()
    """Variables that are not the trace's at the end, if it took every step."""
    missing: tuple[str, ...] = ()
    """Variables that its snapshot at the end lacks, so that they were not compared."""

    @property
    def cell(self) -> str:
        """The outcome in a few words."""
        if self.action:
            return f"stops at {self.steps_taken + 1} of {self.steps}: `{self.action}` ({self.why})"
        if self.unlike:
            return f"other {', '.join(self.unlike)}"
        return (
            f"**takes it**, {', '.join(f'`{v}`' for v in self.missing)} not compared"
            if self.missing
            else "**takes it**"
        )


def tell(client: SutClient, instance: Instance, trace: Trace, name: str) -> StoryProgress:
    """Tell one story.

    SutFailure where an answer neither takes a step nor refuses it, or where a snapshot is empty: silence is no story
    that is taken.
    """
    greet(client, instance)
    types = {v.name: v.type for v in instance.variables}
    first, last = trace.states[0], trace.states[-1]
    client.ask("reset", state={v: to_json(value, types[v]) for v, value in first.items() if v in types})
    for steps_taken, step in enumerate(trace.steps):
        values = tuple(cast("int", value) for value in step.parameters.values())
        answer = client.ask("step", action=step.action, parameters=parameters_json(instance, step.action, values))
        if answer.get("done") is not True:
            if answer.get("done") is not False and not isinstance(answer.get("cannot"), str):
                raise SutFailure(f"it answers a step with {json_text(answer)}, which neither takes nor refuses it")
            why = str(answer.get("why") or answer.get("cannot") or "refused")
            return StoryProgress(
                name=name, steps=len(trace.steps), steps_taken=steps_taken, action=step.action, why=why
            )
    state = client.ask("snapshot").get("state")
    if not isinstance(state, dict):
        raise SutFailure("its answer to snapshot has no state")
    variables = [v for v in last if v in types]
    told = {v: checked_json(state[v], types[v], instance) for v in variables if v in state}
    if not told:
        raise SutFailure("its snapshot has no variable of the story")
    unlike = tuple(v for v, value in told.items() if to_json(last[v], types[v]) != value)
    missing = tuple(v for v in variables if v not in told)
    return StoryProgress(
        name=name, steps=len(trace.steps), steps_taken=len(trace.steps), unlike=unlike, missing=missing
    )


def tell_all(command: str, stories: Sequence[tuple[str, Instance, Trace]], patience: float) -> list[StoryProgress]:
    """Tell each story to one process; SutFailure if it ends."""
    client = ProcessClient(command, patience)
    try:
        return [tell(client, instance, trace, name) for name, instance, trace in stories]
    finally:
        client.close()
