"""What one client can cost all others: every limit of the table in docs/broker.md, beyond which it is refused.

Without these a batch that says what it is not could be taken, and read for ever by whoever asks for a time; and a few
bytes could cost a broker seconds, or its memory.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from unittest.mock import Mock

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.isr_broker.test_wire import asked, one_broker, said
from tests.support.clusters import QUICK, Cluster, three_processes

from isr_broker.core import batch_records, message_json
from isr_broker.core.batch_records import STEPS, at_once, newest_timestamp
from isr_broker.core.log_view import LogView
from isr_broker.core.message_json import MOST_MESSAGES, MOST_VALUES, BadMessage
from isr_broker.core.messages import (
    CreateTopic,
    DeleteTopic,
    Error,
    Heartbeat,
    Metadata,
    Millis,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.core.producers import Verdict, admission_of, look_at
from isr_broker.core.record_batch import (
    BadBatch,
    base_timestamp,
    batch_around,
    batches,
    crc32c,
    encoded_record,
    header,
    new_batch,
    records_in,
    stamped,
    varint,
    zigzag,
)
from isr_broker.flow import FREE, MOST_UNANSWERED, MOST_UNSENT, MUCH, OF_A_CONNECTION, OF_TLS, Flow, Holder
from isr_broker.server import FILES_LEFT, PIECE
from isr_broker.settings import Settings
from isr_broker.storage import dropped_records
from isr_broker.storage.offsets_topic import Committed, learn
from isr_broker.wire import admin_refusals, admin_requests, decoder, fetch_requests, fetch_sessions, protocol
from isr_broker.wire.auto_creation import MOST_UNDER_WAY, AutoCreation
from isr_broker.wire.decoder import MOST_ITEMS, BadFrame
from isr_broker.wire.fetch_requests import OF_A_PART
from isr_broker.wire.group_state import Group, Member, State
from isr_broker.wire.groups import NONE, UNKNOWN_MEMBER_ID, Groups
from isr_broker.wire.produce_requests import AT_ONCE, OF_A_REFUSAL
from isr_broker.wire.protocol import Answer
from isr_broker.wire.reassignment_requests import MOST_REASSIGNED
from isr_broker.wire.requests import Requests
from isr_broker.wire.turns import Gate
from isr_cluster.ports import HOST
from isr_cluster.processes import Processes

DOC = Path(__file__).parents[2] / "docs" / "broker.md"


# Items of a frame


@pytest.mark.parametrize("in_header", [True, False], ids=["in the header", "in the body"])
def test_tagged_fields_are_items_of_a_frame(in_header: bool) -> None:
    """Each is two bytes, and a turn of a loop: 20 MB of them held up everybody for 20 s."""

    def frame(count: int) -> bytes:
        head = struct.pack(">hhih", protocol.API_VERSIONS, 3, 1, -1)
        fields = bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14]) + b"\x07\0" * count
        return head + (fields + b"\2a\2b\0" if in_header else b"\0\2a\2b" + fields)

    assert isinstance(protocol.parse(frame(MOST_ITEMS)), protocol.Request)
    with pytest.raises(BadFrame, match="more than 50,000 items"):
        protocol.parse(frame(MOST_ITEMS + 1))


# Batches at the door


def changed(batch: bytes, at: int, layout: str, value: int) -> bytes:
    """A batch with another value in its header, and a CRC that is right all the same."""
    out = bytearray(batch)
    struct.pack_into(layout, out, at, value)
    if at >= 21:
        struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


def entry(inner: bytes, size: int | None = None) -> bytes:
    return varint(len(inner) if size is None else size) + inner


GOOD = new_batch(b"value")
NO_MEANING = b"\0" * 39
REFUSALS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "INVALID_RECORD"),
    "less than a batch": (GOOD[:-1], "INVALID_RECORD"),
    "two batches": (GOOD + GOOD, "INVALID_RECORD"),
    "a length of less than a record": (changed(GOOD, 8, ">i", 13), "CORRUPT_MESSAGE"),
    "a negative length": (changed(GOOD, 8, ">i", -5), "CORRUPT_MESSAGE"),
    "a length of less than a header": (changed(GOOD, 8, ">i", 20)[:32], "CORRUPT_MESSAGE"),
    "magic 1": (changed(GOOD, 16, ">b", 1), "INVALID_RECORD"),
    "magic 3": (changed(GOOD, 16, ">b", 3), "CORRUPT_MESSAGE"),
    "magic -1": (changed(GOOD, 16, ">b", -1), "CORRUPT_MESSAGE"),
    "a flipped bit": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "CORRUPT_MESSAGE"),
    "a base offset": (changed(GOOD, 0, ">q", 5), "INVALID_RECORD"),
    "more than message.max.bytes": (new_batch(bytes(1_100_000)), "MESSAGE_TOO_LARGE"),
    "no record": (batch_around(b"", 0), "INVALID_RECORD"),
    "a negative count": (changed(GOOD, 57, ">i", -1), "INVALID_RECORD"),
    "a count that the offsets are not": (changed(GOOD, 57, ">i", 2), "INVALID_RECORD"),
    "offsets that the count is not": (changed(GOOD, 23, ">i", 4), "INVALID_RECORD"),
    "a negative range of offsets": (changed(GOOD, 23, ">i", -1), "INVALID_RECORD"),
    "30,000,000 records of 39 bytes": (batch_around(NO_MEANING, 30_000_000), "INVALID_RECORD"),
    "30,000,000 records in 39 bytes of gzip": (
        changed(batch_around(NO_MEANING, 30_000_000), 21, ">h", 1),
        "INVALID_RECORD",
    ),
    "only 0xFF": (batch_around(b"\xff" * 39), "INVALID_RECORD"),
    "1 MB of 0xFF": (batch_around(b"\xff" * 1_000_000), "INVALID_RECORD"),
    "a record of negative size": (batch_around(entry(b"\0\0\0\1\1\0", -20)), "INVALID_RECORD"),
    "a record that is larger than the batch": (batch_around(entry(b"\0\0\0\1\1\0", 60)), "INVALID_RECORD"),
    "a record that is larger than its parts": (batch_around(entry(b"\0\0\0\1\1\0xx")), "INVALID_RECORD"),
    "a value that is larger than its record": (batch_around(entry(b"\0\0\0\1\x7e\0")), "INVALID_RECORD"),
    "a negative number of headers": (batch_around(entry(b"\0\0\0\1\1\1")), "INVALID_RECORD"),
    "more headers than bytes": (batch_around(entry(b"\0\0\0\1\1\x7e")), "INVALID_RECORD"),
    "a header without a key": (batch_around(entry(b"\0\0\0\1\1\2\1\1")), "INVALID_RECORD"),
    "a record with another number": (batch_around(encoded_record(b"x", 1)), "INVALID_RECORD"),
    "bytes after the last record": (batch_around(encoded_record(b"x") + b"more"), "INVALID_RECORD"),
    "fewer records than the count": (batch_around(encoded_record(b"x"), 2), "INVALID_RECORD"),
    "a control batch": (changed(GOOD, 21, ">h", 1 << 5), "INVALID_RECORD"),
    "a producer without a sequence": (new_batch(b"x", producer=(7, 0, -1)), "INVALID_RECORD"),
    "the time of a broker": (changed(GOOD, 21, ">h", 1 << 3), "INVALID_TIMESTAMP"),
    "codec 5": (changed(GOOD, 21, ">h", 5), "UNKNOWN_SERVER_ERROR"),
    "codec 7": (changed(GOOD, 21, ">h", 7), "UNKNOWN_SERVER_ERROR"),
    "a transaction that nobody began": (changed(GOOD, 21, ">h", 1 << 4), "INVALID_PRODUCER_ID_MAPPING"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_no_batch_is_refused_at_the_door(what: str) -> None:
    records, error = REFUSALS[what]
    began = time.process_time()
    verdict = admission_of(LogView().producers, records, 1_048_588)
    assert verdict.error is Error[error]
    assert time.process_time() - began < 1


@pytest.fixture(scope="module")
def alone() -> Requests:
    return one_broker()


def produced(requests: Requests, records: bytes, version: int = 7, **fields: object) -> str:
    rows = [{"index": 0, "records": records}]
    body: Answer = {"acks": 1, "timeout": 100, "topic_data": [{"name": "t", "partition_data": rows}], **fields}
    (answer,) = asked(requests, protocol.PRODUCE, version, body).all("responses")[0].all("partition_responses")
    return Error(answer.number("error_code")).name


def test_a_client_is_told_what_is_wrong_with_its_batch(alone: Requests) -> None:
    assert produced(alone, GOOD) == "NONE"
    assert produced(alone, b"") == produced(alone, batch_around(b"\xff" * 39)) == "INVALID_RECORD"
    zstd, transaction = changed(GOOD, 21, ">h", 4), changed(GOOD, 21, ">h", 1 << 4)
    assert produced(alone, zstd, 6) == "UNSUPPORTED_COMPRESSION_TYPE"
    assert produced(alone, zstd, 7) == "NONE", "what is compressed is not opened, and may be anything"
    assert produced(alone, transaction) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert produced(alone, transaction, transactional_id="a") == "INVALID_PRODUCER_ID_MAPPING"


def test_what_follows_a_batch_and_is_none_is_not_written() -> None:
    """UnifiedLog.trimInvalidBytes."""
    requests = one_broker()
    assert produced(requests, GOOD + b"more") == "NONE"
    assert requests.runtime.logs.logs[TopicPartition("t", 0)].contents()[12:] == stamped(GOOD, 0, 0)[12:]


def test_a_batch_has_the_largest_timestamp_of_its_records() -> None:
    """Or whoever looks for a time would read all batches that promise it (LogValidator: setMaxTimestamp)."""
    wrong = changed(new_batch(b"x", timestamp=5), 35, ">q", 10**12)
    verdict = admission_of(LogView().producers, wrong, 1_000)
    (batch,) = batches(stamped(wrong, 7, 1, verdict.newest), check=True)
    assert (batch.max_timestamp, batch.base_offset) == (5, 7)


def read_one_by_one(data: bytes) -> int | None:
    """What `newest_timestamp` says, without columns."""
    batch, newest = header(data, 0), list[int]()
    at, end = 61, batch.size
    try:
        for number in range(batch.count):
            at, delta, headers, here = batch_records._record(  # pyright: ignore[reportPrivateUsage]
                data, at, end, number
            )
            at_once(batch_records._headers(data, here, at, headers))  # pyright: ignore[reportPrivateUsage]
            newest.append(delta)
    except BadBatch:
        return None
    return base_timestamp(data, batch) + max(newest) if at == end else None


@given(seed=st.integers(0, 2**32))
def test_records_are_looked_at_by_columns_as_one_by_one(seed: int) -> None:
    """Of many lengths, times and damages: what the columns pass over must not be what one record would not."""
    chance = Random(seed)
    count, alike = chance.choice((1, 2, 9, 70, 200)), chance.random() < 0.7
    times, headers = chance.choice(((0, 1), (0, 3_000), (-70, 70))), b"\2\2h\2v" if chance.random() < 0.3 else b"\0"
    records = b""
    for number in range(count):
        value = bytes(20 if alike else chance.randrange(150))
        middle = varint(chance.randrange(*times)) + varint(number) + b"\1" + varint(len(value))
        records += entry(b"\0" + middle + value + headers)
    data = bytearray(batch_around(records, count, 1_000))
    for _ in range(chance.choice((0, 1, 1, 2))):
        data[chance.randrange(61, len(data))] = chance.randrange(256)
    try:
        by_columns: int | None = at_once(newest_timestamp(bytes(data), header(bytes(data), 0)))
    except BadBatch:
        by_columns = None
    assert by_columns == read_one_by_one(bytes(data))


def wide(requests: Requests, partitions: int) -> None:
    """A topic of so many partitions."""
    topic = {"name": "wide", "num_partitions": partitions, "replication_factor": 1}
    asked(requests, protocol.CREATE_TOPICS, 5, {"topics": [topic], "timeout": 100})
    while requests.runtime.deadline() == 0:
        requests.runtime.tick(10_200)


def in_turns(requests: Requests, acks: int, gate: Gate, most: int) -> tuple[list[protocol.Fields], list[int]]:
    """Produce to ten partitions in so many turns at most; the answers, and how many had records after each turn."""
    rows = [{"index": n, "records": new_batch(bytes(AT_ONCE))} for n in range(10)]
    fields: Answer = {"acks": acks, "timeout": 100, "topic_data": [{"name": "wide", "partition_data": rows}]}
    request = protocol.parse(protocol.ask(protocol.PRODUCE, 7, 1, "test", fields)[4:])
    assert isinstance(request, protocol.Request)
    answers, filled = list[Answer | None](), list[int]()

    def count() -> None:
        filled.append(sum(requests.runtime.logs.logs[TopicPartition("wide", n)].view.end > 0 for n in range(10)))

    requests.serve(request, 10_000, answers.append, gate)
    count()
    while requests.turns.waiting and len(filled) < most:
        assert gate.is_closed, "what follows may not overtake it"
        assert not answers
        requests.turns.tick(10_000)
        count()
    requests.runtime.tick(10_400)
    frames = [protocol.answer(request.key, request.version, 1, answer) for answer in answers if answer is not None]
    return [protocol.parse_answer(request.key, request.version, frame[4:]).body for frame in frames], filled


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_produce_of_many_records_is_looked_at_in_turns(acks: int) -> None:
    """90 MB of records of nine bytes took 17 s, and everybody else waited."""
    requests, gate = one_broker(), Gate()
    wide(requests, 10)
    answers, filled = in_turns(requests, acks, gate, 100)
    assert filled == [*range(1, 11)]
    assert not gate.is_closed
    rows = [p for answer in answers for p in answer.all("responses")[0].all("partition_responses")]
    assert [p.number("error_code") for p in rows] == [0] * (0 if acks == 0 else 10)


def test_of_a_produce_whose_connection_is_closed_the_rest_is_left() -> None:
    """Its bytes count no more, so they are not kept."""
    requests, gate = one_broker(), Gate()
    wide(requests, 10)
    in_turns(requests, 1, gate, 3)
    gate.is_abandoned = True
    requests.turns.tick(10_000)
    assert not requests.turns.waiting
    assert sum(requests.runtime.logs.logs[TopicPartition("wide", n)].view.end > 0 for n in range(10)) == 3


def uneven_batch(records: int, headers: int = 0, timestamp: int = 0) -> bytes:
    """Records none of which is as long as the one before it; what is alike is looked at in an instant."""
    tail = varint(headers) + 2 * headers * b"\0"
    entries = (
        entry(b"\0\0" + varint(number) + b"\1" + varint(number % 2) + number % 2 * b"x" + tail)
        for number in range(records)
    )
    return batch_around(b"".join(entries), records, timestamp)


@pytest.mark.parametrize(
    ("records", "headers"), [(100_000, 0), (400, 1_000), (2, 200_000)], ids=["records", "both", "headers"]
)
def test_a_batch_of_many_records_is_looked_at_in_turns(records: int, headers: int) -> None:
    """One of 1 MB took 0.2 s of a processor in one turn, half a second where they have headers."""
    data = uneven_batch(records, headers, timestamp=7)
    look, turns, longest, began = look_at(data), 0, 0.0, time.process_time()
    verdict = None
    while verdict is None:
        try:
            next(look)
        except StopIteration as end:
            verdict = end.value
        now = time.process_time()
        turns, longest, began = turns + 1, max(longest, now - began), now
    assert verdict == Verdict(Error.NONE, 7)
    assert turns >= (records + records * headers // 2) // STEPS
    assert longest < 0.1


def test_a_batch_that_is_alike_is_looked_at_in_few_turns() -> None:
    """As those of most producers are; each turn costs those who wait for it."""
    assert len(list(look_at(new_batch(b"x", 10_000)))) == 0


@pytest.mark.parametrize("is_good", [True, False])
def test_what_follows_a_large_batch_waits_until_it_has_been_looked_at(is_good: bool) -> None:
    requests, gate = one_broker(), Gate()
    batch = uneven_batch(30_000)
    if not is_good:
        batch = batch_around(batch[61:-1] + b"\1", 30_000)
    rows = [{"index": 0, "records": batch}]
    fields: Answer = {"acks": 1, "timeout": 100, "topic_data": [{"name": "t", "partition_data": rows}]}
    request = protocol.parse(protocol.ask(protocol.PRODUCE, 7, 1, "test", fields)[4:])
    assert isinstance(request, protocol.Request)
    answers, turns = list[Answer | None](), 1
    requests.serve(request, 10_000, answers.append, gate)
    while requests.turns.waiting:
        assert gate.is_closed
        assert not answers
        requests.turns.tick(10_000)
        turns += 1
    assert not gate.is_closed
    assert turns > 2
    (answer,) = answers
    assert answer is not None
    frame = protocol.answer(request.key, request.version, 1, answer)
    (row,) = protocol.parse_answer(request.key, request.version, frame[4:]).body.all("responses")
    (partition,) = row.all("partition_responses")
    assert Error(partition.number("error_code")).name == ("NONE" if is_good else "INVALID_RECORD")
    assert requests.runtime.logs.logs[TopicPartition("t", 0)].view.end == (30_000 if is_good else 0)


@pytest.mark.sockets
def test_a_produce_is_not_overtaken_by_the_next_one_of_its_connection() -> None:
    with Cluster(1) as cluster:
        with Talk(cluster.ports[1]) as talk:
            topic = {"name": "wide", "num_partitions": 4, "replication_factor": 1}
            talk.ask(protocol.CREATE_TOPICS, 5, {"topics": [topic], "timeout": 10_000})
            cluster.wait(lambda: cluster.leads("wide") == 4, "it leads", 10)
            for sizes in ({n: AT_ONCE for n in range(4)}, {3: 1}):
                rows = [{"index": n, "records": new_batch(bytes(size))} for n, size in sizes.items()]
                topics = [{"name": "wide", "partition_data": rows}]
                fields: Answer = {"acks": 1, "timeout": 9_000, "topic_data": topics}
                talk.sendall(protocol.ask(protocol.PRODUCE, 7, 1, "test", fields))
            for offset in (0, 1):
                answer = protocol.parse_answer(protocol.PRODUCE, 7, talk.take(int.from_bytes(talk.take(4), "big"))).body
                last = answer.all("responses")[0].all("partition_responses")[-1]
                assert (last.number("error_code"), last.number("base_offset")) == (0, offset)
        cluster.wait(lambda: not cluster.servers[1].flow.size, "nothing is in flight", 10)


def test_the_newest_records_are_looked_for_in_turns() -> None:
    requests = one_broker()
    wide(requests, 10)
    in_turns(requests, 1, Gate(), 100)
    rows = [{"partition_index": n, "current_leader_epoch": -1, "timestamp": -3} for n in range(10)]
    fields: Answer = {"replica_id": -1, "topics": [{"name": "wide", "partitions": rows}]}
    assert said(requests, protocol.ask(protocol.LIST_OFFSETS, 7, 1, "test", fields)) is None
    turns = 1
    while requests.turns.waiting:
        requests.turns.tick(10_000)
        turns += 1
    assert turns == 10


# ListOffsets by time, over what was written when nobody looked


@pytest.mark.parametrize("what", ["only 0xFF", "a record of negative size", "30,000,000 records of 39 bytes"])
def test_a_look_for_a_time_ends_whatever_is_in_the_log(what: str) -> None:
    data, began = REFUSALS[what][0], time.process_time()
    with pytest.raises(BadBatch):
        list(records_in(data, header(data, 0)))
    assert time.process_time() - began < 1


def test_a_number_has_ten_bytes_at_most() -> None:
    assert zigzag(varint(-(2**63)), 0) == (-(2**63), 10)
    with pytest.raises(BadBatch, match="does not end"):
        zigzag(b"\xff" * 1_000_000, 0)


def test_many_looks_for_a_time_are_done_in_turns(alone: Requests) -> None:
    def rows(numbers: list[int]) -> Answer:
        partitions = [{"partition_index": n, "timestamp": 1} for n in numbers]
        return {"replica_id": -1, "topics": [{"name": "t", "partitions": partitions}]}

    def errors(fields: Answer) -> list[str]:
        (topic,) = asked(alone, protocol.LIST_OFFSETS, 1, fields).all("topics")
        return [Error(p.number("error_code")).name for p in topic.all("partitions")]

    assert errors(rows([0])) == ["NONE"]
    each_once = ["INVALID_REQUEST", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert errors(rows([0, 1, 0])) == each_once, "as ReplicaManager.fetchOffset"
    assert said(alone, protocol.ask(protocol.LIST_OFFSETS, 1, 1, "test", rows([*range(5_000)]))) is None
    assert alone.turns.deadline() == 0
    while alone.turns.waiting:
        alone.turns.tick(1)


@pytest.mark.parametrize("size", [-1, -20, 2**31], ids=["nothing", "negative", "more than there is"])
def test_whoever_reads_records_ends_whatever_they_say_of_their_size(size: int) -> None:
    """Also where nobody looked before they were written: what groups have committed, and what a truncation takes."""
    data, began = batch_around(entry(b"\0\0\0\1\1\0", size), 2**31 - 1), time.process_time()
    for reader in (partial(learn, Committed()), lines_of):
        with pytest.raises(BadBatch, match="a record of"):
            reader(data)
    assert time.process_time() - began < 1


def lines_of(data: bytes) -> None:
    """What is written down of a batch that a truncation takes."""
    list(dropped_records._lines(TopicPartition("t", 0), data, header(data, 0)))  # pyright: ignore[reportPrivateUsage]


def test_a_record_that_is_no_committed_offset_is_a_damaged_batch() -> None:
    record = b"\0\0\0" + varint(4) + struct.pack(">hh", 1, 9) + b"\1\0"
    with pytest.raises(BadBatch, match="no committed offset"):
        learn(Committed(), batch_around(entry(record)))


# What a request names


SUBSCRIPTIONS = {
    "names of negative length": struct.pack(">hih", 0, 2**31 - 1, -2),
    "a name of negative length": struct.pack(">hih", 0, 1, -1) + bytes(4),
    "more names than bytes": struct.pack(">hi", 0, 2**31 - 1) + bytes(1_000),
    "a negative number of names": struct.pack(">hi", 0, -1) + bytes(4),
    "a name that is longer than the rest": struct.pack(">hih", 0, 1, 9) + b"t",
}


@pytest.mark.parametrize("metadata", SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
def test_a_subscription_that_cannot_be_read_is_none(metadata: bytes) -> None:
    """Eight bytes had the broker count to two thousand million; who knows what the member reads."""
    groups, began = Groups(0), time.process_time()
    member = Member("", {"range": metadata}, session_ms=10, rebalance_ms=10, heard_at=0)
    groups.join("g", "consumer", member, "a", 0, lambda answer: None)
    assert groups.groups["g"].protocol == "range"
    assert groups.reads("g", {"t", "u"}) == {"t", "u"}
    assert time.process_time() - began < 1


def test_what_members_read_is_looked_at_once_for_all_topics() -> None:
    requests, name = one_broker(), "g"
    metadata = struct.pack(">hi", 0, 100_000) + b"".join(struct.pack(">h", 5) + b"%05d" % n for n in range(100_000))
    join: Answer = {
        "group_id": name,
        "session_timeout": 6_000,
        "rebalance_timeout": 6_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }
    assert said(requests, protocol.ask(protocol.JOIN_GROUP, 2, 1, "a", join)) is None
    requests.groups.tick(60_000)
    topics = [{"name": f"{n:05}", "partitions": [{"partition_index": 0}]} for n in range(99_900, 101_000)]
    began = time.process_time()
    answer = asked(requests, protocol.OFFSET_DELETE, 0, {"group_id": name, "topics": topics})
    assert len(answer.all("topics")) == 1_100
    assert time.process_time() - began < 2


def many_members(count: int, pending: int = 0) -> Groups:
    """A group of members with names for life, and of ids that nobody has joined with."""
    groups = Groups(0)
    for n in range(count):
        member = Member("", {"range": b""}, session_ms=10**6, rebalance_ms=10**6, heard_at=0, instance=f"i{n}")
        groups.groups.setdefault("g", Group()).kind = "consumer"
        groups.groups["g"].state = State.JOINING
        member.identity = f"m{n}"
        groups.groups["g"].add(member)
    groups.groups["g"].pending.update({f"p{n}": 10**6 for n in range(pending)})
    return groups


@pytest.mark.parametrize(
    ("names", "pending", "code"),
    [
        ([("", f"no{n}") for n in range(24_000)], 0, UNKNOWN_MEMBER_ID),
        ([("", f"i{n}") for n in range(1_000)], 5_000, NONE),
        ([(f"p{n}", "") for n in range(5_000)], 5_000, NONE),
    ],
    ids=["names that nobody has", "names of members", "ids that nobody has joined with"],
)
def test_who_leaves_by_name_is_not_looked_for_among_all(names: list[tuple[str, str]], pending: int, code: int) -> None:
    """24,000 names that nobody had, in a group of 1,000: more than a second of a processor."""
    groups = many_members(1_000, pending)
    began = time.process_time()
    assert groups.leave("g", names, 1) == [code] * len(names)
    assert time.process_time() - began < 0.3


def test_a_name_for_life_is_known_as_long_as_its_member() -> None:
    groups = many_members(2)
    group = groups.groups["g"]
    before, after = group.members["m0"], attrs.evolve(group.members["m0"], identity="m9")
    group.replace(before, after)
    assert (group.static("i0"), [*group.members]) == (after, ["m9", "m1"])
    group.remove("m9")
    assert group.static("i0") is None
    assert group.static("") is None


def test_a_topic_that_is_named_often_is_described_once(alone: Requests) -> None:
    """Or 60 KB could have an answer of a gigabyte."""
    often: Answer = {"topics": [{"name": "t"}] * 1_000, "allow_auto_topic_creation": False}
    assert len(asked(alone, protocol.METADATA, 4, often).all("topics")) == 1
    often = {"resources": [{"resource_type": 2, "resource_name": "t"}] * 1_000}
    assert len(asked(alone, protocol.DESCRIBE_CONFIGS, 2, often).all("results")) == 1
    assert len(asked(alone, protocol.DESCRIBE_GROUPS, 5, {"groups": ["g"] * 1_000}).all("groups")) == 1


def test_so_many_topics_are_created_for_clients_at_a_time() -> None:
    creation, names = AutoCreation(), [f"n{n}" for n in range(6_000)]
    first = creation.begin([*names, *names])
    assert first == names[:MOST_UNDER_WAY]
    assert creation.begin(names) == []
    creation.end(names[0])
    assert creation.begin(names) == names[:1]


def test_unknown_names_are_created_a_few_in_a_turn() -> None:
    requests = one_broker(changed={"auto.create.topics.enable": "true"})
    names: Answer = {"topics": [{"name": f"n{n}"} for n in range(1_000)], "allow_auto_topic_creation": True}
    assert len(asked(requests, protocol.METADATA, 4, names).all("topics")) == 1_000
    controller = requests.runtime.controller
    assert controller is not None
    turns = [len(controller.partitions)]
    while requests.turns.waiting:
        requests.turns.tick(10_000)
        assert requests.runtime.controller is not None
        turns.append(len(requests.runtime.controller.partitions))
    assert max(b - a for a, b in pairwise(turns)) == 10
    assert turns[-1] <= MOST_UNDER_WAY + 2, "with those that were there"


def test_one_request_creates_so_many_partitions() -> None:
    requests = one_broker()

    def errors(topics: list[Answer]) -> set[str]:
        answer = asked(requests, protocol.CREATE_TOPICS, 5, {"topics": topics, "timeout": 100})
        return {Error(topic.number("error_code")).name for topic in answer.all("topics")}

    two = [{"name": f"many{n}", "num_partitions": 6_000, "replication_factor": 1} for n in range(2)]
    assert errors([*two]) == {"POLICY_VIOLATION"}
    assert requests.runtime.controller is not None
    assert TopicPartition("many0", 0) not in requests.runtime.controller.partitions
    assert errors([{"name": "few", "num_partitions": 3, "replication_factor": 1}]) == {"NONE"}


def asked_in_turns(requests: Requests, key: int, version: int, fields: Answer) -> protocol.Fields:
    """The answer to a request that is served in turns."""
    request, answers = protocol.parse(protocol.ask(key, version, 1, "test", fields)[4:]), list[Answer | None]()
    assert isinstance(request, protocol.Request)
    requests.serve(request, 10_000, answers.append)
    while requests.turns.waiting:
        requests.turns.tick(10_000)
    (answer,) = answers
    assert answer is not None
    return protocol.parse_answer(key, version, protocol.answer(key, version, 1, answer)[4:]).body


def test_partitions_that_are_not_there_cost_little(alone: Requests) -> None:
    """A fetch of 45,000 took a minute of a processor: after each answer all of them were counted."""
    rows = [{"partition": n, "index": n, "fetch_offset": 0, "partition_max_bytes": 1} for n in range(20_000)]
    began = time.process_time()
    fetch: Answer = {"replica_id": -1, "max_bytes": 1, "topics": [{"topic": "none", "partitions": rows}]}
    assert len(asked_in_turns(alone, protocol.FETCH, 4, fetch).all("responses")[0].all("partitions")) == 20_000
    fields: Answer = {"acks": 1, "timeout": 1, "topic_data": [{"name": "none", "partition_data": rows}]}
    answer = asked_in_turns(alone, protocol.PRODUCE, 7, fields)
    assert len(answer.all("responses")[0].all("partition_responses")) == 20_000
    assert time.process_time() - began < 10
    names: Answer = {"groups_names": [f"g{n}" for n in range(20_000)]}
    assert len(asked_in_turns(alone, protocol.DELETE_GROUPS, 1, names).all("results")) == 20_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(("key", "version"), [(protocol.FETCH, 4), (protocol.FETCH, 7), (protocol.PRODUCE, 7)])
def test_many_partitions_are_asked_about_in_turns(key: int, version: int) -> None:
    """A fetch of 45,000 was 0.35 s of a processor in one turn. What follows on its connection waits."""
    requests, gate, answers = one_broker(), Gate(), list[Answer | None]()
    rows = [{"partition": n, "index": n, "partition_max_bytes": 1, "current_leader_epoch": -1} for n in range(5_000)]
    topics = {"topics": [{"topic": "t", "partitions": rows}], "topic_data": [{"name": "t", "partition_data": rows}]}
    rest: Answer = {"replica_id": -1, "max_bytes": 1, "acks": 1, "session_epoch": 0, "session_id": 0}
    request = protocol.parse(protocol.ask(key, version, 1, "test", {**rest, **topics})[4:])
    assert isinstance(request, protocol.Request)
    requests.serve(request, 10_000, answers.append, gate)
    turns = 1
    while requests.turns.waiting:
        assert gate.is_closed
        assert not answers
        requests.turns.tick(10_000)
        turns += 1
    requests.runtime.tick(10_200)
    assert turns >= 5
    assert not gate.is_closed
    (answer,) = answers
    assert answer is not None
    frame = protocol.answer(key, version, 1, answer)
    (topic,) = protocol.parse_answer(key, version, frame[4:]).body.all("responses")
    codes = [
        p.number("error_code") for p in topic.all("partitions" if key == protocol.FETCH else "partition_responses")
    ]
    assert codes[1:] == [Error.UNKNOWN_TOPIC_OR_PARTITION.value] * 4_999


def fetch_of(partitions: int, number: int, max_wait: int = 2**31 - 1, offset: int = 0) -> protocol.Request:
    """A fetch that waits for more bytes than there ever are."""
    rows = [{"partition": n, "fetch_offset": offset, "partition_max_bytes": 2**20} for n in range(partitions)]
    fields: Answer = {"replica_id": -1, "max_wait": max_wait, "min_bytes": 2**31 - 1, "max_bytes": 2**31 - 1}
    topics = [{"topic": "wide" if partitions > 1 else "t", "partitions": rows}]
    request = protocol.parse(protocol.ask(protocol.FETCH, 4, number, "test", {**fields, "topics": topics})[4:])
    assert isinstance(request, protocol.Request)
    return request


def until_idle(requests: Requests, now: int = 10_000) -> int:
    """Until nothing is left to be done in later turns; how many turns that took."""
    turns = 0
    while requests.turns.waiting:
        requests.turns.tick(now)
        turns += 1
    return turns


def written(requests: Requests, topic: str, partitions: int) -> None:
    """A record in each partition."""
    rows = [{"index": n, "records": new_batch(b"x")} for n in range(partitions)]
    fields: Answer = {"acks": 1, "timeout": 100, "topic_data": [{"name": topic, "partition_data": rows}]}
    request = protocol.parse(protocol.ask(protocol.PRODUCE, 7, 1, "test", fields)[4:])
    assert isinstance(request, protocol.Request)
    answers = list[Answer | None]()
    requests.serve(request, 10_000, answers.append, Gate())
    until_idle(requests)
    requests.runtime.tick(10_000)
    assert answers


def test_nothing_waits_for_who_is_gone() -> None:
    """Fetches of clients that had gone stayed for days. Each write looked at all of them, and woke them for nothing."""
    requests, held, answers = one_broker(), list[int](), list[Answer | None]()
    waiting = len(requests.runtime.waiting)
    for number in range(50):
        gate = Gate(owner=number, holds=held.append)
        requests.serve(fetch_of(1, number), 10_000, answers.append, gate)
    replica = requests.runtime.node.replicas[TopicPartition("t", 0)]
    assert len(replica.consumers) == 50
    assert held == [OF_A_PART] * 50
    for number in range(1, 50):
        requests.turns.begin(requests.fetches.abandon(number, 10_000))
    replica = requests.runtime.node.replicas[TopicPartition("t", 0)]
    assert len(replica.consumers) == 1, "who is still there goes on waiting"
    assert len(requests.runtime.waiting) == waiting + 1
    assert set(requests.fetches.owners) == {0}
    requests.turns.begin(requests.fetches.abandon(0, 10_000))
    requests.turns.begin(requests.fetches.abandon("a stranger", 10_000))
    replica = requests.runtime.node.replicas[TopicPartition("t", 0)]
    assert (replica.consumers, replica.consumers_until) == ((), None)
    written(requests, "t", 1)
    assert not answers


def asked_of(requests: Requests) -> int:
    """The questions of consumers that replicas wait with."""
    return sum(len(replica.consumers) for replica in requests.runtime.node.replicas.values())


def test_what_a_fetch_did_not_wait_for_is_withdrawn_with_its_answer() -> None:
    """A fetch that one partition answered left its questions to all others, for as long as it had said."""
    requests, answers = one_broker(), list[Answer | None]()
    create_wide(requests, 20)
    for round_number in range(3):
        rows = [{"partition": n, "fetch_offset": 0 if n else round_number, "partition_max_bytes": 9} for n in range(20)]
        fields: Answer = {"replica_id": -1, "max_wait": 2**31 - 1, "min_bytes": 1, "max_bytes": 2**20}
        topics = [{"topic": "wide", "partitions": rows}]
        request = protocol.parse(protocol.ask(protocol.FETCH, 4, 1, "test", {**fields, "topics": topics})[4:])
        assert isinstance(request, protocol.Request)
        requests.serve(request, 10_000, answers.append, Gate(owner=round_number))
        assert asked_of(requests) == 20
        written(requests, "wide", 1)
        until_idle(requests)
        assert len(answers) == round_number + 1
        assert asked_of(requests) == 0
        assert not requests.fetches.owners


def asks_on(
    requests: Requests, answers: list[Answer | None], owner: str, now: int, session: int, epoch: int, **fields: object
) -> None:
    """The next fetch of a session."""
    fields = {"replica_id": -1, "max_bytes": 2**20, "session_id": session, "session_epoch": epoch, **fields}
    request = protocol.parse(protocol.ask(protocol.FETCH, 7, 1, "test", fields)[4:])
    assert isinstance(request, protocol.Request)
    requests.serve(request, now, answers.append, Gate(owner=owner))
    until_idle(requests, now)


def rows_from(offset: int, *numbers: int) -> list[Answer]:
    """Of topic `wide`, as a fetch names them."""
    read = {"fetch_offset": offset, "partition_max_bytes": 2**20, "current_leader_epoch": -1}
    return [{"topic": "wide", "partitions": [{"partition": n, **read} for n in numbers]}]


def test_the_question_for_more_is_withdrawn_with_the_answer() -> None:
    """One that went on by turns on two connections left a question at its replica each time, for 24 days."""
    requests, answers = one_broker(), list[Answer | None]()
    create_wide(requests, 1)
    written(requests, "wide", 1)
    asks_on(requests, answers, "first", 10_000, 0, 0, max_wait=0, min_bytes=1, topics=rows_from(0, 0))
    (session,) = requests.fetches.cache.sessions
    for epoch in range(1, 6):
        wide = {"max_wait": 2**31 - 1, "min_bytes": 2**20}
        asks_on(requests, answers, "one" if epoch % 2 else "other", 10_000, session, epoch, **wide)
        assert len(answers) == epoch
        assert asked_of(requests) == 1
    assert len(requests.runtime.waiting) == 1


@pytest.mark.parametrize(("first", "then"), [(15_000, 500), (500, 15_000)])
def test_a_fetch_waits_as_long_as_it_says_whatever_an_earlier_one_of_its_session_said(first: int, then: int) -> None:
    """DelayedFetch(maxWaitMs) is of one fetch."""
    requests, answers = one_broker(), list[Answer | None]()
    create_wide(requests, 2)
    asks_on(requests, answers, "client", 10_000, 0, 0, max_wait=first, min_bytes=1, topics=rows_from(0, 0, 1))
    written(requests, "wide", 1)
    until_idle(requests)
    assert len(answers) == 1
    (session,) = requests.fetches.cache.sessions
    rest = {"min_bytes": 1, "forgotten_topics_data": [{"topic": "wide", "partitions": [0]}]}
    asks_on(requests, answers, "client", 10_100, session, 1, max_wait=then, **rest)
    for now in range(10_100, 10_100 + then, 100):
        requests.runtime.tick(now)
        requests.fetches.tick(now)
        assert len(answers) == 1, now
    requests.runtime.tick(10_100 + then)
    requests.fetches.tick(10_100 + then)
    assert len(answers) == 2


def test_a_session_that_goes_on_elsewhere_is_not_its_old_connections() -> None:
    """The end of the connection on which it began took the fetch away that waits on another one."""
    requests, answers = one_broker(), dict[str, list[Answer | None]]()
    create_wide(requests, 3)

    def fetches(owner: str, session: int, epoch: int, wait: int, numbers: Sequence[int] = ()) -> None:
        fields: Answer = {"replica_id": -1, "max_wait": wait, "min_bytes": 1, "max_bytes": 2**20, "session_id": session}
        read = {"fetch_offset": int(epoch > 0), "partition_max_bytes": 2**20, "current_leader_epoch": -1}
        topics = [{"topic": "wide", "partitions": [{"partition": n, **read} for n in numbers]}] if numbers else []
        frame = protocol.ask(protocol.FETCH, 7, 1, "test", {**fields, "session_epoch": epoch, "topics": topics})
        request = protocol.parse(frame[4:])
        assert isinstance(request, protocol.Request)
        requests.serve(request, 10_000, answers.setdefault(owner, []).append, Gate(owner=owner))
        until_idle(requests)

    fetches("first", 0, 0, 0, range(3))
    (session,) = requests.fetches.cache.sessions
    assert len(answers["first"]) == 1
    fetches("first", session, 1, 2**31 - 1)
    fetches("second", session, 2, 2**31 - 1)
    assert len(answers["first"]) == 2, "whoever waits there is answered"
    requests.turns.begin(requests.fetches.abandon("first", 10_000))
    until_idle(requests)
    assert asked_of(requests) == 3
    written(requests, "wide", 1)
    assert len(answers["second"]) == 1
    requests.turns.begin(requests.fetches.abandon("second", 10_000))
    until_idle(requests)
    assert asked_of(requests) == 0
    fetches("third", session, 3, 2**31 - 1, [0])
    assert asked_of(requests) > 0, "it goes on, and its partitions are asked again"
    fetches("fourth", session, -1, 0)
    assert asked_of(requests) > 0, "the session is over, and its fetch is still to be answered"
    written(requests, "wide", 1)
    until_idle(requests)
    assert (asked_of(requests), len(answers["third"])) == (0, 1)
    assert not requests.fetches.owners


def test_who_is_gone_is_forgotten_in_turns_while_its_fetch_is_still_being_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_requests, "_ASKED_AT_ONCE", 50)
    requests, answers = one_broker(), list[Answer | None]()
    create_wide(requests, 150)
    gate = Gate(owner="client")
    requests.serve(fetch_of(150, 1), 10_000, answers.append, gate)
    assert gate.is_closed
    gate.is_abandoned = True
    requests.turns.begin(requests.fetches.abandon("client", 10_000))
    until_idle(requests)
    assert not any(replica.consumers for replica in requests.runtime.node.replicas.values())
    assert not requests.fetches.owners
    assert not answers


def test_partitions_with_little_in_each_are_asked_again_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 were 0.4 s of a processor in one turn: each was looked for among all, and all were summed up for each."""
    monkeypatch.setattr(fetch_requests, "_ASKED_AT_ONCE", 50)
    requests, answers = one_broker(), list[Answer | None]()
    create_wide(requests, 150)
    written(requests, "wide", 150)
    requests.serve(fetch_of(150, 1, max_wait=100), 10_000, answers.append, Gate(owner="client"))
    turns = until_idle(requests)
    requests.runtime.tick(10_200)
    assert turns >= 6, "looked at, and asked for more, fifty at a time"
    (answer,) = answers
    assert answer is not None
    frame = protocol.answer(protocol.FETCH, 4, 1, answer)
    (topic,) = protocol.parse_answer(protocol.FETCH, 4, frame[4:]).body.all("responses")
    assert sum(bool(p.data("records")) for p in topic.all("partitions")) == 150
    assert not requests.fetches.owners


