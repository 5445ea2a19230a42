"""An audit in words: for the terminal, for a ticket, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from insync_cli import terminal
from insync_cli.omissions import omissions_text
from insync_cli.terminal import count
from isr_audit.advice import ADDRESS, REASSIGNMENT_FILE, AdviceStep, steps_of
from isr_audit.audit import MAY_BE_LOST, UNKNOWN, Line, RackLoss, Row, kinds_of
from isr_audit.bugs import bugs, worlds_text
from isr_audit.changes import ELR
from isr_audit.cluster import FLUSH, MIN_INSYNC, UNCLEAN
from isr_audit.condition import WORDS, Condition, Trouble
from isr_audit.questions import CRASH, DISK, NOTHING, POWER
from isr_audit.releases import Running
from isr_audit.report import Audit
from isr_audit.voters import empty_disk
from isr_check.engine import Verdict
from isr_trace.scene import View
from isr_trace.story import story

if TYPE_CHECKING:
    from rich.console import Console

    from isr_audit.answers import Answer
    from isr_audit.audit import Change
    from isr_audit.cluster import Partition
    from isr_audit.release_losses import Way
    from isr_trace.trace import Trace

SCHEMA = "insync/audit/1"
LEGEND = (
    "A crash keeps the disk; a power loss loses what was not flushed; whoever loses its disk stops, and comes back "
    "empty or not at all; a restart is in order. Replicas may lag, and leadership may move, in every case."
)
NOT_JUDGED = "clients, transactions, tiered storage, compaction, controllers"
"""What no line of an audit is about."""
BUGS = "Known bugs of this release, each of which loses acknowledged records"
NO_RACKS = "the loss of a rack is not judged: broker.rack was not told of every broker"
MOST_NAMES = 6
"""So many topics of a row, or partitions of a trouble, are named; the rest are counted."""


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
    if audit.cluster.partitions and not judges_racks(audit):
        said.append(NO_RACKS)
    return [*audit.runs.notes, *said]


def controllers(audit: Audit) -> str:
    """What a controller's disk is worth; "" where nobody told how controllers are known."""
    said = empty_disk(audit.cluster)
    return f"Controllers: {said}." if said else ""


def judges_racks(audit: Audit) -> bool:
    """Whether the racks of all replicas of some topic were told."""
    return any(kind.in_rack for kind in kinds_of(audit.cluster, audit.runs))


def topic_names(*rows: Row) -> str:
    """The topics of these rows, the first of them by name."""
    return some_names([t.name for row in rows for t in row.topics])


