"""Breadth-first exploration by native code, level by level.

The levels, verdicts, counts and counterexamples are those of isr_check.explorer. Only the order in which the states of
a level stand in memory differs. Nothing that is reported depends on it, because counterexamples are found again from
the sets of states (see traces.py).

Values outside their declared range are rare, so they get no bits at first. If one has to be stored, the exploration
begins again with cells that are wide enough for it, and then tests type-ok, too; it ends with the level of that state.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import attrs
import numpy as np

from isr_check.engine import BadCheckpoint, Exploration, Limits, Progress, silent
from isr_check.engine import Path as Behaviour
from isr_check.native import archive
from isr_check.native.actions import DECISIONS, OVERFLOW, Check
from isr_check.native.archive import Json
from isr_check.native.buffers import Words, Worker, address
from isr_check.native.kernels import Job, program
from isr_check.native.layout import SLACKS, Layout, Slack
from isr_check.native.machine import Machine
from isr_check.native.question import Question, difference
from isr_check.native.space import CHUNK, Full, Space
from isr_check.native.team import Span
from isr_check.reduction import Reduction
from isr_check.symmetry import Symmetry
from isr_lang import Instance

PATIENCE = 0.5
"""The seconds after which optimising the machine code is worth its time."""
EVERY = 60.0
"""The seconds between two checkpoints."""


class Overflow(Exception):
    """A value did not fit its cell; the exploration has to begin again with wider cells."""


@attrs.frozen
class Means:
    """The means of a search. None: all processors, no limit of memory (bytes), no folder.

    `folder` is for checkpoints, one each `every` seconds, and for states that exceed the memory.
    """

    workers: int | None = None
    memory: int | None = None
    folder: Path | None = None
    every: float = EVERY


Paths = Callable[["Search", dict[int, int]], dict[int, Behaviour]]
"""A function from a search and its decided checks (bit -> level) to the least of the shortest paths to each of them."""


class Search:
    """One exploration with one layout; `levels_by_check[bit]` is the level at which a check was decided."""

    def __init__(
        self,
        instance: Instance,
        property_names: tuple[str, ...],
        slack: Slack,
        means: Means,
        symmetry: Symmetry | None,
        reduction: Reduction | None = None,
    ) -> None:
        self.question = asked = Question(instance, property_names, symmetry, reduction)
        self.instance, self.liveness_properties, self.names = instance, asked.liveness_properties, asked.names
        self.on_states, self.on_steps, self.marks = asked.on_states, asked.on_steps, asked.marks
        self.symmetry, self.reduction = symmetry, reduction
        self.layout = Layout(instance, slack, symmetry.sorts if symmetry else ())
        self.program = program(instance, self.layout, self.on_states, self.on_steps, self.marks, symmetry, reduction)
        self.machine = Machine(self.program.text, self.program.kernels)
        threads = means.workers or len(os.sched_getaffinity(0))
        self.space = Space(self.program, self.machine, len(instance.actions), threads, means.memory, means.folder)
        self.workers, self.team = self.space.workers, self.space.team
        self.levels_by_check: dict[int, int] = {}
        self.cut, self.stopped = False, ""
        self.saving = Saving(self, means.folder, means.every)
        self.limits, self.start, self.earlier, self.last_report_time = Limits(), time.monotonic(), 0.0, 0.0
        self.progress: Callable[[Progress], None] = silent

    @property
    def levels(self) -> list[list[Span]]:
        return self.space.levels

    @property
    def distinct(self) -> int:
        return self.space.distinct

    def elapsed(self) -> float:
        """Seconds since the beginning, those before a resume included."""
        return self.earlier + time.monotonic() - self.start

    @property
    def generated(self) -> int:
        return sum(int(w.steps_by_action.sum()) for w in self.workers)

    def _run(self, kernel: str, check_mask: int, worker: Worker, span: Span) -> Span | None:
        worker.run(self.machine.run[kernel], *self.space.place(worker, span), check_mask)
        return None

    # the search

    def undecided_mask(self, checks: list[Check]) -> int:
        return sum(1 << c.bit for c in checks if c.bit not in self.levels_by_check)

    def is_decided(self) -> bool:
        return self.question.is_decided(self.levels_by_check)

    def begin(self) -> None:
        self.workers[0].run(self.machine.run["initial"], 0, 0, 0)
        self._add_level(self.space.end_level())

    def level(self) -> None:
        """Expand what is left of the last level, and make the states found the next level."""
        wanted, depth, space = self.undecided_mask(self.on_steps), len(self.levels) - 1, self.space
        while space.todo and not self.cut:
            space.make_room()
            self.team.share(space.todo, partial(self._expand, wanted))
            self._collect(depth)
            self.saving.if_due()
        if self.cut:
            self.saving.save()
        self._add_level(space.end_level())

    def _expand(self, check_mask: int, worker: Worker, span: Span) -> Span | None:
        """Expand a span; returns what is left of it if the worker has reached its limit, else None."""
        if worker is self.workers[0]:
            self._tick()
        if self.cut or self.saving.due:
            return span
        start, end = self.space.place(worker, span, todo=True)
        stopped = worker.run(self.machine.run["expand"], start, end, check_mask)
        worker.expansions += stopped - start
        self._check_overflow(worker)
        return self.space.rest(worker, span, stopped - start, end - start)

    def _check_overflow(self, worker: Worker) -> None:
        """If a successor did not fit its cells, raise Overflow; with the widest cells, end the search instead."""
        if worker.report[OVERFLOW]:
            if self.layout.slack is not SLACKS[-1]:
                raise Overflow
            self.cut = True

    def _tick(self) -> None:
        """Between two calls, in the main thread: report progress, and set `cut` if a limit is reached."""
        now = time.monotonic()
        if now - self.start > PATIENCE:
            self.machine.improve()
        if now - self.last_report_time > 0.05:
            self.last_report_time = now
            frontier = sum(end - start for start, end in self.levels[-1])
            elapsed, space = self.elapsed(), self.space
            depth, size = len(self.levels) - 1, space.state_bytes
            self.progress(Progress(depth, frontier, self.distinct, self.generated, elapsed, size, space.outside))
            self.saving.tick(now)
            if space.outside and space.is_crowded():
                self._stop("the memory of the machine")
        over_states = self.limits.max_states is not None and self.distinct >= self.limits.max_states
        over_time = self.limits.max_seconds is not None and now - self.start >= self.limits.max_seconds
        self.cut = self.cut or over_states or over_time or self.limits.stop()

    def _stop(self, why: str) -> None:
        self.cut, self.stopped = True, why

    def _collect(self, level: int) -> None:
        """Note the checks that the workers report as decided at this level."""
        for worker in self.workers:
            self._check_overflow(worker)
            for bit in range(len(self.names)):
                if int(worker.report[DECISIONS]) >> bit & 1:
                    self.levels_by_check.setdefault(bit, level)
            worker.report[DECISIONS] = 0

    def _add_level(self, added: list[Span]) -> None:
        """Make these states a level, and test the undecided properties on them; no level if there are none."""
        if not added and self.levels:
            return
        self.levels.append(added)
        wanted, last = self.undecided_mask(self.on_states), len(self.levels) - 1
        if wanted or self.layout.slack.number:
            self.team.share(self.space.parts(last, CHUNK), partial(self._run, "check", wanted))
        if self.symmetry is not None:
            self.team.share(self.space.parts(last, CHUNK), partial(self._run, "orbits", 0))
        self._collect(last)
        self.space.begin_level()

    def run(self, paths: Paths) -> Exploration:
        """Explore until all states are seen, all checks are decided or a limit is reached.

        `paths` finds the counterexamples. If memory or disk space ends, the result is not `complete`, and `stopped`
        says what ran out.
        """
        try:
            complete = self._search()
        except Full as why:
            self._stop(str(why))
            complete = False
        except OSError as problem:
            self._stop(f"a disk that does not take more ({problem.strerror})")
            complete = False
        return self._exploration(complete, paths)

    def _search(self) -> bool:
        """Expand level by level; true if all states have been seen."""
        if not self.levels:
            self.begin()
        while not self.cut and not self.is_decided():
            depth = len(self.levels)
            self.level()
            if len(self.levels) == depth:
                return not self.cut
        return False

    def representative(self, words: Words) -> Words:
        """Replace the words of a state by those of its representative; without symmetry and reduction they stay."""
        if self.symmetry is not None or self.reduction is not None:
            job = self.workers[0].job.copy()
            job[[Job.OUT, Job.START, Job.END]] = address(words), 0, 1
            self.machine.run["rename"](address(job))
        return words

    # the answer

    def _exploration(self, complete: bool, paths: Paths) -> Exploration:
        paths_by_check = paths(self, {bit: level for bit, level in self.levels_by_check.items()})
        sizes = tuple(sum(end - start for start, end in level) for level in self.levels)
        steps_by_action = [
            sum(int(w.steps_by_action[i]) for w in self.workers) for i in range(len(self.instance.actions))
        ]
        refusals = np.sum([w.refusals for w in self.workers], axis=0).tolist()
        return Exploration(
            self.question.findings(self.levels_by_check, paths_by_check, complete=complete),
            complete,
            self.distinct,
            self.generated,
            len(sizes) - 1,
            self.elapsed(),
            sizes,
            {a.name: n for a, n in zip(self.instance.actions, steps_by_action, strict=True)},
            self.question.guards(self.program.guard_base, refusals, sum(w.expansions for w in self.workers)),
            sum(int(w.job[Job.SUM]) for w in self.workers) if self.symmetry is not None else None,
            self.stopped,
        )


# Checkpoints: when they are made, what they hold beside the states, and how a search resumes from one. A checkpoint
# belongs to one question. The text of the LLVM module says all that matters of the design, its bounds and the checks,
# so a search may resume only if its module has the same text.


class Saving:
    """The checkpoints of a search; while one is `due`, workers pause."""

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
        """Write a checkpoint. If the disk refuses, go on without checkpoints, unless states are in files anyway."""
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
            "found": [[bit, level] for bit, level in search.levels_by_check.items()],
            "taken": np.sum([w.steps_by_action for w in workers], axis=0).tolist(),
            "refused": np.sum([w.refusals for w in workers], axis=0).tolist(),
            "expanded": sum(w.expansions for w in workers),
            "unreduced": sum(int(w.job[Job.SUM]) for w in workers),
            "seconds": search.elapsed(),
        }

    def restore(self, content: Json) -> None:
        """Resume from the content of a checkpoint; BadCheckpoint if it belongs to another question."""
        search, folder = self.search, self.folder
        assert folder is not None
        if content["question"] != _fingerprint(search):
            raise BadCheckpoint(f"the checkpoint in {folder} is of {difference(content, search.question.about())}")
        search.levels_by_check = dict(cast("list[tuple[int, int]]", content["found"]))
        first = search.workers[0]
        first.steps_by_action[:] = cast("list[int]", content["taken"])
        first.refusals[:] = cast("list[int]", content["refused"])
        first.expansions = cast("int", content["expanded"])
        first.job[Job.SUM] = cast("int", content["unreduced"])
        search.earlier = cast("float", content["seconds"])
        levels = cast("list[list[Span]]", content["levels"])
        todo, fresh = cast("list[Span]", content["todo"]), cast("list[Span]", content["fresh"])
        search.space.restore(archive.reopen(folder, search.layout.words, content), levels, todo, fresh)


def _fingerprint(search: Search) -> str:
    return hashlib.sha256(repr((search.program.text, search.names)).encode()).hexdigest()
