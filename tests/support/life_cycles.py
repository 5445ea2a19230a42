"""What becomes of a fetch and of an AlterPartition, taken from every step of the model within small bounds.

`docs/life-cycles.md` and its two pictures are made of it: where a message is before and after each step that moves it,
and which input of which core that step is (`isr_replay.action_table`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

from isr_check.reference import Evaluator, State
from isr_lang import Instance, Value
from isr_model import KIP_966
from isr_protocol.state import Alter, Fetch
from isr_replay.action_table import tables

Move: TypeAlias = tuple[str, str, str]
"""Where the message was, the action that moved it, where it is then."""

BOUNDS: Final[Sequence[Mapping[str, Value]]] = (
    {"replicas": 2, "isr_changes": 2, "crashes": 1},
    {"replicas": 2, "isr_changes": 2, "crashes": 0, "sessions_lost": 1},
)
ENDS: Final = "broker_crashes"
"""The end of a process, which is drawn as a broken line."""

ROW: Final = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|", re.MULTILINE)


def _steps(constants: Mapping[str, Value]) -> Iterator[tuple[State, str, State, list[str]]]:
    """Every reachable state with every step from it, and the names of the variables in their order."""
    instance = Instance(KIP_966, constants)
    evaluator, names = Evaluator(instance), [v.name for v in instance.variables]
    seen = {state for _, state in evaluator.initial_states()}
    todo = list(seen)
    while todo:
        state = todo.pop()
        for action, _, successor in evaluator.successors(state):
            yield state, instance.actions[action].name, successor, names
            if successor not in seen:
                seen.add(successor)
                todo.append(successor)


def moves() -> tuple[list[Move], list[Move]]:
    """What moves a follower's fetch, and what moves a leader's AlterPartition, each in the order of its states."""
    fetches: set[Move] = set()
    alters: set[Move] = set()
    for constants in BOUNDS:
        for old, action, new, names in _steps(constants):
            fetch, alter, pending = (names.index(name) for name in ("fetch", "alter", "pending_isr"))
            for r in range(2):
                fetches.add((_fetch(old, fetch, r), action, _fetch(new, fetch, r)))
                alters.add((_alter(old, alter, pending, r), action, _alter(new, alter, pending, r)))
    return _sorted(fetches), _sorted(alters)


def _at(state: State, variable: int, r: int) -> int:
    return cast("tuple[int, ...]", state[variable])[r]


def _fetch(state: State, fetch: int, r: int) -> str:
    return _names(Fetch)[_at(state, fetch, r)]


def _alter(state: State, alter: int, pending: int, r: int) -> str:
    return f"{_names(Alter)[_at(state, alter, r)]}, {'counted' if _at(state, pending, r) else 'not counted'}"


def _names(choice: type[Fetch] | type[Alter]) -> list[str]:
    """The values of a choice, in the order of their numbers."""
    return [name.lower() for name in choice.__annotations__]


def _sorted(every: set[Move]) -> list[Move]:
    return sorted(move for move in every if move[0] != move[2])


def table(every: Sequence[Move]) -> str:
    """The moves as rows of Markdown, each with the core and the input that it is in the broker."""
    inputs = {action: (core, told) for action, core, told, _ in ROW.findall(tables())}
    rows = ["| from | step of the model | to | core | input |", "|---|---|---|---|---|"]
    rows += [f"| {old} | `{action}` | {new} | {' | '.join(inputs[action])} |" for old, action, new in every]
    return "\n".join(rows) + "\n"


def dot(name: str, every: Sequence[Move]) -> str:
    """The moves as a graph for graphviz: a line for each pair of places, with the names of its steps."""
    pairs: dict[tuple[str, str, bool], list[str]] = {}
    for old, action, new in every:
        pairs.setdefault((old, new, action == ENDS), []).append(action)
    lines = [
        "// Made by tests/isr_replay/test_life_cycles.py with INSYNC_REWRITE=1.",
        f"digraph {name} {{",
        '  rankdir=LR; nodesep=0.4; ranksep=1.1; bgcolor="white"',
        '  node [shape=box, style="rounded,filled", fillcolor="#e3ecf8", color="#5b6b82", fontname="Helvetica"]',
        '  edge [color="#5b6b82", fontname="Helvetica", fontsize=10]',
    ]
    for (old, new, ends), actions in pairs.items():
        style = ", style=dashed" if ends else ""
        label = r"\n".join(actions)
        lines.append(f'  "{old}" -> "{new}" [label="{label}"{style}]')
    return "\n".join([*lines, "}", ""])
