"""A behaviour that passes milestones one after the other, looked for where it is most likely, not everywhere.

Best first: of the states known, the one that has passed most milestones is expanded, and of those the nearest. So a
witness is found in a small part of the states, need not be a shortest one, and that none was found says nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

import attrs

from isr_check.engine import Path
from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance, Property


@attrs.frozen
class Guided:
    """`passed`: how many milestones the best behaviour found passes. `exhausted`: every reachable state was seen."""

    passed: int
    path: Path
    expanded: int
    exhausted: bool


def guided(
    instance: Instance, milestones: Sequence[Property], most: int, stop: Callable[[], bool] = lambda: False
) -> Guided:
    """The behaviour that passes most milestones, of those found by expanding at most so many states."""
    evaluator = Evaluator(instance)
    names = [p.name for p in milestones]
    tests = [evaluator.properties[i] for i, p in enumerate(instance.properties) if p.name in names]

    def passed(state: State) -> int:
        return next((i for i, test in enumerate(tests) if not test(state)), len(tests))

    starts: dict[State, Parameters] = {}
    came: dict[State, tuple[State, str, Parameters]] = {}
    queue: list[tuple[int, int, int, State]] = []
    for parameters, state in evaluator.initial_states():
        starts[state] = parameters
        heapq.heappush(queue, (-passed(state), 0, len(starts), state))
    best, expanded = queue[0], 0
    while queue and best[0] > -len(tests) and expanded < most and not stop():
        _, depth, _, state = heapq.heappop(queue)
        expanded += 1
        for action, parameters, successor in evaluator.successors(state):
            if successor not in came and successor not in starts:
                came[successor] = (state, instance.actions[action].name, parameters)
                entry = (-passed(successor), depth + 1, len(starts) + len(came), successor)
                best = min(best, entry)
                heapq.heappush(queue, entry)
    return Guided(-best[0], _path(starts, came, best[3]), expanded, exhausted=not queue)


def _path(
    starts: Mapping[State, Parameters], came: Mapping[State, tuple[State, str, Parameters]], state: State
) -> Path:
    steps: list[tuple[str, Parameters]] = []
    while state not in starts:
        state, action, parameters = came[state]
        steps.append((action, tuple(parameters)))
    return Path(tuple(starts[state]), tuple(reversed(steps)))
