"""`insync audit`: what a cluster can lose, topic by topic, how, which settings prevent it, and how it is now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.clusters import audit_metrics, audit_text
from insync_cli.clusters.cluster_source import cluster_with_topics, described_cluster, kafka_release
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.options import Usage, group, option, repeated_option, seconds, several, switch
from insync_cli.terminal import Output
from isr_audit.answers import Answer, explored, read_table
from isr_audit.audit import AnswerSource, audit_rows
from isr_audit.cluster import Release
from isr_audit.condition import Ends, Trouble, conditions, ends_of
from isr_audit.questions import DECISIVE_VERDICTS
from isr_audit.releases import running
from isr_check.engine import Limits, Unsound

if TYPE_CHECKING:
    from rich.console import Console

    from isr_audit.questions import Question

EXAMPLE = """\
insync audit --describe topics.txt configs.txt server.properties
insync audit --bootstrap 127.0.0.1:9092 --html audit.html
insync audit --bootstrap broker:9093 --client client.properties --topic orders --markdown ticket.md"""
USAGE = Usage(
    "audit",
    "What your cluster can lose, which settings prevent it, and how its partitions are now. Exit code 0: fine; 1: at "
    "risk; 2: a partition has no leader or refuses writes; 20: not decided.",
    EXAMPLE,
)
SECONDS = 20.0


@attrs.frozen(kw_only=True)
class Options:
    describe: tuple[Path, ...] = several(
        "FILE", "what kafka-topics.sh, -configs.sh, -features.sh or -log-dirs.sh describe, or server.properties", Path
    )
    bootstrap: str | None = option("HOST:PORT", "ask this cluster, as an admin client", str)
    client: Path | None = option("FILE", "client.properties with security settings, for --bootstrap", Path)
    topics: tuple[str, ...] = repeated_option("T", "only this topic", str, name="topic")
    kafka: Release | None = option("VERSION", "the release that runs, where it is not told", kafka_release)
    elr: bool | None = switch("eligible leader replicas, where it is not told")
    watch: float | None = option("S", "again every S seconds, until Ctrl-C; the terminal gets what changed", seconds)
    seconds: float | None = option(
        "S",
        f"explore what is not stored for S seconds each (without it, {SECONDS:g}, and stored answers stand)",
        seconds,
    )
    markdown: Path | None = option("FILE", "the same for a ticket", Path)
    html: Path | None = option("FILE", "the same as one offline page, with the shortest way to each loss", Path)
    metrics: Path | None = option("FILE", "the same as metrics for Prometheus, replaced at once", Path)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    check(invocation)
    if invocation.watch is not None:
        return watch_cluster(invocation, invocation.watch)
    out, seen = invocation.output.console(), looked_at(invocation)
    if invocation.output.for_people:
        audit_text.show_now(out, seen)
    report = with_rows(seen, asking(invocation))
    tell(report, invocation)
    if invocation.output.for_people:
        audit_text.show_rows(out, report)
    return exit_code(report)


def answer_of(invocation: Options) -> audit_text.Audit:
    """The cluster as it is now, and what its topics may lose; nothing is printed but progress."""
    check(invocation)
    return with_rows(looked_at(invocation), asking(invocation))


def show(out: Console, report: audit_text.Audit) -> None:
    """All of an audit in words."""
    audit_text.show_now(out, report)
    audit_text.show_rows(out, report)


def asking(invocation: Options) -> AnswerSource:
    """The answers that are stored, and what explores others; each is explored once."""
    most = invocation.seconds or SECONDS
    return AnswerSource(stored_answers(invocation.seconds), lambda asked: explored_now(asked, most, invocation.output))


def looked_at(invocation: Options, before: Ends | None = None) -> audit_text.Audit:
    """The cluster as it is now, its topics not yet judged; `before`: where logs ended at earlier looks."""
    cluster = cluster_with_topics(
        described_cluster(invocation.bootstrap, invocation.client, invocation.describe), invocation.topics
    )
    return audit_text.Audit(
        cluster, running(cluster, invocation.kafka, invocation.elr), tuple(conditions(cluster, before))
    )


def with_rows(audit: audit_text.Audit, answers: AnswerSource) -> audit_text.Audit:
    """The same with what its topics may lose, which may have to be explored."""
    return attrs.evolve(audit, rows=tuple(audit_rows(audit.cluster, audit.runs, answers)))


def tell(report: audit_text.Audit, invocation: Options) -> None:
    """Write what files were asked for."""
    invocation.output.write(audit_text.document(report))
    if invocation.markdown is not None:
        terminal.write_text(invocation.markdown, audit_text.markdown(report))
    if invocation.metrics is not None:
        audit_metrics.write_metrics(invocation.metrics, audit_metrics.metrics(report, exit_code(report)))
    if invocation.html is not None:
        from insync_cli.clusters.audit_page import write_page

        write_page(report, invocation.html)


def watch_cluster(invocation: Options, every: float) -> int:
    """Audit again and again; the exit code is that of the last one."""
    out, before, code = invocation.output.console(), list[str](), Exit.INCONCLUSIVE
    ends: Ends = {}
    answers = asking(invocation)
    try:
        while True:
            try:
                report = with_rows(looked_at(invocation, ends), answers)
                ends = ends_of(report.cluster, ends)
                tell(report, invocation)
                lines, code = audit_text.brief(report), exit_code(report)
            except (UsageError, InputError) as problem:  # it may be there again the next time
                lines, code = [str(problem)], Exit.UNAVAILABLE
                if invocation.metrics is not None:
                    audit_metrics.write_metrics(invocation.metrics, audit_metrics.outcome(code))
            if invocation.output.for_people and lines != before:
                out.print(time.strftime("%Y-%m-%d %H:%M:%S"), style="bold")
                for line in lines:
                    terminal.print_wrapped(out, line, 2)
            before = lines
            time.sleep(every)
    except KeyboardInterrupt:
        return code


def check(invocation: Options) -> None:
    """UsageError for what makes no sense together, or cannot be written."""
    invocation.output.check()
    if invocation.bootstrap is None and not invocation.describe:
        raise UsageError("insync audit: give --describe FILE or --bootstrap HOST:PORT (see insync audit --help)")
    if invocation.client is not None and invocation.bootstrap is None:
        raise UsageError("--client is for --bootstrap")
    for file in (invocation.markdown, invocation.html, invocation.metrics):
        if file is not None:
            terminal.check_apart(file, invocation.describe)
            terminal.check_writable(file)
    if invocation.output.json is not None:
        terminal.check_apart(invocation.output.json, invocation.describe)


def stored_answers(seconds: float | None) -> list[Answer]:
    """The answers that come with the package; with time to explore, only those that are decided."""
    return [a for a in read_table() if seconds is None or a.verdict in DECISIVE_VERDICTS]


def explored_now(question: Question, most: float, output: Output) -> Answer | None:
    """A run that was not stored; None where the model cannot be asked so."""
    try:
        with output.ticker() as ticker:
            return explored(question, Limits(None, most), ticker)
    except Unsound:
        return None


def exit_code(report: audit_text.Audit) -> Exit:
    """For cron: what is broken now counts most, then what one failure may lose, then what was not decided or told."""
    rows, troubles = report.rows, {c.trouble for c in report.now}
    if troubles & {Trouble.OFFLINE, Trouble.UNDER_MINIMUM}:
        return Exit.UNAVAILABLE
    if Trouble.UNDER_REPLICATED in troubles or any(row.at_risk for row in rows):
        return Exit.AT_RISK
    undecided = Trouble.UNKNOWN in troubles or report.cluster.gaps or any(row.is_undecided for row in rows)
    return Exit.INCONCLUSIVE if undecided else Exit.HOLDS
