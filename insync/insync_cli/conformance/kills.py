"""insync kills: which planted bug is found by whom, and the bugs of Kafka's history in the broker's own code."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from isr_broker.designs import PLANTED

if TYPE_CHECKING:
    from isr_kills import Found, Layer

EXAMPLE = """\
insync kills join-at-watermark keep-elr
insync kills --layer model --layer replay
insync kills --write docs/conformance.md"""

MARKS = {"matrix": "<!-- the kill matrix -->", "historic": "<!-- the historic designs -->"}
"""Each stands before and after what is written."""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("kills", "Bugs planted in model and broker alike, and who finds them.", EXAMPLE)
    p.add_argument("bugs", nargs="*", metavar="BUG", help=f"only these; all unless said: {', '.join(PLANTED)}")
    p.add_argument(
        "--layer",
        action="append",
        default=[],
        metavar="LAYER",
        help="only this one, may be given several times: model, replay, traces, simulator, history, crash points",
    )
    p.add_argument("--write", metavar="FILE", help="put both tables between their marks in this page (10 minutes)")
    p.add_argument("--quiet", action="store_true", help="only the table")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    from isr_kills import HISTORIC, PLANS, Layer, historic_table, kills, seed_of, summary, table

    bugs = cast("list[str]", given.bugs) or list(PLANS)
    for bug in bugs:
        if bug not in PLANS:
            raise UsageError(f"no bug is called '{bug}'{did_you_mean(bug, PLANS) or '; they are ' + ', '.join(PLANS)}")
    layers = [_layer(name) for name in cast("list[str]", given.layer)] or list(Layer)
    page, target = cast("str | None", given.write), cast("str | None", given.json)
    if page is not None and (given.bugs or given.layer):
        raise UsageError("--write takes the whole matrix: name no bug and no layer")
    terminal.check_json_target(target)
    out = terminal.console(plain=cast("bool", given.plain))
    quiet = cast("bool", given.quiet) or target == "-"
    done = kills(bugs, layers, lambda line: None if quiet else out.print(line, soft_wrap=True, markup=False))
    terminal.write_json(target, _report(done))
    if target != "-":
        out.print(table(done) if cast("bool", given.quiet) else summary(done), soft_wrap=True, markup=False)
    if page is not None:
        rewrite(
            Path(page), {"matrix": table(done), "historic": historic_table({c.design: seed_of(c) for c in HISTORIC})}
        )
    return Exit.HOLDS if all(any(row.values()) for row in done.values()) else Exit.UNEXPECTED


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


def _report(done: Mapping[str, Mapping[Layer, Found | None]]) -> dict[str, object]:
    return {
        "schema": "insync/kills/1",
        "bugs": {
            bug: {layer.value: None if f is None else {"what": f.what, "where": f.where} for layer, f in row.items()}
            for bug, row in done.items()
        },
    }