def create_wide(requests: Requests, partitions: int) -> None:
    topics = [{"name": "wide", "num_partitions": partitions, "replication_factor": 1}]
    frame = protocol.ask(protocol.CREATE_TOPICS, 2, 1, "test", {"topics": topics, "timeout": 5_000})
    assert said(requests, frame) is not None
    until_idle(requests)
    while requests.runtime.deadline() == 0:
        requests.runtime.tick(10_000)
    assert len(requests.runtime.node.replicas) > partitions


def test_the_size_of_a_session_is_that_of_its_answers() -> None:
    """It is kept up to date, and not summed up, when an answer comes, is sent, is replaced or is forgotten."""
    body = protocol.parse(protocol.ask(protocol.FETCH, 7, 1, "test", {"topics": wide_rows(range(3))})[4:])
    assert isinstance(body, protocol.Request)
    session = fetch_sessions.Session(-1)
    session.update(body.body, {}, lambda _: "")
    first, second, third = session.parts.values()
    for part, size in ((first, 5), (second, 7), (third, 11), (first, 6)):
        session.puts(part, fetch_sessions.PartAnswer({}, size))
    assert session.size == 6 + 7 + 11
    moved = {"topics": wide_rows([1], offset=9), "forgotten_topics_data": [{"topic": "wide", "partitions": [2]}]}
    body = protocol.parse(protocol.ask(protocol.FETCH, 7, 1, "test", moved)[4:])
    assert isinstance(body, protocol.Request)
    session.update(body.body, {}, lambda _: "")
    assert session.size == 6 == sum(p.answer.size for p in session.parts.values() if p.answer is not None)
    session.puts(first, None)
    assert session.size == 0


