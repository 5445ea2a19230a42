"""`insync history`: what clients did and saw, checked for the anomalies that a log must not show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import attrs

from insync_cli import on_spark, options, places, terminal
from insync_cli.clusters import history_spark, history_text
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from insync_cli.options import (
    Usage,
    arguments,
    choice,
    command,
    flag,
    group,
    option,
    positive,
    repeated_option,
    seconds,
    switch,
)
from insync_cli.progress import Tell, silent
from insync_cli.terminal import QuietOutput
from isr_anomalies import (
    ANOMALIES,
    Answer,
    Claims,
    Item,
    MalformedHistory,
    Verdict,
    check,
    pair_operations,
    read_edn,
    read_json,
)
from isr_anomalies.read_json import checked_claims, paused_garbage_collection

if TYPE_CHECKING:
    from isr_anomalies import Anomaly, History
    from isr_pipeline.locations import Location

EXAMPLE = """\
insync history run/history.jsonl
insync history jepsen/history.edn --isolation read_committed --json -
insync history runs/*.jsonl --engine spark --out tables
insync history --list"""

NANOSECONDS = 1_000_000_000
WORST_FIRST = (Exit.SAFETY, Exit.INCONCLUSIVE, Exit.UNCOVERED, Exit.HOLDS)
USAGE = Usage(
    "history", "Check what clients did and saw for the anomalies of docs/history.md; each file is a history.", EXAMPLE
)


@attrs.frozen(kw_only=True)
class ClaimOptions:
    """Claims of the command line, which count more than those of a file."""

    acks: str | None = choice(("0", "1", "all", "-1"), "acks of the producers; -1 is all")
    isolation: str | None = choice(("read_uncommitted", "read_committed"), "isolation.level of the consumers")
    idempotence: bool | None = switch("producers are idempotent")
    exactly_once: bool | None = switch("consumers commit their offsets in transactions")
    unclean: bool | None = switch("unclean.leader.election.enable")
    min_insync: int | None = option("N", "min.insync.replicas", positive)
    retention: bool | None = switch("the oldest records may be deleted; off: every log begins at offset 0")


@attrs.frozen(kw_only=True)
class Bounds:
    """How long a delay may be before it is an anomaly."""

    progress_acks: int | None = option("N", "so many acks after a healing", positive)
    progress_within: float | None = option("S", "in so many seconds; without it, 30", seconds)
    max_lag: float | None = option("S", "a longer lag is a finding; without it, lag is only measured", seconds)
    max_unavailable: float | None = option("S", "the same of acknowledgements", seconds)


@attrs.frozen(kw_only=True)
class Options:
    files: tuple[Path | Location, ...] = arguments(
        "FILE", "JSON lines, or EDN of Jepsen's kafka workload (.edn); may be s3://...", places.place
    )
    list: bool = flag("the table of anomalies, and nothing else")
    anomaly: tuple[str, ...] = repeated_option("A", "look for this one only", str)
    claim_options: ClaimOptions = group(
        ClaimOptions, "claims", "instead of those in the file; what nobody says is Kafka's default"
    )
    bounds: Bounds = group(Bounds, "limits")
    spark: history_spark.OnSpark = group(history_spark.OnSpark, "large histories (docs/pipeline.md)")
    output: QuietOutput = group(QuietOutput)
    command: tuple[str, ...] = command()

    @property
    def claims(self) -> dict[str, object]:
        """What the command line claims, times in nanoseconds."""
        told = {**attrs.asdict(self.claim_options), **attrs.asdict(self.bounds)}
        told["acks"] = options.KAFKA_SPELLINGS["acks"].get(self.claim_options.acks or "", self.claim_options.acks)
        return {
            name: round(value * NANOSECONDS) if isinstance(value, float) else value
            for name, value in told.items()
            if value is not None
        }


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    output = invocation.output
    if invocation.list:
        if output.for_people:
            history_text.print_list(output.console())
        output.write({"schema": "insync/anomalies/1", "anomalies": history_text.anomaly_entries()})
        return Exit.HOLDS
    if not invocation.files:
        raise UsageError("insync history: a FILE is required, or --list (see insync history --help)")
    anomalies = anomalies_of(invocation.anomaly)
    output.check()
    history_spark.check(invocation.spark)
    check_free(invocation.files, output.json)
    reports: list[history_text.Report] = []
    codes: list[Exit] = []
    for path, report, code in judgements(anomalies, invocation):
        reports.append(report)
        if output.json is None:
            places.write_json(beside(path), report)
        if output.for_people:
            written = None if output.json else beside(path)
            history_text.render(output.console(), report, written, quiet=output.quiet)
        codes.append(code)
    output.write(reports[0] if len(reports) == 1 else reports)
    return next(code for code in WORST_FIRST if code in codes)


def judgements(
    anomalies: tuple[Anomaly, ...], invocation: Options
) -> Iterator[tuple[Path | Location, history_text.Report, Exit]]:
    """Each file with the report on it, and the exit code of that."""
    for path, answer, claims, quotes in answers(anomalies, invocation):
        report = history_text.report(path, answer, claims, quotes, invocation.command)
        yield path, report, exit_code(answer, by_name=bool(invocation.anomaly))


def answers(
    anomalies: tuple[Anomaly, ...], invocation: Options
) -> Iterator[tuple[Path | Location, Answer, Claims, dict[int, str]]]:
    """Each file's verdicts with the claims that they follow from, and the lines that witnesses point to."""
    if invocation.spark.engine == on_spark.SPARK:
        claimed = partial(checked_claims, 0, invocation.claims)
        for one in history_spark.check_histories(
            invocation.files, anomalies, claimed, invocation.spark, invocation.output.ticker()
        ):
            yield one.path, one.answer, one.claims, one.quotes
        return
    for path in invocation.files:
        with paused_garbage_collection(), invocation.output.ticker().meanwhile(f"reading {path}") as tell:
            history = read_history_file(path, invocation, tell)
            answer = check(history, anomalies, partial(tell, f"questions about {path}"))
        yield path, answer, history.claims, quotes_of(path, answer)


def anomalies_of(names: Sequence[str]) -> tuple[Anomaly, ...]:
    known = {anomaly.name: anomaly for anomaly in ANOMALIES} | {str(anomaly.number): anomaly for anomaly in ANOMALIES}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no anomaly '{name}'{did_you_mean(name, known)} (insync history --list)")
    asked = {known[name].number for name in names}
    return tuple(anomaly for anomaly in ANOMALIES if not asked or anomaly.number in asked)


def beside(path: Path | Location) -> Path | Location:
    """history.json beside history.jsonl or history.edn; never the history itself."""
    return places.with_suffix(path, ".verdict.json" if places.suffix(path) == ".json" else ".json")


def check_free(histories: Sequence[Path | Location], target: str | None) -> None:
    """UsageError where a report would replace what insync history did not write, or that of another of the files.

    The name of a report is derived from that of its history, so what has it may be somebody's own. `target`: that of
    the command line, which may be anything but a history.
    """
    if target is not None:
        terminal.check_apart(target, histories)
        return
    history_by_report: dict[str, Path | Location] = {}
    for path in histories:
        report = beside(path)
        other = history_by_report.setdefault(str(report), path)
        if other != path:
            raise UsageError(f"{other} and {path} would both be reported in {report}: give --json FILE")
        if not is_report_or_missing(report):
            raise UsageError(f"{report} is there, and insync history did not write it: give --json FILE")


def is_report_or_missing(place: Path | Location) -> bool:
    """Whether nothing is lost where a report is written there: there is nothing, or an earlier report."""
    try:
        with places.text_of(place) as file:
            return re.match(r'\s*\{\s*"schema": "insync/history/', file.read(LONGEST_HEAD)) is not None
    except FileNotFoundError:
        return True
    except UnicodeDecodeError:
        return False
    except OSError:
        return not isinstance(place, Path) or not place.exists()


LONGEST_HEAD = 200
"""Characters within which a report says what it is."""


def read_history_file(path: Path | Location, invocation: Options, tell: Tell = silent) -> History:
    if places.suffix(path) == ".parquet":
        raise UsageError(f"{path}: a history in Parquet is for --engine {on_spark.SPARK}")
    try:
        with places.text_of(path) as file:
            items = iter(read_edn(file.read())) if is_edn(path, file) else read_json(_counted_lines(file, path, tell))
            return pair_operations(with_claims(items, invocation.claims))
    except OSError as problem:
        raise InputError(f"cannot read {path}: {terminal.reason(problem)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None
    except MalformedHistory as problem:
        raise InputError(f"{path}, {problem}") from None


def _counted_lines(lines: Iterable[str], path: Path | Location, tell: Tell) -> Iterator[str]:
    """The lines of a file, counted by their size."""
    done, size = 0, places.size(path)
    for line in lines:
        done += len(line)
        tell(f"bytes of {path}", done, size)
        yield line


def is_edn(path: Path | Location, file: TextIO) -> bool:
    """Whether a file is EDN: by its suffix, or else by its first key, which JSON quotes and EDN writes as a keyword."""
    suffix = places.suffix(path)
    if suffix in (".edn", ".jsonl", ".ndjson", ".json"):
        return suffix == ".edn"
    start = file.read(4096).lstrip()
    file.seek(0)
    return start[:1] in "[;#" or start[1:].lstrip()[:1] == ":"


def with_claims(items: Iterator[Item | Claims], claims: dict[str, object]) -> Iterator[Item | Claims]:
    """The items of a file; claims of the command line count more than those of its header."""
    yield checked_claims(0, claims)
    for item in items:
        yield checked_claims(0, claims, item) if isinstance(item, Claims) else item


def quotes_of(path: Path | Location, answer: Answer) -> dict[int, str]:
    """The lines that witnesses point to, from a second pass over the file."""
    lines = {line for judgement in answer.judgements for found in judgement.witnesses for line in found.lines}
    if not lines:
        return {}
    with suppress(OSError), places.text_of(path) as file:
        return {number: text.strip() for number, text in enumerate(file, 1) if number in lines}
    return {}


def exit_code(answer: Answer, *, by_name: bool) -> Exit:
    """12 if anything is violated; no answer is no success; what is vacuous counts where it was asked for."""
    words = [judgement.verdict for judgement in answer.judgements]
    if Verdict.VIOLATED in words:
        return Exit.SAFETY
    if Verdict.UNKNOWN in words:
        return Exit.INCONCLUSIVE
    vacuous = answer.verdict is Verdict.VACUOUS or (by_name and Verdict.VACUOUS in words)
    return Exit.UNCOVERED if vacuous else Exit.HOLDS
