"""What a process did, as lines of JSON: one file per node and life, one line per step that anybody could notice.

The format is docs/trace-format.md. A line is handed to the system before anything that the step sends leaves the
process: so whoever was killed with SIGKILL has lost at most the end of its last line, and no message was received whose
sending is missing. What survives a power loss is not promised; nothing is flushed.

A step of a core may take several actions (news about many partitions): each is a line. What the step sends without
having taken an action (heartbeats, answers that waited for the metadata log) is a line without action.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.core.controller_state import Controller, ControllerStep
from isr_broker.core.effects import (
    CONTROLLER,
    AnswerConsume,
    AnswerFetch,
    AnswerProduce,
    AppendLog,
    AssignEpoch,
    Effect,
    Halt,
    Send,
    StopProcess,
    Took,
    TruncateLog,
)
from isr_broker.core.inputs import (
    Appended,
    Consume,
    ControllerInput,
    DiskFailed,
    EpochAssigned,
    LogOpened,
    NodeInput,
    Produce,
    Received,
    Truncated,
)
from isr_broker.core.messages import (
    BrokerId,
    FetchMetadata,
    Heartbeat,
    Message,
    Millis,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.node import Node, NodeStep
from isr_broker.core.record_batch import BadBatch, batches
from isr_broker.core.stamps import Stamp, Stamped
from isr_broker.snapshot import Json, batch_rows, controller_snapshot, plain, replica_snapshot
from isr_broker.storage.disk import ROOT, Disk, File

FORMAT: Final = "insync/trace/1"
CONTROLLER_NAME: Final = "controller"

_OF_THE_NODE: Final = (Heartbeat, FetchMetadata, RegisterBroker)
"""Messages that are no replica's."""

_DISK_DONE: Final = (Appended, Truncated, EpochAssigned, DiskFailed)

Line: TypeAlias = dict[str, Json]
Cause: TypeAlias = tuple[str, str | None, Json]
"""The name of an input, the number of the message that it was, and what a client asked."""


def node_name(node: BrokerId) -> str:
    """A broker's number, or the controller's name."""
    return CONTROLLER_NAME if node == CONTROLLER else str(node)


