"""`insync bugs`: the known ways in which released Kafka loses acknowledged records, by release and by ticket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import attrs

from insync_cli import options, terminal
from insync_cli.clusters.cluster_source import kafka_release
from insync_cli.exits import Exit, UsageError, did_you_mean
from insync_cli.options import Usage, arguments, group, option, switch
from insync_cli.terminal import QuietOutput
from insync_cli.tracefiles import cases_of_ticket, tickets
from isr_audit.bugs import Bug, bugs, elsewhere, listing_of, worlds_text
from isr_audit.cluster import Release, release_text
from isr_audit.contradictions import SINCE_ELR
from isr_audit.releases import Running, may_run, nearest_release

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync bugs
insync bugs --kafka 3.7.0
insync bugs KAFKA-16234"""
USAGE = Usage(
    "bugs",
    "Known ways in which released Kafka loses acknowledged records. Exit code 0, however many there are; a release "
    "that is not known is a note.",
    EXAMPLE,
)
NOT_LISTED = "not in the list"
OLDEST: Release = (0, 8)


@attrs.frozen(kw_only=True)
class Options:
    names: tuple[str, ...] = arguments("BUG", "only these, by name or ticket; without any, all", str)
    kafka: Release | None = option("VERSION", "only those of this release", kafka_release)
    elr: bool | None = switch("with --kafka: eligible leader replicas")
    output: QuietOutput = group(QuietOutput)


class BugLine(TypedDict):
    """`runs`: what has to run of a release that was given, empty where all that it may run has the bug."""

    name: str
    tickets: list[str]
    trigger: str
    releases: str
    evidence: str
    runs: list[str]
    page: str
    show: str


class OmissionLine(TypedDict):
    """A case of the corpus that is asked for, and why it is no known loss of a release."""

    name: str
    tickets: list[str]
    why: str


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    invocation.output.check()
    if invocation.elr is not None and invocation.kafka is None:
        raise UsageError("--elr goes with --kafka")
    names = [name for word in invocation.names for name in names_for(word)]
    running = candidates(invocation.kafka, invocation.elr) if invocation.kafka is not None else ()
    lines = [line for bug in bugs() if (not names or bug.name in names) and (line := line_of(bug, running)) is not None]
    omissions = [
        OmissionLine(name=case.name, tickets=list(tickets().get(case.name, ())), why=case.why)
        for case in elsewhere()
        if case.name in names
    ]
    report = {
        "schema": "insync/bugs/1",
        "kafka": release_text(invocation.kafka) if invocation.kafka is not None else None,
        "notes": notes_on(invocation.kafka),
        "bugs": lines,
        "not_listed": omissions,
    }

    def words(out: Console) -> None:
        show(out, lines, omissions)
        for note in notes_on(invocation.kafka):
            terminal.print_wrapped(out, f"note: {note}", 0)

    invocation.output.answer(report, words, result_line(invocation, lines, omissions))
    return Exit.HOLDS


def notes_on(release: Release | None) -> list[str]:
    """That a release is not known, and which is the nearest."""
    nearest = nearest_release(release) if release is not None else None
    if release is None or nearest is None:
        return []
    return [
        f"Kafka {release_text(release)} is not known, and {release_text(nearest)} is the nearest that is: the list has "
        "what was not mended there"
    ]


def candidates(release: Release, elr: bool | None) -> tuple[Running, ...]:
    """What the release may run; UsageError for one of which nothing is known, or that cannot run what is asked of."""
    if elr and release[:2] < SINCE_ELR:
        raise UsageError(f"Kafka {release_text(release)} has no eligible leader replicas, which begin with 3.7")
    running = may_run(release, elr)
    if release < OLDEST or not running:
        raise UsageError(
            f"nothing is known of Kafka {release_text(release)}: the list begins with {release_text(OLDEST)}"
        )
    return running


def names_for(word: str) -> list[str]:
    """The bugs and cases that somebody means: by name, or those of a ticket."""
    names = [*(bug.name for bug in bugs()), *(case.name for case in elsewhere())]
    if word in names:
        return [word]
    by_ticket = cases_of_ticket(word)
    if not by_ticket:
        hint = did_you_mean(word, [*names, *(key for keys in tickets().values() for key in keys)])
        raise UsageError(f"there is no bug '{word}' in the list, and no ticket{hint} (insync bugs lists them)")
    return by_ticket


def line_of(bug: Bug, running: Sequence[Running]) -> BugLine | None:
    """What is said of a bug; None where nothing that may run has it."""
    listing = listing_of(bug, running)
    if running and listing is None:
        return None
    return BugLine(
        name=bug.name,
        tickets=list(tickets().get(bug.name, ())),
        trigger=bug.trigger,
        releases=bug.releases,
        evidence=listing.evidence if listing is not None else "",
        runs=list(listing.worlds) if listing is not None else [],
        page=bug.page,
        show=bug.show,
    )


def show(out: Console, lines: Sequence[BugLine], omissions: Sequence[OmissionLine]) -> None:
    """A paragraph each."""
    for line in lines:
        show_name(out, line)
        terminal.print_wrapped(out, line["trigger"], 2)
        terminal.print_wrapped(out, f"{line['evidence'] or line['releases']}{worlds_text(line['runs'])}", 2)
        out.print(f"  {line['show']}", style="dim", soft_wrap=True)
    for case in omissions:
        show_name(out, case)
        terminal.print_wrapped(out, f"{NOT_LISTED}: {case['why']}", 2)


def show_name(out: Console, line: BugLine | OmissionLine) -> None:
    """A name with its tickets."""
    keys = f"  ({', '.join(line['tickets'])})" if line["tickets"] else ""
    out.print(f"{line['name']}{keys}", style="bold", soft_wrap=True)


def result_line(invocation: Options, lines: Sequence[BugLine], omissions: Sequence[OmissionLine]) -> str:
    of = f" of Kafka {release_text(invocation.kafka)}" if invocation.kafka is not None else " of released Kafka"
    of += ", which is not known" if notes_on(invocation.kafka) else ""
    ways = terminal.count(len(lines), "known way")
    more = f"; {terminal.count(len(omissions), 'case')} {NOT_LISTED}" if omissions else ""
    return f"insync bugs: {ways} to lose an acknowledged record{of}{more}; what is not known is not in it"
