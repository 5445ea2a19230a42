"""Traces against the model: what brokers write is accepted, and what no broker may write is rejected at its line.

Without these, a validator that accepts everything would look like brokers without bugs, and one that rejects a correct
run would send somebody looking for a bug that is none.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import cast

import attrs
import pytest
from tests.support.broker_traces import AS_THE_MODEL, simulate_traced, trace_of_cluster, write_trace
from tests.support.mutants import mutants, verdict, with_lines

from insync_cli.main import main
from isr_broker.core import leader as leaders
from isr_broker.core.messages import Offset
from isr_broker.core.replica_state import Replica
from isr_broker.snapshot import Json
from isr_broker.storage.disk_memory import Everything, Fault, MemoryDisk
from isr_broker.trace_reader import Life, read_lives
from isr_sim.host import MachineDeath
from isr_sim.simulate import Config, Run, finish_run
from isr_sim.traces import TracedWorld
from isr_sim.world import FAIR
from isr_validate import Level, Validation, validate
from isr_validate.model_step import OffsetRanks, model_steps
from isr_validate.replica_state import ReplicaState

pytestmark = pytest.mark.explores


@cache
def a_run(seed: int) -> tuple[Life, ...]:
    return tuple(read_lives(simulate_traced(seed).notes))


@cache
def one() -> tuple[Life, ...]:
    return tuple(read_lives(simulate_traced(0, Config(settings=AS_THE_MODEL, weather=FAIR)).notes))


@pytest.mark.parametrize("seed", range(8))
def test_a_simulated_run_is_a_run_of_the_model(seed: int) -> None:
    world = simulate_traced(seed)
    lives = read_lives(world.notes)
    done = validate(lives)
    assert done.rejected is None
    assert done.events == sum(len(life.events) for life in lives) > 300
    assert sum(done.steps.values()) > 100
    taken = {a: n for a, n in world.actions.items() if not a.startswith(("controller_", "broker_"))}
    assert {a: done.steps[a] for a in taken} == taken


def test_a_run_is_the_same_with_a_trace_and_without() -> None:
    assert finish_run(Run(Config(), 3, kind=TracedWorld)) == finish_run(Run(Config(), 3))


def test_messages_that_come_twice_are_outside_of_the_model() -> None:
    found = Counter(why.split()[-1] for seed in (4, 5) for _, _, why in validate(a_run(seed)).outside)
    assert found["twice"]


@pytest.mark.sockets
@pytest.mark.processes
def test_real_processes_are_a_run_of_the_model(tmp_path: Path) -> None:
    done = validate(trace_of_cluster(tmp_path))
    assert done.rejected is None
    assert done.steps["leader_appends"]
    assert done.steps["follower_appends"]
    assert done.steps["broker_restarts"]


def test_a_bug_in_the_cores_is_rejected_where_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that lets its watermark run to its log end, whatever its followers have."""

    def hasty(replica: Replica, *_: object) -> Offset:
        return replica.log.end

    monkeypatch.setattr(leaders, "advance_watermark", hasty)
    done = validate(read_lives(simulate_traced(0, Config(settings=AS_THE_MODEL, weather=FAIR)).notes))
    assert done.rejected is not None
    assert done.rejected.action.startswith("leader_")
    assert set(done.rejected.differences) == {"high_watermark"}


@pytest.mark.parametrize("level", [Level.EVENTS, Level.CLIENT])
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_a_run_is_one_of_the_model_for_who_sees_less_of_it(seed: int, level: Level) -> None:
    done = validate(a_run(seed), level)
    assert done.accepted
    assert done.events == done.lines > 300
    assert done.widest > 1 or level is Level.EVENTS