@attrs.define
class Trace:
    """The trace of one node in one life; `begins` first, then each step, with the core before it and after it.

    - `snapshots`: whether lines have the state after the step.
    - `clock`: what this life knows, itself included; `life` its name there, as `2.3` for the third life of broker 2.
    - `incoming_stamp`: the message that the next step is about; `stamps` what the messages of the present step will
      carry.
    - `inbox_causes`, `disk_causes`, `written_batches`: the causes of inputs that wait for their replica, or for its
      disk, and its batches.
    """

    node: BrokerId
    disk: Disk
    snapshots: bool = True
    life: str = ""
    clock: dict[str, int] = attrs.field(factory=dict[str, int])
    incoming_stamp: Stamp | None = None
    stamps: deque[tuple[type[Message], Stamp]] = attrs.field(factory=deque[tuple[type[Message], Stamp]])
    messages: int = 0
    inbox_causes: dict[TopicPartition, deque[Cause]] = attrs.field(factory=dict[TopicPartition, deque[Cause]])
    disk_causes: dict[TopicPartition, Cause] = attrs.field(factory=dict[TopicPartition, Cause])
    written_batches: dict[TopicPartition, Json] = attrs.field(factory=dict[TopicPartition, Json])
    _stamp_of: dict[int, Stamp] = attrs.field(factory=dict[int, Stamp])
    _file: File | None = None

    def begins(self, at: Millis, about: Mapping[str, Json]) -> None:
        """The process starts: a file of its own, and its first line."""
        name = node_name(self.node)
        lives = [n for n in self.disk.names(ROOT) if n.startswith(f"{name}.") and n.endswith(".jsonl")]
        number = 1 + max((int(n.split(".")[1]) for n in lives), default=0)
        self.life = f"{name}.{number}"
        self._file = self.disk.open(f"{self.life}.jsonl")
        self._write({"format": FORMAT, "node": name, "life": number, "at": at, "snapshots": self.snapshots, **about})

    def _write(self, line: Line) -> None:
        """One line; where it cannot be written the trace ends, and the broker goes on."""
        if self._file is None:
            return
        try:
            self._file.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        except OSError:
            self._file = None

    # Messages

    def stamped(self, message: Message) -> Message | Stamped:
        """The message as it leaves, with the stamp of the line that says so."""
        if not self.stamps or self.stamps[0][0] is not type(message):
            return message
        return Stamped(message, self.stamps.popleft()[1])

    def hears(self, stamp: Stamp) -> None:
        """A message arrives; the next step is about it."""
        self.incoming_stamp = stamp
        for life, count in stamp.clock.items():
            self.clock[life] = max(self.clock.get(life, 0), count)

    def _cause(self, core_input: NodeInput | ControllerInput) -> Cause:
        heard, self.incoming_stamp = self.incoming_stamp, None
        name = type(core_input.message).__name__ if isinstance(core_input, Received) else type(core_input).__name__
        return name, None if heard is None else heard.message, _asked_by_client(core_input)

    # Steps

    def note_opened_log(self, opened_log: LogOpened, records: bytes, at: Millis) -> None:
        """A log was found on the disk when the process started."""
        line: Line = {"input": "LogOpened", "partition": str(opened_log.partition), "log": batch_rows(batches(records))}
        self._event(at, {**line, "high_watermark": opened_log.high_watermark}, ())

    def node_stepped(self, before: Node, node_input: NodeInput, step: NodeStep, at: Millis) -> None:
        """A broker's core has taken an input; its effects are not yet performed."""
        cause = self._cause(node_input)
        disk: str | None = None
        if isinstance(node_input, _DISK_DONE):
            disk, cause = type(node_input).__name__, self.disk_causes.pop(node_input.partition, cause)
        causes = self._through_inboxes(before, step.core, cause)
        groups: list[tuple[Took | None, list[Effect]]] = [(None, [])]
        for effect in step.effects:
            if isinstance(effect, Took):
                groups.append((effect, []))
            elif isinstance(effect, Send) and isinstance(effect.message, _OF_THE_NODE):
                groups[0][1].append(effect)
            else:
                groups[-1][1].append(effect)
        self._asks(step.effects, causes, cause)
        lines = [self._node_line(took, effects, step.core, causes, cause) for took, effects in groups]
        for (took, effects), line in zip(groups, lines, strict=True):
            parked = isinstance(node_input, Produce | Consume) and not step.effects
            if took is None and not is_noticeable(effects) and not parked:
                continue
            tp = took.partition if took is not None else None
            if disk is not None and took is not None:
                line["disk"] = disk
                if tp in self.written_batches:
                    line["wrote"] = self.written_batches.pop(tp)
            self._event(at, line, effects)
        self._in_order(step.effects)

    def _node_line(
        self,
        took: Took | None,
        effects: list[Effect],
        core: Node,
        causes: Mapping[TopicPartition, Cause],
        cause: Cause,
    ) -> Line:
        name, received, client = cause if took is None else causes.get(took.partition, cause)
        line: Line = {"input": name, "received": received, "client": client}
        if took is not None:
            line |= {"action": took.action, "partition": str(took.partition)}
            if self.snapshots:
                line["state"] = replica_snapshot(core.replicas[took.partition])
        answered = [plain(e) for e in effects if isinstance(e, AnswerProduce | AnswerConsume)]
        if answered:
            line["answered"] = answered
        ends = [plain(e) for e in effects if isinstance(e, Halt | StopProcess)]
        if ends:
            line["ends"] = ends[0]
        return line

    def _through_inboxes(self, before: Node, after: Node, cause: Cause) -> dict[TopicPartition, Cause]:
        """Which input each replica took that did not take this one: of those that waited, the first."""
        causes: dict[TopicPartition, Cause] = {}
        if before.inboxes is after.inboxes:
            return causes
        for tp in {*before.inboxes, *after.inboxes}:
            were, are = before.inboxes.get(tp, ()), after.inboxes.get(tp, ())
            queue = self.inbox_causes.setdefault(tp, deque())
            if len(are) > len(were):
                queue.append(cause)
            elif len(are) < len(were) and queue:
                causes[tp] = queue.popleft()
        return causes

    def _asks(self, effects: Iterable[Effect], causes: Mapping[TopicPartition, Cause], cause: Cause) -> None:
        for effect in effects:
            if isinstance(effect, AppendLog | TruncateLog | AssignEpoch):
                self.disk_causes[effect.partition] = causes.get(effect.partition, cause)
            if isinstance(effect, AppendLog):
                self.written_batches[effect.partition] = batch_rows(batches(effect.records))

    def controller_stepped(self, controller_input: ControllerInput, step: ControllerStep, at: Millis) -> None:
        """The controller has taken an input; its effects are not yet performed."""
        name, message_id, _ = self._cause(controller_input)
        for effect in step.effects:
            if isinstance(effect, Took):
                line: Line = {"input": name, "received": message_id, "action": effect.action}
                line |= {"partition": str(effect.partition), "replica": effect.replica}
                if self.snapshots:
                    line["state"] = _controller_state(step.core, effect.partition)
                self._event(at, line, ())
        if is_noticeable(step.effects):
            self._event(at, {"input": name, "received": message_id}, step.effects)
        self._in_order(step.effects)

    # Lines

    def _event(self, at: Millis, line: Line, effects: Iterable[Effect]) -> None:
        """One more event of this life, with what it sends."""
        self.clock[self.life] = self.clock.get(self.life, 0) + 1
        clock: dict[str, int] = dict(self.clock)
        messages: list[Json] = []
        for effect in effects:
            message = _message_of(effect)
            if message is None:
                continue
            self.messages += 1
            stamp = Stamp(f"{self.life}:{self.messages}", clock)
            self._stamp_of[id(effect)] = stamp
            to = effect.to if isinstance(effect, Send | AnswerFetch) else CONTROLLER
            messages.append({"id": stamp.message, "to": node_name(to), type(message).__name__: plain(message)})
        if messages:
            line["sent"] = messages
        kept = {key: value for key, value in line.items() if value is not None}
        self._write({"n": clock[self.life], "at": at, "clock": dict(clock), **kept})

    def _in_order(self, effects: Iterable[Effect]) -> None:
        """The stamps in the order in which the messages will leave, before those of a step that this one is within."""
        waiting: list[tuple[type[Message], Stamp]] = []
        for effect in effects:
            message, stamp = _message_of(effect), self._stamp_of.pop(id(effect), None)
            if message is not None and stamp is not None:
                waiting.append((type(message), stamp))
        self.stamps.extendleft(reversed(waiting))


def _asked_by_client(core_input: NodeInput | ControllerInput) -> Json:
    """The request of a client: its number, and what it asks; of its batches, count, CRC and what makes them its own."""
    match core_input:
        case Produce(request=request, partition=tp, acks=acks, records=records):
            try:
                rows = [[b.count, b.crc, b.producer_id, b.producer_epoch, b.base_sequence] for b in batches(records)]
            except BadBatch:
                rows = []
            return {"request": request, "partition": str(tp), "acks": acks, "batches": cast("Json", rows)}
        case Consume(request=request, partition=tp, offset=offset):
            return {"request": request, "partition": str(tp), "offset": offset}
        case _:
            return None


def _controller_state(controller: Controller, tp: TopicPartition) -> Json:
    return controller_snapshot(controller.brokers, controller.partitions[tp])


def _message_of(effect: Effect) -> Message | None:
    match effect:
        case Send(message=message):
            return message
        case AnswerFetch(response=response):
            return response
        case _:
            return None


def is_noticeable(effects: Iterable[Effect]) -> bool:
    """Whether anybody outside could tell that the step was taken."""
    kinds = (Send, AnswerFetch, AnswerProduce, AnswerConsume, Halt, StopProcess)
    return any(isinstance(effect, kinds) for effect in effects)