def wide_rows(numbers: Iterable[int], offset: int = 0) -> list[Answer]:
    return [{"topic": "wide", "partitions": [{"partition": n, "fetch_offset": offset} for n in numbers]}]


def test_a_session_whose_replicas_are_being_asked_is_not_continued() -> None:
    """By another connection, which would take its fetch away."""
    requests, answers = one_broker(), list[Answer | None]()
    rows = [{"partition": n, "partition_max_bytes": 1, "current_leader_epoch": -1} for n in range(3_000)]

    def fetches(session: int, epoch: int, partitions: list[dict[str, int]]) -> None:
        fields: Answer = {"replica_id": -1, "max_bytes": 1, "session_id": session, "session_epoch": epoch}
        topics = [{"topic": "t", "partitions": partitions}]
        request = protocol.parse(protocol.ask(protocol.FETCH, 7, 1, "test", {**fields, "topics": topics})[4:])
        assert isinstance(request, protocol.Request)
        requests.serve(request, 10_000, answers.append)

    def error() -> str:
        answer = answers.pop()
        assert answer is not None
        return Error(int(str(answer.get("error_code", 0)))).name

    fetches(0, 0, rows)
    (session,) = requests.fetches.cache.sessions
    fetches(session, 1, [])
    assert error() == "INVALID_FETCH_SESSION_EPOCH"
    while requests.turns.waiting:
        requests.turns.tick(10_000)
    assert error() == "NONE"
    fetches(session, 1, [])
    while requests.turns.waiting:
        requests.turns.tick(10_000)
    assert error() == "NONE"