@pytest.mark.parametrize("level", [Level.EVENTS, Level.CLIENT])
def test_a_bug_shows_without_snapshots(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(replica: Replica, *_: object) -> Offset:
        return replica.log.end

    monkeypatch.setattr(leaders, "advance_watermark", hasty)
    done = validate(read_lives(simulate_traced(0, Config(settings=AS_THE_MODEL, weather=FAIR)).notes), level)
    assert done.rejected is not None
    assert set(done.rejected.differences) == {"high_watermark"}


def test_a_spent_budget_is_no_verdict() -> None:
    done = validate(one(), budget=50)
    assert not done.accepted
    assert done.rejected is None
    assert "the budget was spent" in str(done.unknown)


def test_a_heartbeat_that_was_overtaken_is_outside_of_the_model() -> None:
    """Kafka unfences a fenced broker that says nothing of a shutdown, as of a late message, too."""
    done = validate(read_lives(simulate_traced(61).notes))
    assert done.accepted
    assert [why for _, _, why in done.outside if "Heartbeat" in why and "overtaken" in why]


def test_a_late_answer_to_an_older_registration_says_nothing() -> None:
    done = validate(read_lives(simulate_traced(22).notes))
    assert done.accepted


def test_acknowledging_what_is_not_committed_is_rejected_for_clients_alone() -> None:
    """The offset of an acknowledgement with acks=all is moved past the watermark."""
    lives = list(one())
    place = next(i for i, life in enumerate(lives) if '"acks": -1' in json.dumps([dict(e.says) for e in life.events]))

    def change(lines: list[dict[str, Json]]) -> None:
        waiting: set[int] = set()
        for line in lines:
            client = cast("dict[str, Json]", line.get("client", {}))
            waiting |= {cast("int", client["request"])} if client.get("acks") == -1 else set()
            for answer in cast("list[dict[str, Json]]", line.get("answered", [])):
                if answer["request"] in waiting and answer.get("error") == "NONE":
                    answer["offset"] = cast("int", answer["offset"]) + 1_000
                    return

    lines = [copy.deepcopy(dict(e.says)) for e in lives[place].events]
    change(lines)
    done = validate([*lives[:place], with_lines(lives[place], lines), *lives[place + 1 :]], Level.CLIENT)
    assert done.rejected is not None
    assert "not committed" in done.rejected.why


# Mutations: the whole table is bench/validate.py's


@cache
def short() -> tuple[Life, ...]:
    return tuple(read_lives(simulate_traced(2, Config(settings=AS_THE_MODEL, safety_ms=2_000)).notes))


@pytest.mark.parametrize(("kind", "least"), [("delete", 18), ("double", 18), ("swap", 17), ("alter", 15)])
def test_mutated_traces_are_rejected(kind: str, least: int) -> None:
    assert validate(short()).accepted
    made = mutants(short(), Random(7), kind)
    found = Counter(verdict(next(made)) for _ in range(20))
    assert found["rejected"] + found["no trace"] >= least, found


def test_a_mutant_that_says_the_same_is_accepted() -> None:
    lives = short()
    lines = [dict(e.says) for e in lives[0].events]
    assert validate([with_lines(lives[0], lines), *lives[1:]]).accepted


# The command


def test_the_verb_accepts_and_tolerates_a_torn_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(write_trace(tmp_path, simulate_traced(1), "1.1.jsonl")), "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "insync/validate/1"
    assert said["torn"] == ["1.1"]
    assert said["rejected"] is None
    assert said["events"] > 300


def test_the_verb_says_which_line_is_rejected_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path, simulate_traced(1))
    path = tmp_path / "1.1.jsonl"
    lines = path.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if '"leader_epoch":0' in line and '"state"' in line)
    said = json.loads(lines[number])
    said["state"]["leader_epoch"] = 7
    lines[number] = json.dumps(said)
    path.write_text("\n".join(lines) + "\n")
    assert main(["validate", str(tmp_path), "--plain"]) == 12
    out = capsys.readouterr().out
    assert f"1.1.jsonl:{number + 1}" in out
    assert "leader_epoch: 0 in the nearest step" in out
    assert "The last messages before it" in out


