"""The design in which a request arrives after its sender gave it up: by a time-out, or as it entered another state.

Elsewhere a request is gone as soon as its sender drops it, and what it says is what its sender is. Here a copy of one
stays under way, and says what its sender was. It may arrive whatever has become of the sender, or never. Its answer
goes to nobody. One such request is under way at a time.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Action, Maybe, Number, Seq, Step, action, assume, bound, initial, var, when
from isr_lang.blank import blank
from isr_lang.sequel import as_if
from kraft_model import KRAFT
from kraft_protocol.state import DYNAMIC, LOST_DISKS, Answer, Epoch, Offset, Request, State, Voter

LATE_REQUESTS = bound(
    "late_requests", "requests that arrive after their sender gave them up", default=0, high=2, budget=True
)


class LateRequests(Number, high=LATE_REQUESTS):
    """How many requests were given up while they were under way."""


class WithLateRequest(State):
    """The state with a request that its sender has given up."""

    late_sender: Maybe[Voter] = var("whose request is under way that its sender gave up")
    late_receiver: Maybe[Voter] = var("where it arrives")
    late_request: Request = var("what it asks")
    late_epoch: Epoch = var("the epoch of its sender when it was sent")
    late_log: Seq[Offset, Epoch] = var("the log of its sender then, as far as the request speaks of it")
    late_requests: LateRequests = var("requests so far that were given up")


@initial
def nothing_late(new: WithLateRequest) -> Step:
    """No request was given up."""
    return (
        new.late_sender == blank(new.late_sender),
        new.late_receiver == blank(new.late_receiver),
        new.late_request == Request.NONE,
        new.late_epoch == 0,
        new.late_log == blank(new.late_log),
        new.late_requests == 0,
    )


@action
def sender_gives_up(old: WithLateRequest, new: WithLateRequest, r: Voter, q: Voter) -> Step:
    """A voter gives up a request that has not arrived, and asks again. The former one is under way still.

    RequestManager.hasRequestTimedOut; or the voter is about to enter another state (RequestManager.resetAll).
    """
    kind = old.request[r][q]
    speaks_of_log = (kind == Request.PRE_VOTE) | (kind == Request.VOTE) | (kind == Request.FETCH)
    return (
        r != q,
        old.alive.has(r),
        old.late_sender == NONE,
        old.late_requests < LATE_REQUESTS,
        kind != Request.NONE,
        kind != Request.FETCH_SNAPSHOT,
        old.answer[r][q] == Answer.NONE,
        new.late_sender == Maybe.of(r),
        new.late_receiver == Maybe.of(q),
        new.late_request == kind,
        new.late_epoch == old.epoch[r],
        new.late_log == when(speaks_of_log, old.log[r], blank(old.log[r])),
        new.late_requests == old.late_requests + 1,
    )


@action
def sender_was(old: WithLateRequest, new: WithLateRequest, r: Voter, q: Voter) -> Step:
    """The sender q is what it was when it sent the request that arrives late at r."""
    return (
        old.late_sender == q,
        old.late_receiver == r,
        new.epoch[q] == old.late_epoch,
        new.log[q] == old.late_log,
        new.request[q][r] == old.late_request,
        new.answer[q][r] == Answer.NONE,
    )


def nothing_is_late_then(old: WithLateRequest, new: WithLateRequest) -> Step:
    return (
        new.late_sender == blank(old.late_sender),
        new.late_receiver == blank(old.late_receiver),
        new.late_request == Request.NONE,
        new.late_epoch == 0,
        new.late_log == blank(old.late_log),
    )


@action
def late_request_has_arrived(old: WithLateRequest, new: WithLateRequest) -> Step:
    """It is under way no more."""
    return nothing_is_late_then(old, new)


ARRIVALS = {
    "voter_answers_pre_vote": ("nominee", "late_pre_vote_arrives", "a pre-vote"),
    "voter_answers_vote": ("nominee", "late_vote_arrives", "a vote"),
    "voter_answers_begin": ("leader", "late_begin_arrives", "a BeginQuorumEpoch"),
    "voter_answers_end": ("leader", "late_end_arrives", "an EndQuorumEpoch"),
    "leader_answers_fetch": ("f", "late_fetch_arrives", "a fetch"),
}
"""The actions of requests that arrive, with whom they call the sender, and the same of a request that is late."""


def late(slot: str) -> Action:
    """The action of a request that arrives, of one that its sender gave up. Its answer goes to nobody."""
    sender, name, kind = ARRIVALS[slot]
    arrival = as_if(KRAFT.action_named(slot), sender_was, WithLateRequest, "r", q=sender)
    return attrs.evolve(arrival, name=name, doc=f"The request for {kind} arrives after its sender gave it up.")


_ONE_DISK = assume(
    ~DYNAMIC | (LOST_DISKS == 0),
    otherwise="--lost-disks has no place with --dynamic on: a request that is late does not say which disk sent it",
)
LATE = {name: late_request_has_arrived for _, name, _ in ARRIVALS.values()}
LATE_REQUEST = (
    attrs.evolve(KRAFT, assumptions=(*KRAFT.assumptions, _ONE_DISK))
    .in_state(WithLateRequest, nothing_late)
    .replacing(
        "kraft-late-requests",
        "KRaft where a request may arrive after its sender gave it up",
        because="a request that has timed out, or whose sender went on, may be under way still.",
    )
    .adding(sender_gives_up, *map(late, ARRIVALS))
    .extending(**LATE)
    .with_defaults(late_requests=1)
)

DESIGNS = (LATE_REQUEST,)