def test_logs_are_opened_a_few_in_a_turn() -> None:
    """Each has flushes of its own: 32 of them took 100 ms, and a write several turns."""
    requests = one_broker()
    topic = {"name": "wide", "num_partitions": 100, "replication_factor": 1}
    asked(requests, protocol.CREATE_TOPICS, 5, {"topics": [topic], "timeout": 100})
    counts, logs = [len(requests.runtime.logs.logs)], requests.runtime.logs.logs
    while requests.runtime.deadline() == 0:
        requests.runtime.tick(10_200)
        counts.append(len(logs))
    assert counts[-1] >= 100
    assert max(b - a for a, b in pairwise(counts)) == 8


def test_settings_of_topics_that_are_alike_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 4,900 topics took 0.7 s, in versions whose answer does not have them."""
    described = Mock(wraps=admin_requests.described_topic)
    monkeypatch.setattr(admin_requests, "described_topic", described)
    requests = one_broker()
    for version, before in ((4, 1), (5, 2)):
        topics = [{"name": f"v{version}-{n}", "num_partitions": 1, "replication_factor": 1} for n in range(20)]
        asked(requests, protocol.CREATE_TOPICS, version, {"topics": topics, "timeout": 100})
        assert described.call_count == before, "one is of the topic that was there"


def test_a_question_for_the_ends_of_many_epochs_is_one_turn(alone: Requests) -> None:
    """One of 270 KB took more than a second of a processor: what follows a turn was done for each partition."""
    turns, after_turn = list[Millis](), alone.runtime.after_turn

    def counts(now: Millis) -> None:
        turns.append(now)
        after_turn(now)

    alone.runtime.after_turn = counts
    rows = [{"partition": n, "current_leader_epoch": -1, "leader_epoch": 0} for n in range(5_000)]
    fields: Answer = {"replica_id": 2, "topics": [{"topic": "none", "partitions": rows}]}
    answer = asked(alone, protocol.OFFSET_FOR_LEADER_EPOCH, 3, fields)
    assert len(answer.all("topics")[0].all("partitions")) == 5_000
    assert len(turns) < 5


def test_a_frame_of_too_many_messages_is_none() -> None:
    """A broker sends less in one; to read 100 MB of JSON takes seconds."""
    parcels = [(1, 0, Heartbeat(broker=1, broker_epoch=n, metadata_offset=0)) for n in range(MOST_MESSAGES + 1)]
    frames = message_json.frames(parcels, "c")
    assert [len(message_json.decode(frame[4:], "c")) for frame in frames] == [MOST_MESSAGES, 1]
    with pytest.raises(BadMessage, match="501 messages"):
        message_json.decode(message_json.encode(parcels, "c")[4:], "c")


def private_frame(body: bytes) -> bytes:
    """Without its length."""
    return struct.pack(">hhi", message_json.PEER_API, 0, len(body)) + body


MANY = b"[" + b"[]," * MOST_VALUES + b'"c"]'


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (MANY, "values in one frame"),
        (b"[" + b" " * message_json.LONGEST + b'"c"]', "bytes in one frame"),
        (b'[[], "d"]', "of the cluster 'd', not of 'c'"),
        (b"[[], []]", "of the cluster"),
    ],
    ids=["values", "bytes", "another cluster", "no cluster"],
)
def test_a_frame_of_brokers_is_looked_at_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch, body: bytes, why: str
) -> None:
    """JSON takes thirty times its bytes once it is read: one frame took 2.8 GB and 8.5 s."""
    monkeypatch.setattr(json, "loads", Mock(side_effect=AssertionError("it is read")))
    with pytest.raises(BadMessage, match=why):
        message_json.decode(private_frame(body), "c")


def test_frames_of_brokers_are_no_larger_than_one_message_needs() -> None:
    assignments = ((1, 2, 3),) * 10_000
    parcels = [(1, 0, CreateTopic(request=n, topic=f"t{n}", assignments=assignments)) for n in range(30)]
    frames = list(message_json.frames(parcels, "c"))
    assert max(map(len, frames)) < 2 * message_json.MOST_BYTES
    assert [parcel for frame in frames for parcel in message_json.decode(frame[4:], "c")] == parcels
    partitions = tuple(
        PartitionMetadata(
            partition=TopicPartition(f"topic-{n}", n),
            replicas=(1, 2, 3),
            isr=frozenset({1, 2, 3}),
            leader=1,
            topic_id=-n,
        )
        for n in range(10_000)
    )
    whole = message_json.encode([(0, 1, Metadata(since=0, offset=9, partitions=partitions, whole=True))], "c")
    assert 10 * len(whole) < message_json.LONGEST
    assert 10 * sum(whole.count(sign) for sign in (b",", b"[", b"{")) < MOST_VALUES


@pytest.mark.sockets
def test_a_frame_of_brokers_that_is_too_long_is_not_waited_for() -> None:
    with Cluster(1) as cluster:
        for size, ends in ((message_json.LONGEST + 1, True), (message_json.LONGEST, False)):
            with socket.create_connection((HOST, cluster.ports[1])) as other:
                other.settimeout(5 if ends else 0.3)
                other.sendall(struct.pack(">ih", size, message_json.PEER_API))
                if ends:
                    assert other.recv(1) == b""
                else:
                    with pytest.raises(TimeoutError):
                        other.recv(1)


# Bytes in flight


def flow(limit: int) -> tuple[Flow, list[int]]:
    clock = [0]
    return Flow(limit, lambda: clock[0], lambda line: None), clock


def opened(of: Flow, gone: list[str], name: str) -> Holder:
    return of.open(lambda: gone.append(name), lambda: None, 0)


def test_beyond_the_bytes_in_flight_who_holds_much_and_does_not_move_is_closed() -> None:
    gone: list[str] = []
    bytes_in_flight, clock = flow(100)
    idle, small, busy = (opened(bytes_in_flight, gone, name) for name in ("idle", "small", "busy"))
    bytes_in_flight.arrives(idle, 50)
    bytes_in_flight.arrives(small, 5)
    clock[0] = 1_000
    bytes_in_flight.arrives(busy, 45)
    assert not gone
    bytes_in_flight.arrives(busy, 1)
    assert (gone, bytes_in_flight.size) == (["idle"], 51)
    bytes_in_flight.close(busy)
    bytes_in_flight.close(small)
    assert bytes_in_flight.size == 0


def test_who_waits_with_little_is_not_closed_for_who_drips() -> None:
    """Five that held 54 MB each, and sent a byte now and then, had a hundred consumers closed that waited."""
    gone: list[str] = []
    bytes_in_flight, clock = flow(256 << 20)
    waits = [bytes_in_flight.open(partial(gone.append, f"waits {n}"), lambda: None) for n in range(100)]
    for holder in waits:
        bytes_in_flight.arrives(holder, 100)
        bytes_in_flight.admits(holder, 100, is_fetch=True)
        bytes_in_flight.holds(holder, OF_A_PART)
    clock[0] = 60_000
    uploads = bytes_in_flight.open(partial(gone.append, "uploads"), lambda: None)
    drips = [bytes_in_flight.open(partial(gone.append, f"drips {n}"), lambda: None) for n in range(6)]
    for tick in range(300):
        clock[0] += 10
        for holder in drips:
            if holder.is_open:
                bytes_in_flight.arrives(holder, (45 << 20) if tick == 0 else 1)
        # A megabyte a second.
        bytes_in_flight.arrives(uploads, 10_000)
    assert gone
    assert all(name.startswith("drips") for name in gone)
    assert bytes_in_flight.size <= 256 << 20


def test_who_moves_is_not_closed_for_many_who_hold_little() -> None:
    """Thousands that held what is free and no more filled everything, and whoever wrote a larger batch was closed."""
    gone: list[str] = []
    bytes_in_flight, clock = flow(256 << 20)
    while bytes_in_flight.size < (256 << 20) - FREE - OF_A_CONNECTION:
        bytes_in_flight.arrives(bytes_in_flight.open(partial(gone.append, "holds little"), lambda: None), FREE)
        clock[0] += 1
    writer = bytes_in_flight.open(partial(gone.append, "writer"), lambda: None)
    for _ in range(100):
        bytes_in_flight.arrives(writer, 100_000)
        bytes_in_flight.admits(writer, 100_000, is_fetch=False)
        bytes_in_flight.answers(writer, 100_000, 100)
        bytes_in_flight.sends(writer, 100)
        clock[0] += 10
    assert set(gone) == {"holds little"}
    assert len(gone) < 10, "no more than there has to be room for"


def test_who_was_idle_and_sends_now_is_not_closed_for_who_stands_still() -> None:
    gone: list[str] = []
    bytes_in_flight, clock = flow(256 << 20)
    idle = bytes_in_flight.open(partial(gone.append, "was idle"), lambda: None)
    clock[0] = 3_600_000
    still = [bytes_in_flight.open(partial(gone.append, f"still {n}"), lambda: None) for n in range(16)]
    for holder in still:
        bytes_in_flight.arrives(holder, 15 << 20)
    clock[0] += 10_000
    while bytes_in_flight.size < 255 << 20 or not gone:
        bytes_in_flight.arrives(idle, 1 << 16)
        clock[0] += 1
        assert idle.is_open
        if gone:
            break
    assert gone[0].startswith("still")


def test_what_a_fetch_asks_about_counts_until_its_answer_was_taken() -> None:
    bytes_in_flight, _ = flow(2**40)
    holder = bytes_in_flight.open(lambda: None, lambda: None)
    bytes_in_flight.arrives(holder, 100)
    bytes_in_flight.admits(holder, 100, is_fetch=True)
    bytes_in_flight.holds(holder, 5_000)
    assert bytes_in_flight.size == OF_A_CONNECTION + 100 + 5_000
    bytes_in_flight.answers(holder, 100, 70)
    bytes_in_flight.sends(holder, 70)
    assert bytes_in_flight.size == OF_A_CONNECTION + 5_000
    bytes_in_flight.has_sent(holder, is_fetch=True)
    assert bytes_in_flight.size == OF_A_CONNECTION
    bytes_in_flight.holds(holder, 5_000)
    bytes_in_flight.close(holder)
    assert bytes_in_flight.size == 0


@pytest.mark.sockets
def test_connections_leave_files_to_logs_and_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle connections took all files, and the next checkpoint ended the broker."""
    with Cluster(1) as cluster, ExitStack() as open_sockets:
        port = cluster.ports[1]
        before = len(cluster.servers[1].connections)
        first = open_sockets.enter_context(socket.create_connection((HOST, port)))
        cluster.wait(lambda: len(cluster.servers[1].connections) > before, "it is accepted")
        monkeypatch.setattr("isr_broker.server.FILES_LEFT", 20)
        most = first.fileno() + 20 + 40

        def limits(_: int) -> tuple[int, int]:
            return most, most

        monkeypatch.setattr("resource.getrlimit", limits)
        several = [open_sockets.enter_context(socket.create_connection((HOST, port))) for _ in range(60)]
        cluster.wait(lambda: sum(was_closed(each) for each in several) > 20, "later ones are closed")
        assert not was_closed(first)
        assert cluster.servers[1].runtime.running


