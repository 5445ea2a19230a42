"""`insync sample`: behaviours in which nothing goes wrong, chosen to differ from each other."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, Inconclusive
from insync_cli.tracefiles import SUFFIX, default_folder, steps_of, write
from isr_check.reference import Evaluator
from isr_check.sample import LONGEST, sample
from isr_trace.replay import record
from isr_trace.show import print_trace

EXAMPLE = """\
insync sample kip-966
insync sample kip-966 --count 5 --steps 20 --seed 7 --replicas 2"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("sample", "Passing behaviours to read, from seeded random walks.", EXAMPLE)
    p.add_argument("design", metavar="DESIGN", help="see: insync designs")
    p.add_without()
    p.add_argument("--count", type=options.positive, default=3, metavar="N", help="how many (default 3)")
    p.add_argument("--steps", type=options.positive, default=LONGEST, metavar="N", help=f"at most (default {LONGEST})")
    p.add_argument("--seed", type=options.natural, default=1, metavar="N", help="other walks (default 1)")
    p.add_argument("--out", metavar="DIR", help="where the traces go (default: below runs/)")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    p.add_constants(argv)
    return p.read(argv)


def run(given: Namespace) -> int:
    design = options.design_given(given)
    instance = registry.instance_of(design, options.constants_given(given))
    count, steps, seed = (cast("int", n) for n in (given.count, given.steps, given.seed))
    target = cast("str | None", given.json)
    terminal.check_json_target(target)
    named = cast("str | None", given.out)
    folder = terminal.make_folder(Path(named or default_folder(instance, "sample", count, steps, seed)))
    evaluator = Evaluator(instance)
    found = sample(instance, evaluator, seed, count, steps)
    if not found.paths:
        raise Inconclusive(f"{design.name} has no passing behaviour of a step or more at these bounds")
    gone = registry.left_out(design)
    traces = [record(evaluator, p.initial, p.steps, verdict="SAMPLED", without=gone) for p in found.paths]
    files = [folder / f"sample-{i}{SUFFIX}" for i in range(1, len(traces) + 1)]
    for trace, file in zip(traces, files, strict=True):
        write(trace, file)
    report = {
        "schema": "insync/sample/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "seed": seed,
        "samples": [{"file": str(f), **steps_of(t)} for f, t in zip(files, traces, strict=True)],
        "taken": found.taken,
        "missing": list(found.missing),
    }
    terminal.write_json(target, report)
    if target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
        for trace in [] if given.quiet else traces:
            print_trace(trace, out, scenes=False)
            out.print()
        terminal.print_lines(out, "In none of them", () if given.quiet else found.missing)
        shown = f"{terminal.count(len(traces), 'behaviour')} of {count} asked for, seed {seed}"
        out.print(f"insync sample {design.name}: SAMPLED - {shown}; written to {folder}", soft_wrap=True)
    return Exit.HOLDS
