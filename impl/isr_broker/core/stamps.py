"""Messages as they travel while traces are written: with a number of their own, and what their sender knew.

A stamp has no meaning to a core; whoever hands a message to one takes the stamp off first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.core.messages import Message

VectorClock: TypeAlias = Mapping[str, int]
"""Of each life of each node, how many of its events are before this one (Fidge 1988, Mattern 1989)."""


@attrs.frozen
class Stamp:
    """The message's number, unique in the run, and the clock of the event that sent it."""

    message: str
    clock: VectorClock


@attrs.frozen
class Stamped:
    """A message with its stamp."""

    message: Message
    stamp: Stamp


def bare(message: Message | Stamped) -> Message:
    """The message itself."""
    return message.message if isinstance(message, Stamped) else message


# On the wire

TAG: Final = 10_000
"""The tagged field of a request's or an answer's header that has the stamps of the messages within."""

Place: TypeAlias = tuple[str, int]
"""Which message of a request it is: that about a topic's partition, or the only one, ("", 0)."""

ALONE: Final[Place] = ("", 0)


def stamp_tags(stamps: Mapping[Place, Stamp]) -> dict[int, bytes]:
    """Stamps as the tagged field; none if there are none, which is so unless traces are written."""
    if not stamps:
        return {}
    return {TAG: json.dumps([[*place, s.message, dict(s.clock)] for place, s in stamps.items()]).encode()}


def stamps_in(tags: Mapping[int, bytes]) -> dict[Place, Stamp]:
    """The stamps in the tagged field; none if it is not there or is nothing of the kind."""
    if TAG not in tags:
        return {}
    try:
        rows = cast("list[tuple[str, int, str, dict[str, int]]]", json.loads(tags[TAG]))
        return {
            (str(topic), int(number)): Stamp(str(message), {str(k): int(v) for k, v in clock.items()})
            for topic, number, message, clock in rows
        }
    except (ValueError, TypeError, AttributeError):
        return {}


def with_stamp(message: Message, stamp: Stamp | None) -> Message | Stamped:
    """The message with its stamp, if it has one."""
    return message if stamp is None else Stamped(message, stamp)


def stamp_of(envelope: Message | Stamped) -> Stamp | None:
    """The stamp of a message, if it has one."""
    return envelope.stamp if isinstance(envelope, Stamped) else None
