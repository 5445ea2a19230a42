"""What a listener serves, and its TLS: a request that it does not serve is refused, or its connection closed.

docs: SimpleApiVersionManager.isApiEnabled (an API that is not of this listener closes the connection),
KafkaApis.handleFetchRequest (a fetch of who may not act as a broker), DefaultSslEngineFactory.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final, cast

from isr_broker.core import message_json
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.message_json import Parcel
from isr_broker.listener_names import Listener
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.cluster_ids import is_of_follower
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.protocol import Answer, Fields, Request

OF_THE_CONTROLLER: Final = (protocol.ALTER_PARTITION, protocol.BROKER_REGISTRATION, protocol.BROKER_HEARTBEAT)
"""APIs that brokers ask the controller with."""

_TOPIC_AUTHORIZATION_FAILED: Final = 29


def everything(host: str, port: int) -> Listener:
    """The one listener of a broker for which none is named."""
    return Listener("PLAINTEXT", host, port)


def serves(listener: Listener, key: int) -> bool:
    """Whether an API is one of this listener."""
    if key in OF_THE_CONTROLLER:
        return listener.controller
    return listener.clients or key == protocol.API_VERSIONS


def admits(listener: Listener, parcels: Sequence[Parcel]) -> bool:
    """Whether messages of our own frames may come this way: to the controller on its listener, else on brokers'."""
    return all(listener.controller if to == CONTROLLER else listener.brokers for _, to, _ in parcels)


def check_peer(listener: Listener, size: int) -> None:
    """BadFrame if a frame of our own, of so many bytes, may not come this way, whatever it says."""
    if not (listener.brokers or listener.controller):
        raise BadFrame(f"a message of a broker on listener {listener.name}")
    if size > message_json.LONGEST:
        raise BadFrame(f"a message of {size:,} bytes, a broker sends {message_json.LONGEST:,} at most")


def visible(listener: Listener, answer: Answer) -> Answer:
    """What ApiVersions says on this listener."""
    rows = [row for row in protocol.api_keys() if serves(listener, cast("int", row["api_key"]))]
    return {**answer, "api_keys": rows}


def refusal(listener: Listener, request: Request) -> Answer | None:
    """The answer to who acts as a broker where none may; None if the request is served."""
    if listener.brokers or not _is_of_a_broker(request):
        return None
    return {
        "responses": [_refusal_of(topic) for topic in request.body.all("topics")],
        "topics": [_refusal_of(topic) for topic in request.body.all("topics")],
    }


def _is_of_a_broker(request: Request) -> bool:
    body = request.body
    if request.key == protocol.OFFSET_FOR_LEADER_EPOCH:
        return body.number("replica_id") >= 0
    return request.key == protocol.FETCH and is_of_follower(body)


def _refusal_of(topic: Fields) -> Answer:
    numbers = [p.number("partition") for p in topic.all("partitions")]
    error: Answer = {"error_code": _TOPIC_AUTHORIZATION_FAILED, "high_watermark": -1, "leader_epoch": -1}
    rows = [{"partition_index": n, "partition": n, **error, "end_offset": -1, "records": b""} for n in numbers]
    return {"topic": topic.text("topic"), "topic_id": topic.data("topic_id") or bytes(16), "partitions": rows}


def rights(listener: Listener) -> str:
    """What anyone who can connect may do, as a sentence."""
    acts = ["read, write and delete everything"] if listener.clients else []
    acts += ["act as a broker"] if listener.brokers else []
    acts += ["change in-sync sets and fence brokers"] if listener.controller else []
    return f"{listener.host}:{listener.port} ({listener.name}) can {', '.join(acts)}"


# TLS


def server_context(settings: Settings) -> ssl.SSLContext:
    """For connections that are accepted; OSError if a file cannot be read or is none of its kind.

    `ssl.client.auth=required` takes only clients, and brokers, with a certificate that `ssl.truststore.location` knows.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(settings.ssl_keystore_location)
    if settings.ssl_client_auth != "none":
        context.load_verify_locations(settings.ssl_truststore_location)
        required = settings.ssl_client_auth == "required"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def client_context(settings: Settings) -> ssl.SSLContext:
    """For connections to other brokers, whose certificate names their host unless nobody is to look at that."""
    context = ssl.create_default_context(cafile=settings.ssl_truststore_location or None)
    context.check_hostname = settings.ssl_endpoint_identification_algorithm != ""
    context.load_cert_chain(settings.ssl_keystore_location)
    return context
