"""The server side of docs/conform.md, for systems under test that are written in Python.

A system under test is an object with the methods of `SystemUnderTest`. `serve` reads one request a line from standard
input, calls the object, and writes one answer a line to standard output, until standard input ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from isr_broker.snapshot import Json
from isr_conform.sut_client import PROTOCOL
from isr_conform.value_json import JsonObject
from isr_lang import Instance
from isr_lang.instance import SettingError
from isr_model import KIP_966


class InvalidRequest(Exception):
    """A request that the system cannot answer. The driver is sent the message, and ends its run."""


class SystemUnderTest(Protocol):
    """The requests that a system under test answers; every method may raise InvalidRequest."""

    def hello(self, instance: Instance) -> JsonObject:
        """The answer to `hello`, without the field `protocol`, which `answer_hello` adds."""
        ...

    def handle(self, do: str, request: JsonObject) -> JsonObject:
        """The answer to any other request; `do` names it."""
        ...


def answer_hello(system: SystemUnderTest, request: JsonObject) -> JsonObject:
    """The answer to `hello`, for the instance of the model that the request names by design and constants."""
    if request.get("protocol") != PROTOCOL:
        raise InvalidRequest(f"this speaks {PROTOCOL}")
    if request.get("design") != KIP_966.name:
        raise InvalidRequest(f"this is compared with {KIP_966.name} only")
    try:
        instance = Instance(KIP_966, cast("dict[str, int | str | bool]", request.get("constants", {})))
    except SettingError as problem:
        raise InvalidRequest(str(problem)) from None
    return {"protocol": PROTOCOL, **system.hello(instance)}


def serve(
    system: SystemUnderTest, lines: Iterable[str] | None = None, tell: Callable[[str], None] | None = None
) -> None:
    """Answer one request a line, from `lines` (standard input) through `tell` (standard output)."""
    for line in sys.stdin if lines is None else lines:
        answer: JsonObject
        try:
            request = cast("Json", json.loads(line))
            if not isinstance(request, dict) or not isinstance(do := request.get("do"), str):
                raise InvalidRequest("a request is an object that says what to do")
            answer = answer_hello(system, request) if do == "hello" else system.handle(do, request)
        except (InvalidRequest, ValueError) as problem:
            answer = {"error": str(problem)}
        text = json.dumps(answer)
        if tell is not None:
            tell(text)
        else:
            print(text, flush=True)
