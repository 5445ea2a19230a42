"""The six layers that look for a planted bug. Each is a function from a bug, and where to look, to what it found.

Each layer also looks at today's design, without the bug, in the same place. What it finds there too does not count.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from isr_anomalies import check, pair_operations, read_json
from isr_broker.designs import KIP_966, PLANTED, Design
from isr_broker.trace_reader import BadTrace, read_lives
from isr_check import native
from isr_check.engine import Limits, Verdict
from isr_kills.crash_points import first_broken_promise
from isr_kills.situations import broken_in_a_situation
from isr_lang import Instance, Value
from isr_protocol.planted.bugs import PLANTED as MODEL_BUGS
from isr_replay import replay
from isr_sim.faults import OF_THE_MODEL, Kind
from isr_sim.histories import TellingRun, history, telling
from isr_sim.simulate import QUICK, Config, finish_run, simulate
from isr_sim.traces import TracedWorld
from isr_sim.world import Weather
from isr_validate import validate


class Layer(StrEnum):
    """A way to find a bug; the value is the heading of its column."""

    MODEL = "model"
    REPLAY = "replay"
    TRACES = "traces"
    SIMULATOR = "simulator"
    HISTORY = "history"
    CRASH_POINTS = "crash points"


@attrs.frozen
class Detection:
    """What a layer found: the broken promise or difference, and where (bounds, or weather and seed, or a write)."""

    layer: Layer
    what: str
    where: str


# Where the simulator looks

_SLOW: Final = Weather(loss=0.02, twice=0.05, slow=0.15, slow_ms=2_500)
_OVERTAKING: Final = Weather(loss=0.02, twice=0.5, slow=0.3, slow_ms=2_500)
_MOVES: Final = tuple(
    k for k in OF_THE_MODEL if k not in (Kind.POWER_LOSS, Kind.DISK, Kind.SHUTDOWN, Kind.CONTROLLER_RESTART)
)
_STOPS: Final = (Kind.SHUTDOWN, Kind.POWER_LOSS, Kind.CRASH, Kind.CUT_FROM_CONTROLLER)


def _config(kinds: tuple[Kind, ...] = OF_THE_MODEL, bears: int | None = None, **settings: int) -> Config:
    quick: dict[str, object] = {a.name: getattr(QUICK, a.name) for a in attrs.fields(type(QUICK))}
    usual = type(QUICK)(**{**quick, **settings})  # type: ignore[arg-type]  # by name
    return Config(settings=usual, kinds=kinds, bears=bears, patience_ms=20_000)


WEATHERS: Final[Mapping[str, Config]] = {
    "usual": _config(),
    "slow": attrs.evolve(
        _config(_MOVES, broker_session_timeout_ms=700, broker_heartbeat_interval_ms=200),
        weather=_SLOW,
        every_ms=200,
        longest_ms=1_500,
    ),
    "overtaking": attrs.evolve(
        _config(
            (Kind.PAUSE, Kind.CUT_FROM_CONTROLLER, Kind.CONTROLLER_PAUSE),
            controller_socket_timeout_ms=200,
            broker_session_timeout_ms=700,
            broker_heartbeat_interval_ms=100,
        ),
        weather=_OVERTAKING,
        every_ms=200,
        longest_ms=1_800,
    ),
    "stops": attrs.evolve(_config(_STOPS), every_ms=250, longest_ms=1_500),
    "flushing": _config(
        (Kind.POWER_LOSS, Kind.CUT_FROM_CONTROLLER), 3, min_insync_replicas=1, log_flush_interval_messages=1
    ),
    "settings": _config(
        (
            Kind.MINIMUM,
            Kind.DEFAULT_MINIMUM,
            Kind.CRASH,
            Kind.PAUSE,
            Kind.SHUTDOWN,
            Kind.ISOLATE,
            Kind.CUT_FROM_CONTROLLER,
        )
    ),
    "controller": _config((Kind.CONTROLLER_DAMAGE, Kind.CONTROLLER_BEHIND, Kind.CRASH, Kind.SHUTDOWN)),
    "checkpoints": _config((Kind.CHECKPOINT_DAMAGE, Kind.CRASH, Kind.SHUTDOWN, Kind.RETENTION)),
    "segments": _config((Kind.BIT_ROT, Kind.SEGMENT_DAMAGE, Kind.CRASH, Kind.POWER_LOSS, Kind.SHUTDOWN, Kind.PAUSE)),
    "strangers": _config((Kind.FOREIGN_BROKER, Kind.FOREIGN_CONTROLLER, Kind.CRASH, Kind.PAUSE, Kind.SHUTDOWN)),
}
"""Settings of the simulator by name: the network, the faults, and how often they come.

From "settings" on they are of the second version: the model knows nothing of their faults, and nobody but the
simulator's own invariants looks at such runs.
"""


def _with(config: Config, design: Design, **settings: bool) -> Config:
    """A configuration with this design for the cores, under the name of today's design."""
    known = attrs.evolve(config.settings, insync_design=attrs.evolve(design, name=KIP_966.name))
    for name, value in settings.items():
        known = attrs.evolve(known, **{name: value})  # type: ignore[arg-type]  # by name
    return attrs.evolve(config, settings=known)


