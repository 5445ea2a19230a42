"""What is raised where there is no answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class InsyncError(Exception):
    """There is no answer, and `str` of this says why, in the sentence that the command prints.

    `exit_code`: the command's. 2: the cluster does not answer. 64: wrong usage. 65: a bad file. 20: too little was
    explored for any answer. 21: an answer would be true of nothing. What is violated, at risk or undecided is no error:
    it has an answer. Source: `insync --help`.
    """

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


@contextmanager
def as_errors() -> Generator[None]:
    """What ends a command without an answer is an InsyncError."""
    from insync_cli.exits import Problem

    try:
        yield
    except Problem as problem:
        raise InsyncError(str(problem), int(problem.exit)) from None
