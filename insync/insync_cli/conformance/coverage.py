"""insync coverage: how much the replay has seen, each as x of y."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.options import Usage, group, option
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from rich.console import Console

    from isr_replay.coverage import CoverageReport

EXAMPLE = """insync coverage
insync coverage kip-966 --replicas 2 --crashes 0
insync coverage --write docs/replay.md"""
USAGE = Usage(
    "coverage",
    "States, edges, actions, pairs and guards that the replay has seen; error codes and branches of the cores, "
    "and unless bounds are given those of simulated runs and of questions on sockets, too. Each as x of y.",
    EXAMPLE,
)


@attrs.frozen(kw_only=True)
class Options:
    world: options.TodaysWorld = group(options.TodaysWorld)
    write: Path | None = option("PAGE", "put the tables between the marks of a page", Path)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    from isr_replay.coverage import insert_tables

    invocation.output.check()
    text = page_read(invocation.write) if invocation.write is not None else ""
    coverage = covered(invocation)
    if invocation.write is not None:
        try:
            terminal.write_text(invocation.write, insert_tables(text, coverage))
        except ValueError as problem:
            raise InputError(f"{invocation.write}: {problem}") from None

    def details(out: Console) -> None:
        rows = [(p.what, f"{p.covered:,}", f"{p.of:,}", ", ".join(p.missing)) for p in coverage.parts]
        terminal.print_table(out, ("what", "seen", "of", "not seen"), rows)
        out.print()

    invocation.output.answer(report(coverage), details, result_line(coverage))
    return Exit.HOLDS if all(r.conforms and r.complete for r in coverage.replays) else Exit.SAFETY


def covered(invocation: Options) -> CoverageReport:
    from isr_replay import NoSuchCores, check_cores
    from isr_replay.coverage import BOUNDS, NoCounter, measure_coverage
    from isr_replay.coverage_runs import SOURCES

    constants = invocation.world.constants
    with invocation.output.ticker() as ticker:
        try:
            check_cores(invocation.world.instance())
            return measure_coverage(
                invocation.world.design,
                [constants] if constants else BOUNDS,
                lambda explored, known: ticker.count(explored, known, "states of the cores", grows=True),
                {} if constants else SOURCES,
            )
        except NoCounter as problem:
            raise UsageError(str(problem)) from None
        except NoSuchCores as problem:
            raise InputError(str(problem)) from None


def page_read(page: Path) -> str:
    try:
        return page.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{page}: cannot be read: {terminal.reason(problem)}") from None


def report(coverage: CoverageReport) -> dict[str, object]:
    return {
        "schema": "insync/coverage/1",
        "design": coverage.design,
        "replays": [
            {
                "bounds": dict(r.constants),
                "states": r.states,
                "edges": {"seen": r.replayed, "of": r.edges},
                "explained": sum(r.known_differences.values()),
                "pairs": {"seen": r.pairs[0], "of": r.pairs[1]},
            }
            for r in coverage.replays
        ],
        "parts": {p.what: {"seen": p.covered, "of": p.of, "missing": list(p.missing)} for p in coverage.parts},
    }


def result_line(coverage: CoverageReport) -> str:
    edges, of = sum(r.replayed for r in coverage.replays), sum(r.edges for r in coverage.replays)
    explained = sum(sum(r.known_differences.values()) for r in coverage.replays)
    parts = [f"{edges:,} of {of:,} edges" + (f" ({explained:,} explained)" if explained else "")]
    parts += [f"{p.covered:,} of {p.of:,} {p.what}" for p in coverage.parts if not p.passing]
    return f"insync coverage {coverage.design}: {', '.join(parts)}"
