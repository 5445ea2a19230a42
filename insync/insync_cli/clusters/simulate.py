"""`insync simulate`: the broker's own code in a hostile world, one history per seed, or one scenario with many."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, terminal
from insync_cli.clusters.settings import pairs
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from insync_cli.options import (
    Usage,
    flag,
    group,
    natural,
    option,
    optional_argument,
    positive,
    repeated_option,
    workers_at_most,
)
from insync_cli.progress import interruptible
from insync_cli.terminal import QuietOutput
from insync_cli.workers import forks
from isr_broker.designs import DESIGNS, PLANTED
from isr_broker.settings import BadSetting, Settings
from isr_sim.faults import ALL, WIDER, Kind
from isr_sim.reassigning import MovingRun
from isr_sim.scenario import BadScenario, Scenario, parse, play
from isr_sim.simulate import QUICK, Config, Outcome, finish_run, simulate

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync simulate kip-966 --seeds 0..99
insync simulate kip-966 --seeds 0..99 --wider
insync simulate kip-966 --seeds 0..99 --moves
insync simulate zookeeper --seeds 0..20 --without power-loss --lines 15
insync simulate --scenario clusters/isr_sim/scenarios/jepsen-2013.txt --seeds 1..5"""

FAULTS = {kind.name.lower().replace("_", "-"): kind for kind in Kind}
CONVERGENCE = "convergence"


USAGE = Usage("simulate", "The broker's own code in a hostile world: one seed, one history.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    design: str | None = optional_argument(
        "DESIGN", f"one of {', '.join(DESIGNS)} (default kip-966); or a planted bug: insync kills --help", str
    )
    own: options.OwnDesigns = group(options.OwnDesigns)
    seeds: str = option("A..B", "from A to B, both included", str, "0..19")
    scenario: Path | None = option("FILE", "do what the file says, instead of faults by chance", Path)
    set: tuple[str, ...] = repeated_option("NAME=VALUE", "a setting by Kafka's name", str)
    without: tuple[str, ...] = repeated_option("FAULT", f"leave out one of: {', '.join(FAULTS)}", str)
    wider: bool = flag("settings change, files of disks are damaged and strangers call, too (docs/simulator.md)")
    moves: bool = flag("a fourth broker, and an operator who moves partitions")
    workers: int = option("N", "processes", workers_at_most, 1)
    until: int | None = option("N", "stop after N violations", positive)
    lines: int = option("N", "show the last N steps of a violation", natural, 0)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    seeds, scenario, output = seeds_of(invocation.seeds), scenario_of(invocation), invocation.output
    config = None if scenario is not None else config_of(invocation)
    output.check()
    began = time.perf_counter()
    outcomes, stopped = simulate_seeds(invocation, seeds, scenario, config)
    seconds = time.perf_counter() - began
    unmet_expectations = _unmet_expectations(scenario, outcomes)
    output.write(_report(outcomes, unmet_expectations, seconds))
    if output.for_people:
        out = output.console()
        for line in unmet_expectations:
            out.print(line, soft_wrap=True)
        _sum_up(out, outcomes, seconds, stopped)
        if scenario is not None and not unmet_expectations and not stopped:
            out.print(f"as expected with every seed: {', '.join(map(str, scenario.expectations))}", soft_wrap=True)
    return exit_code(outcomes, unmet_expectations, scenario=scenario is not None, stopped=bool(stopped))


def simulate_seeds(
    invocation: Options, seeds: range, scenario: Scenario | None, config: Config | None
) -> tuple[list[Outcome], str]:
    """The outcomes, each violation told as it comes; and what ended them before the last seed, if anything."""
    output, out = invocation.output, invocation.output.console()
    outcomes, violations = list[Outcome](), 0
    try:
        with output.ticker() as ticker, interruptible():
            runs = _outcomes(seeds, _simulation(invocation, scenario, config), invocation.workers)
            for outcome in ticker.count_each(runs, len(seeds), "seeds"):
                outcomes.append(outcome)
                if outcome.promise is None:
                    continue
                violations += 1
                if output.for_people and scenario is None:
                    ticker.close()
                    _show(out, outcome, invocation, config)
                if violations == invocation.until:
                    break
    except KeyboardInterrupt:
        return outcomes, f"stopped after {len(outcomes)} of {terminal.count(len(seeds), 'seed')}"
    return outcomes, ""


def exit_code(outcomes: Sequence[Outcome], unmet_expectations: Sequence[str], *, scenario: bool, stopped: bool) -> Exit:
    """The answer as a number; what was stopped is no success."""
    if scenario and unmet_expectations:
        return Exit.UNEXPECTED
    broken = [o.promise for o in outcomes if o.promise is not None and not scenario]
    if broken:
        return Exit.LIVENESS if all(promise == CONVERGENCE for promise in broken) else Exit.SAFETY
    return Exit.INCONCLUSIVE if stopped else Exit.HOLDS


def seeds_of(text: str) -> range:
    """A..B, or one number."""
    match = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", text, re.ASCII)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if last < first:
        raise UsageError(f"--seeds wants A..B with A not above B, not '{text}'")
    return range(first, last + 1)


