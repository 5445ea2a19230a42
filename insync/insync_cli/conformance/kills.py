"""insync kills: which planted bug is found by whom, and the bugs of Kafka's history in the broker's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from insync_cli.omissions import omissions_text
from insync_cli.options import Usage, arguments, group, option, repeated_option
from insync_cli.terminal import QuietOutput
from isr_broker.designs import PLANTED

if TYPE_CHECKING:
    from isr_kills import Detection, Layer

EXAMPLE = """\
insync kills join-at-watermark keep-elr
insync kills --layer model --layer replay
insync kills --write docs/kills.md"""

MARKS = {"matrix": "<!-- the kill matrix -->", "historic": "<!-- the historic designs -->"}
"""Each stands before and after what is written."""
USAGE = Usage("kills", "Bugs planted in model and broker alike, and who finds them.", EXAMPLE)
LAYERS = "model, replay, traces, simulator, history, crash points"


@attrs.frozen(kw_only=True)
class Options:
    bugs: tuple[str, ...] = arguments("BUG", f"only these; without any, all: {', '.join(PLANTED)}", str)
    layer: tuple[str, ...] = repeated_option("LAYER", f"only this one of {LAYERS}", str)
    write: Path | None = option("FILE", "put both tables between their marks in this page (10 minutes)", Path)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    from isr_kills import HISTORIC, PLANS, Layer, find_seed, historic_table, kill_matrix, summary, table

    bugs, output = invocation.bugs or tuple(PLANS), invocation.output
    for bug in bugs:
        if bug not in PLANS:
            raise UsageError(f"no bug is called '{bug}'{did_you_mean(bug, PLANS) or '; they are ' + ', '.join(PLANS)}")
    layers = [_layer(name) for name in invocation.layer] or list(Layer)
    if invocation.write is not None and (invocation.bugs or invocation.layer):
        raise UsageError("--write takes the whole matrix: name no bug and no layer")
    output.check()
    out = output.console()
    quiet = output.quiet or not output.for_people
    numbers = count(1)
    with output.ticker() as ticker:

        def tell(line: str) -> None:
            if not quiet:
                ticker.close()
                out.print(line, soft_wrap=True, markup=False)
            ticker.count(next(numbers), len(bugs) * len(layers), "cells")

        matrix = kill_matrix(bugs, layers, tell)
    output.write(_report(matrix))
    if output.for_people:
        out.print(table(matrix) if output.quiet else summary(matrix), soft_wrap=True, markup=False)
        left = omissions_text((len(PLANS) - len(bugs), "other bug", ""), (len(Layer) - len(layers), "other layer", ""))
        if left:
            out.print(f"{left}.".capitalize(), soft_wrap=True)
    if invocation.write is not None:
        historic = historic_table({c.design: find_seed(c) for c in HISTORIC})
        rewrite(invocation.write, {"matrix": table(matrix), "historic": historic})
    return Exit.HOLDS if all(any(row.values()) for row in matrix.values()) else Exit.UNEXPECTED


def _layer(name: str) -> Layer:
    from isr_kills import Layer

    if name not in set(Layer):
        raise UsageError(f"no layer is called '{name}'; they are {', '.join(Layer)}")
    return Layer(name)


def rewrite(page: Path, parts: Mapping[str, str]) -> None:
    """Put each part between its two marks."""
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        before, mark, rest = text.partition(MARKS[name])
        _, second, after = rest.partition(MARKS[name])
        if not mark or not second:
            raise InputError(f"{page}: there are not two lines '{MARKS[name]}'")
        text = f"{before}{mark}\n\n{part}\n{second}{after}"
    page.write_text(text, encoding="utf-8")


def _report(matrix: Mapping[str, Mapping[Layer, Detection | None]]) -> dict[str, object]:
    return {
        "schema": "insync/kills/1",
        "bugs": {
            bug: {layer.value: None if f is None else {"what": f.what, "where": f.where} for layer, f in row.items()}
            for bug, row in matrix.items()
        },
    }
