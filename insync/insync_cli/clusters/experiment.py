"""`insync experiment`: brokers as processes, partitions, ordinary clients; what is lost, and what the model says."""

from __future__ import annotations

import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.exits import Exit, UsageError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from isr_experiment.catalogue import Experiment
    from isr_experiment.conclusions import Concluded
    from isr_experiment.run import Options

EXAMPLE = """\
insync experiment --list
insync experiment jepsen-2013
insync experiment safe-settings --runs 20 --network namespaces
insync experiment sweep --out runs/sweep"""

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


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser(
        "experiment",
        "Real brokers, partitions, kills, power failures and ordinary clients: what was acknowledged and is lost, with "
        "the model's verdict beside it. Ctrl-C ends it with what it has.",
        EXAMPLE,
    )
    p.add_argument("name", nargs="?", help="see --list")
    p.add_argument("--list", action="store_true", help="the experiments and their cells, and nothing else")
    p.add_argument("--cell", action="append", default=[], metavar="CELL", help="only this one; repeatable")
    p.add_argument("--runs", type=options.positive, metavar="N", help="valid runs of each cell (default: as listed)")
    p.add_argument("--seed", type=options.natural, default=0, metavar="S", help="where the kinds of fault begin")
    p.add_argument("--out", metavar="DIR", help="where the results go (default: runs/experiment-NAME)")
    p.add_argument("--keep", action="store_true", help="keep the brokers' data and traces")
    p.add_argument(
        "--network", choices=NETWORKS, default="auto", help="auto: network namespaces where permitted, else proxies"
    )
    p.add_argument(
        "--client",
        action="append",
        default=[],
        choices=("confluent-kafka", "kafka-python"),
        help="who writes; repeatable (default: both)",
    )
    p.add_argument("--per-second", type=options.seconds, default=120.0, metavar="N", help="writes (default 120)")
    p.add_argument("--max-writes", type=options.positive, default=20_000, metavar="N", help="of each writer and run")
    p.add_argument("--max-seconds", type=options.seconds, default=240.0, metavar="S", help="of a run (default 240)")
    p.add_argument("--no-traces", action="store_true", help="write no traces, and compare none with the model")
    p.add_argument("--no-model", action="store_true", help="do not ask the model")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    from isr_experiment.catalogue import EXPERIMENTS

    target, name = cast("str | None", given.json), cast("str | None", given.name)
    terminal.check_json_target(target)
    if given.list:
        if target != "-":
            _list(terminal.console(plain=cast("bool", given.plain)))
        listed = {e.name: {"says": e.says, "cells": [c.name for c in e.cells(0)]} for e in EXPERIMENTS.values()}
        terminal.write_json(target, {"schema": "insync/experiments/1", "experiments": listed})
        return Exit.HOLDS
    if name is None:
        raise UsageError("insync experiment: a NAME is required, or --list (see insync experiment --help)")
    if name not in EXPERIMENTS:
        hint = did_you_mean(name, EXPERIMENTS) or f"; they are {', '.join(EXPERIMENTS)}"
        raise UsageError(f"there is no experiment '{name}'{hint}")
    experiment = EXPERIMENTS[name]
    known = [cell.name for cell in experiment.cells(0)]
    for cell in cast("list[str]", given.cell):
        if cell not in known:
            raise UsageError(f"{name} has no cell '{cell}'{did_you_mean(cell, known)}; it has {'; '.join(known)}")
    chosen = network(cast("str", given.network))
    if chosen == "namespaces" and not _inside():
        return _entered(cast("list[str]", given.command))
    return _performed(experiment, given, chosen)


def network(wanted: str) -> str:
    """Which network there will be; UsageError if it is not permitted."""
    from isr_experiment.namespaces import permitted

    if wanted == "proxies" or _inside():
        return wanted if wanted == "proxies" else "namespaces"
    why = permitted()
    if why is not None and wanted == "namespaces":
        raise UsageError(f"--network namespaces is not possible here: {why}; take --network proxies")
    return "proxies" if why is not None else "namespaces"


def _inside() -> bool:
    from isr_experiment.namespaces import is_inside

    return is_inside()


def _entered(command: Sequence[str]) -> int:
    """The same command in a network namespace of its own, which vanishes with it."""
    from isr_experiment.namespaces import entered

    return entered([sys.executable, "-m", "insync_cli.main", *command[1:]])


