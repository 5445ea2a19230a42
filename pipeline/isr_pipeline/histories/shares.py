"""One partition: its shares of operations put together, checked, and its contribution to cycles."""

from __future__ import annotations

import marshal
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

import attrs
import numpy as np
import pyarrow as pa

from isr_anomalies import ANOMALIES, Claims, Partition, PartitionResult, check_partition
from isr_anomalies.cycles import Order
from isr_anomalies.history import Batch, Rewind, Scan, Send, proved_by
from isr_anomalies.operations import Dump, HeldRecord
from isr_pipeline.histories.rows import Numbers, Row, file_of, keep
from isr_pipeline.locations import Location

BLOCKS: Final = 1 << 16
"""The most blocks of lines in a history. A partition names the blocks in which a cycle through it may lie."""
OUTCOMES: Final = ("ok", "fail", "info")
WW, WR = 0, 1

_NAMES = ("kind", "u", "u_completed", "u_outcome", "u_reach", "v", "v_completed", "v_outcome", "v_reach")
EDGES: Final = pa.schema(dict.fromkeys(_NAMES, pa.int64()))
"""The table of edges from operation u to v: lines of invocation and completion, outcomes, and reaches (see `Reach`)."""

T = TypeVar("T")
Lists = dict[str, list[tuple[object, ...]]]


class PartitionJudgement(NamedTuple):
    """The result of a partition for the driver; `blocks` has a bit for each block with possible cycles."""

    result: PartitionResult
    blocks: bytes
    edges: int


@attrs.frozen
class Terms:
    """The terms on which the partitions of a history are checked."""

    claims: Claims
    transactional: bool
    anomaly_names: tuple[str, ...]
    per_block: int
    """The number of lines in a block."""
    graphs: bool
    """Whether edges are written, because cycles are wanted."""


class Share(NamedTuple):
    """A partition as the local checker has it, except operations that only a read of another partition proves.

    `multi`, `joint`: see pairing.shares_of. `proved`: operations that another partition has proved.
    """

    partition: Partition
    multi: set[int]
    joint: list[tuple[int, list[str]]]
    proved: set[int]


_make = cast("Callable[[object, tuple[object, ...]], object]", vars(tuple)["__new__"])
"""Makes a named tuple of a row, as its own `_make` does, but is no Python."""


def together(name: str, payloads: list[bytes], acks: str = "") -> Share:
    """Put a partition together from the shares of all buckets; `acks` is for sends that do not say theirs."""
    boxes = [cast("Lists", marshal.loads(payload)) for payload in payloads]

    def of(what: str) -> Iterator[tuple[object, ...]]:
        return (one for box in boxes for one in box.get(what, ()))

    def make_rows(kind: type[T], rows: Iterable[tuple[object, ...]]) -> list[T]:
        return cast("list[T]", list(map(partial(_make, kind), rows)))

    sends = [row if row[-1] else (*row[:-1], acks) for row in of("sends")]
    for line, completed, at, completed_at, who, _, outcome, _, value, offset, own in of("plain sends"):
        done = outcome == "ok"
        sends.append((line, 0, who, line, completed, at, completed_at, outcome, done, value, offset, own or acks))
    # rows begin with lines, or with lines and slots, of which no two are equal
    sends.sort()
    partition = Partition(
        name,
        make_rows(Send, sends),
        make_rows(Batch, sorted((*of("batches"), *of("plain batches")))),
        make_rows(Scan, sorted(of("scans"))),
        make_rows(Rewind, sorted(of("rewinds"))),
        make_rows(Dump, sorted(of("dumps"))),
        make_rows(HeldRecord, sorted(of("held"))),
    )
    multi, proved = (set(cast("Iterator[int]", of(what))) for what in ("multi", "proved"))
    return Share(partition, multi, list(cast("Iterator[tuple[int, list[str]]]", of("joint"))), proved)


def proved_here(partition: Partition) -> set[int]:
    """The operations of unknown outcome that a read of this partition proves."""
    unknown = {send.value: send.op for send in partition.sends if send.outcome == "info"}
    return proved_by(partition.batches, unknown) if unknown else set[int]()


def prove(history: int, name: str, payloads: list[bytes]) -> Iterator[Row]:
    """Rows that tell the other partitions of an operation that it was done."""
    share = together(name, payloads)
    known = proved_here(share.partition)
    told: dict[str, list[int]] = {}
    for op, targets in share.joint:
        for target in targets if op in known else ():
            told.setdefault(target, []).append(op)
    for target, ops in told.items():
        yield Row(history, target, marshal.dumps({"proved": ops}))


