"""One step of the model from a state that is told in part: what the variables are, by name; the rest is blank.

The protocol only compares offsets, so only their order counts: `Ranks` names the offsets of a step by their places in
all that the step knows of, and what lies between two neighbours is one record of the model. So states stay small
whatever the length of a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final, Literal, cast

import attrs

from isr_check.reference import Evaluator, Parameters, State, parameter_values
from isr_lang import Design, FoldedAction, Instance, text
from isr_lang.declare import Value
from isr_state import Alter, Fetch
from isr_validate.traced_designs import traced

FETCH: Final = {name: i for i, name in enumerate(Fetch.type.members)}
ALTER: Final = {name: i for i, name in enumerate(Alter.type.members)}

ROOM: Final = 48
"""Records of the model that a log has room for at first: what quantifies over records takes longer with more."""

_WIDE: Final = {
    "epochs": 1 << 30,
    "isr_changes": 1 << 30,
    "crashes": 1 << 30,
    "lossy_crashes": 1,
    "sessions_lost": 1 << 30,
    "shutdowns": 1 << 30,
    "unnoticed": 1 << 30,
}
"""Bounds that no step within reach comes near: what is validated is one step, so nothing is explored."""


class _Wide(Instance):
    """The model with bounds wider than those that it may be explored with."""

    def __init__(self, design: Design, constants: Mapping[str, Value], room: int) -> None:
        self._wide = {**_WIDE, "log": room, "records": room}
        super().__init__(design, constants)

    def _check_assumptions(self) -> None:
        self.constants.update({name: wide for name, wide in self._wide.items() if name in self.constants})
        super()._check_assumptions()


@attrs.frozen
class Ranks:
    """The offsets that a step knows of, in order."""

    points: tuple[int, ...]

    @classmethod
    def of(cls, offsets: Iterable[int]) -> Ranks:
        """These offsets, and the beginning of everything."""
        return cls(tuple(sorted({0, *offsets})))

    def __call__(self, offset: int) -> int:
        return self.points.index(offset)

    def between(self, start: int, end: int) -> list[int]:
        """The records of the model from one offset to another, each by the offset at which it begins."""
        return [p for p in self.points if start <= p < end]


@attrs.frozen
class Taken:
    """A step that the model allows: with which parameters, and the variables after it."""

    parameters: Mapping[str, int]
    state: Mapping[str, object]


class Stepper:
    """The model's actions, one at a time, on states that are told as variables by name."""

    def __init__(
        self,
        design: str,
        replicas: int,
        minimum: int,
        unclean: bool,
        follower_reads: bool,
        acks: Literal["0", "1", "all"] = "1",
        room: int = ROOM,
    ) -> None:
        self._room = room
        self._roomier: Stepper | None = None
        self._with_room = partial(Stepper, design, replicas, minimum, unclean, follower_reads, acks)
        given = {"min_insync": minimum, "replicas": replicas, "unclean": unclean, "follower_reads": follower_reads}
        faults = {"crashes": 1, "shutdowns": 1, "sessions_lost": 1, "unnoticed": 1}
        model = traced(design)
        known = {constant.name for constant in model.constants()}
        happens = {name: count for name, count in faults.items() if name in known}
        self.instance = _Wide(model, {"acks": acks, "consumers": 1, **happens, **given}, room)
        self.fences = not any(d.name == "takes_any_epoch" for d in model.definitions())
        """Fetches and their answers are for one leader epoch (KIP-320)."""
        self._evaluator = Evaluator(self.instance)
        self._actions = {action.name: i for i, action in enumerate(self.instance.actions)}
        self._blank = {v.name: self.instance.first(v.type) for v in self.instance.variables}

    def knows(self, action: str) -> bool:
        """The model has an action of that name, in this design and with these settings."""
        return action in self._actions

    def steps(self, action: str, told: Mapping[str, object]) -> list[Taken]:
        """Every way in which the action may be taken; none if the settings leave it out."""
        if action not in self._actions:
            return []
        if (roomier := self._for(told)) is not self:
            return roomier.steps(action, told)
        number = self._actions[action]
        parameters = [name for name, _ in self.instance.actions[number].parameters]
        state: State = tuple({**self._blank, **told}[name] for name in self._blank)
        found: list[tuple[Parameters, State]] = self._evaluator.actions[number](state, [0] * 999)
        return [
            Taken(dict(zip(parameters, given, strict=True)), dict(zip(self._blank, after, strict=True)))
            for given, after in found
        ]

    def _for(self, told: Mapping[str, object]) -> Stepper:
        """This one, or one with room for the logs and one record more: a long log has many leader epochs."""
        logs = cast("tuple[tuple[int, ...], ...]", told.get("log", ()))
        if max(map(len, logs), default=0) < self._room:
            return self
        if self._roomier is None:
            self._roomier = self._with_room(2 * self._room)
        return self._roomier._for(told)

    def at(self, action: str, told: Mapping[str, object]) -> tuple[FoldedAction, State, Evaluator]:
        """The action, the state that is told, and what evaluates an expression there."""
        if (roomier := self._for(told)) is not self:
            return roomier.at(action, told)
        state: State = tuple({**self._blank, **told}[name] for name in self._blank)
        return self.instance.actions[self._actions[action]], state, self._evaluator

    def parameters(self, action: str) -> Iterator[dict[str, int]]:
        """Every choice of the action's parameters."""
        folded = self.instance.actions[self._actions[action]]
        for values in parameter_values(self.instance, folded):
            yield dict(zip((name for name, _ in folded.parameters), values, strict=True))

    def refusals(self, action: str, told: Mapping[str, object], fixed: Mapping[str, int]) -> list[str]:
        """The first guard that is false, for each way in which these parameters leave the action to be taken."""
        if (roomier := self._for(told)) is not self:
            return roomier.refusals(action, told, fixed)
        folded = self.instance.actions[self._actions[action]]
        state: State = tuple({**self._blank, **told}[name] for name in self._blank)
        found: list[str] = []
        for values in parameter_values(self.instance, folded):
            named = dict(zip((name for name, _ in folded.parameters), values, strict=True))
            if any(named.get(name, value) != value for name, value in fixed.items()):
                continue
            for guard in folded.guards:
                if not self._evaluator.evaluate(guard.condition, state, None, **named):
                    shown = ", ".join(f"{name} {value}" for name, value in named.items())
                    found.append(f"{action}({shown}): {text(guard.condition)}")
                    break
        return list(dict.fromkeys(found))[:8]


@cache
def stepper(design: str, replicas: int, minimum: int, unclean: bool, follower_reads: bool, acks: int = 1) -> Stepper:
    """One for each setting; acks as a producer says them, -1 for all."""
    return Stepper(design, replicas, min(minimum, replicas), unclean, follower_reads, "all" if acks == -1 else "1")


def at(size: int, place: int, value: object, blank: object) -> tuple[object, ...]:
    """A map that is blank but at one place."""
    return tuple(value if i == place else blank for i in range(size))


def mask(ids: Sequence[int], members: Iterable[int]) -> int:
    """A set of replicas; who is none is left out."""
    return sum(1 << ids.index(m) for m in set(members) if m in ids)


def maybe(ids: Sequence[int], member: int | None) -> int:
    """A replica or none; -1, which no step of the model leads to, for who is no replica."""
    if member is None:
        return 0
    return 1 + ids.index(member) if member in ids else -1
