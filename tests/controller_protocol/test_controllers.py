"""Controllers on a quorum keep what one reliable controller promises, and what takes that away is found.

Without it a rule of the quorum could be lost between the two models, which say nothing of each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from controller_model import KRAFT_CONTROLLERS, ONE_CRASH
from controller_protocol.by_name import DESIGNS
from controller_protocol.controllers import CONTROLLERS
from controller_protocol.decisions import DECISIONS, decision_of_quorum
from controller_protocol.designs.activation import ACTIVATION
from controller_protocol.designs.dropped_rules import any_log_covers, votes_again
from controller_protocol.notice import ALONE, MISTAKES, notice, table_for
from controller_protocol.promises import PROMISES
from controller_protocol.room import FAULTS, milestones_of
from isr_check import native
from isr_check.engine import Exploration, Limits, Progress, Verdict
from isr_check.mistake_table import Mistake
from isr_lang import Design, Instance, Value
from isr_lang.override import DefinitionFunction
from isr_model import KIP_966
from isr_protocol.planted import notice as of_partition
from isr_protocol.planted.mistakes import mistakes_by_name, planted_in
from isr_protocol.planted.notice import Row

pytestmark = pytest.mark.explores

Bounds = Mapping[str, Value]
ONE_RECORD: Bounds = {"epochs": 1, "log": 1, "records": 1}
SMALL: Bounds = {**ONE_RECORD, "crashes": 0, "lost_disks": 0, "metadata_log": 3, "isr_changes": 1}
"""Two replicas and three controllers: a change of the metadata, and a second controller that is elected."""
CRASH: Bounds = {**SMALL, "crashes": 1, "lost_disks": 1}


def bounds_of(m: Mistake) -> Bounds:
    """The least bounds of the mistake, with no faults but its own."""
    names = {c.name for c in DESIGNS[m.design].constants()}
    least = {**dict.fromkeys(FAULTS, 0), **ONE_RECORD}
    return {**{name: value for name, value in least.items() if name in names}, **m.bounds}


def explored(design: Design, bounds: Bounds, names: tuple[str, ...] = (), steps: int | None = None) -> Exploration:
    """All states within the bounds, or all of so many steps, one for all that differ in names only.

    A promise of what comes to pass is asked of all states, and each is one.
    """
    depth = [0]
    lasting = any(p.kind == "eventually" and p.name in names for p in design.properties)

    def notes_depth(progress: Progress) -> None:
        depth[0] = progress.depth

    limits = Limits(stop=lambda: steps is not None and depth[0] > steps and not lasting)
    return native.explore(Instance(design, bounds), names, limits, notes_depth, symmetry=not lasting)


def broken(exploration: Exploration) -> set[str]:
    return {f.name for f in exploration.findings if f.verdict is Verdict.VIOLATED}


def test_controllers_on_reliable_disks_keep_every_promise() -> None:
    names = tuple(p.name for p in PROMISES)
    design = KRAFT_CONTROLLERS.promising(*CONTROLLERS.probes(names))
    exploration = explored(design, SMALL)
    assert exploration.complete
    assert (exploration.distinct, exploration.states_in_orbits) == (18_519, 219_258)
    assert not broken(exploration)
    reached = {f.name for f in exploration.findings if f.kind.startswith("sometimes") and f.path is not None}
    assert reached >= {p.name for p in design.properties if p.kind.startswith("sometimes")} - {"another-replica-leads"}


@pytest.mark.slow
def test_they_keep_them_while_a_broker_crashes_and_returns() -> None:
    exploration = explored(KRAFT_CONTROLLERS, ONE_CRASH)
    assert exploration.complete
    assert exploration.states_in_orbits == 4_758_894
    assert not broken(exploration)


CASES = [
    pytest.param(m, id=f"{m.design} {m.promise}", marks=[pytest.mark.slow] if m.steps > 20 else []) for m in MISTAKES
]


@pytest.mark.parametrize("mistake", CASES)
def test_a_mistake_breaks_its_promise(mistake: Mistake) -> None:
    finding = explored(DESIGNS[mistake.design], bounds_of(mistake), (mistake.promise,), mistake.steps).finding(
        mistake.promise
    )
    assert finding.verdict is Verdict.VIOLATED
    assert finding.path is not None
    assert len(finding.path.steps) == mistake.steps


@pytest.mark.parametrize("mistake", CASES)
def test_the_control_keeps_the_promise_for_as_many_steps(mistake: Mistake) -> None:
    bounds = {**bounds_of(mistake), **mistake.control_bounds}
    control = explored(DESIGNS[mistake.control], bounds, (mistake.promise,), mistake.steps)
    assert control.finding(mistake.promise).verdict is not Verdict.VIOLATED
    assert control.complete or control.depth >= mistake.steps


SHORTER = [m for m in MISTAKES if m.least or m.bounds == ALONE]
SMALLEST: Bounds = {"terms": 1, "metadata_log": 1, "isr_changes": 0}


def within(m: Mistake, bounds: Bounds) -> Exploration:
    """The mistake within these bounds, and the least of what they do not name."""
    least = {n: v for n, v in SMALLEST.items() if n in {c.name for c in DESIGNS[m.design].constants()}}
    return explored(DESIGNS[m.design], {**bounds_of(m), **least, **bounds}, (m.promise,))


@pytest.mark.parametrize("mistake", SHORTER, ids=lambda m: f"{m.design} {m.promise}")
def test_a_mistake_breaks_its_promise_within_its_least_bounds_and_not_below(mistake: Mistake) -> None:
    for bounds in mistake.least_bounds():
        assert within(mistake, bounds).finding(mistake.promise).verdict is Verdict.VIOLATED
        for name in sorted(bounds.keys() & SMALLEST.keys()):
            size = bounds[name]
            assert isinstance(size, int)
            if size > 1:
                smaller = within(mistake, {**bounds, name: size - 1})
                assert smaller.complete
                assert smaller.finding(mistake.promise).verdict is not Verdict.VIOLATED


@pytest.mark.slow
def test_with_directory_ids_a_lost_disk_breaks_nothing() -> None:
    exploration = explored(DESIGNS["kraft-controllers-853"], CRASH)
    assert exploration.complete
    assert exploration.states_in_orbits == 3_212_688
    assert not broken(exploration)


# Beside one reliable controller

AS_ONE = DESIGNS["kraft-controllers-as-one"]
PROMISE = "decides-as-one"


def test_what_brokers_hear_is_what_one_controller_could_decide() -> None:
    exploration = explored(AS_ONE, SMALL, (PROMISE,))
    assert exploration.complete
    assert exploration.finding(PROMISE).verdict is Verdict.HOLDS


def test_what_a_static_quorum_forgets_is_no_decision_of_one() -> None:
    finding = explored(AS_ONE, {**SMALL, "lost_disks": 1}, (PROMISE,), 8).finding(PROMISE)
    assert finding.verdict is Verdict.VIOLATED
    assert finding.path is not None
    assert len(finding.path.steps) == 8


@pytest.mark.slow
def test_three_replicas_keep_every_promise() -> None:
    exploration = explored(KRAFT_CONTROLLERS, {**SMALL, "replicas": 3, "min_insync": 2})
    assert exploration.complete
    assert exploration.states_in_orbits == 35_092_593
    assert not broken(exploration)


def test_every_design_that_is_to_fail_stands_here() -> None:
    assert {name for name, design in DESIGNS.items() if design.expected} == {m.design for m in MISTAKES}


PAGE = Path(__file__).parents[2] / "docs" / "kraft.md"
ROW = re.compile(r"^\| `([a-z0-9.-]+)` \|[^|]*\| `([a-z-]+)` \| (\d+)", re.MULTILINE)


def test_the_page_has_these_designs_promises_and_steps() -> None:
    found = ROW.findall(PAGE.read_text("utf-8"))
    rows = {(design, promise, int(steps)) for design, promise, steps in found if design in DESIGNS}
    assert rows == {(m.design, m.promise, m.steps) for m in MISTAKES}


def test_every_promise_has_a_premise() -> None:
    names = {p.name for design in DESIGNS.values() for p in design.properties if p.kind in ("always", "step")}
    assert not [name for name in names if not CONTROLLERS.premises([name])]


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_is_of_the_family(name: str) -> None:
    assert issubclass(DESIGNS[name].state, CONTROLLERS.state)
    assert CONTROLLERS.designs()[name] is DESIGNS[name]


# What a verdict is worth


def judged(design: Design, bounds: Bounds, *names: str) -> tuple[dict[str, Verdict], str | None]:
    """The verdicts on these promises, as the family judges their room, and the milestone that is lacking."""
    instance, probes = Instance(design, bounds), CONTROLLERS.probes(names)
    exploration = explored(design.promising(*probes), bounds, (*names, *(p.name for p in probes)))
    worth = CONTROLLERS.worth(instance, exploration, names, native.explore, Limits())
    lacking = worth.room.lacking.name if worth.room is not None and worth.room.lacking is not None else None
    return {f.name: f.verdict for f in worth.exploration.findings if f.name in names}, lacking


@pytest.mark.parametrize(
    ("bounds", "verdict", "lacking"),
    [
        ({}, Verdict.HOLDS, None),
        ({"metadata_log": 2}, Verdict.TOO_SMALL, "controller-changes-it-after-them"),
        ({"isr_changes": 0}, Verdict.TOO_SMALL, "controller-changes-it-after-them"),
    ],
)
def test_bounds_have_room_for_a_later_controller_that_decides(
    bounds: Bounds, verdict: Verdict, lacking: str | None
) -> None:
    answer = judged(KRAFT_CONTROLLERS, {**SMALL, **bounds}, "one-vote-a-term", "leaders-have-committed")
    assert answer == ({"leaders-have-committed": verdict}, lacking)


def test_the_quorum_alone_has_milestones_of_its_own() -> None:
    alone, whole = (milestones_of(DESIGNS[name]) for name in ("abstract-quorum", "kraft-controllers"))
    assert set(alone) < set(whole) <= set(CONTROLLERS.milestones())


OWN: Bounds = dict(KRAFT_CONTROLLERS.defaults)


@pytest.mark.parametrize(
    ("bounds", "promise", "small"),
    [
        (SMALL, "leaders-have-committed", False),
        ({**SMALL, "metadata_log": 2}, "leaders-have-committed", False),
        ({**SMALL, "metadata_log": 1}, "leaders-have-committed", True),
        (SMALL, "no-divergence", True),
        ({**SMALL, "metadata_log": 2}, "acked-survives", True),
        (OWN, "no-divergence", False),
        ({**OWN, "metadata_log": 2}, "no-divergence", True),
        ({**OWN, "crashes": 1}, "leaders-complete", True),
        ({**OWN, "crashes": 1, "metadata_log": 6}, "leaders-complete", False),
    ],
)
def test_bounds_notice_the_mistakes_that_they_have_room_for(bounds: Bounds, promise: str, small: bool) -> None:
    constants = Instance(KRAFT_CONTROLLERS, bounds).constants
    answer = notice(KRAFT_CONTROLLERS, constants, [promise])
    assert answer.mistakes
    assert bool(answer.unnoticed_by_promise) is small
    assert bool(answer.enough) is small
    whole = Instance(KRAFT_CONTROLLERS, {**constants, **answer.enough}).constants
    assert not notice(KRAFT_CONTROLLERS, whole, [promise]).unnoticed_by_promise


@pytest.mark.parametrize(
    ("bounds", "promise"),
    [
        ({"metadata_log": 1}, "one-leader-a-term"),
        ({"metadata_log": 1}, "leaders-have-committed"),
        ({"metadata_log": 1}, "leader-knows-what-is-committed"),
        ({"voters": 2, "terms": 1, "metadata_log": 1}, "one-vote-a-term"),
    ],
)
def test_a_mistake_of_the_quorum_is_not_said_to_be_missed_where_it_shows(bounds: Bounds, promise: str) -> None:
    design = DESIGNS["abstract-quorum"]
    answer = notice(design, Instance(design, bounds).constants, [promise])
    assert answer.noticed_mistakes
    assert not answer.unnoticed_by_promise


TABLE = of_partition.tables()["kip-966"]
TRIED: Bounds = {**SMALL, "min_insync": TABLE.settings["min_insync"]}
FEW = ("isr-not-counted leaders-complete", "shrinks-itself leader-in-isr")
"""Mistakes, each with its first promise, that seconds are enough to find."""


def name_of(row: Row) -> str:
    return f"{row.mistake} {row.by[0]}"


def promises_broken(row: Row) -> tuple[str, ...]:
    return tuple(p.name for p in PROMISES if p.name in row.by)


def rows_of_partition() -> Iterator[Row]:
    """Those of two replicas in which at most a broker crashes, at the settings of the table."""
    asked = {"replicas": 2, **TABLE.settings, **dict.fromkeys(FAULTS, 0), "shutdowns": 0, "consumers": 0}
    for row in TABLE.rows:
        fixed = {name: value for name, value in row.at.items() if name in asked and name != "crashes"}
        if promises_broken(row) and all(value == asked[name] for name, value in fixed.items()):
            yield row


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name_of(row), marks=() if name_of(row) in FEW else pytest.mark.slow)
        for row in rows_of_partition()
    ],
)
def test_a_mistake_of_the_partition_breaks_its_promises_where_it_counts_as_noticed(row: Row) -> None:
    """At the shortest metadata log for which the mistake counts, and the other bounds of its row."""
    names = promises_broken(row)
    sizes = {n: v for n, v in row.at.items() if n in (*of_partition.SIZES, "crashes")}
    candidates: list[Bounds] = [{**TRIED, **sizes, "metadata_log": n} for n in range(1, 9)]
    bounds = next(candidate for candidate in candidates if counts_as_noticed(row, candidate))
    assert broken(explored(planted_below(row.mistake), bounds, names)) == set(names)


def planted_below(name: str) -> Design:
    """Controllers on a quorum with the mistake, or with the actions that it changes where one controller decides.

    What is promised keeps the definitions as they were, as in `isr_protocol.planted.mistakes`.
    """
    mistake = mistakes_by_name()[name]
    whole, planted = (planted_in(mistake, design) for design in (KRAFT_CONTROLLERS, KIP_966))
    if whole is not None:
        return whole
    assert planted is not None
    before, own = ({a.name: a for a in design.actions} for design in (KIP_966, KRAFT_CONTROLLERS))
    changed = [a for a in planted.actions if a.name in own and a != before[a.name]]
    decided = {a.name for a in DECISIONS}
    parts = {a.name: decision_of_quorum(a) if a.name in decided else a for a in changed}
    assert parts
    design = KRAFT_CONTROLLERS.replacing(name, "A mistake below", because="it is to be seen", **parts)
    return attrs.evolve(design, properties=KRAFT_CONTROLLERS.properties)


def counts_as_noticed(row: Row, bounds: Bounds) -> bool:
    constants = Instance(KRAFT_CONTROLLERS, bounds).constants
    return row.mistake in notice(KRAFT_CONTROLLERS, constants, promises_broken(row)).noticed_mistakes


@pytest.mark.parametrize("name", FEW)
def test_without_the_mistake_the_promise_is_kept(name: str) -> None:
    row = next(row for row in TABLE.rows if name_of(row) == name)
    bounds = {**TRIED, **{n: row.at[n] for n in ("log", "records", "epochs")}}
    assert explored(KRAFT_CONTROLLERS, bounds, (row.by[0],)).finding(row.by[0]).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("rule", "replacement", "promise"),
    [("covers", any_log_covers, "leaders-have-committed"), ("is_free", votes_again, "one-leader-a-term")],
)
def test_a_mistake_of_the_quorum_breaks_its_promise_where_controllers_are_activated(
    rule: str, replacement: DefinitionFunction, promise: str
) -> None:
    planted = ACTIVATION.replacing("planted", "A rule taken out", because="it is to be seen", **{rule: replacement})
    bounds = next(m.bounds for m in table_for(ACTIVATION).mistakes if m.promise == promise)
    for design, verdict in ((planted, True), (ACTIVATION, False)):
        finding = explored(design, bounds, (promise,)).finding(promise)
        assert (finding.verdict is Verdict.VIOLATED) is verdict
