"""A broker that starts without the log directory of its replica, on brokers of Apache Kafka: found/removed-directory.

Without it the page would rest on one afternoon.
"""

from __future__ import annotations

import pytest

from isr_found import KafkaBug, Outcome, Reproduction, Trial

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

STORY = KafkaBug(
    "removed-directory",
    "all records of a partition",
    "a directory is taken out of log.dirs",
    "RemovedDirectory",
    ("mark-of-all-directories",),
    {"brokers": 60},
)


@pytest.mark.parametrize(
    ("trial", "outcome"),
    [
        (Trial(on="brokers"), Outcome.LOST),
        (Trial(on="brokers", control=True), Outcome.HELD),
    ],
    ids=["lost", "control"],
)
def test_a_partition_is_lost_with_a_directory_that_is_taken_out(trial: Trial, outcome: Outcome) -> None:
    run = Reproduction(STORY, trial)
    told = list(run.lines())
    assert run.outcome is outcome, told
