"""kcat, confluent-kafka, kafka-python and aiokafka, each with acks 0, 1 and all, idempotent, compressed, in a group.

Without these, a setting that only one client uses on the wire could fail, and the table of clients would not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.isr_broker.test_clients import numbered, tps
from tests.support import clients
from tests.support.clusters import QUICK, Cluster
from tests.support.producing import CLIENTS, CODECS, produce, read_as_group
from tests.support.writers import read

from isr_broker.core.record_batch import batches
from isr_broker.settings import Settings

pytestmark = [pytest.mark.processes, pytest.mark.sockets]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Nobody is killed here, so no broker of a busy machine may be taken for dead: a group would lose its members."""
    calm = {"broker.session.timeout.ms": "30000", "replica.lag.time.max.ms": "30000"}
    with Cluster(settings=Settings.from_properties(QUICK.properties() | calm)) as running:
        yield running


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, needs_package: Callable[[str], None]) -> str:
    name = str(request.param)
    if name == "kcat":
        needs_package("kcat")
    return name


def topic_for(cluster: Cluster, *words: str) -> str:
    topic = "-".join(words)
    clients.create_topic(cluster.bootstrap, topic, 1, 2)
    cluster.in_sync(topic)
    return topic


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_client_produces_and_consumes(cluster: Cluster, client: str, acks: str) -> None:
    topic = topic_for(cluster, client, "acks", acks)
    produce(client, cluster.bootstrap, topic, numbered(200), acks)
    assert read(client, cluster.bootstrap, topic, 200) == numbered(200)


@pytest.mark.parametrize("codec", CODECS)
def test_each_client_may_be_idempotent_and_compress(cluster: Cluster, client: str, codec: str) -> None:
    topic = topic_for(cluster, client, codec)
    produce(client, cluster.bootstrap, topic, numbered(200), codec=codec, once=True)
    assert read(client, cluster.bootstrap, topic, 200) == numbered(200)
    log = cluster.servers[cluster.leader(topic)].runtime.logs.logs[tps(cluster, topic)[0]]
    found = list(batches(log.contents(), check=True))
    large = [batch for batch in found if batch.count > 9]  # a client leaves as it is what would not get smaller
    assert {batch.attributes & 7 for batch in large} == {list(CODECS).index(codec)}, "passed through as it was sent"
    assert all(batch.idempotent for batch in found)


def test_each_client_reads_as_a_group_and_goes_on_where_it_was(cluster: Cluster, client: str) -> None:
    topic = topic_for(cluster, client, "group")
    produce("confluent-kafka", cluster.bootstrap, topic, numbered(120))
    first = read_as_group(client, cluster.bootstrap, f"g-{client}", topic, 70)
    assert first == numbered(70)
    assert read_as_group(client, cluster.bootstrap, f"g-{client}", topic, 50) == numbered(120)[70:]
