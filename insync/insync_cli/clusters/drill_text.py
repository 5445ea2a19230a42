"""A drill in words: the decision, a line a step, the story of the worst partition, a better runbook; and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from insync_cli import terminal
from insync_cli.exits import Exit
from insync_cli.omissions import omissions_text
from insync_cli.terminal import count
from isr_audit.voters import voters_of
from isr_drill.drill import STOPPED, Drill, Mend, PartitionDrill, Records, Service
from isr_drill.quorum import LEAVES, UNTOLD_VOTERS
from isr_drill.runbook import ENDS_ABRUPTLY, START
from isr_drill.story import story

if TYPE_CHECKING:
    from rich.console import Console

    from isr_audit.cluster import Cluster
    from isr_audit.releases import Running

SCHEMA: Final = "insync/drill/1"
MOST_NAMES: Final = 3
MOST_NOTES: Final = 4
MOST_STORY: Final = 8
MOST_STEPS: Final = 8
WORDS: Final = {
    Service.LEADERLESS: "no leader",
    Service.REFUSES: "refuses acks=all",
    Service.AT_MINIMUM: "at minimum",
}
TIMEOUT: Final = "broker.session.timeout.ms, 9 s by default"
COUNTS: Final = ("may be lost", "unknown", "safe", "of these no leader or no writes")
"""The columns of a count, after what is counted."""
HEADER: Final = ("step", "no leader", "refuses", "at minimum", "may be lost", "unknown", "safe", "the worst, by name")


@attrs.frozen
class Answer:
    """A drill and what it was about; `other`: the same runbook mended, None where none was found or needed."""

    cluster: Cluster
    runs: Running
    drill: Drill
    other: Mend | None
    code: int


def names(partitions: Iterable[PartitionDrill], most: int = MOST_NAMES) -> str:
    """The first names, and how many more there are."""
    whole = [p.partition.name for p in partitions]
    return " ".join(whole[:most]) + (f" and {len(whole) - most:,} more" if len(whole) > most else "")


def decision(answer: Answer) -> str:
    """Whether to do it, in a sentence, and which topics nobody asked about."""
    left = omissions_text((len(answer.cluster.omissions), "other topic", ", of which the steps may touch partitions"))
    return f"{decision_for_topics(answer)}; {left}" if left else decision_for_topics(answer)


def decision_for_topics(answer: Answer) -> str:
    """Whether to do it, as far as the topics go that were asked about."""
    whole = answer.drill
    losses, unknown = whole.with_records(Records.MAY_BE_LOST), whole.with_records(Records.UNKNOWN)
    of = f"of {count(len(whole.in_reach), 'partition')} that the steps touch"
    if losses:
        worst = whole.worst
        step = worst.loss_step if worst is not None else None
        when = (
            f", first after step {step} ({whole.steps[step - 1].text})"
            if step
            else ", before any step"
            if worst
            else ""
        )
        in_order = sorted(losses, key=lambda p: p.loss_step or 0)
        return f"NO: acknowledged records of {len(losses):,} {of} may be lost{when}: {names(in_order)}"
    gaps = answer.cluster.gaps
    if gaps:
        more = f", and {len(gaps) - 1:,} more of the kind" if len(gaps) > 1 else ""
        first = next(iter(gaps))
        return f"UNKNOWN: not every partition was told, and the steps may touch another: {first}{more}"
    if unknown:
        return f"UNKNOWN: {len(unknown):,} {of} cannot be decided: {names(unknown)}"
    if not whole.in_reach:
        what = (
            "touch no partition that was described"
            if any(s.stages for s in whole.steps)
            else "do nothing to any broker"
        )
        return f"YES: the steps {what}"
    stops = whole.standstill
    if stops:
        return f"NOT NOW: nothing is lost, but {len(stops):,} {of} may have no leader or refuse writes: {names(stops)}"
    return f"YES: no acknowledged record of {count(len(whole.in_reach), 'partition')} is lost{service_text(whole)}"


def service_text(whole: Drill) -> str:
    """Who serves meanwhile, of steps that lose nothing and stop nothing more: the end of the sentence."""
    stood = whole.with_service(*STOPPED)
    still = [p for p in stood if p.outcomes[-1].service in STOPPED]
    if stood and not still:
        return ", and all take writes in the end"
    if still:
        have = "has" if len(still) == 1 else "have"
        return f"; {len(still):,} {have} no leader or cannot take writes already, and may go on so: {names(still)}"
    gap = until_session_ends(whole)
    if gap:
        return f"; {gap}"
    if any(stage.kind in ENDS_ABRUPTLY for step in whole.steps for stage in step.stages):
        return f"; acks=all may wait until the session of a broker ends ({TIMEOUT}), or until its leader drops it"
    return ", and all take writes throughout"


def until_session_ends(whole: Drill) -> str:
    """Who leads without serving anybody until the controller misses a broker, in words; "" where nobody may."""
    stops = whole.with_service(*STOPPED)
    waiting = [p for p in whole.awaiting_session if p not in stops]
    if not waiting:
        return ""
    have = "partition has" if len(waiting) == 1 else "partitions have"
    return f"{len(waiting):,} {have} no leader until the session of a broker ends ({TIMEOUT}): {names(waiting)}"


def beside_decision(answer: Answer) -> list[str]:
    """What belongs to a decision that is not YES or NO: what to wait for, and who has no leader for a while."""
    gap = until_session_ends(answer.drill) if answer.code in (Exit.AT_RISK, Exit.INCONCLUSIVE) else ""
    return list(filter(None, [what_to_wait_for(answer), f"Beside that {gap}" if gap else ""]))


def what_to_wait_for(answer: Answer) -> str:
    """Who has to be in sync before the first step, of the partitions that stop; "" where all of theirs are."""
    stops = answer.drill.standstill
    lacking = [(p.partition.name, [r for r in p.partition.replicas if r not in p.partition.isr]) for p in stops]
    told = [f"{name} ({' '.join(map(str, away))})" for name, away in lacking if away]
    more = f" and {len(told) - MOST_NAMES:,} more" if len(told) > MOST_NAMES else ""
    return f"Wait until these are in sync, then ask again: {', '.join(told[:MOST_NAMES])}{more}" if told else ""


def about(answer: Answer) -> str:
    """The cluster and what was explored, in one line."""
    runs, whole = answer.runs, answer.drill
    designs = " or ".join((runs.design, *runs.also))
    return (
        f"Kafka {runs.version}; protocol {designs}; {count(len(whole.partitions), 'partition')} in "
        f"{whole.classes:,} {'class' if whole.classes == 1 else 'classes'}; {whole.states:,} states explored"
    )


def row(whole: Drill, step: int) -> tuple[str, ...]:
    """A step's line: partitions by what may be so after it."""
    text = f"{step} {whole.steps[step - 1].text}" if step else "now"
    services = [[p for p in whole.partitions if p.outcomes[step].service is s] for s in WORDS]
    records = [[p for p in whole.partitions if p.outcomes[step].records is r] for r in Records]
    groups = zip(("lost", "unknown", *WORDS.values()), (*records[:2], *services), strict=True)
    worst = next((f"{word}: {names(some)}" for word, some in groups if some), "")
    return (text, *(f"{len(some):,}" for some in (*services, *records)), worst)


