"""The settings of a topic, by Kafka's names: which may be given, which values they may have, what they come to.

Kafka: LogConfig, and TopicConfig for the names. Those in `CHANGEABLE` have an effect. Of the others those are taken
that change nothing here, so that tools which always name them can create topics; a value that would have to change
something is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isr_broker.settings import MAX_INT, MAX_LONG, Settings, truth, whole_number

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
LARGEST: Final = "max.message.bytes"
CHANGEABLE: Final = (MIN_ISR, UNCLEAN, LARGEST)
"""What may differ from topic to topic, and be changed while the broker runs."""

_ONLY: Final = {"cleanup.policy": "delete", "compression.type": "producer", "message.timestamp.type": "CreateTime"}
"""Settings with the one value that is what is done anyway."""

_RANGES: Final = {
    MIN_ISR: (1, MAX_INT),
    LARGEST: (0, MAX_INT),
    "delete.retention.ms": (0, MAX_LONG),
    "file.delete.delay.ms": (0, MAX_LONG),
    "flush.ms": (0, MAX_LONG),
    "max.compaction.lag.ms": (1, MAX_LONG),
    "message.timestamp.after.max.ms": (0, MAX_LONG),
    "message.timestamp.before.max.ms": (0, MAX_LONG),
    "min.compaction.lag.ms": (0, MAX_LONG),
    "segment.index.bytes": (4, MAX_INT),
    "segment.jitter.ms": (0, MAX_LONG),
    "segment.ms": (1, MAX_LONG),
}
"""Numbers, from the least to the largest (LogConfig).

But for the first two they have no effect: nothing is compacted, indexes are not files, and segments end by their size.
"""

_LONGEST_VALUE: Final = 32_767
"""Characters of a value (ConfigurationControlManager)."""


def fault(name: str, value: str, of_others: bool = False) -> str:
    """What is wrong with a setting of a topic, as a sentence; empty if nothing is.

    A topic `of_others` is one that brokers of Apache Kafka keep for themselves: what is not known here is theirs.
    """
    if len(value) > _LONGEST_VALUE:
        return f"{name}: a value of {len(value)} characters is longer than {_LONGEST_VALUE}"
    if name in _RANGES:
        (low, high), number = _RANGES[name], whole_number(value)
        good = number is not None and low <= number <= high
        return "" if good else f"{name}={value}: it must be a whole number from {low} to {high}"
    if name in (UNCLEAN, "preallocate"):
        return "" if truth(value) is not None else f"{name}={value}: it must be true or false"
    if of_others:
        return ""
    if name in _ONLY:
        return "" if value.strip() == _ONLY[name] else f"{name}={value}: it can only be {_ONLY[name]} here"
    return f"{name} cannot be set for a topic here; {', '.join(CHANGEABLE)} can"


def minimum(configs: Mapping[str, str], settings: Settings) -> int:
    """`min.insync.replicas` of a topic with these settings of its own, at a controller with those."""
    return int(configs[MIN_ISR]) if MIN_ISR in configs else settings.min_insync_replicas


def unclean(configs: Mapping[str, str], settings: Settings) -> bool:
    """`unclean.leader.election.enable` of a topic with these settings of its own, at a controller with those."""
    return truth(configs[UNCLEAN]) is True if UNCLEAN in configs else settings.unclean_leader_election_enable


def largest_batch(configs: Mapping[str, str], settings: Settings) -> int:
    """`max.message.bytes` of a topic with these settings of its own, at a leader with those."""
    return int(configs[LARGEST]) if LARGEST in configs else settings.message_max_bytes
