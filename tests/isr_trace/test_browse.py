"""A reader walks through a trace forwards, backwards, to events and to words."""

import io

import attrs
import pytest
from rich.console import Console
from tests.support.models import copied_log, thermostat
from tests.support.traces import violation

from isr_trace.browse import Walk, browse
from isr_trace.scene import eventful
from isr_trace.trace import Trace


def walked(trace: Trace, *answers: str) -> str:
    """What is printed when the reader answers so, and then ends the input."""
    left = list(answers)
    console = Console(file=io.StringIO(), width=200)

    def ask(prompt: str) -> str:
        console.print(prompt)
        if not left:
            raise EOFError
        return left.pop(0)

    browse(trace, console, ask)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("answers", "at", "said"),
    [
        (("",), 1, ""),
        (("n", "n", "p"), 1, ""),
        (("p",), 0, "this is the first beat"),
        (("l",), 5, ""),
        (("l", "n"), 5, "this is the last beat"),
        (("l", "f"), 0, ""),
        (("4",), 4, ""),
        (("9",), 0, "the last beat is T5"),
        (("/crashes",), 4, ""),
        (("4", "/leader_appends"), 1, ""),
        (("/nothing such",), 0, "no beat says 'nothing such'"),
        (("e",), 2, ""),
        (("l", "e"), 5, "no more events"),
    ],
)
def test_an_answer_leads_there(answers: tuple[str, ...], at: int, said: str) -> None:
    walk = Walk(violation(copied_log.UNCLEAN))
    for answer in answers:
        walk.go(answer)
    assert (walk.at, walk.message) == (at, said)


@pytest.mark.parametrize(
    ("loop", "at", "said"), [(2, 3, "then T2 again, for ever"), (5, 5, "and so it stays for ever: T5 again and again")]
)
def test_after_the_last_beat_of_a_loop_comes_its_first(loop: int, at: int, said: str) -> None:
    walk = Walk(attrs.evolve(violation(copied_log.UNCLEAN), loop=loop))
    for answer in ("l", "n"):
        walk.go(answer)
    assert walk.at == at
    assert walk.message.startswith(said)


def test_an_unknown_answer_is_met_with_the_known_ones() -> None:
    assert "p: previous" in walked(violation(copied_log.UNCLEAN), "x").split("T0 of 5", 1)[1]


def test_each_beat_is_printed_as_the_reader_comes_to_it() -> None:
    printed = walked(violation(copied_log.UNCLEAN), "", "q")
    assert "T1  leader_appends(r=r1)" in printed
    assert "T2  " not in printed
    assert "acked           {}" in walked(violation(copied_log.UNCLEAN), "v")


def test_an_event_is_a_change_that_a_client_or_the_controller_would_notice() -> None:
    trace = violation(copied_log.UNCLEAN)
    assert [i for i in range(1, 6) if eventful(trace, i)] == [2, 3, 4, 5]
    plain = violation(thermostat.DESIGN, "never-hot")
    assert all(eventful(plain, i) for i in range(1, len(plain.states)))
