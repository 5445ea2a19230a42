"""What is damaged on a disk while its process is down is refused by name, or healed from another; no log is deleted.

Real processes with an ordinary client. Without these a controller that has lost its metadata would begin a new cluster,
and its brokers would delete what the old one had acknowledged.
"""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.isr_broker.test_process import eventually
from tests.support.clients import Confluent, confluent_read, create_topic
from tests.support.clusters import three_processes

from isr_broker.storage.checkpoints import CLEAN_SHUTDOWN, EPOCHS, LOG_STARTS, POSITION, RECOVERY_POINTS, WATERMARKS
from isr_broker.storage.metadata_end import END
from isr_broker.storage.metadata_log import NAME
from isr_cluster.admin import Admin
from isr_cluster.ports import HOST
from isr_cluster.processes import Mishap, Processes

pytestmark = [pytest.mark.processes, pytest.mark.sockets]

VALUES = [b"%06d" % number for number in range(300)]
SEGMENT = f"t-0/{0:020d}.log"


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def processes(tmp_path: Path, lines: list[str]) -> Iterator[Processes]:
    """Three brokers with a topic, in which everything is acknowledged by all."""
    brokers = three_processes(tmp_path, tell=lines.append)
    brokers.start_all()
    eventually(lambda: create_topic(brokers.bootstrap, "t", 1, 2))
    Confluent(brokers.bootstrap, {"acks": "all"}).send_all("t", VALUES)
    yield brokers
    brokers.kill_all()


def all_read(processes: Processes) -> None:
    assert confluent_read(processes.bootstrap, "t", len(VALUES)) == VALUES


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not in {seconds} s"
        time.sleep(0.05)


def ended(processes: Processes, broker: int) -> int | None:
    return processes.running[broker].exit_code


def in_sync(processes: Processes) -> list[int]:
    """The brokers that are in sync."""
    with Admin((HOST, processes.ports[1]), 30) as admin:
        return sorted(admin.partitions(["t"])[0].isr)


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(data))


# The controller's metadata


def without_last_record(text: bytes) -> bytes:
    return text[: text.rindex(b"\n", 0, len(text) - 1) + 1]


def test_a_controller_whose_metadata_log_is_missing_empty_or_ends_early_does_not_start(processes: Processes) -> None:
    assert set(processes.stop_all().values()) == {0}
    path = processes.root / "1" / NAME
    whole = path.read_bytes()
    for left in (None, b"", without_last_record(whole), whole[: len(whole) // 2], without_last_record(whole)[:-3]):
        path.unlink() if left is None else path.write_bytes(left)
        with pytest.raises(Mishap, match=r"metadata\.log (is missing|ends at record|: the record)"):
            processes.start(1)
        assert (path.read_bytes() if path.exists() else None) == left, "nothing is cut or made"
    path.write_bytes(whole)
    processes.start_all()
    eventually(lambda: all_read(processes))


def test_brokers_that_know_more_than_the_controller_refuse_it_and_logs_that_it_does_not_know_are_set_aside(
    processes: Processes, lines: list[str]
) -> None:
    """All that could say so is gone from the controller's disk: the others remember."""
    assert set(processes.stop_all().values()) == {0}
    folder = processes.root / "1"
    segment, lost = (folder / SEGMENT).read_bytes(), processes.root / "lost"
    lost.mkdir()
    for name in (NAME, END, POSITION, CLEAN_SHUTDOWN):
        shutil.move(folder / name, lost / name)
    processes.start_all()
    wait_for(lambda: ended(processes, 2) == ended(processes, 3) == 1)
    said = [line for line in lines if "metadata.log up to record" in line]
    assert {line.split("broker ")[1][0] for line in said} >= {"2", "3"}
    (stray,) = (path for path in folder.iterdir() if path.name.endswith("-stray"))
    assert re.fullmatch(r"t-0\.[0-9a-f]{32}-stray", stray.name)
    assert (stray / SEGMENT.partition("/")[2]).read_bytes() == segment
    for broker in (2, 3):
        assert (processes.root / str(broker) / SEGMENT).read_bytes() == segment
    # An operator puts it all back.
    processes.kill_all()
    stray.rename(folder / "t-0")
    for name in (NAME, END, POSITION):
        shutil.move(lost / name, folder / name)
    processes.start_all()
    eventually(lambda: all_read(processes))


def test_a_controller_on_an_older_disk_ends_when_a_broker_says_what_it_has_read(
    processes: Processes, lines: list[str]
) -> None:
    processes.kill(1)
    older = processes.root / "older"
    shutil.copytree(processes.root / "1", older)
    processes.start(1)
    eventually(lambda: create_topic(processes.bootstrap, "u", 1, 2))
    Confluent(processes.bootstrap, {"acks": "all"}).send_all("u", VALUES)
    processes.kill(1)
    newest = processes.root / "newest"
    (processes.root / "1").rename(newest)
    older.rename(processes.root / "1")
    processes.start(1)
    wait_for(lambda: ended(processes, 1) == 1)
    assert any("has read the controller's metadata.log up to record" in line for line in lines)
    processes.kill_all()
    shutil.rmtree(processes.root / "1")
    newest.rename(processes.root / "1")
    processes.start_all()
    eventually(lambda: all_read(processes))
    assert confluent_read(processes.bootstrap, "u", len(VALUES)) == VALUES


def test_a_data_directory_that_has_lost_whose_it_is_is_refused(processes: Processes) -> None:
    processes.stop(3, signal.SIGTERM)
    (processes.root / "3" / "meta.properties").unlink()
    with pytest.raises(Mishap, match=r"meta\.properties is missing"):
        processes.start(3)


# Checkpoints


def test_a_flipped_bit_in_a_checkpoint_takes_no_record_away(processes: Processes) -> None:
    """Every broker has one in the same file: so it is no other broker that makes it good."""
    for name in (LOG_STARTS, WATERMARKS, RECOVERY_POINTS, CLEAN_SHUTDOWN, POSITION, f"t-0/{EPOCHS}"):
        assert set(processes.stop_all().values()) == {0}
        for broker in processes.ports:
            path = processes.root / str(broker) / name
            text = path.read_bytes()
            row = text.find(b"t 0 ") + 4 if b"t 0 " in text else len(text) // 2
            flip(path, 8 * row + 3)  # an 8 more or less, in a digit
        processes.start_all()
        eventually(lambda: all_read(processes))


# Segments


def test_a_damaged_batch_is_never_served_and_its_replica_comes_back_from_another(
    processes: Processes, lines: list[str]
) -> None:
    """Broker 1 is the last to stop and the first to start, so it leads."""
    assert set(processes.stop_all().values()) == {0}
    path = processes.root / "1" / SEGMENT
    size = path.stat().st_size
    flip(path, 8 * (size // 2) + 5)
    processes.start_all()
    eventually(lambda: all_read(processes))
    assert any("ALARM t-0 is offline here" in line and SEGMENT in line for line in lines)
    processes.stop(1)
    processes.start(1)
    wait_for(lambda: any(path.name.endswith("-stray") for path in (processes.root / "1").iterdir()))
    wait_for(lambda: path.exists() and path.stat().st_size == size)
    assert path.read_bytes() == (processes.root / "2" / SEGMENT).read_bytes()
    wait_for(lambda: 1 in in_sync(processes))
    for broker in (2, 3):
        processes.stop(broker)
    eventually(lambda: all_read(processes))
