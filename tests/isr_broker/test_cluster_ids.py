"""Brokers of another cluster are refused, whatever they ask, and end with a sentence.

Without this a broker whose configuration names another cluster's controller would lead, and serve its own records as
that cluster's.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.isr_broker.test_wire import OF_BROKERS, one_broker, said
from tests.support.clusters import three_processes

from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.controller import controller_from_records
from isr_broker.core.effects import CONTROLLER, Halt, Send
from isr_broker.core.inputs import Received, Start, Written
from isr_broker.core.message_json import BadMessage, decode, encode
from isr_broker.core.messages import (
    AlterPartitionRequest,
    BrokerRegistered,
    Error,
    FetchMetadata,
    FetchRequest,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    OffsetForLeaderEpochRequest,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.runtime import NO_CLUSTER_ID
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.meta_properties import Claim, NotOurs, claim, cluster_in, new_id
from isr_broker.wire import protocol
from isr_broker.wire.cluster_ids import CLUSTER_TAG
from isr_broker.wire.controller_channels import AlterPartitions, Lifecycle
from isr_broker.wire.fetcher import Fetcher
from isr_broker.wire.protocol import Answer
from isr_cluster.processes import Mishap, Processes

TP = TopicPartition("t", 0)
MINE, THEIRS = new_id(), new_id()

# What a cluster is called


def test_a_cluster_id_is_random_and_kafkas_form() -> None:
    ids = {new_id() for _ in range(200)}
    assert len(ids) == 200
    for text in ids:
        assert len(text) == 22
        assert not text.startswith("-")
        assert len(base64.urlsafe_b64decode(text + "==")) == 16


def test_the_broker_with_the_controller_draws_the_id_of_a_new_folder_and_others_are_told_it() -> None:
    disk = MemoryDisk()
    drawn = cluster_in(disk, None, begins=True)
    assert len(drawn) == 22
    assert cluster_in(disk, THEIRS, begins=False) == THEIRS
    with pytest.raises(NotOurs, match="nobody says of which cluster; --cluster does"):
        cluster_in(disk, None, begins=False)
    for bad in ("", "two words", "a\nb"):
        with pytest.raises(NotOurs, match="the id of a cluster is one word"):
            cluster_in(disk, bad, begins=True)


def test_a_folder_of_an_older_run_keeps_the_name_of_its_cluster() -> None:
    disk = MemoryDisk()
    claim(disk, Claim(2, "insync"))
    assert cluster_in(disk, None, begins=False) == "insync"
    with pytest.raises(NotOurs, match=f"belongs to the cluster insync, not to {MINE}"):
        claim(disk, Claim(2, cluster_in(disk, MINE, begins=False)))


# The cores


def test_a_registration_of_another_cluster_is_refused_by_name() -> None:
    core = controller_from_records(Settings(), [], 0, MINE)
    for cluster, error in ((THEIRS, Error.INCONSISTENT_CLUSTER_ID), ("", Error.INCONSISTENT_CLUSTER_ID)):
        step = controllers.handle(core, Received(2, RegisterBroker(broker=2, incarnation=1, cluster=cluster)), 0)
        assert step.effects == (Send(2, BrokerRegistered(broker=2, incarnation=1, error=error)),)
        assert not step.core.brokers
    step = controllers.handle(core, Received(2, RegisterBroker(broker=2, incarnation=1, cluster=MINE)), 0)
    assert 2 in controllers.handle(step.core, Written(step.core.offset), 0).core.brokers


def halts(node: nodes.Node, message: Message) -> str:
    (effect,) = nodes.handle(node, Received(CONTROLLER, message), 0).effects
    assert isinstance(effect, Halt)
    return effect.why


def test_a_broker_whose_controller_is_of_another_cluster_ends_with_a_sentence() -> None:
    start = Start(7, cluster=MINE)
    node = nodes.handle(nodes.Node(me=2, settings=Settings()), start, 0).core
    why = f"the controller is of another cluster than {MINE}, to which the data belong (INCONSISTENT_CLUSTER_ID)"
    refusal = BrokerRegistered(broker=2, incarnation=7, error=Error.INCONSISTENT_CLUSTER_ID)
    assert halts(node, refusal) == why
    late = BrokerRegistered(broker=2, incarnation=6, error=Error.INCONSISTENT_CLUSTER_ID)
    assert nodes.handle(node, Received(CONTROLLER, late), 0).core == node, "the answer to an earlier process"
    registered = BrokerRegistered(broker=2, incarnation=7, broker_epoch=5)
    node = nodes.handle(node, Received(CONTROLLER, registered), 0).core
    assert halts(node, HeartbeatAnswer(broker=2, broker_epoch=5, error=Error.INCONSISTENT_CLUSTER_ID)) == why


# Every request that a broker sends


def alter(cluster: str) -> bytes | None:
    asks = AlterPartitions(2, cluster, lambda topic: bytes(16))
    asks.put(
        AlterPartitionRequest(partition=TP, leader=2, broker_epoch=1, leader_epoch=0, partition_epoch=0, isr=((2, 1),))
    )
    return asks.next()


def register(cluster: str) -> bytes | None:
    lives = Lifecycle(2, cluster)
    lives.put(RegisterBroker(broker=2, incarnation=1, cluster=cluster))
    return lives.next()


def beat(cluster: str) -> bytes | None:
    lives = Lifecycle(2, cluster)
    lives.put(Heartbeat(broker=2, broker_epoch=1, metadata_offset=0))
    return lives.next()


def fetch(cluster: str) -> bytes | None:
    fetcher = Fetcher(2, 1, Settings(), cluster, lambda topic: bytes(16))
    fetcher.put(FetchRequest(partition=TP, replica=2, broker_epoch=1, leader_epoch=0, offset=0, last_epoch=-1))
    return fetcher.next()


def epoch_end(cluster: str) -> bytes | None:
    fetcher = Fetcher(2, 1, Settings(), cluster, lambda topic: bytes(16))
    fetcher.put(OffsetForLeaderEpochRequest(partition=TP, replica=2, leader_epoch=0, offset=0, last_epoch=0))
    return fetcher.next()


ASKS: tuple[Callable[[str], bytes | None], ...] = (alter, register, beat, fetch, epoch_end)


@pytest.mark.parametrize("asks", ASKS)
def test_a_request_of_another_cluster_is_refused_by_name(asks: Callable[[str], bytes | None]) -> None:
    alone = one_broker()

    def error(cluster: str) -> int:
        frame = asks(cluster)
        assert frame is not None
        answer = said(alone, frame)
        assert answer is not None
        body = protocol.parse_answer(*_api(frame), answer[4:]).body
        inner = [p for topic in body.all("topics") for p in topic.all("partitions")]
        return inner[0].number("error_code") if asks is epoch_end else body.number("error_code", 0)

    assert error(THEIRS) == Error.INCONSISTENT_CLUSTER_ID.value
    assert error(NO_CLUSTER_ID) != Error.INCONSISTENT_CLUSTER_ID.value


def _api(frame: bytes) -> tuple[int, int]:
    return int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")


def test_a_request_that_names_no_cluster_is_not_compared_but_a_registration_is() -> None:
    """As KafkaRaftClient.hasValidClusterId and ClusterControlManager.registerBroker do."""
    alone = one_broker()
    for key, error in (
        (protocol.BROKER_HEARTBEAT, Error.BROKER_ID_NOT_REGISTERED),
        (protocol.BROKER_REGISTRATION, None),
    ):
        fields: Answer = {**OF_BROKERS, "cluster_id": "", protocol.HEADER_TAGS: {}}
        answer = said(alone, protocol.ask(key, 1, 1, "another", fields))
        assert answer is not None
        code = protocol.parse_answer(key, 1, answer[4:]).body.number("error_code")
        assert code == (error or Error.INCONSISTENT_CLUSTER_ID).value


def test_a_frame_of_another_cluster_is_no_message() -> None:
    """Metadata, and what admins ask of another broker, travel in frames of our own."""
    parcel = (2, CONTROLLER, FetchMetadata(broker=2, broker_epoch=1, offset=0))
    frame = encode([parcel], MINE)[4:]
    assert decode(frame, MINE) == [parcel]
    with pytest.raises(BadMessage, match=f"a message of a broker of the cluster '{MINE}', not of '{THEIRS}'"):
        decode(frame, THEIRS)


def test_the_tag_is_no_field_of_kafkas() -> None:
    frame = beat(MINE)
    assert frame is not None
    request = protocol.parse(frame[4:])
    assert isinstance(request, protocol.Request)
    assert request.tags == {CLUSTER_TAG: MINE.encode()}
    assert "cluster_id" not in request.body.values


# Processes


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_a_broker_of_another_cluster_does_not_join_and_ends(tmp_path: Path) -> None:
    ours = three_processes(tmp_path / "ours")
    theirs = Processes(tmp_path / "theirs", ours.ports, ours.properties)
    try:
        ours.start(1)
        theirs.start(2)
    except Mishap as early:
        ended = str(early)
    else:
        stranger = theirs.running[2]
        stranger.process.wait(30)
        stranger.reader.join(5)
        ended = stranger.last[-1]
        assert stranger.exit_code == 1
    finally:
        theirs.kill_all()
        codes = ours.stop_all()
    assert f"the controller is of another cluster than {theirs.cluster}" in ended
    assert codes == {1: 0}