def notes(answer: Answer) -> list[str]:
    """What was assumed, and what would decide what is UNKNOWN."""
    whole = answer.drill
    reasons = dict.fromkeys(o.because for p in whole.partitions for o in p.outcomes if o.because)
    return [
        *answer.runs.notes,
        *answer.cluster.gaps,
        *answer.cluster.notes,
        *disk_notes(answer),
        *voter_notes(answer),
        *(f"{step.text}: {step.note}" for step in whole.steps if step.note),
        *(f"UNKNOWN: {reason}" for reason in reasons),
    ]


def voter_notes(answer: Answer) -> Iterator[str]:
    """What is taken for granted of controllers, where a step takes brokers away."""
    gone = any(stage.kind in LEAVES and stage.brokers for step in answer.drill.steps for stage in step.stages)
    if gone and voters_of(answer.cluster) is None:
        yield UNTOLD_VOTERS


def disk_notes(answer: Answer) -> Iterator[str]:
    """What is taken for granted of brokers that are down before the first step, and that a step starts."""
    living = answer.cluster.living
    members = {b for p in answer.cluster.partitions if p.leader is None for b in (*p.isr, *(p.elr or ()))}
    for step in answer.drill.steps:
        down = [b for b in step.brokers if b in members or (living is not None and b not in living)]
        if down and step.stages[0].kind == START:
            yield (
                f"{step.text}: {' '.join(map(str, down))} may be down already, and its disk is taken to have what it "
                "acknowledged; 'power-loss' before it asks otherwise"
            )


