"""A trace taken apart (`lines`): each line read once, in an order that no cause contradicts.

What a line says wrong whatever the model says is found here (`saying`): it ends the reading there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import BadTrace, Event
from isr_validate.line_values import Fields, Mail, Row, fields, mails, number, numbers, rows
from isr_validate.repeated_facts import Knowing, Session
from isr_validate.replica_state import Held, Ruling, announced, found
from isr_validate.trace_lines import CONTROLLER, HIDDEN, QUESTIONS, Answer, Level, Line, Lines, Owner, Partition
from isr_validate.verdict import STUTTERS, Refused

_OF_CONTROLLER = ("controller_", "broker_")


@attrs.define
class Reading:
    """What the lines so far have told; `takes` one more."""

    settings: Mapping[str, str]
    lines: Lines
    lives: dict[str, str] = attrs.field(factory=dict[str, str])
    sessions: dict[str, Session] = attrs.field(factory=dict[str, Session])
    known: Knowing = attrs.field(factory=set[tuple[str, str, int]])
    questions: set[tuple[Json, ...]] = attrs.field(factory=set[tuple[Json, ...]])
    mail: dict[str, Mail] = attrs.field(factory=dict[str, Mail])
    clocks: dict[str, Mapping[str, int]] = attrs.field(factory=dict[str, Mapping[str, int]])
    arrived: set[tuple[str, str, str]] = attrs.field(factory=set[tuple[str, str, str]])
    last_sent: dict[tuple[str, str], str] = attrs.field(factory=dict[tuple[str, str], str])
    written: dict[tuple[str, int, int], Row] = attrs.field(factory=dict[tuple[str, int, int], Row])
    produced: dict[tuple[str, int, int, int], set[int]] = attrs.field(factory=dict[tuple[str, int, int, int], set[int]])
    carried: dict[str, tuple[Row, ...]] = attrs.field(factory=dict[str, tuple[Row, ...]])
    registered: dict[tuple[int, Json], list[int]] = attrs.field(factory=dict[tuple[int, Json], list[int]])
    brokers: dict[int, Fields] = attrs.field(factory=dict[int, Fields])
    lived: dict[tuple[int, Json], tuple[Json, ...]] = attrs.field(factory=dict[tuple[int, Json], tuple[Json, ...]])
    heartbeats: dict[str, int] = attrs.field(factory=dict[str, int])
    overtaken: bool = False
    forgotten: dict[Owner, int] = attrs.field(factory=dict[Owner, int])

    def all(self, events: Iterable[Event]) -> None:
        """Every line, up to the first that is refused."""
        known = list(events)
        for event in known:
            self._looks_ahead(event)
        for place, event in enumerate(known):
            self.lines.events.append(event)
            try:
                self._takes(place, event)
            except Refused as no:
                self.lines.refused = (place, no)
                return

    def _looks_ahead(self, event: Event) -> None:
        """What a message on the wire carried is told by who took it; the epoch of a life by the answer to it."""
        says = event.says
        if says.get("action") == "follower_appends" and "received" in says:
            self.carried[str(says["received"])] = tuple(rows(says.get("wrote")))
        for mail in mails(event.life, says.get("sent")):
            if mail.kind == "BrokerRegistered" and mail.says.get("error") == "NONE":
                key = (number(mail.says.get("broker")), mail.says.get("incarnation"))
                self.registered.setdefault(key, []).append(number(mail.says.get("broker_epoch")))

    def _takes(self, place: int, event: Event) -> None:
        says, node = event.says, event.life.partition(".")[0]
        if self.lives.get(node) != event.life:
            self.lives[node] = event.life
            self.sessions[event.life] = Session(questions=self.questions, settings=self.settings, known=self.known)
            self._begins(place, event, node)
        session, mail = self.sessions[event.life], self._heard(event, node)
        session.hears(event, mail)
        told, action = str(says.get("input")), says.get("action")
        if told not in STUTTERS:
            raise Refused(f"no input is called {told}")
        if isinstance(action, str):
            self._acts(event, node, action)
        else:
            self.lines.stutters[told] += 1
        sent = mails(node, says.get("sent"))
        for one in sent:
            self._sends(event, node, session, one)
        session.ends(says)
        if isinstance(action, str) and node != CONTROLLER and self.lines.level is not Level.CLIENT:
            session.tells(event, str(says.get("partition")))
        if "wrote" in says and self.lines.level is not Level.CLIENT:
            self._wrote(str(says.get("partition")), str(action), rows(says.get("wrote")), fields(says.get("client")))
        answers = self._answered(event, session)
        for tp in self._about(event, mail, sent, node):
            mine = tuple(m for m in sent if m.says.get("partition", tp) == tp)
            line = self._line(place, event, tp, mail, mine, tuple(a for p, a in answers if p == tp))
            self.lines.chains.setdefault((node, tp), []).append(line)

    def _begins(self, place: int, event: Event, node: str) -> None:
        """Another life: what the node knew in memory is gone."""
        for owner, chain in self.lines.chains.items():
            if owner[0] == node:
                chain.append(Line(place, event, begins=True))
        for owner, news in self.lines.news.items():
            if owner[0] == node:
                self.forgotten[owner] = len(news)

    def _heard(self, event: Event, node: str) -> Mail | None:
        """The message that the line was told, which must have been sent to it before."""
        self.overtaken = False
        received = event.says.get("received")
        if received is None:
            return None
        mail = self.mail.get(str(received))
        if mail is None:
            raise Refused(f"the message {received} was sent by nobody")
        if mail.kind != event.says.get("input") or mail.to != node:
            raise Refused(
                f"the message {received} is a {mail.kind} to {mail.to}, not a {event.says.get('input')} to {node}"
            )
        if any(event.clock.get(life, 0) < count for life, count in self.clocks[mail.id].items()):
            raise Refused(f"the line knows less than the sender of {received}")
        if mail.kind == "Metadata":
            for partition in partitions_of(mail):
                tp = str(partition.get("partition"))
                if tp in self.lines.partitions:
                    ids = self.lines.partitions[tp].ids
                    self.lines.news.setdefault((node, tp), []).append(Ruling.told(announced(partition), ids))
        if mail.kind == "Heartbeat":
            sender = mail.id.partition(":")[0]
            self.overtaken = int(mail.id.partition(":")[2]) < self.heartbeats.get(sender, 0)
            self.heartbeats[sender] = max(self.heartbeats.get(sender, 0), int(mail.id.partition(":")[2]))
        if "action" in event.says:
            self._is_late(event, mail)
        return mail

    def _is_late(self, event: Event, mail: Mail) -> None:
        """A message that comes a second time, or after a newer one, which the model's environment does not have."""
        key = (event.life, mail.id, f"{event.says['action']} {event.says.get('partition')}")
        newest = self.last_sent.get((mail.source, f"{mail.kind} {mail.says.get('partition')}"))
        if key in self.arrived and mail.kind != "Metadata":
            self.lines.outside.append((event.life, event.number + 1, f"the {mail.kind} {mail.id} came twice"))
        elif mail.kind in QUESTIONS and newest != mail.id:
            self.lines.outside.append((event.life, event.number + 1, f"a newer fetch was sent after {mail.id}"))
        self.arrived.add(key)

    def _acts(self, event: Event, node: str, action: str) -> None:
        if action.startswith(_OF_CONTROLLER) != (node == CONTROLLER):
            raise Refused(f"{action} is no action of {node}")
        known = self.lines.partitions.get(str(event.says.get("partition")))
        if node != CONTROLLER and (known is None or int(node) not in known.ids):
            raise Refused(f"broker {node} is no replica of {event.says.get('partition')}")
        if known is None:
            self.lines.unchecked += 1
        if self.lines.level is Level.FULL and not isinstance(event.says.get("state"), dict):
            raise BadTrace(f"{event.life}, line {event.number + 1}: there is no state after {action}")

    # What the line sends

    def _sends(self, event: Event, node: str, session: Session, mail: Mail) -> None:
        life, _, nth = mail.id.partition(":")
        if mail.id in self.mail or life != event.life or not nth.isdigit():
            raise Refused(f"the message {mail.id} is not the next of {event.life}")
        self.mail[mail.id] = mail
        self.clocks[mail.id] = event.clock
        self.last_sent[node, f"{mail.kind} {mail.says.get('partition')}"] = mail.id
        session.sends(node, mail)
        self.known.update((mail.to, life, count) for life, count in event.clock.items())
        if mail.kind == "Metadata":
            self._announces(mail)

    def _announces(self, mail: Mail) -> None:
        """Metadata tells who the replicas are; and, before its first line, the controller's state of a partition."""
        listed = mail.says.get("brokers")
        for broker in [fields(b) for b in listed] if isinstance(listed, list) else []:
            who = number(broker.get("broker"))
            self.brokers[who] = broker
            same = (broker.get("incarnation"), broker.get("host"), broker.get("port"))
            if self.lived.setdefault((who, broker.get("epoch")), same) != same:
                raise Refused(f"{mail.id} tells another life of broker {who} in its epoch {broker.get('epoch')}")
        for partition in partitions_of(mail):
            tp, who_hold = str(partition.get("partition")), numbers(partition.get("replicas"))
            fixed = tuple(str(partition.get(n)) for n in ("replicas", "min_insync_replicas", "topic_id"))
            known = self.lines.partitions.get(tp)
            if known is not None and who_hold and known.fixed != fixed:
                raise Refused(f"{mail.id} tells other replicas, another minimum or another topic of {tp}")
            if known is None and who_hold:
                self._first_of(tp, partition, tuple(sorted(who_hold)), fixed)

    def _first_of(self, tp: str, partition: Fields, ids: tuple[int, ...], fixed: tuple[str, ...]) -> None:
        minimum = min(number(partition.get("min_insync_replicas"), 1), len(ids))
        unclean = partition.get("unclean_leader_election") is True
        self.lines.partitions[tp] = Partition(ids, minimum, unclean, fixed)
        flags: dict[str, Json] = {
            "fenced": [b for b, known in self.brokers.items() if known.get("fenced")],
            "shutting_down": [b for b, known in self.brokers.items() if known.get("shutting_down")],
            "broker_epoch": {str(b): known.get("epoch") for b, known in self.brokers.items()},
        }
        first = Ruling.told({**announced(partition), **flags}, ids)
        self.lines.chains[CONTROLLER, tp] = [Line(len(self.lines.events) - 1, self.lines.events[-1], ruling=first)]

    def _answered(self, event: Event, session: Session) -> list[tuple[str, Answer]]:
        """The answers to clients, with what they had asked; lines of older brokers do not tell that."""
        told = event.says.get("answered")
        own, halts = fields(event.says.get("client")).get("request"), "ends" in event.says
        answers: list[tuple[str, Answer]] = []
        for answer in [fields(a) for a in told] if isinstance(told, list) else []:
            if not session.asked:
                continue
            asked, tp = session.answers(answer), str(answer.get("partition"))
            error, given = str(answer.get("error")), fields(answer.get("records"))
            watermark = number(answer.get("high_watermark"), -1)
            if asked.get("input") == "Produce":
                batches = rows(asked.get("batches"))
                offset = number(answer.get("offset"), -1)
                end = offset + sum(b[0] for b in batches)
                if error == "NONE" and self.lines.level is not Level.CLIENT:
                    self._stands(tp, batches, offset)
                mine = own == answer.get("request")
                answers.append(
                    (tp, Answer("Produce", error, offset, end, number(asked.get("acks")), own=mine, halts=halts))
                )
            else:
                if given and given.get("offset") != asked.get("offset"):
                    raise Refused(f"offset {asked.get('offset')} was asked for, {given.get('offset')} is answered")
                start, end = number(given.get("offset"), -1), number(given.get("up_to"), -1)
                answers.append((tp, Answer("Consume", error, start, end, high_watermark=watermark, halts=halts)))
        return answers

    def _stands(self, tp: str, batches: list[Row], offset: int) -> None:
        """The batches that are acknowledged were appended there; so says each of its CRCs."""
        for count, crc, *_ in batches:
            if offset not in self.produced.get((tp, count, crc, 0), {offset} if not batches else set()):
                raise Refused(f"nobody has appended at {offset} of {tp} what is acknowledged there")
            offset += count

    # What the line is about

    def _about(self, event: Event, mail: Mail | None, sent: list[Mail], node: str) -> list[str]:
        """The partitions that the line says something about."""
        says = event.says
        named = [str(m.says.get("partition")) for m in (*sent, *([mail] if mail else [])) if "partition" in m.says]
        named += [str(p.get("partition")) for m in sent if m.kind == "Metadata" for p in partitions_of(m)]
        told = says.get("answered")
        named += [str(fields(a).get("partition")) for a in told] if isinstance(told, list) else []
        named += [str(fields(says.get("client")).get("partition"))] if "client" in says else []
        if self.lines.level is not Level.CLIENT or "log" in says:
            named += [str(says["partition"])] if "partition" in says else []
        if node == CONTROLLER and any(m.kind in ("Metadata", "BrokerRegistered", "HeartbeatAnswer") for m in sent):
            named += list(self.lines.partitions)
        known = self.lines.partitions
        return [tp for tp in dict.fromkeys(named) if tp in known or ("log" in says and tp == says.get("partition"))]

    def _line(
        self,
        place: int,
        event: Event,
        tp: str,
        mail: Mail | None,
        sent: tuple[Mail, ...],
        answers: tuple[Answer, ...],
    ) -> Line:
        says, node, level = event.says, event.life.partition(".")[0], self.lines.level
        action, told = says.get("action"), str(says.get("input"))
        mine = says.get("partition") == tp
        actions: tuple[str | None, ...] = (str(action),) if isinstance(action, str) and mine else (None,)
        client = fields(says.get("client"))
        about_client = client.get("partition") == tp
        wrote = tuple(rows(says.get("wrote"))) if mine else ()
        if level is Level.CLIENT:
            actions, wrote = self._hidden(node, told, tp, mail, sent, client)
        log = None
        if "log" in says and mine:
            log = self._found(tp, rows(says.get("log")), number(says.get("high_watermark"), -1))
        state = fields(says.get("state")) if level is Level.FULL and mine and "state" in says else None
        ids = self.lines.partitions[tp].ids if tp in self.lines.partitions else ()
        ruling = Ruling.told(state, ids) if state is not None and node == CONTROLLER else None
        return Line(
            place,
            event,
            actions,
            mail,
            (self.forgotten.get((node, tp), 0), len(self.lines.news.get((node, tp), []))),
            wrote,
            log,
            sent=sent,
            answers=answers,
            acks=number(client.get("acks"), 1) if about_client and told == "Produce" else None,
            asked=number(client.get("offset"), -1) if about_client and told == "Consume" else None,
            state=state,
            ruling=ruling,
            joined=self._joins(mail),
            overtaken=self.overtaken,
        )

    def _joins(self, mail: Mail | None) -> tuple[int, ...]:
        """The epochs that were ever given to who registers with this message; the controller may forget them."""
        if mail is None or mail.kind != "RegisterBroker":
            return ()
        return tuple(self.registered.get((number(mail.says.get("broker")), mail.says.get("incarnation")), ()))

    def _hidden(
        self, node: str, told: str, tp: str, mail: Mail | None, sent: tuple[Mail, ...], client: Fields
    ) -> tuple[tuple[str | None, ...], tuple[Row, ...]]:
        """What the line may be, if it does not say so; and the batches that clients and the wire know of."""
        if node == CONTROLLER:
            return (None,), ()
        actions = list(HIDDEN.get(told, ()))
        if told in ("Produce", "Consume") and client.get("partition") != tp:
            actions = []
        if mail is not None and mail.says.get("partition") != tp:
            actions = []
        if told == "Tick":
            kinds = {m.kind for m in sent}
            actions += ["leader_proposes_shrink", "leader_proposes_expansion"] * ("AlterPartitionRequest" in kinds)
            actions += ["follower_sends_fetch"] * ("FetchRequest" in kinds)
            actions += ["follower_asks_for_epoch_end"] * ("OffsetForLeaderEpochRequest" in kinds)
        wrote = self.carried.get(mail.id, ()) if mail is not None and mail.kind == "FetchResponse" else ()
        if told == "Produce":
            wrote = tuple((-1, -1, b[0], *b[1:]) for b in rows(client.get("batches")))
        return (*actions, None), wrote

    def _wrote(self, tp: str, action: str, new: list[Row], client: Fields) -> None:
        """Batches that are appended: a leader's are those of its client, a follower's those of a leader."""
        asked = rows(client.get("batches"))
        if asked and action == "leader_appends" and [row[2:] for row in new] != asked:
            raise Refused("what is appended is not what the client sent")
        for row in new:
            if len(row) != 7 or row[2] < 1:
                raise Refused(f"{list(row)} is no batch")
            key = (tp, row[0], row[1])
            if action == "leader_appends":
                self._is_written(tp, row)
            elif self.written.get(key) != row:
                raise Refused(f"no leader has written the batch at {row[0]} of epoch {row[1]} that is appended")

    def _is_written(self, tp: str, row: Row) -> None:
        self.written[tp, row[0], row[1]] = row
        self.produced.setdefault((tp, row[2], row[3], 0), set()).add(row[0])

    def _found(self, tp: str, log: list[Row], watermark: int) -> Held:
        """A log at a start: its batches follow each other, and are those that were written, but for what no line
        tells, at the end: the process was killed before it could. From now on they are known as written."""
        end, unknown = 0, False
        for row in log:
            known = self.written.get((tp, row[0], row[1]))
            if row[0] != end or len(row) != 7 or row[2] < 1 or (known is not None and known != row):
                raise Refused(f"the log that is found has the batch {list(row)} at {end}")
            if unknown and known is not None:
                raise Refused(f"the log that is found has at {row[0]} what was written, behind what nobody has written")
            unknown |= known is None and self.lines.level is not Level.CLIENT
            if known is None:
                self._is_written(tp, row)
            end = row[0] + row[2]
        if not 0 <= watermark <= end:
            raise Refused(f"the watermark that is found is {watermark}, the log ends at {end}")
        return found(log, watermark)


def partitions_of(mail: Mail) -> list[Fields]:
    """The partitions that a message with metadata lists."""
    listed = mail.says.get("partitions")
    return [fields(p) for p in listed] if isinstance(listed, list) else []
