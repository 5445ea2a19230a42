"""States with more variables, for the designs that change what others have as a constant, and what holds of them."""

from __future__ import annotations

from isr_lang import Bool, Map, Number, Set, always, define, forall, var
from isr_protocol.promises.safety import leads_now
from isr_protocol.state import REPLICAS, Alter, Replica, State


class Minimum(Number, high=REPLICAS):
    """A value of min.insync.replicas; one above the number of replicas counts as that number (effectiveMinIsr)."""


class Adjusted(State):
    """The state with min.insync.replicas as a variable, at the controller and in each broker's logs."""

    minimum: Minimum = var("min.insync.replicas, as the controller has it")
    own_minimum: Map[Replica, Minimum] = var("min.insync.replicas, as each broker's log has it (LogConfig)")


class Answered(State):
    """The state where a leader may know a version of the partition before its log of metadata has brought it."""

    ahead: Set[Replica] = var("leaders that know their version from the answer to an AlterPartition, and only from it")


class Reassigned(State):
    """The state where not every broker has a replica of the partition all the time."""

    replicas: Set[Replica] = var("who has a replica of the partition, as the controller assigned it")
    own_replicas: Map[Replica, Set[Replica]] = var("whom each leader takes to have one; blank elsewhere")


class Moving(Reassigned):
    """The state where a reassignment may take its time."""

    adding: Set[Replica] = var("replicas that a reassignment adds (PartitionRegistration.addingReplicas)")
    removing: Set[Replica] = var("replicas that it removes once it is complete (removingReplicas)")


class Operating(Moving, Adjusted, Answered):
    """The state where people work at a cluster: assignment and configuration change, and an answer may be first."""

    heard_of: Map[Replica, Set[Replica]] = var("whom each leader has heard of in this epoch; blank elsewhere")


class Amended(State):
    """The state where a broker may register again although its process has gone on."""

    amended: Set[Replica] = var("brokers that have registered again, to name their log directories (KIP-858)")


class Directories(State):
    """The state where a log directory may fail while its broker goes on (KIP-858).

    A replica in a failed directory is not alive, and the controller, once it has heard, takes it for fenced: it asks
    a leader for both alike (ReplicationControlManager.LeaderAcceptor).
    """

    dark: Set[Replica] = var("replicas whose log directory has failed; the log is in it still")
    moving: Set[Replica] = var("replicas on their way to another directory, in which the controller takes them to be")
    misplaced: Set[Replica] = var("replicas that stopped on that way, and of which the controller was told nothing")
    told: Set[Replica] = var("brokers that told of a failed directory in which the controller knows no replica")


class Calmed(State):
    """The state with the moment from which on nothing more goes wrong."""

    calm: Bool = var("nothing goes wrong any more, and nothing is written")


class Recovering(State):
    """The state where the controller remembers whom to ask when nobody is eligible (KIP-966, unclean recovery)."""

    last_known_elr: Set[Replica] = var(
        "who was in the ISR or the ELR since the ISR fell below the minimum, and is in neither (LastKnownElr)"
    )


@define
def knows_newest_version(s: State, r: Replica) -> Bool:
    """The replica has the newest version of the partition, or an answer that brings it is on its way."""
    answered = (s.alter[r] == Alter.ACCEPTED) & (s.partition_epoch[r] + 1 == s.controller_partition_epoch)
    return answered | (s.partition_epoch[r] == s.controller_partition_epoch)


@always
def newest_version_has_newest_minimum(s: Adjusted) -> Bool:
    """A leader that knows the newest version of the partition, or will by an answer, knows the newest minimum."""
    return forall(
        (leads_now(s, r) & knows_newest_version(s, r)).implies(s.own_minimum[r] == s.minimum) for r in Replica.all()
    )


@always
def minimum_is_positive(s: Adjusted) -> Bool:
    """Nobody goes by a min.insync.replicas of 0."""
    return (s.minimum > 0) & forall(s.own_minimum[r] > 0 for r in Replica.all())


@define
def enough_by_minimum(s: Adjusted, isr: Set[Replica]) -> Bool:
    """The set has as many members as the controller's min.insync.replicas asks for."""
    return isr.size() >= s.minimum


@always
def members_are_replicas(s: Reassigned) -> Bool:
    """Whoever is in the ISR or the ELR has a replica."""
    return (s.controller_isr | s.controller_elr) <= s.replicas


@always
def last_leader_is_remembered(s: Recovering) -> Bool:
    """Who led last is in the ISR, in the ELR or among those to be asked: a recovery that asks them all waits for it."""
    remembered = s.controller_isr | s.controller_elr | s.last_known_elr
    return forall((s.last_known_leader == r).implies(remembered.has(r)) for r in Replica.all())
