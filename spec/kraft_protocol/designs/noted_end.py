"""The state in which a follower notes that its leader resigned, as the mend of KAFKA-20895 has it."""

from __future__ import annotations

from isr_lang import Bool, Map, Step, action, define, initial, var, when
from isr_lang.blank import blank
from kraft_protocol.elections import up_to_date
from kraft_protocol.leadership import hears_who_leads, with_news_of_leader
from kraft_protocol.messages import arrives
from kraft_protocol.state import Epoch, Request, Role, State, Voter


class NotedEnd(State):
    """The state where each voter knows of which epoch the leader has resigned."""

    ended_epoch: Map[Voter, Epoch] = var("the last epoch of which each voter was told that its leader resigned")


@initial
def no_end_yet(new: NotedEnd) -> Step:
    """Nobody was told."""
    return (new.ended_epoch == blank(new.ended_epoch),)


@action
def voter_notes_end(old: NotedEnd, new: NotedEnd, r: Voter, leader: Voter) -> Step:
    """A voter hears that its leader resigned, and notes it (setLeaderHasResigned in PR 23168)."""
    n = with_news_of_leader(old, r, leader)
    follows = (n.role == Role.FOLLOWER) & (n.leader == leader) & (n.epoch == old.epoch[leader])
    return (
        *arrives(old, leader, r, Request.END),
        *hears_who_leads(old, new, r, leader, n),
        new.ended_epoch[r] == when(follows, n.epoch, old.ended_epoch[r]),
    )


@action
def memory_is_lost(old: NotedEnd, new: NotedEnd, r: Voter) -> Step:
    """A process begins without what the former one noted."""
    return (new.ended_epoch[r] == 0,)


@define
def grants_pre_vote_after_end(s: NotedEnd, r: Voter, nominee: Voter, role: Role, has_fetched: Bool) -> Bool:
    """A follower that has fetched grants a pre-vote, too, once its leader has resigned."""
    waits = (role == Role.FOLLOWER) & has_fetched & (s.ended_epoch[r] != s.epoch[r])
    return up_to_date(s, nominee, r) & (role != Role.LEADER) & ~waits
