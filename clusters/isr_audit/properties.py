"""The lines of a server.properties as Java reads them: continued by a backslash, escaped, with any separator.

Kafka loads the file by java.util.Properties. What is read otherwise there would be a setting that nobody sees.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_KEY: Final = re.compile(r"[ \t\f]*((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_END: Final = re.compile(r"(?<!\\)(?:\\\\)*\\$")
"""A backslash at the end of a line that is not escaped itself."""


def plain_properties(text: str, names: Collection[str], *, backslashes_only: bool = False) -> str:
    """The same text, in which each property of one of these names stands in one line as `name=value`.

    Lines keep their numbers: what continues a line is left empty. All other lines stay as they are. `backslashes_only`:
    so do those without a backslash, which may be the rest of a line that was wrapped.
    """
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.lstrip(" \t\f").startswith(("#", "!")) or (backslashes_only and "\\" not in line):
            continue
        whole, last = line, at
        while _END.search(whole) and last + 1 < len(lines):
            last += 1
            whole = whole[:-1] + lines[last].lstrip(" \t\f")
        match = _KEY.match(whole)
        if match is not None and (name := _plain(match[1])) in names:
            lines[at : last + 1] = [f"{name}={_plain(match[2])}", *[""] * (last - at)]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _LETTERS.get(m[2], m[2]), text)
