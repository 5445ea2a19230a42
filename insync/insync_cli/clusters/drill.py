"""`insync drill`: what is lost if somebody takes these steps, now, on this cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.clusters import drill_commands, drill_text
from insync_cli.clusters.cluster_source import (
    cluster_with_topics,
    described_cluster,
    kafka_release,
    text_of,
    with_racks,
)
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.options import Usage, arguments, flag, group, option, repeated_option, seconds, switch
from insync_cli.terminal import Output
from isr_audit.cluster import Cluster, Release
from isr_audit.releases import running
from isr_drill.drill import Drill, Explorations, Records, Service, drill, mend
from isr_drill.quorum import quorum_of
from isr_drill.reassignments import BadAssignment, BadRunbook
from isr_drill.runbook import RunbookStep, Surroundings, read_runbook

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync drill --describe topics.txt stop 3
insync drill --describe topics.txt --racks racks.txt "lose-rack a; start 1 2; wait in-sync; stop 3"
insync drill --bootstrap 127.0.0.1:9092 zone-drill.toml --json drill.json"""
USAGE = Usage(
    "drill",
    "What acknowledged records may be lost by these steps, from the state that a cluster is in now. Exit code 0: none, "
    "and all partitions have a leader and take writes, but until a session ends; 1: one may not; 12: records may be "
    "lost; 20: UNKNOWN; 2: the cluster does not answer.",
    EXAMPLE,
)
SECONDS = 20.0
FILES = (".toml", ".txt", ".runbook")
"""A single word with one of these endings is a file."""


@attrs.frozen(kw_only=True)
class Options:
    steps: tuple[str, ...] = arguments(
        "STEP", 'steps such as stop 3, or "destroy 3 7; start 3 7", or a file of them', str, at_least=1
    )
    describe: tuple[Path, ...] = repeated_option("FILE", "what kafka-topics.sh --describe prints, and its like", Path)
    bootstrap: str | None = option("HOST:PORT", "ask this cluster, as an admin client", str)
    client: Path | None = option("FILE", "client.properties with security settings, for --bootstrap", Path)
    racks: Path | None = option("FILE", "lines of a broker and its rack, where they are not told otherwise", Path)
    topics: tuple[str, ...] = repeated_option("T", "only this topic", str, name="topic")
    kafka: Release | None = option("VERSION", "the release that runs, where it is not told", kafka_release)
    elr: bool | None = switch("eligible leader replicas, where it is not told")
    kraft: bool | None = switch("KRaft, where it is not told; off is ZooKeeper")
    seconds: float = option("S", "explore each class of partitions for S seconds at most", seconds, SECONDS)
    commands: bool = flag("what to type for each step, of the better runbook where there is one")
    markdown: Path | None = option("FILE", "the same for a ticket", Path)
    html: Path | None = option("FILE", "the same as one offline page, with a timeline of the brokers", Path)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    answer = answer_of(invocation)
    if invocation.markdown is not None:
        terminal.write_text(invocation.markdown, drill_text.markdown(answer))
    if invocation.html is not None:
        from insync_cli.clusters.drill_page import write_page

        write_page(answer, invocation.html)
    to_type = tuple(drill_commands.advice(answer, invocation.bootstrap)) if invocation.commands else ()
    of_steps = {"commands": drill_commands.document(to_type)} if invocation.commands else {}

    def words(out: Console) -> None:
        drill_text.show(out, answer)
        if to_type:
            drill_commands.show(out, to_type)

    invocation.output.answer({**drill_text.document(answer), **of_steps}, words, drill_text.last_line(answer))
    return answer.code


def show(out: Console, answer: drill_text.Answer) -> None:
    """All of a drill in words."""
    drill_text.show(out, answer)
    out.print(drill_text.last_line(answer), soft_wrap=True)


