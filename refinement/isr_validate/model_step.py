"""Single steps of the model, from a state of which some variables are known by name; the others have their first value.

The protocol only compares offsets. So `OffsetRanks` replaces the offsets that a step knows by their ranks, and the
records between two neighbouring offsets by one record of the model. States stay small however long a log is.

The model is that of the trace's design (`traced_design`), with two changes:

- Before KIP-497 a leader wrote the ISR to ZooKeeper itself, in one step. Our broker asks the controller in every design
  (`isr_broker.designs` says why). So here the ISR changes as in kip-497, and everything else as in the design.
- In the model a leader only answers a follower that waits. In a trace the follower's own lines show whether it waits,
  so here a leader may always answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final, Literal, cast

import attrs

from isr_check.reference import Evaluator, Parameters, parameter_values
from isr_check.reference import State as Values
from isr_lang import Bool, Design, FoldedAction, Instance, define, text
from isr_lang.instance import UNBOUNDED
from isr_model import KIP_966
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.history import ALTER_PARTITION
from isr_protocol.state import Alter, Fetch, Replica, State
from isr_validate.kafka_design import KAFKA, in_smaller_steps

FETCH: Final = {name: i for i, name in enumerate(Fetch.type.members)}
ALTER: Final = {name: i for i, name in enumerate(Alter.type.members)}

ROOM: Final = 48
"""The length of the model's logs to begin with. A step takes longer with more, for it quantifies over records."""

_UNBOUNDED: Final = {
    **dict.fromkeys(("epochs", "isr_changes", "crashes", "sessions_lost", "shutdowns", "unnoticed"), UNBOUNDED),
    "lossy_crashes": 1,
}
"""The model's bounds on events: a trace may have any number of them, and a step depends on none of these counts."""


@attrs.frozen
class OffsetRanks:
    """The offsets that a step knows, in order; the rank of an offset is its index."""

    points: tuple[int, ...]

    @classmethod
    def from_offsets(cls, offsets: Iterable[int]) -> OffsetRanks:
        """The ranks of these offsets and of 0."""
        return cls(tuple(sorted({0, *offsets})))

    def __call__(self, offset: int) -> int:
        return self.points.index(offset)

    def between(self, start: int, end: int) -> list[int]:
        """The records of the model between two offsets, each by the offset at which it begins."""
        return [p for p in self.points if start <= p < end]


@attrs.frozen
class ModelStep:
    """A step that the model allows: its parameters, and the variables after it."""

    parameters: Mapping[str, int]
    state: Mapping[str, object]


class ModelSteps:
    """The steps of one design under one choice of settings."""

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
        self._longer: ModelSteps | None = None
        self._with_log_length = partial(ModelSteps, design, replicas, minimum, unclean, follower_reads, acks)
        settings = {"min_insync": minimum, "replicas": replicas, "unclean": unclean, "follower_reads": follower_reads}
        model = traced_design(design)
        constant_names = {constant.name for constant in model.constants()}
        unbounded = {**_UNBOUNDED, "log": room, "records": room}
        self.instance = Instance(
            model,
            {"acks": acks, "consumers": 1, **settings},
            unbounded={name: value for name, value in unbounded.items() if name in constant_names},
        )
        self.fences = not any(d.name == "takes_any_epoch" for d in model.definitions())
        """Whether fetches and their answers carry the leader epoch, and another one is refused (KIP-320)."""
        self._evaluator = Evaluator(self.instance)
        self._actions = {action.name: i for i, action in enumerate(self.instance.actions)}
        self._blank = {v.name: self.instance.first(v.type) for v in self.instance.variables}

    def has(self, action: str) -> bool:
        """Whether the model has this action, in this design and with these settings."""
        return action in self._actions

    def steps(self, action: str, variables: Mapping[str, object]) -> list[ModelStep]:
        """The steps of an action from this state; none if the settings switch the action off."""
        if action not in self._actions:
            return []
        if (longer := self._long_enough(variables)) is not self:
            return longer.steps(action, variables)
        number = self._actions[action]
        parameters = [name for name, _ in self.instance.actions[number].parameters]
        state: Values = tuple({**self._blank, **variables}[name] for name in self._blank)
        found: list[tuple[Parameters, Values]] = self._evaluator.actions[number](state, [0] * 999)
        return [
            ModelStep(dict(zip(parameters, given, strict=True)), dict(zip(self._blank, after, strict=True)))
            for given, after in found
        ]

    def _long_enough(self, variables: Mapping[str, object]) -> ModelSteps:
        """An instance whose logs are long enough for those in this state and one more record."""
        logs = cast("tuple[tuple[int, ...], ...]", variables.get("log", ()))
        if max(map(len, logs), default=0) < self._room:
            return self
        if self._longer is None:
            self._longer = self._with_log_length(2 * self._room)
        return self._longer._long_enough(variables)

    def at(self, action: str, variables: Mapping[str, object]) -> tuple[FoldedAction, Values, Evaluator]:
        """The action, the state, and an evaluator for expressions in it."""
        if (longer := self._long_enough(variables)) is not self:
            return longer.at(action, variables)
        state: Values = tuple({**self._blank, **variables}[name] for name in self._blank)
        return self.instance.actions[self._actions[action]], state, self._evaluator

    def parameters(self, action: str) -> Iterator[dict[str, int]]:
        """Every choice of parameters for the action."""
        folded = self.instance.actions[self._actions[action]]
        for values in parameter_values(self.instance, folded):
            yield dict(zip((name for name, _ in folded.parameters), values, strict=True))

    def false_guards(
        self, action: str, variables: Mapping[str, object], fixed_parameters: Mapping[str, int]
    ) -> list[str]:
        """The first false guard, for each choice of parameters that `fixed_parameters` leaves open; at most eight."""
        if (longer := self._long_enough(variables)) is not self:
            return longer.false_guards(action, variables, fixed_parameters)
        folded = self.instance.actions[self._actions[action]]
        state: Values = tuple({**self._blank, **variables}[name] for name in self._blank)
        guard_texts: list[str] = []
        for values in parameter_values(self.instance, folded):
            choice = dict(zip((name for name, _ in folded.parameters), values, strict=True))
            if any(choice.get(name, value) != value for name, value in fixed_parameters.items()):
                continue
            for guard in folded.guards:
                if not self._evaluator.evaluate(guard.condition, state, None, **choice):
                    shown = ", ".join(f"{name} {value}" for name, value in choice.items())
                    guard_texts.append(f"{action}({shown}): {text(guard.condition)}")
                    break
        return list(dict.fromkeys(guard_texts))[:8]


