"""The line that a page shows below a command is what the command prints today, and its exit code is the page's.

Without this a page would go on quoting a verdict that insync no longer gives.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from insync_cli.main import main

TOP = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^    \$ insync (?P<command>[^\n]+)\n(?:    \.\.\.\n|\n)*"
    r"(?P<line>    insync \w+ .+\n(?:    (?![$ ]).+\n)*)?",
    re.M,
)
ELSEWHERE = {
    "docs/conform.md": "tests/isr_conform/test_conform.py",
    "docs/trade-offs.md": "tests/isr_conform/test_conform.py",
    "docs/own-design.md": "tests/insync_cli/test_own_design.py",
    "docs/kraft-classes.md": "tests/isr_kafka/test_kraft_classes.py",
    "docs/own-broker.md": "it takes brokers of somebody's own",
}
"""Pages whose commands need more than this test has: who holds them, or why nobody can."""


def shown(page: Path) -> list[tuple[str, int | None, str]]:
    """Of each command of a page with a line below it: the command, its exit code where the page says it, the line."""
    blocks: list[tuple[str, int | None, str]] = []
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        command, _, comment = match["command"].partition("    #")
        code = re.search(r"exit (\d+)", comment)
        line = " ".join((match["line"] or "").split())
        if line:
            blocks.append((command.split(" | ")[0].strip(), int(code[1]) if code else None, line))
    return blocks


PAGES = sorted(p for p in (TOP / "README.md", *(TOP / "docs").glob("*.md")) if shown(p))
HERE = [(p, *row) for p in PAGES if p.relative_to(TOP).as_posix() not in ELSEWHERE for row in shown(p)]


def test_pages_with_printed_lines_are_held_here_or_elsewhere() -> None:
    names = {p.relative_to(TOP).as_posix() for p in PAGES}
    assert names >= set(ELSEWHERE) | {"README.md", "docs/bounds.md"}
    assert all((TOP / where).is_file() for where in ELSEWHERE.values() if where.startswith("tests/"))
    assert len(HERE) >= 4


@pytest.mark.explores
@pytest.mark.parametrize(("page", "command", "code", "line"), HERE, ids=lambda value: str(value)[-50:])
def test_a_command_prints_the_line_that_a_page_shows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    page: Path,
    command: str,
    code: int | None,
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    found = main(shlex.split(command))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == line, page.name
    assert code is None or found == code, page.name
