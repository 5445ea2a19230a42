"""What must come to pass in a quorum does, and does not where one of its steps may be put off for ever.

Without the second half a promise could hold because nothing ever begins it, or because it needs no fairness.
"""

import pytest

from isr_check.engine import Limits, Verdict
from isr_check.native import explore
from isr_lang import Design, Instance, Value
from kraft_protocol.by_name import DESIGNS
from kraft_protocol.liveness import LIVENESS

pytestmark = pytest.mark.explores

NAMES = tuple(p.name for p in LIVENESS)
TWO: dict[str, Value] = {"voters": 2, "epochs": 2, "log": 3, "writes": 1}
KEEPERS = ("kraft", "kafka-20895", "kraft-any-pre-vote")
"""Today's design, with a leader that resigned in the way, and with pre-votes that say nothing."""
NEEDED = (
    ("majority-elects-a-leader", "voter_stands"),
    ("majority-elects-a-leader", "voter_answers_pre_vote"),
    ("leader-commits-its-records", "leader_answers_fetch"),
    ("leader-commits-its-records", "follower_takes_fetch"),
)
"""A promise, and a step that must be fair for it."""


def verdicts(design: Design, bounds: dict[str, Value]) -> dict[str, Verdict]:
    found = explore(Instance(design, bounds), NAMES, Limits(), lambda _: None)
    assert found.complete
    return {n: found.finding(n).verdict for n in NAMES}


@pytest.mark.parametrize("name", KEEPERS)
def test_a_majority_elects_a_leader_that_commits(name: str) -> None:
    assert verdicts(DESIGNS[name], TWO) == dict.fromkeys(NAMES, Verdict.HOLDS)


@pytest.mark.slow
def test_three_voters_do_when_one_of_them_may_crash() -> None:
    bounds: dict[str, Value] = {"voters": 3, "epochs": 1, "log": 2, "writes": 0, "restarts": 1}
    assert verdicts(DESIGNS["kraft"], bounds) == dict.fromkeys(NAMES, Verdict.HOLDS)


@pytest.mark.parametrize(("promise", "step"), NEEDED)
def test_each_is_broken_where_a_step_may_be_put_off_for_ever(promise: str, step: str) -> None:
    design = DESIGNS["kraft"].with_fairness(unfair=(step,))
    assert verdicts(design, TWO)[promise] is Verdict.VIOLATED
