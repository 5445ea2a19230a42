"""The jobs of a check, in order; what the driver keeps is what each of them says in few words.

count      lines in each piece of each file
parse      lines to operations, shuffled by process; pair: operations to shares, kept in files
(prove)    only with transactions of unknown outcome: which of them were seen, told to their other partitions
judge      shares, shuffled by partition; edges kept in files
(cycles)   only where a cycle can be: edges and operations there, shuffled by stretch
measure    counts of latencies, faults and windows; gaps by ranges of time
"""

from __future__ import annotations

import json
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import attrs

from isr_anomalies import ANOMALIES, Anomaly, Answer, Claims
from isr_anomalies.checker import conclude, needs_graphs
from isr_anomalies.preconditions import NO_STEPS
from isr_anomalies.results import NoVerdict, Part, Tally
from isr_anomalies.times import no_verdict_on_progress, too_little
from isr_pipeline import session
from isr_pipeline.histories import chunks
from isr_pipeline.histories.availability import AvailabilityAnswer, Bucket, JudgementBasis, availability
from isr_pipeline.histories.cycles import Find, Select, Source, stretches
from isr_pipeline.histories.pairing import Pair, Parse, Summary
from isr_pipeline.histories.rows import Row, collect_rows, each, each_group, file_of, rows_of
from isr_pipeline.histories.shares import BLOCKS, Judge, PartitionJudgement, Terms, prove
from isr_pipeline.locations import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
LINES_PER_BUCKET = 500_000
LINES_PER_TASK = 500_000
KINDS = ("operations", "shares", "edges")

JobReport = Callable[[str, float], None]
"""Called after each job with its name and its seconds."""


class Unreadable(Exception):
    """A file is no history; the message says which file, and what is wrong."""

    def __init__(self, path: Path | Location, what: str) -> None:
        super().__init__(f"{path}, {what}")


@attrs.frozen
class CheckedHistory:
    """A history with the answer that the local checker would give."""

    path: Path | Location
    claims: Claims
    answer: Answer
    quotes: dict[int, str]
    """The text of the lines that witnesses quote."""


def _hear_nothing(_: str, __: float) -> None:
    pass


def check_files(
    spark: SparkSession,
    files: Sequence[Path | Location],
    folder: Path | Location | None = None,
    anomalies: tuple[Anomaly, ...] = ANOMALIES,
    claims: Callable[[Claims | None], Claims] = lambda said: said or Claims(),
    report_job: JobReport = _hear_nothing,
    tell: session.Tell = session.silent,
) -> list[CheckedHistory]:
    """Check all files at once, each a history of its own. Raises Unreadable, or OSError.

    `folder` is where tables go, for every executor to see: in a store, or in a folder that all of them have. Without
    one, all executors must be on this machine. `claims` makes of those in a file's header what counts. `report_job`
    hears of each job that is done, and `tell` of the tasks of those that are not.
    """
    with ExitStack() as closing:
        if folder is None:
            folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="insync-")))
        place = Location.of(folder)
        for kind in KINDS:
            (place / kind).delete_folder()
        closing.enter_context(session.plainly())
        return _Check(spark, list(files), place, anomalies, claims, report_job, tell).run(closing)


