"""Three voters as processes: they elect a leader, and what is committed outlives SIGKILL of one and of all.

Without these a voter could run in simulated time alone, or keep in its process's memory what it has acknowledged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.support.quorums import QuorumStatus, StaticQuorum

from isr_broker.core.record_batch import batches, whole_batches
from isr_cluster.processes import python_module

pytestmark = [pytest.mark.processes, pytest.mark.sockets, pytest.mark.long]

QUICK = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "600",
    "metadata.max.idle.interval.ms": "20",
}


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[StaticQuorum]:
    voters = StaticQuorum.of(tmp_path, [1, 2, 3], properties=QUICK)
    yield voters
    voters.kill_all()


def beyond(epoch: int, watermark: int) -> Callable[[QuorumStatus], bool]:
    """A leader of a later epoch has committed more."""
    return lambda status: status.epoch > epoch and status.watermark > watermark


def caught_up(voter: int, end: int) -> Callable[[QuorumStatus], bool]:
    """A voter has more than this."""
    return lambda status: status.ends[voter] > end


def lost(quorum: StaticQuorum, committed: bytes) -> bool:
    """Whether the leader of a later epoch has another log than was committed, once it has committed as much."""
    end = list(batches(committed))[-1].next_offset
    status = quorum.awaits_status(lambda status: status.watermark > 0)
    if status.watermark >= end:
        return not quorum.log_bytes(status.leader).startswith(committed)
    # It may still find out how far its log is committed; its own record comes behind all of it.
    first = next(b for b in batches(whole_batches(quorum.log_bytes(status.leader))) if b.leader_epoch == status.epoch)
    return first.base_offset < end


def test_leaders_are_killed_one_after_the_other_and_nothing_committed_is_lost(quorum: StaticQuorum) -> None:
    quorum.start_all()
    status, epochs, committed = quorum.awaits_status(beyond(0, 20)), list[int](), b""
    for _ in range(3):
        committed = quorum.committed()
        epochs.append(status.epoch)
        assert quorum.kill(status.leader)
        killed, before = status.leader, status
        status = quorum.awaits_status(beyond(before.epoch, before.watermark + 20))
        assert status.leader != killed
        assert quorum.log_bytes(status.leader).startswith(committed)
        quorum.start(killed)
        status = quorum.awaits_status(caught_up(killed, status.watermark))
        assert quorum.log_bytes(killed).startswith(committed), "it has cut what nobody else has, and the rest is there"
    assert epochs == sorted(set(epochs))
    assert set(quorum.stop_all().values()) == {0}
    logs = sorted((quorum.log_bytes(node) for node in quorum.ports), key=len)
    assert logs[2].startswith(logs[1])
    assert logs[1].startswith(logs[0])
    assert logs[0].startswith(committed)


FORGETS = """
import sys
from isr_broker.storage.quorum_disk import QuorumDisk
from isr_broker import voter
open_all = QuorumDisk.open
def open_some(disk, voters, settings):
    files = open_all(disk, voters, settings)
    files.truncate(max(0, files.log.view.end - 15))
    return files
QuorumDisk.open = open_some
sys.exit(voter.main(sys.argv[1:]))
"""
"""A voter that starts with less than it has acknowledged."""


def killed_at_once(quorum: StaticQuorum, program: Sequence[str]) -> bytes:
    """What was committed when all were killed; they are back, each by this program."""
    quorum.start_all()
    quorum.awaits_status(lambda status: status.watermark > 40)
    committed = quorum.committed()
    quorum.kill_all()
    quorum.program = program
    quorum.start_all()
    return committed


def test_all_are_killed_at_once_and_nothing_committed_is_lost(quorum: StaticQuorum) -> None:
    assert not lost(quorum, killed_at_once(quorum, quorum.program))


def test_voters_that_start_with_less_are_noticed(quorum: StaticQuorum, tmp_path: Path) -> None:
    planted = tmp_path / "forgets.py"
    planted.write_text(FORGETS)
    assert lost(quorum, killed_at_once(quorum, [sys.executable, str(planted)]))


def test_a_leader_that_is_stopped_in_order_is_followed_by_another(quorum: StaticQuorum) -> None:
    quorum.start_all()
    first = quorum.awaits_status()
    assert quorum.stop(first.leader, signal.SIGTERM) == 0
    second = quorum.awaits_status(lambda status: status.epoch > first.epoch)
    assert second.leader != first.leader


STARTS_THREE = """
import pathlib, sys, time
from tests.support.quorums import StaticQuorum
quorum = StaticQuorum.of(pathlib.Path(sys.argv[1]), [1, 2, 3])
quorum.start_all()
print(*(started.process.pid for started in quorum.running.values()), flush=True)
time.sleep(60)
"""


def test_voters_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    """What they say then nobody reads any more, and that must not keep them."""
    command = [sys.executable, "-c", STARTS_THREE, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    starter = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert starter.stdout is not None
    voters = [int(number) for number in starter.stdout.readline().split()]
    assert len(voters) == 3
    starter.kill()
    starter.wait(30)
    starter.stdout.close()
    end = time.monotonic() + 30
    while any(
        Path(f"/proc/{n}").exists() and "Z" not in Path(f"/proc/{n}/stat").read_text().split()[2] for n in voters
    ):
        assert time.monotonic() < end, "they run on, left alone"
        time.sleep(0.05)


def refusal(quorum: StaticQuorum, *arguments: str) -> str:
    """The one sentence with which a voter does not start."""
    command = [*python_module("isr_broker.voter"), *arguments, f"controller.quorum.voters={quorum.voters}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    return ran.stderr


def test_a_folder_is_formatted_once_and_is_of_one_node(quorum: StaticQuorum) -> None:
    data = str(quorum.data(1))
    assert "is not formatted: --format does that" in refusal(quorum, "--id", "1", "--data", data)
    quorum.own_command(2)
    again = ["--data", str(quorum.data(2)), "--cluster", quorum.cluster]
    assert "is formatted already: node 2" in refusal(quorum, "--id", "2", *again, "--format")
    assert "is that of broker 2, not of broker 1" in refusal(quorum, "--id", "1", *again)
    assert "4 is none of them" in refusal(quorum, "--id", "4", *again)


def test_a_damaged_quorum_state_is_one_sentence(quorum: StaticQuorum) -> None:
    quorum.start_all()
    quorum.awaits_status(lambda status: status.watermark > 0)
    quorum.kill_all()
    state = quorum.data(1) / "__cluster_metadata-0" / "quorum-state"
    text = state.read_bytes()
    state.write_bytes(text[:20])
    assert "quorum-state cannot be read" in refusal(quorum, "--id", "1", "--data", str(quorum.data(1)))
    assert state.read_bytes() == text[:20]
