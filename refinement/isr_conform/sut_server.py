"""The answering side of docs/conform.md: lines of JSON from stdin, one answer each to stdout, until stdin ends.

A system is an object with these methods; `serve` does the talking.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from isr_broker.snapshot import Json
from isr_conform.sut_client import PROTOCOL
from isr_conform.value_json import Object
from isr_lang import Instance
from isr_lang.instance import SettingError
from isr_model import KIP_966


class Unanswerable(Exception):
    """A request that cannot be answered: the message says why, and the driver gives up."""


class System(Protocol):
    """What a system under test answers; every method may raise Unanswerable."""

    def hello(self, instance: Instance) -> Object:
        """What it says of itself, but for the protocol."""
        ...

    def handle(self, do: str, request: Object) -> Object:
        """Any other request."""
        ...


def greeted(system: System, request: Object) -> Object:
    """The answer to hello, with the instance that it is about."""
    if request.get("protocol") != PROTOCOL:
        raise Unanswerable(f"this speaks {PROTOCOL}")
    if request.get("design") != KIP_966.name:
        raise Unanswerable(f"this is compared with {KIP_966.name} only")
    try:
        instance = Instance(KIP_966, cast("dict[str, int | str | bool]", request.get("constants", {})))
    except SettingError as problem:
        raise Unanswerable(str(problem)) from None
    return {"protocol": PROTOCOL, **system.hello(instance)}


def serve(system: System, lines: Iterable[str] | None = None, tell: Callable[[str], None] | None = None) -> None:
    """Answer every line."""
    for line in sys.stdin if lines is None else lines:
        answer: Object
        try:
            request = cast("Json", json.loads(line))
            if not isinstance(request, dict) or not isinstance(do := request.get("do"), str):
                raise Unanswerable("a request is an object that says what to do")
            answer = greeted(system, request) if do == "hello" else system.handle(do, request)
        except (Unanswerable, ValueError) as problem:
            answer = {"error": str(problem)}
        text = json.dumps(answer)
        if tell is not None:
            tell(text)
        else:
            print(text, flush=True)
