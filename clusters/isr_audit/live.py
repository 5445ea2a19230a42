"""A running cluster, read with an ordinary admin client (confluent-kafka): what it tells, and nothing is changed.

The client asks neither for features and eligible leader replicas nor for the logs of replicas: `live_replicas` does.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from typing import Final, Protocol, cast

from isr_audit.cluster import OF_BROKER, Cluster, Partition, Topic
from isr_audit.releases import PROTOCOL

PATIENCE_S: Final = 10.0
AT_A_TIME: Final = 500
"""Topics in one request for settings."""
OF_TOPIC: Final = tuple(OF_BROKER)
TOLD_BY_BROKERS: Final = (*OF_BROKER.values(), PROTOCOL, "process.roles", "zookeeper.connect", "broker.rack")


class PartitionDescription(Protocol):
    """A partition as the client describes it; a leader of -1 is none."""

    id: int
    leader: int
    replicas: list[int]
    isrs: list[int]


class DescribedTopic(Protocol):
    """A topic as the client describes it."""

    partitions: dict[int, PartitionDescription]


class Metadata(Protocol):
    """What the cluster tells of itself."""

    topics: dict[str, DescribedTopic]
    brokers: dict[int, object]


class Entry(Protocol):
    """A setting; no value where it is not told. `source`: a ConfigSource, or its number, which says who has it."""

    value: str | None
    source: object


class Resource(Protocol):
    """A topic or a broker that has settings."""

    name: str


class Admin(Protocol):
    """What is used of confluent_kafka's AdminClient, which is not typed."""

    def list_topics(self, *, timeout: float) -> Metadata: ...
    def describe_configs(
        self, resources: list[Resource], *, request_timeout: float
    ) -> dict[Resource, Future[dict[str, Entry]]]: ...


class Unreachable(Exception):
    """The cluster does not answer, or does not tell: one sentence says why."""


class NoClient(Exception):
    """There is no client to ask with, or it does not take its settings: one sentence says why."""


def read_cluster(bootstrap: str, client: Mapping[str, str]) -> Cluster:
    """What the cluster tells of its topics; Unreachable where it does not, NoClient where it cannot be asked.

    A broker that has just died is not asked. A topic tells the values that hold for it at the broker that answers
    (Kafka's ConfigHelper.createTopicConfigEntry); those that are not its own may be others elsewhere.
    """
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        raise NoClient("confluent-kafka is not installed (pip install 'insync[audit]')") from None
    silent = logging.Logger("librdkafka", logging.CRITICAL + 1)
    try:
        admin = cast("Admin", AdminClient({**client, "bootstrap.servers": bootstrap}, logger=silent))
    except KafkaException as problem:
        raise NoClient(_reason(problem)) from None
    try:
        metadata = admin.list_topics(timeout=PATIENCE_S)
        try:
            configs = dict(_topic_configs(admin, sorted(metadata.topics)))
        except (KafkaException, TimeoutError):  # for a moment the cluster sends to a broker that has just died
            admin = cast("Admin", AdminClient({**client, "bootstrap.servers": bootstrap}, logger=silent))
            metadata = admin.list_topics(timeout=PATIENCE_S)
            configs = dict(_topic_configs(admin, sorted(metadata.topics)))
        broker_settings = [
            _describe_configs(admin, [_resource("broker", str(b))]) for b in sorted(metadata.brokers)
        ]  # each tells its own only
    except (KafkaException, TimeoutError) as problem:
        raise Unreachable(f"{bootstrap}: {_reason(problem)}") from None
    brokers: dict[str, dict[str, str]] = {}
    for answers in broker_settings:
        with suppress(KafkaException, TimeoutError):
            brokers |= {name: _values(entries) for name, entries in _entries_of(answers, TOLD_BY_BROKERS)}
    racks = {int(b): c["broker.rack"] for b, c in brokers.items() if c.get("broker.rack")}
    found = tuple(_topic(name, described, configs[name]) for name, described in sorted(metadata.topics.items()))
    return Cluster(found, brokers, racks=racks, living=tuple(sorted(metadata.brokers)))


