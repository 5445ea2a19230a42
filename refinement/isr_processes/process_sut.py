"""Real broker processes as a system under test: `insync conform --sut "python -m isr_processes.process_sut"`.

One process for each broker and one for the controller, with real sockets and files (docs/conform.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from isr_broker.core.messages import BrokerId
from isr_conform.sut_server import Unanswerable, serve
from isr_conform.value_json import Object, state_said
from isr_lang import Instance
from isr_processes.process_actions import Processes
from isr_processes.process_control import Stuck
from isr_processes.process_state import Cannot, Refuses
from isr_replay.core_system import NoSuchCores
from isr_replay.packed_states import OutOfRange


class Real:
    """The processes behind the protocol."""

    def __init__(self) -> None:
        self.instance: Instance | None = None
        self.processes: Processes | None = None

    def hello(self, instance: Instance) -> Object:
        """Everything is told; nothing can be saved."""
        try:
            self.instance, self.processes = instance, Processes(instance)
        except NoSuchCores as problem:
            raise Unanswerable(str(problem)) from None
        return {"name": "real broker processes"}

    def handle(self, do: str, request: Object) -> Object:
        """One request."""
        if self.processes is None or self.instance is None:
            raise Unanswerable("hello comes first")
        try:
            match do:
                case "reset":
                    state = cast("dict[str, str]", request["state"])
                    self.processes.begin(self._broker(state["controller_leader"]))
                    return {}
                case "step":
                    return self._step(self.processes, request)
                case "snapshot":
                    bits = self.processes.bits()
                    return {"state": state_said(self.instance, self.processes.cores.packing.unpacked(bits))}
                case _:
                    raise Unanswerable(f"'{do}' is no request that this answers")
        except (Stuck, OutOfRange) as problem:
            raise Unanswerable(str(problem)) from None

    def _broker(self, replica: str) -> BrokerId:
        return int(replica.removeprefix("r"))

    def _step(self, processes: Processes, request: Object) -> Object:
        given = cast("dict[str, str | int | list[str]]", request["parameters"])
        values: dict[str, object] = {}
        for name, value in given.items():
            if isinstance(value, list):
                values[name] = [self._broker(r) for r in value]
            else:
                values[name] = self._broker(value) if isinstance(value, str) else value
        processes.machines.fresh.clear()
        processes.machines.took_since()
        action = cast("Callable[..., None]", getattr(processes, str(request["action"])))
        try:
            action(**values)
        except Cannot as why:
            return {"cannot": str(why)}
        except Refuses as why:
            return {"done": False, "why": str(why)}
        return {"done": True}

    def close(self) -> None:
        """End all processes."""
        if self.processes is not None:
            self.processes.close()


if __name__ == "__main__":
    system = Real()
    try:
        serve(system)
    finally:
        system.close()
