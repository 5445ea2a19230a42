"""Who may be a broker: registrations that are refused by name, brokers that end for it, and those that are gone."""

from __future__ import annotations

import time
from pathlib import Path

import attrs
import pytest
from tests.isr_broker.test_controller import Quorum
from tests.isr_broker.test_wire import OF_BROKERS, one_broker, said
from tests.support.clusters import QUICK, Cluster, three_processes

from isr_broker.core import node as nodes
from isr_broker.core.controller import controller_from_records
from isr_broker.core.effects import CONTROLLER, CheckpointWatermarks, Effect, Halt, StopProcess
from isr_broker.core.inputs import Received, ShutDown, Start, Tick
from isr_broker.core.messages import (
    AdminAnswer,
    BrokerRegistered,
    Error,
    FetchMetadata,
    Heartbeat,
    HeartbeatAnswer,
    Metadata,
    RegisterBroker,
    UnregisterBroker,
    unregistration,
)
from isr_broker.designs import KRAFT_3_5
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.controller_channels import ELR
from isr_broker.wire.protocol import Fields
from isr_cluster.admin import Admin
from isr_cluster.ports import HOST
from isr_cluster.processes import Processes

# A broker that is not registered ends


def halts(effects: tuple[Effect, ...]) -> list[str]:
    return [effect.why for effect in effects if isinstance(effect, Halt)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Error.NONE, "the controller did not answer"),
        (
            Error.DUPLICATE_BROKER_REGISTRATION,
            "the controller answered DUPLICATE_BROKER_REGISTRATION, for another process has this number",
        ),
        (
            Error.INVALID_REGISTRATION,
            "the controller answered INVALID_REGISTRATION, for another broker has this data directory",
        ),
        (Error.UNSUPPORTED_VERSION, "the controller answered UNSUPPORTED_VERSION"),
    ],
)
def test_a_broker_that_is_not_registered_in_time_ends_with_the_reason(error: Error, reason: str) -> None:
    settings = Settings(initial_broker_registration_timeout_ms=5_000)
    node = nodes.handle(nodes.Node(me=2, settings=settings), Start(7), 1_000).core
    if error is not Error.NONE:
        refusal = BrokerRegistered(broker=2, incarnation=7, error=error)
        node = nodes.handle(node, Received(CONTROLLER, refusal), 2_000).core
    while (at := nodes.own_deadline(node)) < 6_000:
        step = nodes.handle(node, Tick(), at)
        assert not halts(step.effects), "it asks again until then"
        node = step.core
    why = f"broker 2 was not registered within 5000 ms (initial.broker.registration.timeout.ms): {reason}"
    assert halts(nodes.handle(node, Tick(), 6_000).effects) == [why]


def test_a_broker_that_was_registered_once_waits_for_its_controller_as_long_as_it_takes() -> None:
    settings = Settings(initial_broker_registration_timeout_ms=5_000)
    node = nodes.handle(nodes.Node(me=2, settings=settings), Start(7), 0).core
    node = nodes.handle(node, Received(CONTROLLER, BrokerRegistered(broker=2, incarnation=7, broker_epoch=3)), 1).core
    for now in range(2_000, 20_000, 2_000):
        step = nodes.handle(node, Tick(), now)
        assert not halts(step.effects)
        node = step.core


@pytest.mark.parametrize("previous", [-1, 9])
def test_a_broker_that_is_to_stop_before_it_is_registered_stops_at_once(previous: int) -> None:
    node = nodes.handle(nodes.Node(me=2, settings=Settings()), Start(7, previous), 0).core
    step = nodes.handle(node, ShutDown(), 1)
    assert step.effects == (StopProcess(previous, CheckpointWatermarks(())),), "in order, if its last life ended so"
    assert step.core.phase is nodes.Phase.STOPPED


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_a_process_whose_number_is_taken_ends_and_says_so(tmp_path: Path) -> None:
    settings = attrs.evolve(QUICK, initial_broker_registration_timeout_ms=2_000)
    ours, more = three_processes(tmp_path / "a", settings), three_processes(tmp_path / "b", settings)
    twin = Processes(more.root, {1: ours.ports[1], 2: more.ports[2]}, ours.properties, ours.cluster)
    try:
        for broker in (1, 2):
            ours.start(broker)
        time.sleep(1)  # so long that the session has begun
        twin.start(2)
        second = twin.running[2]
        second.process.wait(30)
        second.reader.join(5)
        assert second.exit_code == 1
        assert "was not registered within 2000 ms (initial.broker.registration.timeout.ms)" in second.last[-1]
        assert second.last[-1].endswith("DUPLICATE_BROKER_REGISTRATION, for another process has this number")
        assert not ours.early_exits()
    finally:
        twin.kill_all()
        ours.kill_all()


