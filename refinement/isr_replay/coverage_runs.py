"""Runs of the cores beyond the replay, for `covered`: simulated ones with faults, and questions on sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

import isr_sim
from isr_broker.designs import DESIGNS
from isr_replay.socket_questions import sessions
from isr_sim.scenario import parse, play
from isr_sim.simulate import QUICK, Config, simulate

Runs: TypeAlias = Callable[[str], object]
"""Makes the cores of a design, by its name, run."""

SEEDS: Final = 12
SEEDS_OF_OTHERS: Final = 3


def simulated(design: str) -> None:
    """Runs with every fault, with one partition and with two, of other designs fewer; and the stories on file."""
    for other in DESIGNS.values():
        settings = attrs.evolve(QUICK, insync_design=other)
        for seed in range(SEEDS if other.name == design else SEEDS_OF_OTHERS):
            simulate(seed, Config(settings=settings, partitions=1 + seed % 2))
    for file in sorted((Path(isr_sim.__file__).parent / "scenarios").glob("*.txt")):
        play(parse(file.read_text(encoding="utf-8")), 0)


SOURCES: Final[Mapping[str, Runs]] = {"simulated runs": simulated, "questions on sockets": lambda _: sessions()}
