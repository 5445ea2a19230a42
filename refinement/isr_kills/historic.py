"""The bugs of Kafka's historic designs: the simulator finds each in the cores, and not in the design that fixed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

import isr_sim
from isr_broker.designs import DESIGNS
from isr_kills.layers import WEATHERS
from isr_sim.scenario import Expectation, Scenario, parse, play
from isr_sim.simulate import Config, Outcome, simulate

SCENARIOS: Final = Path(isr_sim.__file__).parent / "scenarios"


@attrs.frozen
class Historic:
    """A historic design, its bug, the promise that the bug breaks, and the design that fixed it.

    The bug shows in `scenario`, a file of the simulator, or else in `slow` weather with some seed. `also` are settings
    for both designs.
    """

    design: str
    bug: str
    promise: str
    fixed_by: str
    scenario: str = ""
    also: Mapping[str, str] = attrs.field(factory=dict[str, str])


HISTORIC: Final = (
    Historic(
        "kafka-0.8",
        "the ISR shrinks to the leader, which is lost; unclean election",
        "acked-survives",
        "kip-966",
        "jepsen-2013",
    ),
    Historic("zookeeper", "truncation to a watermark that lags (KAFKA-1211)", "leaders-complete", "kip-101"),
    Historic("kip-101", "an epoch that the leader never had goes unnoticed (KIP-279)", "no-divergence", "kip-279"),
    Historic(
        "kip-279", "a fetch from an older epoch counts (KIP-320)", "leaders-complete", "kip-320", "kip-320-first-try"
    ),
    Historic(
        "kip-320-first-try",
        "a fetch from an older epoch counts, and its follower truncates later",
        "leaders-complete",
        "kip-320",
        "kip-320-first-try",
    ),
    Historic(
        "kip-320",
        "a fenced broker is put back into the ISR (KIP-841)",
        "fenced-out-of-isr",
        "kip-841",
        "fenced-rejoin",
    ),
    Historic(
        "kip-497",
        "a fenced broker is put back into the ISR (KIP-841)",
        "fenced-out-of-isr",
        "kip-841",
        "fenced-rejoin",
    ),
    Historic(
        "kip-841",
        "a replica that lost its disk joins by what it had before (KIP-903)",
        "leaders-complete",
        "kip-903",
        "stale-broker-epoch",
    ),
    Historic(
        "kip-903",
        "the last member of the ISR loses power, and is trusted (KIP-966)",
        "reads-committed",
        "kip-966",
        "last-replica-standing",
        {"min.insync.replicas": "2"},
    ),
    Historic(
        "kraft-3.5",
        "the last member of the ISR loses power, and is trusted (KIP-966)",
        "reads-committed",
        "kip-966",
        "last-replica-standing",
        {"min.insync.replicas": "2"},
    ),
)


def scenario_of(name: str, design: str, promise: str = "", also: Mapping[str, str] | None = None) -> Scenario:
    """A scenario of the simulator for another design. It expects `promise` to be broken, or all promises to be kept."""
    read = parse((SCENARIOS / f"{name}.txt").read_text(encoding="utf-8"))
    settings = {**dict(read.settings), "insync.design": design, **(also or {})}
    expected = Expectation("broken", promise) if promise else Expectation("kept")
    return attrs.evolve(read, settings=tuple(settings.items()), expectations=(expected,))


def run_bug(case: Historic, seed: int) -> Outcome:
    """A run of the design with the bug."""
    if case.scenario:
        return play(scenario_of(case.scenario, case.design, case.promise, case.also), seed)
    return simulate(seed, _slow(case.design))


def run_fix(case: Historic, seed: int) -> Outcome:
    """The same run of the design that fixed the bug."""
    if case.scenario:
        return play(scenario_of(case.scenario, case.fixed_by, "", case.also), seed)
    return simulate(seed, _slow(case.fixed_by))


def _slow(design: str) -> Config:
    config = WEATHERS["slow"]
    return attrs.evolve(config, settings=attrs.evolve(config.settings, insync_design=DESIGNS[design]))


def find_seed(case: Historic, seeds: Iterable[int] = range(400)) -> int | None:
    """The first seed with which the bug breaks its promise, and the fix breaks none; None if there is no such seed."""
    for seed in seeds:
        if run_bug(case, seed).promise == case.promise and run_fix(case, seed).promise is None:
            return seed
    return None


def historic_table(seeds: Mapping[str, int | None]) -> str:
    """The table for docs/kills.md, with the seed of each design."""
    lines = ["| design | bug | found by | promise | kept by |", "|---|---|---|---|---|"]
    for case in HISTORIC:
        seed = seeds[case.design]
        where = f"scenario `{case.scenario}`" if case.scenario else "slow network"
        where = ", ".join([where, *(f"`{name}={value}`" for name, value in case.also.items())])
        found = "not found" if seed is None else f"{where}, seed {seed}"
        lines.append(f"| `{case.design}` | {case.bug} | {found} | {case.promise} | `{case.fixed_by}` |")
    return "\n".join(lines) + "\n"
