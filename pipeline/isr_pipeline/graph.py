"""The graph of all states as two tables, for questions in SQL (docs/scale.md has some).

    graph/states/level=7/bucket-0003.parquet    id, one column per variable (below)
    graph/edges/level=7/bucket-0003.parquet     source, action, parameters, target; the level is that of the source

An id is a bucket and a position in it. Only the bucket that owns a state knows its position, so steps are sent to the
owners of their targets, as states are during the search. With symmetry a state stands for its orbit.

Columns have the names and values of the model:

    Bool      boolean             Set    array of its elements
    number    int                 Seq    array of its items
    sort      its name: r1        Map    map from each key (as text) to its value
    choice    its name, small     Maybe  null for none
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO, cast

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from isr_check.native.buffers import Numbers, Words, address
from isr_check.native.kernels import Job
from isr_check.native.layout import Layout
from isr_check.native.steps import Stepper
from isr_check.reference import parameter_values
from isr_lang.printing import first, show
from isr_lang.types import BoolType, MapType, MaybeType, NumberType, Scalar, SeqType, SetType, Type
from isr_pipeline.arrow_rows import FINDINGS, STATES, Batches, as_states, numbers, rows, states
from isr_pipeline.bucket_states import BucketStates
from isr_pipeline.locations import Location
from isr_pipeline.store import Commit
from isr_pipeline.task_kernels import KernelSpec, KernelWorker

if TYPE_CHECKING:
    from isr_pipeline.search import Search

PLACE = 40
"""Bits of an id that are the position in the bucket."""
BLOCK = 1 << 14
"""States whose steps are computed together."""

_table = cast("Callable[[dict[str, Column]], pa.Table]", pa.table)
_write = cast("Callable[[pa.Table, BinaryIO], None]", vars(pq)["write_table"])
_together = cast("Callable[[list[pa.Table]], pa.Table]", vars(pa)["concat_tables"])


def write(file: Location, tables: Sequence[pa.Table]) -> None:
    """Write one Parquet file; a task that is done twice writes the same rows again."""
    with file.open_for_writing() as stream:
        _write(_together(list(tables)), stream)


def file_of(spec: KernelSpec, table: str, level: int, bucket: int) -> Location:
    return spec.place / "graph" / table / f"level={level}" / f"bucket-{bucket:04d}.parquet"


_steppers: dict[str, Stepper] = {}


@attrs.frozen
class WriteStates:
    """A task: write the states of a level, and send their steps (target, source, label) to the targets' owners."""

    spec: KernelSpec
    layout: Layout
    level: int
    before: Mapping[int, int]
    names: Mapping[int, int]

    def __call__(self, bucket: int) -> Batches:
        hand, place = KernelWorker(self.spec), (bucket << PLACE) + 1 + self.before.get(bucket, 0)
        decoder, tables = Decoder(self.layout), list[pa.Table]()
        for whole in hand.read(self.level, bucket, self.names[bucket]):
            for start in range(0, len(whole), BLOCK):
                block = np.ascontiguousarray(whole[start : start + BLOCK])
                ids = np.arange(place, place + len(block), dtype=np.int64)
                place += len(block)
                tables.append(_table({"id": pa.array(ids), **decoder.columns(block)}))
                yield from self._edge_rows(hand, block, ids)
        write(file_of(self.spec, "states", self.level, bucket), tables)

    def _edge_rows(self, hand: KernelWorker, block: Words, ids: Numbers) -> Batches:
        counts, labels, targets = self._stepper().steps(block)
        if not len(labels):
            return
        if self.spec.symmetric:
            before = hand.worker.job.copy()
            hand.worker.set([(Job.OUT, address(targets))])
            hand.run("rename", 0, len(targets))
            hand.worker.job[:] = before
        records = np.column_stack([targets, np.repeat(ids, counts).view(np.uint64), labels.view(np.uint64)])
        owners = owners_of(targets, self.spec.buckets)
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners[order], np.arange(self.spec.buckets + 1))
        yield states(np.ascontiguousarray(records[order]), bounds.astype(np.int64))

    def _stepper(self) -> Stepper:
        if self.spec.digest not in _steppers:
            _steppers.clear()
            _steppers[self.spec.digest] = Stepper(self.layout.instance, self.layout)
        return _steppers[self.spec.digest]