def was_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_connection_is_served_no_further_than_it_takes() -> None:
    bytes_in_flight, _ = flow(2**40)
    woken: list[int] = []
    holder = bytes_in_flight.open(lambda: None, lambda: woken.append(1))
    bytes_in_flight.arrives(holder, 200)
    bytes_in_flight.admits(holder, 100, is_fetch=True)
    assert holder.has_room(100, is_fetch=False)
    assert not holder.has_room(100, is_fetch=True), "one fetch after the other"
    bytes_in_flight.answers(holder, 100, MOST_UNSENT + 1)
    assert not holder.has_room(100, is_fetch=False)
    woken.clear()
    bytes_in_flight.sends(holder, MOST_UNSENT + 1)
    assert woken
    assert holder.has_room(100, is_fetch=False)
    assert not holder.has_room(100, is_fetch=True)
    bytes_in_flight.has_sent(holder, is_fetch=True)
    assert holder.has_room(100, is_fetch=True)
    bytes_in_flight.admits(holder, 100, is_fetch=False)
    assert not holder.has_room(MOST_UNANSWERED, is_fetch=False), "with the one that waits for its answer"
    bytes_in_flight.close(holder)
    assert bytes_in_flight.size == 0


def test_a_fetch_gets_the_less_the_less_is_left() -> None:
    bytes_in_flight, _ = flow(256 << 20)
    holder = opened(bytes_in_flight, [], "consumer")
    assert bytes_in_flight.room() == 16 << 20
    bytes_in_flight.arrives(holder, 128 << 20)
    assert bytes_in_flight.room() == 8 << 20
    bytes_in_flight.arrives(holder, 127 << 20)
    assert bytes_in_flight.room() == 1 << 20, "a batch of the default size can always be read"


