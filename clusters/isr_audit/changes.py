"""Other settings that a topic could have, those that cost least first: settings, more replicas, an upgrade."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import attrs

from isr_audit.cluster import Release, release_text
from isr_audit.kinds import Kind
from isr_audit.questions import MOST_REPLICAS
from isr_audit.releases import ELR_BY_DEFAULT, KRAFT, TODAY, ZOOKEEPER

Alternative: TypeAlias = tuple[Kind, tuple[str, ...], tuple[str, ...]]
"""What topics would be, the settings that change, and what each costs."""


def changes(kind: Kind) -> Iterator[Alternative]:
    """Every change that is thought of. A single replica is told more replicas: no setting keeps its records when its
    disk is gone, and flushing is a price on every write."""
    if kind.settings.replicas == 1:
        yield from _of_one_replica(kind)
        return
    alone = [*_minimum(kind), *_clean(kind)]
    feature = [*_eligible(kind)] if _has_feature(kind) else []
    upgrades = [*_upgrades(kind), *(() if feature else _eligible(kind))]
    yield from alone
    yield from _both(alone, _clean)
    yield from _with_settings(feature)
    yield from _flushing(kind)
    yield from _both(alone, _flushing)
    for upgrade in upgrades:
        yield from _with_settings([upgrade])
    yield from _with_minimum(_replicas(kind))
    yield from _every_replica(kind)


def spread(kind: Kind) -> Iterator[Alternative]:
    """The replicas of a partition over the racks, as evenly as can be."""
    least = -(-kind.settings.replicas // kind.racks)
    if least < kind.in_rack:
        cost = "a reassignment copies data once, and more followers fetch from another rack"
        yield attrs.evolve(kind, in_rack=least), (f"at most {least} of the replicas in one rack",), (cost,)


def _of_one_replica(kind: Kind) -> Iterator[Alternative]:
    yield from _with_minimum(_replicas(kind))
    for upgrade in (*_upgrades(kind), *_eligible(kind)):
        for other, settings, costs in _with_minimum(_replicas(kind)):
            newer = attrs.evolve(other, design=upgrade[0].design, doubt="", also=())
            yield newer, (*upgrade[1], *settings), (*upgrade[2], *costs)


def _with_settings(first: Iterable[Alternative]) -> Iterator[Alternative]:
    """A change alone, then with a minimum, then with unclean election off as well."""
    whole = list(first)
    yield from whole
    yield from _with_minimum(whole)


def _with_minimum(first: Iterable[Alternative]) -> Iterator[Alternative]:
    """A change with a larger minimum, then with unclean election off as well."""
    larger = [*_both(first, _minimum)]
    yield from larger
    yield from _both(larger, _clean)


def _both(first: Iterable[Alternative], then: Callable[[Kind], Iterator[Alternative]]) -> Iterator[Alternative]:
    for kind, settings, costs in first:
        for other, more, and_more in then(kind):
            yield other, (*settings, *more), (*costs, *and_more)


def _minimum(kind: Kind) -> Iterator[Alternative]:
    """A larger one that lets writes go on without one replica, or two of two."""
    most = max(2, kind.settings.replicas - 1)
    yield from _minima(kind, range(kind.settings.min_insync + 1, min(most, kind.settings.replicas) + 1))


def _every_replica(kind: Kind) -> Iterator[Alternative]:
    """The minimum of all replicas, which one broker that is down stops: the last that anybody should be told."""
    least = max(3, kind.settings.min_insync + 1)
    alone = [*_minima(kind, range(max(least, kind.settings.replicas), kind.settings.replicas + 1))]
    yield from alone
    yield from _both(alone, _clean)


def _minima(kind: Kind, minima: Iterable[int]) -> Iterator[Alternative]:
    for minimum in minima:
        other = attrs.evolve(kind, settings=attrs.evolve(kind.settings, min_insync=minimum))
        yield other, (f"min.insync.replicas={minimum}",), (f"writes with acks=all stop when {other.stops}",)


def _clean(kind: Kind) -> Iterator[Alternative]:
    if kind.settings.unclean:
        other = attrs.evolve(kind, settings=attrs.evolve(kind.settings, unclean=False))
        cost = "a partition stays without a leader until an in-sync replica is back"
        yield other, ("unclean.leader.election.enable=false",), (cost,)


def _flushing(kind: Kind) -> Iterator[Alternative]:
    if not kind.flushed:
        cost = "every write waits for the disks of all in-sync replicas"
        yield attrs.evolve(kind, flushed=True), ("flush.messages=1",), (cost,)


def _has_feature(kind: Kind) -> bool:
    return kind.release is not None and kind.release[:2] >= ELR_BY_DEFAULT


def _eligible(kind: Kind) -> Iterator[Alternative]:
    if kind.design != TODAY:
        other = attrs.evolve(kind, design=TODAY, doubt="", also=())
        cost = "one command, and no way to have min.insync.replicas of single brokers afterwards"
        if _has_feature(kind):
            yield other, (ELR,), (cost,)
        else:
            yield (
                other,
                (f"Kafka {release_text(ELR_BY_DEFAULT)}", ELR),
                ("an upgrade to 4.1 or later with KRaft", cost),
            )


ELR: Final = "eligible.leader.replicas.version=1"


def _upgrades(kind: Kind) -> Iterator[Alternative]:
    """Each later release that runs another design, the nearest first; those with ZooKeeper stay so."""
    if kind.release is None:
        return
    is_zookeeper = kind.design in dict(ZOOKEEPER).values()
    for since, design in later(kind.release, *((ZOOKEEPER, KRAFT) if is_zookeeper else (KRAFT,))):
        how = "an upgrade" if design in dict(ZOOKEEPER).values() or not is_zookeeper else "an upgrade, with KRaft"
        yield (
            attrs.evolve(kind, design=design, doubt="", also=()),
            (f"Kafka {release_text(since)}",),
            (f"{how} to {release_text(since)} or later",),
        )


def later(release: Release, *tables: Iterable[tuple[Release, str]]) -> list[tuple[Release, str]]:
    """The designs that begin after this release, and when, oldest first in each table."""
    return [(since, design) for table in tables for since, design in sorted(table) if since > release[:2]]


def _replicas(kind: Kind) -> Iterator[Alternative]:
    """More replicas, of a single one three before two, as many as there are brokers and as are explored."""
    most = min(MOST_REPLICAS, kind.brokers or MOST_REPLICAS)
    numbers = range(kind.settings.replicas + 1, most + 1)
    for replicas in reversed(numbers) if kind.settings.replicas == 1 else numbers:
        other = attrs.evolve(kind, settings=attrs.evolve(kind.settings, replicas=replicas))
        copies = replicas - kind.settings.replicas
        cost = "another copy of all data" if copies == 1 else f"{copies} more copies of all data"
        yield other, (f"replication factor {replicas}",), (cost,)
