"""All states that a runbook reaches from the states in which a partition may be, phase by phase.

The reference evaluator takes the steps. A search of `isr_check` begins in the initial states of a design. This one
begins in states that a description gave, so one evaluator serves all partitions of a kind and all runbooks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from typing import Final, cast

import attrs

from isr_check.engine import Path
from isr_check.reference import Evaluator, Parameters, State
from isr_drill.changes import PROTOCOLS, Changes, changes_design
from isr_drill.record_fate import Fate, fate_design
from isr_lang import Instance, Value, Variable
from isr_protocol.by_name import DESIGNS

ROOMS: Final = (4, 8, 16, 32, 64, 99)
"""Phases for which an evaluator has room: few numbers, so that one serves many runbooks."""
MOST_PHASES: Final = ROOMS[-1]
MOST_STATES: Final = 200_000


@attrs.frozen
class Setting:
    """What of a partition and its topic is a constant of the model. `design`: the name of the protocol; `min_insync`:
    the minimum at first; `cuts`: whether the runbook cuts brokers off."""

    design: str
    replicas: int
    min_insync: int
    unclean: bool = False
    flushed: bool = False
    cuts: bool = False

    @property
    def is_changing(self) -> bool:
        """Whether replicas or min.insync.replicas change, so that they are variables of the state."""
        return self.design in PROTOCOLS

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of its states, in order."""
        return (Changes if self.is_changing else Fate).variables()

    def constants(self, phases: int) -> dict[str, Value]:
        """The constants of an instance with room for so many phases."""
        return {
            "replicas": self.replicas,
            **({} if self.is_changing else {"min_insync": self.min_insync}),
            "unclean": self.unclean,
            "flush": "always" if self.flushed else "never",
            "phases": next(room for room in ROOMS if phases <= room),
        }


@attrs.frozen
class Way:
    """A shortest way to a state: its first state, the steps from there, and the last."""

    start: State
    path: Path
    end: State


@attrs.define
class Sightings:
    """What was seen of the states in which so many phases have begun: how many there are, the properties of which one
    is a witness, and a shortest way to one in which the record is lost."""

    states: int = 0
    witnessed: set[str] = attrs.field(factory=set[str])
    loss: Way | None = None


@attrs.frozen
class Exploration:
    """By phase what was seen, from "no phase has begun" on. `whole_phases`: of so many, from the first on, every
    reachable state was seen, but what follows where the record is gone."""

    phases: tuple[Sightings, ...]
    whole_phases: int
    states: int

    @property
    def complete(self) -> bool:
        """Whether that is so of all."""
        return self.whole_phases == len(self.phases)


Class = tuple[Setting, tuple[State, ...], int]
"""What partitions have in common that are one exploration: settings, first states, and how many phases there are."""
Explored = tuple[Exploration, Exploration]
"""The restless exploration, and the calm one."""


@cache
def evaluator(design: str, constants: tuple[tuple[str, Value], ...], restless: bool, cuts: bool = False) -> Evaluator:
    """The executable form of a design under these constants."""
    fate = (
        changes_design(PROTOCOLS[design], restless=restless, cuts=cuts)
        if design in PROTOCOLS
        else fate_design(DESIGNS[design], restless=restless, cuts=cuts)
    )
    return Evaluator(Instance(fate, dict(constants)))


def explore(
    setting: Setting,
    starts: Iterable[State],
    phases: int,
    *,
    restless: bool,
    most_seconds: float | None = None,
    most_states: int = MOST_STATES,
) -> Exploration:
    """Every state that is reached from the first ones, breadth first. `phases`: how many the runbook has.

    Where the record is gone, nothing follows: it stays so. Where there are too many states, those before the first
    phase are explored alone, so that what is so now is known.
    """

    first = tuple(starts)

    def of(last: int) -> Exploration:
        return _explore(setting, first, phases, last, restless, most_seconds, most_states)

    found = of(phases)
    if found.whole_phases:
        return found
    now = of(0)
    return attrs.evolve(found, phases=(now.phases[0], *found.phases[1:]), whole_phases=min(now.whole_phases, 1))


def _explore(
    setting: Setting,
    starts: Iterable[State],
    phases: int,
    last: int,
    restless: bool,
    most_seconds: float | None,
    most_states: int,
) -> Exploration:
    """The states of all phases up to the last one that is given."""
    steps = evaluator(setting.design, tuple(setting.constants(phases).items()), restless, setting.cuts and not restless)
    place = [v.name for v in steps.instance.variables].index("phase")
    tests = [(p.name, p.kind == "sometimes", steps.test(p)) for p in steps.instance.properties]
    sightings = tuple(Sightings() for _ in range(phases + 1))
    parents: dict[State, tuple[State, int, Parameters] | None] = dict.fromkeys(starts)
    queue, deadline = list(parents), time.monotonic() + (most_seconds or float("inf"))
    for count, state in enumerate(queue):
        if len(queue) > most_states or (count % 1000 == 999 and time.monotonic() > deadline):
            # Phases only begin: what is not explored yet leads to no phase before its own.
            return Exploration(sightings, min(cast("int", s[place]) for s in queue[count:]), len(queue))
        sighting, is_gone = sightings[cast("int", state[place])], False
        sighting.states += 1
        for name, seek, test in tests:
            if bool(test(state)) is seek:
                is_gone = is_gone or not seek
                if seek:
                    sighting.witnessed.add(name)
                elif sighting.loss is None:
                    sighting.loss = way_to(steps, parents, state)
        for action, parameters, successor in () if is_gone else steps.successors(state):
            if successor not in parents and cast("int", successor[place]) <= last:
                parents[successor] = (state, action, parameters)
                queue.append(successor)
    return Exploration(sightings, phases + 1, len(queue))


def way_to(steps: Evaluator, parents: dict[State, tuple[State, int, Parameters] | None], state: State) -> Way:
    """The way on which a state was found first."""
    end, path = state, list[tuple[str, Parameters]]()
    while (parent := parents[state]) is not None:
        state, action, parameters = parent
        path.append((steps.instance.actions[action].name, parameters))
    return Way(state, Path((), tuple(reversed(path))), end)
