"""`insync explain`: why a trace violates its property (or reaches it), and which steps that took."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import attrs

from insync_cli import options
from insync_cli.exits import Exit
from insync_cli.options import Usage, argument, group
from insync_cli.terminal import Output
from insync_cli.tracefiles import replayable, saying_which
from isr_trace.explain import Explanation, explain, explanation_lines
from isr_trace.reasons import ReasonEntry, entry

EXAMPLE = """\
insync explain counterexamples/jepsen-2013/trace.itf.json
insync explain runs/kip-966-1a2b3c4d/acked-survives.itf.json --json -"""


class RoleLine(TypedDict):
    step: int
    text: str
    role: str
    enables: list[int]


class ExplainReport(TypedDict):
    schema: str
    property: str
    verdict: str
    promise: str
    at: int
    reason: ReasonEntry
    steps: list[RoleLine]


USAGE = Usage("explain", "The part of the property that fails, with its values.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    trace: Path = argument("TRACE", "an ITF file that insync wrote", Path)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    given = options.read(Options, USAGE, argv)
    trace, evaluator = replayable(given.trace)
    with saying_which(given.trace):
        found = explain(trace, evaluator)
    given.output.write(report(found))
    if given.output.for_people:
        out = given.output.console()
        for line in explanation_lines(found):
            out.print(line, soft_wrap=True)
    return Exit.HOLDS


def report(found: Explanation) -> ExplainReport:
    return ExplainReport(
        schema="insync/explain/1",
        property=found.property_name,
        verdict=found.verdict,
        promise=found.promise,
        at=found.at,
        reason=entry(found.reason),
        steps=[RoleLine(step=s.index, text=s.text, role=s.role, enables=list(s.enables)) for s in found.steps],
    )