@attrs.frozen
class WriteEdges:
    """A task: write the steps of a level whose targets are in these buckets; `labels` has action and parameters."""

    spec: KernelSpec
    level: int
    levels: int
    sizes: Mapping[int, int]
    labels: tuple[tuple[str, str], ...]

    def __call__(self, batches: Batches) -> Batches:
        with ExitStack() as closing:
            sets, tables = dict[int, BucketStates](), dict[int, list[pa.Table]]()
            for batch in batches:
                for bucket, kind, payload in rows(batch):
                    assert kind == STATES, "steps are all that is sent"
                    if bucket not in sets:
                        owned = BucketStates(
                            self.spec, KernelWorker(self.spec), bucket, self.levels, self.sizes.get(bucket, 0)
                        )
                        sets[bucket] = closing.enter_context(owned)
                    records = as_states(payload, self.spec.words + 2)
                    tables.setdefault(bucket, []).append(self._table(sets[bucket], bucket, records))
            for bucket, parts in tables.items():
                write(file_of(self.spec, "edges", self.level, bucket), parts)
                yield numbers(bucket, FINDINGS, (sum(t.num_rows for t in parts),))

    def _table(self, bucket_set: BucketStates, bucket: int, records: Words) -> pa.Table:
        words = self.spec.words
        places = bucket_set.places(np.ascontiguousarray(records[:, :words]))
        assert places.all(), "each step of a complete exploration leads to a known state"
        labels = records[:, words + 1].astype(np.int64)
        return _table({
            "source": pa.array(records[:, words].astype(np.int64)),
            "action": name_column([action for action, _ in self.labels], labels),
            "parameters": name_column([parameters for _, parameters in self.labels], labels),
            "target": pa.array(places + (bucket << PLACE)),
        })  # fmt: skip


def owners_of(targets: Words, buckets: int) -> Numbers:
    """The buckets that own these states, as the kernels `tally` and `deal` compute them."""
    h = np.full(len(targets), 0x243F6A8885A308D3, dtype=np.uint64)
    for w in range(targets.shape[1]):
        mixed = (targets[:, w] ^ h) * np.uint64(-7046029254386353131 % (1 << 64))
        h = mixed ^ (mixed >> np.uint64(32))
    spread = h * np.uint64(-4658895280553007687 % (1 << 64))
    h = spread ^ (spread >> np.uint64(29))
    owners: Numbers = ((h >> np.uint64(40)) * np.uint64(buckets) >> np.uint64(24)).astype(np.int64)
    return owners


def labels(search: Search) -> Iterator[tuple[str, str]]:
    """Action and parameters of every label, in order."""
    for action in search.instance.actions:
        for values in parameter_values(search.instance, action):
            pairs = zip(action.parameters, values, strict=True)
            yield action.name, ", ".join(f"{name} = {show(value, type)}" for (name, type), value in pairs)


def write_graph(search: Search) -> int:
    """Write the tables of a complete exploration; returns the number of steps.

    Positions are those in the files that the commits name, so the sets are made from these, and by one runner.
    """
    sizes, before, label_names, steps = search.before(), dict[int, int](), tuple(labels(search)), 0
    runner = search.runner(search.distinct)
    spec = search.task_spec(runner)
    spec = attrs.evolve(spec, run=f"{spec.run}-graph")
    for commit in (c for c in search.commits if c.states):
        source = WriteStates(spec, search.layout, commit.level, dict(before), commit.names)
        sink = WriteEdges(spec, commit.level, len(search.commits), sizes, label_names)
        done = runner.shuffle(source, sorted(commit.sizes), sink, f"graph, level {commit.level}")
        steps += sum(int(n[0]) for _, _, n in done)
        before = _added(before, commit)
    return steps


