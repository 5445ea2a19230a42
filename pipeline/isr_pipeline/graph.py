"""The graph of all states as two tables, for questions in SQL (docs/scale.md has some).

    graph/states/level=7/bucket-0003.parquet    id, one column per variable (see decode.py)
    graph/edges/level=7/bucket-0003.parquet     source, action, parameters, target; the level is that of the source

An id is the bucket and the place in it. A state's number is known to its owner only, so steps travel to the owners
of their targets as states do while exploring. By symmetry a state stands for its orbit, and a step leads to one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isr_check.native.kernels import Job
from isr_check.native.layout import Layout
from isr_check.native.memory import Numbers, Words, address
from isr_check.native.steps import Stepper
from isr_check.reference import parameter_values
from isr_lang.printing import show
from isr_pipeline.decode import Column, Decoder, chosen
from isr_pipeline.kit import Hand, Kit
from isr_pipeline.owned import Owned
from isr_pipeline.rows import FOUND, STATES, Batches, as_states, numbers, rows, states
from isr_pipeline.store import Commit

if TYPE_CHECKING:
    from isr_pipeline.search import Search

PLACE = 40
"""Bits of an id that are the place in the bucket."""
BLOCK = 1 << 14
"""States whose steps are looked at together."""

_table = cast("Callable[[dict[str, Column]], pa.Table]", pa.table)
_write = cast("Callable[[pa.Table, Path], None]", vars(pq)["write_table"])
_together = cast("Callable[[list[pa.Table]], pa.Table]", vars(pa)["concat_tables"])


def write(path: Path, tables: Sequence[pa.Table]) -> None:
    """All or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    _write(_together(list(tables)), partial)
    partial.replace(path)


def file_of(kit: Kit, table: str, level: int, bucket: int) -> Path:
    return Path(kit.folder) / "graph" / table / f"level={level}" / f"bucket-{bucket:04d}.parquet"


_steppers: dict[str, Stepper] = {}


@attrs.frozen
class Steps:
    """Write the states of a level, and send their steps to the owners of the targets: target, source, label."""

    kit: Kit
    layout: Layout
    level: int
    before: Mapping[int, int]

    def __call__(self, bucket: int) -> Batches:
        hand, place = Hand(self.kit), (bucket << PLACE) + 1 + self.before.get(bucket, 0)
        decoder, tables = Decoder(self.layout), list[pa.Table]()
        for whole in hand.read(self.level, bucket):
            for start in range(0, len(whole), BLOCK):
                block = np.ascontiguousarray(whole[start : start + BLOCK])
                ids = np.arange(place, place + len(block), dtype=np.int64)
                place += len(block)
                tables.append(_table({"id": pa.array(ids), **decoder.columns(block)}))
                yield from self._sent(hand, block, ids)
        write(file_of(self.kit, "states", self.level, bucket), tables)

    def _sent(self, hand: Hand, block: Words, ids: Numbers) -> Batches:
        counts, labels, targets = self._stepper().steps(block)
        if not len(labels):
            return
        if self.kit.symmetric:
            before = hand.worker.job.copy()
            hand.worker.set([(Job.OUT, address(targets))])
            hand.run("rename", 0, len(targets))
            hand.worker.job[:] = before
        records = np.column_stack([targets, np.repeat(ids, counts).view(np.uint64), labels.view(np.uint64)])
        owners = owners_of(targets, self.kit.buckets)
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners[order], np.arange(self.kit.buckets + 1))
        yield states(np.ascontiguousarray(records[order]), bounds.astype(np.int64))

    def _stepper(self) -> Stepper:
        if self.kit.digest not in _steppers:
            _steppers.clear()
            _steppers[self.kit.digest] = Stepper(self.layout.instance, self.layout)
        return _steppers[self.kit.digest]


@attrs.frozen
class Edges:
    """Write the steps of a level whose targets these buckets have; `labels`: action and parameters of each."""

    kit: Kit
    level: int
    levels: int
    sizes: Mapping[int, int]
    labels: tuple[tuple[str, str], ...]

    def __call__(self, batches: Batches) -> Batches:
        with ExitStack() as closing:
            sets, tables = dict[int, Owned](), dict[int, list[pa.Table]]()
            for batch in batches:
                for bucket, kind, payload in rows(batch):
                    assert kind == STATES, "steps are all that is sent"
                    if bucket not in sets:
                        owned = Owned(self.kit, Hand(self.kit), bucket, self.levels, self.sizes.get(bucket, 0))
                        sets[bucket] = closing.enter_context(owned)
                    records = as_states(payload, self.kit.words + 2)
                    tables.setdefault(bucket, []).append(self._table(sets[bucket], bucket, records))
            for bucket, parts in tables.items():
                write(file_of(self.kit, "edges", self.level, bucket), parts)
                yield numbers(bucket, FOUND, (sum(t.num_rows for t in parts),))

    def _table(self, owned: Owned, bucket: int, records: Words) -> pa.Table:
        words = self.kit.words
        places = owned.places(np.ascontiguousarray(records[:, :words]))
        assert places.all(), "each step of a complete exploration leads to a known state"
        labels = records[:, words + 1].astype(np.int64)
        return _table({
            "source": pa.array(records[:, words].astype(np.int64)),
            "action": chosen([action for action, _ in self.labels], labels),
            "parameters": chosen([parameters for _, parameters in self.labels], labels),
            "target": pa.array(places + (bucket << PLACE)),
        })  # fmt: skip


def owners_of(targets: Words, buckets: int) -> Numbers:
    """What the kernels `tally` and `deal` say, for records that are wider than states."""
    h = np.full(len(targets), 0x243F6A8885A308D3, dtype=np.uint64)
    for w in range(targets.shape[1]):
        mixed = (targets[:, w] ^ h) * np.uint64(-7046029254386353131 % (1 << 64))
        h = mixed ^ (mixed >> np.uint64(32))
    spread = h * np.uint64(-4658895280553007687 % (1 << 64))
    h = spread ^ (spread >> np.uint64(29))
    owners: Numbers = ((h >> np.uint64(40)) * np.uint64(buckets) >> np.uint64(24)).astype(np.int64)
    return owners


def labels(search: Search) -> Iterator[tuple[str, str]]:
    """Of each instance of each action, in the order of their numbers."""
    for action in search.instance.actions:
        for values in parameter_values(search.instance, action):
            pairs = zip(action.parameters, values, strict=True)
            yield action.name, ", ".join(f"{name} = {show(value, type)}" for (name, type), value in pairs)


def write_graph(search: Search) -> int:
    """The tables of a complete exploration; returns how many steps there are."""
    sizes, before, named, steps = search.before(), dict[int, int](), tuple(labels(search)), 0
    for commit in (c for c in search.commits if c.states):
        runner = search.runner(commit.states)
        kit = search.task_kit(runner)
        source = Steps(kit, search.layout, commit.level, dict(before))
        sink = Edges(kit, commit.level, len(search.commits), sizes, named)
        done = runner.shuffle(source, sorted(commit.sizes), sink)
        steps += sum(int(n[0]) for _, _, n in done)
        before = _added(before, commit)
    return steps


def _added(before: dict[int, int], commit: Commit) -> dict[int, int]:
    return {b: before.get(b, 0) + commit.sizes.get(b, 0) for b in {*before, *commit.sizes}}
