"""The third way to the same probabilities: single nodes that fail and return by a seeded clock, each with its name.

It shares no code with the chain: it keeps the ISR and the ELR as sets of nodes, by the rules of KIP-966.
"""

from __future__ import annotations

from random import Random

import attrs

BATCHES = 30
CONFIDENCE, NORMAL = 0.95, 1.96


@attrs.frozen
class Estimate:
    """A mean of batches with the half width of its interval."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        return max(0.0, self.mean - self.half)

    @property
    def high(self) -> float:
        return self.mean + self.half


def simulate(n: int, minimum: int, p: float, *, events: int, seed: int) -> tuple[Estimate, Estimate]:
    """The part of all time without acknowledgements, and without a leader."""
    chance = Random(seed)
    up, isr, elr = set(range(n)), set(range(n)), set[int]()
    no_acks, no_leader = list[float](), list[float]()
    for _ in range(BATCHES):
        time = without_acks = without_leader = 0.0
        for _ in range(events // BATCHES):
            total = len(up) * p + (n - len(up)) * (1 - p)
            passed = chance.expovariate(total)
            time += passed
            without_acks += passed * (len(isr) < minimum)
            without_leader += passed * (not isr)
            if chance.random() * total < len(up) * p:
                node = chance.choice(sorted(up))
                up.discard(node)
                if node in isr:
                    isr.discard(node)
                    elr |= {node} if len(isr) < minimum else set[int]()
            else:
                node = chance.choice(sorted(set(range(n)) - up))
                up.add(node)
                if node in elr:
                    elr.discard(node)
                    isr.add(node)
            if isr:
                isr = set(up)
                elr = set[int]() if len(isr) >= minimum else elr - isr
        no_acks.append(without_acks / time)
        no_leader.append(without_leader / time)
    return _estimate(no_acks), _estimate(no_leader)


def _estimate(values: list[float]) -> Estimate:
    mean = sum(values) / len(values)
    spread = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return Estimate(mean, NORMAL * (spread / len(values)) ** 0.5)
