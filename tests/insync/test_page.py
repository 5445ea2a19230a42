"""The page about Python runs, block by block, and prints what it says.

After a change of what an answer says, make its output again:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/insync/test_page.py

Without it the page of those who begin with Python would promise names that are gone.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest
from tests.support.expected import rewriting

pytestmark = [pytest.mark.explores, pytest.mark.solver, pytest.mark.processes]

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs" / "python.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def run_page(page: str) -> str:
    """The page with the output that its blocks print, one after another."""
    names: dict[str, object] = {"__name__": "page"}

    def run_block(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match[1], str(PAGE), "exec"), names)
        return f"```python\n{match[1]}```\n\n```text\n{printed.getvalue()}```"

    return BLOCK.sub(run_block, page)


def test_the_page_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(TOP / "docs")
    page = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) == page.count("```python") == page.count("```text") > 7
    again = run_page(page)
    if rewriting():
        PAGE.write_text(again, encoding="utf-8")
    else:
        assert page == again


def test_a_page_that_says_something_else_is_seen() -> None:
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert run_page(page) == page.replace("3", "2") != page