# A number that is taken (ClusterControlManagerTest, BrokerHeartbeatManagerTest)


def duplicate(quorum: Quorum, broker: int, incarnation: int) -> bool:
    """Whether the registration of another process is refused, for the number is taken."""
    (answer,) = quorum.hear(RegisterBroker(broker=broker, incarnation=incarnation), broker)
    assert isinstance(answer, BrokerRegistered)
    assert answer.error in (Error.NONE, Error.DUPLICATE_BROKER_REGISTRATION)
    return answer.error is not Error.NONE


def late_beat(quorum: Quorum, broker: int, stop: bool = False) -> HeartbeatAnswer:
    """A heartbeat of a broker that has not yet read its own registration, and so stays fenced."""
    epoch = quorum.core.brokers[broker].epoch
    beat = Heartbeat(broker=broker, broker_epoch=epoch, metadata_offset=epoch - 1, wants_to_shut_down=stop)
    (answer,) = quorum.hear(beat, broker)
    assert isinstance(answer, HeartbeatAnswer)
    return answer


def test_the_number_of_a_broker_with_a_session_is_taken_until_that_is_over() -> None:
    quorum = Quorum()
    quorum.now += 8_999
    assert duplicate(quorum, 2, 7)
    quorum.loses(2)
    assert not duplicate(quorum, 2, 7)


def test_the_number_of_a_fenced_broker_is_taken_as_long_as_it_is_heard() -> None:
    """It has yet to read the metadata. Two processes would take the number from each other in turns."""
    quorum = Quorum()
    assert not duplicate(quorum, 4, 1)
    assert not duplicate(quorum, 4, 2), "the first has sent no heartbeat"
    for _ in range(2):
        assert late_beat(quorum, 4).fenced
        quorum.now += 8_999
        for broker in (1, 2, 3):
            quorum.beats(broker)
        assert duplicate(quorum, 4, 3)
    records = len(quorum.records)
    quorum.now += 1
    quorum.tell(Tick())
    assert sorted(quorum.core.contacts) == [1, 2, 3]
    assert len(quorum.records) == records, "only a session ends with a record"
    assert not duplicate(quorum, 4, 3)
    assert quorum.core.brokers[4].incarnation == 3


def test_the_number_of_a_fenced_broker_is_taken_on_the_wire() -> None:
    alone = one_broker()

    def body(key: int, version: int, now: int, **changed: object) -> Fields:
        answer = said(alone, protocol.ask(key, version, 1, "broker-2-x", {**OF_BROKERS, **changed}), now)
        assert answer is not None
        return protocol.parse_answer(key, version, answer[4:]).body

    def registration(incarnation: int, now: int) -> Fields:
        return body(protocol.BROKER_REGISTRATION, 4, now, incarnation_id=bytes(15) + bytes([incarnation]))

    epoch = registration(1, 20_000).number("broker_epoch")
    beat = body(protocol.BROKER_HEARTBEAT, 1, 21_000, broker_epoch=epoch, current_metadata_offset=0)
    assert (beat.number("error_code"), beat.number("is_fenced", 0), beat.number("is_caught_up", 0)) == (0, 1, 0)
    taken = registration(2, 29_000)
    assert taken.number("error_code") == Error.DUPLICATE_BROKER_REGISTRATION.value
    again = registration(1, 29_000)
    assert (again.number("error_code"), again.number("broker_epoch")) == (0, epoch)
    free = registration(2, 31_000)
    assert (free.number("error_code"), free.number("broker_epoch") > epoch) == (0, True)


