"""`insync experiment`: brokers as processes, partitions, ordinary clients; what is lost, and what the model says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.clusters import bootstrap
from insync_cli.clusters.bootstrap import BootstrapOptions
from insync_cli.clusters.systems import UnderTest
from insync_cli.exits import Exit, UsageError, did_you_mean
from insync_cli.omissions import others_text
from insync_cli.options import (
    Usage,
    choice,
    choices,
    command,
    flag,
    group,
    natural,
    option,
    optional_argument,
    positive,
    rate,
    repeated_option,
    seconds,
)
from insync_cli.progress import ended_in_order
from insync_cli.terminal import Output, QuietOutput

if TYPE_CHECKING:
    from rich.console import Console

    from isr_experiment.catalogue import Experiment
    from isr_experiment.cell_run import Options as RunOptions
    from isr_experiment.conclusions import CellConclusion
    from isr_experiment.systems import SystemUnderTest
    from isr_experiment.waits import Spread

EXAMPLE = """\
insync experiment --list
insync experiment jepsen-2013
insync experiment safe-settings --runs 20 --network namespaces
insync experiment sweep --out runs/sweep
insync experiment quick --system apache-kafka
insync experiment --bootstrap 127.0.0.1:9092"""

DUMP = "dropped-records.jsonl"
NETWORKS = ("auto", "proxies", "namespaces")
CODES = {
    "AS EXPECTED": Exit.HOLDS,
    "INVALID": Exit.INCONCLUSIVE,
    "NO LOSS": Exit.UNEXPECTED,
    "NOT CAUGHT": Exit.UNEXPECTED,
    "DISAGREES": Exit.UNEXPECTED,
    "REJECTED": Exit.SAFETY,
    "LOST": Exit.SAFETY,
}


USAGE = Usage(
    "experiment",
    "Real brokers, partitions, kills, power failures and ordinary clients: what was acknowledged and is lost, with "
    "the model's verdict beside it. Ctrl-C ends it with what it has.",
    EXAMPLE,
)


@attrs.frozen(kw_only=True)
class Writers:
    """What the clients write, and for how long."""

    client: tuple[str, ...] = choices(("confluent-kafka", "kafka-python"), "who writes; without any, both")
    per_second: float = option("N", "writes a second", rate, 120.0)
    max_writes: int = option("N", "writes of each writer in a run", positive, 20_000)
    max_seconds: float = option("S", "seconds of writing in each run", seconds, 240.0)


@attrs.frozen(kw_only=True)
class Options:
    name: str | None = optional_argument("NAME", "see --list", str)
    list: bool = flag("the experiments and their cells, and nothing else")
    cell: tuple[str, ...] = repeated_option("CELL", "only this one", str)
    runs: int | None = option("N", "valid runs of each cell; without it, as listed", positive)
    seed: int = option("S", "where the kinds of fault begin", natural, 0)
    out: Path | None = option("DIR", "where the results go; without it, runs/experiment-NAME", Path)
    keep: bool = flag("keep the brokers' data and traces")
    under_test: UnderTest = group(UnderTest)
    network: str = choice(NETWORKS, "auto: network namespaces where permitted, else proxies", "auto")
    writers: Writers = group(Writers, "clients")
    existing: BootstrapOptions = group(BootstrapOptions, "a running cluster", "no fault is made, and one topic is made")
    no_traces: bool = flag("write no traces, and compare none with the model")
    agent: bool = flag("with apache-kafka: our agent in its brokers writes traces, which are compared with the model")
    no_model: bool = flag("do not ask the model")
    output: QuietOutput = group(QuietOutput)
    command: tuple[str, ...] = command()


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    invocation.output.check()
    from isr_experiment.systems import OURS

    ours = invocation.under_test.is_ours
    if invocation.list:
        return list_experiments(invocation.output)
    if invocation.existing.bootstrap is not None:
        return _on_existing_cluster(invocation)
    if invocation.existing.changed_options:
        raise UsageError(f"{invocation.existing.changed_options[0]} goes with --bootstrap")
    if invocation.agent and (ours or invocation.under_test.file is not None):
        raise UsageError("--agent goes with --system apache-kafka; insync's brokers write traces of themselves")
    experiment = experiment_of(invocation)
    over = network(invocation.network)
    system = (
        OURS
        if ours
        else _kafka(invocation)
        if invocation.under_test.file is None
        else _described_system(invocation, over)
    )
    wanted = [cell for cell in experiment.cells(invocation.seed) if not invocation.cell or cell.name in invocation.cell]
    if all(system.lacks(cell) for cell in wanted):
        raise UsageError(f"{experiment.name} has no such cell for {system.name}: {system.lacks(wanted[0])}")
    if over == "namespaces" and not _inside():
        return _run_in_namespace(invocation.command)
    return _perform_experiment(experiment, invocation, over, system)


def _on_existing_cluster(invocation: Options) -> int:
    if invocation.name is not None or invocation.cell or invocation.runs is not None:
        raise UsageError("--bootstrap takes no experiment: no fault is made on a running cluster")
    most, pace = invocation.writers.max_writes, invocation.writers.per_second
    return bootstrap.observe(invocation.existing, writers_of(invocation), pace, most, invocation.out, invocation.output)


def writers_of(invocation: Options) -> tuple[str, ...]:
    """The clients that write; UsageError if one of them, or what reads, is missing."""
    from isr_experiment import clients

    writers = tuple(dict.fromkeys(invocation.writers.client)) or tuple(clients.KINDS)
    try:
        clients.check((*writers, *clients.CLIENT_MODULES))
    except clients.NoClient as missing:
        raise UsageError(str(missing)) from None
    return writers


def _described_system(invocation: Options, over: str) -> SystemUnderTest:
    """Whatever a file describes."""
    from isr_experiment.systems import GivenSystem

    description = invocation.under_test.read_description()
    brokers = tuple(range(1, description.brokers + 1))
    return GivenSystem(name=description.name, description=description, network=over, brokers=brokers)


def _kafka(invocation: Options) -> SystemUnderTest:
    """Apache Kafka, whose nodes note what they flush."""
    from isr_experiment.systems import ApacheKafka

    quiet = invocation.output.quiet or not invocation.output.for_people
    files = invocation.under_test.kafka_files(noting=True, tracing=invocation.agent, tell=_nobody if quiet else print)
    return ApacheKafka(name=f"Apache Kafka {files.release}", files=files, traces=invocation.agent)


def list_experiments(output: Output) -> int:
    from isr_experiment.catalogue import EXPERIMENTS

    if output.for_people:
        _list(output.console())
    entries = {e.name: {"says": e.says, "cells": [c.name for c in e.cells(0)]} for e in EXPERIMENTS.values()}
    output.write({"schema": "insync/experiments/1", "experiments": entries})
    return Exit.HOLDS


def experiment_of(invocation: Options) -> Experiment:
    """The experiment of this name; UsageError if there is none, or if it lacks a cell that was named."""
    from isr_experiment.catalogue import EXPERIMENTS

    name = invocation.name
    if name is None:
        raise UsageError("insync experiment: a NAME is required, or --list (see insync experiment --help)")
    if name not in EXPERIMENTS:
        hint = did_you_mean(name, EXPERIMENTS) or f"; they are {', '.join(EXPERIMENTS)}"
        raise UsageError(f"there is no experiment '{name}'{hint}")
    known = [cell.name for cell in EXPERIMENTS[name].cells(0)]
    for cell in invocation.cell:
        if cell not in known:
            raise UsageError(f"{name} has no cell '{cell}'{did_you_mean(cell, known)}; it has {'; '.join(known)}")
    return EXPERIMENTS[name]


def network(preference: str) -> str:
    """Which network there will be; UsageError if it is not permitted."""
    from isr_experiment.namespaces import missing_requirement

    if preference == "proxies" or _inside():
        return preference if preference == "proxies" else "namespaces"
    why = missing_requirement()
    if why is not None and preference == "namespaces":
        raise UsageError(f"--network namespaces is not possible here: {why}; take --network proxies")
    return "proxies" if why is not None else "namespaces"


def _inside() -> bool:
    from isr_experiment.namespaces import is_inside

    return is_inside()


def _run_in_namespace(command: Sequence[str]) -> int:
    """The same command in a network namespace of its own, which vanishes with it."""
    from isr_cluster.processes import python_module
    from isr_experiment.namespaces import run_in_namespace

    return run_in_namespace([*python_module("insync_cli.main"), *command[1:]])


def _perform_experiment(experiment: Experiment, invocation: Options, network_name: str, system: SystemUnderTest) -> int:
    from isr_experiment import campaign, conclusions
    from isr_experiment.cell_run import Options as RunOptions
    from isr_report.html import style

    writers = writers_of(invocation)
    output = invocation.output
    out = terminal.make_folder(invocation.out or Path(f"runs/experiment-{experiment.name}"))
    how = RunOptions(
        network=network_name,
        writers=writers,
        per_second=invocation.writers.per_second,
        most=invocation.writers.max_writes,
        traces=not invocation.no_traces,
        keep=invocation.keep,
        seconds=invocation.writers.max_seconds,
        system=system,
    )
    console, target = output.console(), output.json
    silent = output.quiet or not output.for_people
    with ended_in_order() as over:
        cells = campaign.perform_experiment(
            experiment,
            out,
            invocation.runs or experiment.runs,
            how,
            list(invocation.command),
            over,
            _nobody if silent else lambda line: console.print(line, soft_wrap=True),
            first=invocation.seed,
            only=list(invocation.cell),
            ask_model=not invocation.no_model,
            style=style(),
        )
    if target is not None:
        text = (out / campaign.FILE).read_text(encoding="utf-8")
        sys.stdout.write(text) if target == "-" else terminal.write_text(Path(target), text)
    if output.for_people:
        if not output.quiet:
            _show(console, cells, how, out)
        names = [cell.name for cell in experiment.cells(invocation.seed)]
        left = others_text([c.cell.name for c in cells], names, "cell")
        line = result_line(experiment.name, cells, over.is_set())
        console.print(f"{line}{'; ' if left else ''}{left}", soft_wrap=True)
    code = CODES[conclusions.worst(cells).value]
    return Exit.INCONCLUSIVE if over.is_set() and code is Exit.HOLDS else code


def _nobody(line: str) -> None:
    """Nobody reads."""


def _list(out: Console) -> None:
    from isr_experiment.catalogue import EXPERIMENTS

    for experiment in EXPERIMENTS.values():
        out.print(f"\n{experiment.name}: {experiment.says}", style="bold", soft_wrap=True)
        rows = [(c.name, c.expected.value, c.because) for c in experiment.cells(0)]
        terminal.print_table(out, ("cell", "expected", "because"), rows)


def _show(out: Console, cells: Sequence[CellConclusion], how: RunOptions, folder: Path) -> None:
    counts = ("attempted", "acked", "survived", "lost", "unacked, found")
    header = ("cell", "expected", "model", "valid", *counts, "verdict")
    out.print()
    terminal.print_table(out, header, [_row(c) for c in cells])
    for c in cells:
        for answer in () if c.prediction is None else c.prediction.answers:
            out.print(f"  {c.cell.name}: {answer.command}: {answer.verdict}", soft_wrap=True)
            if answer.steps:
                out.print(f"    {' > '.join(answer.steps)}", soft_wrap=True)
    for c in cells:
        if c.lost_unacknowledged:
            more = f"{c.lost_unacknowledged:,} that somebody read are gone, too, though never acknowledged"
            out.print(f"  {c.cell.name}: {more}", soft_wrap=True)
    _show_partition_phase(out, cells)
    _show_rates(out, cells)
    _show_waits(out, cells)
    out.print(
        f"\n{how.system.name} over {how.network}; "
        f"written to {folder}/experiment.json and .html, a folder per run beside them"
    )


def _row(c: CellConclusion) -> tuple[str, ...]:
    sums = [sum(getattr(r.whole, n) for r in c.results) for n in ("attempted", "acknowledged", "survived", "lost")]
    found = sum(r.whole.recovered for r in c.results)
    model = "-" if c.prediction is None else {True: "loses", False: "holds", None: "?"}[c.prediction.loses]
    valid = f"{len(c.valid)}/{len(c.results)}"
    return (c.cell.name, c.cell.expected.value, model, valid, *(f"{n:,}" for n in (*sums, found)), c.verdict.value)


def _show_partition_phase(out: Console, cells: Sequence[CellConclusion]) -> None:
    from isr_experiment.conclusions import partition_phase

    for c in cells:
        pairs = [partition_phase(r) for r in c.results]
        acked, lost = sum(a for a, _ in pairs), sum(b for _, b in pairs)
        if acked:
            part = f"{100 * lost / acked:.1f} %"
            out.print(f"  {c.cell.name}: {lost:,} of {acked:,} acknowledged in the partition phase lost, {part}")


def _show_rates(out: Console, cells: Sequence[CellConclusion]) -> None:
    from isr_experiment.conclusions import rates

    for c in cells:
        dumped = sum(r.dumped_values for r in c.results)
        kept = f"; {dumped:,} of the lost are in {DUMP}" if dumped else ""
        out.print(f"  {c.cell.name}: {'; '.join(str(rate) for rate in rates(c))}{kept}", soft_wrap=True)


def _show_waits(out: Console, cells: Sequence[CellConclusion]) -> None:
    """How long the writes of each phase waited, and would have for a majority."""
    rows: list[tuple[str, ...]] = []
    for c in (c for c in cells if c.cell.shows_waits):
        for w in (w for r in c.results for w in r.waits):
            rows.append((c.cell.name, w.phase, *_spread(w.acknowledged), *_spread(w.majority)))
    if not rows:
        return
    out.print("\nmilliseconds from sent to acknowledged, and from the leader's append until a majority had it:")
    terminal.print_table(out, ("cell", "phase", "p50", "p99", "longest", "majority p50", "p99", "longest"), rows)


def _spread(s: Spread | None) -> tuple[str, str, str]:
    return ("-", "-", "-") if s is None else (f"{s.p50:,}", f"{s.p99:,}", f"{s.longest:,}")


def result_line(name: str, cells: Sequence[CellConclusion], cut: bool) -> str:
    """The one line to look for."""
    from isr_experiment.conclusions import totals, worst

    t = totals(cells)
    parts = [f"{t.runs} runs, {t.valid} valid", f"{t.acknowledged:,} acknowledged, {t.lost:,} lost"]
    if t.bound is not None:
        parts.append(
            f"{t.safe_lost} of {t.safe_acknowledged:,} where none is to be lost (95 %: less than {t.bound:.1e}, 3/N)"
        )
    parts.append(f"{t.leaders} changes of the leader, {t.isrs} of the ISR, {t.dropped:,} bytes dropped")
    if t.validated:
        parts.append(f"traces of {t.validated - t.rejected} of {t.validated} runs accepted ({t.events:,} events)")
    parts += ["stopped early"] if cut else []
    return f"insync experiment {name}: {worst(cells).value} - {'; '.join(parts)}"
