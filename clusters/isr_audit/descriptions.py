"""The texts in which Kafka's own tools describe a cluster, recognised by what a line looks like.

    kafka-topics.sh --describe        Topic: t  PartitionCount: 2  ReplicationFactor: 3  Configs: min.insync.replicas=2
                                          Topic: t  Partition: 0  Leader: 1  Replicas: 1,2,3  Isr: 1,2  Elr: 3
    kafka-configs.sh --describe       Dynamic configs for topic t are:
                                        min.insync.replicas=2 sensitive=false synonyms={...}
    kafka-features.sh describe        Feature: metadata.version  ...  FinalizedVersionLevel: 4.1-IV1  Epoch: 7
    server.properties                 min.insync.replicas=2
    kafka-log-dirs.sh --describe      {"version":1,"brokers":[{"broker":1,"logDirs":[{"partitions":[...

A file may hold several of these one after the other. Lines that are none of them are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import attrs

from isr_audit.cluster import OF_BROKER, Cluster, Partition, Topic

_NAME: Final = r"[A-Z]\w*(?: [A-Z]\w*)?"
_FIELD: Final = re.compile(rf"({_NAME}):[ ]?([^\t]*?)(?=\s*$|\t| {{2,}}(?=[A-Z])| (?={_NAME}:))")
"""`Isr: 1,2`, up to the next field; Kafka's tools put a tab between two, a copied text perhaps spaces."""
_FEATURE: Final = re.compile(r"^\s*Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)")
_HEADING: Final = re.compile(
    r"^\s*(?:Dynamic|All|Default) configs for (topic|brokers|broker) ?(\S*?)(?: in the cluster)? are:"
)
_OLD_HEADING: Final = re.compile(r"^\s*Configs for (topic|broker) '([^']+)' are (\S*)")
_ENTRY: Final = re.compile(r"^\s*([a-z][\w.-]*)=(.*?) sensitive=")
_PROPERTY: Final = re.compile(r"^([a-z][\w-]*(?:\.[\w-]+)+)\s*[=:]\s*(.*?)\s*$")
_OF_A_BROKER: Final = frozenset(
    (
        *("broker.id", "node.id", "process.roles", "zookeeper.connect", "controller.quorum.voters", "log.dirs"),
        *("controller.quorum.bootstrap.servers", "broker.rack", "default.replication.factor"),
        *(*OF_BROKER.values(), "inter.broker.protocol.version"),
    )
)
"""One of these tells a server.properties from any other file of properties."""
_NOBODY: Final = ("none", "-1", "N/A", "")


