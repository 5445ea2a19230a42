"""What Kafka's replication implements: one committed log, as a client may think of it.

The abstract specification has no replicas, no leaders and no crashes: an append-only log, acknowledgements of what
is in it, and readers of its prefixes. `implements_committed_log` says that every step of the protocol, seen
through the refinement map, is a step of this log or none.
"""

from __future__ import annotations

from isr_lang import Bool, Seq, Set, Struct, exists, forall, step, var
from isr_lang.refine import refines
from isr_protocol.state import ACKS, Acks, Offset, Record, State


class CommittedLog(Struct):
    """The log of one partition as its clients may think of it."""

    log: Seq[Offset, Record] = var("the records, in order")
    acked: Set[Record] = var("the records whose producers were told that they are in the log")
    read: Seq[Offset, Record] = var("what a reader has read")


@step
def next_step(old: CommittedLog, new: CommittedLog) -> Bool:
    """Records are appended, records in the log are acknowledged, the reader reads on; nothing is ever taken back."""
    in_log = forall(
        (new.acked.has(m) & ~old.acked.has(m) & (ACKS == Acks.ALL)).implies(
            exists(new.log[o] == m for o in Offset.below(new.log.length()))
        )
        for m in Record.all()
    )
    return (
        old.log.is_prefix_of(new.log)
        & (old.acked <= new.acked)
        & in_log
        & old.read.is_prefix_of(new.read)
        & new.read.is_prefix_of(new.log)
    )


implements_committed_log = refines(
    "implements-committed-log",
    next_step,
    CommittedLog,
    State,
    {"log": lambda s: s.committed, "acked": lambda s: s.acked, "read": lambda s: s.consumed},
)
