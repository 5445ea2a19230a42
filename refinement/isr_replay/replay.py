"""The lock-step replay: every edge of the model's graph within its bounds, compared with what the cores do.

The system of cores is explored breadth first. Two things must hold:

- Each step of the cores is a step of the model. It has the same action and parameters, leads from the abstraction of
  the state before it, and leads to the abstraction of the state after it.
- Each step of the model is taken by the cores in some state of the system with that abstraction.

If both hold to the end, the cores reach every state that the model reaches, and no other.
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
from isr_replay.core_system import State, check_cores
from isr_replay.environment import Environment
from isr_replay.packed_states import WORD

EXAMPLES = 20
"""How many mismatches are kept, each with a path to it."""


class Kind(StrEnum):
    """How model and cores can differ; the names are Mocket's."""

    INCONSISTENT = "inconsistent state"
    MISSING = "missing action"
    UNEXPECTED = "unexpected action"


NamedStep = tuple[str, Parameters]


@attrs.frozen
class Difference:
    """A variable that differs, with its value in the cores and in the model."""

    variable: str
    cores: object
    model: object


@attrs.frozen
class Mismatch:
    """A difference between model and cores, at this action after the steps of `path`."""

    kind: Kind
    action: str
    parameters: Parameters
    path: tuple[NamedStep, ...]
    differences: tuple[Difference, ...] = ()


@attrs.frozen(kw_only=True)
class ReplayResult:
    """What was compared. `complete`: the exploration came to its end.

    `states` and `edges` are those of the model, `systems` and `steps` those of the cores; `replayed` counts the edges
    that the cores took.
    """

    design: str
    constants: Mapping[str, Value]
    complete: bool
    states: int
    systems: int
    edges: int
    replayed: int
    steps: int
    edges_by_action: Mapping[str, tuple[int, int]]
    """For each action: how many of its edges the cores took, and how many there are."""
    pairs: tuple[int, int]
    """Pairs of consecutive actions: how many the cores took, and how many there are in the model."""
    known_differences: Mapping[str, int]
    """Edges that the cores do not take for a known reason, by that reason."""
    mismatches: tuple[Mismatch, ...]
    count: Mapping[Kind, int]
    seconds: float
    processor: float
    """Seconds of processor time; `seconds` is the time that passed."""

    @property
    def conforms(self) -> bool:
        """Whether nothing differs but for known reasons."""
        return not any(self.count.values())


@attrs.define
class _ModelState:
    """A state of the model: its steps by label, the labels that the cores have taken, and the actions that lead to
    it."""

    steps: dict[int, int]
    taken_labels: set[int] = attrs.field(factory=set[int])
    example: int = -1
    into: int = 0


