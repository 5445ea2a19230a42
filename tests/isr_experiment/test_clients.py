"""What the clients of an experiment note is what they saw."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest
from tests.support.clients import Confluent, create_topic
from tests.support.clusters import Cluster

from isr_anomalies import pair_operations, read_json
from isr_experiment.clients import read_all
from isr_experiment.recorder import TOPIC, Recorder

pytestmark = pytest.mark.sockets


def test_the_final_read_ends_where_it_has_read_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the leader alone has acknowledged is committed after the reader asked where the partition ends."""

    class AskedEarly(confluent_kafka.Consumer):
        def get_watermark_offsets(
            self, partition: confluent_kafka.TopicPartition, timeout: float = -1, cached: bool = False
        ) -> tuple[int, int]:
            low, high = super().get_watermark_offsets(partition, timeout=timeout, cached=cached)
            return low, high - 1

    monkeypatch.setattr(confluent_kafka, "Consumer", AskedEarly)
    with Cluster() as cluster:
        create_topic(cluster.bootstrap, TOPIC, 1, 2)
        cluster.in_sync(TOPIC)
        Confluent(cluster.bootstrap).send_all(TOPIC, [b"1", b"2", b"3"])
        recorder = Recorder(tmp_path / "history.jsonl", {})
        assert read_all(cluster.bootstrap, recorder, 20) == [(0, 1), (1, 2), (2, 3)]
        recorder.close()
    [said] = pair_operations(read_json((tmp_path / "history.jsonl").read_text().splitlines())).operations
    assert said.extra.end == 3
