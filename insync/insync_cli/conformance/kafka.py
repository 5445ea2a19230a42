"""insync kafka: which releases of Apache Kafka can be driven, and what is on this machine for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, terminal, tracefiles
from insync_cli.exits import Exit, InputError
from insync_cli.options import Usage, argument, choice, flag, group, option, optional_argument
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from isr_lang import Instance
    from isr_trace.trace import Trace

BEGIN, END = "<!-- stories: written by insync kafka -->", "<!-- end of stories -->"
EXAMPLE = """insync kafka versions
insync kafka fetch 4.4.0
insync kafka stories --store --write docs/kafka-classes.md
insync kafka rows --write docs/kafka-classes.md
insync kafka rows --part kafka-raft --write docs/kraft-classes.md"""
USAGE = Usage("kafka", "Apache Kafka's own code: what can be driven, and fetching it.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    what: str = argument(
        "WHAT",
        "versions: which releases there are; fetch: get one; stories: tell them the stored counterexamples; "
        "rows: drive what the table of docs/kafka-classes.md says",
        str,
        choices=("versions", "fetch", "stories", "rows"),
    )
    release: str | None = optional_argument(
        "RELEASE",
        "which one; fetch: the newest if none is named, stories and rows: all; rows of others stay as they are written",
        str,
    )
    corpus: Path = option("DIR", "stories: the folder of cases", Path, tracefiles.CORPUS)
    part: str = choice(("kafka", "kafka-raft"), "rows: of which part of Kafka", "kafka")
    store: bool = flag("stories: keep the table for the report")
    write: Path | None = option("PAGE", "stories, rows: put the table between the marks of a page", Path)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    invocation.output.check()
    match invocation.what:
        case "fetch":
            return fetched(invocation)
        case "stories":
            return tell_stories(invocation)
        case "rows":
            return drive_rows(invocation)
        case _:
            return list_releases(invocation)


def fetched(invocation: Options) -> int:
    from isr_kafka import RELEASES, Unavailable, jars, java, javac, tools

    release = invocation.release or RELEASES[0]
    try:
        _ = java(), javac(), tools()
        found = jars(release)
    except Unavailable as problem:
        raise InputError(str(problem)) from None
    report = {"schema": "insync/kafka/1", "release": release, "jars": len(found)}
    line = f"insync kafka: {release}, {len(found)} jars in {found[0].parent}"
    invocation.output.answer(report, lambda out: None, line)
    return Exit.HOLDS


def list_releases(invocation: Options) -> int:
    from isr_kafka import RELEASES
    from isr_kafka.jars import cached
    from isr_kafka.system import DRIVEN_RELEASES

    rows = [
        (release, "fetched" if cached(release) else "by Maven", "yes" if release in DRIVEN_RELEASES else "jars only")
        for release in RELEASES
    ]
    report = {
        "schema": "insync/kafka/1",
        "releases": [{"release": r, "fetched": f == "fetched", "driven": d == "yes"} for r, f, d in rows],
    }
    invocation.output.answer(
        report,
        lambda out: terminal.print_table(out, ("release", "jars", "can be driven"), rows),
        f"insync kafka: {len(DRIVEN_RELEASES)} releases can be driven, {DRIVEN_RELEASES[0]} the newest",
    )
    return Exit.HOLDS


def tell_stories(invocation: Options) -> int:
    """Case x release: which release can still take the steps of which counterexample."""
    from isr_conform.stories import tell_all
    from isr_conform.sut_client import SutFailure
    from isr_kafka import Unavailable
    from isr_kafka.system import DRIVEN_RELEASES, Kafka
    from isr_report.sections.kafka_stories import SCHEMA, STORIES_FILE

    stories = [(name, instance, trace) for name, instance, trace in cases(tracefiles.corpus(invocation.corpus))]
    releases = [invocation.release] if invocation.release is not None else list(DRIVEN_RELEASES)
    columns: list[list[str]] = []
    for release in releases:
        try:
            command = Kafka(release).command(properties={"insync.exact": "true"})
            columns.append([told.cell for told in tell_all(command, stories, patience=300.0)])
        except (Unavailable, SutFailure) as problem:
            raise InputError(f"Kafka {release}: {problem}") from None
    rows = [(name, *cells) for (name, _, _), *cells in zip(stories, *columns, strict=True)]
    stories_told = [dict(zip(["case", *releases], row, strict=True)) for row in rows]
    if invocation.write is not None:
        terminal.write_text(invocation.write, written_into(invocation.write, table(stories_told)))
    report = {"schema": SCHEMA, "stories": stories_told}
    if invocation.store:
        terminal.write_text(STORIES_FILE, json.dumps(report, indent=1) + "\n")
    invocation.output.answer(
        report,
        lambda out: terminal.print_table(out, ("case", *releases), rows),
        f"insync kafka: {len(rows)} stories told to {len(releases)} releases",
    )
    return Exit.HOLDS


def drive_rows(invocation: Options) -> int:
    """What was driven of Kafka's classes, each row by its options."""
    from insync_cli.conformance import kafka_rows

    rows_of_part = kafka_rows.ROWS_BY_PART[invocation.part]
    chosen = [row for row in rows_of_part if invocation.release in (None, row.release)]
    if not chosen:
        raise InputError(f"no row is of Kafka {invocation.release}")
    runs = [(row, kafka_rows.drive(row)) for row in chosen]
    if invocation.write is not None:
        marks = (kafka_rows.BEGIN, kafka_rows.END)
        _, tables_before, _ = page_parts(invocation.write, marks)
        tables = kafka_rows.page(rows_of_part, runs, tables_before)
        terminal.write_text(invocation.write, written_into(invocation.write, tables, marks))
    rows = [kafka_rows.cells(row, result) for row, result in runs]
    differing = [row.options for row, result in runs if not result.conforms]
    report = {
        "schema": "insync/kafka/1",
        "rows": [dict(zip(kafka_rows.HEAD, row, strict=True)) for row in rows],
    }
    invocation.output.answer(
        report,
        lambda out: terminal.print_table(out, kafka_rows.HEAD, rows),
        f"insync kafka: {len(rows)} rows driven, {len(differing)} with a difference",
    )
    return Exit.SAFETY if differing else Exit.HOLDS


