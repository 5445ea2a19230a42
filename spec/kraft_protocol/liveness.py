"""What must come to pass in a quorum: a leader, and the commit of what it writes.

`insync check --liveness on` decides these on the explored graph. Nothing can be promised where messages are lost for
ever, or where timers fire before any answer can come (Fischer, Lynch, Paterson). So each names its fairness:

- A request or an answer that may be handled again and again is handled again and again (strong fairness). So a link
  loses not everything, and timers leave time for an exchange again and again. They may fire early in between.
- A timer that runs on fires (weak fairness): of a voter without a leader, of a nominee, of a leader that resigned.
- Nobody has to resign, to crash or to come back.

An exploration has bounds, so every promise ends where they are spent.
"""

from __future__ import annotations

from isr_lang import Bool, Set, define, exists, forall, leads_to
from kraft_protocol.state import DYNAMIC, EPOCHS, LOG, Answer, Role, State, Voter, leads, log_end

MESSAGES = (
    "voter_answers_pre_vote",
    "voter_answers_vote",
    "prospective_counts",
    "candidate_counts",
    "voter_answers_begin",
    "voter_answers_end",
    "leader_hears_error",
    "leader_answers_fetch",
    "follower_takes_fetch",
    "leader_answers_fetch_snapshot",
    "follower_takes_snapshot",
)
"""The steps that handle a message."""
TIMERS = ("voter_stands", "prospective_gives_up", "resigned_stands")
"""The steps that a timer takes."""


@define
def reachable_voters(s: State) -> Set[Voter]:
    """Whose process runs. Any two of them exchange messages."""
    return s.alive


@define
def majority_is_reachable(s: State) -> Bool:
    """A majority of the voters is up and connected."""
    return reachable_voters(s).size() + reachable_voters(s).size() > Voter.all().size()


@define
def could_stand(s: State, r: Voter, q: Voter) -> Bool:
    """A nominee has the pre-votes of a majority with the answer of q, and there is no epoch left to stand in."""
    supporters = s.granting[r].including(q)
    return (
        (s.epoch[r] == EPOCHS)
        & (s.role[r] == Role.PROSPECTIVE)
        & (s.answer[r][q] == Answer.GRANT)
        & (supporters.size() + supporters.size() > Voter.all().size())
    )


@define
def bounds_are_spent(s: State) -> Bool:
    """The exploration's own bounds may stand in the way from here on."""
    full = exists(log_end(s, r) == LOG for r in Voter.all())
    leaves = exists(s.alive.has(r) & (s.role[r] == Role.RESIGNED) & (s.epoch[r] == EPOCHS) for r in Voter.all())
    return full | leaves | exists(could_stand(s, r, q) for r in Voter.all() for q in Voter.all())


@define
def nobody_leads(s: State) -> Bool:
    """A majority is up and connected, and none of these voters leads."""
    somebody = exists(leads(s, r) & reachable_voters(s).has(r) for r in Voter.all())
    return majority_is_reachable(s) & ~bounds_are_spent(s) & ~somebody


@define
def somebody_leads(s: State) -> Bool:
    """One of the voters that are up and connected leads, or no majority is."""
    somebody = exists(leads(s, r) & reachable_voters(s).has(r) for r in Voter.all())
    return somebody | ~majority_is_reachable(s) | bounds_are_spent(s)


@define
def is_latest_leader(s: State, r: Voter) -> Bool:
    """The voter leads, is connected, and nobody is in a later epoch."""
    return leads(s, r) & reachable_voters(s).has(r) & forall(s.epoch[q] <= s.epoch[r] for q in Voter.all())


@define
def record_waits(s: State) -> Bool:
    """The leader of the latest epoch has a record that is not committed, its LeaderChange or another."""
    waits = exists(
        is_latest_leader(s, r) & (s.high_watermark[r].or_else(0) < log_end(s, r)) & (s.role[r] == Role.LEADER)
        for r in Voter.all()
    )
    return majority_is_reachable(s) & waits


@define
def no_record_waits(s: State) -> Bool:
    """The leader of the latest epoch has committed all that it has. Or there is none, or no majority."""
    committed = forall(
        is_latest_leader(s, r).implies(s.high_watermark[r].or_else(0) == log_end(s, r)) for r in Voter.all()
    )
    return committed | ~majority_is_reachable(s)


majority_elects_a_leader = leads_to(
    "majority-elects-a-leader",
    "While a majority is up and connected, somebody is elected (KIP-595; KIP-996 of pre-votes).",
    nobody_leads,
    somebody_leads,
    state=State,
    fair=TIMERS,
    strong=MESSAGES,
    when=~DYNAMIC,
)
leader_commits_its_records = leads_to(
    "leader-commits-its-records",
    "While a majority is up and connected, the leader commits what it has appended, or is deposed.",
    record_waits,
    no_record_waits,
    state=State,
    fair=TIMERS,
    strong=MESSAGES,
    when=~DYNAMIC,
)

LIVENESS = (majority_elects_a_leader, leader_commits_its_records)
