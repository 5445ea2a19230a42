"""The JSON of kafka-reassign-partitions, or Cruise Control's proposals: which replicas each partition is to have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Final, cast

import attrs

EXAMPLE: Final = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 5, 6]}]}'


class BadRunbook(ValueError):
    """A step that cannot be read: one sentence, with the nearest valid spelling."""


class BadAssignment(BadRunbook):
    """A file of a reassignment that cannot be read: one sentence that names the file."""


@attrs.frozen(cache_hash=True)
class Assignment:
    """`pairs`: the name of a partition, such as `orders-0`, and the ids of its replicas in order, each name once."""

    pairs: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def replicas_of(self, partition: str) -> tuple[int, ...] | None:
        """The replicas that a partition is to have; None where it is not named."""
        return _by_name(self).get(partition)


@cache
def _by_name(assignment: Assignment) -> Mapping[str, tuple[int, ...]]:
    return dict(assignment.pairs)


NO_ASSIGNMENT: Final = Assignment()


def read_assignment(text: str, source: str) -> Assignment:
    """The assignment of a file. Directories are not read: a move within a broker changes no replica set.

    BadAssignment where the text is no such JSON, or a partition has no replicas, or the same broker twice.
    """
    try:
        whole: object = json.loads(text)
    except ValueError as problem:
        raise BadAssignment(f"{source} is no JSON ({problem}); it has one object (example: {EXAMPLE})") from None
    except RecursionError:
        raise BadAssignment(f"{source} is JSON that is nested too deeply (example: {EXAMPLE})") from None
    fields: Mapping[str, object] = cast("Mapping[str, object]", whole) if isinstance(whole, dict) else {}
    entries = fields.get("partitions", fields.get("proposals"))
    if not isinstance(entries, list):
        raise BadAssignment(f"{source} has no list of partitions, nor of proposals (example: {EXAMPLE}){_hint(fields)}")
    assignment: dict[str, tuple[int, ...]] = {}
    for entry in cast("list[object]", entries):
        name, replicas = _partition(entry, source)
        if assignment.setdefault(name, replicas) != replicas:
            raise BadAssignment(f"{source} gives {name} two sets of replicas")
    if not assignment:
        raise BadAssignment(f"{source} names no partition (example: {EXAMPLE})")
    return Assignment(tuple(assignment.items()))


def _hint(fields: Mapping[str, object]) -> str:
    """What to ask Cruise Control for, where its answer has a summary alone (OptimizationResult)."""
    is_summary = "summary" in fields or "goalSummary" in fields
    return "; Cruise Control lists its proposals where verbose=true and json=true are asked for" if is_summary else ""


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _partition(entry: object, source: str) -> tuple[str, tuple[int, ...]]:
    fields: Mapping[str, object] = cast("Mapping[str, object]", entry) if isinstance(entry, dict) else {}
    ids = fields.get("replicas", fields.get("newReplicas"))
    of: object = fields.get("topicPartition", fields)
    named: Mapping[str, object] = cast("Mapping[str, object]", of) if isinstance(of, dict) else {}
    topic, number = named.get("topic"), named.get("partition")
    if not isinstance(topic, str) or not _is_id(number) or not isinstance(ids, list):
        raise BadAssignment(
            f"{source} has a partition without a topic, a number or replicas: {json.dumps(entry)} (example: {EXAMPLE})"
        )
    replicas = tuple(cast("list[int]", ids))
    if not replicas or not all(map(_is_id, replicas)) or len(set(replicas)) < len(replicas):
        raise BadAssignment(f"{source}: the replicas of {topic}-{number} are brokers, each once, not {json.dumps(ids)}")
    return f"{topic}-{number}", replicas
