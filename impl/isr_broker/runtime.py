"""A broker as it runs: its core, its logs and, on one broker, the controller; still without sockets or a clock.

The server hands in what arrives, with the time, and takes what is to be sent (`Outside`). Appends and truncations are
done and reported at once; logs to be opened and epochs to be noted, which come by the thousand when a broker fails or a
topic is created, a few at each turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import groupby, islice
from typing import Final, TypeAlias

import attrs

from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.controller import controller_from_records
from isr_broker.core.controller_state import Controller, has, snapshot
from isr_broker.core.effects import (
    CONTROLLER,
    AdvanceLogStart,
    AnswerConsume,
    AnswerDelete,
    AnswerFetch,
    AnswerProduce,
    AppendLog,
    AppendMetadata,
    AssignEpoch,
    CheckpointWatermarks,
    DamageAlarm,
    DeleteLog,
    Effect,
    Halt,
    OpenLog,
    PartitionHalt,
    Send,
    SetAside,
    Slice,
    StopProcess,
    Took,
    TruncateLog,
)
from isr_broker.core.inputs import (
    Consume,
    DeleteRecords,
    DiskFailed,
    LogDamaged,
    NodeInput,
    Produce,
    Received,
    Retained,
    ShutDown,
    Start,
    Tick,
    Withdrawal,
    Written,
)
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    NOTHING_READ,
    Admin,
    AdminAnswer,
    AlterPartitionResponse,
    BrokerId,
    BrokerRegistered,
    ControllerLife,
    CreateTopic,
    Error,
    FetchRequest,
    FetchResponse,
    HeartbeatAnswer,
    Message,
    MetadataPosition,
    MetadataRecord,
    Millis,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Reassignments,
    RegisterBroker,
    TopicPartition,
    lost_metadata,
    peer_address,
)
from isr_broker.core.record_batch import BadBatch
from isr_broker.core.stamps import Stamped, bare
from isr_broker.core.truncation import refuses_to_say
from isr_broker.core.watermark import fetch_refusal
from isr_broker.environment import Address as Address
from isr_broker.environment import Outside, Steps
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import read_position, write_position
from isr_broker.storage.disk import Disk
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.metadata_log import DamagedMetadata, MetadataLog

ClientRequest: TypeAlias = Produce | Consume | DeleteRecords | Admin
ClientAnswer: TypeAlias = AnswerProduce | AnswerConsume | AnswerDelete | AdminAnswer | Reassignments
Slow: TypeAlias = OpenLog | AssignEpoch | AppendLog | DeleteLog | SetAside
"""What is done a little at a time, in the order in which it was asked."""
_ALONE: Final = (OpenLog, DeleteLog, SetAside)
Then: TypeAlias = Callable[[ClientAnswer, bytes], None]
"""Takes an answer, and the records that come with it."""

_AT_ONCE: Final = 32
"""Logs that are told of a new epoch in one turn; they share their flushes, but others want their turn."""
_OPENED_AT_ONCE: Final = 8
"""Logs that are opened, deleted or set aside in one turn: each has flushes of its own, of milliseconds."""

_ROUNDS: Final = 1_000

NO_CLUSTER_ID: Final = "insync"
"""In the place of a cluster id where a driver starts brokers that no folder gives one."""

_FIRST_RETENTION_MS: Final[Millis] = 30_000
"""Logs are looked at for what is too old so long after the start (log.initial.task.delay.ms)."""

_LOGGED_ACTIONS: Final = (
    "becomes_leader",
    "leader_proposes",
    "follower_truncates",
    "controller_elects",
    "controller_moves",
)
"""Actions of which people are told, by how they begin."""

_ALARMS: Final = {
    "controller_fences_last_leader": "nobody who may lead is alive; the partition serves nobody until one is back",
    "controller_elects_unclean": "elected without having been in sync; what only others have is lost",
}
"""Actions that somebody should look at now, and why: Jepsen's second recommendation."""


def note_line(action: str, about: str) -> str:
    """What people are told of an action; empty if nothing."""
    if action in _ALARMS:
        return f"ALARM {action}: {about}: {_ALARMS[action]}"
    return f"{action}: {about}" if action.startswith(_LOGGED_ACTIONS) else ""


Answers: TypeAlias = FetchResponse | OffsetForLeaderEpochResponse
"""What followers are answered, who are always elsewhere."""
AnswersOfController: TypeAlias = AlterPartitionResponse | BrokerRegistered | HeartbeatAnswer


