"""From lines to operations, and from operations to what concerns one partition.

Only here is a history seen as a whole: which completion belongs to which invocation, how long a consumer kept a
partition, and which operations of unknown outcome are proved by a read (Jepsen's rule: one of their sends is seen,
so all of them were done). The rest of the checker gets one partition at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import attrs

from isr_anomalies.operations import (
    NEVER,
    NOTHING,
    Claims,
    Dump,
    Event,
    Extra,
    Fault,
    Held,
    Item,
    Malformed,
    Micro,
    Operation,
    Outcome,
    Polled,
    Record,
    Sent,
    Value,
)

WHOLE: Final = -1
"""The stint of a final read, which continues no other poll."""


class Send(NamedTuple):
    """One value on its way into this partition. `slot` orders the sends of one operation."""

    op: int
    slot: int
    process: str
    invoked: int
    completed: int
    invoked_at: int
    completed_at: int
    outcome: Outcome
    committed: bool
    """Done as far as anybody can tell: ok, or of unknown outcome and seen by a read."""
    value: Value
    offset: int | None
    acks: str


class Batch(NamedTuple):
    """What one operation got from this partition, in the order of delivery.

    Within a `stint` a consumer keeps its position; `excused` is a batch during which the partition changed hands.
    """

    op: int
    process: str
    group: str
    invoked: int
    completed: int
    invoked_at: int
    completed_at: int
    outcome: Outcome
    stint: int
    subscribed: bool
    excused: bool
    records: list[Record]


class Scan(NamedTuple):
    """A read of [start, end) of this partition that leaves nothing out. `unseen`: see Extra."""

    invoked: int
    completed: int
    start: int
    end: int
    values: dict[int, Value]
    unseen: frozenset[int] | None


class Rewind(NamedTuple):
    """A consumer went back to the beginning; the polls of this stint may become a scan."""

    invoked: int
    stint: int


@attrs.define
class Partition:
    """Everything about one partition. All that the checks of a partition need."""

    name: str
    sends: list[Send] = attrs.field(factory=list[Send])
    batches: list[Batch] = attrs.field(factory=list[Batch])
    scans: list[Scan] = attrs.field(factory=list[Scan])
    rewinds: list[Rewind] = attrs.field(factory=list[Rewind])
    dumps: list[Dump] = attrs.field(factory=list[Dump])
    held: list[Held] = attrs.field(factory=list[Held])
    transactional: bool = False
    """Whether there may be control records: the history has operations of several steps."""


@attrs.define
class History:
    """A whole history. `partitions` is made of `operations`, and belongs to nobody else."""

    claims: Claims
    operations: list[Operation] = attrs.field(factory=list[Operation])
    faults: list[Fault] = attrs.field(factory=list[Fault])
    partitions: dict[str, Partition] = attrs.field(factory=dict[str, Partition])
    ends_at: int = 0


def paired(items: Iterable[Item | Claims], claims: Claims | None = None) -> History:
    """The operations of a history, in order of invocation; `claims` override those of its header."""
    history = History(claims or Claims())
    open_ones: dict[tuple[str, object], Event] = {}
    dumps: list[Dump | Held] = []
    for item in items:
        if isinstance(item, Claims):
            history.claims = claims or item
        elif isinstance(item, Fault):
            history.faults.append(item)
            history.ends_at = max(history.ends_at, item.time)
        elif isinstance(item, Event):
            history.ends_at = max(history.ends_at, item.time)
            pair(history.operations, open_ones, item)
        else:
            dumps.append(item)
    history.operations.extend(operation_of(event, None) for event in open_ones.values())
    history.operations.sort(key=lambda op: op.invoked)
    history.operations = [op._replace(number=n) for n, op in enumerate(history.operations)]
    _explode(history)
    for one in dumps:
        of = history.partitions.setdefault(one.partition, Partition(one.partition))
        if isinstance(one, Dump):
            of.dumps.append(one)
        else:
            of.held.append(one)
    return history


def pair(done: list[Operation], open_ones: dict[tuple[str, object], Event], event: Event) -> None:
    """Add the operation that this event ends to those done; one that it begins is open."""
    who = (event.process, event.token)
    begun = open_ones.pop(who, None)
    if event.kind == "invoke":
        if begun is not None:
            raise still_open(event.line, begun)
        open_ones[who] = event
    elif begun is not None:
        if begun.f != event.f:
            raise Malformed(event.line, f"a {event.f} completes the {begun.f} of line {begun.line}")
        if event.time < begun.time:
            raise Malformed(event.line, f"ends before it was invoked (line {begun.line})")
        done.append(operation_of(begun, event))
    else:
        raise Malformed(event.line, f"process {event.process} completes a {event.f} that it never invoked")


def still_open(line: int, begun: Event) -> Malformed:
    """A process begins something before it has ended what it began before."""
    what = f"process {begun.process} invokes while its {begun.f} of line {begun.line} is open (give them ids)"
    return Malformed(line, what)


def operation_of(begun: Event, done: Event | None) -> Operation:
    """The operation of an invocation and how it ended, if it did; it has no number yet."""
    at = (begun.line, NEVER, begun.time, NEVER)
    if done is None:
        return Operation(0, begun.f, begun.process, *at, "info", begun.micro, begun.extra or NOTHING)
    outcome: Outcome = "info" if done.kind == "invoke" else done.kind
    at = (begun.line, done.line, begun.time, done.time)
    micro = _filled(begun, done)
    extra = NOTHING if begun.extra is done.extra is None else _joined(begun.extra or NOTHING, done.extra or NOTHING)
    return Operation(0, begun.f, begun.process, *at, outcome, micro, extra)


def _filled(begun: Event, done: Event) -> tuple[Micro, ...]:
    """The steps with their results; a result may leave out what the invocation said."""
    if not done.micro:
        return begun.micro
    if begun.f == "produce":
        asked, got = begun.micro[0], done.micro[0]
        if isinstance(asked, Sent) and isinstance(got, Sent):
            if got.partition and got[:2] != asked[:2]:
                raise Malformed(done.line, f"its value or partition is not that of line {begun.line}")
            return (asked._replace(offset=got.offset),)
    asked_sends = [step[:2] for step in begun.micro if isinstance(step, Sent)]
    if asked_sends and asked_sends != [step[:2] for step in done.micro if isinstance(step, Sent)]:
        raise Malformed(done.line, f"its sends are not those of line {begun.line}")
    return done.micro


def _joined(begun: Extra, done: Extra) -> Extra:
    """What the completion says, or else the invocation."""
    return attrs.evolve(
        done,
        acks=done.acks or begun.acks,
        group=done.group or begun.group,
        partitions=done.partitions or begun.partitions,
        seek=done.seek or begun.seek,
    )


class _Consumer:
    """Where one process reads: its stint per partition, and whether it subscribed."""

    def __init__(self) -> None:
        self.stints: dict[str, int] = {}
        self.subscribed = False


class Exploding:
    """The one pass that hands every operation to the partitions that it touches, in order of invocation.

    `acks` is that of sends which do not say it; stints are numbered from `stints` on. A process needs no other one.
    """

    def __init__(self, partitions: dict[str, Partition], acks: str, stints: int = 0) -> None:
        self.partitions = partitions
        self.acks = acks
        self.consumers: dict[str, _Consumer] = {}
        self.stints = stints

    def partition(self, name: str) -> Partition:
        found = self.partitions.get(name)
        if found is None:
            found = self.partitions[name] = Partition(name)
        return found

    def consumed(self, op: Operation) -> None:
        """What the operation reads, or does to where its process reads."""
        if op.f == "produce":
            return
        consumer = self.consumers.get(op.process)
        if consumer is None:
            consumer = self.consumers[op.process] = _Consumer()
        if op.f in ("assign", "subscribe"):
            self.assigned(op, consumer)
        elif op.f == "crash":
            consumer.stints = {}
        else:
            self.polled(op, consumer)

    def stint(self, consumer: _Consumer, partition: str) -> int:
        found = consumer.stints.get(partition)
        if found is None:
            self.stints += 1
            found = consumer.stints[partition] = self.stints
        return found

    def assigned(self, op: Operation, consumer: _Consumer) -> None:
        """Positions of partitions that are not kept are dropped, those of all others by a seek."""
        if op.outcome == "fail":
            return
        consumer.subscribed = op.f == "subscribe"
        kept = () if op.extra.seek else op.extra.partitions
        consumer.stints = {p: consumer.stints[p] for p in kept if p in consumer.stints}
        if op.f == "assign" and op.extra.seek == "beginning" and op.outcome == "ok":
            for name in op.extra.partitions:
                self.partition(name).rewinds.append(Rewind(op.invoked, self.stint(consumer, name)))

    def polled(self, op: Operation, consumer: _Consumer) -> None:
        """One batch per partition, all polls of the operation together."""
        found: dict[str, list[Record]] = {}
        for step in op.micro:
            if isinstance(step, Polled):
                for name, records in step.records.items():
                    found[name] = found[name] + records if name in found else records
        at = (op.invoked, op.completed, op.invoked_at, op.completed_at)
        whole = op.f == "final-read"
        for name, records in found.items():
            if name in op.extra.diverged:
                consumer.stints.pop(name, None)
            stint = WHOLE if whole else self.stint(consumer, name)
            excused = name in op.extra.rebalanced
            mode = consumer.subscribed
            batch = Batch(op.number, op.process, op.extra.group, *at, op.outcome, stint, mode, excused, records)
            self.partition(name).batches.append(batch)
            if whole and op.outcome == "ok":
                values = {offset: value for offset, value, _ in records}
                scan = Scan(op.invoked, op.completed, op.extra.start, op.extra.end, values, op.extra.unseen)
                self.partition(name).scans.append(scan)
        for name in op.extra.diverged - found.keys():
            consumer.stints.pop(name, None)

    def sent(self, op: Operation, committed: bool) -> None:
        acks = op.extra.acks or self.acks
        at = (op.process, op.invoked, op.completed, op.invoked_at, op.completed_at)
        for slot, step in enumerate(op.micro):
            if isinstance(step, Sent):
                send = Send(op.number, slot, *at, op.outcome, committed, step.value, step.offset, acks)
                self.partition(step.partition).sends.append(send)


def _explode(history: History) -> None:
    explode = Exploding(history.partitions, history.claims.acks)
    for op in history.operations:
        explode.consumed(op)
    proved = _proved(history)
    for op in history.operations:
        if op.f in ("produce", "txn"):
            explode.sent(op, op.outcome == "ok" or op.number in proved)
    several = any(op.f == "txn" for op in history.operations)
    for partition in history.partitions.values():
        partition.transactional = several


def _proved(history: History) -> set[int]:
    """The operations of unknown outcome of which a send was read."""
    unknown: dict[str, dict[Value, int]] = {}
    for op in history.operations:
        if op.outcome == "info" and op.f in ("produce", "txn"):
            for step in op.micro:
                if isinstance(step, Sent):
                    unknown.setdefault(step.partition, {})[step.value] = op.number
    proved: set[int] = set()
    for name, values in unknown.items():
        partition = history.partitions.get(name)
        proved |= proved_by(partition.batches if partition else (), values)
    return proved


def proved_by(batches: Iterable[Batch], unknown: dict[Value, int]) -> set[int]:
    """Which operations of unknown outcome these reads prove; `unknown` says which one sent a value."""
    return {unknown[value] for batch in batches for _, value, _ in batch.records if value in unknown}
