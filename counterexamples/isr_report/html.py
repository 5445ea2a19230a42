"""Pieces of the page: text that is safe, tables, commands, and the small picture of a state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from isr_trace.scene import Row, scene
from isr_trace.trace import Trace

TEMPLATES = Path(__file__).parent / "templates"
VISUAL = Path(__file__).parent.parent / "isr_visual" / "style" / "page.css"
"""The visualiser's style, on which the report's is built, so that all pages look alike."""

HOLDS = ("PROVED", "HOLDS", "BOUNDED")
KINDS = {"VIOLATED": "violated", "VACUOUS": "vacuous", "TOO SMALL": "vacuous", **dict.fromkeys(HOLDS, "holds")}
"""How each verdict is shown; any other is open."""
EPOCHS_SHOWN = 6


def style() -> str:
    """The style sheet of the report, and of every page that is to look like it, in light and in the dark."""
    return VISUAL.read_text(encoding="utf-8") + (TEMPLATES / "report.css").read_text(encoding="utf-8")


def link(target: str, text: str, kind: str = "") -> str:
    """`text` is HTML; what comes after a `#` in the target is a place in that file."""
    classed = f' class="{kind}"' if kind else ""
    file, sharp, place = target.partition("#")
    return f'<a href="{quote(file)}{sharp}{escape(place)}"{classed}>{text}</a>'


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def count_text(n: int, thing: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def prose(text: str) -> str:
    """Paragraphs; what stands in backquotes is code."""
    parts = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    marked = [re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(part)) for part in parts]
    return "".join(f"<p>{part}</p>" for part in marked)


def command(words: str) -> str:
    """A command that can be copied."""
    text = escape(words)
    button = '<button type="button" class="copy" aria-label="copy">Copy</button>'
    return f'<div class="command"><code>{text}</code>{button}</div>'


def verdict(word: str) -> str:
    kind = KINDS.get(word, "open")
    return f'<span class="verdict {kind}">{escape(word)}</span>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Cells are HTML; `numbers` are the columns that are read as numbers."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="number"' if i in numbers else "" for i in range(len(cells))]
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    head = f"<thead><tr>{line(header, 'th')}</tr></thead>"
    return f'<div class="scroll"><table class="plain">{head}<tbody>{body}</tbody></table></div>'


def picture(trace: Trace, index: int) -> str:
    """A state as rows of log cells, as in the visualiser: leader, in-sync set, watermark, epochs as colours."""
    drawn = scene(trace, index)
    if drawn is None:
        return ""
    rows = "".join(_row(row) for row in drawn.rows)
    lost = "".join(f'<p class="loss">{escape(line)}</p>' for line in drawn.losses)
    return f'<div class="state">{rows}{lost}</div>'


def _row(row: Row) -> str:
    cells = "".join(_cell(text, committed=i < (row.watermark or 0)) for i, text in enumerate(row.cells))
    empty = '<span class="slot"></span>' if not row.cells else ""
    mark = "down" if row.down else "leads" if row.leads else "follows"
    badge = {"down": "down", "leads": "leader", "follows": ""}[mark]
    chip = f'<span class="badge {mark}">{badge}</span>' if badge else '<span class="badge"></span>'
    sync = "in" if row.in_sync else "out"
    return (
        f'<div class="replica {mark} {sync}"><span class="chip {sync}">{escape(row.name)}</span>{chip}'
        f'<span class="log">{cells}{empty}</span><span class="derived">{escape(_lane_facts(row))}</span></div>'
    )


def _lane_facts(row: Row) -> str:
    """What follows from the lane: the end of the log, the watermark, and over whom a leader takes the minimum."""
    parts = [f"LEO {len(row.cells)}"]
    parts += [f"HW {row.watermark}"] if row.watermark is not None else []
    parts += [row.over] if row.over else []
    return ", ".join(parts)


def _cell(text: str, *, committed: bool) -> str:
    record, _, epoch = text.partition("@")
    shade = int(epoch) % EPOCHS_SHOWN if epoch.isdecimal() else 0
    return f'<span class="record e{shade}{" committed" if committed else ""}">{escape(record)}</span>'
