"""The conversation of a voter with another one: one request at a time, and its answer (RequestManager)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from isr_broker.core.quorum_messages import QuorumRequest, VoterId
from isr_broker.core.voter_state import ResponseArrived
from isr_broker.environment import Address
from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.quorum_requests import (
    ASKED_VERSIONS,
    Quorum,
    RefusedAnswer,
    key_of,
    leader_place,
    request_frame,
    response_of,
)


@attrs.frozen
class RequestLost:
    """A request of this number has no answer that says anything, and none will come; `why` if somebody has said it."""

    voter: VoterId
    number: int
    why: str = ""


@attrs.frozen
class LeaderPlace:
    """Where a leader is, as an answer says it."""

    voter: VoterId
    address: Address


Outcome: TypeAlias = ResponseArrived | RequestLost | LeaderPlace


@attrs.frozen
class _Sending:
    number: int
    request: QuorumRequest
    successors: tuple[VoterId, ...]


@attrs.define
class QuorumChannel:
    """What one voter asks of another; a request that was not sent yet gives way to a newer one."""

    quorum: Quorum
    to: VoterId
    waiting: _Sending | None = None
    in_flight: _Sending | None = None
    correlation: int = 0

    def put(self, number: int, request: QuorumRequest, successors: Sequence[VoterId] = ()) -> None:
        """Ask this next, once there is an answer to what was asked before."""
        self.waiting = _Sending(number, request, tuple(successors))

    def next(self) -> bytes | None:
        """The frame of the newest request; None while there is nothing to ask."""
        self.in_flight, self.waiting = self.waiting, None
        if self.in_flight is None:
            return None
        self.correlation += 1
        return request_frame(self.quorum, self.to, self.correlation, self.in_flight.request, self.in_flight.successors)

    def take_answer(self, frame: bytes) -> list[Outcome]:
        """The answer to it; BadFrame if it is none."""
        if self.in_flight is None:
            raise BadFrame("an answer to nothing")
        key = key_of(self.in_flight.request)
        response = protocol.parse_answer(key, ASKED_VERSIONS[key], frame)
        if response.correlation != self.correlation:
            raise BadFrame(f"the answer to request {response.correlation}, {self.correlation} is expected")
        number, self.in_flight = self.in_flight.number, None
        place = leader_place(self.quorum, response.body) if self.quorum.dynamic else None
        news = [] if place is None else [LeaderPlace(*place)]
        try:
            return [*news, ResponseArrived(sender=self.to, number=number, response=response_of(key, response.body))]
        except RefusedAnswer as refused:
            return [RequestLost(self.to, number, str(refused))]

    def take_loss(self) -> list[Outcome]:
        """The connection is lost, or there is none: what was sent, or was to be, has no answer."""
        lost, self.in_flight = self.in_flight, None
        if lost is None:
            lost, self.waiting = self.waiting, None
        return [] if lost is None else [RequestLost(self.to, lost.number)]
