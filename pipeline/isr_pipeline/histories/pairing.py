"""The pairing of lines to operations, and the shares of operations that partitions get.

No task sees a whole history. The task of a piece pairs operations that begin and end in it. Lines that are left over go
to a bucket of processes, with all operations. The task of a bucket has everything about each of its processes: open
invocations, the positions of a consumer, and the order of operations.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Callable, Iterator
from typing import Final, TypedDict, cast
from zlib import crc32

import attrs
import pyarrow as pa

from isr_anomalies import Claims, Malformed
from isr_anomalies.cycles import process_edges
from isr_anomalies.history import History, OperationIndexer, Partition, operation_of, pair, still_open
from isr_anomalies.operations import NOTHING, Dump, Event, Extra, Fault, Item, Micro, Operation, Polled, Sent
from isr_anomalies.read_json import claims_of, item_of
from isr_pipeline.histories.chunks import Chunk, objects
from isr_pipeline.histories.rows import SCHEMA, Row, file_of, keep, schema
from isr_pipeline.locations import Location

Packed = tuple[object, ...]
"""A value that marshal can write: of tuples, lists, dicts, sets, texts and numbers, but not of their subclasses."""

_dumps = cast("Callable[[object], bytes]", marshal.dumps)


class Box(TypedDict, total=False):
    """What a piece of a file has for one bucket."""

    ops: list[tuple[Packed, object]]
    events: list[Packed]
    dumps: list[Packed]
    held: list[Packed]
    faults: list[Packed]
    settings: tuple[int, dict[str, object]]
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
    """Whether some operation has several steps."""
    joint: bool = False
    """Whether some operation of unknown outcome sends to several partitions."""
    ends_at: int = 0
    faults: tuple[Fault, ...] = ()
    settings: tuple[int, dict[str, object]] | None = None
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
    make = cast("Callable[..., Micro]", Sent), cast("Callable[..., Micro]", Polled)
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
    """The number of buckets of each history."""

    buckets: dict[int, int]
    """The claims of each history."""

    def __call__(self, chunk: Chunk) -> Iterator[Row]:
        boxes = _Boxes(self.buckets[chunk.history])
        try:
            for line, table in objects(chunk):
                if "settings" in table:
                    claims = claims_of(line, table["settings"])
                    boxes.whole["settings"] = (line, dict(attrs.asdict(claims)))
                else:
                    boxes.add(item_of(line, table))
        except Malformed as problem:
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
        self.done: list[Operation] = []
        self.open: dict[tuple[str, object], Event] = {}
        self.known: set[tuple[str, object]] = set()

    def box(self, bucket: int) -> Box:
        found = self.boxes.get(bucket)
        if found is None:
            found = self.boxes[bucket] = Box(ops=[], events=[], dumps=[], held=[], faults=[], ends_at=0)
        return found

    def of(self, name: str) -> Box:
        return self.box(crc32(name.encode()) % self.buckets)

    def add(self, item: Item) -> None:
        if isinstance(item, Event):
            self.whole["ends_at"] = max(self.whole.get("ends_at", 0), item.time)
            who = (item.process, item.token)
            if item.kind != "invoke" and who not in self.known:
                self.of(item.process).setdefault("events", []).append(_packed_event(item))  # begun in a piece before
            else:
                pair(self.done, self.open, item)
            self.known.add(who)
            if self.done:
                op = self.done.pop()
                self.of(op.process).setdefault("ops", []).append((_packed_operation(op), item.token))
        elif isinstance(item, Fault):
            self.whole["ends_at"] = max(self.whole.get("ends_at", 0), item.time)
            self.whole.setdefault("faults", []).append(tuple(item))
        elif isinstance(item, Dump):
            self.of(item.partition).setdefault("dumps", []).append(tuple(item))
        else:
            self.of(item.partition).setdefault("held", []).append(tuple(item))

    def close(self) -> None:
        for event in self.open.values():
            self.of(event.process).setdefault("events", []).append(_packed_event(event))


@attrs.frozen
class Pair:
    """The second stage: pair what is left of a bucket of processes.

    Write its operations and the shares of partitions.
    """

    folder: Location

    def __call__(self, history: int, bucket: str, payloads: list[bytes]) -> Iterator[Row]:
        boxes = [cast("Box", marshal.loads(payload)) for payload in payloads]
        settings = max((box["settings"] for box in boxes if "settings" in box), key=lambda s: s[0], default=None)
        problems = [box["problem"] for box in boxes if "problem" in box]
        faults = sorted((_fault(f) for box in boxes for f in box.get("faults", ())), key=lambda fault: fault.line)
        ends_at = max((box.get("ends_at", 0) for box in boxes), default=0)
        summary = Summary(ends_at=ends_at, faults=tuple(faults), settings=settings)
        try:
            ops = _all_paired(boxes)
        except Malformed as problem:
            problems.append((problem.line, str(problem)))
            ops = []
        if problems:
            yield Row(history, bucket, _summarised(attrs.evolve(summary, problem=min(problems))))
            return
        partitions = dict[str, Partition]()
        explode = OperationIndexer(partitions, acks="", stints=int(bucket) << 40)
        for op in ops:
            explode.consumed(op)
            if op.f in ("produce", "txn"):
                explode.sent(op, op.outcome == "ok")
        shares = _shares(partitions, ops, boxes)
        keys = list(shares)
        given = {"history": [history] * len(keys), "key": keys, "payload": [_dumps(shares[key]) for key in keys]}
        keep(file_of(self.folder, "shares", history, bucket), given, SCHEMA)
        keep(file_of(self.folder, "operations", history, bucket), columns(history, ops), OPERATIONS)
        transactions = [op for op in ops if op.f == "txn"]
        summary = attrs.evolve(
            summary,
            operations=len(ops),
            transactional=bool(transactions),
            several=any(len(op.micro) > 1 for op in transactions),
            joint=any(_joint(op) for op in transactions),
        )
        yield Row(history, bucket, _summarised(summary))


def _fault(packed: Packed) -> Fault:
    return cast("Callable[..., Fault]", Fault)(*packed)


def _summarised(summary: Summary) -> bytes:
    return pickle.dumps(summary)


def _all_paired(boxes: list[Box]) -> list[Operation]:
    """The operations of all processes of a bucket in order of invocation, numbered by the line of it."""
    ops = [(_operation(packed), token) for box in boxes for packed, token in box.get("ops", ())]
    events = [_event(packed) for box in boxes for packed in box.get("events", ())]
    done = [op for op, _ in ops]
    if events:
        done = list[Operation]()
        open_ones: dict[tuple[str, object], Event] = {}
        whole: list[tuple[int, Operation | Event, object]] = [(op.invoked, op, token) for op, token in ops]
        whole += [(event.line, event, event.token) for event in events]
        whole.sort(key=lambda one: one[0])
        for line, one, token in whole:
            if isinstance(one, Event):
                pair(done, open_ones, one)
            elif (begun := open_ones.get((one.process, token))) is not None:
                raise still_open(line, begun)
            else:
                done.append(one)
        done += [operation_of(event, None) for event in open_ones.values()]
    done.sort(key=lambda op: op.invoked)
    return [op if op.number == op.invoked else op._replace(number=op.invoked) for op in done]


def _targets(op: Operation) -> set[str]:
    return {step.partition for step in op.micro if isinstance(step, Sent)}


def _joint(op: Operation) -> bool:
    return op.outcome == "info" and len(_targets(op)) > 1


def _shares(partitions: dict[str, Partition], ops: list[Operation], boxes: list[Box]) -> dict[str, dict[str, object]]:
    """Partition -> its share, by kind of row.

    `multi`: operations of several steps with a send; `joint`: operations of unknown outcome that send to several
    partitions, with the names of these.
    """
    shares: dict[str, dict[str, object]] = {}
    for name, partition in partitions.items():
        shares[name] = {
            "sends": list(map(tuple, partition.sends)),
            "batches": list(map(tuple, partition.batches)),
            "scans": list(map(tuple, partition.scans)),
            "rewinds": list(map(tuple, partition.rewinds)),
        }

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


def columns(history: int, ops: list[Operation]) -> dict[str, list[int] | list[str]]:
    """The columns of the table of operations."""
    of = History(Claims(), operations=ops)
    after = {second: first for first, second in process_edges(of)}
    ended = {op.number: op.completed for op in ops}
    return {
        "history": [history] * len(ops),
        "invoked": [op.invoked for op in ops],
        "completed": [op.completed for op in ops],
        "invoked_at": [op.invoked_at for op in ops],
        "completed_at": [op.completed_at for op in ops],
        "f": [op.f for op in ops],
        "process": [op.process for op in ops],
        "outcome": [str(op.outcome) for op in ops],
        "error": [op.extra.error for op in ops],
        "after": [after.get(op.number, -1) for op in ops],
        "after_completed": [ended[after[op.number]] if op.number in after else -1 for op in ops],
    }
