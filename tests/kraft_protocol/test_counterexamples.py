"""Each rule taken out and each report breaks its promise, and today's design beside it does not.

Without it a promise could stop seeing the mistake that it is there for. What is found in few steps is explored, to the
shortest counterexample. What takes too many is one behaviour, step by step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs
import pytest

from isr_check import native
from isr_check.engine import Exploration, Limits, Progress, Verdict
from isr_check.mistake_table import Mistake
from isr_check.reference import Evaluator
from isr_lang import Design, Instance, Value
from isr_trace.itf import read_itf
from isr_trace.replay import Move, Replay, goal
from kraft_protocol.by_name import DESIGNS
from kraft_protocol.notice import ELECTS, MISTAKES, TABLE

Bounds = Mapping[str, Value]

# Explored


EXPLORED = [m for m in MISTAKES if m.is_shortest]
MISTAKE_CASES = [pytest.param(m, id=m.design, marks=pytest.mark.slow if m.steps > 18 else ()) for m in EXPLORED]


def defaults(name: str) -> Bounds:
    """The default bounds of the design, at which it breaks its promise."""
    return Instance(DESIGNS[name]).constants


def explored_to(design: Design, promise: str, bounds: Bounds, steps: int) -> Exploration:
    """The exploration of all behaviours of at most so many steps, one state for all that differ in names only.

    A promise of what comes to pass is asked of all states, and each is one.
    """
    depth = [0]
    lasting = any(p.kind == "eventually" and p.name == promise for p in design.properties)

    def notes_depth(progress: Progress) -> None:
        depth[0] = progress.depth

    limits = Limits(stop=lambda: depth[0] > steps and not lasting)
    return native.explore(Instance(design, bounds), (promise,), limits, notes_depth, symmetry=not lasting)


@pytest.mark.explores
@pytest.mark.parametrize("mistake", MISTAKE_CASES)
def test_a_mistake_breaks_its_promise(mistake: Mistake) -> None:
    exploration = explored_to(DESIGNS[mistake.design], mistake.promise, {}, mistake.steps)
    finding = exploration.finding(mistake.promise)
    assert finding.verdict is Verdict.VIOLATED
    assert finding.path is not None
    assert len(finding.path.steps) == mistake.steps


@pytest.mark.explores
@pytest.mark.parametrize("mistake", MISTAKE_CASES)
def test_the_control_keeps_the_promise_for_as_many_steps(mistake: Mistake) -> None:
    bounds = {**defaults(mistake.design), **mistake.control_bounds}
    control = explored_to(DESIGNS[mistake.control], mistake.promise, bounds, mistake.steps)
    assert control.finding(mistake.promise).verdict is not Verdict.VIOLATED
    assert control.complete or control.depth >= mistake.steps


# Step by step

Steps = tuple[tuple[str, *tuple[int, ...]], ...]


def election(nominee: int, voter: int) -> Steps:
    """The nominee, which is prospective, leads the next epoch by the vote of one other."""
    return (
        ("voter_answers_pre_vote", voter, nominee),
        ("prospective_counts", nominee, voter),
        ("voter_answers_vote", voter, nominee),
        ("candidate_counts", nominee, voter),
    )


def wide_election(nominee: int, *voters: int) -> Steps:
    """The same by the votes of these."""
    asked = (s for v in voters for s in (("voter_answers_pre_vote", v, nominee), ("prospective_counts", nominee, v)))
    votes = (s for v in voters for s in (("voter_answers_vote", v, nominee), ("candidate_counts", nominee, v)))
    return (*asked, *votes)


def first_fetch(leader: int, f: int) -> Steps:
    """The follower hears of the leader, has its first record, and acknowledges that."""
    return (("voter_answers_begin", f, leader), *next_fetch(leader, f), ("leader_answers_fetch", leader, f))


def next_fetch(leader: int, f: int) -> Steps:
    return (("leader_answers_fetch", leader, f), ("follower_takes_fetch", f, leader))


OLD_EPOCH: Steps = (
    ("voter_stands", 0),
    *election(0, 1),
    ("voter_stands", 1),
    *election(1, 2),
    ("leader_resigns", 0),
    ("resigned_stands", 0),
    *election(0, 2),
    *first_fetch(0, 2),
    ("voter_answers_begin", 1, 0),
    ("voter_stands", 1),
    ("voter_stands", 2),
    *election(1, 2),
)
"""A record of the first epoch reaches a majority in the third, and the leader of the fourth lacks it (Raft, 5.4.2)."""
LONG_LOG: Steps = (
    ("voter_stands", 0),
    *election(0, 1),
    ("leader_appends", 0),
    ("voter_stands", 1),
    *election(1, 2),
    *first_fetch(1, 2),
    ("voter_answers_begin", 0, 1),
    ("voter_stands", 0),
    ("voter_stands", 2),
    *election(0, 2),
)
"""Two records of the first epoch, which nobody else has, against one of the second, which is committed."""
LOST_DISK: Steps = (
    ("voter_stands", 0),
    *election(0, 1),
    *first_fetch(0, 1),
    ("follower_takes_fetch", 1, 0),
    ("voter_answers_begin", 2, 0),
    ("voter_loses_disk", 0),
    ("voter_starts", 0),
    ("voter_stands", 2),
    *election(2, 0),
)
"""A record is committed by two, one of whom loses its disk and votes for the third."""
TRUNCATION: Steps = (
    *LOST_DISK,
    ("voter_answers_begin", 1, 2),
    *next_fetch(2, 1),
)
"""After that the one that still has the record follows."""
REPLACEMENT: Steps = (
    *LOST_DISK,
    *first_fetch(2, 0),
    ("leader_appends", 2),
    ("follower_takes_fetch", 0, 2),
    *next_fetch(2, 0),
    ("leader_answers_fetch", 2, 0),
)
"""After that the other two commit records of their own."""
UNKNOWN_WATERMARK: Steps = (
    ("voter_stands", 0),
    *election(0, 1),
    *first_fetch(0, 1),
    ("voter_stands", 1),
    *election(1, 2),
    ("voter_answers_begin", 0, 1),
    *next_fetch(1, 0),
)
"""A leader that has committed a record is deposed, and fetches from the next one before that has committed."""
EARLY: Steps = (
    ("voter_stands", 0),
    *wide_election(0, 1, 2),
    ("leader_removes_voter", 0, 3),
    ("voter_stands", 1),
    *wide_election(1, 2, 3),
    ("leader_removes_voter", 1, 2),
    ("voter_answers_begin", 3, 1),
    *next_fetch(1, 3),
    *next_fetch(1, 3),
    ("leader_answers_fetch", 1, 3),
    ("leader_resigns", 0),
    ("resigned_stands", 0),
    *election(0, 2),
)
"""Two leaders take another voter out of the same four each: majorities of the two threes need not overlap.

