"""What is said between the driver and a system under test, in the words of one instance of the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import attrs

from isr_broker.snapshot import Json
from isr_check.reference import Parameters
from isr_conform.sut_client import PROTOCOL, Broken, Party
from isr_conform.value_json import NoSuchValue, Object, apart, heard, parameters_said, state_said, written
from isr_lang import Instance
from isr_replay.core_system import Labels
from isr_replay.packed_states import Packing

Place: TypeAlias = tuple[str, Json, Json]
"""Where two states differ, with the model's value there and the system's."""

OUTPUTS: Final = ("fetch", "alter", "acked", "consumed")
"""How the variables begin that are messages and answers: what a step puts out is in the state after it."""


def is_output(place: str) -> bool:
    """Whether the place is in a message or an answer."""
    return place.startswith(OUTPUTS)


@attrs.frozen(kw_only=True)
class Hello:
    """What a system says of itself: the variables that it tells, the actions that it has, and what else it answers."""

    name: str
    variables: tuple[str, ...]
    actions: frozenset[str]
    tells: bool
    """It answers `enabled`."""
    saves: bool
    """It answers `save` and `restore`."""


def met(talk: Party, instance: Instance) -> Hello:
    """Greet a system under test; Broken if it speaks another protocol, or claims what the model does not have."""
    design = instance.design.name
    constants: Object = dict(instance.constants)
    answer = talk.ask("hello", protocol=PROTOCOL, design=design, constants=constants)
    if answer.get("protocol") != PROTOCOL:
        raise Broken(f"it speaks {written(answer.get('protocol'))}, not {PROTOCOL}")
    name = answer.get("name")
    if not isinstance(name, str) or not name:
        raise Broken("it does not say its name in its answer to hello")
    variables = _some(answer, "variables", [v.name for v in instance.variables])
    actions = _some(answer, "actions", [a.name for a in instance.actions], [a.name for a in instance.design.actions])
    flags = {key: answer.get(key, False) for key in ("enabled", "saves")}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise Broken("in its answer to hello, enabled and saves are true or false")
    return Hello(
        name=name,
        variables=tuple(variables),
        actions=frozenset(actions),
        tells=bool(flags["enabled"]),
        saves=bool(flags["saves"]),
    )


def _some(answer: Object, key: str, known: list[str], also: Iterable[str] = ()) -> list[str]:
    """Names that the answer chooses among those that are known; all of them if it does not choose."""
    given = answer.get(key)
    if given is None:
        return known
    if not isinstance(given, list) or not given:
        raise Broken(f"in its answer to hello, {key} is a list of names")
    strange = [name for name in given if name not in known and name not in set(also)]
    if strange:
        raise Broken(f"it claims {written(strange[0])}, which is none of the model's {key} with these settings")
    return [name for name in known if name in given]


class Wording:
    """States and steps of an instance in the words of the protocol."""

    def __init__(self, instance: Instance, packing: Packing, variables: tuple[str, ...]) -> None:
        self.instance, self.packing, self.variables = instance, packing, variables
        self._types = {v.name: v.type for v in instance.variables}
        self._parameters: dict[tuple[str, Parameters], Object] = {}

    def state(self, bits: int) -> Object:
        """A whole state."""
        return state_said(self.instance, self.packing.unpacked(bits))

    def parameters(self, action: str, parameters: Parameters) -> Object:
        """The parameters of a step."""
        key = (action, parameters)
        if key not in self._parameters:
            self._parameters[key] = parameters_said(self.instance, action, parameters)
        return self._parameters[key]

    def differences(self, talk: Party, bits: int) -> list[Place]:
        """Where the system is not in this state, of what it tells."""
        told = talk.ask("snapshot").get("state")
        if not isinstance(told, dict):
            raise Broken("its answer to snapshot has no state")
        model, found = self.state(bits), list[Place]()
        for name in self.variables:
            if name not in told:
                raise Broken(f"its snapshot lacks {name}, which it claims to tell")
            try:
                theirs = heard(told[name], self._types[name], self.instance)
            except NoSuchValue as problem:
                raise Broken(f"its snapshot says of {name}: {problem}") from None
            found += apart(name, model[name], theirs)
        return found

    def enabled(self, talk: Party, labels: Labels) -> set[int]:
        """The steps that the system says that it can take."""
        told = talk.ask("enabled").get("enabled")
        if not isinstance(told, list):
            raise Broken("its answer to enabled has no list of steps")
        numbers = {name: i for i, name in enumerate(map(self._key, labels.named))}
        found: set[int] = set()
        for step in told:
            action = step.get("action") if isinstance(step, dict) else None
            given = step.get("parameters") if isinstance(step, dict) else None
            if not isinstance(action, str) or not isinstance(given, dict):
                raise Broken(f"among what is enabled it names {written(step)}, which is no step")
            key = (action, frozenset((k, _fixed(v)) for k, v in given.items()))
            if key not in numbers:
                raise Broken(f"among what is enabled it names {action}{written(given)}, which the model does not know")
            found.add(numbers[key])
        return found

    def _key(self, named: tuple[str, Parameters]) -> tuple[str, frozenset[tuple[str, object]]]:
        given = self.parameters(*named)
        return named[0], frozenset((k, _fixed(v)) for k, v in given.items())


def _fixed(value: Json) -> object:
    return frozenset(map(_fixed, value)) if isinstance(value, list) else value if not isinstance(value, dict) else ()
