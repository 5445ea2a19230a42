"""The liveness promises of the default design: they hold, and each is broken where one action may be put off for ever.

Without the second half, a liveness promise could hold because nothing ever triggers it, or because it needs no
fairness.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.lassos import unfair_in
from tests.support.sample import sample

from insync_cli.main import main
from isr_check.engine import Limits, Verdict
from isr_check.native import explore
from isr_lang import Design, Instance, Step, action
from isr_model import KIP_966
from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS
from isr_protocol.promises.liveness import LIVENESS
from isr_protocol.replication import sends
from isr_protocol.state import Fetch, Replica, State

pytestmark = pytest.mark.explores

NAMES = tuple(p.name for p in LIVENESS)
BOUNDS = {"replicas": 2, "min_insync": 1, "sessions_lost": 1, "crashes": 1, "epochs": 2, "isr_changes": 3}

# The promise -> an action that must be fair for it, what else is possible to see that, the steps of the shortest lasso.
NO_CRASH = {"crashes": 0}
A_CRASH_ALONE = {"crashes": 1, "sessions_lost": 0, "epochs": 1, "isr_changes": 2}
NEEDED = {
    "healthy-partition-commits": ("leader_learns_isr", A_CRASH_ALONE, 5),
    "lagging-follower-returns": ("leader_answers_fetch", NO_CRASH, 3),
    "leader-is-elected": ("controller_elects_returned", NO_CRASH, 5),
    "writes-are-answered": ("becomes_follower", NO_CRASH, 7),
}


def verdicts(design: Design, bounds: dict[str, int], *names: str) -> dict[str, Verdict]:
    found = explore(Instance(design, bounds), names, Limits(), lambda _: None)
    assert found.complete
    return {n: found.finding(n).verdict for n in names}


def test_every_promise_of_progress_holds_and_is_put_to_the_test() -> None:
    assert verdicts(KIP_966, BOUNDS, *NAMES) == dict.fromkeys(NAMES, Verdict.HOLDS)


def test_with_three_replicas_the_only_promise_not_put_to_the_test_is_that_of_an_election() -> None:
    found = verdicts(KIP_966, {}, *NAMES)
    assert found.pop("leader-is-elected") is Verdict.VACUOUS  # no bound of the default leaves it without a leader
    assert set(found.values()) == {Verdict.HOLDS}


@pytest.mark.parametrize("name", sample(NAMES, 2))
def test_each_is_broken_where_one_action_may_be_put_off_for_ever(name: str) -> None:
    action, settings, steps = NEEDED[name]
    design = KIP_966.with_fairness(unfair=(action,))
    bounds = BOUNDS | settings
    finding = explore(Instance(design, bounds), (name,), Limits(), lambda _: None).finding(name)
    assert finding.verdict is Verdict.VIOLATED
    assert finding.path is not None
    assert finding.path.loop is not None
    assert len(finding.path.steps) == steps
    whole = Instance(KIP_966, bounds)
    promised = next(p for p in whole.properties if p.name == name)
    put_off = unfair_in(whole, promised, finding.path)
    assert put_off, "the loop is fair to every action, so dropping one was not needed"
    assert all(line.startswith(f"{action}(") for line in put_off), put_off


@action
def follower_cuts_nothing(old: State, new: State, follower: Replica) -> Step:
    """A follower is told where its log parts from the leader's, cuts nothing, and asks again."""
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        *sends(old, new, follower, old.leader[follower], old.log[follower], Fetch.REQUESTED),
    )


LOOPS = KIP_966.replacing(
    "truncates-for-ever",
    "KIP-966 where a follower whose log diverges never gets past that",
    because="a bug planted on purpose.",
    follower_truncates=follower_cuts_nothing,
)
LOOP_BOUNDS = {"replicas": 2, "min_insync": 1, "crashes": 0, "sessions_lost": 1}


def with_slack(design: Design, bounds: dict[str, int], name: str) -> tuple[Verdict, Mapping[str, int] | None]:
    own = Instance(design, bounds)
    probes = IN_SYNC_REPLICAS.slack_probes(own, (name,))
    whole = explore(own.promising(*probes), (name, *(p.name for p in probes)), Limits(), lambda _: None)
    found, slack = IN_SYNC_REPLICAS.slack(own, whole, (name,))
    assert [f.name for f in found.findings] == [name]
    return found.finding(name).verdict, slack.get(name)


def test_a_loop_that_the_bounds_cut_off_is_told_by_the_slack_that_they_leave() -> None:
    name = "lagging-follower-returns"
    small, large = {"epochs": 1, "isr_changes": 2}, {"epochs": 2, "isr_changes": 5}
    assert with_slack(LOOPS, LOOP_BOUNDS | small, name) == (Verdict.HOLDS, {"epochs": 0, "isr_changes": 0})
    assert with_slack(LOOPS, LOOP_BOUNDS | large, name) == (Verdict.VIOLATED, None)
    verdict, slack = with_slack(KIP_966, LOOP_BOUNDS | large, name)
    assert verdict is Verdict.HOLDS
    assert slack is not None
    assert min(slack.values()) > 0


def test_check_warns_where_the_bounds_leave_no_slack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = f"check kip-966 --replicas 2 --property lagging-follower-returns --out {tmp_path} --epochs"
    main(f"{asked} 1 --isr-changes 3".split())
    assert "warning: no slack for lagging-follower-returns" in capsys.readouterr().out
    main(f"{asked} 2 --isr-changes 4".split())
    said = capsys.readouterr().out
    assert "warning" not in said
    assert "comes to pass with 1 change of the metadata and 1 change of the leader to go" in " ".join(said.split())


def test_the_lasso_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = "--replicas 2 --min-insync 1 --sessions-lost 1 --crashes 0 --epochs 2 --isr-changes 3"
    asked = f"check kip-966 {bounds} --property leader-is-elected --unfair controller_elects_returned --out {tmp_path}"
    assert main(asked.split()) != 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "leader-is-elected.itf.json")]) == 0
    text = capsys.readouterr().out
    assert "for ever" in text
    assert "controller_elects_returned" in text
