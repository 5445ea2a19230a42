"""Controllers that give up after a failure of their own: whether the quorum is told, so that somebody else may lead."""

from __future__ import annotations

from collections.abc import Mapping

from controller_protocol.designs.activation import ACTIVATION, Activation, reverts
from controller_protocol.state import has_committed_in_term, is_active
from isr_lang import Bool, Property, Set, Step, action, always, define, forall, initial, sometimes, var, when
from isr_lang.blank import blank
from kraft_protocol.abstract_quorum import Term, no_end
from kraft_protocol.state import Voter


class Renouncing(Activation):
    """The state with who has given up."""

    idle_leaders: Set[Voter] = var("voters whose controller has given up the epoch in which it was active")


@initial
def nobody_gave_up(new: Renouncing) -> Step:
    """Nobody has."""
    return (new.idle_leaders == blank(new.idle_leaders),)


@define
def is_active_until_it_renounces(s: Renouncing, c: Voter) -> Bool:
    """The controller leads, has committed a record of its epoch, and did not give up (curClaimEpoch)."""
    return has_committed_in_term(s, c) & ~s.idle_leaders.has(c)


@define
def leaders_after_failure(s: Renouncing, c: Voter) -> Set[Voter]:
    """A controller that gives up lets the quorum's leader resign (RaftClient.resign)."""
    return s.quorum_leaders.excluding(c)


@action
def controller_renounces(old: Renouncing, new: Renouncing, c: Voter) -> Step:
    """An event of an active controller fails, and it gives up (QuorumController.handleEventException, renounce)."""
    leaders = leaders_after_failure(old, c)
    return (
        is_active(old, c),
        new.idle_leaders == old.idle_leaders.including(c),
        new.quorum_leaders == leaders,
        new.quorum_end == when(leaders.has(c), old.quorum_end, no_end(old, c)),
        *reverts(old, new, c),
    )


@action
def elected_begins_anew(old: Renouncing, new: Renouncing, v: Voter, q: Voter, t: Term) -> Step:
    """Who is elected, or votes, is in an epoch in which it was not active yet."""
    return (new.idle_leaders == old.idle_leaders.excluding(v).excluding(q),)


@action
def follower_begins_anew(old: Renouncing, new: Renouncing, f: Voter, v: Voter) -> Step:
    """Who follows is in an epoch in which it was not active."""
    return (new.idle_leaders == old.idle_leaders.excluding(f),)


@always
def leaders_have_not_given_up(s: Renouncing) -> Bool:
    """The controller of whoever leads the quorum has not given up.

    Otherwise nobody decides: followers fetch from that leader, so none of them stands for election.
    """
    return forall(~(s.quorum_leaders & s.idle_leaders).has(c) for c in Voter.all())


@sometimes
def controller_gave_up(s: Renouncing) -> Bool:
    """A controller has given up."""
    return ~s.idle_leaders.is_empty()


RENOUNCING = (
    ACTIVATION.in_state(Renouncing, nobody_gave_up)
    .replacing(
        "kraft-renouncing",
        "Controllers that become active, are deposed, and give up after a failure of their own",
        because="without that nothing can be said of KAFKA-13104.",
        is_active=is_active_until_it_renounces,
    )
    .extending(controller_is_elected=elected_begins_anew, follower_copies_log=follower_begins_anew)
    .adding(controller_renounces)
    .promising(leaders_have_not_given_up)
)


@define
def leaders_are_not_told(s: Renouncing, c: Voter) -> Set[Voter]:
    """The quorum does not hear of it."""
    return s.quorum_leaders


NOT_TOLD = RENOUNCING.replacing(
    "kafka-13104",
    "Controllers that give up, and whose quorum is not told",
    because="the controller renounced, and never asked Raft to resign (KAFKA-13104; before Kafka 3.0).",
    leaders_after_failure=leaders_are_not_told,
).failing("the quorum has a leader, and the cluster no active controller.", leaders_have_not_given_up)

PREMISES: Mapping[str, Property] = {leaders_have_not_given_up.name: controller_gave_up}
"""By the name of the promise: what must happen in some behaviour, or else the promise says nothing."""

DESIGNS = (RENOUNCING, NOT_TOLD)
