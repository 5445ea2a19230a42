"""Cycles across partitions: only where they can be at all, each stretch of the history in a task of its own.

Each partition says in which blocks of lines a cycle through it can be (`shares.Reach`). Stretches of such blocks are
independent of each other. Of a stretch all operations and edges go to one task, which asks isr_anomalies.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, cast

import attrs
import numpy as np

from isr_anomalies import ANOMALIES, Claims, History
from isr_anomalies.cycles import Graphs, realtime_edges
from isr_anomalies.operations import NEVER, NOTHING, Operation
from isr_anomalies.results import Tally
from isr_pipeline.histories.rows import Column, Numbers, Row, read_columns
from isr_pipeline.histories.shares import BLOCKS, EDGES, OUTCOMES
from isr_pipeline.locations import Location

GROUPS: Final = 64
"""The most tasks among which the stretches of a history are divided."""
WW, WR, PROCESS = 0, 1, 2


@attrs.frozen
class Stretches:
    """`of` has the number of each block's stretch, -1 for none; there are `many`, and `per_block` lines in a block."""

    of: Numbers
    many: int
    per_block: int

    def at(self, lines: Numbers) -> Numbers:
        """The stretches of these lines; an operation that never ended is in none."""
        known = (lines >= 0) & (lines < BLOCKS * self.per_block)
        return np.where(known, self.of[np.where(known, lines, 0) // self.per_block], -1)

    def group(self, stretches: Numbers) -> Numbers:
        return stretches * min(GROUPS, self.many) // max(1, self.many)


def stretches(blocks: list[bytes], per_block: int) -> Stretches:
    """The runs of blocks that some partition has named."""
    bits = np.zeros(BLOCKS // 8, dtype=np.uint8)
    for one in blocks:
        bits |= np.frombuffer(one, dtype=np.uint8)
    named = np.unpackbits(bits).astype(bool)
    begins = named & ~np.concatenate(([False], named[:-1]))
    numbers = np.cumsum(begins) - 1
    return Stretches(np.where(named, numbers, -1).astype(np.int64), int(begins.sum()), per_block)


class Source(NamedTuple):
    """A file of the edges of a partition, or of the operations of a bucket."""

    history: int
    name: str
    file: Location
    operations: bool


class Piece(NamedTuple):
    """The part of one file that a group needs: a partition's name and its edges, or operations without edges.

    An edge is its kind, its place in the file, and the line, end and outcome of both operations.
    """

    name: str
    edges: Numbers
    operations: Numbers


@attrs.frozen
class Select:
    """Select from each file what lies in a stretch."""

    stretches: dict[int, Stretches]

    def __call__(self, source: Source) -> Iterator[Row]:
        of = self.stretches[source.history]
        if source.operations:
            pieces = self.operations_of(read_columns(source.file, _OF_OPERATIONS), of)
        else:
            pieces = self.edges_of(source.name, cast("dict[str, Numbers]", read_columns(source.file, EDGES.names)), of)
        for group, piece in pieces:
            yield Row(source.history, str(group), pickle.dumps(piece))

    def edges_of(self, name: str, at: dict[str, Numbers], of: Stretches) -> Iterator[tuple[int, Piece]]:
        """The edges of a partition that lie in a stretch, by groups of stretches."""
        mine = of.at(at["u_reach"])
        other, ended = of.at(at["v_reach"]), of.at(at["v_completed"])
        inside = (mine >= 0) & ((mine == other) | (mine == ended))
        places = np.arange(len(inside))
        names = ("u", "u_completed", "u_outcome", "v", "v_completed", "v_outcome")
        rows = np.stack([at["kind"], places, *(at[column] for column in names)], axis=1)[inside]
        groups = of.group(mine[inside])
        nothing = np.empty((0, 3), dtype=np.int64)
        for group in np.unique(groups).tolist():
            yield group, Piece(name, rows[groups == group], nothing)

    def operations_of(self, at: Mapping[str, Column], of: Stretches) -> Iterator[tuple[int, Piece]]:
        """The operations that began or ended in a stretch, and the order of their processes."""
        names = ("invoked", "completed", "after", "after_completed")
        invoked, completed, after, after_completed = (cast("Numbers", at[name]) for name in names)
        outcome = _codes(at["outcome"])
        begin_stretches, end_stretches = of.at(invoked), of.at(completed)
        follows = (begin_stretches >= 0) & (begin_stretches == of.at(after_completed)) & (after >= 0)
        ok = np.zeros(len(invoked), dtype=np.int64)
        kind = np.full(len(invoked), PROCESS)
        edges = np.stack([kind, np.arange(len(kind)), after, after_completed, ok, invoked, completed, outcome], axis=1)
        ops = np.stack([invoked, completed, outcome], axis=1)
        by_begin, by_end = of.group(begin_stretches), of.group(end_stretches)
        for group in np.unique(np.concatenate((by_begin[begin_stretches >= 0], by_end[end_stretches >= 0]))).tolist():
            near = ((begin_stretches >= 0) & (by_begin == group)) | ((end_stretches >= 0) & (by_end == group))
            yield group, Piece("", edges[follows & (by_begin == group)], ops[near])


_OF_OPERATIONS: Final = ("invoked", "completed", "after", "after_completed", "outcome")


def _codes(words: Column) -> Numbers:
    return np.fromiter((OUTCOMES.index(word) for word in words), dtype=np.int64, count=len(words))


@attrs.frozen
class Find:
    """Look for cycles in one group of stretches: a tally for each anomaly."""

    claims: dict[int, Claims]
    anomaly_names: tuple[str, ...]

    def __call__(self, history: int, group: str, payloads: list[bytes]) -> Iterator[Row]:
        pieces = [cast("Piece", pickle.loads(payload)) for payload in payloads]
        yield Row(history, group, pickle.dumps(tallies(pieces, self.claims[history], self.anomaly_names)))


def tallies(pieces: list[Piece], claims: Claims, anomaly_names: tuple[str, ...]) -> dict[str, Tally]:
    """The findings of each kind of cycle."""
    history, graphs = graph(pieces)
    tally_by_name: dict[str, Tally] = {}
    for anomaly in ANOMALIES:
        if anomaly.name in anomaly_names and anomaly.across is not None and anomaly.number < 28:
            tally = tally_by_name[anomaly.name] = Tally()
            for finding in anomaly.across(history, graphs, claims):
                tally.add(finding)
    return tally_by_name


def graph(pieces: list[Piece]) -> tuple[History, Graphs]:
    """The part of a history that lies in stretches, its operations numbered anew in the same order."""
    pieces = sorted(pieces, key=lambda piece: piece.name)
    edges = np.concatenate([np.empty((0, 8), dtype=np.int64), *(piece.edges for piece in pieces)])
    ops = np.concatenate([edges[:, 2:5], edges[:, 5:8], *(piece.operations for piece in pieces)])
    lines, first = np.unique(ops[:, 0], return_index=True)
    operations: list[Operation] = []
    for number, (line, completed, code) in enumerate(ops[first].tolist()):
        at = (line, completed, 0, NEVER if completed == NEVER else 0)
        operations.append(Operation(number, "", "", *at, OUTCOMES[code], (), NOTHING))
    history = History(Claims(), operations)
    of = {kind: edges[edges[:, 0] == kind] for kind in (WW, WR, PROCESS)}
    of[PROCESS] = of[PROCESS][np.argsort(of[PROCESS][:, 5], kind="stable")]
    pairs = {kind: np.searchsorted(lines, rows[:, [2, 5]]) for kind, rows in of.items()}
    realtime = np.array(realtime_edges(history), dtype=np.int64).reshape(-1, 2)
    return history, Graphs(pairs[WW], pairs[WR], pairs[PROCESS], realtime)
