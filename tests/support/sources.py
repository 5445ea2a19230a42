"""Models that exist only as text, for tests."""

import linecache
import runpy
import textwrap
from itertools import count
from pathlib import Path

_numbers = count()


def write(source: str, folder: Path) -> Path:
    """The text as a file of its own; a new name each time, so that no cache mistakes it for another."""
    path = folder / f"model_{next(_numbers)}.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


def load(source: str, folder: Path) -> dict[str, object]:
    """The names that a model defines, executed from a file so that errors have a line."""
    path = write(source, folder)
    linecache.checkcache(str(path))
    return runpy.run_path(str(path))
