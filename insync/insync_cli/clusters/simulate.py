"""`insync simulate`: the broker's own code in a hostile world, one history per seed, or one scenario with many."""

from __future__ import annotations

import re
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from isr_broker.designs import DESIGNS, PLANTED
from isr_broker.settings import BadSetting, Settings
from isr_sim.faults import Kind
from isr_sim.scenario import BadScenario, Scenario, parse, play
from isr_sim.simulate import QUICK, Config, Outcome, simulate

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync simulate kip-966 --seeds 0..99
insync simulate zookeeper --seeds 0..20 --without power-loss --lines 15
insync simulate --scenario impl/isr_sim/scenarios/jepsen-2013.txt --seeds 1..5"""

FAULTS = {kind.name.lower().replace("_", "-"): kind for kind in Kind}
CONVERGENCE = "convergence"


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("simulate", "The broker's own code in a hostile world: one seed, one history.", EXAMPLE)
    p.add_argument(
        "named",
        nargs="?",
        metavar="DESIGN",
        help=f"one of {', '.join(DESIGNS)} (default kip-966); or a planted bug: insync kills --help",
    )
    p.add_argument("--seeds", default="0..19", metavar="A..B", help="from A to B, both included (default 0..19)")
    p.add_argument("--scenario", metavar="FILE", help="do what the file says, instead of faults by chance")
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting by Kafka's name")
    p.add_argument(
        "--without", action="append", default=[], metavar="FAULT", help=f"leave out one of: {', '.join(FAULTS)}"
    )
    p.add_argument("--workers", type=options.positive, default=1, metavar="N", help="processes (default 1)")
    p.add_argument("--until", type=options.positive, default=None, metavar="N", help="stop after N violations")
    p.add_argument("--lines", type=options.natural, default=0, metavar="N", help="show the last N steps of a violation")
    p.add_json()
    return p.read(argv)


def seeds_of(text: str) -> range:
    """A..B, or one number."""
    match = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", text, re.ASCII)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if last < first:
        raise UsageError(f"--seeds wants A..B with A not above B, not '{text}'")
    return range(first, last + 1)


def config_of(given: Namespace) -> Config:
    """The settings over the simulator's own; UsageError for what does not exist."""
    design = cast("str | None", given.named) or "kip-966"
    if design not in DESIGNS | PLANTED:
        raise UsageError(f"there is no design '{design}' of the broker{did_you_mean(design, DESIGNS)}")
    without = cast("list[str]", given.without)
    for name in without:
        if name not in FAULTS:
            raise UsageError(f"there is no fault '{name}'{did_you_mean(name, FAULTS)}")
    usual = Settings().properties()
    quick = {name: value for name, value in QUICK.properties().items() if value != usual[name]}
    pairs = [pair.partition("=") for pair in cast("list[str]", given.set)]
    chosen = {name: value for name, _, value in pairs}
    try:
        settings = Settings.from_properties({**quick, "insync.design": design, **chosen})
    except BadSetting as error:
        raise UsageError(str(error)) from None
    return Config(settings=settings, kinds=tuple(kind for name, kind in FAULTS.items() if name not in without))