def answer_of(invocation: Options) -> drill_text.Answer:
    """What the steps do to the cluster; nothing is printed but progress."""
    invocation.output.check()
    sources = (*invocation.describe, *([invocation.racks] if invocation.racks is not None else []))
    for file in (invocation.markdown, invocation.html):
        if file is not None:
            terminal.check_apart(file, sources)
            terminal.check_writable(file)
    if invocation.bootstrap is None and not invocation.describe:
        raise UsageError("insync drill: give --describe FILE or --bootstrap HOST:PORT (see insync drill --help)")
    if invocation.client is not None and invocation.bootstrap is None:
        raise UsageError("--client is for --bootstrap")
    cluster = cluster_with_topics(
        described_cluster(invocation.bootstrap, invocation.client, invocation.describe), invocation.topics
    )
    cluster = with_racks(cluster, invocation.racks)
    steps = runbook_of(invocation.steps, cluster)
    cluster = with_moved_partitions(cluster, steps)
    runs = running(cluster, invocation.kafka, invocation.elr, invocation.kraft)
    with invocation.output.ticker() as ticker, ticker.meanwhile("classes of partitions") as tell:
        explorations = Explorations(invocation.seconds, lambda done, total: tell("classes of partitions", done, total))
        whole = drill(cluster, runs, steps, explorations)
        code = exit_code(whole, cluster)
        other = None if code is Exit.HOLDS else mend(cluster, runs, whole, explorations)
    return drill_text.Answer(cluster, runs, whole, other, int(code))


def exit_code(whole: Drill, cluster: Cluster) -> Exit:
    """Records that may be lost count most, then what is UNKNOWN, then partitions without a leader or writes.

    Of the state before the first step only what the steps touch counts. What was not told may be a partition that they
    touch.
    """
    if whole.with_records(Records.MAY_BE_LOST):
        return Exit.SAFETY
    if cluster.gaps or whole.with_records(Records.UNKNOWN) or whole.with_service(Service.UNKNOWN):
        return Exit.INCONCLUSIVE
    return Exit.AT_RISK if whole.standstill else Exit.HOLDS


def runbook_of(words: Sequence[str], cluster: Cluster) -> tuple[RunbookStep, ...]:
    """The steps of the command line, or of the file that it names."""
    replicas = {r for p in cluster.partitions for r in p.replicas}
    around = Surroundings(
        {*replicas, *(cluster.living or ()), *cluster.racks},
        cluster.racks,
        [t.name for t in cluster.topics],
        lambda name: text_of(Path(name)),
        quorum_of(cluster),
    )
    file = Path(words[0]) if len(words) == 1 and words[0].endswith(FILES) else None
    try:
        if file is None:
            return read_runbook(" ".join(words), around)
        return read_runbook(text_of(file), around, is_toml=file.suffix == ".toml")
    except BadAssignment as problem:
        raise InputError(str(problem)) from None
    except BadRunbook as problem:
        if file is None:
            raise UsageError(str(problem)) from None
        raise InputError(f"{file}: {problem}") from None


def with_moved_partitions(cluster: Cluster, steps: Sequence[RunbookStep]) -> Cluster:
    """The cluster, with a gap for partitions that a reassignment moves and that nobody described.

    InputError for one that is not there, as all partitions of its topic were described.
    """
    described = {p.name for p in cluster.partitions}
    whole = {t.name: t for t in cluster.topics if not t.gap}
    gaps: list[str] = []
    for step in steps:
        names = [name for stage in step.stages for name, _ in stage.assignment.pairs if name not in described]
        for name in names:
            topic = whole.get(name.rpartition("-")[0])
            if topic is not None:
                raise InputError(f"{step.text}: there is no {name}; {topic.name} has {len(topic.partitions)} described")
        if names:
            more = f" and {len(names) - 1:,} more" if names[1:] else ""
            is_left_out = names[0].rpartition("-")[0] in cluster.omissions
            why = "of a topic that was not asked about" if is_left_out else "of which nothing was described"
            gaps.append(f"{step.text}: it moves {names[0]}{more}, {why}")
    return attrs.evolve(cluster, missing=(*cluster.missing, *gaps))
