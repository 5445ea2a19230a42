"""The broker's cores do what the model says, nothing more and nothing less: every edge within a bound.

Without these, model and broker would drift apart: what is checked of the model would say nothing of the broker.

`make slow ARGS="-k test_replay"` replays larger bounds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import cast

import attrs
import pytest

import isr_broker.core.controller
import isr_broker.core.follower
import isr_broker.core.leader
import isr_broker.core.watermark
from insync_cli.main import main
from isr_broker.core.messages import (
    AlterPartitionResponse,
    BrokerId,
    EpochEnd,
    Error,
    FetchRequest,
    PartitionMetadata,
)
from isr_broker.core.replica_state import Follower, Replica, Step, leading
from isr_broker.designs import DESIGNS, Design
from isr_broker.designs import KIP_966 as DESIGN
from isr_check.native import explore
from isr_lang import Instance
from isr_lang.declare import Value
from isr_model import KIP_966
from isr_replay import Kind, NoSuchCores, ReplayResult, replay

pytestmark = pytest.mark.explores

TWO = {"replicas": 2, "crashes": 0}
CRASHING = {"replicas": 2, "crashes": 1, "isr_changes": 2}
MINIMUM_OF_ONE = {**CRASHING, "min_insync": 1}
TWICE = {"replicas": 2, "crashes": 1, "epochs": 2, "isr_changes": 3}
THREE = {"replicas": 3, "crashes": 0, "isr_changes": 1}
LARGE = {"replicas": 3, "crashes": 1, "isr_changes": 1}


def assert_every_edge(bounds: Mapping[str, Value]) -> ReplayResult:
    """The cores took every edge that an exploration of the model alone counts, and nothing else."""
    done = replay(bounds)
    assert done.mismatches == ()
    assert done.conforms
    assert done.complete
    known = explore(Instance(KIP_966, bounds), ("type-ok",), workers=1)
    assert known.complete
    assert (done.states, done.edges) == (known.distinct, known.generated)
    assert {name: of for name, (_, of) in done.edges_by_action.items()} == known.steps_by_action
    assert done.replayed + sum(done.known_differences.values()) == done.edges
    assert done.pairs[0] == done.pairs[1]
    return done


@pytest.mark.parametrize(
    "bounds",
    [TWO, CRASHING, pytest.param(TWICE, marks=pytest.mark.slow)],
    ids=["calm", "crashing", "two elections"],
)
def test_two_brokers_take_every_edge(bounds: Mapping[str, Value]) -> None:
    done = assert_every_edge(bounds)
    assert done.replayed == done.edges


@pytest.mark.parametrize(
    "more",
    [
        {"lossy_crashes": 1},
        {"sessions_lost": 1},
        {"min_insync": 1},
        {"acks": "1"},
        {"shutdowns": 1},
        {"consumers": 1, "follower_reads": True},
        pytest.param({"crashes": 1, "shutdowns": 1, "isr_changes": 2}, marks=pytest.mark.slow),
        pytest.param({"log": 2, "records": 2}, marks=pytest.mark.slow),
        pytest.param({"crashes": 1, "unclean": True, "epochs": 2, "isr_changes": 2}, marks=pytest.mark.slow),
    ],
    ids=[
        "power",
        "sessions",
        "minimum of one",
        "acks=1",
        "shutdown",
        "reader",
        "shutdown and crash",
        "two records",
        "unclean",
    ],
)
def test_two_brokers_take_every_edge_also_with(more: Mapping[str, Value]) -> None:
    assert_every_edge({**TWO, "isr_changes": 1, **more})


@pytest.mark.slow
def test_three_brokers_take_every_edge() -> None:
    done = assert_every_edge(THREE)
    assert done.replayed == done.edges > 500_000


@pytest.mark.slow
def test_three_brokers_take_every_edge_with_a_crash_an_election_and_a_changed_isr() -> None:
    done = assert_every_edge(LARGE)
    assert done.edges > 1_600_000
    assert done.edges_by_action["controller_fences_leader"][0] > 3_000
    assert sum(done.known_differences.values()) == 312


@pytest.mark.parametrize(
    "design", ["kraft-3.5", *(pytest.param(d, marks=pytest.mark.slow) for d in ("kip-903", "kip-841"))]
)
def test_earlier_designs_are_the_same_in_model_and_broker(design: str) -> None:
    from isr_protocol.by_name import DESIGNS as MODELS

    done = replay(CRASHING, design=MODELS[design])
    assert done.conforms
    assert done.complete


# Planted bugs: what the cores then do wrong is found, and called what it is.


def proposes_members(replica: Replica) -> list[BrokerId]:
    """What the cores did before this was compared."""
    state = leading(replica)
    joins = state.joining - state.ineligible if isr_broker.core.leader.free_to_ask(replica) else frozenset[BrokerId]()
    return sorted(b for b in joins if isr_broker.core.leader.is_in_sync(replica, b))


def proposes_nobody(replica: Replica) -> list[BrokerId]:
    return []


def counts_diverging_fetches(replica: Replica, fetch: FetchRequest, parts: EpochEnd) -> Step:
    """KAFKA-13141."""
    step = original_diverging(replica, fetch, parts)
    state = leading(step.core)
    seen = Follower(end=min(fetch.offset, replica.log.end), broker_epoch=fetch.broker_epoch)
    state = attrs.evolve(state, followers=state.followers.set(fetch.replica, seen))
    return attrs.evolve(step, core=attrs.evolve(step.core, role=state))


original_diverging = isr_broker.core.leader.leader_answers_diverging


def rolls_back_on_any_error(replica: Replica, answer: AlterPartitionResponse, now: int) -> Step:
    """Rule (5)."""
    if answer.error is not Error.NONE:
        answer = attrs.evolve(answer, error=Error.INELIGIBLE_REPLICA)
    return original_hears(replica, answer, now)


original_hears = isr_broker.core.leader.leader_hears


def strikes_nobody(old: PartitionMetadata, replica: BrokerId, clean: bool, design: Design) -> PartitionMetadata:
    return old


def acknowledges_the_append(replica: Replica, isr: frozenset[int], members: frozenset[int], now: int) -> int:
    return replica.log.end


def commits_while_it_looks_for_lag(replica: Replica, now: int) -> Step:
    """What the cores did before this was compared."""
    step = original_shrink(replica, now)
    if step.action is not None:
        return step
    core, members = step.core, isr_broker.core.watermark.maximal_isr(replica)
    up_to = isr_broker.core.watermark.advance_watermark(core, leading(core).isr, members, now)
    core, effects = isr_broker.core.watermark.commits(core, members, up_to)
    return Step(core, tuple(effects))


original_shrink = isr_broker.core.leader.leader_proposes_shrink


def truncates_nothing(replica: Replica, told: EpochEnd) -> int:
    return replica.log.end


PLANTED: list[tuple[object, str, object, Mapping[str, Value], Kind, str]] = [
    (isr_broker.core.leader, "candidates", proposes_members, TWO, Kind.UNEXPECTED, "leader_proposes_expansion"),
    (isr_broker.core.leader, "candidates", proposes_nobody, TWO, Kind.MISSING, "leader_proposes_expansion"),
    (isr_broker.core.leader, "leader_answers_diverging", counts_diverging_fetches, TWO, Kind.INCONSISTENT,
     "leader_answers_diverging"),
    (isr_broker.core.leader, "leader_hears", rolls_back_on_any_error, TWO, Kind.UNEXPECTED, "leader_rolls_back"),
    (isr_broker.core.leader, "advance_watermark", acknowledges_the_append, TWO, Kind.INCONSISTENT, "leader_appends"),
    (isr_broker.core.leader, "leader_proposes_shrink", commits_while_it_looks_for_lag, MINIMUM_OF_ONE, Kind.UNEXPECTED,
     "took no action"),
    (isr_broker.core.controller, "partition_after_restart", strikes_nobody, CRASHING, Kind.INCONSISTENT,
     "broker_restarts"),
    (isr_broker.core.follower, "truncation_point", truncates_nothing, TWO, Kind.INCONSISTENT, "follower_truncates"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "name", "bug", "bounds", "kind", "action"), PLANTED, ids=[f"{p[1]}-{p[4].name}" for p in PLANTED]
)
def test_a_planted_bug_is_found_and_called_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    name: str,
    bug: Callable[..., object],
    bounds: Mapping[str, Value],
    kind: Kind,
    action: str,
) -> None:
    monkeypatch.setattr(where, name, bug)
    done = replay(bounds, max_states=40_000)
    assert not done.conforms
    assert [m for m in done.mismatches if m.kind is kind and action in m.action], done.mismatches


FIELDS = [
    ("joins_past_epoch_start", {**TWO, "lossy_crashes": 1, "isr_changes": 2}),
    ("watermark_needs_minimum", TWO),
    ("compares_broker_epochs", CRASHING),
    ("counts_maximal_isr", MINIMUM_OF_ONE),
]


@pytest.mark.parametrize(("field", "bounds"), FIELDS, ids=[f[0] for f in FIELDS])
def test_a_broker_without_one_of_its_rules_is_another(
    monkeypatch: pytest.MonkeyPatch, field: str, bounds: Mapping[str, Value]
) -> None:
    values: dict[str, object] = {a.name: getattr(DESIGN, a.name) for a in attrs.fields(Design)}
    make = cast("Callable[..., Design]", Design)
    monkeypatch.setitem(DESIGNS, "kip-966", make(**{**values, field: False}))
    assert not replay(bounds).conforms


def test_a_mismatch_has_a_shortest_path_and_says_which_variables_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_broker.core.leader, "advance_watermark", acknowledges_the_append)
    first = replay(TWO).mismatches[0]
    assert (first.kind, first.action, first.path) == (Kind.INCONSISTENT, "leader_appends", ())
    assert {d.variable: (d.cores, d.model) for d in first.differences} == {
        "high_watermark": ((1, 0), (0, 0)),
        "acked": (1, 0),
        "committed": ((0,), ()),
    }


def test_leaders_that_look_themselves_propose_less_and_nothing_else() -> None:
    done = replay(CRASHING, own_look=True)
    assert {m.kind for m in done.mismatches} == {Kind.MISSING}
    assert {m.action for m in done.mismatches} == {"leader_proposes_expansion"}


def test_designs_of_another_kind_are_refused() -> None:
    from isr_protocol.by_name import DESIGNS as MODELS

    with pytest.raises(NoSuchCores, match=r"not with kafka-0\.8"):
        replay({}, design=MODELS["kafka-0.8"])


# The command line


def test_the_command_line_counts_edges_and_actions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "kip-966", "--replicas", "2", "--crashes", "0", "--isr-changes", "1", "--plain"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\n  leader_appends +(\d+) +\1\n", said)
    assert re.search(r"insync replay kip-966: ([\d,]+) of \1 edges, .* no mismatch\n", said)


def test_the_command_line_shows_what_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(isr_broker.core.leader, "candidates", proposes_members)
    assert main(["replay", "kip-966", "--replicas", "2", "--crashes", "0", "--json", "-"]) == 12
    found = json.loads(capsys.readouterr().out)
    assert found["mismatches"]["unexpected action"] > 0
    (example,) = found["examples"]
    assert example["action"] == "leader_proposes_expansion"
    assert ["leader_adopts_isr", [0]] in example["path"]
    assert example["differences"]["pending_isr"] == {"cores": [3, 0], "model": [0, 0]}


def test_a_replay_that_is_cut_short_answers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "kip-966", "--replicas", "2", "--max-states", "100", "--quiet"]) == 20
    assert "not explored to the end" in capsys.readouterr().out


def test_the_command_line_refuses_what_the_broker_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "kafka-0.8"]) == 65
    assert "the cores are compared with kip-966" in capsys.readouterr().err
    assert main(["replay", "kafka-4.4"]) == 65
    assert "not with kafka-4.4: they are a partition's protocol as it is meant, and" in capsys.readouterr().err
