"""Single rules of the quorum taken out, below controllers and alone: mistakes that show what the rules are for."""

from __future__ import annotations

from controller_model import KRAFT_CONTROLLERS
from isr_lang import Bool, define
from isr_protocol.promises.safety import acked_survives
from kraft_protocol.abstract_quorum import (
    ABSTRACT_QUORUM,
    AbstractQuorum,
    Term,
    leader_knows_what_is_committed,
    leaders_have_committed,
    one_leader_a_term,
    one_vote_a_term,
    quorum_logs_match,
    quorum_only_grows,
)
from kraft_protocol.state import Voter


@define
def any_log_covers(s: AbstractQuorum, nominee: Voter, r: Voter) -> Bool:
    """Nobody asks whose log is behind."""
    return s.term[r] <= s.term[r]


@define
def votes_again(s: AbstractQuorum, r: Voter, v: Voter, t: Term) -> Bool:
    """Nobody asks for whom the voter has voted in this epoch."""
    return (s.term[r] <= t) & ~s.strangers.has(r)


ELECTS_BEHIND = KRAFT_CONTROLLERS.replacing(
    "kraft-controllers-elect-behind",
    "Controllers of a quorum that elects whoever asks, however far behind its log is",
    because="(3) says that a voter refuses whose log is behind its own.",
    covers=any_log_covers,
).failing(
    "a controller is active that has not heard of what was committed.",
    leaders_have_committed,
    leader_knows_what_is_committed,
    quorum_only_grows,
    acked_survives,
)
VOTES_AGAIN = KRAFT_CONTROLLERS.replacing(
    "kraft-controllers-vote-again",
    "Controllers of a quorum whose voters vote for whoever asks",
    because="(2) says that there is one vote an epoch.",
    is_free=votes_again,
).failing("two controllers are active in one epoch.", one_leader_a_term)
ALONE_ELECTS_BEHIND = ABSTRACT_QUORUM.replacing(
    "abstract-quorum-elects-behind",
    "A quorum without messages that elects whoever asks, however far behind its log is",
    because="(3) says that a voter refuses whose log is behind its own.",
    covers=any_log_covers,
).failing(
    "a leader has not heard of what was committed.",
    leaders_have_committed,
    leader_knows_what_is_committed,
    quorum_only_grows,
)
ALONE_VOTES_AGAIN = ABSTRACT_QUORUM.replacing(
    "abstract-quorum-votes-again",
    "A quorum without messages whose voters vote for whoever asks",
    because="(2) says that there is one vote an epoch.",
    is_free=votes_again,
).failing("two voters lead one epoch.", one_leader_a_term, one_vote_a_term, quorum_logs_match)

DESIGNS = (ELECTS_BEHIND, VOTES_AGAIN, ALONE_ELECTS_BEHIND, ALONE_VOTES_AGAIN)
