"""Of each broker the audit says whether it may be restarted now, and what its next failure stops or loses.

Without this an operator would restart a broker that a partition cannot do without.
"""

from __future__ import annotations

import attrs

from isr_audit.cluster import Cluster
from isr_audit.descriptions import read_description
from isr_audit.releases import running
from isr_drill.outlook import Deed, Outlook, outlooks

HARMLESS = Deed((), (), ())
TEXT = """\
Topic: t\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tElr: \tLastKnownElr:
\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,3,4\tIsr: 2,3,4\tElr: \tLastKnownElr:
Topic: u\tTopicId: y\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: min.insync.replicas=1
\tTopic: u\tPartition: 0\tLeader: 3\tReplicas: 3,4\tIsr: 3,4\tElr: \tLastKnownElr:
"""


def described(living: tuple[int, ...] | None = None) -> Cluster:
    cluster = read_description(TEXT, "topics.txt")
    assert cluster is not None
    return attrs.evolve(cluster, living=living)


def looked_at(cluster: Cluster) -> dict[int, Outlook]:
    return {o.broker: o for o in outlooks(cluster, running(cluster, (4, 1), True), 20.0)}


def test_a_broker_that_a_partition_cannot_do_without_is_not_restarted() -> None:
    found = looked_at(described())
    assert {broker: o.restart for broker, o in found.items()} == {
        1: Deed((), ("t-0",), ()),
        2: Deed((), ("t-0",), ()),
        3: HARMLESS,
        4: HARMLESS,
    }


def test_a_failure_takes_the_disk() -> None:
    """With a minimum of one a record may be on this disk alone."""
    found = looked_at(described())
    assert found[3].failure == Deed(("u-0",), (), ())
    assert found[4].failure == Deed(("u-0",), (), ())
    assert found[1].failure == Deed((), ("t-0",), ())


def test_what_stands_still_already_is_said_and_that_a_restart_makes_it_no_worse() -> None:
    text = TEXT.replace("Leader: 1\tReplicas: 1,2,3\tIsr: 1,2\tElr: ", "Leader: none\tReplicas: 1,2,3\tIsr: \tElr: 1")
    cluster = read_description(text, "topics.txt")
    assert cluster is not None
    restart = looked_at(cluster)[2].restart
    assert restart == Deed((), ("t-0",), (), already=("t-0",))
    assert restart.is_no_worse


def test_who_does_not_live_has_no_outlook() -> None:
    assert sorted(looked_at(described(living=(1, 2, 4)))) == [1, 2, 4]
