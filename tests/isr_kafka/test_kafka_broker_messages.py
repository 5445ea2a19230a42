"""What Kafka's brokers ask controllers, and the answers: as Kafka's own message classes read and write them."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

import pytest
from kio.index import load_request_schema, load_response_schema
from tests.isr_broker.test_codec import some
from tests.isr_kafka.test_kafka_quorum_messages import Messages
from tests.support.kafka_programs import kafka_program

from isr_broker.wire import protocol
from isr_broker.wire.kafka_brokers import ASKED_VERSIONS
from isr_kafka.system import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.processes]

EACH = [(key, version) for key, (low, high) in ASKED_VERSIONS.items() for version in range(low, high + 1)]


@pytest.fixture(scope="module")
def kafka(newest: Kafka) -> Generator[Messages]:
    """The newest release's."""
    with kafka_program("insync.metadata.Messages", newest.release) as process:
        yield Messages(process)


@pytest.mark.parametrize(("key", "version"), EACH)
def test_kafka_reads_requests_and_answers_with_all_fields(kafka: Messages, key: int, version: int) -> None:
    chance = Random(f"{key} {version}")
    for _ in range(20):
        asked = protocol.ask(key, version, 5, "7", some(chance, load_request_schema(key, version), True))
        kafka.reads(key, version, "request", asked)
        answered = protocol.answer(key, version, 5, some(chance, load_response_schema(key, version), True))
        kafka.reads(key, version, "answer", answered)


def test_other_bytes_are_noticed(kafka: Messages) -> None:
    fields = {"broker_id": 7, "broker_epoch": 9, "current_metadata_offset": 11}
    frame = protocol.ask(protocol.BROKER_HEARTBEAT, 1, 5, "7", fields)
    assert "brokerId=7, brokerEpoch=9, currentMetadataOffset=11" in kafka.reads(63, 1, "request", frame)
    with pytest.raises(AssertionError):
        kafka.reads(63, 1, "request", frame + b"\0")
