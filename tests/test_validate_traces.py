"""Traces against the model: what brokers write is accepted, and what no broker may write is rejected at its line."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import cast

import attrs
import pytest
from tests.test_broker_trace import traced

from insync_cli.main import main
from isr_broker import leader as leaders
from isr_broker.disk import ROOT
from isr_broker.messages import Offset
from isr_broker.snapshot import Json
from isr_broker.state import Replica
from isr_broker.trace_reading import BadTrace, Life, read, read_life
from isr_refine import Level, Validated, validate
from isr_sim.simulate import QUICK, Config, Run, finished
from isr_sim.tracing import TracedWorld
from isr_sim.world import FAIR

AS_THE_MODEL = attrs.evolve(QUICK, insync_waits_for_joiners=False)


def simulated(seed: int, config: Config | None = None) -> TracedWorld:
    run = Run(config or Config(settings=AS_THE_MODEL), seed, kind=TracedWorld)
    finished(run)
    world = run.world
    assert isinstance(world, TracedWorld)
    return world


@cache
def one() -> tuple[Life, ...]:
    return tuple(read(simulated(0, Config(settings=AS_THE_MODEL, weather=FAIR)).notes))


@pytest.mark.parametrize("seed", range(8))
def test_a_simulated_run_is_a_run_of_the_model(seed: int) -> None:
    world = simulated(seed)
    lives = read(world.notes)
    done = validate(lives)
    assert done.rejected is None
    assert done.events == sum(len(life.events) for life in lives) > 300
    assert sum(done.steps.values()) > 100
    taken = {a: n for a, n in world.actions.items() if not a.startswith(("controller_", "broker_"))}
    assert {a: done.steps[a] for a in taken} == taken


def test_a_run_is_the_same_with_a_trace_and_without() -> None:
    assert finished(Run(Config(), 3, kind=TracedWorld)) == finished(Run(Config(), 3))


def test_messages_that_come_twice_are_outside_of_the_model() -> None:
    found = Counter(why.split()[-1] for seed in range(8) for _, _, why in validate(read(simulated(seed).notes)).outside)
    assert found["twice"]


def test_real_processes_are_a_run_of_the_model(tmp_path: Path) -> None:
    done = validate(traced(tmp_path))
    assert done.rejected is None
    assert done.steps["leader_appends"]
    assert done.steps["follower_appends"]
    assert done.steps["broker_restarts"]


def test_a_bug_in_the_cores_is_rejected_where_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that lets its watermark run to its log end, whatever its followers have."""

    def hasty(replica: Replica, *_: object) -> Offset:
        return replica.log.end

    monkeypatch.setattr(leaders, "advanced", hasty)
    done = validate(read(simulated(0, Config(settings=AS_THE_MODEL, weather=FAIR)).notes))
    assert done.rejected is not None
    assert done.rejected.action.startswith("leader_")
    assert set(done.rejected.differences) == {"high_watermark"}


@pytest.mark.parametrize("level", [Level.EVENTS, Level.CLIENT])
@pytest.mark.parametrize("seed", range(3))
def test_a_run_is_one_of_the_model_for_who_sees_less_of_it(seed: int, level: Level) -> None:
    done = validate(read(simulated(seed).notes), level)
    assert done.accepted
    assert done.events == done.lines > 300
    assert done.widest > 1 or level is Level.EVENTS


