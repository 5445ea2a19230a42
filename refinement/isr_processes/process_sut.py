"""Real broker processes as a system under test: `insync conform --sut "python -m isr_processes.process_sut"`.

There is one process for each broker and one for the controller, with real sockets and files. docs/conform.md states the
protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from isr_broker.core.messages import BrokerId
from isr_conform.sut_server import InvalidRequest, serve
from isr_conform.value_json import JsonObject, state_json
from isr_lang import Instance
from isr_processes.process_actions import ProcessActions
from isr_processes.process_control import ProcessStuck
from isr_processes.process_state import CannotDrive, StepRefused
from isr_replay.core_system import NoSuchCores
from isr_replay.packed_states import OutOfRange


class ProcessSut:
    """Answers the requests of docs/conform.md by driving the processes of `ProcessActions`."""

    def __init__(self) -> None:
        self.instance: Instance | None = None
        self.actions: ProcessActions | None = None

    def hello(self, instance: Instance) -> JsonObject:
        """All variables are in the snapshots; states cannot be saved."""
        try:
            self.instance, self.actions = instance, ProcessActions(instance)
        except NoSuchCores as problem:
            raise InvalidRequest(str(problem)) from None
        return {"name": "real broker processes"}

    def handle(self, do: str, request: JsonObject) -> JsonObject:
        """The answer to one request."""
        if self.actions is None or self.instance is None:
            raise InvalidRequest("hello comes first")
        try:
            match do:
                case "reset":
                    state = cast("dict[str, str]", request["state"])
                    self.actions.start_cluster(self._broker(state["controller_leader"]))
                    return {}
                case "step":
                    return self._step(self.actions, request)
                case "snapshot":
                    bits = self.actions.bits()
                    return {"state": state_json(self.instance, self.actions.cores.packing.unpack(bits))}
                case _:
                    raise InvalidRequest(f"'{do}' is no request that this answers")
        except (ProcessStuck, OutOfRange) as problem:
            raise InvalidRequest(str(problem)) from None

    def _broker(self, replica: str) -> BrokerId:
        return int(replica.removeprefix("r"))

    def _step(self, actions: ProcessActions, request: JsonObject) -> JsonObject:
        given = cast("dict[str, str | int | list[str]]", request["parameters"])
        values: dict[str, object] = {}
        for name, value in given.items():
            if isinstance(value, list):
                values[name] = [self._broker(r) for r in value]
            else:
                values[name] = self._broker(value) if isinstance(value, str) else value
        actions.processes.new_messages.clear()
        actions.processes.pop_actions()
        action = cast("Callable[..., None]", getattr(actions, str(request["action"])))
        try:
            action(**values)
        except CannotDrive as why:
            return {"cannot": str(why)}
        except StepRefused as why:
            return {"done": False, "why": str(why)}
        return {"done": True}

    def close(self) -> None:
        """End all processes."""
        if self.actions is not None:
            self.actions.close()


if __name__ == "__main__":
    system = ProcessSut()
    try:
        serve(system)
    finally:
        system.close()
