"""Three controllers that are known by their disks, and three brokers, as processes: a controller's disk is destroyed.

A producer with acks=all goes on, the controller comes back with another disk and is put in again, and all that was
acknowledged is read. Without this a lost disk could end a cluster, or take with it what was committed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.isr_broker.test_controller_process import OF_ALL, QUICK, active, begins, created, in_time, other_leader
from tests.support.quorums import DynamicControllers

from isr_broker.core.messages import Error

pytestmark = [pytest.mark.processes, pytest.mark.sockets, pytest.mark.long]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[DynamicControllers]:
    nodes = DynamicControllers.of(tmp_path, OF_ALL, QUICK)
    yield nodes
    nodes.kill_all()


@pytest.mark.parametrize("of_active", [False, True], ids=["of a follower", "of the active one"])
def test_a_controller_loses_its_disk_and_is_put_in_again(processes: DynamicControllers, of_active: bool) -> None:
    traffic = begins(processes)
    status = active(processes)
    lost = status.leader if of_active else min(set(status.ends) - {status.leader})
    processes.loses_disk(lost)
    traffic.goes_on(20)
    processes.start(lost)
    traffic.goes_on(20)
    in_time(lambda: active(processes).observers.get(lost, 0) >= 0, "the new disk does not follow")
    assert processes.puts_in_again(lost) == [Error.NONE, Error.NONE]
    in_time(lambda: active(processes).directories[lost] == processes.directories[lost], "it is no voter")
    in_time(lambda: created(processes, "u"), "no controller creates a topic")
    other = min(set(status.ends) - {lost, active(processes).leader})
    assert processes.kill(other)
    traffic.goes_on(20)
    in_time(lambda: created(processes, "v"), "the new disk is not counted")
    other_leader(processes, traffic)
    processes.start(other)
    assert not traffic.lost(processes)
    assert not processes.early_exits()
    assert set(processes.stop_all().values()) == {0}


def test_a_folder_is_formatted_as_that_of_one_of_the_first_voters_or_of_none(tmp_path: Path) -> None:
    nodes = DynamicControllers.of(tmp_path, {}, {})
    (number, *_) = nodes.controllers
    directory = nodes.format(number)
    checkpoint = nodes.data(number) / "__cluster_metadata-0" / f"{0:020d}-{0:010d}.checkpoint"
    assert checkpoint.exists()
    assert directory == nodes.directories[number]
    with pytest.raises(subprocess.CalledProcessError):
        nodes.format(number)
    nodes.loses_disk(number)
    assert nodes.format(number) == nodes.directories[number] != directory
    assert not checkpoint.exists()
