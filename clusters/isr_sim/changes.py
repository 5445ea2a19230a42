"""What an operator changes while the cluster runs: settings of the topic, of the controller, of a broker; partitions.

A change is made by the controller itself, in one turn, so that nothing of it is under way when the next fault strikes.
Kafka clears the ELR with each change of `min.insync.replicas`. So it is changed only while no disk has lost anything
that is not made good: else whoever has the records may be cleared, and who lost them be left.
"""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker import topic_configs
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import AlterTopicConfigs, Millis
from isr_broker.runtime import Runtime
from isr_sim.clients import Admin
from isr_sim.host import Host
from isr_sim.world import World

MOST_PARTITIONS: Final = 3
_MINIMA: Final = ("1", "2", "2", "3")
_RETENTION_BYTES: Final = (-1, 900, 2_500)
_SEGMENT_BYTES: Final = (300, 700, 2_000)


@attrs.define
class Changes:
    """An operator who changes settings of a topic, and adds partitions to it."""

    world: World
    admin: Admin

    def sets(self, *changes: tuple[str, str | None]) -> None:
        """The topic gets settings of its own, or goes by the controller's again where the value is None."""
        request = AlterTopicConfigs(request=0, topic=self.admin.topic, changes=changes)
        self.world.note(f"the topic is set {dict(changes)}")

        def happens(runtime: Runtime, now: Millis) -> None:
            runtime.receive_messages([(self.world.seat.broker, CONTROLLER, request)], now)

        self.world.turn(self.world.seat, happens)

    def sets_minimum(self) -> None:
        """Another `min.insync.replicas`, or the one that it has, or none of its own."""
        value = self.world.random.choice((*_MINIMA, None))
        self.sets((topic_configs.MIN_ISR, value))

    def sets_default_minimum(self) -> None:
        """The controller's process starts again with another default."""
        seat, value = self.world.seat, int(self.world.random.choice(_MINIMA))
        seat.settings = attrs.evolve(seat.settings or self.world.settings, min_insync_replicas=value)
        self.world.restart_controller()

    def allows_unclean(self, lasting: Millis) -> None:
        """For a while anybody may lead who is there."""
        self.sets((topic_configs.UNCLEAN, "true"))
        self.world.after(lasting, lambda: self.sets((topic_configs.UNCLEAN, None)))

    def sets_retention(self, host: Host) -> None:
        """The next process of a broker keeps so many bytes of each log, in segments of such a size."""
        chance = self.world.random
        host.settings = attrs.evolve(
            host.settings or self.world.settings,
            log_retention_bytes=chance.choice(_RETENTION_BYTES),
            log_segment_bytes=chance.choice(_SEGMENT_BYTES),
        )

    def adds_partition(self) -> bool:
        """The topic is to have one more partition, up to some number."""
        where = self.admin.where
        if len(where) >= MOST_PARTITIONS:
            return False
        brokers = list(where[0])
        self.world.random.shuffle(brokers)
        self.admin.where = (*where, tuple(brokers))
        self.admin.grows(range(len(where), len(where) + 1))
        return True
