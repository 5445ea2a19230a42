"""An audit in at most 25 lines of a terminal: the decision, what is wrong now, and a line for each kind of topic."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from insync_cli import terminal
from insync_cli.clusters import audit_text
from insync_cli.clusters.audit_text import some_names
from insync_cli.exits import Exit
from insync_cli.omissions import omissions_text
from insync_cli.terminal import count
from isr_audit.audit import MAY_BE_LOST
from isr_audit.cluster import RETENTION
from isr_audit.condition import WORDS, Condition, Trouble
from isr_audit.questions import NOTHING

if TYPE_CHECKING:
    from rich.console import Console

    from isr_audit.report import Audit

MOST_LINES: Final = 25
MOST_NOW: Final = 4
MOST_KINDS: Final = 5
MOST_NAMES: Final = 3
ALONE: Final = 2
"""So many partitions of one trouble have a line each; more are one line."""
QUIET: Final = {Trouble.REASSIGNING: "being reassigned", Trouble.NOT_PREFERRED: "not led by the preferred replica"}
HINT: Final = (
    "--commands: what to type, and when not. --brokers: which may be restarted now. --details: each way to a loss."
)


def exit_code(audit: Audit) -> Exit:
    """For cron: what is broken now counts most, then what one failure may lose, then what was not decided or told."""
    if audit.stopped:
        return Exit.UNAVAILABLE
    if audit.lacking or audit.topics_at_risk:
        return Exit.AT_RISK
    return Exit.HOLDS if audit.is_whole else Exit.INCONCLUSIVE


def decision(audit: Audit) -> str:
    """What matters most, in a sentence that begins with a word for it, and how many topics nobody asked about."""
    omissions = omissions_text((len(audit.cluster.omissions), "other topic", ""))
    return f"{decision_for_topics(audit)}{'; ' if omissions else ''}{omissions}"


def decision_for_topics(audit: Audit) -> str:
    """The same, as far as the topics go that were asked about."""
    code = exit_code(audit)
    topics, risky = len(audit.cluster.topics), len(audit.topics_at_risk)
    risk = f"{risky} of {count(topics, 'topic')} may lose records by one failure"
    if code is Exit.UNAVAILABLE:
        whose = f"{count(len(audit.stopped), 'partition')} without a leader, or refusing writes"
        return f"BROKEN NOW: {whose}; {risk}"
    if code is Exit.AT_RISK:
        lacking = count(len(audit.lacking), "partition")
        behind = f"; {lacking} {'lacks' if len(audit.lacking) == 1 else 'lack'} replicas now" if audit.lacking else ""
        return f"AT RISK: {risk}{behind}"
    if code is Exit.INCONCLUSIVE:
        return f"UNKNOWN: {gap_text(audit)}"
    return (
        "FINE: by the model one crash, one power loss or one lost disk loses nothing that was acknowledged with "
        "acks=all, and every partition has its leader and all its replicas in sync"
    )


def gap_text(audit: Audit) -> str:
    """What was not told, or not decided, so that nobody can say that all is well."""
    gaps = audit.cluster.gaps
    if gaps:
        return "not every partition was told"
    topics = audit.topics_undecided
    if topics:
        return f"whether one failure loses something was not decided of {some_names(topics, MOST_NAMES)}"
    return "how every partition is now was not told"


def about(audit: Audit) -> str:
    """The cluster in a line."""
    runs, cluster = audit.runs, audit.cluster
    brokers = cluster.living or cluster.broker_ids
    parts = [f"Kafka {runs.version}, eligible leader replicas {runs.elr_text}"]
    parts += [count(len(brokers), "broker")] if brokers else []
    partitions = sum(len(t.partitions) or t.count or 0 for t in cluster.topics)
    parts.append(f"{count(len(cluster.topics), 'topic')}, {count(partitions, 'partition')}")
    return "; ".join(parts)


def now_lines(audit: Audit) -> Iterator[str]:
    """What is wrong now, worst first, many partitions with one trouble as one line."""
    for trouble in (Trouble.OFFLINE, Trouble.UNDER_MINIMUM, Trouble.UNDER_REPLICATED, Trouble.UNKNOWN):
        here = [c for c in audit.now if c.trouble is trouble]
        if len(here) > ALONE:
            which = some_names([c.partition.name for c in here], MOST_NAMES)
            yield f"{WORDS[trouble]} {len(here):,} partitions: {which}{absent(here)}"
        else:
            yield from (f"{WORDS[trouble]} {c.partition.name}: {c.says}" for c in here)
    gaps = audit.cluster.gaps
    yield from (f"{WORDS[Trouble.UNKNOWN]} {gap}" for gap in gaps[:ALONE])
    if gaps[ALONE:]:
        yield f"{WORDS[Trouble.UNKNOWN]} and {len(gaps) - ALONE} more of the kind"
    quiet = Counter(c.trouble for c in audit.now if c.trouble > Trouble.UNKNOWN)
    said = [f"{count(n, 'partition')} {QUIET[trouble]}" for trouble, n in sorted(quiet.items())]
    if said or audit.at_minimum:
        which = some_names([p.name for p in audit.at_minimum], MOST_NAMES)
        least = [f"{count(len(audit.at_minimum), 'partition')} AT MIN ISR ({which})"] if audit.at_minimum else []
        yield f"Beside that: {', '.join([*least, *said])}"


def absent(conditions: Sequence[Condition]) -> str:
    """Which brokers are missing from most of these."""
    missing = Counter(r for c in conditions for r in c.partition.members if r not in c.partition.isr)
    said = [f"broker {broker} is missing from {n:,}" for broker, n in missing.most_common(MOST_NAMES)]
    return f"; {', '.join(said)}" if said else ""


def note_lines(audit: Audit) -> list[str]:
    """What had to be assumed, of the cluster and then of topics; what is told for its own sake is in the details."""
    of_rows = (f"{audit_text.topic_names(r)}: {n}" for r in audit.rows for n in r.notes if RETENTION not in n)
    return [*(note for note in audit_text.notes(audit) if note != audit_text.NO_RACKS), *of_rows]


def acks_line(audit: Audit) -> str:
    """What becomes of records that only the leader has acknowledged; "" where nothing is lost of them without a
    failure."""
    topics = [t.name for row in audit.rows if row.line("1", NOTHING).verdict == MAY_BE_LOST for t in row.topics]
    if not topics:
        return ""
    whose = "all topics" if len(topics) == len(audit.cluster.topics) else some_names(topics, MOST_NAMES)
    return f"With acks=1 records of {whose} may be lost even if nothing fails; the table is of acks=all."


def foot_lines(audit: Audit) -> list[str]:
    """What else loses records, and what nothing was said of."""
    lines = [acks_line(audit)]
    if audit.bugs:
        release = f" --kafka {audit.runs.version}" if audit.runs.release is not None else ""
        ways = count(len(audit.bugs), "known bug")
        by_topic = "; by topic: --details" if any(row.ways_to_loss for row in audit.rows) else ""
        lines.append(f"{ways} may lose acknowledged records here: insync bugs{release}{by_topic}")
    racks = "" if audit_text.judges_racks(audit) else ", racks"
    return [*filter(None, lines), f"Not judged: {audit_text.NOT_JUDGED}{racks}.", HINT]


def show(out: Console, audit: Audit) -> None:
    """All of it in 25 lines, with the one that ends it. Kinds of topics and what is wrong now have what the rest
    leaves, and notes what is left then."""
    now, foot = list(now_lines(audit)), foot_lines(audit)
    kinds = list(audit_text.in_short(audit))
    rest = 2 + height(out, [decision(audit), *foot, audit_text.result_line(audit)])
    sizes = ((n, k) for n in range(min(MOST_NOW, len(now)), -1, -1) for k in range(min(MOST_KINDS, len(kinds)), -1, -1))
    some, few = next(
        (n, k)
        for n, k in sizes
        if rest + height(out, first_of(now, n)) + len(table_lines(out, kinds, k)) <= MOST_LINES or not n + k
    )
    terminal.print_marked(out, decision(audit), 0)
    out.print(about(audit), soft_wrap=True)
    for line in first_of(now, some):
        terminal.print_marked(out, line, 2)
    show_table(out, kinds, few)
    room = MOST_LINES - rest + 1 - height(out, first_of(now, some)) - len(table_lines(out, kinds, few))
    for line in (*(f"note: {note}" for note in fitting(out, note_lines(audit), room)), *foot):
        terminal.print_wrapped(out, line, 0)


def first_of(lines: Sequence[str], most: int) -> list[str]:
    """So many of them, and how many more there are."""
    return [*lines[:most], *([f"and {count(len(lines) - most, 'line')} more (--details)"] if lines[most:] else [])]


def height(out: Console, lines: Sequence[str]) -> int:
    """How many lines of the terminal these are."""
    return sum(len(textwrap.wrap(line, out.width - 2)) for line in lines)


Kinds: TypeAlias = "Sequence[tuple[Sequence[str], tuple[str, ...]]]"
"""The topics of each kind, and its cells."""


def show_table(out: Console, kinds: Kinds, most: int) -> None:
    """A line for each of so many kinds, with as many names as there is room for, and how many kinds more there are."""
    if not kinds:
        return
    out.print()
    room = max(LEAST_NAMES, out.width - FIXED_COLUMNS)
    rows = [(fitting_names(topics, room), *cells) for topics, cells in kinds[:most]]
    if rows:
        terminal.print_table(out, audit_text.SHORT, rows, indent=0)
    if kinds[most:]:
        out.print(f"{count(len(kinds) - most, 'kind')} of topics more (--details)")


LEAST_NAMES: Final = 12
FIXED_COLUMNS: Final = 90
"""The width of all columns but the first, with 28 for the last."""


def table_lines(out: Console, kinds: Kinds, most: int) -> list[str]:
    """What `show_table` prints."""
    with out.capture() as printed:
        show_table(out, kinds, most)
    return printed.get().splitlines()


def fitting_names(topics: Sequence[str], room: int) -> str:
    """As many names as there is room for, and how many more there are; a name that is too long loses its middle."""
    for most in range(min(len(topics), room), 0, -1):
        text = some_names(topics, most)
        if len(text) <= room:
            return text
    more = f" +{len(topics) - 1}" if topics[1:] else ""
    half = max(3, (room - len(more) - 1) // 2)
    first = topics[0] if len(topics[0]) <= 2 * half else f"{topics[0][:half]}…{topics[0][-half:]}"
    return f"{first}{more}"


def fitting(out: Console, notes: Sequence[str], room: int) -> list[str]:
    """As many notes as there is room for, and how many more there are."""
    some: list[str] = []
    for n, note in enumerate(notes):
        rest = len(notes) - n - 1
        if height(out, [f"note: {x}" for x in (*some, note)]) + bool(rest) > room:
            more = f"{len(notes) - n} more" if some else f"{len(notes)} in all"
            return [*some, f"{more} (--details)"] if room > 0 else []
        some.append(note)
    return some


def show_commands(out: Console, audit: Audit) -> None:
    """What to do, in order, for each kind of topic that one failure may hurt."""
    for topics, change, steps in audit_text.plans(audit):
        out.print(f"\n{topics}: {' and '.join(change.settings)}", style="bold", soft_wrap=True)
        terminal.print_wrapped(out, f"The price: {', and '.join(change.costs)}", 2)
        for n, step in enumerate(steps, 1):
            terminal.print_marked(out, f"{n}. {step.says}", 2)
            for line in audit_text.lines_to_type(step):
                out.print(f"     {line}" if line.startswith("#") else f"     $ {line}", style="dim", soft_wrap=True)
    unknown = [row for row in audit.rows if row.at_risk and not row.plans]
    for row in unknown:
        terminal.print_wrapped(out, f"{audit_text.topic_names(row)}: {audit_text.plan_text(row)}", 2)
