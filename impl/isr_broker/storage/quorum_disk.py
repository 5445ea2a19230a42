"""What a voter of the metadata quorum keeps, in Kafka's files: the log `__cluster_metadata-0`, in it `quorum-state`.

Each operation is durable when it returns. So whoever does what a voter's core asks for in its order has on disk what it
says to others.

What a voter has said is not to be forgotten. So a voter whose files lack something does not start, and nothing is
changed: a torn last write counts for nothing, for nobody was told of it, and all else is damage.
"""

from __future__ import annotations

import contextlib
import re
from typing import ClassVar, Final

import attrs

from isr_broker.core.effects import Slice
from isr_broker.core.messages import NO_EPOCH, LeaderEpoch, Offset
from isr_broker.core.quorum_messages import SnapshotId, VoterId
from isr_broker.core.record_batch import MAGIC, BadBatch, crc_of, header
from isr_broker.core.voter_state import QuorumState
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import contents, replace
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.storage.log import Log, segment_bases
from isr_broker.storage.owner import owner_of
from isr_broker.storage.quorum_state import NAME, BadQuorumState, parse_quorum_state, quorum_state_text
from isr_broker.storage.segment import Segment, file_name

FOLDER: Final = "__cluster_metadata-0"
QUORUM_STATE: Final = f"{FOLDER}/{NAME}"
_CHECKPOINT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_MAGIC_AT: Final = 16


class DamagedQuorum(Exception):
    """What a voter has said to others is not, or not all, on its disk; the message names the file."""


@attrs.define
class MetadataTopicLog(Log):
    """A log of which Kafka can read every file."""

    epochs_have_crc: ClassVar[bool] = False

    def begin_later(self, start: Offset) -> None:
        """The log begins at an offset from now on. What is before that can be removed once a later segment is begun."""
        if self.segments[-1].size:
            self._roll()
        self.advance_start(start)


@attrs.define
class QuorumDisk:
    """The files of one voter: `log` has a view of the log for the core, and `quorum` is what quorum-state says.

    `voters` are those that never change, None where the log has them. `snapshot` is the last one.
    """

    disk: Disk
    voters: frozenset[VoterId] | None
    log: MetadataTopicLog
    quorum: QuorumState
    snapshot: SnapshotId | None = None

    @classmethod
    def open(cls, disk: Disk, voters: frozenset[VoterId] | None, settings: Settings) -> QuorumDisk:
        """The files that are there, or new ones; DamagedQuorum with one sentence, and then nothing was changed."""
        quorum = _read_quorum_state(disk, voters)
        snapshot = max(_snapshots(disk), key=lambda one: (one.end, one.epoch), default=None)
        end, last_epoch = _last_record(disk, settings, snapshot or SnapshotId(NO_EPOCH, 0))
        if quorum is None and end > 0:
            raise DamagedQuorum(
                f"{QUORUM_STATE} is missing, and the log has {end} records: put it back, for without it the voter could"
                " vote twice in an epoch"
            )
        quorum = quorum or QuorumState()
        if quorum.epoch < last_epoch:
            raise DamagedQuorum(
                f"{QUORUM_STATE} is of epoch {quorum.epoch}, and the log has records of epoch {last_epoch}: put the"
                " newest one back"
            )
        start = 0 if snapshot is None else snapshot.end
        begins, later = MetadataTopicLog.create, MetadataTopicLog.open
        log = later(disk, FOLDER, settings, start=start, first=start) if start else begins(disk, FOLDER, settings)
        log.flush()
        return cls(disk, voters, log, quorum, snapshot)

    def save(self, quorum: QuorumState) -> None:
        """Put quorum-state in the place of the one before (FileQuorumStateStore.writeElectionState)."""
        replace(self.disk, QUORUM_STATE, quorum_state_text(quorum, self.voters, owner_of(self.disk)))
        self.quorum = quorum

    def append(self, records: bytes) -> None:
        """Write batches, which have their offsets and epochs, at the log end."""
        self.log.append(records, flush=True)

    def truncate(self, end: Offset) -> None:
        """Cut the log at an offset at which a batch begins."""
        self.log.truncate(end)

    def read(self, read: Slice) -> bytes:
        """Whole batches of the log; BadBatch if they are not as they were written."""
        return self.log.read(read)

    def snapshot_contents(self) -> bytes:
        """What the last snapshot has; nothing if there is none."""
        return b"" if self.snapshot is None else contents(self.disk, _path(self.snapshot)) or b""

    def keep(self, snapshot: SnapshotId, data: bytes) -> None:
        """Put a snapshot beside the log, which begins where that ends."""
        replace(self.disk, _path(snapshot), data)
        self.log.begin_later(snapshot.end)
        self._has(snapshot)

    def install(self, snapshot: SnapshotId, data: bytes) -> None:
        """Put a snapshot in the place of the log (KafkaRaftLog.truncateToLatestSnapshot).

        After a crash in between the log ends before the snapshot does, and counts for nothing.
        """
        replace(self.disk, _path(snapshot), data)
        self.log.begin_anew(snapshot.end)
        self._has(snapshot)

    def _has(self, snapshot: SnapshotId) -> None:
        self.snapshot = snapshot
        for earlier in _snapshots(self.disk):
            if earlier != snapshot:
                self.disk.remove(_path(earlier))
        self.disk.flush_folder(FOLDER)