# The layers


def by_model(bug: str, property_names: tuple[str, ...] = ()) -> Detection | None:
    """The model with the bug breaks a promise within its bounds.

    That today's model keeps the promise there is checked by the tests of the model, for it takes as long again.
    """
    design = MODEL_BUGS[bug].design
    if design is None:
        return None
    exploration = native.explore(Instance(design), property_names, Limits(), lambda _: None)
    broken = {f.name: len(f.path.steps) for f in exploration.findings if f.verdict is Verdict.VIOLATED and f.path}
    if not broken:
        return None
    shortest = min(broken.values())
    first = next(name for name, steps in broken.items() if steps == shortest)
    return Detection(Layer.MODEL, first, f"{shortest} steps, {exploration.distinct:,} states")


def by_replay(bug: str, bounds: Mapping[str, Value]) -> Detection | None:
    """The replay of cores with the bug against the model without it has a mismatch: the first in breadth-first
    order. Today's cores have none as far as that."""
    done = replay(bounds, planted=PLANTED[bug], until_differs=True)
    if done.conforms or not replay(bounds, max_states=done.systems + 1, until_differs=True).conforms:
        return None
    first = done.mismatches[0]
    given = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in bounds.items())
    return Detection(Layer.REPLAY, f"{first.kind}: {first.action.partition(':')[0]}", given)


def _raised_in_the_broker(failure: Exception) -> bool:
    """Whether the last of our packages that it went through is the broker: a mistake of the simulator is no find."""
    packages = [
        part
        for frame in traceback.extract_tb(failure.__traceback__)
        for part in Path(frame.filename).parts
        if part.startswith("isr_")
    ]
    return packages[-1] == "isr_broker"


def by_simulator(bug: str, weather: str, seeds: Iterable[int]) -> Detection | None:
    """A promise is broken in a simulated run, and none in the same run of today's cores."""
    for seed in seeds:
        try:
            promise = simulate(seed, _with(WEATHERS[weather], PLANTED[bug])).promise
        except (AssertionError, LookupError, ValueError) as failure:
            if not _raised_in_the_broker(failure):
                raise
            promise = f"a core fails: {type(failure).__name__}"
        if promise is not None and simulate(seed, _with(WEATHERS[weather], KIP_966)).promise is None:
            return Detection(Layer.SIMULATOR, promise, f"{weather}, seed {seed}")
    return None


def _run_with_history(design: Design, weather: str, seed: int) -> TellingRun:
    run = telling(_with(WEATHERS[weather], design, insync_waits_for_joiners=False), seed, TracedWorld)
    finish_run(run)
    return run


def _rejected(run: TellingRun) -> str | None:
    assert isinstance(run.world, TracedWorld)
    try:
        rejected = validate(read_lives(run.world.notes)).rejected
    except BadTrace as bad:
        return str(bad)
    return None if rejected is None else rejected.action


@cache
def _todays_trace_is_rejected(weather: str, seed: int) -> bool:
    return _rejected(_run_with_history(KIP_966, weather, seed)) is not None


def by_traces(bug: str, weather: str, seeds: Iterable[int]) -> Detection | None:
    """The trace of a simulated run is rejected, and that of today's cores with the same seed is not."""
    for seed in seeds:
        action = _rejected(_run_with_history(PLANTED[bug], weather, seed))
        if action is not None and not _todays_trace_is_rejected(weather, seed):
            return Detection(Layer.TRACES, action, f"{weather}, seed {seed}")
    return None


def _anomaly(run: TellingRun) -> str | None:
    answer = check(pair_operations(read_json(history(run))))
    return next((j.name for j in answer.judgements if j.forbidden), None)


@cache
def _todays_history_has_anomaly(weather: str, seed: int) -> bool:
    return _anomaly(_run_with_history(KIP_966, weather, seed)) is not None


def by_history(bug: str, weather: str, seeds: Iterable[int]) -> Detection | None:
    """The history of the clients of a simulated run has an anomaly, and that of today's cores has none."""
    for seed in seeds:
        anomaly = _anomaly(_run_with_history(PLANTED[bug], weather, seed))
        if anomaly is not None and not _todays_history_has_anomaly(weather, seed):
            return Detection(Layer.HISTORY, anomaly, f"{weather}, seed {seed}")
    return None


def by_crash_points(bug: str) -> Detection | None:
    """A log directory breaks a promise when it crashes before some write, or a situation made by hand shows the bug."""
    broken = first_broken_promise(PLANTED[bug])
    if broken is not None and first_broken_promise(KIP_966) is None:
        return Detection(Layer.CRASH_POINTS, broken[0], f"write {broken[1]}")
    situation = broken_in_a_situation(PLANTED[bug])
    if situation is None or broken_in_a_situation(KIP_966) is not None:
        return None
    return Detection(Layer.CRASH_POINTS, situation, "made by hand")


RUN_LAYERS: Final[Mapping[Layer, Callable[[str, str, Iterable[int]], Detection | None]]] = {
    Layer.TRACES: by_traces,
    Layer.SIMULATOR: by_simulator,
    Layer.HISTORY: by_history,
}
"""The layers that look at simulated runs, each a function of a bug, a weather and seeds."""
