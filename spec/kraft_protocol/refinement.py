"""The message-grain quorum as a refinement of the abstract one: each of its steps is one of `abstract_quorum`, or none.

`observed_quorum(design)` is the design with a history variable and the promise `implements-abstract-quorum`. A nominee
leads, in the abstract, from the vote on that makes its majority. So every step of the protocol is at most one there.

With five voters a vote may be counted after its voter went on to a later epoch, which is no step of the abstract one.
The promise is for two voters and three, with a fixed voter set and without snapshots.
"""

from __future__ import annotations

from isr_lang import Bool, Design, Map, Seq, Set, Step, action, define, initial, var, when
from isr_lang.blank import blank
from isr_lang.refine import implements
from kraft_protocol.abstract_quorum import ABSTRACT_QUORUM, Position, Term, is_majority
from kraft_protocol.state import DYNAMIC, Answer, Epoch, Offset, Request, Role, State, Voter


class Observed(State):
    """The state with what was written in each epoch."""

    written_logs: Map[Epoch, Map[Voter, Seq[Offset, Epoch]]] = var("the log of who led each epoch, when it led last")


@define
def has_majority(s: Observed, r: Voter) -> Bool:
    """The voter leads, or is a candidate for which a majority has voted, whether it has heard of that or not."""
    on_its_way = Voter.all().where(lambda q: (s.request[r][q] == Request.VOTE) & (s.answer[r][q] == Answer.GRANT))
    elected = (s.role[r] == Role.CANDIDATE) & is_majority(s.granting[r] | on_its_way)
    return s.alive.has(r) & ((s.role[r] == Role.LEADER) | elected)


def leaders(s: Observed) -> Set[Voter]:
    return Voter.all().where(lambda r: has_majority(s, r))


def written_logs(s: Observed) -> Map[Epoch, Map[Voter, Seq[Offset, Epoch]]]:
    """The log of who leads each epoch now, or else what it was when it led last."""
    return Map.build(
        Epoch,
        lambda e: Map.build(
            Voter, lambda r: when(has_majority(s, r) & (s.epoch[r] == e), s.log[r], s.written_logs[e][r])
        ),
    )


@initial
def nothing_written(new: Observed) -> Step:
    """Nobody has led."""
    return (new.written_logs == blank(new.written_logs),)


@action
def follows_the_leaders(old: Observed, new: Observed) -> Step:
    """Taken with every step: what a leader has is noted, also when it stops leading."""
    return (new.written_logs == written_logs(old),)


implements_abstract_quorum = implements(
    "implements-abstract-quorum",
    "Every step is one of the quorum without messages, or changes nothing there.",
    ABSTRACT_QUORUM,
    Observed,
    {
        "term": lambda s: s.epoch,
        "support": lambda s: Map.build(Voter, lambda r: when(s.leader[r] == r, s.leader[r], s.vote[r])),
        "quorum_leaders": leaders,
        "quorum_log": lambda s: s.log,
        "quorum_end": lambda s: Map.build(
            Voter, lambda r: when(s.role[r] == Role.LEADER, s.high_watermark[r].or_else(0), blank(s.log[r].length()))
        ),
        "quorum_committed": lambda s: s.committed,
        "lost_disks": lambda s: s.lost_disks,
        "strangers": lambda s: Voter.all().where(lambda r: DYNAMIC & (s.directory[r] != 0)),
        "written_logs": written_logs,
    },
    {Term: Epoch, Position: Offset},
)


def observed_quorum(design: Design) -> Design:
    """The design, watched for what was written in each epoch, with the one promise."""
    return design.observed(Observed, nothing_written, follows_the_leaders, (implements_abstract_quorum,))
