"""What mends the bugs found in Kafka is proved for any number of replicas, where it differs from today's design.

Without these, a change of the invariant could lose these proofs, of which docs/proof.md tells, and only somebody who
asks for them again, for minutes, would see it.
"""

from collections.abc import Sequence

import pytest

from isr_check.smt.cores import Cores
from isr_check.smt.induction import Induction, Obligation
from isr_check.smt.obligations import Proved, decide
from isr_check.smt.solver import Answer
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms.sizes import Sizes
from isr_lang import Design, Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.proof.invariant import FOLLOWS
from isr_protocol.proof.questions import CORES, FIXED_CONSTANTS, OPEN, invariant

pytestmark = [pytest.mark.solver, pytest.mark.slow]

SECONDS = 20.0
MINIMUM = 2
"""min.insync.replicas; each value would be a proof of its own."""
REFUSED = ("leaders-count-candidates", "zombies-commit-nothing-new", "leaders-agree-with-committed")
"""What would fail if a leader rolled back what the controller may yet accept."""


class AnyNumber:
    """A design with any number of replicas and everything else unbounded that the invariant speaks of.

    `more`: further bounds that are open.
    """

    def __init__(self, design: Design, more: Sequence[str] = ()) -> None:
        known = [c.name for c in design.constants()]
        given = {k: v for k, v in FIXED_CONSTANTS.items() if k in known} | {"min_insync": MINIMUM}
        open_bounds = dict.fromkeys(["replicas", *OPEN, *more])
        constants = Instance(design, given).constants | open_bounds
        conjuncts = invariant(design)
        self.induction = Induction(design, constants, [design.restated_property(c.promise) for c in conjuncts])
        self.lemmas = {c.name: c.by for c in conjuncts} | FOLLOWS
        self.first = Strategy(self.induction, self.lemmas).decide

    def obligations(self, conjuncts: Sequence[str], action: str) -> list[Obligation]:
        return list(self.induction.obligations((), conjuncts, [action]))

    def proves(self, obligation: Obligation) -> bool:
        return isinstance(decide(self.induction, obligation, SECONDS, first=self.first), Proved)

    def follow_from_cores(self, obligations: Sequence[Obligation]) -> list[bool]:
        """Of each obligation, whether it follows from what is stored of an earlier proof."""
        learnt = Strategy(self.induction, self.lemmas, cores=Cores.read(CORES))
        return [all(learnt.decide(o, q, SECONDS).status == "unsat" for q in o.queries) for o in obligations]


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


OPERATED = ("reassignments", "minimum_changes", "late_news", "copies")
"""What people and the network do, as often as they like."""
COMPLETE = (
    "controller_fences_follower",
    "controller_fences_leader",
    "controller_fences_last_leader",
    "controller_accepts_alter_partition",
)
"""After these steps an in-sync set may have as many members as there are replicas."""


def gives_up(*_: object) -> Answer:
    return Answer("unknown", 0.0, reason="only cores are tried")


def nothing_said(*_: object) -> bool:
    """Of the sizes of a part and of the whole."""
    return True


def nobody_is_eligible_beside_all() -> list[bool]:
    """Whether it is proved that nobody is in the ELR where all replicas are in sync, by action."""
    asked = AnyNumber(DESIGNS["kafka-4.4-mended"], OPERATED)
    found = asked.follow_from_cores([o for a in COMPLETE for o in asked.obligations(["no-elr-beside-enough"], a)])
    assert len(found) == len(COMPLETE)
    return found


def test_a_proof_of_reassignments_takes_the_size_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strategy, "_goal", gives_up)
    assert all(nobody_is_eligible_beside_all())
    monkeypatch.setattr(Sizes, "_part_and_whole", nothing_said)
    assert not any(nobody_is_eligible_beside_all())