LARGE = Settings.from_properties({**QUICK.properties(), "insync.in.flight.max.bytes": "8000000"})


@pytest.mark.sockets
def test_answers_and_requests_that_nobody_finishes_are_bounded_in_all() -> None:
    with Cluster(1, LARGE) as cluster:
        server = cluster.servers[1]
        announced = struct.pack(">i", 50_000_000)
        connections = [socket.create_connection((HOST, cluster.ports[1])) for _ in range(6)]
        for connection in connections:
            connection.settimeout(5)
            try:
                connection.sendall(announced + bytes(3_000_000))
            except OSError:
                continue
        cluster.wait(lambda: len(server.flow.holders) < 6, "somebody is closed", 10)
        assert server.flow.size <= 8_000_000
        with socket.create_connection((HOST, cluster.ports[1])) as other:
            other.settimeout(10)
            other.sendall(protocol.ask(protocol.API_VERSIONS, 0, 1, "test", {}))
            assert other.recv(4), "others are served"
        for connection in connections:
            connection.close()
        cluster.wait(lambda: server.flow.size == 0 and not server.flow.holders, "all is given back", 10)


def is_closed(connection: socket.socket) -> bool:
    try:
        connection.setblocking(False)
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.sockets
def test_small_requests_that_nobody_finishes_are_bounded_in_all() -> None:
    """Each of 4,000 connections could have as much as is read at once, and none of it was counted."""
    with Cluster(1, LARGE) as cluster:
        server, connections = cluster.servers[1], list[socket.socket]()
        for _ in range(60):
            connections.append(socket.create_connection((HOST, cluster.ports[1])))
            connections[-1].settimeout(5)
            with suppress(OSError):
                connections[-1].sendall(struct.pack(">i", PIECE) + bytes(PIECE - 1))
        cluster.wait(lambda: sum(map(is_closed, connections)) >= 60 - 8_000_000 // PIECE, "others are closed", 10)
        assert 4_000_000 < server.flow.size <= 8_000_000
        for connection in connections:
            connection.close()
        cluster.wait(lambda: server.flow.size == 0 and not server.flow.holders, "all is given back", 10)


def test_a_connection_counts_though_it_sends_nothing() -> None:
    gone: list[str] = []
    bytes_in_flight, clock = flow(10 * OF_A_CONNECTION)
    for n in range(11):
        clock[0] += 1
        bytes_in_flight.open(partial(gone.append, str(n)), lambda: None)
    assert gone == ["0"], "which has not moved for longest"
    assert bytes_in_flight.size == 10 * OF_A_CONNECTION


def test_memory_is_given_back_once_much_of_it_is_free() -> None:
    """Also where many connections had a little each: 300 MB of 4,000 connections stayed."""
    bytes_in_flight, _ = flow(2**40)
    holders = [opened(bytes_in_flight, [], str(n)) for n in range(100)]
    for holder in holders:
        bytes_in_flight.arrives(holder, MUCH // 49)
    assert not bytes_in_flight.has_shrunk()
    seen: list[bool] = []
    for holder in holders:
        bytes_in_flight.close(holder)
        seen.append(bytes_in_flight.has_shrunk())
    assert sum(seen) == 2


@pytest.mark.sockets
def test_what_a_connection_sends_counts_before_it_is_read() -> None:
    """While its fetch waits the next request is not read, but what the socket gave was in memory, and not counted."""
    with Cluster(1, LARGE) as cluster, ExitStack() as open_connections:
        server, connections = cluster.servers[1], list[socket.socket]()
        sizes = list[int]()
        wait: Answer = {"replica_id": -1, "max_wait": 8_000, "min_bytes": 1, "max_bytes": 1, "topics": []}
        with Talk(cluster.ports[1]) as talk:
            talk.ask(
                protocol.CREATE_TOPICS, 5, {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]}
            )
        cluster.wait(lambda: cluster.leads("t") == 1, "it leads", 10)
        rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]
        fetch = protocol.ask(protocol.FETCH, 4, 1, "test", {**wait, "topics": [{"topic": "t", "partitions": rows}]})
        for _ in range(60):
            connections.append(open_connections.enter_context(socket.create_connection((HOST, cluster.ports[1]))))
            connections[-1].settimeout(1)
            with suppress(OSError):
                connections[-1].sendall(2 * fetch + bytes(PIECE))
            sizes.append(server.flow.size)
        cluster.wait(lambda: any(map(is_closed, connections)), "some are closed", 10)
        sizes.append(server.flow.size)
        assert 4_000_000 < max(sizes) <= 8_000_000


