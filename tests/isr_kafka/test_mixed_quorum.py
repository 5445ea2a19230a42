"""A quorum of our voters and Apache Kafka's controllers, on Kafka's wire: both lead, and each is killed.

Without these a voter could speak to its own kind only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.quorums import QuorumStatus, StaticQuorum, kafka_files, kafka_tool

from isr_broker.core.record_batch import whole_batches
from isr_cluster.ports import HOST

pytestmark = [pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets, pytest.mark.slow]

MOST_ROUNDS = 8
PATIENT = {
    "controller.quorum.election.timeout.ms": "2000",
    "controller.quorum.fetch.timeout.ms": "5000",
    "controller.quorum.request.timeout.ms": "5000",
}
"""A machine may be busy with other JVMs."""
LATER = {**PATIENT, "controller.quorum.fetch.timeout.ms": "8000"}
"""Of the kind of which there is one: who asks for pre-votes last gets them, for the others know no leader by then."""
PATIENCE = 240.0


@pytest.fixture(params=[("4.4.0", 1), ("4.4.0", 2), ("4.0.1", 1)], ids=lambda mix: f"{mix[0]}, {mix[1]} of ours")
def mix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StaticQuorum]:
    release, ours = request.param
    voters = (1, 2, 3)
    times = (LATER, PATIENT) if ours == 1 else (PATIENT, LATER)
    quorum = StaticQuorum.of(tmp_path, voters[:ours], voters[ours:], kafka_files(release), *times)
    yield quorum
    quorum.kill_all()


def all_caught_up(status: QuorumStatus) -> bool:
    return status.watermark > 0 and min(status.ends.values()) >= status.watermark


def next_leader(killed: QuorumStatus) -> Callable[[QuorumStatus], bool]:
    return lambda status: status.epoch > killed.epoch and status.watermark > killed.watermark


def test_both_lead_and_what_is_committed_stays(mix: StaticQuorum) -> None:
    """Each leader is killed, until each kind has led and was killed; all that was committed is in every log then."""
    for node in mix.ports:
        mix.start(node)
    status, committed = mix.awaits_status(all_caught_up, PATIENCE), b""
    kinds = set[bool]()
    for _ in range(MOST_ROUNDS):
        kinds.add(status.leader in mix.ours)
        committed = mix.committed()
        assert mix.kill(status.leader)
        after = mix.awaits_status(next_leader(status), PATIENCE)
        assert mix.log_bytes(after.leader).startswith(committed)
        mix.start(status.leader)
        status = mix.awaits_status(all_caught_up, PATIENCE)
        assert mix.log_bytes(after.leader).startswith(committed)
        if len(kinds) == 2:
            break
    assert kinds == {True, False}
    server = f"{HOST}:{mix.ports[1]}"
    told = kafka_tool("MetadataQuorumCommand", ["--bootstrap-controller", server, "describe", "--status"])
    assert re.search(rf"LeaderId: +{status.leader}\n", told)
    assert re.search(rf"LeaderEpoch: +{status.epoch}\n", told)
    assert not mix.early_exits()
    mix.stop_all()
    logs = sorted((whole_batches(mix.log_bytes(node)) for node in mix.ports), key=len)
    assert logs[0].startswith(committed)
    assert logs[1].startswith(logs[0])
    assert logs[2].startswith(logs[1])
