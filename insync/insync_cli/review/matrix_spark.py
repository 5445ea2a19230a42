"""`insync matrix --engine spark`: all cells in one job, a task for each, explored by kernels in the executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli import registry
from insync_cli.exits import Inconclusive, UsageError
from isr_check.engine import Failed, Unavailable
from isr_lang import Instance
from isr_report.matrix.grid import CellEntry
from isr_report.matrix.plan import Cell

if TYPE_CHECKING:
    from isr_check.engine import Finding

SPARK = "spark"

Explore = Callable[[Cell, Instance], tuple[CellEntry, "list[Finding]"]]
"""Explores one cell and writes its files. It is sent to the executors."""


def swept(
    cells: Sequence[Cell], explore: Explore, master: str | None, workers: int | None
) -> list[tuple[CellEntry, list[Finding]]]:
    """The cells in order. Their files are written by the executors, so the folder must be one that all of them see."""
    from isr_pipeline import session

    try:
        session.check()
        from isr_pipeline.sweeps import sweep

        with session.running(master, workers=workers) as spark:
            return sweep(spark, partial(answered, explore=explore, own=registry.own_files()), cells)
    except Unavailable as problem:
        raise UsageError(str(problem)) from None
    except Failed as problem:
        raise Inconclusive(str(problem)) from None


def answered(cell: Cell, explore: Explore, own: Sequence[Path]) -> tuple[CellEntry, list[Finding]]:
    """In an executor: an instance cannot be sent, so it is made anew from the names and numbers in the cell.

    `own`: files of designs, which the executor must see, too.
    """
    registry.take_own(own)
    return explore(cell, registry.instance_of(registry.design_named(cell.design), cell.constants))
