"""With four voters a new high watermark answers a fetch that waits already (KIP-1166).

With two or three it never does, so without this the answer could be taken out of the design and nobody would notice.
"""

from __future__ import annotations

import pytest

from isr_check.reference import Evaluator
from isr_lang import Design, Instance
from isr_trace.replay import Move, Replay
from kraft_model import KRAFT
from kraft_protocol.designs.waiting_fetches import (
    WAITING_FETCHES,
    fetch_waits,
    record_is_answered,
    with_waiting_fetches,
)

pytestmark = pytest.mark.long

WITHOUT = with_waiting_fetches(KRAFT, fetch_waits, record_is_answered)
ELECTION = (
    ("voter_stands", 0),
    *(
        (action, *pair)
        for v in (1, 2)
        for action, *pair in (("voter_answers_pre_vote", v, 0), ("prospective_counts", 0, v))
    ),
    *((action, *pair) for v in (1, 2) for action, *pair in (("voter_answers_vote", v, 0), ("candidate_counts", 0, v))),
)
FETCHES = tuple(
    (action, *pair)
    for v in (1, 2)
    for action, *pair in (
        ("voter_answers_begin", v, 0),
        ("leader_answers_fetch", 0, v),
        ("follower_takes_fetch", v, 0),
        ("leader_answers_fetch", 0, v),
    )
)
ANSWERED = ("follower_takes_fetch", 1, 0)
"""The second fetch of the second voter waits at the end of the log, and that of the third commits."""


def is_possible(design: Design, steps: tuple[tuple[object, ...], ...]) -> bool:
    run = Replay(Evaluator(Instance(design, {"voters": 4, "epochs": 1, "log": 1, "writes": 0}))).exact(
        (), [Move(str(action), tuple(given)) for action, *given in steps]
    )
    return run is not None


def test_a_watermark_answers_a_fetch_that_waits() -> None:
    assert is_possible(WAITING_FETCHES, (*ELECTION, *FETCHES, ANSWERED))


def test_before_that_the_fetch_waits() -> None:
    assert not is_possible(WAITING_FETCHES, (*ELECTION, *FETCHES[:-1], ANSWERED))


def test_without_that_answer_the_fetch_waits_on() -> None:
    assert is_possible(WITHOUT, (*ELECTION, *FETCHES))
    assert not is_possible(WITHOUT, (*ELECTION, *FETCHES, ANSWERED))
