"""insync conform: any implementation, driven along the edges of the model."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from insync_cli.options import Usage, flag, group, natural, option, positive, required_option, seconds
from insync_cli.progress import Brake
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from rich.console import Console

    from isr_conform.broken_promises import BrokenPromise
    from isr_conform.conformance_result import ConformanceResult, Difference, Explain, Limits, Schedule
    from isr_lang import Design, Instance, Value
    from isr_trace.trace import Trace

EXAMPLE = """insync conform --sut "python -m isr_conform.core_sut" --replicas 2
insync conform --sut "python docs/examples/naive_isr.py" --replicas 3 --crashes 0
insync conform --sut "./my-broker --conform" --sample 100 --seed 7
insync conform --sut kafka=4.4.0 --replicas 2
insync conform --sut kafka-raft=4.4.0 --voters 2
insync conform --sut kafka-controllers=4.4.0 --sample 20
insync conform --sut broker:kafka=4.4.0 --replicas 2 --crashes 0 --sample 20"""
USAGE = Usage("conform", "Any implementation held to the model, through the protocol of docs/conform.md.", EXAMPLE)


BROKER = "broker:"


@attrs.frozen(kw_only=True)
class Drive:
    """Which steps are driven: with none of these, every edge of the model."""

    sample: int | None = option("N", "N walks by chance, in place of every edge", positive)
    edges: int | None = option("N", "N edges of each action by chance, in place of every edge", positive)
    near_walks: int | None = option(
        "N", "N edges of the states that walks of the model come by, in place of every edge", positive
    )
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
    sut: str = required_option(
        "COMMAND",
        "starts the system under test, which speaks JSON lines; or kafka, kafka=4.4.0, kafka-raft, kafka-raft-files, "
        "kafka-controllers; or one broker, broker:COMMAND or broker:kafka=4.4.0 (docs/own-broker.md)",
        str,
    )
    kafka_home: Path | None = option("DIR", "with --sut kafka: a Kafka downloaded or built, in place of Maven's", Path)
    patience: float = option("S", "seconds to wait for each answer of the system", seconds, 30.0)
    drive: Drive = group(Drive, "what is driven")
    save: Path | None = option("FILE", "the way to the first difference, as a trace for insync show", Path)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, [*design_of_system(argv), *argv])
    from isr_conform.conformance import conform
    from isr_conform.sut_client import SutFailure

    design = invocation.world.design
    check_family(design, invocation.sut)
    check_drive(invocation.drive)
    schedule, constants, remarks = story(invocation.drive.trace, design, invocation.world.constants)
    instance = registry.instance_of(design, constants)
    check_settings(instance, invocation.sut)
    invocation.output.check()
    with invocation.output.ticker() as ticker, Brake() as brake:
        try:
            result = conform(
                instance,
                command(invocation.sut, invocation.kafka_home, design),
                limits(invocation.drive, schedule, brake),
                patience=invocation.patience,
                progress=lambda what, done, of: ticker.count(done, of, what),
                explain=explainer_for(invocation.sut, invocation.kafka_home),
            )
            remarks += release_remark(design, invocation.sut, invocation.kafka_home)
        except SutFailure as problem:
            if problem.process_ended:
                raise SystemEnded(f"the system under test: {problem}") from None
            raise InputError(f"the system under test: {problem}") from None
    if invocation.save is not None:
        save_difference(result, instance, invocation.save)
    line = "; ".join([result_line(result), *([f"stopped by {brake.reason}"] if brake.reason else []), *remarks])
    page = page_of_differences(invocation.sut)
    told = {**report(result, constants), "remarks": list(remarks)}
    invocation.output.answer(told, lambda out: print_details(out, result, page), line)
    return exit_code(result)


def save_difference(result: ConformanceResult, instance: Instance, file: Path) -> None:
    """The steps to the first difference, with its own if the model allows it. Without one, an older file goes."""
    from insync_cli import tracefiles
    from isr_check.reference import Evaluator
    from isr_conform.control import schedule_to
    from isr_trace.replay import record

    if not result.differences:
        file.unlink(missing_ok=True)
        return
    schedule = schedule_to(instance, result.differences[0])
    steps = [(action, tuple(parameters.values())) for action, parameters in schedule.steps]
    trace = record(Evaluator(instance), tuple(schedule.initial.values()), steps)
    tracefiles.write(trace, file)


def command(sut: str, home: Path | None, design: Design) -> str:
    """What starts the system under test: the command as it stands, or Apache Kafka's classes by name.

    Those have eligible leader replicas where the design has them.
    """
    from isr_kafka import Unavailable
    from isr_kafka.system import kafka_from_word

    try:
        if sut.startswith(BROKER):
            return broker_command(sut.removeprefix(BROKER), home)
        kafka = kafka_from_word(sut, home)
        if kafka is not None:
            return kafka.command(properties=adapter_properties(design))
    except Unavailable as problem:
        raise InputError(str(problem)) from None
    if home is not None:
        raise UsageError("--kafka-home goes with --sut kafka")
    return sut


def broker_command(word: str, home: Path | None) -> str:
    """What plays everything else to one broker: to an Apache Kafka by name, or to whatever a command starts."""
    from isr_cluster.kafka import archive
    from isr_cluster.processes import Mishap
    from isr_kafka.node import node_files
    from isr_kafka.system import kafka_from_word

    kafka = kafka_from_word(word, home)
    if kafka is not None:
        files = node_files(kafka.release, kafka.home)
        try:
            archive(files)
        except Mishap as mishap:
            raise InputError(
                f"{kafka.release} could not be started once, for its archive of classes: {mishap}"
            ) from None
        word = f"{shlex.join(files.plain_command())} {{properties}}"
    elif home is not None:
        raise UsageError("--kafka-home goes with --sut broker:kafka")
    elif "{properties}" not in word:
        raise UsageError("the command of --sut broker: names {properties}, the file with the broker's settings")
    return shlex.join([sys.executable, "-P", "-m", "isr_twin.broker_sut", word])


def adapter_properties(design: Design) -> dict[str, str]:
    """What Kafka's adapter is to know of a design: that it elects who returns, and has no eligible leader replicas.

    With these (KIP-966) the last known leader is elected, too. In a quorum: that fetches wait at the leader.
    """
    names = {action.name for action in design.actions}
    has_none = "controller_elects_returned" in names and "controller_elects_last_known_leader" not in names
    differences = {"insync.no-elr": has_none, "insync.waiting-fetches": "waiting_fetch_times_out" in names}
    return {name: "true" for name, differs in differences.items() if differs}


def design_of_system(argv: Sequence[str]) -> list[str]:
    """The design of the part of Kafka that is named, where no design is."""
    from isr_kafka.system import part_from_word

    words = [word for option, word in pairwise(argv) if option == "--sut"]
    words += [word.removeprefix("--sut=") for word in argv if word.startswith("--sut=")]
    part = part_from_word(words[-1]) if words else None
    if words and part is None:
        check_spelling(words[-1])
    if part is None or options.OWN_DESIGNS in argv or any(word in registry.designs() for word in argv):
        return []
    return [part.design_of(words[-1].partition("=")[2])]


def check_spelling(sut: str) -> None:
    """UsageError for a word that starts nothing here, and is nearly that of a part of Kafka."""
    from isr_kafka.system import PARTS, part_word

    word = part_word(sut)
    hint = did_you_mean(word, PARTS) if word and shutil.which(sut) is None else ""
    if hint:
        raise UsageError(f"--sut {sut} starts nothing, and no part of Kafka is called '{word}'{hint}")


def check_family(design: Design, sut: str) -> None:
    """UsageError where a part of Kafka is to be driven along the design of another one."""
    from insync_cli.families import family_of
    from isr_kafka.system import part_from_word

    part = part_from_word(sut)
    if part is not None and family_of(design) is not family_of(registry.design_named(part.design)):
        raise UsageError(
            f"--sut {sut} is driven along designs as {part.design}, and {design.name} is of another family "
            f"(insync designs {part.design})"
        )


def check_drive(drive: Drive) -> None:
    """UsageError where two options each say what is driven in place of every edge."""
    kinds = {
        "--sample": drive.sample,
        "--edges": drive.edges,
        "--near-walks": drive.near_walks,
        "--trace": drive.trace,
    }
    given = [option for option, value in kinds.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other, for each says what is driven")


def check_settings(instance: Instance, sut: str) -> None:
    """UsageError where a part of Kafka is not driven along the design, or where the two differ with a setting."""
    from isr_kafka.system import part_from_word

    part = part_from_word(sut)
    if part is None:
        return
    for name, why in part.absent:
        if name in instance.constants:
            raise UsageError(f"--sut {sut} is not driven along {instance.design.name}, for {why} ({part.page})")
    for name, mark, why in part.unlike:
        if instance.constants.get(name) and mark in instance.constants:
            option = f"--{name.replace('_', '-')}"
            refusal = f"--sut {sut} is not driven along {instance.design.name} with {option} on"
            advice = f"add {option} off" if instance.design.defaults.get(name) else "leave it out"
            raise UsageError(f"{refusal}, for {why} ({part.page}); {advice}")


def explainer_for(sut: str, home: Path | None = None) -> Explain:
    """What is known of differences: of a release of Kafka some, of another system nothing."""
    from isr_conform.conformance_result import nothing_known
    from isr_kafka.system import kafka_from_word

    kafka = kafka_from_word(sut, home)
    return (kafka.explain() if kafka is not None else None) or nothing_known


def release_remark(design: Design, sut: str, home: Path | None = None) -> tuple[str, ...]:
    """That a release of Kafka has another design, where it was driven along this one."""
    from isr_kafka.system import kafka_from_word

    kafka = kafka_from_word(sut, home)
    if kafka is None:
        return ()
    lineage, base = {design.name}, design.based_on
    while base is not None:
        lineage, base = lineage | {base.name}, base.based_on
    return tuple(
        f"the design of Kafka {old.branch} is {old.design}, for {old.why}"
        if old.has(kafka.release)
        else f"{old.design} is the design of Kafka {old.branch}"
        for old in kafka.part.earlier
        if old.has(kafka.release) is not (old.design in lineage)
    )


def page_of_differences(sut: str) -> str:
    """Where the known differences of that part of Kafka are told."""
    from isr_kafka.system import PARTITION, part_from_word

    return (part_from_word(sut) or PARTITION).page


def limits(drive: Drive, schedule: Schedule | None, stop: Callable[[], bool]) -> Limits:
    from isr_conform.conformance_result import Limits

    return Limits(
        schedule=schedule,
        walks=drive.sample,
        per_action=drive.edges,
        near_walks=drive.near_walks,
        paths=drive.paths,
        walk_length=drive.longest,
        seed=drive.seed,
        stop_at_first=drive.first,
        max_steps=drive.max_steps,
        max_seconds=drive.max_seconds,
        stop=stop,
    )


def story(
    file: Path | None, design: Design, overrides: Mapping[str, Value]
) -> tuple[Schedule | None, Mapping[str, Value], tuple[str, ...]]:
    """What a trace tells, the constants, and what is to be said of it.

    The constants are those given, and else the trace's, as far as the design has them.
    """
    from insync_cli import tracefiles
    from isr_conform.conformance_result import Schedule
    from isr_trace.trace import FOREIGN

    if file is None:
        return None, overrides, ()
    trace = tracefiles.load(file)
    if trace.foreign:
        raise InputError(f"{file}: {FOREIGN}")
    known = {c.name for c in design.constants()}
    constants = {name: value for name, value in trace.constants.items() if name in known}
    schedule = Schedule(initial=trace.initial, steps=tuple((s.action, s.parameters) for s in trace.steps))
    around = ("the trace goes round for ever, and is driven once around",) if trace.loop is not None else ()
    return schedule, {**constants, **overrides}, (*version_remark(trace), *around)


def version_remark(trace: Trace) -> tuple[str, ...]:
    """That the model of a trace is not the one of its name today, or not known."""
    try:
        today = registry.design_of(trace.design, trace.without, trace.unfair, trace.strong).model_hash()
    except UsageError:
        return (f"the trace is of {trace.design}, as it is not known here (model hash {trace.model_hash})",)
    if trace.model_hash == today:
        return ()
    return (f"the trace is of another version of {trace.design} (model hash {trace.model_hash}, now {today})",)


class SystemEnded(InputError):
    """The system under test ended, or does not answer: exit 30."""

    exit = Exit.ENDED


def exit_code(result: ConformanceResult) -> Exit:
    if not result.conforms:
        return Exit.SAFETY
    if not result.complete:
        return Exit.INCONCLUSIVE
    by_chance = result.walks is not None or result.near_walks is not None
    return Exit.HOLDS if result.edges and (by_chance or not result.undriven_actions) else Exit.UNCOVERED


def report(result: ConformanceResult, constants: Mapping[str, object]) -> dict[str, object]:
    return {
        "schema": "insync/conform/1",
        "system": result.name,
        "design": result.design,
        "bounds": dict(constants),
        "walks": result.walks,
        "drawn": None
        if result.per_action is None
        else {"each": result.per_action, "driven": result.drawn_edges, "of": result.of_drawn},
        "near_walks": None
        if result.near_walks is None
        else {"asked": result.near_walks, "driven": result.drawn_edges, "of": result.of_drawn},
        "seed": result.seed if any((result.walks, result.per_action, result.near_walks)) else None,
        "complete": result.complete,
        "states": {"driven": result.states, "of": result.of_states},
        "edges": {"driven": result.edges, "of": result.of_edges},
        "pairs": {"driven": result.pairs, "of": result.of_pairs},
        "actions": {
            name: {"driven": result.actions[name], "of": None if result.of_actions is None else result.of_actions[name]}
            for name in sorted(result.actions.keys() | (result.of_actions or result.actions).keys())
        },
        "left_out": list(result.left_out),
        "model_alone": list(result.model_alone),
        "untaken": list(result.untaken_actions),
        "skipped": list(result.skipped_steps),
        "cannot": dict(result.cannot),
        "undriven": list(result.undriven_actions),
        "broken": [attrs.asdict(b) for b in result.broken_promises],
        "steps": result.steps,
        "resets": result.resets,
        "explained": dict(result.known_differences),
        "differences": {kind.value: n for kind, n in result.count.items()},
        "examples": [example(u) for u in result.differences],
        "seconds": round(result.seconds, 3),
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


def print_details(out: Console, result: ConformanceResult, page: str) -> None:
    """`page`: where the differences that are known are told."""
    of = result.of_actions
    rows = [
        (name, f"{result.actions[name]:,}", f"{of[name]:,}" if of is not None else "")
        for name in sorted(result.actions.keys() | (of or result.actions).keys())
    ]
    terminal.print_table(out, ("action", "driven", "edges" if of is not None else ""), rows)
    terminal.print_lines(out, "Steps of the story that the model does not allow there", result.skipped_steps)
    terminal.print_lines(out, "Not driven, for the system does not claim to have them", result.left_out)
    terminal.print_lines(out, "Taken by the model alone, of which the system was told", result.model_alone)
    cannot = [f"{n:,} edges: {why}" for why, n in result.cannot.most_common()]
    terminal.print_lines(out, "Not driven, for the system could not be brought to them", cannot)
    explained = [f"{n:,} x {why}" for why, n in result.known_differences.most_common()]
    terminal.print_lines(out, f"Differs as is known ({page})", explained)
    for difference in result.differences:
        print_difference(out, difference, result)
    for breach in result.broken_promises:
        print_broken_promise(out, breach)
    out.print()


def print_broken_promise(out: Console, breach: BrokenPromise) -> None:
    """A promise that broke, where, and whose the values are that it reads."""
    out.print(f"\nbroken promise: {breach.promise}", style="bold red", soft_wrap=True)
    out.print(f"  {breach.step:>3}  {breach.step_text}", soft_wrap=True)
    terminal.print_wrapped(out, f"promise: {breach.doc}", 7)
    for whose, names in (("the system", breach.from_system), ("the model alone", breach.from_model)):
        if names:
            terminal.print_wrapped(out, f"read of {whose}: {', '.join(names)}", 7)


def broken_texts(broken_promises: Sequence[BrokenPromise]) -> list[str]:
    """`its state breaks one-leader-per-epoch in step 12`, apart from what is not of the system's values alone."""
    kinds = {
        "its state": [b for b in broken_promises if not b.from_model],
        "its state together with what the model alone has": [
            b for b in broken_promises if b.from_system and b.from_model
        ],
        "what the model alone has": [b for b in broken_promises if not b.from_system],
    }
    return [
        f"{whose} breaks {', '.join(f'{b.promise} in step {b.step}' for b in broken)}"
        for whose, broken in kinds.items()
        if broken
    ]


