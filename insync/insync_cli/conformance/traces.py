"""`insync traces`: a dataset of traces of a design, and whether the broker's cores follow them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs

from insync_cli import on_spark, options, places, registry
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.on_spark import SPARK
from insync_cli.options import Usage, choice, flag, group, natural, option, positive, required_option, workers_at_most
from insync_cli.progress import Brake
from insync_cli.terminal import Output, QuietOutput

if TYPE_CHECKING:
    from isr_lang import Instance
    from isr_pipeline.locations import Location

EXAMPLE = """\
insync traces kip-966 --count 10000 --out traces --engine spark
insync traces kip-966 --replicas 2 --cover edges --out traces --replay
insync traces kip-966 --replicas 2 --cover pairs --out traces"""
Q = TypeVar("Q")
A = TypeVar("A")


USAGE = Usage("traces", "A dataset of traces: ITF files, and an index of them in Parquet.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Engine:
    """Who makes the parts."""

    engine: str = choice(("local", SPARK), "this process, or the executors of Spark", "local")
    workers: int | None = option("N", "tasks of Spark at once on this machine", workers_at_most)
    master: str | None = option("URL", "of Spark; without it, this machine alone", str)


@attrs.frozen(kw_only=True)
class Options:
    world: options.SmallerWorld = group(options.SmallerWorld)
    cover: str = choice(("walks", "edges", "pairs"), "what the traces are for", "walks")
    count: int = option("N", "how many walks", positive, 100)
    steps: int = option("N", "at most in a walk", positive, 20)
    seed: int = option("N", "of the first walk", natural, 1)
    parts: int = option("N", "parts of the dataset", positive, 8)
    out: Path | Location = required_option("DIR", "where the dataset goes; may be s3://...", places.place)
    replay: bool = flag("then follow each trace on the broker's cores")
    engine: Engine = group(Engine, "running")
    output: QuietOutput = group(QuietOutput)


@lru_cache(maxsize=4)
def instance_made(name: str, without: tuple[str, ...], constants: str, own: tuple[tuple[Path, str], ...]) -> Instance:
    """The model of a question that can be sent: names and JSON, and files of designs with what is in them."""
    if name not in registry.designs():
        registry.take_own(dict(own), dict(own))
    return registry.instance_of(registry.design_less(name, without), json.loads(constants))


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    from isr_pipeline.locations import Location
    from isr_pipeline.trace_datasets import Cover, Recipe, make_part, parts

    design, output = invocation.world.design, invocation.output
    instance = registry.instance_of(design, invocation.world.constants)
    output.check()
    if invocation.engine.engine != SPARK and (
        invocation.engine.master is not None or invocation.engine.workers is not None
    ):
        raise UsageError(f"--master and --workers are for --engine {SPARK}")
    if invocation.replay:
        check_for_cores(instance)
    folder = Location.of(places.make_folder(invocation.out))
    gone, constants = registry.left_out(design), json.dumps(dict(instance.constants))
    make = partial(instance_made, design.name, gone, constants, registry.own_files())
    recipe = Recipe(make, Cover(invocation.cover), folder, invocation.steps)
    shares = parts(recipe, invocation.parts, range(invocation.seed, invocation.seed + invocation.count))
    each = Each(invocation.engine, output)
    traces = sum(each(make_part, shares, "parts made"))
    verdict_counts = replayed(make, folder, each) if invocation.replay and not each.stopped else Counter[str]()
    report: dict[str, object] = {
        "schema": "insync/traces/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "cover": invocation.cover,
        "traces": traces,
        "replayed": dict(verdict_counts),
        "complete": not each.stopped,
    }
    told = "".join(f", {many:,} {verdict}" for verdict, many in verdict_counts.items())
    told += f"; {each.stopped}" if each.stopped else ""
    many = f"{traces:,} trace{'' if traces == 1 else 's'}"
    output.answer(report, lambda _: None, f"insync traces {design.name}: {many}{told}; written to {invocation.out}")
    if verdict_counts["differs"]:
        return Exit.SAFETY
    return Exit.INCONCLUSIVE if each.stopped else Exit.HOLDS


def check_for_cores(instance: Instance) -> None:
    """InputError where no cores follow the traces of this model, before there are any."""
    from isr_replay import NoSuchCores, check_cores

    try:
        check_cores(instance)
    except NoSuchCores as problem:
        raise InputError(str(problem)) from None


def replayed(make: Callable[[], Instance], folder: Location, each: Each) -> Counter[str]:
    """How many traces ended how on the cores; the table is in the dataset."""
    from isr_pipeline.trace_replays import ReplayPart

    names = [Path(name).stem for name in (folder / "index").files() if name.endswith(".parquet")]
    total = Counter[str]()
    for verdicts in each(ReplayPart(make, folder, folder), names, "parts followed"):
        total.update(verdicts)
    return total


class Each:
    """Does all parts: here, one after the other, or each in a task. `stopped` says what ended it early, if so."""

    def __init__(self, engine: Engine, output: Output) -> None:
        self.engine, self.output, self.stopped = engine, output, ""

    def __call__(self, work: Callable[[Q], A], parts: Sequence[Q], what: str) -> list[A]:
        return self._here(work, parts, what) if self.engine.engine != SPARK else self._on_spark(work, parts, what)

    def _here(self, work: Callable[[Q], A], parts: Sequence[Q], what: str) -> list[A]:
        answers: list[A] = []
        with self.output.ticker() as ticker, Brake() as brake:
            for answer in ticker.count_each(map(work, parts), len(parts), what):
                answers.append(answer)
                if brake() and len(answers) < len(parts):
                    self.stopped = f"stopped by {brake.reason} after {len(answers)} of {len(parts)} {what}"
                    break
        return answers

    def _on_spark(self, work: Callable[[Q], A], parts: Sequence[Q], what: str) -> list[A]:
        with on_spark.running(self.output.ticker(), self.engine.master, self.engine.workers) as (spark, tell):
            from isr_pipeline.sweeps import sweep

            return sweep(spark, work, parts, what=what, tell=tell)
