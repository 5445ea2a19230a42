"""Pieces of histories are read and paired as one process reads the whole: the same operations, the same first mistake.

Plain lines go a way of their own, which this holds to that of all others. Without these, a line could mean something
else to it, or a mistake could pass, and a verdict be about another history. No Spark is needed.
"""

from __future__ import annotations

import json
import marshal
from pathlib import Path
from random import Random
from typing import cast

import pytest
from tests.support.histories import Story
from tests.support.planted_anomalies import PERMITTED, PLANTED
from tests.support.random_histories import Line, Log

from isr_anomalies import Claims, MalformedHistory, Partition, pair_operations, read_json
from isr_anomalies.operations import NOTHING, Event
from isr_anomalies.read_json import item_of, parse_object
from isr_pipeline.histories import chunks, pairing, plain, shares
from isr_pipeline.locations import Location

SEND = '{"type": "invoke", "f": "produce", "process": 0, "time": 1, "partition": "t", "value": 1}'
POLLED = '{"type": "ok", "f": "poll", "process": 0, "time": 2, "records": {"t": [[0, 1]]}}'
NOT_PLAIN = (
    "",
    "7",
    "[]",
    SEND[:-1],
    SEND + SEND,
    SEND.replace("1}", "1.0}"),
    SEND.replace("1}", "true}"),
    SEND.replace("1}", "NaN}"),
    SEND.replace("1}", '1, "group": 1}'),
    SEND.replace("1}", '1, "error": "X"}'),
    SEND.replace("1}", '1, "settings": null}'),
    SEND.replace("1}", '1, "partitions": null}'),
    SEND.replace('"t"', '""'),
    SEND.replace('"t"', "null"),
    SEND.replace('"time": 1', '"time": -1'),
    SEND.replace('"time": 1', '"time": "1"'),
    SEND.replace('"process": 0', '"process": null'),
    SEND.replace('"process": 0', '"process": false'),
    SEND.replace("invoke", "error"),
    SEND.replace("produce", "txn"),
    SEND.replace("produce", "final-read"),
    POLLED.replace("[0, 1]", "[0, 1, 3], [1, 2]"),
    POLLED.replace("[0, 1]", "[0, 1, 3, 4]"),
    POLLED.replace("}}", '}, "rebalanced": ["t"]}'),
    POLLED.replace("[0, 1]", "[-1, 1]"),
    POLLED.replace("[0, 1]", "[0]"),
    POLLED.replace("[[0, 1]]", "null"),
    POLLED.replace('"t"', '"\ud800"'),
)
VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    1,
    1.0,
    "",
    "c2",
    "t-0",
    "ok",
    "info",
    "invoke",
    "poll",
    "produce",
    [],
    [[0, 1]],
    {},
    1 << 70,
)
FIELDS = (
    "type",
    "f",
    "process",
    "time",
    "id",
    "key",
    "partition",
    "value",
    "offset",
    "records",
    "acks",
    "group",
    "error",
    "more",
)


def stories() -> list[list[str]]:
    told = [story().lines for _, story, _ in (*PLANTED, *PERMITTED)]
    told += [with_settings(story().lines) for _, story, _ in PLANTED[:5]]
    return told + [Log(Random(seed)).run(60) for seed in range(5)]


def with_settings(lines: list[str]) -> list[str]:
    """The same lines with a field that is unknown in operations."""
    return [json.dumps({**json.loads(line), "settings": {"acks": "1", "unclean": True}}) for line in lines]


def test_most_lines_of_a_history_are_plain() -> None:
    lines = [line for seed in range(5) for line in Log(Random(seed)).run(60)]
    assert sum(plain.line_of(line) is not None for line in lines) > len(lines) // 2


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_is_unusual_or_wrong_is_not_plain(text: str) -> None:
    assert plain.line_of(text) is None


def test_a_plain_invocation_is_the_event_that_isr_anomalies_has() -> None:
    seen = 0
    for text in (SEND, *(line for story in stories() for line in story)):
        told = plain.line_of(text)
        if told is not None and plain.begins(told):
            seen += 1
            expected = item_of(3, parse_object(3, text))
            assert isinstance(expected, Event)
            # fields that nobody looks at make an Extra that says nothing
            extra = None if expected.extra == NOTHING else expected.extra
            assert plain.event((3, told)) == expected._replace(extra=extra)
    assert seen > 100


def by_one_process(lines: list[str]) -> object:
    try:
        history = pair_operations(read_json(lines), Claims())
    except MalformedHistory as problem:
        return str(problem)
    return sorted(map(pairing.row_of, history.operations)), parts(history.partitions), history.ends_at


