"""A console that keeps what is printed on it, as text and as HTML for notebooks, in which nothing is loaded or run."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from io import StringIO

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme

RED, GREEN, YELLOW, GREY = (190, 50, 40), (20, 130, 90), (170, 110, 0), (128, 128, 128)
THEME = TerminalTheme((255, 255, 255), GREY, [GREY, RED, GREEN, YELLOW, GREY, GREY, GREY, GREY])
"""Colours that can be read on white and on black. What has none of these has the colour of the page around it."""
LINES = "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.4;margin:0.4em 0"
TABLE = "border-collapse:collapse;margin:0.4em 0"
CELL = "text-align:left;vertical-align:top;padding:0.15em 0.8em 0.15em 0;white-space:pre-line"


class Sheet(Console):
    """What is printed is text and, in HTML, `pre` with its colours. Within `table` the text is a table there."""

    def __init__(self, width: int) -> None:
        self._out = StringIO()
        self._parts: list[str] = []
        super().__init__(
            file=self._out,
            width=width,
            color_system=None,
            highlight=False,
            markup=False,
            emoji=False,
            record=True,
            force_jupyter=False,  # rich would show each line in the notebook, and keep none here
        )

    @property
    def text(self) -> str:
        """All of it, as in a log."""
        return self._out.getvalue()

    @property
    def html(self) -> str:
        """All of it, as a part of a page."""
        self._take_lines()
        return f'<div class="insync">{"".join(self._parts)}</div>'

    @contextmanager
    def table(
        self, header: Sequence[str], rows: Iterable[Sequence[str]], colours: Mapping[str, str]
    ) -> Generator[None]:
        """What is printed meanwhile is this table. A word of `colours` is shown in that style."""
        self._take_lines()
        yield
        self.export_text(clear=True)  # in HTML it is the table below
        head = "".join(f'<th style="{CELL}">{escape(word)}</th>' for word in header) if any(header) else ""
        body = "".join(_row(row, colours) for row in rows if any(row))
        head = f"<thead><tr>{head}</tr></thead>" if head else ""
        self._parts.append(f'<table style="{TABLE}">{head}<tbody>{body}</tbody></table>')

    def _take_lines(self) -> None:
        """What was printed since the last table."""
        lines = self.export_html(theme=THEME, code_format="{code}", inline_styles=True).strip("\n")
        if lines.strip():
            self._parts.append(f'<pre style="{LINES}">{lines}</pre>')


def _row(cells: Sequence[str], colours: Mapping[str, str]) -> str:
    return f"<tr>{''.join(_cell(cell, colours) for cell in cells)}</tr>"


def _cell(word: str, colours: Mapping[str, str]) -> str:
    look = Style.parse(colours[word]).get_html_style(THEME) if word in colours else ""
    text = f'<span style="{look}">{escape(word)}</span>' if look else escape(word)
    return f'<td style="{CELL}">{text}</td>'
