"""Random runbooks that are called safe, carried out on Kafka's protocol by random walks: no walk loses a record.

Without this the steps of a runbook could mean one thing to a drill, and another to the protocol.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import cast

import attrs
import pytest
from tests.isr_drill.test_changes_cover import BOUNDS
from tests.isr_drill.test_drill import cluster_of
from tests.isr_drill.test_losses_in_full import machine_is_destroyed
from tests.support.drill_faults import disks_that_survive

from isr_audit.releases import running
from isr_check.reference import Evaluator, State
from isr_drill.changes import PROTOCOLS, WITH_ELR
from isr_drill.drill import Explorations, Records, drill
from isr_drill.runbook import REASSIGN, SET, RunbookStep, Stage, Surroundings, read_runbook
from isr_lang import Instance

DEEDS = {
    "STOP": ("broker_asks_to_shut_down",),
    "KILL": ("broker_crashes",),
    "DESTROY": ("machine_is_destroyed",),
    "START": ("broker_restarts",),
    REASSIGN: ("controller_starts_reassignment", "controller_reassigns_at_once"),
    SET: ("controller_sets_minimum",),
}
"""A happening -> the actions of the protocol's model that stand for it; nothing else takes these."""


@attrs.frozen
class Walk:
    """A runbook on the protocol's own model, whose brokers are 1, 2 and 3."""

    fine: Evaluator
    stages: tuple[Stage, ...]

    def values(self, state: State) -> dict[str, object]:
        return {v.name: x for v, x in zip(self.fine.instance.variables, state, strict=True)}

    def loses(self, state: State) -> bool:
        """The record is acknowledged, and on no disk, or not on that of a leader that runs (`record_stays`)."""
        values = self.values(state)
        logs, leader = cast("tuple[tuple[int, ...], ...]", values["log"]), int(str(values["controller_leader"]))
        leads_without = bool(leader) and bool(int(str(values["alive"])) >> leader - 1 & 1) and not logs[leader - 1]
        return bool(values["acked"]) and (not any(logs) or leads_without)

    def is_moot(self, stage: Stage, state: State) -> bool:
        values = self.values(state)
        if stage.kind == REASSIGN:
            return int(str(values["replicas"])) == self.number(stage)
        runs = int(str(values["alive"])) >> (stage.brokers[0] - 1) & 1 if stage.brokers else 0
        leaving = int(str(values["shutting_down"])) >> (stage.brokers[0] - 1) & 1 if stage.brokers else 0
        return {"START": bool(runs and not leaving), "STOP": bool(not runs or leaving), "KILL": not runs}.get(
            stage.kind, False
        )

    def number(self, stage: Stage) -> int:
        """The first parameter of the action."""
        if stage.kind == SET:
            return stage.minimum
        if stage.kind == REASSIGN:
            return sum(1 << b - 1 for b in stage.assignment.replicas_of("t-0") or ())
        return stage.brokers[0] - 1

    def states(self, chance: random.Random, start: State, length: int) -> Iterator[State]:
        """The states of one walk, whose runbook goes on at random moments."""
        state, place = start, 0
        for _ in range(length):
            ordinary, due = dict[str, list[State]](), list[State]()
            stage = self.stages[place] if place < len(self.stages) else None
            for a, parameters, new in self.fine.successors(state):
                name = self.fine.instance.actions[a].name
                if not any(name in deeds for deeds in DEEDS.values()):
                    ordinary.setdefault(name, []).append(new)
                elif stage is not None and name in DEEDS[stage.kind] and parameters[0] == self.number(stage):
                    due.append(new)
            if stage is not None and self.is_moot(stage, state) and chance.random() < HASTE:
                place += 1
                continue
            if due and (chance.random() < HASTE or not ordinary):
                state, place = chance.choice(due), place + 1
            elif ordinary:
                state = chance.choice(ordinary[chance.choice(sorted(ordinary))])
            else:
                return
            yield state


HASTE = 0.12
"""How often the runbook goes on, where it may."""


def random_text(chance: random.Random) -> str:
    steps = [f"{chance.choice(('stop', 'kill', 'destroy', 'start'))} {chance.randint(1, 3)}" for _ in range(2)]
    change = chance.choice(("reassign a", "reassign b", "set t min.insync.replicas=1", "set t min.insync.replicas=2"))
    return "; ".join(chance.sample([*steps, change], 3))


TARGETS = {"a": (1, 3), "b": (2, 3)}


def is_safe(text: str, minimum: int) -> tuple[bool, tuple[RunbookStep, ...]]:
    """Whether a drill of the partition on brokers 1 and 2 says so, and the steps."""
    files = {
        n: f'{{"partitions": [{{"topic": "t", "partition": 0, "replicas": {list(t)}}}]}}' for n, t in TARGETS.items()
    }
    cluster = attrs.evolve(cluster_of(minimum, "1,2", replicas="1,2"), living=(1, 2, 3))
    steps = read_runbook(text, Surroundings({1, 2, 3}, {}, ["t"], files.__getitem__))
    whole = drill(cluster, running(cluster, (4, 3), True), steps, Explorations(600.0))
    return all(o.records is Records.SAFE for o in whole.partitions[0].outcomes), steps


def losses(text: str, minimum: int, chance: random.Random, walks: int) -> int:
    """Walks of the protocol under the runbook that lose the record; -1 where a drill does not call it safe."""
    safe, steps = is_safe(text, minimum)
    if not safe:
        return -1
    bounds = {**BOUNDS, "sessions_lost": 0, "crashes": 3, "shutdowns": 3, "lossy_crashes": 0, "min_insync": minimum}
    fine = Evaluator(Instance(PROTOCOLS[WITH_ELR].adding(machine_is_destroyed), bounds))
    walk = Walk(fine, tuple(stage for step in steps for stage in step.stages))
    place = [v.name for v in fine.instance.variables].index("replicas")
    (start,) = (s for parameters, s in fine.initial_states() if s[place] == 0b11 and parameters[0] == 0)
    return sum(any(map(walk.loses, walk.states(chance, start, 90))) for _ in range(walks))


@pytest.mark.slow
def test_no_walk_of_a_safe_runbook_loses_a_record() -> None:
    chance, counts = random.Random(3), list[tuple[str, int, int]]()
    for _ in range(30):
        text, minimum = random_text(chance), chance.choice((1, 2))
        counts.append((text, minimum, losses(text, minimum, chance, 30)))
    assert sum(n == 0 for _, _, n in counts) >= 8
    assert [c for c in counts if c[2] > 0] == []


@pytest.mark.slow
def test_a_disk_that_keeps_its_records_is_seen_by_a_walk() -> None:
    """The planted fault: to a drill a destroyed disk keeps all, so it calls safe what loses."""
    with disks_that_survive():
        assert losses("destroy 1; destroy 2", 1, random.Random(1), 40) > 0
