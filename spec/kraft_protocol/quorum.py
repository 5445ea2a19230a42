"""A quorum of voters as a family: what every design of this package brings besides itself.

Each part is imported when it is asked for, as most commands need one of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isr_check.engine import Engine, Exploration, Limits, Progress, silent
from isr_check.family import Family, Lines, Notice, Worth
from isr_lang import Design, Instance, Property, Value
from kraft_protocol.directory_ids import SAFER, ways_to_set
from kraft_protocol.state import State

if TYPE_CHECKING:
    from isr_check.best_first import SearchProgress


class Quorum(Family):
    """A fixed set of voters, as `kraft_protocol.state` has it."""

    state = State
    subject = "Voters of a quorum"
    fault_story = "a commit, the faults, a later leader, a commit of that"
    aftermath = "after all faults and a later leader"
    bounds_of_faults = ("epochs", "log")
    safer = SAFER
    proved = "the same quorum without messages has one: insync prove abstract-quorum"
    outputs = ("request", "answer")

    questions = Path(__file__).parent / "questions.toml"

    def designs(self) -> Mapping[str, Design]:
        from kraft_protocol.by_name import DESIGNS

        return DESIGNS

    def premises(self, names: Iterable[str]) -> tuple[Property, ...]:
        from isr_check.worth import premises_of
        from kraft_protocol.promises import PREMISES

        return premises_of(names, PREMISES)

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
        from isr_check.worth import Story, worth_with_room
        from kraft_protocol.promises import PREMISES
        from kraft_protocol.room import MILESTONES, larger, observed

        constants = instance.constants
        story = Story(observed(instance.design), MILESTONES, larger(constants))
        return worth_with_room(
            exploration, names, PREMISES, story, constants, engine, limits, progress, search_progress
        )

    def noticing(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Notice | None]:
        from kraft_protocol.notice import TABLE

        return TABLE.noticing(instance, exploration, names)

    def milestones(self) -> tuple[Property, ...]:
        from kraft_protocol.room import MILESTONES

        return MILESTONES

    def ways_to_set(self, settings: Mapping[str, Value]) -> Lines:
        return ways_to_set(settings)

    def whereabouts(self, design: Design) -> Lines:
        del design
        return (("which Kafka", "docs/kraft.md says which releases of Kafka have this design"),)


QUORUM = Quorum()
