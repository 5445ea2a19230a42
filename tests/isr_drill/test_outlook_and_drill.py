"""`insync audit --brokers` and the drill of the same deed say the same of every described partition.

Without this a broker could be said to stop nothing of which a drill says that a partition has no leader meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import attrs
import pytest

from insync_cli.clusters.drill import exit_code
from insync_cli.exits import Exit
from isr_audit.cluster import Cluster, Release
from isr_audit.descriptions import read_description
from isr_audit.releases import running
from isr_drill import outlook
from isr_drill.drill import STOPPED, Explorations, PartitionDrill, Records, drill
from isr_drill.outlook import FAILURE, RESTART, Deed, Outlook, outlooks
from isr_drill.quorum import quorum_of
from isr_drill.runbook import Surroundings, read_runbook

LEADS, IN_SYNC, ELIGIBLE, OUT, ELIGIBLE_OFFLINE, OUT_OFFLINE = range(6)
OTHERS: Final = """\
Topic: u\tTopicId: y\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: min.insync.replicas=1
\tTopic: u\tPartition: 0\tLeader: 8\tReplicas: 8,9\tIsr: 8,9\tElr: \tLastKnownElr:
\tTopic: v\tPartition: 0\tLeader: 8\tReplicas: 8,9\tIsr: 8\tElr: \tLastKnownElr:
"""
"""Partitions of other brokers; of topic v no settings were told."""
UNTOLD: Final = "\tTopic: w\tPartition: 0\tLeader: 8\tReplicas: ?\tIsr: 8\tElr: \tLastKnownElr:\n"
"""A partition of which any broker may have a replica."""


def description(roles: tuple[int, ...], minimum: int) -> str:
    """A partition t-0, whose replicas 1, 2, ... have these roles."""

    def some(*which: int) -> str:
        return ",".join(str(n) for n, role in enumerate(roles, 1) if role in which)

    leader = some(LEADS) or "none"
    return (
        f"Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: {len(roles)}\t"
        f"Configs: min.insync.replicas={minimum}\n"
        f"\tTopic: t\tPartition: 0\tLeader: {leader}\tReplicas: {','.join(map(str, range(1, len(roles) + 1)))}\t"
        f"Isr: {some(LEADS, IN_SYNC)}\tElr: {some(ELIGIBLE, ELIGIBLE_OFFLINE)}\tLastKnownElr: \t"
        f"Offline: {some(ELIGIBLE_OFFLINE, OUT_OFFLINE)}\n"
    )


def every_state() -> Iterator[tuple[tuple[int, ...], int]]:
    """Replicas 1 to 3 in every role, with either minimum; replicas of one role are alike."""
    for factor in (1, 2, 3):
        for roles in product(range(6), repeat=factor):
            if roles == tuple(sorted(roles)) and roles.count(LEADS) < 2 and (LEADS in roles or IN_SYNC not in roles):
                yield from ((roles, minimum) for minimum in (1, 2))


def read(text: str, living: tuple[int, ...] | None = None) -> Cluster:
    cluster = read_description(text, "topics.txt")
    assert cluster is not None
    return attrs.evolve(cluster, living=living)


def code_of(found: Deed) -> Exit:
    """The exit code of a drill that says this."""
    if found.loses:
        return Exit.SAFETY
    if found.unknown or found.is_partial:
        return Exit.INCONCLUSIVE
    return Exit.AT_RISK if found.stops else Exit.HOLDS


def differences(cluster: Cluster, release: Release, explorations: Explorations) -> list[str]:
    """Where the outlook of a broker is not what the drill of the whole cluster says."""
    runs, found = running(cluster, release, True), list[str]()
    around = Surroundings({*range(1, 10)}, {}, [t.name for t in cluster.topics], quorum=quorum_of(cluster))

    def names(some: tuple[PartitionDrill, ...]) -> set[str]:
        return {p.partition.name for p in some}

    for o in outlooks(cluster, runs, 60.0):
        for form, deed in ((RESTART, o.restart), (FAILURE, o.failure)):
            whole = drill(cluster, runs, read_runbook(form.format(o.broker), around), explorations)
            same = (
                code_of(deed) is exit_code(whole, cluster)
                and {*deed.loses} == names(whole.with_records(Records.MAY_BE_LOST))
                and {*deed.stops} == names(whole.with_service(*STOPPED))
                and {*deed.unknown} == names(whole.with_records(Records.UNKNOWN))
                and deed.is_harmless == (exit_code(whole, cluster) is Exit.HOLDS)
            )
            found += [] if same else [f"{form.format(o.broker)} of {cluster.partitions[0].state}: {deed}"]
    return found


@pytest.mark.long
@pytest.mark.parametrize(("release", "is_live"), [((4, 4), False), ((4, 1), True)])
def test_an_outlook_is_what_the_drill_says(release: Release, *, is_live: bool) -> None:
    explorations, asked = Explorations(60.0), 0
    for roles, minimum in every_state():
        living = tuple(n for n, role in enumerate(roles, 1) if role < ELIGIBLE_OFFLINE) if is_live else None
        cluster = read(description(roles, minimum) + OTHERS, living)
        assert differences(cluster, release, explorations) == []
        asked += 1
    assert asked > 100


def test_an_outlook_that_leaves_out_what_stood_still_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: that a partition refuses writes already is a reason to leave out that nobody leads it."""

    monkeypatch.setattr(outlook, "STOPPED", ())
    cluster = read(description((LEADS, ELIGIBLE), 2))
    assert len(differences(cluster, (4, 4), Explorations(60.0))) == 2


def only(cluster: Cluster, broker: int) -> Outlook:
    (found,) = (o for o in outlooks(cluster, running(cluster, (4, 4), True), 60.0) if o.broker == broker)
    return found


def test_who_leads_a_partition_that_refuses_writes_is_not_restarted() -> None:
    """It was "May be restarted now: 1", for the partition refuses acks=all already. Reads stop, and acks=1."""
    found = only(read(description((LEADS, ELIGIBLE), 2)), 1)
    assert found.restart == found.failure == Deed((), ("t-0",), ())
    assert not found.restart.is_no_worse


def test_what_may_be_lost_already_may_be_lost_by_a_disk() -> None:
    """It was "nothing": the only disk that may have what is on no disk for sure."""
    found = only(read(description((OUT,), 1), living=(1,)), 1)
    assert found.failure.loses == ("t-0",)


def test_what_nobody_described_may_be_hit() -> None:
    found = only(read(description((LEADS, IN_SYNC, IN_SYNC), 2) + UNTOLD), 1)
    assert found.restart.unknown == ("w-0",)
    partial = read(description((LEADS, IN_SYNC, IN_SYNC), 2).replace("PartitionCount: 1", "PartitionCount: 2"))
    found = only(partial, 1)
    assert (found.restart.stops, found.restart.is_partial, found.restart.is_harmless) == ((), True, False)
    assert "1 of 2 partitions were told" in found.restart.because
