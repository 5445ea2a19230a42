"""The one exception of the language, raised on the model's own line.

A model is traced once, when it is imported. Whatever Python would do silently wrong with a symbolic
value (take one branch of an `if`, keep one operand of an `and`) is refused there and then.
"""

from __future__ import annotations

import sys
from pathlib import Path

import attrs

_PACKAGE = str(Path(__file__).parent)


@attrs.frozen
class Where:
    """A line of the model."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class ModelError(Exception):
    """Your model is wrong: which line, and what to write instead."""

    def __init__(self, message: str, where: Where | None = None) -> None:
        self.where = where or model_line()
        super().__init__(f"{self.where}: {message}")


def model_line() -> Where:
    """The innermost line on the call stack that lies outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Where(frame.f_code.co_filename, frame.f_lineno)
