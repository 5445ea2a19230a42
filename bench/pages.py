"""Where what was measured goes on a page of docs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def put_on_page(page: Path, mark: str, text: str) -> None:
    """Everything after the mark of a page is this text."""
    before = page.read_text(encoding="utf-8")
    page.write_text(f"{before[: before.index(mark)]}{mark}{text}\n", encoding="utf-8")


def between(text: str, begin: str, content: str, end: str) -> str:
    """The text of a page with this content between a mark and the end that follows it; ValueError without them."""
    start = text.index(begin) + len(begin)
    return f"{text[:start]}{content}{text[text.index(end, start) :]}"


def put_between(page: Path, begin: str, content: str, end: str) -> None:
    """The same of a page that is a file."""
    page.write_text(between(page.read_text(encoding="utf-8"), begin, content, end), encoding="utf-8")


def markdown(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
