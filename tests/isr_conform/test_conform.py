"""Any implementation can be held to the model: our cores pass, a naive one does not, and nonsense is one sentence.

Without these, `insync conform` could call an implementation conforming whose mistakes it does not see, or blame a
correct one, and a system under test that talks nonsense would end in a traceback.
"""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from tests.support.suts import CoresInProcess, drive

from insync_cli.conformance import conform
from insync_cli.exits import Exit
from insync_cli.main import main
from isr_broker.snapshot import Json
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_conform.value_json import JsonObject
from isr_replay import Kind

pytestmark = [pytest.mark.explores, pytest.mark.processes]

TOP = Path(__file__).resolve().parents[2]
NAIVE = TOP / "docs" / "examples" / "naive_isr.py"
ALONE = TOP / "docs" / "examples" / "evicts_alone.py"
DOCUMENT = TOP / "docs" / "conform.md"
PYTHON = shlex.quote(sys.executable)
PATIENT = ("--patience", "500")
"""A loaded machine needs long to start a process."""


# Our cores


def test_our_cores_take_every_edge_from_saved_states() -> None:
    done = drive(CoresInProcess())
    assert done.conforms
    assert done.complete
    assert done.saves
    assert (done.edges, done.states) == (done.of_edges, done.of_states)
    assert done.edges == done.steps > 700
    assert done.resets == 2


def test_our_cores_take_every_edge_along_paths() -> None:
    done = drive(CoresInProcess(), Limits(paths=True))
    assert done.conforms
    assert done.complete
    assert (done.edges, done.states) == (done.of_edges, done.of_states)
    assert done.steps < 5 * done.edges
    assert done.pairs > 0.9 * (done.of_pairs or 0)