def print_difference(out: Console, difference: Difference, result: ConformanceResult) -> None:
    """One difference: the way to it, the step, what was expected and what came, and the rule."""
    from insync_cli.families import family_of
    from isr_conform.model_rules import step_text
    from isr_conform.value_json import json_text

    instance = registry.instance_of(registry.design_named(result.design), dict(result.constants))
    last = step_text(instance, difference.action, difference.parameters)
    out.print(f"\n{difference.kind.value}: {last}", style="bold red", soft_wrap=True)
    for i, (action, parameters) in enumerate(difference.path, 1):
        out.print(f"  {i:>3}  {step_text(instance, action, parameters)}", style="dim", soft_wrap=True)
    out.print(f"  {len(difference.path) + 1:>3}  {last}", soft_wrap=True)
    for place, model, system in difference.places:
        what = "   (output)" if place.startswith(family_of(instance.design).outputs) else ""
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


def result_line(result: ConformanceResult) -> str:
    def of(n: int, total: int | None) -> str:
        return f"{n:,} of {total:,}" if total is not None else f"{n:,}"

    parts = [f"{result.drawn_edges:,} of {result.of_drawn:,} drawn edges"] if result.of_drawn else []
    parts += [f"{of(result.edges, result.of_edges)} edges", f"{of(result.states, result.of_states)} states"]
    parts += [
        f"{of(result.pairs, result.of_pairs)} action pairs",
        f"{result.steps:,} steps after {result.resets:,} resets",
    ]
    parts += [f"{result.cannot.total():,} not driven"] if result.cannot else []
    parts += [f"no step driven of {action}" for action in result.undriven_actions]
    parts += [f"never taken: {action}" for action in result.untaken_actions]
    parts += [f"{n:,} explained ({why.partition(':')[0]})" for why, n in result.known_differences.most_common()]
    parts += [f"{n:,} x {kind.value}" for kind, n in result.count.items() if n]
    parts += broken_texts(result.broken_promises)
    word = "VIOLATED" if not result.conforms else "BUDGETED" if not result.complete else "HOLDS"
    if word == "HOLDS" and result.walks is not None:
        word = f"SAMPLED({result.walks}, seed {result.seed})"
    if word == "HOLDS" and result.per_action is not None:
        word = f"SAMPLED({result.per_action} edges of each action, seed {result.seed})"
    if word == "HOLDS" and result.near_walks is not None:
        few = f"{result.drawn_edges} of " if result.drawn_edges < result.near_walks else ""
        word = f"SAMPLED({few}{result.near_walks} edges near walks, seed {result.seed})"
    if word == "HOLDS" and result.follows_schedule:
        word = "SAMPLED(1)"
    if word == "HOLDS" and result.edges == 0:
        word = "VACUOUS"
    if word == "HOLDS" and (result.untaken_actions or result.left_out or result.edges != result.of_edges):
        word = "BOUNDED"
    return f"insync conform {result.name}: {word} - {', '.join(parts)}"
