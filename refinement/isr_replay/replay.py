"""Model and cores in lock-step: every edge of the model's graph within its bounds, compared with what the cores do.

The cores are explored breadth first, a state of the system at a time. What they do there must be a step of the model
from the state's abstraction, under the same name, with the same parameters, to the abstraction of what they became.
And each step of the model must be taken by the cores in some state of the system with that abstraction. When both hold
to the end, the cores reach every state that the model reaches, and no other.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from enum import StrEnum

import attrs
import numpy as np

from isr_broker.designs import Design as Planted
from isr_check.native.steps import Stepper
from isr_check.reference import Parameters
from isr_lang import Design, Instance
from isr_lang.declare import Value
from isr_model import KIP_966
from isr_replay.core_system import State
from isr_replay.environment import World
from isr_replay.packed_states import WORD

EXAMPLES = 20
"""Mismatches that are kept with their path."""


class Kind(StrEnum):
    """How model and cores can differ; the names are Mocket's."""

    INCONSISTENT = "inconsistent state"
    MISSING = "missing action"
    UNEXPECTED = "unexpected action"


Named = tuple[str, Parameters]


@attrs.frozen
class Difference:
    """A variable, and its value by the cores and by the model."""

    variable: str
    cores: object
    model: object


@attrs.frozen
class Mismatch:
    """What is not alike: after the steps of `path` the cores do, or do not do, this."""

    kind: Kind
    action: str
    parameters: Parameters
    path: tuple[Named, ...]
    differences: tuple[Difference, ...] = ()


@attrs.frozen(kw_only=True)
class Replayed:
    """What was compared. `complete` says that nothing was left to explore."""

    design: str
    constants: Mapping[str, Value]
    complete: bool
    states: int
    systems: int
    edges: int
    replayed: int
    steps: int
    taken: Mapping[str, tuple[int, int]]
    """Of each action: how many of its edges the cores took, and how many there are."""
    pairs: tuple[int, int]
    """Ordered pairs of actions, one right after the other: by the cores, and in the model."""
    explained: Mapping[str, int]
    mismatches: tuple[Mismatch, ...]
    count: Mapping[Kind, int]
    seconds: float
    processor: float
    """Seconds, by the clock and of a processor."""

    @property
    def alike(self) -> bool:
        """Nothing differs beyond what is explained."""
        return not any(self.count.values())


@attrs.define
class _Abstract:
    """A state of the model: its steps by label, and those that the cores have taken."""

    steps: dict[int, int]
    taken: set[int] = attrs.field(factory=set[int])
    example: int = -1
    into: int = 0


