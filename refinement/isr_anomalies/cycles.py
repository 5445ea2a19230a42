"""Cycles over operations: Adya's G0 and G1c, as Jepsen adapts them to logs. The whole history, by strong components.

Edges: write-write along the version order, write-read from a send to a poll of its record, process order, real time.
Real-time edges go through one node per completion, in a chain, so that there are as many edges as operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from typing import Final, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from isr_anomalies.history import WHOLE, History
from isr_anomalies.operations import NEVER, Claims, Operation, SentRecord
from isr_anomalies.results import Finding
from isr_anomalies.view import View

LONGEST_SEARCH: Final = 20_000
"""The largest component in which a shortest cycle is searched; larger ones are only counted."""
STARTS: Final = 200
"""The most operations of a component from which a shortest cycle is searched."""

Edges = list[tuple[int, int]]
Pairs = NDArray[np.int64]
"""Edges, one per row."""
Labels = NDArray[np.int32]


@attrs.define
class Order:
    """The edges that one partition contributes, as pairs of operation numbers."""

    ww: Edges = attrs.field(factory=Edges)
    wr: Edges = attrs.field(factory=Edges)


def order_of(view: View) -> Order:
    """The edges of a partition.

    Write-write edges lead from a send to the next one in the version order; write-read edges from the send of a batch's
    last record to the poll.
    """
    writer = {value: send.op for value, send in view.send_of.items() if send.committed}
    order = Order()
    before: int | None = None
    for offset in view.offsets:
        op = writer.get(view.at[offset])
        if op is not None:
            if before is not None and before != op:
                order.ww.append((before, op))
            before = op
    for batch in view.batches:
        if batch.outcome == "ok" and batch.records and batch.stint != WHOLE:
            op = writer.get(batch.records[-1][1])
            if op is not None and op != batch.op:
                order.wr.append((op, batch.op))
    return order


Span = tuple[int, int]
"""The lines of an operation's invocation and completion."""


def process_edges(history: History) -> Edges:
    """From each operation of a process to its next one that began after it."""
    ops = history.operations
    number = {op.invoked: op.number for op in ops}
    before = process_order((op.invoked, op.completed, op.process, op.outcome) for op in ops)
    return [(number[one[0]], op.number) for one, op in zip(before, ops, strict=True) if one is not None]


def process_order(operations: Iterable[tuple[int, int, str, str]]) -> Iterator[Span | None]:
    """For each operation in order of invocation, as its lines, process and outcome: what its process did before."""
    last: dict[str, Span] = {}
    for invoked, completed, process, outcome in operations:
        before = last.get(process)
        yield None if before is None or before[1] >= invoked or outcome == "fail" else before
        if outcome == "ok":  # what is unknown may still happen later
            last[process] = (invoked, completed)


def realtime_edges(history: History) -> Edges:
    """From what was completed, through the chain of moments, to what was invoked later."""
    size = len(history.operations)
    completions = sorted(
        (op.completed, op.number) for op in history.operations if op.outcome == "ok" and op.completed != NEVER
    )
    edges: Edges = [(size + n, size + n + 1) for n in range(len(completions) - 1)]
    edges += [(number, size + n) for n, (_, number) in enumerate(completions)]
    moment = 0
    for op in history.operations:
        while moment < len(completions) and completions[moment][0] < op.invoked:
            moment += 1
        if moment and op.outcome != "fail":
            edges.append((size + moment - 1, op.number))
    return edges


def components(size: int, kinds: list[Pairs]) -> list[list[int]]:
    """The strongly connected components with at least two nodes."""
    pairs = np.concatenate(kinds)
    if not len(pairs):
        return []
    nodes = max(size, int(pairs.max()) + 1)
    matrix = cast("Callable[..., object]", import_module("scipy.sparse").csr_array)  # scipy has no types
    strong = cast("Callable[..., tuple[int, Labels]]", import_module("scipy.sparse.csgraph").connected_components)
    graph = matrix((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes))
    labels = strong(graph, directed=True, connection="strong")[1]
    several = np.flatnonzero(np.bincount(labels) > 1)
    order = np.argsort(labels, kind="stable")
    begins = np.searchsorted(labels[order], several)
    ends = np.searchsorted(labels[order], several, side="right")
    return [order[b:e].tolist() for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]


def edges_within(members: list[int], pairs: Pairs) -> Edges:
    """The edges between these nodes."""
    both = np.isin(pairs, members).all(axis=1)
    return [(one, two) for one, two in pairs[both].tolist()]