def _performed(experiment: Experiment, given: Namespace, chosen: str) -> int:
    from isr_experiment import clients, conclusions, conducting
    from isr_experiment.run import Options

    writers = tuple(dict.fromkeys(cast("list[str]", given.client))) or tuple(clients.KINDS)
    try:
        clients.check((*writers, *clients.NEEDED))
    except clients.NoClient as missing:
        raise UsageError(str(missing)) from None
    out = terminal.make_folder(Path(cast("str | None", given.out) or f"runs/experiment-{experiment.name}"))
    how = Options(
        network=chosen,
        writers=writers,
        per_second=cast("float", given.per_second),
        most=cast("int", given.max_writes),
        traces=not given.no_traces,
        keep=cast("bool", given.keep),
        seconds=cast("float", given.max_seconds),
    )
    over = threading.Event()

    def stops(number: int, frame: FrameType | None) -> None:
        if over.is_set():
            raise KeyboardInterrupt
        over.set()

    before = {number: signal.signal(number, stops) for number in (signal.SIGINT, signal.SIGTERM)}
    console, target = terminal.console(plain=cast("bool", given.plain)), cast("str | None", given.json)
    silent = bool(given.quiet) or target == "-"
    try:
        done = conducting.performed(
            experiment,
            out,
            cast("int | None", given.runs) or experiment.runs,
            how,
            cast("list[str]", given.command),
            over,
            _nobody if silent else lambda line: console.print(line, soft_wrap=True),
            first=cast("int", given.seed),
            only=cast("list[str]", given.cell),
            ask_model=not given.no_model,
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if target is not None:
        text = (out / conducting.FILE).read_text(encoding="utf-8")
        sys.stdout.write(text) if target == "-" else terminal.write_text(Path(target), text)
    if target != "-":
        if not given.quiet:
            _show(console, done, how, out)
        console.print(result_line(experiment.name, done, over.is_set()), soft_wrap=True)
    code = CODES[conclusions.worst(done).value]
    return Exit.INCONCLUSIVE if over.is_set() and code is Exit.HOLDS else code


def _nobody(line: str) -> None:
    """Nobody reads."""


def _list(out: Console) -> None:
    from isr_experiment.catalogue import EXPERIMENTS

    for experiment in EXPERIMENTS.values():
        out.print(f"\n{experiment.name}: {experiment.says}", style="bold", soft_wrap=True)
        rows = [(c.name, c.expected.value, c.because) for c in experiment.cells(0)]
        terminal.print_table(out, ("cell", "expected", "because"), rows)


def _show(out: Console, cells: Sequence[Concluded], how: Options, folder: Path) -> None:
    counts = ("attempted", "acked", "survived", "lost", "unacked, found")
    header = ("cell", "expected", "model", "valid", *counts, "verdict")
    out.print()
    terminal.print_table(out, header, [_row(c) for c in cells])
    for c in cells:
        for answer in () if c.predicted is None else c.predicted.answers:
            out.print(f"  {c.cell.name}: {answer.command}: {answer.verdict}", soft_wrap=True)
            if answer.steps:
                out.print(f"    {' > '.join(answer.steps)}", soft_wrap=True)
    _show_partition_phase(out, cells)
    out.print(f"\nover {how.network}; written to {folder}/experiment.json and .html, a folder per run beside them")


def _row(c: Concluded) -> tuple[str, ...]:
    sums = [sum(getattr(r.whole, n) for r in c.results) for n in ("attempted", "acknowledged", "survived", "lost")]
    found = sum(r.whole.recovered for r in c.results)
    model = "-" if c.predicted is None else {True: "loses", False: "holds", None: "?"}[c.predicted.loses]
    valid = f"{len(c.valid)}/{len(c.results)}"
    return (c.cell.name, c.cell.expected.value, model, valid, *(f"{n:,}" for n in (*sums, found)), c.verdict.value)


def _show_partition_phase(out: Console, cells: Sequence[Concluded]) -> None:
    from isr_experiment.conclusions import partition_phase

    for c in cells:
        pairs = [partition_phase(r) for r in c.results]
        acked, lost = sum(a for a, _ in pairs), sum(b for _, b in pairs)
        if acked:
            part = f"{100 * lost / acked:.1f} %"
            out.print(f"  {c.cell.name}: {lost:,} of {acked:,} acknowledged in the partition phase lost, {part}")


def result_line(name: str, cells: Sequence[Concluded], cut: bool) -> str:
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
