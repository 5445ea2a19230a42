"""`insync mutate`: drop one part of a design at a time; a promise must notice, or the reason why not is on file."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, Inconclusive, UsageError
from insync_cli.families import family_of
from insync_cli.model import guards
from insync_cli.options import Usage, choice, group, option
from insync_cli.progress import Brake
from insync_cli.terminal import QuietOutput
from isr_check import mutation
from isr_check.engine import Limits
from isr_check.mutation import Baseline, Fate, Outcome, Part

if TYPE_CHECKING:
    from rich.console import Console

    from isr_lang import Design, Instance, Value

EXAMPLE = """\
insync mutate kip-966
insync mutate kip-966 --replicas 2 --log 1
insync mutate kraft-3.5 --drop terms --replicas 2
insync mutate kip-966 --drop assignments --share 1/8
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
    part: str


USAGE = Usage("mutate", "Drop one guard at a time and explore: which promise notices?", EXAMPLE)
PARTS = {f"{part}s": part for part in Part}


def share_of(text: str) -> tuple[int, int]:
    """K/N as two numbers, K from 1 to N."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text, re.ASCII)
    first, shares = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= first <= shares:
        raise argparse.ArgumentTypeError(f"K/N with K from 1 to N, such as 1/8, not {text}")
    return first, shares


@attrs.frozen(kw_only=True)
class Options:
    world: options.SmallerWorld = group(options.SmallerWorld)
    drop: str = choice(
        tuple(PARTS),
        "what to drop: guards of actions; terms of the definitions that actions call, each an operand of a conjunction "
        "or of a union; or assignments of actions",
        f"{Part.GUARD}s",
    )
    share: tuple[int, int] = option("K/N", "of N equal shares of what can be dropped only the Kth", share_of, (1, 1))
    redundant: Path | None = option(
        "FILE", f"guards known to be redundant, and why; without it, {guards.REDUNDANT} of a checkout", Path
    )
    bounds: Path | None = option(
        "FILE",
        f"bounds to try one after another until a promise notices; without it, {guards.BOUNDS} of a checkout. "
        "A bound or setting given here takes the place of the file",
        Path,
    )
    running: options.RunningEach = group(options.RunningEach, "running")
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    design, constants = invocation.world.design, invocation.world.constants
    invocation.output.check()
    part = PARTS[invocation.drop]
    reasons = guards.redundant(invocation.redundant, design.name, part)
    choices = [constants] if constants else guards.choices(invocation.bounds, design)
    instances = [registry.instance_of(design, choice) for choice in choices]
    check_share(design, part, invocation.share)
    baselines, done = drop_parts(invocation, design, choices)
    lines = [line_of(o, reasons) for o in done]
    there, gone = {(m.action, m.listed_as) for m in mutation.mutants(design, (part,))}, registry.left_out(design)
    stale = [": ".join(guard) for guard in reasons if guard[0] not in gone and guard not in there]
    report = {
        "schema": "insync/mutate/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "share": list(invocation.share),
        "choices": [choice_of(i, b) for i, b in zip(instances, baselines, strict=True)],
        "mutants": lines,
        "stale": stale,
    }
    commands = [options.command_options(c, design) for c in choices]
    result = result_line(design.name, lines, stale, part, invocation.share)
    invocation.output.answer(report, lambda out: print_lines(out, lines, stale, commands, part), result)
    return exit_code(lines, stale)


def check_share(design: Design, part: Part, share: tuple[int, int]) -> None:
    """UsageError where there is nothing to drop: that all of nothing is noticed says nothing."""
    total, (first, shares) = len(mutation.mutants(design, (part,))), share
    if first <= total:
        return
    has = f"{design.name} has {terminal.count(total, part.value)}" if total else f"{design.name} has no {part.value}"
    raise UsageError(f"{has}, so share {first} of {shares} is empty" if total else f"{has} that could be dropped")


def drop_parts(
    invocation: Options, design: Design, choices: Sequence[Mapping[str, Value]]
) -> tuple[list[Baseline], list[Outcome]]:
    """The design itself at each choice of bounds, and what became of each mutant."""
    running = invocation.running
    explore, _ = registry.engine_named(running.engine_name, 1)  # one process per mutant, one worker in each
    workers = running.workers or os.cpu_count() or 1
    with Brake() as brake:
        limits = Limits(running.max_states, running.max_seconds, brake)
        parts, orbits = (PARTS[invocation.drop],), registry.by_symmetry(explore)
        premises = family_of(design).premises(p.name for p in design.properties)
        every = attrs.evolve(design, properties=(*design.properties, *map(design.restated_property, premises)))
        job = mutation.Campaign(every, tuple(choices), explore, limits, parts, orbits, invocation.share)
        with invocation.output.ticker() as ticker:
            what = f"choices of bounds, {design.name} itself"
            baselines = list(ticker.count_each(mutation.baselines(job, workers), len(choices), what))
        for baseline, choice in zip(baselines, choices, strict=True):
            if not baseline.complete:
                raise Inconclusive(
                    f"{design.name} itself was not explored to the end, {baseline.distinct:,} states only "
                    f"({options.command_options(choice, design) or 'default bounds'})"
                )
        total = len(job.mutants())
        with invocation.output.ticker() as ticker:
            return baselines, list(
                ticker.count_each(mutation.outcomes(job, baselines, workers), total, f"{invocation.drop} dropped")
            )


def choice_of(instance: Instance, baseline: Baseline) -> ChoiceLine:
    return ChoiceLine(bounds=registry.bounds_of(instance), promises=list(baseline.promises), distinct=baseline.distinct)


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
        reason=reasons.get((m.action, m.listed_as)),
        part=m.part.value,
    )


def unexplained_lines(lines: list[MutantLine]) -> list[MutantLine]:
    return [line for line in lines if line["fate"] == Fate.SURVIVED and line["reason"] is None]


def contradicted_lines(lines: list[MutantLine]) -> list[MutantLine]:
    """The parts that are listed as redundant although a promise notices that they are gone."""
    return [line for line in lines if line["fate"] == Fate.KILLED and line["reason"] is not None]


def exit_code(lines: list[MutantLine], stale: list[str]) -> Exit:
    if unexplained_lines(lines) or contradicted_lines(lines) or stale:
        return Exit.UNEXPECTED
    return Exit.INCONCLUSIVE if any(line["fate"] == Fate.UNDECIDED for line in lines) else Exit.HOLDS


def print_lines(
    out: Console, lines: list[MutantLine], stale: list[str], choices: list[str], part: Part = Part.GUARD
) -> None:
    action = ""
    for line in lines:
        if line["action"] != action:
            action = line["action"]
            out.print(f"\n{action}", style="bold")
        out.print(f"  {line['guard']}", soft_wrap=True)
        out.print(f"      {fate_text(line, choices)}", style=style(line), soft_wrap=True)
    terminal.print_lines(out, f"Listed as redundant, but no {part} of this design", stale)
    out.print()


def style(line: MutantLine) -> str:
    odd = line["fate"] == Fate.UNDECIDED or (line["fate"] == Fate.SURVIVED and line["reason"] is None)
    return "yellow" if odd else "dim"


def fate_text(line: MutantLine, choices: list[str]) -> str:
    at = f" ({choices[line['choice']]})" if len(choices) > 1 and choices[line["choice"]] else ""
    reason_text = f"; listed as redundant: {line['reason']}" if line["reason"] else ""
    match Fate(line["fate"]):
        case Fate.KILLED:
            if line["depth"] is None:
                return (
                    f"noticed by {', '.join(line['killers'])}, of which there is no witness any more{at}{reason_text}"
                )
            steps = terminal.count(line["depth"], "step")
            return f"noticed by {', '.join(line['killers'])} in {steps}{at}{reason_text}"
        case Fate.SETTLED:
            return "decided by the settings"
        case Fate.EQUIVALENT:
            return f"changes nothing that an action or a promise reads, in {line['distinct']:,} states{at}{reason_text}"
        case Fate.NARROWER:
            return f"shows promises nothing that the design does not, in {line['distinct']:,} states{at}{reason_text}"
        case Fate.UNDECIDED:
            return f"undecided after {line['distinct']:,} states{at}{reason_text}"
        case Fate.SURVIVED:
            return f"not noticed in {line['distinct']:,} states{at}{reason_text or ', and no reason is listed'}"


def result_line(
    design: str,
    lines: list[MutantLine],
    stale: list[str],
    part: Part = Part.GUARD,
    share: tuple[int, int] = (1, 1),
) -> str:
    count = {fate: sum(line["fate"] == fate for line in lines) for fate in Fate}
    listed = count[Fate.SURVIVED] - len(unexplained_lines(lines))
    parts = [f"{len(lines)} {part}s", f"{count[Fate.KILLED]} noticed", f"{listed} redundant with a reason"]
    parts.append(f"{count[Fate.SETTLED]} decided by the settings")
    parts += [f"{count[Fate.EQUIVALENT]} that nothing reads"] if count[Fate.EQUIVALENT] else []
    parts += [f"{count[Fate.NARROWER]} that show promises nothing new"] if count[Fate.NARROWER] else []
    for n, what in (
        (len(unexplained_lines(lines)), "not noticed and not listed"),
        (len(contradicted_lines(lines)), "listed as redundant but noticed"),
        (len(stale), "listed but gone"),
        (count[Fate.UNDECIDED], "undecided"),
    ):
        parts += [f"{n} {what}"] if n else []
    of_all = "" if share == (1, 1) else f" (share {share[0]} of {share[1]})"
    return f"insync mutate {design}{of_all}: {', '.join(parts)}"