The second commits with the fourth. The first has kept its own record, and is elected again by the third.
"""


@attrs.frozen
class Behaviour:
    """Steps at whose end a design breaks a promise, and breaks it nowhere before; `possible`: the control has them."""

    design: str
    promise: str
    steps: Steps
    possible: bool
    control: str = "kraft"


LOSS: Bounds = {"voters": 3, "epochs": 2, "lost_disks": 1}
BEHAVIOURS = (
    Behaviour("kraft-commits-any-epoch", "leaders-complete", OLD_EPOCH, possible=True),
    Behaviour("kafka-12619", "leaders-complete", OLD_EPOCH, possible=True),
    Behaviour("kraft-longer-log", "leaders-complete", LONG_LOG, possible=False),
    Behaviour("kraft-unknown-watermark", "watermark-only-grows", UNKNOWN_WATERMARK, possible=True),
    Behaviour("kafka-12460", "watermark-within-log", TRUNCATION, possible=False),
    Behaviour("kraft-changes-early", "leader-counts-next-voters", EARLY, False, "kraft-853"),
    Behaviour("kraft-changes-early", "leaders-complete", EARLY, False, "kraft-853"),
)
LOSSES = (("leaders-complete", LOST_DISK), ("committed-only-grows", REPLACEMENT))
BEHAVIOUR_CASES = [pytest.param(b, id=f"{b.design} {b.promise}") for b in BEHAVIOURS]


def breaks_promise(design: Design, promise: str, steps: Steps, bounds: Bounds) -> bool | None:
    """Whether the behaviour ends where the promise is broken, and breaks it nowhere before; None: it is impossible."""
    evaluator = Evaluator(Instance(design, bounds))
    run = Replay(evaluator).exact((), [Move(action, tuple(parameters)) for action, *parameters in steps])
    if run is None:
        return None
    is_broken = goal(evaluator, promise)
    broken = [is_broken(before, state) for before, state in zip((None, *run.states), run.states, strict=False)]
    assert not any(broken[:-1])
    return broken[-1]


@pytest.mark.long
@pytest.mark.parametrize("case", BEHAVIOUR_CASES)
def test_a_mistake_ends_where_its_promise_is_broken(case: Behaviour) -> None:
    assert breaks_promise(DESIGNS[case.design], case.promise, case.steps, defaults(case.design)) is True


@pytest.mark.long
@pytest.mark.parametrize("case", BEHAVIOUR_CASES)
def test_today_s_design_does_not_end_there(case: Behaviour) -> None:
    today = breaks_promise(DESIGNS[case.control], case.promise, case.steps, defaults(case.design))
    assert today is (False if case.possible else None)


@pytest.mark.long
@pytest.mark.parametrize(("promise", "steps"), LOSSES)
def test_a_lost_disk_loses_what_was_committed(promise: str, steps: Steps) -> None:
    assert breaks_promise(DESIGNS["kafka-14077"], promise, steps, LOSS) is True


# Within the least bounds

SMALLEST: Bounds = {"epochs": 1, "log": 1, "writes": 0}
CASES_FOLDER = Path(__file__).parents[2] / "counterexamples" / "quorum_cases"
ANY_FETCH: Steps = (
    ("voter_stands", 0),
    *election(0, 1),
    ("voter_stands", 1),
    *election(1, 2),
    ("leader_appends", 1),
    ("voter_answers_begin", 0, 1),
    *next_fetch(1, 0),
)
"""A leader has one record that nobody else has, and fetches behind it from the next one, which has two of its own."""


VOTE_LOST: Steps = (
    ("voter_stands", 0),
    ("voter_stands", 2),
    ("voter_answers_pre_vote", 1, 0),
    ("prospective_counts", 0, 1),
    ("voter_answers_pre_vote", 1, 2),
    ("prospective_counts", 2, 1),
    ("voter_answers_vote", 1, 0),
    ("candidate_counts", 0, 1),
    ("voter_crashes", 1),
    ("voter_starts", 1),
    ("voter_answers_vote", 1, 2),
    ("candidate_counts", 2, 1),
)
"""A voter votes, starts again without that, and votes for another."""


def steps_of(folder: str) -> Steps:
    """The stored trace of a case, as steps."""
    trace = read_itf(CASES_FOLDER / folder / "trace.itf.json")
    return tuple((s.action, *cast("tuple[int, ...]", tuple(s.parameters.values()))) for s in trace.steps)


WALKS: Mapping[str, Steps | str] = {
    **{b.design: b.steps for b in BEHAVIOURS},
    "kraft-any-fetch": ANY_FETCH,
    "kraft-vote-not-flushed": VOTE_LOST,
    "kraft-end-clears-fetch": "resigned-leader-20895",
    "kafka-14077": "emptied-disk-14077",
    "kafka-16530": "uncounted-leader-16530",
    "kafka-16531": "unheard-leader-16531",
    "kafka-17426": "zero-directory-17426",
    "kafka-19850": "removed-voter-joins-19850",
    "kafka-20895": "resigned-leader-20895",
}
"""A behaviour of each, or the case that has it."""


@pytest.mark.long
@pytest.mark.parametrize(
    "mistake", [pytest.param(m, id=f"{m.design} {m.promise}") for m in MISTAKES if m.design in WALKS]
)
def test_a_behaviour_breaks_the_promise_within_the_least_bounds(mistake: Mistake) -> None:
    walk = WALKS[mistake.design]
    steps = steps_of(walk) if isinstance(walk, str) else walk
    bounds = {**SMALLEST, **dict.fromkeys(TABLE.faults, 0), **mistake.least_bounds()[0]}
    assert breaks_promise(DESIGNS[mistake.design], mistake.promise, steps, bounds) is True


TWO_VOTERS = [m for m in MISTAKES if m.least and m.design in ("kraft-votes-again", "kafka-10527", "kafka-10533")]


@pytest.mark.explores
@pytest.mark.parametrize("mistake", TWO_VOTERS, ids=lambda m: m.design)
def test_two_voters_break_the_promise_within_the_least_bounds_and_not_below(mistake: Mistake) -> None:
    for bounds in mistake.least_bounds():
        whole = {**SMALLEST, **dict.fromkeys(TABLE.faults, 0), **bounds}
        if whole["voters"] != 2:
            continue
        design = DESIGNS[mistake.design]
        assert explored_to(design, mistake.promise, whole, 30).finding(mistake.promise).verdict is Verdict.VIOLATED
        for name in (*SMALLEST, *TABLE.faults):
            size, least = whole[name], SMALLEST.get(name, 0)
            assert isinstance(size, int)
            assert isinstance(least, int)
            if size > least:
                smaller = native.explore(
                    Instance(design, {**whole, name: size - 1}), (mistake.promise,), Limits(), lambda _: None
                )
                assert smaller.complete
                assert smaller.finding(mistake.promise).verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m.design} {m.promise}")
def test_below_its_least_bounds_a_mistake_does_not_count_as_noticed(mistake: Mistake) -> None:
    design = DESIGNS[mistake.design]
    for bounds in mistake.least_bounds():
        whole = Instance(design, {**SMALLEST, **dict.fromkeys(TABLE.faults, 0), **bounds}).constants
        assert TABLE.is_noticed(mistake, whole)
        for name, size in bounds.items():
            if isinstance(size, int) and not isinstance(size, bool):
                assert (
                    not TABLE.is_noticed(mistake, {**whole, name: size - 1, "voters": bounds["voters"]})
                    or name == "voters"
                )


def test_a_leader_that_is_cut_off_is_noticed_among_three_voters_in_one_epoch() -> None:
    (mistake,) = (m for m in MISTAKES if m.design == "kafka-15489")
    assert TABLE.is_noticed(mistake, Instance(DESIGNS["kafka-15489"], {"voters": 3, "epochs": 1}).constants)
    assert not TABLE.is_noticed(mistake, Instance(DESIGNS["kafka-15489"], {"voters": 2, "epochs": 1}).constants)


# All of them

PAGE = Path(__file__).parents[2] / "docs" / "kraft.md"
ROW = re.compile(r"^\| `([a-z0-9.-]+)` \|[^|]*\| `([a-z-]+)` \| (\d+)", re.MULTILINE)


def test_the_page_has_these_designs_promises_and_steps() -> None:
    cases = {(m.design, m.promise, m.steps) for m in MISTAKES}
    cases |= {("kafka-14077", promise, len(steps)) for promise, steps in LOSSES}
    found = ROW.findall(PAGE.read_text("utf-8"))
    rows = {(design, promise, int(steps)) for design, promise, steps in found if design in DESIGNS}
    assert rows == cases


def test_what_is_not_explored_to_the_shortest_is_a_behaviour_of_so_many_steps() -> None:
    steps = {(b.design, b.promise): len(b.steps) for b in BEHAVIOURS}
    assert {(m.design, m.promise): m.steps for m in MISTAKES if not m.is_shortest}.items() <= steps.items()


def test_every_design_that_is_to_fail_stands_here() -> None:
    assert {name for name, design in DESIGNS.items() if design.expected} == {m.design for m in MISTAKES}
    assert all(m.promise in DESIGNS[m.design].expected for m in MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m.design} {m.promise}")
def test_a_design_fails_at_its_defaults(mistake: Mistake) -> None:
    constants = defaults(mistake.design)
    assert {name: constants[name] for name in mistake.bounds} == mistake.bounds
    assert TABLE.says_something(mistake, constants)
    assert TABLE.is_noticed(mistake, constants)


# What two voters notice, and three


@pytest.mark.explores
@pytest.mark.parametrize(
    ("name", "promise", "bounds"),
    [
        ("kraft-votes-again", "one-vote-per-epoch", {"voters": 2}),
        ("kafka-16530", "committed-by-majority", {"voters": 3}),
        pytest.param(
            "kraft-prospective-refuses",
            ELECTS,
            {"voters": 3, "epochs": 1, "log": 1, "writes": 0},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_with_another_number_of_voters_than_its_own_a_mistake_breaks_its_promise(
    name: str, promise: str, bounds: Bounds
) -> None:
    assert explored_to(DESIGNS[name], promise, bounds, 14).finding(promise).verdict is Verdict.VIOLATED


def test_a_mistake_without_a_number_of_voters_stands_there() -> None:
    own = {m.design for m in MISTAKES if "voters" not in m.bounds}
    assert own == {"kraft-votes-again", "kafka-16530", "kraft-prospective-refuses", "kafka-10533"}


@pytest.mark.long
@pytest.mark.parametrize(("survivors", "is_broken"), [(0, True), (1, None)])
def test_three_voters_lose_what_was_not_flushed(survivors: int, is_broken: bool | None) -> None:
    """With what was flushed the voter refuses its vote."""
    steps: Steps = (
        ("voter_stands", 0),
        *election(0, 1),
        *first_fetch(0, 1),
        ("follower_takes_fetch", 1, 0),
        ("voter_answers_begin", 2, 0),
        ("voter_crashes", 1, survivors),
        ("voter_starts", 1),
        ("voter_stands", 2),
        *election(2, 1),
    )
    bounds = {**defaults("kafka-10533"), "voters": 3, "log": 1, "writes": 0}
    assert breaks_promise(DESIGNS["kafka-10533"], "leaders-complete", steps, bounds) is is_broken
