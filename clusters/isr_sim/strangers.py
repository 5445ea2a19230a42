"""Who calls and is none of the cluster: brokers and a controller of another one, and somebody who guesses.

A foreign machine stands for a while where one of ours did, at the same address and under the same number, with the
settings of ours and the disk of another cluster: there is a topic of the same name, with other records. Somebody who
guesses knows names, numbers, leaders and leader epochs, which everybody is told, and no broker epoch of a process that
lives.
"""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.effects import CONTROLLER, AppendLog
from isr_broker.core.messages import (
    AlterPartitionRequest,
    BrokerId,
    FetchMetadata,
    FetchRequest,
    Heartbeat,
    Message,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.record_batch import new_batch, stamped
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import Everything, MemoryDisk
from isr_broker.storage.log_directory import LogDirectory
from isr_sim.host import Host, Impostor
from isr_sim.world import STRANGE, World

OTHER_CLUSTER: Final = "another"
NOBODY: Final = 97
"""Where somebody is who guesses, to the network."""

_IDS: Final = (-2, -1, 0, 4, 2**31 - 1)


def foreign_disk(world: World, broker: BrokerId, partitions: list[TopicPartition], topic_id: int) -> MemoryDisk:
    """The disk of a broker of another cluster, with logs of the same names, up to some offset in some epoch."""
    disk, chance = MemoryDisk(), world.random
    world.claims(disk, broker, OTHER_CLUSTER)
    logs = LogDirectory(disk, Settings())
    logs.load()
    for tp in partitions:
        logs.open(tp, topic_id)
        epoch = chance.randint(0, 9)
        for offset in range(chance.randint(1, 60)):
            body = f"of another cluster, {offset}".encode()
            logs.perform(AppendLog(partition=tp, records=stamped(new_batch(body), offset, epoch), flush=True))
    disk.crash(Everything())
    return disk


@attrs.define
class Strangers:
    """Those who call from outside."""

    world: World

    def takes_place(self, host: Host, disk: MemoryDisk) -> MemoryDisk:
        """A machine of another cluster is started where one of ours is down; gives back the disk of ours."""
        own, host.disk = host.disk, disk
        host.impostor, host.cluster = Impostor.FOREIGN, OTHER_CLUSTER
        self.world.note(f"a machine of another cluster is at {host.broker}")
        self.world.start(host)
        return own

    def leaves(self, host: Host, own: MemoryDisk) -> None:
        """It is gone, and ours is at its place again, not started."""
        if host.alive:
            self.world.stop(host, Everything())
        host.disk, host.impostor, host.cluster = own, None, ""

    def guesses(self) -> None:
        """Somebody sends what no broker has sent, to the controller or to a broker."""
        chance, world = self.world.random, self.world
        to = chance.choice((CONTROLLER, CONTROLLER, *sorted(world.hosts)))
        message = self._of_broker() if to != CONTROLLER else self._to_controller()
        target = world.seat if to == CONTROLLER else world.hosts[to]
        if message is not None:
            world.note(f"somebody sends {to} {message!r}")
            world.turn(target, lambda runtime, now: runtime.receive_messages([(NOBODY, to, message)], now))

    def _partition(self) -> TopicPartition | None:
        there = sorted(self.world.controller.partitions)
        return self.world.random.choice(there) if there else None

    def _of_broker(self) -> Message | None:
        """A fetch of a follower that has everything, as it says, in the name of nobody or of an earlier incarnation.

        Whoever names a replica and no incarnation at all, as fetches before version 15 do, is taken at its word, by
        Kafka as by ours: only the listener's certificates or secret keep it out.
        """
        tp, chance = self._partition(), self.world.random
        if tp is None:
            return None
        replica = chance.choice((*_IDS, *self.world.controller.partitions[tp].replicas))
        return FetchRequest(
            partition=tp,
            replica=replica,
            broker_epoch=chance.choice((-1, 0)) if replica in _IDS else 0,
            leader_epoch=self.world.controller.partitions[tp].leader_epoch,
            offset=chance.choice((0, 10, 1_000)),
            last_epoch=self.world.controller.partitions[tp].leader_epoch,
        )

    def _to_controller(self) -> Message | None:
        world, chance = self.world, self.world.random
        alive = [b for b, known in sorted(world.controller.brokers.items()) if not known.fenced]
        broker = chance.choice((*_IDS, *alive))
        tp = self._partition()
        guesses: list[Message] = [
            RegisterBroker(broker=broker, incarnation=2 * STRANGE + world.event_count, host="nowhere", port=1),
            Heartbeat(broker=broker, broker_epoch=chance.choice((-1, 0)), metadata_offset=1 << 40),
            Heartbeat(broker=broker, broker_epoch=-1, metadata_offset=0, wants_to_shut_down=True),
            FetchMetadata(broker=broker, broker_epoch=-1, offset=chance.choice((0, 1 << 40))),
        ]
        if tp is not None:
            p = world.controller.partitions[tp]
            guesses.append(
                AlterPartitionRequest(
                    partition=tp,
                    leader=p.leader if p.leader is not None else broker,
                    broker_epoch=chance.choice((-1, 0)),
                    leader_epoch=p.leader_epoch,
                    partition_epoch=p.partition_epoch,
                    isr=((broker, -1),),
                )
            )
        return chance.choice(guesses)