@attrs.define
class _Check:
    spark: SparkSession
    files: list[Path | Location]
    folder: Location
    anomalies: tuple[Anomaly, ...]
    claims_of: Callable[[Claims | None], Claims]
    report_job: JobReport
    tell: session.Tell
    buckets: dict[int, int] = attrs.field(factory=dict[int, int])
    lines: dict[int, int] = attrs.field(factory=dict[int, int])
    bucket_keys: dict[int, list[str]] = attrs.field(factory=dict[int, list[str]])
    """The buckets of each history that have operations, and shares of partitions."""
    summaries: dict[int, Summary] = attrs.field(factory=dict[int, Summary])
    claims: dict[int, Claims] = attrs.field(factory=dict[int, Claims])

    def run(self, closing: ExitStack) -> list[CheckedHistory]:
        pieces = self.time_job("count", self.pieces)
        tasks = max(4, min(400, sum(self.lines.values()) // LINES_PER_TASK))
        settings = {"spark.sql.shuffle.partitions": str(tasks), "spark.sql.execution.arrow.maxRecordsPerBatch": "256"}
        closing.enter_context(session.use_settings(self.spark, settings))
        self.time_job("parse", lambda: self.pair(pieces))
        judged = self.time_job("judge", self.judge)
        across = self.time_job("cycles", lambda: self.cycles(judged))
        figures = self.time_job("measure", self.measure)
        answers = {h: self.conclude(h, judged[h], across[h], figures[h]) for h in range(len(self.files))}
        quotes = self.time_job("quote", lambda: self.quotes(answers, pieces))
        return [CheckedHistory(path, self.claims[h], answers[h], quotes[h]) for h, path in enumerate(self.files)]

    def time_job(self, name: str, job: Callable[[], T]) -> T:
        begin = time.monotonic()
        with session.watch_jobs(self.spark, f"{name} {sum(self.lines.values()):,} lines", self.tell):
            answer = job()
        self.report_job(name, time.monotonic() - begin)
        return answer

    def pieces(self) -> list[chunks.Chunk]:
        """Divide all files into pieces, and number their lines."""
        places = list(enumerate(map(Location.of, self.files)))
        all_pieces = [piece for history, place in places for piece in chunks.chunks_of(history, place)]
        text = [piece for piece in all_pieces if not piece.parquet]
        counts: dict[tuple[int, int], int] = {}
        for row in collect_rows(each(self.spark, chunks.count, text)) if text else ():
            counts[row.history, int(row.key)] = int.from_bytes(row.payload, "little")
        numbered = chunks.number_lines(all_pieces, counts)
        for history in range(len(self.files)):
            self.lines[history] = sum(piece.lines for piece in numbered if piece.history == history)
            self.buckets[history] = 1 + self.lines[history] // LINES_PER_BUCKET
        return numbered

    def pair(self, pieces: list[chunks.Chunk]) -> None:
        """Write operations and the shares of partitions to files; keep the claims and faults of the histories."""
        parsed = each(self.spark, Parse(self.buckets), pieces)
        found: dict[int, list[Summary]] = {history: [] for history in range(len(self.files))}
        for row in collect_rows(each_group(parsed, Pair(self.folder))):
            found[row.history].append(cast("Summary", pickle.loads(row.payload)))
            self.bucket_keys.setdefault(row.history, []).append(row.key)
        for history, parts in found.items():
            problems = [part.problem for part in parts if part.problem]
            if problems:
                raise Unreadable(self.files[history], min(problems)[1])
            settings = next((part.settings for part in parts if part.settings), None)
            header = Claims(**settings) if settings else None  # type: ignore[arg-type]
            self.claims[history] = self.claims_of(header)
            self.summaries[history] = Summary(
                operations=sum(part.operations for part in parts),
                transactional=any(part.transactional for part in parts),
                several=any(part.several for part in parts),
                joint=any(part.joint for part in parts),
                ends_at=max((part.ends_at for part in parts), default=0),
                faults=tuple(fault for part in parts for fault in part.faults),
            )

    def shares(self) -> DataFrame:
        return each(
            self.spark, rows_of, [file for history in self.bucket_keys for file in self.bucket_files("shares", history)]
        )

    def judge(self) -> dict[int, dict[str, PartitionJudgement]]:
        """Check every partition."""
        names = tuple(anomaly.name for anomaly in self.anomalies)
        terms: dict[int, Terms] = {}
        for history, summary in self.summaries.items():
            per_block = 1 + self.lines[history] // BLOCKS
            claims = self.claims[history]
            terms[history] = Terms(claims, summary.transactional, names, per_block, needs_graphs(self.anomalies))
        shares = self.shares()
        joint = [str(history) for history, summary in self.summaries.items() if summary.joint]
        if joint:
            shares = shares.union(each_group(shares.where(f"history IN ({', '.join(joint)})"), prove))
        found: dict[int, dict[str, PartitionJudgement]] = {history: {} for history in self.summaries}
        for row in collect_rows(each_group(shares, Judge(self.folder, terms))):
            found[row.history][row.key] = cast("PartitionJudgement", pickle.loads(row.payload))
        return found

    def cycles(self, partition_results: dict[int, dict[str, PartitionJudgement]]) -> dict[int, dict[str, Tally]]:
        """Look for cycles in each stretch of blocks that partitions have named."""
        names = tuple(anomaly.name for anomaly in self.anomalies)
        tallies: dict[int, dict[str, Tally]] = {history: {} for history in partition_results}
        if not needs_graphs(self.anomalies):
            return tallies
        where = {
            history: stretches([one.blocks for one in parts.values()], 1 + self.lines[history] // BLOCKS)
            for history, parts in partition_results.items()
        }
        where = {history: one for history, one in where.items() if one.many}
        sources: list[Source] = []
        for history in where:
            edges = [name for name, one in partition_results[history].items() if one.edges]
            sources += [Source(history, p, file_of(self.folder, "edges", history, p), False) for p in edges]
            sources += [Source(history, "", file, True) for file in self.bucket_files("operations", history)]
        if sources:
            selected = each(self.spark, Select(where), sources)
            for row in collect_rows(each_group(selected, Find(self.claims, names))):
                for name, tally in cast("dict[str, Tally]", pickle.loads(row.payload)).items():
                    tallies[row.history].setdefault(name, Tally()).merge(tally)
        return tallies

    def bucket_files(self, kind: str, history: int) -> list[Location]:
        """The files of all buckets of a history."""
        return [
            file_of(self.folder, kind, history, bucket) for bucket in sorted(self.bucket_keys.get(history, ()), key=int)
        ]

    def measure(self) -> dict[int, AvailabilityAnswer]:
        buckets = [Bucket(h, file) for h in self.summaries for file in self.bucket_files("operations", h)]
        given = {h: JudgementBasis(self.claims[h], list(s.faults), s.ends_at) for h, s in self.summaries.items()}
        return availability(self.spark, buckets, given)

    def conclude(
        self,
        history: int,
        partition_results: dict[str, PartitionJudgement],
        cycles: dict[str, Tally],
        times: AvailabilityAnswer,
    ) -> Answer:
        """The verdicts of one history, put together as the local checker does."""
        summary, claims = self.summaries[history], self.claims[history]
        parts: dict[str, Part] = {}
        for anomaly in self.anomalies:
            if anomaly.across is None:
                continue
            part = parts[anomaly.name] = Part(cycles.get(anomaly.name, Tally()))
            if anomaly.name == "no-progress":
                part.missing = no_verdict_on_progress(list(summary.faults), times.progress, claims)
                for finding in too_little(times.progress, claims):
                    part.tally.add(finding)
            elif anomaly.name == "unavailability":
                part.tally = times.too_long
                part.missing = (
                    None
                    if any(one.result.counts.attempted for one in partition_results.values())
                    else NoVerdict(True, "no sends")
                )
            elif anomaly.name == "ordered-cycle":
                part.missing = None if summary.operations else NoVerdict(True, "no operation at all")
            else:
                part.missing = None if summary.several else NoVerdict(True, NO_STEPS)
        results = [partition_results[name].result for name in sorted(partition_results)]
        return conclude(self.anomalies, claims, results, parts, times.figures, summary.operations)

    def quotes(self, answers: dict[int, Answer], pieces: list[chunks.Chunk]) -> dict[int, dict[int, str]]:
        """The text of the lines that witnesses quote."""
        lines = {
            history: frozenset(n for j in answer.judgements for found in j.witnesses for n in found.lines)
            for history, answer in answers.items()
        }
        near = [
            piece for piece in pieces if any(piece.line <= n < piece.line + piece.lines for n in lines[piece.history])
        ]
        quotes: dict[int, dict[int, str]] = {history: {} for history in answers}
        for row in collect_rows(each(self.spark, _Quote(lines), near)) if near else ():
            quotes[row.history] |= dict(cast("list[tuple[int, str]]", json.loads(row.payload)))
        return quotes


@attrs.frozen
class _Quote:
    lines: dict[int, frozenset[int]]

    def __call__(self, chunk: chunks.Chunk) -> Iterator[Row]:
        wanted = self.lines[chunk.history]
        found = {line: text.strip() for line, text in chunks.texts(chunk) if line in wanted}
        if found:
            yield Row(chunk.history, "", json.dumps(list(found.items())).encode())
