"""`insync minimise`: the same violation with fewer steps, and those in a calmer order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from insync_cli import options, terminal
from insync_cli.exits import Exit
from insync_cli.options import Usage, argument, group, option, positive
from insync_cli.terminal import QuietOutput
from insync_cli.tracefiles import (
    CHECKOUT,
    CORPUS,
    SUFFIX,
    print_short,
    replayable,
    saying_which,
    steps_of,
    trace_file,
    write,
)
from isr_trace.minimise import EFFORT, minimise

EXAMPLE = """\
insync minimise runs/kip-966-1a2b3c4d/acked-survives.itf.json
insync minimise long.itf.json --out short.itf.json --effort 200000"""
USAGE = Usage("minimise", "The same result with fewer and calmer steps.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    trace: Path = argument("TRACE", "an ITF file that insync wrote, or the name of a case", trace_file)
    own: options.OwnDesigns = group(options.OwnDesigns)
    out: Path | None = option(
        "FILE", f"where it goes (without it, NAME.minimal{SUFFIX}: beside TRACE, but here if TRACE names a case)", Path
    )
    effort: int = option("N", "states to look at for short cuts", positive, EFFORT)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    path = invocation.trace
    folder = Path() if path.is_relative_to(CHECKOUT / CORPUS) else path.parent  # a wheel's own files stay as they are
    to = invocation.out or folder / f"{path.name.removesuffix(SUFFIX)}.minimal{SUFFIX}"
    trace, evaluator = replayable(path)
    what = f"minimising {terminal.count(len(trace.steps), 'step')}"
    with saying_which(path), invocation.output.ticker().meanwhile(what) as tell:
        short = minimise(trace, evaluator, invocation.effort, tell)
    write(short, to)
    before, after = len(trace.steps), len(short.steps)
    sure = short.minimisation is not None and short.minimisation.shortest
    report = {"schema": "insync/minimise/1", "from": before, "to": after, "shortest": sure, "file": str(to)}
    why = "no shorter one exists" if sure else "no step can be left out"
    summary = f"from {terminal.count(before, 'step')} to {after}; {why}; written to {to}"
    invocation.output.answer(
        report | dict(steps_of(short)), lambda out: print_short(out, to), f"insync minimise: {summary}"
    )
    return Exit.HOLDS
