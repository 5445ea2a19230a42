"""The event log for ShiViz: every line is read by its own expression, and clocks order what messages order."""

import json
import re
from pathlib import Path

import pytest
from tests.support.pages import trace_file

from insync_cli.main import main
from isr_trace.itf import read_itf
from isr_visual.shiviz import PARSER, clocks, shiviz

CASE = "hw-truncation-loss"


def before(a: dict[str, int], b: dict[str, int]) -> bool:
    """Whether the event with the first clock happened before that with the second."""
    return a != b and all(n <= b.get(who, 0) for who, n in a.items())


def test_the_log_is_read_by_the_expression_that_it_begins_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(trace_file(CASE)), "--shiviz"]) == 0
    head, _, log = capsys.readouterr().out.partition("\n\n")
    assert head == PARSER
    found = list(re.finditer(PARSER.replace("?<", "?P<"), log))
    steps = read_itf(trace_file(CASE)).steps
    assert [m["event"].partition("(")[0] for m in found] == [s.action for s in steps]
    assert [m["host"] for m in found] == [s.actor for s in steps]
    for m in found:
        assert json.loads(m["clock"])[m["host"]] >= 1


def test_a_step_comes_after_who_sent_what_it_takes_up_and_its_own_past() -> None:
    found = clocks(read_itf(trace_file(CASE)))
    assert before(found[1], found[2]), "the follower appends what the leader answered"
    assert found[2] == {"r1": 2, "r2": 1}
    assert not before(found[3], found[4]), "the answer was lost: the follower crashed before it read it"
    assert before(found[7], found[8]), "the controller's metadata"
    assert len({json.dumps(c, sort_keys=True) for c in found}) == len(found), "every event has a clock of its own"


@pytest.mark.long
def test_every_case_of_the_corpus_has_a_log() -> None:
    for path in sorted(Path(trace_file(CASE)).parent.parent.glob("*/trace.itf.json")):
        trace = read_itf(path)
        assert shiviz(trace).count("\n") == 2 + 2 * len(trace.steps)
