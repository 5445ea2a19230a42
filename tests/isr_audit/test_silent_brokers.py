"""What one broker told is not what all brokers have.

Without these the settings of one broker's file would stand for brokers of which nobody told anything, and an audit
would be green by a minimum that two of three leaders do not have.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from insync_cli.main import main
from isr_audit import live
from isr_audit.answers import read_table
from isr_audit.audit import MAY_BE_LOST, SURVIVES, UNKNOWN, AnswerSource, Row, audit_rows, no_exploration
from isr_audit.cluster import FLUSH, MIN_INSYNC, UNCLEAN, Cluster, Partition, merge_clusters
from isr_audit.condition import Trouble, conditions
from isr_audit.descriptions import read_description
from isr_audit.releases import release_of, running

HEADING = "Topic: t\tTopicId: a\tPartitionCount: 3\tReplicationFactor: 3\tConfigs: \n"
PARTITIONS = (
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
    "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
    "\tTopic: t\tPartition: 2\tLeader: 3\tReplicas: 3,1,2\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
)
ELR_ON = (
    "Feature: metadata.version\tFinalizedVersionLevel: 4.1-IV1\tEpoch: 1\n"
    "Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: 1\tEpoch: 1\n"
)
BARE = ELR_ON + HEADING + PARTITIONS
HEADLESS = ELR_ON + PARTITIONS


def file_of(broker: int | str, *settings: str) -> str:
    """A server.properties; of a broker without a number."""
    own = f"node.id={broker}" if broker else "process.roles=broker"
    return "\n".join((own, *settings)) + "\n"


def dynamic(broker: int, setting: str) -> str:
    return f"Dynamic configs for broker {broker} are:\n  {setting} sensitive=false synonyms={{}}\n"


def merged(*texts: str) -> Cluster:
    parts = [read_description(text, f"file {n}") for n, text in enumerate(texts)]
    return merge_clusters(part for part in parts if part is not None)


def row_of(cluster: Cluster) -> Row:
    (row,) = audit_rows(cluster, running(cluster), AnswerSource(read_table(), no_exploration))
    return row


def verdict(row: Row, fault: str = "one-power-loss") -> str:
    (line,) = (x for x in row.lines if (x.acks, x.fault.name) == ("all", fault))
    return line.verdict


TWO, FLUSHED, CLEAN = "min.insync.replicas=2", "log.flush.interval.messages=1", "unclean.leader.election.enable=false"
ONE_TOLD = [
    (BARE, [dynamic(1, TWO)], (MIN_INSYNC,), "2 3"),
    (BARE, [file_of(1, TWO)], (MIN_INSYNC,), "2 3"),
    (BARE, [file_of(1, FLUSHED)], (FLUSH,), "2 3"),
    (BARE, [dynamic(3, FLUSHED)], (FLUSH,), "1 2"),
    (BARE, [file_of(1, CLEAN)], (UNCLEAN,), "2 3"),
    (BARE, [dynamic(2, CLEAN), file_of(1, TWO, FLUSHED)], (MIN_INSYNC, UNCLEAN, FLUSH), "2 3"),
    (BARE, [file_of(1, TWO), file_of(2, TWO)], (MIN_INSYNC,), "3"),
    (BARE, [file_of(1, TWO), file_of(2, TWO), dynamic(3, FLUSHED)], (MIN_INSYNC,), "3"),
    (BARE, [file_of("", TWO)], (MIN_INSYNC,), "1 2 3"),
    (BARE, [file_of(7, TWO)], (MIN_INSYNC,), "1 2 3"),
    (HEADLESS, [file_of(1, "broker.rack=a")], (MIN_INSYNC, UNCLEAN, FLUSH), "2 3"),
]


@pytest.mark.parametrize(("text", "settings", "unknown", "brokers"), ONE_TOLD, ids=range(len(ONE_TOLD)))
def test_a_setting_of_some_brokers_is_not_that_of_all(
    text: str, settings: list[str], unknown: tuple[str, ...], brokers: str
) -> None:
    """Whoever leads or has a replica and told nothing may have any value, and is named."""
    for texts in ([text, *settings], [*settings, text]):
        row = row_of(merged(*texts))
        assert row.kind.open == unknown
        if {MIN_INSYNC, FLUSH} & set(unknown):
            assert verdict(row) == UNKNOWN
        (note,) = (n for n in row.notes if n.startswith("nobody told") and n.split(": ")[0].endswith(f" {brokers}"))
        assert "give the settings of each" in note


ALL_TOLD: list[tuple[list[str], str]] = [
    ([], MAY_BE_LOST),
    ([file_of(1, TWO), file_of(2, TWO), dynamic(3, TWO)], SURVIVES),
    ([file_of(n, FLUSHED) for n in (1, 2, 3)], SURVIVES),
    ([dynamic(1, TWO).replace("Dynamic configs for broker 1", "Default configs for brokers in the cluster")], SURVIVES),
    ([dynamic(1, "min.insync.replicas=1")], MAY_BE_LOST),
    ([file_of(1, "min.insync.replicas=1", "log.flush.interval.messages=10000")], MAY_BE_LOST),
    ([file_of(1, "broker.rack=a")], MAY_BE_LOST),
    ([file_of(1, TWO), file_of(2, TWO), file_of(3)], MAY_BE_LOST),
    ([file_of(1, FLUSHED), file_of(2), file_of(3, FLUSHED)], MAY_BE_LOST),
    ([file_of(1, TWO), file_of(2, TWO), file_of(3, TWO), file_of(9, "process.roles=controller")], SURVIVES),
]


@pytest.mark.parametrize(("settings", "answer"), ALL_TOLD, ids=range(len(ALL_TOLD)))
def test_where_every_value_is_told_or_the_weakest_is_there_is_an_answer(settings: list[str], answer: str) -> None:
    """A topic alone has Kafka's default, as has a broker whose file is silent beside one that is not."""
    row = row_of(merged(BARE, *settings))
    assert (row.kind.open, verdict(row)) == ((), answer)
    assert verdict(row_of(merged(BARE.replace("Configs: ", f"Configs: {TWO}"), *settings))) == SURVIVES


