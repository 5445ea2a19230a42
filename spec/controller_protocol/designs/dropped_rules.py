"""Single rules taken out, of the quorum below controllers and alone, and of who asks them: what the rules are for."""

from __future__ import annotations

from controller_model import KRAFT_CONTROLLERS
from controller_protocol.state import State
from isr_lang import Bool, define
from isr_protocol.promises.safety import (
    acked_survives,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
    weak_isr,
)
from isr_protocol.state import Replica
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


@define
def any_may_be_asked(s: State, controller: Voter, leader: Replica) -> Bool:
    """A leader may ask a controller that was deposed before the one that has had its request."""
    return s.term[controller] <= s.term[controller]


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
ASKS_BACK = (
    KRAFT_CONTROLLERS.replacing(
        "kraft-controllers-ask-back",
        "Controllers on a quorum, of which a leader asks a deposed one after the one that deposed it",
        because="a broker asks whom the epoch of its Raft client names, which only grows.",
        may_be_asked=any_may_be_asked,
    )
    .with_defaults(crashes=1, epochs=1, log=1, records=1, metadata_log=6, isr_changes=2)
    .failing(
        "the deposed one refuses what is accepted and not yet committed, and the leader takes it back.",
        maximal_isr_covers,
        leaders_complete,
        strong_isr,
        weak_isr,
    )
)
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

DESIGNS = (ELECTS_BEHIND, VOTES_AGAIN, ASKS_BACK, ALONE_ELECTS_BEHIND, ALONE_VOTES_AGAIN)
