"""What groups have committed: a long log is read a piece at a time, and does not stay long.

Without these a coordinator would keep everybody waiting while it reads, or what was committed would be gone with the
part of the log that is cut off.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.isr_broker.test_fetch import Client
from tests.isr_broker.test_wire import one_broker

from isr_broker.core.effects import AnswerDelete, AnswerProduce, Slice
from isr_broker.core.inputs import DeleteRecords
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import Error, TopicPartition
from isr_broker.core.record_batch import batches, stamped
from isr_broker.runtime import ClientRequest
from isr_broker.runtime import Then as Answered
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.offsets_topic import TOPIC, Committed, learn, take
from isr_broker.wire import committed_offsets, protocol
from isr_broker.wire.committed_offsets import COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CommittedOffsets
from isr_broker.wire.group_requests import COORDINATOR_LOAD_IN_PROGRESS
from isr_broker.wire.protocol import Answer

OFFSETS = TopicPartition(TOPIC, 0)


class Leader:
    """The leader of a partition as `CommittedOffsets` sees it: a log, and writes whose answers wait."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.view = LogView()
        self.pending: list[tuple[ClientRequest, Answered]] = []
        self.refuses = False
        self.node = SimpleNamespace(replicas={OFFSETS: self})
        self.offsets = CommittedOffsets(cast("Any", self), OFFSETS, epoch=0, read=0, end=0)

    @property
    def log(self) -> LogView:
        return self.view

    def ask(self, make: Any, then: Answered, now: int) -> None:
        told = make(1)
        if isinstance(told, DeleteRecords):
            assert told.offset <= self.committed
            self.view = LogView(start=told.offset, end=self.view.end)
            then(AnswerDelete(request=1, partition=OFFSETS, low_watermark=told.offset), b"")
        elif self.refuses:
            then(AnswerProduce(request=1, partition=OFFSETS, error=Error.NOT_ENOUGH_REPLICAS), b"")
        else:
            data = stamped(told.records, self.view.end, 0)
            self.written.append(data)
            self.view = LogView(start=self.view.start, end=list(batches(data))[-1].next_offset)
            self.pending.append((told, then))

    @property
    def committed(self) -> int:
        waits = sum(batch.count for told, _ in self.pending for batch in batches(cast("Any", told).records))
        return self.view.end - waits

    def answers(self, error: Error = Error.NONE) -> None:
        if self.pending:
            _, then = self.pending.pop(0)
            then(AnswerProduce(request=1, partition=OFFSETS, error=error), b"")

    def found(self) -> Committed:
        """What the next leader reads."""
        known: Committed = {}
        learn(known, b"".join(d for d in self.written if next(batches(d)).base_offset >= self.view.start))
        return known

    def settles(self) -> None:
        self.refuses = False
        while self.pending or self.offsets.deadline() is not None:
            self.offsets.tick(0)
            self.answers()


Commit: TypeAlias = tuple[str, int, int | None]
COMMITS = st.tuples(st.sampled_from("gh"), st.integers(0, 2), st.none() | st.integers(0, 99))
EVENTS = st.lists(
    COMMITS | st.sampled_from(["tick", "answer", "answer", "time-out", "refusing", "accepting"]), max_size=60
)


@given(EVENTS)
def test_whatever_is_copied_and_cut_off_the_next_leader_finds_what_was_acknowledged(
    events: list[Commit | str],
) -> None:
    """Of a commit that timed out it may find either value: whoever committed was told that nobody knows."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(committed_offsets, "LONG", 3)
        patched.setattr(committed_offsets, "_COPIES_AT_ONCE", 15)
        leader, allowed = Leader(), dict[tuple[str, int], set[int | None]]()

        def commit(group: str, number: int, offset: int | None) -> None:
            def then(code: int) -> None:
                known = allowed.setdefault((group, number), {None})
                if code == 0:
                    known.clear()
                known.add(offset)

            said = None if offset is None else (offset, "")
            leader.offsets.write(group, {TopicPartition("t", number): said}, 0, then)

        for event in events:
            match event:
                case (group, number, offset):
                    commit(group, number, offset)
                case "tick":
                    leader.offsets.tick(0)
                case "answer":
                    leader.answers()
                case "time-out":
                    leader.answers(Error.REQUEST_TIMED_OUT)
                case _:
                    leader.refuses = event == "refusing"
        leader.settles()
        found = leader.found()
        for (group, number), values in allowed.items():
            said = found.get(group, {}).get(TopicPartition("t", number))
            assert (None if said is None else said[0]) in values


def test_a_log_stays_about_as_long_as_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_offsets, "LONG", 20)
    leader = Leader()
    for number in range(1_000):
        leader.offsets.write("g", {TopicPartition("t", number % 5): (number, "")}, 0, lambda code: None)
        leader.settles()
        assert leader.view.end - leader.view.start <= 20 + 3 * 5
    assert sorted(offset for offset, _ in leader.found()["g"].values()) == list(range(995, 1_000))


def test_copies_that_are_not_acknowledged_take_nothing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_offsets, "LONG", 2)
    leader = Leader()
    for number in range(6):
        leader.offsets.write("g", {TopicPartition("t", 0): (number, "")}, 0, lambda code: None)
        leader.answers()
    leader.offsets.tick(0)
    leader.answers(Error.REQUEST_TIMED_OUT)
    assert (leader.view.start, leader.offsets.deadline()) == (0, None)


def test_what_waits_for_the_copies_is_told_that_another_broker_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_offsets, "LONG", 0)
    leader, said = Leader(), list[int]()
    for number in range(4):
        leader.offsets.write("g", {TopicPartition("t", number): (1, "")}, 0, said.append)
    leader.answers()
    assert leader.offsets.long
    leader.offsets.write("g", {TopicPartition("t", 9): (1, "")}, 0, said.append)
    leader.offsets.given_up()
    assert said == [0, NOT_COORDINATOR]


def test_a_commit_that_comes_meanwhile_is_written_after_the_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else there might never be a moment in which none is on its way, and the log would grow."""
    monkeypatch.setattr(committed_offsets, "LONG", 0)
    leader = Leader()
    for number in range(5):
        leader.offsets.write("g", {TopicPartition("t", 0): (number, "")}, 0, lambda code: None)
    for _ in range(4):
        leader.answers()
    leader.offsets.write("g", {TopicPartition("t", 0): (9, "")}, 0, lambda code: None)
    assert len(leader.written) == 5, "one of the others is still on its way, and it waits behind the copies"
    leader.settles()
    assert (len(leader.written), leader.view.start) == (7, 5)
    assert leader.found() == {"g": {TopicPartition("t", 0): (9, "")}}


