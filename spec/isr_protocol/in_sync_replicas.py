"""Kafka's replication as a family: what every design of this package brings besides itself.

Each part is imported when it is asked for, as most commands need one of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from isr_check.engine import Engine, Exploration, Limits, Progress, silent
from isr_check.family import Family, ProofPlan, Slack
from isr_lang import Conjunct, Design, Instance, Property, Value
from isr_protocol.state import State

if TYPE_CHECKING:
    from isr_check.best_first import SearchProgress
    from isr_check.room import Room


class InSyncReplicas(Family):
    """One partition, replicated by `isr_protocol.state` or by a state that extends it."""

    state = State
    fault_story = "the faults, a new leader, a follower that rejoins, a commit"
    aftermath = "after all faults and a change of the leader"
    slack_words: Mapping[str, str] = {"isr_changes": "the metadata", "epochs": "the leader"}

    def designs(self) -> Mapping[str, Design]:
        from isr_protocol.by_name import DESIGNS

        return DESIGNS

    def constants_with_room(self, design: Design, constants: Mapping[str, Value]) -> Mapping[str, Value]:
        from isr_protocol.promises.room import following

        return following(design, constants)

    def premises(self, names: Iterable[str]) -> tuple[Property, ...]:
        from isr_protocol.promises.worth import premises

        return premises(names)

    def slack_probes(self, instance: Instance, names: Sequence[str]) -> tuple[Property, ...]:
        from isr_protocol.promises.slack import probes

        return tuple(probe for of_promise in probes(instance, names).values() for probe in of_promise)

    def slack(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Mapping[str, Slack]]:
        from isr_protocol.promises.worth import slack

        return slack(instance, exploration, names)

    def worth(
        self,
        instance: Instance,
        exploration: Exploration,
        names: Sequence[str],
        engine: Engine,
        limits: Limits,
        progress: Callable[[Progress], None] = silent,
        search_progress: SearchProgress = lambda expanded, most: None,
    ) -> tuple[Exploration, Room | None]:
        from isr_protocol.promises.worth import worth

        return worth(instance, exploration, names, engine, limits, progress, search_progress)

    def milestones(self) -> tuple[Property, ...]:
        from isr_protocol.promises.room import MILESTONES

        return MILESTONES

    def proof_plan(self) -> ProofPlan:
        from isr_protocol.proof.questions import CORES, FIXED_CONSTANTS, FOLLOWS, OF_DESIGNS, OPEN, PROMISES

        return ProofPlan((*PROMISES, *OF_DESIGNS), OPEN, FIXED_CONSTANTS, FOLLOWS, CORES)

    def invariant(self, design: Design) -> tuple[Conjunct, ...]:
        from isr_protocol.proof.questions import invariant

        return invariant(design)


IN_SYNC_REPLICAS = InSyncReplicas()
