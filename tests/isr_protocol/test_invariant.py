"""The inductive invariant holds in every state that can be explored, and nothing is left out of its proof.

Without these, a change of the model would show only in the proof of 14 minutes; and a proof with an obligation
missing, or with an assumption that excludes an action, would go through.
"""

from collections.abc import Mapping

import attrs
import pytest
from tests.support.sample import sample

from isr_check.engine import Limits, Verdict
from isr_check.native import explore
from isr_check.smt.equal_goals import Sameness
from isr_check.smt.induction import Induction
from isr_check.smt.obligations import Proved, decide
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms.logic import int_symbol, less, term
from isr_lang import ANY_NUMBER, Design, Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.proof.invariant import FOLLOWS, INVARIANT
from isr_protocol.proof.questions import FIXED_CONSTANTS, OPEN, PROMISES

pytestmark = [pytest.mark.explores, pytest.mark.solver, pytest.mark.processes]

NAMES = tuple(c.name for c in INVARIANT)
HINTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {c.name: c.by for c in INVARIANT} | FOLLOWS


def with_invariant(design: Design) -> Design:
    return attrs.evolve(design, properties=tuple(design.restated_property(c.promise) for c in INVARIANT))


def induction(design: Design, replicas: int) -> Induction:
    constants = {**FIXED_CONSTANTS, **dict.fromkeys(OPEN), "replicas": replicas}
    return Induction(design, constants, [design.restated_property(c.promise) for c in INVARIANT])


@pytest.mark.parametrize("name", ["kip-966", pytest.param("kraft-3.5", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "bounds",
    [
        {"replicas": 2, "crashes": 2, "sessions_lost": 1, "isr_changes": 4, "epochs": 3, "min_insync": 1},
        {"replicas": 2, "log": 2, "records": 3, "crashes": 1, "isr_changes": 3, "epochs": 2},
        pytest.param({"replicas": 3, "crashes": 1}, marks=pytest.mark.slow),
        {"replicas": 2, "shutdowns": 2, "crashes": 0, "isr_changes": 4, "epochs": 2, "min_insync": 1},
    ],
)
def test_every_conjunct_holds_wherever_one_can_get(name: str, bounds: dict[str, int]) -> None:
    reader = {"consumers": 1, "follower_reads": True}
    found = explore(Instance(with_invariant(DESIGNS[name]), bounds | reader), NAMES, Limits(), lambda _: None)
    assert found.complete
    assert {f.name: f.verdict for f in found.findings} == dict.fromkeys(NAMES, Verdict.HOLDS)


NOBODY_LEFT: Mapping[str, int] = {
    "replicas": 2,
    "shutdowns": 1,
    "crashes": 2,
    "isr_changes": 3,
    "epochs": 1,
    "min_insync": 1,
}
"""Room for a leader to crash while the last other member shuts down, and for that one to crash, too."""


@pytest.mark.slow
def test_two_crashes_beside_a_shutdown_may_leave_nobody_to_be_elected() -> None:
    """docs/proof.md, Restarts in order: why the invariant is not proved with crashes beside shutdowns."""
    design = DESIGNS["kip-966"]
    promises = tuple(p for p in design.properties if p.kind in ("always", "step"))
    both = attrs.evolve(design, properties=(*with_invariant(design).properties, *promises))
    found = explore(Instance(both, NOBODY_LEFT))
    assert found.complete
    broken = {f.name: len(f.path.steps) for f in found.findings if f.path is not None}
    assert broken == {"elected-leader": 6, "somebody-may-be-elected": 6}
    once = explore(Instance(both, {**NOBODY_LEFT, "crashes": 1}))
    assert once.complete
    assert not [f.name for f in once.findings if f.path is not None]


def test_no_open_bound_makes_an_action_impossible() -> None:
    design = DESIGNS["kip-966"]
    possible = {a.name for a in Instance(design, {**FIXED_CONSTANTS, "crashes": 4, "sessions_lost": 4}).actions}
    asked = induction(design, 3)
    assert {a.name for a in design.actions if asked.steps(a)} == possible
    assert {"broker_crashes", "controller_fences_leader"} <= possible


def test_lemmas_are_named_as_they_are_and_used_after_a_step_only_if_they_come_earlier() -> None:
    for at, c in enumerate(INVARIANT):
        for action, names in c.by.items():
            assert action in {"*", ANY_NUMBER} or any(a.name == action for d in DESIGNS.values() for a in d.actions)
            for name in names:
                assert name.removesuffix("'") in NAMES, f"{c.name} names {name}"
                assert not name.endswith("'") or NAMES.index(name[:-1]) < at, f"{c.name} uses {name} too early"
    assert set(FOLLOWS) <= {*PROMISES, "type-ok"}


@pytest.mark.parametrize(
    "action",
    sample(["broker_crashes", "leader_answers_diverging", "controller_fences_leader", "follower_truncates"], 4),
)
def test_two_replicas_are_proved_for_every_log_epoch_and_crash(action: str) -> None:
    asked = induction(DESIGNS["kip-966"], 2)
    first = Strategy(asked, HINTS).decide
    wanted = [asked.design.property_named(name) for name in PROMISES]
    some = list(asked.obligations(wanted, (), [action])) + [
        o for o in asked.obligations(wanted) if o.kind != "preserved"
    ]
    open_ones = [o.name for o in some if not isinstance(decide(asked, o, 20, first=first), Proved)]
    assert open_ones == []
    assert len(some) > len(NAMES)


def test_a_conjunct_that_is_not_inductive_is_not_proved() -> None:
    weaker = [c for c in INVARIANT if c.name != "positions-within-log"]
    design = DESIGNS["kip-966"]
    constants = {**FIXED_CONSTANTS, **dict.fromkeys(OPEN), "replicas": 2}
    asked = Induction(design, constants, [design.restated_property(c.promise) for c in weaker])
    first = Strategy(asked, HINTS).decide
    some = asked.obligations((), ["watermarks-are-committed", "acknowledged-is-there"], ["leader_appends"])
    assert not all(first(o, q, 2, False).status == "unsat" for o in some for q in o.queries)


def test_goals_are_one_only_if_names_are_all_that_differs() -> None:
    a, b, c = (int_symbol(f"x[r{k}]") for k in (1, 2, 3))
    same = Sameness(["r2", "r3"], ())
    key = [same.key(term(less(p, q))) for p, q in ((a, b), (a, c), (b, a), (b, c), (c, b))]
    assert key[0] == key[1]
    assert key[3] == key[4]
    assert len(set(key)) == 3
