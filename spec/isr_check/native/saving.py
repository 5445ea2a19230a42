"""Checkpoints of a search: when they are made, what is in them beside the states, and going on from one.

A checkpoint belongs to one question: the machine code that an exploration runs says all that matters of the
design, its bounds and what is looked for, so its text is what must be the same.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from isr_check.engine import BadCheckpoint
from isr_check.native import archive
from isr_check.native.archive import Json
from isr_check.native.kernels import Job
from isr_check.native.layout import SLACKS
from isr_check.native.question import difference
from isr_check.native.team import Span

if TYPE_CHECKING:
    from isr_check.native.search import Search

EVERY = 60.0
"""Seconds between two checkpoints."""


class Saving:
    """`due`: workers are to pause, so that a checkpoint can be made."""

    def __init__(self, search: Search, folder: Path | None, every: float) -> None:
        self.search, self.folder, self.every = search, folder, every
        self.due, self.last = False, time.monotonic()

    def tick(self, now: float) -> None:
        self.due = self.due or (self.folder is not None and now - self.last >= self.every)

    def if_due(self) -> None:
        if self.due:
            self.save()
            self.due, self.last = False, time.monotonic()

    def save(self) -> None:
        """A checkpoint; what cannot be kept is no reason to stop, as long as memory has it."""
        if self.folder is None:
            return
        try:
            self.search.space.save(self._content())
        except OSError:
            if self.search.space.outside:
                raise
            self.folder = None

    def _content(self) -> Json:
        search = self.search
        workers = search.workers
        return {
            "question": _fingerprint(search),
            "about": search.question.about(),
            "slack": SLACKS.index(search.layout.slack),
            "words": search.layout.words,
            "found": [[bit, level] for bit, level in search.found.items()],
            "taken": np.sum([w.taken for w in workers], axis=0).tolist(),
            "refused": np.sum([w.refused for w in workers], axis=0).tolist(),
            "expanded": sum(w.expanded for w in workers),
            "unreduced": sum(int(w.job[Job.SUM]) for w in workers),
            "seconds": search.elapsed(),
        }

    def restore(self, content: Json) -> None:
        """Begin where the checkpoint was made; BadCheckpoint if it answers another question."""
        search, folder = self.search, self.folder
        assert folder is not None
        if content["question"] != _fingerprint(search):
            raise BadCheckpoint(f"the checkpoint in {folder} is of {difference(content, search.question.about())}")
        search.found = dict(cast("list[tuple[int, int]]", content["found"]))
        first = search.workers[0]
        first.taken[:] = cast("list[int]", content["taken"])
        first.refused[:] = cast("list[int]", content["refused"])
        first.expanded = cast("int", content["expanded"])
        first.job[Job.SUM] = cast("int", content["unreduced"])
        search.earlier = cast("float", content["seconds"])
        levels = cast("list[list[Span]]", content["levels"])
        todo, fresh = cast("list[Span]", content["todo"]), cast("list[Span]", content["fresh"])
        search.space.restore(archive.reopen(folder, search.layout.words, content), levels, todo, fresh)


def _fingerprint(search: Search) -> str:
    return hashlib.sha256(repr((search.program.text, search.names)).encode()).hexdigest()
