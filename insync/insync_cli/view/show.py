"""`insync show`: a trace file in the terminal, as a diagram, or as a page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry
from insync_cli.exits import Exit, UsageError
from insync_cli.options import Usage, arguments, design_name, flag, group, option
from insync_cli.terminal import Output, count, print_wrapped
from insync_cli.tracefiles import check_behaviour, load, missing_file, saying_which, steps_of, trace_file
from insync_cli.view.pages import case_of, strip_of, what_to_do, write_page
from insync_cli.view.remedy import remedy_lines
from isr_trace.browse import browse
from isr_trace.diagrams import mermaid, plantuml
from isr_trace.itf import write_text
from isr_trace.show import print_trace
from isr_trace.trace import Trace, TraceError
from isr_visual.picture import picture
from isr_visual.shiviz import shiviz

if TYPE_CHECKING:
    from rich.console import Console

    from isr_check.reference import Evaluator

EXAMPLE = """\
insync show jepsen-2013
insync show jepsen-2013 --interactive
insync show jepsen-2013 --html jepsen-2013.html
insync show counterexamples/*cases/*/trace.itf.json --html gallery.html
insync show jepsen-2013 --svg lost.svg --step 6
insync show runs/kip-966-1a2b3c4d/acked-survives.itf.json --mermaid"""
USAGE = Usage("show", "Every step of a trace: who did what, what changed, how things stand.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    traces: tuple[Path, ...] = arguments(
        "TRACE",
        "an ITF file, ours or another program's, or the name of a case; several with --html",
        trace_file,
        at_least=1,
    )
    full: bool = flag("every variable at every step, not only what changed")
    no_scenes: bool = flag("without the picture of each state")
    interactive: bool = flag("walk through it: Enter, p, e, q, ...", rival="form")
    mermaid: bool = flag("a sequence diagram instead, for Markdown", rival="form")
    plantuml: bool = flag("a sequence diagram instead, for PlantUML", rival="form")
    shiviz: bool = flag("an event log with vector clocks instead, for ShiViz", rival="form")
    html: Path | None = option(
        "FILE", "one page instead, to walk through offline; of several traces a gallery", Path, rival="form"
    )
    svg: Path | None = option("FILE", "the picture of one state instead, in light and dark", Path, rival="form")
    step: int | None = option("N", "with --svg: the state after this step; without it, the last", int)
    against: str | None = option("DESIGN", "with --html: the same schedule under this design, too", design_name)
    own: options.OwnDesigns = group(options.OwnDesigns)
    output: Output = group(Output)


def read_invocation(argv: Sequence[str]) -> Options:
    """The options; UsageError for those that contradict each other."""
    invocation = options.read_options(Options, USAGE, argv)
    if invocation.against is not None and invocation.html is None:
        raise UsageError("insync show: --against is for --html (see insync show --help)")
    if invocation.step is not None and invocation.svg is None:
        raise UsageError("insync show: --step is for --svg (see insync show --help)")
    if len(invocation.traces) > 1 and invocation.html is None:
        raise UsageError("insync show: several traces fit on a page only: add --html FILE (see insync show --help)")
    return invocation


def run(argv: Sequence[str]) -> int:
    invocation = read_invocation(argv)
    together = [checked_trace(path) for path in invocation.traces]
    if invocation.html is not None:
        with invocation.output.ticker().meanwhile(f"{invocation.html}: {count(len(together), 'trace')}") as tell:
            written = write_page(
                [(s.path, s.trace, s.mismatch) for s in together], invocation.html, invocation.against, tell
            )
        print(written, file=sys.stdout if invocation.output.for_people else sys.stderr)
    else:
        show(invocation, together[0])
    if invocation.output.json is not None:
        reports = [{"schema": "insync/show/1", **steps_of(s.trace), **strip_of(s.trace, s.evaluator)} for s in together]
        invocation.output.write(reports[0] if len(reports) == 1 else reports)
    odd = [s for s in together if s.mismatch]
    for s in odd:
        print(f"insync: {s.path}: {s.mismatch}", file=sys.stderr)
    return Exit.INPUT if odd else Exit.HOLDS


@attrs.frozen
class ShownTrace:
    """A trace, and its design at its bounds; without that, why the model of today cannot vouch for it, if so."""

    path: Path
    trace: Trace
    mismatch: str
    evaluator: Evaluator | None


def checked_trace(path: Path) -> ShownTrace:
    """The trace in a file; InputError where the model does otherwise."""
    trace = load(path)
    mismatch = other_version(trace)
    evaluator = None if trace.foreign or mismatch else check_behaviour(path)
    return ShownTrace(path, trace, mismatch, evaluator)


def show(invocation: Options, trace_file: ShownTrace) -> None:
    """One trace in the form that was asked for."""
    path, trace = trace_file.path, trace_file.trace
    if invocation.mermaid or invocation.plantuml or invocation.shiviz:
        with saying_which(path):
            print(
                mermaid(trace) if invocation.mermaid else plantuml(trace) if invocation.plantuml else shiviz(trace),
                end="",
            )
    elif invocation.svg is not None:
        print(
            _draw(trace, invocation.svg, invocation.step),
            file=sys.stdout if invocation.output.for_people else sys.stderr,
        )
    elif invocation.interactive:
        if not invocation.output.for_people:
            raise UsageError("--interactive and --json - both want the terminal; give --json a file")
        browse(trace, invocation.output.console())
    elif invocation.output.for_people:
        out = invocation.output.console()
        _open(path, trace, out)
        print_trace(trace, out, scenes=not invocation.no_scenes, full=invocation.full)
        if trace_file.evaluator is not None:
            own = registry.own_option(trace_file.evaluator.instance.design)
            out.print()
            for line in remedy_lines(what_to_do(path, trace, trace_file.evaluator), str(path), own):
                out.print(line, soft_wrap=True)


def _open(path: Path, trace: Trace, out: Console) -> None:
    """What somebody who runs Kafka asks first, of a case that answers it."""
    case = case_of(path, trace)
    if case is None or case.operator is None:
        return
    for question, answer in case.operator.answers():
        print_wrapped(out, f"{question}: {answer}", 0)
    out.print()


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
    if wanted := missing_file(trace):
        return f"{wanted}. It is shown as it was written"
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