def test_walks_are_the_same_for_a_seed_and_others_for_another() -> None:
    def walked(seed: int) -> tuple[list[JsonObject], ConformanceResult]:
        steps: list[JsonObject] = []

        def record(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
            if do == "step":
                steps.append(request)
            return answer

        return steps, drive(CoresInProcess(record), Limits(walks=5, walk_length=20, seed=seed), crashes=1)

    (first, done), (again, _), (other, _) = walked(1), walked(1), walked(2)
    assert first == again != other
    assert done.conforms
    assert done.resets == 5
    assert done.steps <= 100
    assert len(done.actions) >= 10


def test_edges_of_each_action_are_drawn_and_drive() -> None:
    def sampled(seed: int) -> tuple[list[JsonObject], ConformanceResult]:
        steps: list[JsonObject] = []

        def record(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
            if do == "step":
                steps.append(request)
            return answer

        return steps, drive(CoresInProcess(record), Limits(per_action=4, seed=seed), crashes=1)

    (first, done), (again, _), (other, _) = sampled(1), sampled(1), sampled(2)
    assert first == again != other
    assert done.conforms
    assert done.complete
    assert done.drawn_edges == done.of_drawn
    assert done.of_actions is not None
    assert done.of_drawn == sum(min(4, n) for n in done.of_actions.values())
    assert all(done.actions[name] >= min(4, n) for name, n in done.of_actions.items())
    assert done.drawn_edges < done.edges < done.of_actions.total()


def test_a_refusal_on_an_edge_that_is_drawn_is_missing() -> None:
    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        return {"done": False, "why": "no time"} if request.get("action") == "leader_adopts_isr" else answer

    done = drive(CoresInProcess(lie), Limits(per_action=2))
    assert {(u.kind, u.action) for u in done.differences} == {(Kind.MISSING, "leader_adopts_isr")}
    assert 0 < done.drawn_edges < done.of_drawn


def test_of_the_edges_that_are_drawn_a_spent_budget_leaves_some() -> None:
    done = drive(CoresInProcess(), Limits(per_action=4, max_steps=20))
    assert not done.complete
    assert 0 < done.drawn_edges < 20 < done.of_drawn


def test_a_budget_ends_it_and_says_so() -> None:
    done = drive(CoresInProcess(), Limits(max_steps=10))
    assert not done.complete
    assert done.steps == 10


def test_the_cores_behind_the_protocol_as_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    sut = f"{PYTHON} -m isr_conform.core_sut"
    bounds = ["--replicas", "2", "--crashes", "0", "--isr-changes", "1"]
    assert main(["conform", "--sut", sut, *bounds, *PATIENT, "--json", "-"]) == Exit.HOLDS
    told = json.loads(capsys.readouterr().out)
    assert told["complete"]
    assert told["edges"]["driven"] == told["edges"]["of"] > 700
    assert told["differences"] == {}


def test_the_story_of_a_counterexample_as_far_as_the_design_allows_it(capsys: pytest.CaptureFixture[str]) -> None:
    trace = TOP / "counterexamples" / "cases" / "stale-broker-epoch" / "trace.itf.json"
    sut = f"{PYTHON} -m isr_conform.core_sut"
    assert main(["conform", "--sut", sut, "--trace", str(trace), *PATIENT, "--json", "-"]) == Exit.HOLDS
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == told["edges"]["driven"] == 10
    assert told["bounds"]["lossy_crashes"] == 1
    assert told["skipped"] == ["controller_accepts_alter_partition(leader=r1)"]


# What differs is noticed


def test_an_inconsistent_state_is_told_by_the_shortest_way_with_the_rule() -> None:
    """The watermark in every snapshot is one too high once a follower has the record."""

    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        state = answer.get("state")
        if do == "snapshot" and isinstance(state, dict):
            marks, logs = cast("dict[str, int]", state["high_watermark"]), cast("dict[str, list[int]]", state["log"])
            if logs["r1"] and logs["r2"]:
                marks["r2"] = 1
        return answer

    for limits in (Limits(), Limits(paths=True)):
        done = drive(CoresInProcess(lie), limits)
        assert done.count[Kind.INCONSISTENT] == sum(done.count.values()) > 0
        first = done.differences[0]
        assert first.action == "follower_appends"
        assert [action for action, _ in first.path] == ["leader_appends", "leader_answers_fetch"]
        assert first.places == (("high_watermark[r2]", 0, 1),)
        assert "takes over the leader's watermark" in first.rules[0]
        assert any(rule.startswith("new.high_watermark[follower] == ") for rule in first.rules)


def test_what_it_says_that_it_cannot_take_is_missing() -> None:
    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        if do == "enabled":
            steps = cast("list[Json]", answer["enabled"])
            answer["enabled"] = [s for s in steps if isinstance(s, dict) and s["action"] != "leader_adopts_isr"]
        return answer

    done = drive(CoresInProcess(lie))
    assert set(done.count) == {Kind.MISSING}
    assert done.differences[0].action == "leader_adopts_isr"
    assert done.differences[0].reason.startswith("it takes it")
    assert len(done.differences[0].path) == 2
    assert done.edges < (done.of_edges or 0)


def test_a_step_that_is_refused_is_missing() -> None:
    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        return {"done": False, "why": "no time"} if request.get("action") == "leader_adopts_isr" else answer

    done = drive(CoresInProcess(lie))
    assert {(u.kind, u.action, u.reason) for u in done.differences} == {(Kind.MISSING, "leader_adopts_isr", "no time")}
    # It had been taken all the same, which is told, too.
    assert "alter[r1]" in {place for place, _, _ in done.differences[0].places}


def test_what_it_says_that_it_can_take_and_the_model_forbids_is_unexpected() -> None:
    """A leader that would append a second record, for which the world has no room."""

    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        if do == "enabled":
            step: Json = {"action": "leader_appends", "parameters": {"leader": "r1"}}
            steps = cast("list[Json]", answer["enabled"])
            answer["enabled"] = steps if step in steps else [*steps, step]
        return answer

    done = drive(CoresInProcess(lie))
    assert set(done.count) == {Kind.UNEXPECTED}
    assert done.differences[0].path == ()
    assert done.differences[0].rules[1] == "leader[r1] == r1   (leader[r1] is r2)"


class NoProducer(CoresInProcess):
    """Cores to which no producer has a way."""

    def ask(self, do: str, **more: Json) -> JsonObject:
        if more.get("action") == "leader_appends":
            self.request_count += 1
            return {"cannot": "no producer"}
        return super().ask(do, **more)


@pytest.mark.parametrize(
    "limits",
    [Limits(), Limits(paths=True), Limits(walks=20), Limits(per_action=10)],
    ids=["saved", "paths", "walks", "drawn"],
)
def test_what_it_cannot_be_brought_to_is_listed_and_is_no_difference(limits: Limits) -> None:
    done = drive(NoProducer(), limits)
    assert done.conforms
    assert done.complete
    assert done.cannot["no producer"] > 0
    assert done.edges > 20
    assert "leader_appends" not in done.actions
    assert done.undriven_actions == ("leader_appends",)
    assert conform.exit_code(done) is (Exit.UNCOVERED if limits.walks is None else Exit.HOLDS)
    assert "no step driven of leader_appends" in conform.result_line(done)


def test_what_is_known_to_differ_is_listed_and_is_no_difference() -> None:
    """With a crash a follower may have to fetch again before it is proposed again (docs/differences.md)."""
    done = drive(
        CoresInProcess(), Limits(walks=60, walk_length=30), crashes=1, isr_changes=4, min_insync=1, sessions_lost=1
    )
    assert done.conforms
    assert done.complete


# The naive one


def test_the_naive_one_imports_nothing_of_ours_and_is_short() -> None:
    text = NAIVE.read_text(encoding="utf-8")
    imported = {
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported == {"__future__", "copy", "json", "sys", "typing"}
    code = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(code) < 150


def naive(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    sut = f"{PYTHON} {shlex.quote(str(NAIVE))}"
    assert (
        main(["conform", "--plain", "--sut", sut, "--replicas", "2", "--crashes", "0", *PATIENT, *options])
        == Exit.SAFETY
    )
    return " ".join(capsys.readouterr().out.split())


def test_the_naive_one_commits_under_the_minimum(capsys: pytest.CaptureFixture[str]) -> None:
    told = naive(capsys, "--first")
    assert "4 leader_adopts_isr(leader=r1) high_watermark[r1]: the model has 0, the system 1" in told
    assert "acked: the model has [], the system [0] (output)" in told
    assert "may_advance: (2) The leader holds its watermark while its in-sync set is under the minimum" in told
    assert "VIOLATED" in told
    # The document shows this very report.
    shown = DOCUMENT.read_text(encoding="utf-8").split("inconsistent state: ")[1].split("## A session")[0]
    assert " ".join(shown.split()) in told


def test_the_naive_one_forgets_the_maximal_isr_and_bounds_no_watermark(capsys: pytest.CaptureFixture[str]) -> None:
    told = naive(capsys, "--min-insync", "1", "--log", "2", "--records", "2")
    assert "maximal_isr: The leader's in-sync set and what it has asked to add to it" in told
    assert "7 follower_appends(follower=r2) high_watermark[r2]: the model has 1, the system 2" in told


def test_the_session_of_the_document_is_what_happens() -> None:
    lines = [line.strip() for line in DOCUMENT.read_text(encoding="utf-8").splitlines()]
    asked = [line[2:] for line in lines if line.startswith("> {")]
    answered = [json.loads(line[2:]) for line in lines if line.startswith("< {")]
    done = subprocess.run(
        [sys.executable, str(NAIVE)], input="\n".join(asked) + "\n", capture_output=True, text=True, check=True
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == answered
    assert len(asked) > 6


# A leader that evicts a slow follower by itself


def test_who_evicts_alone_acknowledges_what_kafka_does_not_yet(capsys: pytest.CaptureFixture[str]) -> None:
    sut = f"{PYTHON} {shlex.quote(str(ALONE))}"
    given = ["conform", "--plain", "--sut", sut, "--replicas", "2", "--crashes", "0", "--first", *PATIENT]
    assert main(given) == Exit.SAFETY
    told = " ".join(capsys.readouterr().out.split())
    assert "2 leader_proposes_shrink(leader=r1, lagging={r2}) high_watermark[r1]: the model has 0, the system 1" in told
    assert "acked: the model has [], the system [0] (output)" in told


def test_who_evicts_alone_takes_every_step_of_the_loss(capsys: pytest.CaptureFixture[str]) -> None:
    sut, trace = (
        f"{PYTHON} {shlex.quote(str(ALONE))}",
        TOP / "counterexamples" / "cases" / "evicted-alone" / "trace.itf.json",
    )
    assert main(["conform", "leader-evicts-alone", "--plain", "--sut", sut, "--trace", str(trace), *PATIENT]) == 0
    said = capsys.readouterr().out.strip().splitlines()[-1]
    assert "SAMPLED(1) - 4 of" in said
    assert said in (TOP / "docs" / "trade-offs.md").read_text(encoding="utf-8").replace("    insync", "insync")


# Nonsense

GREETS = """
import json, sys, time
def say(x): print(json.dumps(x) if not isinstance(x, str) else x, flush=True)
hello = {"protocol": "insync/conform/1", "name": "nobody"}
state = None
for line in sys.stdin:
    request = json.loads(line)
    do = request["do"]
    if do == "reset": state = request["state"]
    answer = {"hello": hello, "reset": {}, "snapshot": {"state": state}, "step": {"done": True}}.get(do)
"""


ENABLED = "    hello['enabled'] = True\n    if do == 'enabled': answer = {'enabled': "


@pytest.mark.parametrize(
    ("says", "exit", "sentence"),
    [
        ("    if do == 'step': sys.exit(3)\n", Exit.ENDED, "it ended with exit code 3 when it was asked to step"),
        ("    if do == 'step': raise ValueError('ouch')\n", Exit.ENDED, "asked to step: ValueError: ouch"),
        ("    if do == 'step': time.sleep(60)\n", Exit.ENDED, "within 1.5 s"),
        ("    if do == 'step': say('well'); continue\n", Exit.INPUT, "it answers step with 'well', which is no JSON"),
        ("    if do == 'step': say([1]); continue\n", Exit.INPUT, "it answers step with '[1]', which is no object"),
        ("    if do == 'step': answer = {}\n", Exit.INPUT, "says neither that it is done nor that it is not"),
        ("    if do == 'step': answer = {'error': 'no'}\n", Exit.INPUT, "it answers step with an error: no"),
        ("    hello['protocol'] = 'else'\n", Exit.INPUT, "it speaks else, not insync/conform/1"),
        ("    hello['name'] = ''\n", Exit.INPUT, "it does not say its name"),
        ("    hello['variables'] = ['logs']\n", Exit.INPUT, "it claims logs, which is none of the model's variables"),
        ("    hello['actions'] = ['dance']\n", Exit.INPUT, "it claims dance, which is none of the model's actions"),
        ("    hello['saves'] = 'yes'\n", Exit.INPUT, "enabled, saves, forgets and branches are true or false"),
        ("    if do == 'snapshot': answer = {}\n", Exit.INPUT, "its answer to snapshot has no state"),
        ("    if do == 'snapshot': del state['log']\n", Exit.INPUT, "its snapshot lacks log, which it claims to tell"),
        ("    if do == 'snapshot': state['log'] = 3\n", Exit.INPUT, "log: 3 is no object with a value for every"),
        ("    if do == 'snapshot': state['fenced'] = ['r9']\n", Exit.INPUT, 'of fenced: "r9" is none of r1, r2'),
        ("    if do == 'snapshot': state['fenced'] = ['r1']\n", Exit.INPUT, "after its reset fenced is [r1], not []"),
        (ENABLED + "[{'action': 'dance', 'parameters': {}}]}\n", Exit.INPUT, "dance(), which the model does not know"),
        (ENABLED + "7}\n", Exit.INPUT, "its answer to enabled has no list of steps"),
    ],
)  # fmt: skip
def test_nonsense_is_one_sentence(says: str, exit: Exit, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    sut = shlex.join([sys.executable, "-c", f"{GREETS}{says}    say(answer)\n"])
    patience = "1.5" if "sleep" in says else "500"
    code = main(["conform", "--plain", "--quiet", "--sut", sut, "--patience", patience, "--replicas", "2"])
    told = capsys.readouterr()
    assert (code, told.out) == (exit, "")
    assert sentence in told.err
    assert told.err.startswith("insync: the system under test: ")
    assert told.err.count("\n") == 1
    if "'step'" in says and "sleep" not in says:
        assert "(in step 1, " in told.err


@pytest.mark.parametrize(
    ("command", "exit", "sentence"),
    [
        ("no-such-program-anywhere", Exit.INPUT, "'no-such-program-anywhere' cannot be started: no such file"),
        ("", Exit.INPUT, "the command is empty"),
        ("'unfinished", Exit.INPUT, "cannot be read: No closing quotation"),
        ("true", Exit.ENDED, "it ended with exit code 0 when it was asked to hello"),
    ],
)
def test_a_command_that_starts_nothing_is_one_sentence(
    command: str, exit: Exit, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conform", "--sut", command, "--replicas", "2", *PATIENT]) == exit
    assert sentence in capsys.readouterr().err


def test_a_design_that_the_cores_do_not_have_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "kafka-0.8", "--sut", f"{PYTHON} -m isr_conform.core_sut", *PATIENT]) == Exit.INPUT
    assert "this is compared with kip-966 only" in capsys.readouterr().err
