"""A voter's files and Apache Kafka: what its controllers wrote is read here, and what is written here they go on with.

Without these a file could be in our own form of Kafka's, and nobody would notice before a controller refuses it.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from tests.support.quorums import StaticQuorum, kafka_files, kafka_tool

from isr_broker.core.effects import Slice
from isr_broker.core.record_batch import batch_around, batches, encoded_record, stamped
from isr_broker.core.voter_state import QuorumState, fixed_voters
from isr_broker.metadata_image import MetadataImage
from isr_broker.settings import Settings
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.meta_properties import Claim, claim, new_id, read_claim
from isr_broker.storage.quorum_disk import FOLDER, QuorumDisk
from isr_broker.wire.control_records import kraft_version, leader_change
from isr_broker.wire.metadata_records import encode

pytestmark = [pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets, pytest.mark.slow]

ALONE = frozenset({1})
EVERYTHING = Slice(offset=0, up_to=2**62, max_bytes=2**30)


def files_of(folder: Path, voters: frozenset[int] = ALONE) -> QuorumDisk:
    return QuorumDisk.open(RealDisk(folder), voters, Settings())


def awaits(what: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.1)


def epoch_on_disk(folder: Path) -> int:
    """The epoch in quorum-state, 0 while there is none; the file is replaced as a whole."""
    path = folder / FOLDER / "quorum-state"
    found = re.search(r'"leaderId":1,"leaderEpoch":(\d+)', path.read_text()) if path.exists() else None
    return int(found[1]) if found else 0


def run_kafka(quorum: StaticQuorum, epoch: int) -> None:
    """Have a controller lead a later epoch, write its records, and stop in order."""
    quorum.start(1)
    try:
        awaits(lambda: epoch_on_disk(quorum.data(1)) > epoch)
        size = (quorum.data(1) / FOLDER / f"{0:020d}.log").stat
        before = size().st_size
        awaits(lambda: size().st_size > before + 300)
        quorum.stop(1, signal.SIGTERM)
    finally:
        quorum.kill_all()


@pytest.mark.parametrize("release", ["4.4.0", "4.0.1"])
def test_what_a_controller_wrote_is_read_and_it_goes_on_with_what_is_written_here(release: str, tmp_path: Path) -> None:
    quorum = StaticQuorum.of(tmp_path, (), [1], kafka_files(release))
    run_kafka(quorum, 0)
    files = files_of(quorum.data(1))
    whose = read_claim(files.disk)
    assert whose is not None
    assert (whose.broker, whose.cluster, len(whose.directory)) == (1, quorum.cluster, 22)
    assert (files.quorum.leader, files.quorum.vote) == (1, None)
    first = files.quorum.epoch
    kafkas = files.read(EVERYTHING)
    assert files.log.view.last_epoch == first == next(batches(kafkas)).leader_epoch
    assert not kraft_version(kafkas)
    assert kafkas[:91] == leader_change(
        1, fixed_voters(ALONE).last, ALONE, first, 0, next(batches(kafkas)).max_timestamp
    )
    image = MetadataImage()
    image.take_log(kafkas)
    assert "metadata.version" in image.features

    end = files.log.view.end
    files.save(QuorumState(epoch=first + 1, leader=1))
    files.append(leader_change(1, fixed_voters(ALONE).last, ALONE, first + 1, end, 0))
    nothing = batch_around(encoded_record(encode("NoOp", 0, {})))
    files.append(stamped(nothing, end + 1, first + 1))
    ours = files.read(attrs.evolve(EVERYTHING, offset=end))
    files.log.close()
    run_kafka(quorum, first + 1)
    after = files_of(quorum.data(1))
    assert after.read(EVERYTHING).startswith(kafkas + ours), "the controller took all of it for its own"
    assert after.quorum.epoch > first + 1
    assert after.log.view.epochs.last_before(end + 2) == first + 1


def test_kafkas_tool_reads_what_a_voter_wrote(tmp_path: Path) -> None:
    """In an empty folder of ours, and every batch of it."""
    disk = RealDisk(tmp_path)
    claim(disk, Claim(1, new_id()))
    three = frozenset({1, 2, 3})
    files = files_of(tmp_path, three)
    files.save(QuorumState(epoch=7, leader=1))
    files.append(leader_change(1, fixed_voters(three).last, {1, 3}, 7, 0, 1_700_000_000_000))
    feature = encode("FeatureLevel", 0, {"name": "metadata.version", "feature_level": 25})
    files.append(stamped(batch_around(encoded_record(feature)), 1, 7))
    path = tmp_path / FOLDER / f"{0:020d}.log"
    printed = kafka_tool("DumpLogSegments", ["--cluster-metadata-decoder", "--files", str(path)])
    assert "partitionLeaderEpoch: 7 isTransactional: false isControl: true" in printed
    assert '"leaderId":1' in printed
    assert '"grantingVoters":[{"voterId":1},{"voterId":3}]' in printed
    assert '"type":"FEATURE_LEVEL_RECORD"' in printed
    assert printed.count("isvalid: true") == 2
    path.write_bytes(path.read_bytes()[:-3] + b"\1\1\1")
    assert "isvalid: false" in kafka_tool("DumpLogSegments", ["--files", str(path)]), "the tool sees what is damaged"
