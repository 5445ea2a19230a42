"""Every bug and every layer: where each looks, what it finds, and the table of that for docs/conformance.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from isr_kills.historic import scenario_of
from isr_kills.layers import OF_RUNS, Found, Layer, by_crash_points, by_model, by_replay
from isr_lang import Value
from isr_planted import PLANTED as VARIED
from isr_sim.scenario import play

Kills: TypeAlias = Mapping[str, Mapping[Layer, Found | None]]
"""Bug -> layer -> what it found."""


@attrs.frozen
class Plan:
    """Where to look for a bug: `bounds` of the replay, none if it cannot show there; `weathers` of simulated runs.

    `scenario`: a file of the simulator that shows it where chance hardly ever does. `wanted`: the one promise that the
    model is asked for, where all would take long.
    """

    bounds: Mapping[str, Value] | None
    weathers: tuple[str, ...] = ("usual",)
    wanted: tuple[str, ...] = ()
    scenario: str = ""


SEEDS: Final = 80
"""Of each weather, for the simulator; for the others, which take longer, a third of them."""

_TWO: Final[Mapping[str, Value]] = {"replicas": 2}
_ONE: Final[Mapping[str, Value]] = {"replicas": 2, "min_insync": 1}
_EPOCHS: Final[Mapping[str, Value]] = {"replicas": 2, "epochs": 2, "isr_changes": 3}
_RECORDS: Final[Mapping[str, Value]] = {"replicas": 2, "log": 2, "records": 2, "consumers": 1}
_LOSING: Final[Mapping[str, Value]] = {**_EPOCHS, "isr_changes": 4, "sessions_lost": 1}

PLANS: Final[Mapping[str, Plan]] = {
    "truncate-to-watermark": Plan(_TWO),
    "next-epoch-start": Plan(
        {**_EPOCHS, "min_insync": 1, "crashes": 0, "sessions_lost": 1, "log": 2, "records": 2}, ("usual", "slow")
    ),
    "unfenced-fetch": Plan(_EPOCHS, ("usual", "slow"), ("leaders-complete",), "kip-320-first-try"),
    "committed-isr-only": Plan(_ONE),
    "roll-back-on-unknown-outcome": Plan(_TWO, ("usual", "overtaking")),
    "commit-under-minimum": Plan(_TWO),
    "no-broker-epoch-check": Plan(_TWO, scenario="stale-broker-epoch"),
    "join-at-watermark": Plan(_EPOCHS, wanted=("leaders-complete",)),
    "no-epoch-start": Plan(_TWO, ("usual", "slow")),
    "refused-fetch-counts": Plan(_EPOCHS, ("usual", "slow"), scenario="kip-320-first-try"),
    "watermark-of-diverging": Plan(_RECORDS),
    "keep-clean-mark": Plan(None, ("stops",)),
    "epoch-file-behind": Plan(None),
    "checkpoint-in-place": Plan(None),
    "ack-before-flush": Plan(None, ("flushing",)),
    "read-above-watermark": Plan(_RECORDS),
    "no-partition-epoch-check": Plan(_TWO, ("usual", "overtaking")),
    "elect-outside-isr": Plan(_ONE),
    "keep-elr": Plan(_TWO, ("usual", "stops")),
    "ungated-last-leader": Plan(_LOSING, ("usual", "stops")),
    "append-retries": Plan(None),
    "acknowledges-past-end": Plan(None),
    "cut-keeps-start": Plan(None),
    "cuts-damaged-metadata": Plan(None),
    "trusts-clean-mark": Plan(None),
    "refusals-outlive-topics": Plan(None),
}


def by_scenario(bug: str, name: str, seed: int = 1) -> Found | None:
    """A promise is broken in a scenario, and none by today's cores."""
    broken = play(scenario_of(name, bug), seed).promise
    if broken is None or play(scenario_of(name, "kip-966"), seed).promise is not None:
        return None
    return Found(Layer.SIMULATOR, broken, f"scenario {name}, seed {seed}")


def looked_for(bug: str, layer: Layer) -> Found | None:
    """What one layer finds of one bug, where the plan says."""
    plan = PLANS[bug]
    match layer:
        case Layer.MODEL:
            return by_model(bug, plan.wanted)
        case Layer.REPLAY:
            return None if plan.bounds is None else by_replay(bug, plan.bounds)
        case Layer.CRASH_POINTS:
            return by_crash_points(bug)
        case Layer.SIMULATOR if plan.scenario:
            return by_scenario(bug, plan.scenario)
        case _:
            seeds = range(SEEDS if layer is Layer.SIMULATOR else SEEDS // 3)
            return next(filter(None, (OF_RUNS[layer](bug, weather, seeds) for weather in plan.weathers)), None)


def found_again(bug: str, layer: Layer, cell: str) -> str:
    """What the table says of one cell, found again in the very place that it names."""
    named = re.search(r"\((\w+), seed (\d+)\)$", cell)
    found = OF_RUNS[layer](bug, named[1], [int(named[2])]) if named else looked_for(bug, layer)
    return text(bug, layer, found)


def kills(bugs: Iterable[str], layers: Iterable[Layer], tells: Callable[[str], object] = lambda _: None) -> Kills:
    """The matrix, or part of it."""
    wanted, done = tuple(layers), dict[str, dict[Layer, Found | None]]()
    for bug in bugs:
        done[bug] = {}
        for layer in wanted:
            done[bug][layer] = looked_for(bug, layer)
            tells(f"{bug}: {layer} {text(bug, layer, done[bug][layer])}")
    return done


# The table


def text(bug: str, layer: Layer, found: Found | None) -> str:
    """One cell: what was found and where; `-` if nothing was; nothing where the bug has no place."""
    if found is not None:
        return f"{found.what} ({found.where})"
    absent = layer is Layer.MODEL and VARIED[bug].design is None
    return "" if absent or (layer is Layer.REPLAY and PLANS[bug].bounds is None) else "-"


def table(done: Kills) -> str:
    """The matrix as Markdown, and what it comes to."""
    lines = [f"| bug | {' | '.join(Layer)} |", "|---" * (1 + len(Layer)) + "|"]
    for bug, row in done.items():
        cells = (text(bug, layer, row.get(layer)) for layer in Layer)
        lines.append(f"| `{bug}` | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_explained(done), "", summary(done)]) + "\n"


def _explained(bugs: Iterable[str]) -> list[str]:
    """What each bug is, and where it has no place in the model."""
    lines = ["| bug | with it |", "|---|---|"]
    for bug in bugs:
        without = f"; not in the model: {VARIED[bug].without}" if VARIED[bug].without else ""
        lines.append(f"| `{bug}` | {VARIED[bug].what}{without} |")
    return lines


def summary(done: Kills) -> str:
    """How many bugs were found, and by how many layers."""
    by = [sum(found is not None for found in row.values()) for row in done.values()]
    return f"{sum(n > 0 for n in by)} of {len(by)} bugs are found, {sum(n > 1 for n in by)} by two layers or more."
