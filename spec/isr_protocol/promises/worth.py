"""What a verdict is worth: whether what a promise speaks about happens, and whether the bounds leave room for faults.

A promise that holds where its premise is never met is VACUOUS (`premises`); one that holds within bounds that leave
no room for the faults asked for is TOO SMALL (`room`). So is a promise about committed records that holds although a
leader lacks one: the bounds end before what this leader commits. Whoever tells a verdict explores `probes`, too, and
asks `worth` after the exploration. Of liveness the same is `slack`, which tells how much of the bounds was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from isr_check.engine import TYPE_OK, Engine, Exploration, Limits, Progress, Verdict, silent
from isr_check.family import Precursor, Worth
from isr_check.room_search import Room, find_room, room_limits
from isr_check.worth import (
    PROMISES,
    judge_findings,
    premises_of,
    promises_without_encounter,
    without_premises,
)
from isr_lang import Design, Instance, Property, Value, constants_in
from isr_protocol.promises.premises import OF_COMMITTED_RECORDS, PRECURSOR, PREMISES
from isr_protocol.promises.room import ELECTION, Story, larger, stories
from isr_protocol.promises.slack import Slack, probes, slack_of

if TYPE_CHECKING:
    from isr_check.best_first import SearchProgress


def premises(names: Iterable[str]) -> tuple[Property, ...]:
    """The premises of the promises of these names, each once."""
    return premises_of(names, PREMISES)


def precursors(names: Iterable[str]) -> tuple[Property, ...]:
    """What comes before the harm to the promises of these names."""
    return (PRECURSOR,) if OF_COMMITTED_RECORDS.intersection(names) else ()


def with_probes(instance: Instance, property_names: Sequence[str]) -> tuple[Instance, tuple[str, ...]]:
    """The instance with the premises and precursors of what is wanted as properties of their own, and all that is then
    wanted.
    """
    more = (*premises(property_names), *precursors(property_names))
    return instance.promising(*more), (*property_names, *(p.name for p in more))


def with_every_premise(design: Design) -> Design:
    """The design with the premises of its promises as properties of their own."""
    more = premises(p.name for p in design.properties)
    return attrs.evolve(design, properties=(*design.properties, *map(design.restated_property, more)))


def without_precursor(exploration: Exploration) -> tuple[Exploration, Precursor | None]:
    """The findings on what was wanted: a promise that holds beside its precursor says too little.

    The precursor is None where it has no witness, or where no promise holds beside it.
    """
    witness = next((f for f in exploration.findings if f.name == PRECURSOR.name and f.path is not None), None)
    findings = tuple(f for f in exploration.findings if f.name != PRECURSOR.name)
    names = [f.name for f in findings if f.verdict is Verdict.HOLDS and f.name in OF_COMMITTED_RECORDS]
    exploration = attrs.evolve(exploration, findings=findings)
    if witness is None or witness.path is None or not names:
        return exploration, None
    too_small = tuple(attrs.evolve(f, verdict=Verdict.TOO_SMALL) if f.name in names else f for f in findings)
    precursor = Precursor(PRECURSOR, len(witness.path.steps), tuple(names))
    return attrs.evolve(exploration, findings=too_small), precursor


def worth(
    instance: Instance,
    exploration: Exploration,
    property_names: Sequence[str],
    engine: Engine,
    limits: Limits,
    progress: Callable[[Progress], None] = silent,
    search_progress: SearchProgress = lambda expanded, most: None,
) -> Worth:
    """The findings on what was wanted, each with the verdict that it deserves, and why it deserves no better one.

    `exploration` is the exploration of what `with_probes` made of the instance; the engine looks for room, where
    something is said to hold in every state. `progress` and `search_progress` are those of `isr_check.room_search`.
    """
    without_encounter = promises_without_encounter(exploration, PREMISES)
    exploration, precursor = without_precursor(without_premises(exploration, property_names, PREMISES))
    if not any(f.kind in PROMISES and f.verdict is Verdict.HOLDS for f in exploration.findings):
        return Worth(exploration, precursor=precursor, without_encounter=without_encounter)
    design, constants = instance.design, instance.constants
    most = room_limits(limits, exploration.distinct)
    steps = exploration.steps_by_action if exploration.complete else None
    left = room_left(design, constants, engine, most, progress, search_progress, steps)
    judged = attrs.evolve(exploration, findings=judge_findings(exploration.findings, left))
    return Worth(judged, left, precursor, without_encounter)


def room_left(
    design: Design,
    constants: Mapping[str, Value],
    engine: Engine,
    limits: Limits,
    progress: Callable[[Progress], None] = silent,
    search_progress: SearchProgress = lambda expanded, most: None,
    steps_by_action: Mapping[str, int] | None = None,
) -> Room:
    """The room for all stories of what is asked for: the answer of the first that has none, else of the last.

    `steps_by_action`, of a complete exploration, is how often each action was taken. An action that the settings switch
    on, and that never happens under these faults even within larger bounds, needs no room.
    """
    answer, bounds = Room(), larger(design, constants)
    for story in stories(design, constants):
        if _is_excluded(story, design, constants, engine, limits, steps_by_action):
            continue
        answer = find_room(story.design, story.milestones, constants, bounds, engine, limits, progress, search_progress)
        if answer.witness is None:
            return answer
    return answer


def _is_excluded(
    story: Story,
    design: Design,
    constants: Mapping[str, Value],
    engine: Engine,
    limits: Limits,
    steps_by_action: Mapping[str, int] | None,
) -> bool:
    """Whether these faults, not the bounds, keep the action of the story from happening: larger bounds do not help."""
    action = story.allowance.action if story.allowance is not None else ""
    if not action or steps_by_action is None or steps_by_action.get(action):
        return False
    instance = Instance(without_bounds(design, action), {**constants, **larger(design, constants)})
    explored = engine(instance, (TYPE_OK,), limits, silent)
    return explored.complete and not explored.steps_by_action.get(action)


def without_bounds(design: Design, action: str) -> Design:
    """The design in which this action is taken wherever no guard but those of bounds refuses it, and changes nothing.

    Wherever the design takes it for the first time, this one does.
    """
    changed = next(a for a in design.actions if a.name == action)
    guards = tuple(g for g in changed.guards if constants_in(g.condition).isdisjoint(ELECTION))
    idle = attrs.evolve(changed, guards=guards, updates=())
    return attrs.evolve(design, actions=tuple(idle if a is changed else a for a in design.actions))


def slack(
    instance: Instance, result: Exploration, property_names: Sequence[str]
) -> tuple[Exploration, Mapping[str, Slack]]:
    """The exploration without the findings on `slack.probes`, and the slack of each promise of liveness that holds."""
    names = {p.name for of in probes(instance, property_names).values() for p in of}
    met = {f.name for f in result.findings if f.name in names and f.path is not None}
    held = [f.name for f in result.findings if f.kind == "eventually" and f.verdict is Verdict.HOLDS]
    left = attrs.evolve(result, findings=tuple(f for f in result.findings if f.name not in names))
    return left, {name: slack_of(instance, name, met) for name in held}
