"""What Kafka's brokers ask controllers: requests that they hand on in Envelopes."""

from __future__ import annotations

import pytest

from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.kafka_brokers import ASKED_VERSIONS, enclosed_request, enclosing_answer
from isr_broker.wire.protocol import Fields, Request


def test_a_request_comes_out_of_its_envelope_and_its_answer_goes_into_one() -> None:
    asked = protocol.ask(protocol.CREATE_TOPICS, 7, 3, "admin", {"topics": [{"name": "t", "num_partitions": 2}]})
    body = {"request_data": asked[4:], "request_principal": b"", "client_host_address": b"\x7f\0\0\1"}
    envelope = protocol.parse(protocol.ask(protocol.ENVELOPE, 0, 9, "7", body)[4:], ASKED_VERSIONS)
    assert isinstance(envelope, Request)
    request = enclosed_request(envelope.body, {protocol.CREATE_TOPICS: (2, 7)})
    assert isinstance(request, Request)
    assert [(topic.text("name"), topic.number("num_partitions")) for topic in request.body.all("topics")] == [("t", 2)]
    frame = protocol.answer_to(envelope, enclosing_answer(request, {"topics": [{"name": "t", "error_code": 36}]}))
    outer = protocol.parse_answer(protocol.ENVELOPE, 0, frame[4:])
    inner = protocol.parse_answer(protocol.CREATE_TOPICS, 7, outer.body.data("response_data") or b"")
    assert (outer.correlation, inner.correlation) == (9, 3)
    assert [topic.number("error_code") for topic in inner.body.all("topics")] == [36]


def test_an_envelope_with_nothing_in_it_is_no_request() -> None:
    with pytest.raises(BadFrame):
        enclosed_request(Fields({}), protocol.SERVED_VERSIONS)
