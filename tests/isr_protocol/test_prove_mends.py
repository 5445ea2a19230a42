"""What mends the bugs found in Kafka is proved for any number of replicas, where it differs from today's design.

Without these, a change of the invariant could lose these proofs, of which docs/proof.md tells, and only somebody who
asks for them again, for minutes, would see it.
"""

from collections.abc import Sequence

import pytest

from isr_check.smt.induction import Induction, Obligation
from isr_check.smt.obligations import Proved, decide
from isr_check.smt.strategy import Strategy
from isr_lang import Design, Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.proof.invariant import FOLLOWS
from isr_protocol.proof.questions import FIXED_CONSTANTS, OPEN, invariant

pytestmark = [pytest.mark.solver, pytest.mark.slow]

SECONDS = 20.0
MINIMUM = 2
"""min.insync.replicas; each value would be a proof of its own."""
REFUSED = ("leaders-count-candidates", "zombies-commit-nothing-new", "leaders-agree-with-committed")
"""What would fail if a leader rolled back what the controller may yet accept."""


class AnyNumber:
    """A design with any number of replicas and everything else unbounded that the invariant speaks of."""

    def __init__(self, design: Design) -> None:
        known = [c.name for c in design.constants()]
        given = {k: v for k, v in FIXED_CONSTANTS.items() if k in known} | {"min_insync": MINIMUM}
        open_bounds = dict.fromkeys(["replicas", *OPEN])
        constants = Instance(design, given).constants | open_bounds
        conjuncts = invariant(design)
        self.induction = Induction(design, constants, [design.restated_property(c.promise) for c in conjuncts])
        self.first = Strategy(self.induction, {c.name: c.by for c in conjuncts} | FOLLOWS).decide

    def obligations(self, conjuncts: Sequence[str], action: str) -> list[Obligation]:
        return list(self.induction.obligations((), conjuncts, [action]))

    def proves(self, obligation: Obligation) -> bool:
        return isinstance(decide(self.induction, obligation, SECONDS, first=self.first), Proved)


@pytest.mark.parametrize(
    ("design", "action", "conjuncts"),
    [
        (
            "kafka-resets-positions",
            "controller_begins_new_epoch",
            ("zombies-commit-nothing-new", "candidates-are-complete", "leaders-count-candidates"),
        ),
        ("refusal-in-new-version", "controller_refuses_later_copy", REFUSED),
        ("request-expires", "controller_refuses_later_copy", REFUSED),
    ],
)
def test_what_a_mend_does_otherwise_is_proved_for_any_number_of_replicas(
    design: str, action: str, conjuncts: tuple[str, ...]
) -> None:
    asked = AnyNumber(DESIGNS[design])
    some = asked.obligations(conjuncts, action)
    assert [o.name for o in some if o.queries and not asked.proves(o)] == []
    assert {o.conjunct for o in some if o.queries} == set(conjuncts)
