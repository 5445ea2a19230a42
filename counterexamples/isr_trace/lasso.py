"""A behaviour that never ends: that it goes round, and that it breaks what must come to pass.

Fairness as the engines have it (`isr_check.liveness`), here by its definition, word for word: it is of an action with
one choice of its parameters. That is *possible* where its guards hold and it changes the state.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from isr_lang import Instance, Property, show
from isr_trace.replay import Evaluator, Move, Replay, Run, run_of
from isr_trace.trace import Step, Trace, TraceError


@attrs.frozen
class FairStep:
    """One choice of parameters of a fair action that is possible somewhere in a loop.

    `possible_at`: the states of the loop, by their numbers in the trace, in which it can be taken. `taken_at`: the
    steps of the loop that do what it does. `always`: it is possible in every state of the loop.
    """

    text: str
    is_strong: bool
    possible_at: tuple[int, ...]
    taken_at: tuple[int, ...]
    always: bool

    @property
    def is_put_off(self) -> bool:
        """Whether a fair behaviour would take it, and this loop does not."""
        return not self.taken_at and (self.is_strong or self.always)

    @property
    def delay(self) -> str:
        """How it is put off."""
        return f"is possible {'for ever' if self.always else 'again and again'} and never taken"

    def __str__(self) -> str:
        return f"{self.text} {self.delay}"


@attrs.frozen
class Loop:
    """What happens for ever: from state `start` on, with the fair actions of the promise that it breaks."""

    start: int
    weak: tuple[str, ...]
    strong: tuple[str, ...]
    fair_steps: tuple[FairStep, ...]

    def fairness(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What fairness asks for, and of which actions."""
        if self.weak:
            yield "taken if possible from some point on (weak fairness)", self.weak
        if self.strong:
            yield "taken if possible again and again (strong fairness)", self.strong


def promise_of(evaluator: Evaluator, name: str) -> Property | None:
    """The promise of this name about what comes to pass; None where it is none."""
    return next((p for p in evaluator.instance.properties if p.name == name and p.kind == "eventually"), None)


def loop_states(run: Run, loop: int) -> range:
    """The states of the loop by their numbers, each once; the last one alone where nothing happens any more."""
    last = len(run.moves)
    return range(loop, last) if loop < last else range(last, last + 1)


def fair_steps(run: Run, loop: int, p: Property, replay: Replay) -> tuple[FairStep, ...]:
    """The fair steps that are possible in the loop, in the order of the model."""
    around = loop_states(run, loop)
    possible: dict[Move, list[int]] = {}
    for i in around:
        for move, successor in replay.successors(run.states[i]).items():
            if successor != run.states[i] and move.action in (*p.fair, *p.strongly_fair):
                possible.setdefault(move, []).append(i)

    def steps_like(move: Move) -> Iterator[int]:
        return (i for i in range(loop + 1, len(run.states)) if leads_there(replay, run, i, move))

    rank = {a.name: i for i, a in enumerate(replay.evaluator.instance.actions)}
    return tuple(
        FairStep(
            step_text(replay.evaluator.instance, move),
            move.action in p.strongly_fair,
            tuple(at),
            tuple(steps_like(move)),
            len(at) == len(around),
        )
        for move, at in sorted(possible.items(), key=lambda entry: (rank[entry[0].action], entry[0].parameters))
    )


def loop_of(trace: Trace, run: Run, replay: Replay) -> Loop | None:
    """The loop of a trace that breaks what must come to pass; None where it ends."""
    p = promise_of(replay.evaluator, trace.property_name)
    if p is None or trace.loop is None:
        return None
    actions = [a.name for a in replay.evaluator.instance.actions]
    weak, strong = (tuple(a for a in fair if a in actions) for fair in (p.fair, p.strongly_fair))
    return Loop(trace.loop, weak, strong, fair_steps(run, trace.loop, p, replay))


def leads_there(replay: Replay, run: Run, i: int, move: Move) -> bool:
    """Whether the move does what step i did, and that changed something."""
    before, after = run.states[i - 1 : i + 1]
    return before != after and replay.successors(before).get(move) == after


def step_text(instance: Instance, move: Move) -> str:
    """`broker_applies(r=r1)`."""
    types = next(dict(a.parameters) for a in instance.actions if a.name == move.action)
    shown = (f"{n}={show(v, t)}" for (n, t), v in zip(types.items(), move.parameters, strict=True))
    return f"{move.action}({', '.join(shown)})"


def objections(run: Run, loop: int | None, p: Property, replay: Replay) -> tuple[str, ...]:
    """Why a behaviour breaks no promise about what comes to pass; nothing if it does."""
    if loop is None:
        return ("it ends",)
    if why := whatever_is_fair(run, loop, p, replay):
        return (why,)
    return tuple(map(str, put_off(run, loop, p, replay)))


def put_off(run: Run, loop: int, p: Property, replay: Replay) -> Iterator[FairStep]:
    """The fair steps that a fair behaviour would take, and this loop does not."""
    return (step for step in fair_steps(run, loop, p, replay) if step.is_put_off)


def whatever_is_fair(run: Run, loop: int, p: Property, replay: Replay) -> str:
    """Why a behaviour breaks no promise about what comes to pass, whichever steps are fair; "" if that is not so."""
    if run.states[-1] != run.states[loop]:
        return f"the loop does not close: T{len(run.moves)} is another state than T{loop}"
    trigger, goal = replay.evaluator.leads(p)
    reached = [i for i, state in enumerate(run.states) if goal(state)]
    if reached and reached[-1] >= loop:
        return f"what was promised comes in the loop, at T{reached[-1]}"
    if not any(map(trigger, run.states[reached[-1] + 1 if reached else 0 :])):
        return "nothing calls for what was promised, or it came after that"
    return ""


def check_lasso(trace: Trace, run: Run, replay: Replay) -> None:
    """TraceError where a trace goes round as it says, and that breaks nothing, or does not go round."""
    p = promise_of(replay.evaluator, trace.property_name)
    if p is not None and (why := objections(run, trace.loop, p, replay)):
        raise TraceError(f"it does not break {p.name}: {why[0]}")
    if p is None and trace.loop is not None and run.states[-1] != run.states[trace.loop]:
        raise TraceError(f"the loop does not close: T{len(run.moves)} is another state than T{trace.loop}")


def put_off_there(trace: Trace, there: Evaluator) -> FairStep | None:
    """The first fair step of another design that is put off in this loop; None where the loop is not one of its
    behaviours, or is fair there, too."""
    p, replay = promise_of(there, trace.property_name), Replay(there)
    if p is None or trace.loop is None:
        return None
    try:
        run = replay.exact(tuple(trace.initial.values()), map(move_of, trace.steps))
    except TraceError:
        return None
    if run is None or whatever_is_fair(run, trace.loop, p, replay):
        return None
    return next(put_off(run, trace.loop, p, replay), None)


def move_of(step: Step) -> Move:
    return Move(step.action, tuple(step.parameters.values()))


def checked_run(trace: Trace, replay: Replay) -> Run:
    """The trace run again, step by step; TraceError where the model does otherwise, or where its loop is none."""
    run = run_of(trace, replay)
    check_lasso(trace, run, replay)
    return run
