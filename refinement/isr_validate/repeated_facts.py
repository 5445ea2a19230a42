"""What a message must repeat, whoever the model lets send it: numbers, epochs, and what its sender was told before.

These are no steps of the model: a line that says what its node cannot have known is refused at every level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import Event
from isr_validate.line_values import Fields, Mail, fields, number, numbers
from isr_validate.trace_lines import CONTROLLER
from isr_validate.verdict import Refused

Knowing: TypeAlias = set[tuple[str, str, int]]
"""To which node some message has told how many events of which life."""


@attrs.define
class Session:
    """What one life has been told: its broker epoch, how much metadata, whether to stop, and what clients asked it.

    `questions` are what anybody has asked by a message, in the whole trace so far.
    """

    at: int = -1
    clock: Mapping[str, int] = attrs.field(factory=dict[str, int])
    broker_epoch: int = -1
    metadata_offset: int = 0
    leaves: bool = False
    asked: dict[int, Fields] = attrs.field(factory=dict[int, Fields])
    questions: set[tuple[Json, ...]] = attrs.field(factory=set[tuple[Json, ...]])
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    known: Knowing = attrs.field(factory=set[tuple[str, str, int]])
    last: dict[tuple[str, str], Fields] = attrs.field(factory=dict[tuple[str, str], Fields])
    started: bool = False

    def hears(self, event: Event, mail: Mail | None) -> None:
        """What the line was told."""
        says = event.says
        at = number(says.get("at"))
        if at < self.at:
            raise Refused(f"the clock of the process goes back from {self.at} to {at}")
        self.at = at
        self._knows(event)
        client, told = fields(says.get("client")), says.get("input")
        if ("log" in says) and self.started:
            raise Refused("a log is found after the start")
        self.started |= told == "Start"
        if client:
            self.asked[number(client.get("request"), -1)] = {**client, "input": told}
        if client and told == "Produce" and client.get("acks") not in (-1, 0, 1):
            raise Refused(f"acks={client.get('acks')} is nothing that a producer may ask for")
        if told == "ShutDown":
            self.leaves = True
        if mail is not None:
            self._keeps(mail)

    def _knows(self, event: Event) -> None:
        """Its clock: what it knew before, and what messages to it knew."""
        node = event.life.partition(".")[0]
        if any(event.clock.get(life, 0) < count for life, count in self.clock.items()):
            raise Refused("the line knows less than the line before it")
        for life, count in event.clock.items():
            if life != event.life and count != self.clock.get(life, 0) and (node, life, count) not in self.known:
                raise Refused(f"the line knows event {count} of {life}, of which no message to {node} told")
        self.clock = event.clock

    def tells(self, event: Event, tp: str) -> None:
        """What a snapshot repeats beside the model's variables; and which report of the disk completes which action."""
        says, action = event.says, str(event.says.get("action"))
        disk = says.get("disk")
        if disk is not None and action not in _COMPLETES.get(str(disk), ()):
            raise Refused(f"{disk} does not complete {action}")
        state = fields(says.get("state"))
        if "log_end" not in state:
            return
        end = number(state.get("log_end"))
        for name, kind in (
            ("fetch", "OffsetForLeaderEpochRequest" if state.get("truncating") else "FetchRequest"),
            ("alter", "AlterPartitionRequest"),
        ):
            if state.get(name) is not None and state.get(name) != self.last.get((kind, tp)):
                raise Refused(f"the {name} in flight is not the {kind} that was sent")
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
            raise Refused(f"the snapshot cannot have this {wrong[0]}", (), {wrong[0]: ("", str(state.get(wrong[0])))})

    def ends(self, says: Fields) -> None:
        """A clean end leaves the mark of this life."""
        ends = fields(says.get("ends"))
        if "broker_epoch" in ends and ends.get("broker_epoch") != self.broker_epoch:
            raise Refused(f"the mark that is left is that of the epoch {ends.get('broker_epoch')}")

    def _keeps(self, mail: Mail) -> None:
        says = mail.says
        match mail.kind:
            case "BrokerRegistered" if says.get("error") == "NONE":
                self.broker_epoch = max(self.broker_epoch, number(says.get("broker_epoch"), -1))
            case "Metadata":
                self.metadata_offset = max(self.metadata_offset, number(says.get("offset")))
            case _:
                pass

    def sends(self, node: str, mail: Mail) -> None:
        """A message of this life; `Refused` if it says what the life does not know."""
        if not (mail.to.isdigit() or mail.to == CONTROLLER):
            raise Refused(f"nobody is called {mail.to}")
        self.last[mail.kind, str(mail.says.get("partition"))] = mail.says
        wanted = self._wanted(node, mail.says, mail.kind)
        wrong = {k: (str(v), str(mail.says.get(k))) for k, v in wanted.items() if mail.says.get(k) != v}
        if wrong:
            raise Refused(f"the {mail.kind} {mail.id} says what its sender does not know", (), wrong)
        asked, repeats = _REPEATS.get(mail.kind, ("", {}))
        if asked and _key(asked, mail.to, mail.says, repeats.values()) not in self.questions:
            raise Refused(f"the {mail.kind} {mail.id} answers what node {mail.to} did not ask")
        for question, names in _REPEATS.values():
            if question == mail.kind:
                self.questions.add(_key(question, node, mail.says, names))

    def _wanted(self, node: str, says: Fields, kind: str) -> dict[str, Json]:
        me = -1 if node == CONTROLLER else int(node)
        match kind:
            case "Heartbeat":
                wanted: dict[str, Json] = {"broker": me, "broker_epoch": self.broker_epoch}
                return {**wanted, "metadata_offset": self.metadata_offset, "wants_to_shut_down": self.leaves}
            case "FetchMetadata":
                return {"broker": me, "broker_epoch": self.broker_epoch, "offset": self.metadata_offset}
            case "FetchRequest":
                wanted = {"replica": me, "broker_epoch": self.broker_epoch}
                for name, setting in (("max_wait_ms", "replica.fetch.wait.max.ms"), ("max_bytes", _FETCH_BYTES)):
                    if setting in self.settings:
                        wanted[name] = int(self.settings[setting])
                return wanted
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
        """What the client had asked; `Refused` if it is nobody's answer."""
        asked = self.asked.get(number(answer.get("request"), -1))
        if asked is None or asked.get("partition") != answer.get("partition"):
            raise Refused(f"the request {answer.get('request')} about {answer.get('partition')} was not asked")
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
"""Of each answer the question, and under which names of the question the answer repeats what."""


def _key(question: str, who: str, says: Fields, names: Iterable[str]) -> tuple[Json, ...]:
    return (question, who, *(says.get(name) for name in names))
