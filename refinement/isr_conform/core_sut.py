"""The broker's cores as a system under test: `insync conform --sut "python -m isr_conform.core_sut"` (docs/conform.md).

The environment of the cores chooses things that no variable of the model shows, such as the order of the replicas in
the assignment. Such choices are left open: this system is in every state in which the steps so far may have left it.
All of these states are one and the same state of the model.
"""

from __future__ import annotations

from isr_broker.snapshot import Json
from isr_conform.sut_server import InvalidRequest, serve
from isr_conform.value_json import JsonObject, parameters_json, state_json
from isr_lang import Instance
from isr_replay.core_system import Labels, NoSuchCores, State, check_cores
from isr_replay.environment import Environment


class CoreSut:
    """All brokers and the controller, in this process, with the environment that `World` simulates."""

    def __init__(self) -> None:
        self.world: Environment | None = None
        self.here: tuple[State, ...] = ()
        self.saved_states: list[tuple[State, ...]] = []
        self._numbers: dict[str, int] = {}

    def hello(self, instance: Instance) -> JsonObject:
        """All variables are in the snapshots, and states can be saved."""
        try:
            check_cores(instance)
            self.world = Environment(instance, tuple(range(int(instance.constants["replicas"]))), own_look=False)
        except NoSuchCores as problem:
            raise InvalidRequest(str(problem)) from None
        self._numbers = {
            step_key(step_json(instance, i, self.world.labels)): i for i in range(len(self.world.labels.steps))
        }
        return {"name": "the broker's cores", "enabled": True, "saves": True}

    def handle(self, do: str, request: JsonObject) -> JsonObject:
        """The answer to one request."""
        if self.world is None:
            raise InvalidRequest("hello comes first")
        match do:
            case "reset":
                return self._reset(self.world, request.get("state"))
            case "step":
                return self._step(self.world, request)
            case "snapshot":
                return {"state": self._state(self.world, self.here[0])}
            case "enabled":
                labels = {label for state in self.here for label, _ in self.world.successors(state)}
                return {"enabled": [step_json(self.world.instance, i, self.world.labels) for i in sorted(labels)]}
            case "save":
                self.saved_states.append(self.here)
                return {"token": len(self.saved_states) - 1}
            case "restore":
                token = request.get("token")
                if not isinstance(token, int) or not 0 <= token < len(self.saved_states):
                    raise InvalidRequest(f"nothing is saved under {token}")
                self.here = self.saved_states[token]
                return {}
            case _:
                raise InvalidRequest(f"'{do}' is no request of this protocol")

    def _state(self, world: Environment, state: State) -> JsonObject:
        return state_json(world.instance, world.packing.unpack(world.bits(state)))

    def _reset(self, world: Environment, requested_state: Json) -> JsonObject:
        found = [state for state in world.initial_states() if self._state(world, state) == requested_state]
        if not found:
            raise InvalidRequest("this is no initial state")
        self.here, self.saved_states = tuple(found), []
        return {}

    def _step(self, world: Environment, request: JsonObject) -> JsonObject:
        label = self._numbers.get(step_key(request))
        if label is None:
            raise InvalidRequest(f"{request.get('action')} with these parameters is no step of the model")
        after = [new for state in self.here for taken, new in world.successors(state) if taken == label]
        if not after:
            why = next(filter(None, (world.known_difference(state, label) for state in self.here)), None)
            return {"cannot": why} if why is not None else {"done": False}
        if len({world.bits(state) for state in after}) > 1:
            raise InvalidRequest("the cores become one thing or another, which no snapshot tells")
        self.here = tuple(dict.fromkeys(after))
        return {"done": True}


def step_json(instance: Instance, label: int, labels: Labels) -> JsonObject:
    """A step as the protocol names it. A step that the model does not have keeps its parameters as plain numbers."""
    action, parameters = labels.name(label)
    if label >= len(labels.steps):
        return {"action": action, "parameters": {"numbers": list(parameters)}}
    return {"action": action, "parameters": parameters_json(instance, action, parameters)}


def step_key(request: JsonObject) -> str:
    """Text that is equal for two steps exactly if they have the same action and parameters."""
    given = request.get("parameters")
    assert isinstance(given, dict)
    return f"{request.get('action')}({sorted((k, repr(v)) for k, v in given.items())})"


if __name__ == "__main__":
    serve(CoreSut())