def test_a_broker_without_a_value_beside_one_that_has_it_disagrees() -> None:
    cluster = merged(BARE, file_of(1, TWO), file_of(2))
    assert cluster.disagreeing() == (MIN_INSYNC,)
    assert merged(BARE, file_of(1), file_of(2)).disagreeing() == ()


def test_unclean_election_by_default_is_that_of_a_silent_file_too() -> None:
    """Before 0.11 it was on by default."""
    cluster = merged(BARE, file_of(1, CLEAN), file_of(2), file_of(3, CLEAN))
    (topic,) = cluster.topics
    assert cluster.unclean(topic, default=True)
    assert not cluster.unclean(topic)


def test_the_release_of_one_broker_is_not_that_of_all() -> None:
    """inter.broker.protocol.version is a setting of each broker, and an older protocol may lose more."""
    text = (HEADING + PARTITIONS).replace("Elr: \t", "Elr: N/A\t")
    told = ["zookeeper.connect=z:2181", "inter.broker.protocol.version=2.8"]
    one, every = merged(text, file_of(1, *told)), merged(text, *(file_of(n, *told) for n in (1, 2, 3)))
    assert running(one).doubt == "the release of brokers 2 3 was not told, and an older one may lose it"
    assert "of brokers 2 3, and what survives is UNKNOWN" in running(one).notes[0]
    assert (running(every).doubt, running(one, release_of("2.8")).doubt) == ("", "")
    assert SURVIVES not in {x.verdict for x in row_of(one).lines}


