"""`insync mutate`: drop one guard at a time; a promise must notice, or the reason why not is on file."""

from __future__ import annotations

import os
import tomllib
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, Inconclusive, InputError
from insync_cli.progress import Brake, Ticker
from isr_check import mutate
from isr_check.engine import Limits
from isr_check.mutate import Fate, Outcome

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync mutate kip-966 --replicas 2 --log 1
insync mutate kip-320 --redundant docs/redundant-guards.toml --json -"""

REDUNDANT = "docs/redundant-guards.toml"


class MutantLine(TypedDict):
    action: str
    guard: str
    fate: str
    killers: list[str]
    depth: int | None
    distinct: int
    reason: str | None


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("mutate", "Drop one guard at a time and explore: which promise notices?", EXAMPLE)
    p.add_argument("design", metavar="DESIGN", help="see: insync designs")
    p.add_without()
    p.add_argument("--redundant", metavar="FILE", help=f"guards known to be redundant, and why ({REDUNDANT})")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_running()
    p.add_json()
    p.add_constants(argv)
    return p.read(argv)


def run(given: Namespace) -> int:
    design = options.design_given(given)
    instance = registry.instance_of(design, options.constants_given(given))
    engine = cast("str | None", given.engine) or registry.default_engine()
    explore, _ = registry.engine_named(engine, 1)  # one process per mutant, one worker in each
    target = cast("str | None", given.json)
    terminal.check_json_target(target)
    reasons = redundant(cast("str | None", given.redundant), design.name)
    workers = cast("int | None", given.workers) or os.cpu_count() or 1
    with Brake() as brake:
        limits = Limits(cast("int | None", given.max_states), cast("float | None", given.max_seconds), brake)
        job, found = mutate.campaign(instance, explore, limits)
        if not found.complete:
            raise Inconclusive(f"{design.name} itself was not explored to the end, {found.distinct:,} states only")
        done = list(watched(mutate.outcomes(job, workers), len(mutate.mutants(design)), given))
    lines = [line_of(o, reasons) for o in done]
    guards = {(o.mutant.action, o.mutant.guard) for o in done}
    gone = registry.left_out(design)
    stale = [f"{a}: {guard}" for a, guard in reasons if a not in gone and (a, guard) not in guards]
    report = {
        "schema": "insync/mutate/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "promises": list(job.kept),
        "distinct": found.distinct,
        "mutants": lines,
        "stale": stale,
    }
    terminal.write_json(target, report)
    code = exit_code(lines, stale)
    if target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
        if not given.quiet:
            print_lines(out, lines, stale)
        out.print(result_line(design.name, lines, stale), soft_wrap=True)
    return code


def watched(outcomes: Iterator[Outcome], total: int, given: Namespace) -> Iterator[Outcome]:
    """The outcomes as they come, counted on stderr."""
    ticker = Ticker(quiet=cast("bool", given.quiet), plain=cast("bool", given.plain))
    for n, outcome in enumerate(outcomes, 1):
        ticker.count(n, total, "guards dropped")
        yield outcome
    ticker.close()


def redundant(file: str | None, design: str) -> dict[tuple[str, str], str]:
    """(action, guard) -> why it is redundant, for one design. Only a file asked for must exist."""
    path = Path(file or REDUNDANT)
    if file is None and not path.exists():
        return {}
    try:
        table = cast("dict[str, object]", tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {terminal.reason(problem)}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InputError(f"{path}: not TOML: {problem}") from None
    found: dict[tuple[str, str], str] = {}
    listed = table.get("guard", [])
    for entry in cast("list[object]", listed) if isinstance(listed, list) else [listed]:
        fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        words = [fields.get(key) for key in ("design", "action", "guard", "reason")]
        if not all(isinstance(word, str) and word for word in words):
            raise InputError(f"{path}: every [[guard]] has a design, an action, a guard and a reason")
        if words[0] == design:
            found[cast("str", words[1]), cast("str", words[2])] = cast("str", words[3])
    return found


def line_of(outcome: Outcome, reasons: dict[tuple[str, str], str]) -> MutantLine:
    m = outcome.mutant
    return MutantLine(
        action=m.action,
        guard=m.guard,
        fate=outcome.fate.value,
        killers=list(outcome.killers),
        depth=outcome.depth,
        distinct=outcome.distinct,
        reason=reasons.get((m.action, m.guard)),
    )


def unexplained(lines: list[MutantLine]) -> list[MutantLine]:
    return [line for line in lines if line["fate"] == Fate.SURVIVED and line["reason"] is None]


def contradicted(lines: list[MutantLine]) -> list[MutantLine]:
    """Listed as redundant, and yet some promise notices."""
    return [line for line in lines if line["fate"] == Fate.KILLED and line["reason"] is not None]


def exit_code(lines: list[MutantLine], stale: list[str]) -> Exit:
    if unexplained(lines) or contradicted(lines) or stale:
        return Exit.UNEXPECTED
    return Exit.INCONCLUSIVE if any(line["fate"] == Fate.UNDECIDED for line in lines) else Exit.HOLDS


def print_lines(out: Console, lines: list[MutantLine], stale: list[str]) -> None:
    action = ""
    for line in lines:
        if line["action"] != action:
            action = line["action"]
            out.print(f"\n{action}", style="bold")
        out.print(f"  {line['guard']}", soft_wrap=True)
        out.print(f"      {fate_text(line)}", style=style(line), soft_wrap=True)
    terminal.print_lines(out, "Listed as redundant, but no guard of this design", stale)
    out.print()


def style(line: MutantLine) -> str:
    odd = line["fate"] == Fate.UNDECIDED or (line["fate"] == Fate.SURVIVED and line["reason"] is None)
    return "yellow" if odd else "dim"


def fate_text(line: MutantLine) -> str:
    listed = f"; listed as redundant: {line['reason']}" if line["reason"] else ""
    match Fate(line["fate"]):
        case Fate.KILLED:
            steps = terminal.count(line["depth"] or 0, "step")
            return f"noticed by {', '.join(line['killers'])} in {steps}{listed}"
        case Fate.SETTLED:
            return "decided by the settings"
        case Fate.UNDECIDED:
            return f"undecided after {line['distinct']:,} states{listed}"
        case Fate.SURVIVED:
            return f"not noticed in {line['distinct']:,} states{listed or ', and no reason is listed'}"


def result_line(design: str, lines: list[MutantLine], stale: list[str]) -> str:
    count = {fate: sum(line["fate"] == fate for line in lines) for fate in Fate}
    listed = count[Fate.SURVIVED] - len(unexplained(lines))
    parts = [f"{len(lines)} guards", f"{count[Fate.KILLED]} noticed", f"{listed} redundant with a reason"]
    parts.append(f"{count[Fate.SETTLED]} decided by the settings")
    for n, what in (
        (len(unexplained(lines)), "not noticed and not listed"),
        (len(contradicted(lines)), "listed as redundant but noticed"),
        (len(stale), "listed but gone"),
        (count[Fate.UNDECIDED], "undecided"),
    ):
        parts += [f"{n} {what}"] if n else []
    return f"insync mutate {design}: {', '.join(parts)}"
