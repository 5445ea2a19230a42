"""What to do now about a broken promise: the setting or design that keeps it under the same steps, and the commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING

import attrs
from rich.text import Text

from insync_cli import registry
from insync_cli.exits import UsageError
from insync_cli.families import family_of
from isr_check import reference
from isr_trace.cases import command
from isr_trace.replay import Evaluator, Replay, run_of
from isr_trace.trace import Trace, TraceError
from isr_visual.schedule import breaks_promise, counterfactual, keeps_promise, mending

if TYPE_CHECKING:
    from isr_lang import Design, Value

BREAKABLE = ("always", "step", "eventually")
"""The kinds of promises that something may be done about."""
NOTHING = "No safer setting and no other design that was tried keeps the promise under these steps."


@attrs.frozen
class Remedy:
    """`says`: what keeps the promise under the steps of the trace, or that nothing was found that does.

    `commands`: what each is for, and how it is typed.
    """

    says: str
    commands: tuple[tuple[str, str], ...]


def remedy(trace: Trace, evaluator: Evaluator, there: Evaluator | None) -> Remedy | None:
    """What to do about a promise that breaks in a trace, if `there` keeps it; None where none breaks."""
    promised = next((p for p in evaluator.instance.properties if p.name == trace.property_name), None)
    if promised is None or promised.kind not in BREAKABLE or trace.anywhere or trace.verdict != "VIOLATED":
        return None
    states = run_of(trace, Replay(evaluator)).states
    comparison = (
        counterfactual(trace, states, evaluator, there) if there is not None and _promises(there, trace) else None
    )
    if trace.loop is not None and (comparison is None or not comparison["put_off"]):
        return None
    if there is None or comparison is None or breaks_promise(comparison, trace):
        return Remedy(NOTHING, ())
    constants, design = there.instance.constants, there.instance.design
    family = family_of(design)
    changed = {n: constants[n] for n, v in trace.constants.items() if n in constants and constants[n] != v}
    commands = (
        *family.ways_to_set(changed),
        *(() if design.name == trace.design else family.whereabouts(design)),
        ("ask whether that is always so", _check_command(design, constants, trace)),
    )
    in_the_same_states = f"{comparison['label']} keeps the promise: {comparison['summary'].rstrip('.')}."
    return Remedy(mending(trace, comparison) or in_the_same_states, commands)


def _check_command(design: Design, constants: Mapping[str, Value], trace: Trace) -> str:
    """`insync check` of the promise there. Bounds that it would choose as large, or larger, are not named."""
    usual = {c.name: design.defaults.get(c.name, c.default) for c in design.constants()}
    values = {n: v for n, v in constants.items() if v != usual[n]}
    family = family_of(design)
    beyond_default = {n for n, v in values.items() if n in family.bounds_of_mistakes and int(v) > int(usual[n])}
    free = {n: v for n, v in values.items() if n not in beyond_default and n not in family.bounds_of_faults}
    follow = registry.constants_that_notice(design, free, [trace.property_name])
    named = {n: v for n, v in values.items() if n in free or int(v) > int(follow[n])}
    gone = [a for a in registry.left_out(design) if a in trace.without]
    return command(design.name, named, gone, trace.property_name) + registry.own_option(design)


def remedy_lines(advice: Remedy | None, path: str, own: str) -> Iterator[Text]:
    """The remedy for the terminal, with the way to the page of the trace; `own`: what else that command needs."""
    if advice is None:
        return
    yield Text("What to do now", style="bold")
    yield Text(f"  {advice.says}")
    page = ("see it on a page", f"insync show {quote(path)}{own} --html page.html")
    for what, typed in (*advice.commands, page):
        yield Text(f"  {what}: ").append(typed)
    yield Text()


# What keeps the promise under the same steps


def mender(trace: Trace, evaluator: Evaluator) -> reference.Evaluator | None:
    """Of a violation that nobody has written about: the nearest settings or design under which the same schedule keeps
    the promise; None if none of those tried does."""
    promised = next((p for p in evaluator.instance.properties if p.name == trace.property_name), None)
    if promised is None or promised.kind not in BREAKABLE or trace.anywhere:
        return None
    states = run_of(trace, Replay(evaluator)).states
    for design, constants in _nearest(evaluator.instance.design, trace.constants):
        try:
            there = at(design, constants, trace.without)
            found = counterfactual(trace, states, evaluator, there)
            if _promises(there, trace) and keeps_promise(found, trace):
                return there
        except (TraceError, UsageError):
            continue  # it cannot be asked there
    return None


def _promises(there: Evaluator, trace: Trace) -> bool:
    """Whether the promise that breaks in the trace is made there at all."""
    return any(p.name == trace.property_name for p in there.instance.properties)


def _nearest(design: Design, constants: Mapping[str, Value]) -> Iterator[tuple[Design, Mapping[str, Value]]]:
    """The design at one safer setting each, then at all of them, then other designs, then settings that cost more."""
    family = family_of(design)
    safer = {n: v for n, v in family.safer.items() if n in constants and constants[n] != v}
    yield from ((design, {**constants, name: value}) for name, value in safer.items())
    if len(safer) > 1:
        yield design, {**constants, **safer}
    yield from ((other, constants) for other in family.alternatives(design, registry.designs()))
    dearer = {n: v for n, v in family.dearer.items() if n in constants and constants[n] != v}
    yield from ((design, {**constants, **safer, name: value}) for name, value in dearer.items())


def at(design: Design, constants: Mapping[str, Value], without: Sequence[str]) -> reference.Evaluator:
    """Another design at the same bounds, less the same actions where it has them."""
    known = {c.name for c in design.constants()}
    named = {a.name for a in design.actions}
    less = design.without(*(a for a in without if a in named))
    return reference.Evaluator(registry.instance_of(less, {n: v for n, v in constants.items() if n in known}))
