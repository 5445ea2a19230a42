"""Controllers that take snapshots, in simulated time and as processes: logs begin later, and nothing is forgotten.

Without this a log would grow without end, or a controller that starts from a snapshot, or fetches one, would lack a
topic or a registration that somebody was told of.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import attrs
import pytest
from immutables import Map
from tests.isr_broker.test_controller_process import OF_ALL, QUICK, active, begins, created, in_time
from tests.isr_broker.test_controller_runtime import SETTINGS, Controllers
from tests.isr_broker.test_voter_runtime import BUSY
from tests.support.quorums import DynamicControllers, kafka_tool

from isr_broker.controller_runtime import ControllerRuntime
from isr_broker.core.controller_state import Controller
from isr_broker.core.messages import Error
from isr_broker.storage.quorum_disk import FOLDER
from isr_broker.voter_runtime import VoterRuntime
from isr_broker.wire import controller_records
from isr_broker.wire.controller_records import LogImage, replay, snapshot_of

SMALL = attrs.evolve(SETTINGS, metadata_log_max_record_bytes_between_snapshots=3_000)


def world(seed: int = 1, runs: type[ControllerRuntime] = ControllerRuntime) -> Controllers:
    return Controllers(BUSY, VoterRuntime, random.Random(seed), runs=runs, core_settings=SMALL)


def starts(controllers: Controllers) -> dict[int, int]:
    """Where the log of each controller begins."""
    return {me: runtime.files.log.view.start for me, runtime in controllers.runtimes.items()}


def test_what_a_snapshot_says_is_what_the_log_said() -> None:
    controllers = world()
    controllers.run(8_000)
    for voter in controllers.runtimes.values():
        image = cast("ControllerRuntime", voter).image
        again, _ = replay(LogImage(controller=Controller(settings=SMALL, cluster="c")), snapshot_of(image, 5))
        assert again.controller.brokers == image.controller.brokers
        assert again.controller.partitions == image.controller.partitions
        assert (again.controller.offset, again.controller.lives) == (image.controller.offset, image.controller.lives)
        assert again == attrs.evolve(image, controller=again.controller, cluster_configs=again.cluster_configs)


def after_an_absence(runs: type[ControllerRuntime] = ControllerRuntime) -> Controllers:
    """One is away while the others take snapshots; it fetches one, and then all start again with what they have."""
    controllers = world(runs=runs)
    controllers.run(3_000)
    leader = controllers.leader()
    assert leader is not None
    away = min({1, 2, 3} - {leader})
    controllers.crash(away)
    controllers.run(8_000)
    controllers.start(away)
    ended = controllers.runtimes[away].voter.log.end
    assert max(starts(controllers).values()) > ended
    controllers.run(12_000)
    assert starts(controllers)[away] > ended
    for me in (1, 2, 3):
        controllers.crash(me)
    for me in (1, 2, 3):
        controllers.start(me)
    controllers.run(20_000)
    return controllers


def test_a_controller_fetches_a_snapshot_and_all_start_again_with_theirs() -> None:
    controllers = after_an_absence()
    assert not controllers.losses()
    assert len(controllers.answered) > 50
    assert all(len(runtime.files.disk.names(FOLDER)) < 8 for runtime in controllers.runtimes.values())


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_when_leaders_crash_and_snapshots_are_taken(seed: int) -> None:
    controllers = Controllers(BUSY, VoterRuntime, random.Random(seed), 0.05, core_settings=SMALL)
    controllers.run(20_000, faults=range(3_000, 18_000, 3_000))
    controllers.loss = 0.0
    controllers.run(25_000)
    assert not controllers.losses()
    assert min(starts(controllers).values()) > 0


def test_a_snapshot_that_lacks_something_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_the_first(image: LogImage, wall: int) -> bytes:
        core = image.controller
        topic = min(core.partitions).topic if core.partitions else ""
        partitions = Map({tp: p for tp, p in core.partitions.items() if tp.topic != topic})
        return controller_records.snapshot_of(
            attrs.evolve(image, controller=attrs.evolve(core, partitions=partitions)), wall
        )

    monkeypatch.setattr("isr_broker.controller_runtime.snapshot_of", without_the_first)
    assert after_an_absence().losses()


# As processes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[DynamicControllers]:
    small = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
    nodes = DynamicControllers.of(tmp_path, {**OF_ALL, **small}, QUICK)
    yield nodes
    nodes.kill_all()


def checkpoints(nodes: DynamicControllers, number: int) -> list[Path]:
    return sorted((nodes.data(number) / FOLDER).glob("*.checkpoint"))


def has_snapshot(nodes: DynamicControllers, number: int) -> bool:
    """It has one of some records, and not that with which its folder was formatted alone."""
    return checkpoints(nodes, number)[-1].name[:20] != "0" * 20


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_a_new_disk_is_filled_from_a_snapshot(processes: DynamicControllers) -> None:
    traffic = begins(processes)
    for number in range(8):
        in_time(lambda: created(processes, f"t{number}"), "no topic is created")  # noqa: B023
    status = active(processes)
    lost = min(set(status.ends) - {status.leader})
    in_time(lambda: has_snapshot(processes, status.leader), "no snapshot is taken")
    processes.loses_disk(lost)
    processes.start(lost)
    assert processes.puts_in_again(lost) == [Error.NONE, Error.NONE]
    assert checkpoints(processes, lost), "it has fetched a snapshot"
    assert processes.kill(active(processes).leader)
    in_time(lambda: created(processes, "u"), "no controller creates a topic")
    traffic.goes_on(20)
    assert not traffic.lost(processes)


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
def test_kafkas_tool_reads_a_snapshot(processes: DynamicControllers) -> None:
    begins(processes)
    for number in range(8):
        in_time(lambda: created(processes, f"t{number}"), "no topic is created")  # noqa: B023
    status = active(processes)
    in_time(lambda: has_snapshot(processes, status.leader), "no snapshot is taken")
    processes.stop_all()
    (snapshot,) = checkpoints(processes, status.leader)
    text = kafka_tool("DumpLogSegments", ["--cluster-metadata-decoder", "--files", str(snapshot)])
    for kind in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"):
        assert kind in text
    for kind in ("REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "NO_OP_RECORD"):
        assert kind in text
    assert "rror" not in text
