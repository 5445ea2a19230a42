"""Slack: how much of the bounds is left when a promise of liveness comes to pass after the faults and an election.

Such a promise ends where the exploration's own bounds are spent (`liveness`), and is silent from there on. A follower
that truncates for ever after a change of the leader is not seen where that change was the last. So it is asked of each
promise whether, after all the faults and a change of the leader, it comes to pass in some behaviour with so many
changes still to go, of the leader and of the metadata; the largest such numbers are its slack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

from isr_lang import Count, Instance, Number, Property
from isr_lang.nodes import Node, after, apply, literal
from isr_lang.types import COUNT
from isr_protocol.state import (
    CRASHES,
    EPOCHS,
    ISR_CHANGES,
    LOSSY_CRASHES,
    SESSIONS_LOST,
    SHUTDOWNS,
    UNNOTICED,
    State,
)

Slack = Mapping[str, int]
"""The name of a bound -> how much of it is left, at most, when the promise comes to pass; 0 is none."""

NEW = State(primed=True)
BOUND_COUNTERS: Mapping[str, tuple[Number, Count]] = {
    "epochs": (NEW.controller_epoch, EPOCHS),
    "isr_changes": (NEW.controller_partition_epoch, ISR_CHANGES),
}
"""The bounds at which a promise of liveness ends, and what counts towards them."""


OLD = State()
AFTERMATH = reduce(
    lambda a, b: a & b,
    (
        OLD.controller_epoch > 0,
        OLD.crashes == CRASHES,
        OLD.lossy_crashes == LOSSY_CRASHES,
        OLD.sessions_lost == SESSIONS_LOST,
        OLD.unnoticed == UNNOTICED,
        OLD.shutdowns == SHUTDOWNS,
    ),
).node
"""All faults have happened, and the leader was changed."""


def probes(instance: Instance, property_names: Collection[str]) -> dict[str, list[Property]]:
    """For each promise of liveness that is wanted: a step with which it comes to pass, and so much of a bound left."""
    promise_probes: dict[str, list[Property]] = {}
    for p in instance.design.properties:
        if p.kind == "eventually" and p.name in property_names:
            promise_probes[p.name] = [
                _probe(p, bound, left)
                for bound in BOUND_COUNTERS
                for left in range(1, int(instance.constants[bound]) + 1)
            ]
    return promise_probes


def name_of(promise: str, bound: str, remainder: int) -> str:
    return f"{promise}-with-{remainder}-of-{bound}-left"


def _probe(p: Property, bound: str, remainder: int) -> Property:
    assert p.trigger is not None, "a liveness property has a trigger"
    pending = [AFTERMATH, p.trigger, apply("not", p.condition)]
    room = [_room_condition(b, remainder if b == bound else 1) for b in BOUND_COUNTERS]
    comes = reduce(lambda a, b: apply("and", a, b), [*pending, after(p.condition), *room])
    name = name_of(p.name, bound, remainder)
    return Property(name, "sometimes-step", comes, f"{p.name} comes to pass with bounds to spare.", p.where, p.when)


def _room_condition(bound: str, least: int) -> Node:
    spent, most = BOUND_COUNTERS[bound]
    return apply("at_most", apply("plus", spent.node, literal(least, COUNT)), most.node)


def slack_of(instance: Instance, promise: str, witnessed_probes: Collection[str]) -> Slack:
    """The slack of a promise, by the names of the probes that have a witness."""
    return {
        bound: max(
            (n for n in range(1, int(instance.constants[bound]) + 1) if name_of(promise, bound, n) in witnessed_probes),
            default=0,
        )
        for bound in BOUND_COUNTERS
    }
