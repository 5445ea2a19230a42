"""insync validate: is what brokers wrote a run of the model?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, places, terminal
from insync_cli.exits import Exit, InputError
from insync_cli.options import Usage, arguments, choice, group, option, positive
from insync_cli.progress import Tell, silent, telling
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from rich.console import Console

    from isr_broker.trace_reader import Life
    from isr_pipeline.locations import Location
    from isr_validate import Level, Rejection, Validation

EXAMPLE = """insync validate traces
insync validate traces --level client
insync validate traces --html rejected.html --reproduce test_rejected.py"""
USAGE = Usage("validate", "Traces of brokers against the model: is each line a step of it?", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    logs: tuple[Path | Location, ...] = arguments(
        "LOG", "a folder with traces, or files NODE.LIFE.jsonl of one run; may be s3://...", places.place, at_least=1
    )
    level: str = choice(
        ("full", "events", "client"),
        "what of a line is looked at: all; no snapshots; only what clients and the wire say. Kafka's: full is events",
        "full",
    )
    budget: int | None = option("N", "states to try before it is UNKNOWN", positive)
    html: Path | None = option("FILE", "a rejection as a page", Path)
    reproduce: Path | None = option("FILE", "a rejection, made small, as a pytest file that fails", Path)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    from isr_broker.trace_reader import BadTrace
    from isr_validate import Level, validate
    from isr_validate.validator import BUDGET

    output, level = invocation.output, Level(invocation.level)
    output.check()
    with output.ticker().meanwhile("reading") as tell:
        lives = lives_of(invocation.logs, tell)
        began = process_time()
        tell(f"validating {terminal.count(sum(len(life.events) for life in lives), 'line')}", 0)
        try:
            validation = validate(
                lives, level, invocation.budget or BUDGET, details=True, progress=partial(tell, "lines explained")
            )
        except BadTrace as problem:
            raise InputError(str(problem)) from None
        seconds = process_time() - began
    output.write(report(validation, lives, seconds))
    with output.ticker().meanwhile("looking for a smaller trace"):
        notes = keep(validation, lives, level, invocation.html, invocation.reproduce)
    if output.for_people:
        out = output.console()
        if not output.quiet:
            print_details(out, validation, lives)
        terminal.print_lines(out, "Written", notes)
        out.print(result_line(validation, lives, seconds), soft_wrap=True)
    if validation.rejected is not None:
        return Exit.SAFETY
    return Exit.HOLDS if validation.unknown is None else Exit.INCONCLUSIVE


def keep(
    validation: Validation, lives: Sequence[Life], level: Level, html: Path | None, reproduce: Path | None
) -> list[str]:
    """The page and the test, where they were asked for and there is a rejection; what was written."""
    from isr_validate.failure_report import failure_page, pytest_file
    from isr_validate.reduction import reduce_run, reduce_trace, validator_at

    no = validation.rejected
    if no is None or not (html or reproduce):
        return []
    again = reduce_run(tuple(lives), no, validator_at(level))
    found, rejection = (again.lives, again.rejected) if again else (lives, no)
    reduced_run = reduce_trace(found, rejection, validator_at(level))
    notes = [f"{reduced_run.lines} of {reduced_run.before} lines are enough"]
    if again is not None:
        kinds = ", ".join(kind.name for kind in again.config.kinds) or "no faults"
        notes.append(f"seed {again.seed} with {kinds} for {again.config.safety_ms} ms is enough")
    if html:
        terminal.write_text(html, failure_page(validation, lives, reduced_run))
        notes.append(f"{html}: the rejection as a page")
    if reproduce:
        terminal.write_text(reproduce, pytest_file(reduced_run.lives, no, level, again))
        notes.append(f"{reproduce}: a test that fails as long as it is rejected")
    return notes


def lives_of(logs: Sequence[Path | Location], tell: Tell = silent) -> list[Life]:
    """Every life in the folders and files; InputError for what is none."""
    from isr_broker.trace_reader import BadTrace
    from isr_validate import read_traces

    try:
        files = [file for log in logs for file in places.files_of(log, ".jsonl")]
        if not files:
            raise InputError(f"there is no trace, NODE.LIFE.jsonl, in {', '.join(map(str, logs))}")
        return read_traces((file.name, places.bytes_of(file)) for file in telling(files, "files read", tell))
    except OSError as problem:
        raise InputError(f"{problem.filename}: cannot be read: {terminal.reason(problem)}") from None
    except BadTrace as problem:
        raise InputError(str(problem)) from None
    except ValueError:
        raise InputError("a trace is called NODE.LIFE.jsonl, as 2.1.jsonl") from None


def report(validation: Validation, lives: Sequence[Life], seconds: float) -> dict[str, object]:
    no = validation.rejected
    return {
        "schema": "insync/validate/1",
        "lives": len(lives),
        "torn": [life.name for life in lives if life.has_torn_end],
        "level": validation.level,
        "verdict": verdict(validation),
        "events": validation.events,
        "lines": validation.lines,
        "unknown": validation.unknown,
        "widest": validation.widest,
        "steps": dict(validation.steps),
        "stutters": dict(validation.stutters),
        "successors": validation.successors,
        "unchecked": validation.unchecked_lines,
        "outside": [{"life": life, "line": line, "why": why} for life, line, why in validation.outside],
        "rejected": None
        if no is None
        else {
            "life": no.life,
            "line": no.line,
            "action": no.action,
            "why": no.why,
            "guards": list(no.guards),
            "differences": {name: {"model": m, "line": t} for name, (m, t) in no.differences.items()},
            "messages": list(no.messages),
            "states": list(no.states),
            "actions": [{"action": g.action, "guard": g.guard, "values": list(g.values)} for g in no.table],
            "legend": no.legend,
        },
        "processor_seconds": round(seconds, 3),
    }


def print_details(out: Console, validation: Validation, lives: Sequence[Life]) -> None:
    terminal.print_table(out, ("step", "lines"), [(name, f"{n:,}") for name, n in sorted(validation.steps.items())])
    terminal.print_lines(
        out,
        "Outside of the model's environment",
        [f"{life}.jsonl:{line}: {why}" for life, line, why in validation.outside],
    )
    if validation.rejected is not None:
        print_rejected(out, validation.rejected, lives)
    out.print()


def print_rejected(out: Console, no: Rejection, lives: Sequence[Life]) -> None:
    from isr_validate.failure_report import last_messages, sequence_text

    out.print(f"\n{no.life}.jsonl:{no.line}: {no.why}", style="bold red", soft_wrap=True)
    out.print(f"  {no.place:,} events are accepted before it", soft_wrap=True)
    for name, (model, told) in no.differences.items():
        out.print(f"  {name}: {model} in the nearest step of the model, {told} in the line", soft_wrap=True)
    rows = [(g.action, "; ".join(g.values) or g.guard) for g in no.table]
    if rows:
        out.print("\nEach action, and the first guard that is false", style="bold")
        terminal.print_table(out, ("action", "because"), rows)
        out.print(f"  {no.legend}", soft_wrap=True)
    terminal.print_lines(out, "All states that were possible before it", no.states)
    terminal.print_lines(out, "The last messages before it", sequence_text(last_messages(lives, no)))


def verdict(validation: Validation) -> str:
    return (
        "REJECTED" if validation.rejected is not None else "UNKNOWN" if validation.unknown is not None else "ACCEPTED"
    )


def result_line(validation: Validation, lives: Sequence[Life], seconds: float) -> str:
    parts = [
        f"{validation.events:,} events of {len(lives)} lives",
        f"{sum(validation.steps.values()):,} steps of the model",
    ]
    parts.append(f"{sum(validation.stutters.values()):,} stutters")
    parts += [f"{len(validation.outside):,} outside of the model"] if validation.outside else []
    parts += (
        [f"{validation.unchecked_lines:,} unchecked after a restart of the controller"]
        if validation.unchecked_lines
        else []
    )
    parts += [f"{validation.events / seconds:,.0f} events per second of a processor"] if seconds > 0 else []
    no = validation.rejected
    if no is not None:
        parts.append(f"rejected at {no.life}.jsonl:{no.line}, {no.action}")
    else:
        parts.append("accepted" if validation.unknown is None else f"UNKNOWN ({validation.unknown})")
    return f"insync validate: {', '.join(parts)}"
