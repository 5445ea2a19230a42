"""The other side of docs/conform.md: a system under test as a process that answers one line of JSON with another.

Whatever it does wrong (it ends, it does not answer in time, it answers what means nothing) is one sentence.
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
from typing import Final, Protocol, cast

import attrs

from isr_broker.snapshot import Json
from isr_conform.value_json import Object

PROTOCOL: Final = "insync/conform/1"
LONGEST: Final = 1 << 24
"""Bytes of one answer."""


class Broken(Exception):
    """The system under test cannot be asked any more; the message says why. `ended`: it ended, or it hangs."""

    def __init__(self, why: str, ended: bool = False) -> None:
        super().__init__(why)
        self.ended = ended


class Party(Protocol):
    """Whoever answers requests; `asked` counts them."""

    asked: int

    def ask(self, do: str, **more: Json) -> Object:
        """One request and its answer; Broken if there is none, or if it says that it is an error."""
        ...


@attrs.define(eq=False)
class Talk:
    """A conversation with a process; `patience` is how many seconds it has for an answer."""

    command: str
    patience: float
    process: subprocess.Popen[bytes] = attrs.field(init=False)
    asked: int = 0
    _errors: int = attrs.field(init=False)
    _rest: bytes = b""

    def __attrs_post_init__(self) -> None:
        try:
            words = shlex.split(self.command)
        except ValueError as problem:
            raise Broken(f"the command '{self.command}' cannot be read: {problem}") from None
        if not words:
            raise Broken("the command is empty")
        said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._errors = os.dup(said.fileno())
        try:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)
        except OSError as problem:
            os.close(self._errors)
            raise Broken(f"'{words[0]}' cannot be started: {(problem.strerror or str(problem)).lower()}") from None
        finally:
            said.close()

    def ask(self, do: str, **more: Json) -> Object:
        """One request and its answer; Broken if there is none, or if it says that it is an error."""
        self.asked += 1
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self._gone(do) from None
        line = self._line(do)
        try:
            answer = cast("Json", json.loads(line))
        except ValueError:
            raise Broken(f"it answers {do} with {_short(line)}, which is no JSON") from None
        if not isinstance(answer, dict):
            raise Broken(f"it answers {do} with {_short(line)}, which is no object")
        if "error" in answer:
            raise Broken(f"it answers {do} with an error: {answer['error']}")
        return answer

    def _line(self, do: str) -> bytes:
        assert self.process.stdout is not None
        end, descriptor = time.monotonic() + self.patience, self.process.stdout.fileno()
        parts = [self._rest]
        size = len(self._rest)
        while b"\n" not in parts[-1]:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise Broken(f"it does not answer {do} within {self.patience:g} s", ended=True)
            read = os.read(descriptor, 1 << 16)
            if not read:
                raise self._gone(do)
            parts.append(read)
            size += len(read)
            if size > LONGEST:
                raise Broken(f"its answer to {do} has no end after {LONGEST} bytes")
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _gone(self, do: str) -> Broken:
        try:
            code = self.process.wait(self.patience)
        except subprocess.TimeoutExpired:
            return Broken(f"it closed its output and did not answer {do}", ended=True)
        said = os.pread(self._errors, 1 << 16, max(0, os.fstat(self._errors).st_size - (1 << 16)))
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        why = f": {last[0].strip()}" if last else ""
        return Broken(f"it ended with {how} when it was asked to {do}{why}", ended=True)

    def close(self) -> None:
        """Let it end, and end it if it does not."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):  # it has ended, and something had not been written yet
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
