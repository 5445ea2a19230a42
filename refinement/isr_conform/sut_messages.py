"""The messages between the driver and a system under test: the greeting, states, steps and lists of enabled steps.

All of them name variables, actions and values as one instance of the model does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, TypeAlias

import attrs

from isr_broker.snapshot import Json
from isr_check.reference import Parameters
from isr_conform.sut_client import PROTOCOL, SutClient, SutFailure
from isr_conform.value_json import (
    InvalidValue,
    JsonObject,
    checked_json,
    differing_places,
    json_text,
    parameters_json,
    state_json,
    to_json,
)
from isr_lang import Instance
from isr_lang.left_out import NAME as LEFT_OUT
from isr_replay.core_system import Labels
from isr_replay.packed_states import Packing

_BETWEEN_LOOKS: Final = 0.01
Place: TypeAlias = tuple[str, Json, Json]
"""A place at which two states differ (`isr[r1]`), with the model's value and the system's value."""


@attrs.frozen(kw_only=True)
class Hello:
    """What a system says of itself in its answer to `hello`."""

    name: str
    variables: tuple[str, ...]
    """The variables in its snapshots; only these are compared."""
    actions: frozenset[str]
    """The actions that it implements; only these are asked for."""
    lists_enabled: bool
    """Whether it answers `enabled`."""
    saves: bool
    """Whether it answers `save` and `restore`."""
    forgets: bool = False
    """Whether it answers `forget` as well, so that it need not keep all that it has saved."""
    branches: bool = False
    """Whether it answers `branch`: many steps of one saved state in one request."""
    surroundings: tuple[str, ...] | None = None
    """For a system that is a part of the model: the variables of which it is told the model's values. What is not among
    its actions the model does alone. None for a system that is the whole of it."""
    node: str | None = None
    """For a system that is one node of several: only steps whose first parameter it is are asked of it. Its snapshots
    may then leave out variables, and keys of maps: what does not show at that moment."""
    settles: float = 0.0
    """Seconds within which a snapshot comes to be the model's: it is asked for again until then."""


def greet(client: SutClient, instance: Instance) -> Hello:
    """Send `hello`.

    SutFailure if the system speaks another protocol, or names variables or actions that do not exist.
    """
    design = instance.design.name
    constants: JsonObject = dict(instance.constants)
    answer = client.ask("hello", protocol=PROTOCOL, design=design, constants=constants)
    if answer.get("protocol") != PROTOCOL:
        raise SutFailure(f"it speaks {json_text(answer.get('protocol'))}, not {PROTOCOL}")
    name = answer.get("name")
    if not isinstance(name, str) or not name:
        raise SutFailure("it does not say its name in its answer to hello")
    told_names = [v.name for v in instance.variables if v.name != LEFT_OUT]
    variables = _names_under(answer, "variables", told_names)
    actions = _names_under(
        answer, "actions", [a.name for a in instance.actions], [a.name for a in instance.design.actions]
    )
    key = "surroundings"
    surroundings = None if answer.get(key) is None else tuple(_names_under(answer, key, told_names))
    flags = {key: answer.get(key, False) for key in ("enabled", "saves", "forgets", "branches")}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise SutFailure("in its answer to hello, enabled, saves, forgets and branches are true or false")
    if surroundings is not None and flags["saves"]:
        raise SutFailure("in its answer to hello, a system with surroundings saves nothing")
    node, settles = answer.get("node"), answer.get("settles", 0)
    if node is not None and (not isinstance(node, str) or surroundings is None):
        raise SutFailure("in its answer to hello, node is a name, of a system with surroundings")
    if isinstance(settles, bool) or not isinstance(settles, int | float):
        raise SutFailure("in its answer to hello, settles is a number of seconds")
    return Hello(
        name=name,
        variables=tuple(variables),
        actions=frozenset(actions),
        lists_enabled=bool(flags["enabled"]),
        saves=bool(flags["saves"]),
        forgets=bool(flags["saves"] and flags["forgets"]),
        branches=bool(flags["saves"] and flags["forgets"] and flags["branches"]),
        surroundings=surroundings,
        node=node,
        settles=float(settles),
    )


def _names_under(answer: JsonObject, key: str, model_names: list[str], also: Iterable[str] = ()) -> list[str]:
    """The names under a key of the answer, in the order of `model_names`; all of `model_names` if the answer has no
    such key.

    Names in `also` are allowed and ignored: actions of the design that the settings have switched off.
    """
    claimed_names = answer.get(key)
    if claimed_names is None:
        return model_names
    if not isinstance(claimed_names, list) or not claimed_names:
        raise SutFailure(f"in its answer to hello, {key} is a list of names")
    strange = [name for name in claimed_names if name not in model_names and name not in set(also)]
    if strange:
        raise SutFailure(f"it claims {json_text(strange[0])}, which is none of the model's {key} with these settings")
    return [name for name in model_names if name in claimed_names]


