"""`insync mutate`: drop one guard at a time; a promise must notice, or the reason why not is on file."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, Inconclusive
from insync_cli.model import guards
from insync_cli.progress import Brake, Ticker
from isr_check import mutate
from isr_check.engine import Limits
from isr_check.mutate import Baseline, Fate, Outcome

if TYPE_CHECKING:
    from rich.console import Console

    from isr_lang import Design, Value

EXAMPLE = """\
insync mutate kip-966
insync mutate kip-966 --replicas 2 --log 1
insync mutate kip-320 --redundant docs/redundant-guards.toml --json -"""


class ChoiceLine(TypedDict):
    bounds: dict[str, Value]
    promises: list[str]
    distinct: int


class MutantLine(TypedDict):
    action: str
    guard: str
    fate: str
    killers: list[str]
    depth: int | None
    choice: int
    distinct: int
    reason: str | None


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("mutate", "Drop one guard at a time and explore: which promise notices?", EXAMPLE)
    p.add_argument("design", metavar="DESIGN", help="see: insync designs")
    p.add_without()
    p.add_argument("--redundant", metavar="FILE", help=f"guards known to be redundant, and why ({guards.REDUNDANT})")
    p.add_argument(
        "--bounds",
        metavar="FILE",
        help=f"bounds to try one after another until a promise notices ({guards.BOUNDS}); "
        "a bound or setting given here takes the place of the file",
    )
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_running()
    p.add_json()
    p.add_constants(argv)
    return p.read(argv)


def run(given: Namespace) -> int:
    design = options.design_given(given)
    constants = options.constants_given(given)
    registry.instance_of(design, constants)
    engine = cast("str | None", given.engine) or registry.default_engine()
    explore, _ = registry.engine_named(engine, 1)  # one process per mutant, one worker in each
    terminal.check_json_target(cast("str | None", given.json))
    reasons = guards.redundant(cast("str | None", given.redundant), design.name)
    choices = [constants] if constants else guards.choices(cast("str | None", given.bounds), design)
    workers = cast("int | None", given.workers) or os.cpu_count() or 1
    with Brake() as brake:
        limits = Limits(cast("int | None", given.max_states), cast("float | None", given.max_seconds), brake)
        job = mutate.Campaign(design, tuple(choices), explore, limits)
        known = list(mutate.baselines(job, workers))
        for baseline, choice in zip(known, choices, strict=True):
            if not baseline.complete:
                raise Inconclusive(
                    f"{design.name} itself was not explored to the end, {baseline.distinct:,} states only "
                    f"({options.command_options(choice, design) or 'default bounds'})"
                )
        done = list(watched(mutate.outcomes(job, known, workers), len(mutate.mutants(design)), given))
    lines = [line_of(o, reasons) for o in done]
    tried, gone = {(o.mutant.action, o.mutant.guard) for o in done}, registry.left_out(design)
    stale = [": ".join(guard) for guard in reasons if guard[0] not in gone and guard not in tried]
    report = {
        "schema": "insync/mutate/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "choices": [choice_of(design, c, b) for c, b in zip(choices, known, strict=True)],
        "mutants": lines,
        "stale": stale,
    }
    commands = [options.command_options(c, design) for c in choices]
    result = result_line(design.name, lines, stale)
    terminal.answer(given, report, lambda out: print_lines(out, lines, stale, commands), result)
    return exit_code(lines, stale)


def watched(outcomes: Iterator[Outcome], total: int, given: Namespace) -> Iterator[Outcome]:
    """The outcomes as they come, counted on stderr."""
    ticker = Ticker(quiet=cast("bool", given.quiet), plain=cast("bool", given.plain))
    for n, outcome in enumerate(outcomes, 1):
        ticker.count(n, total, "guards dropped")
        yield outcome
    ticker.close()


def choice_of(design: Design, constants: Mapping[str, Value], baseline: Baseline) -> ChoiceLine:
    every = registry.bounds_of(registry.instance_of(design, constants))
    return ChoiceLine(bounds=every, promises=list(baseline.kept), distinct=baseline.distinct)


def line_of(outcome: Outcome, reasons: dict[tuple[str, str], str]) -> MutantLine:
    m = outcome.mutant
    return MutantLine(
        action=m.action,
        guard=m.guard,
        fate=outcome.fate.value,
        killers=list(outcome.killers),
        depth=outcome.depth,
        choice=outcome.choice,
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


def print_lines(out: Console, lines: list[MutantLine], stale: list[str], choices: list[str]) -> None:
    action = ""
    for line in lines:
        if line["action"] != action:
            action = line["action"]
            out.print(f"\n{action}", style="bold")
        out.print(f"  {line['guard']}", soft_wrap=True)
        out.print(f"      {fate_text(line, choices)}", style=style(line), soft_wrap=True)
    terminal.print_lines(out, "Listed as redundant, but no guard of this design", stale)
    out.print()


def style(line: MutantLine) -> str:
    odd = line["fate"] == Fate.UNDECIDED or (line["fate"] == Fate.SURVIVED and line["reason"] is None)
    return "yellow" if odd else "dim"


def fate_text(line: MutantLine, choices: list[str]) -> str:
    at = f" ({choices[line['choice']]})" if len(choices) > 1 and choices[line["choice"]] else ""
    listed = f"; listed as redundant: {line['reason']}" if line["reason"] else ""
    match Fate(line["fate"]):
        case Fate.KILLED:
            steps = terminal.count(line["depth"] or 0, "step")
            return f"noticed by {', '.join(line['killers'])} in {steps}{at}{listed}"
        case Fate.SETTLED:
            return "decided by the settings"
        case Fate.UNDECIDED:
            return f"undecided after {line['distinct']:,} states{at}{listed}"
        case Fate.SURVIVED:
            return f"not noticed in {line['distinct']:,} states{at}{listed or ', and no reason is listed'}"


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
