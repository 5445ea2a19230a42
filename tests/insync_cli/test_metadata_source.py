"""A cluster as a controller's files tell it: checkpoint and segments, transactions, and files that lack something."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from insync_cli.clusters.metadata_source import FOLDER, UnreadableMetadata, described_by_metadata
from insync_cli.main import main
from isr_audit.cluster import Cluster
from isr_broker.core.record_batch import batch_around, encoded_record, stamped
from isr_broker.wire.encoder import Answer
from isr_broker.wire.metadata_records import encode

ORDERS, SCRATCH = UUID(int=1).bytes, UUID(int=2).bytes
Said = tuple[str, int, Answer]


def broker(number: int, fenced: bool = False) -> Said:
    return "RegisterBroker", 4, {"broker_id": number, "rack": "abc"[number - 1], "fenced": fenced}


def partition(topic_id: bytes, number: int = 0) -> Said:
    replicas = {"replicas": [1, 2, 3], "isr": [1, 2, 3], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return "Partition", 2, {"partition_id": number, "topic_id": topic_id, **replicas}


def change(topic_id: bytes, **changes: object) -> Said:
    return "PartitionChange", 2, {"partition_id": 0, "topic_id": topic_id, **changes}


def config(kind: int, whose: str, name: str, value: str | None) -> Said:
    return "Config", 0, {"resource_type": kind, "resource_name": whose, "name": name, "value": value}


FEATURES: tuple[Said, ...] = (
    ("FeatureLevel", 0, {"name": "metadata.version", "feature_level": 31}),
    ("FeatureLevel", 0, {"name": "eligible.leader.replicas.version", "feature_level": 1}),
)
START: tuple[Said, ...] = (
    *FEATURES,
    *(broker(number) for number in (1, 2, 3)),
    ("Topic", 0, {"name": "orders", "topic_id": ORDERS}),
    partition(ORDERS),
    config(2, "orders", "min.insync.replicas", "2"),
)


def batch(offset: int, *records: Said) -> bytes:
    """A batch of the log, of leader epoch 5."""
    encoded = [encode(*record) for record in records]
    body = b"".join(encoded_record(data, number) for number, data in enumerate(encoded))
    return stamped(batch_around(body, len(encoded)), offset, 5)


def folder(root: Path, **files: bytes) -> Path:
    """A metadata log of these files: segments by `log_OFFSET`, checkpoints by `checkpoint_OFFSET`."""
    log = root / FOLDER
    log.mkdir(parents=True)
    for name, data in files.items():
        kind, _, offset = name.partition("_")
        end = "-0000000005.checkpoint" if kind == "checkpoint" else ".log"
        (log / f"{int(offset):020}{end}").write_bytes(data)
    return log


def read(root: Path, *records: Said) -> Cluster:
    """What a log of these records tells."""
    return described_by_metadata(folder(root, log_0=batch(0, *START, *records)))


def test_the_cluster_of_a_log(tmp_path: Path) -> None:
    cluster = read(tmp_path)
    (topic,) = cluster.topics
    (part,) = topic.partitions
    assert (topic.name, topic.replicas, dict(topic.configs)) == ("orders", 3, {"min.insync.replicas": "2"})
    assert (part.leader, part.replicas, part.isr, part.elr) == (1, (1, 2, 3), (1, 2, 3), ())
    assert cluster.living == (1, 2, 3)
    assert cluster.racks == {1: "a", 2: "b", 3: "c"}
    assert cluster.features == {"metadata.version": "4.4", "eligible.leader.replicas.version": "1"}
    assert not topic.gap


def test_a_change_has_what_it_changes(tmp_path: Path) -> None:
    cluster = read(
        tmp_path,
        change(ORDERS, isr=[2], leader=2, eligible_leader_replicas=[3]),
        change(ORDERS, leader=-1, last_known_elr=[2]),
        change(ORDERS, replicas=[1, 2, 3, 4], adding_replicas=[4]),
        ("BrokerRegistrationChange", 3, {"broker_id": 1, "fenced": 1}),
        ("BrokerRegistrationChange", 3, {"broker_id": 2, "in_controlled_shutdown": 1}),
        ("UnregisterBroker", 0, {"broker_id": 3}),
        config(4, "", "min.insync.replicas", "2"),
        config(4, "2", "log.retention.ms", "1"),
        config(2, "orders", "min.insync.replicas", None),
    )
    ((part,),) = (topic.partitions for topic in cluster.topics)
    assert (part.leader, part.isr, part.elr, part.last_known_elr) == (None, (2,), (3,), (2,))
    assert (part.replicas, part.adding) == ((1, 2, 3, 4), (4,))
    assert cluster.living == ()
    assert cluster.defaults == {"min.insync.replicas": "2"}
    assert cluster.dynamic == {"2": {"log.retention.ms": "1"}}
    assert not cluster.topics[0].configs


@pytest.mark.parametrize(("name", "left"), [("", ()), ("orders", ()), ("scratch", (3,))])
def test_a_cleared_elr_is_that_of_a_topic_or_of_all(tmp_path: Path, name: str, left: tuple[int, ...]) -> None:
    scratch: Said = ("Topic", 0, {"name": "scratch", "topic_id": SCRATCH})
    elr = change(ORDERS, isr=[1], eligible_leader_replicas=[3])
    cluster = read(tmp_path, scratch, partition(SCRATCH), elr, ("ClearElr", 0, {"topic_name": name}))
    assert next(p.elr for p in cluster.partitions if p.topic == "orders") == left


def test_a_topic_that_is_removed_takes_its_settings_along(tmp_path: Path) -> None:
    again: Said = ("Topic", 0, {"name": "orders", "topic_id": SCRATCH})
    cluster = read(tmp_path, ("RemoveTopic", 0, {"topic_id": ORDERS}), again, partition(SCRATCH))
    (topic,) = cluster.topics
    assert not topic.configs


def test_a_transaction_counts_when_it_ends(tmp_path: Path) -> None:
    begin: Said = ("BeginTransaction", 0, {"name": "t"})
    end: Said = ("EndTransaction", 0, {})
    abort: Said = ("AbortTransaction", 0, {"reason": "why"})
    ended = read(tmp_path / "1", begin, change(ORDERS, isr=[1]), end)
    aborted = read(tmp_path / "2", begin, change(ORDERS, isr=[1]), abort)
    going_on = read(tmp_path / "3", begin, change(ORDERS, isr=[1]))
    assert [c.partitions[0].isr for c in (ended, aborted, going_on)] == [(1,), (1, 2, 3), (1, 2, 3)]
    assert [any("has not ended" in note for note in c.notes) for c in (ended, aborted, going_on)] == [
        False,
        False,
        True,
    ]


def test_the_newest_checkpoint_and_what_follows_it(tmp_path: Path) -> None:
    """What a checkpoint has is not read again from an older segment, and segments before it may be gone."""
    one = change(ORDERS, isr=[1, 2])
    log = folder(
        tmp_path,
        checkpoint_8=batch(0, *START),
        checkpoint_9=batch(0, *START, one),
        log_5=batch(5, *START[5:], one) + batch(9, change(ORDERS, isr=[1])),
        log_10=batch(10, change(ORDERS, isr=[1, 3])),
    )
    assert described_by_metadata(log).partitions[0].isr == (1, 3)
    assert described_by_metadata(log / f"{9:020}-0000000005.checkpoint").partitions[0].isr == (1, 2)


def test_a_segment_that_is_missing_is_said(tmp_path: Path) -> None:
    log = folder(tmp_path, checkpoint_8=batch(0, *START), log_9=batch(9, change(ORDERS, isr=[1])))
    with pytest.raises(UnreadableMetadata, match=r"begins at offset 9, and no checkpoint has what was before"):
        described_by_metadata(log)


def test_a_later_segment_alone_is_refused(tmp_path: Path) -> None:
    log = folder(tmp_path, log_9=batch(9, change(ORDERS, isr=[1])))
    with pytest.raises(UnreadableMetadata, match="begins at offset 9: give the folder"):
        described_by_metadata(log / f"{9:020}.log")


def test_a_torn_end_is_a_gap(tmp_path: Path) -> None:
    whole = batch(0, *START)
    last = batch(len(START), change(ORDERS, isr=[1]))
    cluster = described_by_metadata(folder(tmp_path, log_0=whole + last[:-3]))
    assert cluster.partitions[0].isr == (1, 2, 3)
    assert any("damaged or torn after offset 7" in gap for gap in cluster.gaps)


def test_a_flipped_bit_before_the_end_is_refused(tmp_path: Path) -> None:
    damaged = bytearray(batch(0, *START))
    damaged[-3] ^= 1
    log = folder(tmp_path, log_0=bytes(damaged), log_8=batch(8, change(ORDERS, isr=[1])))
    with pytest.raises(UnreadableMetadata, match="CRC"):
        described_by_metadata(log)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\1\77\0\0", "a record of type 63, which no release up to 4.4.0 has"),
        (b"\1\2\1" + bytes(20), "Topic in version 1: 0 is the newest that is known"),
        (b"\2\2\0", "a record in frame version 2, not 1"),
        (b"\1\2\0\5abc", "a length of 4, 3 bytes are left"),
        (encode("NoOp", 0, {}) + b"\0", "NoOp: 1 bytes follow it"),
        (encode("RemoveTopic", 0, {"topic_id": ORDERS}), "RemoveTopic of what is not there"),
    ],
)
def test_a_record_of_an_unknown_kind_is_refused(tmp_path: Path, data: bytes, sentence: str) -> None:
    log = folder(tmp_path, log_0=stamped(batch_around(encoded_record(data)), 0, 1))
    with pytest.raises(UnreadableMetadata, match=sentence):
        described_by_metadata(log)


def test_audit_and_drill_read_a_controllers_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, log_0=batch(0, *START, config(2, "orders", "unclean.leader.election.enable", "false")))
    assert main(["audit", "--plain", "--describe", str(tmp_path)]) == 0
    assert "1 topic, 1 partition" in capsys.readouterr().out
    assert main(["drill", "--plain", "--describe", str(tmp_path / FOLDER), "stop 3"]) == 0
    assert "YES" in capsys.readouterr().out


def test_an_empty_folder_is_refused_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = folder(tmp_path)
    assert main(["audit", "--describe", str(tmp_path)]) == 65
    assert f"{log} has neither a checkpoint nor a segment" in capsys.readouterr().err
