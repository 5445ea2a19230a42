"""The text of an action or a promise as it stands in the model, for showing it beside what it did."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from pathlib import Path
from types import FunctionType
from typing import TypedDict

from isr_lang import Where


class Source(TypedDict):
    """`line` is that of the first line of `text`; `helpers` are the keys of what it is composed of."""

    file: str
    line: int
    text: str
    helpers: list[str]


def source(where: Where) -> Source:
    """The function whose `def` stands there, its decorators included; no text where the file is not at hand."""
    lines = linecache.getlines(where.file)
    first = where.line - 1
    while 0 < first <= len(lines) and lines[first - 1].lstrip().startswith("@"):
        first -= 1
    block = inspect.getblock(lines[first:]) if first < len(lines) else []
    return Source(file=Path(where.file).name, line=first + 1, text="".join(block).rstrip(), helpers=[])


def with_helpers(where: Where, table: dict[str, Source]) -> Source:
    """The source of an action; the functions whose parts it unpacks (`*stops(...)`) go into the table."""
    entry = source(where)
    module = next((m for m in [*sys.modules.values()] if getattr(m, "__file__", None) == where.file), None)
    for name in _unpack_names(entry["text"]):
        function = vars(module).get(name) if module is not None else None
        if isinstance(function, FunctionType):
            code = function.__code__
            key = f"{Path(code.co_filename).stem}.{function.__name__}"
            table.setdefault(key, source(Where(code.co_filename, code.co_firstlineno)))
            entry["helpers"].append(key)
    return entry


def _unpack_names(text: str) -> list[str]:
    calls = (n.value for n in ast.walk(ast.parse(textwrap.dedent(text))) if isinstance(n, ast.Starred))
    return list(dict.fromkeys(c.func.id for c in calls if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)))
