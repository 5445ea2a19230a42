"""TLC's counterexamples as JSON: the documents are those that TLC wrote of three small specifications, shortened."""

from __future__ import annotations

import json

import pytest

from isr_trace.itf import trace_from_text
from isr_trace.show import plain_text, story
from isr_trace.trace import TraceError

WHERE = '"location":{"beginLine":5,"beginColumn":9,"endLine":5,"endColumn":39,"module":"L"}'
FIRST, SECOND = '[1,{"f":{"r1":0},"s":[]}]', '[2,{"f":{"r1":1},"s":["r1"]}]'
GROW = f'{{"name":"Grow",{WHERE},"context":{{"r":"r1","x":2}},"parameters":["r"]}}'
SAFETY = f'{{"counterexample":{{"action":[[{FIRST},{GROW},{SECOND}]],"state":[{FIRST},{SECOND}]}},"vars":["f","s"]}}'


def lasso(back_to: int) -> str:
    """n grows to 2, and the last action leads back to one of the states."""
    states = [[number, {"n": number - 1}] for number in (1, 2, 3)]
    pairs = [(states[0], states[1]), (states[1], states[2]), (states[2], [back_to, {"n": back_to - 1}])]
    actions = [[before, {"name": "Next"}, after] for before, after in pairs]
    return json.dumps({"counterexample": {"action": actions, "state": states}, "vars": ["n"]})


def test_states_actions_and_their_parameters_are_read() -> None:
    trace = trace_from_text(SAFETY)
    assert trace.foreign
    assert trace.states == ({"f": {"r1": 0}, "s": []}, {"f": {"r1": 1}, "s": ["r1"]})
    assert [trace.step_text(step) for step in trace.steps] == ["Grow(r=r1)"]
    shown = plain_text(story(trace))
    assert "a trace of another program, 1 step, 2 variables" in shown
    assert "T1  Grow(r=r1)\n      f.r1  0 -> 1\n      s     + r1\n" in shown


@pytest.mark.parametrize(("back_to", "loop"), [(2, 1), (3, 2)], ids=["lasso", "stuttering"])
def test_a_lasso_leads_back(back_to: int, loop: int) -> None:
    trace = trace_from_text(lasso(back_to))
    assert (len(trace.steps), trace.loop) == (2, loop)
    assert plain_text(story(trace)).endswith(f"then T{loop} again, for ever\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"counterexample": []}', "counterexample should be an object"),
        ('{"counterexample": {"action": [], "state": []}}', "has no variables"),
        (
            '{"counterexample": {"action": [], "state": [[1, {"n": 0}], [2, {"n": 1}]]}}',
            "2 states do not fit 0 actions",
        ),
        ('{"counterexample": {"action": [], "state": [{"n": 0}]}}', "state 0 should be a list"),
        ('{"counterexample": {"action": [], "state": [[1]]}}', "state 0 should have 2 parts, not 1"),
        (lasso(9), "action 3 leads to state 9, which is not there"),
        (SAFETY.replace('"name":"Grow"', '"name":7'), "the name of action 1 should be a string"),
    ],
)
def test_what_is_no_trace_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        trace_from_text(text)


def test_whoever_has_the_text_is_told_how_to_get_such_a_document() -> None:
    with pytest.raises(TraceError, match="-dumpTrace json FILE"):
        trace_from_text("Error: Invariant Inv is violated.\nState 1: <Initial predicate>\n/\\ x = 0\n")