@pytest.mark.parametrize("level", [Level.EVENTS, Level.CLIENT])
def test_a_bug_shows_without_snapshots(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(replica: Replica, *_: object) -> Offset:
        return replica.log.end

    monkeypatch.setattr(leaders, "advanced", hasty)
    done = validate(read(simulated(0, Config(settings=AS_THE_MODEL, weather=FAIR)).notes), level)
    assert done.rejected is not None
    assert set(done.rejected.differences) == {"high_watermark"}


def test_a_spent_budget_is_no_verdict() -> None:
    done = validate(one(), budget=50)
    assert not done.accepted
    assert done.rejected is None
    assert "the budget was spent" in str(done.unknown)


def test_a_heartbeat_that_was_overtaken_is_outside_of_the_model() -> None:
    """Kafka unfences a fenced broker that says nothing of a shutdown, as of a late message, too."""
    done = validate(read(simulated(217).notes))
    assert done.accepted
    assert [why for _, _, why in done.outside if "Heartbeat" in why and "overtaken" in why]


def test_a_late_answer_to_an_older_registration_says_nothing() -> None:
    done = validate(read(simulated(22).notes))
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

    done = validate([*lives[:place], with_lines(lives[place], change), *lives[place + 1 :]], Level.CLIENT)
    assert done.rejected is not None
    assert "not committed" in done.rejected.why


# Mutations


def with_lines(life: Life, change: Callable[[list[dict[str, Json]]], None]) -> Life:
    """The life as it is read again after its lines were changed, numbered anew."""
    lines = [copy.deepcopy(dict(e.says)) for e in life.events]
    change(lines)
    for n, line in enumerate(lines, 1):
        line["n"] = n
        cast("dict[str, Json]", line["clock"])[life.name] = n
    text = b"".join(json.dumps(line).encode() + b"\n" for line in [dict(life.header), *lines])
    return read_life(life.name, text)


STATE = ("high_watermark", "log_end", "leader", "leader_epoch", "isr", "pending_isr", "partition_epoch", "follower_end")
OF_CONTROLLER = ("controller_leader", "controller_epoch", "controller_partition_epoch", "controller_isr", "fenced")


def altered(value: Json, chance: Random) -> Json:
    match value:
        case None:
            return [1] if chance.random() < 0.5 else [2]
        case int():
            return value + 1
        case list():
            return [v for v in value if v != value[0]] if value else [1]
        case dict():
            key = chance.choice(sorted(value))
            was = value[key]
            return {**value, key: was + 1 if isinstance(was, int) else 0}
        case _:
            return None


def mutants(chance: Random, kind: str) -> Iterator[list[Life]]:
    """The trace with one line of an action deleted, doubled, swapped with the next of its life, or altered."""
    lives = list(one())
    while True:
        place = chance.choice([i for i, life in enumerate(lives) if len(life.events) > 30])
        life = lives[place]
        steps = [i for i, e in enumerate(life.events) if e.says.get("action") not in (None, "consumer_reads")]
        i = chance.choice(steps[:-1])

        def change(lines: list[dict[str, Json]], i: int = i) -> None:
            if kind == "delete":
                del lines[i]
            elif kind == "double":
                lines.insert(i, copy.deepcopy(lines[i]))
            elif kind == "swap":
                lines[i], lines[i + 1] = lines[i + 1], lines[i]
            elif kind == "action":
                names = {str(line["action"]) for line in lines if "action" in line} - {str(lines[i]["action"])}
                lines[i]["action"] = chance.choice(sorted(names))
            else:
                state = cast("dict[str, Json]", lines[i]["state"])
                name = chance.choice([n for n in (*STATE, *OF_CONTROLLER) if n in state])
                state[name] = altered(state[name], chance)

        yield [*lives[:place], with_lines(life, change), *lives[place + 1 :]]


def noticed(lives: list[Life]) -> bool:
    try:
        return validate(lives).rejected is not None
    except BadTrace:
        return True


def measured(kind: str, count: int) -> int:
    made = mutants(Random(7), kind)
    return sum(noticed(next(made)) for _ in range(count))


@pytest.mark.parametrize(
    ("kind", "least"), [("delete", 20), ("double", 20), ("swap", 20), ("action", 20), ("alter", 20)]
)
def test_mutated_traces_are_rejected(kind: str, least: int) -> None:
    assert validate(one()).rejected is None
    assert measured(kind, 24) >= least


# The command


def written(folder: Path, world: TracedWorld, torn: str = "") -> Path:
    for name in world.notes.names(ROOT):
        file = world.notes.open(name)
        data = file.read(0, file.size())
        (folder / name).write_bytes(data + b'{"n":99999,"at' if name == torn else data)
    return folder


def test_the_verb_accepts_and_tolerates_a_torn_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(written(tmp_path, simulated(1), "1.1.jsonl")), "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "insync/validate/1"
    assert said["torn"] == ["1.1"]
    assert said["rejected"] is None
    assert said["events"] > 300


def test_the_verb_says_which_line_is_rejected_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, simulated(1))
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


def test_a_file_that_is_no_trace_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "1.1.jsonl"
    bad.write_text("no trace\n")
    assert main(["validate", str(bad)]) == 65
    assert main(["validate", str(tmp_path / "none")]) == 65
    assert "1.1, line 1" in capsys.readouterr().err


def test_nothing_is_rejected_in_an_empty_trace() -> None:
    assert validate([]) == Validated()
