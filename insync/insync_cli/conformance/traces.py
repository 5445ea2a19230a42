"""`insync traces`: a dataset of traces of a design, and whether the broker's cores follow them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, Inconclusive, InputError, UsageError
from isr_check.engine import Failed, Unavailable

if TYPE_CHECKING:
    from isr_lang import Instance

EXAMPLE = """\
insync traces kip-966 --count 10000 --out traces --engine spark
insync traces kip-966 --replicas 2 --cover edges --out traces --replay
insync traces kip-966 --replicas 2 --cover pairs --out traces"""
SPARK = "spark"
Q = TypeVar("Q")
A = TypeVar("A")


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("traces", "A dataset of traces: ITF files, and an index of them in Parquet.", EXAMPLE)
    p.add_argument("design", metavar="DESIGN", help="see: insync designs")
    p.add_without()
    p.add_argument("--cover", choices=("walks", "edges", "pairs"), default="walks", help="what for (default walks)")
    p.add_argument("--count", type=options.positive, default=100, metavar="N", help="of walks (default 100)")
    p.add_argument("--steps", type=options.positive, default=20, metavar="N", help="at most in a walk (default 20)")
    p.add_argument("--seed", type=options.natural, default=1, metavar="N", help="of the first walk (default 1)")
    p.add_argument("--parts", type=options.positive, default=8, metavar="N", help="of the dataset (default 8)")
    p.add_argument("--out", metavar="DIR", required=True, help="where the dataset goes")
    p.add_argument("--replay", action="store_true", help="then follow each trace on the broker's cores")
    p.add_argument("--engine", choices=("local", SPARK), default="local", help="who makes the parts (default local)")
    p.add_argument("--workers", type=options.positive, metavar="N", help="tasks of Spark at once on this machine")
    p.add_argument("--master", metavar="URL", help="of Spark; default: this machine alone")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    p.add_constants(argv)
    return p.read(argv)


@lru_cache(maxsize=4)
def instance_made(name: str, without: tuple[str, ...], constants: str) -> Instance:
    """The model of a question that can be sent: names and JSON."""
    return registry.instance_of(registry.design_less(name, without), json.loads(constants))


def run(given: Namespace) -> int:
    from isr_pipeline.traces import Cover, Recipe, made, parts

    design = options.design_given(given)
    instance = registry.instance_of(design, options.constants_given(given))
    target, engine = cast("str | None", given.json), cast("str", given.engine)
    terminal.check_json_target(target)
    if engine != SPARK and (given.master is not None or given.workers is not None):
        raise UsageError(f"--master and --workers are for --engine {SPARK}")
    folder = terminal.make_folder(Path(cast("str", given.out))).absolute()
    constants = json.dumps(dict(instance.constants))
    make = partial(instance_made, design.name, registry.left_out(design), constants)
    recipe = Recipe(make, Cover(given.cover), folder, cast("int", given.steps))
    first, count = cast("int", given.seed), cast("int", given.count)
    shares = parts(recipe, cast("int", given.parts), range(first, first + count))
    each = Each(given)
    traces = sum(each(made, shares))
    found = replayed(make, folder, each) if given.replay else Counter[str]()
    report: dict[str, object] = {
        "schema": "insync/traces/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "cover": given.cover,
        "traces": traces,
        "replayed": dict(found),
    }
    terminal.write_json(target, report)
    if target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
        told = "".join(f", {many:,} {verdict}" for verdict, many in found.items())
        out.print(f"insync traces {design.name}: {traces:,} traces{told}; written to {given.out}", soft_wrap=True)
    return Exit.SAFETY if found["differs"] else Exit.HOLDS


def replayed(make: Callable[[], Instance], folder: Path, each: Each) -> Counter[str]:
    """How many traces ended how on the cores; the table is in the dataset."""
    from isr_pipeline.replays import Replaying
    from isr_replay import NoSuchCores

    names = sorted(path.stem for path in (folder / "index").glob("*.parquet"))
    total = Counter[str]()
    try:
        for verdicts in each(Replaying(make, folder, folder), names):
            total.update(verdicts)
    except NoSuchCores as problem:
        raise InputError(str(problem)) from None
    return total


class Each:
    """Does all parts: here, one after the other, or each in a task."""

    def __init__(self, given: Namespace) -> None:
        self.given = given

    def __call__(self, work: Callable[[Q], A], parts: Sequence[Q]) -> list[A]:
        if self.given.engine != SPARK:
            return [work(part) for part in parts]
        from isr_pipeline import session

        try:
            session.check()
            from isr_pipeline.sweeps import swept

            workers = cast("int | None", self.given.workers)
            with session.running(cast("str | None", self.given.master), workers=workers) as spark:
                return swept(spark, work, parts)
        except Unavailable as problem:
            raise UsageError(str(problem)) from None
        except Failed as problem:
            raise Inconclusive(str(problem)) from None
