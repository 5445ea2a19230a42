"""Brokers that wait to be unfenced while the metadata log goes on: how far a broker has to be."""

from __future__ import annotations

from controller_model import KRAFT_CONTROLLERS
from controller_protocol.metadata import replayed_metadata
from controller_protocol.state import State, has_nothing_pending, is_active
from isr_lang import Bool, Set, Step, action, define, exists, initial, leads_to, var
from isr_lang.blank import blank
from isr_protocol.state import ISR_CHANGES, Replica
from kraft_protocol.abstract_quorum import METADATA_LOG, Position, end
from kraft_protocol.state import Voter


class BusyLog(State):
    """The state with who has not applied the last record.

    A NoOpRecord says nothing of the metadata. It is committed and takes no place in the log here, so that a log may go
    on for ever.
    """

    behind: Set[Replica] = var("brokers that have not applied the last committed record of the metadata log")


@initial
def nobody_is_behind(new: BusyLog) -> Step:
    """Every broker has applied everything."""
    return (new.behind == blank(new.behind),)


@action
def controller_writes_no_op(old: BusyLog, new: BusyLog, c: Voter) -> Step:
    """An active controller writes a NoOpRecord, and it is committed (metadata.max.idle.interval.ms)."""
    return (is_active(old, c), has_nothing_pending(old, c), new.behind == Replica.all())


@action
def brokers_are_behind(old: BusyLog, new: BusyLog, c: Voter, n: Position) -> Step:
    """What is committed, no broker has applied yet."""
    return (new.behind == Replica.all(),)


@action
def broker_applies(old: BusyLog, new: BusyLog, r: Replica) -> Step:
    """A broker has applied all that is committed."""
    return (old.alive.has(r), old.behind.has(r), new.behind == old.behind.excluding(r))


@define
def is_far_enough(s: BusyLog, r: Replica) -> Bool:
    """The broker has applied its own registration, which every broker has that is up.

    BrokerHeartbeatManager.calculateNextBrokerState with registerBrokerRecordOffset.
    """
    return s.alive.has(r)


@action
def heartbeat_comes_from_far_enough(old: BusyLog, new: BusyLog, controller: Voter, r: Replica) -> Step:
    """A heartbeat of a broker that is not far enough leaves it fenced."""
    return (is_far_enough(old, r),)


# What is promised


@define
def bounds_are_spent(s: BusyLog) -> Bool:
    """The exploration's own bounds may stand in the way from here on."""
    full = exists(s.quorum_leaders.has(c) & (end(s, c) == METADATA_LOG) for c in Voter.all())
    replayed = exists(
        s.quorum_leaders.has(c) & (replayed_metadata(s, c).partition_epoch == ISR_CHANGES) for c in Voter.all()
    )
    return full | replayed


@define
def broker_waits(s: BusyLog) -> Bool:
    """A broker is up and fenced."""
    return ~bounds_are_spent(s) & ~(s.alive & s.fenced).is_empty()


@define
def no_broker_waits(s: BusyLog) -> Bool:
    """Every broker that is up is unfenced."""
    return bounds_are_spent(s) | (s.alive & s.fenced).is_empty()


living_brokers_are_unfenced = leads_to(
    "living-brokers-are-unfenced",
    "A broker that is up and sends heartbeats is unfenced, however busy the metadata log is.",
    broker_waits,
    no_broker_waits,
    state=BusyLog,
    fair=(
        "controller_writes_no_op",
        "broker_applies",
        "controller_unfences",
        "controller_elects_returned",
        "controller_elects_last_known_leader",
        "leader_begins_term",
        "follower_copies_log",
        "controller_commits",
    ),
)

BUSY_LOG = (
    KRAFT_CONTROLLERS.without("leader_appends")
    .in_state(BusyLog, nobody_is_behind)
    .replacing(
        "kraft-busy-log",
        "Controllers on a quorum whose log goes on for ever, and brokers that apply it; clients write nothing",
        because="without that nothing can be said of KAFKA-13959.",
    )
    .extending(
        controller_commits=brokers_are_behind,
        controller_unfences=heartbeat_comes_from_far_enough,
        controller_elects_returned=heartbeat_comes_from_far_enough,
        controller_elects_last_known_leader=heartbeat_comes_from_far_enough,
    )
    .adding(controller_writes_no_op, broker_applies)
    .promising(living_brokers_are_unfenced)
    .with_defaults(voters=2, epochs=1, log=1, records=1, metadata_log=4, isr_changes=2, sessions_lost=1)
)


@define
def has_applied_everything(s: BusyLog, r: Replica) -> Bool:
    """The broker has applied the last committed record (lastCommittedOffset)."""
    return ~s.behind.has(r)


LAST_OFFSET = BUSY_LOG.replacing(
    "kafka-13959",
    "Controllers that unfence a broker only when it has applied the last committed record",
    because="a heartbeat was compared with the last committed offset (KAFKA-13959; before Kafka 3.3).",
    is_far_enough=has_applied_everything,
).failing("whenever the broker sends its heartbeat, a newer record is committed.", living_brokers_are_unfenced)

DESIGNS = (BUSY_LOG, LAST_OFFSET)
