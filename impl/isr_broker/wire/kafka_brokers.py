"""What brokers of Apache Kafka ask the controllers of their quorum, and requests that they hand on.

The schemas are the codec's, as everywhere. Kafka: ApiKeys, EnvelopeUtils, ForwardingManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer, Fields, Request, UnsupportedRequest

ASKED_VERSIONS: Final[dict[int, tuple[int, int]]] = {
    protocol.FETCH: (12, 18),
    protocol.ALTER_PARTITION: (2, 3),
    protocol.ENVELOPE: (0, 0),
    protocol.BROKER_REGISTRATION: (0, 4),
    protocol.BROKER_HEARTBEAT: (0, 2),
    protocol.ALLOCATE_PRODUCER_IDS: (0, 0),
    protocol.ASSIGN_REPLICAS_TO_DIRS: (0, 0),
}
"""The versions in which brokers of 4.0 to 4.4 can ask, by API key. Beside these they ask for ApiVersions."""


def enclosed_request(body: Fields, served_versions: Mapping[int, tuple[int, int]]) -> Request | UnsupportedRequest:
    """The request of a client that a broker hands on in an Envelope; BadFrame if it cannot be read."""
    return protocol.parse(body.data("request_data") or b"", served_versions)


def enclosing_answer(request: Request, fields: Answer) -> Answer:
    """The answer to an Envelope: the answer to the request in it, as the client is to have it."""
    return {"response_data": protocol.answer_to(request, fields)[4:], "error_code": 0}
