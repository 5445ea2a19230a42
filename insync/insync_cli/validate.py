"""insync validate: is what brokers wrote a run of the model?"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, cast

from insync_cli import options, terminal
from insync_cli.exits import Exit, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from isr_broker.trace_reading import Life
    from isr_refine import Rejected, Validated

EXAMPLE = """insync validate traces
insync validate traces --json -"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("validate", "Traces of brokers against the model: is each line a step of it?", EXAMPLE)
    p.add_argument("logs", metavar="LOG", nargs="+", help="a folder with traces, or files NODE.LIFE.jsonl of one run")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    from isr_broker.trace_reading import BadTrace
    from isr_refine import validate

    target = cast("str | None", given.json)
    terminal.check_json_target(target)
    lives = lives_of(cast("list[str]", given.logs))
    began = process_time()
    try:
        done = validate(lives)
    except BadTrace as problem:
        raise InputError(str(problem)) from None
    seconds = process_time() - began
    terminal.write_json(target, report(done, lives, seconds))
    if target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
        if not given.quiet:
            print_details(out, done)
        out.print(result_line(done, lives, seconds), soft_wrap=True)
    return Exit.SAFETY if done.rejected is not None else Exit.HOLDS


def lives_of(logs: list[str]) -> list[Life]:
    """Every life in the folders and files; InputError for what is none."""
    from isr_broker.trace_reading import BadTrace, read_life

    files: list[Path] = []
    for log in map(Path, logs):
        files += sorted(log.glob("*.jsonl")) if log.is_dir() else [log]
    if not files:
        raise InputError(f"there is no trace, NODE.LIFE.jsonl, in {', '.join(logs)}")
    try:
        lives = [read_life(file.name.removesuffix(".jsonl"), file.read_bytes()) for file in files]
        return sorted(lives, key=lambda life: (life.node, int(life.name.rpartition(".")[2])))
    except (BadTrace, OSError) as problem:
        raise InputError(str(problem)) from None
    except ValueError:
        raise InputError("a trace is called NODE.LIFE.jsonl, as 2.1.jsonl") from None


def report(done: Validated, lives: Sequence[Life], seconds: float) -> dict[str, object]:
    no = done.rejected
    return {
        "schema": "insync/validate/1",
        "lives": len(lives),
        "torn": [life.name for life in lives if life.torn],
        "events": done.events,
        "steps": dict(done.steps),
        "stutters": dict(done.stutters),
        "successors": done.successors,
        "unchecked": done.unchecked,
        "outside": [{"life": life, "line": line, "why": why} for life, line, why in done.outside],
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
        },
        "processor_seconds": round(seconds, 3),
    }


def print_details(out: Console, done: Validated) -> None:
    terminal.print_table(out, ("step", "lines"), [(name, f"{n:,}") for name, n in sorted(done.steps.items())])
    terminal.print_lines(
        out, "Outside of the model's environment", [f"{life}.jsonl:{line}: {why}" for life, line, why in done.outside]
    )
    if done.rejected is not None:
        print_rejected(out, done.rejected)
    out.print()


def print_rejected(out: Console, no: Rejected) -> None:
    out.print(f"\n{no.life}.jsonl:{no.line}: {no.why}", style="bold red", soft_wrap=True)
    terminal.print_lines(out, "The first guard that is false", no.guards)
    for name, (model, told) in no.differences.items():
        out.print(f"  {name}: {model} in the nearest step of the model, {told} in the line", soft_wrap=True)
    terminal.print_lines(out, "The last messages before it", no.messages)


def result_line(done: Validated, lives: Sequence[Life], seconds: float) -> str:
    parts = [f"{done.events:,} events of {len(lives)} lives", f"{sum(done.steps.values()):,} steps of the model"]
    parts.append(f"{sum(done.stutters.values()):,} stutters")
    parts += [f"{len(done.outside):,} outside of the model"] if done.outside else []
    parts += [f"{done.unchecked:,} unchecked after a restart of the controller"] if done.unchecked else []
    parts += [f"{done.events / seconds:,.0f} events per second of a processor"] if seconds > 0 else []
    no = done.rejected
    parts.append("accepted" if no is None else f"rejected at {no.life}.jsonl:{no.line}, {no.action}")
    return f"insync validate: {', '.join(parts)}"
