"""Traces read again: lives, their events, and one order of all events that no cause contradicts.

A life may end in the middle of a line, when its process was killed: the torn end is left out, and `Life.has_torn_end`
says so. Anything else that is no line of the format is BadTrace.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import cast

import attrs

from isr_broker.snapshot import Json
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.trace import FORMAT


class BadTrace(ValueError):
    """A trace that no broker has written; the message says where and why."""


@attrs.frozen
class Event:
    """One line: whose, its number there, what its writer knew, and everything it says."""

    life: str
    number: int
    clock: Mapping[str, int]
    says: Mapping[str, Json]

    def after(self, other: Event) -> bool:
        """The other is among the causes of this one, or the same (Fidge, Mattern)."""
        return self.clock.get(other.life, 0) >= other.number


@attrs.frozen
class Life:
    """The trace of one process of a node: what its first line says, and its events."""

    name: str
    header: Mapping[str, Json]
    events: tuple[Event, ...]
    has_torn_end: bool

    @property
    def node(self) -> str:
        """A broker's number, or `controller`."""
        return self.name.partition(".")[0]


def read_objects(name: str, data: bytes, begins: str) -> tuple[list[Mapping[str, Json]], bool]:
    """The objects of one file, a line each, and whether its last line is torn. BadTrace where a line is no object, or
    the first says another format than `begins`."""
    *lines, rest = data.split(b"\n")
    objects: list[Mapping[str, Json]] = []
    for number, line in enumerate(lines, 1):
        try:
            value = cast("object", json.loads(line))
        except (ValueError, RecursionError) as error:
            raise BadTrace(f"{name}, line {number}: {error}") from error
        if not isinstance(value, dict):
            raise BadTrace(f"{name}, line {number}: no object")
        objects.append(cast("dict[str, Json]", value))
    if objects and objects[0].get("format") != begins:
        raise BadTrace(f"{name} begins with the format {objects[0].get('format')}, not {begins}")
    return objects, bool(rest)


def read_life(name: str, data: bytes) -> Life:
    """One file."""
    objects, has_torn_end = read_objects(name, data, FORMAT)
    if not objects:
        return Life(name, {}, (), has_torn_end)
    events: list[Event] = []
    for number, says in enumerate(objects[1:], 1):
        clock = says.get("clock")
        if says.get("n") != number or not isinstance(clock, dict) or clock.get(name) != number:
            raise BadTrace(f"{name}, line {number + 1}: event {number} is expected, with its clock")
        events.append(Event(name, number, cast("dict[str, int]", clock), says))
    return Life(name, objects[0], tuple(events), has_torn_end)


def read_lives(disk: Disk) -> list[Life]:
    """Every life in a folder, of each node in order."""
    lives: list[Life] = []
    for name in disk.names(ROOT):
        if name.endswith(".jsonl"):
            file = disk.open(name)
            lives.append(read_life(name.removesuffix(".jsonl"), file.read(0, file.size())))
            file.close()
    return _by_node(lives)


def read_files(files: Iterable[tuple[str, bytes]]) -> list[Life]:
    """Every life in these files, their names, NODE.LIFE.jsonl, and what is in them; of each node in order."""
    return _by_node(read_life(name.removesuffix(".jsonl"), data) for name, data in files)


def _by_node(lives: Iterable[Life]) -> list[Life]:
    return sorted(lives, key=lambda life: (life.node, int(life.name.rpartition(".")[2])))


def in_order(lives: Iterable[Life]) -> Iterator[Event]:
    """All events, each after all of its causes and after the earlier lives of its node; else by when they were noted.

    BadTrace if a message was received whose sending no file has.
    """
    lives = list(lives)
    lives_by_name = {life.name: life for life in lives}
    before: dict[str, str] = {}
    for one, next_one in pairwise(lives):
        if one.node == next_one.node:
            # A process that was killed before its first event left a life without any: it is no wall.
            before[next_one.name] = one.name if one.events else before.get(one.name, one.name)
    yielded_counts = dict.fromkeys(lives_by_name, 0)
    ready: list[tuple[int, str]] = []
    waiting: dict[str, list[str]] = {}

    def offer(name: str) -> None:
        """Put the life's next event among those that may come, or where what it waits for will wake it."""
        life = lives_by_name[name]
        if yielded_counts[name] == len(life.events):
            return
        event = life.events[yielded_counts[name]]
        earlier = before.get(name)
        wanted = {**event.clock, **({earlier: len(lives_by_name[earlier].events)} if earlier is not None else {})}
        for other, count in wanted.items():
            if other == name:
                continue
            if other not in lives_by_name or count > len(lives_by_name[other].events):
                raise BadTrace(f"{name}, event {event.number} knows event {count} of {other}, which is not there")
            if yielded_counts[other] < count:
                waiting.setdefault(other, []).append(name)
                return
        at = event.says.get("at")
        heapq.heappush(ready, (at if isinstance(at, int) else 0, name))

    for name in lives_by_name:
        offer(name)
    remaining_events = sum(len(life.events) for life in lives)
    while ready:
        _, name = heapq.heappop(ready)
        yield lives_by_name[name].events[yielded_counts[name]]
        yielded_counts[name] += 1
        remaining_events -= 1
        offer(name)
        for woken in waiting.pop(name, []):
            offer(woken)
    if remaining_events:
        raise BadTrace(f"{remaining_events} events wait for each other")
