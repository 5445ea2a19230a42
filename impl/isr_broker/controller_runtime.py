"""A controller on the metadata quorum as it runs: a voter, and while it leads the controller's core on its log.

The core is the one that a single controller has. Only that its records are proposed to the quorum, and `Written` says
that they are committed. So nobody hears of a decision that another leader could forget. While a batch is on its way to
the others, what arrives waits. Then all of it is decided, and committed, together.

A voter that does not lead has no core. It keeps what the committed part of its log says, and begins with that when it
is elected. What was not committed when it resigns is forgotten with the core.

Kafka: QuorumController, which is active while its KafkaRaftClient leads and has caught up with its own epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar, Final

import attrs

from isr_broker.core import controller as controllers
from isr_broker.core.controller import controller_begins
from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import AppendMetadata, Halt, Send, Slice, Took
from isr_broker.core.inputs import ControllerInput, Received, Tick, Written
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    Admin,
    AdminAnswer,
    AlterPartitionResponse,
    BrokerId,
    BrokerRegistered,
    CreateTopic,
    Error,
    HeartbeatAnswer,
    LeaderEpoch,
    Message,
    MetadataRecord,
    Millis,
    Offset,
    RegisterBroker,
    peer_address,
)
from isr_broker.core.stamps import bare
from isr_broker.core.topics import random_topic_id
from isr_broker.core.voter import handle
from isr_broker.core.voter_state import QuorumLeader, Signal, VoterStep
from isr_broker.environment import Address
from isr_broker.runtime import note_line
from isr_broker.settings import Settings
from isr_broker.voter_runtime import Reply, VoterRuntime
from isr_broker.wire import protocol
from isr_broker.wire.broker_requests import SERVED_APIS, BrokerRequests
from isr_broker.wire.controller_records import LogImage, batch_of, replay
from isr_broker.wire.protocol import Request

READ_BYTES: Final = 1 << 20
"""So much of the log is read at once when it is replayed; one batch at least."""


@attrs.define(kw_only=True)
class ControllerRuntime(VoterRuntime):
    """One controller of a quorum.

    - `core_settings`: the settings of the controller's core. `post`: how a message goes to a broker.
    - `image` is what the log says up to `replay_end`, all of which is committed.
    - `controller`: the core, while this voter leads the epoch `active_epoch` and nobody else decides.
    - `inbox`: what the core is to be told once the batch that ends at `proposal_end` is committed.
    - `late_answers`: answers that wait for that, though nothing was decided (`waits_for_commit`).
    """

    versions: ClassVar = {**VoterRuntime.versions, **{key: protocol.SERVED_VERSIONS[key] for key in SERVED_APIS}}
    core_settings: Settings
    post: Callable[[BrokerId, Address, Message], None]
    image: LogImage = attrs.field(init=False)
    replay_end: Offset = 0
    controller: Controller | None = None
    active_epoch: LeaderEpoch = -1
    inbox: deque[ControllerInput] = attrs.field(factory=deque[ControllerInput])
    proposal_end: Offset | None = None
    late_answers: list[Send] = attrs.field(factory=list[Send])
    requests: BrokerRequests = attrs.field(init=False)
    addresses: dict[BrokerId, Address] = attrs.field(factory=dict[BrokerId, Address])
    _records: list[MetadataRecord] = attrs.field(factory=list[MetadataRecord])
    _busy: bool = False

    def __attrs_post_init__(self) -> None:
        self.image = LogImage(controller=Controller(settings=self.core_settings, cluster=self.cluster))
        self.requests = BrokerRequests(self, leader_address=self.leader_address)

    @property
    def me(self) -> BrokerId:
        """Its number, which no broker has."""
        return self.quorum.me

    @property
    def cluster(self) -> str:
        """The id of the cluster."""
        return self.quorum.cluster

    def leader_address(self) -> Address | None:
        """Where the active controller is, as far as this voter knows."""
        leader = self.voter.quorum.leader
        return None if leader in (None, self.me) else self.quorum.places.get(leader)

    # What arrives

    def serve(self, request: Request, reply: Reply, now: Millis) -> None:
        """Answer a request of a voter, or of a broker."""
        if self.requests.serves(request.key):
            self.requests.serve(request, now, reply)
        else:
            VoterRuntime.serve(self, request, reply, now)

    def receive_messages(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Messages of brokers arrived. Who does not lead says so to admins; brokers hear it with their heartbeats."""
        for source, _, envelope in parcels:
            message = bare(envelope)
            if isinstance(message, RegisterBroker):
                self.addresses[source] = peer_address(message)
            if self.controller is not None:
                self.inbox.append(Received(source, message))
            elif isinstance(message, Admin):
                self._send(Send(source, AdminAnswer(request=message.request, error=Error.NOT_CONTROLLER)))
        self._goes_on(now)

    # Time

    def deadline(self) -> Millis:
        """When `tick` is to be called at the latest."""
        of_voter = VoterRuntime.deadline(self)
        if self.controller is None or self.proposal_end is not None:
            return of_voter
        return min(of_voter, controllers.deadline(self.controller))

    def tick(self, now: Millis) -> None:
        """Whatever is due by now."""
        VoterRuntime.tick(self, now)
        self._goes_on(now)

    # The controller on the log

    def _takes(self, step: VoterStep, now: Millis) -> None:
        VoterRuntime._takes(self, step, now)
        self._goes_on(now)

    def _goes_on(self, now: Millis) -> None:
        """What follows from where the voter stands: commits, a new part, and decisions once nothing is on its way."""
        if self._busy:
            return
        self._busy = True
        try:
            while self.running and self._step(now):
                pass
        finally:
            self._busy = False

    def _step(self, now: Millis) -> bool:
        """One thing that is to be done; False if there is none."""
        if self.replay_end < (self.voter.high_watermark or 0):
            self._replays()
            return True
        leads = isinstance(self.voter.part, QuorumLeader)
        if self.controller is not None and (not leads or self.active_epoch != self.voter.epoch):
            self._resigns()
            return True
        if leads and self.controller is None and self.voter.high_watermark is not None:
            self._claims(now)
            return True
        if self.controller is None:
            return False
        return self._decides(now) if self.proposal_end is None else self._confirms(now)

    def _replays(self) -> None:
        """More of the log is committed. Of a leader that is so once a record of its own epoch is."""
        watermark = self.voter.high_watermark or 0
        data = self.files.read(Slice(offset=self.replay_end, up_to=watermark, max_bytes=READ_BYTES))
        self.image, self.replay_end = replay(self.image, data)

    def _claims(self, now: Millis) -> None:
        """It leads, and all that was committed before is known (QuorumController.claim)."""
        self.controller, self.active_epoch = controller_begins(self.image.controller, now), self.voter.epoch
        self.outside.log(f"the active controller of epoch {self.active_epoch}")

    def _resigns(self) -> None:
        """It leads no more: whoever waits for an answer is to ask elsewhere (QuorumController.renounce)."""
        self.controller, self.proposal_end = None, None
        self.inbox.clear()
        self.late_answers.clear()
        self._records.clear()
        self.outside.log(f"no longer the active controller of epoch {self.active_epoch}")
        self.requests.resigns()

    def _confirms(self, now: Millis) -> bool:
        """What was proposed is told once it is committed; False if it is not yet."""
        assert self.controller is not None
        if self.proposal_end is None or self.proposal_end > (self.voter.high_watermark or 0):
            return False
        self.proposal_end = None
        answers, self.late_answers = self.late_answers, []
        for answer in (*self._tell(Written(self.controller.offset, False), now), *answers):
            self._send(answer)
        return True

    def _decides(self, now: Millis) -> bool:
        """All that arrived is decided, and what is due by now; what comes of it is proposed in one batch."""
        if not self.inbox and (self.controller is None or controllers.deadline(self.controller) > now):
            return False
        answers: list[Send] = []
        while self.inbox:
            answers += self._tell(self.inbox.popleft(), now)
        while self.controller is not None and controllers.deadline(self.controller) <= now:
            answers += self._tell(Tick(), now)
        for answer in answers:
            if self.waits_for_commit(answer.message):
                self.late_answers.append(answer)
            else:
                self._send(answer)
        records, self._records = self._records, []
        if records:
            self.propose(batch_of(self.image, records, self.outside.wall()), now)
        elif self.late_answers:
            self.propose(self.nothing(), now)
        self.proposal_end = self.voter.log.end if records or self.late_answers else None
        return True

    def waits_for_commit(self, message: Message) -> bool:
        """Whether an answer must not come from a leader that does not know yet that another decides.

        A refusal may end a broker. And a partition's leader that was refused, or was told that the ISR is so already,
        takes back what it has proposed, which the other one may have accepted. Model: kraft-controllers-ask-back.
        """
        match message:
            case HeartbeatAnswer():
                return message.error is not Error.NONE or message.may_shut_down
            case _:
                return isinstance(message, BrokerRegistered | AlterPartitionResponse)

    def _tell(self, controller_input: ControllerInput, now: Millis) -> list[Send]:
        """The core takes an input; what it says, which is not sent yet."""
        assert self.controller is not None
        sends: list[Send] = []
        match controller_input:
            case Received(source, CreateTopic() as request):
                topic_id = random_topic_id(lambda bits: self.outside.chance(1 << bits))
                controller_input = Received(source, attrs.evolve(request, topic_id=topic_id))
            case _:
                pass
        step = controllers.handle(self.controller, controller_input, now)
        self.controller = step.core
        for effect in step.effects:
            match effect:
                case AppendMetadata(records=records):
                    self._records += records
                case Send():
                    sends.append(effect)
                case Took(action=action, partition=tp, replica=replica):
                    line = note_line(action, f"{tp} on broker {replica}")
                    if line:
                        self.outside.log(line)
                case Halt(why):
                    # Most likely another leads by now, and has decided more than is known here.
                    self.outside.log(f"resigns: {why}")
                    self.inbox.clear()
                    VoterRuntime._takes(self, handle(self.voter, Signal.RESIGN), now)
                    return []
                case _:
                    raise AssertionError(f"the controller has no use for {effect}")
        return sends

    # Messages

    def _send(self, effect: Send) -> None:
        to, message = effect.to, effect.message
        if isinstance(message, AlterPartitionResponse | BrokerRegistered | HeartbeatAnswer):
            self.requests.take_answer(to, message)
            return
        known = (self.controller or self.image.controller).brokers.get(to)
        address = peer_address(known) if known is not None else self.addresses.get(to)
        if address is not None:
            self.post(to, address, message)
