"""An audit as metrics, in the text format of Prometheus: for node_exporter's textfile collector, or to be scraped."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from insync_cli import terminal
from isr_audit.condition import Trouble

if TYPE_CHECKING:
    from insync_cli.exits import Exit
    from isr_audit.condition import Condition
    from isr_audit.report import Audit

Sample: TypeAlias = "tuple[Mapping[str, str], int]"
"""The labels of a value, and the value."""

TROUBLES: Final = {t: t.name.lower() for t in Trouble}


def metrics(audit: Audit, code: Exit) -> str:
    """Every metric of an audit; all are gauges."""
    now = [c.trouble for c in audit.now]
    topics = [(row, topic.name) for row in audit.rows for topic in row.topics]
    return "".join(
        (
            _gauge("described_partitions", "Partitions that were described.", [({}, len(audit.cluster.partitions))]),
            _gauge(
                "partitions",
                "Partitions with which this is the worst that is wrong now.",
                [({"trouble": word}, now.count(trouble)) for trouble, word in TROUBLES.items()],
            ),
            _gauge(
                "partition_trouble",
                "A partition with which this is the worst that is wrong now.",
                [({**_labels_of(c), "trouble": TROUBLES[c.trouble]}, 1) for c in audit.now],
            ),
            _gauge(
                "broker_missing_from_partitions",
                "Partitions of whose in-sync set this broker ought to be a member, and is not.",
                [({"broker": str(b)}, n) for b, n in _absences(audit)],
            ),
            _gauge(
                "topic_at_risk",
                "Whether one crash, power loss or lost disk, or nothing, may lose a record acknowledged with acks=all.",
                [({"topic": name}, row.at_risk) for row, name in topics],
            ),
            _gauge(
                "topic_undecided",
                "Whether it was not decided what one failure loses.",
                [({"topic": name}, row.is_undecided) for row, name in topics],
            ),
            _gauge(
                "unclean_election_loses",
                "Records behind the longest log that was told: what an unclean election of this replica would drop.",
                [
                    ({**_labels_of(c), "broker": str(x.replica)}, x.lacks)
                    for c in audit.now
                    for x in c.candidates
                    if x.lacks is not None
                ],
            ),
            _gauge("known_bugs", "Known bugs of the release that runs.", [({}, len(audit.bugs))]),
            outcome(code),
        )
    )


def _labels_of(condition: Condition) -> dict[str, str]:
    return {"topic": condition.partition.topic, "partition": str(condition.partition.number)}


def _absences(audit: Audit) -> list[tuple[int, int]]:
    """Every broker that was told of, and from how many partitions it is missing."""
    missing = Counter(r for p in audit.cluster.partitions for r in p.members if r not in p.isr)
    return [(b, missing[b]) for b in audit.cluster.broker_ids]


def write_metrics(file: Path, text: str) -> None:
    """Replace the file at once, so that nobody reads half of it; UsageError where it cannot be written."""
    beside = file.with_name(f".{file.name}.new")
    terminal.write_text(beside, text)
    os.replace(beside, file)


def outcome(code: Exit) -> str:
    """The metrics that are left when the cluster did not answer: what was known of it is not repeated."""
    said = _gauge("exit_code", "What insync audit would have exited with.", [({}, code)])
    return said + _gauge("timestamp_seconds", "When this was written.", [({}, round(time.time()))])


def _gauge(name: str, help_text: str, samples: Sequence[Sample]) -> str:
    """A metric with its values; nothing at all where it has none."""
    if not samples:
        return ""
    full = f"insync_audit_{name}"
    head = f"# HELP {full} {help_text}\n# TYPE {full} gauge\n"
    return head + "".join(f"{full}{_labels(labels.items())} {int(value)}\n" for labels, value in samples)


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    said = ",".join(f'{name}="{_escaped_value(value)}"' for name, value in labels)
    return f"{{{said}}}" if said else ""


def _escaped_value(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
