"""The engine `native`: what isr_check.engine asks of every engine, answered by a search over packed states."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from isr_check import explorer
from isr_check.engine import Exploration, Limits, Progress, silent
from isr_check.native import archive
from isr_check.native.layout import SLACKS, TooWide
from isr_check.native.search import EVERY, Means, Overflow, Search
from isr_check.native.traces import paths
from isr_check.reduction import Reduction
from isr_check.symmetry import Symmetry
from isr_lang import Instance


def explore(
    instance: Instance,
    property_names: tuple[str, ...] = (),
    limits: Limits | None = None,
    progress: Callable[[Progress], None] = silent,
    *,
    symmetry: bool = False,
    reduction: bool = False,
    resume: bool = False,
    workers: int | None = None,
    memory: int | None = None,
    folder: Path | None = None,
    every: float = EVERY,
) -> Exploration:
    """Explore by native code (see isr_check.engine for the contract), by a thread per processor or `workers` threads.

    `memory` is a limit in bytes; states that exceed it go to files in `folder`, else in a temporary folder. With a
    folder a checkpoint is written each `every` seconds; `resume` continues from the checkpoint that is there.
    Raises Unsound if `symmetry` or `reduction` does not apply, and BadCheckpoint if no exploration can resume there.
    """
    start, means = time.monotonic(), Means(workers, memory, folder, every)
    names = Symmetry(instance, property_names) if symmetry else None
    blanks = Reduction(instance, property_names) if reduction else None
    checkpoint = archive.read_checkpoint(folder) if resume and folder else None
    for slack in SLACKS[cast("int", checkpoint["slack"]) if checkpoint else 0 :]:
        try:
            search = Search(instance, property_names, slack, means, names, blanks)
        except TooWide:
            if slack is SLACKS[0]:
                raise
            break
        search.start, search.limits, search.progress = start, limits or Limits(), progress
        keep = True
        try:
            if checkpoint:
                search.saving.restore(checkpoint)
                checkpoint = None
            exploration = search.run(paths)
            keep = search.cut
            if search.liveness_properties:
                from isr_check.native.graph import with_liveness  # with SciPy, which takes its time to import

                exploration = with_liveness(search, exploration)
            return exploration
        except Overflow:
            keep = False
        finally:
            search.space.close(keep=keep)
    # A value is so far out of range that no word has room for it beside those of other elements. The search ends there.
    return explorer.explore(instance, property_names, limits, progress, symmetry=symmetry, reduction=reduction)
