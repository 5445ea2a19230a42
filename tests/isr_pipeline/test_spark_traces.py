"""Trace datasets: they cover what they say, are the same whoever makes them, and drive the broker's cores.

Without these, a dataset with edges missing would pass for a cover, and replaying it would miss bugs on those edges.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from tests.support.broker_traces import simulate_traced, write_trace
from tests.support.sparks import spark

from insync_cli.conformance.traces import instance_made
from insync_cli.main import main
from isr_broker.designs import PLANTED
from isr_check import native
from isr_conform.edge_cover import ModelGraph
from isr_lang import Instance
from isr_pipeline.histories.rows import read_columns
from isr_pipeline.locations import Location
from isr_pipeline.sweeps import sweep
from isr_pipeline.trace_datasets import INDEX, Cover, Recipe, make_part, parts
from isr_pipeline.trace_replays import DIFFERS, REPLAYED, CoresOnTrace, ReplayPart, validate_folder
from isr_replay.packed_states import Packing
from isr_trace.itf import read_itf

pytestmark = pytest.mark.explores

SMALL = {"replicas": 2, "records": 1, "log": 1, "epochs": 1, "isr_changes": 1, "crashes": 0}
OPTIONS = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]
MAKE = partial(instance_made, "kip-966", (), json.dumps(SMALL), ())
SMALLER = partial(instance_made, "kip-966", (), json.dumps(SMALL | {"epochs": 0}), ())


def graph_of(instance: Instance) -> ModelGraph:
    return ModelGraph(instance, Packing(instance), frozenset(a.name for a in instance.actions))


def table(folder: Path, kind: str, names: tuple[str, ...]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for file in sorted((folder / kind).glob("*.parquet")):
        columns = read_columns(Location.of(file), names)
        rows += [dict(zip(names, row, strict=True)) for row in zip(*(columns[n].tolist() for n in names), strict=True)]
    return rows


@pytest.mark.parametrize("make", [SMALLER, pytest.param(MAKE, marks=pytest.mark.slow)], ids=["smaller", "small"])
def test_a_cover_of_edges_takes_every_edge(tmp_path: Path, make: Callable[[], Instance]) -> None:
    recipe = Recipe(make, Cover.EDGES, Location.of(tmp_path), 30)
    for part in parts(recipe, 3, range(0)):
        make_part(part)
    instance = make()
    explored = native.explore(instance)
    graph, packing = graph_of(instance), Packing(instance)
    numbers = {named: n for n, named in enumerate(graph.labels.steps)}
    taken: set[tuple[int, int]] = set()
    for row in table(tmp_path, "index", ("file", "length")):
        trace = read_itf(tmp_path / str(row["file"]))
        assert len(trace.steps) == row["length"]
        states = [packing.packed(tuple(s[v.name] for v in instance.variables)) for s in trace.states]
        labels = [numbers[s.action, tuple(s.parameters.values())] for s in trace.steps]  # type: ignore[arg-type]
        taken |= set(zip(states, labels, strict=False))
    everything = {(s, label) for s in graph.explore(None).predecessor for label in graph.steps(s)}
    assert taken == everything
    assert len({s for s, _ in taken}) <= explored.distinct == len(graph.explore(None).predecessor)


def test_a_cover_of_pairs_shows_every_pair_and_the_index_says_what_is_there(tmp_path: Path) -> None:
    recipe = Recipe(MAKE, Cover.PAIRS, Location.of(tmp_path), 30)
    for part in parts(recipe, 2, range(0)):
        make_part(part)
    graph = graph_of(MAKE())
    action = [name for name, _ in graph.labels.steps]
    possible = {
        (action[one], action[two])
        for state in graph.explore(None).predecessor
        for one, target in graph.steps(state).items()
        for two in graph.steps(target)
    }
    rows = table(tmp_path, "index", tuple(INDEX.names))
    assert {pair for row in rows for pair in pairwise(cast("list[str]", row["actions"]))} == possible
    witnessed = {name for row in rows for name in cast("list[str]", row["witnessed"])}
    probes = {f.name for f in native.explore(MAKE()).findings if f.kind.startswith("sometimes") and f.path}
    assert witnessed
    assert witnessed <= probes
    assert not any(len(cast("list[str]", row["violated"])) for row in rows)


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_spark_makes_the_same_walks_and_cores_follow_them(tmp_path: Path) -> None:
    spark()
    one, many = tmp_path / "one", tmp_path / "many"
    asked = ["traces", "kip-966", *OPTIONS, "--count", "12", "--steps", "15", "--parts", "3", "--replay"]
    assert main([*asked, "--out", str(one)]) == 0
    assert main([*asked, "--out", str(many), "--engine", "spark"]) == 0
    files = sorted(str(p.relative_to(one)) for p in one.rglob("*.itf.json"))
    assert len(files) == 12
    assert files == sorted(str(p.relative_to(many)) for p in many.rglob("*.itf.json"))
    assert all((one / name).read_bytes() == (many / name).read_bytes() for name in files)
    names = tuple(REPLAYED.names)
    assert table(many, "replayed", names) == table(one, "replayed", names)
    assert {row["verdict"] for row in table(one, "replayed", names)} == {"alike"}


@pytest.mark.slow
def test_a_bug_of_the_cores_is_found_along_traces_and_its_trace_is_small(tmp_path: Path) -> None:
    recipe = Recipe(MAKE, Cover.EDGES, Location.of(tmp_path), 30)
    [part] = parts(recipe, 1, range(0))
    make_part(part)
    here, planted = Location.of(tmp_path), PLANTED["commit-under-minimum"]
    counts = ReplayPart(MAKE, here, here, planted)("part-00000")
    assert counts[DIFFERS] > 0
    rows = [r for r in table(tmp_path, "replayed", tuple(REPLAYED.names)) if r["verdict"] == DIFFERS]
    on = CoresOnTrace(MAKE(), planted)
    for row in rows:
        trace = read_itf(tmp_path / str(row["minimal"]))
        assert len(trace.steps) == row["minimal_length"] <= row["steps"]  # type: ignore[operator]
        start = tuple(trace.states[0][v.name] for v in on.instance.variables)
        labels = [on.numbers[s.action, tuple(s.parameters.values())] for s in trace.steps]  # type: ignore[arg-type]
        found, _ = on.follow(start, labels)
        assert (found.verdict, found.kind, found.action) == (DIFFERS, row["kind"], row["action"])
    assert ReplayPart(MAKE, here, here)("part-00000").get(DIFFERS, 0) == 0


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_runs_of_brokers_are_validated_in_tasks_and_a_rejected_one_is_made_small(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("good", "spoilt", "none")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:2]:
        write_trace(folder, simulate_traced(1))
    victim = folders[1] / "1.1.jsonl"
    lines = victim.read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if '"leader_epoch":0' in line and '"state"' in line)
    said = json.loads(lines[at])
    said["state"]["leader_epoch"] = 7
    lines[at] = json.dumps(said)
    victim.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folders[2] / "1.1.jsonl").write_text("{\n", encoding="utf-8")
    good, spoilt, none = sweep(spark(), validate_folder, [str(folder) for folder in folders])
    assert (good["verdict"], spoilt["verdict"], none["verdict"]) == ("accepted", "rejected", "bad")
    assert (spoilt["life"], spoilt["line"]) == ("1.1", at + 1)
    assert 0 < cast("int", spoilt["minimal_lines"]) < len(lines)
