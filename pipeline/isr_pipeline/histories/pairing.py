"""The pairing of lines to operations, and the shares of operations that partitions get.

No task sees a whole history. The task of a piece pairs operations that begin and end in it. Lines that are left over go
to a bucket of processes, with all operations. The task of a bucket has everything about each of its processes: open
invocations, the positions of a consumer, and the order of operations.
"""

from __future__ import annotations

import marshal
import pickle
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, Required, TypedDict, cast
from zlib import crc32

import attrs
import pyarrow as pa

from isr_anomalies import MalformedHistory
from isr_anomalies.cycles import process_order, several_steps
from isr_anomalies.history import OperationIndexer, Partition, operation_of, pair, still_open
from isr_anomalies.operations import (
    NEVER,
    NOTHING,
    Dump,
    Event,
    Extra,
    Fault,
    Item,
    Micro,
    Operation,
    Polled,
    SentRecord,
)
from isr_anomalies.read_json import header_claims, is_header, item_of, parse_object
from isr_pipeline.histories import plain
from isr_pipeline.histories.chunks import Chunk, objects, texts
from isr_pipeline.histories.rows import SCHEMA, Row, file_of, keep, schema
from isr_pipeline.locations import Location

Packed = tuple[object, ...]
"""A value that marshal can write: of tuples, lists, dicts, sets, texts and numbers, but not of their subclasses."""

Who = tuple[str, object]
"""A process and a token: what pairs a completion with its invocation."""

_dumps = cast("Callable[[object], bytes]", marshal.dumps)


class Box(TypedDict, total=False):
    """What a piece of a file has for one bucket."""

    sends: Required[list[plain.Sending]]
    polls: Required[list[plain.Polling]]
    ops: list[tuple[Packed, object]]
    """Operations that are neither, with their tokens."""
    events: list[Packed]
    dumps: list[Packed]
    held: list[Packed]
    faults: list[Packed]
    settings: dict[str, object]
    ends_at: int
    problem: tuple[int, str]


@attrs.frozen
class Summary:
    """What the driver must know of a bucket before partitions are checked.

    `problem` is a line and what is wrong in it.
    """

    operations: int = 0
    transactional: bool = False
    several: bool = False
    """Whether some operation was done in several steps."""
    joint: bool = False
    """Whether some operation of unknown outcome sends to several partitions."""
    ends_at: int = 0
    faults: tuple[Fault, ...] = ()
    settings: dict[str, object] | None = None
    problem: tuple[int, str] | None = None


_NUMBERS = ("invoked", "completed", "invoked_at", "completed_at", "after", "after_completed")
_WORDS = ("f", "process", "outcome", "error")
OPERATIONS: Final = schema(
    history=pa.int32(), **dict.fromkeys(_NUMBERS, pa.int64()), **dict.fromkeys(_WORDS, pa.string())
)
"""The table of operations. `after` is the line of the operation that process order puts before this one, or -1."""


def packed_steps(micro: tuple[Micro, ...]) -> Packed:
    return tuple(map(tuple, micro))


def packed_extra(extra: Extra | None) -> Packed | None:
    return None if extra is None or extra is NOTHING else attrs.astuple(extra, recurse=False)


def _steps(packed: Packed) -> tuple[Micro, ...]:
    found = cast("tuple[Packed, ...]", packed)
    make = cast("Callable[..., Micro]", SentRecord), cast("Callable[..., Micro]", Polled)
    return tuple(make[len(step) == 1](*step) for step in found)


def _extra(packed: Packed | None) -> Extra:
    return NOTHING if packed is None else cast("Callable[..., Extra]", Extra)(*packed)


def _packed_operation(op: Operation) -> Packed:
    return (*op[:8], packed_steps(op.micro), packed_extra(op.extra))


def _operation(packed: Packed) -> Operation:
    """The operation, with the line of its invocation as its number."""
    make = cast("Callable[..., Operation]", Operation)
    steps, extra = cast("Packed", packed[8]), cast("Packed | None", packed[9])
    return make(packed[3], *packed[1:8], _steps(steps), _extra(extra))


def _packed_event(event: Event) -> Packed:
    extra = None if event.extra is None else attrs.astuple(event.extra, recurse=False)
    return (*event[:6], packed_steps(event.micro), extra)


