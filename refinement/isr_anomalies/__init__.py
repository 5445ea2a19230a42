"""The history checker: did clients see anything that Kafka's log must not show?

    from isr_anomalies import ANOMALIES, check, paired, read_json

    answer = check(paired(read_json(open("history.jsonl"))))
    print(answer.verdict, [j.name for j in answer.judgements if j.forbidden])

Read in this order: `operations` (lines and operations), `history` (pairing, and the index by partition), `view` (the
version order of a partition), `orders`, `values`, `replicas`, `times`, `cycles` (the anomalies), `evidence` (what a
verdict needs), `catalogue` (the table of all 29), `checker`. `read_json` and `read_edn` read files.

The checker knows nothing of our broker or the model. It judges what clients of any Kafka saw.
"""

from isr_anomalies.catalogue import ANOMALIES, Anomaly
from isr_anomalies.checker import Answer, PartitionResult, check, check_partition, lost_values, merge
from isr_anomalies.history import History, Partition, pair_operations
from isr_anomalies.operations import Claims, Item, Malformed, Value
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
    "Malformed",
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