def test_whoever_has_lost_the_number_does_not_keep_it_from_the_next_one() -> None:
    quorum = Quorum()
    assert not duplicate(quorum, 4, 1)
    first = quorum.core.brokers[4].epoch
    assert not duplicate(quorum, 4, 2)
    beat = Heartbeat(broker=4, broker_epoch=first, metadata_offset=first)
    (answer,) = quorum.hear(beat, 4)
    assert answer == HeartbeatAnswer(broker=4, broker_epoch=first, error=Error.STALE_BROKER_EPOCH)
    assert not duplicate(quorum, 4, 3)


def test_a_registration_that_is_sent_again_has_the_same_epoch_whoever_is_heard() -> None:
    quorum = Quorum()
    assert not duplicate(quorum, 4, 1)
    epoch = quorum.core.brokers[4].epoch
    late_beat(quorum, 4)
    assert not duplicate(quorum, 4, 1)
    assert quorum.core.brokers[4].epoch == epoch


def test_the_number_of_a_broker_that_shuts_down_is_taken_until_it_may_go() -> None:
    quorum = Quorum()
    quorum.beats(2, stop=True)
    assert quorum.core.brokers[2].shutting_down
    assert duplicate(quorum, 2, 7)
    while quorum.core.due:
        quorum.tell(Tick())
    for broker in (1, 3):
        quorum.beats(broker)
    assert quorum.beats(2, stop=True).may_shut_down
    assert not duplicate(quorum, 2, 7)
    assert not duplicate(quorum, 4, 1)
    late_beat(quorum, 4)
    assert late_beat(quorum, 4, stop=True).may_shut_down
    assert not duplicate(quorum, 4, 2), "a fenced one may go at once"


def test_after_a_restart_of_the_controller_the_numbers_of_those_with_a_session_are_taken() -> None:
    """testBrokerContactTimesAreUpdatedOnClusterControlActivation."""
    quorum = Quorum()
    assert not duplicate(quorum, 4, 1)
    late_beat(quorum, 4)
    quorum.core = controller_from_records(quorum.core.settings, quorum.records, quorum.now)
    assert not duplicate(quorum, 4, 2)
    assert duplicate(quorum, 2, 7)


def test_the_number_of_an_unregistered_broker_is_free_at_once() -> None:
    quorum = Quorum()
    assert not duplicate(quorum, 4, 1)
    late_beat(quorum, 4)
    for broker in (2, 4):
        assert unregisters(quorum, broker) is Error.NONE
        assert not duplicate(quorum, broker, 7)


# What a registration must have


def test_a_data_directory_that_another_broker_has_is_refused() -> None:
    quorum = Quorum()

    def registers(broker: int, directory: str, incarnation: int = 1) -> Error:
        request = RegisterBroker(broker=broker, incarnation=incarnation, directory=directory)
        (answer,) = quorum.hear(request, broker)
        assert isinstance(answer, BrokerRegistered)
        return answer.error

    assert registers(4, "one") is Error.NONE
    assert registers(5, "one") is Error.INVALID_REGISTRATION
    assert 5 not in quorum.core.brokers
    assert registers(5, "two") is Error.NONE
    assert registers(4, "one", 2) is Error.NONE, "its own, in another life"


def registration_error(settings: dict[str, str], version: int = 4, **changed: object) -> Error:
    alone = one_broker(changed=settings)
    frame = protocol.ask(protocol.BROKER_REGISTRATION, version, 1, "broker-2-x", {**OF_BROKERS, **changed})
    answer = said(alone, frame)
    assert answer is not None
    return Error(protocol.parse_answer(protocol.BROKER_REGISTRATION, version, answer[4:]).body.number("error_code"))


def test_a_registration_without_a_directory_of_its_own_is_refused() -> None:
    """ClusterControlManager.registerBroker: none, a reserved one; and here more than the one that a broker has."""
    directory = bytes(14) + b"\1\0"
    for directories in ([], [bytes(16)], [bytes(15) + b"\2"], [directory, directory]):
        assert registration_error({}, log_dirs=directories) is Error.INVALID_REGISTRATION
    assert registration_error({}, log_dirs=[directory]) is Error.NONE
    assert registration_error({}, 1) is Error.INVALID_REGISTRATION, "it could not name one"