def client_settings(text: str) -> dict[str, str]:
    """A client.properties file of Kafka's tools for librdkafka; ValueError for what librdkafka cannot take.

    librdkafka wants name and password of SASL apart, and reads certificates from PEM files or PKCS#12, not from the
    keystores of Java.
    """
    settings: dict[str, str] = {}
    for line in re.sub(r"\\\r?\n\s*", "", text).splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", "!")):
            settings[name.strip()] = value.strip()
    login = settings.pop("sasl.jaas.config", "")
    for word in ("username", "password"):
        if told := re.search(rf"\b{word}\s*=\s*([\"'])(.*?)\1", login):
            settings[f"sasl.{word}"] = told[2]
    return _certificates({name: value for name, value in settings.items() if name not in OF_JAVA})


OF_JAVA: Final = ("default.api.timeout.ms", "ssl.enabled.protocols", "ssl.protocol", "ssl.provider")
"""Settings of Java's clients that say nothing about who is who."""


def _certificates(settings: Mapping[str, str]) -> dict[str, str]:
    """Trust and key in librdkafka's words: PEM files by their place, PEM texts as they are."""
    translation = dict(settings)
    kind = translation.pop("ssl.truststore.type", "JKS").upper()
    truststore = translation.pop("ssl.truststore.location", "")
    translation.pop("ssl.truststore.password", None)
    if truststore and kind != "PEM":
        raise ValueError(
            f"ssl.truststore.location={truststore} is a keystore of Java, and librdkafka reads PEM: give "
            f"ssl.ca.location=ca.pem, made by keytool -list -rfc -keystore {truststore} > ca.pem"
        )
    kind = translation.pop("ssl.keystore.type", "PKCS12").upper()
    if kind == "PEM" and (own := translation.pop("ssl.keystore.location", "")):
        translation |= {"ssl.certificate.location": own, "ssl.key.location": own}
    translation |= {"ssl.ca.location": truststore} if truststore else {}
    pems = {
        "ssl.truststore.certificates": "ssl.ca.pem",
        "ssl.keystore.certificate.chain": "ssl.certificate.pem",
        "ssl.keystore.key": "ssl.key.pem",
    }
    translation |= {name: translation.pop(own) for own, name in pems.items() if own in translation}
    if not translation.get("ssl.endpoint.identification.algorithm", "https"):
        translation["ssl.endpoint.identification.algorithm"] = "none"
    return translation


def _topic(name: str, description: DescribedTopic, entries: Mapping[str, Entry]) -> Topic:
    partitions = tuple(
        Partition(name, p.id, p.leader if p.leader >= 0 else None, tuple(p.replicas), tuple(p.isrs))
        for p in sorted(description.partitions.values(), key=lambda p: p.id)
    )
    inheritance = {n: e for n, e in entries.items() if getattr(e.source, "value", e.source) in OF_BROKERS}
    own = {n: e for n, e in entries.items() if n not in inheritance}
    factor = min((len(p.replicas) for p in partitions), default=0)
    return Topic(
        name, factor, partitions, _values(own), inheritance=_values(inheritance), has_own_configs=bool(entries)
    )


OF_BROKERS: Final = (2, 3, 4, 5)
"""The sources of a setting that a topic has not itself: a broker's, all brokers', a broker's file, Kafka's default."""


def _topic_configs(admin: Admin, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Entry]]]:
    left = iter(names)
    while some := list(islice(left, AT_A_TIME)):
        yield from _entries_of(_describe_configs(admin, [_resource("topic", name) for name in some]), OF_TOPIC)


def _resource(kind: str, name: str) -> Resource:
    from confluent_kafka import admin

    return cast("Resource", vars(admin)["ConfigResource"](kind, name))


Answers = dict[Resource, Future[dict[str, Entry]]]


def _describe_configs(admin: Admin, resources: list[Resource]) -> Answers:
    return admin.describe_configs(resources, request_timeout=PATIENCE_S)


def _entries_of(answers: Answers, setting_names: Sequence[str]) -> Iterator[tuple[str, dict[str, Entry]]]:
    for resource, answer in answers.items():
        entries = answer.result(2 * PATIENCE_S)
        yield resource.name, {n: e for n, e in entries.items() if n in setting_names}


def _values(entries: Mapping[str, Entry]) -> dict[str, str]:
    return {n: e.value for n, e in entries.items() if e.value is not None}


def _reason(problem: Exception) -> str:
    """What librdkafka says, without its own names."""
    told = problem.args[0] if problem.args else f"no answer in {2 * PATIENCE_S:g} s"
    says = getattr(told, "str", lambda: str(told))()
    return re.sub(r"\s+", " ", str(says)).strip()
