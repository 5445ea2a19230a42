"""The engine 'spark': the contract of isr_check.engine, fulfilled by Spark jobs (`search`).

This module imports nothing that comes with Spark only, so that the engine can say what is missing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from isr_check import explorer
from isr_check.engine import BadCheckpoint, Exploration, Failed, Limits, Progress, Unsound, liveness_properties, silent
from isr_check.symmetry import Symmetry
from isr_lang import Instance
from isr_pipeline import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from isr_pipeline.search import Search

QUICKLY = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"
SETTINGS = {
    **{f"spark.{who}.extraJavaOptions": QUICKLY for who in ("driver", "executor")},
    "spark.shuffle.reduceLocality.enabled": "false",
}
"""Java only moves bytes here, so optimising its code would take longer than it saves. A bucket's task is to run where
its visited set is, not where most of what is sent to it comes from."""
IN_MEMORY = {"spark.shuffle.compress": "false"}
"""Settings for one machine, where compressing the blocks of a shuffle takes longer than moving them."""
HANDOVER = 200_000
"""The most states of a level that this process expands itself; Spark expands larger levels."""


def explore(
    instance: Instance,
    property_names: tuple[str, ...] = (),
    limits: Limits | None = None,
    progress: Callable[[Progress], None] = silent,
    *,
    symmetry: bool = False,
    resume: bool = False,
    workers: int | None = None,
    memory: int | None = None,
    folder: Path | None = None,
    master: str | None = None,
    partitions: int | None = None,
    handover: int = HANDOVER,
    keep: bool = True,
    graph: bool = False,
    store: str | None = None,
) -> Exploration:
    """Explore by Spark (see isr_check.engine for the contract), on this machine alone unless there is a `master`.

    States last in the `store`, a URL that all executors can write, or else in the `folder`; they stay there if `keep`
    is true, and `resume` goes on from the last complete level. `memory`: bytes for Java, here and in each executor.
    `graph`: write states and steps as tables, too.
    """
    session.check(master)
    from isr_check.native.layout import SLACKS, TooWide
    from isr_check.native.question import Question
    from isr_pipeline.locations import Location
    from isr_pipeline.search import Overflow, Search, SearchMeans
    from isr_pipeline.store import Store

    question = Question(instance, property_names, Symmetry(instance, property_names) if symmetry else None)
    _refuse_unsound(instance, property_names, partitions)
    start = time.monotonic()
    with ExitStack() as closing, _in_one_sentence():
        if folder is None:
            folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="insync-")))
        place = Location.of(store or folder)
        alone = session.alone(master)
        scratch = closing.enter_context(_scratch(folder if alone else None))
        plan = Store(place).plan() if resume else {}
        stored_buckets = cast("int | None", plan.get("buckets"))
        if stored_buckets is not None and partitions not in (None, stored_buckets):
            raise BadCheckpoint(f"the exploration in {place} has {stored_buckets} partitions, not {partitions}")

        def starting() -> SparkSession:
            local = Path(scratch) if alone else None
            return closing.enter_context(
                session.running(master, workers=workers, memory=memory, scratch=local, settings=settings)
            )

        settings = SETTINGS | (IN_MEMORY if alone else {})
        buckets = stored_buckets or partitions or 2 * (workers or len(os.sched_getaffinity(0)))
        means = SearchMeans(place, scratch, buckets, handover, starting)
        for slack in SLACKS[cast("int", plan.get("slack", 0)) :]:
            try:
                search = Search(question, slack, means)
            except TooWide:
                if slack is SLACKS[0]:
                    raise
                break
            search.limits, search.progress, search.start = limits or Limits(), progress, start
            try:
                return _run_search(search, resume=bool(plan), graph=graph, keep=keep)
            except Overflow:
                plan = {}
            finally:
                search.close()
    # A value is so far out of range that no word has room for it beside those of other elements. The search ends there.
    return explorer.explore(instance, property_names, limits, progress, symmetry=symmetry)


def _refuse_unsound(instance: Instance, property_names: tuple[str, ...], partitions: int | None) -> None:
    """Unsound for what Spark cannot decide, and for more partitions than a state can name."""
    from isr_check.native.sharding import MOST_OWNERS

    if live := liveness_properties(instance, property_names):
        raise Unsound(f"{live[0].name} is a liveness property, and Spark decides none; --engine native does")
    if partitions is not None and partitions > MOST_OWNERS:
        raise Unsound(f"{partitions} partitions are too many; {MOST_OWNERS} at most")


def _run_search(search: Search, *, resume: bool, graph: bool, keep: bool) -> Exploration:
    """Explore, and leave in the store what is to stay."""
    from isr_pipeline.counterexamples import paths
    from isr_pipeline.graph import write_graph

    (search.resume if resume else search.begin)()
    search.run()
    answer = search.exploration(paths(search, search.levels_by_check))
    if graph and answer.complete:
        write_graph(search)
    if keep or search.cut:
        search.store.tidy(search.commits)
    else:
        search.store.discard()
    return answer


@contextmanager
def _scratch(folder: Path | None) -> Generator[str, None, None]:
    """A folder for what is needed only meanwhile: within this one, or where the system has such files."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="insync-") as made:
            yield made
        return
    sets = folder.absolute() / "sets"
    sets.mkdir(parents=True, exist_ok=True)
    try:
        yield str(sets)
    finally:
        shutil.rmtree(sets, ignore_errors=True)


@contextmanager
def _in_one_sentence() -> Generator[None, None, None]:
    """What a store or a disk refuses is said without the lines of a traceback."""
    try:
        yield
    except OSError as problem:
        from isr_pipeline.locations import first_line

        raise Failed(first_line(problem)) from None