def test_a_registration_without_the_level_of_the_elr_is_refused() -> None:
    """ClusterControlManager.processRegistrationFeature: who names no feature supports version 0 of it."""
    for features in ([], [{"name": ELR, "min_supported_version": 0, "max_supported_version": 0}]):
        assert registration_error({}, features=features) is Error.UNSUPPORTED_VERSION
        assert registration_error({"insync.design": KRAFT_3_5.name}, features=features) is Error.NONE
    assert registration_error({}) is Error.NONE


def test_who_registers_with_the_number_of_the_controllers_broker_is_a_duplicate() -> None:
    assert registration_error({}, broker_id=1) is Error.DUPLICATE_BROKER_REGISTRATION


# A broker that is gone for good


def unregisters(quorum: Quorum, broker: int) -> Error:
    (answer,) = quorum.hear(UnregisterBroker(request=1, broker=broker))
    assert isinstance(answer, AdminAnswer)
    return answer.error


def test_an_unregistered_broker_is_in_no_isr_and_comes_back_as_one_that_crashed() -> None:
    quorum = Quorum()
    quorum.loses(3)
    epoch = quorum.core.brokers[1].epoch
    assert unregisters(quorum, 1) is Error.NONE
    assert quorum.summary == [2, [2], [1]]
    assert sorted(quorum.core.brokers) == [2, 3]
    assert unregisters(quorum, 1) is Error.BROKER_ID_NOT_REGISTERED
    again = controller_from_records(quorum.core.settings, quorum.records, quorum.now)
    assert again.brokers == quorum.core.brokers
    quorum.starts(1, incarnation=2, previous=epoch)
    assert quorum.summary == [2, [2], []], "nobody remembers how it stopped"


def test_a_living_broker_that_is_unregistered_has_no_session_until_it_is_started_again() -> None:
    """No frame ends a broker, and the one with the controller least of all; Kafka's asks on in vain, too."""
    quorum = Quorum()
    epoch = quorum.core.brokers[2].epoch
    unregisters(quorum, 2)
    beat = Heartbeat(broker=2, broker_epoch=epoch, metadata_offset=quorum.core.offset)
    (answer,) = quorum.hear(beat, 2)
    assert answer == HeartbeatAnswer(broker=2, broker_epoch=epoch, error=Error.BROKER_ID_NOT_REGISTERED)
    node = nodes.handle(nodes.Node(me=2, settings=Settings()), Start(7), 0).core
    answered = BrokerRegistered(broker=2, incarnation=7, broker_epoch=epoch)
    node = nodes.handle(node, Received(CONTROLLER, answered), 0).core
    step = nodes.handle(node, Received(CONTROLLER, answer), 0)
    assert (step.core, step.effects) == (node, ())
    node = nodes.handle(node, ShutDown(), 0).core
    (stop,) = nodes.handle(node, Received(CONTROLLER, answer), 0).effects
    assert isinstance(stop, StopProcess), "it did not end at SIGTERM: nobody relieves who is not registered"
    quorum.starts(2, incarnation=2)
    assert not quorum.core.brokers[2].fenced