def _event(packed: Packed) -> Event:
    make = cast("Callable[..., Event]", Event)
    extra = cast("Packed | None", packed[7])
    return make(*packed[:6], _steps(cast("Packed", packed[6])), None if extra is None else _extra(extra))


@attrs.frozen
class Parse:
    """The first stage: the lines of a piece, as operations where both lines are in it, by buckets of processes."""

    buckets: dict[int, int]
    """The number of buckets of each history."""

    def __call__(self, chunk: Chunk) -> Iterator[Row]:
        boxes = _Boxes(self.buckets[chunk.history])
        try:
            if chunk.parquet:
                for line, table in objects(chunk):
                    boxes.read(line, table)
            else:
                for line, text in texts(chunk):
                    told = plain.line_of(text)
                    if (told is None or not boxes.plainly(line, told)) and text.strip():
                        boxes.read(line, parse_object(line, text))
        except MalformedHistory as problem:
            boxes.whole["problem"] = (problem.line, str(problem))
        boxes.close()
        for bucket, box in boxes.boxes.items():
            yield Row(chunk.history, str(bucket), _dumps(box))


class _Boxes:
    """The shares of buckets, while a piece is read."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.boxes: dict[int, Box] = {}
        self.whole = self.box(0)
        self.operations: list[Operation] = []
        self.open: dict[Who, Event | plain.Invocation] = {}
        self.seen_invocations: set[Who] = set()
        self.of_process: dict[str, Box] = {}
        self.ends_at = 0

    def box(self, bucket: int) -> Box:
        found = self.boxes.get(bucket)
        if found is None:
            found = self.boxes[bucket] = Box(sends=[], polls=[], ops=[], events=[], dumps=[], held=[], faults=[])
        return found

    def of(self, name: str) -> Box:
        return self.box(crc32(name.encode()) % self.buckets)

    def plainly(self, line: int, plain_line: plain.Line) -> bool:
        """Take a plain line, unless something about it is not: then nothing has happened."""
        process = str(plain_line.process)
        who = (process, plain_line.id)
        invocation = self.open.get(who)
        if invocation is None:
            if not plain.begins(plain_line):
                return False
            self.open[who] = (line, plain_line)
            self.seen_invocations.add(who)
        elif isinstance(invocation, Event):
            return False
        else:
            op = plain.operation_of_lines(invocation, line, plain_line)
            if op is None:
                return False
            box = self.of_process.get(process)
            if box is None:
                box = self.of_process[process] = self.of(process)
            cast("list[object]", box["polls" if plain_line.f == "poll" else "sends"]).append(op)
            del self.open[who]
        if plain_line.time > self.ends_at:
            self.ends_at = plain_line.time
        return True

    def read(self, line: int, table: dict[str, object]) -> None:
        if is_header(table):
            self.whole["settings"] = dict(attrs.asdict(header_claims(line, table)))
        else:
            self.add(item_of(line, table))

    def add(self, item: Item) -> None:
        if isinstance(item, Event):
            self.ends_at = max(self.ends_at, item.time)
            who: Who = (item.process, item.token)
            if item.kind != "invoke" and who not in self.seen_invocations:
                self.of(item.process).setdefault("events", []).append(_packed_event(item))  # begun in a piece before
            else:
                begun = self.open.get(who)
                open_one: dict[Who, Event] = {} if begun is None else {who: _invocation_event(begun)}
                pair(self.operations, open_one, item)  # if that refuses, the invocation goes on being open
                self.open.pop(who, None)
                self.open |= open_one
            self.seen_invocations.add(who)
            if self.operations:
                op = self.operations.pop()
                self.of(op.process).setdefault("ops", []).append((_packed_operation(op), item.token))
        elif isinstance(item, Fault):
            self.ends_at = max(self.ends_at, item.time)
            self.whole.setdefault("faults", []).append(tuple(item))
        elif isinstance(item, Dump):
            self.of(item.partition).setdefault("dumps", []).append(tuple(item))
        else:
            self.of(item.partition).setdefault("held", []).append(tuple(item))

    def close(self) -> None:
        self.whole["ends_at"] = self.ends_at
        for begun in self.open.values():
            event = _invocation_event(begun)
            self.of(event.process).setdefault("events", []).append(_packed_event(event))


def _invocation_event(invocation: Event | plain.Invocation) -> Event:
    return invocation if isinstance(invocation, Event) else plain.event(invocation)


@attrs.frozen
class Pair:
    """The second stage: pair what is left of a bucket of processes.

    Write its operations and the shares of partitions.
    """

    folder: Location

    def __call__(self, history: int, bucket: str, payloads: list[bytes]) -> Iterator[Row]:
        boxes = [cast("Box", marshal.loads(payload)) for payload in payloads]
        settings = next((box["settings"] for box in boxes if "settings" in box), None)
        problems = [box["problem"] for box in boxes if "problem" in box]
        faults = sorted((_fault(f) for box in boxes for f in box.get("faults", ())), key=lambda fault: fault.line)
        ends_at = max((box.get("ends_at", 0) for box in boxes), default=0)
        summary = Summary(ends_at=ends_at, faults=tuple(faults), settings=settings)
        try:
            bucket_operations = all_paired(boxes)
        except MalformedHistory as problem:
            problems.append((problem.line, str(problem)))
            bucket_operations = PairedOperations([], [], [])
        if problems:
            yield Row(history, bucket, _summary_bytes(attrs.evolve(summary, problem=min(problems))))
            return
        shares = shares_of(bucket_operations, boxes, int(bucket) << 40)
        keys = list(shares)
        given = {"history": [history] * len(keys), "key": keys, "payload": [_dumps(shares[key]) for key in keys]}
        keep(file_of(self.folder, "shares", history, bucket), given, SCHEMA)
        ran = sorted(bucket_operations.rows())
        keep(file_of(self.folder, "operations", history, bucket), columns(history, ran), OPERATIONS)
        transactions = [op for op in bucket_operations.ops if op.f == "txn"]
        summary = attrs.evolve(
            summary,
            operations=len(ran),
            transactional=bool(transactions),
            several=any(map(several_steps, transactions)),
            joint=any(_joint(op) for op in transactions),
        )
        yield Row(history, bucket, _summary_bytes(summary))


def _fault(packed: Packed) -> Fault:
    return cast("Callable[..., Fault]", Fault)(*packed)


def _summary_bytes(summary: Summary) -> bytes:
    return pickle.dumps(summary)


Ran = tuple[int, int, int, int, str, str, str, str]
"""An operation in the table of them: lines and times of invocation and completion, process, outcome, f, error."""


class PairedOperations(NamedTuple):
    """The operations of all processes of a bucket; `ops` has those that are not plain, numbered by the line of their
    invocation."""

    sends: list[plain.Sending]
    polls: list[plain.Polling]
    ops: list[Operation]

    def rows(self) -> Iterator[Ran]:
        for send in self.sends:
            yield (*send[:5], send[6], "produce", "")
        for poll in self.polls:
            yield (*poll[:5], poll[6], "poll", "")
        yield from map(row_of, self.ops)


def row_of(op: Operation) -> Ran:
    at = (op.invoked, op.completed, op.invoked_at, op.completed_at)
    return (*at, op.process, str(op.outcome), op.f, op.extra.error)


def all_paired(boxes: list[Box]) -> PairedOperations:
    """All operations, with those whose lines are in several pieces.

    A piece has seen to it that nobody invokes what it ends while something else is open; unless that began in a piece
    before.
    """
    sends = [send for box in boxes for send in box["sends"]]
    polls = [poll for box in boxes for poll in box["polls"]]
    ops = [(_operation(packed), token) for box in boxes for packed, token in box.get("ops", ())]
    events = sorted((_event(packed) for box in boxes for packed in box.get("events", ())), key=lambda one: one.line)
    lines: dict[Who, list[int]] = {(event.process, event.token): [] for event in events}
    for one in (sends, polls):
        for row in one:
            if (mine := lines.get((row[4], row[5]))) is not None:
                mine.append(row[0])
    for op, token in ops:
        if (mine := lines.get((op.process, token))) is not None:
            mine.append(op.invoked)
    for mine in lines.values():
        mine.sort()
    operations, problems = list[Operation](), list[MalformedHistory]()
    open_ones: dict[Who, Event] = {}

    def look(invocation: Event, until: int) -> None:
        """Note a problem if its process invoked anything else before this line."""
        mine = lines[invocation.process, invocation.token]
        at = bisect_right(mine, invocation.line)
        if at < len(mine) and mine[at] < until:
            problems.append(still_open(mine[at], invocation))

    for event in events:
        if (invocation := open_ones.get((event.process, event.token))) is not None:
            look(invocation, event.line)
        try:
            pair(operations, open_ones, event)
        except MalformedHistory as problem:
            problems.append(problem)
            break
    for invocation in open_ones.values():
        look(invocation, NEVER)
    if problems:
        raise min(problems, key=lambda problem: problem.line)
    operations += [operation_of(event, None) for event in open_ones.values()]
    return PairedOperations(sends, polls, [op for op, _ in ops] + [op._replace(number=op.invoked) for op in operations])


def _targets(op: Operation) -> set[str]:
    return {step.partition for step in op.micro if isinstance(step, SentRecord)}


def _joint(op: Operation) -> bool:
    return op.outcome == "info" and len(_targets(op)) > 1


def shares_of(bucket_operations: PairedOperations, boxes: list[Box], stints: int) -> dict[str, dict[str, object]]:
    """Partition -> its share, by kind of row.

    `plain sends`: as they are; `plain batches`: those of plain polls. `multi`: operations of several steps with a send;
    `joint`: operations of unknown outcome that send to several partitions, with the names of these.
    """
    partitions = dict[str, Partition]()
    explode = OperationIndexer(partitions, acks="", stints=stints)
    ops = sorted(bucket_operations.ops, key=lambda op: op.invoked)
    batches: dict[str, list[Packed]] = {}
    moves = iter([op for op in ops if op.f != "produce"])
    move = next(moves, None)
    for poll in sorted(bucket_operations.polls, key=itemgetter(0)):
        while move is not None and move.invoked < poll[0]:
            explode.consumed(move)
            move = next(moves, None)
        consumer = explode.consumer(poll[4])
        for name, records in poll[7].items():
            stint = explode.stint(consumer, name)
            batch = (poll[0], poll[4], poll[8], *poll[:4], poll[6], stint, consumer.subscribed, False, records)
            batches.setdefault(name, []).append(batch)
    while move is not None:
        explode.consumed(move)
        move = next(moves, None)
    for op in ops:
        if op.f in ("produce", "txn"):
            explode.index_sends(op, op.outcome == "ok")
    shares: dict[str, dict[str, object]] = {}
    for name, partition in partitions.items():
        shares[name] = {
            "sends": list(map(tuple, partition.sends)),
            "batches": list(map(tuple, partition.batches)),
            "scans": list(map(tuple, partition.scans)),
            "rewinds": list(map(tuple, partition.rewinds)),
        }
    sends: dict[str, list[plain.Sending]] = {}
    for send in bucket_operations.sends:
        sends.setdefault(send[7], []).append(send)
    for name, mine in sends.items():
        shares.setdefault(name, {})["plain sends"] = mine
    for name, polled in batches.items():
        shares.setdefault(name, {})["plain batches"] = polled

    def give(name: str, what: str, one: object) -> None:
        cast("list[object]", shares.setdefault(name, {}).setdefault(what, [])).append(one)

    for box in boxes:
        for what, rows in (("dumps", box.get("dumps", ())), ("held", box.get("held", ()))):
            for row in rows:
                give(str(row[2]), what, row)  # the partition is the third field of both
    for op in ops:
        targets = _targets(op) if op.f == "txn" and len(op.micro) > 1 else set[str]()
        if targets:
            touched = targets.union(*(step.records for step in op.micro if isinstance(step, Polled)))
            for name in touched:
                give(name, "multi", op.number)
            for name in targets if _joint(op) else ():
                give(name, "joint", (op.number, sorted(targets)))
    return shares


def columns(history: int, ran: list[Ran]) -> dict[str, Sequence[int] | Sequence[str]]:
    """The columns of the table of operations, which are given in order of invocation."""
    after: list[int] = []
    after_completed: list[int] = []
    for before in process_order((one[0], one[1], one[4], one[5]) for one in ran):
        after.append(before[0] if before else -1)
        after_completed.append(before[1] if before else -1)
    names = ("invoked", "completed", "invoked_at", "completed_at", "process", "outcome", "f", "error")
    turned = cast("list[Sequence[int] | Sequence[str]]", list(zip(*ran, strict=True)) or [()] * len(names))
    given = dict(zip(names, turned, strict=True))
    return {"history": [history] * len(ran), **given, "after": after, "after_completed": after_completed}
