"""Whether bounds leave room for the faults asked for: a behaviour that passes every milestone, or what is in its way.

The milestones are properties of a design with history variables (`Design.observed`), such as "all faults happened".
A best-first search looks for the behaviour. If it finds none, all states are explored, as far as the limits allow.
Without this check a promise would count as kept although the bounds exclude whatever could break it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from isr_check.best_first import SearchProgress, best_first
from isr_check.engine import Engine, Limits, Path, Progress, silent
from isr_lang import Design, Instance, Property, Value

MOST_EXPANSIONS = 30_000
"""The most states that the best-first search expands, which takes seconds; usual bounds need a few hundred."""
MOST_STATES = 60_000_000
"""The most states that are explored for room where that search finds none; some 3 GB."""


@attrs.frozen
class Room:
    """The answer: a `witness` passes every milestone; without one, `lacking` is the first that was never passed.

    `cut` has the bounds in its way, and `enough` the least values of these bounds at which a witness was found; both
    are empty if no bounds that were tried are large enough. `complete`: every state was explored, so there is no
    witness; otherwise the search has only found none. `stopped`: by whoever limits it, before it had decided that.
    """

    witness: Path | None = None
    lacking: Property | None = None
    cut: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    enough: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    complete: bool = False
    stopped: bool = False


def room_limits(limits: Limits, distinct: int) -> Limits:
    """The limits of a search for room beside an exploration of so many states: it may take longer, and has an end."""
    return attrs.evolve(limits, max_states=min(4 * distinct + 100_000, MOST_STATES))


def find_room(
    design: Design,
    milestones: Sequence[Property],
    constants: Mapping[str, Value],
    larger: Mapping[str, Value],
    engine: Engine,
    limits: Limits,
    progress: Callable[[Progress], None] = silent,
    search_progress: SearchProgress = lambda expanded, most: None,
) -> Room:
    """Whether the last milestone can be reached under these constants; if not, the bounds in `larger` are tried.

    `progress` hears of the exploration, if one is needed, and `search_progress` of each search for a witness.
    """
    instance = Instance(design, constants)
    search = best_first(instance, milestones, MOST_EXPANSIONS, limits.stop, search_progress)
    if search.milestones_passed == len(milestones):
        return Room(search.path)
    lacking = milestones[search.milestones_passed]
    complete = search.complete
    if not complete:
        found = engine(instance, (milestones[-1].name,), limits, progress)
        witness = found.finding(milestones[-1].name).path
        if witness is not None:
            return Room(witness)
        complete = found.complete
    if limits.stop():
        return Room(lacking=lacking, complete=complete, stopped=not complete)
    enough = {name: value for name, value in larger.items() if value != constants[name]}

    def has_witness(candidate: Mapping[str, Value]) -> bool:
        return candidate != constants and _has_witness(design, milestones, limits, search_progress, candidate)

    if not has_witness({**constants, **enough}):
        return Room(lacking=lacking, complete=complete)
    for name, value in tuple(enough.items()):
        least, most = constants[name], value
        assert isinstance(least, int)
        assert isinstance(most, int)
        enough[name] = next(
            tried
            for tried in range(min(least, most), most + 1)
            if tried == most or has_witness({**constants, **enough, name: tried})
        )
    enough = {name: value for name, value in enough.items() if value != constants[name]}
    return Room(None, lacking, {name: constants[name] for name in enough}, enough, complete)


def _has_witness(
    design: Design,
    milestones: Sequence[Property],
    limits: Limits,
    search_progress: SearchProgress,
    constants: Mapping[str, Value],
) -> bool:
    return best_first(
        Instance(design, constants), milestones, MOST_EXPANSIONS, limits.stop, search_progress
    ).milestones_passed == len(milestones)
