"""A system that takes a counterexample to its end is said to break the promise, in the step in which it does.

Without these, `insync conform --trace` would drive a system through a bug and say only that it conforms.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import cast

import attrs
import pytest

from insync_cli import tracefiles
from insync_cli.conformance import conform
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.main import main
from insync_cli.registry import design_named, instance_of
from isr_broker.snapshot import Json
from isr_check.reference import Evaluator
from isr_conform.compared_run import ComparedRun
from isr_conform.conformance import carried_out
from isr_conform.conformance_result import ConformanceResult, Limits, Schedule
from isr_conform.sut_client import AnsweredAtOnce
from isr_conform.value_json import JsonObject, parameters_json, state_json
from isr_lang import Instance
from isr_lang.left_out import NAME as LEFT_OUT

TOP = Path(__file__).resolve().parents[2]
OBSTACLE = TOP / "docs" / "examples" / "kafka-20895.itf.json"


class Follower(AnsweredAtOnce):
    """It takes every step as the model does, and tells the variables of these names."""

    def __init__(self, instance: Instance, told: Collection[str]) -> None:
        super().__init__()
        self.instance, self.told, self.request_count = instance, cast("list[Json]", sorted(told)), 0
        self.evaluator = Evaluator(instance)
        self.state = self.evaluator.initial_states()[0][1]

    def ask(self, do: str, **more: Json) -> JsonObject:
        match do:
            case "hello":
                return {"protocol": "insync/conform/1", "name": "a follower", "variables": list(self.told)}
            case "reset":
                self.state = self.evaluator.initial_states()[0][1]
                return {}
            case "snapshot":
                return {"state": {n: v for n, v in state_json(self.instance, self.state).items() if n in self.told}}
            case _:
                return {"done": self.takes(more)}

    def takes(self, step: JsonObject) -> bool:
        for index, parameters, after in self.evaluator.successors(self.state):
            name = self.instance.actions[index].name
            if step == {"action": name, "parameters": parameters_json(self.instance, name, parameters)}:
                self.state = after
                return True
        return False


def driven(less: int = 0, design: str = "kafka-20895", untold: Collection[str] = ()) -> ConformanceResult:
    """What comes of the trace without its last steps, where the system does not tell some variables."""
    schedule, constants, _ = conform.story(OBSTACLE, design_named(design), {})
    assert schedule is not None
    instance = instance_of(design_named(design), constants)
    told = {v.name for v in instance.variables} - {LEFT_OUT, *untold}
    steps = schedule.steps[: len(schedule.steps) - less]
    limits = Limits(schedule=Schedule(initial=schedule.initial, steps=steps))
    return carried_out(ComparedRun(instance, Follower(instance, told), limits))


def test_the_promise_and_the_step_are_named() -> None:
    done = driven()
    assert done.conforms
    (broken,) = done.broken_promises
    assert (broken.promise, broken.step) == ("resigned-leader-is-no-obstacle", 15)
    assert broken.step_text == "voter_answers_pre_vote(r=v2, nominee=v3)"
    assert not broken.from_model
    assert conform.result_line(done).endswith(", its state breaks resigned-leader-is-no-obstacle in step 15")
    assert conform.exit_code(done) is Exit.HOLDS


def test_before_the_last_step_nothing_is_broken() -> None:
    done = driven(less=1)
    assert not done.broken_promises
    assert "breaks" not in conform.result_line(done)


def test_with_the_mend_nothing_is_broken() -> None:
    done = driven(design="kraft-notes-end")
    assert done.edges > 10
    assert not done.broken_promises


@pytest.mark.parametrize(
    ("untold", "words"),
    [
        (["role"], "its state together with what the model alone has breaks"),
        (["epoch", "leader", "log", "role", "request", "answer"], "what the model alone has breaks"),
    ],
)
def test_what_the_system_does_not_tell_is_the_models(untold: list[str], words: str) -> None:
    done = driven(untold=untold)
    (broken,) = done.broken_promises
    assert set(broken.from_model) == set(untold)
    assert f"{words} resigned-leader-is-no-obstacle in step 15" in conform.result_line(done)


def test_a_trace_of_another_version_says_so() -> None:
    trace = tracefiles.load(OBSTACLE)
    assert conform.version_remark(trace) == ()
    (remark,) = conform.version_remark(attrs.evolve(trace, model_hash="0" * 16))
    assert remark == (f"the trace is of another version of kafka-20895 (model hash {'0' * 16}, now {trace.model_hash})")
    (remark,) = conform.version_remark(attrs.evolve(trace, design="mine"))
    assert remark.startswith("the trace is of mine, as it is not known here")


def test_a_trace_that_goes_round_is_driven_once_around() -> None:
    file = tracefiles.trace_file("cut-off-leader-15489")
    *_, remarks = conform.story(file, design_named("kafka-15489"), {})
    assert remarks == ("the trace goes round for ever, and is driven once around",)


def test_a_trace_of_another_program_has_no_steps_to_take(tmp_path: Path) -> None:
    foreign = cast("dict[str, object]", json.loads(OBSTACLE.read_text(encoding="utf-8")))
    foreign = {"vars": foreign["vars"], "states": foreign["states"]}
    file = tmp_path / "foreign.itf.json"
    file.write_text(json.dumps(foreign), encoding="utf-8")
    with pytest.raises(InputError, match="written by another program"):
        conform.story(file, design_named("kraft"), {})


# Parts of Kafka


@pytest.mark.parametrize("word", ["kafka-rafts", "kafka-rafts=4.4.0", "kafka_raft", "kafka-controller"])
def test_a_misspelt_part_of_kafka_has_the_nearest_spelling(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "--sut", word, "--voters", "2"]) == Exit.USAGE
    nearest = "kafka-controllers" if word.startswith("kafka-c") else "kafka-raft"
    assert f"did you mean '{nearest}'?" in capsys.readouterr().err


def test_controllers_are_not_driven_with_directory_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "kraft-controllers-853", "--sut", "kafka-controllers"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "its adapter has no voters with directory ids" in said
    assert said.strip().endswith("add --dynamic off")
    assert "java" not in said
    conform.check_settings(Instance(design_named("kraft-controllers"), {}), "kafka-controllers")
    with pytest.raises(UsageError, match="leave it out"):
        conform.check_settings(Instance(design_named("kraft-controllers"), {"dynamic": True}), "kafka-controllers")


@pytest.mark.parametrize(
    ("design", "sut", "remark"),
    [
        ("kraft", "kafka-raft=3.9.1", "the design of Kafka 3.9 is kraft-3.9, for it has no pre-votes"),
        ("kraft-853", "kafka-raft=3.9.1", "the design of Kafka 3.9 is kraft-3.9, for it has no pre-votes"),
        ("kraft-3.9", "kafka-raft=3.9.1", ""),
        ("kraft-3.9", "kafka-raft=4.4.0", "kraft-3.9 is the design of Kafka 3.9"),
        ("kraft", "kafka-raft=4.4.0", ""),
        ("kraft", "./mine", ""),
    ],
)
def test_a_release_with_another_design_says_so(design: str, sut: str, remark: str) -> None:
    assert "; ".join(conform.release_remark(design_named(design), sut)) == remark


def test_a_release_is_driven_along_its_own_design_where_none_is_named() -> None:
    assert conform.design_of_system(["--sut", "kafka-raft=3.9.1"]) == ["kraft-3.9"]
    assert conform.design_of_system(["--sut", "kafka-raft=4.4.0"]) == ["kraft"]
    assert conform.design_of_system(["--sut", "kafka-raft"]) == ["kraft"]
