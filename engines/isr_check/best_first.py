"""Best-first search for a behaviour that passes milestones one after the other.

Of the states known, the search expands the one that satisfies most milestones in a row, and of those the nearest. So it
finds a witness among few states; the witness need not be a shortest one. Unless every state was seen, that the search
finds none says nothing. States that violate `type-ok` are left out, and then not every state was seen.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

import attrs

from isr_check.engine import Path
from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance, Property


@attrs.frozen
class BestFirst:
    """The best behaviour found, and how many milestones it passes; `complete`: every reachable state was seen."""

    milestones_passed: int
    path: Path
    expansions: int
    complete: bool


SearchProgress = Callable[[int, int], None]
"""Told how many states were expanded, and of how many at most."""


def best_first(
    instance: Instance,
    milestones: Sequence[Property],
    most: int,
    stop: Callable[[], bool] = lambda: False,
    search_progress: SearchProgress = lambda expanded, most: None,
) -> BestFirst:
    """Expand at most `most` states, and return the behaviour that passes most milestones."""
    evaluator = Evaluator(instance)
    names = [p.name for p in milestones]
    tests = [evaluator.test(p) for p in instance.properties if p.name in names]

    def count_milestones(state: State) -> int:
        return next((i for i, test in enumerate(tests) if not test(state)), len(tests))

    complete = True
    starts: dict[State, Parameters] = {}
    came: dict[State, tuple[State, str, Parameters]] = {}
    queue: list[tuple[int, int, int, State]] = []
    for parameters, state in evaluator.initial_states():
        if not evaluator.in_range(state):
            return BestFirst(0, Path(tuple(parameters), ()), 0, complete=False)
        starts[state] = parameters
        heapq.heappush(queue, (-count_milestones(state), 0, len(starts), state))
    best, expansions = queue[0], 0
    while queue and best[0] > -len(tests) and expansions < most and not stop():
        _, depth, _, state = heapq.heappop(queue)
        expansions += 1
        search_progress(expansions, most)
        for action, parameters, successor in evaluator.successors(state):
            if successor not in came and successor not in starts:
                if not evaluator.in_range(successor):
                    complete = False
                    continue
                came[successor] = (state, instance.actions[action].name, parameters)
                entry = (-count_milestones(successor), depth + 1, len(starts) + len(came), successor)
                best = min(best, entry)
                heapq.heappush(queue, entry)
    return BestFirst(-best[0], _path(starts, came, best[3]), expansions, complete=complete and not queue)


def _path(
    starts: Mapping[State, Parameters], came: Mapping[State, tuple[State, str, Parameters]], state: State
) -> Path:
    steps: list[tuple[str, Parameters]] = []
    while state not in starts:
        state, action, parameters = came[state]
        steps.append((action, tuple(parameters)))
    return Path(tuple(starts[state]), tuple(reversed(steps)))
