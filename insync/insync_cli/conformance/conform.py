"""insync conform: any implementation, driven along the edges of the model."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, InputError
from insync_cli.progress import Ticker

if TYPE_CHECKING:
    from rich.console import Console

    from isr_conform.conformance import ConformanceResult, Difference, Schedule
    from isr_lang import Design, Value

EXAMPLE = """insync conform --sut "python -m isr_conform.core_sut" --replicas 2
insync conform --sut "python docs/examples/naive_isr.py" --replicas 3 --crashes 0
insync conform --sut "./my-broker --conform" --sample 100 --seed 7"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser(
        "conform", "Any implementation held to the model, through the protocol of docs/conform.md.", EXAMPLE
    )
    p.add_argument("design", metavar="DESIGN", nargs="?", default="kip-966", help="default kip-966")
    p.add_argument("--sut", metavar="COMMAND", required=True, help="starts the system under test; it speaks JSON lines")
    p.add_argument("--patience", type=options.seconds, default=30.0, metavar="S", help="for each answer; default 30")
    p.add_argument("--sample", type=options.positive, metavar="N", help="N walks by chance, in place of every edge")
    p.add_argument(
        "--edges", type=options.positive, metavar="N", help="N edges of each action by chance, in place of every edge"
    )
    p.add_argument("--longest", type=options.positive, default=40, metavar="N", help="steps of a walk; default 40")
    p.add_argument(
        "--trace", metavar="FILE", help="the story of a trace, as far as the design allows it, at its bounds"
    )
    p.add_argument("--seed", type=options.natural, default=0, metavar="N", help="of walks and edges; default 0")
    p.add_argument("--paths", action="store_true", help="from resets only, also if the system can save its state")
    p.add_argument("--first", action="store_true", help="stop at the first difference")
    p.add_argument("--max-steps", type=options.positive, metavar="N", help="stop after N steps")
    p.add_argument("--max-seconds", type=options.seconds, metavar="S", help="stop after S seconds")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    p.add_constants([*argv, "kip-966"])
    return p.read(argv)


def run(given: Namespace) -> int:
    from isr_conform.conformance import Limits, conform
    from isr_conform.sut_client import SutFailure

    design, constants = options.design_given(given), options.constants_given(given)
    schedule, constants = story(cast("str | None", given.trace), design, constants)
    instance = registry.instance_of(design, constants)
    terminal.check_json_target(cast("str | None", given.json))
    limits = Limits(
        schedule=schedule,
        walks=cast("int | None", given.sample),
        per_action=cast("int | None", given.edges),
        paths=cast("bool", given.paths),
        walk_length=cast("int", given.longest),
        seed=cast("int", given.seed),
        stop_at_first=cast("bool", given.first),
        max_steps=cast("int | None", given.max_steps),
        max_seconds=cast("float | None", given.max_seconds),
    )
    ticker = Ticker(quiet=cast("bool", given.quiet), plain=cast("bool", given.plain))
    try:
        done = conform(
            instance,
            cast("str", given.sut),
            limits,
            patience=cast("float", given.patience),
            progress=lambda edges, steps: ticker.count(edges, steps, "steps tried a new edge"),
        )
    except SutFailure as problem:
        if problem.ended:
            raise SystemEnded(f"the system under test: {problem}") from None
        raise InputError(f"the system under test: {problem}") from None
    finally:
        ticker.close()
    terminal.answer(given, report(done, constants), lambda out: print_details(out, done), result_line(done))
    return exit_code(done)


def story(file: str | None, design: Design, given: dict[str, Value]) -> tuple[Schedule | None, dict[str, Value]]:
    """What a trace tells, and the constants: those given, and else the trace's, as far as the design has them."""
    from insync_cli import tracefiles
    from isr_conform.conformance import Schedule

    if file is None:
        return None, given
    trace = tracefiles.load(Path(file))
    known = {c.name for c in design.constants()}
    constants = {name: value for name, value in trace.constants.items() if name in known}
    return Schedule(
        initial=trace.initial, steps=tuple((s.action, s.parameters) for s in trace.steps)
    ), constants | given


class SystemEnded(InputError):
    """The system under test ended, or does not answer: exit 30."""

    exit = Exit.ENDED


def exit_code(done: ConformanceResult) -> Exit:
    if not done.conforms:
        return Exit.SAFETY
    if not done.complete:
        return Exit.INCONCLUSIVE
    return Exit.HOLDS if done.edges else Exit.UNCOVERED


