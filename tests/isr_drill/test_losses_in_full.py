"""What the coarse model loses, the protocol's own model loses on the same way: random runbooks, driven step by step.

Without this "may be lost" could be said of everything, and nobody would notice.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import islice
from typing import cast

import attrs
import pytest
from tests.isr_drill.test_cover import MEMORY, PLAN, Cover, Memory, Point, coarse, disk_is_emptied
from tests.isr_drill.test_drill import cluster_of, drilled

from isr_check.reference import Evaluator, State
from isr_drill.exploration import Way
from isr_drill.record_fate import Fate
from isr_lang import Instance, Step, action
from isr_lang.blank import blank
from isr_protocol.by_name import DESIGNS
from isr_protocol.faults import stops
from isr_protocol.state import Replica
from isr_protocol.state import State as Protocol

MOST_STATES = 6_000
"""States of the full model that are looked at for one step of the coarse one."""
UNSEEN = ("next_phase_begins", "phase_is_moot", "broker_is_paused", "broker_resumes")
"""Steps of the coarse model that change nothing but the runbook's own variables."""


@action
def machine_is_destroyed(old: Protocol, new: Protocol, r: Replica) -> Step:
    """A broker that runs is gone with its disk."""
    return (
        *stops(old, new, r),
        new.log[r] == blank(old.log[r]),
        new.high_watermark[r] == 0,
        new.clean_shutdown == old.clean_shutdown.excluding(r),
    )


@attrs.frozen
class Driver:
    """The full model, driven along a way of the coarse one. `cover` makes coarse states of full ones."""

    cover: Cover

    def targets(self, way: Way) -> Iterable[tuple[object, ...]]:
        """The coarse states of a way, each once, without the runbook; first those that the start lacks."""
        state = way.start
        before = self.cover.without_plan(state)
        if dict(zip(self.names, before, strict=True))["acked"]:
            yield before
        for name, parameters in way.path.steps:
            state = next(
                s
                for a, p, s in self.cover.coarse.successors(state)
                if self.cover.coarse.instance.actions[a].name == name and p == parameters
            )
            after = self.cover.without_plan(state)
            if name not in UNSEEN and after != before:
                yield after
            before = after

    @property
    def names(self) -> list[str]:
        return [v.name for v in self.cover.coarse.instance.variables if v.name not in (*PLAN, *MEMORY)]

    def image(self, state: State, wounds: int) -> tuple[object, ...]:
        return self.cover.without_plan(self.cover.image(Point(state, wounds), Memory(0, 0, 0)))

    def reaches(self, way: Way) -> str:
        """ "" where the full model goes all of the way, else the first coarse state that it does not reach."""
        beam: list[tuple[State, int]] = [(s, 0) for p, s in self.cover.fine.initial_states() if p == (0,)]
        for target in self.targets(way):
            beam = list(islice(self.next_states(beam, target), 40))
            if not beam:
                return f"{dict(zip(self.names, target, strict=True))} of {way.path.steps}"
        return ""

    def next_states(self, beam: list[tuple[State, int]], target: tuple[object, ...]) -> Iterable[tuple[State, int]]:
        """States with this image, one step after states with the image from before."""
        known, queue = set(beam), list(beam)
        for state, wounds in queue:
            before = self.image(state, wounds)
            for a, parameters, new in self.cover.fine.successors(state):
                name = self.cover.fine.instance.actions[a].name
                then = self.wounds_after(name, parameters, wounds)
                after = self.image(new, then)
                if after == target and (new, then) not in known:
                    known.add((new, then))
                    yield new, then
                elif after == before and (new, then) not in known and len(queue) < MOST_STATES:
                    known.add((new, then))
                    queue.append((new, then))

    def wounds_after(self, name: str, parameters: tuple[object, ...], wounds: int) -> int:
        name = "disk_is_emptied" if name == "machine_is_destroyed" else name
        return Point((), wounds).then(name, parameters, ()).wounds


def driver(design: str, minimum: int, room: int, full_minimum: int) -> Driver:
    constants = {"replicas": 3, "log": 1, "records": 1, "epochs": 8, "isr_changes": 12, "crashes": 4}
    more = {"lossy_crashes": 4, "shutdowns": 4, "sessions_lost": 4, "min_insync": full_minimum}
    wider = DESIGNS[design].adding(machine_is_destroyed, disk_is_emptied)
    fine = Evaluator(Instance(wider, {**constants, **more}))
    return Driver(Cover(fine, coarse(design, min_insync=minimum, phases=room)))


def losing_way(design: str, minimum: int, text: str) -> Way | None:
    elr = design == "kip-966"
    return drilled(cluster_of(minimum), text, elr=elr, release=(4, 1) if elr else (3, 9)).partitions[0].way


def missing_step(design: str, minimum: int, way: Way, full_minimum: int | None = None) -> str:
    """ "" where the full model goes all of the way to the loss."""
    kinds = dict(zip((v.name for v in Fate.variables()), way.start, strict=True))["kinds"]
    room = len(cast("tuple[int, ...]", kinds)) - 1
    return driver(design, minimum, room, full_minimum or minimum).reaches(way)


def random_runbook(chance: random.Random) -> tuple[str, int, str]:
    """A protocol, a minimum, and two to five steps."""
    verbs = ("stop", "kill", "power-loss", "destroy", "pause", "start", "start", "start", "replace")
    steps = [f"{chance.choice(verbs)} {chance.randint(1, 3)}" for _ in range(chance.randint(2, 5))]
    return chance.choice(("kip-966", "kraft-3.5")), chance.choice((1, 2)), "; ".join(steps)


@pytest.mark.slow
def test_the_full_model_goes_the_way_to_the_loss() -> None:
    chance, losses, strangers = random.Random(1), 0, list[str]()
    for _ in range(30):
        design, minimum, text = random_runbook(chance)
        way = losing_way(design, minimum, text)
        if way is not None:
            losses += 1
            gap = missing_step(design, minimum, way)
            strangers += [f"{design}, minimum {minimum}, {text}: {gap}"] if gap else []
    assert losses >= 8
    assert strangers == []


@pytest.mark.slow
def test_a_way_that_the_full_model_cannot_go_is_seen() -> None:
    """The planted fault: a record that one disk has was acknowledged, and the full model asks for two."""
    way = losing_way("kip-966", 1, "destroy 1")
    assert way is not None
    assert missing_step("kip-966", 1, way) == ""
    assert missing_step("kip-966", 1, way, full_minimum=2) != ""
