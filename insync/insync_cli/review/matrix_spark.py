"""`insync matrix --engine spark`: all cells in one job, a task for each, explored by kernels in the executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli import on_spark, registry
from insync_cli.progress import Ticker
from isr_lang import Instance
from isr_report.matrix.grid import CellEntry
from isr_report.matrix.plan import Cell

if TYPE_CHECKING:
    from isr_check.engine import Finding

Explore = Callable[[Cell, Instance], tuple[CellEntry, "list[Finding]"]]
"""Explores one cell and writes its files. It is sent to the executors."""


def sweep_cells(
    cells: Sequence[Cell], explore: Explore, master: str | None, workers: int | None, ticker: Ticker
) -> list[tuple[CellEntry, list[Finding]]]:
    """The cells in order. The executors write their files, into a store or a folder that all of them see."""
    with on_spark.running(ticker, master, workers) as (spark, tell):
        from isr_pipeline.sweeps import sweep

        work = partial(explore_cell, explore=explore, own=registry.own_files())
        return sweep(spark, work, cells, what="cells", tell=tell)


def explore_cell(cell: Cell, explore: Explore, own: Sequence[tuple[Path, str]]) -> tuple[CellEntry, list[Finding]]:
    """In an executor: an instance cannot be sent, so it is made anew from the names and numbers in the cell.

    `own`: files of designs, with what is in them.
    """
    registry.take_own(dict(own), dict(own))
    return explore(cell, registry.instance_of(registry.design_named(cell.design), cell.constants))
