"""The coarse model of a drill covers the protocol: whatever that does, this does too, or it stands still.

Without this a record would be called safe because the model of a drill cannot do what the protocol can.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import cast

import attrs
import pytest

from isr_check.reference import Evaluator, State
from isr_drill import record_fate
from isr_drill.record_fate import Fate, Happening, fate_design
from isr_lang import Design, Instance, Step, action
from isr_lang.blank import blank
from isr_protocol.by_name import DESIGNS
from isr_protocol.state import Replica
from isr_protocol.state import State as Protocol

KIND = {name: i for i, name in enumerate(Happening.type.members)}
METADATA = ("alive", "controller_leader", "controller_isr", "controller_elr", "last_known_leader", "fenced")
HARMS = {
    "broker_crashes": "KILL",
    "broker_loses_power": "POWER_LOSS",
    "disk_is_emptied": "DESTROY",
    "broker_asks_to_shut_down": "STOP",
    "broker_restarts": "START",
}
"""A fault of the protocol's model -> the happening that a runbook calls it."""
PLAN = ("kinds", "targets", "phase", "to_do", "asleep")


@action
def disk_is_emptied(old: Protocol, new: Protocol, r: Replica) -> Step:
    """A broker that is down gets an empty disk."""
    return (
        ~old.alive.has(r),
        new.log[r] == blank(old.log[r]),
        new.high_watermark[r] == 0,
        new.clean_shutdown == old.clean_shutdown.excluding(r),
    )


def protocol(name: str, **bounds: int | bool) -> Evaluator:
    usual = {"log": 1, "records": 1, "epochs": 4, "isr_changes": 8, "crashes": 1, "lossy_crashes": 1}
    more = {"shutdowns": 1, "sessions_lost": 1, "min_insync": 2, "replicas": 3}
    return Evaluator(Instance(DESIGNS[name].adding(disk_is_emptied), {**usual, **more, **bounds}))


def coarse(name: str, design: Design | None = None, **bounds: int | bool) -> Evaluator:
    fate = design or fate_design(DESIGNS[name], restless=True)
    constants = {n: v for n, v in {"replicas": 3, "min_insync": 2, **bounds}.items() if n in _names(fate)}
    return Evaluator(Instance(fate, constants))


def _names(design: Design) -> set[str]:
    return {c.name for c in design.constants()}


@attrs.frozen
class Cover:
    """Both models. `step` says whether a step of the protocol is one of the coarse model, or none."""

    fine: Evaluator
    coarse: Evaluator

    def image(self, state: State, wounds: int, *, happening: str = "NOTHING", target: int = 0) -> State:
        """The coarse state, in which everybody may lose its session and this is about to happen."""
        values = {v.name: x for v, x in zip(self.fine.instance.variables, state, strict=True)}
        acked, logs = bool(values["acked"]), cast("tuple[tuple[int, ...], ...]", values["log"])
        of_plan = {"kinds": (KIND[happening], KIND["NOTHING"]), "targets": (0, 0), "phase": 0, "to_do": target}
        own = {
            **{n: values.get(n, 0) for n in (*METADATA, "shutting_down", "clean_shutdown")},
            "asleep": values["alive"],
            "acked": acked,
            "holders": sum(1 << r for r, log in enumerate(logs) if log) if acked else 0,
            "wounds": wounds,
            **of_plan,
        }
        return tuple(own[v.name] for v in Fate.variables())

    def without_plan(self, state: State) -> tuple[object, ...]:
        return tuple(x for v, x in zip(Fate.variables(), state, strict=True) if v.name not in PLAN)

    def wounds_after(self, name: str, parameters: Sequence[object], wounds: int) -> int:
        bit = 1 << int(str(parameters[0])) if parameters else 0
        if name in ("broker_loses_power", "disk_is_emptied"):
            return wounds | bit
        return wounds & ~bit if name == "broker_restarts" else wounds

    def step(self, old: State, wounds: int, name: str, parameters: Sequence[object], new: State) -> bool:
        """Whether the coarse model can take it."""
        harm = HARMS.get(name, "NOTHING")
        target = 1 << int(str(parameters[0])) if name in HARMS else 0
        before = self.image(old, wounds, happening=harm, target=target)
        after = self.without_plan(self.image(new, self.wounds_after(name, parameters, wounds)))
        if after == self.without_plan(before):
            return True
        return any(self.without_plan(s) == after for _, _, s in self.coarse.successors(before))

    def gone(self, state: State, wounds: int) -> bool:
        return not self.coarse.properties[0](self.image(state, wounds))


def walks(cover: Cover, number: int, length: int, seed: int) -> Iterator[str]:
    """Random walks of the protocol, an action first and then its parameters; the steps that the coarse model lacks."""
    chance = random.Random(seed)
    for _ in range(number):
        state, wounds = cover.fine.initial_states()[0][1], 0
        for _ in range(length):
            by_action: dict[int, list[tuple[Sequence[object], State]]] = {}
            for a, parameters, new in cover.fine.successors(state):
                by_action.setdefault(a, []).append((parameters, new))
            if not by_action or cover.gone(state, wounds):
                break
            a = chance.choice(sorted(by_action))
            chosen, new = chance.choice(by_action[a])
            name = cover.fine.instance.actions[a].name
            if not cover.step(state, wounds, name, chosen, new):
                yield f"{name}{tuple(chosen)} from {cover.image(state, wounds)} to {cover.image(new, wounds)}"
            state, wounds = new, cover.wounds_after(name, chosen, wounds)


@pytest.mark.explores
@pytest.mark.parametrize(("name", "minimum"), [("kip-966", 1), ("kip-966", 2), ("kraft-3.5", 1), ("kraft-3.5", 2)])
def test_what_the_protocol_does_the_coarse_model_does(name: str, minimum: int) -> None:
    cover = Cover(
        protocol(name, min_insync=minimum, sessions_lost=2, lossy_crashes=2, epochs=6, isr_changes=12),
        coarse(name, min_insync=minimum),
    )
    assert list(walks(cover, 30, 80, seed=minimum)) == []


def with_guard_of(name: str, condition: str) -> Design:
    """The coarse model in which an action asks for more than it should."""
    design = fate_design(DESIGNS["kip-966"], restless=True)

    @action
    def only_if_alive(old: Fate, new: Fate) -> Step:
        everybody = {"all-run": old.alive == Replica.all(), "never": old.acked & ~old.acked}
        return (everybody[condition],)

    extra = only_if_alive
    planted = (record_fate.extended_action(a, extra) if a.name == name else a for a in design.actions)
    return attrs.evolve(design, actions=tuple(planted))


@pytest.mark.explores
@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("record_is_acknowledged", "all-run"),
        ("record_is_copied", "never"),
        ("isr_grows", "never"),
        ("isr_shrinks", "never"),
        ("controller_moves_leadership", "never"),
        ("broker_restarts", "never"),
    ],
)
def test_a_coarse_model_that_does_less_is_seen(name: str, condition: str) -> None:
    cover = Cover(
        protocol("kip-966", min_insync=1, sessions_lost=2, epochs=6, isr_changes=12),
        coarse("kip-966", with_guard_of(name, condition), min_insync=1),
    )
    assert any(x.startswith(MISSING.get(name, name)) for x in walks(cover, 40, 80, seed=5))


MISSING = {
    "record_is_acknowledged": "",
    "record_is_copied": "follower_appends",
    "isr_grows": "controller_accepts_alter_partition",
    "isr_shrinks": "controller_accepts_alter_partition",
}
"""A planted fault -> the step of the protocol that is then missing."""
