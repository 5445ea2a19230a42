"""What every verb prints with: a console, tables without boxes, colours for verdict words, JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options
from insync_cli.exits import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from insync_cli.progress import Ticker
    from insync_cli.sheet import Sheet

COLOURS = {
    "PROVED": "bold green",
    "HOLDS": "green",
    "BOUNDED": "green",
    "SAMPLED": "yellow",
    "BUDGETED": "yellow",
    "UNKNOWN": "yellow",
    "PARTIAL": "yellow",
    "TOO SMALL": "yellow",
    "VACUOUS": "yellow",
    "PERMITTED": "yellow",
    "VIOLATED": "bold red",
    "ERROR": "bold red",
    "survives": "green",
    "FINE": "bold green",
    "MAY BE LOST": "bold red",
    "AT RISK": "bold red",
    "BROKEN NOW": "bold red",
    "OFFLINE": "bold red",
    "UNDER MINIMUM": "bold red",
    "UNDER-REPLICATED": "yellow",
    "NOT NOW": "yellow",
}
WIDTH_OF_A_LOG = 110


@attrs.frozen(kw_only=True)
class Output:
    """Where an answer goes: to a person, to a program, or both."""

    plain: bool = options.flag("no colour, no boxes, no moving line: for logs")
    json: str | None = options.option("FILE|-", "the report as JSON, to a file or (-) to stdout", str)

    @property
    def quiet(self) -> bool:
        """Whether only the result line was asked for."""
        return False

    @property
    def for_people(self) -> bool:
        """Whether stdout is read by a person, and not by whoever wants the JSON."""
        return self.json != "-"

    def check(self) -> None:
        """UsageError now rather than after minutes of exploration."""
        if self.json not in (None, "-"):
            check_writable(Path(str(self.json)))

    def write(self, report: object) -> None:
        """The report, where it was asked for."""
        write_json(self.json, report)

    def console(self) -> Console:
        return console(plain=self.plain)

    def ticker(self) -> Ticker:
        from insync_cli.progress import Ticker

        return Ticker(quiet=self.quiet, plain=self.plain)

    def answer(self, report: object, details: Callable[[Console], None], result: str) -> None:
        """The report as JSON where it is asked for and, unless that goes to stdout, the details and the result line."""
        self.write(report)
        if self.for_people:
            out = self.console()
            if not self.quiet:
                details(out)
            out.print(result, soft_wrap=True)


@attrs.frozen(kw_only=True)
class QuietOutput(Output):
    """The same, where all but the result line may be left out."""

    result_only: bool = options.flag("only the result line, and no progress", name="quiet")

    @property
    def quiet(self) -> bool:
        return self.result_only


def console(*, plain: bool) -> Console:
    """stdout: as wide as the terminal, or as a log. No colour when plain, where NO_COLOR is set, or in a log."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # not rich's exit code 1, which would be an answer

    width = None if sys.stdout.isatty() else WIDTH_OF_A_LOG
    plain = plain or bool(os.environ.get("NO_COLOR"))  # https://no-color.org
    return Ours(width=width, color_system=None if plain else "auto", highlight=False, markup=False, emoji=False)


def sheet_of(show: Callable[[Console], None]) -> Sheet:
    """What is printed, as in a log, and as HTML."""
    from insync_cli.sheet import Sheet

    sheet = Sheet(WIDTH_OF_A_LOG)
    show(sheet)
    return sheet


def print_table(out: Console, header: Sequence[str], rows: Iterable[Sequence[str]], indent: int = 2) -> None:
    """Columns of text below a faint header; the last column wraps, a verdict word has its colour."""
    from insync_cli.sheet import Sheet

    lines = list(rows)
    if isinstance(out, Sheet):
        with out.table(header, lines, COLOURS):
            _print_columns(out, header, lines, indent)
    else:
        _print_columns(out, header, lines, indent)


def _print_columns(out: Console, header: Sequence[str], rows: Sequence[Sequence[str]], indent: int) -> None:
    import textwrap

    from rich.text import Text

    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)][:-1]
    room = max(24, out.width - indent - sum(w + 2 for w in widths))
    for n, row in enumerate((header, *rows)):
        if not any(row):
            continue
        wrapped = [line for part in row[-1].split("\n") for line in textwrap.wrap(part, room) or [""]]
        for i, last in enumerate(wrapped):
            line = Text(" " * indent)
            for cell, width in zip(row, widths, strict=False):
                line.append(("" if i else cell).ljust(width) + "  ", style=COLOURS.get(cell, "") if n else "dim")
            line.append(last, style="" if n else "dim").rstrip()
            out.print(line, soft_wrap=True)


def print_wrapped(out: Console, text: str, indent: int) -> None:
    """One paragraph, every line of it indented."""
    import textwrap

    for line in textwrap.wrap(text, out.width - indent):
        out.print(" " * indent + line, soft_wrap=True)


def print_marked(out: Console, text: str, indent: int) -> None:
    """One paragraph as by `print_wrapped`; the verdict word that it begins with has its colour."""
    import textwrap

    from rich.text import Text

    word = max((w for w in COLOURS if text.startswith(w)), key=len, default="")
    for n, line in enumerate(textwrap.wrap(text, out.width - indent)):
        shown = Text(" " * indent + line)
        if word and not n:
            shown.stylize(COLOURS[word], indent, indent + len(word))
        out.print(shown, soft_wrap=True)


def paragraphs(doc: str) -> str:
    """A docstring with one line per paragraph, to be wrapped anew."""
    return "\n".join(" ".join(part.split()) for part in doc.split("\n\n"))


def print_lines(out: Console, title: str, lines: Iterable[str]) -> None:
    """A titled list; nothing at all when it is empty."""
    shown = list(lines)
    if shown:
        out.print(f"\n{title}", style="bold")
        for line in shown:
            out.print(f"  {line}", soft_wrap=True)


def count(n: int, thing: str) -> str:
    """1 step, 2 steps."""
    return f"{n} {thing}{'' if n == 1 else 's'}"


def check_writable(path: Path) -> None:
    """UsageError where a file cannot be written; what it holds stays."""
    try:
        path.open("a").close()
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {reason(problem)}") from None


def check_apart(target: str | Path, sources: Iterable[object]) -> None:
    """UsageError where a file that is read would be replaced by what is written."""
    if str(target) != "-" and Path(target).resolve() in {Path(str(s)).resolve() for s in sources}:
        raise UsageError(f"{target} is read, and would be replaced: write to another file")


def write_json(target: str | None, value: object) -> None:
    """To stdout for '-', to a file otherwise, nowhere for None."""
    if target is None:
        return
    if target == "-":
        sys.stdout.write(json_text(value))
    else:
        write_text(Path(target), json_text(value))


def json_text(value: object) -> str:
    """JSON as every file of results has it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {reason(problem)}") from None


def make_folder(path: Path, option: str = "--out") -> Path:
    """The folder, made if need be and known to be writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".insync-can-write"
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise UsageError(
            f"cannot write to the folder {path}: {reason(problem)}; choose another with {option}"
        ) from None
    return path


def reason(problem: OSError) -> str:
    if isinstance(problem, FileExistsError):
        return "it is a file"
    return (problem.strerror or type(problem).__name__).lower()
