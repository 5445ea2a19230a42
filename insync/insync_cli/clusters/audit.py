"""`insync audit`: what a cluster can lose, topic by topic, how, which settings prevent it, and how it is now."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.clusters import audit_metrics, audit_text
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from insync_cli.options import Usage, group, option, repeated, seconds, several, switch
from insync_cli.terminal import Output
from isr_audit.answers import Answer, explored, read_table
from isr_audit.audit import Answers, Row, audited
from isr_audit.cluster import Cluster, merged
from isr_audit.condition import Condition, Ends, Trouble, conditions, ends_of
from isr_audit.descriptions import read_description
from isr_audit.live import Unreachable, client_settings, read_cluster
from isr_audit.live_replicas import with_replicas
from isr_audit.questions import DECIDED
from isr_audit.releases import Release, release_of, running
from isr_check.engine import Limits, Unsound

if TYPE_CHECKING:
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


def kafka_release(text: str) -> Release:
    """A release as Kafka numbers them."""
    found = release_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"a release of Kafka such as 4.1.1, not {text}")
    return found


@attrs.frozen(kw_only=True)
class Options:
    describe: tuple[Path, ...] = several(
        "FILE", "what kafka-topics.sh, -configs.sh, -features.sh or -log-dirs.sh describe, or server.properties", Path
    )
    bootstrap: str | None = option("HOST:PORT", "ask this cluster, as an admin client", str)
    client: Path | None = option("FILE", "client.properties with security settings, for --bootstrap", Path)
    topics: tuple[str, ...] = repeated("T", "only this topic", str, name="topic")
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
    given = options.read(Options, USAGE, argv)
    check(given)
    if given.watch is not None:
        return watched(given, given.watch)
    out, seen = given.output.console(), looked_at(given)
    if given.output.for_people:
        audit_text.show_now(out, seen)
    report = judged(seen, asking(given))
    tell(report, given)
    if given.output.for_people:
        audit_text.show_rows(out, report)
    return exit_code(report.rows, report.now)


def asking(given: Options) -> Answers:
    """The answers that are stored, and what explores others; each is explored once."""
    most = given.seconds or SECONDS
    return Answers(stored(given.seconds), lambda asked: explored_now(asked, most, given.output))


def looked_at(given: Options, before: Ends | None = None) -> audit_text.Audit:
    """The cluster as it is now, its topics not yet judged; `before`: where logs ended at earlier looks."""
    cluster = chosen(described(given), given.topics)
    return audit_text.Audit(cluster, running(cluster, given.kafka, given.elr), tuple(conditions(cluster, before)))


def judged(seen: audit_text.Audit, answers: Answers) -> audit_text.Audit:
    """The same with what its topics may lose, which may have to be explored."""
    return attrs.evolve(seen, rows=tuple(audited(seen.cluster, seen.runs, answers)))


def tell(report: audit_text.Audit, given: Options) -> None:
    """Write what files were asked for."""
    given.output.write(audit_text.document(report))
    if given.markdown is not None:
        terminal.write_text(given.markdown, audit_text.markdown(report))
    if given.metrics is not None:
        audit_metrics.write_metrics(given.metrics, audit_metrics.metrics(report, exit_code(report.rows, report.now)))
    if given.html is not None:
        from insync_cli.clusters.audit_page import write_page

        write_page(report, given.html)


def watched(given: Options, every: float) -> int:
    """Audit again and again; the exit code is that of the last one."""
    out, before, code = given.output.console(), list[str](), Exit.INCONCLUSIVE
    ends: Ends = {}
    answers = asking(given)
    try:
        while True:
            try:
                report = judged(looked_at(given, ends), answers)
                ends = ends_of(report.cluster, ends)
                tell(report, given)
                lines, code = audit_text.brief(report), exit_code(report.rows, report.now)
            except (UsageError, InputError) as problem:  # it may be there again the next time
                lines, code = [str(problem)], Exit.UNAVAILABLE
                if given.metrics is not None:
                    audit_metrics.write_metrics(given.metrics, audit_metrics.outcome(code))
            if given.output.for_people and lines != before:
                out.print(time.strftime("%Y-%m-%d %H:%M:%S"), style="bold")
                for line in lines:
                    terminal.print_wrapped(out, line, 2)
            before = lines
            time.sleep(every)
    except KeyboardInterrupt:
        return code


def check(given: Options) -> None:
    """UsageError for what makes no sense together, or cannot be written."""
    given.output.check()
    if given.bootstrap is None and not given.describe:
        raise UsageError("insync audit: give --describe FILE or --bootstrap HOST:PORT (see insync audit --help)")
    if given.client is not None and given.bootstrap is None:
        raise UsageError("--client is for --bootstrap")
    for file in (given.markdown, given.html, given.metrics):
        if file is not None:
            terminal.check_writable(file)


def described(given: Options) -> Cluster:
    """What the cluster, or the files, tell; files add to what the cluster tells."""
    parts: list[Cluster] = []
    if given.bootstrap is not None:
        try:
            client = client_settings(_text(given.client)) if given.client is not None else {}
            parts.append(with_replicas(read_cluster(given.bootstrap, client), given.bootstrap, client))
        except Unreachable as problem:
            raise UsageError(f"no answer from the cluster: {problem}") from None
        except ValueError as problem:
            raise InputError(f"{given.client}: {problem}") from None
    for file in given.describe:
        told = read_description(_text(file), str(file))
        if told is None:
            raise InputError(
                f"{file}: nothing in it is recognised; give what kafka-topics.sh --describe, kafka-configs.sh "
                "--describe, kafka-features.sh describe or kafka-log-dirs.sh --describe print, or a server.properties"
            )
        parts.append(told)
    return merged(parts)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"cannot read {file}: {terminal.reason(problem)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not text in UTF-8") from None


def chosen(cluster: Cluster, names: Sequence[str]) -> Cluster:
    """The cluster with these topics only. Topics of which only settings are told cannot be judged and are left out."""
    known = [t.name for t in cluster.topics]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no topic '{name}'{did_you_mean(name, known)}")
    topics = tuple(
        attrs.evolve(t, partitions=tuple(p for p in t.partitions if p.replicas))
        for t in cluster.topics
        if t.replicas and (not names or t.name in names)
    )
    if not topics:
        raise InputError("no topic is described with its replicas; give what kafka-topics.sh --describe prints")
    return attrs.evolve(cluster, topics=topics)


def stored(seconds: float | None) -> list[Answer]:
    """The answers that come with the package; with time to explore, only those that are decided."""
    return [a for a in read_table() if seconds is None or a.verdict in DECIDED]


def explored_now(asked: Question, most: float, output: Output) -> Answer | None:
    """A run that was not stored; None where the model cannot be asked so."""
    try:
        with output.ticker() as ticker:
            return explored(asked, Limits(None, most), ticker)
    except Unsound:
        return None


def exit_code(rows: Sequence[Row], now: Sequence[Condition]) -> Exit:
    """For cron: what is broken now counts most, then what one failure may lose, then what was not decided."""
    troubles = {c.trouble for c in now}
    if troubles & {Trouble.OFFLINE, Trouble.UNDER_MINIMUM}:
        return Exit.UNAVAILABLE
    if Trouble.UNDER_REPLICATED in troubles or any(row.at_risk for row in rows):
        return Exit.AT_RISK
    return Exit.INCONCLUSIVE if any(row.undecided for row in rows) else Exit.HOLDS
