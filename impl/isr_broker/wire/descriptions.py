"""Settings as DescribeConfigs shows them: Kafka's names, their values, and where those come from."""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.messages import PartitionMetadata
from isr_broker.settings import Settings
from isr_broker.wire.protocol import Answer

_OF_THE_TOPIC, _OF_THE_BROKER, _DEFAULT = 1, 4, 5
"""DescribeConfigsResponse.ConfigSource: DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG."""

_BOOLEAN, _STRING, _LONG = 1, 2, 5
"""DescribeConfigsResponse.ConfigType."""

TOPIC_NAMES: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "max.message.bytes": "message.max.bytes",
    "segment.bytes": "log.segment.bytes",
    "index.interval.bytes": "log.index.interval.bytes",
    "flush.messages": "log.flush.interval.messages",
    "retention.ms": "log.retention.ms",
    "retention.bytes": "log.retention.bytes",
}
"""What a topic's settings are called when they are the broker's (ServerTopicConfigSynonyms)."""


def described_broker(settings: Settings) -> list[Answer]:
    """All settings of the broker."""
    default = Settings().properties()
    return [
        _described(name, value, _DEFAULT if value == default[name] else _OF_THE_BROKER)
        for name, value in sorted(settings.properties().items())
    ]


def described_topic(partition: PartitionMetadata, settings: Settings) -> list[Answer]:
    """The settings of a topic; one that is not the broker's was given when the topic was created."""
    broker = {c["name"]: c for c in described_broker(settings)}
    own = attrs.evolve(
        settings,
        min_insync_replicas=partition.min_insync_replicas,
        unclean_leader_election_enable=partition.unclean_leader_election,
    ).properties()
    found: list[Answer] = []
    for name, theirs in sorted(TOPIC_NAMES.items()):
        known = broker[theirs]
        same = own[theirs] == known["value"]
        found.append({**known, "name": name} if same else _described(name, own[theirs], _OF_THE_TOPIC))
    return found


def _described(name: str, value: str, source: int) -> Answer:
    """One setting, read-only since nothing here can be changed while it runs."""
    kind = _BOOLEAN if value in ("true", "false") else _LONG if value.removeprefix("-").isdigit() else _STRING
    return {
        "name": name,
        "value": value,
        "read_only": True,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [],
        "config_type": kind,
        "documentation": None,
    }
