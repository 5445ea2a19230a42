"""The client of a system under test: it starts the process, writes one JSON object a line and reads one answer a line.

docs/conform.md states the protocol. When the system ends, is silent for too long, or answers something that the
protocol does not allow, the request raises `SutFailure` with one sentence that says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections import deque
from typing import Final, Protocol, cast

import attrs

from isr_broker.snapshot import Json
from isr_conform.value_json import JsonObject

PROTOCOL: Final = "insync/conform/1"
LONGEST: Final = 1 << 24
"""Bytes of one answer."""


class SutFailure(Exception):
    """The system under test cannot be driven any further; the message says why.

    `process_ended` is true if the process has ended or did not answer in time, and false if it broke the protocol.
    """

    def __init__(self, why: str, process_ended: bool = False) -> None:
        super().__init__(why)
        self.process_ended = process_ended


class SutClient(Protocol):
    """Anything that answers the requests of docs/conform.md: a process, or an object in a test."""

    @property
    def request_count(self) -> int:
        """How many requests were sent."""
        ...

    def ask(self, do: str, **more: Json) -> JsonObject:
        """Send one request and return its answer; SutFailure if no answer comes, or if the answer is an error."""
        ...

    def send(self, do: str, **more: Json) -> int:
        """Send one request whose answer is received later; how many bytes it is."""
        ...

    def receive(self) -> JsonObject:
        """The answer to the oldest request that was sent and not received; SutFailure as for `ask`."""
        ...


class AnsweredAtOnce:
    """A client whose requests are answered when they are sent: an object in a test."""

    def __init__(self) -> None:
        self._answers: deque[JsonObject] = deque()

    def ask(self, do: str, **more: Json) -> JsonObject:
        """As in SutClient."""
        raise NotImplementedError

    def send(self, do: str, **more: Json) -> int:
        """As in SutClient."""
        self._answers.append(self.ask(do, **more))
        return 0

    def receive(self) -> JsonObject:
        """As in SutClient."""
        return self._answers.popleft()


@attrs.define(eq=False)
class ProcessClient:
    """A system under test that is a process of its own; `patience` is how many seconds each answer may take."""

    command: str
    patience: float
    process: subprocess.Popen[bytes] = attrs.field(init=False)
    request_count: int = 0
    _errors: int = attrs.field(init=False)
    _rest: bytes = b""
    _open: deque[str] = attrs.field(factory=deque[str], init=False)
    """What the requests ask for that were sent and not answered yet."""

    def __attrs_post_init__(self) -> None:
        try:
            words = shlex.split(self.command)
        except ValueError as problem:
            raise SutFailure(f"the command '{self.command}' cannot be read: {problem}") from None
        if not words:
            raise SutFailure("the command is empty")
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._errors = os.dup(errors.fileno())
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C in the terminal ends the run in order, which ends the system
            )
        except OSError as problem:
            os.close(self._errors)
            raise SutFailure(f"'{words[0]}' cannot be started: {(problem.strerror or str(problem)).lower()}") from None
        finally:
            errors.close()

    def ask(self, do: str, **more: Json) -> JsonObject:
        """Send one request and return its answer; SutFailure if no answer comes, or if the answer is an error."""
        self.send(do, **more)
        return self.receive()

    def send(self, do: str, **more: Json) -> int:
        """Send one request whose answer is received later; how many bytes it is."""
        self.request_count += 1
        assert self.process.stdin is not None
        line = json.dumps({"do": do, **more}).encode() + b"\n"
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except OSError:
            raise self._end_failure(do) from None
        self._open.append(do)
        return len(line)

    def receive(self) -> JsonObject:
        """The answer to the oldest request that was sent and not received; SutFailure as for `ask`."""
        do = self._open.popleft()
        line = self._line(do)
        try:
            answer = cast("Json", json.loads(line))
        except (ValueError, RecursionError):
            raise SutFailure(f"it answers {do} with {_short(line)}, which is no JSON") from None
        if not isinstance(answer, dict):
            raise SutFailure(f"it answers {do} with {_short(line)}, which is no object")
        if "error" in answer:
            raise SutFailure(f"it answers {do} with an error: {answer['error']}")
        return answer

    def _line(self, do: str) -> bytes:
        assert self.process.stdout is not None
        end, descriptor = time.monotonic() + self.patience, self.process.stdout.fileno()
        parts = [self._rest]
        size = len(self._rest)
        while b"\n" not in parts[-1]:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise SutFailure(f"it does not answer {do} within {self.patience:g} s", process_ended=True)
            read = os.read(descriptor, 1 << 16)
            if not read:
                raise self._end_failure(do)
            parts.append(read)
            size += len(read)
            if size > LONGEST:
                raise SutFailure(f"its answer to {do} has no end after {LONGEST} bytes")
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _end_failure(self, do: str) -> SutFailure:
        try:
            code = self.process.wait(self.patience)
        except subprocess.TimeoutExpired:
            return SutFailure(f"it closed its output and did not answer {do}", process_ended=True)
        tail = os.pread(self._errors, 1 << 16, max(0, os.fstat(self._errors).st_size - (1 << 16)))
        last = tail.decode(errors="replace").strip().splitlines()[-1:]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        why = f": {last[0].strip()}" if last else ""
        return SutFailure(f"it ended with {how} when it was asked to {do}{why}", process_ended=True)

    def close(self) -> None:
        """Close the standard input of the process, which asks it to end; kill it if it does not end in time."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):  # the process has ended, and a part of a request was still in the buffer
            self.process.stdin.close()
        try:
            self.process.wait(min(self.patience, 30.0))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        os.close(self._errors)


def _short(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"
