"""An audit in words: for the terminal, for a ticket, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from insync_cli import terminal
from insync_cli.omissions import omissions_text
from insync_cli.terminal import count
from isr_audit.audit import MAY_BE_LOST, UNKNOWN, Line, RackLoss, Row, kinds_of
from isr_audit.bugs import Listing, listings, worlds_text
from isr_audit.cluster import FLUSH, MIN_INSYNC, UNCLEAN
from isr_audit.condition import WORDS, Condition, Trouble
from isr_audit.questions import CRASH, POWER
from isr_trace.story import story

if TYPE_CHECKING:
    from rich.console import Console

    from isr_audit.answers import Answer
    from isr_audit.cluster import Cluster
    from isr_audit.releases import Running
    from isr_trace.story import Sentence

SCHEMA = "insync/audit/1"
LEGEND = (
    "A crash keeps the disk; a power loss loses what was not flushed; a restart is in order. Replicas may lag, and "
    "leadership may move, in every case."
)
BUGS = "Known bugs of this release, each of which loses acknowledged records"
MOST_NAMES = 6
"""So many topics of a row, or partitions of a trouble, are named; the rest are counted."""


@attrs.frozen
class Audit:
    """Everything that was found of a cluster; no `rows` until its topics are judged."""

    cluster: Cluster
    runs: Running
    now: tuple[Condition, ...]
    rows: tuple[Row, ...] = ()

    @property
    def bugs(self) -> tuple[Listing, ...]:
        """Those of whatever may run for what was told."""
        return listings(self.runs.worlds)


def about(audit: Audit) -> str:
    """The cluster in one line."""
    cluster, runs = audit.cluster, audit.runs
    parts = [
        f"Kafka {runs.version}",
        f"design {runs.design}",
        f"eligible leader replicas {runs.elr_text}",
    ]
    brokers = cluster.living or tuple(dict.fromkeys(r for p in cluster.partitions for r in p.replicas))
    racks = sorted(set(cluster.racks.values()))
    parts.append(count(len(brokers), "broker") + (f" (racks told: {', '.join(racks)})" if racks else ""))
    parts.append(f"{count(len(cluster.topics), 'topic')}, {count(len(cluster.partitions), 'partition')}")
    return "; ".join(parts)


def notes(audit: Audit) -> list[str]:
    """What had to be assumed."""
    split = audit.cluster.disagreeing()
    said = [f"brokers disagree on {name}, and the weakest value is taken" for name in split]
    said += audit.cluster.notes
    if audit.cluster.partitions and not any(kind.in_rack for kind in kinds_of(audit.cluster, audit.runs)):
        said.append("the loss of a rack is not judged: broker.rack was not told of every broker")
    return [*audit.runs.notes, *said]


def topic_names(*rows: Row) -> str:
    """The topics of these rows, the first of them by name."""
    names = [t.name for row in rows for t in row.topics]
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def title(row: Row) -> str:
    """The topics of a row, and the settings that they share."""
    s, unknown = row.kind.settings, row.kind.open
    minimum = "not told" if MIN_INSYNC in unknown else s.min_insync
    unclean = "not told" if UNCLEAN in unknown else "on" if s.unclean else "off"
    flush = "every record flushed" if row.kind.flushed else "records not flushed"
    flush = f"{FLUSH} not told" if FLUSH in unknown else flush
    racked = f", {row.kind.in_rack} in one rack" if row.kind.in_rack > 1 else ""
    return (
        f"{topic_names(row)}: {count(s.replicas, 'replica')}, min.insync.replicas {minimum}, "
        f"unclean election {unclean}, {flush}{racked} ({count(row.partitions, 'partition')})"
    )


def writes(row: Row) -> str:
    """When writes stop, which is what the minimum means, and what the model says to it."""
    s = row.kind.settings
    if s.replicas == 1:
        return "Writes stop when the broker is down."
    if MIN_INSYNC in row.kind.open:
        return "When writes stop is not known, for min.insync.replicas was not told."
    if s.min_insync == 1:
        more = ", or any other, by unclean election" if s.unclean else ""
        return f"Writes go on while one in-sync replica is up{more}."
    said = f"Writes with acks=all stop when {row.kind.stops}; with acks=1 when nobody in sync is up"
    said += ", nor anybody else." if s.unclean else "."
    return said if row.refusal is None else f"{said} The model: {row.refusal.question.promise} {row.refusal.verdict}."


SHORT = ("one crash", "one power loss", "topics, and what would prevent the loss")


def in_short(audit: Audit) -> Iterator[tuple[str, str, str]]:
    """What one failure does to each kind of topic; kinds of which the same is said are one."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in audit.rows:
        both = [row.line("all", fault) for fault in (CRASH, POWER)]
        changes = [" and ".join(line.change.settings) for line in both if line.change is not None]
        groups.setdefault((both[0].verdict, both[1].verdict, "; ".join(dict.fromkeys(changes))), []).append(row)
    for (crash, power, advice), rows in groups.items():
        yield crash, power, f"{topic_names(*rows)}: {advice}" if advice else topic_names(*rows)


