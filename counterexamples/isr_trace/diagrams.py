"""Sequence diagrams of a trace as text for other programs: Mermaid and PlantUML.

A step towards a peer is a message from who acts to that peer, any other is a note at who acts; what the step
changed stands beside it. What happens for ever stands in a loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from isr_lang import show
from isr_trace.diff import changes
from isr_trace.replay import OUTSIDERS, actors_of, names_of
from isr_trace.trace import Step, Trace, TraceError

ENVIRONMENT = "environment"
STAYS = "nothing happens any more"


def mermaid(trace: Trace) -> str:
    """A `sequenceDiagram`, which GitHub and most Markdown viewers draw."""
    lines = ["sequenceDiagram"]
    lines += [f"    participant {name}" for name in lanes(trace)]
    for i, step in enumerate(trace.steps, 1):
        lines += ["    loop for ever"] if i - 1 == trace.loop else []
        what = _mermaid_text(f"T{i} {_label(trace, step)}")
        if step.peer:
            lines.append(f"    {step.actor}->>{step.peer}: {what}")
        else:
            lines.append(f"    Note over {step.actor or ENVIRONMENT}: {what}")
        changed = [_mermaid_text(str(c)) for c in changes(trace, i)]
        if changed:
            lines.append(f"    Note right of {step.actor or ENVIRONMENT}: {'<br/>'.join(changed)}")
    if trace.loop is not None:
        ends = dict.fromkeys((lanes(trace)[0], lanes(trace)[-1]))
        stays = f"    Note over {','.join(ends)}: {STAYS}"
        lines.append(stays if trace.loop == len(trace.steps) else "    end")
    return "\n".join(lines) + "\n"


def plantuml(trace: Trace) -> str:
    """The same for PlantUML."""
    lines = ["@startuml"]
    lines += [f'participant "{name}"' for name in lanes(trace)]
    for i, step in enumerate(trace.steps, 1):
        lines += ["loop for ever"] if i - 1 == trace.loop else []
        lane, what = f'"{step.actor or ENVIRONMENT}"', f"T{i} {_label(trace, step)}"
        if step.peer:
            lines.append(f'{lane} -> "{step.peer}": {what}')
        else:
            lines.append(f"rnote over {lane}: {what}")
        changed = [str(c) for c in changes(trace, i)]
        if changed:
            lines += [f"note right of {lane}", *(f"  {c}" for c in changed), "end note"]
    if trace.loop is not None:
        lines.append(f"note across: {STAYS}" if trace.loop == len(trace.steps) else "end")
    return "\n".join([*lines, "@enduml"]) + "\n"


def lanes(trace: Trace) -> list[str]:
    """Who has a line of their own: everyone of the acting sort, then the rest of the world if it acts."""
    if not trace.steps:
        raise TraceError("this trace has no steps to draw a sequence diagram of")
    return list(_lanes(trace))


def _lanes(trace: Trace) -> Iterator[str]:
    acting = {step.actor or ENVIRONMENT for step in trace.steps}
    yield from (name for name in OUTSIDERS if name in acting)
    yield from names_of(actors_of(trace.variables.values()))
    if ENVIRONMENT in acting:
        yield ENVIRONMENT


def _label(trace: Trace, step: Step) -> str:
    """The action in words, with the parameters that the arrow does not show already."""
    types = trace.actions[step.action].parameters
    shown = {n: show(v, types[n]) if n in types else str(v) for n, v in step.parameters.items()}
    rest = [f"{n}={text}" for n, text in shown.items() if text not in (step.actor, step.peer)]
    return step.action.replace("_", " ") + (f" ({', '.join(rest)})" if rest else "")


def _mermaid_text(text: str) -> str:
    """With the two characters that end a Mermaid message as entities."""
    return text.replace("#", "#35;").replace(";", "#59;").replace("#35#59;", "#35;")