def show(out: Console, answer: Answer) -> None:
    """The decision first, then a line a step, then the worst partition's story."""
    whole = answer.drill
    terminal.print_wrapped(out, decision(answer), 0)
    for line in beside_decision(answer):
        terminal.print_wrapped(out, line, 0)
    shown = range(len(whole.steps) + 1)
    left_out = len(shown) - MOST_STEPS if len(shown) > MOST_STEPS + 1 else 0
    rows = [row(whole, step) for step in (*shown[: len(shown) - left_out - 1], shown[-1])]
    out.print()
    terminal.print_table(out, HEADER, rows)
    if left_out:
        out.print(f"  {count(left_out, 'step')} before the last are not shown; --json has them", style="dim")
    worst = whole.worst
    if worst is not None and worst.way is not None:
        out.print(f"\nHow {worst.partition.name} may lose a record", style="bold")
        for line in without_middle(story(worst.situation, worst.way, whole.steps)):
            terminal.print_wrapped(out, line, 2)
    lines = notes(answer)
    for line in lines[:MOST_NOTES]:
        terminal.print_wrapped(out, f"note: {line}", 0)
    if lines[MOST_NOTES:]:
        terminal.print_wrapped(out, f"note: {len(lines) - MOST_NOTES} more, which --json has", 0)


def without_middle(lines: Sequence[str]) -> list[str]:
    """A long story without its middle."""
    if len(lines) <= MOST_STORY:
        return list(lines)
    half = MOST_STORY // 2
    return [*lines[:half], f"... {len(lines) - 2 * half} more, which --json has ...", *lines[-half:]]


def better_order(answer: Answer) -> str:
    """Another order under which all is safe, or that none was found."""
    if answer.other is None:
        settings = "" if answer.drill.is_safe else ", and no other minimum,"
        return f"No other order of these steps{settings} that was tried is better"
    steps = "; ".join(step.text for step in answer.other.drill.steps)
    stops = answer.other.drill.with_service(*STOPPED)
    meanwhile = f" ({count(len(stops), 'partition')} may refuse writes meanwhile)" if stops else ""
    change = " and ".join(filter(None, (set_before(answer.other), answer.other.change)))
    return f'Better, {change}: "{steps}"{meanwhile}'


def set_before(better: Mend) -> str:
    """Which settings the topics must have before the first step; "" for as they are."""
    topics: dict[str, list[str]] = {}
    for setting in better.settings:
        topics.setdefault(f"{setting.name}={setting.value}", []).append(setting.topic)
    texts = (
        f"{setting} on {' '.join(of[:MOST_NAMES])}" + (f" and {len(of) - MOST_NAMES:,} more" if of[MOST_NAMES:] else "")
        for setting, of in topics.items()
    )
    return f"with {', '.join(texts)} set before (ask again once it is)" if topics else ""


Row: TypeAlias = tuple[str, int, int, int, int]
"""What is counted, then the numbers of `COUNTS`."""


def by_topic(whole: Drill) -> list[Row]:
    """Of each topic that the steps touch the partitions by the worst that happens to them, worst topics first."""
    return _counts(whole, lambda p: (p.partition.topic,))