@cache
def model_steps(
    design: str, replicas: int, minimum: int, unclean: bool, follower_reads: bool, acks: int = 1
) -> ModelSteps:
    """The steps for these settings, made once; `acks` as in a produce request, -1 for all."""
    room = ROOM // 4 if design.startswith(KAFKA) else ROOM  # a step of its watermark has a parameter for each offset
    minimum = min(minimum, replicas)
    return ModelSteps(design, replicas, minimum, unclean, follower_reads, "all" if acks == -1 else "1", room)


def map_with(size: int, place: int, value: object, blank: object) -> tuple[object, ...]:
    """A map with `value` at one place and `blank` everywhere else."""
    return tuple(value if i == place else blank for i in range(size))


def replica_set(ids: Sequence[int], members: Iterable[int]) -> int:
    """A set of replicas, as the engines have it. Brokers that are no replicas of the partition are left out."""
    return sum(1 << ids.index(m) for m in set(members) if m in ids)


def maybe_replica(ids: Sequence[int], member: int | None) -> int:
    """A `Maybe[Replica]`, as the engines have it.

    A broker that is no replica is -1, which equals no value of the model.
    """
    if member is None:
        return 0
    return 1 + ids.index(member) if member in ids else -1


_CHANGES_ISR: Final = ("leader_proposes_shrink", "leader_proposes_expansion", *ALTER_PARTITION)
"""The actions by which the ISR changes since KIP-497."""

TRACED_DESIGNS: Final = tuple(DESIGNS)[: list(DESIGNS).index("kafka-0.8") + 1]
"""The designs that a broker can be told to have (`isr_broker.designs.DESIGNS`)."""


@define
def anybody_waits(s: State, leader: Replica, follower: Replica) -> Bool:
    """Always true; it replaces the condition that the follower waits for an answer."""
    return Bool.true


@cache
def traced_design(name: str) -> Design:
    """The model against which traces of this design are validated."""
    if name.startswith(KAFKA):
        return in_smaller_steps(traced_design(name.removeprefix(KAFKA)))
    design = with_alter_partition(DESIGNS[name])
    waits = {d.name for d in design.definitions()} & {"waits", "waits_for_leader"}
    because = "who waits for an answer is seen where it is taken."
    return design.replacing(name, design.summary, because=because, **dict.fromkeys(waits, anybody_waits))


def with_alter_partition(design: Design) -> Design:
    """The design with the actions of KIP-497 for the ISR; the design's own definitions decide who may join."""
    if any(action.name == "leader_adopts_isr" for action in design.actions):
        return design
    kept = tuple(action for action in design.actions if action.name not in _CHANGES_ISR)
    return attrs.evolve(design, actions=kept).adding(*map(KIP_966.action_named, _CHANGES_ISR))
