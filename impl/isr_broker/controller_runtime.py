"""A controller on the metadata quorum as it runs: a voter, and while it leads the controller's core on its log.

The core is the one that a single controller has. Only that its records are proposed to the quorum, and `Written` says
that they are committed. So nobody hears of a decision that another leader could forget. While a batch is on its way to
the others, what arrives waits. Then all of it is decided, and committed, together.

Brokers of Apache Kafka fetch the log, as observers of the quorum. Those here are told of the decisions in it.

A voter that does not lead has no core. It keeps what the committed part of its log says, and begins with that when it
is elected. What was not committed when it resigns is forgotten with the core.

Kafka: QuorumController, which is active while its KafkaRaftClient leads and has caught up with its own epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar, Final

import attrs

from isr_broker.controller_admin import ControllerAdmin
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
    Reassignments,
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
from isr_broker.wire.controller_channels import directory_uuid
from isr_broker.wire.controller_records import (
    PRODUCER_IDS_AT_ONCE,
    LogImage,
    batch_of,
    feature_records,
    producer_ids,
    replay,
    snapshot_of,
)
from isr_broker.wire.kafka_brokers import ADMIN_APIS, ASKED_VERSIONS, assignments, told_features
from isr_broker.wire.protocol import Answer, Fields, Request

_OF_KAFKAS_BROKERS: Final = (
    protocol.ENVELOPE,
    protocol.ALLOCATE_PRODUCER_IDS,
    protocol.ASSIGN_REPLICAS_TO_DIRS,
)
MOST_MARKS: Final = 10_000
"""A broker that is so many commits behind is as one that has read nothing."""
READ_BYTES: Final = 1 << 20
"""So much of the log is read at once when it is replayed; one batch at least."""


@attrs.define(kw_only=True)
class ControllerRuntime(VoterRuntime):
    """One controller of a quorum.

    - `core_settings`: the settings of the controller's core. `post`: how a message goes to a broker.
    - `image` is what the log says up to `replay_end`, all of which is committed.
    - `controller`: the core, while this voter leads the epoch `active_epoch` and nobody else decides.
    - `inbox`: what the core is to be told once the batch that ends at `proposal_end` is committed.
    - `late_answers`: what waits for that, though the core has decided nothing (`waits_for_commit`).
    - `id_requests`: brokers that want producer ids; what they are given, the core does not decide.
    - `marks`: how many decisions the log has up to which offsets, the newest.
    """

    versions: ClassVar = {
        **VoterRuntime.versions,
        **{key: protocol.SERVED_VERSIONS[key] for key in (*SERVED_APIS, *ADMIN_APIS)},
        **{key: ASKED_VERSIONS[key] for key in _OF_KAFKAS_BROKERS},
    }
    core_settings: Settings
    post: Callable[[BrokerId, Address, Message], None]
    image: LogImage = attrs.field(init=False)
    replay_end: Offset = 0
    growth: int = 0
    controller: Controller | None = None
    active_epoch: LeaderEpoch = -1
    inbox: deque[ControllerInput] = attrs.field(factory=deque[ControllerInput])
    proposal_end: Offset | None = None
    late_answers: list[Callable[[], None]] = attrs.field(factory=list[Callable[[], None]])
    id_requests: list[tuple[Fields, Reply]] = attrs.field(factory=list[tuple[Fields, Reply]])
    marks: deque[tuple[Offset, Offset]] = attrs.field(factory=lambda: deque[tuple[Offset, Offset]](maxlen=MOST_MARKS))
    requests: BrokerRequests = attrs.field(init=False)
    admin: ControllerAdmin = attrs.field(init=False)
    addresses: dict[BrokerId, Address] = attrs.field(factory=dict[BrokerId, Address])
    _records: list[MetadataRecord] = attrs.field(factory=list[MetadataRecord])
    _busy: bool = False

    def __attrs_post_init__(self) -> None:
        self.image = self._empty_image()
        self.requests = BrokerRequests(self, self.leader_address, self.decisions_read)
        self.admin = ControllerAdmin(
            me=self.me,
            cluster=self.cluster,
            settings=self.core_settings,
            versions=self.versions,
            knows=lambda: self.controller or self.image.controller,
            hands_in=self._asked_by_admins,
        )

    def _empty_image(self) -> LogImage:
        return LogImage(controller=Controller(settings=self.core_settings, cluster=self.cluster))

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
        """Answer a request of a voter, of a broker, or of an admin."""
        match request.key:
            case protocol.API_VERSIONS:
                features = told_features(self.image.features, self.replay_end - 1)
                reply({"api_keys": protocol.api_keys(self.versions), **features})
            case key if self.requests.serves(key):
                self.requests.serve(request, now, reply)
            case protocol.ALLOCATE_PRODUCER_IDS | protocol.ASSIGN_REPLICAS_TO_DIRS:
                self._serve_registered(request, reply, now)
            case protocol.ENVELOPE if self.controller is None:
                reply({"error_code": Error.NOT_CONTROLLER.value})
            case protocol.ENVELOPE:
                self.admin.opens(request, reply, now, self.serve)
            case key if self.admin.serves(key):
                self.admin.serve(request, reply, now)
            case _:
                VoterRuntime.serve(self, request, reply, now)

    def _serve_registered(self, request: Request, reply: Reply, now: Millis) -> None:
        """Answer a broker that has to be registered as it says (checkBrokerEpoch)."""
        reply_once, body = self.requests.admits(request, reply), request.body
        if reply_once is None:
            return
        assert self.controller is not None
        broker = self.controller.brokers.get(body.number("broker_id"))
        if broker is None or broker.epoch != body.number("broker_epoch"):
            reply_once({"error_code": Error.STALE_BROKER_EPOCH.value})
        elif request.key == protocol.ASSIGN_REPLICAS_TO_DIRS:
            reply_once(assignments(body, directory_uuid(broker.directory)))
        else:
            self.id_requests.append((body, reply_once))
            self._goes_on(now)

    def decisions_read(self, offset: Offset) -> Offset:
        """How many decisions a broker knows that has applied the log up to a record, and that one."""
        return next((count for end, count in reversed(self.marks) if end <= offset + 1), 0)

    def _asked_by_admins(self, requests: Sequence[Admin], now: Millis) -> None:
        """Ask the core for several things, which are in one batch."""
        if self.controller is None:
            for request in requests:
                self.admin.take_answer(AdminAnswer(request=request.request, error=Error.NOT_CONTROLLER))
            return
        self.inbox.extend(Received(self.me, request) for request in requests)
        self._goes_on(now)

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
        if self.admin.turns.waiting:
            return 0
        of_voter = VoterRuntime.deadline(self)
        if self.controller is None or self.proposal_end is not None:
            return of_voter
        return min(of_voter, controllers.deadline(self.controller))

    def tick(self, now: Millis) -> None:
        """Whatever is due by now."""
        VoterRuntime.tick(self, now)
        self.admin.turns.tick(now)
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
        if self.replay_end < self.files.log.view.start:
            self._loads_snapshot()
            return True
        if self.replay_end < (self.voter.high_watermark or 0):
            self._replays(now)
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

    def _replays(self, now: Millis) -> None:
        """More of the log is committed. Of a leader that is so once a record of its own epoch is."""
        watermark = self.voter.high_watermark or 0
        data = self.files.read(Slice(offset=self.replay_end, up_to=watermark, max_bytes=READ_BYTES))
        before = self.image.controller.offset
        self.image, self.replay_end = replay(self.image, data)
        if self.image.controller.offset != before:
            self.marks.append((self.replay_end, self.image.controller.offset))
        self.growth += len(data)
        if self.growth >= self.core_settings.metadata_log_max_record_bytes_between_snapshots:
            self.growth = 0
            self.keeps_snapshot(self.replay_end, snapshot_of(self.image, self.outside.wall()), now)

    def _loads_snapshot(self) -> None:
        """The log begins behind what is known: a snapshot says all that was before."""
        self.image, _ = replay(self._empty_image(), self.files.snapshot_contents())
        self.replay_end, self.growth = self.files.log.view.start, 0
        self.marks.append((self.replay_end, self.image.controller.offset))

    def _claims(self, now: Millis) -> None:
        """It leads, and all that was committed before is known (QuorumController.claim)."""
        self.controller, self.active_epoch = controller_begins(self.image.controller, now), self.voter.epoch
        self.outside.log(f"the active controller of epoch {self.active_epoch}")
        features = feature_records(self.image, self.core_settings.insync_design)
        if features:
            self._proposes(batch_of(self.image, (), self.outside.wall(), features), now)

    def _resigns(self) -> None:
        """It leads no more: whoever waits for an answer is to ask elsewhere (QuorumController.renounce)."""
        self.controller, self.proposal_end = None, None
        self.inbox.clear()
        self.late_answers.clear()
        self.id_requests.clear()
        self._records.clear()
        self.outside.log(f"no longer the active controller of epoch {self.active_epoch}")
        self.requests.resigns()
        self.admin.resigns()

    def _confirms(self, now: Millis) -> bool:
        """What was proposed is told once it is committed; False if it is not yet."""
        assert self.controller is not None
        if self.proposal_end is None or self.proposal_end > (self.voter.high_watermark or 0):
            return False
        self.proposal_end = None
        answers, self.late_answers = self.late_answers, []
        for answer in self._tell(Written(self.controller.offset, False), now):
            self._send(answer)
        for say in answers:
            say()
        return True

    def _decides(self, now: Millis) -> bool:
        """All that arrived is decided, and what is due by now; what comes of it is proposed in one batch."""
        is_asked = bool(self.inbox or self.id_requests)
        if not is_asked and (self.controller is None or controllers.deadline(self.controller) > now):
            return False
        answers: list[Send] = []
        while self.inbox:
            answers += self._tell(self.inbox.popleft(), now)
        while self.controller is not None and controllers.deadline(self.controller) <= now:
            answers += self._tell(Tick(), now)
        for answer in answers:
            if self.waits_for_commit(answer.message):
                self.late_answers.append(partial(self._send, answer))
            else:
                self._send(answer)
        records, self._records = self._records, []
        ids = self._allocates()
        if records or ids:
            self._proposes(batch_of(self.image, records, self.outside.wall(), ids), now)
        elif self.late_answers:
            self._proposes(self.nothing(), now)
        return True

    def _proposes(self, batch: bytes, now: Millis) -> None:
        self.propose(batch, now)
        self.proposal_end = self.voter.log.end

    def _allocates(self) -> list[bytes]:
        """Who asks is given producer ids that nobody had (ProducerIdControlManager.generateNextProducerId)."""
        asked, self.id_requests = self.id_requests, []
        first, records = self.image.next_producer_id, list[bytes]()
        for body, reply in asked:
            block: Answer = {"producer_id_start": first, "producer_id_len": PRODUCER_IDS_AT_ONCE, "error_code": 0}
            first += PRODUCER_IDS_AT_ONCE
            records.append(producer_ids(body.number("broker_id"), body.number("broker_epoch"), first))
            self.late_answers.append(partial(reply, block))
        return records

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
        if to == self.me:
            assert isinstance(message, AdminAnswer | Reassignments)
            self.admin.take_answer(message)
            return
        known = (self.controller or self.image.controller).brokers.get(to)
        address = peer_address(known) if known is not None else self.addresses.get(to)
        if address is not None:
            self.post(to, address, message)
