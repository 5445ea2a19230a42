"""`insync audit`: what a cluster can lose, topic by topic, how, which settings prevent it, and how it is now."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.clusters import audit_brokers, audit_metrics, audit_short, audit_text
from insync_cli.clusters.audit_server import Board, address, http_server
from insync_cli.clusters.audit_short import exit_code
from insync_cli.clusters.cluster_source import cluster_with_topics, described_cluster, kafka_release, with_racks
from insync_cli.exits import Exit, InputError, Unavailable, UsageError
from insync_cli.options import Usage, flag, group, option, repeated_option, seconds, several, switch
from insync_cli.terminal import Output
from isr_audit.answers import Answer, explored, read_table
from isr_audit.audit import AnswerSource
from isr_audit.cluster import Release
from isr_audit.condition import Ends, ends_of
from isr_audit.questions import DECISIVE_VERDICTS
from isr_audit.releases import running
from isr_audit.report import Audit, audit_now, with_rows
from isr_check.engine import Limits, Unsound

if TYPE_CHECKING:
    from rich.console import Console

    from isr_audit.questions import Question
    from isr_drill.outlook import Outlook

EXAMPLE = """\
insync audit --describe topics.txt configs.txt server.properties
insync audit --bootstrap 127.0.0.1:9092 --html audit.html
insync audit --bootstrap broker:9093 --client client.properties --topic orders --markdown ticket.md"""
USAGE = Usage(
    "audit",
    "What your cluster can lose, which settings prevent it, and how its partitions are now. Exit code 0: fine; 1: at "
    "risk; 2: a partition has no leader or refuses writes, or the cluster does not answer; 20: not decided.",
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
    racks: Path | None = option("FILE", "lines of a broker and its rack, where they are not told otherwise", Path)
    topics: tuple[str, ...] = repeated_option("T", "only this topic", str, name="topic")
    kafka: Release | None = option("VERSION", "the release that runs, where it is not told", kafka_release)
    elr: bool | None = switch("eligible leader replicas, where it is not told")
    kraft: bool | None = switch("KRaft, where it is not told; off is ZooKeeper")
    commands: bool = flag("what to type for each change, in which order, and when not")
    details: bool = flag("each way to a loss, every note, and every run")
    brokers: bool = flag("which brokers may be restarted now, and what the next failure of each does")
    watch: float | None = option("S", "again every S seconds, until Ctrl-C; the terminal gets what changed", seconds)
    serve: tuple[str, int] | None = option(
        "HOST:PORT", "with --watch: the page at /, metrics at /metrics, JSON at /audit.json", address
    )
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
    if invocation.watch is not None:
        check(invocation)
        return watch_cluster(invocation, invocation.watch)
    report = answer_of(invocation)
    whose = tuple(outlooks_of(report, invocation)) if invocation.brokers else None
    tell(report, invocation, whose)
    if invocation.output.for_people:
        show(invocation.output.console(), report, whose, commands=invocation.commands, details=invocation.details)
    return exit_code(report)


def outlooks_of(report: Audit, invocation: Options) -> Iterable[Outlook]:
    """What the next deed at each broker does, with progress."""
    from isr_drill.outlook import outlooks

    with invocation.output.ticker() as ticker, ticker.meanwhile("brokers") as say:
        total = len(report.cluster.living or report.cluster.broker_ids)
        for done, outlook in enumerate(outlooks(report.cluster, report.runs, invocation.seconds or SECONDS)):
            say("brokers", done, total)
            yield outlook


def answer_of(invocation: Options) -> Audit:
    """The cluster as it is now, and what its topics may lose; nothing is printed but progress."""
    check(invocation)
    return with_rows(looked_at(invocation), asking(invocation))


def show(
    out: Console,
    report: Audit,
    whose: Sequence[Outlook] | None = None,
    *,
    commands: bool = False,
    details: bool = False,
) -> None:
    """What matters of an audit, in words, what else was asked for, and the line that ends it. `whose`: of brokers."""
    audit_short.show(out, report)
    if whose is not None:
        audit_brokers.show(out, whose, len(report.cluster.omissions))
    if commands:
        audit_short.show_commands(out, report)
    if details:
        audit_text.show_details(out, report)
    out.print(audit_text.result_line(report), soft_wrap=True)


def asking(invocation: Options) -> AnswerSource:
    """The answers that are stored, and what explores others; each is explored once."""
    most = invocation.seconds or SECONDS
    return AnswerSource(stored_answers(invocation.seconds), lambda asked: explored_now(asked, most, invocation.output))


def looked_at(invocation: Options, before: Ends | None = None) -> Audit:
    """The cluster as it is now, its topics not yet judged; `before`: where logs ended at earlier looks."""
    cluster = cluster_with_topics(
        described_cluster(invocation.bootstrap, invocation.client, invocation.describe), invocation.topics
    )
    cluster = with_racks(cluster, invocation.racks)
    runs = running(cluster, invocation.kafka, invocation.elr, invocation.kraft)
    return audit_now(cluster, runs, before, invocation.bootstrap or "")


def document(report: Audit, whose: Sequence[Outlook] | None) -> dict[str, object]:
    """Everything for programs; `whose`: of brokers, where these were asked about."""
    of_brokers = {} if whose is None else {"brokers": audit_brokers.document(whose)}
    return {**audit_text.document(report), **of_brokers}


def tell(report: Audit, invocation: Options, whose: Sequence[Outlook] | None = None) -> None:
    """Write what files were asked for."""
    invocation.output.write(document(report, whose))
    if invocation.markdown is not None:
        ticket = "" if whose is None else audit_brokers.markdown(whose, len(report.cluster.omissions))
        terminal.write_text(invocation.markdown, audit_text.markdown(report) + ticket)
    if invocation.metrics is not None:
        audit_metrics.write_metrics(invocation.metrics, audit_metrics.metrics(report, exit_code(report)))
    if invocation.html is not None:
        from insync_cli.clusters.audit_page import write_page

        write_page(report, invocation.html, whose)


def watch_cluster(invocation: Options, every: float) -> int:
    """Audit again and again; the exit code is that of the last one."""
    board = Board()
    if invocation.serve is None:
        return look_again(invocation, every, board)
    with http_server(board, invocation.serve) as url:
        if invocation.output.for_people:
            invocation.output.console().print(f"serving {url}, {url}metrics and {url}audit.json", soft_wrap=True)
        return look_again(invocation, every, board)


def look_again(invocation: Options, every: float, board: Board) -> int:
    """The loop of it. What is http_server is put on the board."""
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
                if invocation.serve is not None:
                    board.publish(report)
            except (UsageError, InputError, Unavailable) as problem:  # it may be there again the next time
                lines, code = [str(problem)], Exit.UNAVAILABLE
                board.fail(str(problem), code)
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
    if invocation.brokers and invocation.watch is not None:
        raise UsageError("--brokers looks once; leave out --watch")
    if invocation.serve is not None and invocation.watch is None:
        raise UsageError("--serve goes with --watch S, which says how often to look")
    sources = (*invocation.describe, *([invocation.racks] if invocation.racks is not None else []))
    for file in (invocation.markdown, invocation.html, invocation.metrics):
        if file is not None:
            terminal.check_apart(file, sources)
            terminal.check_writable(file)
    if invocation.output.json is not None:
        terminal.check_apart(invocation.output.json, sources)


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
