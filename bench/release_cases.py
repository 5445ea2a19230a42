"""Which counterexample tells why a release breaks a promise: stored behaviours, run again in each design.

One fault is in several releases and shows within many bounds. So a behaviour is kept by the texts of its steps, such as
`becomes_leader(r=r2)`, and it counts wherever a design can take all of them.

    [[behaviour]]                            # in counterexamples/cases/releases.toml
    case = "removed-replica"                 # the folder that tells of it, here or in found/
    start = "first=r1, spares={}"            # the parameters of the initial condition
    steps = ["leader_appends(leader=r1)"]    # one after the other
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from isr_check.reference import Evaluator
from isr_conform.model_rules import parameters_text, step_text
from isr_lang import Instance
from isr_trace.replay import Move, Replay, Run, goal

TOP = Path(__file__).resolve().parent.parent
BEHAVIOURS = TOP / "counterexamples" / "cases" / "releases.toml"
PAGES = ("found", "counterexamples/cases")
"""Where a case has its page, the first of these that has one."""
NO_CASE = "no case"


@attrs.frozen
class Behaviour:
    """One way in which a promise is broken, and the case that tells of it."""

    case: str
    start: str
    steps: tuple[str, ...]


def load_behaviours(path: Path = BEHAVIOURS) -> tuple[Behaviour, ...]:
    """All of the file, in its order."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["behaviour"]
    return tuple(Behaviour(entry["case"], entry["start"], tuple(entry["steps"])) for entry in entries)


class BehaviourReplay:
    """Behaviours by text, run again in one instance."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.evaluator = Evaluator(instance)
        self.replay = Replay(self.evaluator)
        types = instance.initial.parameters
        self.starts = {parameters_text(types, values): values for values in self.replay.starts}
        self.promises = [p.name for p in instance.properties if p.kind in ("always", "step")]

    def run(self, behaviour: Behaviour) -> Run | None:
        """The behaviour as it goes here, None where the start or a step is impossible."""
        initial = self.starts.get(behaviour.start)
        if initial is None:
            return None
        moves: list[Move] = []
        state = self.replay.starts[initial]
        for step in behaviour.steps:
            successors = self.replay.successors(state)
            move = next((m for m in successors if step_text(self.instance, m.action, m.parameters) == step), None)
            if move is None:
                return None
            moves.append(move)
            state = successors[move]
        return self.replay.exact(initial, moves)

    def broken_promises(self, behaviour: Behaviour) -> frozenset[str]:
        """The promises that it breaks on its way here."""
        run = self.run(behaviour)
        if run is None:
            return frozenset()
        return frozenset(p for p in self.promises if self.replay.until(run, goal(self.evaluator, p)) is not None)


def first_behaviours(instance: Instance, behaviours: Iterable[Behaviour]) -> dict[str, Behaviour]:
    """Of each promise that some behaviour breaks here, the first that does."""
    first: dict[str, Behaviour] = {}
    replay = BehaviourReplay(instance)
    for behaviour in behaviours:
        for promise in replay.broken_promises(behaviour):
            first.setdefault(promise, behaviour)
    return first


def case_page(case: str) -> Path:
    """The page of a case; StopIteration if there is none."""
    return next(page for folder in PAGES if (page := TOP / folder / case / "README.md").exists())


def cell_with_cases(promises: Sequence[str], behaviours: Mapping[str, Behaviour]) -> str:
    """Markdown for a page in docs/measurements: broken promises, each with its case, those of one case together."""
    groups: dict[str, list[str]] = {}
    for promise in promises:
        case = behaviours[promise].case if promise in behaviours else NO_CASE
        groups.setdefault(case, []).append(f"`{promise}`")
    parts: list[str] = []
    for case, names in groups.items():
        link = NO_CASE if case == NO_CASE else f"[{case}](../../{case_page(case).relative_to(TOP)})"
        parts.append(f"**{', '.join(names)}**: {link}")
    return "; ".join(parts)
