"""insync kafka rows: what of Kafka's classes was driven, as the tables of docs/kafka-classes.md and kraft-classes.md.

A row whose setting switches an action on must take that action. Otherwise it would say nothing of the setting.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from insync_cli import options, registry
from insync_cli.exits import InputError

if TYPE_CHECKING:
    from isr_conform.conformance_result import ConformanceResult

BEGIN, END = "<!-- rows: written by insync kafka -->", "<!-- end of rows -->"
HEAD: Final = ("release", "options", "edges", "states", "action pairs", "actions", "differences")


@attrs.frozen
class Row:
    """One run of `insync conform --sut kafka=RELEASE` with these options, or of another part of Kafka.

    `elsewhere`: actions that its settings switch on, and that another row takes.
    """

    release: str
    options: str
    part: str = "kafka"
    elsewhere: tuple[str, ...] = ()


AT_WORK: Final = "--replicas 2 --sessions-lost 0 --epochs 1 --isr-changes 2 --log 1 --records 1"
AT_WORK_LONGER: Final = AT_WORK.replace("--isr-changes 2", "--isr-changes 3")
LOSING_SESSIONS: Final = AT_WORK_LONGER.replace("--sessions-lost 0", "--sessions-lost 1")
SOME: Final = "--edges 100 --seed 1"
RELEASES_BY_DESIGN: Final = {
    "kafka-4.4": ("4.4.0", "4.3.1", "4.3.0"),
    "kafka-4.2": ("4.2.2", "4.2.1", "4.2.0", "4.1.2", "4.1.1", "4.1.0"),
    "kafka-4.0": ("4.0.2", "4.0.1", "4.0.0"),
    "kafka-4.4-no-elr": ("4.4.0", "4.3.1", "4.3.0"),
}
"""The releases along the design of each as it is released."""
WALKS: Final = (
    "--replicas 2 --log 1 --records 1 --sessions-lost 0 --epochs 1 --isr-changes 3 --crashes 1 "
    "--reassignments 2 --minimum-changes 1 --disks-replaced 1 --late-news 1 --copies 1 --snapshots-loaded 1 "
    "--sample 70 --longest 40 --seed 2"
)
"""Walks that take each action of people, of late news, of copies and of snapshots."""
ROWS: Final = (
    Row("4.4.0", "--replicas 2"),
    Row("4.3.1", "--replicas 2"),
    Row("4.1.1", "--replicas 2"),
    Row("4.0.1", "--replicas 2"),
    Row("4.4.0", "--replicas 2 --crashes 0 --lossy-crashes 1"),
    Row("4.4.0", "--replicas 2 --crashes 0 --consumers 1 --follower-reads on"),
    Row("4.4.0", "--replicas 2 --crashes 0 --acks 1"),
    Row("4.4.0", "--replicas 2 --crashes 0 --lossy-crashes 1 --acks 0 --flush always"),
    Row("4.4.0", "--replicas 2 --min-insync 1 --isr-changes 3 --crashes 0 --sessions-lost 1"),
    Row(
        "4.4.0",
        "kafka-keeps-positions --replicas 2 --min-insync 1 --isr-changes 3 --unclean on --edges 250 --seed 1",
    ),
    Row("4.4.0", "--replicas 2 --crashes 0 --shutdowns 1"),
    Row("4.4.0", "--replicas 2 --crashes 0 --consumers 1 --sessions-lost 1"),
    Row("4.4.0", f"kafka-4.4 {AT_WORK} --reassignments 0 --minimum-changes 1 {SOME}"),
    Row("4.4.0", f"kafka-4.4 {AT_WORK} --reassignments 2 --min-insync 1 {SOME}"),
    Row("4.4.0", f"kafka-4.4 {AT_WORK} --reassignments 0 --crashes 1 --disks-replaced 1"),
    Row("4.4.0", f"kafka-4.4 {AT_WORK_LONGER} --reassignments 0 --min-insync 1 --late-news 1"),
    Row("4.4.0", f"kafka-4.4 {LOSING_SESSIONS} --reassignments 0 --min-insync 1 --copies 1 {SOME}"),
    Row("4.4.0", f"kafka-4.4 {AT_WORK_LONGER} --reassignments 0 --min-insync 1 --snapshots-loaded 1"),
    *(Row(release, f"{design} {WALKS}") for design, releases in RELEASES_BY_DESIGN.items() for release in releases),
)
WITH_VOTERS: Final = "--voters 2"
JOINING: Final = ("leader_adds_voter", "node_is_formatted_without_voters")
FINDING: Final = "observer_finds_leader"
RAFT_ROWS: Final = (
    *(Row(release, WITH_VOTERS, "kafka-raft") for release in ("4.4.0", "4.3.1", "4.2.2", "4.1.1", "4.0.1")),
    Row("3.9.1", f"kraft-3.9 {WITH_VOTERS}", "kafka-raft"),
    Row("4.4.0", f"{WITH_VOTERS} --restarts 1", "kafka-raft"),
    Row("4.4.0", f"{WITH_VOTERS} --lost-disks 1", "kafka-raft"),
    *(
        Row(release, f"kraft-853 {WITH_VOTERS}", "kafka-raft", JOINING)
        for release in ("4.4.0", "4.3.1", "4.2.2", "4.1.1", "4.0.1")
    ),
    Row("4.4.0", f"kraft-853 {WITH_VOTERS} --epochs 1 --log 2 --restarts 1", "kafka-raft", (*JOINING, FINDING)),
    Row("4.4.0", f"kraft-853 {WITH_VOTERS} --epochs 1 --log 2 --lost-disks 1", "kafka-raft", JOINING),
    Row("4.4.0", f"kraft-853 {WITH_VOTERS} --epochs 1 --snapshots 1", "kafka-raft", (*JOINING, FINDING)),
    Row(
        "4.4.0", "kraft-853 --voters 3 --epochs 1 --log 2 --joiners 1 --sample 400 --longest 60 --seed 1", "kafka-raft"
    ),
    *(
        Row(release, f"kraft-waiting-fetches {WITH_VOTERS}", "kafka-raft")
        for release in ("4.4.0", "4.3.1", "4.2.2", "4.1.1")
    ),
    Row("4.0.1", f"kraft-4.0-waiting-fetches {WITH_VOTERS}", "kafka-raft"),
    Row("3.9.1", f"kraft-3.9-waiting-fetches {WITH_VOTERS}", "kafka-raft"),
    Row("4.4.0", f"kraft-waiting-fetches {WITH_VOTERS} --restarts 1", "kafka-raft"),
    Row("4.4.0", f"kraft-waiting-fetches {WITH_VOTERS} --lost-disks 1", "kafka-raft"),
    Row(
        "4.4.0",
        "kraft-waiting-fetches --voters 3 --epochs 2 --log 2 --writes 1 --restarts 1 "
        "--sample 200 --longest 60 --seed 1",
        "kafka-raft",
    ),
    Row("4.4.0", f"kraft-late-requests {WITH_VOTERS}", "kafka-raft"),
    *(
        Row(release, f"kraft-late-requests {WITH_VOTERS} --epochs 1 --log 1 --writes 0 --restarts 1", "kafka-raft")
        for release in ("4.4.0", "4.3.1", "4.2.2", "4.1.1", "4.0.1")
    ),
)
ROWS_BY_PART: Final = {"kafka": ROWS, "kafka-raft": RAFT_ROWS}
"""The rows of each part of Kafka, by the word that names it (`isr_kafka.system.PARTS`)."""


def drive(row: Row) -> ConformanceResult:
    """Drive a row; InputError if it does not take an action that its settings switch on, or cannot be driven."""
    from insync_cli.conformance.conform import (
        USAGE,
        Options,
        adapter_properties,
        design_of_system,
        explainer_for,
        limits,
    )
    from isr_conform.conformance import conform
    from isr_conform.sut_client import SutFailure
    from isr_kafka import Unavailable
    from isr_kafka.system import PARTS, Kafka

    words = ["--sut", f"{row.part}={row.release}", *shlex.split(row.options)]
    invocation = options.read_options(Options, USAGE, [*design_of_system(words), *words])
    instance = registry.instance_of(invocation.world.design, invocation.world.constants)
    try:
        command = Kafka(row.release, part=PARTS[row.part]).command(properties=adapter_properties(instance.design))
        asked = limits(invocation.drive, None, lambda: False)
        result = conform(instance, command, asked, patience=300.0, explain=explainer_for(words[1]))
    except (Unavailable, SutFailure) as problem:
        raise InputError(f"Kafka {row.release}, {row.options}: {problem}") from None
    missing = [action for action in missing_actions(result) if action.partition(" ")[0] not in row.elsewhere]
    if missing:
        raise InputError(f"the row {row.options} takes no {', no '.join(missing)}: give it larger bounds")
    return result


def missing_actions(result: ConformanceResult) -> list[str]:
    """The actions that a setting of the run switches on and that were not taken, each with the setting."""
    from isr_conform.switches import switched_actions

    instance = registry.instance_of(registry.design_named(result.design), dict(result.constants))
    switched = switched_actions(instance)
    return [f"{action} ({setting})" for action, setting in switched.items() if not result.actions[action]]


def cells(row: Row, result: ConformanceResult) -> tuple[str, ...]:
    """A row of the table."""
    of_actions = len(registry.instance_of(registry.design_named(result.design), dict(result.constants)).actions)
    taken_count = sum(1 for n in result.actions.values() if n)
    letters = [f"{n} x {why.partition(':')[0]}" for why, n in result.known_differences.most_common()]
    count = sum(result.count.values())
    return (
        row.release,
        f"`{row.options}`",
        of(result.edges, result.of_edges) + (f", {n:,} not driven" if (n := result.cannot.total()) else ""),
        of(result.states, result.of_states),
        of(result.pairs, result.of_pairs),
        of(taken_count, of_actions),
        ", ".join([*([str(count)] if count or not letters else []), *letters]),
    )


def of(n: int, total: int | None) -> str:
    return f"{n:,}" if total is None else f"{n:,} of {total:,}"


def idle_actions(result: ConformanceResult) -> str:
    """Which actions the model has with the settings of a run, and the run does not take."""
    instance = registry.instance_of(registry.design_named(result.design), dict(result.constants))
    return ", ".join(f"`{a.name}`" for a in instance.actions if not result.actions[a.name]) or "none"


def untaken_lines(untaken_by_options: Mapping[str, str]) -> str:
    """The same of all rows, those in one line that take the same."""
    rows: dict[str, list[str]] = {}
    for of_row, names in untaken_by_options.items():
        rows.setdefault(names, []).append(of_row)
    lines = ["| options | not taken |", "|---|---|"]
    return "\n".join([*lines, *(f"| {'<br>'.join(of_rows)} | {names} |" for names, of_rows in rows.items())])


def page(rows: Sequence[Row], runs: Sequence[tuple[Row, ConformanceResult]], before: str = "") -> str:
    """Both tables as Markdown. A row that was not driven stays as it is in `before`, the tables until now."""
    driven_before, _, untaken_before = before.strip().partition("\n\n")
    lines = {cells_before[:2]: cells_before for cells_before in _body(driven_before)}
    lines |= {(row.release, f"`{row.options}`"): cells(row, result) for row, result in runs}
    left_out = {name: names for of_rows, names in _body(untaken_before) for name in of_rows.split("<br>")}
    left_out |= {f"`{row.options}`": idle_actions(result) for row, result in runs}
    kept = [lines[key] for row in rows if (key := (row.release, f"`{row.options}`")) in lines]
    head = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    driven = "\n".join([*head, *(f"| {' | '.join(line)} |" for line in kept)])
    options_kept = dict.fromkeys(line[1] for line in kept)
    return f"{driven}\n\n{untaken_lines({name: left_out[name] for name in options_kept})}"


def _body(table: str) -> list[tuple[str, ...]]:
    """The cells of a table in Markdown, without its head."""
    return [tuple(line.strip("| ").split(" | ")) for line in table.splitlines()[2:]]
