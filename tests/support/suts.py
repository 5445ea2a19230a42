"""Systems under test for the tests of `insync conform`, with their driver in the same process."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import cast

from isr_broker.snapshot import Json
from isr_conform.compared_run import ComparedRun
from isr_conform.conformance import carried_out
from isr_conform.conformance_result import ConformanceResult, Limits, Schedule
from isr_conform.core_sut import CoreSut
from isr_conform.sut_client import AnsweredAtOnce, SutFailure
from isr_conform.sut_server import InvalidRequest, answer_hello
from isr_conform.value_json import JsonObject
from isr_lang import Instance
from isr_lang.declare import Value
from isr_model import KIP_966
from isr_processes.process_sut import ProcessSut

SMALL = {"replicas": 2, "crashes": 0, "isr_changes": 1}
"""480 states."""


class CoresInProcess(AnsweredAtOnce):
    """The broker's cores behind the protocol, in this process; `change_answer` may falsify an answer."""

    def __init__(
        self,
        change_answer: Callable[[str, JsonObject, JsonObject], JsonObject] = lambda do, request, answer: answer,
    ) -> None:
        super().__init__()
        self.cores, self.change_answer, self.request_count = CoreSut(), change_answer, 0

    def ask(self, do: str, **more: Json) -> JsonObject:
        self.request_count += 1
        request = cast("JsonObject", json.loads(json.dumps(more)))
        try:
            answer = answer_hello(self.cores, request) if do == "hello" else self.cores.handle(do, request)
        except InvalidRequest as problem:
            raise SutFailure(str(problem)) from None
        return self.change_answer(do, request, cast("JsonObject", json.loads(json.dumps(answer))))


def drive(system: CoresInProcess, limits: Limits | None = None, **constants: int) -> ConformanceResult:
    """Drive a system within SMALL bounds, or those given."""
    instance = Instance(KIP_966, {**SMALL, **constants})
    return carried_out(ComparedRun(instance, system, limits or Limits()))


class ProcessesInProcess(AnsweredAtOnce):
    """Real broker processes, without a process for the system under test before them."""

    def __init__(self) -> None:
        super().__init__()
        self.sut, self.request_count = ProcessSut(), 0

    def ask(self, do: str, **more: Json) -> JsonObject:
        self.request_count += 1
        try:
            return answer_hello(self.sut, more) if do == "hello" else self.sut.handle(do, more)
        except InvalidRequest as problem:
            raise SutFailure(str(problem)) from None


@contextmanager
def processes(constants: Mapping[str, Value], limits: Limits) -> Generator[tuple[ProcessesInProcess, ComparedRun]]:
    """Real broker processes, and a run that is to drive them; the processes end with the context."""
    system = ProcessesInProcess()
    try:
        instance = Instance(KIP_966, constants)
        yield system, ComparedRun(instance, system, limits)
    finally:
        system.sut.close()


def schedule(leader: int, *steps: tuple[str, Mapping[str, object]]) -> Limits:
    """Limits that drive these steps, from the initial state that `leader` leads."""
    return Limits(schedule=Schedule(initial={"first": leader}, steps=steps))
