"""One unmodified broker as a system under test: `insync conform --sut "broker:COMMAND"` (docs/own-broker.md).

It is replica r1 of the model. All other steps the model takes alone, and tells their outcome (`surroundings`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

import attrs

from isr_broker.snapshot import Json
from isr_conform.sut_client import PROTOCOL
from isr_conform.value_json import JsonObject
from isr_twin.broker_steps import ME, BrokerSteps, StepRefused, TimerFired, Values
from isr_twin.sockets import Wire
from isr_twin.surroundings import BrokerStuck, Surroundings

ACTIONS: Final = (
    "leader_appends",
    "leader_answers_fetch",
    "leader_answers_diverging",
    "leader_proposes_shrink",
    "leader_proposes_expansion",
    "leader_adopts_isr",
    "leader_rolls_back",
    "becomes_leader",
    "becomes_follower",
    "leader_learns_isr",
    "follower_sends_fetch",
    "follower_appends",
    "follower_truncates",
    "broker_crashes",
    "broker_restarts",
)
VARIABLES: Final = (
    *("log", "high_watermark", "leader", "leader_epoch", "acked"),
    *("fetch", "fetch_epoch", "fetch_offset", "fetch_last_epoch", "fetch_record", "fetch_watermark"),
    *("alter", "alter_isr", "alter_leader_epoch", "alter_partition_epoch", "alter_broker_epoch"),
)
"""What shows on the wire, at some moments."""
SURROUNDINGS: Final = (
    *("alive", "log", "leader", "leader_epoch", "broker_epoch", "isr", "pending_isr", "partition_epoch"),
    *("follower_end", "follower_broker_epoch"),
    *("fetch", "fetch_to", "fetch_epoch", "fetch_offset", "fetch_last_epoch", "fetch_record", "fetch_watermark"),
    *("alter", "controller_leader", "controller_epoch", "controller_partition_epoch", "controller_isr"),
    *("written_in", "acked"),
)
"""What is told of the model's state before a step."""
SETTINGS: Final[dict[str, Json]] = {"acks": "all", "consumers": 0, "unclean": False, "lossy_crashes": 0, "shutdowns": 0}
"""Settings with which a broker is driven."""
AGAIN: Final = 4
"""So often a way is gone again if a timer of the broker fired too early."""
SETTLES: Final = 2.0


class InvalidRequest(Exception):
    """A request that cannot be answered."""