@attrs.define
class _Reader:
    """What the lines so far have told. `about`: whom the entries that follow are about."""

    source: str
    topics: dict[str, Topic] = attrs.field(factory=dict[str, Topic])
    brokers: dict[str, dict[str, str]] = attrs.field(factory=dict[str, dict[str, str]])
    defaults: dict[str, str] = attrs.field(factory=dict[str, str])
    features: dict[str, str] = attrs.field(factory=dict[str, str])
    about: tuple[str, str] = ("", "")
    sizes: dict[tuple[str, int], dict[int, int]] = attrs.field(factory=dict[tuple[str, int], dict[int, int]])

    def take(self, line: str) -> None:
        if line.startswith('{"'):
            self.take_logs(line)
        elif feature := _FEATURE.match(line):
            self.features[feature[1]] = feature[2]
        elif line.lstrip().startswith("Topic:"):
            self.take_topic(dict(_FIELD.findall(line.strip())))
        elif heading := _HEADING.match(line):
            self.about = (heading[1], heading[2])
        elif old := _OLD_HEADING.match(line):
            self.about = (old[1], old[2])
            for name, value in _pairs(old[3]).items():
                self.take_setting(name, value)
        elif entry := _ENTRY.match(line):
            self.take_setting(entry[1], entry[2])
        elif told := _PROPERTY.match(line):
            self.brokers.setdefault(self.source, {})[told[1]] = told[2]

    def take_topic(self, fields: Mapping[str, str]) -> None:
        name = fields.get("Topic", "")
        topic = self.topics.get(name, Topic(name, 0))
        if "PartitionCount" in fields:
            factor = fields.get("ReplicationFactor", "")
            told = {**topic.configs, **_pairs(fields.get("Configs", ""))}
            topic = attrs.evolve(topic, replicas=int(factor) if factor.isdecimal() else topic.replicas, configs=told)
        elif fields.get("Partition", "").isdecimal():
            seen = _partition(name, fields)
            others = tuple(p for p in topic.partitions if p.number != seen.number)
            few = min((n for n in (topic.replicas, len(seen.replicas)) if n), default=0)
            topic = attrs.evolve(topic, partitions=(*others, seen), replicas=few)
        else:
            return
        self.topics[name] = topic

    def take_logs(self, line: str) -> None:
        """The bytes of each replica's log; text that only looks like it is passed over."""
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            for of in json.loads(line)["brokers"]:
                for log in (p for folder in of["logDirs"] for p in folder["partitions"] if not p["isFuture"]):
                    topic, _, number = str(log["partition"]).rpartition("-")
                    self.sizes.setdefault((topic, int(number)), {})[int(of["broker"])] = int(log["size"])

    def topics_with_sizes(self) -> tuple[Topic, ...]:
        """The topics as they were told, and those of which only the sizes of logs were."""
        topic_by_name = {**{name: Topic(name, 0) for name, _ in self.sizes}, **self.topics}
        for (name, number), sizes in self.sizes.items():
            topic = topic_by_name[name]
            at = next((p for p in topic.partitions if p.number == number), Partition(name, number, None, (), ()))
            others = tuple(p for p in topic.partitions if p.number != number)
            topic_by_name[name] = attrs.evolve(topic, partitions=(*others, attrs.evolve(at, sizes=sizes)))
        return tuple(
            attrs.evolve(t, partitions=tuple(sorted(t.partitions, key=_number))) for t in topic_by_name.values()
        )

    def take_setting(self, name: str, value: str) -> None:
        kind, whom = self.about
        if kind == "topic":
            topic = self.topics.get(whom, Topic(whom, 0))
            self.topics[whom] = attrs.evolve(topic, configs={**topic.configs, name: value})
        elif kind == "broker" and whom:
            self.brokers.setdefault(whom, {})[name] = value
        elif kind:
            self.defaults[name] = value


def read_description(text: str, source: str) -> Cluster | None:
    """What a text tells of a cluster; None where nothing in it is recognised. `source` names the broker of a
    server.properties that does not tell its id."""
    reader = _Reader(source)
    for line in text.splitlines():
        reader.take(line)
    own = reader.brokers.pop(source, {})
    if not _OF_A_BROKER.isdisjoint(own):
        number = own.get("node.id") or own.get("broker.id") or source
        reader.brokers[number] = {**own, **reader.brokers.get(number, {})}
    topics = reader.topics_with_sizes()
    if not (topics or reader.brokers or reader.defaults or reader.features):
        return None
    racks = {int(b): c["broker.rack"] for b, c in reader.brokers.items() if b.isdecimal() and c.get("broker.rack")}
    return Cluster(topics, reader.brokers, reader.defaults, reader.features, racks)


def _number(partition: Partition) -> int:
    return partition.number


def _partition(topic: str, fields: Mapping[str, str]) -> Partition:
    leader, elr = fields.get("Leader", ""), fields.get("Elr")
    return Partition(
        topic,
        int(fields["Partition"]),
        None if leader in _NOBODY else int(leader),
        _ids(fields.get("Replicas", "")),
        _ids(fields.get("Isr", "")),
        None if elr is None or elr == "N/A" else _ids(elr),
    )


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=x,y` as kafka-topics prints it: a comma may be part of a value."""
    return {name: value for name, value in re.findall(r"([a-z][\w.-]*)=(.*?)(?=,[a-z][\w.-]*=|$)", text.strip())}
