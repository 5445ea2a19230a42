"""What a voter of the metadata quorum keeps, in Kafka's files: the log `__cluster_metadata-0`, in it `quorum-state`.

Each operation is durable when it returns. So whoever does what a voter's core asks for in its order has on disk what it
says to others.

What a voter has said is not to be forgotten. So a voter whose files lack something does not start, and nothing is
changed: a torn last write counts for nothing, for nobody was told of it, and all else is damage.
"""

from __future__ import annotations

import contextlib
from typing import ClassVar, Final

import attrs

from isr_broker.core.effects import Slice
from isr_broker.core.messages import NO_EPOCH, LeaderEpoch, Offset
from isr_broker.core.quorum_messages import VoterId
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
_CHECKPOINT: Final = ".checkpoint"
_MAGIC_AT: Final = 16


class DamagedQuorum(Exception):
    """What a voter has said to others is not, or not all, on its disk; the message names the file."""


@attrs.define
class MetadataTopicLog(Log):
    """A log of which Kafka can read every file."""

    epochs_have_crc: ClassVar[bool] = False


@attrs.define
class QuorumDisk:
    """The files of one voter: `log` has a view of the log for the core, and `quorum` is what quorum-state says.

    `voters` are those that never change, None where the log has them.
    """

    disk: Disk
    voters: frozenset[VoterId] | None
    log: Log
    quorum: QuorumState

    @classmethod
    def open(cls, disk: Disk, voters: frozenset[VoterId] | None, settings: Settings) -> QuorumDisk:
        """The files that are there, or new ones; DamagedQuorum with one sentence, and then nothing was changed."""
        quorum = _read_quorum_state(disk, voters)
        end, last_epoch = _last_record(disk, settings)
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
        log = MetadataTopicLog.create(disk, FOLDER, settings)
        log.flush()
        return cls(disk, voters, log, quorum)

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

    def snapshots(self) -> list[bytes]:
        """The contents of each snapshot that is beside the log."""
        names = [name for name in self.disk.names(FOLDER) if name.endswith(_CHECKPOINT)]
        return [contents(self.disk, f"{FOLDER}/{name}") or b"" for name in names]


def write_first_checkpoint(disk: Disk, data: bytes) -> None:
    """The checkpoint of a folder that is formatted with voters (kafka-storage.sh format --initial-controllers)."""
    disk.make_folder(FOLDER)
    disk.flush_folder(ROOT)
    replace(disk, f"{FOLDER}/{0:020d}-{0:010d}{_CHECKPOINT}", data)


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


def _last_record(disk: Disk, settings: Settings) -> tuple[Offset, LeaderEpoch]:
    """Where the log ends, and the epoch of its last record; DamagedQuorum if it is not whole.

    A torn last write has no whole batch behind it, and nobody was told of it.
    """
    end, epoch = 0, NO_EPOCH
    for base in segment_bases(disk, FOLDER):
        path = f"{FOLDER}/{file_name(base)}"
        if base != end:
            if end == 0:
                raise DamagedQuorum(f"{path} is the first: what is before offset {base} is in a snapshot, or missing")
            raise DamagedQuorum(f"{FOLDER}/{file_name(end)} is missing, and there is {path}")
        segment = Segment.open(disk, FOLDER, base, settings.log_index_interval_bytes)
        for batch in segment.scan(base, checks=True, least_epoch=epoch):
            end, epoch = batch.next_offset, batch.leader_epoch
        rest = segment.file.read(segment.size, segment.file.size() - segment.size)
        segment.file.close()
        if _has_a_whole_batch(rest):
            raise DamagedQuorum(f"{path} is damaged at byte {segment.size}, and there are batches that are whole")
    return end, epoch


def _has_a_whole_batch(data: bytes) -> bool:
    magic_at = data.find(MAGIC, _MAGIC_AT)
    while magic_at >= 0:
        with contextlib.suppress(BadBatch):
            batch = header(data, magic_at - _MAGIC_AT)
            if batch.position + batch.size <= len(data) and crc_of(data, batch) == batch.crc:
                return True
        magic_at = data.find(MAGIC, magic_at + 1)
    return False