def test_a_rejection_is_a_page_and_a_test_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hasty(replica: Replica, *_: object) -> Offset:
        return replica.log.end

    (tmp_path / "traces").mkdir()
    html, reproduce = tmp_path / "rejected.html", tmp_path / "test_rejected.py"
    with monkeypatch.context() as planted:
        planted.setattr(leaders, "advance_watermark", hasty)
        write_trace(tmp_path / "traces", simulate_traced(0))
        asked = [str(tmp_path / "traces"), "--plain", "--html", str(html), "--reproduce", str(reproduce)]
        assert main(["validate", *asked]) == 12
        space: dict[str, Callable[[], None]] = {}
        exec(reproduce.read_text(), space)
        with pytest.raises(AssertionError, match="high_watermark"):
            space["test_the_lines_are_a_run_of_the_model"]()
        with pytest.raises(AssertionError, match="high_watermark"):
            space["test_the_run_is_a_run_of_the_model"]()
    space["test_the_run_is_a_run_of_the_model"]()  # mended
    out, page = capsys.readouterr().out, html.read_text()
    assert "seed 0 with no faults" in out
    assert "lines are enough" in out
    for told in (
        "follower_sends_fetch(",
        "leader[r1] = ",
        "ReplicaState(end=",
        "r1 is broker 1",
        "events are accepted before it",
    ):
        assert told in out
    assert "<-" in next(line for line in out.splitlines() if "FetchRequest 2.1:" in line)
    for told in ("<svg", "high_watermark", "leader_proposes_shrink(", "lines are enough"):
        assert told in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_verb_looks_at_less_and_may_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path, simulate_traced(1))
    assert main(["validate", str(tmp_path), "--level", "client", "--quiet"]) == 0
    assert main(["validate", str(tmp_path), "--budget", "20", "--quiet"]) == 20
    assert "UNKNOWN" in capsys.readouterr().out


def test_a_file_that_is_no_trace_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "1.1.jsonl"
    bad.write_text("no trace\n")
    assert main(["validate", str(bad)]) == 65
    assert main(["validate", str(tmp_path / "none")]) == 65
    assert "1.1, line 1" in capsys.readouterr().err


def test_nothing_is_rejected_in_an_empty_trace() -> None:
    assert validate([]) == Validation()


@pytest.mark.parametrize("epochs", [10, 47, 48, 200])
def test_a_log_of_many_leader_epochs_may_still_grow(epochs: int) -> None:
    starts = tuple((epoch, 2 * epoch) for epoch in range(epochs))
    end = 2 * epochs
    held = ReplicaState(end, starts, end, 1, epochs - 1, (1, 2), follower_end=(None, end), follower_broker_epoch=(0, 0))
    told = held.variables((1, 2), 1, OffsetRanks.from_offsets([*held.offsets(), end + 1]))
    steps = model_steps("kip-966", 2, 1, unclean=False, follower_reads=False)
    assert steps.steps("leader_appends", told)
    assert steps.false_guards("leader_appends", {**told, "alive": 0}, {"leader": 0})


def test_what_a_leader_wrote_and_could_not_tell_is_known_once_it_is_found() -> None:
    """The process dies between the write and the line that tells of it; the log keeps what was written."""

    def dies(disk: MemoryDisk, operation: str, path: str) -> Fault | None:
        return Fault(MachineDeath(Everything()), 1_000_000) if operation == "append" and path.endswith(".log") else None

    alone = attrs.evolve(AS_THE_MODEL, min_insync_replicas=1)
    run = Run(Config(settings=alone, weather=FAIR), 1, kind=TracedWorld)
    world = run.world
    run.set_up()
    for broker in (2, 3):
        world.stop(world.hosts[broker], Everything())
    world.run(4_000)
    world.hosts[1].disk.hook = dies
    world.run(5_000)
    assert not world.hosts[1].alive
    world.start(world.hosts[1])
    world.run(8_000)
    run.heal()
    assert isinstance(world, TracedWorld)
    lives = read_lives(world.notes)
    wrote: dict[str, set[tuple[Json, ...]]] = {"leader_appends": set(), "follower_appends": set()}
    for event in (e for life in lives for e in life.events if e.says.get("action") in wrote):
        for row in cast("list[list[Json]]", event.says.get("wrote", [])):
            wrote[str(event.says["action"])].add(tuple(row))
    assert wrote["follower_appends"] - wrote["leader_appends"], "or else the seed shows nothing"
    assert validate(lives).accepted
