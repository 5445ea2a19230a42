"""`insync explain`: why a trace violates its property (or reaches it), and which steps that took."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import attrs

from insync_cli import options, registry
from insync_cli.exits import Exit
from insync_cli.options import Usage, argument, group
from insync_cli.terminal import Output
from insync_cli.tracefiles import replayable, saying_which, trace_file
from insync_cli.view.pages import roomier, what_to_do
from insync_cli.view.remedy import remedy_lines
from isr_trace.cause import Cause, cause_of
from isr_trace.explain import Explanation, explain, explanation_lines
from isr_trace.reasons import ReasonEntry, entry
from isr_trace.replay import Replay, run_of
from isr_trace.story import story, story_lines

EXAMPLE = """\
insync explain jepsen-2013
insync explain runs/kip-966-1a2b3c4d/acked-survives.itf.json --json -"""


class RoleLine(TypedDict):
    step: int
    text: str
    role: str
    enables: list[int]


class FairLine(TypedDict):
    """A fair step that is possible in the loop, after which steps, and at which it is taken."""

    step: str
    strong: bool
    possible: list[int]
    taken: list[int]


class CauseLine(TypedDict):
    """`step` took the guarantee away; after `too_late` nothing restores it; `first` breaks some promise first."""

    step: int
    too_late: int | None
    first: int


class ExplainReport(TypedDict):
    """`at`: the step that breaks the promise, the symptom, or from which on it is broken for ever; `cause` is null for
    what breaks no promise, or for ever. `fair` is null where the trace ends.
    """

    schema: str
    property: str
    verdict: str
    promise: str
    at: int
    cause: CauseLine | None
    reason: ReasonEntry
    steps: list[RoleLine]
    fair: list[FairLine] | None


USAGE = Usage("explain", "The part of the property that fails, with its values.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    trace: Path = argument("TRACE", "an ITF file that insync wrote, or the name of a case", trace_file)
    own: options.OwnDesigns = group(options.OwnDesigns)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    trace, evaluator = replayable(invocation.trace)
    with saying_which(invocation.trace), invocation.output.ticker().meanwhile("asking what would have been"):
        explanation = explain(trace, evaluator)
        run = run_of(trace, Replay(evaluator))
        why = cause_of(trace, run, evaluator, roomier(evaluator.instance.design, trace.constants), explanation.steps)
    invocation.output.write(report(explanation, why))
    if invocation.output.for_people:
        out = invocation.output.console()
        for line in story_lines(story(trace, why, explanation.promise)):
            out.print(line, soft_wrap=True)
        own, todo = registry.own_option(evaluator.instance.design), what_to_do(invocation.trace, trace, evaluator)
        for line in (*explanation_lines(explanation), *remedy_lines(todo, str(invocation.trace), own)):
            out.print(line, soft_wrap=True)
    return Exit.HOLDS


def report(explanation: Explanation, why: Cause | None) -> ExplainReport:
    return ExplainReport(
        schema="insync/explain/1",
        property=explanation.property_name,
        verdict=explanation.verdict,
        promise=explanation.promise,
        at=explanation.at,
        cause=CauseLine(step=why.step, too_late=why.too_late, first=why.first) if why is not None else None,
        reason=entry(explanation.reason),
        steps=[RoleLine(step=s.index, text=s.text, role=s.role, enables=list(s.enables)) for s in explanation.steps],
        fair=None
        if explanation.loop is None
        else [
            FairLine(step=s.text, strong=s.is_strong, possible=list(s.possible_at), taken=list(s.taken_at))
            for s in explanation.loop.fair_steps
        ],
    )
