"""A design of somebody's own that loses records: a leader counts the second record one fetch early.

It has an action of its own in place of `leader_answers_fetch`, and lacks the two that cut logs. So known mistakes have
no place in it, and bounds that only these ask for are too small for what it does.
"""

from isr_lang import Maybe, Step, action, forall, when
from isr_model import KIP_966
from isr_protocol.replication import acknowledged, advanced_watermark, answers, commits, replicated, takes
from isr_protocol.state import Fetch, Offset, Replica, State, log_end, maximal_isr


@action
def leader_answers_fetch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader takes a fetch of whoever has a prefix of its log; it counts the second record one fetch early."""
    offset = old.fetch_offset[follower]
    early = when((offset == 1) & (log_end(old, leader) > 1), offset + 1, offset)
    ends = old.follower_end[leader].put(follower, Maybe.of(early))
    members = maximal_isr(old, leader)
    up_to = replicated(old, leader, log_end(old, leader), ends, members)
    watermark = advanced_watermark(old, leader, up_to, old.isr[leader])
    same = forall(
        (o < offset).implies((o < log_end(old, leader)) & (old.log[leader][o] == old.log[follower][o]))
        for o in Offset.all()
    )
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        same,
        new.follower_end[leader] == ends,
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, members),
        *answers(old, new, leader, follower, watermark),
    )


REWRITTEN = (
    KIP_966.replacing(
        "rewritten",
        "KIP-966 with a fetch of its own",
        because="fewer rules.",
        leader_answers_fetch=leader_answers_fetch,
    )
    .without("leader_answers_diverging", "follower_truncates")
    .with_defaults(replicas=2)
)
