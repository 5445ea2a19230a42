"""Every kind of fault, one at a time with quiet between, in an order that a seed chooses.

What a kind needs to count as having bitten is in `KINDS`. Each is within what today's design promises to survive with
`min.insync.replicas=2`: the next begins when every replica is in sync again, and of power failures there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

from isr_cluster.identity import CONTROLLER_BROKER
from isr_experiment.network import CLIENTS
from isr_experiment.power import Tail
from isr_experiment.stage import Stage

Kind: TypeAlias = Callable[[Stage, Random], None]
Harm: TypeAlias = Callable[[Stage, int], None]
"""What is done to one broker."""

HOLD = 4.0
"""Seconds that a fault lasts: longer than a session and than a follower may lag."""


def to_leader(kind: str, harm: Harm, *evidence: str) -> Kind:
    """Harm to the leader: another leads."""

    def strikes(stage: Stage, chance: Random) -> None:
        stage.begins(kind, *evidence, "leader changes")
        harm(stage, stage.leader)
        stage.sleep(HOLD)

    return strikes


def to_follower(kind: str, harm: Harm, *evidence: str) -> Kind:
    """Harm to a follower: it leaves the ISR, and the others go on."""

    def strikes(stage: Stage, chance: Random) -> None:
        stage.begins(kind, *evidence, "isr changes", survivable=True)
        harm(stage, chance.choice(stage.followers))
        stage.sleep(HOLD)

    return strikes


def partition_one(stage: Stage, chance: Random) -> None:
    """One replica is cut off from all brokers; clients still reach it."""
    stage.begins("partition one", "dropped", "isr changes")
    one = chance.choice(stage.replicas)
    stage.cuts([one], [b for b in stage.brokers if b != one])
    stage.sleep(HOLD)


def partition_leader(stage: Stage, chance: Random) -> None:
    """The leader is cut off from all brokers; clients still reach it."""
    stage.begins("partition leader", "dropped", "leader changes")
    one = stage.leader
    stage.cuts([one], [b for b in stage.brokers if b != one])
    stage.sleep(HOLD)


def partition_follower(stage: Stage, chance: Random) -> None:
    """The leader and a follower do not reach each other."""
    stage.begins("partition follower", "dropped", "isr changes")
    stage.cuts([stage.leader], [chance.choice(stage.followers)])
    stage.sleep(HOLD + 1)


def partition_halves(stage: Stage, chance: Random) -> None:
    """Two halves: the controller and one replica, and the others."""
    stage.begins("partition halves", "dropped", "isr changes")
    one = chance.choice(stage.replicas)
    stage.cuts([CONTROLLER_BROKER, one], [r for r in stage.replicas if r != one])
    stage.sleep(HOLD)


def partition_ring(stage: Stage, chance: Random) -> None:
    """In a ring each broker reaches only its neighbours."""
    ring = [CONTROLLER_BROKER, *chance.sample(stage.replicas, len(stage.replicas))]
    stage.begins("partition ring", "dropped")
    for place, one in enumerate(ring):
        near = {ring[place - 1], ring[(place + 1) % len(ring)], one}
        stage.cuts([one], [b for b in ring if b not in near])
    stage.sleep(HOLD)


def partition_one_way(stage: Stage, chance: Random) -> None:
    """The leader hears its followers, and they do not hear it; or the other way."""
    stage.begins("partition one-way", "dropped", "isr changes")
    sources, targets = [stage.leader], list(stage.followers)
    if chance.random() < 0.5:
        sources, targets = targets, sources
    stage.cuts(sources, targets, both=False)
    stage.sleep(HOLD + 1)


def partition_clients(stage: Stage, chance: Random) -> None:
    """Clients and the leader do not reach each other."""
    stage.begins("partition clients", "dropped")
    stage.cuts([CLIENTS], [stage.leader])
    stage.sleep(HOLD / 2)


def slow_link(stage: Stage, chance: Random) -> None:
    """What a leader sends to its followers is late."""
    stage.begins("slow link", "delayed", survivable=True)
    stage.slows([stage.leader], stage.followers, 0.3)
    stage.sleep(HOLD)


def lost_tail(stage: Stage, broker: int) -> None:
    """The power fails, and what was not flushed is gone."""
    stage.cuts_power(broker, Tail.LOST)


def torn_tail(stage: Stage, broker: int) -> None:
    """The power fails in the middle of a write."""
    stage.cuts_power(broker, Tail.TORN)


def lose_controller(stage: Stage, chance: Random) -> None:
    """SIGKILL to the controller: nobody is elected, and the ISR stays as it is."""
    stage.begins("controller loss", "killed", survivable=True)
    stage.kills(CONTROLLER_BROKER)
    stage.sleep(HOLD / 2)


def bounce_storm(stage: Stage, chance: Random) -> None:
    """Replicas are killed and started again, one after the other, faster than the ISR is whole again."""
    stage.begins("bounce storm", "killed", "isr changes")
    for _ in range(3):
        one = chance.choice([r for r in stage.replicas if r not in stage.down])
        stage.kills(one)
        stage.sleep(0.3)
        stage.starts(one)
        stage.sleep(0.7)
    stage.sleep(1)


def full_disk(stage: Stage, chance: Random) -> None:
    """The leader's disk is full: it halts, as Kafka does with its log directory."""
    stage.begins("full disk", "halted", "leader changes")
    stage.fills_disk(stage.leader)
    stage.waits(lambda: bool(stage.processes.early_exits()), "the broker halts", 30)
    stage.ended_by_itself()
    stage.sleep(HOLD)