def by_broker(whole: Drill) -> list[Row]:
    """The same of each broker that has a replica before the first step."""
    return _counts(whole, lambda p: tuple(f"broker {b}" for b in p.partition.replicas))


def _counts(whole: Drill, names_of: Callable[[PartitionDrill], Sequence[str]]) -> list[Row]:
    groups: dict[str, list[PartitionDrill]] = {}
    for p in whole.in_reach:
        for name in names_of(p):
            groups.setdefault(name, []).append(p)
    rows: list[Row] = []
    for name, some in groups.items():
        records = [min(o.records for o in p.outcomes) for p in some]
        safe = [p for p, r in zip(some, records, strict=True) if r is Records.SAFE]
        stops = sum(any(o.service in STOPPED for o in p.outcomes[1:]) for p in safe)
        rows.append((name, records.count(Records.MAY_BE_LOST), records.count(Records.UNKNOWN), len(safe), stops))
    return sorted(rows, key=lambda row: (*(-n for n in row[1:3]), -row[4], len(row[0]), row[0]))


def markdown(answer: Answer) -> str:
    """The same for a ticket, with all of the story."""
    whole, worst = answer.drill, answer.drill.worst
    lines = ["# insync drill", "", decision(answer), ""]
    lines += [line for text in beside_decision(answer) for line in (text, "")]
    lines += [f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|"]
    lines += [f"| {' | '.join(row(whole, step))} |" for step in range(len(whole.steps) + 1)]
    if worst is not None and worst.way is not None:
        lines += ["", f"## How {worst.partition.name} may lose a record", ""]
        lines += [f"{n}. {line}" for n, line in enumerate(story(worst.situation, worst.way, whole.steps), 1)]
    for title, rows in (("topic", by_topic(whole)), ("broker", by_broker(whole))):
        lines += ["", f"## By {title}", "", f"| {' | '.join((title, *COUNTS))} |", "|---" * (len(COUNTS) + 1) + "|"]
        lines += [f"| {' | '.join((name, *(f'{n:,}' for n in numbers)))} |" for name, *numbers in rows]
    lines += ["", "## What was assumed", "", *(f"- {note}" for note in notes(answer)), "", last_line(answer), ""]
    return "\n".join(lines)


def last_line(answer: Answer) -> str:
    """The mended runbook where one was looked for, and what was explored."""
    lines = [] if answer.code == 0 else [better_order(answer)]
    return "\n".join(filter(None, (*lines, about(answer))))


def document(answer: Answer) -> dict[str, object]:
    """Everything, for programs."""
    whole, worst = answer.drill, answer.drill.worst
    way = worst.way if worst is not None else None
    return {
        "schema": SCHEMA,
        "decision": decision(answer),
        "exit_code": answer.code,
        "omissions": list(answer.cluster.omissions),
        "protocols": [answer.runs.design, *answer.runs.also],
        "notes": notes(answer),
        "steps": [step.text for step in whole.steps],
        "partitions": [
            {
                "partition": p.partition.name,
                "touched": p.is_touched,
                "outcomes": [
                    {
                        "records": _word(o.records),
                        "service": _word(o.service),
                        "awaits_session": o.awaits_session,
                        "because": o.because,
                    }
                    for o in p.outcomes
                ],
            }
            for p in whole.partitions
        ],
        "awaiting_session": [p.partition.name for p in whole.awaiting_session],
        "by_topic": [dict(zip(("topic", *COUNTS), r, strict=True)) for r in by_topic(whole)],
        "by_broker": [dict(zip(("broker", *COUNTS), r, strict=True)) for r in by_broker(whole)],
        "worst": None
        if worst is None or way is None
        else {"partition": worst.partition.name, "story": story(worst.situation, way, whole.steps)},
        "mended": None
        if answer.other is None
        else {
            "change": answer.other.change,
            "steps": [step.text for step in answer.other.drill.steps],
            "settings": [attrs.asdict(setting) for setting in answer.other.settings],
        },
        "explored": {"classes": whole.classes, "states": whole.states},
    }


def _word(value: Records | Service) -> str:
    return value.name.lower().replace("_", " ")
