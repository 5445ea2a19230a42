"""What people deploy Kafka with: Strimzi's resources, compose files, and the environments of containers.

    kind: Kafka          settings of every broker, the level of metadata.version
    kind: KafkaTopic     a topic's replicas, number of partitions and settings, and not how its partitions are
    services:            a broker each that has KAFKA_... or KAFKA_CFG_... in its environment

A variable is a setting in other letters: KAFKA_MIN_INSYNC_REPLICAS is min.insync.replicas, two underscores stand for
one, and three for a dash. Values that a shell would fill in, such as ${MIN_ISR:-2}, are not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

import yaml

from isr_audit.cluster import EVERY, METADATA_FEATURE, ONE_SNAPSHOT, Cluster, Contradiction, Topic, number_of

LOOKS_SO: Final = re.compile(r"^(?:- )?\s*(?:kind|services|apiVersion):", re.MULTILINE)
VARIABLE: Final = re.compile(r"^\s*(?:-\s+|export\s+)?(KAFKA_(?:CFG_)?[A-Z][A-Z0-9_]*)\s*[=:]\s*(.*?)\s*$")
IDS: Final = ("node.id", "broker.id")


class Unreadable(ValueError):
    """A file that is not what it looks like: one sentence with its place."""


def setting_name(variable: str) -> str:
    """`KAFKA_CFG_MIN_INSYNC_REPLICAS` as min.insync.replicas."""
    name = re.sub(r"^KAFKA_(?:CFG_)?", "", variable).lower()
    return re.sub(r"_{1,3}", lambda m: {"_": ".", "__": "_", "___": "-"}[m[0]], name)


def read_deployment(text: str, source: str, settings: frozenset[str]) -> Cluster | None:
    """What YAML tells, of variables those of these settings; None where it is none of these. Unreadable where it looks
    like one, and is no YAML; Contradiction where two services are one broker."""
    if LOOKS_SO.search(text) is None:
        return None
    try:
        documents = cast("list[object]", list(yaml.safe_load_all(text)))
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        mark = getattr(problem, "problem_mark", None)
        place = f", line {mark.line + 1}" if isinstance(mark, yaml.Mark) else ""
        reason = getattr(problem, "problem", None) or "values that are none"
        raise Unreadable(f"{source}{place}: not YAML: {reason}") from None
    resources = [r for document in documents for r in _resources(document)]
    topics = [t for r in resources if r.get("kind") == "KafkaTopic" for t in _topic(r, source)]
    kafkas = [r for r in resources if r.get("kind") == "Kafka"]
    brokers, notes = _services(documents, source, settings)
    features: dict[str, str] = {}
    for kafka in kafkas:
        brokers[EVERY] = _one_kafka(brokers.get(EVERY), _kafka_settings(kafka), source)
        features |= _features(kafka)
    notes += [f"{source}: {n}" for kafka in kafkas for n in _kafka_notes(kafka, features)]
    if not topics and not brokers:
        return None
    return Cluster(tuple(_once(topics, source)), brokers, features=features, racks=_racks(brokers), notes=tuple(notes))


def _racks(brokers: Mapping[str, Mapping[str, str]]) -> dict[int, str]:
    by_id = ((number_of(b), c.get("broker.rack")) for b, c in brokers.items())
    return {b: rack for b, rack in by_id if b is not None and rack}


def _once(topics: Iterable[Topic], source: str) -> Iterator[Topic]:
    names: set[str] = set()
    for topic in topics:
        if topic.name in names:
            raise Contradiction(f"{source} has the topic {topic.name} twice: {ONE_SNAPSHOT}")
        names.add(topic.name)
        yield topic


def _one_kafka(before: Mapping[str, str] | None, settings: dict[str, str], source: str) -> dict[str, str]:
    if before is not None and before != settings:
        raise Contradiction(f"{source} has two resources of kind Kafka, and not alike: {ONE_SNAPSHOT}")
    return settings


# YAML is untyped


def _mapping(value: object) -> dict[str, object]:
    return {str(k): v for k, v in cast("dict[object, object]", value).items()} if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    """A scalar as Kafka reads it."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _under(resource: Mapping[str, object], *path: str) -> object:
    value: object = resource
    for name in path:
        value = _mapping(value).get(name)
    return value


def _resources(document: object) -> Iterator[dict[str, object]]:
    """A resource, or those of a list as `kubectl get -o yaml` prints it."""
    whole = _mapping(document)
    yield whole
    for item in (*_list(whole.get("items")), *_list(document)):
        yield _mapping(item)


# Strimzi


def _topic(resource: Mapping[str, object], source: str) -> Iterator[Topic]:
    name = _text(_under(resource, "metadata", "name"))
    topic = _text(_under(resource, "spec", "topicName")) or name
    count = number_of(_text(_under(resource, "spec", "partitions")))
    replicas = number_of(_text(_under(resource, "spec", "replicas")))
    configs = {k: _text(v) for k, v in _mapping(_under(resource, "spec", "config")).items()}
    if topic:
        place = f"{source}, KafkaTopic {name}"
        yield Topic(
            topic,
            replicas or 0,
            configs=configs,
            has_heading=False,
            count=count or 0,
            source=place,
            resource=name,
            has_own_configs=True,
        )


def _kafka_settings(resource: Mapping[str, object]) -> dict[str, str]:
    settings = {k: _text(v) for k, v in _mapping(_under(resource, "spec", "kafka", "config")).items()}
    role = {"zookeeper.connect": "zookeeper"} if _under(resource, "spec", "zookeeper") else {"process.roles": "broker"}
    return {**settings, **role}


def _features(resource: Mapping[str, object]) -> dict[str, str]:
    level = _under(resource, "status", "kafkaMetadataVersion") or _under(resource, "spec", "kafka", "metadataVersion")
    return {METADATA_FEATURE: _text(level)} if level else {}


def _kafka_notes(resource: Mapping[str, object], features: Mapping[str, str]) -> Iterator[str]:
    version = _text(_under(resource, "spec", "kafka", "version"))
    if version and METADATA_FEATURE not in features:
        yield f"version {version} of the brokers does not tell metadata.version, which may be older (--kafka tells it)"


# Compose


def _services(
    documents: Iterable[object], source: str, settings: frozenset[str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The settings of each service that is a broker, by its id or its name."""
    brokers: dict[str, dict[str, str]] = {}
    notes: list[str] = []
    for document in documents:
        for name, service in _mapping(_mapping(document).get("services")).items():
            pairs = list(_environment(_mapping(service).get("environment")))
            own = {setting_name(n): v for n, v in pairs if setting_name(n) in settings}
            if not own:
                continue
            broker = next((own[i] for i in IDS if own.get(i)), f"{source}, service {name}")
            if broker in brokers:
                raise Contradiction(f"{source} has two services of broker {broker}: {ONE_SNAPSHOT}")
            brokers[broker] = own
            if _mapping(service).get("env_file"):
                notes.append(f"{source}: env_file of the service {name} is not read; give it with --describe, too")
    return brokers, notes


def _environment(value: object) -> Iterator[tuple[str, str]]:
    """Both forms: a mapping, and a list of NAME=VALUE."""
    pairs = [(k, _text(v)) for k, v in _mapping(value).items()]
    pairs += [(n, v) for item in _list(value) for n, _, v in [_text(item).partition("=")]]
    yield from ((n, v) for n, v in pairs if n.startswith("KAFKA_"))