def test_writes_below_a_minimum_that_was_not_told_are_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From end to end: the code is that of what is not decided, and one out of the ISR is worse."""
    (tmp_path / "t.txt").write_text(BARE, encoding="utf-8")
    (tmp_path / "b.txt").write_text(dynamic(1, TWO), encoding="utf-8")
    assert main(["audit", "--describe", str(tmp_path / "t.txt"), str(tmp_path / "b.txt"), "--json", "-"]) == 20
    report = json.loads(capsys.readouterr().out)
    assert report["rows"][0]["settings"]["min_insync"] is None
    alone = merged(BARE.replace("Isr: 1,2,3", "Isr: 1", 1), dynamic(1, TWO))
    (worst,) = conditions(alone)
    assert worst.trouble is Trouble.UNDER_REPLICATED
    assert "whether writes are refused is not known" in worst.says


# A running cluster


def entry(value: str | None, source: int) -> SimpleNamespace:
    return SimpleNamespace(value=value, source=source)


OWN, OF_FILE, DEFAULT = 1, 4, 5


class Standing:
    """A client of three brokers with a topic; broker 2 answers for it."""

    minima: dict[int, str | None]
    source = OF_FILE
    living = (1, 2, 3)

    def __init__(self, *_: object, **__: object) -> None: ...

    def list_topics(self, **_: object) -> Any:
        partition = SimpleNamespace(id=0, leader=1, replicas=[1, 2, 3], isrs=[1, 2, 3])
        return SimpleNamespace(
            topics={"t": SimpleNamespace(partitions={0: partition})}, brokers=dict.fromkeys(self.living)
        )

    def describe_configs(self, resources: list[Any], **_: object) -> dict[Any, Future[Any]]:
        return {resource: self.answer(resource) for resource in resources}

    def answer(self, resource: Any) -> Future[Any]:
        future = Future[Any]()
        minimum = self.minima[2] if resource.name == "t" else self.minima[int(resource.name)]
        if minimum is None:
            future.set_exception(TimeoutError())
            return future
        flush = "flush.messages" if resource.name == "t" else "log.flush.interval.messages"
        future.set_result(
            {
                "min.insync.replicas": entry(minimum, self.source if resource.name == "t" else OF_FILE),
                "unclean.leader.election.enable": entry("false", DEFAULT),
                flush: entry(str(2**63 - 1), DEFAULT),
            }
        )
        return future


@pytest.mark.parametrize(
    ("minima", "source", "living", "minimum", "unknown"),
    [
        (("2", "2", "2"), OF_FILE, (1, 2, 3), 2, ()),
        (("1", "2", "2"), OF_FILE, (1, 2, 3), 1, ()),
        (("1", "2", "2"), OWN, (1, 2, 3), 2, ()),
        (("2", "2", None), OF_FILE, (1, 2, 3), 1, (MIN_INSYNC, UNCLEAN)),
        (("2", "2", None), OF_FILE, (1, 2), 2, ()),
        (("2", "2", None), OWN, (1, 2, 3), 2, (UNCLEAN,)),
    ],
    ids=range(6),
)
def test_a_running_cluster_is_asked_broker_by_broker(
    monkeypatch: pytest.MonkeyPatch,
    minima: tuple[str | None, ...],
    source: int,
    living: tuple[int, ...],
    minimum: int,
    unknown: tuple[str, ...],
) -> None:
    """What a topic inherits is that of the broker that answered, and others may have less; who is down is not asked."""
    admin = pytest.importorskip("confluent_kafka.admin")
    monkeypatch.setattr(admin, "AdminClient", Standing)
    monkeypatch.setattr(Standing, "minima", dict(enumerate(minima, 1)), raising=False)
    monkeypatch.setattr(Standing, "source", source)
    monkeypatch.setattr(Standing, "living", living)
    cluster = live.read_cluster("h:1", {})
    row = row_of(cluster)
    assert (row.kind.settings.min_insync, row.kind.open) == (minimum, unknown)
    assert cluster.partitions == (Partition("t", 0, 1, (1, 2, 3), (1, 2, 3)),)