def test_a_broker_of_which_the_controller_knows_nothing_ends_unless_it_hears_that_it_was_unregistered() -> None:
    """The controller began anew, with an empty disk. A broker that goes on would serve nobody, and say nothing."""
    quorum = Quorum()
    epoch, session = quorum.core.brokers[2].epoch, Settings().broker_session_timeout_ms
    (whole,) = quorum.hear(FetchMetadata(broker=2, broker_epoch=epoch, offset=0), 2)
    node = nodes.handle(nodes.Node(me=2, settings=Settings()), Start(7), 0).core
    node = nodes.handle(
        node, Received(CONTROLLER, BrokerRegistered(broker=2, incarnation=7, broker_epoch=epoch)), 0
    ).core
    node = nodes.handle(node, Received(CONTROLLER, whole), 0).core
    nobody = HeartbeatAnswer(broker=2, broker_epoch=epoch, error=Error.BROKER_ID_NOT_REGISTERED)

    def after(answers: list[tuple[HeartbeatAnswer, int]], node: nodes.Node = node) -> tuple[Effect, ...]:
        step = nodes.NodeStep(node)
        for answer, now in answers:
            step = nodes.handle(step.core, Received(CONTROLLER, answer), now)
        return step.effects

    assert after([(nobody, 1_000), (nobody, session + 999)]) == ()
    (halt,) = after([(nobody, 1_000), (nobody, session + 1_000)])
    assert isinstance(halt, Halt)
    assert "metadata.log up to record" in halt.why
    registered = HeartbeatAnswer(broker=2, broker_epoch=epoch, fenced=False)
    assert after([(nobody, 1_000), (registered, 2_000), (nobody, session + 1_000)]) == ()
    unregisters(quorum, 2)
    news = Metadata(since=node.metadata_offset, offset=node.metadata_offset + 1, brokers=(unregistration(2),))
    learned = nodes.handle(node, Received(CONTROLLER, news), 0).core
    assert after([(nobody, 1_000), (nobody, session + 1_000)], learned) == ()


def test_brokers_learn_who_is_unregistered() -> None:
    quorum = Quorum()
    since = quorum.core.offset
    unregisters(quorum, 3)
    (news,) = quorum.hear(FetchMetadata(broker=2, broker_epoch=2, offset=since), 2)
    assert isinstance(news, Metadata)
    assert news.brokers == (unregistration(3),)
    node = nodes.handle(nodes.Node(me=2, settings=Settings()), Start(7), 0).core
    (whole,) = Quorum().hear(FetchMetadata(broker=2, broker_epoch=2, offset=0), 2)
    assert isinstance(whole, Metadata)
    node = nodes.handle(node, Received(CONTROLLER, attrs.evolve(whole, offset=since)), 0).core
    assert sorted(node.brokers) == [1, 2, 3]
    assert sorted(nodes.handle(node, Received(CONTROLLER, news), 0).core.brokers) == [1, 2]
    everything = attrs.evolve(news, whole=True, brokers=tuple(b for b in whole.brokers if b.broker != 1))
    assert sorted(nodes.handle(node, Received(CONTROLLER, everything), 0).core.brokers) == [2, 3]


@pytest.mark.sockets
@pytest.mark.long
def test_a_fenced_broker_is_described_to_who_asks_for_it_until_it_is_unregistered() -> None:
    with Cluster(3) as cluster, Admin((HOST, cluster.ports[1])) as admin:

        def description(version: int, **fields: object) -> Fields:
            return admin.ask(protocol.DESCRIBE_CLUSTER, version, fields)

        def numbers(version: int, **fields: object) -> dict[int, int]:
            rows = description(version, **fields).all("brokers")
            return {b.number("broker_id"): b.number("is_fenced", 0) for b in rows}

        cluster.kill(3)
        cluster.wait(lambda: cluster.unfenced() == [1, 2], "3 is fenced")
        body = description(2, endpoint_type=1)
        assert (body.text("cluster_id"), body.number("endpoint_type")) == ("insync", 1)
        assert numbers(0) == {1: 0, 2: 0}
        assert numbers(2, endpoint_type=1, include_fenced_brokers=True) == {1: 0, 2: 0, 3: 1}
        for kind, error in ((2, Error.MISMATCHED_ENDPOINT_TYPE), (9, Error.UNSUPPORTED_ENDPOINT_TYPE)):
            assert description(1, endpoint_type=kind).number("error_code") == error.value

        def unregister(broker: int) -> int:
            return admin.ask(protocol.UNREGISTER_BROKER, 0, {"broker_id": broker}).number("error_code")

        assert unregister(7) == Error.BROKER_ID_NOT_REGISTERED.value
        assert unregister(3) == 0
        cluster.wait(
            lambda: numbers(2, endpoint_type=1, include_fenced_brokers=True) == {1: 0, 2: 0}, "nobody knows 3 any more"
        )
        cluster.start(3)
        cluster.wait(lambda: cluster.unfenced() == [1, 2, 3], "3 is registered anew")
