"""The kill matrix: for each planted bug where each layer looks, what it finds, and the table of that in
docs/kills.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from isr_kills.historic import scenario_of
from isr_kills.layers import RUN_LAYERS, WEATHERS, Detection, Layer, by_crash_points, by_model, by_replay
from isr_lang import Value
from isr_protocol.planted.bugs import PLANTED as MODEL_BUGS
from isr_sim.scenario import play

Matrix: TypeAlias = Mapping[str, Mapping[Layer, Detection | None]]
"""What each layer found of each bug."""


@attrs.frozen
class Plan:
    """Where to look for a bug.

    - `bounds`: bounds of the replay, None if the bug cannot show there.
    - `weathers`: names of simulator settings (`layers.WEATHERS`), tried in this order.
    - `property_names`: the only promise that the model is asked for, if all of them would take long.
    - `scenario`: a scenario of the simulator, for bugs that random runs hardly ever show.
    """

    bounds: Mapping[str, Value] | None
    weathers: tuple[str, ...] = ("usual",)
    property_names: tuple[str, ...] = ()
    scenario: str = ""


SEEDS: Final = 80
"""Seeds per weather for the simulator. The other layers that look at runs take longer, and get a third of them."""

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
    "join-at-watermark": Plan(_EPOCHS, property_names=("leaders-complete",)),
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
    "acknowledges-past-end": Plan(None, scenario="past-the-end"),
    "cut-keeps-start": Plan(None, scenario="past-the-end"),
    "cuts-damaged-metadata": Plan(None, scenario="rotten-metadata"),
    "trusts-clean-mark": Plan(None, scenario="lost-tail"),
    "refusals-outlive-topics": Plan(None, scenario="remade-topic"),
    "goes-on-without-timers": Plan(None, scenario="full-disk"),
    "keeps-elr-at-new-minimum": Plan(None, ("settings",)),
    "starts-without-metadata": Plan(None, ("controller",)),
    "trusts-log-start": Plan(None, ("checkpoints",)),
    "sends-damaged-batches": Plan(None, ("segments",)),
    "no-cluster-id-check": Plan(None, ("strangers",)),
}


def cannot_have(bug: str, layer: Layer) -> bool:
    """Whether a layer cannot have a bug: it has none of what the bug is about."""
    match layer:
        case Layer.MODEL:
            return MODEL_BUGS[bug].design is None
        case Layer.REPLAY:
            return PLANS[bug].bounds is None
        case Layer.TRACES | Layer.HISTORY:
            return any(WEATHERS[weather].second_version for weather in PLANS[bug].weathers)
        case Layer.SIMULATOR | Layer.CRASH_POINTS:
            return False


def by_scenario(bug: str, name: str, seed: int) -> Detection | None:
    """A promise that is broken in a scenario, if today's cores keep all of them there."""
    broken = play(scenario_of(name, bug), seed).promise
    if broken is None or play(scenario_of(name, "kip-966"), seed).promise is not None:
        return None
    return Detection(Layer.SIMULATOR, broken, f"scenario {name}, seed {seed}")


def look_for(bug: str, layer: Layer) -> Detection | None:
    """What a layer finds of a bug, in the places that its plan names."""
    plan = PLANS[bug]
    if cannot_have(bug, layer):
        return None
    match layer:
        case Layer.MODEL:
            return by_model(bug, plan.property_names)
        case Layer.REPLAY:
            return by_replay(bug, plan.bounds or {})
        case Layer.CRASH_POINTS:
            return by_crash_points(bug)
        case Layer.SIMULATOR if plan.scenario:
            return next((found for seed in (1, 2, 3) if (found := by_scenario(bug, plan.scenario, seed))), None)
        case _:
            seeds = range(SEEDS if layer is Layer.SIMULATOR else SEEDS // 3)
            return next(filter(None, (RUN_LAYERS[layer](bug, weather, seeds) for weather in plan.weathers)), None)


def repeat_cell(bug: str, layer: Layer, cell: str) -> str:
    """A cell of the table, found again in the place that it names, as text."""
    named = re.search(r"\((\w+), seed (\d+)\)$", cell)
    found = RUN_LAYERS[layer](bug, named[1], [int(named[2])]) if named else look_for(bug, layer)
    return text(bug, layer, found)


def kill_matrix(
    bugs: Iterable[str], layers: Iterable[Layer], progress: Callable[[str], object] = lambda _: None
) -> Matrix:
    """The matrix of these bugs and layers; `progress` is called with each cell."""
    wanted, matrix = tuple(layers), dict[str, dict[Layer, Detection | None]]()
    for bug in bugs:
        matrix[bug] = {}
        for layer in wanted:
            matrix[bug][layer] = look_for(bug, layer)
            progress(f"{bug}: {layer} {text(bug, layer, matrix[bug][layer])}")
    return matrix


# The table


def text(bug: str, layer: Layer, finding: Detection | None) -> str:
    """The text of a cell: what was found and where, `-` if nothing was, empty if the layer cannot have the bug."""
    if finding is not None:
        return f"{finding.what} ({finding.where})"
    return "" if cannot_have(bug, layer) else "-"


def table(matrix: Matrix) -> str:
    """The matrix as Markdown, with the description of each bug and the summary."""
    lines = [f"| bug | {' | '.join(Layer)} |", "|---" * (1 + len(Layer)) + "|"]
    for bug, row in matrix.items():
        cells = (text(bug, layer, row.get(layer)) for layer in Layer)
        lines.append(f"| `{bug}` | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_bug_table(matrix), "", summary(matrix)]) + "\n"


def _bug_table(bugs: Iterable[str]) -> list[str]:
    """The description of each bug, and why the model cannot have it, if so."""
    lines = ["| bug | with it |", "|---|---|"]
    for bug in bugs:
        without = f"; not in the model: {MODEL_BUGS[bug].without}" if MODEL_BUGS[bug].without else ""
        lines.append(f"| `{bug}` | {MODEL_BUGS[bug].what}{without} |")
    return lines


def summary(matrix: Matrix) -> str:
    """How many bugs were found, and how many of them by two layers or more."""
    by = [sum(found is not None for found in row.values()) for row in matrix.values()]
    return f"{sum(n > 0 for n in by)} of {len(by)} bugs are found, {sum(n > 1 for n in by)} by two layers or more."
