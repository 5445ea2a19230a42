"""Runs in which an operator moves partitions between brokers, besides all else that goes wrong.

It is no `Kind` of fault: one more of them would make other histories of all seeds. Whoever wants it says `MovingRun`
instead of `Run`, or `insync simulate --moves`. Its chance is its own. Where the topic grows, too, all targets have as
many replicas as its other partitions, for a new partition of another size is refused. The model of today's design knows
no reassignment, so these runs are not to be validated.
"""

from __future__ import annotations

from random import Random
from typing import Final

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import BrokerId, Millis, ReassignPartition, TopicPartition
from isr_broker.runtime import Runtime
from isr_sim.faults import Kind
from isr_sim.simulate import Run

_EVERY_MS: Final[Millis] = 700
_FACTORS: Final = (3, 3, 3, 2, 4)


@attrs.define
class MovingRun(Run):
    """A run with an operator who asks for other replicas every now and then, or cancels."""

    whim: Random = attrs.field(init=False)

    def go_wrong(self) -> None:
        """The safety phase."""
        self.whim = Random(f"reassignments {self.seed}")
        self.world.after(self.whim.randint(1, _EVERY_MS), self._moves)
        Run.go_wrong(self)

    def _moves(self) -> None:
        if self.faults.over:
            return
        brokers, number = sorted(self.world.hosts), self.whim.randrange(self.config.partitions)
        grows = Kind.PARTITIONS in self.config.kinds
        factor = self.config.settings.default_replication_factor if grows else self.whim.choice(_FACTORS)
        target: tuple[BrokerId, ...] | None = tuple(self.whim.sample(brokers, min(factor, len(brokers))))
        if self.whim.random() < 0.2:
            target = None
        request = ReassignPartition(request=0, partition=TopicPartition("t", number), replicas=target)
        self.world.note(f"partition {number} is to have replicas {target}")

        def happens(runtime: Runtime, now: Millis) -> None:
            runtime.receive_messages([(self.world.seat.broker, CONTROLLER, request)], now)

        self.world.turn(self.world.seat, happens)
        self.world.after(self.whim.randint(1, 2 * _EVERY_MS), self._moves)
