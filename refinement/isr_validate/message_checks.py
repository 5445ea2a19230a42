"""Checks of messages and answers: they must say what their sender knows.

`MessageChecks` compares with the state of the model after a line: offsets, epochs and the ISR in a message are those of
the sending replica. `Session` checks what needs no model: broker epochs, clocks, and that every answer repeats the
fields of its request. A line that breaks one of these is refused at every level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import Event
from isr_validate.model_step import ModelStep, OffsetRanks
from isr_validate.replica_state import ReplicaState
from isr_validate.trace_lines import CONTROLLER, QUESTIONS, Answer
from isr_validate.trace_values import Fields, SentMessage, fields, number, numbers, rows
from isr_validate.verdict import LineRefused

ANSWERS: Final = ("FetchResponse", "OffsetForLeaderEpochResponse")
"""The answer that a follower waits for: if it may fetch, and if it must truncate first."""


@attrs.frozen
class MessageChecks:
    """The checks for one replica; `fences` if fetches and their answers carry the leader epoch (KIP-320)."""

    node: str
    ids: tuple[int, ...]
    minimum: int
    fences: bool

    def check_message(self, mail: SentMessage, after: ReplicaState, action: str | None) -> None:
        """LineRefused unless a message says what its sender is, in the state after the line."""
        expected: dict[str, object] = {}
        message_fields = mail.says
        match mail.kind:
            case "FetchRequest" | "OffsetForLeaderEpochRequest":
                if mail.kind != QUESTIONS[after.truncating]:
                    raise LineRefused(f"the {mail.kind} {mail.id} is not what such a follower asks")
                expected = {"offset": after.end, "leader_epoch": after.leader_epoch, "last_epoch": after.last_epoch}
                if mail.to != str(after.leader):
                    expected["to"] = after.leader
            case "FetchResponse" | "OffsetForLeaderEpochResponse" if message_fields.get("error") == "NONE":
                expected = {"leader_epoch": after.leader_epoch} if self.fences else {}
                expected |= {} if divergence(message_fields) else {"high_watermark": after.high_watermark}
                if after.leader != int(self.node):
                    expected["leader"] = after.leader
            case "AlterPartitionRequest":
                expected = {"leader_epoch": after.leader_epoch, "partition_epoch": after.partition_epoch}
                proposed_isr = tuple(sorted(m[0] for m in rows(message_fields.get("isr")) if m))
                if proposed_isr != after.pending_isr:
                    raise LineRefused(
                        f"the AlterPartitionRequest {mail.id} proposes what its sender does not",
                        (),
                        {"pending_isr": (str(after.pending_isr), str(proposed_isr))},
                    )
                if action == "leader_proposes_expansion":
                    self._members(message_fields, after)
            case _:
                return
        wrong = {k: (str(v), str(message_fields.get(k))) for k, v in expected.items() if message_fields.get(k) != v}
        if wrong:
            raise LineRefused(f"the {mail.kind} {mail.id} says what its sender does not know", (), wrong)

    def _members(self, message_fields: Fields, after: ReplicaState) -> None:
        """LineRefused unless each joining broker is named with the broker epoch with which it fetched (KIP-903)."""
        seen = dict(zip(self.ids, after.follower_broker_epoch or (0,) * len(self.ids), strict=True))
        for who, epoch in [(m[0], m[1]) for m in rows(message_fields.get("isr")) if len(m) == 2]:
            if who not in after.isr and epoch != seen.get(who):
                raise LineRefused(
                    f"{who} is proposed as of epoch {epoch}", (), {"follower_broker_epoch": (str(seen), str(epoch))}
                )

    def answers(self, answer: Answer, before: ReplicaState, after: ReplicaState, action: str | None) -> None:
        """LineRefused unless the answer to a client fits the replica's state.

        With acks=all, only what is below the high watermark is acknowledged.
        """
        leads, minimum = after.leader == int(self.node), self.minimum
        maximal = len({*after.isr, *after.pending_isr})
        match answer.kind, answer.error:
            case "Produce", "NONE" if answer.acks == -1 and answer.offset >= 0:
                if not leads or answer.end > after.high_watermark or maximal < minimum:
                    difference = (f"{after.high_watermark}, ISR {after.isr}", f"acknowledged up to {answer.end}")
                    raise LineRefused("what is acknowledged is not committed", (), {"high_watermark": difference})
            case "Produce", "NONE" if (
                answer.own and action == "leader_appends" and answer.offset not in (-1, before.end)
            ):
                raise LineRefused(f"a leader appends at {before.end}, and acknowledges {answer.offset}")
            case "Produce", "NONE" if answer.offset >= 0 and (not leads or answer.end > after.end):
                raise LineRefused(f"{answer.end} is acknowledged, and the log ends at {after.end}")
            case "Produce", "NOT_ENOUGH_REPLICAS" if not leads or len(after.isr) >= minimum:
                raise LineRefused(f"there are enough replicas: the ISR is {after.isr}, the minimum {minimum}")
            case "Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND" if maximal >= minimum:
                raise LineRefused(f"there are enough replicas: the ISR is {after.isr}, the minimum {minimum}")
            case _, "NOT_LEADER_OR_FOLLOWER" if leads and action is None and not answer.halts:
                raise LineRefused(f"broker {self.node} leads")
            case "Consume", "NONE" if (
                answer.high_watermark != after.high_watermark or answer.end > after.high_watermark
            ):
                difference = (str(after.high_watermark), f"{answer.high_watermark}, read up to {answer.end}")
                raise LineRefused("a consumer is told another watermark", (), {"high_watermark": difference})
            case _:
                pass


def divergence(message_fields: Fields) -> Fields:
    """The part of an answer that says where the logs diverge; empty if there is none."""
    return fields(message_fields.get("diverging")) or fields(message_fields.get("ends"))


def divergence_variables(divergence_point: Fields, ranks: OffsetRanks) -> dict[str, int]:
    """The same as variables of the model, which names no epoch if the logs have nothing in common."""
    end = number(divergence_point.get("end"))
    return {"fetch_offset": ranks(end), "fetch_last_epoch": max(0, number(divergence_point.get("epoch"))) if end else 0}


def check_divergence(messages: Iterable[SentMessage], step: ModelStep, ranks: OffsetRanks) -> None:
    """LineRefused unless a leader names the same point of divergence as in the model."""
    for mail in messages:
        told = divergence(mail.says)
        if not told or number(told.get("end")) < 0 or "follower" not in step.parameters:
            continue
        i, says = step.parameters["follower"], divergence_variables(told, ranks)
        model = {name: cast("tuple[int, ...]", step.state[name])[i] for name in says}
        model["fetch_last_epoch"] *= model["fetch_offset"] > 0
        if says != model:
            wrong = {name: (str(model[name]), str(says[name])) for name in says if model[name] != says[name]}
            raise LineRefused(f"the {mail.kind} {mail.id} tells of another place where the logs part", (), wrong)


KnownEvents: TypeAlias = set[tuple[str, str, int]]
"""Receiver, life and number of events: that a message has told a node so much of the events of a life."""


@attrs.define
class Session:
    """What one life of a node has received: its broker epoch, metadata, and requests of clients.

    `leaves`: it was asked to shut down. `questions`: the requests of all nodes in the trace so far.
    """

    at: int = -1
    clock: Mapping[str, int] = attrs.field(factory=dict[str, int])
    broker_epoch: int = -1
    metadata_offset: int = 0
    leaves: bool = False
    client_requests: dict[int, Fields] = attrs.field(factory=dict[int, Fields])
    questions: set[tuple[Json, ...]] = attrs.field(factory=set[tuple[Json, ...]])
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    known_events: KnownEvents = attrs.field(factory=set[tuple[str, str, int]])
    last: dict[tuple[str, str], Fields] = attrs.field(factory=dict[tuple[str, str], Fields])
    started: bool = False

    def receive(self, event: Event, mail: SentMessage | None) -> None:
        """Take in what the line received; LineRefused if it cannot be."""
        says = event.says
        at = number(says.get("at"))
        if at < self.at:
            raise LineRefused(f"the clock of the process goes back from {self.at} to {at}")
        self.at = at
        self._check_clock(event)
        client, input_name = fields(says.get("client")), says.get("input")
        if ("log" in says) and self.started:
            raise LineRefused("a log is found after the start")
        self.started |= input_name == "Start"
        if client:
            self.client_requests[number(client.get("request"), -1)] = {**client, "input": input_name}
        if client and input_name == "Produce" and client.get("acks") not in (-1, 0, 1):
            raise LineRefused(f"acks={client.get('acks')} is nothing that a producer may ask for")
        if input_name == "ShutDown":
            self.leaves = True
        if mail is not None:
            self._note_registration(mail)

    def _check_clock(self, event: Event) -> None:
        """LineRefused unless the line's vector clock is that of the line before, advanced by messages to this node."""
        node = event.life.partition(".")[0]
        if any(event.clock.get(life, 0) < count for life, count in self.clock.items()):
            raise LineRefused("the line knows less than the line before it")
        for life, count in event.clock.items():
            if life != event.life and count != self.clock.get(life, 0) and (node, life, count) not in self.known_events:
                raise LineRefused(f"the line knows event {count} of {life}, of which no message to {node} told")
        self.clock = event.clock

    def check_snapshot(self, event: Event, tp: str) -> None:
        """LineRefused if a snapshot is wrong in what is no variable of the model, or the disk completed another
        action."""
        says, action = event.says, str(event.says.get("action"))
        disk = says.get("disk")
        if disk is not None and action not in _COMPLETES.get(str(disk), ()):
            raise LineRefused(f"{disk} does not complete {action}")
        state = fields(says.get("state"))
        if "log_end" not in state:
            return
        end = number(state.get("log_end"))
        for name, kind in (
            ("fetch", "OffsetForLeaderEpochRequest" if state.get("truncating") else "FetchRequest"),
            ("alter", "AlterPartitionRequest"),
        ):
            if state.get(name) is not None and state.get(name) != self.last.get((kind, tp)):
                raise LineRefused(f"the {name} in flight is not the {kind} that was sent")
        waiting, joining = state.get("waiting"), numbers(state.get("joining"))
        wrong = [
            name
            for name, right in {
                "log_start": state.get("log_start") == 0,
                "log_flushed": 0 <= number(state.get("log_flushed"), -1) <= end,
                "broker_epoch": state.get("broker_epoch") == self.broker_epoch,
                "awaits": state.get("awaits") in (None, "AppendLog", "TruncateLog", "AssignEpoch"),
                "waiting": all(number(state.get("high_watermark")) < w <= end for w in numbers(waiting)),
                "joining": all(str(b) in fields(state.get("follower_end")) for b in joining),
            }.items()
            if not right
        ]
        if wrong:
            raise LineRefused(
                f"the snapshot cannot have this {wrong[0]}", (), {wrong[0]: ("", str(state.get(wrong[0])))}
            )

    def check_end(self, says: Fields) -> None:
        """LineRefused if a clean shutdown leaves the mark of another broker epoch."""
        ends = fields(says.get("ends"))
        if "broker_epoch" in ends and ends.get("broker_epoch") != self.broker_epoch:
            raise LineRefused(f"the mark that is left is that of the epoch {ends.get('broker_epoch')}")

    def _note_registration(self, mail: SentMessage) -> None:
        says = mail.says
        match mail.kind:
            case "BrokerRegistered" if says.get("error") == "NONE":
                self.broker_epoch = max(self.broker_epoch, number(says.get("broker_epoch"), -1))
            case "Metadata":
                self.metadata_offset = max(self.metadata_offset, number(says.get("offset")))
            case _:
                pass

    def check_sent(self, node: str, mail: SentMessage) -> None:
        """LineRefused if a message of this life says what it cannot know, or answers what nobody asked."""
        if not (mail.to.isdigit() or mail.to == CONTROLLER):
            raise LineRefused(f"nobody is called {mail.to}")
        self.last[mail.kind, str(mail.says.get("partition"))] = mail.says
        wanted = self._expected(node, mail.says, mail.kind)
        wrong = {k: (str(v), str(mail.says.get(k))) for k, v in wanted.items() if mail.says.get(k) != v}
        if wrong:
            raise LineRefused(f"the {mail.kind} {mail.id} says what its sender does not know", (), wrong)
        asked, repeats = _REPEATS.get(mail.kind, ("", {}))
        if asked and _key(asked, mail.to, mail.says, repeats.values()) not in self.questions:
            raise LineRefused(f"the {mail.kind} {mail.id} answers what node {mail.to} did not ask")
        for question, names in _REPEATS.values():
            if question == mail.kind:
                self.questions.add(_key(question, node, mail.says, names))

    def _expected(self, node: str, says: Fields, kind: str) -> dict[str, Json]:
        me = -1 if node == CONTROLLER else int(node)
        match kind:
            case "Heartbeat":
                expected: dict[str, Json] = {"broker": me, "broker_epoch": self.broker_epoch}
                return {**expected, "metadata_offset": self.metadata_offset, "wants_to_shut_down": self.leaves}
            case "FetchMetadata":
                return {"broker": me, "broker_epoch": self.broker_epoch, "offset": self.metadata_offset}
            case "FetchRequest":
                expected = {"replica": me, "broker_epoch": self.broker_epoch}
                for name, setting in (("max_wait_ms", "replica.fetch.wait.max.ms"), ("max_bytes", _FETCH_BYTES)):
                    if setting in self.settings:
                        expected[name] = int(self.settings[setting])
                return expected
            case "AlterPartitionRequest":
                return {"leader": me, "broker_epoch": self.broker_epoch}
            case "RegisterBroker":
                return {"broker": me}
            case "OffsetForLeaderEpochRequest":
                return {"replica": me}
            case "FetchResponse" | "OffsetForLeaderEpochResponse":
                return {"leader": me}
            case _:
                return {}

    def answers(self, answer: Fields) -> Fields:
        """The request that this answers; LineRefused if no client sent it."""
        asked = self.client_requests.get(number(answer.get("request"), -1))
        if asked is None or asked.get("partition") != answer.get("partition"):
            raise LineRefused(f"the request {answer.get('request')} about {answer.get('partition')} was not asked")
        return asked


