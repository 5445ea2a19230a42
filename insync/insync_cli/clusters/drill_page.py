"""The page of a drill: what is said in the terminal, and above it a timeline with a lane for each broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from insync_cli.clusters import drill_text
from insync_cli.terminal import count, write_text
from isr_drill.drill import STOPPED, Records
from isr_drill.lanes import lanes
from isr_drill.story import story
from isr_visual.overview import items, overview_page, table

if TYPE_CHECKING:
    from insync_cli.clusters.drill_text import Answer
    from isr_drill.drill import Outcome, PartitionDrill

MOST_LANES: Final = 40
MOST_COLUMNS: Final = 30
KINDS: Final = {
    "lost": "may be lost",
    "unknown": "unknown",
    "stops": "safe, and may have no leader or refuse writes",
    "safe": "safe",
}
"""How a partition is shown, worst first, and what that means."""


def write_page(answer: Answer, file: Path) -> None:
    """The page as a file; UsageError where it cannot be written."""
    write_text(file, page_of(answer))


def page_of(answer: Answer) -> str:
    """One page with everything that the terminal has, and the timeline."""
    whole = answer.drill
    worst = whole.worst
    parts = [
        "<h1>What is lost if these steps are taken now?</h1>",
        f'<p class="result">{escape(drill_text.decision(answer))}</p>',
        *(f"<p>{escape(line)}</p>" for line in drill_text.beside_decision(answer)),
        f'<p class="quiet">{escape(drill_text.about(answer))}</p>',
        "<h2>Step by step</h2>",
        timeline(answer),
        table(
            drill_text.HEADER,
            ([*map(escape, drill_text.row(whole, step))] for step in range(len(whole.steps) + 1)),
        ),
    ]
    if worst is not None and worst.way is not None:
        lines = "".join(f"<li>{escape(line)}</li>" for line in story(worst.situation, worst.way, whole.steps))
        parts.append(
            f'<h2>How {escape(worst.partition.name)} may lose a record</h2><section class="way"><ol>{lines}</ol>'
        )
        parts.append("</section>")
    if answer.code and (better := drill_text.better_order(answer)):
        parts.append(f'<h2>The same steps, mended</h2><p class="advice">{escape(better)}</p>')
    for title, rows in (("By topic", drill_text.by_topic(whole)), ("By broker", drill_text.by_broker(whole))):
        cells = [[escape(name), *(f"{n:,}" for n in numbers)] for name, *numbers in rows]
        parts += [f"<h2>{title}</h2>", table((title[3:], *drill_text.COUNTS), cells)] if cells else []
    parts += ["<h2>What was assumed</h2>", items(drill_text.notes(answer)) or "<p>Nothing.</p>"]
    return overview_page("insync drill: what is lost by these steps", "\n".join(parts))


def kind_of(outcome: Outcome) -> str:
    """How a partition is shown after a step."""
    if outcome.records is Records.MAY_BE_LOST:
        return "lost"
    if outcome.records is Records.UNKNOWN:
        return "unknown"
    return "stops" if outcome.service in STOPPED else "safe"


def timeline(answer: Answer) -> str:
    """A column for each step, and in it a cell for each broker: how it is, and what its partitions can lose."""
    whole = answer.drill
    how = lanes(answer.cluster, whole.steps)
    by_broker = partitions_by_broker(whole.in_reach)
    brokers, left_out = shown_brokers(answer, by_broker)
    columns = range(min(len(whole.steps) + 1, MOST_COLUMNS))
    racks = answer.cluster.racks
    names = [f"{b}{f' ({racks[b]})' if b in racks else ''}" for b in brokers]
    rows = f'style="grid-row: span {len(brokers) + 1}"'
    lane_names = "".join(f'<div class="lane-name">broker {escape(name)}</div>' for name in names)
    parts = [f'<div class="lane-names" {rows} aria-hidden="true"><div class="lane-head"></div>{lane_names}</div>']
    for step in columns:
        text = f"{step} {whole.steps[step - 1].text}" if step else "now"
        hit = whole.steps[step - 1].brokers if step else ()
        cells = "".join(
            cell(name, how[step][b], [p.outcomes[step] for p in by_broker.get(b, ())], is_hit=b in hit)
            for b, name in zip(brokers, names, strict=True)
        )
        parts.append(f'<div class="lane-step" {rows}><div class="lane-head">{escape(text)}</div>{cells}</div>')
    key = "".join(f'<i class="{kind}"></i>{escape(says)}' for kind, says in KINDS.items())
    more = [f"{count(left_out, 'broker')} with fewer of these partitions"] if left_out else []
    later = len(whole.steps) + 1 - MOST_COLUMNS
    more += [f"{count(later, 'later step')}"] if later > 0 else []
    note = f" Not in the picture: {' and '.join(more)}; the tables have all." if more else ""
    style = f'style="grid-template-rows: repeat({len(brokers) + 1}, auto)"'
    return (
        f'<div class="lanes" role="group" aria-label="Brokers by step" {style}>{"".join(parts)}</div>'
        f'<p class="quiet key">Of the partitions with a replica on a broker:{key}.{escape(note)}</p>'
    )


def cell(name: str, state: str, outcomes: Sequence[Outcome], *, is_hit: bool) -> str:
    """A broker after a step."""
    counts = Counter(map(kind_of, outcomes))
    what = ", ".join(f"{counts[kind]:,} {says}" for kind, says in KINDS.items() if counts[kind])
    shares = "".join(f'<i class="{kind}" style="flex:{counts[kind]}"></i>' for kind in KINDS if counts[kind])
    whole = f"broker {name}: {state}" + (f"; {what}" if what else "")
    return (
        f'<div class="lane-cell{" hit" if is_hit else ""}" title="{escape(whole)}">'
        f'<span class="who">{escape(name)} </span>{escape(state)}'
        f'<div class="shares" role="img" aria-label="{escape(what or "no partition")}">{shares}</div></div>'
    )


def partitions_by_broker(partitions: Iterable[PartitionDrill]) -> Mapping[int, list[PartitionDrill]]:
    """Partitions by the brokers that have a replica before the first step."""
    by_broker: dict[int, list[PartitionDrill]] = {}
    for p in partitions:
        for b in p.partition.replicas:
            by_broker.setdefault(b, []).append(p)
    return by_broker


def shown_brokers(answer: Answer, by_broker: Mapping[int, Sequence[PartitionDrill]]) -> tuple[list[int], int]:
    """The lanes, by rack and id, and how many brokers have none: those that steps name come first, then full ones."""
    named = {b for step in answer.drill.steps for b in step.brokers}
    whole = sorted({*named, *by_broker}, key=lambda b: (b not in named, -len(by_broker.get(b, ())), b))
    racks = answer.cluster.racks
    kept = sorted(whole[:MOST_LANES], key=lambda b: (racks.get(b, ""), b))
    return kept, len(whole) - len(kept)
