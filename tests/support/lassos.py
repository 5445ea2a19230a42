"""Whether a path that an engine found is a counterexample to what must come to pass, by the definitions."""

from __future__ import annotations

from isr_check.engine import Path
from isr_check.reference import Evaluator
from isr_lang import Instance, Property
from isr_trace.lasso import objections
from isr_trace.replay import Move, Replay


def unfair_in(instance: Instance, p: Property, path: Path) -> list[str]:
    """Why a lasso is no counterexample; empty if it is one."""
    replay = Replay(Evaluator(instance))
    run = replay.exact(path.initial, (Move(action, parameters) for action, parameters in path.steps))
    return ["a step is impossible"] if run is None else list(objections(run, path.loop, p, replay))
