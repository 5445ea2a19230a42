"""The catalogue of the 29 anomalies: definition, source, severity, when it is impossible, and which function finds it.

Numbers 1 to 18 are those of Jepsen's kafka workload; 19 to 29 come from Redpanda's chaos tests, Kafka's ducktape
tests and the model of the in-sync set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

import attrs

from isr_anomalies import cycles, orders, preconditions, replicas, times, values
from isr_anomalies.cycles import Graphs
from isr_anomalies.history import History
from isr_anomalies.operations import Claims
from isr_anomalies.results import Finding, NoVerdict
from isr_anomalies.view import View

Severity = Literal["error", "reported", "permitted", "figure"]

Find = Callable[[View], Iterable[Finding]]
FindAcross = Callable[[History, Graphs, Claims], Iterable[Finding]]


@attrs.frozen
class Anomaly:
    """An anomaly. `impossible` says which claims exclude it: only under them a finding is VIOLATED, else PERMITTED.

    `find` looks at one partition, or `across` at the whole history. `missing` (or `missing_across`) says why there is
    no verdict. A finding counts even if there is no verdict on the rest.
    """

    number: int
    name: str
    severity: Severity
    definition: str
    impossible: str
    source: str
    find: Find | None = None
    across: FindAcross | None = None
    missing: Callable[[View], NoVerdict | None] | None = None
    missing_across: Callable[[History], NoVerdict | None] | None = None


_SAFE: Final = "acks=all, no unclean election"
_JEPSEN: Final = "Jepsen, kafka workload"
_CHAOS: Final = "Redpanda chaos tests"

ANOMALIES: Final[tuple[Anomaly, ...]] = (
    Anomaly(
        1,
        "inconsistent-offset",
        "error",
        "one offset of a partition is associated with two or more values, by sends or polls",
        "unless election is unclean, or acks is not all and nobody read them",
        _JEPSEN,
        values.inconsistent_offset,
        missing=preconditions.KNOWN_OFFSETS,
    ),
    Anomaly(
        2,
        "duplicate",
        "error",
        "one value at two or more offsets of a partition",
        "idempotence",
        f"{_JEPSEN}; KIP-98",
        values.duplicate,
        missing=preconditions.KNOWN_OFFSETS,
    ),
    Anomaly(
        3,
        "lost-write",
        "error",
        "acknowledged, or read by somebody, and absent from the last complete read that had to return it",
        _SAFE,
        _JEPSEN,
        values.lost_write,
        missing=preconditions.why_no_loss_verdict,
    ),
    Anomaly(
        4,
        "unseen",
        "error",
        "acknowledged before the last complete read began, and polled by nobody",
        _SAFE,
        _JEPSEN,
        values.unseen_values,
        missing=preconditions.whether_unseen,
    ),
    Anomaly(
        5,
        "aborted-read",
        "error",
        "the value of a send that surely failed is returned by a successful poll (G1a)",
        "always",
        f"{_JEPSEN}; Adya G1a",
        values.aborted_read,
        missing=preconditions.READ,
    ),
    Anomaly(
        6,
        "precommitted-read",
        "error",
        "a transaction polls what it sends itself, before it is committed",
        "isolation=read_committed",
        f"{_JEPSEN}; KIP-98",
        values.precommitted_read,
        missing=preconditions.BOTH,
    ),
    Anomaly(
        7,
        "poll-skip",
        "error",
        "of two successive polls of a consumer the later begins more than one record after the earlier's end",
        "with assign; after subscribe a rebalance may do it",
        _JEPSEN,
        orders.poll_skip,
        missing=preconditions.POLLED,
    ),
    Anomaly(
        8,
        "nonmonotonic-poll",
        "error",
        "of two successive polls of a consumer the later begins at or before the earlier's end",
        "with assign; after subscribe a rebalance may do it",
        _JEPSEN,
        orders.nonmonotonic_poll,
        missing=preconditions.POLLED,
    ),
    Anomaly(
        9,
        "int-poll-skip",
        "error",
        "the same inside one operation: a record is left out",
        "always, but for partitions that were rebalanced meanwhile",
        _JEPSEN,
        orders.int_poll_skip,
        missing=preconditions.INSIDE_POLL,
    ),
    Anomaly(
        10,
        "int-nonmonotonic-poll",
        "error",
        "the same inside one operation: a record at or before the one before it",
        "always, but for partitions that were rebalanced meanwhile",
        _JEPSEN,
        orders.int_nonmonotonic_poll,
        missing=preconditions.INSIDE_POLL,
    ),
    Anomaly(
        11,
        "nonmonotonic-send",
        "error",
        "a producer's later send gets a smaller offset than an earlier one",
        "acks=all, and idempotence or one in flight",
        _JEPSEN,
        orders.nonmonotonic_send,
        missing=preconditions.ACKED,
    ),
    Anomaly(
        12,
        "int-nonmonotonic-send",
        "error",
        "inside one operation, sends to a partition get falling offsets",
        "always",
        _JEPSEN,
        orders.int_nonmonotonic_send,
        missing=preconditions.INSIDE_SEND,
    ),
    Anomaly(
        13,
        "int-send-skip",
        "permitted",
        "inside one operation, records of others come between its sends",
        "never",
        _JEPSEN,
        orders.int_send_skip,
        missing=preconditions.INSIDE_SEND,
    ),
    Anomaly(
        14,
        "write-cycle",
        "permitted",
        "operations precede each other by offset order in two or more partitions (G0)",
        "never: offsets are not transactional",
        f"{_JEPSEN}; Adya G0",
        across=cycles.g0,
        missing_across=preconditions.single_steps,
    ),
    Anomaly(
        15,
        "read-write-cycle",
        "error",
        "a cycle of what was written and read (G1c)",
        "isolation=read_committed, and no edge of the cycle comes from offsets alone",
        f"{_JEPSEN}; Adya G1c",
        across=cycles.g1c,
        missing_across=preconditions.single_steps,
    ),
    Anomaly(
        16,
        "ordered-cycle",
        "reported",
        "a cycle that needs the order of a process, or real time (G0/G1c-process, -realtime)",
        "never by itself: see 11 and 19",
        f"{_JEPSEN}; Elle",
        across=cycles.ordered_cycles,
        missing_across=lambda history: None if history.operations else NoVerdict(True, "no operation at all"),
    ),
    Anomaly(
        17,
        "consume-counts",
        "error",
        "a value is consumed more than once by the subscribers of one group",
        "exactly_once",
        f"{_JEPSEN}; KIP-447",
        values.consume_counts,
        missing=preconditions.SUBSCRIBED,
    ),
    Anomaly(
        18,
        "realtime-lag",
        "figure",
        "how long ago a poll's last offset stopped being the last one known",
        "with --max-lag",
        _JEPSEN,
        times.realtime_lag,
        missing=preconditions.POLLS,
    ),
    Anomaly(
        19,
        "stale-ack-offset",
        "error",
        "an acknowledged offset at or below the largest one known when its send was invoked",
        _SAFE,
        _CHAOS,
        orders.stale_ack_offset,
        missing=preconditions.ACKED,
    ),
    Anomaly(
        20,
        "late-ghost",
        "error",
        "a value of unknown outcome read at or below the largest offset known when its send was invoked",
        _SAFE,
        _CHAOS,
        orders.late_ghost,
        missing=preconditions.UNKNOWN_SENDS,
    ),
    Anomaly(
        21,
        "phantom",
        "error",
        "a value is read that nobody sent to this partition, or whose bytes are damaged",
        "always",
        f"{_CHAOS}; CRC-32C of record batches",
        values.phantom,
        missing=preconditions.READ,
    ),
    Anomaly(
        22,
        "read-then-lost",
        "error",
        "what a consumer got is gone, or replaced, in a complete read that began later",
        "no unclean election: what was read is below the high watermark",
        "the model's promise reads-stable; KIP-101",
        values.read_then_lost,
        missing=preconditions.no_later_scan,
    ),
    Anomaly(
        23,
        "ack-then-gone",
        "error",
        "where a lost or unseen value is: on no replica, on a few, or on a leader that does not serve it",
        _SAFE,
        "the model's promise acked-survives",
        replicas.ack_then_gone,
        missing=preconditions.where_it_is,
    ),
    Anomaly(
        24,
        "replica-divergence",
        "error",
        "replicas in sync differ below the high watermark, in records or in their epoch caches",
        "always",
        "Kafka's ducktape tests; KIP-101, KIP-279",
        replicas.replica_divergence,
        missing=preconditions.TWO_LOGS,
    ),
    Anomaly(
        25,
        "offset-gap",
        "error",
        "a complete read has no record at an offset that no control record takes up",
        "always",
        _CHAOS,
        values.offset_gap,
        missing=preconditions.gaps,
    ),
    Anomaly(
        26,
        "truncation-unnoticed",
        "error",
        "a consumer goes on across an epoch that replaced what it had read, and is not told",
        "always, for consumers that know epochs",
        "KIP-320",
        values.truncation_unnoticed,
        missing=preconditions.EPOCHS,
    ),
    Anomaly(
        27,
        "acks-contract",
        "error",
        "acknowledged with acks=all while fewer than min.insync.replicas nodes held it",
        "acks=all",
        "KIP-966; the model's promise leaders-complete",
        replicas.acks_contract,
        missing=preconditions.contract,
    ),
    Anomaly(
        28,
        "no-progress",
        "error",
        "after a healing, too few new acknowledgements in time although clients sent",
        "always; --progress-acks in --progress-within",
        _CHAOS,
        across=lambda history, graphs, claims: times.progress(history, claims),
        missing_across=lambda history: times.progress_undecided(history, history.claims),
    ),
    Anomaly(
        29,
        "unavailability",
        "figure",
        "the longest time without an acknowledgement, latencies and errors, around each fault and over all",
        "with --max-unavailable",
        _CHAOS,
        across=lambda history, graphs, claims: times.unavailable(history, claims),
        missing_across=lambda history: (
            None if any(p.sends for p in history.partitions.values()) else NoVerdict(True, "no sends")
        ),
    ),
)
"""In the order of their numbers."""
