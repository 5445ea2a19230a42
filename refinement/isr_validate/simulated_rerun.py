"""A simulated run made small: with fewer kinds of faults, fair weather, less time, still rejected alike."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from isr_broker.trace_reader import Life, read
from isr_sim.simulate import Config
from isr_sim.tracing import again, traced
from isr_sim.world import FAIR
from isr_validate.reduction import Judge, kind_of
from isr_validate.verdict import Rejected


@attrs.frozen
class Rerun:
    """How to run it, the trace of that, and where it is rejected."""

    config: Config
    seed: int
    lives: tuple[Life, ...]
    rejected: Rejected


def rerun(lives: tuple[Life, ...], no: Rejected, judge: Judge, tries: int = 40) -> Rerun | None:
    """The smallest run that is found; None if the trace says nothing of a run, or the run as it is now is accepted."""
    origin = next((found for life in lives if (found := again(life.header)) is not None), None)
    if origin is None:
        return None
    config, seed = origin
    best = _judged(config, seed, no, judge)
    while best is not None and tries > 0:
        smaller: Rerun | None = None
        for candidate in _smaller(best.config):
            tries -= 1
            smaller = _judged(candidate, seed, no, judge)
            if smaller is not None or tries <= 0:
                break
        if smaller is None:
            return best
        best = smaller
    return best


def _judged(config: Config, seed: int, no: Rejected, judge: Judge) -> Rerun | None:
    lives = tuple(read(traced(config, seed).notes))
    rejected = judge(lives).rejected
    if rejected is None or kind_of(rejected) != kind_of(no):
        return None
    return Rerun(config, seed, lives, rejected)


def _smaller(config: Config) -> Iterator[Config]:
    """Runs with less in them, the least first."""
    if config.kinds:
        yield attrs.evolve(config, kinds=())
    if config.weather != FAIR:
        yield attrs.evolve(config, weather=FAIR)
    if config.partitions > 1:
        yield attrs.evolve(config, partitions=1)
    half = len(config.kinds) // 2
    if half:
        yield attrs.evolve(config, kinds=config.kinds[:half])
        yield attrs.evolve(config, kinds=config.kinds[half:])
    if config.safety_ms > 250:
        yield attrs.evolve(config, safety_ms=config.safety_ms // 2)
    for kind in config.kinds if half > 1 else ():
        yield attrs.evolve(config, kinds=tuple(k for k in config.kinds if k is not kind))