@pytest.mark.sockets
def test_a_message_of_a_broker_is_not_in_flight_once_it_is_read() -> None:
    with Cluster(1) as cluster, socket.create_connection((HOST, cluster.ports[1])) as other:
        server = cluster.servers[1]
        parcel = (9, 1, DeleteTopic(request=1, topic="none"))
        other.sendall(100 * message_json.encode([parcel], server.cluster) + struct.pack(">i", 9) + b"x" * 8)
        cluster.wait(lambda: any(holder.partial == 12 for holder in server.flow.holders), "only the rest is there", 10)


# Processes


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """With Kafka's defaults."""
    settings = Settings.from_properties({"min.insync.replicas": "2", "default.replication.factor": "3"})
    brokers = three_processes(tmp_path_factory.mktemp("limits"), settings)
    brokers.start_all()
    yield brokers
    brokers.kill_all()


class Talk(socket.socket):
    """A connection to a broker, one request at a time."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.settimeout(60)
        self.connect((HOST, port))

    def ask(self, key: int, version: int, fields: Answer) -> protocol.Fields:
        self.sendall(protocol.ask(key, version, 1, "test", fields))
        return protocol.parse_answer(key, version, self.take(int.from_bytes(self.take(4), "big"))).body

    def take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.recv(size - len(data))
            assert more, "the broker has closed the connection"
            data += more
        return data

    def writes(self, topic: str, batch: bytes = GOOD) -> int:
        rows = [{"index": 0, "records": batch}]
        fields: Answer = {"acks": -1, "timeout": 30_000, "topic_data": [{"name": topic, "partition_data": rows}]}
        (answer,) = self.ask(protocol.PRODUCE, 7, fields).all("responses")[0].all("partition_responses")
        return answer.number("error_code")


def with_topic(processes: Processes, name: str) -> Talk:
    """A connection to broker 1, which leads the one partition of the topic."""
    talk = Talk(processes.ports[1])
    assigned = [{"partition_index": 0, "broker_ids": [1, 2, 3]}]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assigned}
    end = time.monotonic() + 60
    talk.ask(protocol.CREATE_TOPICS, 4, {"topics": [topic], "timeout": 10_000})
    while talk.writes(name):
        assert time.monotonic() < end
        time.sleep(0.2)
        talk.ask(protocol.CREATE_TOPICS, 4, {"topics": [topic], "timeout": 10_000})
    return talk


def longest_write(talk: Talk, topic: str, seconds: float) -> float:
    """How long the longest of the writes took, one after the other for so long; none is refused."""
    longest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert talk.writes(topic) == 0
        longest = max(longest, time.monotonic() - began)
    return longest


def resident(processes: Processes) -> int:
    status = Path(f"/proc/{processes.running[1].process.pid}/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


@pytest.mark.processes
@pytest.mark.sockets
def test_unknown_names_hold_up_nobody(processes: Processes) -> None:
    """60 KB of Metadata with 6,000 of them: writes of others stood for 40 s."""
    with with_topic(processes, "names") as bystander, Talk(processes.ports[1]) as other:
        fields: Answer = {"topics": [{"name": f"n{n}"} for n in range(6_000)], "allow_auto_topic_creation": True}
        other.sendall(protocol.ask(protocol.METADATA, 4, 1, "test", fields))
        assert longest_write(bystander, "names", 6) < 10
        assert other.recv(4)


@pytest.mark.processes
@pytest.mark.sockets
def test_a_batch_that_is_none_holds_up_nobody(processes: Processes) -> None:
    """It was taken, and a look for a time did not end."""
    with with_topic(processes, "damaged") as talk:
        for what in ("only 0xFF", "30,000,000 records of 39 bytes", "a record of negative size"):
            assert talk.writes("damaged", REFUSALS[what][0]) == Error.INVALID_RECORD.value
        rows = [{"partition_index": 0, "timestamp": 10**13}]
        answer = talk.ask(
            protocol.LIST_OFFSETS, 1, {"replica_id": -1, "topics": [{"name": "damaged", "partitions": rows}]}
        )
        assert answer.all("topics")[0].all("partitions")[0].number("offset") == -1


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_answers_that_nobody_reads_take_little_and_are_given_back(processes: Processes) -> None:
    """Twenty clients that fetched 45 MB each took 3.3 GB."""
    with with_topic(processes, "unread") as bystander:
        for _ in range(50):
            assert bystander.writes("unread", new_batch(bytes(900_000))) == 0
        before = resident(processes)
        rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 50_000_000}]
        fetch = {"replica_id": -1, "max_wait": 100, "min_bytes": 1, "max_bytes": 50_000_000}
        frame = protocol.ask(
            protocol.FETCH, 4, 1, "test", {**fetch, "topics": [{"topic": "unread", "partitions": rows}]}
        )
        clients = [Talk(processes.ports[1]) for _ in range(20)]
        for client in clients:
            client.sendall(2 * frame)
        assert longest_write(bystander, "unread", 8) < 10
        assert resident(processes) < before + 350_000_000
        for client in clients:
            client.close()
        end = time.monotonic() + 20
        while resident(processes) > before + 60_000_000:
            assert time.monotonic() < end, "the memory stays"
            time.sleep(0.2)


# The table


def test_the_table_of_limits_says_what_holds_and_by_which_test() -> None:
    section = DOC.read_text().split("## What one client can cost")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    limits = [row for row in rows if len(row) == 5 and row[4].startswith("`test_")]
    assert len(limits) >= 20
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for _, default, setting, _, test in limits:
        assert f"def {test.strip('`')}(" in sources, test
        assert setting.strip("`") in ("", *Settings().properties())
        for number in re.findall(r"\d[\d,]{3,}", default):
            assert int(number.replace(",", "")) in KNOWN, number


KNOWN = {
    decoder.LONGEST_TEXT,
    decoder.MOST_ITEMS,
    AT_ONCE,
    STEPS,
    OF_A_CONNECTION,
    OF_TLS,
    OF_A_PART,
    FILES_LEFT,
    AT_ONCE // OF_A_REFUSAL,
    admin_refusals.MOST_NEW,
    admin_requests.MOST_DESCRIBED,
    fetch_sessions.MOST_PARTITIONS,
    message_json.LONGEST,
    message_json.MOST_VALUES,
    *(int(value) for value in Settings().properties().values() if value.isdigit()),
}
"""Numbers that the table may name."""


def test_one_request_reassigns_so_many_partitions() -> None:
    requests = one_broker()

    def errors(count: int, name: str) -> set[str]:
        partitions = [{"partition_index": n, "replicas": [1]} for n in range(count)]
        topics: Answer = {"topics": [{"name": name, "partitions": partitions}], "timeout": 100}
        (topic,) = asked(requests, protocol.ALTER_PARTITION_REASSIGNMENTS, 1, topics).all("responses")
        assert len(topic.all("partitions")) == count
        return {Error(p.number("error_code")).name for p in topic.all("partitions")}

    assert errors(MOST_REASSIGNED + 1, "t") == {"POLICY_VIOLATION"}
    assert errors(1, "t") == {"NONE"}


def test_partitions_are_reassigned_a_few_in_a_turn() -> None:
    requests = one_broker()
    partitions = [{"partition_index": n, "replicas": [1]} for n in range(200)]
    topics: Answer = {"topics": [{"name": "u", "partitions": partitions}], "timeout": 100}
    assert said(requests, protocol.ask(protocol.ALTER_PARTITION_REASSIGNMENTS, 1, 1, "test", topics)) is None
    turns = 1
    while requests.turns.waiting:
        requests.turns.tick(10_000)
        turns += 1
    assert turns == 4
