"""The coarse model of a drill covers the protocol: whatever that does, this does too, or it stands still.

Without this a record would be called safe because the model of a drill cannot do what the protocol can.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, cast

import attrs
import pytest

from isr_check.reference import Evaluator, State
from isr_drill import record_fate
from isr_drill.record_fate import Fate, Happening, fate_design
from isr_lang import NONE, Action, Design, Instance, Set, Step, action
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
MEMORY = ("believers", "first", "strays")


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


@attrs.frozen(order=True)
class Memory:
    """What a coarse state has of which the protocol's state says nothing: what happened since the drill began."""

    believers: int
    first: int
    strays: int


@attrs.frozen
class Point:
    """A state of the protocol on a walk, who is down and has lost its disk, and the step that led there."""

    state: State
    wounds: int = 0
    name: str = ""
    parameters: tuple[object, ...] = ()

    def then(self, name: str, parameters: Sequence[object], state: State) -> Point:
        """The point after a step."""
        wounds, bit = self.wounds, 1 << int(str(parameters[0])) if parameters else 0
        if name in ("broker_loses_power", "disk_is_emptied"):
            wounds |= bit
        elif name == "broker_restarts":
            wounds &= ~bit
        return Point(state, wounds, name, tuple(parameters))


@attrs.frozen
class Cover:
    """Both models. `after` says which steps of the coarse model a step of the protocol is."""

    fine: Evaluator
    coarse: Evaluator

    def values(self, state: State) -> dict[str, object]:
        return {v.name: x for v, x in zip(self.fine.instance.variables, state, strict=True)}

    def sets(self, state: State, *names: str) -> tuple[int, ...]:
        """Some variables of the protocol that are sets."""
        values = self.values(state)
        return tuple(int(str(values.get(n, 0))) for n in names)

    def described(self, p: Point) -> Memory | None:
        """What a drill assumes that begins here. None where it takes for sure what is not so: that who is a member and
        down has its disk, that who is down and no member is fenced, and that nobody shuts down."""
        values = self.values(p.state)
        alive, isr, elr = self.sets(p.state, "alive", "controller_isr", "controller_elr")
        fenced, leaving = self.sets(p.state, "fenced", "shutting_down")
        everybody = (1 << len(cast("tuple[object, ...]", values["log"]))) - 1
        leader = 1 << int(str(values["controller_leader"])) >> 1
        strays = everybody & ~(alive | isr | elr)
        if p.wounds & (isr | elr) or strays & ~fenced or leaving:
            return None
        return Memory(leader if values["acked"] else alive | leader, isr | elr, strays)

    def holders(self, state: State) -> int:
        """The disks that have the record."""
        logs = cast("tuple[tuple[int, ...], ...]", self.values(state)["log"])
        return sum(1 << r for r, log in enumerate(logs) if log)

    def image(
        self, p: Point, memory: Memory, *, harm: str = "NOTHING", target: int = 0, holders: int | None = None
    ) -> State:
        """The coarse state, in which everybody may lose its session and a harm is about to happen. With `holders` the
        record was acknowledged, and is on these disks."""
        values = self.values(p.state)
        if holders is None and values["acked"]:
            holders = self.holders(p.state)
        of_plan = {"kinds": (KIND[harm], KIND["NOTHING"]), "targets": (0, 0), "phase": 0, "to_do": target}
        own = {
            **{n: values.get(n, 0) for n in (*METADATA, "shutting_down", "clean_shutdown")},
            **{"asleep": values["alive"], "acked": holders is not None, "holders": holders or 0, "wounds": p.wounds},
            **attrs.asdict(memory),
            **of_plan,
        }
        return tuple(own[v.name] for v in Fate.variables())

    def without_plan(self, state: State) -> tuple[object, ...]:
        """What both models have."""
        return tuple(x for v, x in zip(Fate.variables(), state, strict=True) if v.name not in (*PLAN, *MEMORY))

    def memories(self, before: State, after: State) -> set[Memory]:
        """What the coarse model may remember where it goes from one image to another."""
        if self.without_plan(before) == self.without_plan(after):
            return {self.memory(before)}
        successors = (s for _, _, s in self.coarse.successors(before))
        return {self.memory(s) for s in successors if self.without_plan(s) == self.without_plan(after)}

    def memory(self, state: State) -> Memory:
        return Memory(*(int(str(x)) for v, x in zip(Fate.variables(), state, strict=True) if v.name in MEMORY))

    def after(self, old: Point, memory: Memory, new: Point, holders: int | None = None) -> set[Memory]:
        """What the coarse model may remember after a step of the protocol; nothing where it cannot take it."""
        harm = HARMS.get(new.name, "NOTHING")
        target = 1 << int(str(new.parameters[0])) if new.name in HARMS else 0
        before = self.image(old, memory, harm=harm, target=target, holders=holders)
        return self.memories(before, self.image(new, memory, holders=holders))

    def acknowledged_before(self, walk: Sequence[tuple[Point, set[Memory]]], last: Point) -> set[Memory]:
        """What the coarse model may remember where it acknowledges the record before the last step, on the same disks.

        A leader may count the disk of a member that has lost it since, and has started again. The coarse model counts
        it until that start.
        """
        holders, memories = self.holders(last.state), set[Memory]()
        for (old, known), (new, _) in pairwise([*walk, (last, set[Memory]())]):
            if old.wounds & ~new.wounds:
                for m in known:
                    memories |= self.memories(self.image(old, m), self.image(old, m, holders=holders))
            memories = {m for before in memories for m in self.after(old, before, new, holders)}
        return memories

    def believes(self, state: State, memory: Memory) -> bool:
        """Whether whoever believes that it leads is one of whom the coarse model thinks so, while that counts."""
        values = self.values(state)
        beliefs = cast("tuple[int, ...]", values["leader"])
        (alive,) = self.sets(state, "alive")
        leaders = sum(1 << r for r, whom in enumerate(beliefs) if alive >> r & 1 and whom == r + 1)
        return bool(values["acked"]) or not leaders & ~memory.believers

    def gone(self, p: Point) -> bool:
        return not self.coarse.test(self.coarse.instance.properties[0])(self.image(p, Memory(0, 0, 0)))