class ModelMessages:
    """States and steps of one instance as messages of the protocol."""

    def __init__(
        self,
        instance: Instance,
        packing: Packing,
        variables: tuple[str, ...],
        surroundings: tuple[str, ...] | None = None,
        leaves_out: bool = False,
        settles: float = 0.0,
    ) -> None:
        self.instance, self.packing, self.variables = instance, packing, variables
        self._leaves_out, self._settles = leaves_out, settles
        self._surroundings = None if surroundings is None else frozenset(surroundings)
        self._types = {v.name: v.type for v in instance.variables}
        self._parameters: dict[tuple[str, Parameters], JsonObject] = {}
        self._compared_variables = [(i, v.name) for i, v in enumerate(instance.variables) if v.name in set(variables)]
        self._masks = {i: packing.mask(name) for i, name in self._compared_variables}
        self._texts: dict[tuple[int, int], str] = {}
        self._numbers: dict[tuple[str, frozenset[tuple[str, object]]], int] = {}

    def state(self, bits: int) -> JsonObject:
        """A state, with all of its variables."""
        return state_json(self.instance, self.packing.unpack(bits))

    def surroundings(self, bits: int) -> JsonObject:
        """What goes with a request in a state: the values of the system's surroundings, if it has any."""
        if self._surroundings is None:
            return {}
        return {"surroundings": {name: value for name, value in self.state(bits).items() if name in self._surroundings}}

    def _text(self, variable: int, bits: int) -> str:
        """How Python writes the JSON of a variable's value in a state; most values occur in many states."""
        key = (variable, bits & self._masks[variable])
        if key not in self._texts:
            value = self.packing.unpack(bits)[variable]
            self._texts[key] = repr(to_json(value, self.instance.variables[variable].type))
        return self._texts[key]

    def parameters(self, action: str, parameters: Parameters) -> JsonObject:
        """The parameters of a step, by their names."""
        key = (action, parameters)
        if key not in self._parameters:
            self._parameters[key] = parameters_json(self.instance, action, parameters)
        return self._parameters[key]

    def differences(self, client: SutClient, bits: int) -> list[Place]:
        """Ask for a snapshot, and compare the variables that it has with this state of the model."""
        end = time.monotonic() + self._settles
        while (places := self.unlike(client.ask("snapshot").get("state"), bits)) and time.monotonic() < end:
            time.sleep(_BETWEEN_LOOKS)
        return places

    def unlike(self, snapshot: Json, bits: int) -> list[Place]:
        """Where a snapshot differs from this state of the model."""
        if isinstance(snapshot, dict) and all(
            name in snapshot and repr(snapshot[name]) == self._text(i, bits) for i, name in self._compared_variables
        ):
            return []  # the same JSON: nothing else need be looked at
        return self.unlike_values(snapshot, self.packing.unpack(bits))

    def unlike_values(self, snapshot: Json, values: tuple[object, ...]) -> list[Place]:
        """The same of a state as the engines have it, which may be out of the model's bounds."""
        if not isinstance(snapshot, dict):
            raise SutFailure("its answer to snapshot has no state")
        places = list[Place]()
        for i, name in self._compared_variables:
            if name not in snapshot and self._leaves_out:
                continue
            if name not in snapshot:
                raise SutFailure(f"its snapshot lacks {name}, which it claims to tell")
            ours = to_json(values[i], self._types[name])
            whole = _with_model_values(snapshot[name], ours) if self._leaves_out else snapshot[name]
            try:
                theirs = checked_json(whole, self._types[name], self.instance)
            except InvalidValue as problem:
                raise SutFailure(f"its snapshot says of {name}: {problem}") from None
            places += differing_places(name, ours, theirs)
        return places

    def enabled(self, client: SutClient, labels: Labels, bits: int) -> set[int]:
        """Ask which steps the system can take in this state, in which it is, and return their labels."""
        return self.step_labels(client.ask("enabled", **self.surroundings(bits)).get("enabled"), labels)

    def step_labels(self, steps: Json, labels: Labels) -> set[int]:
        """The labels of a list of steps that the system has sent."""
        if not isinstance(steps, list):
            raise SutFailure("its answer to enabled has no list of steps")
        if not self._numbers:
            self._numbers = {name: i for i, name in enumerate(map(self._key, labels.steps))}
        numbers: set[int] = set()
        for step in steps:
            action = step.get("action") if isinstance(step, dict) else None
            step_parameters = step.get("parameters") if isinstance(step, dict) else None
            if not isinstance(action, str) or not isinstance(step_parameters, dict):
                raise SutFailure(f"among what is enabled it names {json_text(step)}, which is no step")
            key = (action, frozenset((k, _hashable_value(v)) for k, v in step_parameters.items()))
            if key not in self._numbers:
                raise SutFailure(
                    f"among what is enabled it names {action}{json_text(step_parameters)}, "
                    "which the model does not know"
                )
            numbers.add(self._numbers[key])
        return numbers

    def _key(self, step: tuple[str, Parameters]) -> tuple[str, frozenset[tuple[str, object]]]:
        given = self.parameters(*step)
        return step[0], frozenset((k, _hashable_value(v)) for k, v in given.items())


def _with_model_values(value: Json, ours: Json) -> Json:
    """A value as a system told it, and for keys of a map of which it told nothing the model's."""
    return {**ours, **value} if isinstance(value, dict) and isinstance(ours, dict) else value


def _hashable_value(value: Json) -> object:
    return (
        frozenset(map(_hashable_value, value))
        if isinstance(value, list)
        else value
        if not isinstance(value, dict)
        else ()
    )