_FETCH_BYTES: Final = "replica.fetch.max.bytes"

_COMPLETES: Final = {
    "Appended": ("leader_appends", "follower_appends"),
    "Truncated": ("follower_truncates", "follower_truncates_to_watermark", "becomes_follower"),
    "EpochAssigned": ("becomes_leader",),
}

_REPEATS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "FetchResponse": ("FetchRequest", {n: n for n in ("partition", "leader_epoch", "offset", "last_epoch")}),
    "OffsetForLeaderEpochResponse": (
        "OffsetForLeaderEpochRequest",
        {n: n for n in ("partition", "leader_epoch", "offset", "last_epoch")},
    ),
    "AlterPartitionResponse": (
        "AlterPartitionRequest",
        {n: n for n in ("partition", "leader_epoch", "partition_epoch", "attempt")},
    ),
    "BrokerRegistered": ("RegisterBroker", {n: n for n in ("broker", "incarnation")}),
    "HeartbeatAnswer": ("Heartbeat", {n: n for n in ("broker", "broker_epoch")}),
    "Metadata": ("FetchMetadata", {"offset": "since"}),
}
"""For each kind of answer: its request, and the fields that it must repeat, with their names in the request."""


def _key(question: str, who: str, says: Fields, names: Iterable[str]) -> tuple[Json, ...]:
    return (question, who, *(says.get(name) for name in names))
