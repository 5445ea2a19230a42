"""Histories: lines are paired to operations, and operations indexed by the partitions that they touch.

Three things need the whole history, and are decided here: which completion belongs to which invocation; how long a
consumer kept a partition; and which operations of unknown outcome were done after all. For the last one Jepsen's rule
holds: if one of the values that an operation sent was read, all of its sends were done. Everything else in the checker
gets one partition at a time.
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
    HeldRecord,
    Item,
    MalformedHistory,
    Micro,
    Operation,
    Outcome,
    Polled,
    Record,
    SentRecord,
    Value,
)

WHOLE: Final = -1
"""The stint of a final read, which does not continue the position of any poll."""


class Send(NamedTuple):
    """A send of one value to this partition. `slot` orders the sends of one operation."""

    op: int
    slot: int
    process: str
    invoked: int
    completed: int
    invoked_at: int
    completed_at: int
    outcome: Outcome
    committed: bool
    """Whether the send was done: its outcome is ok, or it is unknown and the operation is proved by a read."""
    value: Value
    offset: int | None
    acks: str


class Batch(NamedTuple):
    """The records that one operation polled from this partition, in the order of delivery.

    A stint is a time in which a consumer keeps its position. `during_rebalance`: the partition was rebalanced during
    the poll.
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
    during_rebalance: bool
    records: list[Record]


class Scan(NamedTuple):
    """A complete read of the offsets [start, end) of this partition. `unseen`: see Extra."""

    invoked: int
    completed: int
    start: int
    end: int
    values: dict[int, Value]
    unseen: frozenset[int] | None


class Rewind(NamedTuple):
    """A consumer sought to the beginning; the polls of its stint may add up to a complete read."""

    invoked: int
    stint: int


@attrs.define
class Partition:
    """What the history says of one partition; its checks need nothing else."""

    name: str
    sends: list[Send] = attrs.field(factory=list[Send])
    batches: list[Batch] = attrs.field(factory=list[Batch])
    scans: list[Scan] = attrs.field(factory=list[Scan])
    rewinds: list[Rewind] = attrs.field(factory=list[Rewind])
    dumps: list[Dump] = attrs.field(factory=list[Dump])
    log_reports: list[HeldRecord] = attrs.field(factory=list[HeldRecord])
    transactional: bool = False
    """Whether there may be control records: the history has operations of several steps."""


@attrs.define
class History:
    """A whole history; `partitions` is an index of its operations."""

    claims: Claims
    operations: list[Operation] = attrs.field(factory=list[Operation])
    faults: list[Fault] = attrs.field(factory=list[Fault])
    partitions: dict[str, Partition] = attrs.field(factory=dict[str, Partition])
    ends_at: int = 0


def pair_operations(items: Iterable[Item | Claims], claims: Claims | None = None) -> History:
    """Pair the lines of a history to operations, in order of invocation; `claims` override those of its header.

    Of several claims the last ones count: a caller may give its own first, and a file has one header.
    """
    history = History(claims or Claims())
    open_ones: dict[tuple[str, object], Event] = {}
    dumps: list[Dump | HeldRecord] = []
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
    _index_operations(history)
    for one in dumps:
        of = history.partitions.setdefault(one.partition, Partition(one.partition))
        if isinstance(one, Dump):
            of.dumps.append(one)
        else:
            of.log_reports.append(one)
    return history


def pair(operations: list[Operation], open_ones: dict[tuple[str, object], Event], event: Event) -> None:
    """Take one event: it opens an operation, or completes one, which is added to `operations`."""
    who = (event.process, event.token)
    invocation = open_ones.pop(who, None)
    if event.kind == "invoke":
        if invocation is not None:
            raise still_open(event.line, invocation)
        if any(step.offset is not None if isinstance(step, SentRecord) else step.records for step in event.micro):
            raise MalformedHistory(event.line, "an invocation has a result: offsets and records are of the completion")
        open_ones[who] = event
    elif invocation is not None:
        if invocation.f != event.f:
            raise MalformedHistory(event.line, f"a {event.f} completes the {invocation.f} of line {invocation.line}")
        if event.time < invocation.time:
            raise MalformedHistory(event.line, f"ends before it was invoked (line {invocation.line})")
        operations.append(operation_of(invocation, event))
    else:
        raise MalformedHistory(event.line, f"process {event.process} completes a {event.f} that it never invoked")


