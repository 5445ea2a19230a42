"""The history checker: did clients see anything that Kafka's log must not show?

    from isr_anomalies import ANOMALIES, check, paired, read_json

    answer = check(paired(read_json(open("history.jsonl"))))
    print(answer.verdict, [j.name for j in answer.judgements if j.forbidden])

Reading order: `operations` (what a history is), `index` (one partition's share of it), `view` (its version order),
`orders`, `values`, `replicas`, `times`, `cycles` (the anomalies), `catalogue` (the table of all 29), `checking`.

It knows nothing of the broker or the model: it judges what clients saw, of any Kafka.
"""

from isr_anomalies.catalogue import ANOMALIES, Anomaly
from isr_anomalies.checking import Answer, PartitionResult, check, check_partition, merge
from isr_anomalies.index import History, Partition, paired
from isr_anomalies.operations import Claims, Item, Malformed
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
    "Verdict",
    "check",
    "check_partition",
    "checked_claims",
    "merge",
    "paired",
    "read_edn",
    "read_json",
]
