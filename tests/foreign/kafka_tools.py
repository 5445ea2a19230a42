"""Apache Kafka's own command line tools: what an operator does with a cluster, one tool after the other.

These have no tests of their own against a cluster, so each step here is one of their programs and what it has to say
(its standard output and error, matched by a regular expression; `.` matches the end of a line, too).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import attrs
from tests.foreign.clusters import Cluster, cluster
from tests.foreign.outcomes import Expected, Outcome, State
from tests.foreign.programs import Missing, Ran, foreign_folder, run

from isr_kafka import Unavailable, classpath, command_line, java

HEAP: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SECONDS: Final = 90.0
_GROUPS: Final = "consumer.group.ConsumerGroupCommand"
_CONFIGS: Final = "kafka.admin.ConfigCommand"
_COMPATIBLE: Final = (
    "--offsets-for-times-supported true --cluster-id-supported true --create-topics-supported true "
    "--describe-acls-supported false --describe-configs-supported true --expect-record-too-large-exception false "
    "--idempotent-producer-supported true --num-cluster-nodes 3"
)


@attrs.frozen
class Step:
    """One program, its arguments, and what it has to say. `{at}` is `--bootstrap-server` with the brokers' addresses.

    `program` is a class, below org.apache.kafka.tools if it does not begin with `kafka.`. `code` is how it has to end:
    some have nothing to say when all is well, and neither has a JVM that is killed.
    """

    name: str
    program: str
    arguments: str
    says: str
    stdin: str = ""
    code: int = 0


STEPS: Final = (
    Step("api-versions", "BrokerApiVersionsCommand", "{at}", r"\(id: 3 rack: null.*Fetch\(1\): "),
    Step("cluster-id", "ClusterTool", "cluster-id {at}", r"Cluster ID: \S+"),
    Step("endpoints", "ClusterTool", "list-endpoints {at}", r"3 +127\.0\.0\.1"),
    Step(
        "topics-create",
        "TopicCommand",
        "{at} --create --topic steps --partitions 3 --replication-factor 3 --config min.insync.replicas=2",
        r"Created topic steps\.",
    ),
    Step("topics-list", "TopicCommand", "{at} --list", r"^steps$"),
    Step(
        "topics-describe",
        "TopicCommand",
        "{at} --describe --topic steps",
        r"PartitionCount: 3\s+ReplicationFactor: 3.*Isr: \d,\d,\d\s+Elr:",
    ),
    Step("topics-alter", "TopicCommand", "{at} --alter --topic steps --partitions 4", r"\A\s*\Z"),
    Step("topics-altered", "TopicCommand", "{at} --describe --topic steps", r"PartitionCount: 4"),
    Step(
        "configs-alter",
        _CONFIGS,
        "{at} --alter --entity-type topics --entity-name steps --add-config min.insync.replicas=1",
        r"Completed updating config for topic steps",
    ),
    Step(
        "configs-describe",
        _CONFIGS,
        "{at} --describe --entity-type topics --entity-name steps",
        r"min\.insync\.replicas=1 sensitive=false",
    ),
    Step(
        "configs-broker",
        _CONFIGS,
        "{at} --describe --all --entity-type brokers --entity-name 1",
        r"min\.insync\.replicas=2",
    ),
    Step(
        "verifiable-producer",
        "VerifiableProducer",
        "{at} --topic steps --max-messages 1000 --acks -1",
        r'"name":"tool_data".*"sent":1000.*"acked":1000|"acked":1000.*"sent":1000',
    ),
    Step(
        "verifiable-consumer",
        "VerifiableConsumer",
        "{at} --topic steps --group-id verified --max-messages 1000 --reset-policy earliest",
        r'"name":"offsets_committed".*"success":true.*"name":"shutdown_complete"',
    ),
    Step("console-producer", "ConsoleProducer", "{at} --topic steps", r"\A[>\s]*\Z", "one\ntwo\nthree\n"),
    Step(
        "console-consumer",
        "consumer.ConsoleConsumer",
        "{at} --topic steps --from-beginning --max-messages 1003 --timeout-ms 30000",
        r"Processed a total of 1003 messages",
    ),
    Step("get-offsets", "GetOffsetShell", "{at} --topic steps --time latest", r"steps:0:\d+.*steps:3:\d+"),
    Step(
        "get-offsets-earliest",
        "GetOffsetShell",
        "{at} --topic steps --time earliest",
        r"steps:0:0.*steps:3:0",
    ),
    Step(
        "get-offsets-max-timestamp",
        "GetOffsetShell",
        "{at} --topic steps --time max-timestamp",
        r"steps:\d:\d+",  # of those that have a record, which the producers choose
    ),
    Step(
        "producer-performance",
        "ProducerPerformance",
        "--topic steps --num-records 5000 --record-size 100 --throughput -1 {at}",
        r"5000 records sent",
    ),
    Step(
        "consumer-performance",
        "ConsumerPerformance",
        "{at} --topic steps --num-records 5000",
        r"start\.time.*\d, \d+, ",
    ),
    Step(
        "end-to-end-latency",
        "EndToEndLatency",
        "{at} --topic steps --num-records 50 --producer-acks all --record-size 100",
        r"Percentiles: 50th",
    ),
    Step(
        "client-compatibility",
        "ClientCompatibilityTest",
        "{at} --topic compatible " + _COMPATIBLE,
        r"SUCCESS|All tests completed",
    ),
    Step("groups-list", _GROUPS, "{at} --list", r"^verified$"),
    Step("groups-describe", _GROUPS, "{at} --describe --group verified", r"verified\s+steps\s+\d\s+\d+\s+\d+"),
    Step("groups-state", _GROUPS, "{at} --describe --state --group verified", r"verified.*Empty"),
    Step(
        "groups-reset",
        _GROUPS,
        "{at} --reset-offsets --to-earliest --execute --group verified --topic steps",
        r"verified\s+steps\s+0\s+0",
    ),
    Step("groups-delete-offsets", _GROUPS, "{at} --delete-offsets --group verified --topic steps:0", r"Successful"),
    Step(
        "groups-delete",
        _GROUPS,
        "{at} --delete --group verified",
        r"Deletion of requested consumer groups \('verified'\) was successful",
    ),
    Step("groups", "GroupsCommand", "{at} --list", r"GROUP\s+TYPE\s+PROTOCOL"),
    Step(
        "leader-election",
        "LeaderElectionCommand",
        "{at} --election-type preferred --all-topic-partitions",
        r"Valid replica already elected|Successfully completed leader election|\A\s*\Z",
    ),
    Step("log-dirs", "LogDirsCommand", "{at} --describe --topic-list steps", r'"partition":"steps-3"'),
    Step(
        "dump-log",
        "DumpLogSegments",
        "--files {log} --print-data-log",
        r"Log starting offset: 0.*isvalid: true",
    ),
    Step(
        "features",
        "FeatureCommand",
        "{at} describe",
        r"eligible\.leader\.replicas\.version\s.*SupportedMaxVersion: 1\s+FinalizedVersionLevel: 1",
    ),
    Step("quorum", "MetadataQuorumCommand", "{at} describe --status", r"LeaderId:"),
    Step(
        "reassignments",
        "reassign.ReassignPartitionsCommand",
        "{at} --list",
        r"No partition reassignments found",
    ),
    Step("transactions", "TransactionsCommand", "{at} list", r"TransactionalId"),
    Step("acls", "AclCommand", "{at} --list", r"\A\s*\Z"),
    Step(
        "delete-records",
        "DeleteRecordsCommand",
        "{at} --offset-json-file {records}",
        r"partition: steps-0\s+low_watermark: 1",
    ),
    Step("topics-delete", "TopicCommand", "{at} --delete --topic steps", r"\A\s*\Z"),
    Step("topics-deleted", "TopicCommand", "{at} --describe --topic steps", r"Topic 'steps' does not exist", code=1),
)


def kafka_tools(expected: Expected, only: Sequence[str], tell: Callable[[str], None]) -> list[Outcome]:
    """Each program once, in order: later ones find what earlier ones left."""
    try:
        command = [java(), *HEAP, "-cp", classpath(command_line())]
    except Unavailable as problem:
        raise Missing(str(problem)) from None
    folder, found = foreign_folder("kafka-tools"), list[Outcome]()
    with cluster(folder / "brokers.log", {}) as brokers, (folder / "tests.log").open("w") as log:
        for step in STEPS:
            if (only and step.name not in only) or step.name in expected.left_out:
                continue
            said = run([*command, _class(step), *_arguments(step, brokers)], _SECONDS, stdin=step.stdin)
            log.write(f"== {step.name}: {step.program} {step.arguments}\n{said.said}\n")
            found.append(outcome_of(step, said))
            if found[-1].state is State.FAILED:
                tell(f"  fails: {step.name}")
        return found + brokers.ended()


def outcome_of(step: Step, ran: Ran) -> Outcome:
    """Whether a program ended as it has to and said what it has to: both, for an end says little and silence less."""
    if ran.code is None:
        return Outcome(step.name, State.FAILED, "it did not end")
    if re.search(step.says, ran.said, re.DOTALL | re.MULTILINE) is None:
        return Outcome(step.name, State.FAILED, f"it says {ran.last[:200]!r}")
    if ran.code != step.code:
        return Outcome(step.name, State.FAILED, f"it ends with exit code {ran.code}, and says {ran.last[:200]!r}")
    return Outcome(step.name, State.PASSED)


def _class(step: Step) -> str:
    return step.program if step.program.startswith("kafka.") else f"org.apache.kafka.tools.{step.program}"


def _arguments(step: Step, brokers: Cluster) -> list[str]:
    records = brokers.data / "records.json"
    records.write_text('{"version": 1, "partitions": [{"topic": "steps", "partition": 0, "offset": 1}]}')
    log = brokers.data / "1" / "steps-0" / "00000000000000000000.log"
    return step.arguments.format(at=f"--bootstrap-server {brokers.bootstrap}", log=log, records=records).split()
