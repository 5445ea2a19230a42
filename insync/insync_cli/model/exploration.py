"""How `check` explores: all states, one per orbit, in so much memory, from a checkpoint on, or random walks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path as Folder
from typing import TYPE_CHECKING, cast

import attrs

from insync_cli import options, registry, runfile
from insync_cli.exits import Inconclusive, InputError, UsageError
from insync_cli.options import flag, group, natural, option, positive, seconds, size, switch
from insync_cli.progress import Brake, Ticker, human_size
from isr_check.engine import (
    BadCheckpoint,
    Engine,
    Exploration,
    Failed,
    Finding,
    Limits,
    Path,
    Progress,
    Unavailable,
    Unsound,
    Verdict,
)
from isr_check.family import Notice, Precursor, Slack
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_trace.minimise import minimise
from isr_trace.replay import Replay, record, run_of

if TYPE_CHECKING:
    from insync_cli.terminal import Output
    from isr_check.room_search import Room

CHECKPOINT = "checkpoint"
"""The folder of the checkpoint, within the folder of the results. `--resume` goes on from it."""
SPARK = "spark"
"""The engine, and the folder within the results where it keeps its states."""
SIMULATION = "simulation"
"""What run.json calls the engine that walks at random."""
FIRST_SEED = 1


@attrs.frozen(kw_only=True)
class Large:
    """For models that are too large to be explored plainly."""

    symmetry: bool | None = switch(
        "one state of each orbit (without it: off, or on where bounds not given are larger than the design's, or where "
        "people work beside the faults)"
    )
    reduction: bool | None = switch(
        "one state for all that differ in what makes no difference later (without it: as symmetry)"
    )
    memory: int | None = option(
        "SIZE", "hold so much, such as 2G; more states are compressed, then go to files in DIR", size
    )
    resume: str | None = option("DIR", "go on from the checkpoint of a run with --out DIR", str)
    checkpoint_every: float = option("S", "seconds between two checkpoints in the folder of --out", seconds, 60.0)


@attrs.frozen(kw_only=True)
class Simulation:
    """Random walks in place of an exploration."""

    simulate: int | None = option("N", "N random walks instead of all states", positive)
    seed: int | None = option("S", f"other walks (without it {FIRST_SEED})", natural)

    @property
    def used_seed(self) -> int | None:
        """The seed of the random walks; None where nothing is random."""
        if not self.simulate:
            return None
        return FIRST_SEED if self.seed is None else self.seed


@attrs.frozen(kw_only=True)
class OnSpark:
    """For the engine spark alone."""

    master: str | None = option("URL", "spark://host:7077, sc://host; without it, this machine alone", str)
    partitions: int | None = option("N", "of the states; without it, 2 per core", positive)
    handover: int | None = option("N", "levels of up to N states need no Spark; without it, 200000", natural)
    store: str | None = option("URL", "where states last: s3://bucket/prefix, gs://, abfs://, hdfs://, file://", str)
    graph: bool = flag("all states and steps as tables beside them, too, for SQL")

    def engine_arguments(self) -> dict[str, object]:
        """The options that were given, as keyword arguments of the engine."""
        chosen = {"master": self.master, "partitions": self.partitions, "handover": self.handover, "store": self.store}
        return {name: value for name, value in chosen.items() if value is not None}


@attrs.frozen(kw_only=True)
class Exploring:
    """How to explore, and where the results go."""

    out: str | None = option("DIR", "where run.json and the traces go (without it, below runs/)", str)
    running: options.Running = group(options.Running, "running")
    large: Large = group(Large, "large models")
    simulation: Simulation = group(Simulation, "simulation")
    spark: OnSpark = group(OnSpark, "with --engine spark")

    @property
    def engine(self) -> str:
        """The name of the engine in run.json."""
        return SIMULATION if self.simulation.simulate else self.running.engine_name

    def folder(self, default: Callable[[], str]) -> Folder:
        """The folder of the results: the one of --out, else that of the checkpoint, else one below runs/."""
        return Folder(self.out or self.large.resume or default())

    def check(self, instance: Instance, requested_properties: tuple[str, ...]) -> None:
        """UsageError for options that contradict each other or what is asked."""
        for name in self.spark.engine_arguments() if self.engine != SPARK else ():
            raise UsageError(f"--{name} is for --engine {SPARK}")
        if self.spark.graph and not (self.engine == SPARK and (self.out or self.large.resume or self.spark.store)):
            raise UsageError(f"--graph is for --engine {SPARK} with --out DIR or --store URL")
        walks = self.simulation.simulate
        if self.simulation.seed is not None and not walks:
            raise UsageError("--seed chooses the walks of --simulate; without it nothing is random")
        if walks and (self.large.resume or self.large.symmetry or self.large.reduction):
            raise UsageError("--simulate walks; --resume, --symmetry and --reduction are for exploring all states")
        if self.large.reduction and self.engine == SPARK:
            raise UsageError(f"--reduction on is for the engines native and reference, not {SPARK}")
        live = [p.name for p in instance.properties if p.kind == "eventually" and p.name in requested_properties]
        if walks and live:
            raise UsageError(
                f"--simulate says nothing of liveness ({live[0]}): a walk ends, and what it lacks may yet come"
            )
        if self.large.symmetry and live:
            raise UsageError(
                f"--symmetry on is unsound for liveness ({live[0]}): a cycle of orbits need not be one of states"
            )
        if self.large.reduction and live:
            raise UsageError(f"--reduction on is not for liveness ({live[0]}), which counts all steps between states")


@attrs.frozen
class Explored:
    """What an exploration found, what ended it early (Ctrl-C, a limit), and how many workers there were.

    `room`: whether its bounds leave room for the faults, where that was asked. `precursor`: what comes before harm that
    the bounds cut off, where it was met. `notice`: which known mistakes they would notice, where that is known.
    `slack`: of each promise of liveness that holds, how much of the bounds was left. `without_encounter`: promises of
    which random walks met nothing that they speak about.
    """

    result: Exploration
    stopped_by: str | None
    workers: int
    room: Room | None = None
    precursor: Precursor | None = None
    notice: Notice | None = None
    slack: Mapping[str, Slack] = attrs.field(factory=dict[str, Slack])
    without_encounter: tuple[str, ...] = ()


def explored(
    instance: Instance, property_names: tuple[str, ...], exploring: Exploring, output: Output, out: Folder
) -> Explored:
    """Explore as asked. Errors of an engine become a sentence, with the way to go on where there is one."""
    memory = exploring.large.memory
    engine, workers, spills = _engine(exploring, out)
    if not property_names:
        return Explored(Exploration((), False, 0, 0, 0, 0.0, (), {}, ()), None, workers)
    ticker = Ticker(quiet=output.quiet, plain=output.plain, memory=memory)
    with Brake(None if spills else memory) as brake:
        try:
            limits = Limits(exploring.running.max_states, exploring.running.max_seconds, brake)
            result = engine(instance, property_names, limits, ticker)
        except MemoryError:
            raise Inconclusive(
                f"out of memory at {human_size(runfile.peak_rss())}; smaller bounds, or --max-states"
            ) from None
        except (Unsound, Unavailable) as problem:
            raise UsageError(str(problem)) from None
        except BadCheckpoint as problem:
            raise InputError(str(problem)) from None
        except Failed as problem:
            more = f"; to go on from the last complete level, add: --resume {out}" if resumable(out, exploring) else ""
            raise Inconclusive(f"{problem}{more}") from None
        finally:
            ticker.close()
    return Explored(result, _stopped_by(result, exploring, brake), workers)


def _stopped_by(result: Exploration, exploring: Exploring, brake: Brake) -> str | None:
    """Why an exploration ended before its question was decided; None where it was decided."""
    if result.complete or not any(f.verdict is Verdict.BUDGETED for f in result.findings):
        return None
    memory, states, duration = exploring.large.memory, exploring.running.max_states, exploring.running.max_seconds
    of = f" of {human_size(memory)}" if memory and result.stopped == "the memory limit" else ""
    reason = brake.reason or result.stopped + of
    if not reason and states is not None and result.distinct >= states:
        reason = f"--max-states {states:,}"
    return reason or (f"--max-seconds {duration:g}" if duration is not None else None)


def engine_for_room(exploring: Exploring, workers: int) -> Engine:
    """The engine that looks for room beside an exploration: within the same memory, if that was limited."""
    explore, _ = registry.engine_named(registry.default_engine(), workers)
    memory = exploring.large.memory
    if memory is None or "memory" not in inspect.signature(explore).parameters:
        return explore
    return partial(cast("Callable[..., Exploration]", explore), memory=memory)


def _engine(exploring: Exploring, out: Folder) -> tuple[Engine, int, bool]:
    """The engine with its options set, the number of its workers, and whether it heeds a memory limit by itself."""
    walks = exploring.simulation.simulate
    if walks:
        seed = exploring.simulation.used_seed or 0
        walker, workers = registry.walker_named(exploring.running.engine_name, walks, seed, exploring.running.workers)
        return partial(_explore_by_walks, walker), workers, False
    name, large = exploring.engine, exploring.large
    explore, workers = registry.engine_named(name, exploring.running.workers)
    takes = inspect.signature(explore).parameters
    resume = large.resume
    if resume and "resume" not in takes:
        raise UsageError(f"the engine '{name}' keeps no checkpoints; --resume needs --engine native or {SPARK}")
    engine_arguments: dict[str, object] = {
        name: True for name, on in (("symmetry", large.symmetry), ("reduction", large.reduction)) if on
    }
    if name == SPARK:
        engine_arguments |= exploring.spark.engine_arguments()
        engine_arguments |= {"folder": Folder(resume or out) / SPARK, "resume": bool(resume)}
        engine_arguments |= {"keep": bool(exploring.out or resume or exploring.spark.store)}
        engine_arguments |= {"memory": large.memory, "graph": exploring.spark.graph}
    elif "folder" in takes:
        engine_arguments |= {"folder": Folder(resume or out) / CHECKPOINT, "every": large.checkpoint_every}
        engine_arguments |= {"memory": large.memory, "resume": bool(resume)}
    return cast("Engine", partial(explore, **engine_arguments)), workers, "memory" in takes


def _explore_by_walks(
    walker: Engine,
    instance: Instance,
    property_names: tuple[str, ...],
    limits: Limits,
    progress: Callable[[Progress], None],
) -> Exploration:
    """An engine that walks at random; what it stumbles on is made shorter."""
    found = walker(instance, property_names, limits, progress)
    findings = [_minimal(instance, f) if f.path is not None else f for f in found.findings]
    return attrs.evolve(found, findings=tuple(findings))


def resumable(out: Folder, exploring: Exploring) -> bool:
    """Whether there is a checkpoint to go on from: in the folder, or in the store that the same command names."""
    return bool(exploring.spark.store) or any(
        (out / file).exists() for file in (f"{CHECKPOINT}/checkpoint.json", f"{SPARK}/plan.json")
    )


def _minimal(instance: Instance, finding: Finding) -> Finding:
    """The finding with a shorter path. A random walk takes many steps that the violation does not need."""
    assert finding.path is not None
    evaluator, path = Evaluator(instance), finding.path
    walked = record(evaluator, path.initial, path.steps, property_name=finding.name, verdict=finding.verdict.value)
    run = run_of(minimise(walked, evaluator), Replay(evaluator))
    steps = tuple((m.action, cast("tuple[int, ...]", m.parameters)) for m in run.moves)
    return attrs.evolve(finding, path=Path(cast("tuple[int, ...]", run.initial), steps))