@attrs.define(eq=False)
class BrokerSut:
    """Answers the requests of docs/conform.md with one broker, which `command` starts."""

    command: str
    root: Path
    wire: Wire
    lag: float
    settings: dict[str, str]
    steps: BrokerSteps | None = None
    constants: Values = attrs.field(factory=dict[str, "Json"])
    initial: Values = attrs.field(factory=dict[str, "Json"])
    way: list[tuple[str, Values, Values]] = attrs.field(factory=list["tuple[str, Values, Values]"])

    def answer(self, line: str) -> JsonObject:
        """The answer to one line."""
        try:
            request = cast("JsonObject", json.loads(line))
            match request.get("do"):
                case "hello":
                    return self._hello(cast("Values", request["constants"]))
                case "reset":
                    self.initial, self.way = cast("Values", request["state"]), []
                    self._go(lambda: self._steps().reset(self.initial))
                    return {}
                case "step":
                    action, parameters = str(request["action"]), cast("Values", request["parameters"])
                    return self._step(action, parameters, cast("Values", request["surroundings"]))
                case "snapshot":
                    return {"state": self._snapshot()}
                case other:
                    return {"error": f"'{other}' is no request that this answers"}
        except (InvalidRequest, BrokerStuck, StepRefused, TimerFired, OSError) as problem:
            return {"error": f"{problem}"}

    def _steps(self) -> BrokerSteps:
        if self.steps is None:
            raise InvalidRequest("hello comes first")
        return self.steps

    def _hello(self, constants: Values) -> JsonObject:
        for name, value in SETTINGS.items():
            if constants.get(name, value) != value:
                raise InvalidRequest(f"a broker is driven with {name} {value} only")
        if self.steps is None or constants != self.constants:
            self.close()
            self.steps, self.constants = BrokerSteps(self._surroundings(constants)), dict(constants)
        return {
            "protocol": PROTOCOL,
            "name": "a broker",
            "variables": _those(VARIABLES, constants),
            "actions": list(ACTIONS),
            "surroundings": _those(SURROUNDINGS, constants),
            "node": ME,
            "settles": SETTLES,
        }

    def _surroundings(self, constants: Values) -> Surroundings:
        return Surroundings(
            root=self.root,
            command=self.command,
            peers=range(2, cast("int", constants["replicas"]) + 1),
            lag=self.lag,
            settings={"min.insync.replicas": str(constants.get("min_insync", 1)), **self.settings},
            wire=self.wire,
        )

    def _step(self, action: str, parameters: Values, model: Values) -> JsonObject:
        step = (action, parameters, model)
        try:
            self._go(lambda: self._steps().step(*step), self.way)
        except TimerFired:
            return {"cannot": "a timer of the broker fires before it is to"}
        except StepRefused as why:
            return {"done": False, "why": str(why)}
        self.way.append(step)
        return {"done": True}

    def _snapshot(self) -> JsonObject:
        """What shows. What the broker asks for unasked shows only if it does so each time that the way is gone."""
        snapshots = list[JsonObject]()
        with contextlib.suppress(TimerFired):
            self._go(lambda: snapshots.append(self._steps().snapshot()), self.way)
        return snapshots[-1] if snapshots else self._steps().snapshot(with_surprises=True)

    def _go(self, what: Callable[[], None], way: Sequence[tuple[str, Values, Values]] | None = None) -> None:
        """Do something, and again if a timer of the broker fired meanwhile: from a reset, along the way before it."""
        steps = self._steps()
        for again in range(AGAIN):
            with contextlib.suppress(TimerFired):
                if again and way is not None:
                    steps.reset(self.initial)
                    for before in way:
                        steps.step(*before)
                return what()
        raise TimerFired

    def close(self) -> None:
        """Kill the broker."""
        if self.steps is not None:
            self.steps.around.close()


def _those(names: Sequence[str], constants: Values) -> list[Json]:
    """Without what is about incarnations, where nothing can restart."""
    restarts = any(cast("int", constants.get(name, 0)) for name in ("crashes", "lossy_crashes", "shutdowns"))
    gone = () if restarts else ("broker_epoch", "follower_broker_epoch", "alter_broker_epoch")
    return [name for name in names if name not in gone]


def serve(sut: BrokerSut) -> None:
    """Answer one request a line from standard input, and let the broker go on meanwhile."""
    lines, text, ends = deque[str](), bytearray(), False
    pump = sut.wire

    def read() -> None:
        nonlocal ends
        chunk = os.read(sys.stdin.fileno(), 1 << 16)
        ends = ends or not chunk
        text.extend(chunk)
        while (end := text.find(b"\n")) >= 0:
            lines.append(text[:end].decode())
            del text[: end + 1]

    pump.watch_file(sys.stdin.fileno(), read)
    while lines or not ends:
        while lines:
            print(json.dumps(sut.answer(lines.popleft())), flush=True)
        if sut.steps is not None:
            sut.steps.around.pump(0.05)
        else:
            pump.pump(0.05)


def main(argv: Sequence[str] | None = None) -> None:
    """Serve, with a command in which {properties}, {data}, {port}, {controller} and {id} stand for what they say."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("command", help="starts the broker")
    parser.add_argument("--lag", type=float, default=2.0, help="seconds of replica.lag.time.max.ms")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the broker")
    given = parser.parse_args(argv)
    settings = dict(word.split("=", 1) for word in given.set)
    with tempfile.TemporaryDirectory(prefix="insync-broker-") as root:
        sut = BrokerSut(given.command, Path(root), Wire(), given.lag, settings)
        try:
            serve(sut)
        finally:
            sut.close()


if __name__ == "__main__":
    main()
