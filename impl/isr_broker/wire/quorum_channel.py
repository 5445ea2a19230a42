"""The conversation of a voter with another one: one request at a time, and its answer (RequestManager)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from isr_broker.core.quorum_messages import FetchSnapshotResponse, QuorumRequest, VoterId
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
    size_of_snapshot,
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
    part: bytes = b""
    """What has come of the snapshot that the request in flight asks for."""

    def put(self, number: int, request: QuorumRequest, successors: Sequence[VoterId] = ()) -> None:
        """Ask this next, once there is an answer to what was asked before."""
        self.waiting = _Sending(number, request, tuple(successors))

    def next(self) -> bytes | None:
        """The frame of the newest request; None while there is nothing to ask."""
        sending = self.waiting or (self.in_flight if self.part else None)
        self.part = self.part if self.waiting is None else b""
        self.in_flight, self.waiting = sending, None
        if sending is None:
            return None
        self.correlation += 1
        return request_frame(
            self.quorum, self.to, self.correlation, sending.request, sending.successors, len(self.part)
        )

    def take_answer(self, frame: bytes) -> list[Outcome]:
        """The answer to it; BadFrame if it is none."""
        if self.in_flight is None:
            raise BadFrame("an answer to nothing")
        key = key_of(self.in_flight.request)
        response = protocol.parse_answer(key, ASKED_VERSIONS[key], frame)
        if response.correlation != self.correlation:
            raise BadFrame(f"the answer to request {response.correlation}, {self.correlation} is expected")
        number, request, self.in_flight = self.in_flight.number, self.in_flight, None
        place = leader_place(self.quorum, response.body) if self.quorum.dynamic else None
        news: list[Outcome] = [] if place is None else [LeaderPlace(*place)]
        try:
            answer = response_of(key, response.body)
            if isinstance(answer, FetchSnapshotResponse) and answer.snapshot is not None:
                whole = self.part + answer.contents
                if answer.contents and len(whole) < size_of_snapshot(response.body):
                    self.part, self.in_flight = whole, request
                    return news
                self.part, answer = b"", attrs.evolve(answer, contents=whole)
            return [*news, ResponseArrived(sender=self.to, number=number, response=answer)]
        except RefusedAnswer as refused:
            return [RequestLost(self.to, number, str(refused))]

    def take_loss(self) -> list[Outcome]:
        """The connection is lost, or there is none: what was sent, or was to be, has no answer."""
        lost, self.in_flight, self.part = self.in_flight, None, b""
        if lost is None:
            lost, self.waiting = self.waiting, None
        return [] if lost is None else [RequestLost(self.to, lost.number)]
