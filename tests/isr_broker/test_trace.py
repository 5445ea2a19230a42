"""Traces: what real brokers write can be read again, is causally closed, and tells the truth; damage is noticed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import attrs
import pytest
from tests.support.broker_traces import WRITES, trace_of_cluster
from tests.support.clusters import QUICK, Cluster, three_processes
from tests.support.faults import waited

from isr_broker.snapshot import Json
from isr_broker.storage.disk_files import RealDisk
from isr_broker.trace_reader import BadTrace, Event, Life, in_order, read_life, read_lives
from isr_model import KIP_966 as MODEL

pytestmark = [pytest.mark.processes, pytest.mark.sockets]


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> list[Life]:
    return trace_of_cluster(tmp_path_factory.mktemp("trace"))


def sent(event: Event) -> Iterator[str]:
    for message in cast("list[dict[str, Json]]", event.says.get("sent", [])):
        yield str(message["id"])


def test_every_life_of_every_node_has_a_file(lives: list[Life]) -> None:
    assert Counter(life.node for life in lives) == {"1": 1, "2": 2, "3": 1, "controller": 1} or Counter(
        life.node for life in lives
    ) == {"1": 1, "2": 1, "3": 2, "controller": 1}
    assert not any(life.has_torn_end for life in lives)
    settings = cast("dict[str, str]", lives[0].header["settings"])
    assert settings["insync.design"] == "kip-966"


def test_actions_are_the_models(lives: list[Life]) -> None:
    taken = {str(event.says["action"]) for life in lives for event in life.events if "action" in event.says}
    assert taken <= {action.name for action in MODEL.actions}
    assert {"leader_appends", "follower_appends", "leader_answers_fetch", "broker_restarts", "becomes_leader"} <= taken


def test_what_was_received_had_been_sent_and_comes_after_it(lives: list[Life]) -> None:
    senders = {number: event for life in lives for event in life.events for number in sent(event)}
    events = list(in_order(lives))
    place = {(event.life, event.number): n for n, event in enumerate(events)}
    received = [event for event in events if "received" in event.says]
    assert len(received) > WRITES
    for event in received:
        sender = senders[str(event.says["received"])]
        assert event.after(sender)
        assert not sender.after(event)
        assert place[sender.life, sender.number] < place[event.life, event.number]
    for other in events:
        for life, count in other.clock.items():
            assert life == other.life or place[life, count] < place[other.life, other.number]


def test_appends_tell_the_batches_that_the_snapshots_count(lives: list[Life]) -> None:
    for life in lives:
        end: dict[str, int] = {}
        for event in life.events:
            log = event.says.get("log", event.says.get("wrote"))
            tp = str(event.says.get("partition"))
            for batch in cast("list[list[int]]", log or []):
                assert batch[0] == end.get(tp, 0)
                end[tp] = batch[0] + batch[2]
            state = cast("dict[str, int] | None", event.says.get("state"))
            if state is not None and "log_end" in state:
                if event.says["action"] == "follower_truncates":
                    end[tp] = state["log_end"]
                assert state["log_end"] == end.get(tp, 0)
    last = [e for life in lives for e in life.events if e.says.get("action") == "follower_appends"][-1]
    assert cast("dict[str, int]", last.says["state"])["log_end"] == WRITES


def test_without_snapshots_the_events_are_there_alone(tmp_path: Path) -> None:
    events = [event for life in trace_of_cluster(tmp_path, snapshots=False) for event in life.events]
    assert any(event.says.get("action") == "leader_appends" for event in events)
    assert not any("state" in event.says for event in events)


def test_off_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Cluster(1) as cluster:
        assert cluster.servers[1].runtime.trace is None
    assert list(tmp_path.iterdir()) == []


def test_killed_processes_leave_a_trace_that_can_be_read(tmp_path: Path) -> None:
    settings = attrs.evolve(QUICK, insync_trace_dir=str(tmp_path / "trace"), default_replication_factor=2)
    processes = three_processes(tmp_path, settings)
    try:
        processes.start_all()
        waited(lambda: len(list((tmp_path / "trace").iterdir())) == 4, "every node writes")
        processes.kill(2)
        processes.start(2)
        waited(lambda: (tmp_path / "trace" / "2.2.jsonl").stat().st_size > 3_000, "the second life says something")
    finally:
        processes.kill_all()
    assert [life.name for life in read_lives(RealDisk(tmp_path / "trace"))] == [
        "1.1",
        "2.1",
        "2.2",
        "3.1",
        "controller.1",
    ]
    list(in_order(read_lives(RealDisk(tmp_path / "trace"))))


# Damage


def as_lines(life: Life) -> list[bytes]:
    return [json.dumps(line).encode() + b"\n" for line in (life.header, *(event.says for event in life.events))]


def test_a_torn_last_line_is_left_out_wherever_it_is_torn(lives: list[Life]) -> None:
    life = lives[0]
    lines = as_lines(life)[:6]
    for kept in range(len(lines[-1])):
        found = read_life(life.name, b"".join(lines[:-1]) + lines[-1][:kept])
        assert found.events == life.events[:4]
        assert found.has_torn_end is (kept > 0)
    assert read_life("2.1", b"").events == ()


@pytest.mark.parametrize("damage", ["delete", "swap", "double", "tear", "other format"])
def test_other_damage_is_noticed(lives: list[Life], damage: str) -> None:
    life = lives[0]
    lines = as_lines(life)
    match damage:
        case "delete":
            del lines[7]
        case "swap":
            lines[7], lines[8] = lines[8], lines[7]
        case "double":
            lines.insert(7, lines[7])
        case "tear":
            lines[7] = lines[7][:20] + b"\n"
        case _:
            lines[0] = lines[0].replace(b"insync/trace/1", b"insync/trace/9")
    with pytest.raises(BadTrace, match=life.name):
        read_life(life.name, b"".join(lines))


def test_a_missing_life_is_noticed(lives: list[Life]) -> None:
    with pytest.raises(BadTrace, match="which is not there"):
        list(in_order([life for life in lives if life.node != "controller"]))


def test_a_life_without_events_does_not_let_the_next_overtake_the_last(lives: list[Life]) -> None:
    node = next(life for life in lives if life.name.endswith(".2")).node
    first, second = (life for life in lives if life.node == node)
    empty, third = attrs.evolve(second, name=f"{node}.2", events=()), attrs.evolve(second, name=f"{node}.3")
    early = tuple(
        attrs.evolve(event, life=third.name, clock={third.name: n}, says={**event.says, "at": -1})
        for n, event in enumerate(second.events[:2], 1)
    )
    others = [life for life in lives if life.node != node]
    last = max(event.number for event in first.events)
    kept = [attrs.evolve(life, events=tuple(e for e in life.events if f"{node}.2" not in e.clock)) for life in others]
    order = list(in_order([*kept, first, empty, attrs.evolve(third, events=early)]))
    place = {(event.life, event.number): n for n, event in enumerate(order)}
    assert place[first.name, last] < place[third.name, 1]


def test_events_that_wait_for_each_other_are_noticed(lives: list[Life]) -> None:
    one, other = lives[0], next(life for life in lives if life.node == "controller")
    knows = attrs.evolve(one.events[0], clock={**one.events[0].clock, other.name: len(other.events)})
    with pytest.raises(BadTrace, match="wait for each other"):
        list(in_order([attrs.evolve(one, events=(knows, *one.events[1:])), *lives[1:]]))