def _added(before: dict[int, int], commit: Commit) -> dict[int, int]:
    return {b: before.get(b, 0) + commit.sizes.get(b, 0) for b in {*before, *commit.sizes}}


Column = object
"""An Arrow array."""
_array = cast("Callable[..., Column]", pa.array)
_dictionary = cast("Callable[..., Column]", vars(pa.DictionaryArray)["from_arrays"].__get__(None, pa.DictionaryArray))
_list = cast("Callable[..., Column]", vars(pa.ListArray)["from_arrays"].__get__(None, pa.ListArray))
_map = cast("Callable[..., Column]", vars(pa.MapArray)["from_arrays"].__get__(None, pa.MapArray))


class Decoder:
    """Translates packed states of one layout into columns."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.instance = layout, layout.instance

    def columns(self, states: Words) -> dict[str, Column]:
        """The columns, by the names of the variables."""
        return {v.name: self._column(states, v.type, [self.layout.offset[v.name]]) for v in self.instance.variables}

    def _cells(self, states: Words, cells: Sequence[int]) -> Numbers:
        """The values of these cells, a row for each state."""
        table = np.empty((len(states), len(cells)), dtype=np.int64)
        for i, number in enumerate(cells):
            cell = self.layout.cells[number]
            bits = states[:, cell.word] >> np.uint64(cell.shift) & np.uint64(cell.mask)
            table[:, i] = bits.astype(np.int64) + cell.low
        return table

    def _column(self, states: Words, type: Type, at: Sequence[int]) -> Column:
        """Values of the type that begin at these cells, all of a state's before the next state's."""
        match type:
            case MapType():
                size, step = self.instance.positions(type.key), self.layout.size(type.value)
                items = self._column(states, type.value, [cell + i * step for cell in at for i in range(size)])
                keys = _repeat_names([show(i + first(type.key), type.key) for i in range(size)], len(states) * len(at))
                return _map(_offsets(np.full(len(states) * len(at), size, dtype=np.int64)), keys, items)
            case SeqType():
                lengths = self._cells(states, at).ravel()
                longest = self.layout.longest(type)
                inside = self._cells(states, [cell + 1 + i for cell in at for i in range(longest)])
                rows = inside.reshape(-1, longest) if longest else inside.reshape(len(lengths), 0)
                there = np.arange(longest) < lengths[:, None]
                return _list(_offsets(lengths), self._scalars(rows[there], type.of))
            case SetType():
                sets = self._cells(states, at).ravel()
                members = sets[:, None] >> np.arange(self.instance.positions(type.of)) & 1
                _, positions = members.nonzero()
                return _list(_offsets(members.sum(axis=1)), self._scalars(positions + first(type.of), type.of))
            case MaybeType():
                values = self._cells(states, at).ravel()
                return self._scalars(values - (values > 0) + first(type.of), type.of, none=values == 0)
            case _:
                return self._scalars(self._cells(states, at).ravel(), type)

    def _scalars(self, values: Numbers, type: Scalar, none: NDArray[np.bool_] | None = None) -> Column:
        match type:
            case BoolType():
                return _array(values != 0, mask=none)
            case NumberType():
                return _array(values.astype(np.int32), mask=none)
            case _:
                names = [show(i, type) for i in range(self.instance.positions(type))]
                known = np.where(none, 0, values) if none is not None else values
                return _dictionary(_array(known.astype(np.int32), mask=none), _array(names, pa.string()))


def _offsets(lengths: Numbers) -> Column:
    return _array(np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]).astype(np.int32))


def _repeat_names(names: Sequence[str], times: int) -> Column:
    return _array(list(names) * times, pa.string())


def name_column(names: Sequence[str], numbers: Numbers) -> Column:
    """A column of the names with these numbers."""
    return _dictionary(_array(numbers.astype(np.int32)), _array(list(names), pa.string()))
