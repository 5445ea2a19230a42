"""insync coverage: how much the replay has seen, each as x of y."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.progress import Ticker

if TYPE_CHECKING:
    from rich.console import Console

    from isr_replay.coverage import CoverageReport

EXAMPLE = """insync coverage
insync coverage kip-966 --replicas 2 --crashes 0
insync coverage --write docs/conformance.md"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser(
        "coverage",
        "States, edges, actions, pairs and guards that the replay has seen; error codes and branches of the cores, "
        "and unless bounds are given those of simulated runs and of questions on sockets, too. Each as x of y.",
        EXAMPLE,
    )
    p.add_argument("design", metavar="DESIGN", nargs="?", default="kip-966", help="default kip-966")
    p.add_argument("--write", metavar="PAGE", help="put the tables between the marks of a page")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    p.add_constants([*argv, "kip-966"])
    return p.read(argv)


def run(given: Namespace) -> int:
    from isr_replay import NoSuchCores
    from isr_replay.coverage import BOUNDS, NoCounter, insert_tables, measure_coverage
    from isr_replay.coverage_runs import SOURCES

    design, constants = options.design_given(given), options.constants_given(given)
    registry.instance_of(design, constants)
    page = cast("str | None", given.write)
    terminal.check_json_target(cast("str | None", given.json))
    text = page_read(page) if page is not None else ""
    ticker = Ticker(quiet=cast("bool", given.quiet), plain=cast("bool", given.plain))
    try:
        done = measure_coverage(
            design,
            [constants] if constants else BOUNDS,
            lambda explored, known: ticker.count(explored, known, "states of the cores"),
            {} if constants else SOURCES,
        )
    except NoCounter as problem:
        raise UsageError(str(problem)) from None
    except NoSuchCores as problem:
        raise InputError(str(problem)) from None
    finally:
        ticker.close()
    if page is not None:
        try:
            terminal.write_text(Path(page), insert_tables(text, done))
        except ValueError as problem:
            raise InputError(f"{page}: {problem}") from None

    def details(out: Console) -> None:
        rows = [(p.what, f"{p.seen:,}", f"{p.of:,}", ", ".join(p.missing)) for p in done.parts]
        terminal.print_table(out, ("what", "seen", "of", "not seen"), rows)
        out.print()

    terminal.answer(given, report(done), details, result_line(done))
    return Exit.HOLDS if all(r.conforms and r.complete for r in done.replays) else Exit.SAFETY


def page_read(page: str) -> str:
    try:
        return Path(page).read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{page}: cannot be read: {terminal.reason(problem)}") from None


def report(done: CoverageReport) -> dict[str, object]:
    return {
        "schema": "insync/coverage/1",
        "design": done.design,
        "replays": [
            {
                "bounds": dict(r.constants),
                "states": r.states,
                "edges": {"seen": r.replayed, "of": r.edges},
                "explained": sum(r.explained.values()),
                "pairs": {"seen": r.pairs[0], "of": r.pairs[1]},
            }
            for r in done.replays
        ],
        "parts": {p.what: {"seen": p.seen, "of": p.of, "missing": list(p.missing)} for p in done.parts},
    }


def result_line(done: CoverageReport) -> str:
    edges, of = sum(r.replayed for r in done.replays), sum(r.edges for r in done.replays)
    explained = sum(sum(r.explained.values()) for r in done.replays)
    parts = [f"{edges:,} of {of:,} edges" + (f" ({explained:,} explained)" if explained else "")]
    parts += [f"{p.seen:,} of {p.of:,} {p.what}" for p in done.parts if not p.passing]
    return f"insync coverage {done.design}: {', '.join(parts)}"
