"""Of which cluster a request is, in every request of a broker (KIP-78 names the id).

BrokerRegistration and Fetch have a field for it. Kafka's other requests between brokers have none, so there it travels
as a tagged field of the header, which whoever does not know it skips (KIP-482). As in Kafka a request that names no
cluster is not compared (KafkaRaftClient.hasValidClusterId), but a registration always is
(ClusterControlManager.registerBroker). The controller's core looks at that one again, whoever drives it.
"""

from __future__ import annotations

from typing import Final

from isr_broker.wire import protocol
from isr_broker.wire.protocol import Fields, Request, Tags

CLUSTER_TAG: Final = 10_002


def cluster_tags(cluster: str) -> Tags:
    """What a request says in its header of the cluster that it is of."""
    return {CLUSTER_TAG: cluster.encode()}


def is_of_ours(request: Request) -> bool:
    """Whether a heartbeat or an AlterPartition is of a broker of this kind, for Kafka's have no such field."""
    return CLUSTER_TAG in request.tags


def is_of_follower(body: Fields) -> bool:
    """Whether a Fetch says a replica id, as a consumer's does not; since version 15 it is in `replica_state`."""
    return max(body.number("replica_id"), body.part("replica_state").number("replica_id")) >= 0


def names_another_cluster(request: Request, cluster: str) -> bool:
    """Whether a request is meant for another cluster than this one: its answer is INCONSISTENT_CLUSTER_ID.

    That of a consumer is not compared: KafkaApis never does, and of a follower it matters.
    """
    if request.key == protocol.FETCH and not is_of_follower(request.body):
        return False
    if request.key == protocol.BROKER_REGISTRATION or request.body.has("cluster_id"):
        return request.body.text("cluster_id") != cluster
    tag = request.tags.get(CLUSTER_TAG)
    return tag is not None and tag != cluster.encode()
