"""Trace datasets: random walks by seed, or covers of all edges or of all pairs of actions.

A dataset is a folder, on a disk or in a store. `traces/part-*/` has ITF files, and `index/part-*.parquet` a row for
each of them. A task makes a part. A part depends on its recipe only, so making it again, or elsewhere, gives the same
files. For covers every task explores the whole graph with kernels, and covers its share of edges or pairs; the graph
must fit into a process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Final
from zlib import crc32

import attrs
import pyarrow as pa

from isr_check.engine import Path as Way
from isr_check.reference import Evaluator
from isr_check.sample import sample
from isr_conform.edge_cover import ModelGraph
from isr_lang import Instance
from isr_pipeline.histories.rows import keep, schema
from isr_pipeline.locations import Location
from isr_replay.packed_states import Packing
from isr_trace.itf import write_itf
from isr_trace.replay import record
from isr_trace.trace import Trace

SUFFIX: Final = ".itf.json"
INDEX: Final = schema(
    **dict.fromkeys(("file", "design", "model_hash", "bounds", "cover"), pa.string()),
    **dict.fromkeys(("seed", "length"), pa.int64()),
    **dict.fromkeys(("actions", "witnessed", "violated"), pa.list_(pa.string())),
)
"""`file` is relative to the dataset; `bounds` is JSON; `seed` is -1 for covers; `actions` in the order of the trace."""

Row = dict[str, object]


class Cover(StrEnum):
    """What the traces cover."""

    WALKS = "walks"
    EDGES = "edges"
    PAIRS = "pairs"


@attrs.frozen
class Recipe:
    """A dataset to be made: the model, from `instance`, a function that can be pickled; the cover; and the folder."""

    instance: Callable[[], Instance]
    cover: Cover
    folder: Location
    steps: int
    """The most steps of a walk. A trace of a cover goes on for at most so many steps after its first uncovered edge."""


@attrs.frozen
class Part:
    """A share of a dataset: walks of the seeds [first, end), or every `of`-th edge or pair from `number` on."""

    recipe: Recipe
    number: int
    of: int
    first: int = 0
    end: int = 0


def parts(recipe: Recipe, many: int, seeds: range) -> list[Part]:
    """The parts of a dataset; files of an earlier one in the folder are removed."""
    for kind in ("traces", "index"):
        (recipe.folder / kind).delete_folder()
    if recipe.cover is not Cover.WALKS:
        return [Part(recipe, number, many) for number in range(many)]
    cuts = [seeds.start + len(seeds) * n // many for n in range(many + 1)]
    return [Part(recipe, n, many, first, end) for n, (first, end) in enumerate(pairwise(cuts)) if first < end]


def make_part(part: Part) -> int:
    """Write a part: its traces, then its index. Returns the number of traces."""
    recipe, instance = part.recipe, part.recipe.instance()
    evaluator = Evaluator(instance)
    name = f"part-{part.number:05}"
    rows: list[Row] = []
    with recipe.folder.output_folder() as folder:
        for number, (seed, way) in enumerate(_ways(part, instance, evaluator)):
            trace = record(evaluator, way.initial, way.steps, verdict="SAMPLED")
            file = f"traces/{name}/{number:06}{SUFFIX}"
            write_itf(trace, folder / file)
            rows.append(_row(recipe, file, seed, trace, evaluator))
    columns = {column: [row[column] for row in rows] for column in INDEX.names}
    keep(recipe.folder / "index" / f"{name}.parquet", columns, INDEX)
    return len(rows)


def _ways(part: Part, instance: Instance, evaluator: Evaluator) -> Iterator[tuple[int, Way]]:
    if part.recipe.cover is Cover.WALKS:
        for seed in range(part.first, part.end):
            for way in sample(instance, evaluator, seed, 1, part.recipe.steps).paths:
                yield seed, way
        return
    graph = ModelGraph(instance, Packing(instance), frozenset(action.name for action in instance.actions))
    starts = {packed: one for packed, (one, _) in zip(graph.initial, evaluator.initial_states(), strict=True)}
    cover = edges if part.recipe.cover is Cover.EDGES else pairs
    for start, labels in cover(graph, part.number, part.of, part.recipe.steps):
        yield -1, Way(tuple(starts[start]), tuple(graph.labels.name(label) for label in labels))


Labels = list[int]


def edges(graph: ModelGraph, number: int, of: int, most: int) -> Iterator[tuple[int, Labels]]:
    """Paths that together take every edge from every `of`-th state, those from the farthest states first."""
    reachable_states = graph.explore(None)
    order = {state: place for place, state in enumerate(reachable_states.predecessor)}
    uncovered_labels = {
        s: set(steps) for s, place in order.items() if place % of == number and (steps := graph.steps(s))
    }
    for state in [s for s in reversed(reachable_states.predecessor) if s in uncovered_labels]:
        while state in uncovered_labels:
            start, labels = reachable_states.path(state)
            at = start
            for label in labels:
                at = _took(graph, uncovered_labels, at, label)
            for _ in range(most):
                onward = _next(graph, uncovered_labels, at)
                if onward is None:
                    break
                labels.append(onward)
                at = _took(graph, uncovered_labels, at, onward)
            yield start, labels


def _next(graph: ModelGraph, uncovered_labels: dict[int, set[int]], at: int) -> int | None:
    """The label of an uncovered edge, or of an edge to a state with one; None if there is neither."""
    if at in uncovered_labels:
        return min(uncovered_labels[at])
    return next((label for label, target in graph.steps(at).items() if target in uncovered_labels), None)


def _took(graph: ModelGraph, uncovered_labels: dict[int, set[int]], at: int, label: int) -> int:
    if at in uncovered_labels:
        uncovered_labels[at].discard(label)
        if not uncovered_labels[at]:
            del uncovered_labels[at]
    return graph.steps(at)[label]


def pairs(graph: ModelGraph, number: int, of: int, most: int) -> Iterator[tuple[int, Labels]]:
    """Paths that together have every pair of consecutive actions in this share of all pairs.

    Every such path is a shortest one to its pair, so `most`, the limit of steps, is not used.
    """
    reachable_states = graph.explore(None)
    labels_by_pair: dict[tuple[str, str], Labels] = {}
    starts: dict[tuple[str, str], int] = {}
    action = [name for name, _ in graph.labels.steps]
    for state in reachable_states.predecessor:
        for one, target in graph.steps(state).items():
            for two in graph.steps(target):
                pair = action[one], action[two]
                if pair not in labels_by_pair and crc32(" ".join(pair).encode()) % of == number:
                    start, labels = reachable_states.path(state)
                    labels_by_pair[pair], starts[pair] = [*labels, one, two], start
    shown: set[tuple[str, str]] = set()
    for pair in sorted(labels_by_pair, key=lambda pair: (-len(labels_by_pair[pair]), pair)):
        if pair not in shown:
            shown |= set(pairwise(action[label] for label in labels_by_pair[pair]))
            yield starts[pair], labels_by_pair[pair]


def _row(recipe: Recipe, file: str, seed: int, trace: Trace, evaluator: Evaluator) -> Row:
    """The row of a trace in the index.

    `witnessed` are the probes that it reaches, `violated` the promises it breaks.
    """
    instance = evaluator.instance
    states = [tuple(state[v.name] for v in instance.variables) for state in trace.states]
    witnessed: list[str] = []
    violated: list[str] = []
    for p in instance.properties:
        seek = p.kind.startswith("sometimes")
        if p.kind in ("always", "sometimes"):
            occurs = any(evaluator.holds(p, state) is seek for state in states)
        elif p.kind in ("step", "sometimes-step"):
            occurs = any(evaluator.holds(p, before, state) is seek for before, state in pairwise(states))
        else:
            continue
        if occurs:
            (witnessed if seek else violated).append(p.name)
    return {
        "file": file,
        "design": trace.design,
        "model_hash": trace.model_hash,
        "bounds": json.dumps(dict(trace.constants), sort_keys=True),
        "cover": recipe.cover.value,
        "seed": seed,
        "length": len(trace.steps),
        "actions": [step.action for step in trace.steps],
        "witnessed": witnessed,
        "violated": violated,
    }
