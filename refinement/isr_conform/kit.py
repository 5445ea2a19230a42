"""The rest of an adapter in Python, so that a new one starts at the interesting line (docs/conform.md shows one).

    class Mine(Adapter[World]):
        name = "my broker"

        def reset(self, state): ...                          # a world in this initial state
        def step(self, world, action, parameters): ...       # change it, or raise Refused
        def snapshot(self, world): ...                       # its variables, by the model's names

    if __name__ == "__main__":
        run(Mine())

Worlds are copied before a step, so states can be saved and a refused step changes nothing. With `candidates`, `enabled`
is answered by trying each of them. Only the standard library is used, and nothing else of insync.
"""

from __future__ import annotations

import copy
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TextIO, TypeAlias, TypeVar, cast

World = TypeVar("World")
Step: TypeAlias = "tuple[str, Mapping[str, object]]"
"""An action and its parameters, as the model names them."""


class Refused(Exception):
    """The system does not take the step; the message says why. `cannot`: the adapter could not bring it to try."""

    def __init__(self, why: str = "", cannot: bool = False) -> None:
        super().__init__(why)
        self.cannot = cannot


class Adapter(ABC, Generic[World]):
    """A system under test. What it tells and has is everything unless it says otherwise."""

    name: str = ""
    variables: Sequence[str] | None = None
    actions: Sequence[str] | None = None
    constants: Mapping[str, object] = {}
    """The model's bounds and settings, from the time when it is greeted."""
    design: str = ""
    """The name of the model's design, from then on."""

    def refusal(self) -> str | None:
        """Why this system is not to be compared with that design at those bounds; None if it is."""
        return None

    @abstractmethod
    def reset(self, state: Mapping[str, object]) -> World:
        """A fresh world in an initial state, which is given with every variable of the model."""

    @abstractmethod
    def step(self, world: World, action: str, parameters: Mapping[str, object]) -> None:
        """Change this world by a step; Refused if the system does not take it."""

    @abstractmethod
    def snapshot(self, world: World) -> Mapping[str, object]:
        """The variables that it tells."""

    def candidates(self, world: World) -> Iterable[Step] | None:
        """Steps to try for `enabled`; None if that is not answered."""
        return None

    def copied(self, world: World) -> World:
        """A copy that a step may change. Where a world cannot be copied object by object, replay its steps here."""
        return copy.deepcopy(world)


class Conversation(Generic[World]):
    """The protocol of docs/conform.md for one adapter."""

    def __init__(self, adapter: Adapter[World]) -> None:
        self.adapter = adapter
        self._here: World | None = None
        self._saved_worlds: dict[int, World] = {}
        self._tokens = 0

    def answer(self, line: str) -> dict[str, object]:
        """The answer to one line; what went wrong is an error in it."""
        try:
            request = cast("dict[str, object]", json.loads(line))
            return self._handle(request)
        except Exception as problem:
            return {"error": f"{type(problem).__name__}: {problem}"}

    def _handle(self, request: dict[str, object]) -> dict[str, object]:
        match request.get("do"):
            case "hello":
                return self._hello(request)
            case "reset":
                self._saved_worlds.clear()
                self._here = self.adapter.reset(cast("Mapping[str, object]", request["state"]))
                return {}
            case "step":
                return self._step(request)
            case "snapshot":
                return {"state": self.adapter.snapshot(self._world())}
            case "enabled":
                return {"enabled": self._enabled(self._world())}
            case "save":
                return {"token": self._save(self._world())}
            case "restore":
                self._here = self._saved_worlds[cast("int", request["token"])]
                return {}
            case "forget":
                del self._saved_worlds[cast("int", request["token"])]
                return {}
            case "branch":
                return self._branch(request)
            case unknown:
                return {"error": f"no request of this protocol: {unknown}"}

    def _world(self) -> World:
        if self._here is None:
            raise ValueError("a reset comes first")
        return self._here

    def _hello(self, request: dict[str, object]) -> dict[str, object]:
        adapter = self.adapter
        adapter.constants = cast("Mapping[str, object]", request.get("constants", {}))
        adapter.design = cast("str", request.get("design", ""))
        if (why := adapter.refusal()) is not None:
            return {"error": why}
        tells = "candidates" in {
            name for kind in type(adapter).__mro__[:-1] if kind is not Adapter for name in vars(kind)
        }
        said: dict[str, object] = {"protocol": "insync/conform/1", "name": adapter.name or type(adapter).__name__}
        said |= {"saves": True, "forgets": True, "branches": True, "enabled": tells}
        said |= {} if adapter.variables is None else {"variables": list(adapter.variables)}
        return said | ({} if adapter.actions is None else {"actions": list(adapter.actions)})

    def _step(self, request: dict[str, object]) -> dict[str, object]:
        try:
            self._here = self._after_request(self._world(), request)
        except Refused as refused:
            return _not_done(refused)
        return {"done": True}

    def _after_request(self, world: World, step: Mapping[str, object]) -> World:
        return self._after(world, cast("str", step["action"]), cast("Mapping[str, object]", step["parameters"]))

    def _after(self, before: World, action: str, parameters: Mapping[str, object]) -> World:
        world = self.adapter.copied(before)
        self.adapter.step(world, action, parameters)
        return world

    def _branch(self, request: dict[str, object]) -> dict[str, object]:
        """From a saved world: what is enabled there, and what comes of some steps, each from there."""
        world = self._saved_worlds[cast("int", request["token"])]
        for token in cast("list[int]", request.get("forget", [])):
            del self._saved_worlds[token]
        said: dict[str, object] = {"enabled": self._enabled(world)} if request.get("enabled") else {}
        steps = cast("list[dict[str, object]]", request["steps"])
        return said | {"after": [self._branch_answer(world, step) for step in steps]}

    def _branch_answer(self, world: World, step: dict[str, object]) -> dict[str, object]:
        try:
            after = self._after_request(world, step)
        except Refused as refused:
            return _not_done(refused)
        said: dict[str, object] = {"done": True, "state": self.adapter.snapshot(after)}
        return said | ({"token": self._save(after)} if step.get("save") else {})

    def _save(self, world: World) -> int:
        self._tokens += 1
        self._saved_worlds[self._tokens] = world
        return self._tokens

    def _enabled(self, world: World) -> list[dict[str, object]]:
        steps: list[dict[str, object]] = []
        for action, parameters in self.adapter.candidates(world) or ():
            try:
                self._after(world, action, parameters)
            except Refused:
                continue
            steps.append({"action": action, "parameters": dict(parameters)})
        return steps


def _not_done(refusal: Refused) -> dict[str, object]:
    return {"cannot": str(refusal)} if refusal.cannot else {"done": False, "why": str(refusal)}


def run(adapter: Adapter[World], lines: Iterable[str] = sys.stdin, out: TextIO = sys.stdout) -> None:
    """Answer every line; what the adapter prints goes to standard error."""
    conversation = Conversation(adapter)
    sys.stdout = sys.stderr
    for line in lines:
        print(json.dumps(conversation.answer(line)), file=out, flush=True)
