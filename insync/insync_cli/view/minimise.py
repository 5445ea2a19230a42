"""`insync minimise`: the same violation with fewer steps, and those in a calmer order."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.exits import Exit
from insync_cli.tracefiles import SUFFIX, print_short, replayable, saying_which, steps_of, write
from isr_trace.minimise import EFFORT, minimise

EXAMPLE = """\
insync minimise runs/kip-966-1a2b3c4d/acked-survives.itf.json
insync minimise long.itf.json --out short.itf.json --effort 200000"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("minimise", "The same result with fewer and calmer steps.", EXAMPLE)
    p.add_argument("trace", metavar="TRACE", help="an ITF file that insync wrote")
    p.add_argument("--out", metavar="FILE", help=f"where it goes (default: beside it, as NAME.minimal{SUFFIX})")
    p.add_argument(
        "--effort",
        type=options.positive,
        default=EFFORT,
        metavar="N",
        help="states to look at for short cuts",
    )
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    path, target = Path(cast("str", given.trace)), cast("str | None", given.json)
    out_path = cast("str | None", given.out)
    to = Path(out_path) if out_path else path.with_name(path.name.removesuffix(SUFFIX) + ".minimal" + SUFFIX)
    trace, evaluator = replayable(path)
    with saying_which(path):
        short = minimise(trace, evaluator, cast("int", given.effort))
    write(short, to)
    before, after = len(trace.steps), len(short.steps)
    sure = short.minimised is not None and short.minimised.shortest
    terminal.write_json(
        target,
        {"schema": "insync/minimise/1", "from": before, "to": after, "shortest": sure, "file": str(to)}
        | dict(steps_of(short)),
    )
    if target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
        if not given.quiet:
            print_short(out, to)
        why = "no shorter one exists" if sure else "no step can be left out"
        summary = f"from {terminal.count(before, 'step')} to {after}; {why}; written to {to}"
        out.print(f"insync minimise: {summary}", soft_wrap=True)
    return Exit.HOLDS