class Replay:
    """One replay."""

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
        self.world = Environment(instance, tuple(range(int(instance.constants["replicas"]))), own_look, planted)
        self.stepper = Stepper(instance, self.world.packing.layout)
        self.abstract: dict[int, _ModelState] = {}
        self.states: list[State] = []
        self.bits: list[int] = []
        self.parents: list[tuple[int, int]] = []
        self.into: list[int] = []
        self.out: list[int] = []
        self.index: dict[State, int] = {}
        self.steps = 0
        self.count = dict.fromkeys(Kind, 0)
        self.mismatches: list[Mismatch] = []
        self.mismatch_kinds: set[tuple[Kind, str]] = set()
        self.action_of = [0] * len(self.world.labels.steps)
        names = {a.name: i for i, a in enumerate(instance.actions)}
        self.action_of = [names[name] for name, _ in self.world.labels.steps]

    # exploring

    def run(self) -> bool:
        """Explore the cores; whether the end was reached."""
        for state in self.world.initial_states():
            self.add(state, self.world.bits(state), (-1, -1))
        level = range(len(self.states))
        while level:
            self.expand_model(level)
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

    def expand_model(self, level: range) -> None:
        """Find the model's steps from the abstractions of a level that were not met before."""
        new = {bits: number for number in level if (bits := self.bits[number]) not in self.abstract}
        words, size = self.stepper.words, self.stepper.words * WORD // 8
        buffer = b"".join(bits.to_bytes(size, "little") for bits in new)
        rows = np.frombuffer(buffer, dtype="<u8").reshape(-1, words).astype(np.uint64)
        counts, labels, targets = self.stepper.steps(rows)
        target_bytes, at = targets.astype("<u8").tobytes(), 0
        numbers: list[int] = labels.tolist()
        count: int
        for (bits, number), count in zip(new.items(), counts.tolist(), strict=True):
            steps: dict[int, int] = {}
            for k in range(at, at + count):
                steps[numbers[k]] = int.from_bytes(target_bytes[k * size : (k + 1) * size], "little")
            at += count
            self.abstract[bits] = _ModelState(steps, example=number)

    def compare(self, number: int) -> None:
        """Compare the cores' steps from a state of the system with the model's from its abstraction."""
        state = self.states[number]
        model = self.abstract[self.bits[number]]
        steps, taken_labels, index, out = model.steps, model.taken_labels, self.index, 0
        for label, successor in self.world.successors(state):
            self.steps += 1
            expected = steps.get(label)
            if expected is None:
                self.note_mismatch(Kind.UNEXPECTED, label, number, self.world.bits(successor), self.bits[number])
                continue
            successor_number = index.get(successor)
            if successor_number is None:
                bits = self.world.bits(successor)
                if bits != expected:
                    self.note_mismatch(Kind.INCONSISTENT, label, number, bits, expected)
                    continue
                successor_number = self.add(successor, bits, (number, label))
            elif self.bits[successor_number] != expected:
                self.note_mismatch(Kind.INCONSISTENT, label, number, self.bits[successor_number], expected)
                continue
            taken_labels.add(label)
            bit = 1 << self.action_of[label]
            out |= bit
            self.into[successor_number] |= bit
        self.out[number] = out

    # differences

    def path(self, number: int) -> tuple[NamedStep, ...]:
        steps: list[NamedStep] = []
        number, label = self.parents[number]
        while number >= 0:
            steps.append(self.world.labels.name(label))
            number, label = self.parents[number]
        return tuple(reversed(steps))

    def note_mismatch(self, kind: Kind, label: int, number: int, cores: int, model: int) -> None:
        """Count a mismatch, and keep the first of each kind and action with its path."""
        self.count[kind] += 1
        action, parameters = self.world.labels.name(label)
        if (kind, action) in self.mismatch_kinds or len(self.mismatches) >= EXAMPLES:
            return
        self.mismatch_kinds.add((kind, action))
        ours, theirs = self.world.packing.unpack(cores), self.world.packing.unpack(model)
        differences = tuple(
            Difference(v.name, a, b) for v, a, b in zip(self.instance.variables, ours, theirs, strict=True) if a != b
        )
        self.mismatches.append(Mismatch(kind, action, parameters, self.path(number), differences))

    def find_missing(self, complete: bool) -> dict[str, int]:
        """Note the steps of the model that the cores took in no state with that abstraction.

        Those with a known reason are returned, as counts by reason.
        """
        known_differences: dict[str, int] = {}
        if not complete:
            return known_differences
        reasons: dict[int, list[int]] = {}
        for number, bits in enumerate(self.bits):
            if len(self.abstract[bits].taken_labels) < len(self.abstract[bits].steps):
                reasons.setdefault(bits, []).append(number)
        for bits, numbers in reasons.items():
            model = self.abstract[bits]
            for label in sorted(model.steps.keys() - model.taken_labels):
                why = next(filter(None, (self.world.known_difference(self.states[n], label) for n in numbers)), None)
                if why is not None:
                    known_differences[why] = known_differences.get(why, 0) + 1
                else:
                    self.note_mismatch(Kind.MISSING, label, numbers[0], bits, model.steps[label])
        return known_differences

    # the result

    def result(self, complete: bool, seconds: float, processor: float) -> ReplayResult:
        known_differences = self.find_missing(complete)
        names = [a.name for a in self.instance.actions]
        taken_edges, of = [0] * len(names), [0] * len(names)
        pairs, model_pairs = set[tuple[int, int]](), set[tuple[int, int]]()
        for model in self.abstract.values():
            for label, target in model.steps.items():
                of[self.action_of[label]] += 1
                if target in self.abstract:
                    self.abstract[target].into |= 1 << self.action_of[label]
            for label in model.taken_labels:
                taken_edges[self.action_of[label]] += 1
        for into, out in set(zip(self.into, self.out, strict=True)):
            pairs |= _product(into, out)
        for into, labels in {(m.into, self._actions(m.steps)) for m in self.abstract.values()}:
            model_pairs |= _product(into, labels)
        return ReplayResult(
            design=self.instance.design.name,
            constants=self.instance.constants,
            complete=complete,
            states=len(self.abstract),
            systems=len(self.states),
            edges=sum(of),
            replayed=sum(taken_edges),
            steps=self.steps,
            edges_by_action={name: (t, n) for name, t, n in zip(names, taken_edges, of, strict=True)},
            pairs=(len(pairs & model_pairs), len(model_pairs)),
            known_differences=known_differences,
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
) -> ReplayResult:
    """Compare the cores with a design under these bounds and settings; NoSuchCores if the broker does not have it.

    - `own_look`: a leader checks itself who is fenced before it proposes a follower. Kafka's leader does so and the
      model's does not: some proposals of the model are then missing.
    - `max_states`: stop at so many states of the cores.
    - `progress`: called with the number of states explored and of states found.
    - `planted`: another design for the cores, such as one with a bug. `until_differs`: stop at the first difference.
    - `stop`: asked now and then; if it answers true, the replay ends with what it has.
    """
    instance = Instance(design, constants)
    check_cores(instance)
    start, processor_began = time.monotonic(), time.process_time()
    work = Replay(instance, own_look, max_states, progress, planted, until_differs, stop)
    collecting = gc.isenabled()
    gc.disable()  # millions of values, none in a cycle: the collector would traverse them again and again
    try:
        complete = work.run()
    finally:
        if collecting:
            gc.enable()
    return work.result(complete, time.monotonic() - start, time.process_time() - processor_began)
