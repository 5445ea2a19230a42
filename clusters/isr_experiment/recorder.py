"""The history of a run, as JSON lines of docs/history.md, written by everybody who does or sees something."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import attrs

from isr_experiment.network import CLIENTS

TOPIC = "t"
PARTITION = f"{TOPIC}-0"


@attrs.define(eq=False)
class Recorder:
    """Lines in the order in which things happened; times are nanoseconds since `began`, of the monotonic clock."""

    path: Path
    claims: Mapping[str, object]
    began: int = attrs.field(factory=time.monotonic_ns)
    topic: str = TOPIC
    """What is written to, its partition 0."""
    acked: dict[int, int] = attrs.field(factory=dict[int, int])
    """When each value was acknowledged."""
    send_times: dict[int, int] = attrs.field(factory=dict[int, int])
    """When each value was sent."""
    offsets: dict[int, int] = attrs.field(factory=dict[int, int])
    """At which offset it was acknowledged, where its producer was told."""
    marks: list[tuple[str, int]] = attrs.field(factory=list[tuple[str, int]])
    """Where each phase of the schedule begins."""
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _file: TextIO = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._file = self.path.open("w", encoding="utf-8")
        self._file.write(json.dumps({"history": 1, "settings": dict(self.claims)}) + "\n")

    @property
    def partition(self) -> str:
        """Its one partition, as histories name it."""
        return f"{self.topic}-0"

    def now(self) -> int:
        """Nanoseconds since the beginning."""
        return time.monotonic_ns() - self.began

    def says(self, f: str, kind: str | None = None, process: str | None = None, **more: object) -> int:
        """One line; its time."""
        with self._lock:
            at = self.now()
            line: dict[str, object] = {"time": at, "type": kind, "f": f, "process": process, **more}
            if not self._file.closed:
                self._file.write(json.dumps({k: v for k, v in line.items() if v is not None}) + "\n")
            return at

    def sends(self, process: str, value: int, acks: str) -> None:
        """A producer is given a value."""
        at = self.says("produce", "invoke", process, id=value, partition=self.partition, value=value, acks=acks)
        self.send_times[value] = at

    def note_outcome(self, process: str, value: int, offset: int | None, error: str = "") -> None:
        """What became of it. A client that tries again does not say whether an earlier try was appended, so that
        no error of its is definite."""
        if error:
            self.says("produce", "info", process, id=value, error=error)
        else:
            at = self.says("produce", "ok", process, id=value, offset=offset)
            self.acked[value] = at
            if offset is not None:
                self.offsets[value] = offset

    def phase(self, name: str) -> None:
        """The schedule goes on to something else."""
        self.marks.append((name, self.now()))

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            self._file.close()


def name_of(node: int) -> str:
    """For people."""
    return "clients" if node == CLIENTS else f"broker {node}"
