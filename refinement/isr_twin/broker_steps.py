"""The actions of the model that touch one broker, on a real one: a method for each, by its name and parameters.

The broker is `r1`, and every other replica is played. Each method is given the model's state before the step, does what
the others and the controller do in it, and waits until the broker has done its part. What shows is read by `snapshot`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final, cast

import attrs

from isr_broker.core.messages import BrokerId, LeaderEpoch, Offset
from isr_broker.core.record_batch import batches, new_batch, stamped, value_of
from isr_broker.snapshot import Json
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Fields
from isr_twin.sockets import Client
from isr_twin.surroundings import (
    BROKER,
    FETCH_VERSION,
    FIRST_EPOCH,
    PATIENCE,
    SOON,
    HeldRequest,
    Partition,
    Surroundings,
)

Values = Mapping[str, Json]
ME: Final = f"r{BROKER}"
_READER: Final = -3
_LONG_FETCH: Final = {"max_wait": 1, "min_bytes": 1 << 20}
"""So a Fetch is answered once more after it has moved the watermark, with the watermark after it."""
_FENCED_LEADER_EPOCH, _UNKNOWN_LEADER_EPOCH, _NOT_LEADER, _NONE = 74, 76, 6, 0
_INVALID_UPDATE_VERSION, _INELIGIBLE_REPLICA = 95, 107


class StepRefused(Exception):
    """The broker does not take the step; the message says what it did instead."""


class TimerFired(Exception):
    """A timer of the broker fired before it was to: the way has to be gone again, and faster."""


@attrs.define(eq=False)
class BrokerSteps:
    """One way from a reset, on a broker that may have gone others before."""

    around: Surroundings
    epoch: LeaderEpoch = 0
    leads: bool = False
    has_metadata: bool = True
    """It knows metadata: it does not from its start until it becomes leader or follower."""
    has_sent: bool = False
    """In the last step it sent a fetch."""
    answer_values: dict[str, Json] = attrs.field(factory=dict[str, "Json"])
    """What the answer to a follower showed in the last step."""
    acked_elsewhere: frozenset[int] = frozenset()
    acked: set[int] = attrs.field(factory=set[int])
    waiting: dict[int, tuple[Client, int]] = attrs.field(factory=dict[int, "tuple[Client, int]"])
    """The records whose producers wait for an answer, and where it will come."""
    refusal: str = ""
    """The error with which a producer was answered last."""
    known_alter: object = None
    """The AlterPartition that a step has shown."""
    last_alter: dict[str, Json] = attrs.field(factory=dict[str, "Json"])
    _producers: itertools.count[int] = attrs.field(factory=itertools.count)

    def reset(self, state: Values) -> None:
        """A new topic, of which the broker is told who leads it."""
        if not self.around.broker.runs:
            self.around.start()
        self.around.caught_up = True
        leader = _broker(_text(state["controller_leader"]))
        self.epoch, self.leads, self.has_metadata, self.has_sent = 0, leader == BROKER, True, leader != BROKER
        self.acked.clear()
        self.waiting.clear()
        self.acked_elsewhere, self.known_alter, self.answer_values, self.last_alter = frozenset(), None, {}, {}
        self.around.new_topic(Partition(leader, 0, 0, tuple(sorted([BROKER, *self.around.peers]))))
        self.around.let_in()
        if self.has_sent:
            self._await_fetch()
        if self.around.alter is not None:
            raise TimerFired

    def step(self, action: str, parameters: Values, model: Values) -> None:
        """Take a step; StepRefused if the broker does not."""
        self.answer_values, self.has_sent, self.last_alter = {}, False, {}
        self.acked_elsewhere = frozenset(cast("list[int]", model["acked"])) - self.waiting.keys() - self.acked
        if self.around.broker.runs:
            self._settle(model)
        first = next(iter(parameters))
        rest = {name: value for name, value in parameters.items() if name != first}
        getattr(self, action)(model, **rest)

    def _settle(self, model: Values) -> None:
        """Answer an AlterPartition that the controller has rejected meanwhile; TimerFired if nobody asked for it."""
        self.around.pump()
        request = self.around.alter
        if request is None:
            return
        if request is not self.known_alter:
            raise TimerFired
        if _at(model, "alter") == "none":
            found = self.around.alter_partition()
            epoch = found[1].number("leader_epoch") if found else -1
            stale = epoch < _number(model["controller_epoch"])
            self.around.answer_alter(_FENCED_LEADER_EPOCH if stale else _INVALID_UPDATE_VERSION)
            self.known_alter = None

    # As a leader

    def leader_appends(self, model: Values) -> None:
        """A producer sends a record, and waits for its answer."""
        record = len(_list(model["written_in"]))
        data = {"index": 0, "records": new_batch(b"%d" % record, timestamp=1)}
        topic = {"name": self.around.topic, "partition_data": [data]}
        fields = {"acks": -1, "timeout": 600_000, "topic_data": [topic]}
        question = self.around.send(f"producer-{next(self._producers) % 4}", protocol.PRODUCE, 9, fields)
        self.waiting[record] = question
        before = len(_list(_at(model, "log")))

        def is_answered() -> bool:
            return question[1] in question[0].answers or len(self._log_and_watermark()[0]) > before

        self.around.waits(is_answered, PATIENCE)
        self._collect_acks()
        if record not in self.waiting and record not in self.acked:
            raise StepRefused(f"it answers {self.refusal}")

    def leader_answers_fetch(self, model: Values, follower: str) -> None:
        """A follower's fetch arrives, and is answered with what it had asked for."""
        values = self._fetch_as(model, follower)
        if values.has("diverging_epoch") and values.part("diverging_epoch").number("end_offset") >= 0:
            raise StepRefused("it answers that the logs diverge")
        records = self._names(values.data("records") or b"")
        self._show(model, follower, "answered", fetch_offset=0, fetch_last_epoch=0)
        if _at(model, "fetch_epoch", follower) == _at(model, "leader_epoch", follower):
            self.answer_values["fetch_record"] = {follower: records[0] if records else None}
            self.answer_values["fetch_watermark"] = {follower: values.number("high_watermark")}

    def leader_answers_diverging(self, model: Values, follower: str) -> None:
        """A follower's fetch arrives, and is answered with where the logs part."""
        point = self._fetch_as(model, follower).part("diverging_epoch")
        if point.number("end_offset") < 0:
            raise StepRefused("it does not say that the logs diverge")
        self._show(
            *(model, follower, "diverged"),
            fetch_offset=point.number("end_offset"),
            fetch_last_epoch=max(point.number("epoch"), 0),
        )

    def _show(self, model: Values, follower: str, what: str, **fields: int) -> None:
        if _at(model, "fetch_epoch", follower) == _at(model, "leader_epoch", follower):
            self.answer_values["fetch"] = {follower: what}
            for name, value in fields.items():
                self.answer_values[name] = {follower: value}

    def _fetch_as(self, model: Values, follower: str) -> Fields:
        offset = _number(_at(model, "fetch_offset", follower))
        return self._fetch_from(
            follower,
            _number(_at(model, "fetch_epoch", follower)),
            offset,
            _number(_at(model, "fetch_last_epoch", follower)) if offset else -1,
            _number(_at(model, "broker_epoch", follower)) if "broker_epoch" in model else 0,
        )

    def _fetch_from(self, follower: str, epoch: int, offset: Offset, last_epoch: int, broker_epoch: int) -> Fields:
        replica = {"replica_id": _broker(follower), "replica_epoch": FIRST_EPOCH + broker_epoch}
        question = self._send_fetch(follower, replica, epoch, offset, last_epoch, **_LONG_FETCH)
        values = self._partition_of(self.around.answer_to(question))
        if values.number("error_code"):
            raise StepRefused(f"it answers {protocol.ERROR_NAMES.get(values.number('error_code'))}")
        return values

    def _send_fetch(
        self, who: str, replica: Mapping[str, int], epoch: int, offset: int, last_epoch: int, **wait: int
    ) -> tuple[Client, int]:
        partition = {
            "partition": 0,
            "current_leader_epoch": epoch,
            "fetch_offset": offset,
            "last_fetched_epoch": last_epoch,
            "log_start_offset": 0,
            "partition_max_bytes": 1 << 20,
        }
        topics = [{"topic_id": self.around.topic_id, "partitions": [partition]}]
        fields = {"replica_state": replica, "max_bytes": 1 << 20, "session_epoch": -1, "topics": topics, **wait}
        return self.around.send(who, protocol.FETCH, FETCH_VERSION, fields)

    def _partition_of(self, answer: Fields | None) -> Fields:
        if answer is None:
            raise StepRefused("it does not answer a Fetch")
        if answer.number("error_code"):
            raise StepRefused(f"it answers {protocol.ERROR_NAMES.get(answer.number('error_code'))}")
        return answer.all("responses")[0].all("partitions")[0]

    def leader_proposes_shrink(self, model: Values, lagging: Json) -> None:
        """Time passes, and those who lag are put out of the ISR."""
        self._await_proposal(2.0 * self.around.lag + SOON)

    def leader_proposes_expansion(self, model: Values, f: str) -> None:
        """The broker hears that the follower has a session, and hears its last fetch once more."""
        end = _number(cast("Values", _at(model, "follower_end"))[f])
        epochs: Values = cast("Values", _at(model, "follower_broker_epoch")) if "broker_epoch" in model else {}
        epoch, log = _number(epochs.get(f, 0)), _list(_at(model, "log"))
        last = _number(_list(model["written_in"])[_number(log[end - 1])]) if end else -1
        self.around.tell([self.around.peer_registration(_broker(f), FIRST_EPOCH + epoch, fenced=False)])
        self._fetch_from(f, self.epoch, end, last, epoch)
        self._await_proposal(SOON, _broker(f))
        self.around.tell([self.around.peer_registration(_broker(f), FIRST_EPOCH + epoch, fenced=True)])

    def _await_proposal(self, seconds: float, joiner: BrokerId | None = None) -> None:
        self.around.waits(lambda: self.around.alter_partition() is not None, seconds)
        found = self.around.alter_partition()
        if found is None:
            raise StepRefused("it sends no AlterPartition")
        body, values = found
        members = values.all("new_isr_with_epochs")
        if body.number("broker_epoch") != self.around.broker_epoch:
            raise StepRefused("it sends an AlterPartition with another broker epoch than it was given")
        self.known_alter = self.around.alter
        self.last_alter = {
            "alter": {ME: "requested"},
            "alter_isr": {ME: [f"r{member.number('broker_id')}" for member in members]},
            "alter_leader_epoch": {ME: values.number("leader_epoch")},
            "alter_partition_epoch": {ME: values.number("partition_epoch")},
        }
        if joiner is not None:
            epochs = {member.number("broker_id"): member.number("broker_epoch") for member in members}
            self.last_alter["alter_broker_epoch"] = {ME: epochs.get(joiner, 0) - FIRST_EPOCH}

    def leader_adopts_isr(self, model: Values) -> None:
        """The controller's answer arrives: the ISR is what was proposed."""
        isr = tuple(_broker(_text(r)) for r in _list(_at(model, "pending_isr")))
        version = _number(_at(model, "partition_epoch")) + 1
        self._answered_alter(_NONE, Partition(BROKER, self.epoch, version, isr))

    def leader_rolls_back(self, model: Values) -> None:
        """The controller's answer arrives: a proposed member is not eligible."""
        self._answered_alter(_INELIGIBLE_REPLICA)

    def _answered_alter(self, error: int, partition: Partition | None = None) -> None:
        if self.around.alter is None:
            raise StepRefused("it has no AlterPartition in flight")
        self.around.answer_alter(error, partition)
        self.known_alter = None
        self.around.waits(lambda: self.around.alter is not None, 0.01)

    # Metadata

    def becomes_leader(self, model: Values) -> None:
        """The broker learns that it leads in a new epoch."""
        self._learns(model)

    def becomes_follower(self, model: Values) -> None:
        """The broker learns whom it follows, or that nobody leads."""
        self._learns(model)
        if model["controller_leader"] is not None:
            self._await_fetch()
            self.has_sent = not _request_lives(model)

    def leader_learns_isr(self, model: Values) -> None:
        """The broker learns of newer metadata of its own epoch."""
        self._learns(model)

    def _learns(self, model: Values) -> None:
        leader = model["controller_leader"]
        isr = tuple(_broker(_text(r)) for r in _list(model["controller_isr"]))
        epoch, version = _number(model["controller_epoch"]), _number(model["controller_partition_epoch"])
        who = None if leader is None else _broker(_text(leader))
        self.leads, self.epoch = who == BROKER, epoch
        self.around.caught_up = True
        self.around.tell([self.around.partition_record(Partition(who, epoch, version, isr))])
        if not self.has_metadata:
            self.around.let_in()
            self.has_metadata = True
        self.around.answer_fetches(_FENCED_LEADER_EPOCH, but=epoch)

    # As a follower

    def follower_sends_fetch(self, model: Values, leader: str) -> None:
        """The follower asks, or asks again, for what it asked is lost."""
        request = self.around.fetch(self.epoch)
        if request is not None and _at(model, "fetch") != "requested":
            self.around.fetches.remove(request[0])
            self.around.wire.close(request[0].link)
        self._await_fetch()
        self.has_sent = True

    def follower_appends(self, model: Values) -> None:
        """The leader's answer arrives: a record, or none, and its watermark."""
        request, partition = self._await_fetch()
        record, offset = _at(model, "fetch_record"), partition.number("fetch_offset")
        data = b""
        if record is not None:
            epoch = _number(_list(model["written_in"])[_number(record)])
            data = stamped(new_batch(b"%d" % _number(record), timestamp=1), offset, epoch)
        watermark = _number(_at(model, "fetch_watermark"))
        fields = {"high_watermark": watermark, "last_stable_offset": watermark, "log_start_offset": 0}
        self.around.answer_fetch(request, {**fields, "records": data})
        self._await_fetch()
        self.has_sent = True

    def follower_truncates(self, model: Values) -> None:
        """The leader's answer arrives: where the logs part."""
        request, _ = self._await_fetch()
        point = {"epoch": _at(model, "fetch_last_epoch"), "end_offset": _at(model, "fetch_offset")}
        self.around.answer_fetch(request, {"diverging_epoch": point, "log_start_offset": 0, "records": b""})
        self._await_fetch()
        self.has_sent = True

    def _await_fetch(self) -> tuple[HeldRequest, Fields]:
        """The fetch that the broker sends in its epoch."""
        self.around.waits(lambda: self.around.fetch(self.epoch) is not None, PATIENCE)
        found = self.around.fetch(self.epoch)
        if found is None:
            raise StepRefused("it sends no Fetch")
        return found

    # Its end, and its start

    def broker_crashes(self, model: Values, checkpoint: Json) -> None:
        """It is killed; the watermark that it had written last is the one of the step."""
        self.around.crash(_number(checkpoint))
        self.waiting.clear()
        self.leads = self.has_metadata = False
        self.known_alter = None

    def broker_restarts(self, model: Values) -> None:
        """It is started, and registers."""
        self.around.start()

    # What shows

    def snapshot(self, with_surprises: bool = False) -> dict[str, Json]:
        """The values of the model's variables that show now, of maps only the keys that do.

        TimerFired if the broker has proposed what nobody asked for, unless that is to show, too.
        """
        if not self.around.broker.runs or not self.has_metadata:
            return {}
        self.around.pump()
        log, watermark = self._log_and_watermark()
        epoch, leads = self._epoch()
        values: dict[str, Json] = {
            "log": {ME: list[Json](log)},
            "high_watermark": {ME: watermark},
            "leader_epoch": {ME: epoch},
            **self.answer_values,
        }
        if leads:
            values["leader"] = {ME: ME}
        elif self.leads:
            values["leader"] = {ME: None}
        if self.has_sent:
            values |= self._fetch_values()
        if self.last_alter:
            values |= self.last_alter
        elif self.around.alter is None:
            values["alter"] = {ME: "none"}
        elif self.around.alter is not self.known_alter:
            if not with_surprises:
                raise TimerFired
            values["alter"] = {ME: "requested"}
        self._collect_acks()
        values["acked"] = list[Json](sorted(self.acked_elsewhere | self.acked))
        return values

    def _collect_acks(self) -> None:
        for record, question in list(self.waiting.items()):
            answer = self.around.answer_to(question, 0.0)
            if answer is not None:
                del self.waiting[record]
                error = answer.all("responses")[0].all("partition_responses")[0].number("error_code")
                if error:
                    self.refusal = protocol.ERROR_NAMES.get(error, str(error))
                else:
                    self.acked.add(record)

    def _fetch_values(self) -> dict[str, Json]:
        request = self.around.fetch(self.epoch)
        if request is None:
            return {"fetch": {ME: "none"}}
        partition = request[1]
        return {
            "fetch": {ME: "requested"},
            "fetch_epoch": {ME: partition.number("current_leader_epoch")},
            "fetch_offset": {ME: partition.number("fetch_offset")},
            "fetch_last_epoch": {ME: max(partition.number("last_fetched_epoch"), 0)},
        }

    def _log_and_watermark(self) -> tuple[list[int], Offset]:
        """What it has, and up to where; StepRefused if it goes on to answer with an error."""
        answers = [self._whole_log()]

        def is_served() -> bool:
            if answers[-1].number("error_code", 0) != _NONE:
                answers.append(self._whole_log())
            return answers[-1].number("error_code", 0) == _NONE

        is_there, values = self.around.waits(is_served, SOON), answers[-1]
        if not is_there:
            raise StepRefused(
                f"a reader of the log is answered {protocol.ERROR_NAMES.get(values.number('error_code'))}"
            )
        return self._names(values.data("records") or b""), values.number("high_watermark")

    def _whole_log(self) -> Fields:
        replica = {"replica_id": _READER, "replica_epoch": -1}
        question = self._send_fetch("probe", replica, -1, 0, -1, max_wait=0, min_bytes=0)
        return self._partition_of(self.around.answer_to(question))

    def _names(self, data: bytes) -> list[int]:
        return [int(value_of(data, batch)) for batch in batches(data, check=True)]

    def _epoch(self) -> tuple[LeaderEpoch, bool]:
        """The leader epoch in which the broker is, and whether it leads: by what it says to epochs that it is asked."""
        for epoch in itertools.chain([self.epoch], itertools.count()):
            error = self._error_of_epoch(epoch)
            if error in (_NONE, _NOT_LEADER):
                return epoch, error == _NONE
            if error not in (_FENCED_LEADER_EPOCH, _UNKNOWN_LEADER_EPOCH) or epoch > self.epoch + 9:
                break
        return -1, False

    def _error_of_epoch(self, epoch: LeaderEpoch) -> int:
        partition = {"partition": 0, "current_leader_epoch": epoch, "leader_epoch": epoch}
        topics = [{"topic": self.around.topic, "partitions": [partition]}]
        fields = {"replica_id": _READER, "topics": topics}
        answer = self.around.answer_to(self.around.send("probe", protocol.OFFSET_FOR_LEADER_EPOCH, 4, fields))
        return -1 if answer is None else answer.all("topics")[0].all("partitions")[0].number("error_code", 0)


def _request_lives(model: Values) -> bool:
    """A request of an older epoch is on its way to who would still take it (the model's `request_lives`)."""
    to = _at(model, "fetch_to")
    if _at(model, "fetch") != "requested" or to is None or to not in _list(model["alive"]):
        return False
    who = _text(to)
    return _at(model, "leader", who) == who and _at(model, "leader_epoch", who) == _at(model, "fetch_epoch")


def _at(model: Values, variable: str, key: str = ME) -> Json:
    return cast("Values", model[variable])[key]


def _broker(replica: str) -> BrokerId:
    return int(replica.removeprefix("r"))


def _number(value: Json) -> int:
    assert isinstance(value, int)
    return value


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def _text(value: Json) -> str:
    assert isinstance(value, str)
    return value