def scenario_of(given: Namespace) -> Scenario | None:
    """What the file says; InputError if it is no scenario."""
    file = cast("str | None", given.scenario)
    if file is None:
        return None
    if given.named is not None or given.set or given.without:
        raise UsageError("a scenario says itself which design, settings and faults it has; give only --seeds")
    try:
        return parse(Path(file).read_text(encoding="utf-8"))
    except BadScenario as error:
        raise InputError(f"{file}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = terminal.reason(error) if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"cannot read {file}: {why}") from None


def run(given: Namespace) -> int:
    seeds, scenario = seeds_of(str(given.seeds)), scenario_of(given)
    config = None if scenario is not None else config_of(given)
    target, until = cast("str | None", given.json), cast("int | None", given.until)
    terminal.check_json_target(target)
    out = terminal.console(plain=cast("bool", given.plain))
    began, outcomes, broken = time.perf_counter(), list[Outcome](), list[Outcome]()
    for outcome in _outcomes(seeds, scenario, config, cast("int", given.workers)):
        outcomes.append(outcome)
        if outcome.promise is not None:
            broken.append(outcome)
            if target != "-" and scenario is None:
                _show(out, outcome, config, cast("int", given.lines))
        if until is not None and len(broken) >= until:
            break
    seconds = time.perf_counter() - began
    unmet = _unmet(scenario, outcomes)
    terminal.write_json(target, _report(outcomes, unmet, seconds))
    if target != "-":
        for line in unmet:
            out.print(line, soft_wrap=True)
        _sum_up(out, outcomes, len(broken), seconds)
        if scenario is not None and not unmet:
            out.print(f"as expected with every seed: {', '.join(map(str, scenario.expectations))}", soft_wrap=True)
    if scenario is not None:
        return Exit.UNEXPECTED if unmet else Exit.HOLDS
    if any(outcome.promise != CONVERGENCE for outcome in broken):
        return Exit.SAFETY
    return Exit.LIVENESS if broken else Exit.HOLDS


def _outcomes(seeds: range, scenario: Scenario | None, config: Config | None, workers: int) -> Iterator[Outcome]:
    """One run of each seed, in their order however many processes there are."""
    one = partial(_one, scenario, config)
    if workers == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        try:
            yield from pool.map(one, seeds, chunksize=4)
        finally:
            pool.shutdown(cancel_futures=True)


def _one(scenario: Scenario | None, config: Config | None, seed: int) -> Outcome:
    return play(scenario, seed) if scenario is not None else simulate(seed, config)


def _unmet(scenario: Scenario | None, outcomes: list[Outcome]) -> list[str]:
    """What did not come to pass, with its seed."""
    if scenario is None:
        return []
    return [
        f"seed {outcome.seed}: not met: {expectation}; {outcome.violation or 'every promise was kept'}"
        for outcome in outcomes
        for expectation in scenario.expectations
        if not expectation.met(outcome)
    ]


def _show(out: Console, outcome: Outcome, config: Config | None, lines: int) -> None:
    out.print(f"seed {outcome.seed}: {outcome.violation}", soft_wrap=True)
    if lines and config is not None:
        again = simulate(outcome.seed, attrs.evolve(config, keeps_lines=True))
        for line in again.lines[-lines:]:
            out.print(f"  {line}", soft_wrap=True)


def _sum_up(out: Console, outcomes: list[Outcome], broken: int, seconds: float) -> None:
    faults: Counter[Kind] = Counter()
    for outcome in outcomes:
        faults.update(outcome.faults)
    steps, acked = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("steps", "acked"))
    rate = len(outcomes) / seconds if seconds else 0.0
    out.print(
        f"{terminal.count(len(outcomes), 'seed')}, {rate:.1f} seeds/s: {terminal.count(broken, 'violation')}; "
        f"{steps:,} steps, {acked:,} writes acknowledged, {sum(faults.values()):,} faults",
        soft_wrap=True,
    )
    stranded = sum(outcome.stranded for outcome in outcomes)
    if stranded:
        out.print(f"{terminal.count(stranded, 'partition')} left to an operator: nobody who came back may lead")


def _report(outcomes: list[Outcome], unmet: list[str], seconds: float) -> dict[str, object]:
    return {
        "schema": "insync/simulate/1",
        "seeds": len(outcomes),
        "seconds": round(seconds, 3),
        "seeds_per_second": round(len(outcomes) / seconds, 2) if seconds else None,
        "violations": [
            {"seed": o.seed, "promise": o.promise, "violation": o.violation} for o in outcomes if o.promise is not None
        ],
        "unmet": unmet,
        "steps": sum(o.steps for o in outcomes),
        "acked": sum(o.acked for o in outcomes),
        "stranded": sum(o.stranded for o in outcomes),
        "trace": {str(o.seed): o.trace for o in outcomes},
    }
