"""The system of cores as a transition system: its parts are numbered, and a state is a tuple of these numbers.

A part is a core with its disk, a message, or the history. What an input does to a part is computed once, by running the
core, and remembered. So most steps of the system are a few look-ups, and the replay can compare millions of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

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
"""A label, and the state after the step."""
T = TypeVar("T")
NONE = 0
"""No message."""


COMPARABLE: Final = {
    "kip-966": "kip-966",
    "kraft-3.5": "kraft-3.5",
    "kip-903": "kip-903",
    "kip-841": "kip-841",
    "kafka-4.4-mended": "kip-966",
}
"""The designs that model and broker have, with truncation on fetch and a KRaft controller -> the broker's name."""


WITH_OPERATIONS: Final = ("kafka-4.4-mended",)
"""Those of them in which people work at the cluster."""


class NoSuchCores(ValueError):
    """The broker does not have this design, or not as the model has it; the message says which designs it has."""


NOT_COMPARED: Final = ("own_view", "producers_wait", "copies", "late_news", "snapshots_loaded", "old_metadata")
"""Settings and budgets without which the cores are compared.

The abstraction does not read what a leader's own metadata says, nor since when it leads. The environment sends no
message twice, and hands out the newest metadata only.
"""


class NumberedValues(Generic[T]):
    """The values of one kind of part, each with its number and its contribution to the abstract state."""

    def __init__(self, bits: Callable[[T], int]) -> None:
        self.values: list[T] = []
        self.bits: list[int] = []
        self._numbers: dict[T, int] = {}
        self._bits = bits

    def number(self, value: T) -> int:
        """The number of a value."""
        index = self._numbers.get(value)
        if index is None:
            self.bits.append(self._bits(value))
            index = self._numbers[value] = len(self.values)
            self.values.append(value)
        return index


@attrs.frozen
class BrokerStep:
    """What an input does to a broker: the label, the broker after it, its message, and what the history notes.

    `acked` is a set of records, `read` the record that a consumer got, -1 for none.
    """

    label: int
    broker: int
    message: int = NONE
    acked: int = 0
    read: int = -1


BEYOND, FAILED = -2, -1
"""In place of a part: the step leaves the bounds, or a core has failed."""


@attrs.frozen
class ControllerStep:
    """What an input does to the controller: the label, the controller after it, and its answer to a leader."""

    label: int
    controller: int
    message: int = NONE
    broker: int = -1
    """The broker that the input is about, if it changes in the same step."""


@attrs.frozen
class BrokerSummary:
    """What the environment needs to know of a broker."""

    alive: bool
    leads: bool = False
    fetches_in: int | None = None
    """The leader epoch in which it fetches, None if it does not fetch."""
    end: int = 0
    watermark: int = 0
    members: tuple[int, ...] = ()
    """The other brokers in the ISR, if it leads."""


class Labels:
    """The labels: actions with parameters, numbered in the order of the model."""

    def __init__(self, instance: Instance) -> None:
        self.steps: list[tuple[str, Parameters]] = [
            (a.name, parameters) for a in instance.actions for parameters in parameter_values(instance, a)
        ]
        self._numbers = {named: i for i, named in enumerate(self.steps)}
        self.unknown: dict[tuple[str, Parameters], int] = {}

    def number(self, action: str, *parameters: int) -> int:
        """The label of an action; a new one if the model does not have the action, or not with these parameters."""
        found = self._numbers.get((action, parameters))
        if found is not None:
            return found
        return self.unknown.setdefault((action, parameters), len(self.steps) + len(self.unknown))

    def name(self, number: int) -> tuple[str, Parameters]:
        """The action and the parameters of a label."""
        if number < len(self.steps):
            return self.steps[number]
        return next(named for named, n in self.unknown.items() if n == number)


def check_cores(instance: Instance, processes: bool = False) -> None:
    """NoSuchCores if the broker has no design of this name, which may be of another model altogether, or if a budget of
    the instance is for what no core does.

    Of `processes` nobody asks for what people do to a cluster.
    """
    name = instance.design.name
    if processes and name in WITH_OPERATIONS:
        raise NoSuchCores(f"processes are not driven along {name}: nobody asks them to reassign; insync replay has it")
    if name not in COMPARABLE:
        raise NoSuchCores(
            f"the cores are compared with {', '.join(COMPARABLE)}, not with {name}: they are a partition's protocol as "
            "it is meant, and have neither what a release does wrong nor what there was before KRaft, nor the quorum "
            "(a voter's core is held to kraft by insync conform, see docs/broker.md)"
        )
    lacking = [budget for budget in NOT_COMPARED if instance.constants.get(budget)]
    if lacking:
        raise NoSuchCores(f"the cores are not compared with {' and '.join(map(_option, lacking))}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


class Cores:
    """The cores under the settings of an instance, the numbers of their states, and the steps that are known."""

    def __init__(self, instance: Instance, ids: tuple[int, ...], own_look: bool, planted: Design | None = None) -> None:
        check_cores(instance)
        self.instance, self.ids, self.n = instance, ids, len(ids)
        self.packing = Packing(instance)
        self.view = Abstraction(self.packing, ids)
        self.labels = Labels(instance)
        constants = instance.constants
        acks = {"0": 0, "1": 1, "all": -1}
        self.acks = acks[str(constants["acks"])]
        flush, unclean = constants["flush"] == "always", bool(constants["unclean"])
        design = planted or DESIGNS[COMPARABLE[instance.design.name]]
        minimum, reads = int(constants["min_insync"]), bool(constants["follower_reads"])
        base = settings_for(minimum, unclean, flush, reads, Settings(insync_design=design))
        self.settings = base
        looks = attrs.evolve(design, keeps_out_fenced=own_look and design.keeps_out_fenced)
        self.of_brokers = attrs.evolve(base, insync_design=looks)
        self.controllers: NumberedValues[Controller] = NumberedValues(self.view.controller)
        self.histories: NumberedValues[History] = NumberedValues(self.view.history)
        self.brokers: NumberedValues[Broker] = NumberedValues(self.view.broker)
        self.fetches: list[NumberedValues[FetchMessage]] = [NumberedValues(self._fetch_bits(i)) for i in range(self.n)]
        self.alters: list[NumberedValues[AlterMessage]] = [NumberedValues(self._alter_bits(i)) for i in range(self.n)]
        for pool in self.fetches:
            pool.number(None)
        for alters in self.alters:
            alters.number(None)
        self.broker_steps: dict[tuple[object, ...], Sequence[BrokerStep]] = {}
        self.controller_steps: dict[tuple[object, ...], Sequence[ControllerStep]] = {}
        self.about: list[BrokerSummary] = []
        self.runs = 0
        self.has_operations = "replicas" in self.packing.types
        """Whether the design has what people do to a cluster: not every broker has a replica all the time."""

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

    def broker_number(self, broker: Broker) -> int:
        """The number of a broker; a new broker gets a new number."""
        number = self.brokers.number(broker)
        if number == len(self.about):
            self.about.append(_summary(broker))
        return number


def _summary(broker: Broker) -> BrokerSummary:
    replica = broker.replica
    if replica is None:
        return BrokerSummary(broker.node is not None, end=len(broker.log), watermark=broker.checkpoint)
    role = replica.role
    leads = isinstance(role, Leading)
    asks = isinstance(role, Following) and replica.leader is not None
    members = tuple(sorted(role.isr - {broker.me})) if isinstance(role, Leading) else ()
    return BrokerSummary(
        True, leads, replica.leader_epoch if asks else None, len(broker.log), replica.high_watermark, members
    )