def test_a_large_group_is_copied_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_offsets, "LONG", 0)
    leader = Leader()
    for number in range(30):
        take(leader.offsets.committed, "g", {TopicPartition("t", number): (number, "n" * 4_000)})
    leader.offsets.long = True
    leader.settles()
    assert max(map(len, leader.written)) < committed_offsets._COPY_BYTES  # pyright: ignore[reportPrivateUsage]
    assert leader.found() == leader.offsets.committed


# A broker


def commits(number: int) -> Answer:
    rows = [{"partition_index": 0, "committed_offset": number}]
    return {
        "group_id": f"g{number % 3}",
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": "t", "partitions": rows}],
    }


def reads_nothing(logs: LogDirectory, tp: TopicPartition, wanted: Slice) -> bytes:
    return b""


def fetched(client: Client, group: str) -> tuple[int, int]:
    """The error, and the offset that a group has committed."""
    topics = [{"name": "t", "partition_indexes": [0]}]
    said = client.ask(protocol.OFFSET_FETCH, 2, {"group_id": group, "topics": topics})
    assert said is not None
    return said.number("error_code"), said.all("topics")[0].all("partitions")[0].number("committed_offset")


@pytest.fixture
def client() -> Client:
    """Of a broker with forty commits of three groups, which are still to be read."""
    client = Client(one_broker())
    fetched(client, "g0")
    for number in range(40):
        assert client.ask(protocol.OFFSET_COMMIT, 2, commits(number)) is not None
        client.tick(1)
    client.requests.groups.parts.clear()
    return client


def test_a_long_log_is_read_a_piece_at_a_time(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_offsets, "PIECE_BYTES", 600)
    logs, pieces = client.requests.runtime.logs, list[int]()
    read = logs.read

    def reads(_: LogDirectory, tp: TopicPartition, wanted: Slice) -> bytes:
        pieces.append(len(read(tp, wanted)))
        return read(tp, wanted)

    monkeypatch.setattr(LogDirectory, "read", reads)
    groups = client.requests.groups
    assert fetched(client, "g0") == (COORDINATOR_LOAD_IN_PROGRESS, -1)
    listed = client.ask(protocol.LIST_GROUPS, 4, {"states_filter": []})
    assert listed is not None
    assert listed.number("error_code") == COORDINATOR_LOAD_IN_PROGRESS, "these are not all"
    while groups.deadline() == 0:
        groups.tick(client.now)
    assert len(pieces) > 5
    assert max(pieces) <= 600
    assert [fetched(client, f"g{n}") for n in range(3)] == [(0, 39), (0, 37), (0, 38)]


def test_a_log_that_is_not_given_back_is_read_anew_for_who_asks_next(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed_offsets, "PIECE_BYTES", 600)
    assert fetched(client, "g0") == (COORDINATOR_LOAD_IN_PROGRESS, -1)
    with monkeypatch.context() as fails:
        fails.setattr(LogDirectory, "read", reads_nothing)
        client.requests.groups.tick(client.now)
        assert fetched(client, "g0") == (COORDINATOR_NOT_AVAILABLE, -1)
    assert fetched(client, "g0") == (COORDINATOR_LOAD_IN_PROGRESS, -1)
    while client.requests.groups.deadline() == 0:
        client.requests.groups.tick(client.now)
    assert fetched(client, "g0") == (0, 39)


def test_a_long_log_is_cut_at_its_beginning_and_nothing_that_counts_is_lost(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed_offsets, "LONG", 20)
    runtime, groups = client.requests.runtime, client.requests.groups
    assert fetched(client, "g0") == (0, 39)
    groups.tick(client.now)
    log = runtime.node.replicas[OFFSETS].log
    assert (log.start, log.end) == (40, 43)
    assert not runtime.waiting
    groups.parts.clear()
    assert [fetched(client, f"g{n}") for n in range(3)] == [(0, 39), (0, 37), (0, 38)]
