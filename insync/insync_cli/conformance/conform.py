"""insync conform: any implementation, driven along the edges of the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.options import Usage, flag, group, natural, option, positive, required, seconds
from insync_cli.progress import Brake
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from rich.console import Console

    from isr_conform.conformance_result import ConformanceResult, Difference, Explain, Limits, Schedule
    from isr_lang import Design, Value

EXAMPLE = """insync conform --sut "python -m isr_conform.core_sut" --replicas 2
insync conform --sut "python docs/examples/naive_isr.py" --replicas 3 --crashes 0
insync conform --sut "./my-broker --conform" --sample 100 --seed 7
insync conform --sut kafka=4.4.0 --replicas 2"""
USAGE = Usage("conform", "Any implementation held to the model, through the protocol of docs/conform.md.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Drive:
    """Which steps are driven: with none of these, every edge of the model."""

    sample: int | None = option("N", "N walks by chance, in place of every edge", positive)
    edges: int | None = option("N", "N edges of each action by chance, in place of every edge", positive)
    longest: int = option("N", "steps of a walk", positive, 40)
    trace: Path | None = option("FILE", "the story of a trace, as far as the design allows it, at its bounds", Path)
    seed: int = option("N", "of walks and edges", natural, 0)
    paths: bool = flag("from resets only, also if the system can save its state")
    first: bool = flag("stop at the first difference")
    max_steps: int | None = option("N", "stop after N steps", positive)
    max_seconds: float | None = option("S", "stop the run after S seconds", seconds)


@attrs.frozen(kw_only=True)
class Options:
    world: options.TodaysWorld = group(options.TodaysWorld)
    sut: str = required(
        "COMMAND", "starts the system under test, which speaks JSON lines; or kafka, or kafka=4.4.0", str
    )
    kafka_home: Path | None = option("DIR", "with --sut kafka: a Kafka downloaded or built, in place of Maven's", Path)
    patience: float = option("S", "seconds to wait for each answer of the system", seconds, 30.0)
    drive: Drive = group(Drive, "what is driven")
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    given = options.read(Options, USAGE, argv)
    from isr_conform.conformance import conform
    from isr_conform.sut_client import SutFailure

    design = given.world.design
    schedule, constants = story(given.drive.trace, design, given.world.constants)
    instance = registry.instance_of(design, constants)
    given.output.check()
    with given.output.ticker() as ticker, Brake() as brake:
        try:
            done = conform(
                instance,
                command(given.sut, given.kafka_home),
                limits(given.drive, schedule, brake),
                patience=given.patience,
                progress=lambda what, done, of: ticker.count(done, of, what),
                explain=known(given.sut),
            )
        except SutFailure as problem:
            if problem.ended:
                raise SystemEnded(f"the system under test: {problem}") from None
            raise InputError(f"the system under test: {problem}") from None
    line = result_line(done) + (f"; stopped by {brake.reason}" if brake.reason else "")
    given.output.answer(report(done, constants), lambda out: print_details(out, done), line)
    return exit_code(done)


def command(sut: str, home: Path | None) -> str:
    """What starts the system under test: the command as it stands, or Apache Kafka's classes by name."""
    from isr_kafka import Unavailable
    from isr_kafka.system import named

    try:
        kafka = named(sut, home)
        if kafka is not None:
            return kafka.command()
    except Unavailable as problem:
        raise InputError(str(problem)) from None
    if home is not None:
        raise UsageError("--kafka-home goes with --sut kafka")
    return sut


def known(sut: str) -> Explain:
    """What is known of differences: of Kafka's some, of another system nothing."""
    from isr_conform.conformance_result import nothing_known
    from isr_kafka.known import explain

    return explain if re.match(r"kafka(=|$)", sut) else nothing_known


def limits(drive: Drive, schedule: Schedule | None, stop: Callable[[], bool]) -> Limits:
    from isr_conform.conformance_result import Limits

    return Limits(
        schedule=schedule,
        walks=drive.sample,
        per_action=drive.edges,
        paths=drive.paths,
        walk_length=drive.longest,
        seed=drive.seed,
        stop_at_first=drive.first,
        max_steps=drive.max_steps,
        max_seconds=drive.max_seconds,
        stop=stop,
    )


def story(file: Path | None, design: Design, given: Mapping[str, Value]) -> tuple[Schedule | None, Mapping[str, Value]]:
    """What a trace tells, and the constants: those given, and else the trace's, as far as the design has them."""
    from insync_cli import tracefiles
    from isr_conform.conformance_result import Schedule

    if file is None:
        return None, given
    trace = tracefiles.load(file)
    known = {c.name for c in design.constants()}
    constants = {name: value for name, value in trace.constants.items() if name in known}
    return Schedule(initial=trace.initial, steps=tuple((s.action, s.parameters) for s in trace.steps)), {
        **constants,
        **given,
    }


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
        "explained": dict(done.explained),
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
    explained = [f"{n:,} x {why}" for why, n in done.explained.most_common()]
    terminal.print_lines(out, "Differs as is known (docs/kafka-classes.md)", explained)
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
    parts += [f"{n:,} explained ({why.partition(':')[0]})" for why, n in done.explained.most_common()]
    parts += [f"{n:,} x {kind.value}" for kind, n in done.count.items() if n]
    word = "VIOLATED" if not done.conforms else "BUDGETED" if not done.complete else "HOLDS"
    if word == "HOLDS" and done.walks is not None:
        word = f"SAMPLED({done.walks}, seed {done.seed})"
    if word == "HOLDS" and done.per_action is not None:
        word = f"SAMPLED({done.per_action} edges of each action, seed {done.seed})"
    if word == "HOLDS" and done.scheduled:
        word = "SAMPLED(1)"
    if word == "HOLDS" and done.edges == 0:
        word = "VACUOUS"
    if word == "HOLDS" and (done.left_out or done.edges != done.of_edges):
        word = "BOUNDED"
    return f"insync conform {done.name}: {word} - {', '.join(parts)}"
