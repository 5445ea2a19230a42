"""Messages: a request arrives and is answered, an answer comes back.

KafkaRaftClient.handleRequest, handleResponse, maybeHandleCommonResponse; RequestManager.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from isr_lang import NONE, Bool, Map, Maybe, Seq, Step
from isr_lang.blank import blank
from isr_lang.expr import Expr
from kraft_protocol.state import Answer, Epoch, Offset, Request, Role, State, Voter, VoterSet
from kraft_protocol.voter import VoterState, becomes_but_for_requests, follower, unattached

V = TypeVar("V", bound=Expr)


def arrives(old: State, sender: Voter, r: Voter, kind: Request) -> Step:
    """A request of this kind is at the voter r, and not yet answered."""
    return (sender != r, old.alive.has(r), old.request[sender][r] == kind, old.answer[sender][r] == Answer.NONE)


@attrs.frozen
class Reply:
    """The content of an answer; without an epoch it has none."""

    kind: Answer
    epoch: Epoch
    leader: Maybe[Voter]
    record: Maybe[Epoch]
    voters: VoterSet
    last_epoch: Epoch | int
    end: Offset | int
    watermark: Maybe[Offset]
    log: Seq[Offset, Epoch] | None = None


def replies(
    old: State, new: State, r: Voter, n: VoterState, sender: Voter, reply: Reply, request: Request | None = None
) -> Step:
    """The voter r is n after the step, and its answer is on its way; `request`: what the sender then asks, if not the
    same.
    """
    own, row = n.requests, old.request[sender]

    def rows(slots: Map[Voter, Map[Voter, V]], of_voter: Map[Voter, V], value: V | int) -> Map[Voter, Map[Voter, V]]:
        return slots.put(r, of_voter).put(sender, slots[sender].put(r, value))

    return (
        *becomes_but_for_requests(old, new, r, n),
        new.request == old.request.put(r, own.kind).put(sender, row if request is None else row.put(r, request)),
        new.answer == rows(old.answer, own.answer, reply.kind),
        new.answer_epoch == rows(old.answer_epoch, own.epoch, reply.epoch),
        new.answer_leader == rows(old.answer_leader, own.leader, reply.leader),
        new.answer_record == rows(old.answer_record, own.record, reply.record),
        new.answer_voters == rows(old.answer_voters, own.voters, reply.voters),
        new.answer_log == rows(old.answer_log, own.log, blank(old.log[r]) if reply.log is None else reply.log),
        new.answer_last_epoch == rows(old.answer_last_epoch, own.last_epoch, reply.last_epoch),
        new.answer_end == rows(old.answer_end, own.end, reply.end),
        new.answer_watermark == rows(old.answer_watermark, own.watermark, reply.watermark),
    )


def names_impossible_leader(old: State, r: Voter, q: Voter) -> Bool:
    """The answer of q names r itself, which does not lead, or another leader of its epoch than the one that r knows.

    hasConsistentLeader. An answer of an earlier epoch is not looked at (maybeHandleCommonResponse).
    """
    epoch, leader = old.answer_epoch[r][q], old.answer_leader[r][q]
    itself = (leader == r) & (old.role[r] != Role.LEADER)
    another = (epoch == old.epoch[r]) & (leader != NONE) & (old.leader[r] != NONE) & (old.leader[r] != leader)
    return (old.epoch[r] <= epoch) & (itself | another)


def comes_back(old: State, r: Voter, q: Voter, kind: Request) -> Step:
    """The answer of q to a request of this kind is at the voter r that sent it.

    One that names an impossible leader ends the process (`faults.voter_fails_at_answer`).
    """
    return (
        r != q,
        old.alive.has(r),
        old.request[r][q] == kind,
        old.answer[r][q] != Answer.NONE,
        ~names_impossible_leader(old, r, q),
    )


def later_epoch_cases(old: State, r: Voter, q: Voter) -> tuple[tuple[Bool, VoterState], tuple[Bool, VoterState]]:
    """An answer with a later epoch, with its leader or without one, is nothing but news of that (maybeTransition)."""
    epoch, leader = old.answer_epoch[r][q], old.answer_leader[r][q]
    later = epoch > old.epoch[r]
    return (later & (leader != NONE), follower(old, r, epoch, leader)), (later, unattached(old, r, epoch))


def common_cases(old: State, r: Voter, q: Voter) -> tuple[tuple[Bool, VoterState], ...]:
    """What every answer may bring first: a later epoch, or the leader of this one (maybeHandleCommonResponse)."""
    epoch, leader = old.answer_epoch[r][q], old.answer_leader[r][q]
    first = (epoch == old.epoch[r]) & (leader != NONE) & (old.leader[r] == NONE)
    return (*later_epoch_cases(old, r, q), (first, follower(old, r, epoch, leader)))