def still_open(line: int, invocation: Event) -> MalformedHistory:
    """The error for a process that invokes an operation while an earlier one of it is open."""
    before = f"its {invocation.f} of line {invocation.line}"
    what = f"process {invocation.process} invokes while {before} is open (give them ids)"
    return MalformedHistory(line, what)


def operation_of(invocation: Event, completion: Event | None) -> Operation:
    """The operation of an invocation and its completion, if there is one; its number is 0 for now."""
    at = (invocation.line, NEVER, invocation.time, NEVER)
    if completion is None:
        return Operation(
            0, invocation.f, invocation.process, *at, "info", invocation.micro, invocation.extra or NOTHING
        )
    outcome: Outcome = "info" if completion.kind == "invoke" else completion.kind
    at = (invocation.line, completion.line, invocation.time, completion.time)
    micro = _result_steps(invocation, completion)
    extra = NOTHING if invocation.extra is completion.extra is None else _merged_extra(invocation, completion)
    return Operation(0, invocation.f, invocation.process, *at, outcome, micro, extra)


def _result_steps(invocation: Event, completion: Event) -> tuple[Micro, ...]:
    """The steps of the operation with their results; a completion may leave out what the invocation said."""
    if not completion.micro:
        return invocation.micro
    if invocation.f == "produce":
        send, result = invocation.micro[0], completion.micro[0]
        if isinstance(send, SentRecord) and isinstance(result, SentRecord):
            says_other_value = result.value != send.value and (result.partition or result.value is not None)
            if result.partition not in ("", send.partition) or says_other_value:
                raise MalformedHistory(completion.line, f"its value or partition is not that of line {invocation.line}")
            return (send._replace(offset=result.offset),)
    asked_sends = [step[:2] for step in invocation.micro if isinstance(step, SentRecord)]
    if asked_sends != [step[:2] for step in completion.micro if isinstance(step, SentRecord)]:
        raise MalformedHistory(completion.line, f"its sends are not those of line {invocation.line}")
    return completion.micro


def _merged_extra(invocation: Event, completion: Event) -> Extra:
    """The fields of the completion, or else those of the invocation; Malformed where these contradict each other."""
    before, after = invocation.extra or NOTHING, completion.extra or NOTHING
    fields = (
        ("acks", before.acks, after.acks),
        ("group", before.group, after.group),
        ("seek", before.seek, after.seek),
        ("partition" if invocation.f == "final-read" else "partitions", set(before.partitions), set(after.partitions)),
    )
    other = [name for name, one, two in fields if one and two and one != two]
    other += ["start"] if before.start and completion.kind == "ok" and before.start != after.start else []
    if other:
        verb = "are" if other[0] == "partitions" else "is"
        named = "those" if other[0] == "partitions" else "that"
        raise MalformedHistory(completion.line, f"its {other[0]} {verb} not {named} of line {invocation.line}")
    return attrs.evolve(
        after,
        acks=after.acks or before.acks,
        group=after.group or before.group,
        partitions=after.partitions or before.partitions,
        seek=after.seek or before.seek,
    )


class Consumer:
    """Where one process reads: its stint per partition, and whether it subscribed."""

    def __init__(self) -> None:
        self.stints: dict[str, int] = {}
        self.subscribed = False