_QUIET: Final = (nodes.Phase.LOADING, nodes.Phase.STOPPED)
"""In these phases a broker wants no Tick."""

_FEW_ALARMS: Final = 1_000
"""Alarms that are not wanted any more and yet kept, beside four for each replica."""


def _nothing(now: Millis) -> None:
    pass


def _nobody(tp: TopicPartition) -> None:
    pass


def _partition_of(node_input: NodeInput) -> TopicPartition | None:
    """The one partition that an input is about; None if it may be about many, or none."""
    about = node_input.message if isinstance(node_input, Received) else node_input
    tp = getattr(about, "partition", None)
    return tp if isinstance(tp, TopicPartition) else None


_NEW_ROLES: Final = ("becomes_leader", "becomes_follower")


@attrs.define
class Runtime:
    """One broker. `controller_at` is the address of the broker that has the controller, `mine` this one's.

    `cluster` is the id of the cluster that the data belong to, `directory` that of the data directory.
    `trace` and `controller_trace` are where the steps of the two cores are noted before they have any effect.
    """

    me: BrokerId
    settings: Settings
    disk: Disk
    mine: Address
    controller_at: Address
    outside: Outside
    cluster: str = NO_CLUSTER_ID
    directory: str = ""
    node: nodes.Node = attrs.field(init=False)
    logs: LogDirectory = attrs.field(init=False)
    controller: Controller | None = None
    metadata_log: MetadataLog | None = None
    waiting: dict[int, Then] = attrs.field(factory=dict[int, Then])
    requests: int = 0
    running: bool = False
    addresses: dict[BrokerId, Address] = attrs.field(factory=dict[BrokerId, Address])
    trace: Steps | None = None
    controller_trace: Steps | None = None
    _inbox: deque[tuple[BrokerId, Message | Stamped]] = attrs.field(factory=deque[tuple[BrokerId, Message | Stamped]])
    _later: deque[Slow] = attrs.field(factory=deque[Slow])
    _admin: dict[int, Millis] = attrs.field(factory=dict[int, Millis])
    """When each request to the controller that waits is given up: its answer may be lost with the controller."""
    _write_queue: list[MetadataRecord] = attrs.field(factory=list[MetadataRecord])
    _alarms: list[tuple[Millis, TopicPartition]] = attrs.field(factory=list[tuple[Millis, TopicPartition]])
    _damages: list[LogDamaged] = attrs.field(factory=list[LogDamaged])
    """What was found since the core was told last."""
    _busy: bool = False
    _asks_more: bool = False
    """Another question to the controller follows at once."""
    _timeless: bool = False
    """What must not be: it goes on, and its timers do not (designs.PLANTED)."""
    after_turn: Callable[[Millis], None] = _nothing
    """What is to be done once the broker has taken what it was handed."""
    before_append: Callable[[TopicPartition], None] = _nobody
    """What is to be done before a replica is asked to append: some of its news may have waited for this moment."""
    wall: Callable[[], Millis] | None = None
    """The time that producers write into batches; without it nothing gets too old."""
    topic_ids: Callable[[], int] | None = None
    """Where ids of new topics come from; without it a topic is numbered by its metadata offset."""
    _next_retention: Millis = 0
    peers_at: Address | None = None
    """Where brokers find it, if that is not where clients do."""
    _position: MetadataPosition = NOTHING_READ
    """Up to where the metadata log was read, as the disk remembers."""

    def start(self, incarnation: int, now: Millis, with_controller: bool) -> None:
        """Recover the logs, and register; `incarnation` is unique to this process."""
        self.running = True
        self._next_retention = now + min(self.settings.log_retention_check_interval_ms, _FIRST_RETENTION_MS)
        self._position = read_position(self.disk)
        if with_controller:
            self._start_controller(incarnation, now)
        self.logs = LogDirectory(self.disk, self.settings)
        clean_epoch, opened_logs = self.logs.load()
        self.node = nodes.Node(me=self.me, settings=self.settings)
        for found in opened_logs:
            if self.trace is not None:
                self.trace.note_opened_log(found, self.logs.logs[found.partition].contents(), now)
            self._step(found, now)
        for damage in self.logs.damages():
            self._log_damage(damage)
            self._step(damage, now)
        host, port = self.mine
        peer_host, peer_port = self.peers_at or ("", 0)
        rack = self.settings.broker_rack
        start = Start(incarnation, clean_epoch, host, port, rack, self.cluster, self.directory)
        start = attrs.evolve(start, peer_host=peer_host, peer_port=peer_port, position=self._position)
        self.tell(start, now)
        self.outside.log(f"started, {'clean' if clean_epoch >= 0 else 'unclean or new'}, {len(opened_logs)} logs")

    def _start_controller(self, life: int, now: Millis) -> None:
        """Read the metadata log, and begin a life in it; DamagedMetadata if it lacks what this very broker has read."""
        design = self.settings.insync_design
        cuts, begins = design.cuts_damaged_metadata, design.starts_without_metadata
        self.metadata_log, records = MetadataLog.open(self.disk, cuts, begins)
        begun = (*records, ControllerLife(life))
        controller = controller_from_records(self.settings, begun, now, self.cluster)
        if not has(controller, self._position) and not (cuts or begins):
            raise DamagedMetadata(lost_metadata("this broker has read", self._position.offset))
        self.metadata_log.append((ControllerLife(life),))
        self.controller = controller

    # Inputs

    def tell(self, node_input: NodeInput, now: Millis) -> None:
        """The broker's core takes an input, and whatever is caused within this process happens."""
        self._step(node_input, now)
        self._drain(now)
        self.after_turn(now)

    def receive_messages(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Messages arrived from another broker."""
        for source, to, sent in parcels:
            message = bare(sent)
            if isinstance(message, RegisterBroker):
                self.addresses[source] = peer_address(message)
            self._deliver(source, to, sent, now)
        self._drain(now)
        self.after_turn(now)

    def report_undelivered(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """No answer will come to messages: a follower, or an admin, need not wait long to ask again."""
        for source, to, sent in parcels:
            message = bare(sent)
            if source == self.me and isinstance(message, FetchRequest):
                self._step(Received(to, fetch_refusal(to, message, Error.REQUEST_TIMED_OUT)), now)
            elif source == self.me and isinstance(message, OffsetForLeaderEpochRequest):
                self._step(Received(to, refuses_to_say(to, message, Error.REQUEST_TIMED_OUT).message), now)
            elif source == self.me and isinstance(message, Admin):
                self._answer_client(AdminAnswer(request=message.request, error=Error.REQUEST_TIMED_OUT), b"")
        self._drain(now)
        self.after_turn(now)

    def tick(self, now: Millis) -> None:
        """Whatever is due by now happens."""
        while self.running and self.controller is not None and controllers.deadline(self.controller) <= now:
            self._tell_controller(Tick(), now)
        for _, effects in groupby(self._next_slow(), type):
            for done in self._on_disk(list(effects)):
                self._step(done, now)
        for _ in range(_ROUNDS):
            due = self._due(now)
            if not self.running or not due:
                break
            for tick in due:
                self._step(tick, now)
        for given_up in [request for request, at in self._admin.items() if at <= now]:
            self._answer_client(AdminAnswer(request=given_up, error=Error.REQUEST_TIMED_OUT), b"")
        if self.wall is not None and self._next_retention <= now:
            self._next_retention = now + self.settings.log_retention_check_interval_ms
            for outcome in self._retain(self.wall()):
                self._step(outcome, now)
        self._drain(now)
        self.after_turn(now)

    def _next_slow(self) -> list[Slow]:
        """What is done on the disk in this turn."""
        some: list[Slow] = []
        while self._later and len(some) < _AT_ONCE and sum(isinstance(e, _ALONE) for e in some) < _OPENED_AT_ONCE:
            some.append(self._later.popleft())
        return some

    def _retain(self, wall: Millis) -> tuple[Retained | DiskFailed, ...]:
        """What is old goes. A broker that cannot write where its logs start ends, as without any other checkpoint."""
        try:
            return tuple(self.logs.retain(wall, dict(nodes.watermarks(self.node.replicas.values()))))
        except OSError as error:
            self._ends(f"halted: {error}")
            return ()

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted."""
        times = [0 if self._later else self._deadline_of_node()]
        if self.controller is not None:
            times.append(controllers.deadline(self.controller))
        times += islice(self._admin.values(), 1)  # in the order in which they were asked
        wanted = [t for t in times if t is not None]
        return min(wanted) if wanted and self.running and not self._timeless else None

    # Timers: a heap of when replicas want a Tick, so that what runs once per frame does not grow with partitions

    def _set_alarm(self, before: nodes.Node, node_input: NodeInput) -> None:
        """After a step: the replica that it was about may want another Tick; after news any may."""
        tp = _partition_of(node_input)
        if tp is None and self.node.wake is before.wake:
            return
        if tp is None or len(self._alarms) > 4 * len(self.node.wake) + _FEW_ALARMS:
            self._alarms = [(at, tp) for tp, at in self.node.wake.items()]
            heapify(self._alarms)
            return
        at = self.node.wake.get(tp)
        if at is not None and (at != before.wake.get(tp) or isinstance(node_input, Tick)):
            heappush(self._alarms, (at, tp))

    def _next_alarm(self) -> Millis | None:
        """When the next replica wants a Tick; what is no longer wanted is dropped on the way."""
        while self._alarms:
            at, tp = self._alarms[0]
            if self.node.wake.get(tp) == at:
                return at
            heappop(self._alarms)
        return None

    def _deadline_of_node(self) -> Millis | None:
        if self.node.phase in _QUIET:
            return None
        alarm = self._next_alarm()
        own = nodes.own_deadline(self.node)
        return own if alarm is None else min(own, alarm)

    def _due(self, now: Millis) -> list[Tick]:
        """The Ticks that are wanted by now, the broker's own first, then of replicas the longest wanted first."""
        if self.node.phase in _QUIET:
            return []
        late: dict[TopicPartition, None] = {}
        while (at := self._next_alarm()) is not None and at <= now:
            late[heappop(self._alarms)[1]] = None
        own = [Tick()] if nodes.own_deadline(self.node) <= now else []
        return own + [Tick(tp) for tp in late]

    def knows_itself(self) -> bool:
        """Whether the broker has learned of its own session, and so of all metadata before that."""
        mine = self.node.brokers.get(self.me)
        return mine is not None and not mine.fenced and mine.epoch == self.node.broker_epoch

    def shut_down(self, now: Millis) -> None:
        """Stop in order: be relieved first."""
        self.tell(ShutDown(), now)

    # For clients

    def ask(self, make: Callable[[int], ClientRequest], then: Then, now: Millis) -> int:
        """Hand in a client's request under a new number, which is given; `then` gets its answer, which acks=0 has only
        for an error."""
        self.requests += 1
        request = make(self.requests)
        self.waiting[self.requests] = then
        if isinstance(request, Produce | Consume | DeleteRecords):
            if isinstance(request, Produce):
                self.before_append(request.partition)
            self.tell(request, now)
            if isinstance(request, Produce) and request.acks == 0:
                self.waiting.pop(request.request, None)
        else:
            self._admin[self.requests] = now + self.settings.controller_socket_timeout_ms
            self._send(CONTROLLER, self.me, request)
            if not self._asks_more:
                self._drain(now)
        return request.request

    def withdraw(self, tp: TopicPartition, number: int, now: Millis) -> None:
        """Nobody waits any more for the answer to a question for records."""
        if self.waiting.pop(number, None) is not None:
            self.tell(Withdrawal(request=number, partition=tp), now)

    def ask_all(self, asks: Iterable[tuple[Callable[[int], Admin], Then]], now: Millis) -> None:
        """Ask the controller for several things, which are durable with one flush if it is here."""
        self._asks_more = True
        try:
            for make, then in asks:
                self.ask(make, then, now)
        finally:
            self._asks_more = False
        self._drain(now)

    def _answer_client(self, answer: ClientAnswer, records: bytes) -> None:
        self._admin.pop(answer.request, None)
        then = self.waiting.pop(answer.request, None)
        if then is not None:
            then(answer, records)

    # Effects

    def _step(self, node_input: NodeInput, now: Millis) -> None:
        queue: deque[NodeInput] = deque([node_input])
        while queue and self.running:
            before, node_input = self.node, queue.popleft()
            step = nodes.handle(before, node_input, now)
            self.node = step.core
            self._set_alarm(before, node_input)
            if self.trace is not None:
                self.trace.node_stepped(before, node_input, step, now)
            for effect in step.effects:
                try:
                    report = self._perform(effect)
                except OSError as error:
                    # A checkpoint, or the orderly end. Without them the process is no broker that could go on.
                    if self.settings.insync_design.goes_on_without_timers:
                        self._timeless = True
                    else:
                        self._ends(f"halted: {error}")
                    return
                if report is not None:
                    queue.append(report)
            queue += self._damages
            self._damages.clear()

    def _read(self, tp: TopicPartition, log_slice: Slice | None) -> bytes | None:
        """The batches of a slice, empty if none is wanted; None where the disk does not give them back as they were.

        Whoever asked is told KAFKA_STORAGE_ERROR. The replica is offline from the next input on; that is no reason for
        the process to end, for other logs can be read.
        """
        if log_slice is None:
            return b""
        try:
            return self.logs.read(tp, log_slice)
        except (OSError, BadBatch) as error:
            self.take_offline(tp, f"what is at offset {log_slice.offset} cannot be read: {error}")
            return None

    def take_offline(self, tp: TopicPartition, why: str) -> None:
        """A log does not give back what was written: its core hears of it after this input, or the next."""
        log = self.logs.logs.get(tp)
        if log is None or log.damage:
            return
        damage = LogDamaged(partition=tp, why=why)
        self._log_damage(damage)
        self.logs.take_offline(tp, why)
        self.outside.leaves(tp)
        self._damages.append(damage)

    def _log_damage(self, damage: LogDamaged) -> None:
        self.outside.log(
            f"ALARM {damage.partition} is offline here: {damage.why}; once another leads, start this broker again:"
            " the log is then set aside, and copied anew"
        )

    def _perform(self, effect: Effect) -> NodeInput | None:
        match effect:
            case OpenLog() | AssignEpoch() | DeleteLog() | SetAside():
                self._later.append(effect)
                if isinstance(effect, DeleteLog | SetAside):
                    self.outside.leaves(effect.partition)
            case AppendLog() if self.logs.begins_epoch(effect):
                self._later.append(effect)
            case AppendLog() | TruncateLog() | AdvanceLogStart():
                return self.logs.perform(effect)
            case Send(to, message):
                self._send(to, self.me, message)
            case AnswerFetch(to=to, response=response, records=log_slice):
                records = self._read(response.partition, log_slice)
                if records is None:
                    response = attrs.evolve(response, error=Error.KAFKA_STORAGE_ERROR)
                self._send(to, self.me, attrs.evolve(response, records=records or b""))
            case AnswerProduce() | AnswerDelete():
                self._answer_client(effect, b"")
            case AnswerConsume(partition=tp, records=log_slice):
                records = self._read(tp, log_slice)
                if records is None:
                    effect = attrs.evolve(effect, error=Error.KAFKA_STORAGE_ERROR)
                self._answer_client(effect, records or b"")
            case Took(action=action, partition=tp, replica=replica):
                self._note(action, f"{tp} on broker {replica}")
                if action in _NEW_ROLES:
                    self.outside.leaves(tp)
            case CheckpointWatermarks():
                self._note_position()
                self.logs.checkpoint(effect)
            case StopProcess(epoch, watermarks):
                self._note_position()
                self.logs.close(epoch, watermarks)
                self._ends("stopped in order")
            case PartitionHalt(tp, why, is_damaged=True):
                self.take_offline(tp, why)
            case DamageAlarm(tp, why):
                files = ", ".join(self.logs.files_of(tp))
                self._log_damage(LogDamaged(partition=tp, why=f"{why}: one of {files} is damaged"))
            case PartitionHalt(tp, why):
                self.outside.log(f"{tp}: this follower waits for a new leader epoch: {why}")
            case Halt(why):
                self._ends(f"halted: {why}")
            case AppendMetadata():
                raise AssertionError("a broker writes no metadata")
        return None

    def _note_position(self) -> None:
        """Have the disk remember up to where this broker has read the metadata log."""
        position = MetadataPosition(self.node.metadata_offset, self.node.metadata_life)
        if position.offset > self._position.offset:
            write_position(self.disk, position, self.settings.insync_design.checkpoint_in_place)
            self._position = position

    def _on_disk(self, effects: list[Slow]) -> Iterator[NodeInput]:
        """Do what is slow and of one kind: one after the other, but what begins an epoch together."""
        yield from self.logs.perform_all([e for e in effects if isinstance(e, AssignEpoch | AppendLog)])
        for effect in effects:
            match effect:
                case OpenLog(tp, topic_id):
                    yield self.logs.open(tp, topic_id)
                case DeleteLog(tp):
                    self.logs.delete(tp)
                case SetAside(tp):
                    self._set_aside(tp)
                case AssignEpoch() | AppendLog():
                    pass

    def _set_aside(self, tp: TopicPartition) -> None:
        name = self.logs.set_aside(tp)
        if name:
            self.outside.log(f"the controller does not know the topic of the log {tp}: it is {name} from now on")

    def _ends(self, why: str) -> None:
        self.running = False
        self.outside.stopped(why)

    def _note(self, action: str, about: str) -> None:
        if line := note_line(action, about):
            self.outside.log(line)

    def _tell_controller(self, controller_input: Received | Written | Tick, now: Millis) -> None:
        assert self.controller is not None
        assert self.metadata_log is not None
        step = controllers.handle(self.controller, controller_input, now)
        self.controller = step.core
        if self.controller_trace is not None:
            self.controller_trace.controller_stepped(controller_input, step, now)
        for effect in step.effects:
            match effect:
                case AppendMetadata(records=records):
                    self._write_queue += records
                case Send(to, message):
                    self._send(to, CONTROLLER, message)
                case Took(action=action, partition=tp, replica=replica):
                    self._note(action, f"{tp} on broker {replica}")
                case Halt(why):
                    self._ends(f"halted: {why}")
                case _:
                    raise AssertionError(f"the controller has no use for {effect}")

    def _write_metadata(self, now: Millis) -> None:
        """What the controller has decided in this turn becomes durable with one flush, and may be told.

        When the log has grown long a snapshot takes its place.
        """
        if not self._write_queue or self.controller is None or self.metadata_log is None:
            return
        records, self._write_queue = tuple(self._write_queue), []
        most = self.settings.metadata_log_max_record_bytes_between_snapshots
        try:
            self.metadata_log.append(records)
            long = self.metadata_log.growth > most
            if long:
                self.metadata_log.compact(snapshot(self.controller))
        except OSError as error:
            self._ends(f"halted: the metadata log cannot be written, {error}")
            return
        self._tell_controller(Written(self.controller.offset, long), now)

    # Messages

    def _send(self, to: BrokerId, source: BrokerId, message: Message) -> None:
        trace = self.controller_trace if source == CONTROLLER else self.trace
        envelope = message if trace is None else trace.stamped(message)
        if isinstance(message, Answers):
            self.outside.answer(to, envelope)
            return
        here = self.controller is not None if to == CONTROLLER else to == self.me
        if here:
            if to == CONTROLLER and isinstance(message, RegisterBroker):
                self.addresses[source] = peer_address(message)
            self._inbox.append((source if to == CONTROLLER else CONTROLLER, envelope))
            return
        if isinstance(message, AnswersOfController):
            self.outside.answer(to, envelope)
            return
        address = self.controller_at if to == CONTROLLER else self.address_of(to)
        if address is not None:
            self.outside.send(to, address, source, envelope)

    def address_of(self, broker: BrokerId) -> Address | None:
        """Where a broker listens for brokers, as far as is known.

        A controller knows it by its log. Its own broker knows nothing until it is registered, which takes as long as
        the session of its process before: for so long nobody would hear what the controller decides.
        """
        known = self.node.brokers.get(broker)
        if known is None and self.controller is not None:
            known = self.controller.brokers.get(broker)
        return peer_address(known) if known is not None else self.addresses.get(broker)

    def _drain(self, now: Millis) -> None:
        """Messages that this process sent to itself, and what the controller has to write."""
        if self._busy:
            return
        self._busy = True
        try:
            while (self._inbox or self._write_queue) and self.running:
                if not self._inbox:
                    self._write_metadata(now)
                    continue
                source, message = self._inbox.popleft()
                to = self.me if source == CONTROLLER else CONTROLLER
                self._deliver(source, to, message, now)
        finally:
            self._busy = False

    def _deliver(self, source: BrokerId, to: BrokerId, envelope: Message | Stamped, now: Millis) -> None:
        if not self.running:
            return
        message, trace = bare(envelope), self.controller_trace if to == CONTROLLER else self.trace
        if to != CONTROLLER and isinstance(message, AdminAnswer | Reassignments):
            # For whoever asked, and for no core: it is not the cause of the next step.
            self._answer_client(message, b"")
            return
        if trace is not None and isinstance(envelope, Stamped):
            trace.hears(envelope.stamp)
        if to == CONTROLLER:
            if self.controller is not None:
                if isinstance(message, CreateTopic) and self.topic_ids is not None:
                    message = attrs.evolve(message, topic_id=self.topic_ids())
                self._tell_controller(Received(source, message), now)
        else:
            self._step(Received(source, message), now)
