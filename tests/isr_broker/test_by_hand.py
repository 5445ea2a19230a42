"""The page that drives two cores by hand runs, and prints what it says.

After a change of the cores, make its output again:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/isr_broker/test_by_hand.py
"""

import contextlib
import io
import re
from pathlib import Path

import attrs
from tests.support.expected import rewriting

from isr_broker.core.replica_state import Replica

PAGE = Path(__file__).resolve().parents[2] / "docs" / "by-hand.md"
BLOCKS = re.compile(r"```python\n(.*?)```.*?```text\n(.*?)```", re.DOTALL)


def test_what_the_duties_name_of_a_core_is_there() -> None:
    """A duty that names what is not there cannot be kept."""
    fields = re.findall(r"`core\.([a-z_]+)`", PAGE.read_text(encoding="utf-8"))
    assert fields
    assert set(fields) <= {field.name for field in attrs.fields(Replica)}


def test_the_page_runs_and_prints_what_it_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    blocks = BLOCKS.search(page)
    assert blocks is not None
    code, output = blocks.groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), {"__name__": "by_hand"})
    if rewriting():
        PAGE.write_text(page.replace(f"```text\n{output}```", f"```text\n{printed.getvalue()}```"), encoding="utf-8")
    else:
        assert output == printed.getvalue()
    assert "the producer is told NONE, offset 0\n" in printed.getvalue()
