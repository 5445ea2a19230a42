"""Pages of text and tables in the style of the others, and the parts that they share. Nothing in them runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
STYLES: Final = ("page.css", "overview.css", "lanes.css")


def overview_page(title: str, overview: str) -> str:
    """A page that has this HTML, and loads and runs nothing."""
    style = "".join((HERE / "style" / name).read_text(encoding="utf-8") for name in STYLES)
    text = (HERE / "overview.html").read_text(encoding="utf-8")
    for name, value in {"TITLE": escape(title), "STYLE": style, "OVERVIEW": overview}.items():
        text = text.replace(f"<!--{name}-->", value, 1)
    return text


def items(lines: Iterable[str], *, text: bool = True) -> str:
    """A list; nothing at all where it is empty. Lines are HTML where they are no `text`."""
    whole = "".join(f"<li>{escape(line) if text else line}</li>" for line in lines)
    return f"<ul>{whole}</ul>" if whole else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells of the body are HTML. Each knows the head of its column, which a telephone shows beside it."""

    def cell_text(title: str, cell: str) -> str:
        return f'<td data-head="{escape(title)}">{cell}</td>'

    body = "".join(f"<tr>{''.join(map(cell_text, head, row))}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{"".join(f"<th>{escape(h)}</th>" for h in head)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
