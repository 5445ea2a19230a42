"""What brokers of Apache Kafka ask the controllers of their quorum, and requests that they hand on.

The schemas are the codec's, as everywhere. Kafka: ApiKeys, EnvelopeUtils, ForwardingManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isr_broker.core.messages import Error
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


ADMIN_APIS: Final = (
    protocol.CREATE_TOPICS,
    protocol.DELETE_TOPICS,
    protocol.ALTER_CONFIGS,
    protocol.CREATE_PARTITIONS,
    protocol.ELECT_LEADERS,
    protocol.INCREMENTAL_ALTER_CONFIGS,
    protocol.ALTER_PARTITION_REASSIGNMENTS,
    protocol.LIST_PARTITION_REASSIGNMENTS,
    protocol.UNREGISTER_BROKER,
)
"""What such a broker hands on for admins. It tells them of these APIs only if the controller serves them."""


INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""What such brokers have created for themselves, compacted (Topic.INTERNAL_TOPICS)."""


def told_features(features: Mapping[str, int], epoch: int) -> Answer:
    """What ApiVersions says of features: the levels that hold, and no others are supported."""
    return {
        "supported_features": [
            {"name": name, "min_version": level, "max_version": level} for name, level in sorted(features.items())
        ],
        "finalized_features_epoch": epoch,
        "finalized_features": [
            {"name": name, "min_version_level": level, "max_version_level": level}
            for name, level in sorted(features.items())
        ],
    }


def assignments(body: Fields, directory: bytes) -> Answer:
    """The answer to AssignReplicasToDirs of a broker with this one directory, in which all its replicas are."""

    def row(partition: Fields, where: bytes) -> Answer:
        error = Error.NONE if where == directory else Error.INVALID_REQUEST
        return {"partition_index": partition.number("partition_index"), "error_code": error.value}

    rows = [
        {
            "id_": each.data("id_"),
            "topics": [
                {
                    "topic_id": topic.data("topic_id"),
                    "partitions": [row(p, each.data("id_") or b"") for p in topic.all("partitions")],
                }
                for topic in each.all("topics")
            ],
        }
        for each in body.all("directories")
    ]
    return {"error_code": 0, "directories": rows}


def enclosed_request(body: Fields, served_versions: Mapping[int, tuple[int, int]]) -> Request | UnsupportedRequest:
    """The request of a client that a broker hands on in an Envelope; BadFrame if it cannot be read."""
    return protocol.parse(body.data("request_data") or b"", served_versions)


def enclosing_answer(request: Request, fields: Answer) -> Answer:
    """The answer to an Envelope: the answer to the request in it, as the client is to have it."""
    return {"response_data": protocol.answer_to(request, fields)[4:], "error_code": 0}
