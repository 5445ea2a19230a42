"""One unmodified Apache Kafka, and everything else played to it: it takes the model's steps; what is wrong shows.

The lies are told on the wire, in place of the broker: what it sent is changed before anybody reads it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from isr_broker.snapshot import Json
from isr_broker.wire import protocol
from isr_broker.wire.encoder import Answer
from isr_broker.wire.protocol import Fields
from isr_cluster.kafka import archive
from isr_conform.compared_run import ComparedRun
from isr_conform.conformance import carried_out
from isr_conform.conformance_result import ConformanceResult, Limits, Schedule
from isr_conform.sut_client import AnsweredAtOnce, SutFailure
from isr_conform.value_json import JsonObject
from isr_kafka import Unavailable
from isr_kafka.node import node_files
from isr_lang import Instance
from isr_model import KIP_966
from isr_twin.broker_sut import BrokerSut
from isr_twin.sockets import Client, Link, Wire
from isr_twin.surroundings import HeldRequest, Surroundings

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.sockets, pytest.mark.processes]

R1, R2 = range(2)
BOUNDS = {"replicas": 2, "crashes": 1, "epochs": 2, "isr_changes": 5}
LEADS = (
    ("leader_appends", {"leader": R1}),
    ("leader_answers_fetch", {"leader": R1, "follower": R2}),
    ("follower_appends", {"follower": R2}),
    ("leader_answers_fetch", {"leader": R1, "follower": R2}),
)
"""A record is committed and acknowledged."""
SHRINKS = (
    ("leader_appends", {"leader": R1}),
    ("leader_proposes_shrink", {"leader": R1, "lagging": 1 << R2}),
    ("controller_accepts_alter_partition", {"leader": R1}),
    ("leader_adopts_isr", {"leader": R1}),
    ("leader_answers_fetch", {"leader": R1, "follower": R2}),
    ("follower_appends", {"follower": R2}),
    ("leader_answers_fetch", {"leader": R1, "follower": R2}),
    ("leader_proposes_expansion", {"leader": R1, "f": R2}),
    ("controller_accepts_alter_partition", {"leader": R1}),
    ("leader_adopts_isr", {"leader": R1}),
)
"""A follower is put out of the ISR, and comes back; only then is the record committed, for the minimum is two."""
RETURNS = (
    ("leader_appends", {"leader": R1}),
    ("broker_crashes", {"r": R1, "checkpoint": 0}),
    ("controller_fences_leader", {"r": R1, "successor": R2}),
    ("becomes_leader", {"r": R2}),
    ("broker_restarts", {"r": R1}),
    ("becomes_follower", {"r": R1}),
    ("leader_answers_diverging", {"leader": R2, "follower": R1}),
    ("follower_truncates", {"follower": R1}),
)
"""It is killed, and cuts what it alone had."""


@pytest.fixture(scope="session")
def kafka() -> str:
    """The command of an unmodified broker."""
    try:
        files = node_files()
        archive(files)
    except Unavailable as problem:
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{problem}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(str(problem))
    return f"{shlex.join(files.plain_command())} {{properties}}"


class InProcess(AnsweredAtOnce):
    """The system under test without a process before it."""

    def __init__(self, sut: BrokerSut) -> None:
        super().__init__()
        self.sut, self.request_count = sut, 0

    def ask(self, do: str, **more: Json) -> JsonObject:
        self.request_count += 1
        answer = self.sut.answer(json.dumps({"do": do, **more}))
        if "error" in answer:
            raise SutFailure(str(answer["error"]))
        return answer


@contextmanager
def broker(command: str, root: Path, **settings: str) -> Generator[InProcess]:
    sut = BrokerSut(command, root, Wire(), lag=3.0, settings=settings)
    try:
        yield InProcess(sut)
    finally:
        sut.close()


def driven(system: InProcess, *steps: tuple[str, Mapping[str, object]], **bounds: int) -> ConformanceResult:
    limits = Limits(schedule=Schedule(initial={"first": R1}, steps=steps))
    return carried_out(ComparedRun(Instance(KIP_966, {**BOUNDS, **bounds}), system, limits))


def test_an_unmodified_broker_leads_follows_truncates_and_returns(kafka: str, tmp_path: Path) -> None:
    with broker(kafka, tmp_path) as system:
        for story in (LEADS, SHRINKS, RETURNS):
            done = driven(system, *story)
            assert done.conforms, done.differences
            assert not done.skipped_steps
            assert not done.cannot
        assert system.sut.steps is not None
        assert system.sut.steps.around.strange == []


def says_a_watermark_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(key: int, body: Fields) -> None:
        for topic in body.all("responses") if key == protocol.FETCH else ():
            for partition in topic.all("partitions"):
                partition.values["high_watermark"] = len(partition.data("records") or b"") and 1

    changes_answers(monkeypatch, lie)


def changes_answers(monkeypatch: pytest.MonkeyPatch, lie: Callable[[int, Fields], None]) -> None:
    def take(client: Client, link: Link, frame: bytes) -> None:
        number = int.from_bytes(frame[:4], "big")
        key, _ = client.questions[number]
        takes(client, link, frame)
        lie(key, client.answers[number])

    takes = Client.take
    monkeypatch.setattr(Client, "take", take)


def acknowledges_what_it_alone_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def send(client: Client, key: int, version: int, fields: Answer) -> int:
        return sends(client, key, version, {**fields, "acks": 1} if key == protocol.PRODUCE else fields)

    sends = Client.send
    monkeypatch.setattr(Client, "send", send)


def names_another_partition_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def alter(around: Surroundings) -> tuple[Fields, Fields] | None:
        found = alters(around)
        return found and (found[0], Fields({**found[1].values, "partition_epoch": 1}))

    alters = Surroundings.alter_partition
    monkeypatch.setattr(Surroundings, "alter_partition", alter)


def keeps_what_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(around: Surroundings, held: HeldRequest, told: Answer) -> None:
        answers(around, held, {name: value for name, value in told.items() if name != "diverging_epoch"})

    answers = Surroundings.answer_fetch
    monkeypatch.setattr(Surroundings, "answer_fetch", answer)


@pytest.mark.parametrize(
    ("lie", "story", "place"),
    [
        (says_a_watermark_too_much, LEADS, "high_watermark[r1]"),
        (acknowledges_what_it_alone_has, LEADS, "acked"),
        (names_another_partition_epoch, SHRINKS, "alter_partition_epoch[r1]"),
        (keeps_what_diverges, RETURNS, "log[r1]"),
    ],
)
def test_a_lie_in_place_of_the_broker_is_noticed(
    lie: Callable[[pytest.MonkeyPatch], None],
    story: tuple[tuple[str, Mapping[str, object]], ...],
    place: str,
    kafka: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lie(monkeypatch)
    with broker(kafka, tmp_path) as system:
        (difference, *_) = driven(system, *story).differences
        assert place in [name for name, _, _ in difference.places]


def test_a_broker_with_another_minimum_is_noticed(kafka: str, tmp_path: Path) -> None:
    with broker(kafka, tmp_path, **{"min.insync.replicas": "1"}) as system:
        (difference,) = driven(system, *SHRINKS).differences
        assert difference.action == "leader_adopts_isr"
        assert "high_watermark[r1]" in [name for name, _, _ in difference.places]
