"""A voter's files: Kafka's own are read, and damage is named, and nothing is lost by that."""

from __future__ import annotations

import base64

import attrs
import pytest

from isr_broker.core.effects import Slice
from isr_broker.core.quorum_messages import SnapshotId
from isr_broker.core.record_batch import batch_around, batches, encoded_record, new_batch, stamped
from isr_broker.core.voter_state import QuorumState, fixed_voters
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import EPOCHS, contents, replace
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Nothing
from isr_broker.storage.owner import META_PROPERTIES, owner_of
from isr_broker.storage.quorum_disk import FOLDER, QUORUM_STATE, DamagedQuorum, QuorumDisk
from isr_broker.storage.quorum_state import parse_quorum_state, quorum_state_text
from isr_broker.wire.control_records import kraft_version, leader_change

THREE = frozenset({1, 2, 3})
EVERYTHING = Slice(offset=0, up_to=2**62, max_bytes=2**30)
SEGMENT = f"{FOLDER}/{0:020d}.log"

KAFKAS_STATE = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
    b'"data_version":0}'
)
"""As the controller of Kafka 4.4.0 and that of 4.0.1 wrote it, each alone in its quorum."""

KAFKAS_LEADER_CHANGE = bytes.fromhex(
    "00000000000000000000004f0000000102996fcf8b002000000000000001"
    "a221796232000001a221796232ffffffffffffffffffffffffffff000000"
    "013a0000000800000002260000000000010200000001000200000001000000"
)
"""The first batch of its log."""


def opened(disk: MemoryDisk, voters: frozenset[int] = THREE) -> QuorumDisk:
    return QuorumDisk.open(disk, voters, Settings())


def written(count: int = 3) -> MemoryDisk:
    """A voter's disk that has followed voter 2 in epoch 4, with so many batches, all of it durable."""
    disk = MemoryDisk()
    disk.put(META_PROPERTIES, b"node.id=1\ncluster.id=c\n")
    files = opened(disk)
    files.save(QuorumState(epoch=4, leader=2))
    for offset in range(count):
        files.append(stamped(new_batch(b"%d" % offset), offset, 4))
    disk.crash(Nothing())
    return disk


def all_files(disk: MemoryDisk) -> dict[str, bytes]:
    return {path: bytes(image.visible_bytes) for path, image in disk.names_now.items() if image is not None}


def refusal(disk: MemoryDisk, voters: frozenset[int] = THREE) -> str:
    """Why a voter does not start, which leaves every file as it was."""
    before = all_files(disk)
    with pytest.raises(DamagedQuorum) as error:
        opened(disk, voters)
    assert all_files(disk) == before
    assert "\n" not in str(error.value)
    return str(error.value)


# Snapshots


def test_a_log_begins_where_a_snapshot_ends_and_an_earlier_one_is_removed() -> None:
    disk = written(5)
    files = opened(disk)
    for end in (2, 4):
        files.keep(SnapshotId(4, end), b"to %d" % end)
    disk.crash(Nothing())
    again = opened(disk)
    assert (again.snapshot, again.snapshot_contents()) == (SnapshotId(4, 4), b"to 4")
    assert (again.log.view.start, again.log.view.end) == (4, 5)
    assert [batch.base_offset for batch in batches(again.read(attrs.evolve(EVERYTHING, offset=4)))] == [4]
    assert sum(name.endswith(".checkpoint") for name in disk.names(FOLDER)) == 1


def test_a_snapshot_takes_the_place_of_the_log_and_a_crash_in_between_changes_nothing_of_that() -> None:
    disk = written(3)
    disk.put(f"{FOLDER}/{9:020d}-{6:010d}.checkpoint", b"nine")
    disk.put(QUORUM_STATE, quorum_state_text(QuorumState(epoch=6), THREE, owner_of(disk)))
    between = opened(disk)
    assert (between.log.view.start, between.log.view.end, between.snapshot) == (9, 9, SnapshotId(6, 9))
    whole = opened(written(3))
    whole.save(QuorumState(epoch=6))
    whole.install(SnapshotId(6, 9), b"nine")
    assert (whole.log.view.start, whole.log.view.end) == (9, 9)
    whole.append(stamped(new_batch(b"9"), 9, 6))
    assert opened(written(3)).log.view.end == 3


def test_a_log_that_begins_behind_its_snapshot_lacks_something() -> None:
    disk = written(5)
    opened(disk).keep(SnapshotId(4, 4), b"to 4")
    opened(disk).keep(SnapshotId(4, 5), b"to 5")
    disk.remove(f"{FOLDER}/{5:020d}-{4:010d}.checkpoint")
    assert "no snapshot has what is before offset 5" in refusal(disk)


# What Kafka has written


def test_the_leader_change_is_kafkas_to_the_byte() -> None:
    assert leader_change(1, fixed_voters({1}).last, [1], epoch=1, offset=0, wall=0x01A221796232) == KAFKAS_LEADER_CHANGE


def test_the_quorum_state_is_kafkas_and_a_checksum() -> None:
    quorum = QuorumState(epoch=1, leader=1)
    found = parse_quorum_state(KAFKAS_STATE, b"of nobody yet")
    assert (found.quorum, found.version, found.voters) == (quorum, 0, frozenset({1}))
    ours = quorum_state_text(quorum, [1], b"owner")
    assert ours.startswith(KAFKAS_STATE[:-1] + b',"crc32c":"')
    assert parse_quorum_state(ours, b"owner") == found


