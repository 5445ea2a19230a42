"""Sessions of brokers, which are in a controller's memory alone and begin anew with each that becomes active."""

from __future__ import annotations

from collections.abc import Mapping

from controller_model import KRAFT_CONTROLLERS, ONE_CRASH
from controller_protocol.metadata import replayed_metadata
from controller_protocol.state import State, is_active
from isr_lang import (
    Bool,
    Map,
    Property,
    Set,
    Step,
    action,
    always,
    define,
    exists,
    forall,
    initial,
    sometimes,
    sometimes_step,
    step,
    var,
    when,
)
from isr_lang.blank import blank
from isr_protocol.state import Replica
from kraft_protocol.abstract_quorum import Position
from kraft_protocol.state import Voter


class Sessions(State):
    """The state with whom each controller would fence when it hears no more of it."""

    sessions: Map[Voter, Set[Replica]] = var("brokers whose session each controller would end (BrokerHeartbeatTracker)")


@initial
def all_have_sessions(new: Sessions) -> Step:
    """Every controller has a session of every broker, of which only the active one's count."""
    return (new.sessions == Map.build(Voter, lambda c: Replica.all()),)


@define
def sessions_at_claim(s: Sessions, c: Voter) -> Set[Replica]:
    """A controller that becomes active begins a session of every broker that is not fenced.

    ClusterControlManager.activate, BrokerHeartbeatManager.touch.
    """
    return Replica.all() - replayed_metadata(s, c).fenced


@action
def sessions_begin_anew(old: Sessions, new: Sessions, c: Voter, n: Position) -> Step:
    """With its first commit a leader becomes active."""
    return (new.sessions[c] == when(is_active(old, c), old.sessions[c], sessions_at_claim(old, c)),)


@action
def session_ends(old: Sessions, new: Sessions, controller: Voter, r: Replica) -> Step:
    """Only a session that there is can end (maybeFenceStaleBrokers)."""
    return (old.sessions[controller].has(r),)


@action
def session_begins(old: Sessions, new: Sessions, controller: Voter, r: Replica) -> Step:
    """A heartbeat that unfences a broker begins its session."""
    return (new.sessions[controller] == old.sessions[controller].including(r),)


@action
def registers_without_session(old: Sessions, new: Sessions, controller: Voter, r: Replica) -> Step:
    """A new incarnation may register when the session of the former one is over.

    DuplicateBrokerRegistrationException otherwise (ClusterControlManager.registerBroker, hasValidSession).
    """
    return (~old.sessions[controller].has(r),)


@action
def session_of_fenced_broker_ends(old: Sessions, new: Sessions, c: Voter, r: Replica) -> Step:
    """The session of a stopped broker that is fenced already ends, and nothing is written (BrokerHeartbeatTracker)."""
    return (
        is_active(old, c),
        ~old.alive.has(r),
        replayed_metadata(old, c).fenced.has(r),
        old.sessions[c].has(r),
        new.sessions[c] == old.sessions[c].excluding(r),
    )


@action
def controller_hears_broker(old: Sessions, new: Sessions, c: Voter, r: Replica) -> Step:
    """The heartbeat of a broker reaches an active controller."""
    return (
        is_active(old, c),
        old.alive.has(r),
        ~old.sessions[c].has(r),
        new.sessions[c] == old.sessions[c].including(r),
    )


@always
def stopped_brokers_have_sessions(s: Sessions) -> Bool:
    """Of every stopped broker that is not fenced each active controller has a session, so that it will be fenced."""
    return forall(
        (is_active(s, c) & ~(s.alive | replayed_metadata(s, c).fenced).has(r)).implies(s.sessions[c].has(r))
        for c in Voter.all()
        for r in Replica.all()
    )


@step
def fenced_brokers_may_register(old: Sessions, new: Sessions) -> Bool:
    """A controller that becomes active begins no session of a stopped broker that is fenced.

    So that one may register at once, and waits for no session in which nobody has heard of it.
    """
    return forall(
        (~is_active(old, c) & is_active(new, c) & ~new.alive.has(r) & replayed_metadata(new, c).fenced.has(r)).implies(
            ~new.sessions[c].has(r)
        )
        for c in Voter.all()
        for r in Replica.all()
    )


@sometimes_step
def later_controller_finds_a_fenced_broker(old: Sessions, new: Sessions) -> Bool:
    """A controller becomes active when a stopped broker is fenced."""
    return exists(
        ~is_active(old, c) & is_active(new, c) & ~new.alive.has(r) & replayed_metadata(new, c).fenced.has(r)
        for c in Voter.all()
        for r in Replica.all()
    )


@sometimes
def later_controller_has_a_stopped_broker(s: Sessions) -> Bool:
    """A controller that became active later takes a stopped broker for one that is not fenced."""
    return exists(
        is_active(s, c) & (s.term[c] > 0) & ~(s.alive | replayed_metadata(s, c).fenced).has(r)
        for c in Voter.all()
        for r in Replica.all()
    )


SESSIONS = (
    KRAFT_CONTROLLERS.in_state(Sessions, all_have_sessions)
    .replacing(
        "kraft-sessions",
        "Controllers on a quorum, with the sessions in their memory",
        because="without that nothing can be said of KAFKA-18138.",
    )
    .extending(
        controller_commits=sessions_begin_anew,
        controller_fences_outsider=session_ends,
        controller_fences_follower=session_ends,
        controller_fences_leader=session_ends,
        controller_fences_last_leader=session_ends,
        controller_unfences=session_begins,
        controller_elects_returned=session_begins,
        controller_elects_last_known_leader=session_begins,
        controller_registers=registers_without_session,
    )
    .adding(controller_hears_broker, session_of_fenced_broker_ends)
    .promising(stopped_brokers_have_sessions, fenced_brokers_may_register)
    .with_defaults(**ONE_CRASH)
)


@define
def no_sessions_at_claim(s: Sessions, c: Voter) -> Set[Replica]:
    """A controller that becomes active knows of nobody, until it hears of somebody."""
    return blank(s.sessions[c])


NO_SESSIONS = SESSIONS.replacing(
    "kafka-18138",
    "Controllers that become active without a session of anybody",
    because="the tracker of heartbeats was empty after a fail-over (KAFKA-18138).",
    sessions_at_claim=no_sessions_at_claim,
).failing("a broker that stops as the controller fails over is never fenced.", stopped_brokers_have_sessions)


@define
def sessions_of_all_at_claim(s: Sessions, c: Voter) -> Set[Replica]:
    """A controller that becomes active begins a session of every broker, fenced or not."""
    return Replica.all()


SESSIONS_OF_ALL = SESSIONS.replacing(
    "kafka-19130",
    "Controllers that become active with a session of every broker, of fenced ones, too",
    because="the mend of KAFKA-18138 began a session of every broker (KAFKA-19130; Kafka 4.0).",
    sessions_at_claim=sessions_of_all_at_claim,
).failing("a broker that is fenced may not register until that session is over.", fenced_brokers_may_register)

PREMISES: Mapping[str, Property] = {
    stopped_brokers_have_sessions.name: later_controller_has_a_stopped_broker,
    fenced_brokers_may_register.name: later_controller_finds_a_fenced_broker,
}
"""By the name of the promise: what must happen in some behaviour, or else the promise says nothing."""

DESIGNS = (SESSIONS, NO_SESSIONS, SESSIONS_OF_ALL)
