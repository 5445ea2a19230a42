"""Messages as they travel while traces are written: with a number of their own, and what their sender knew.

A stamp has no meaning to a core; whoever hands a message to one takes the stamp off first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from isr_broker.messages import Message

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
