"""Controllers and their quorum as a family: what every design of this package brings besides itself.

Each part is imported when it is asked for, as most commands need one of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isr_check.engine import Engine, Exploration, Limits, Progress, silent
from isr_check.family import Family, Lines, Notice, ProofPlan, Worth
from isr_lang import Conjunct, Design, Instance, Property, Value
from kraft_protocol.abstract_quorum import AbstractQuorum
from kraft_protocol.directory_ids import SAFER, ways_to_set

if TYPE_CHECKING:
    from isr_check.best_first import SearchProgress


def _premises() -> Mapping[str, Property]:
    """By the name of each promise of any design what it speaks about."""
    from controller_protocol.designs import activation, one_controller, renouncing, sessions
    from controller_protocol.promises import PREMISES

    own = (sessions.PREMISES, one_controller.PREMISES, activation.PREMISES, renouncing.PREMISES)
    return {name: premise for premises in (PREMISES, *own) for name, premise in premises.items()}


class Controllers(Family):
    """A quorum without messages, and what is built on it."""

    state = AbstractQuorum
    subject = "Controllers on a quorum"
    proved = "the quorum below has one: insync prove abstract-quorum"
    safer = SAFER
    fault_story = "the faults, a later leader of the quorum, a commit of that, and of a partition a change and a record"
    bounds_of_faults = ("terms", "metadata_log", "isr_changes")

    questions = Path(__file__).parent / "questions.toml"

    def designs(self) -> Mapping[str, Design]:
        from controller_protocol.by_name import DESIGNS

        return DESIGNS

    def constants_with_room(self, design: Design, constants: Mapping[str, Value]) -> Mapping[str, Value]:
        from controller_protocol.room import following

        return following(design, constants)

    def is_large(self, instance: Instance) -> bool:
        """Where there are brokers beside the controllers."""
        from controller_protocol.room import has_partition

        return has_partition(instance.design)

    def premises(self, names: Iterable[str]) -> tuple[Property, ...]:
        from isr_check.worth import premises_of

        return premises_of(names, _premises())

    def worth(
        self,
        instance: Instance,
        exploration: Exploration,
        names: Sequence[str],
        engine: Engine,
        limits: Limits,
        progress: Callable[[Progress], None] = silent,
        search_progress: SearchProgress = lambda expanded, most: None,
    ) -> Worth:
        from controller_protocol.room import larger, milestones_of, observed
        from isr_check.worth import Story, worth_with_room

        design, watched = instance.design, observed(instance.design)
        names_of_watched = {c.name for c in watched.constants()}
        constants = {name: value for name, value in instance.constants.items() if name in names_of_watched}
        story = Story(watched, milestones_of(design), larger(watched, constants))
        return worth_with_room(
            exploration, names, _premises(), story, constants, engine, limits, progress, search_progress
        )

    def noticing(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Notice | None]:
        from controller_protocol.notice import noticing

        return noticing(instance, exploration, names)

    def milestones(self) -> tuple[Property, ...]:
        from controller_protocol.room import MILESTONES

        return MILESTONES

    def proof_plan(self) -> ProofPlan:
        from kraft_protocol.proof import CORES, FIXED_CONSTANTS, FOLLOWS, OPEN, PROMISES

        return ProofPlan(PROMISES, OPEN, FIXED_CONSTANTS, FOLLOWS, CORES, lemmas_suffice=True)

    def invariant(self, design: Design) -> tuple[Conjunct, ...]:
        from kraft_protocol.proof import invariant

        return invariant(design)

    def ways_to_set(self, settings: Mapping[str, Value]) -> Lines:
        return ways_to_set(settings)

    def whereabouts(self, design: Design) -> Lines:
        del design
        return (("which Kafka", "docs/kraft.md says which releases of Kafka have this design"),)


CONTROLLERS = Controllers()