DESCRIBED: Final = {False: 0.05, True: 0.3}
"""How often a drill begins anew at a point of a walk; whether somebody is down then who is no member."""


def walks(cover: Cover, number: int, length: int, seed: int) -> Iterator[str]:
    """Random walks of the protocol, an action first and then its parameters; the steps that the coarse model lacks.

    Every now and then somebody describes the cluster, and the coarse model begins there.
    """
    chance = random.Random(seed)
    for _ in range(number):
        p = Point(cover.fine.initial_states()[0][1])
        walk: list[tuple[Point, set[Memory]]] = []
        for _ in range(length):
            if (begun := cover.described(p)) and (not walk or chance.random() < DESCRIBED[begun.strays > 0]):
                p = attrs.evolve(p, wounds=0)
                walk = [(p, {begun})]
            by_action: dict[int, list[tuple[Sequence[object], State]]] = {}
            for a, parameters, new in cover.fine.successors(p.state):
                by_action.setdefault(a, []).append((parameters, new))
            if not by_action or cover.gone(p):
                break
            a = chance.choice(sorted(by_action))
            then = p.then(cover.fine.instance.actions[a].name, *chance.choice(by_action[a]))
            memories = walk[-1][1]
            following = {m for old in memories for m in cover.after(p, old, then)}
            if not following and not cover.values(p.state)["acked"] and cover.values(then.state)["acked"]:
                following = cover.acknowledged_before(walk, then)
            if not following:
                before, after = (cover.image(x, min(memories)) for x in (p, then))
                yield f"{then.name}{then.parameters} from {before} to {after}"
            elif not any(cover.believes(then.state, m) for m in following):
                yield f"{then.name}{then.parameters}: somebody believes that it leads, beside {min(following)}"
            walk.append((then, following or memories))
            p = then


@pytest.mark.explores
@pytest.mark.parametrize(("name", "minimum"), [("kip-966", 1), ("kip-966", 2), ("kraft-3.5", 1), ("kraft-3.5", 2)])
def test_what_the_protocol_does_the_coarse_model_does(name: str, minimum: int) -> None:
    cover = Cover(
        protocol(name, min_insync=minimum, sessions_lost=2, lossy_crashes=2, epochs=6, isr_changes=12),
        coarse(name, min_insync=minimum),
    )
    assert list(walks(cover, 30, 80, seed=minimum)) == []


@action
def only_if_all_run(old: Fate, new: Fate) -> Step:
    return (old.alive == Replica.all(),)


