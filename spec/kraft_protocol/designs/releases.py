"""What Kafka did before: releases without pre-votes."""

from __future__ import annotations

from isr_lang import Maybe, Step, action, define
from isr_lang.blank import blank
from kraft_model import KRAFT
from kraft_protocol.state import EPOCHS, Role, State, Voter
from kraft_protocol.voter import becomes, candidate


@action
def voter_stands_at_once(old: State, new: State, r: Voter) -> Step:
    """A timer fires: the voter is a candidate of the next epoch, and asks nobody before that (3.9)."""
    waits = (old.role[r] == Role.UNATTACHED) | (old.role[r] == Role.FOLLOWER) | (old.role[r] == Role.CANDIDATE)
    return (
        old.alive.has(r),
        waits,
        old.epoch[r] < EPOCHS,
        *becomes(old, new, r, candidate(old, r, old.epoch[r] + 1)),
    )


@action
def resigned_stands_at_once(old: State, new: State, r: Voter) -> Step:
    """The timer of a leader that resigned fires: it is a candidate of the next epoch (3.9)."""
    return (
        old.alive.has(r),
        old.role[r] == Role.RESIGNED,
        old.epoch[r] < EPOCHS,
        *becomes(old, new, r, candidate(old, r, old.epoch[r] + 1)),
    )


@define
def no_vote_of_follower(s: State, r: Voter) -> Maybe[Voter]:
    """Who hears who leads its epoch forgets for whom it voted (ElectionState.withElectedLeader of 3.9)."""
    return blank(s.vote[r])


KRAFT_3_9 = KRAFT.without("prospective_gives_up", "voter_answers_pre_vote", "prospective_counts").replacing(
    "kraft-3.9",
    "KRaft before Kafka 4.0: without pre-votes",
    because="pre-votes came with KIP-996; before that a voter whose timer fired began a new epoch at once.",
    voter_stands=voter_stands_at_once,
    resigned_stands=resigned_stands_at_once,
    vote_of_follower=no_vote_of_follower,
)

DESIGNS = (KRAFT_3_9,)