def report(done: ConformanceResult, constants: Mapping[str, object]) -> dict[str, object]:
    return {
        "schema": "insync/conform/1",
        "system": done.name,
        "design": done.design,
        "bounds": dict(constants),
        "walks": done.walks,
        "drawn": None
        if done.per_action is None
        else {"each": done.per_action, "driven": done.drawn, "of": done.of_drawn},
        "seed": done.seed if done.walks is not None or done.per_action is not None else None,
        "complete": done.complete,
        "states": {"driven": done.states, "of": done.of_states},
        "edges": {"driven": done.edges, "of": done.of_edges},
        "pairs": {"driven": done.pairs, "of": done.of_pairs},
        "actions": {
            name: {"driven": done.actions[name], "of": None if done.of_actions is None else done.of_actions[name]}
            for name in sorted(done.actions.keys() | (done.of_actions or done.actions).keys())
        },
        "left_out": list(done.left_out),
        "skipped": list(done.skipped),
        "cannot": dict(done.cannot),
        "steps": done.steps,
        "resets": done.resets,
        "differences": {kind.value: n for kind, n in done.count.items()},
        "examples": [example(u) for u in done.differences],
        "seconds": round(done.seconds, 3),
    }


def example(difference: Difference) -> dict[str, object]:
    """A difference in full."""
    return {
        "kind": difference.kind.value,
        "action": difference.action,
        "parameters": list(difference.parameters),
        "path": [[name, list(parameters)] for name, parameters in difference.path],
        "places": [{"place": p, "model": m, "system": s} for p, m, s in difference.places],
        "said": difference.reason,
        "rules": list(difference.rules),
    }


def print_details(out: Console, done: ConformanceResult) -> None:
    of = done.of_actions
    rows = [
        (name, f"{done.actions[name]:,}", f"{of[name]:,}" if of is not None else "")
        for name in sorted(done.actions.keys() | (of or done.actions).keys())
    ]
    terminal.print_table(out, ("action", "driven", "edges" if of is not None else ""), rows)
    terminal.print_lines(out, "Steps of the story that the model does not allow there", done.skipped)
    terminal.print_lines(out, "Not driven, for the system does not claim to have them", done.left_out)
    cannot = [f"{n:,} edges: {why}" for why, n in done.cannot.most_common()]
    terminal.print_lines(out, "Not driven, for the system could not be brought to them", cannot)
    for difference in done.differences:
        print_difference(out, difference, done)
    out.print()


def print_difference(out: Console, difference: Difference, done: ConformanceResult) -> None:
    """One difference: the way to it, the step, what was expected and what came, and the rule."""
    from isr_conform.model_rules import step_text
    from isr_conform.sut_messages import is_output
    from isr_conform.value_json import json_text

    instance = registry.instance_of(registry.design_named(done.design), dict(done.constants))
    last = step_text(instance, difference.action, difference.parameters)
    out.print(f"\n{difference.kind.value}: {last}", style="bold red", soft_wrap=True)
    for i, (action, parameters) in enumerate(difference.path, 1):
        out.print(f"  {i:>3}  {step_text(instance, action, parameters)}", style="dim", soft_wrap=True)
    out.print(f"  {len(difference.path) + 1:>3}  {last}", soft_wrap=True)
    for place, model, system in difference.places:
        what = "   (output)" if is_output(place) else ""
        out.print(
            f"       {place}: the model has {json_text(model)}, the system {json_text(system)}{what}", soft_wrap=True
        )
    verdicts = {
        "missing action": "the model allows this step; the system does not take it",
        "unexpected action": "the system would take this step; the model forbids it",
    }
    if (verdict := verdicts.get(difference.kind.value)) is not None:
        out.print(f"       {verdict}" + (f": {difference.reason}" if difference.reason else ""), soft_wrap=True)
    heading = {"missing action": "its guards, which all hold", "unexpected action": "the guard that is false"}
    doc, *rules = difference.rules
    out.print(f"       rule: {doc}", soft_wrap=True)
    if rules:
        out.print(f"       {heading.get(difference.kind.value, 'the model says')}:", soft_wrap=True)
    for rule in rules:
        terminal.print_wrapped(out, rule, 9)


def result_line(done: ConformanceResult) -> str:
    def of(n: int, total: int | None) -> str:
        return f"{n:,} of {total:,}" if total is not None else f"{n:,}"

    parts = [f"{done.drawn:,} of {done.of_drawn:,} drawn edges"] if done.per_action is not None else []
    parts += [f"{of(done.edges, done.of_edges)} edges", f"{of(done.states, done.of_states)} states"]
    parts += [f"{of(done.pairs, done.of_pairs)} action pairs", f"{done.steps:,} steps after {done.resets:,} resets"]
    parts += [f"{done.cannot.total():,} not driven"] if done.cannot else []
    parts += [f"{n:,} x {kind.value}" for kind, n in done.count.items() if n]
    word = "VIOLATED" if not done.conforms else "BUDGETED" if not done.complete else "EXHAUSTED"
    if word == "EXHAUSTED" and done.walks is not None:
        word = f"SAMPLED({done.walks}, seed {done.seed})"
    if word == "EXHAUSTED" and done.per_action is not None:
        word = f"SAMPLED({done.per_action} edges of each action, seed {done.seed})"
    if word == "EXHAUSTED" and done.scheduled:
        word = "SAMPLED(1)"
    if word == "EXHAUSTED" and done.edges == 0:
        word = "VACUOUS"
    if word == "EXHAUSTED" and (done.left_out or done.edges != done.of_edges):
        word = "BOUNDED"
    return f"insync conform {done.name}: {word} - {', '.join(parts)}"
