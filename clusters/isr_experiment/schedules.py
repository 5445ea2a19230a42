"""Schedules that lead to a certain loss, where a setting or design allows it; each step waits for the one before.

They name replicas by their parts: L leads, B and C follow. The controller is a broker of its own and has no replica.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isr_cluster.identity import CONTROLLER_BROKER
from isr_experiment.network import CLIENTS
from isr_experiment.power import Tail
from isr_experiment.stage import RunStuck, Stage

_PATIENCE = 30.0
"""Seconds for what clients should do in one."""


def jepsen_2013(stage: Stage, seconds: float = 8.0) -> None:
    """The schedule of Jepsen's analysis of Kafka 0.8: L is cut off from B and C, and the ISR shrinks to L, which goes
    on acknowledging; then L is cut off from everybody, and who is left leads. Both parts take as long."""
    stage.phase("healthy")
    stage.sleep(seconds / 2)
    leader = stage.leader
    stage.phase("leader alone")
    stage.begins("leader cut off from followers", "dropped", "isr changes")
    stage.cuts([leader], stage.followers)
    stage.sleep(seconds)
    stage.phase("leader gone")
    stage.begins("leader cut off from everybody", "dropped")
    stage.cuts([leader], [CONTROLLER_BROKER, CLIENTS])
    stage.sleep(seconds)
    stage.phase("healed")
    stage.heals()
    stage.sleep(2)


def jepsen_2013_by_steps(stage: Stage, alone: float, enough: int = 60) -> None:
    """The same, each part until so many writes are acknowledged in it after what it is about has come: the ISR is L
    alone, another leads. L has so many seconds alone, for where nothing is acknowledged then."""
    stage.phase("healthy")
    stage.acknowledges(enough, _PATIENCE)
    leader = stage.leader
    stage.phase("leader alone")
    stage.begins("leader cut off from followers", "dropped", "isr changes")
    stage.cuts([leader], stage.followers)
    stage.waits(lambda: stage.isr() == {leader} or stage.leads() != leader, "the leader is alone in the ISR", 60)
    if stage.leads() != leader:
        raise RunStuck("another leads before the leader was alone in the ISR")
    stage.acknowledges(enough, alone)
    stage.phase("leader gone")
    stage.begins("leader cut off from everybody", "dropped")
    stage.cuts([leader], [CONTROLLER_BROKER, CLIENTS])
    stage.waits(lambda: stage.leads() not in (None, leader), "another leads", 60)
    stage.acknowledges(enough, _PATIENCE)
    stage.phase("healed")
    stage.heals()


def overtaken_failover(stage: Stage) -> None:
    """B and C do not hear L, and before it may say that they lag, L is gone; one of them leads, cleanly elected."""
    stage.phase("calm")
    stage.sleep(2)
    leader = stage.leader
    stage.phase("followers behind")
    stage.begins("failover to a follower that is behind", "dropped", "leader changes")
    stage.cuts([leader], stage.followers)
    stage.sleep(1.0)
    stage.phase("failover")
    stage.cuts([leader], [CONTROLLER_BROKER, CLIENTS])
    stage.waits(lambda: stage.leads() not in (None, leader), "another leads", 30)
    stage.sleep(2)
    stage.phase("healed")
    stage.heals()
    stage.sleep(1)


def one_fault(stage: Stage, kind: str, hold: float) -> None:
    """The leader is killed or stopped, or a follower cut off from it, for so long: what that costs in time."""
    stage.phase("calm")
    stage.sleep(3)
    stage.phase(kind)
    if kind == "kill leader":
        stage.begins(kind, "killed", "leader changes")
        stage.kills(stage.leader)
    elif kind == "stop leader":
        stage.begins(kind, "stopped", "leader changes")
        stage.stops(stage.leader)
    else:
        # Not marked as survivable: progress is due only when the follower has lagged for long enough.
        stage.begins(kind, "dropped", "isr changes")
        stage.cuts([stage.leader], [stage.followers[0]])
    stage.sleep(hold)
    stage.phase("healed")
    stage.heals()
    stage.sleep(0.5)


def last_member(stage: Stage) -> None:
    """C leaves the ISR, then B; L is the last, and its power fails. C may be elected uncleanly; B comes back first."""
    _last_member(stage, followers_first=True)


def last_member_first(stage: Stage) -> None:
    """The same, and L comes back first, without its tail, before B reaches the controller again."""
    _last_member(stage, followers_first=False)


def _last_member(stage: Stage, followers_first: bool) -> None:
    stage.phase("calm")
    stage.sleep(2)
    leader, (b, c) = stage.leader, stage.followers
    stage.phase("two in sync")
    stage.begins("one follower cut off", "dropped", "isr changes")
    stage.cuts([c], [leader, b])
    stage.waits(lambda: c not in stage.isr(), "a follower has left the ISR", 40)
    stage.sleep(2.5)
    stage.phase("one in sync")
    stage.begins("the other follower cut off", "dropped", "isr changes")
    stage.cuts([b], [leader, CONTROLLER_BROKER])
    stage.waits(lambda: b not in stage.isr(), "the other follower has left the ISR", 40)
    stage.sleep(2.5)
    stage.phase("last member gone")
    stage.begins("power of the last member", "killed")
    stage.cuts_power(leader, Tail.LOST)
    stage.sleep(5)
    if followers_first:
        stage.phase("followers back")
        stage.mends()
    else:
        stage.phase("last member back")
        stage.starts(leader)
    stage.sleep(4)
    stage.phase("healed")
    stage.heals()
    stage.sleep(1.5)


def sweep(stage: Stage) -> None:
    """Both of them: what acks=1, unclean election, a minimum of one and no flush each lose by themselves."""
    overtaken_failover(stage)
    last_member(stage)


def power_of_one(stage: Stage) -> None:
    """The power of L fails; when all is well again, that of a follower in the middle of a write."""
    stage.phase("calm")
    stage.sleep(3)
    stage.phase("power of the leader")
    stage.begins("power of the leader", "killed", "bytes lost", "leader changes")
    stage.cuts_power(stage.leader, Tail.LOST)
    stage.sleep(3)
    stage.heals()
    stage.phase("power of a follower")
    stage.begins("power of a follower, torn tail", "killed", "bytes lost", "isr changes", survivable=True)
    stage.cuts_power(stage.followers[0], Tail.TORN)
    stage.sleep(3)
    stage.heals()
    stage.phase("healed")
    stage.sleep(1)


def power_of_all(stage: Stage) -> None:
    """The power of every replica fails at the same time."""
    stage.phase("calm")
    stage.sleep(4)
    stage.phase("dark")
    stage.begins("power of all replicas", "killed")
    for broker in stage.replicas:
        stage.pauses(broker)
    for broker in stage.replicas:
        stage.cuts_power(broker, Tail.LOST)
    stage.sleep(2.5)
    stage.phase("healed")
    stage.heals()
    stage.sleep(2)


def rolling_restart(stage: Stage) -> None:
    """Each broker is stopped in order and started again, the next when all replicas are in sync."""
    stage.phase("calm")
    stage.sleep(2)
    for broker in (*stage.replicas, CONTROLLER_BROKER):
        stage.phase(f"restart of {broker}")
        stage.begins(f"orderly restart of broker {broker}", "stopped", survivable=True)
        stage.stops(broker)
        stage.sleep(0.5)
        stage.heals()
        stage.sleep(0.5)
    stage.phase("healed")
    stage.sleep(1)


def rolling_power(stage: Stage) -> None:
    """Each replica loses power and comes back, L last, and nobody waits until the ISR is whole again."""
    stage.phase("calm")
    stage.sleep(4)
    stage.phase("rolling")
    stage.begins("rolling power failure", "killed", "bytes lost")
    for broker in (*stage.followers, stage.leader):
        stage.cuts_power(broker, Tail.LOST)
        stage.starts(broker)
        stage.sleep(0.3)
    stage.phase("healed")
    stage.heals()
    stage.sleep(2)


def controller_and_leader(stage: Stage) -> None:
    """The controller is gone; L goes on, B and C fall behind; the power of L fails, and the controller comes back."""
    stage.phase("calm")
    stage.sleep(3)
    leader = stage.leader
    stage.phase("no controller")
    stage.begins("controller loss", "killed", survivable=True)
    stage.kills(CONTROLLER_BROKER)
    stage.sleep(2)
    stage.phase("no controller, followers behind")
    stage.begins("leader behind a cut, then its power", "killed", "dropped", "leader changes")
    stage.cuts([leader], stage.followers)
    stage.sleep(1)
    stage.cuts_power(leader, Tail.LOST)
    stage.sleep(1)
    stage.phase("controller back")
    stage.starts(CONTROLLER_BROKER)
    stage.waits(lambda: stage.leads() not in (None, leader), "another leads", 30)
    stage.sleep(2)
    stage.phase("healed")
    stage.heals()
    stage.sleep(1)


def restart_of_one(stage: Stage, how: str) -> None:
    """The one replica stands still, or is stopped or killed and started again; the others have nothing of it."""
    stage.phase("calm")
    stage.sleep(3)
    stage.phase(how)
    stage.begins(f"{how} the only replica", how, survivable=True)
    {"stopped": stage.stops, "killed": stage.kills, "paused": stage.pauses}[how](stage.replicas[0])
    stage.sleep(2)
    stage.phase("healed")
    stage.heals()
    stage.sleep(1)


NEEDS: Mapping[Callable[..., None], frozenset[str]] = {
    jepsen_2013: frozenset({"partition"}),
    jepsen_2013_by_steps: frozenset({"partition"}),
    overtaken_failover: frozenset({"partition"}),
    one_fault: frozenset({"kill", "stop", "partition"}),
    last_member: frozenset({"partition", "power"}),
    last_member_first: frozenset({"partition", "power"}),
    sweep: frozenset({"partition", "power"}),
    power_of_one: frozenset({"power"}),
    power_of_all: frozenset({"pause", "power"}),
    rolling_restart: frozenset({"stop"}),
    rolling_power: frozenset({"power"}),
    controller_and_leader: frozenset({"partition", "kill", "power", "controller"}),
}
"""What has to be possible with a system under test for each schedule (`isr_cluster.system_description.FAULTS`)."""