class Replay:
    """One comparison."""

    def __init__(
        self,
        instance: Instance,
        own_look: bool,
        max_states: int | None,
        progress: Callable[[int, int], None],
        planted: Planted | None = None,
        until_differs: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.instance, self.max_states, self.progress = instance, max_states, progress
        self.until_differs, self.stop = until_differs, stop
        self.world = World(instance, tuple(range(int(instance.constants["replicas"]))), own_look, planted)
        self.stepper = Stepper(instance, self.world.packing.layout)
        self.abstract: dict[int, _Abstract] = {}
        self.states: list[State] = []
        self.bits: list[int] = []
        self.parents: list[tuple[int, int]] = []
        self.into: list[int] = []
        self.out: list[int] = []
        self.index: dict[State, int] = {}
        self.steps = 0
        self.count = dict.fromkeys(Kind, 0)
        self.mismatches: list[Mismatch] = []
        self.seen: set[tuple[Kind, str]] = set()
        self.action_of = [0] * len(self.world.labels.named)
        names = {a.name: i for i, a in enumerate(instance.actions)}
        self.action_of = [names[name] for name, _ in self.world.labels.named]

    # exploring

    def run(self) -> bool:
        """Explore; whether to the end."""
        for state in self.world.initial_states():
            self.add(state, self.world.bits(state), (-1, -1))
        level = range(len(self.states))
        while level:
            self.model(level)
            begin = len(self.states)
            for number in level:
                self.compare(number)
                if self.until_differs and self.mismatches:
                    return False
                if number % 1024 == 0:
                    self.progress(number, len(self.states))
                    if self.stop():
                        return False
                if self.max_states is not None and len(self.states) >= self.max_states:
                    return False
            level = range(begin, len(self.states))
        return True

    def add(self, state: State, bits: int, parent: tuple[int, int]) -> int:
        number = self.index[state] = len(self.states)
        self.states.append(state)
        self.bits.append(bits)
        self.parents.append(parent)
        self.into.append(0)
        self.out.append(0)
        return number

    def model(self, level: range) -> None:
        """The model's steps from the abstractions of a level that are new."""
        new = {bits: number for number in level if (bits := self.bits[number]) not in self.abstract}
        words, size = self.stepper.words, self.stepper.words * WORD // 8
        buffer = b"".join(bits.to_bytes(size, "little") for bits in new)
        rows = np.frombuffer(buffer, dtype="<u8").reshape(-1, words).astype(np.uint64)
        counts, labels, targets = self.stepper.steps(rows)
        told, at = targets.astype("<u8").tobytes(), 0
        numbers: list[int] = labels.tolist()
        count: int
        for (bits, number), count in zip(new.items(), counts.tolist(), strict=True):
            steps: dict[int, int] = {}
            for k in range(at, at + count):
                steps[numbers[k]] = int.from_bytes(told[k * size : (k + 1) * size], "little")
            at += count
            self.abstract[bits] = _Abstract(steps, example=number)

    def compare(self, number: int) -> None:
        """What the cores do in a state of the system, beside what the model does in its abstraction."""
        state = self.states[number]
        model = self.abstract[self.bits[number]]
        steps, taken, index, out = model.steps, model.taken, self.index, 0
        for label, successor in self.world.successors(state):
            self.steps += 1
            expected = steps.get(label)
            if expected is None:
                self.differs(Kind.UNEXPECTED, label, number, self.world.bits(successor), self.bits[number])
                continue
            known = index.get(successor)
            if known is None:
                bits = self.world.bits(successor)
                if bits != expected:
                    self.differs(Kind.INCONSISTENT, label, number, bits, expected)
                    continue
                known = self.add(successor, bits, (number, label))
            elif self.bits[known] != expected:
                self.differs(Kind.INCONSISTENT, label, number, self.bits[known], expected)
                continue
            taken.add(label)
            bit = 1 << self.action_of[label]
            out |= bit
            self.into[known] |= bit
        self.out[number] = out

    # differences

    def path(self, number: int) -> tuple[Named, ...]:
        steps: list[Named] = []
        number, label = self.parents[number]
        while number >= 0:
            steps.append(self.world.labels.name(label))
            number, label = self.parents[number]
        return tuple(reversed(steps))

    def differs(self, kind: Kind, label: int, number: int, cores: int, model: int) -> None:
        """Note a mismatch; the first of each kind and action with its path."""
        self.count[kind] += 1
        action, parameters = self.world.labels.name(label)
        if (kind, action) in self.seen or len(self.mismatches) >= EXAMPLES:
            return
        self.seen.add((kind, action))
        ours, theirs = self.world.packing.unpacked(cores), self.world.packing.unpacked(model)
        differences = tuple(
            Difference(v.name, a, b) for v, a, b in zip(self.instance.variables, ours, theirs, strict=True) if a != b
        )
        self.mismatches.append(Mismatch(kind, action, parameters, self.path(number), differences))

    def missing(self, complete: bool) -> dict[str, int]:
        """Steps of the model that the cores take in no state with that abstraction; those that are explained."""
        explained: dict[str, int] = {}
        if not complete:
            return explained
        reasons: dict[int, list[int]] = {}
        for number, bits in enumerate(self.bits):
            if len(self.abstract[bits].taken) < len(self.abstract[bits].steps):
                reasons.setdefault(bits, []).append(number)
        for bits, numbers in reasons.items():
            model = self.abstract[bits]
            for label in sorted(model.steps.keys() - model.taken):
                why = next(filter(None, (self.world.explained(self.states[n], label) for n in numbers)), None)
                if why is not None:
                    explained[why] = explained.get(why, 0) + 1
                else:
                    self.differs(Kind.MISSING, label, numbers[0], bits, model.steps[label])
        return explained

    # the answer

    def answer(self, complete: bool, seconds: float, processor: float) -> Replayed:
        explained = self.missing(complete)
        names = [a.name for a in self.instance.actions]
        taken, of = [0] * len(names), [0] * len(names)
        pairs, model_pairs = set[tuple[int, int]](), set[tuple[int, int]]()
        for model in self.abstract.values():
            for label, target in model.steps.items():
                of[self.action_of[label]] += 1
                if target in self.abstract:
                    self.abstract[target].into |= 1 << self.action_of[label]
            for label in model.taken:
                taken[self.action_of[label]] += 1
        for into, out in set(zip(self.into, self.out, strict=True)):
            pairs |= _product(into, out)
        for into, labels in {(m.into, self._actions(m.steps)) for m in self.abstract.values()}:
            model_pairs |= _product(into, labels)
        return Replayed(
            design=self.instance.design.name,
            constants=self.instance.constants,
            complete=complete,
            states=len(self.abstract),
            systems=len(self.states),
            edges=sum(of),
            replayed=sum(taken),
            steps=self.steps,
            taken={name: (t, n) for name, t, n in zip(names, taken, of, strict=True)},
            pairs=(len(pairs & model_pairs), len(model_pairs)),
            explained=explained,
            mismatches=tuple(self.mismatches),
            count=dict(self.count),
            seconds=seconds,
            processor=processor,
        )

    def _actions(self, steps: dict[int, int]) -> int:
        mask = 0
        for label in steps:
            mask |= 1 << self.action_of[label]
        return mask


def _product(into: int, out: int) -> set[tuple[int, int]]:
    def bits(mask: int) -> list[int]:
        return [i for i in range(mask.bit_length()) if mask >> i & 1]

    return {(a, b) for a in bits(into) for b in bits(out)}


def replay(
    constants: Mapping[str, Value],
    *,
    design: Design = KIP_966,
    own_look: bool = False,
    max_states: int | None = None,
    progress: Callable[[int, int], None] = lambda explored, known: None,
    planted: Planted | None = None,
    until_differs: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Replayed:
    """Compare the cores with a design under these bounds and settings; NoSuchCores if the broker does not have it.

    With `own_look` a leader looks itself who is fenced before it proposes anybody, as Kafka's does and the model does
    not: then some proposals of the model are not the cores'. `progress` is told how many states of the cores were
    explored, of how many found. `planted` is another design for the cores, one with a bug, say; with `until_differs`
    the first difference is the end. `stop` is asked now and then whether to end with what there is.
    """
    start, used = time.monotonic(), time.process_time()
    work = Replay(Instance(design, constants), own_look, max_states, progress, planted, until_differs, stop)
    collecting = gc.isenabled()
    gc.disable()  # millions of values without a cycle, which need not be looked through again and again
    try:
        complete = work.run()
    finally:
        if collecting:
            gc.enable()
    return work.answer(complete, time.monotonic() - start, time.process_time() - used)