class OperationIndexer:
    """Adds operations, in order of invocation, to the partitions that they touch.

    `acks` is for sends that do not say theirs. Stints are numbered from `stints` on. The operations of one process can
    be indexed without those of any other.
    """

    def __init__(self, partitions: dict[str, Partition], acks: str, stints: int = 0) -> None:
        self.partitions = partitions
        self.acks = acks
        self.consumers: dict[str, Consumer] = {}
        self.stints = stints

    def partition(self, name: str) -> Partition:
        found = self.partitions.get(name)
        if found is None:
            found = self.partitions[name] = Partition(name)
        return found

    def consumer(self, process: str) -> Consumer:
        found = self.consumers.get(process)
        if found is None:
            found = self.consumers[process] = Consumer()
        return found

    def consumed(self, op: Operation) -> None:
        """Index what the operation reads, and how it moves its process's positions."""
        if op.f == "produce":
            return
        consumer = self.consumer(op.process)
        if op.f in ("assign", "subscribe"):
            self.assigned(op, consumer)
        elif op.f == "crash":
            consumer.stints = {}
        else:
            self.polled(op, consumer)

    def stint(self, consumer: Consumer, partition: str) -> int:
        found = consumer.stints.get(partition)
        if found is None:
            self.stints += 1
            found = consumer.stints[partition] = self.stints
        return found

    def assigned(self, op: Operation, consumer: Consumer) -> None:
        """Drop the positions of partitions that are no longer assigned; a seek drops all of them."""
        if op.outcome == "fail":
            return
        consumer.subscribed = op.f == "subscribe"
        kept = () if op.extra.seek else op.extra.partitions
        consumer.stints = {p: consumer.stints[p] for p in kept if p in consumer.stints}
        if op.f == "assign" and op.extra.seek == "beginning" and op.outcome == "ok":
            for name in op.extra.partitions:
                self.partition(name).rewinds.append(Rewind(op.invoked, self.stint(consumer, name)))

    def polled(self, op: Operation, consumer: Consumer) -> None:
        """Index one batch for each partition, with all polls of the operation."""
        polls = [step.records for step in op.micro if isinstance(step, Polled)]
        records_by_partition = polls[0] if len(polls) == 1 else _together(polls)
        at = (op.invoked, op.completed, op.invoked_at, op.completed_at)
        whole = op.f == "final-read"
        for name, records in records_by_partition.items():
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
        for name in op.extra.diverged:
            if name not in records_by_partition:
                consumer.stints.pop(name, None)

    def index_sends(self, op: Operation, committed: bool) -> None:
        acks = op.extra.acks or self.acks
        at = (op.process, op.invoked, op.completed, op.invoked_at, op.completed_at)
        for slot, step in enumerate(op.micro):
            if isinstance(step, SentRecord):
                send = Send(op.number, slot, *at, op.outcome, committed, step.value, step.offset, acks)
                self.partition(step.partition).sends.append(send)


def _together(polls: list[dict[str, list[Record]]]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for poll in polls:
        for name, records in poll.items():
            found[name] = found[name] + records if name in found else records
    return found


def _index_operations(history: History) -> None:
    explode = OperationIndexer(history.partitions, history.claims.acks)
    for op in history.operations:
        explode.consumed(op)
    proved = _proved(history)
    for op in history.operations:
        if op.f in ("produce", "txn"):
            explode.index_sends(op, op.outcome == "ok" or op.number in proved)
    several = any(op.f == "txn" for op in history.operations)
    for partition in history.partitions.values():
        partition.transactional = several


def _proved(history: History) -> set[int]:
    """The operations of unknown outcome of which some value was read."""
    unknown: dict[str, dict[Value, int]] = {}
    for op in history.operations:
        if op.outcome == "info" and op.f in ("produce", "txn"):
            for step in op.micro:
                if isinstance(step, SentRecord):
                    unknown.setdefault(step.partition, {})[step.value] = op.number
    proved: set[int] = set()
    for name, values in unknown.items():
        partition = history.partitions.get(name)
        proved |= proved_by(partition.batches if partition else (), values)
    return proved


def proved_by(batches: Iterable[Batch], unknown: dict[Value, int]) -> set[int]:
    """Which operations of unknown outcome these reads prove; `unknown` says which one sent a value."""
    return {unknown[value] for batch in batches for _, value, _ in batch.records if value in unknown}
