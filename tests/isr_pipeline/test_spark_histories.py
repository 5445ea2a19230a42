"""Histories on Spark: the same answers as from the checker on one machine, for every history, to the last witness.

Without these, an anomaly that spans pieces of a file, partitions or tasks could be lost, and only on histories too
large for the checker on one machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.histories import Story, judged, with_word, words
from tests.support.planted_anomalies import BELOW, NEAR_MISSES, NOTHING_SHOWN, PERMITTED, PLANTED
from tests.support.random_histories import EDITS, Line, Log
from tests.support.sparks import spark

from insync_cli.main import main
from isr_anomalies import ANOMALIES, Claims, Partition, check_partition, pair_operations, read_json
from isr_anomalies.history import OperationIndexer
from isr_pipeline.histories import Unreadable, check_files, chunks, cycles, jobs, pairing, shares
from isr_pipeline.histories.rows import Column, Numbers, read_columns
from isr_pipeline.locations import Location

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

Told = Callable[[], list[str]]


def spoilt(seed: int) -> list[str]:
    random = Random(seed)
    lines = [cast("Line", json.loads(line)) for line in Log(random).run(100)]
    EDITS[seed % len(EDITS)](lines, random)
    return [json.dumps(line) for line in lines]


def written(folder: Path, stories: list[list[str]]) -> list[Path]:
    files = [folder / f"{number}.jsonl" for number in range(len(stories))]
    for file, lines in zip(files, stories, strict=True):
        file.write_text("\n".join(lines), encoding="utf-8")  # without an end of line after the last one
    return files


def test_every_history_is_judged_as_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [story for _, story, _ in (*PLANTED, *PERMITTED)] + [story for _, story in NEAR_MISSES]
    stories = [story().lines for story in told] + [spoilt(seed) for seed in range(len(EDITS))]
    stories += [story.lines for story in (*NOTHING_SHOWN, *(story for story, _ in BELOW))]
    stories += [[json.dumps({**json.loads(line), "settings": {"acks": "1"}}) for line in stories[2]]]
    stories += [Log(Random(seed)).run(100) for seed in range(3)] + [[], ["", *Story().send(1, 0).lines, ""]]
    monkeypatch.setattr(chunks.chunks_of, "__defaults__", (3000,))  # so that pairs begin in one piece, end in another
    monkeypatch.setattr(jobs, "LINES_PER_BUCKET", 100)
    found = check_files(spark(), written(tmp_path, stories), tmp_path / "tables")
    for one, lines in zip(found, stories, strict=True):
        expected = judged(lines)
        assert one.answer == expected, one.path
        lines_shown = {line for j in expected.judgements for w in j.witnesses for line in w.lines}
        assert one.quotes == {line: lines[line - 1] for line in lines_shown}
    seen = {name for one in found for name in with_word(one.answer, "VIOLATED", "PERMITTED")}
    assert seen == {anomaly.name for anomaly in ANOMALIES}


def tangled(random: Random, kinds: tuple[str, ...]) -> list[str]:
    """Sends, transactions over several partitions, and polls, some of them at once; some offsets are of long ago."""
    story, offsets = Story(), dict.fromkeys(("a", "b", "c"), 0)
    pending: list[tuple[str, str, dict[str, object]]] = []
    for number in range(80):
        kind, partitions = random.choice(kinds), random.sample(sorted(offsets), random.choice((1, 2, 3)))
        told = {p: offsets[p] if random.random() < 0.9 else random.randrange(1 + offsets[p]) for p in partitions}
        who, first = f"x{number}", partitions[0]
        if kind == "produce":
            story.begin(kind, who, partition=first, value=number)
            pending.append((kind, who, {"offset": told[first]}))
            offsets[first] += 1
        elif kind == "txn":
            story.begin(kind, who, ops=[["send", p, number] for p in partitions])
            pending.append((kind, who, {"ops": [["send", p, number, told[p]] for p in partitions]}))
            offsets |= {p: offsets[p] + 1 for p in partitions}
        else:
            story.begin(kind, who)
            at = {p: max(0, offset - 1) for p, offset in told.items()}
            sent = {
                p: [[o, v] for (q, o), v in placed(story.lines, pending).items() if (q, o) == (p, at[p])] for p in at
            }
            pending.append((kind, who, {"records": sent}))
        random.shuffle(pending)
        while len(pending) > random.choice((0, 0, 1, 3)):
            kind, who, fields = pending.pop()
            story.line(type="ok", f=kind, process=who, **fields)
    return story.lines


def placed(lines: list[str], pending: list[tuple[str, str, dict[str, object]]]) -> dict[tuple[str, int], object]:
    """What is where: of each place the last that was told or will be."""
    said = [cast("Line", json.loads(line)) for line in lines]
    said += [{"f": kind, "type": "ok", "process": who, **fields} for kind, who, fields in pending]
    sent = {line["process"]: line for line in said if line["f"] == "produce" and line["type"] == "invoke"}
    found: dict[tuple[str, int], object] = {}
    for line in said:
        if line["f"] == "produce" and line["type"] == "ok":
            begun = sent[line["process"]]
            found[str(begun["partition"]), cast("int", line["offset"])] = begun["value"]
        for step in cast("list[list[object]]", line.get("ops", []) if line["type"] == "ok" else []):
            found[str(step[1]), cast("int", step[3])] = step[2]
    return found


@pytest.mark.parametrize("kinds", [("produce",), ("produce", "poll"), ("produce", "poll", "txn"), ("txn",)])
@pytest.mark.parametrize("seed", range(12))
def test_a_cycle_lies_where_the_partitions_say(seed: int, kinds: tuple[str, ...]) -> None:
    """Without Spark, and with one line in a block."""
    lines = tangled(Random(seed), kinds)
    expected = [j for j in judged(lines).judgements if j.number in (14, 15, 16)]
    assert [(j.finding_count, list(j.witnesses)) for j in expected] == cycles_of(lines)


def test_the_tangled_histories_have_cycles_of_offsets_and_of_time() -> None:
    together = [cycles_of(tangled(Random(seed), ("produce", "poll", "txn"))) for seed in range(12)]
    assert all(any(found[kind][0] for found in together) for kind in (0, 2))


def cycles_of(lines: list[str]) -> list[tuple[int, list[object]]]:
    """The tallies of the three kinds of cycles, by the tasks of the pipeline, called one after the other."""
    history = pair_operations(read_json(lines))
    by_line = [op._replace(number=op.invoked) for op in history.operations]
    partitions: dict[str, Partition] = {}
    explode = OperationIndexer(partitions, "all")
    for op in by_line:
        explode.consumed(op)
        explode.index_sends(op, op.outcome == "ok")
    blocks: list[bytes] = []
    edges: dict[str, dict[str, Numbers]] = {}
    multi = {op.number for op in by_line if len(op.micro) > 1}
    for name in sorted(partitions):
        share = shares.Share(partitions[name], multi, [], set())
        reach = shares.Reach(share, check_partition(partitions[name], Claims()).order)
        blocks.append(reach.blocks(1))
        edges[name] = reach.edges()
    where = cycles.stretches(blocks, 1)
    pieces: list[cycles.Piece] = []
    for name, columns in edges.items():
        pieces += [piece for _, piece in cycles.Select({0: where}).edges_of(name, columns, where)]
    ran = pairing.columns(0, list(map(pairing.row_of, by_line)))
    table: dict[str, Column] = {name: np.array(column) for name, column in ran.items()}
    pieces += [piece for _, piece in cycles.Select({0: where}).operations_of(table, where)]
    tallies = [cycles.tallies(pieces, Claims(), ("write-cycle", "read-write-cycle", "ordered-cycle"))]
    return [(one.finding_count, list(one.least)) for one in tallies[0].values()]


def test_a_planted_error_in_a_stretch_is_noticed() -> None:
    """The cut that makes it scale is not idle: without the blocks of partitions the cycle is not found."""
    crossed = PERMITTED[1][1]().lines
    assert words(judged(crossed))["write-cycle"] == "PERMITTED"
    assert cycles_of(crossed)[0][0] == 1
    assert cycles.stretches([bytes(shares.BLOCKS // 8)], 1).many == 0


def test_parquet_is_read_as_its_lines_are(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in Log(Random(3)).run(60)]
    columns = ("type", "f", "process", "time", "partition", "partitions", "value", "offset", "records", "end", "seek")
    nested = {"records", "partitions"}
    table = {
        name: [json.dumps(line[name]) if name in nested and name in line else line.get(name) for line in lines]
        for name in (*columns, "error")
    }
    write = cast("Callable[..., None]", vars(pq)["write_table"])
    write(pa.table(table), tmp_path / "history.parquet", row_group_size=37)
    [found] = check_files(spark(), [tmp_path / "history.parquet"])
    assert found.answer == judged([json.dumps(line) for line in lines])


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ('{"f": "poll", "type": "ok", "process": 1, "time": 9}', "line 4: process 1 completes a poll that it never"),
        ("{", "line 4: not JSON"),
        ('{"settings": {"acks": "1"}}', "line 4: a header with settings is the first line of a file"),
        ('{"f": "produce", "type": "invoke", "process": "p", "time": 1}', "line 4: a produce needs a value"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, broken: str, says: str) -> None:
    lines = [*Story().send(1, 0).wait(3).lines, json.dumps({"f": "heal", "time": 5}), broken, *Story().send(2, 1).lines]
    with pytest.raises(Unreadable, match=says):
        check_files(spark(), written(tmp_path, [Story().lines, lines]))


def test_the_command_writes_tables_and_the_same_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spark()
    [file] = written(tmp_path, [PLANTED[2][1]().lines])
    assert main(["history", str(file), "--json", str(tmp_path / "local.json"), "--max-lag", "1"]) == 12
    out = str(tmp_path / "tables")
    asked = ["history", str(file), "--json", str(tmp_path / "spark.json"), "--max-lag", "1", "--engine", "spark"]
    assert main([*asked, "--out", out]) == 12
    local, large = (json.loads((tmp_path / name).read_text()) for name in ("local.json", "spark.json"))
    assert {**large, "command": local["command"]} == local
    tables = Location.of(out)
    rows = read_columns(tables / "anomalies.parquet", ("anomaly", "verdict"))
    assert set(rows["anomaly"][rows["verdict"] == "VIOLATED"].tolist()) == {"lost-write", "unseen", "offset-gap"}
    operations = tables / "operations"
    assert sum(len(read_columns(operations / name, ["f"])["f"]) for name in operations.files()) == 4
    assert main(["history", str(file), "--out", out]) == 64
