"""A cluster as a controller's files tell it, where no broker answers any more.

The folder `__cluster_metadata-0` has checkpoints (`OFFSET-EPOCH.checkpoint`, all that was so up to that offset) and
the log's segments (`OFFSET.log`) behind them. The newest checkpoint and what follows it are the cluster's metadata
(KRaft, KIP-630).
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from insync_cli import terminal
from isr_audit.cluster import ELR_FEATURE, METADATA_FEATURE, Cluster, Partition, Topic, release_text
from isr_audit.releases import release_of_level
from isr_broker.core.record_batch import BadBatch
from isr_broker.metadata_image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from isr_broker.wire.decoder import Plain
from isr_broker.wire.metadata_records import BadRecord

FOLDER: Final = "__cluster_metadata-0"
_CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_SEGMENT: Final = re.compile(r"(\d{20})\.log")


class UnreadableMetadata(ValueError):
    """Files that are no metadata log, or one with a gap: one sentence with the file."""


def is_metadata(path: Path) -> bool:
    """Whether it is a folder with a metadata log, or one of such a log's files."""
    return _folder_in(path) is not None or bool(_CHECKPOINT.fullmatch(path.name) or _SEGMENT.fullmatch(path.name))


def _folder_in(path: Path) -> Path | None:
    """The folder of the log: this one, or one within a directory of `metadata.log.dir`."""
    return next((f for f in (path, path / FOLDER) if f.name == FOLDER and f.is_dir()), None)


def _files(path: Path) -> list[Path]:
    """The newest checkpoint, and the segments that have something behind it, in their order."""
    folder = _folder_in(path)
    if folder is None:
        if _SEGMENT.fullmatch(path.name) and _offset(path.name):
            raise UnreadableMetadata(
                f"{path} begins at offset {_offset(path.name)}: give the folder, with its checkpoint"
            )
        return [path]
    names = sorted(f.name for f in folder.iterdir())
    checkpoints = [name for name in names if _CHECKPOINT.fullmatch(name)]
    segments = [name for name in names if _SEGMENT.fullmatch(name)]
    if not checkpoints and not segments:
        raise UnreadableMetadata(f"{folder} has neither a checkpoint nor a segment")
    begin = _offset(checkpoints[-1]) if checkpoints else 0
    ends = [_offset(name) for name in segments[1:]]
    behind = [name for name, end in zip(segments, [*ends, None], strict=True) if end is None or end > begin]
    if behind and _offset(behind[0]) > begin:
        raise UnreadableMetadata(
            f"{folder}: {behind[0]} begins at offset {_offset(behind[0])}, and no checkpoint has what was before "
            f"(the newest ends at {begin})"
        )
    return [folder / name for name in (*checkpoints[-1:], *behind)]


def _offset(name: str) -> int:
    return int(name[:20])


def _read(path: Path) -> tuple[MetadataImage, list[str]]:
    """What the log tells, up to its last whole batch, and what could not be read behind it."""
    image, gaps = MetadataImage(), list[str]()
    files = _files(path)
    for file in files:
        checkpoint = _CHECKPOINT.fullmatch(file.name)
        try:
            data = file.read_bytes()
            if checkpoint is not None:
                image.take_checkpoint(data, int(checkpoint[1]), int(checkpoint[2]))
            else:
                image.take_log(data)
        except OSError as problem:
            raise UnreadableMetadata(f"cannot read {file}: {terminal.reason(problem)}") from None
        except BadRecord as problem:
            raise UnreadableMetadata(f"{file}: {problem}") from None
        except BadBatch as problem:
            if checkpoint is not None or file is not files[-1]:
                raise UnreadableMetadata(f"{file}: {problem}") from None
            gaps.append(f"{file} is damaged or torn after offset {(image.end or 0) - 1}: {problem}")
    if image.end is None:
        raise UnreadableMetadata(f"{path}: no record of the cluster's metadata is in it")
    return image, gaps


def described_by_metadata(path: Path) -> Cluster:
    """What a folder `__cluster_metadata-0`, or one of its files, tells; UnreadableMetadata where it is none."""
    (image, gaps), source = _read(path), str(path)
    by_topic: dict[bytes, list[Partition]] = {topic_id: [] for topic_id in image.topics}
    has_elr = bool(image.features.get(ELR_FEATURE, 0))
    for (topic_id, number), fields in sorted(image.partitions.items()):
        by_topic[topic_id].append(_partition(image.topics[topic_id], number, fields, has_elr, source))
    topics = [_topic(image, topic_id, partitions, source) for topic_id, partitions in by_topic.items()]
    return Cluster(
        tuple(sorted(topics, key=lambda topic: topic.name)),
        defaults=image.configs.get((BROKER_RESOURCE, ""), {}),
        features=_features(image),
        racks={number: broker.rack for number, broker in image.brokers.items() if broker.rack},
        living=tuple(sorted(n for n, b in image.brokers.items() if not b.fenced and not b.leaving)),
        notes=tuple(_notes(image, source)),
        dynamic={name: own for (kind, name), own in image.configs.items() if kind == BROKER_RESOURCE and name},
        missing=tuple(gaps),
        has_quorum=True,
    )


def _features(image: MetadataImage) -> dict[str, str]:
    """A feature that is off has no record."""
    features = {ELR_FEATURE: str(image.features.get(ELR_FEATURE, 0))}
    if METADATA_FEATURE in image.features:
        features[METADATA_FEATURE] = release_text(release_of_level(image.features[METADATA_FEATURE]))
    return features


def _notes(image: MetadataImage, source: str) -> list[str]:
    notes = [
        f"{source}: read up to offset {(image.end or 0) - 1} of epoch {image.epoch}. What its last records say may not"
        " be committed, and the brokers' own files are not in it (give each server.properties)"
    ]
    if image.transaction is not None:
        notes.append(f"{source}: a transaction of {len(image.transaction)} records has not ended, and is left out")
    return notes


def _topic(image: MetadataImage, topic_id: bytes, partitions: Sequence[Partition], source: str) -> Topic:
    name = image.topics[topic_id]
    return Topic(
        name,
        min((len(p.members) for p in partitions), default=0),
        tuple(partitions),
        image.configs.get((TOPIC_RESOURCE, name), {}),
        has_heading=False,
        topic_id=urlsafe_b64encode(topic_id).decode().rstrip("="),
        source=source,
        has_own_configs=True,
    )


def _partition(topic: str, number: int, fields: Mapping[str, Plain], has_elr: bool, source: str) -> Partition:
    def ids(name: str) -> tuple[int, ...]:
        return tuple(cast("list[int]", fields.get(name) or []))

    leader = cast("int", fields["leader"])
    return Partition(
        topic,
        number,
        None if leader < 0 else leader,
        ids("replicas"),
        ids("isr"),
        ids("eligible_leader_replicas") if has_elr else None,
        adding=ids("adding_replicas"),
        removing=ids("removing_replicas"),
        last_known_elr=ids("last_known_elr") if has_elr else None,
        source=f"{source}, {topic}-{number}",
    )
