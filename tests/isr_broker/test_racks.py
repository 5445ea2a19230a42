"""Consumers are sent to a replica in their own rack, and read there (KIP-392)."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import confluent_kafka
import confluent_kafka.admin
import pytest
from tests.support.clients import Confluent, confluent_read, create_topic
from tests.support.clusters import QUICK, Cluster

from isr_broker.core.inputs import Consume
from isr_broker.core.messages import BrokerId, Millis
from isr_broker.environment import Address
from isr_broker.runtime import ClientRequest, Runtime, Then
from isr_broker.server import Server
from isr_broker.settings import RACK_AWARE, BadSetting, Settings

READS: dict[BrokerId, int] = {}


class Counting(Runtime):
    """Counts what consumers ask of it."""

    def ask(self, make: Callable[[int], ClientRequest], then: Then, now: Millis) -> int:
        """Counted, and asked."""
        asked = make(0)
        if isinstance(asked, Consume) and asked.partition.topic == "racks":
            READS[self.me] = READS.get(self.me, 0) + 1
        return Runtime.ask(self, make, then, now)


class Racks(Cluster):
    """Each broker in a rack of its own name."""

    def start(self, broker: BrokerId) -> None:
        here: Address = ("127.0.0.1", self.ports[broker])
        settings = attrs.evolve(
            self.settings, broker_rack=f"rack-{broker}", replica_selector_class=RACK_AWARE, insync_follower_reads=True
        )
        server = Server(
            broker,
            settings,
            self.disks[broker],
            here,
            ("127.0.0.1", self.ports[1]),
            with_controller=broker == 1,
            made_of=Counting,
        )
        self.servers[broker] = server
        self.do(server.start())


def read(bootstrap: str, rack: str, count: int) -> list[bytes]:
    return confluent_read(bootstrap, "racks", count, settings={"client.rack": rack})


@pytest.mark.sockets
def test_a_real_client_reads_in_its_own_rack_and_elsewhere_from_the_leader() -> None:
    with Racks(3, QUICK) as cluster:
        create_topic(cluster.bootstrap, "racks", 1, 2)
        cluster.in_sync("racks")
        values = [b"%04d" % n for n in range(300)]
        Confluent(cluster.bootstrap, {"acks": "all"}).send_all("racks", values)
        leader = cluster.leader("racks")
        follower = next(b for b in (1, 2, 3) if b != leader)
        listed = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=20)
        assert len(listed.brokers) == 3
        for rack, reader in ((f"rack-{follower}", follower), (f"rack-{leader}", leader), ("nowhere", leader)):
            READS.clear()
            assert read(cluster.bootstrap, rack, 300) == values
            assert set(READS) == {reader}, f"a client in {rack}"


def test_a_selector_that_does_not_exist_is_refused_and_one_that_does_lets_followers_serve() -> None:
    with pytest.raises(BadSetting, match=r"replica\.selector\.class"):
        Settings.from_properties({"replica.selector.class": "Best"})
    assert Settings.from_properties({"replica.selector.class": RACK_AWARE}).insync_follower_reads
    assert not Settings.from_properties({}).insync_follower_reads
