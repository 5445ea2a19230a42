"""Latency: acks=all over an in-sync set against a majority, with one slow follower; simulated, the same every time.

A write reaches the leader when it is sent, and a follower one delay later; it is acknowledged when those have it that
have to: all members of the in-sync set, or a majority of all replicas, the leader among them (acks=1: the leader, at
once). Delays are spread as an exponential distribution has them, evenly over its quantiles (multiples of an irrational
number, modulo one), so no chance is in it; records reach a follower in order. From one moment on
everything reaches one follower later, or never. The in-sync set waits for it until it is put out: at the leader's first
look at which it lacks a record that is older than `replica.lag.time.max.ms`. The leader looks every half of that time
(ReplicaManager's task isr-expiration; Partition.isFollowerOutOfSync). Who is out does not come back here.

What is measured on brokers beside it: `insync experiment latency`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import ceil, inf, log, sqrt

import attrs

Arrival = tuple[float, Sequence[float]]
"""When a write was sent, and when it reached each follower, the slow one first."""


IRRATIONAL = (2, 3, 5, 7, 11, 13)
"""Numbers with irrational roots, one for each follower."""


@attrs.frozen(kw_only=True)
class World:
    """Times are in milliseconds. `late_ms`: how much later everything reaches the slow follower from `from_ms` on,
    infinite if it has stopped; `lag_ms` is `replica.lag.time.max.ms`, `look_ms` when the leader looks first."""

    replicas: int = 3
    mean_ms: float = 2.0
    every_ms: float = 10.0
    until_ms: float = 60_000.0
    from_ms: float = 10_000.0
    late_ms: float = inf
    lag_ms: float = 10_000.0
    look_ms: float = 0.0


@attrs.frozen
class Latencies:
    """How long each write waited, in the order in which they were sent, and when the slow follower was put out."""

    in_sync: tuple[float, ...]
    majority: tuple[float, ...]
    put_out_at: float | None


def simulate(world: World) -> Latencies:
    """Every write under both rules, with the same delays."""
    arrivals = list(_arrivals(world))
    out = put_out(arrivals, world)
    in_sync, majority = list[float](), list[float]()
    for at, reached in arrivals:
        without = inf if out is None else max(at, out, *reached[1:])
        in_sync.append(min(max(at, *reached), without) - at)
        majority.append(sorted((at, *reached))[world.replicas // 2] - at)
    return Latencies(tuple(in_sync), tuple(majority), out)


def _arrivals(world: World) -> Sequence[Arrival]:
    last = [0.0] * (world.replicas - 1)
    arrivals: list[Arrival] = []
    for n in range(int(world.until_ms / world.every_ms)):
        at = n * world.every_ms
        for follower in range(len(last)):
            late = world.late_ms if follower == 0 and at >= world.from_ms else 0.0
            last[follower] = max(last[follower], at + delay(n, follower, world.mean_ms) + late)
        arrivals.append((at, tuple(last)))
    return arrivals


def delay(n: int, follower: int, mean_ms: float) -> float:
    """How long write n takes to a follower."""
    return -mean_ms * log(1 - (n + 1) * sqrt(IRRATIONAL[follower]) % 1)


def put_out(arrivals: Sequence[Arrival], world: World) -> float | None:
    """When the leader puts the slow follower out; None if it never has a reason to."""
    there = [reached[0] for _, reached in arrivals]
    look = world.lag_ms / 2
    for n in range(ceil((world.until_ms - world.look_ms) / look)):
        now = world.look_ms + n * look
        missing = bisect_right(there, now)
        if missing < len(arrivals) and now - arrivals[missing][0] > world.lag_ms:
            return now
    return None


PERCENTS = (50, 99)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]


def summary(latencies: Latencies) -> Mapping[str, tuple[float, float, float]]:
    """By rule: both percentiles and the longest wait, in milliseconds."""
    rules, (middle, high) = {"in-sync set": latencies.in_sync, "majority": latencies.majority}, PERCENTS
    return {name: (percentile(v, middle), percentile(v, high), max(v)) for name, v in rules.items()}
