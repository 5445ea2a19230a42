"""The system of cores as a transition system: which steps a state has, each under the name that the cores give it.

A part (a core with its disk, a message, a history) is a number, and a state a tuple of them: the controller, the
history, and then every broker, fetch and AlterPartition. What an input does to a core is found out once, by running
the core, and remembered; a step of the system is a few look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.replica_state import Following, Leading
from isr_broker.designs import DESIGNS, Design
from isr_broker.settings import Settings
from isr_check.reference import Parameters, parameter_values
from isr_lang import Instance
from isr_replay.abstraction import Abstraction
from isr_replay.packed_states import Packing
from isr_replay.system_state import AlterMessage, Broker, FetchMessage, History, settings_for

State: TypeAlias = tuple[int, ...]
"""The controller, the history, n brokers, n fetches, n AlterPartitions."""
Step: TypeAlias = tuple[int, State]
"""The number of a label, and the state after."""
T = TypeVar("T")
NONE = 0
"""No message."""


COMPARABLE = ("kip-966", "kraft-3.5", "kip-903", "kip-841")
"""The designs that model and broker both have, under one name, with truncation on fetch and a controller."""


class NoSuchCores(ValueError):
    """The broker has no such design, or not in the same way: one sentence."""


class Pool(Generic[T]):
    """The values of one kind of part, each with its number and what it contributes to the abstract state."""

    def __init__(self, bits: Callable[[T], int]) -> None:
        self.values: list[T] = []
        self.bits: list[int] = []
        self._numbers: dict[T, int] = {}
        self._bits = bits

    def number(self, value: T) -> int:
        """The number of a value."""
        known = self._numbers.get(value)
        if known is None:
            self.bits.append(self._bits(value))
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known


@attrs.frozen
class Turn:
    """What an input made of a broker: its label, the broker, the message that it sent, and what the history sees."""

    label: int
    broker: int
    message: int = NONE
    acked: int = 0
    read: int = -1


BEYOND, FAILED = -2, -1
"""Instead of a part: it has gone past the bounds, or a core has failed."""


@attrs.frozen
class Verdict:
    """What an input made of the controller: its label, the controller, and the answer to a leader."""

    label: int
    controller: int
    message: int = NONE
    broker: int = -1
    """The broker of whom it is about, if that changed as well."""


@attrs.frozen
class About:
    """What the environment knows of a broker."""

    alive: bool
    leads: bool = False
    fetches_in: int | None = None
    """The leader epoch in which it fetches, None if it does not."""
    end: int = 0
    watermark: int = 0
    members: tuple[int, ...] = ()
    """Of a leader: the others in its ISR."""


class Labels:
    """The actions with their parameters, numbered in the order of the model."""

    def __init__(self, instance: Instance) -> None:
        self.named: list[tuple[str, Parameters]] = [
            (a.name, parameters) for a in instance.actions for parameters in parameter_values(instance, a)
        ]
        self._numbers = {named: i for i, named in enumerate(self.named)}
        self.strangers: dict[tuple[str, Parameters], int] = {}

    def number(self, action: str, *parameters: int) -> int:
        """The number; one of an action that is off, or of parameters that it does not have, is new."""
        found = self._numbers.get((action, parameters))
        if found is not None:
            return found
        return self.strangers.setdefault((action, parameters), len(self.named) + len(self.strangers))

    def name(self, number: int) -> tuple[str, Parameters]:
        """The action and its parameters."""
        if number < len(self.named):
            return self.named[number]
        return next(named for named, n in self.strangers.items() if n == number)


class Cores:
    """The cores under the settings of an instance, and what their inputs do, remembered."""

    def __init__(self, instance: Instance, ids: tuple[int, ...], own_look: bool, planted: Design | None = None) -> None:
        if instance.design.name not in COMPARABLE:
            raise NoSuchCores(f"the cores are compared with {', '.join(COMPARABLE)}, not with {instance.design.name}")
        self.instance, self.ids, self.n = instance, ids, len(ids)
        self.packing = Packing(instance)
        self.view = Abstraction(self.packing, ids)
        self.labels = Labels(instance)
        constants = instance.constants
        acks = {"0": 0, "1": 1, "all": -1}
        self.acks = acks[str(constants["acks"])]
        flush, unclean = constants["flush"] == "always", bool(constants["unclean"])
        design = planted or DESIGNS[instance.design.name]
        minimum, reads = int(constants["min_insync"]), bool(constants["follower_reads"])
        base = settings_for(minimum, unclean, flush, reads, Settings(insync_design=design))
        self.settings = base
        looks = attrs.evolve(design, keeps_out_fenced=own_look and design.keeps_out_fenced)
        self.of_brokers = attrs.evolve(base, insync_design=looks)
        self.controllers: Pool[Controller] = Pool(self.view.controller)
        self.histories: Pool[History] = Pool(self.view.history)
        self.brokers: Pool[Broker] = Pool(self.view.broker)
        self.fetches: list[Pool[FetchMessage]] = [Pool(self._fetch_bits(i)) for i in range(self.n)]
        self.alters: list[Pool[AlterMessage]] = [Pool(self._alter_bits(i)) for i in range(self.n)]
        for pool in self.fetches:
            pool.number(None)
        for alters in self.alters:
            alters.number(None)
        self.turns: dict[tuple[object, ...], Sequence[Turn]] = {}
        self.verdicts: dict[tuple[object, ...], Sequence[Verdict]] = {}
        self.about: list[About] = []
        self.runs = 0

    def _fetch_bits(self, i: int) -> Callable[[FetchMessage], int]:
        return lambda message: self.view.fetch(self.ids[i], message)

    def _alter_bits(self, i: int) -> Callable[[AlterMessage], int]:
        return lambda message: self.view.alter(self.ids[i], message)

    def bits(self, state: State) -> int:
        """The abstraction of a state of the system."""
        n = self.n
        brokers = self.brokers.bits
        total = self.controllers.bits[state[0]] + self.histories.bits[state[1]]
        for i in range(n):
            total += brokers[state[2 + i]]
            total += self.fetches[i].bits[state[2 + n + i]] + self.alters[i].bits[state[2 + 2 * n + i]]
        return total

    def numbered(self, broker: Broker) -> int:
        """The number of a broker, which may be new."""
        number = self.brokers.number(broker)
        if number == len(self.about):
            self.about.append(_about(broker))
        return number


def _about(broker: Broker) -> About:
    replica = broker.replica
    if replica is None:
        return About(broker.node is not None, end=len(broker.log), watermark=broker.checkpoint)
    role = replica.role
    leads = isinstance(role, Leading)
    asks = isinstance(role, Following) and replica.leader is not None
    members = tuple(sorted(role.isr - {broker.me})) if isinstance(role, Leading) else ()
    return About(True, leads, replica.leader_epoch if asks else None, len(broker.log), replica.high_watermark, members)
