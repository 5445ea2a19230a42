"""What is asked of a running cluster beside its topics: features, eligible leader replicas, where logs end, bytes.

The client is a stand-in; `test_audit_command` asks Apache Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from isr_audit import live_replicas
from isr_audit.cluster import Cluster, Partition, Topic
from isr_audit.releases import running

WHOLE = Partition("t", 0, 1, (1, 2, 3), (1, 2, 3))
BROKEN = Partition("t", 1, 1, (1, 2, 3), (1,))
OFFLINE = Partition("u", 0, None, (3, 2, 1), ())
CLUSTER = Cluster((Topic("t", 3, (WHOLE, BROKEN)), Topic("u", 3, (OFFLINE,))), living=(1, 2))


class Standing:
    """A client of a cluster whose broker 2 is far behind, and whose answers come one topic at a time."""

    def __init__(self, level: int = 33, elr: int = 1) -> None:
        self.level, self.elr = level, elr
        self.requests: list[Any] = []
        self.reassignments: dict[tuple[str, int], dict[str, list[int]]] = {}
        self._manager = SimpleNamespace(send=self.send, run=answered)

    def describe_features(self) -> dict[str, dict[str, tuple[int, int]]]:
        return {
            "metadata.version": {"supported": (1, 40), "finalized": (self.level, self.level)},
            "eligible.leader.replicas.version": {"supported": (0, 1), "finalized": (self.elr, self.elr)},
            "share.version": {"supported": (0, 1)},
        }

    def describe_topic_partitions(self, topics: Sequence[str], limit: int, cursor: dict[str, object] | None) -> Any:
        name = "t" if cursor is None else "u"
        eligible, last = {"t": (None, [1]), "u": ([2], None)}[name]
        numbers = {"t": (0, 1), "u": (0,)}[name]
        partitions = [
            {"partition_index": n, "eligible_leader_replicas": eligible, "last_known_elr": last} for n in numbers
        ]
        following = {"topic_name": "u", "partition_index": 0} if cursor is None else None
        return {"topics": [{"name": name, "partitions": partitions}], "next_cursor": following}

    def describe_metadata_quorum(self) -> Any:
        voters = [{"replica_id": 3, "replica_directory_id": None}, {"replica_id": 100, "replica_directory_id": None}]
        return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"current_voters": voters}]}]}

    def list_partition_reassignments(self) -> dict[tuple[str, int], dict[str, list[int]]]:
        return self.reassignments

    async def send(self, request: Any, node: int) -> Any:
        self.requests.append((node, request))
        end = {1: 100, 2: 40}[node]
        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    name=topic.name,
                    partitions=[
                        SimpleNamespace(
                            partition_index=p.partition_index, error_code=0 if node == 1 else 3 * n, offset=end
                        )
                        for n, p in enumerate(topic.partitions)
                    ],
                )
                for topic in request.topics
            ]
        )

    def describe_log_dirs(self, topic_partitions: dict[str, list[int]], brokers: list[int]) -> Any:
        logs = [
            {"partition_index": n, "partition_size": 10 * broker, "is_future_key": future}
            for broker in brokers
            for n in topic_partitions["t"]
            for future in (False, True)
        ]
        return [
            {"broker": b, "log_dirs": [{"error_code": 0, "topics": [{"name": "t", "partitions": logs}]}]}
            for b in brokers
        ]


def answered(asked: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asked())


def told(client: Any) -> Cluster:
    cluster = CLUSTER
    for _, ask in live_replicas.QUESTIONS:
        cluster = ask(cluster, client)
    return cluster


def test_features_say_which_design_runs() -> None:
    assert running(told(Standing())).design == "kip-966"
    assert running(told(Standing())).version == "4.4"
    assert running(told(Standing(elr=0, level=25))).design == "kraft-3.5"


def test_the_voters_are_asked_for_where_there_is_a_quorum() -> None:
    class Ours(Standing):
        def describe_features(self) -> dict[str, dict[str, tuple[int, int]]]:
            return {}

        def describe_metadata_quorum(self) -> Any:
            raise AssertionError("it has no such thing")

    assert told(Standing()).voters == frozenset({3, 100})
    assert told(Ours()).voters is None


def test_the_logs_of_partitions_with_which_something_is_wrong() -> None:
    client = Standing()
    (whole, broken), (offline,) = (t.partitions for t in told(client).topics)
    assert (whole.ends, whole.sizes) == ({}, {})
    assert (broken.ends, broken.sizes) == ({1: 100, 2: 40}, {1: 10, 2: 20})
    assert offline.ends == {1: 100, 2: 40}
    assert [node for node, _ in client.requests] == [1, 2]
    assert {request.replica_id for _, request in client.requests} == {-2}, "only so a follower answers"
    asked = [
        (t.name, p.partition_index) for _, request in client.requests for t in request.topics for p in t.partitions
    ]
    assert asked == [("t", 1), ("u", 0)] * 2


def test_eligible_leader_replicas_come_in_pages_and_may_be_none() -> None:
    (_, broken), (offline,) = (t.partitions for t in told(Standing()).topics)
    assert (broken.elr, offline.elr) == ((), (2,))
    assert (broken.last_known_elr, offline.last_known_elr) == ((1,), ())
    (_, broken), (offline,) = (t.partitions for t in told(Standing(elr=0)).topics)
    assert (broken.elr, offline.elr) == (None, None), "with the feature off there are none to tell of"


def test_a_replica_on_its_way_need_not_be_in_sync() -> None:
    client = Standing()
    client.reassignments = {("t", 1): {"replicas": [1, 2, 3], "adding_replicas": [2, 3], "removing_replicas": [1]}}
    topic = told(client).topics[0]
    assert (topic.partitions[1].members, topic.partitions[1].whole, topic.replicas) == ((1,), True, 1)
    assert topic.partitions[0].members == (1, 2, 3)


def test_a_feature_that_is_off_may_have_no_level() -> None:
    class Off(Standing):
        def describe_features(self) -> Any:
            return {**super().describe_features(), "eligible.leader.replicas.version": {"supported": (0, 1)}}

    assert told(Off()).features["eligible.leader.replicas.version"] == "0"
    assert (running(told(Off())).design, running(told(Off())).also) == ("kraft-3.5", ())


@pytest.mark.parametrize(("levels", "level"), [({}, "0"), ({"finalized": (1, 1)}, "1")])
def test_how_voters_are_known_is_told_by_a_feature(levels: dict[str, tuple[int, int]], level: str) -> None:
    class Known(Standing):
        def describe_features(self) -> Any:
            return {**super().describe_features(), "kraft.version": {"supported": (0, 1), **levels}}

    assert told(Known()).features["kraft.version"] == level
    assert "kraft.version" not in told(Standing()).features


def test_a_cluster_that_tells_nothing_of_it_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka import admin, errors  # type: ignore[import-untyped]

    class Old(Standing):
        def __init__(self, **_: object) -> None:
            super().__init__()

        def describe_features(self) -> Any:
            raise errors.UnsupportedVersionError("no such request")

        def close(self) -> None:
            pass

    monkeypatch.setattr(admin, "KafkaAdminClient", Old)
    found = live_replicas.with_replicas(CLUSTER, "h:1", {})
    assert len(found.notes) == 1
    assert found.notes[0].startswith("features were not told: ")
    assert found.topics[0].partitions[1].ends == {1: 100, 2: 40}
    noted = live_replicas.with_replicas(CLUSTER, "h:1", {"ssl.ca.pem": "x"})
    assert noted.notes == ("features and the ends of logs were not asked for: kafka-python has no ssl.ca.pem",)
