"""insync replay: every edge of the model within its bounds, on the broker's cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.exits import Exit, InputError
from insync_cli.options import Usage, flag, group, option, positive
from insync_cli.progress import Brake
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from rich.console import Console

    from isr_replay import Mismatch, ReplayResult

EXAMPLE = """insync replay kip-966 --replicas 2
insync replay kip-966 --replicas 3 --crashes 1 --isr-changes 1"""
USAGE = Usage("replay", "Model and broker in lock-step: every edge of the model, on the broker's cores.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    world: options.World = group(options.World)
    max_states: int | None = option("N", "stop after N states of the cores", positive)
    own_look: bool = flag("leaders look themselves who is fenced, as Kafka's do")
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    given = options.read(Options, USAGE, argv)
    from isr_replay import NoSuchCores, replay

    constants, output = given.world.constants, given.output
    given.world.instance()
    output.check()
    with output.ticker() as ticker, Brake() as brake:
        try:
            done = replay(
                constants,
                design=given.world.design,
                own_look=given.own_look,
                max_states=given.max_states,
                progress=lambda explored, known: ticker.count(explored, known, "states of the cores", grows=True),
                stop=brake,
            )
        except NoSuchCores as problem:
            raise InputError(str(problem)) from None
    line = result_line(done) + (f" (stopped by {brake.reason})" if brake.reason else "")
    output.answer(report(done, constants), lambda out: print_details(out, done), line)
    return exit_code(done)


def exit_code(done: ReplayResult) -> Exit:
    if not done.conforms:
        return Exit.SAFETY
    return Exit.HOLDS if done.complete else Exit.INCONCLUSIVE


def report(done: ReplayResult, constants: Mapping[str, object]) -> dict[str, object]:
    return {
        "schema": "insync/replay/1",
        "design": done.design,
        "bounds": dict(constants),
        "complete": done.complete,
        "states": done.states,
        "systems": done.systems,
        "edges": done.edges,
        "replayed": done.replayed,
        "steps": done.steps,
        "pairs": {"replayed": done.pairs[0], "of": done.pairs[1]},
        "actions": {name: {"replayed": n, "of": of} for name, (n, of) in done.taken.items()},
        "explained": dict(done.explained),
        "mismatches": {kind.value: n for kind, n in done.count.items()},
        "examples": [
            {
                "kind": m.kind.value,
                "action": m.action,
                "parameters": list(m.parameters),
                "path": [[name, list(parameters)] for name, parameters in m.path],
                "differences": {d.variable: {"cores": d.cores, "model": d.model} for d in m.differences},
            }
            for m in done.mismatches
        ],
        "seconds": round(done.seconds, 3),
        "processor_seconds": round(done.processor, 3),
    }


def print_details(out: Console, done: ReplayResult) -> None:
    rows = [(name, f"{n:,}", f"{of:,}") for name, (n, of) in done.taken.items() if of]
    terminal.print_table(out, ("action", "replayed", "edges"), rows)
    unseen = [name for name, (_, of) in done.taken.items() if not of]
    terminal.print_lines(out, "Never enabled within these bounds", unseen)
    terminal.print_lines(
        out, "Explained, and no mismatch", [f"{n:,} edges: {why}" for why, n in done.explained.items()]
    )
    for m in done.mismatches:
        print_mismatch(out, m)
    out.print()


def print_mismatch(out: Console, m: Mismatch) -> None:
    out.print(f"\n{m.kind.value}: {called(m.action, m.parameters)}", style="bold red", soft_wrap=True)
    for i, (action, parameters) in enumerate(m.path, 1):
        out.print(f"  {i:>3}  {called(action, parameters)}", style="dim", soft_wrap=True)
    for d in m.differences:
        out.print(f"  {d.variable}: {d.cores} by the cores, {d.model} by the model", soft_wrap=True)


def called(action: str, parameters: tuple[int, ...]) -> str:
    return f"{action}({', '.join(map(str, parameters))})" if parameters else action


def result_line(done: ReplayResult) -> str:
    parts = [f"{done.replayed:,} of {done.edges:,} edges", f"{done.states:,} states"]
    parts.append(f"{done.pairs[0]:,} of {done.pairs[1]:,} action pairs")
    if done.processor > 0:
        parts.append(f"{done.replayed / done.processor:,.0f} edges per second of a processor")
    explained = sum(done.explained.values())
    parts += [f"{explained:,} explained"] if explained else []
    parts += [f"{n:,} x {kind.value}" for kind, n in done.count.items() if n] or ["no mismatch"]
    parts += [] if done.complete else ["not explored to the end"]
    return f"insync replay {done.design}: {', '.join(parts)}"