def stopping(row: Row) -> str:
    """When writes stop, by brokers and by racks."""
    return " ".join(filter(None, (writes(row), rack_writes(row))))


def rack_writes(row: Row) -> str:
    """What stops when a rack is lost; nothing where racks were not told."""
    if not row.kind.in_rack:
        return ""
    if not row.racks:
        return "Writes go on whichever one rack is lost."
    said = [f"If rack {loss.rack} is lost, {_stopped(loss)}." for loss in row.racks[:MOST_NAMES]]
    return " ".join([*said, f"So with {len(row.racks) - MOST_NAMES} more racks."] if row.racks[MOST_NAMES:] else said)


def _stopped(loss: RackLoss) -> str:
    gone, few = loss.without_leader, loss.below_minimum
    parts = [f"{count(gone, 'partition')} {'has' if gone == 1 else 'have'} no replica left"] if gone else []
    parts += [f"{count(few, 'partition')} {'refuses' if few == 1 else 'refuse'} writes with acks=all"] if few else []
    return " and ".join(parts)


def table(row: Row) -> Iterator[tuple[str, str, str]]:
    """acks, what becomes of acknowledged records, and when what fails, with why that is said.

    Faults with one answer are one line.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for line in row.lines:
        found.setdefault((line.acks, line.verdict, because(line)), []).append(line.fault.says)
    before = ""
    for (acks, verdict, why), faults in found.items():
        said = ", ".join(faults)
        yield "" if acks == before else f"acks={acks}", verdict, f"{said} ({why})" if why else said
        before = acks


def because(line: Line) -> str:
    parts = [line.because] if line.because else []
    if line.verdict == MAY_BE_LOST and line.answer is not None and line.answer.steps is not None:
        parts.insert(0, count(line.answer.steps, "step"))
    return "; ".join(parts)


def losses(row: Row) -> list[tuple[Line, list[Line]]]:
    """The lines that lose with a way of their own, each with those lost in the same way."""
    found: dict[str, tuple[Line, list[Line]]] = {}
    for line in row.lines:
        if line.verdict == MAY_BE_LOST and line.answer is not None:
            found.setdefault(line.answer.command, (line, []))[1].append(line)
    return list(found.values())


def loss_story(answer: Answer) -> tuple[str, Sequence[Sentence]]:
    """The shortest way to a loss: its headline, and at most five sentences."""
    trace = answer.trace()
    assert trace is not None, "only losses are told"
    whole = story(trace)
    return whole.headline, whole.sentences


def steps_told(answer: Answer) -> list[str]:
    return [f"T{s.step}: {s.text}" if s.step is not None else s.text for s in loss_story(answer)[1]]


def prevention(line: Line) -> str:
    if line.change is None and line.advice_is_whole:
        return "none of the changes of settings that were explored prevents it"
    if line.change is None:
        return "which change of settings would prevent it was not explored"
    return f"prevented by {' and '.join(line.change.settings)}; the price: {', and '.join(line.change.costs)}"


def result_line(audit: Audit) -> str:
    """One line for a log."""
    risky = sum(len(row.topics) for row in audit.rows if row.at_risk)
    stopped = sum(c.trouble <= Trouble.UNDER_MINIMUM for c in audit.now)
    behind = sum(c.trouble == Trouble.UNDER_REPLICATED for c in audit.now)
    topics = count(len(audit.cluster.topics), "topic")
    omissions = omissions_text((len(audit.cluster.omissions), "other topic", ""))
    undecided = sum(len(row.topics) for row in audit.rows if row.is_undecided)
    unread = sum(c.trouble is Trouble.UNKNOWN for c in audit.now)
    doubts = [count(n, what) for n, what in ((undecided, "topic"), (unread, "partition")) if n]
    doubts += ["what was not told"] if audit.cluster.gaps else []
    return (
        f"insync audit: {risky} of {topics} may lose acks=all records by one failure; "
        f"{count(stopped, 'partition')} without leader or under the minimum, {behind} under-replicated"
        f"{'; UNKNOWN: ' if doubts else ''}{', '.join(doubts)}{'; ' if omissions else ''}{omissions}"
    )


# Terminal


def brief(audit: Audit) -> list[str]:
    """How it is now, which topics are at risk, and the line for a log."""
    risky = [title(row) for row in audit.rows if row.at_risk]
    return [*now_lines(audit), *(f"one failure may lose records of {text}" for text in risky), result_line(audit)]


def show_now(out: Console, audit: Audit) -> None:
    """What is known before anything is explored."""
    out.print(about(audit), style="bold", soft_wrap=True)
    for note in notes(audit):
        terminal.print_wrapped(out, f"note: {note}", 2)
    out.print("\nNow", style="bold")
    for line in now_lines(audit):
        terminal.print_wrapped(out, line, 2)


def show_rows(out: Console, audit: Audit) -> None:
    """What each kind of topic may lose, and the known bugs."""
    out.print("\nIn short, of what was acknowledged with acks=all", style="bold")
    terminal.print_table(out, SHORT, list(in_short(audit)))
    for row in audit.rows:
        out.print()
        out.print(title(row), style="bold", soft_wrap=True)
        for note in row.notes:
            terminal.print_wrapped(out, f"note: {note}", 2)
        terminal.print_table(out, ("", "what was acknowledged", "when this fails"), list(table(row)))
        terminal.print_wrapped(out, stopping(row), 2)
        for first, same in shown_losses(row):
            show_loss(out, first, same)
        out.print("  Runs in which nothing is lost, or nothing was decided:", soft_wrap=True)
        for line in commands_without_loss(row):
            out.print(f"  $ {line}", style="dim", soft_wrap=True)
    terminal.print_lines(out, BUGS, bug_lines(audit))
    out.print(f"\n{LEGEND}", style="dim", soft_wrap=True)
    out.print(result_line(audit), soft_wrap=True)


def shown_losses(row: Row) -> list[tuple[Line, list[Line]]]:
    """Of each acks the loss that needs least; a ticket and a page have all of them."""
    found: dict[str, tuple[Line, list[Line]]] = {}
    for first, same in losses(row):
        found.setdefault(first.acks, (first, same))
    return list(found.values())


def show_loss(out: Console, line: Line, same: Sequence[Line]) -> None:
    assert line.answer is not None, "a loss has a run"
    out.print(f"  acks={line.acks}, what fails: {line.fault.says}. The shortest way to a loss:", soft_wrap=True)
    for sentence in steps_told(line.answer):
        terminal.print_wrapped(out, sentence, 4)
    for other in advice_for(same):
        terminal.print_wrapped(out, other, 2)
    out.print(f"  $ {line.answer.command}", style="dim", soft_wrap=True)


def advice_for(lines: Sequence[Line]) -> list[str]:
    """What would prevent each of these, those with the same advice in one sentence. Of acks=1 only the least fault is
    worth advice: with acks=all the others are told there."""
    faults_by_advice: dict[str, list[str]] = {}
    for line in lines if lines[0].acks == "all" else lines[:1]:
        faults_by_advice.setdefault(prevention(line), []).append(line.fault.says)
    if len(faults_by_advice) == 1:
        return [advice[0].upper() + advice[1:] for advice in faults_by_advice]
    return [f"{', '.join(faults)}: {advice}" for advice, faults in faults_by_advice.items()]


def commands_without_loss(row: Row) -> list[str]:
    """The commands of the runs in which nothing is lost, or nothing was decided, each once."""
    asked = [x.answer.command for x in row.lines if x.answer is not None and x.verdict != MAY_BE_LOST]
    asked += [row.refusal.command] if row.refusal is not None else []
    return list(dict.fromkeys(asked))


def now_lines(audit: Audit) -> list[str]:
    """What is wrong now, worst first; only the first partitions of each trouble are named."""
    lines: list[str] = []
    for trouble in Trouble:
        here = [c for c in audit.now if c.trouble is trouble]
        lines += [
            said for c in here[:MOST_NAMES] for said in (f"{WORDS[trouble]} {c.partition.name}: {c.says}", *alarms(c))
        ]
        lines += (
            [f"{WORDS[trouble]} and {count(len(here) - MOST_NAMES, 'partition')} more"]
            if len(here) > MOST_NAMES
            else []
        )
    lines += [f"{WORDS[Trouble.UNKNOWN]} {gap}" for gap in audit.cluster.gaps[:MOST_NAMES]]
    if audit.cluster.gaps[MOST_NAMES:]:
        lines.append(f"{WORDS[Trouble.UNKNOWN]} and {len(audit.cluster.gaps) - MOST_NAMES} more of the kind")
    if not audit.cluster.partitions:
        return [*lines, "no partition was described"]
    told = " that was told" if audit.cluster.gaps else ""
    well = f"every partition{told} has its leader and all its replicas in sync"
    return lines if audit.now else [*lines, well]


def alarms(condition: Condition) -> list[str]:
    """What an unclean election of each candidate would lose, before somebody forces it. Where that was not told it is
    said of partitions only that nobody leads."""
    name = condition.partition.name
    sentences = [f"{name}: {c.says}" for c in condition.candidates if c.is_known]
    unknown = [str(c.replica) for c in condition.candidates if not c.is_known]
    if unknown and condition.trouble is Trouble.OFFLINE:
        untold = f"what electing {' or '.join(unknown)} uncleanly would lose is not known"
        sentences.append(f"{name}: {untold}: where the logs end was not told")
    return sentences


def bug_lines(audit: Audit) -> Iterator[str]:
    for listing in audit.bugs:
        bug = listing.bug
        yield f"{bug.name}: {bug.trigger} ({listing.evidence}{worlds_text(listing.worlds)}; {bug.show})"


# Markdown


def markdown(audit: Audit) -> str:
    """The same for a ticket."""
    lines = ["# insync audit", "", about(audit), ""]
    lines += [f"- note: {note}" for note in notes(audit)] + ["", "## Now", ""]
    lines += [f"- {line}" for line in now_lines(audit)]
    lines += ["", "## In short, of what was acknowledged with acks=all", ""]
    lines += [f"| {' | '.join(SHORT)} |", "|---|---|---|", *(f"| {' | '.join(cells)} |" for cells in in_short(audit))]
    for row in audit.rows:
        lines += ["", f"## {title(row)}", "", *(f"- note: {note}" for note in row.notes), ""]
        lines += ["| | what was acknowledged | when this fails |", "|---|---|---|"]
        lines += [f"| {' | '.join(cells)} |" for cells in table(row)]
        lines += ["", stopping(row)]
        for first, same in losses(row):
            assert first.answer is not None, "a loss has a run"
            lines += ["", f"acks={first.acks}, what fails: {first.fault.says}. The shortest way to a loss:", ""]
            lines += [f"- {sentence}" for sentence in steps_told(first.answer)]
            lines += ["", *(f"- {advice}" for advice in advice_for(same)), "", f"    {first.answer.command}"]
        lines += ["", "Runs in which nothing is lost, or nothing was decided:", ""]
        lines += [f"    {command}" for command in commands_without_loss(row)]
    bug_texts = list(bug_lines(audit))
    lines += (
        [
            "",
            f"## {BUGS}",
            "",
            *(f"- {line}" for line in bug_texts),
        ]
        if bug_texts
        else []
    )
    lines += ["", LEGEND]
    return "\n".join([*lines, "", result_line(audit), ""])


# JSON


def document(audit: Audit) -> dict[str, object]:
    """The report that --json writes."""
    return {
        "schema": SCHEMA,
        "release": audit.runs.version,
        "design": audit.runs.design,
        "notes": notes(audit),
        "gaps": list(audit.cluster.gaps),
        "topics": len(audit.cluster.topics),
        "omissions": list(audit.cluster.omissions),
        "partitions": len(audit.cluster.partitions),
        "now": [
            {
                "partition": c.partition.name,
                "trouble": c.trouble.name.lower().replace("_", "-"),
                "says": c.says,
                "unclean": [
                    {**attrs.asdict(x), "unheard": list(x.unheard), "remembered": list(x.remembered), "says": x.says}
                    for x in c.candidates
                ],
            }
            for c in audit.now
        ],
        "rows": [row_entry(row) for row in audit.rows],
        "bugs": [
            {
                "name": listing.bug.name,
                "trigger": listing.bug.trigger,
                "evidence": listing.evidence,
                "runs": list(listing.worlds),
                "page": listing.bug.page,
                "show": listing.bug.show,
            }
            for listing in audit.bugs
        ],
    }


def row_entry(row: Row) -> dict[str, object]:
    s = row.kind.settings
    return {
        "topics": [t.name for t in row.topics],
        "partitions": row.partitions,
        "settings": {
            "replicas": s.replicas,
            "min_insync": None if MIN_INSYNC in row.kind.open else s.min_insync,
            "unclean": None if UNCLEAN in row.kind.open else s.unclean,
            "flushed": None if FLUSH in row.kind.open else row.kind.flushed,
            "in_rack": row.kind.in_rack,
        },
        "notes": list(row.notes),
        "at_risk": row.at_risk,
        "writes": writes(row),
        "racks": [attrs.asdict(loss) for loss in row.racks],
        "refusal": run_entry(row.refusal),
        "answers": [line_entry(line) for line in row.lines],
    }


def line_entry(line: Line) -> dict[str, object]:
    change = line.change
    return {
        "acks": line.acks,
        "fault": line.fault.name,
        "verdict": {MAY_BE_LOST: "lost", UNKNOWN: "unknown"}.get(line.verdict, "survives"),
        "because": line.because,
        "advice_is_whole": line.advice_is_whole,
        "run": run_entry(line.answer),
        "story": steps_told(line.answer) if line.verdict == MAY_BE_LOST and line.answer is not None else [],
        "change": None
        if change is None
        else {"settings": list(change.settings), "costs": list(change.costs), "run": run_entry(change.answer)},
    }


def run_entry(answer: Answer | None) -> dict[str, object] | None:
    """The run behind an answer: what was explored, within which bounds, and what repeats it."""
    if answer is None:
        return None
    of = answer.question
    return {
        "design": of.design,
        "promise": of.promise,
        "bounds": dict(of.constants),
        "verdict": answer.verdict,
        "states": answer.states,
        "steps": answer.steps,
        "command": answer.command,
        "open": list(answer.open),
    }