def some_names(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """The first, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if names[most:] else "")


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


SHORT = ("topics", "replicas", "minimum", "one crash", "power loss", "disk lost", "what prevents it")
SHORT_FAULTS = (CRASH, POWER, DISK)


def in_short(audit: Audit) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """The topics, and what one failure does to them; kinds of which the same is said are one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in audit.rows:
        s, minimum = row.kind.settings, "not told" if MIN_INSYNC in row.kind.open else row.kind.settings.min_insync
        verdicts = (row.line("all", fault).verdict for fault in SHORT_FAULTS)
        cells = (str(s.replicas), str(minimum), *verdicts, plan_text(row))
        groups.setdefault(cells, []).extend(t.name for t in row.topics)
    yield from ((names, cells) for cells, names in groups.items())


def plan_text(row: Row) -> str:
    """What prevents every loss by one failure, in a few words."""
    if not row.at_risk:
        return "undecided (--details)" if row.is_undecided else ""
    if row.plans:
        against = ((f"{faults}: " if faults else "", " and ".join(change.settings)) for faults, change in row.plans)
        text = "; ".join(f"{faults}{settings}" for faults, settings in against)
        return text.replace(ELR, "eligible leader replicas")
    whole = all(line.advice_is_whole for line in row.lost_singly)
    return "no change that was explored" if whole else "not known: not every change was explored"


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

    Faults with one answer are one line, and lines with one verdict stand together.
    """
    faults_by_answer: dict[tuple[str, str, str], list[str]] = {}
    for line in row.lines:
        faults_by_answer.setdefault((line.acks, line.verdict, because(line)), []).append(fault_text(line))
    order = list(dict.fromkeys((acks, verdict) for acks, verdict, _ in faults_by_answer))
    before = ""
    for (acks, verdict, why), faults in sorted(faults_by_answer.items(), key=lambda item: order.index(item[0][:2])):
        said = ", ".join(faults)
        yield "" if acks == before else f"acks={acks}", verdict, f"{said} ({why})" if why else said
        before = acks


def fault_text(line: Line) -> str:
    """What fails; where nothing does, that it is lost even so."""
    if line.fault is not NOTHING:
        return line.fault.says
    return "even if nothing fails" if line.verdict == MAY_BE_LOST else "if nothing fails"


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


def example_of(row: Row) -> Partition | None:
    """A partition of the row that a story can be told of, one that is well before others; None where none was told."""
    partitions = [p for t in row.topics for p in t.partitions if p.replicas]
    return next((p for p in partitions if p.whole), partitions[0] if partitions else None)


def steps_told(answer: Answer, example: Partition | None = None) -> list[str]:
    """The story's sentences with their steps; what is left out between two is marked. The brokers are those of an
    example, where there is one."""
    trace = answer.trace()
    assert trace is not None, "only losses are told"
    ids = broker_names(trace, example)
    sentences: list[str] = []
    last = 0
    for sentence in story(trace).sentences:
        text = "".join(ids.get(word, word) for word in re.split(r"\b(r\d+)\b", sentence.text))
        text = text[:1].upper() + text[1:] if ids else text
        if sentence.step is None:
            sentences.append(text)
            continue
        sentences.append(f"T{sentence.step}: {left_out(last + 1, sentence.step - 1)}{text}")
        last = sentence.step
    return sentences


def left_out(first: int, last: int) -> str:
    """That steps are not told."""
    if first > last:
        return ""
    return f"(T{first} is left out) " if first == last else f"(T{first} to T{last} are left out) "


def broker_names(trace: Trace, example: Partition | None) -> dict[str, str]:
    """The brokers of a partition in place of the model's replicas: who leads first is the leader, or the preferred."""
    if example is None:
        return {}
    start = View(trace, 0)
    leader = start.values_by_role.get("leader")
    first = example.leader if example.leader in example.replicas else example.replicas[0]
    rest = sorted((b for b in example.replicas if b != first), key=lambda b: b not in example.isr)
    names = sorted(start.replicas, key=lambda r: (r != leader, r))
    return {name: f"broker {b}" for name, b in zip(names, (first, *rest), strict=False)}


def prevention(line: Line) -> str:
    if line.change is None and line.advice_is_whole:
        return "none of the changes of settings that were explored prevents it"
    if line.change is None:
        return "which change of settings would prevent it was not explored"
    return f"prevented by {' and '.join(line.change.settings)}; the price: {', and '.join(line.change.costs)}"


def result_line(audit: Audit) -> str:
    """One line for a log."""
    topics = count(len(audit.cluster.topics), "topic")
    omissions = omissions_text((len(audit.cluster.omissions), "other topic", ""))
    undecided = sum(len(row.topics) for row in audit.rows if row.is_undecided)
    unread = sum(c.trouble is Trouble.UNKNOWN for c in audit.now)
    doubts = [count(n, what) for n, what in ((undecided, "topic"), (unread, "partition")) if n]
    doubts += ["what was not told"] if audit.cluster.gaps else []
    return (
        f"insync audit: {len(audit.topics_at_risk)} of {topics} may lose acks=all records by one failure; "
        f"{count(len(audit.stopped), 'partition')} without leader or under the minimum, {len(audit.lacking)} "
        f"under-replicated{'; UNKNOWN: ' if doubts else ''}{', '.join(doubts)}{'; ' if omissions else ''}{omissions}"
    )


# Terminal


def brief(audit: Audit) -> list[str]:
    """How it is now, which topics are at risk, and the line for a log."""
    risky = [title(row) for row in audit.rows if row.at_risk]
    return [*now_lines(audit), *(f"one failure may lose records of {text}" for text in risky), result_line(audit)]


def show_details(out: Console, audit: Audit) -> None:
    """What each kind of topic may lose and how, the runs, and the known bugs."""
    for note in notes(audit):
        terminal.print_wrapped(out, f"note: {note}", 2)
    out.print("\nNow", style="bold")
    for line in now_lines(audit):
        terminal.print_marked(out, line, 2)
    for row in audit.rows:
        out.print()
        out.print(title(row), style="bold", soft_wrap=True)
        for note in row.notes:
            terminal.print_wrapped(out, f"note: {note}", 2)
        terminal.print_table(out, TABLE, list(table(row)))
        terminal.print_wrapped(out, stopping(row), 2)
        for first, same in shown_losses(row):
            show_loss(out, row, first, same)
        show_ways(out, row)
        out.print("  Runs in which nothing is lost, or nothing was decided:", soft_wrap=True)
        for line in commands_without_loss(row):
            out.print(f"  $ {line}", style="dim", soft_wrap=True)
    terminal.print_lines(out, BUGS, bug_lines(audit))
    if said := controllers(audit):
        out.print()
        terminal.print_wrapped(out, said, 0)
    out.print(f"\n{LEGEND}", style="dim", soft_wrap=True)


TABLE = ("", "what was acknowledged", "when")


def shown_losses(row: Row) -> list[tuple[Line, list[Line]]]:
    """Of each acks the loss that needs least; a ticket and a page have all of them."""
    found: dict[str, tuple[Line, list[Line]]] = {}
    for first, same in losses(row):
        found.setdefault(first.acks, (first, same))
    return list(found.values())


def loss_title(row: Row, line: Line) -> str:
    """Which loss it is, and of which partition it is told."""
    example = example_of(row)
    whose = f", told of {example.name}" if example is not None else ""
    return f"acks={line.acks}, {fault_text(line)}. The shortest way to a loss{whose}:"


def show_loss(out: Console, row: Row, line: Line, same: Sequence[Line]) -> None:
    assert line.answer is not None, "a loss has a run"
    out.print(f"  {loss_title(row, line)}", soft_wrap=True)
    for sentence in steps_told(line.answer, example_of(row)):
        terminal.print_wrapped(out, sentence, 4)
    for other in advice_for(same):
        terminal.print_wrapped(out, other, 2)
    out.print(f"  $ {line.answer.command}", style="dim", soft_wrap=True)


def show_ways(out: Console, row: Row) -> None:
    """What else loses a record of these topics on Kafka as it is released."""
    for text in ways_title(row):
        terminal.print_wrapped(out, text, 2)
    for way in row.ways_to_loss:
        terminal.print_wrapped(out, f"- {way_text(row, way)}", 4)
        out.print(f"      $ {way.answer.command}", style="dim", soft_wrap=True)
    for text in ways_rest(row):
        terminal.print_wrapped(out, text, 2)


def ways_title(row: Row) -> list[str]:
    """What the list of ways is about; nothing where there is none."""
    if not row.ways_to_loss:
        return []
    design = row.ways_to_loss[0].answer.question.design
    return [f"Kafka as it is released (design {design}) loses a record of such a topic, though no broker fails, if"]


def way_text(row: Row, way: Way) -> str:
    """What is done, in how many steps a record is lost, and the bug of this release that it shows."""
    runs = Running(row.kind.release, row.kind.design)
    known = [bug for bug in bugs() if bug.name == way.deed.bug and bug.applies(runs)]
    shown = [f"as in {bug.name}: {bug.show}" for bug in known]
    return f"{way.deed.says} ({'; '.join([count(way.answer.steps or 0, 'step'), *shown])})"


def ways_rest(row: Row) -> list[str]:
    """The deeds by which no way was found, and those that were not decided."""
    none = [way.deed.says for way in row.ways if way.answer.verdict == Verdict.HOLDS]
    undecided = [way.deed.says for way in row.ways if way.answer.verdict == Verdict.UNKNOWN]
    said = [f"No way was found, within small bounds, if {'; if '.join(none)}."] if none else []
    return [*said, *([f"Not decided: if {'; if '.join(undecided)}."] if undecided else [])]


def advice_for(lines: Sequence[Line]) -> list[str]:
    """What would prevent each of these, those with the same advice in one sentence. Of acks=1 only the least fault is
    worth advice: with acks=all the others are told there."""
    faults_by_advice: dict[str, list[str]] = {}
    for line in lines if lines[0].acks == "all" else lines[:1]:
        faults_by_advice.setdefault(prevention(line), []).append(fault_text(line))
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
    lines += [f"| {' | '.join(SHORT)} |", f"{'|---' * len(SHORT)}|"]
    lines += [f"| {' | '.join((some_names(names), *cells))} |" for names, cells in in_short(audit)]
    lines += ["", f"Not judged: {NOT_JUDGED}.", *markdown_steps(audit)]
    for row in audit.rows:
        lines += ["", f"## {title(row)}", "", *(f"- note: {note}" for note in row.notes), ""]
        lines += [f"| {' | '.join(TABLE)} |", "|---|---|---|"]
        lines += [f"| {' | '.join(cells)} |" for cells in table(row)]
        lines += ["", stopping(row)]
        for first, same in losses(row):
            assert first.answer is not None, "a loss has a run"
            lines += ["", loss_title(row, first), ""]
            lines += [f"- {sentence}" for sentence in steps_told(first.answer, example_of(row))]
            lines += ["", *(f"- {advice}" for advice in advice_for(same)), "", f"    {first.answer.command}"]
        lines += markdown_ways(row)
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
    lines += ["", said] if (said := controllers(audit)) else []
    lines += ["", LEGEND]
    return "\n".join([*lines, "", result_line(audit), ""])


def markdown_ways(row: Row) -> Iterator[str]:
    """What else loses a record of these topics on Kafka as it is released."""
    for text in ways_title(row):
        yield from ("", f"{text}:", "")
    for way in row.ways_to_loss:
        yield from (f"- {way_text(row, way)}", "", f"        {way.answer.command}", "")
    for text in ways_rest(row):
        yield from ("", text)


def markdown_steps(audit: Audit) -> Iterator[str]:
    """What to do, with what to type."""
    for names, change, steps in plans(audit):
        yield from ("", f"## {names}: {' and '.join(change.settings)}", "")
        for n, step in enumerate(steps, 1):
            yield from (f"{n}. {step.says}", "", *(f"        {line}" for line in lines_to_type(step)), "")


def plans(audit: Audit) -> Iterator[tuple[str, Change, list[AdviceStep]]]:
    """Of each row that one failure may hurt, its topics and against what, a change that is known to help, its steps."""
    for row in audit.rows:
        for faults, change in row.plans:
            steps = steps_of(row, change, audit.cluster, audit.runs, audit.bootstrap or ADDRESS)
            yield f"{topic_names(row)}{f', against {faults}' if faults else ''}", change, steps


def lines_to_type(step: AdviceStep) -> list[str]:
    """What to type in a step, its file first, as lines of a shell; of many commands the first, and a remark."""
    lines = [f"echo '{step.file}' > {REASSIGNMENT_FILE}"] if 0 < len(step.file) <= LONGEST_FILE else []
    lines += [f"# {REASSIGNMENT_FILE} is in the JSON of --json"] if len(step.file) > LONGEST_FILE else []
    lines += step.commands[:MOST_COMMANDS]
    more = len(step.commands) - MOST_COMMANDS
    return [*lines, f"# and {count(more, 'command')} more, which --json has"] if more > 0 else lines


MOST_COMMANDS = 6
LONGEST_FILE = 2_000
"""A file of so many characters can be typed."""


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
        "not_judged": NOT_JUDGED,
        "controllers": controllers(audit),
        "rows": [row_entry(row) for row in audit.rows],
        "plans": [
            {
                "topics": names,
                "settings": list(change.settings),
                "costs": list(change.costs),
                "steps": [attrs.asdict(step) for step in steps],
            }
            for names, change, steps in plans(audit)
        ],
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
        "answers": [line_entry(line, example_of(row)) for line in row.lines],
        "as_released": [way_entry(way) for way in row.ways],
    }


def way_entry(way: Way) -> dict[str, object]:
    verdict = {Verdict.VIOLATED: "lost", Verdict.HOLDS: "none"}.get(Verdict(way.answer.verdict), "unknown")
    deed = way.deed
    return {
        "deed": deed.name,
        "says": deed.says,
        "bug": deed.bug,
        "verdict": verdict,
        "run": run_entry(way.answer),
    }


def line_entry(line: Line, example: Partition | None) -> dict[str, object]:
    change = line.change
    return {
        "acks": line.acks,
        "fault": line.fault.name,
        "verdict": {MAY_BE_LOST: "lost", UNKNOWN: "unknown"}.get(line.verdict, "survives"),
        "because": line.because,
        "advice_is_whole": line.advice_is_whole,
        "run": run_entry(line.answer),
        "story": steps_told(line.answer, example) if line.verdict == MAY_BE_LOST and line.answer is not None else [],
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
