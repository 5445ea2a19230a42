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


@attrs.frozen(eq=False)
class Answer:
    """What was replayed within which bounds; `stopped_by`: what ended it early, if anything did."""

    result: ReplayResult
    constants: Mapping[str, object]
    stopped_by: str | None

    @property
    def code(self) -> Exit:
        return exit_code(self.result)

    @property
    def report(self) -> dict[str, object]:
        return report(self.result, self.constants)

    @property
    def line(self) -> str:
        """The one line to grep for."""
        return result_line(self.result) + (f" (stopped by {self.stopped_by})" if self.stopped_by else "")


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    answer = answer_of(invocation)
    invocation.output.answer(answer.report, lambda out: print_details(out, answer.result), answer.line)
    return answer.code


def show(out: Console, answer: Answer) -> None:
    """All of a replay in words."""
    print_details(out, answer.result)
    out.print(answer.line, soft_wrap=True)


def answer_of(invocation: Options) -> Answer:
    """Replay what is asked; nothing is printed but progress."""
    from isr_replay import NoSuchCores, replay

    constants, output = invocation.world.constants, invocation.output
    invocation.world.instance()
    output.check()
    with output.ticker() as ticker, Brake() as brake:
        try:
            result = replay(
                constants,
                design=invocation.world.design,
                own_look=invocation.own_look,
                max_states=invocation.max_states,
                progress=lambda explored, known: ticker.count(explored, known, "states of the cores", grows=True),
                stop=brake,
            )
        except NoSuchCores as problem:
            raise InputError(str(problem)) from None
    return Answer(result, constants, brake.reason)


def exit_code(result: ReplayResult) -> Exit:
    if not result.conforms:
        return Exit.SAFETY
    return Exit.HOLDS if result.complete else Exit.INCONCLUSIVE


def report(result: ReplayResult, constants: Mapping[str, object]) -> dict[str, object]:
    return {
        "schema": "insync/replay/1",
        "design": result.design,
        "bounds": dict(constants),
        "complete": result.complete,
        "states": result.states,
        "systems": result.systems,
        "edges": result.edges,
        "replayed": result.replayed,
        "steps": result.steps,
        "pairs": {"replayed": result.pairs[0], "of": result.pairs[1]},
        "actions": {name: {"replayed": n, "of": of} for name, (n, of) in result.edges_by_action.items()},
        "explained": dict(result.known_differences),
        "mismatches": {kind.value: n for kind, n in result.count.items()},
        "examples": [
            {
                "kind": m.kind.value,
                "action": m.action,
                "parameters": list(m.parameters),
                "path": [[name, list(parameters)] for name, parameters in m.path],
                "differences": {d.variable: {"cores": d.cores, "model": d.model} for d in m.differences},
            }
            for m in result.mismatches
        ],
        "seconds": round(result.seconds, 3),
        "processor_seconds": round(result.processor, 3),
    }


def print_details(out: Console, result: ReplayResult) -> None:
    rows = [(name, f"{n:,}", f"{of:,}") for name, (n, of) in result.edges_by_action.items() if of]
    terminal.print_table(out, ("action", "replayed", "edges"), rows)
    unseen = [name for name, (_, of) in result.edges_by_action.items() if not of]
    terminal.print_lines(out, "Never enabled within these bounds", unseen)
    terminal.print_lines(
        out, "Explained, and no mismatch", [f"{n:,} edges: {why}" for why, n in result.known_differences.items()]
    )
    for m in result.mismatches:
        print_mismatch(out, m)
    out.print()


def print_mismatch(out: Console, m: Mismatch) -> None:
    out.print(f"\n{m.kind.value}: {action_text(m.action, m.parameters)}", style="bold red", soft_wrap=True)
    for i, (action, parameters) in enumerate(m.path, 1):
        out.print(f"  {i:>3}  {action_text(action, parameters)}", style="dim", soft_wrap=True)
    for d in m.differences:
        out.print(f"  {d.variable}: {d.cores} by the cores, {d.model} by the model", soft_wrap=True)


def action_text(action: str, parameters: tuple[int, ...]) -> str:
    return f"{action}({', '.join(map(str, parameters))})" if parameters else action


def result_line(result: ReplayResult) -> str:
    parts = [f"{result.replayed:,} of {result.edges:,} edges", f"{result.states:,} states"]
    parts.append(f"{result.pairs[0]:,} of {result.pairs[1]:,} action pairs")
    if result.processor > 0:
        parts.append(f"{result.replayed / result.processor:,.0f} edges per second of a processor")
    explained = sum(result.known_differences.values())
    parts += [f"{explained:,} explained"] if explained else []
    parts += [f"{n:,} x {kind.value}" for kind, n in result.count.items() if n] or ["no mismatch"]
    parts += [] if result.complete else ["not explored to the end"]
    return f"insync replay {result.design}: {', '.join(parts)}"
