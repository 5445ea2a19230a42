"""What every verb prints with: a console, tables without boxes, colours for verdict words, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli.exits import UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COLOURS = {
    "PROVED": "bold green",
    "EXHAUSTED": "green",
    "BOUNDED": "green",
    "SAMPLED": "yellow",
    "BUDGETED": "yellow",
    "UNKNOWN": "yellow",
    "VACUOUS": "yellow",
    "VIOLATED": "bold red",
    "ERROR": "bold red",
}
WIDTH_OF_A_LOG = 110


def console(*, plain: bool) -> Console:
    """stdout: as wide as the terminal, or as a log; no colour when plain or not a terminal."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # not rich's exit code 1, which would be an answer

    width = None if sys.stdout.isatty() else WIDTH_OF_A_LOG
    return Ours(width=width, no_color=plain, highlight=False, markup=False, emoji=False)


def verdict(word: str) -> Text:
    from rich.text import Text

    return Text(word, style=COLOURS.get(word, ""))


def print_table(
    out: Console, header: Sequence[str], rows: Iterable[Sequence[str | Text]], indent: int = 2
) -> None:
    """Columns of text; only the last one wraps."""
    from rich.padding import Padding
    from rich.table import Table

    kept = list(rows)
    if kept and not any(str(row[-1]) for row in kept):
        header, kept = header[:-1], [row[:-1] for row in kept]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(header))
    for i, name in enumerate(header):
        table.add_column(name, no_wrap=i < len(header) - 1, overflow="fold")
    for row in kept:
        table.add_row(*row)
    out.print(Padding(table, (0, 0, 0, indent), expand=False))


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


def check_json_target(target: str | None) -> None:
    """UsageError now rather than after minutes of exploration."""
    if target not in (None, "-"):
        write_text(Path(str(target)), "")


def write_json(target: str | None, value: object) -> None:
    """To stdout for '-', to a file otherwise, nowhere for None."""
    if target is None:
        return
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write_text(Path(target), text)


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


def note(text: str, *, plain: bool) -> None:
    """One line on stderr that replaces itself, only where somebody watches; '' clears it."""
    if sys.stderr.isatty() and not plain:
        sys.stderr.write(f"\r{text:<78}" + ("" if text else "\r"))
        sys.stderr.flush()