def in_pieces(lines: list[str], folder: Path, size: int, buckets: int) -> object:
    """The same by the tasks of the pipeline, called one after the other."""
    file = Location.of(folder / "history.jsonl")
    file.put("\n".join(lines).encode())
    pieces = chunks.chunks_of(0, file, size)
    told = [row for piece in pieces for row in chunks.count(piece)]
    counts = {(row.history, int(row.key)): int.from_bytes(row.payload, "little") for row in told}
    boxes: dict[str, list[pairing.Box]] = {}
    for piece in chunks.number_lines(pieces, counts):
        for row in pairing.Parse({0: buckets})(piece):
            boxes.setdefault(row.key, []).append(cast("pairing.Box", marshal.loads(row.payload)))
    problems = [box["problem"] for some in boxes.values() for box in some if "problem" in box]
    found: list[pairing.PairedOperations] = []
    payloads: dict[str, list[bytes]] = {}
    for bucket, some in boxes.items():
        try:
            found.append(pairing.all_paired(some))
        except MalformedHistory as problem:
            problems.append((problem.line, str(problem)))
            continue
        for name, share in pairing.shares_of(found[-1], some, int(bucket) << 40).items():
            payloads.setdefault(name, []).append(marshal.dumps(share))
    if problems:
        return min(problems)[1]
    together = {name: shares.together(name, given, "all").partition for name, given in payloads.items()}
    ends_at = max((box.get("ends_at", 0) for some in boxes.values() for box in some), default=0)
    return sorted(row for one in found for row in one.rows()), parts(together), ends_at


def parts(partitions: dict[str, Partition]) -> object:
    """Partitions with nothing in them but what both know: lines as numbers, no stints, nothing that a read proves."""
    return {
        name: (
            [send._replace(op=send.invoked, committed=send.outcome == "ok") for send in one.sends],
            [batch._replace(op=batch.invoked, stint=min(batch.stint, 0)) for batch in one.batches],
            one.scans,
            [rewind.invoked for rewind in one.rewinds],
            one.dumps,
            one.log_reports,
        )
        for name, one in partitions.items()
    }


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("size", [200, 1000, 1 << 20])
def test_pieces_are_paired_as_by_one_process(tmp_path: Path, size: int, buckets: int) -> None:
    for lines in stories():
        assert in_pieces(lines, tmp_path, size, buckets) == by_one_process(lines)


def spoilt(lines: list[str], random: Random) -> list[str]:
    """The lines with one field of one of them changed, or with a line doubled, left out, or moved."""
    lines = list(lines)
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.choice(("change", "change", "change", "double", "omit", "move"))
    if kind == "change":
        table = cast("Line", json.loads(lines[at]))
        lines[at] = json.dumps({**table, random.choice(FIELDS): random.choice(VALUES)})
    elif kind == "double":
        lines.insert(other, lines[at])
    else:
        line = lines.pop(at)
        if kind == "move":
            lines.insert(other, line)
    return lines


@pytest.mark.long
@pytest.mark.parametrize("seed", range(16))
def test_the_first_mistake_is_the_one_that_one_process_names(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    outcomes: list[type] = []
    for _ in range(60):
        lines = spoilt(Log(random).run(30), random)
        if random.random() < 0.3:
            lines = spoilt(lines, random)
        expected = by_one_process(lines)
        outcomes.append(type(expected))
        assert in_pieces(lines, tmp_path, random.choice((150, 600, 1 << 20)), random.choice((1, 3))) == expected
    assert {str, tuple} == set(outcomes)


def test_a_process_that_invokes_while_a_send_of_an_earlier_piece_is_open_is_named(tmp_path: Path) -> None:
    story = Story()
    story.begin("produce", "p", partition="t-0", value=1)
    story.send(2, 0, by="q").send(3, 1, by="p").sent(2, by="p")
    says = "line 4: process p invokes while its produce of line 1 is open (give them ids)"
    assert by_one_process(story.lines) == says
    assert in_pieces(story.lines, tmp_path, 50, 1) == says


@pytest.mark.parametrize("size", [50, 1 << 20])
def test_claims_below_the_first_line_are_refused_in_any_piece(tmp_path: Path, size: int) -> None:
    lines = Story(acks="1").send(1, 0).lines
    says = "line 4: a header with settings is the first line of a file, or there is none"
    assert in_pieces([*lines, lines[0]], tmp_path, size, 1) == by_one_process([*lines, lines[0]]) == says
    assert in_pieces(lines, tmp_path, size, 1) == by_one_process(lines)
