"""Controllers on a quorum keep what one reliable controller promises, and what takes that away is found.

Without it a rule of the quorum could be lost between the two models, which say nothing of each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from controller_model import KRAFT_CONTROLLERS
from controller_protocol.by_name import DESIGNS
from controller_protocol.controllers import CONTROLLERS
from controller_protocol.promises import PROMISES
from isr_check import native
from isr_check.engine import Exploration, Limits, Progress, Verdict
from isr_lang import Design, Instance, Value

pytestmark = pytest.mark.explores

Bounds = Mapping[str, Value]
SMALL: Bounds = {"crashes": 0, "lost_disks": 0, "metadata_log": 3, "isr_changes": 1}
"""Two replicas and three controllers: a change of the metadata, and a second controller that is elected."""
CRASH: Bounds = {**SMALL, "crashes": 1, "lost_disks": 1}
SESSION: Bounds = {"voters": 2, "crashes": 0, "sessions_lost": 1, "metadata_log": 4, "isr_changes": 2}
"""A living broker is fenced, and two controllers."""
TERMS: Bounds = {"voters": 3, "terms": 3, "metadata_log": 4}
"""Three elections, and of the quorum alone."""


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
    assert (exploration.distinct, exploration.states_in_orbits) == (18_565, 219_810)
    assert not broken(exploration)
    reached = {f.name for f in exploration.findings if f.kind.startswith("sometimes") and f.path is not None}
    assert reached >= {p.name for p in design.properties if p.kind.startswith("sometimes")} - {"another-replica-leads"}


@pytest.mark.slow
def test_they_keep_them_while_a_broker_crashes_and_returns() -> None:
    exploration = explored(KRAFT_CONTROLLERS, {"crashes": 1, "metadata_log": 4, "isr_changes": 2})
    assert exploration.complete
    assert exploration.states_in_orbits == 4_820_838
    assert not broken(exploration)


@attrs.frozen
class Mistake:
    """A design that breaks a promise within these bounds, in so many steps, and not in fewer; and one that does not.

    Of a promise of what comes to pass they are the steps to the loop and around it.
    """

    design: str
    promise: str
    steps: int
    bounds: Bounds
    control: str = "kraft-controllers"
    control_bounds: Bounds = attrs.field(factory=dict[str, Value])


MISTAKES = (
    Mistake("kraft-controllers-static", "acked-survives", 14, CRASH, "kraft-controllers-853", {"dynamic": True}),
    Mistake("kafka-14154", "no-leader-is-stuck", 10, SMALL),
    Mistake("kafka-18138", "stopped-brokers-have-sessions", 5, {**CRASH, "lost_disks": 0}, "kraft-sessions"),
    Mistake("kafka-19130", "fenced-brokers-may-register", 6, {**CRASH, "lost_disks": 0}, "kraft-sessions"),
    Mistake("kafka-13959", "living-brokers-are-unfenced", 6, SESSION, "kraft-busy-log"),
    Mistake("kafka-13104", "leaders-have-not-given-up", 5, TERMS, "kraft-renouncing"),
    Mistake("kafka-15345", "decisions-follow-a-commit", 3, TERMS, "kraft-activation"),
    Mistake("kafka-20839", "metadata-begin-with-the-bootstrap", 13, TERMS, "kraft-activation"),
    Mistake("kafka-17608", "deposed-find-a-snapshot", 8, TERMS, "kraft-activation"),
)
CASES = [pytest.param(m, id=m.design) for m in MISTAKES]


@pytest.mark.parametrize("mistake", CASES)
def test_a_mistake_breaks_its_promise(mistake: Mistake) -> None:
    finding = explored(DESIGNS[mistake.design], mistake.bounds, (mistake.promise,), mistake.steps).finding(
        mistake.promise
    )
    assert finding.verdict is Verdict.VIOLATED
    assert finding.path is not None
    assert len(finding.path.steps) == mistake.steps


@pytest.mark.parametrize("mistake", CASES)
def test_the_control_keeps_the_promise_for_as_many_steps(mistake: Mistake) -> None:
    bounds = {**mistake.bounds, **mistake.control_bounds}
    control = explored(DESIGNS[mistake.control], bounds, (mistake.promise,), mistake.steps)
    assert control.finding(mistake.promise).verdict is not Verdict.VIOLATED
    assert control.complete or control.depth >= mistake.steps


@pytest.mark.slow
def test_with_directory_ids_a_lost_disk_breaks_nothing() -> None:
    exploration = explored(DESIGNS["kraft-controllers-853"], CRASH)
    assert exploration.complete
    assert exploration.states_in_orbits == 3_223_524
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
    assert exploration.states_in_orbits == 35_109_765
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