def test_version_1_has_the_directory_of_the_vote_and_is_refused() -> None:
    text = b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'
    found = parse_quorum_state(text, b"")
    directory = base64.urlsafe_b64decode("J8aAPcfLQt2bqs1JT_rMgQ==")
    assert (found.quorum, found.version) == (QuorumState(epoch=2, vote=1, vote_directory=directory), 1)
    ours = quorum_state_text(found.quorum, None, b"")
    assert ours.startswith(text[:-1]), "as Kafka has it, and a checksum"
    assert parse_quorum_state(ours, b"") == found
    disk = written(0)
    disk.put(QUORUM_STATE, text)
    assert "data_version 1: its voters change" in refusal(disk)


def test_a_kraft_version_in_the_log_is_seen() -> None:
    """That of a quorum whose voters change; a leader's own record is none."""
    record = encoded_record(b"\0\0\0\1\0", key=b"\0\0\0\5")
    changes = stamped(batch_around(record, control=True), 1, 1)
    assert kraft_version(KAFKAS_LEADER_CHANGE) == 0
    assert kraft_version(KAFKAS_LEADER_CHANGE + changes) == 1


def test_files_of_epochs_are_as_kafka_reads_them() -> None:
    assert contents(written(), f"{FOLDER}/{EPOCHS}") == b"0\n1\n4 0\n"


# What a voter finds again


def test_what_was_saved_and_appended_is_found_again() -> None:
    disk = written()
    files = opened(disk)
    assert files.quorum == QuorumState(epoch=4, leader=2)
    assert (files.log.view.end, files.log.view.last_epoch) == (3, 4)
    read = files.read(Slice(offset=1, up_to=3, max_bytes=1_000))
    assert [batch.base_offset for batch in batches(read, check=True)] == [1, 2]
    files.truncate(1)
    disk.crash(Nothing())
    assert opened(disk).log.view.end == 1


@pytest.mark.parametrize("survival", [Nothing(), Everything()], ids=["nothing pending", "everything"])
def test_a_crash_while_the_state_is_saved_leaves_one_or_the_other(survival: Nothing | Everything) -> None:
    disk, pictures = written(), list[MemoryDisk]()
    files = opened(disk)
    disk.hook = lambda now, operation, path: pictures.append(now.copy())
    files.save(QuorumState(epoch=5, vote=3))
    assert len(pictures) > 3
    for picture in pictures:
        picture.crash(survival)
        assert opened(picture).quorum in (QuorumState(epoch=4, leader=2), QuorumState(epoch=5, vote=3))
    disk.crash(Nothing())
    assert opened(disk).quorum == QuorumState(epoch=5, vote=3)


def test_a_torn_last_batch_counts_for_nothing() -> None:
    whole = bytes(written().image(SEGMENT).durable)
    last = list(batches(whole))[-1].position
    for at in range(last, len(whole)):
        disk = written()
        disk.put(SEGMENT, whole[:at])
        assert opened(disk).log.view.end == 2


# What is damaged


def test_no_flipped_bit_of_a_quorum_state_makes_another_one() -> None:
    text = contents(written(), QUORUM_STATE)
    assert text is not None
    for bit in range(8 * len(text)):
        disk = written()
        disk.flip(QUORUM_STATE, bit)
        assert "quorum-state" in refusal(disk)
    for at in range(len(text)):
        disk = written()
        disk.put(QUORUM_STATE, text[:at])
        assert "the voter could vote twice in an epoch" in refusal(disk)


def test_a_state_that_is_missing_older_or_of_another_is_refused() -> None:
    disk = written()
    disk.lose(QUORUM_STATE)
    assert "is missing, and the log has 3 records" in refusal(disk)
    disk = written()
    replace(disk, QUORUM_STATE, quorum_state_text(QuorumState(epoch=3, vote=1), THREE, owner_of(disk)))
    assert "is of epoch 3, and the log has records of epoch 4" in refusal(disk)
    replace(disk, QUORUM_STATE, quorum_state_text(QuorumState(epoch=4, leader=2), THREE, b"2 c\n"))
    assert "or it is another node's" in refusal(disk)
    assert "is of a quorum of 1, 2, 3, and the voters are to be 1, 2" in refusal(written(), frozenset({1, 2}))


def test_a_damaged_batch_is_refused_where_a_whole_one_is_behind_it_or_it_is_whole_itself() -> None:
    """In its length, too, after which nobody knows where the next begins, and in what no CRC covers."""
    for byte in (0, 9, 13, 30, 70):
        disk = written()
        disk.flip(SEGMENT, 8 * byte + 7)
        assert "and there are batches that are whole" in refusal(disk)
    whole = contents(written(), SEGMENT) or b""
    last = list(batches(whole))[-1].position
    for byte, why in (
        (0, "that are whole"),
        (7, "that are whole"),
        (12, "is of epoch 4, and"),
        (15, "is of epoch 4, and"),
    ):
        disk = written()
        disk.flip(SEGMENT, 8 * (last + byte))
        assert why in refusal(disk)


def test_a_segment_that_is_missing_is_named() -> None:
    disk = written()
    disk.put(f"{FOLDER}/{7:020d}.log", stamped(new_batch(b""), 7, 4))
    assert f"{3:020d}.log is missing, and there is" in refusal(disk)
    disk.lose(SEGMENT)
    assert "no snapshot has what is before offset 7" in refusal(disk)
