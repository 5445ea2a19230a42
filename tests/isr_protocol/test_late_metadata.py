"""Today's designs keep their promises where metadata come late; rules that guard against it are found only there."""

from __future__ import annotations

import attrs
import pytest
from tests.support.reached import reached

from isr_check.engine import Exploration, Verdict
from isr_check.native import explore
from isr_lang import Design, Instance, Maybe, Step, Value, action
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.late_metadata import late, late_to_lead, replaced_leader_begins_to_lead
from isr_protocol.designs.zookeeper import cuts
from isr_protocol.replication import advanced_watermark, commits, replicated
from isr_protocol.state import (
    Fetch,
    Replica,
    State,
    end_of_epoch,
    epoch_not_above,
    last_epoch,
    leads,
    log_end,
    maximal_isr,
    smaller,
)

ZOMBIE: dict[str, Value] = {"replicas": 3, "crashes": 0, "epochs": 2, "isr_changes": 2}


@action
def leader_counts_fetch_at_once(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A follower's fetch is sent and counted in one step, whatever epoch the follower is in."""
    ends = old.follower_end[leader].put(follower, Maybe.of(log_end(old, follower)))
    up_to = replicated(old, leader, log_end(old, leader), ends, maximal_isr(old, leader))
    return (
        leads(old, leader),
        (old.alive - old.truncating).has(follower),
        old.leader[follower] == leader,
        log_end(old, follower) <= log_end(old, leader),
        new.follower_end[leader] == ends,
        *commits(old, new, leader, advanced_watermark(old, leader, up_to, old.isr[leader])),
    )


UNFENCED = (
    DESIGNS["kip-320"]
    .adding(leader_counts_fetch_at_once)
    .without("leader_proposes_shrink", "leader_proposes_expansion")
)
"""KIP-320 without its fence around fetches, where no fetch outlives the epoch in which it was sent."""


@action
def follower_looks_up_at_once(old: State, new: State, follower: Replica, leader: Replica) -> Step:
    """A follower cuts where its log parts from its leader's, looked up in one step, whatever epoch the leader is in."""
    epoch = epoch_not_above(old, leader, last_epoch(old, follower))
    point = smaller(end_of_epoch(old, leader, epoch), end_of_epoch(old, follower, epoch))
    return (
        (old.alive & old.truncating).has(follower),
        follower != leader,
        old.leader[follower] == leader,
        leads(old, leader),
        new.truncating == old.truncating.excluding(follower),
        *cuts(old, new, follower, point, Fetch.REQUESTED),
    )


KIP_320 = DESIGNS["kip-320"].without("leader_proposes_shrink", "leader_proposes_expansion")
UNFENCED_LOOK_UP = KIP_320.adding(follower_looks_up_at_once)
"""KIP-320 without its fence around the look-up of the truncation point, which here takes no message."""


def strong(design: Design, constants: dict[str, Value]) -> Exploration:
    return explore(Instance(design, constants), ("strong-isr",))


@pytest.mark.long
@pytest.mark.parametrize("name", ["kip-966", "kip-497"])
def test_a_design_keeps_its_promises_where_metadata_come_late(name: str) -> None:
    design = DESIGNS[name].without("leader_proposes_shrink", "leader_proposes_expansion")
    found = explore(Instance(late(design), ZOMBIE))
    broken = {f.name for f in found.findings if f.verdict is Verdict.VIOLATED}
    assert found.complete
    assert found.generated > explore(Instance(design, ZOMBIE), ("type-ok",)).generated
    assert not broken


@pytest.mark.explores
@pytest.mark.parametrize("unfenced", [UNFENCED, UNFENCED_LOOK_UP], ids=["fetch", "look-up"])
def test_what_is_not_fenced_is_found_only_where_metadata_come_late(unfenced: Design) -> None:
    newest = strong(unfenced, ZOMBIE)
    assert newest.complete
    assert newest.finding("strong-isr").verdict is Verdict.HOLDS
    assert strong(late(unfenced), ZOMBIE).finding("strong-isr").verdict is Verdict.VIOLATED


def test_with_its_fences_kip_320_keeps_its_logs_where_metadata_come_late() -> None:
    found = strong(late(KIP_320), ZOMBIE)
    assert found.complete
    assert found.finding("strong-isr").verdict is Verdict.HOLDS


# A broker that learns late that it led.

TWO: dict[str, Value] = {"replicas": 2, "min_insync": 1, "crashes": 0}
LATE = replaced_leader_begins_to_lead.name
WITH_SESSIONS = TWO | {"epochs": 2, "isr_changes": 3, "sessions_lost": 1}
WITH_RECORDS = TWO | {"epochs": 2, "isr_changes": 2, "log": 2, "records": 2}


BESIDE = ("elected_", "fetch")
"""What is noted of elections; and fetches, for the model keeps one that an older leader may yet take, where here the
leader took it before."""


@pytest.mark.explores
@pytest.mark.parametrize(
    ("name", "constants"),
    [
        pytest.param("kip-966", WITH_RECORDS, id="kip-966-records"),
        pytest.param("kip-320", WITH_SESSIONS, id="kip-320-sessions"),
        pytest.param("kip-320", WITH_RECORDS, id="kip-320-records"),
        pytest.param("kip-966", WITH_SESSIONS, id="kip-966-sessions", marks=pytest.mark.slow),
        pytest.param("kip-497", WITH_SESSIONS, id="kip-497-sessions", marks=pytest.mark.slow),
        pytest.param("kip-497", WITH_RECORDS, id="kip-497-records", marks=pytest.mark.slow),
    ],
)
def test_who_learns_late_that_it_led_gets_where_it_could_get_before(name: str, constants: dict[str, Value]) -> None:
    design = DESIGNS[name]
    widened = late_to_lead(design)
    assert reached(widened, constants, BESIDE) == reached(design, constants, BESIDE)
    assert explore(Instance(widened, constants), ("type-ok",)).steps_by_action[LATE] > 0


@pytest.mark.long
def test_who_begins_to_lead_late_without_an_isr_gets_where_nobody_could() -> None:
    design = DESIGNS["kip-966"].without("leader_proposes_shrink", "leader_proposes_expansion")
    widened = late_to_lead(design)
    late_one = widened.action_named(LATE)
    wrong = attrs.evolve(late_one, updates=tuple(u for u in late_one.updates if u.variable != "isr"))
    mistaken = attrs.evolve(widened, actions=tuple(wrong if a is late_one else a for a in widened.actions))
    assert reached(mistaken, WITH_RECORDS, BESIDE) > reached(design, WITH_RECORDS, BESIDE)
