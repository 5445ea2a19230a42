"""`insync show`: a trace file in the terminal, as a diagram, or as a page."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, UsageError
from insync_cli.tracefiles import load, saying_which, steps_of
from insync_cli.view.pages import strip_of, write_page
from isr_trace.browse import browse
from isr_trace.diagrams import mermaid, plantuml
from isr_trace.itf import write_text
from isr_trace.show import print_trace
from isr_trace.trace import Trace, TraceError
from isr_visual.picture import picture
from isr_visual.shiviz import shiviz

EXAMPLE = """\
insync show counterexamples/jepsen-2013/trace.itf.json
insync show counterexamples/jepsen-2013/trace.itf.json --interactive
insync show counterexamples/jepsen-2013/trace.itf.json --html jepsen-2013.html
insync show counterexamples/*/trace.itf.json --html gallery.html
insync show counterexamples/jepsen-2013/trace.itf.json --svg lost.svg --step 6
insync show runs/kip-966-1a2b3c4d/acked-survives.itf.json --mermaid"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("show", "Every step of a trace: who did what, what changed, how things stand.", EXAMPLE)
    p.add_argument(
        "traces", metavar="TRACE", nargs="+", help="an ITF file, ours or another program's; several with --html"
    )
    p.add_argument("--full", action="store_true", help="every variable at every step, not only what changed")
    p.add_argument("--no-scenes", action="store_true", help="without the picture of each state")
    instead = p.add_mutually_exclusive_group()
    instead.add_argument("--interactive", action="store_true", help="walk through it: Enter, p, e, q, ...")
    instead.add_argument("--mermaid", action="store_true", help="a sequence diagram instead, for Markdown")
    instead.add_argument("--plantuml", action="store_true", help="a sequence diagram instead, for PlantUML")
    instead.add_argument("--shiviz", action="store_true", help="an event log with vector clocks instead, for ShiViz")
    instead.add_argument(
        "--html", metavar="FILE", help="one page instead, to walk through offline; of several traces a gallery"
    )
    instead.add_argument("--svg", metavar="FILE", help="the picture of one state instead, in light and dark")
    p.add_argument("--step", metavar="N", type=int, help="with --svg: the state after this step (default: the last)")
    p.add_argument("--against", metavar="DESIGN", help="with --html: the same schedule under this design, too")
    p.add_json()
    given = p.read(argv)
    if given.against is not None and given.html is None:
        p.error("--against is for --html")
    if given.step is not None and given.svg is None:
        p.error("--step is for --svg")
    if given.against is not None:
        registry.design_named(cast("str", given.against))
    if len(cast("list[str]", given.traces)) > 1 and given.html is None:
        p.error("several traces fit on a page only: add --html FILE")
    return given


def run(given: Namespace) -> int:
    paths = [Path(name) for name in cast("list[str]", given.traces)]
    traces = [load(path) for path in paths]
    mismatches = [other_version(trace) for trace in traces]
    if given.html is not None:
        together = list(zip(paths, traces, mismatches, strict=True))
        written = write_page(together, Path(cast("str", given.html)), cast("str | None", given.against))
        print(written, file=sys.stderr if given.json == "-" else sys.stdout)
    else:
        _print(given, paths[0], traces[0])
    if given.json is not None:
        found = zip(paths, traces, mismatches, strict=True)
        reports = [{"schema": "insync/show/1", **steps_of(t), **strip_of(p, t, m)} for p, t, m in found]
        terminal.write_json(cast("str", given.json), reports[0] if len(reports) == 1 else reports)
    for path, mismatch in zip(paths, mismatches, strict=True):
        if mismatch:
            print(f"insync: {path}: {mismatch}", file=sys.stderr)
    return Exit.INPUT if any(mismatches) else Exit.HOLDS


def _print(given: Namespace, path: Path, trace: Trace) -> None:
    target = cast("str | None", given.json)
    if given.mermaid or given.plantuml or given.shiviz:
        with saying_which(path):
            print(mermaid(trace) if given.mermaid else plantuml(trace) if given.plantuml else shiviz(trace), end="")
    elif given.svg is not None:
        written = _draw(trace, Path(cast("str", given.svg)), cast("int | None", given.step))
        print(written, file=sys.stderr if target == "-" else sys.stdout)
    elif given.interactive:
        if target == "-":
            raise UsageError("--interactive and --json - both want the terminal; give --json a file")
        browse(trace, terminal.console(plain=cast("bool", given.plain)))
    elif target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
        print_trace(trace, out, scenes=not given.no_scenes, full=cast("bool", given.full))


def _draw(trace: Trace, target: Path, step: int | None) -> str:
    """Write the picture of a state; says which it is."""
    last = len(trace.states) - 1
    at = last if step is None else step
    if not 0 <= at <= last:
        raise UsageError(f"there is no step {at}: the trace has {last}")
    try:
        write_text(target, picture(trace, at))
    except TraceError as problem:
        raise UsageError(str(problem)) from None
    return f"{target}: T{at} of {last}"


def other_version(trace: Trace) -> str:
    """Why the model of today cannot vouch for a trace of ours; the file itself still opens."""
    if trace.foreign:
        return ""
    if trace.design not in registry.designs():
        return f"its design {trace.design} does not exist here; it is shown as it was written"
    try:
        now = registry.design_of(trace.design, trace.without, trace.unfair, trace.strong).model_hash()
    except UsageError as problem:
        return f"{problem}; it is shown as it was written"
    if now == trace.model_hash:
        return ""
    version = f"another version of {trace.design} (model {trace.model_hash}, now {now})"
    return f"it is of {version}; it is shown as it was written"
