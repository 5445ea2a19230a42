"""The state in which it is remembered who was removed, so that a promise can speak about who joins again."""

from __future__ import annotations

from isr_lang import Bool, Set, Step, action, always, initial, var
from isr_lang.blank import blank
from kraft_protocol.state import State, Voter


class Joining(State):
    """The state with who was removed, and whether one of them joined again by itself."""

    former_voters: Set[Voter] = var("voters that a leader has removed", ghost=True)
    joined_again: Bool = var("one of them has asked to be a voter, and became one", ghost=True)


@initial
def nobody_removed(new: Joining) -> Step:
    """Nobody was removed."""
    return (new.former_voters == blank(new.former_voters), ~new.joined_again)


@action
def removal_is_noted(old: Joining, new: Joining, r: Voter, v: Voter) -> Step:
    """Whom a leader removes is remembered."""
    return (new.former_voters == old.former_voters.including(v),)


@always
def removed_voter_stays_out(s: Joining) -> Bool:
    """A voter that was removed does not become one again by itself."""
    return ~s.joined_again