def config_of(invocation: Options) -> Config:
    """The simulator's settings with those that were given; UsageError for a name that does not exist."""
    design = invocation.design or "kip-966"
    own = registry.designs().get(design)
    if own is not None and own.file:
        raise UsageError(
            f"{design} is a design of the model, and this simulates the broker's code; for random walks of the model: "
            f"insync check {design}{registry.own_option(own)} --simulate 1000"
        )
    if design not in DESIGNS | PLANTED:
        raise UsageError(f"there is no design '{design}' of the broker{did_you_mean(design, DESIGNS)}")
    for name in invocation.without:
        if name not in FAULTS:
            raise UsageError(f"there is no fault '{name}'{did_you_mean(name, FAULTS)}")
    usual = Settings().properties()
    quick = {name: value for name, value in QUICK.properties().items() if value != usual[name]}
    chosen = pairs(invocation.set, "--set")
    try:
        settings = Settings.from_properties({**quick, "insync.design": design, **chosen})
    except BadSetting as error:
        raise UsageError(str(error)) from None
    left_out = {FAULTS[name] for name in invocation.without}
    kinds = WIDER if invocation.wider else ALL
    return Config(
        settings=settings,
        brokers=4 if invocation.moves else 3,
        kinds=tuple(kind for kind in kinds if kind not in left_out),
        wider=invocation.wider,
    )


def scenario_of(invocation: Options) -> Scenario | None:
    """The scenario in the file; InputError if it is none."""
    file = invocation.scenario
    if file is None:
        return None
    if invocation.design is not None or invocation.set or invocation.without or invocation.wider or invocation.moves:
        raise UsageError("a scenario says itself which design, settings and faults it has; give only --seeds")
    try:
        return parse(file.read_text(encoding="utf-8"))
    except BadScenario as error:
        raise InputError(f"{file}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = terminal.reason(error) if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"cannot read {file}: {why}") from None


def _outcomes(seeds: range, simulation: Callable[[int], Outcome], workers: int) -> Iterator[Outcome]:
    """One run of each seed, in their order however many processes there are."""
    if workers == 1:
        yield from map(simulation, seeds)
        return
    with forks(workers) as pool:
        yield from pool.map(simulation, seeds, chunksize=4)


def _simulation(invocation: Options, scenario: Scenario | None, config: Config | None) -> Callable[[int], Outcome]:
    """What is done with a seed."""
    if scenario is not None:
        return partial(play, scenario)
    assert config is not None, "without a scenario there are settings"
    return partial(_moving_run, config) if invocation.moves else partial(simulate, config=config)


def _moving_run(config: Config, seed: int) -> Outcome:
    return finish_run(MovingRun(config, seed))


def _unmet_expectations(scenario: Scenario | None, outcomes: list[Outcome]) -> list[str]:
    """The expectations of a scenario that were not met, each with its seed."""
    if scenario is None:
        return []
    return [
        f"seed {outcome.seed}: not met: {expectation}; {outcome.violation or 'every promise was kept'}"
        for outcome in outcomes
        for expectation in scenario.expectations
        if not expectation.is_met_by(outcome)
    ]


def _show(out: Console, outcome: Outcome, invocation: Options, config: Config | None) -> None:
    out.print(f"seed {outcome.seed}: {outcome.violation}", soft_wrap=True)
    if invocation.lines and config is not None:
        again = _simulation(invocation, None, attrs.evolve(config, keeps_lines=True))(outcome.seed)
        for line in again.lines[-invocation.lines :]:
            out.print(f"  {line}", soft_wrap=True)


def _sum_up(out: Console, outcomes: list[Outcome], seconds: float, stopped: str) -> None:
    violations = sum(outcome.promise is not None for outcome in outcomes)
    faults: Counter[Kind] = Counter()
    for outcome in outcomes:
        faults.update(outcome.faults)
    steps, acked = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("steps", "acked"))
    rate = len(outcomes) / seconds if seconds else 0.0
    out.print(
        f"{terminal.count(len(outcomes), 'seed')}, {rate:.1f} seeds/s: {terminal.count(violations, 'violation')}; "
        f"{steps:,} steps, {acked:,} writes acknowledged, {sum(faults.values()):,} faults"
        + (f"; {stopped}" if stopped else ""),
        soft_wrap=True,
    )
    stranded = sum(outcome.stranded_partitions for outcome in outcomes)
    if stranded:
        out.print(f"{terminal.count(stranded, 'partition')} left to an operator: nobody who came back may lead")


def _report(outcomes: list[Outcome], unmet_expectations: list[str], seconds: float) -> dict[str, object]:
    return {
        "schema": "insync/simulate/1",
        "seeds": len(outcomes),
        "seconds": round(seconds, 3),
        "seeds_per_second": round(len(outcomes) / seconds, 2) if seconds else None,
        "violations": [
            {"seed": o.seed, "promise": o.promise, "violation": o.violation} for o in outcomes if o.promise is not None
        ],
        "unmet": unmet_expectations,
        "steps": sum(o.steps for o in outcomes),
        "acked": sum(o.acked for o in outcomes),
        "stranded": sum(o.stranded_partitions for o in outcomes),
        "trace": {str(o.seed): o.trace for o in outcomes},
    }
