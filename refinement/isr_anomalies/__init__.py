"""The history checker: did clients see anything that Kafka's log must not show?

    from isr_anomalies import check, pair_operations, read_json

    lines = [
        '{"time": 1, "process": "one", "f": "poll", "type": "invoke"}',
        '{"time": 2, "process": "one", "f": "poll", "type": "ok", "records": {"orders-0": [[0, "a"]]}}',
        '{"time": 3, "process": "two", "f": "poll", "type": "invoke"}',
        '{"time": 4, "process": "two", "f": "poll", "type": "ok", "records": {"orders-0": [[0, "b"]]}}',
    ]
    answer = check(pair_operations(read_json(lines)))
    assert "inconsistent-offset" in [j.name for j in answer.judgements if j.forbidden]

The checker knows nothing of our broker or the model. It judges what clients of any Kafka saw.

Reading order: `operations` (lines and operations), `read_json` and `read_edn` (files), `history` (pairing, which
unknown sends were done, and the index by partition), `view` (the version order of a partition).

- The anomalies: `orders`, `values`, `replicas`, `times`, `cycles`.
- The verdict: `results`, `preconditions` (what a verdict needs), `catalogue` (the table of all 29), `checker`.
"""

from isr_anomalies.catalogue import ANOMALIES, Anomaly
from isr_anomalies.checker import Answer, PartitionResult, check, check_partition, lost_values, merge
from isr_anomalies.history import History, Partition, pair_operations
from isr_anomalies.operations import Claims, Item, MalformedHistory, Value
from isr_anomalies.read_edn import read_edn
from isr_anomalies.read_json import checked_claims, read_json
from isr_anomalies.results import Finding, Judgement, Verdict

__all__ = [
    "ANOMALIES",
    "Anomaly",
    "Answer",
    "Claims",
    "Finding",
    "History",
    "Item",
    "Judgement",
    "MalformedHistory",
    "Partition",
    "PartitionResult",
    "Value",
    "Verdict",
    "check",
    "check_partition",
    "checked_claims",
    "lost_values",
    "merge",
    "pair_operations",
    "read_edn",
    "read_json",
]