def shortest_cycle(members: list[int], kinds: list[Pairs]) -> list[int]:
    """A shortest cycle through one of the first STARTS members; empty if the component exceeds LONGEST_SEARCH."""
    if len(members) > LONGEST_SEARCH:
        return []
    inside = set(members)
    after: dict[int, list[int]] = {}
    for one, two in edges_within(members, np.concatenate(kinds)):
        after.setdefault(one, []).append(two)
    best: list[int] = []
    for start in members[:STARTS]:
        came: dict[int, int] = {}
        level = [start]
        while level and start not in came and (not best or len(came) < len(inside)):
            nearer: list[int] = []
            for node in level:
                for other in after.get(node, ()):
                    if other not in came:
                        came[other] = node
                        nearer.append(other)
            level = nearer
        if start in came:
            path = [start]
            while came[path[-1]] != start:
                path.append(came[path[-1]])
            if not best or len(path) < len(best):
                best = path[::-1]
    return best


@attrs.frozen
class Graphs:
    """All edges of a history by kind, in which the three anomalies are cycles."""

    ww: Pairs
    wr: Pairs
    process: Pairs
    realtime: Pairs


def g0(history: History, graphs: Graphs, claims: Claims) -> Iterator[Finding]:
    """14 (G0): operations of several sends precede each other, by offsets of different partitions; always permitted."""
    for found in components(len(history.operations), [graphs.ww]):
        yield _finding(history, found, [graphs.ww], "write-write", is_permitted=True)


def g1c(history: History, graphs: Graphs, claims: Claims) -> Iterator[Finding]:
    """15 (G1c): a cycle with a write-read edge. One of write-read edges only is forbidden under read_committed."""
    pure = components(len(history.operations), [graphs.wr])
    for component in pure:
        permitted = claims.isolation != "read_committed"
        yield _finding(history, component, [graphs.wr], "write-read", is_permitted=permitted)
    within = [set(found) for found in pure]
    for component in components(len(history.operations), [graphs.ww, graphs.wr]):
        joined = edges_within(component, graphs.wr)
        if joined and not any(inner.issuperset(component) for inner in within):
            yield _finding(history, component, [graphs.ww, graphs.wr], "write-write and write-read", is_permitted=True)


def ordered_cycles(history: History, graphs: Graphs, claims: Claims) -> Iterator[Finding]:
    """16: cycles that need process order or real time; always permitted, because they are no error by themselves."""
    size = len(history.operations)
    plain = [graphs.ww, graphs.wr]
    earlier_cycles = {frozenset(found) for found in components(size, plain)}
    for extra, name in ((graphs.process, "process order"), (graphs.realtime, "real time")):
        kinds = [*plain, extra]
        for found in components(size, kinds):
            ops = frozenset(node for node in found if node < size)
            if ops not in earlier_cycles and len(ops) > 1:
                earlier_cycles |= {ops}
                yield _finding(history, found, kinds, f"offsets, reads and {name}", is_permitted=True)


def _finding(history: History, component: list[int], kinds: list[Pairs], what: str, *, is_permitted: bool) -> Finding:
    ops = [n for n in shortest_cycle(component, kinds) if n < len(history.operations)]
    shown = [history.operations[n] for n in ops]
    lines = tuple(op.completed if op.completed != NEVER else op.invoked for op in shown)
    size = sum(node < len(history.operations) for node in component)
    steps = " -> ".join(f"line {line}" for line in (*lines, lines[0])) if lines else f"{size} operations"
    return Finding(is_permitted, lines, "", f"a cycle of {what}: {steps}", size)


def several_steps(op: Operation) -> bool:
    """Whether an operation was done in several steps, without which nothing but order can make a cycle.

    A poll that returned nothing is no step.
    """
    if op.f != "txn" or op.outcome != "ok":
        return False
    return sum(isinstance(step, SentRecord) or any(step.records.values()) for step in op.micro) > 1


def all_edges(history: History, orders: Iterator[Order]) -> Graphs:
    """The edges of all partitions together, with process order and real time."""
    ww: Edges = []
    wr: Edges = []
    for order in orders:
        ww += order.ww
        wr += order.wr
    return Graphs(*map(_pairs, (ww, wr, process_edges(history), realtime_edges(history))))


def _pairs(edges: Edges) -> Pairs:
    return np.fromiter(chain.from_iterable(edges), dtype=np.int64, count=2 * len(edges)).reshape(-1, 2)
