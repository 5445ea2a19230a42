"""`insync sample`: behaviours in which nothing goes wrong, chosen to differ from each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, Inconclusive
from insync_cli.options import Usage, group, natural, option, positive
from insync_cli.terminal import QuietOutput
from insync_cli.tracefiles import SUFFIX, default_folder, steps_of, write
from insync_cli.view.pages import write_page
from isr_check.reference import Evaluator
from isr_check.sample import LONGEST, sample
from isr_trace.replay import record
from isr_trace.show import print_trace

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync sample kip-966
insync sample kip-966 --count 5 --steps 20 --seed 7 --replicas 2
insync sample kip-966 --count 5 --html works.html"""
USAGE = Usage("sample", "Passing behaviours to read, from seeded random walks.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    world: options.SmallerWorld = group(options.SmallerWorld)
    count: int = option("N", "how many", positive, 3)
    steps: int = option("N", "at most in one of them", positive, LONGEST)
    seed: int = option("N", "other walks", natural, 1)
    out: Path | None = option("DIR", "where the traces go (without it, below runs/)", Path)
    html: Path | None = option("FILE", "one page as well, to walk through what it looks like when it works", Path)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    count, steps, seed, output = invocation.count, invocation.steps, invocation.seed, invocation.output
    design = invocation.world.design
    instance = registry.instance_of(design, invocation.world.constants)
    output.check()
    folder = terminal.make_folder(invocation.out or Path(default_folder(instance, "sample", count, steps, seed)))
    evaluator = Evaluator(instance)
    with output.ticker().meanwhile("walking") as tell:
        samples = sample(instance, evaluator, seed, count, steps, partial(tell, "random walks"))
    if not samples.paths:
        raise Inconclusive(f"{design.name} has no passing behaviour of a step or more at these bounds")
    gone = registry.left_out(design)
    traces = [record(evaluator, p.initial, p.steps, verdict="SAMPLED", without=gone) for p in samples.paths]
    files = [folder / f"sample-{i}{SUFFIX}" for i in range(1, len(traces) + 1)]
    for earlier in folder.glob(f"sample-*{SUFFIX}"):
        earlier.unlink()
    for trace, file in zip(traces, files, strict=True):
        write(trace, file)
    if invocation.html is not None:
        with output.ticker().meanwhile(f"{invocation.html}") as tell:
            write_page([(f, t, "") for f, t in zip(files, traces, strict=True)], invocation.html, None, tell)
    report = {
        "schema": "insync/sample/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "seed": seed,
        "samples": [{"file": str(f), **steps_of(t)} for f, t in zip(files, traces, strict=True)],
        "taken": samples.steps_by_action,
        "missing": list(samples.missing),
    }

    def details(out: Console) -> None:
        for trace in traces:
            print_trace(trace, out, scenes=False)
            out.print()
        terminal.print_lines(out, "In none of them", samples.missing)

    shown = f"{terminal.count(len(traces), 'behaviour')} of {count} asked for, seed {seed}"
    output.answer(report, details, f"insync sample {design.name}: SAMPLED - {shown}; written to {folder}")
    return Exit.HOLDS