@action
def never(old: Fate, new: Fate) -> Step:
    return (old.acked & ~old.acked,)


@action
def only_if_leader_runs(old: Fate, new: Fate) -> Step:
    """Nobody acknowledges who was deposed and has not heard; a request of a leader that ended is lost."""
    return (record_fate.is_led(old),)


@action
def only_where_nobody_led_last(old: Fate, new: Fate) -> Step:
    """Nobody acknowledges while the partition has neither a leader nor an ISR."""
    return (old.last_known_leader == NONE,)


@action
def only_where_nobody_strays(old: Fate, new: Fate, copies: Set[Replica]) -> Step:
    """No leader goes by what it knew before the drill."""
    return ((copies & old.strays).is_empty(),)


@action
def only_if_it_may_lead(old: Fate, new: Fate, r: Replica) -> Step:
    """Who has started since the drill began joins no ISR."""
    return (old.believers.has(r) | old.acked,)


def with_guard(name: str, guard: Action, protocol: str = "kip-966") -> Design:
    """The coarse model in which an action asks for more than it should."""
    design = fate_design(DESIGNS[protocol], restless=True)
    planted = (record_fate.extended_action(a, guard) if a.name == name else a for a in design.actions)
    return attrs.evolve(design, actions=tuple(planted))


@pytest.mark.explores
@pytest.mark.parametrize(
    ("name", "guard"),
    [
        ("record_is_acknowledged", only_if_all_run),
        ("record_is_acknowledged", only_if_leader_runs),
        ("record_is_acknowledged", only_where_nobody_led_last),
        ("record_is_copied", never),
        ("isr_grows", never),
        ("isr_grows", only_if_leader_runs),
        ("isr_grows", only_if_it_may_lead),
        ("isr_shrinks", never),
        ("isr_shrinks", only_if_leader_runs),
        ("controller_moves_leadership", never),
        ("broker_restarts", never),
    ],
)
def test_a_coarse_model_that_does_less_is_seen(name: str, guard: Action) -> None:
    cover = Cover(
        protocol("kip-966", min_insync=1, sessions_lost=2, epochs=6, isr_changes=12, crashes=2),
        coarse("kip-966", with_guard(name, guard), min_insync=1),
    )
    assert any(x.startswith(MISSING.get(name, name)) for x in walks(cover, 600, 80, seed=5))


def test_a_leader_counts_whom_it_heard_before_the_drill() -> None:
    """A follower has the record, is killed and fenced, and the cluster is described. Then the leader hears of the last
    member that has it. It knows nothing of the smaller ISR, and its minimum is three."""
    cover = Cover(protocol("kraft-3.5", min_insync=3), coarse("kraft-3.5", min_insync=3))
    p = Point(cover.fine.initial_states()[0][1])
    for name, *parameters in (
        ("leader_appends", 0),
        *(("leader_answers_fetch", 0, 2), ("follower_appends", 2), ("leader_answers_fetch", 0, 2)),
        *(("leader_answers_fetch", 0, 1), ("follower_appends", 1)),
        *(("broker_crashes", 2, 0), ("controller_fences_follower", 2)),
    ):
        p = step_of(cover, p, name, *parameters)
    described = cover.described(p)
    assert described is not None
    assert described == Memory(believers=0b011, first=0b011, strays=0b100)
    last = step_of(cover, p, "leader_answers_fetch", 0, 1)
    assert cover.values(last.state)["acked"]
    assert cover.after(p, described, last)
    planted = coarse(
        "kraft-3.5", with_guard("record_is_acknowledged", only_where_nobody_strays, "kraft-3.5"), min_insync=3
    )
    assert not attrs.evolve(cover, coarse=planted).after(p, described, last)


def step_of(cover: Cover, p: Point, name: str, *parameters: int) -> Point:
    """The point after this step of the protocol."""
    return next(
        p.then(name, several, state)
        for a, several, state in cover.fine.successors(p.state)
        if cover.fine.instance.actions[a].name == name and tuple(several) == parameters
    )


MISSING = {
    "record_is_acknowledged": "",
    "record_is_copied": "follower_appends",
    "isr_grows": "controller_accepts_alter_partition",
    "isr_shrinks": "controller_accepts_alter_partition",
}
"""A planted fault -> the step of the protocol that is then missing."""
