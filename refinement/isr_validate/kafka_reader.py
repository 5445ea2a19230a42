"""The reader of Kafka's traces: each line becomes a line of a replica or of the controller.

What needs no model is refused here: a batch that no leader wrote, an answer that no leader gave, a fetch from where its
follower's log never ended, metadata that the controller has not decided.

Kafka counts leader epochs from 0 and the model from 1: in all that the reader hands on they are one higher.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import Event
from isr_validate.kafka_trace import STEPS
from isr_validate.replica_state import ControllerState, controller_names, found_on_disk
from isr_validate.trace_lines import CONTROLLER, Answer, Level, Line, Owner, Partition, TraceLines
from isr_validate.trace_values import Fields, Row, SentMessage, fields, number, numbers, rows
from isr_validate.verdict import LineRefused

NOTHING: Final[Fields] = {}


@attrs.frozen
class KafkaLine(Line):
    """A line of Kafka's, in the chain of its owner.

    - `what`: its name; `index`: its place in the chain; `first`: before which line there it may have happened already.
    - `variables`: variables after the step, as the line has them; `ends`: of followers, where for the leader their logs
      end.
    - `watermark`: of an answer to a fetch, the watermark in it.
    - `start`: where a follower begins its log again; `reorders`: a decision about no more than who is preferred.
    """

    what: str = ""
    index: int = 0
    first: int = 0
    variables: Mapping[str, object] = attrs.field(factory=dict[str, object])
    ends: Mapping[int, int] = attrs.field(factory=dict[int, int])
    watermark: int | None = None
    start: int | None = None
    reorders: bool = False

    @property
    def checks(self) -> bool:
        """Whether it tells of no step, and only has to be true at some time."""
        return self.what not in STEPS


class Batch(NamedTuple):
    """A batch of records, as a line has it; -1 for what a producer without an identity has not."""

    offset: int
    epoch: int
    records: int
    crc: int
    producer: int
    producer_epoch: int
    sequence: int

    @property
    def end(self) -> int:
        """The offset behind its last record."""
        return self.offset + self.records


BATCH_NUMBERS: Final = len(Batch._fields)


class BatchPlace(NamedTuple):
    """Where a batch stands: of one partition, one offset and one epoch there is one batch."""

    partition: str
    offset: int
    epoch: int


class FetchName(NamedTuple):
    """A fetch at a leader. `name` is the leader's for the request that it took, or the follower's for what it sent."""

    leader: str
    partition: str
    name: str


class ProduceName(NamedTuple):
    """A request to append, in one life of a broker."""

    life: str
    partition: str
    request: str


class Append(NamedTuple):
    """What a request has appended: where its records begin and end, and with which acks."""

    start: int
    end: int
    acks: int


class Version(NamedTuple):
    """The metadata of a partition, by its partition epoch."""

    partition: str
    partition_epoch: int


class Leadership(NamedTuple):
    """One life of a broker, and a partition that it leads."""

    life: str
    partition: str


@attrs.define
class LogBounds:
    """Every offset at which the log of one replica has ended, and every one at which it was begun again."""

    ends: set[int] = attrs.field(factory=lambda: {0})
    restarts: set[int] = attrs.field(factory=set[int])

    @property
    def starts(self) -> set[int]:
        """Every offset at which it has begun: first at 0."""
        return {0, *self.restarts}


@attrs.define
class LifeLines:
    """The lines of one owner in its present life.

    - `numbers`: the number of each in the trace of its node, ascending.
    - `begin`: the index in the owner's chain at which the life begins.
    - `steps_begin`: the index before which no step of this life was taken: its log was not yet opened.
    """

    numbers: list[int] = attrs.field(factory=list[int])
    begin: int = 0
    steps_begin: int = 0


@attrs.define
class KafkaReader:
    """What is known from the lines read so far, and from all of them of batches, fetches and decisions.

    Of all lines, read ahead:

    - `batches`: what was first said of the batch at a place, by who appended it or found it on disk.
    - `fetches`: the line of a leader that took a fetch, by the leader's name for it.
    - `answers`: the lines of a leader about its answers to a fetch, in order, by the follower's name for it.
    - `decisions`: the line of the controller that decided a version of the metadata.
    - `proposals`: the last AlterPartition that a leader prepared, unless it was rolled back.

    Of the lines so far:

    - `appends`: what a request has appended.
    - `logs`: the bounds that a replica's log has had.
    - `watermarks`: the highest watermark that anybody has said of a partition.
    - `owners`: what has been read of an owner's present life.
    - `lives`: the life that a node is in.
    - `brokers`: the controller's last line about a broker.
    - `readers`: what reads a line, by its name. Lines of other names tell of no partition.
    """

    settings: Mapping[str, str]
    lines: TraceLines
    batches: dict[BatchPlace, Batch] = attrs.field(factory=dict[BatchPlace, Batch])
    fetches: dict[FetchName, Fields] = attrs.field(factory=dict[FetchName, Fields])
    answers: dict[FetchName, list[Fields]] = attrs.field(factory=dict[FetchName, list[Fields]])
    decisions: dict[Version, Fields] = attrs.field(factory=dict[Version, Fields])
    proposals: dict[Leadership, Fields] = attrs.field(factory=dict[Leadership, Fields])
    appends: dict[ProduceName, Append] = attrs.field(factory=dict[ProduceName, Append])
    logs: defaultdict[Owner, LogBounds] = attrs.field(factory=lambda: defaultdict[Owner, LogBounds](LogBounds))
    watermarks: dict[str, int] = attrs.field(factory=dict[str, int])
    owners: defaultdict[Owner, LifeLines] = attrs.field(factory=lambda: defaultdict[Owner, LifeLines](LifeLines))
    lives: dict[str, str] = attrs.field(factory=dict[str, str])
    brokers: dict[int, Fields] = attrs.field(factory=dict[int, Fields])
    readers: Mapping[str, Callable[[Event, str, str, KafkaLine], KafkaLine | None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.readers = {
            "opened": self._opened_log,
            "appends": self._appends,
            "copies": self._copies,
            "truncates": self._truncates,
            "restarts": self._restarts,
            "leads": self._leads,
            "follows": self._follows,
            "fetched": self._fetched,
            "diverges": self._diverges,
            "watermark": self._watermark,
            "proposes": self._proposes,
            "adopts": self._adopts,
            "refused": self._refused_proposal,
            "acknowledges": self._acknowledges,
            "answers": self._answers,
        }

    def read_all(self, events: Sequence[Event]) -> None:
        """Read every line, up to the first that is refused."""
        self.lines.read(events, self._read_ahead, self._read_line)

    def _read_ahead(self, event: Event) -> None:
        """Note what only a later line says, and what lines of other processes refer to."""
        says, node = event.says, _node(event)
        tp, what = str(says.get("partition")), says.get("what")
        if what in ("leads", "follows", "decides") and tp not in self.lines.partitions:
            ids = tuple(sorted(numbers(says.get("replicas"))))
            minimum = int(self.settings.get("min.insync.replicas", "1"))
            unclean = self.settings.get("unclean.leader.election.enable") == "true"
            self.lines.partitions[tp] = Partition(ids, min(minimum, len(ids)), unclean)
        if what == "decides":
            self.decisions[Version(tp, number(says.get("partition_epoch")))] = says
        if what in ("appends", "opened"):
            # A follower may have copied a batch, and said so, before the thread that appended it could.
            for row in rows(says.get("wrote" if what == "appends" else "log")):
                if len(row) == BATCH_NUMBERS:  # any other is refused with its line
                    batch = _batch(row)
                    self.batches.setdefault(BatchPlace(tp, batch.offset, batch.epoch), batch)
        leads = Leadership(event.life, tp)
        if what == "proposes":
            self.proposals[leads] = _proposal(says, node)
            self.lines.proposals.setdefault(tp, []).append(self.proposals[leads])
        if what == "refused" and says.get("rolled_back") is True and leads in self.proposals:
            given_up = self.proposals.pop(leads)
            self.lines.proposals[tp].remove(given_up)
            self.lines.withdrawals.setdefault(tp, []).append(given_up)
        if what in ("fetched", "diverges"):
            self.fetches[FetchName(node, tp, str(says.get("request")))] = says
        if what == "answers":
            self.answers.setdefault(FetchName(node, tp, str(says.get("fetch"))), []).append(says)

    def _read_line(self, place: int, event: Event) -> None:
        node, tp = _node(event), str(event.says.get("partition"))
        if node == CONTROLLER:
            self._read_decision(place, event, tp)
            return
        if self.lives.get(node) != event.life:
            self.lives[node] = event.life
            self._start_life(place, event, node)
        what = str(event.says.get("what"))
        if what == "failed":
            raise LineRefused(f"the agent failed: {event.says.get('why')}")
        if what not in self.readers:
            self.lines.stutters[what] += 1
            return
        line = self.readers[what](event, node, tp, KafkaLine(place, event, what=what))
        if line is not None:
            self._add((node, tp), line)
        self.watermarks[tp] = max(self.watermarks.get(tp, 0), number(event.says.get("high_watermark")))

    def _start_life(self, place: int, event: Event, node: str) -> None:
        """Start another life of a node: what it had in memory is lost."""
        for owner, chain in self.lines.by_owner.items():
            if owner[0] == node:
                chain.append(KafkaLine(place, event, begins=True, what="opened", index=len(chain), first=len(chain)))
                self.owners[owner] = LifeLines(begin=len(chain))

    def _add(self, owner: Owner, line: KafkaLine) -> None:
        chain = self.lines.by_owner.setdefault(owner, [])
        life, index = self.owners[owner], len(chain)
        first = min(index, life.begin + bisect_right(life.numbers, number(line.event.says.get("since"))))
        if not line.checks:
            first = max(first, life.steps_begin)
        chain.append(attrs.evolve(line, index=index, first=first))
        life.numbers.append(line.event.number)
        if line.what == "opened":
            life.steps_begin = index + 1

    # A replica's log

    def _opened_log(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        log, watermark = _batches(event.says.get("log")), number(event.says.get("high_watermark"), -1)
        end = start = log[0].offset if log else number(event.says.get("log_end"))
        for batch in log:
            if batch.offset != end:
                raise LineRefused(f"the log that is found has the batch {list(batch)} at {end}")
            self._note(tp, batch)
            end = batch.end
        if start not in self.logs[node, tp].starts:
            raise LineRefused(f"the log that is found begins at {start}, where its replica has never begun it")
        if not 0 <= watermark <= end:
            raise LineRefused(f"the watermark that is found is {watermark}, the log ends at {end}")
        self.logs[node, tp].ends.add(end)
        return attrs.evolve(line, opened_replica=found_on_disk(log, watermark, start))

    def _appends(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        says = event.says
        wrote, acks = _batches(says.get("wrote")), number(says.get("acks"), -1)
        if [batch[2:] for batch in wrote] != rows(says.get("asked")):  # a client knows no offsets and no epochs
            raise LineRefused("what is appended is not what the client sent")
        for batch in wrote:
            self._note(tp, batch)
        if wrote:
            name = ProduceName(event.life, tp, str(says.get("request")))
            earlier = self.appends.get(name)
            start = wrote[0].offset if earlier is None else earlier.start
            self.appends[name] = Append(start, wrote[-1].end, acks)
            self.logs[node, tp].ends.add(wrote[-1].end)
        return attrs.evolve(line, actions=("leader_appends",), wrote=wrote, acks=acks)

    def _copies(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        says, wrote = event.says, _batches(event.says.get("wrote"))
        for batch in wrote:
            if self.batches.get(BatchPlace(tp, batch.offset, batch.epoch)) != batch:
                where = f"at {batch.offset} of epoch {batch.epoch - 1}"
                raise LineRefused(f"no leader has written the batch {where} that is appended")
        mail = self._answer_heard(event, node, tp)
        if mail.says.get("high_watermark") != says.get("told") or "diverging" in mail.says:
            raise LineRefused(f"the answer {mail.id} says something else than its follower heard")
        if mail.says.get("offset") != says.get("offset"):
            raise LineRefused(
                f"a leader took the fetch {mail.id} as one from {mail.says.get('offset')}, "
                f"and its follower asked from {says.get('offset')}"
            )
        self.logs[node, tp].ends.add(number(says.get("log_end")))
        return attrs.evolve(line, actions=("follower_appends",), wrote=wrote, mail=mail, variables=_log(says))

    def _truncates(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        """A follower without leader epochs in its log truncates to its watermark before it fetches, unasked."""
        self.logs[node, tp].ends.add(number(event.says.get("log_end")))
        mail = self._answer_heard(event, node, tp) if "fetch" in event.says else None
        if mail is None or "diverging" not in mail.says:
            return attrs.evolve(line, variables=_log(event.says))
        return attrs.evolve(line, actions=("follower_truncates",), mail=mail, variables=_log(event.says))

    def _restarts(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        """A follower whose log ends before that of its leader begins: what was between them, all replicas had."""
        start = number(event.says.get("to"), -1)
        if not 0 <= start <= self.watermarks.get(tp, 0):
            raise LineRefused(f"a follower begins its log again at {start}, which nobody has said to be committed")
        self.logs[node, tp].ends.add(start)
        self.logs[node, tp].restarts.add(start)
        return attrs.evolve(line, start=start, variables=_log(event.says))

    def _note(self, tp: str, batch: Batch) -> None:
        known = self.batches.setdefault(BatchPlace(tp, batch.offset, batch.epoch), batch)
        if known != batch or batch.records < 1:
            where = f"at {batch.offset} of epoch {batch.epoch - 1}"
            raise LineRefused(f"{where} there is {list(known)}, and {list(batch)} is written")

    def _answer_heard(self, event: Event, node: str, tp: str) -> SentMessage:
        """The leader's answer that a follower's line is about; LineRefused if there is none."""
        says = event.says
        leader, fetch, at = str(says.get("leader")), str(says.get("fetch")), number(says.get("at"))
        answers = [a for a in self.answers.get(FetchName(leader, tp, fetch), []) if number(a.get("at")) <= at]
        if not answers:
            raise LineRefused(f"broker {leader} has given no answer {fetch} about {tp}")
        answer = answers[-1]
        request = self.fetches.get(FetchName(leader, tp, str(answer.get("request"))), NOTHING)
        message_fields: dict[str, Json] = {
            "error": answer.get("error"),
            "leader": number(says.get("leader"), -1),
            "high_watermark": answer.get("high_watermark"),
            **{name: request.get(name) for name in ("offset", "replica")},
            "leader_epoch": _epoch(request.get("leader_epoch")),
            "last_epoch": _epoch(request.get("last_epoch")),
        }
        if "diverging" in request:
            message_fields["diverging"] = _diverging(request)
        return SentMessage(f"{fetch} of {leader}", leader, node, "FetchResponse", message_fields)

    # What a leader knows

    def _leads(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        says = event.says
        variables = {
            "leader": number(says.get("leader"), -1),
            "leader_epoch": _epoch(says.get("leader_epoch")),
            "partition_epoch": number(says.get("partition_epoch")),
            "isr": tuple(sorted(numbers(says.get("isr")))),
            "pending_isr": (),
        }
        actions = ("becomes_leader", "leader_learns_isr", "leader_hears_isr_again", None)
        return attrs.evolve(line, actions=actions, news=self._hears(event, node, tp), variables=variables)

    def _follows(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        says = event.says
        leader = number(says.get("leader"), -1)
        told = {"leader": leader if leader >= 0 else None, "leader_epoch": _epoch(says.get("leader_epoch"))}
        return attrs.evolve(line, actions=("becomes_follower", None), news=self._hears(event, node, tp), variables=told)

    def _hears(self, event: Event, node: str, tp: str) -> tuple[int, int]:
        """Note the metadata that a replica learns; LineRefused if the controller has not decided them."""
        says = event.says
        if self.decisions:
            known = self.decisions.get(Version(tp, number(says.get("partition_epoch"))), NOTHING)
            names = ("leader", "leader_epoch", "isr", "elr")
            wrong = {n: (str(known.get(n)), str(says.get(n))) for n in names if known.get(n) != says.get(n)}
            if wrong:
                raise LineRefused("the controller has not decided what is learned", (), wrong)
        news = self.lines.metadata.setdefault((node, tp), [])
        news.append(_controller(says, self.lines.partitions[tp].ids, {}))
        return len(news) - 1, len(news)

    def _fetched(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        mail = self._request(event, node, tp)
        follower, offset = number(event.says.get("follower"), -1), number(event.says.get("offset"), -1)
        if offset not in self.logs[str(follower), tp].ends:
            raise LineRefused(f"broker {follower} fetches from {offset}, where its log has never ended")
        ends = {follower: number(event.says.get("end"), -1)}
        return attrs.evolve(line, actions=("leader_answers_fetch",), mail=mail, ends=ends)

    def _diverges(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        mail = self._request(event, node, tp)
        told: dict[str, Json] = {"error": "NONE", "leader": int(node), "leader_epoch": mail.says.get("leader_epoch")}
        sent = SentMessage(mail.id, node, mail.source, "FetchResponse", {**told, "diverging": _diverging(event.says)})
        return attrs.evolve(line, actions=("leader_answers_diverging",), mail=mail, messages=(sent,))

    def _request(self, event: Event, node: str, tp: str) -> SentMessage:
        says = event.says
        message_fields: dict[str, Json] = {
            "replica": says.get("follower"),
            "partition": tp,
            "offset": says.get("offset"),
            "broker_epoch": says.get("broker_epoch"),
            "leader_epoch": _epoch(says.get("leader_epoch")),
            "last_epoch": _epoch(says.get("last_epoch")),
        }
        bounds = self.logs[str(says.get("follower")), tp]
        if bounds.restarts and number(says.get("offset")) in bounds.starts and message_fields["last_epoch"] == -1:
            message_fields["begins"] = True
        return SentMessage(str(says.get("request")), str(says.get("follower")), node, "FetchRequest", message_fields)

    def _watermark(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine | None:
        if self.lines.level is Level.CLIENT:
            return None
        told: dict[str, Json] = {"high_watermark": event.says.get("high_watermark")}
        mail = SentMessage("", node, node, "", told)
        return attrs.evolve(line, actions=("leader_moves_watermark", None), mail=mail, variables=_log(event.says))

    def _proposes(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        told = _proposal(event.says, node)
        name = f"of partition epoch {told['partition_epoch']}"
        sent = SentMessage(name, node, CONTROLLER, "AlterPartitionRequest", told)
        actions = ("leader_proposes_expansion", "leader_proposes_shrink")
        return attrs.evolve(line, actions=actions, messages=(sent,))

    def _adopts(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        says = event.says
        isr, version = tuple(sorted(numbers(says.get("isr")))), number(says.get("partition_epoch"))
        if self.decisions and self.decisions.get(Version(tp, version), NOTHING).get("isr") != list(isr):
            raise LineRefused(f"the controller has not decided the ISR {list(isr)} of partition epoch {version}")
        told: dict[str, Json] = {"error": "NONE", "leader_epoch": _epoch(says.get("leader_epoch"))}
        mail = SentMessage(f"of partition epoch {version}", CONTROLLER, node, "AlterPartitionResponse", told)
        after = {"isr": isr, "partition_epoch": version, "pending_isr": ()}
        return attrs.evolve(line, actions=("leader_adopts_isr",), mail=mail, variables=after)

    def _refused_proposal(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine | None:
        """A proposal that was refused, or not even sent because another was under way (OPERATION_NOT_ATTEMPTED)."""
        if event.says.get("rolled_back") is not True:
            return None
        held = reversed(self.lines.by_owner.get((node, tp), []))
        leads = next((one.event.says for one in held if one.event.says.get("what") == "leads"), NOTHING)
        epoch = _epoch(leads.get("leader_epoch"))
        told: dict[str, Json] = {"error": str(event.says.get("error")), "leader_epoch": epoch}
        mail = SentMessage("", CONTROLLER, node, "AlterPartitionResponse", told)
        return attrs.evolve(line, actions=("leader_rolls_back",), mail=mail, variables={"pending_isr": ()})

    # Answers to clients and followers

    def _acknowledges(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine:
        says, error = event.says, str(event.says.get("error"))
        offset = number(says.get("offset"), -1)
        # A repetition of an idempotent producer is acknowledged without an append: then only where it begins is known.
        name = ProduceName(event.life, tp, str(says.get("request")))
        start, end, acks = self.appends.get(name, Append(offset, offset + 1, 1))
        if error == "NONE" and offset not in (start, -1):
            raise LineRefused(f"what was appended at {start} is acknowledged at {offset}")
        return attrs.evolve(line, answers=(Answer("Produce", error, offset, end, acks),))

    def _answers(self, event: Event, node: str, tp: str, line: KafkaLine) -> KafkaLine | None:
        watermark = number(event.says.get("high_watermark"), -1)
        if event.says.get("error") != "NONE" or watermark < 0:
            return None
        return attrs.evolve(line, watermark=watermark)

    # The controller

    def _read_decision(self, place: int, event: Event, tp: str) -> None:
        says, chains = event.says, self.lines.by_owner
        if says.get("what") == "broker":
            self.brokers[number(says.get("broker"), -1)] = says
        for each, partition in self.lines.partitions.items():
            owner = (CONTROLLER, each)
            if says.get("what") == "decides" and each == tp:
                state = _controller(says, partition.ids, self.brokers)
                before = self.decisions.get(Version(tp, number(says.get("partition_epoch")) - 1), NOTHING)
                line = KafkaLine(place, event, what="decides", controller=state, reorders=_reorders(before, says))
            elif says.get("what") == "broker" and owner in chains and says.get("broker") in partition.ids:
                line = KafkaLine(place, event, what="broker")
            else:
                continue
            chain = chains.setdefault(owner, [])
            chain.append(attrs.evolve(line, index=len(chain), first=len(chain)))


def _node(event: Event) -> str:
    return event.life.partition(".")[0]


def _epoch(value: Json) -> int:
    """A leader epoch as the model counts them; -1 for none, as in a line."""
    return number(value, -1) + 1 if number(value, -1) >= 0 else -1


def _batch(row: Row) -> Batch:
    """A row as a batch; LineRefused if it has another number of numbers."""
    if len(row) != BATCH_NUMBERS:
        raise LineRefused(f"the batch {list(row)} has {len(row)} numbers, where a batch has {BATCH_NUMBERS}")
    offset, epoch, *rest = row
    return Batch(offset, epoch + 1, *rest)


def _batches(value: Json) -> tuple[Batch, ...]:
    return tuple(_batch(row) for row in rows(value) if len(row) > 1)


def _diverging(says: Fields) -> dict[str, Json]:
    told = fields(says.get("diverging"))
    return {"epoch": _epoch(told.get("epoch")), "end": told.get("end")}


def _proposal(says: Fields, node: str) -> dict[str, Json]:
    told = {"leader_epoch": _epoch(says.get("leader_epoch")), "partition_epoch": says.get("partition_epoch")}
    return {"isr": says.get("isr"), "leader": int(node), **told}


def _reorders(before: Fields, after: Fields) -> bool:
    """Whether a decision changes the order of the replicas, and nothing else."""
    names = ("leader", "leader_epoch", "isr", "elr", "last_known_elr")
    one, other = numbers(before.get("replicas")), numbers(after.get("replicas"))
    return one != other and sorted(one) == sorted(other) and all(before.get(n) == after.get(n) for n in names)


def _log(says: Fields) -> dict[str, object]:
    return {"end": number(says.get("log_end"), -1), "high_watermark": number(says.get("high_watermark"), -1)}


def _controller(says: Fields, ids: Iterable[int], brokers: Mapping[int, Fields]) -> ControllerState:
    """The controller's state in a line about a partition."""
    leader = number(says.get("leader"), -1)
    last = numbers(says.get("last_known_elr"))
    snapshot: dict[str, Json] = {
        **controller_names(says),
        "controller_leader": leader if leader >= 0 else None,
        "controller_epoch": _epoch(says.get("leader_epoch")),
        "last_known_leader": last[0] if last else None,
        "fenced": [b for b, known in brokers.items() if known.get("fenced")],
        "shutting_down": [b for b, known in brokers.items() if known.get("shutting_down")],
        "broker_epoch": {str(b): known.get("epoch") for b, known in brokers.items()},
    }
    return ControllerState.from_snapshot(snapshot, tuple(ids))
