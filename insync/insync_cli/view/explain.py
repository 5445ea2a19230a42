"""`insync explain`: why a trace violates its property (or reaches it), and which steps that took."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.exits import Exit
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


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("explain", "The part of the property that fails, with its values.", EXAMPLE)
    p.add_argument("trace", metavar="TRACE", help="an ITF file that insync wrote")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    path, target = Path(cast("str", given.trace)), cast("str | None", given.json)
    trace, evaluator = replayable(path)
    with saying_which(path):
        found = explain(trace, evaluator)
    terminal.write_json(target, report(found))
    if target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
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
