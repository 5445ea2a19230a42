"""A setting that switches an action on is said to be driven only where that action is taken.

Without these, a run with `--unclean on` in which nobody is ever elected so would say HOLDS.
"""

import pytest
from tests.support.suts import CoresInProcess, drive

from insync_cli.conformance.conform import adapter_properties, result_line
from insync_cli.conformance.kafka_rows import missing_actions
from insync_cli.registry import design_named
from isr_conform.switches import switched_actions
from isr_lang import Instance
from isr_model import KIP_966

pytestmark = pytest.mark.explores


def test_a_switch_and_a_budget_switch_their_actions_on() -> None:
    constants = {"replicas": 2, "crashes": 1, "shutdowns": 1, "consumers": 1, "unclean": True}
    switched = switched_actions(Instance(KIP_966, constants))
    assert switched["controller_elects_unclean"] == "unclean"
    assert switched["broker_crashes"] == "crashes"
    assert switched["broker_asks_to_shut_down"] == "shutdowns"
    assert switched["consumer_reads"] == "consumers"
    assert "leader_appends" not in switched


def test_what_is_off_switches_nothing_on() -> None:
    assert switched_actions(Instance(KIP_966, {"replicas": 2, "crashes": 0})) == {}


def test_an_action_that_is_switched_on_and_never_taken_is_told() -> None:
    """With one epoch there is no unclean election, whatever is allowed."""
    done = drive(CoresInProcess(), unclean=True)
    assert done.conforms
    assert done.untaken_actions == ("controller_elects_unclean (unclean)",)
    line = result_line(done)
    assert ": BOUNDED - " in line
    assert "never taken: controller_elects_unclean (unclean)" in line
    assert missing_actions(done) == ["controller_elects_unclean (unclean)"]


def test_where_nothing_is_switched_on_nothing_is_missing() -> None:
    done = drive(CoresInProcess())
    assert done.untaken_actions == ()
    assert ": HOLDS - " in result_line(done)
    assert missing_actions(done) == []


@pytest.mark.parametrize(
    ("design", "has_feature"),
    [("kip-966", True), ("kafka-4.4", True), ("kafka-4.0", False), ("kafka-4.4-no-elr", False)],
)
def test_kafka_has_eligible_leader_replicas_where_the_design_has_them(design: str, has_feature: bool) -> None:
    """Without it a release without the feature would be driven along a design with it, and differ everywhere."""
    assert ("insync.no-elr" not in adapter_properties(design_named(design))) == has_feature
