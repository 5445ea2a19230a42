"""The bug of each design of Kafka's history, found in the cores by the simulator, and not in what fixed it."""

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
    """A design, its bug, the promise that names it, and which design has it no more.

    `scenario` is a file of the simulator; without one `slow` weather finds it with some seed. `also` are settings of
    both.
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
    """The scenario of a file, played by another design; all promises are watched, or only one."""
    read = parse((SCENARIOS / f"{name}.txt").read_text(encoding="utf-8"))
    settings = {**dict(read.settings), "insync.design": design, **(also or {})}
    expected = Expectation("broken", promise) if promise else Expectation("kept")
    return attrs.evolve(read, settings=tuple(settings.items()), expectations=(expected,))


def ran(case: Historic, seed: int) -> Outcome:
    """The design with its bug."""
    if case.scenario:
        return play(scenario_of(case.scenario, case.design, case.promise, case.also), seed)
    return simulate(seed, _slow(case.design))


def ran_fixed(case: Historic, seed: int) -> Outcome:
    """The same with the design that fixed it."""
    if case.scenario:
        return play(scenario_of(case.scenario, case.fixed_by, "", case.also), seed)
    return simulate(seed, _slow(case.fixed_by))


def _slow(design: str) -> Config:
    config = WEATHERS["slow"]
    return attrs.evolve(config, settings=attrs.evolve(config.settings, insync_design=DESIGNS[design]))


def seed_of(case: Historic, seeds: Iterable[int] = range(400)) -> int | None:
    """The first seed with which the promise is broken, and with the fix none."""
    for seed in seeds:
        if ran(case, seed).promise == case.promise and ran_fixed(case, seed).promise is None:
            return seed
    return None


def historic_table(seeds: Mapping[str, int | None]) -> str:
    """The table, with the seed of each design."""
    lines = ["| design | bug | found by | promise | kept by |", "|---|---|---|---|---|"]
    for case in HISTORIC:
        seed = seeds[case.design]
        where = f"scenario `{case.scenario}`" if case.scenario else "slow network"
        where = ", ".join([where, *(f"`{name}={value}`" for name, value in case.also.items())])
        found = "not found" if seed is None else f"{where}, seed {seed}"
        lines.append(f"| `{case.design}` | {case.bug} | {found} | {case.promise} | `{case.fixed_by}` |")
    return "\n".join(lines) + "\n"