@attrs.frozen
class Judge:
    """The third stage: check one partition, and write its edges to a file."""

    folder: Location
    terms: dict[int, Terms]
    """The terms of each history."""

    def __call__(self, history: int, name: str, payloads: list[bytes]) -> Iterator[Row]:
        terms = self.terms[history]
        share = together(name, payloads, terms.claims.acks)
        partition = share.partition
        partition.transactional = terms.transactional
        proved = proved_here(partition) | share.proved
        for n, send in enumerate(partition.sends) if proved else ():
            if not send.committed and send.op in proved:
                partition.sends[n] = send._replace(committed=True)
        wanted = tuple(anomaly for anomaly in ANOMALIES if anomaly.name in terms.anomaly_names)
        result = check_partition(partition, terms.claims, wanted)
        blocks, edges = b"", 0
        if terms.graphs:
            reach = Reach(share, result.order)
            blocks = reach.blocks(terms.per_block)
            columns = reach.edges()
            edges = len(columns["u"])
            if edges:
                keep(file_of(self.folder, "edges", history, name), columns, EDGES)
        judged = PartitionJudgement(attrs.evolve(result, order=Order()), blocks, edges)
        yield Row(history, name, pickle.dumps(judged))


class Reach:
    """The reach of operations in one partition: the lines before which they cannot have been done.

    An operation comes after all its predecessors in the log. So its reach is the largest line at which one of them, or
    it itself, was invoked. Along edges of the log and of real time reach grows, but a cycle needs an edge along which
    it does not. The lines between the reaches of that edge's ends are a span. A cycle lies within one span, or within
    several that overlap. An operation of several steps is bound to other places of the log, or to other logs; so its
    reach is only its own line.
    """

    def __init__(self, share: Share, order: Order) -> None:
        self.of: dict[int, tuple[int, int]] = {}
        """Operation -> line of its completion, and its outcome as a number."""
        for send in share.partition.sends:
            self.of[send.op] = (send.completed, OUTCOMES.index(send.outcome))
        for batch in share.partition.batches:
            self.of[batch.op] = (batch.completed, OUTCOMES.index(batch.outcome))
        line = [order.ww[0][0], *(second for _, second in order.ww)] if order.ww else list[int]()
        self.chain = np.array(line, dtype=np.int64)
        self.multi = share.multi | {op for op, many in Counter(line).items() if many > 1}
        bound = np.fromiter((op in self.multi for op in line), dtype=bool, count=len(line))
        latest = np.maximum.accumulate(self.chain) if len(line) else self.chain
        self.bound, self.latest = bound, np.where(bound, self.chain, latest)
        self.completed = np.fromiter((self.of[op][0] for op in line), dtype=np.int64, count=len(line))
        self.outcome = np.fromiter((self.of[op][1] for op in line), dtype=np.int64, count=len(line))
        reach = dict(zip(line, self.latest.tolist(), strict=True))
        self.reads = [(w, r, reach.get(w, w), *self._read(r, reach.get(w, w))) for w, r in order.wr]

    def _read(self, reader: int, reach: int) -> tuple[int, int, int]:
        completed, outcome = self.of[reader]
        return completed, outcome, reader if reader in self.multi else max(reader, reach)

    def spans(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Pairs of lines between which a cycle may lie."""
        before, after = self.latest[:-1], self.latest[1:]
        onward = (before < after) | ((before == after) & ~self.bound[:-1] & ~self.bound[1:])
        yield after[~onward], before[~onward]
        late = (self.outcome == 0) & (self.latest > self.completed)
        yield self.completed[late], self.latest[late]
        read_spans = [
            (reader, reach) for _, reader, reach, _, _, own in self.reads if reader in self.multi and own <= reach
        ]
        read_spans += [
            (completed, own)
            for _, reader, _, completed, _, own in self.reads
            if reader not in self.multi and own > completed
        ]
        pairs = np.array(read_spans, dtype=np.int64).reshape(-1, 2)
        yield pairs[:, 0], pairs[:, 1]

    def blocks(self, per_block: int) -> bytes:
        """The spans as one bit for each block of lines."""
        ends = np.zeros(BLOCKS + 1, dtype=np.int64)
        for first, last in self.spans():
            np.add.at(ends, first // per_block, 1)
            np.add.at(ends, last // per_block + 1, -1)
        return np.packbits(np.cumsum(ends[:-1]) > 0).tobytes()

    def edges(self) -> dict[str, Numbers]:
        """The edges of this partition, in order."""
        reads = np.array(self.reads, dtype=np.int64).reshape(-1, 6)
        of_writers = np.array([self.of[w] for w in reads[:, 0].tolist()], dtype=np.int64).reshape(-1, 2)
        ahead, behind = slice(None, -1), slice(1, None)
        columns = {
            "kind": (np.full(max(0, len(self.chain) - 1), WW), np.full(len(reads), WR)),
            "u": (self.chain[ahead], reads[:, 0]),
            "u_completed": (self.completed[ahead], of_writers[:, 0]),
            "u_outcome": (self.outcome[ahead], of_writers[:, 1]),
            "u_reach": (self.latest[ahead], reads[:, 2]),
            "v": (self.chain[behind], reads[:, 1]),
            "v_completed": (self.completed[behind], reads[:, 3]),
            "v_outcome": (self.outcome[behind], reads[:, 4]),
            "v_reach": (self.latest[behind], reads[:, 5]),
        }
        return {name: np.concatenate(both).astype(np.int64) for name, both in columns.items()}