KINDS: Mapping[str, Kind] = {
    "pause-leader": to_leader("pause leader", Stage.pauses, "paused"),
    "pause-follower": to_follower("pause follower", Stage.pauses, "paused"),
    "kill-leader": to_leader("kill leader", Stage.kills, "killed"),
    "kill-follower": to_follower("kill follower", Stage.kills, "killed"),
    "partition-one": partition_one,
    "partition-leader": partition_leader,
    "partition-follower": partition_follower,
    "partition-halves": partition_halves,
    "partition-ring": partition_ring,
    "partition-one-way": partition_one_way,
    "partition-clients": partition_clients,
    "slow-link": slow_link,
    "lost-tail": to_leader("power, lost tail", lost_tail, "killed", "bytes lost"),
    "torn-tail": to_follower("power, torn tail", torn_tail, "killed", "bytes lost"),
    "controller-loss": lose_controller,
    "bounce-storm": bounce_storm,
    "full-disk": full_disk,
}

NEEDS: Mapping[str, frozenset[str]] = {
    **{kind: frozenset({"pause"}) for kind in ("pause-leader", "pause-follower")},
    **{kind: frozenset({"kill"}) for kind in ("kill-leader", "kill-follower", "bounce-storm")},
    **{kind: frozenset({"partition"}) for kind in KINDS if kind.startswith("partition")},
    **{kind: frozenset({"power"}) for kind in ("lost-tail", "torn-tail")},
    "slow-link": frozenset({"slow"}),
    "controller-loss": frozenset({"kill", "controller"}),
    "full-disk": frozenset({"full-disk"}),
}
"""What has to be possible with a system under test for each kind (`isr_cluster.system_description.FAULTS`)."""

KINDS_WITHOUT_TRACE = frozenset({"full-disk"})
"""A full disk is one for the broker's trace, too, which then ends before the broker does."""


def choose_kinds(seed: int, count: int, kinds: tuple[str, ...]) -> list[str]:
    """So many kinds for one run. Runs with successive seeds go through all kinds before any comes again."""
    order: list[str] = []
    turn = 0
    while len(order) < (seed + 1) * count:
        order += Random(turn).sample(kinds, len(kinds))
        turn += 1
    return order[seed * count : (seed + 1) * count]


def storm(stage: Stage, seed: int, count: int, kinds: tuple[str, ...], calm: float = 1.5) -> None:
    """So many faults, each healed before the next."""
    chance = Random(seed)
    stage.phase("calm")
    stage.sleep(calm)
    left = (k for k in kinds if stage.network.slows or k != "slow-link")
    for kind in choose_kinds(seed, count, tuple(k for k in left if not NEEDS[k] & stage.cannot)):
        stage.phase(kind)
        KINDS[kind](stage, chance)
        stage.heals()
        stage.phase("calm")
        stage.sleep(calm)
