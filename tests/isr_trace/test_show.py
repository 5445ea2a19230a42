"""A trace as text: what was done, what it changed to the cell, and the scene where the model has logs."""

import io

import attrs
import pytest
from rich.console import Console
from tests.support.models import copied_log, thermostat
from tests.support.traces import evaluator, violation

from isr_trace.codec import Json
from isr_trace.diagrams import mermaid, plantuml
from isr_trace.diff import between
from isr_trace.replay import record
from isr_trace.scene import scene
from isr_trace.show import narration, plain_text, print_trace, story
from isr_trace.trace import Trace, TraceError

# The structural diff


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (1, 1, []),
        (1, 2, ["x: 1 -> 2"]),
        (True, 1, ["x: true -> 1"]),
        ("r1", "r2", ["x: r1 -> r2"]),
        ({"#set": ["a", "b"]}, {"#set": ["b", "c"]}, ["x: {a, b} -> {b, c}"]),
        ({"#set": ["a", "b"]}, {"#set": ["a"]}, ["x - b"]),
        ({"#set": []}, {"#set": ["a", "b"]}, ["x + a, b"]),
        ([1, 2], [1, 2, 3], ["x + 3"]),
        ([1, 2, 3], [1], ["x - 2", "x - 3"]),
        ([1, 2], [1, 3], ["x[1]: 2 -> 3"]),
        ({"#map": [["a", [1]], ["b", [2]]]}, {"#map": [["a", [1]], ["b", [2, 3]]]}, ["x[b] + 3"]),
        (
            {"#map": [["a", {"#map": [["b", 1], ["c", 2]]}]]},
            {"#map": [["a", {"#map": [["b", 1], ["c", 4]]}]]},
            ["x[a][c]: 2 -> 4"],
        ),
        ({"f": 1, "g": {"#tup": [1, 2]}}, {"f": 1, "g": {"#tup": [2, 2]}}, ["x.g[0]: 1 -> 2"]),
        (
            {"tag": "None", "value": {"#tup": []}},
            {"tag": "Some", "value": {"#bigint": "7"}},
            ["x: none -> 7"],
        ),
        ({"#map": [["a", 1]]}, {"#map": [["a", 1], ["b", 2]]}, ["x[b] + 2"]),
        (None, 4, ["x + 4"]),
    ],
)
def test_a_difference_is_shown_at_the_cell(before: Json, after: Json, said: list[str]) -> None:
    assert [str(c) for c in between("x", before, after)] == said


# The story


def told(trace: Trace) -> str:
    return plain_text(story(trace))


def test_every_step_has_its_name_its_sentence_and_what_it_changed() -> None:
    beats = told(violation(copied_log.UNCLEAN)).split("\n\n")
    assert beats[0].splitlines()[0] == "unclean: acked-survives VIOLATED, 5 steps"
    assert "replicas=2" in beats[0]
    assert "5 steps, and no shorter trace exists" in beats[0]
    assert beats[3].splitlines()[:3] == [
        "T2  leader_shrinks_isr(r=r1, f=r2)",
        "    The leader r1 puts r2, which is behind, out of the in-sync set.",
        "      isr  - r2",
    ]


def test_a_sentence_has_its_parameters_filled_in() -> None:
    trace = violation(copied_log.UNCLEAN)
    assert [narration(trace, s) for s in trace.steps][-1] == (
        "The leader is down, so the replica r2 leads, in sync or not."
    )


def test_the_scene_stays_in_place_and_says_what_is_lost() -> None:
    trace = violation(copied_log.UNCLEAN)
    scenes = [scene(trace, i) for i in range(len(trace.states))]
    drawn = [s.lines() for s in scenes if s is not None]
    assert drawn[0][:2] == ["r1 L* [| ]", "r2  * [| ]"]
    assert drawn[2][:2] == ["r1 L* [|0]", "r2    [| ]"], "r2 is out of the in-sync set"
    assert drawn[3][:2] == ["r1 L* [0|]", "r2    [| ]"], "the bar has passed the record"
    assert drawn[5] == [
        "r1 x  [0|]",
        "r2 L* [| ]",
        "      controller: leader r2, isr {r2}",
        "      clients: acked {0}",
        "      LOST: record 0 was acknowledged, and the leader r2 does not have it",
    ]
    assert "UNAVAILABLE: record 0 was acknowledged, and only r1 has it, which is down" in drawn[4][-1]


def test_a_model_without_logs_is_shown_as_a_table() -> None:
    trace = violation(thermostat.DESIGN, "never-hot")
    assert scene(trace, 0) is None
    shown = told(trace)
    assert "warmth    (room1: 0, room2: 0, room3: 0)" in shown
    assert "warmth[room1]  0 -> 1" in shown


def test_colour_goes_to_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = violation(copied_log.UNCLEAN)

    def printed(terminal: bool) -> str:
        console = Console(file=io.StringIO(), force_terminal=terminal, width=20)
        print_trace(trace, console)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[3" in printed(True)
    assert printed(False) == told(trace), "and however narrow, no line is broken"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(True)


# Sequence diagrams


def test_a_step_towards_a_peer_is_an_arrow_and_any_other_a_note() -> None:
    trace = violation(copied_log.UNCLEAN, constants={"replicas": 3})
    lines = mermaid(trace).splitlines()
    assert lines[:4] == ["sequenceDiagram", *(f"    participant r{i}" for i in (1, 2, 3))]
    assert "    r2->>r1: T2 follower copies" in lines
    assert "    Note over r1: T5 replica crashes" in lines
    assert "    Note right of r1: high_watermark[r1]: 0 -> 1<br/>acked + 0" in lines
    text = plantuml(trace)
    assert text.startswith('@startuml\nparticipant "r1"\n')
    assert '"r2" -> "r1": T2 follower copies\n' in text
    assert text.endswith("@enduml\n")


def test_a_step_remembers_whose_message_it_takes_up() -> None:
    trace = violation(copied_log.UNCLEAN, constants={"replicas": 3})
    assert [(s.actor, s.peer, s.after) for s in trace.steps] == [
        ("r1", "", None),
        ("r2", "r1", None),
        ("r1", "r3", None),
        ("r1", "", None),
        ("r1", "", None),
        ("r3", "", 3),
    ]


def test_a_trace_without_steps_has_no_sequence_diagram() -> None:
    with pytest.raises(TraceError, match="no steps"):
        mermaid(record(evaluator(copied_log.UNCLEAN), (0,), []))


def test_a_trace_that_loops_says_where() -> None:
    lasso = attrs.evolve(violation(thermostat.DESIGN, "never-hot"), loop=1)
    assert told(lasso).endswith("then T1 again, for ever\n")
