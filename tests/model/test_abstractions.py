"""What the model leaves out, put in: no verdict changes. docs/model.md names these tests beside what they show.

Without it an abstraction could hide a loss, and the page that calls it sound would be the only one to say so.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from isr_check.engine import Exploration, Verdict
from isr_check.native import explore
from isr_elections import available, departs, electable
from isr_lang import Design, Instance, Set, Step, Value, action, exists, forall
from isr_lang.blank import blank
from isr_membership import all_lag, asks, elects, free_to_ask, isr_without
from isr_model import KIP_966
from isr_state import UNCLEAN, Replica, State, log_end
from isr_zookeeper import waits_for_leader

pytestmark = pytest.mark.explores

TWO: Mapping[str, Value] = {
    "replicas": 2,
    "min_insync": 1,
    "crashes": 0,
    "sessions_lost": 1,
    "epochs": 2,
    "isr_changes": 3,
}


def variant(what: str, **parts: object) -> Design:
    return KIP_966.replacing("variant", what, because="Kafka can do so.", **parts)  # type: ignore[arg-type]


def explored(design: Design, constants: Mapping[str, Value]) -> Exploration:
    found = explore(Instance(design, constants))
    assert found.complete
    return found


def broken(found: Exploration) -> set[str]:
    return {f.name for f in found.findings if f.verdict is Verdict.VIOLATED}


def met(found: Exploration) -> set[str]:
    return {f.name for f in found.findings if f.kind.startswith("sometimes") and f.path is not None}


def test_answers_that_come_late_change_no_verdict() -> None:
    """AbstractFetcherThread.processFetchRequest looks at the broker and the offset, not at the epoch of its request."""
    late = variant("answers of an older epoch are taken if the offset fits", waits=waits_for_leader)
    constants = {**TWO, "records": 2, "epochs": 3}
    plain, found = explored(KIP_966, constants), explored(late, constants)
    assert found.distinct > plain.distinct
    assert broken(found) == broken(plain) == set()


@action
def leader_proposes_to_drop_all(old: State, new: State, leader: Replica, lagging: Set[Replica]) -> Step:
    """A leader asks to drop the members that lag, and leaves out none of them. Partition.maybeShrinkIsr."""
    isr = old.isr[leader] - lagging
    return (
        free_to_ask(old, leader),
        ~lagging.is_empty(),
        lagging <= old.isr[leader].excluding(leader),
        all_lag(old, leader, lagging),
        forall(old.follower_end[leader][f] == log_end(old, leader) for f in isr.excluding(leader)),
        new.pending_isr[leader] == isr,
        *asks(old, new, leader, isr, blank(new.broker_epoch[leader])),
    )


def test_dropping_all_that_lag_breaks_nothing_more() -> None:
    constants = {"replicas": 3, "crashes": 0, "epochs": 0}
    all_of_them = variant("all that lag are dropped", leader_proposes_shrink=leader_proposes_to_drop_all)
    plain, found = explored(KIP_966, constants), explored(all_of_them, constants)
    assert found.generated < plain.generated
    assert broken(found) == broken(plain) == set()
    assert met(found) == met(plain)


@action
def controller_replaces_leader_uncleanly(old: State, new: State, r: Replica, successor: Replica) -> Step:
    """The controller loses the leader, finds nobody eligible, and elects any available replica in the same record."""
    isr, elr = isr_without(old, r), old.controller_elr.excluding(r)
    return (
        UNCLEAN,
        *departs(old, new, r),
        old.controller_leader == r,
        successor != r,
        available(old, successor),
        ~exists(electable(old, q, isr, elr) for q in Replica.all().excluding(r)),
        *elects(old, new, successor, Set.of(successor), blank(elr)),
    )


def test_unclean_election_in_one_step_breaks_the_same_promises() -> None:
    constants = {**TWO, "unclean": True}
    plain = explored(KIP_966, constants)
    found = explored(KIP_966.adding(controller_replaces_leader_uncleanly), constants)
    assert found.generated > plain.generated
    assert broken(found) == broken(plain)
    assert "acked-survives" in broken(plain)
    assert "acked-survives-clean-steps" not in broken(plain)
