"""How `check` explores: all states, one per orbit, in so much memory, from a checkpoint on, or random walks."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path as Folder
from typing import cast

import attrs

from insync_cli import options, registry, runfile
from insync_cli.exits import Inconclusive, InputError, UsageError
from insync_cli.progress import Brake, Ticker, human_size
from isr_check.engine import (
    BadCheckpoint,
    Exploration,
    Failed,
    Finding,
    Limits,
    Path,
    Unavailable,
    Unsound,
    Verdict,
)
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_trace.minimise import minimise
from isr_trace.replay import Replay, record, run_of

CHECKPOINT = "checkpoint"
"""The folder, in that of the results, from which a run can go on."""
SPARK = "spark"
"""The engine, and the folder in that of the results where it has its states."""
ON_SPARK = ("master", "partitions", "handover")
"""Options for this engine alone."""


def add_options(p: options.Parser) -> None:
    group = p.add_argument_group("large models")
    group.add_argument("--symmetry", choices=("on", "off"), default="off", help="one state of each orbit (default off)")
    group.add_argument("--memory", type=options.size, metavar="SIZE", help="such as 2G; the rest goes to files in DIR")
    group.add_argument("--resume", metavar="DIR", help="go on from the checkpoint of a run with --out DIR")
    group.add_argument(
        "--checkpoint-every",
        type=options.seconds,
        default=60.0,
        metavar="S",
        help="in the folder of --out (default 60)",
    )
    _add_simulation(p)
    spark = p.add_argument_group("with --engine spark")
    spark.add_argument("--master", metavar="URL", help="spark://host:7077, sc://host; default: this machine alone")
    spark.add_argument("--partitions", type=options.positive, metavar="N", help="of the states (default 2 per core)")
    spark.add_argument(
        "--handover", type=options.natural, metavar="N", help="levels of up to N states need no Spark (default 200000)"
    )
    spark.add_argument("--graph", action="store_true", help="all states and steps as tables in DIR, too, for SQL")


def _add_simulation(p: options.Parser) -> None:
    group = p.add_argument_group("simulation")
    group.add_argument("--simulate", type=options.positive, metavar="N", help="N random walks instead of all states")
    group.add_argument("--seed", type=options.natural, metavar="S", help="other walks (default 1)")


def folder(given: Namespace, default: Callable[[], str]) -> Folder:
    """Where results go: as told, else beside the checkpoint, else below runs/."""
    named = cast("str | None", given.out) or cast("str | None", given.resume)
    return Folder(named or default())


def seed(given: Namespace) -> int | None:
    """Of the random walks, where there are any."""
    if not given.simulate:
        return None
    chosen = cast("int | None", given.seed)
    return 1 if chosen is None else chosen


def check(given: Namespace, instance: Instance, asked: tuple[str, ...]) -> None:
    """UsageError for options that contradict each other or what is asked."""
    for name in ON_SPARK:
        if getattr(given, name) is not None and engine_name(given) != SPARK:
            raise UsageError(f"--{name} is for --engine {SPARK}")
    if given.graph and not (engine_name(given) == SPARK and (given.out or given.resume)):
        raise UsageError(f"--graph is for --engine {SPARK} with --out DIR")
    if given.seed is not None and not given.simulate:
        raise UsageError("--seed chooses the walks of --simulate; without it nothing is random")
    if given.simulate and (given.resume or given.symmetry == "on"):
        raise UsageError("--simulate walks; --resume and --symmetry are for exploring all states")
    live = [p.name for p in instance.properties if p.kind == "eventually" and p.name in asked]
    if given.simulate and live:
        raise UsageError(
            f"--simulate says nothing of liveness ({live[0]}): a walk ends, and what it lacks may yet come"
        )
    if given.symmetry == "on" and live:
        raise UsageError(
            f"--symmetry on is unsound for liveness ({live[0]}): a cycle of orbits need not be one of states"
        )


def explored(
    instance: Instance, wanted: tuple[str, ...], given: Namespace, out: Folder
) -> tuple[Exploration, str | None, int]:
    """The exploration, what ended it early (Ctrl-C, a limit), and how many workers there were."""
    states, duration = cast("int | None", given.max_states), cast("float | None", given.max_seconds)
    memory = cast("int | None", given.memory)
    engine, workers, spills = _engine(given, out)
    if not wanted:
        return Exploration((), False, 0, 0, 0, 0.0, (), {}, ()), None, workers
    ticker = Ticker(quiet=cast("bool", given.quiet), plain=cast("bool", given.plain), memory=memory)
    with Brake(None if spills else memory) as brake:
        try:
            found = engine(instance, wanted, Limits(states, duration, brake), ticker)
        except MemoryError:
            raise Inconclusive(
                f"out of memory at {human_size(runfile.peak_rss())}; smaller bounds, or --max-states"
            ) from None
        except Unsound as problem:
            raise UsageError(str(problem)) from None
        except BadCheckpoint as problem:
            raise InputError(str(problem)) from None
        except Unavailable as problem:
            raise UsageError(str(problem)) from None
        except Failed as problem:
            more = f"; to go on from the last complete level, add: --resume {out}" if resumable(out) else ""
            raise Inconclusive(f"{problem}{more}") from None
        finally:
            ticker.close()
    undecided = any(f.verdict is Verdict.BUDGETED for f in found.findings)
    if found.complete or not undecided:
        return found, None, workers
    of = f" of {human_size(memory)}" if memory and found.stopped == "the memory limit" else ""
    reason = brake.reason or found.stopped + of
    if not reason and states is not None and found.distinct >= states:
        reason = f"--max-states {states:,}"
    return found, reason or (f"--max-seconds {duration:g}" if duration is not None else None), workers


def _engine(given: Namespace, out: Folder) -> tuple[Callable[..., Exploration], int, bool]:
    """The engine with what was asked of it, its workers, and whether it keeps to a memory limit by itself."""
    if given.simulate:
        from isr_check.sample import simulate

        walks, chosen = cast("int", given.simulate), seed(given)

        def walking(instance: Instance, wanted: tuple[str, ...], limits: Limits, progress: Ticker) -> Exploration:
            found = simulate(instance, wanted, walks, cast("int", chosen), limits, progress)
            findings = [_minimal(instance, f) if f.path is not None else f for f in found.findings]
            return attrs.evolve(found, findings=tuple(findings))

        return walking, 1, False
    name = engine_name(given)
    explore, workers = registry.engine_named(name, cast("int | None", given.workers))
    takes = inspect.signature(explore).parameters
    resume, memory = cast("str | None", given.resume), cast("int | None", given.memory)
    if resume and "resume" not in takes:
        raise UsageError(f"the engine '{name}' keeps no checkpoints; --resume needs --engine native or {SPARK}")
    asked: dict[str, object] = {"symmetry": True} if given.symmetry == "on" else {}
    if name == SPARK:
        asked |= {n: getattr(given, n) for n in ON_SPARK if getattr(given, n) is not None}
        asked |= {"folder": Folder(resume or out) / SPARK, "keep": bool(given.out or resume), "resume": bool(resume)}
        asked |= {"memory": memory, "graph": bool(given.graph)}
    elif "folder" in takes:
        asked |= {"folder": Folder(resume or out) / CHECKPOINT, "every": cast("float", given.checkpoint_every)}
        asked |= {"memory": memory, "resume": bool(resume)}
    return partial(explore, **asked), workers, "memory" in takes


def resumable(out: Folder) -> bool:
    """Whether there is what a run can go on from."""
    return any((out / file).exists() for file in (f"{CHECKPOINT}/checkpoint.json", f"{SPARK}/plan.json"))


def _minimal(instance: Instance, finding: Finding) -> Finding:
    """A walk stumbles on what it finds: the finding with fewer and calmer steps."""
    assert finding.path is not None
    evaluator, path = Evaluator(instance), finding.path
    walked = record(evaluator, path.initial, path.steps, property_name=finding.name, verdict=finding.verdict.value)
    run = run_of(minimise(walked, evaluator), Replay(evaluator))
    steps = tuple((m.action, cast("tuple[int, ...]", m.parameters)) for m in run.moves)
    return attrs.evolve(finding, path=Path(cast("tuple[int, ...]", run.initial), steps))


def engine_name(given: Namespace) -> str:
    if given.simulate:
        return "simulation"
    return cast("str | None", given.engine) or registry.default_engine()
