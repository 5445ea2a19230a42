"""The broker's cores as a system under test: `insync conform --sut "python -m isr_conform.core_sut"` (docs/conform.md).

What the environment may choose and no snapshot tells (an order of assignment, how old a memory is) is left open: the
system is in any of the states in which the steps so far may have left it, as long as they are one state of the model.
"""

from __future__ import annotations

from isr_broker.snapshot import Json
from isr_conform.sut_server import Unanswerable, serve
from isr_conform.value_json import Object, parameters_said, state_said
from isr_lang import Instance
from isr_replay.core_system import Labels, NoSuchCores, State
from isr_replay.environment import World


class Cores:
    """All brokers and the controller, in this process, with the environment of `world`."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.here: tuple[State, ...] = ()
        self.saved: list[tuple[State, ...]] = []
        self._numbers: dict[str, int] = {}

    def hello(self, instance: Instance) -> Object:
        """Everything is told, and states can be saved."""
        try:
            self.world = World(instance, tuple(range(int(instance.constants["replicas"]))), own_look=False)
        except NoSuchCores as problem:
            raise Unanswerable(str(problem)) from None
        self._numbers = {key(step(instance, i, self.world.labels)): i for i in range(len(self.world.labels.named))}
        return {"name": "the broker's cores", "enabled": True, "saves": True}

    def handle(self, do: str, request: Object) -> Object:
        """One request."""
        if self.world is None:
            raise Unanswerable("hello comes first")
        match do:
            case "reset":
                return self._reset(self.world, request.get("state"))
            case "step":
                return self._step(self.world, request)
            case "snapshot":
                return {"state": self._state(self.world, self.here[0])}
            case "enabled":
                labels = {label for state in self.here for label, _ in self.world.successors(state)}
                return {"enabled": [step(self.world.instance, i, self.world.labels) for i in sorted(labels)]}
            case "save":
                self.saved.append(self.here)
                return {"token": len(self.saved) - 1}
            case "restore":
                token = request.get("token")
                if not isinstance(token, int) or not 0 <= token < len(self.saved):
                    raise Unanswerable(f"nothing is saved under {token}")
                self.here = self.saved[token]
                return {}
            case _:
                raise Unanswerable(f"'{do}' is no request of this protocol")

    def _state(self, world: World, state: State) -> Object:
        return state_said(world.instance, world.packing.unpacked(world.bits(state)))

    def _reset(self, world: World, wanted: Json) -> Object:
        found = [state for state in world.initial_states() if self._state(world, state) == wanted]
        if not found:
            raise Unanswerable("this is no initial state")
        self.here, self.saved = tuple(found), []
        return {}

    def _step(self, world: World, request: Object) -> Object:
        label = self._numbers.get(key(request))
        if label is None:
            raise Unanswerable(f"{request.get('action')} with these parameters is no step of the model")
        after = [new for state in self.here for taken, new in world.successors(state) if taken == label]
        if not after:
            why = next(filter(None, (world.explained(state, label) for state in self.here)), None)
            return {"cannot": why} if why is not None else {"done": False}
        if len({world.bits(state) for state in after}) > 1:
            raise Unanswerable("the cores become one thing or another, which no snapshot tells")
        self.here = tuple(dict.fromkeys(after))
        return {"done": True}


def step(instance: Instance, label: int, labels: Labels) -> Object:
    """A step as the protocol names it; one that the model does not know by its numbers."""
    action, parameters = labels.name(label)
    if label >= len(labels.named):
        return {"action": action, "parameters": {"numbers": list(parameters)}}
    return {"action": action, "parameters": parameters_said(instance, action, parameters)}


def key(request: Object) -> str:
    """What identifies a step."""
    given = request.get("parameters")
    assert isinstance(given, dict)
    return f"{request.get('action')}({sorted((k, repr(v)) for k, v in given.items())})"


if __name__ == "__main__":
    serve(Cores())
