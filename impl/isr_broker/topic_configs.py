"""The settings of a topic, by Kafka's names: which may be given, which values they may have, what they come to.

Kafka: LogConfig, and TopicConfig for the names. Those in `CHANGEABLE` have an effect. Of the others those are taken
that change nothing here, so that tools which always name them can create topics; a value that would have to change
something is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isr_broker.settings import Settings

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
LARGEST: Final = "max.message.bytes"
CHANGEABLE: Final = (MIN_ISR, UNCLEAN, LARGEST)
"""What may differ from topic to topic, and be changed while the broker runs."""

_ONLY: Final = {"cleanup.policy": "delete", "compression.type": "producer", "message.timestamp.type": "CreateTime"}
"""Settings with the one value that is what is done anyway."""

_NUMBERS: Final = frozenset(
    {
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.ms",
        "max.compaction.lag.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "min.compaction.lag.ms",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
    }
)
"""Numbers without effect: nothing is compacted, indexes are not files, and segments end by their size."""


def fault(name: str, value: str) -> str:
    """What is wrong with a setting of a topic, as a sentence; empty if nothing is."""
    if name == MIN_ISR:
        good = value.isascii() and value.isdigit() and int(value) >= 1
        return "" if good else f"{name}={value}: it must be a whole number, at least 1"
    if name in (UNCLEAN, "preallocate"):
        return "" if value in ("true", "false") else f"{name}={value}: it must be true or false"
    if name in _ONLY:
        return "" if value == _ONLY[name] else f"{name}={value}: it can only be {_ONLY[name]} here"
    if name == LARGEST:
        good = value.isascii() and value.isdigit()
        return "" if good else f"{name}={value}: it must be a whole number, at least 0"
    if name in _NUMBERS:
        good = value.removeprefix("-").isdigit() and value.isascii()
        return "" if good else f"{name}={value}: it must be a whole number"
    return f"{name} cannot be set for a topic here; {', '.join(CHANGEABLE)} can"


def minimum(configs: Mapping[str, str], settings: Settings) -> int:
    """`min.insync.replicas` of a topic with these settings of its own, at a controller with those."""
    return int(configs[MIN_ISR]) if MIN_ISR in configs else settings.min_insync_replicas


def unclean(configs: Mapping[str, str], settings: Settings) -> bool:
    """`unclean.leader.election.enable` of a topic with these settings of its own, at a controller with those."""
    return configs[UNCLEAN] == "true" if UNCLEAN in configs else settings.unclean_leader_election_enable


def largest_batch(configs: Mapping[str, str], settings: Settings) -> int:
    """`max.message.bytes` of a topic with these settings of its own, at a leader with those."""
    return int(configs[LARGEST]) if LARGEST in configs else settings.message_max_bytes