def cases(corpus: Path) -> list[tuple[str, Instance, Trace]]:
    """What is told: each stored trace as it is, or as the release has it."""
    from insync_cli.conformance.released_traces import as_released, needs_release

    stories: list[tuple[str, Instance, Trace]] = []
    for path in sorted(corpus.glob("*/trace.itf.json")):
        trace = tracefiles.load(path)
        if needs_release(trace):
            stories.append((path.parent.name, *as_released(trace)))
            continue
        stories.append(
            (path.parent.name, registry.instance_of(registry.design_named(trace.design), trace.constants), trace)
        )
    if not stories:
        raise InputError(f"{corpus} has no cases: no */trace.itf.json")
    return stories


def table(stories_told: Sequence[Mapping[str, str]]) -> str:
    """The table in Markdown; releases that say the same of every case share a column."""
    from isr_report.sections.kafka_stories import columns

    by_heading = columns(stories_told)
    head = f"| case | {' | '.join(by_heading)} |\n|{'---|' * (1 + len(by_heading))}"
    rows = (" | ".join((row["case"], *(row[release] for release in by_heading.values()))) for row in stories_told)
    return "\n".join([head, *(f"| {row} |" for row in rows)])


def page_parts(page: Path, marks: tuple[str, str]) -> tuple[str, str, str]:
    """What a page has before its marks, between them and after them; InputError where it has none."""
    begin, end = marks
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    between, ended, after = rest.partition(end)
    if not found or not ended:
        raise InputError(f"{page} has no {begin} ... {end}")
    return before, between, after


def written_into(page: Path, table_text: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with the table between its marks."""
    begin, end = marks
    before, _, after = page_parts(page, marks)
    return f"{before}{begin}\n\n{table_text}\n\n{end}{after}"
