"""The reader of traces: each line is read once, in causal order, and assigned to the owners that it is about.

The reader also refuses what no model is needed for: a message that nobody sent, a batch that nobody wrote, a clock that
goes back. The first such line ends the reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import BadTrace, Event
from isr_validate.message_checks import KnownEvents, Session
from isr_validate.replica_state import ControllerState, ReplicaState, controller_names, found_on_disk
from isr_validate.trace_lines import (
    CONTROLLER,
    HIDDEN_ACTIONS,
    QUESTIONS,
    Answer,
    Level,
    Line,
    Owner,
    Partition,
    TraceLines,
)
from isr_validate.trace_values import Fields, Row, SentMessage, fields, number, numbers, rows, sent_messages
from isr_validate.verdict import STUTTERS, LineRefused

_OF_CONTROLLER = ("controller_", "broker_")


@attrs.define
class TraceReader:
    """What is known from the lines read so far."""

    settings: Mapping[str, str]
    lines: TraceLines
    lives: dict[str, str] = attrs.field(factory=dict[str, str])
    sessions: dict[str, Session] = attrs.field(factory=dict[str, Session])
    known_events: KnownEvents = attrs.field(factory=set[tuple[str, str, int]])
    questions: set[tuple[Json, ...]] = attrs.field(factory=set[tuple[Json, ...]])
    mail: dict[str, SentMessage] = attrs.field(factory=dict[str, SentMessage])
    clocks: dict[str, Mapping[str, int]] = attrs.field(factory=dict[str, Mapping[str, int]])
    arrivals: set[tuple[str, str, str]] = attrs.field(factory=set[tuple[str, str, str]])
    last_sent: dict[tuple[str, str], str] = attrs.field(factory=dict[tuple[str, str], str])
    written_batches: dict[tuple[str, int, int], Row] = attrs.field(factory=dict[tuple[str, int, int], Row])
    produced: dict[tuple[str, int, int, int], set[int]] = attrs.field(factory=dict[tuple[str, int, int, int], set[int]])
    carried_batches: dict[str, tuple[Row, ...]] = attrs.field(factory=dict[str, tuple[Row, ...]])
    registered: dict[tuple[int, Json], list[int]] = attrs.field(factory=dict[tuple[int, Json], list[int]])
    brokers: dict[int, Fields] = attrs.field(factory=dict[int, Fields])
    broker_lives: dict[tuple[int, Json], tuple[Json, ...]] = attrs.field(
        factory=dict[tuple[int, Json], tuple[Json, ...]]
    )
    heartbeats: dict[str, int] = attrs.field(factory=dict[str, int])
    is_overtaken: bool = False
    metadata_before_life: dict[Owner, int] = attrs.field(factory=dict[Owner, int])

    def read_all(self, events: Sequence[Event]) -> None:
        """Read every line, up to the first that is refused."""
        self.lines.read(events, self._read_ahead, self._read_line)

    def _read_ahead(self, event: Event) -> None:
        """Note what only a later line says: the batches in a fetch response, and the epoch that a registration gets."""
        says = event.says
        if says.get("action") == "follower_appends" and "received" in says:
            self.carried_batches[str(says["received"])] = tuple(rows(says.get("wrote")))
        for mail in sent_messages(event.life, says.get("sent")):
            if mail.kind == "BrokerRegistered" and mail.says.get("error") == "NONE":
                key = (number(mail.says.get("broker")), mail.says.get("incarnation"))
                self.registered.setdefault(key, []).append(number(mail.says.get("broker_epoch")))

    def _read_line(self, place: int, event: Event) -> None:
        says, node = event.says, event.life.partition(".")[0]
        if self.lives.get(node) != event.life:
            self.lives[node] = event.life
            self.sessions[event.life] = Session(
                questions=self.questions, settings=self.settings, known_events=self.known_events
            )
            self._start_life(place, event, node)
        session, mail = self.sessions[event.life], self._receive(event, node)
        session.receive(event, mail)
        input_name, action = str(says.get("input")), says.get("action")
        if input_name not in STUTTERS:
            raise LineRefused(f"no input is called {input_name}")
        if isinstance(action, str):
            self._check_action(event, node, action)
        else:
            self.lines.stutters[input_name] += 1
        messages = sent_messages(node, says.get("sent"))
        for one in messages:
            self._send(event, node, session, one)
        session.check_end(says)
        if isinstance(action, str) and node != CONTROLLER and self.lines.level is not Level.CLIENT:
            session.check_snapshot(event, str(says.get("partition")))
        if "wrote" in says and self.lines.level is not Level.CLIENT:
            self._check_written(
                str(says.get("partition")), str(action), rows(says.get("wrote")), fields(says.get("client"))
            )
        answers = self._client_answers(event, session)
        for tp in self._partitions_of(event, mail, messages, node):
            mine = tuple(m for m in messages if m.says.get("partition", tp) == tp)
            line = self._line(place, event, tp, mail, mine, tuple(a for p, a in answers if p == tp))
            self.lines.by_owner.setdefault((node, tp), []).append(line)

    def _start_life(self, place: int, event: Event, node: str) -> None:
        """Start another life of a node: what it had in memory is lost."""
        for owner, chain in self.lines.by_owner.items():
            if owner[0] == node:
                chain.append(Line(place, event, begins=True))
        for owner, news in self.lines.metadata.items():
            if owner[0] == node:
                self.metadata_before_life[owner] = len(news)

    def _receive(self, event: Event, node: str) -> SentMessage | None:
        """The message that the line received; LineRefused unless it was sent to this node before."""
        self.is_overtaken = False
        message_id = event.says.get("received")
        if message_id is None:
            return None
        mail = self.mail.get(str(message_id))
        if mail is None:
            raise LineRefused(f"the message {message_id} was sent by nobody")
        if mail.kind != event.says.get("input") or mail.to != node:
            raise LineRefused(
                f"the message {message_id} is a {mail.kind} to {mail.to}, not a {event.says.get('input')} to {node}"
            )
        if any(event.clock.get(life, 0) < count for life, count in self.clocks[mail.id].items()):
            raise LineRefused(f"the line knows less than the sender of {message_id}")
        if mail.kind == "Metadata":
            for partition in partitions_of(mail):
                tp = str(partition.get("partition"))
                if tp in self.lines.partitions:
                    ids = self.lines.partitions[tp].ids
                    self.lines.metadata.setdefault((node, tp), []).append(
                        ControllerState.from_snapshot(controller_names(partition), ids)
                    )
        if mail.kind == "Heartbeat":
            sender = mail.id.partition(":")[0]
            self.is_overtaken = int(mail.id.partition(":")[2]) < self.heartbeats.get(sender, 0)
            self.heartbeats[sender] = max(self.heartbeats.get(sender, 0), int(mail.id.partition(":")[2]))
        if "action" in event.says:
            self._check_order(event, mail)
        return mail

    def _check_order(self, event: Event, mail: SentMessage) -> None:
        """Note a message that arrives twice, or after a newer one: the environment of the model never does that."""
        key = (event.life, mail.id, f"{event.says['action']} {event.says.get('partition')}")
        newest = self.last_sent.get((mail.source, f"{mail.kind} {mail.says.get('partition')}"))
        if key in self.arrivals and mail.kind != "Metadata":
            self.lines.outside.append((event.life, event.number + 1, f"the {mail.kind} {mail.id} came twice"))
        elif mail.kind in QUESTIONS and newest != mail.id:
            self.lines.outside.append((event.life, event.number + 1, f"a newer fetch was sent after {mail.id}"))
        self.arrivals.add(key)

    def _check_action(self, event: Event, node: str, action: str) -> None:
        if action.startswith(_OF_CONTROLLER) != (node == CONTROLLER):
            raise LineRefused(f"{action} is no action of {node}")
        known = self.lines.partitions.get(str(event.says.get("partition")))
        if node != CONTROLLER and (known is None or int(node) not in known.ids):
            raise LineRefused(f"broker {node} is no replica of {event.says.get('partition')}")
        if known is None:
            self.lines.unchecked_lines += 1
        if self.lines.level is Level.FULL and not isinstance(event.says.get("state"), dict):
            raise BadTrace(f"{event.life}, line {event.number + 1}: there is no state after {action}")

    # Messages that the line sends

    def _send(self, event: Event, node: str, session: Session, mail: SentMessage) -> None:
        life, _, nth = mail.id.partition(":")
        if mail.id in self.mail or life != event.life or not nth.isdigit():
            raise LineRefused(f"the message {mail.id} is not the next of {event.life}")
        self.mail[mail.id] = mail
        self.clocks[mail.id] = event.clock
        self.last_sent[node, f"{mail.kind} {mail.says.get('partition')}"] = mail.id
        session.check_sent(node, mail)
        self.known_events.update((mail.to, life, count) for life, count in event.clock.items())
        if mail.kind == "Metadata":
            self._read_metadata(mail)

    def _read_metadata(self, mail: SentMessage) -> None:
        """Learn from Metadata who the replicas are, and the controller's first state of each partition."""
        listed = mail.says.get("brokers")
        for broker in [fields(b) for b in listed] if isinstance(listed, list) else []:
            who = number(broker.get("broker"))
            self.brokers[who] = broker
            same = (broker.get("incarnation"), broker.get("host"), broker.get("port"))
            if self.broker_lives.setdefault((who, broker.get("epoch")), same) != same:
                raise LineRefused(f"{mail.id} tells another life of broker {who} in its epoch {broker.get('epoch')}")
        for partition in partitions_of(mail):
            tp, who_hold = str(partition.get("partition")), numbers(partition.get("replicas"))
            fixed_fields = (
                *(str(partition.get(n)) for n in ("replicas", "min_insync_replicas", "topic_id")),
                _own_minimum(partition),
            )
            known = self.lines.partitions.get(tp)
            if known is not None and who_hold and known.fixed_fields != fixed_fields:
                raise LineRefused(f"{mail.id} tells other replicas, another minimum or another topic of {tp}")
            if known is None and who_hold:
                self._first_controller_state(tp, partition, tuple(sorted(who_hold)), fixed_fields)

    def _first_controller_state(
        self, tp: str, partition: Fields, ids: tuple[int, ...], fixed_fields: tuple[str, ...]
    ) -> None:
        minimum = min(number(partition.get("min_insync_replicas"), 1), len(ids))
        unclean = partition.get("unclean_leader_election") is True
        self.lines.partitions[tp] = Partition(ids, minimum, unclean, fixed_fields)
        flags: dict[str, Json] = {
            "fenced": [b for b, known in self.brokers.items() if known.get("fenced")],
            "shutting_down": [b for b, known in self.brokers.items() if known.get("shutting_down")],
            "broker_epoch": {str(b): known.get("epoch") for b, known in self.brokers.items()},
        }
        first = ControllerState.from_snapshot({**controller_names(partition), **flags}, ids)
        self.lines.by_owner[CONTROLLER, tp] = [
            Line(len(self.lines.events) - 1, self.lines.events[-1], controller=first)
        ]

    def _client_answers(self, event: Event, session: Session) -> list[tuple[str, Answer]]:
        """The answers to clients, by partition.

        Traces of older brokers do not have the requests; their answers are skipped.
        """
        told = event.says.get("answered")
        own, halts = fields(event.says.get("client")).get("request"), "ends" in event.says
        answers: list[tuple[str, Answer]] = []
        for answer in [fields(a) for a in told] if isinstance(told, list) else []:
            if not session.client_requests:
                continue
            request, tp = session.answers(answer), str(answer.get("partition"))
            error, read_records = str(answer.get("error")), fields(answer.get("records"))
            watermark = number(answer.get("high_watermark"), -1)
            if request.get("input") == "Produce":
                batches = rows(request.get("batches"))
                offset = number(answer.get("offset"), -1)
                end = offset + sum(b[0] for b in batches)
                if error == "NONE" and self.lines.level is not Level.CLIENT:
                    self._check_acknowledged(tp, batches, offset)
                mine = own == answer.get("request")
                answers.append(
                    (tp, Answer("Produce", error, offset, end, number(request.get("acks")), own=mine, halts=halts))
                )
            else:
                if read_records and read_records.get("offset") != request.get("offset"):
                    raise LineRefused(
                        f"offset {request.get('offset')} was asked for, {read_records.get('offset')} is answered"
                    )
                start, end = number(read_records.get("offset"), -1), number(read_records.get("up_to"), -1)
                answers.append((tp, Answer("Consume", error, start, end, high_watermark=watermark, halts=halts)))
        return answers

    def _check_acknowledged(self, tp: str, batches: list[Row], offset: int) -> None:
        """LineRefused unless batches with these CRCs were appended where the acknowledgement says."""
        for count, crc, *_ in batches:
            if offset not in self.produced.get((tp, count, crc, 0), {offset} if not batches else set()):
                raise LineRefused(f"nobody has appended at {offset} of {tp} what is acknowledged there")
            offset += count

    # Owners of the line

    def _partitions_of(
        self, event: Event, mail: SentMessage | None, messages: list[SentMessage], node: str
    ) -> list[str]:
        """The partitions that the line is about."""
        says = event.says
        partition_names = [
            str(m.says.get("partition")) for m in (*messages, *([mail] if mail else [])) if "partition" in m.says
        ]
        partition_names += [str(p.get("partition")) for m in messages if m.kind == "Metadata" for p in partitions_of(m)]
        told = says.get("answered")
        partition_names += [str(fields(a).get("partition")) for a in told] if isinstance(told, list) else []
        partition_names += [str(fields(says.get("client")).get("partition"))] if "client" in says else []
        if self.lines.level is not Level.CLIENT or "log" in says:
            partition_names += [str(says["partition"])] if "partition" in says else []
        if node == CONTROLLER and any(m.kind in ("Metadata", "BrokerRegistered", "HeartbeatAnswer") for m in messages):
            partition_names += list(self.lines.partitions)
        known = self.lines.partitions
        return [
            tp
            for tp in dict.fromkeys(partition_names)
            if tp in known or ("log" in says and tp == says.get("partition"))
        ]

    def _line(
        self,
        place: int,
        event: Event,
        tp: str,
        mail: SentMessage | None,
        messages: tuple[SentMessage, ...],
        answers: tuple[Answer, ...],
    ) -> Line:
        says, node, level = event.says, event.life.partition(".")[0], self.lines.level
        action, input_name = says.get("action"), str(says.get("input"))
        mine = says.get("partition") == tp
        actions: tuple[str | None, ...] = (str(action),) if isinstance(action, str) and mine else (None,)
        client = fields(says.get("client"))
        about_client = client.get("partition") == tp
        wrote = tuple(rows(says.get("wrote"))) if mine else ()
        if level is Level.CLIENT:
            actions, wrote = self._possible_actions(node, input_name, tp, mail, messages, client)
        log = None
        if "log" in says and mine:
            log = self._found_log(tp, rows(says.get("log")), number(says.get("high_watermark"), -1))
        state = fields(says.get("state")) if level is Level.FULL and mine and "state" in says else None
        ids = self.lines.partitions[tp].ids if tp in self.lines.partitions else ()
        controller = ControllerState.from_snapshot(state, ids) if state is not None and node == CONTROLLER else None
        return Line(
            place,
            event,
            actions,
            mail,
            (self.metadata_before_life.get((node, tp), 0), len(self.lines.metadata.get((node, tp), []))),
            wrote,
            log,
            messages=messages,
            answers=answers,
            acks=number(client.get("acks"), 1) if about_client and input_name == "Produce" else None,
            read_offset=number(client.get("offset"), -1) if about_client and input_name == "Consume" else None,
            state=state,
            controller=controller,
            registration_epochs=self._registered_epochs(mail),
            is_overtaken=self.is_overtaken,
        )

    def _registered_epochs(self, mail: SentMessage | None) -> tuple[int, ...]:
        """The broker epochs that were ever given to the life that registers here.

        A failed controller may give another.
        """
        if mail is None or mail.kind != "RegisterBroker":
            return ()
        return tuple(self.registered.get((number(mail.says.get("broker")), mail.says.get("incarnation")), ()))

    def _possible_actions(
        self,
        node: str,
        input_name: str,
        tp: str,
        mail: SentMessage | None,
        messages: tuple[SentMessage, ...],
        client: Fields,
    ) -> tuple[tuple[str | None, ...], tuple[Row, ...]]:
        """At level `client`: the actions that the line may be, and the batches that clients or messages tell of."""
        if node == CONTROLLER:
            return (None,), ()
        actions = list(HIDDEN_ACTIONS.get(input_name, ()))
        if input_name in ("Produce", "Consume") and client.get("partition") != tp:
            actions = []
        if mail is not None and mail.says.get("partition") != tp:
            actions = []
        if input_name == "Tick":
            kinds = {m.kind for m in messages}
            actions += ["leader_proposes_shrink", "leader_proposes_expansion"] * ("AlterPartitionRequest" in kinds)
            actions += ["follower_sends_fetch"] * ("FetchRequest" in kinds)
            actions += ["follower_asks_for_epoch_end"] * ("OffsetForLeaderEpochRequest" in kinds)
        wrote = self.carried_batches.get(mail.id, ()) if mail is not None and mail.kind == "FetchResponse" else ()
        if input_name == "Produce":
            wrote = tuple((-1, -1, b[0], *b[1:]) for b in rows(client.get("batches")))
        return (*actions, None), wrote

    def _check_written(self, tp: str, action: str, new: list[Row], client: Fields) -> None:
        """LineRefused unless a leader appends its client's batches, and a follower those of a leader."""
        asked = rows(client.get("batches"))
        if asked and action == "leader_appends" and [row[2:] for row in new] != asked:
            raise LineRefused("what is appended is not what the client sent")
        for row in new:
            if len(row) != 7 or row[2] < 1:
                raise LineRefused(f"{list(row)} is no batch")
            key = (tp, row[0], row[1])
            if action == "leader_appends":
                self._note_written(tp, row)
            elif self.written_batches.get(key) != row:
                raise LineRefused(f"no leader has written the batch at {row[0]} of epoch {row[1]} that is appended")

    def _note_written(self, tp: str, row: Row) -> None:
        self.written_batches[tp, row[0], row[1]] = row
        self.produced.setdefault((tp, row[2], row[3], 0), set()).add(row[0])

    def _found_log(self, tp: str, log: list[Row], watermark: int) -> ReplicaState:
        """The state of a replica that opens this log.

        Its batches must follow each other and be those that lines before have written. Only at the end may there be
        others: the process was killed after it had written them and before it wrote their line. LineRefused if not.
        """
        end, unknown = 0, False
        for row in log:
            written_batch = self.written_batches.get((tp, row[0], row[1]))
            if row[0] != end or len(row) != 7 or row[2] < 1 or (written_batch is not None and written_batch != row):
                raise LineRefused(f"the log that is found has the batch {list(row)} at {end}")
            if unknown and written_batch is not None:
                raise LineRefused(
                    f"the log that is found has at {row[0]} what was written, behind what nobody has written"
                )
            unknown |= written_batch is None and self.lines.level is not Level.CLIENT
            if written_batch is None:
                self._note_written(tp, row)
            end = row[0] + row[2]
        if not 0 <= watermark <= end:
            raise LineRefused(f"the watermark that is found is {watermark}, the log ends at {end}")
        return found_on_disk(log, watermark)


def partitions_of(mail: SentMessage) -> list[Fields]:
    """The partitions in a Metadata message."""
    listed = mail.says.get("partitions")
    return [fields(p) for p in listed] if isinstance(listed, list) else []


def _own_minimum(partition: Fields) -> str:
    """The topic's own min.insync.replicas: setting it is a new version, if only to what it is (`with_settings`)."""
    configs = partition.get("configs")
    return str([pair for pair in configs if "min.insync.replicas" in str(pair)] if isinstance(configs, list) else [])
