"""What admins ask of the active controller: themselves, or through a broker that hands it on in an Envelope.

The handlers are those of a broker. What they say is decided by the controller's core, like all else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.messages import Admin, AdminAnswer, BrokerId, Error, Millis, Reassignments
from isr_broker.runtime import Then
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.admin_requests import AdminRequests
from isr_broker.wire.cluster_requests import ClusterRequests
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.kafka_brokers import ADMIN_APIS, INTERNAL_TOPICS, enclosed_request, enclosing_answer
from isr_broker.wire.protocol import Answer, Request
from isr_broker.wire.reassignment_requests import ReassignmentRequests
from isr_broker.wire.turns import Turns

Reply = Callable[[Answer], None]
Serve = Callable[[Request, Reply, Millis], None]


@attrs.define(kw_only=True)
class ControllerAdmin:
    """The handlers, and the host that they need.

    - `knows`: what the controller knows of brokers and partitions. `hands_in`: how its core is asked.
    - `waiting`: who waits for an answer of the core, by the numbers of the questions.
    - `envelopes`: the answers that brokers wait for, by their numbers.
    """

    me: BrokerId
    cluster: str
    settings: Settings
    versions: Mapping[int, tuple[int, int]]
    knows: Callable[[], Controller]
    hands_in: Callable[[Sequence[Admin], Millis], None]
    turns: Turns = attrs.field(factory=Turns)
    waiting: dict[int, Then] = attrs.field(factory=dict[int, Then])
    envelopes: dict[int, Reply] = attrs.field(factory=dict[int, Reply])
    count: int = 0
    topics: AdminRequests = attrs.field(init=False)
    brokers: ClusterRequests = attrs.field(init=False)
    reassignments: ReassignmentRequests = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.topics = AdminRequests(self, self.turns, INTERNAL_TOPICS)
        self.brokers = ClusterRequests(self)
        self.reassignments = ReassignmentRequests(self, self.turns, self.topics.each)

    @property
    def node(self) -> Controller:
        """What it knows."""
        return self.knows()

    def ask(self, make: Callable[[int], Admin], then: Then, now: Millis) -> None:
        """Ask the core something under a new number; `then` gets its answer."""
        self.ask_all([(make, then)], now)

    def ask_all(self, asks: Iterable[tuple[Callable[[int], Admin], Then]], now: Millis) -> None:
        """Ask the core for several things."""
        requests: list[Admin] = []
        for make, then in asks:
            self.count += 1
            requests.append(make(self.count))
            self.waiting[self.count] = then
        self.hands_in(requests, now)

    def take_answer(self, answer: AdminAnswer | Reassignments) -> None:
        """The core has answered a question."""
        then = self.waiting.pop(answer.request, None)
        if then is not None:
            then(answer, b"")

    def serves(self, key: int) -> bool:
        """Whether an API is one of admins."""
        return key in ADMIN_APIS

    def serve(self, request: Request, reply: Reply, now: Millis) -> None:
        """Answer a request when the controller has."""
        for handler in (self.brokers, self.reassignments, self.topics):
            if handler.serves(request.key):
                handler.serve(request, now, reply)
                return

    def opens(self, envelope: Request, reply: Reply, now: Millis, serve: Serve) -> None:
        """Serve what is in an Envelope; what is no request that may be handed on is INVALID_REQUEST."""
        try:
            request = enclosed_request(envelope.body, self.versions)
        except BadFrame:
            request = None
        if not isinstance(request, Request) or request.key not in (*ADMIN_APIS, protocol.DESCRIBE_QUORUM):
            reply({"error_code": Error.INVALID_REQUEST.value})
            return
        self.count += 1
        number, inner = self.count, request
        self.envelopes[number] = reply

        def answers(fields: Answer) -> None:
            if self.envelopes.pop(number, None) is not None:
                reply(enclosing_answer(inner, fields))

        serve(inner, answers, now)

    def resigns(self) -> None:
        """Brokers are to hand on what they have handed on here elsewhere."""
        replies, self.envelopes = list(self.envelopes.values()), {}
        for reply in replies:
            reply({"error_code": Error.NOT_CONTROLLER.value})
        for number in list(self.waiting):
            self.take_answer(AdminAnswer(request=number, error=Error.NOT_CONTROLLER))
