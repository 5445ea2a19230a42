"""A cluster as the command line was told of it: by files, by the cluster itself, or by both."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from insync_cli import terminal
from insync_cli.clusters.metadata_source import UnreadableMetadata, described_by_metadata, is_metadata
from insync_cli.exits import InputError, Unavailable, UsageError, did_you_mean
from isr_audit.cluster import Cluster, Contradiction, Release, merge_clusters
from isr_audit.deployments import Unreadable
from isr_audit.descriptions import read_description
from isr_audit.live import NoClient, Unreachable, client_settings, read_cluster
from isr_audit.live_replicas import with_replicas
from isr_audit.releases import release_of


def kafka_release(text: str) -> Release:
    """A release as Kafka numbers them."""
    found = release_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"a release of Kafka such as 4.1.1, not {text}")
    return found


def described_cluster(bootstrap: str | None, client_file: Path | None, describe: Iterable[Path]) -> Cluster:
    """What the cluster, or the files, tell; files add to what the cluster tells.

    A file that cannot be read does not stop the rest, where there is any: it is a gap, for it may tell of partitions.
    Unavailable where the cluster does not answer, whatever files there are.
    """
    parts, describe = list[Cluster](), tuple(describe)
    if bootstrap is not None:
        try:
            client = client_settings(text_of(client_file)) if client_file is not None else {}
            parts.append(with_replicas(read_cluster(bootstrap, client), bootstrap, client))
        except NoClient as problem:
            raise UsageError(f"the cluster cannot be asked: {problem}") from None
        except Unreachable as problem:
            alone = "; without --bootstrap the files alone are asked about" if describe else ""
            raise Unavailable(f"no answer from the cluster: {problem}{alone}") from None
        except ValueError as problem:
            raise InputError(f"{client_file}: {problem}") from None
    problems: list[str] = []
    for file in describe:
        try:
            parts.append(description_in(file))
        except InputError as problem:
            problems.append(str(problem))
        except Contradiction as problem:
            raise InputError(str(problem)) from None
    if problems and not parts:
        raise InputError(problems[0])
    try:
        whole = merge_clusters(parts)
    except Contradiction as problem:
        raise InputError(str(problem)) from None
    return attrs.evolve(whole, missing=(*whole.missing, *(f"left out: {problem}" for problem in problems)))


def description_in(file: Path) -> Cluster:
    """What a file tells; InputError where it cannot be read, or nothing in it is recognised. A contradiction within it
    ends the audit, for there is no telling what else in it is of now."""
    try:
        description = described_by_metadata(file) if is_metadata(file) else read_description(text_of(file), str(file))
    except (Unreadable, UnreadableMetadata) as problem:
        raise InputError(str(problem)) from None
    if description is None:
        raise InputError(f"{file}: nothing in it is recognised; give {WHAT_IS_READ}")
    return description


WHAT_IS_READ = (
    "what kafka-topics.sh --describe, kafka-configs.sh --describe, kafka-features.sh describe, kafka-log-dirs.sh "
    "--describe or kafka-metadata-quorum.sh describe print, a server.properties, a compose file, the KAFKA_... "
    "environment of a broker, Strimzi's Kafka and KafkaTopic, or a controller's folder __cluster_metadata-0"
)


def text_of(file: Path) -> str:
    """The text of a file; InputError where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"cannot read {file}: {terminal.reason(problem)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not text in UTF-8") from None


def what_to_describe(cluster: Cluster) -> str:
    """What to give where no topic was told: beside the settings of brokers, where these were."""
    told = cluster.brokers or cluster.defaults or cluster.dynamic
    beside = "the settings of brokers were read, and say nothing of a topic without its replicas; " if told else ""
    also = " as well, or a KafkaTopic" if told else ""
    return f"{beside}give what kafka-topics.sh --describe prints{also}"


def cluster_with_topics(cluster: Cluster, names: Sequence[str]) -> Cluster:
    """The cluster with these topics only, and the names of all others. What cannot be judged, for only settings or logs
    are told of it, is left out and is a gap."""
    topic_names = [t.name for t in cluster.topics]
    for name in names:
        if name not in topic_names:
            raise UsageError(f"there is no topic '{name}'{did_you_mean(name, topic_names)}")
    whole = attrs.evolve(cluster, topics=tuple(t for t in cluster.topics if not names or t.name in names))
    candidates = tuple(
        attrs.evolve(t, partitions=tuple(p for p in t.partitions if p.is_described)) for t in whole.topics
    )
    topics = tuple(t for t in candidates if t.replicas or t.partitions or t.count is not None)
    if not topics:
        raise InputError(f"no topic is described with its replicas; {what_to_describe(cluster)}")
    left = tuple(name for name in topic_names if names and name not in names)
    return attrs.evolve(cluster, topics=topics, missing=whole.gaps, omissions=left)


def with_racks(cluster: Cluster, file: Path | None) -> Cluster:
    """The cluster with the racks in a file, where there is one; InputError where it was told otherwise."""
    if file is None:
        return cluster
    racks = racks_in(file)
    other = next((b for b, rack in racks.items() if cluster.racks.get(b, rack) != rack), None)
    if other is not None:
        before = cluster.racks[other]
        raise InputError(f"{file}: broker {other} is in rack {racks[other]}, and was told to be in {before}")
    return attrs.evolve(cluster, racks={**cluster.racks, **racks})


def racks_in(file: Path) -> Mapping[int, str]:
    """Racks by broker: lines such as `3 a`, `3: a` or `3=a`."""
    racks: dict[int, str] = {}
    for number, line in enumerate(text_of(file).splitlines(), 1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        match = re.fullmatch(r"(\d{1,9})\s*[\s:=,]\s*(\S+)", text, re.ASCII)
        if match is None:
            raise InputError(f"{file}, line {number}: a line has a broker and its rack (example: 3 a), not '{text}'")
        broker, rack = int(match[1]), match[2]
        if racks.setdefault(broker, rack) != rack:
            raise InputError(f"{file}, line {number}: broker {broker} was in rack {racks[broker]} before")
    return racks
