"""Requests about the cluster as a whole: who its brokers are, and that one is gone for good (KIP-700, KIP-631)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from isr_broker.core.messages import AdminAnswer, Error, Millis, UnregisterBroker
from isr_broker.runtime import ClientAnswer
from isr_broker.wire import protocol
from isr_broker.wire.admin_host import AdminHost
from isr_broker.wire.protocol import Answer, Fields, Request

_SERVED_APIS: Final = (protocol.DESCRIBE_CLUSTER, protocol.UNREGISTER_BROKER)
_BROKERS, _CONTROLLERS = 1, 2
"""EndpointType."""

_NOT_ASKED_FOR: Final = -(2**31)
"""Of operations that the client may take: nobody asks who it is."""


@attrs.define
class ClusterRequests:
    """The handlers of one broker, or controller."""

    runtime: AdminHost

    def serves(self, key: int) -> bool:
        """Whether an API is about the cluster."""
        return key in _SERVED_APIS

    def serve(self, request: Request, now: Millis, reply: Callable[[Answer], None]) -> None:
        """Answer a request, now or when the controller has."""
        if request.key == protocol.DESCRIBE_CLUSTER:
            reply(self._describe(request.body))
            return
        broker = request.body.number("broker_id")

        def send_reply(answer: ClientAnswer, records: bytes) -> None:
            assert isinstance(answer, AdminAnswer)
            reply(_with_name(answer.error))

        self.runtime.ask(lambda number: UnregisterBroker(request=number, broker=broker), send_reply, now)

    def _describe(self, body: Fields) -> Answer:
        """DescribeCluster: brokers with a session, and the fenced ones for who asks for them (KIP-1073).

        Whoever asks for the endpoints of controllers is told that a broker has none (KIP-919).
        """
        kind = body.number("endpoint_type", _BROKERS)
        if kind != _BROKERS:
            mismatch = kind == _CONTROLLERS
            return _with_name(Error.MISMATCHED_ENDPOINT_TYPE if mismatch else Error.UNSUPPORTED_ENDPOINT_TYPE)
        with_fenced = body.number("include_fenced_brokers", 0) == 1
        brokers = [b for _, b in sorted(self.runtime.node.brokers.items()) if with_fenced or not b.fenced]
        alive = [b.broker for b in brokers if not b.fenced]
        return {
            "endpoint_type": _BROKERS,
            "cluster_id": self.runtime.cluster,
            "controller_id": alive[0] if alive else -1,
            "brokers": [
                {"broker_id": b.broker, "host": b.host, "port": b.port, "rack": b.rack or None, "is_fenced": b.fenced}
                for b in brokers
            ],
            "cluster_authorized_operations": _NOT_ASKED_FOR,
        }


def _with_name(error: Error) -> Answer:
    """An error code, and its name for those who read."""
    return {"error_code": error.value, "error_message": None if error is Error.NONE else error.name}
