"""The lines that Apache Kafka's brokers write with our agent in them (docs/kafka-trace.md), read into lives and events.

One file for each process, NODE.LIFE.jsonl, and `controller.1.jsonl`, which has what `__cluster_metadata` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from isr_broker.trace_reader import BadTrace, Event, Life, read_files, read_objects

FORMAT: Final = "insync/kafka-trace/1"

STEPS: Final = frozenset(
    """
    opened leads follows appends fetched diverges watermark proposes adopts refused copies truncates restarts
    decides broker
    """.split()  # noqa: SIM905 - a list of names
)
"""Lines that tell of a step; the others tell of an answer, or of something that changes no variable of the model."""


def is_kafka(first: bytes) -> bool:
    """Whether a file that begins so is of this format."""
    return f'"{FORMAT}"'.encode() in first.split(b"\n", 1)[0]


def of_kafka(lives: Iterable[Life]) -> bool:
    """Whether these lives are of Kafka's brokers."""
    return any(life.header.get("format") == FORMAT for life in lives)


def read_traces(files: Iterable[tuple[str, bytes]]) -> list[Life]:
    """Every life in these files, whether our brokers wrote them or Kafka's; BadTrace if some are of the one and some of
    the other."""
    known = list(files)
    return read_kafka(known) if any(is_kafka(data) for _, data in known) else read_files(known)


def read_kafka(files: Iterable[tuple[str, bytes]]) -> list[Life]:
    """Every life in these files, by their names and what is in them; BadTrace if one is of another format."""
    lives = [_life(name.removesuffix(".jsonl"), data) for name, data in files]
    return sorted(lives, key=lambda life: (life.node, int(life.name.rpartition(".")[2])))


def _life(name: str, data: bytes) -> Life:
    objects, is_torn = read_objects(name, data, FORMAT)
    if not objects:
        return Life(name, {}, (), is_torn)
    events: list[Event] = []
    for number, says in enumerate(objects[1:], 1):
        what = says.get("what")
        if says.get("n") != number or not isinstance(what, str):
            raise BadTrace(f"{name}, line {number + 1}: line {number} of the process is expected")
        events.append(Event(name, number, {}, {**says, "action" if what in STEPS else "input": what}))
    return Life(name, objects[0], tuple(events), is_torn)


def in_time(lives: Sequence[Life]) -> list[Event]:
    """All events in the order of the machine's clock, which all processes share; those of a life in their own."""
    entries: list[tuple[int, str, int, Event]] = []
    for life in lives:
        at = 0
        for event in life.events:
            told = event.says.get("at")
            at = max(at, told if isinstance(told, int) else 0)
            entries.append((at, event.life, event.number, event))
    return [event for *_, event in sorted(entries, key=lambda one: one[:3])]