def _path(snapshot: SnapshotId) -> str:
    return f"{FOLDER}/{snapshot.end:020d}-{snapshot.epoch:010d}.checkpoint"


def _snapshots(disk: Disk) -> list[SnapshotId]:
    names = [_CHECKPOINT.fullmatch(name) for name in disk.names(FOLDER)]
    return [SnapshotId(int(match[2]), int(match[1])) for match in names if match is not None]


def write_first_checkpoint(disk: Disk, data: bytes) -> None:
    """The checkpoint of a folder that is formatted with voters (kafka-storage.sh format --initial-controllers)."""
    disk.make_folder(FOLDER)
    disk.flush_folder(ROOT)
    replace(disk, _path(SnapshotId(0, 0)), data)


def _read_quorum_state(disk: Disk, voters: frozenset[VoterId] | None) -> QuorumState | None:
    text = contents(disk, QUORUM_STATE)
    if text is None:
        return None
    try:
        state_file = parse_quorum_state(text, owner_of(disk))
    except BadQuorumState as error:
        raise DamagedQuorum(
            f"{QUORUM_STATE} cannot be read, {error}: put it back as it was, for without it the voter could vote twice"
            " in an epoch"
        ) from None
    if voters is None:
        return state_file.quorum
    if state_file.version != 0:
        raise DamagedQuorum(
            f"{QUORUM_STATE} is of data_version {state_file.version}: its voters change, and controller.quorum.voters"
            " has fixed ones"
        )
    if state_file.voters and state_file.voters != voters:
        names = [", ".join(map(str, sorted(each))) for each in (state_file.voters, voters)]
        raise DamagedQuorum(f"{QUORUM_STATE} is of a quorum of {names[0]}, and the voters are to be {names[1]}")
    return state_file.quorum


def _last_record(disk: Disk, settings: Settings, snapshot: SnapshotId) -> tuple[Offset, LeaderEpoch]:
    """Where the log ends, and the epoch of its last record, or of the snapshot's; DamagedQuorum if it is not whole.

    A torn last write has no whole batch behind it, and nobody was told of it.
    """
    bases = segment_bases(disk, FOLDER)
    end, epoch = min([snapshot.end, *bases]), NO_EPOCH
    for base in bases:
        path = f"{FOLDER}/{file_name(base)}"
        if base != end:
            if base == bases[0]:
                raise DamagedQuorum(f"{path} is the first, and no snapshot has what is before offset {base}")
            raise DamagedQuorum(f"{FOLDER}/{file_name(end)} is missing, and there is {path}")
        segment = Segment.open(disk, FOLDER, base, settings.log_index_interval_bytes)
        for batch in segment.scan(base, checks=True, least_epoch=epoch):
            end, epoch = batch.next_offset, batch.leader_epoch
        rest = segment.file.read(segment.size, segment.file.size() - segment.size)
        segment.file.close()
        if _has_a_whole_batch(rest):
            raise DamagedQuorum(f"{path} is damaged at byte {segment.size}, and there are batches that are whole")
    return max(end, snapshot.end), max(epoch, snapshot.epoch)


def _has_a_whole_batch(data: bytes) -> bool:
    magic_at = data.find(MAGIC, _MAGIC_AT)
    while magic_at >= 0:
        with contextlib.suppress(BadBatch):
            batch = header(data, magic_at - _MAGIC_AT)
            if batch.position + batch.size <= len(data) and crc_of(data, batch) == batch.crc:
                return True
        magic_at = data.find(MAGIC, magic_at + 1)
    return False
