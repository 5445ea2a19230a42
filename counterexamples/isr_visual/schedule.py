"""The counterfactual: the same schedule under another design, step by step, and where the two part.

A step that is impossible there is skipped, with the guard that refuses it; the rest is tried all the same.
"""

from __future__ import annotations

from typing import TypedDict, cast

from isr_lang import FoldedAction, Node
from isr_lang.nodes import literal
from isr_trace.cases import option
from isr_trace.codec import Json
from isr_trace.lasso import put_off_there
from isr_trace.reasons import Explainer, ReasonEntry, entry, substitute
from isr_trace.replay import Evaluator, Move, Replay, Values
from isr_trace.story import phrase
from isr_trace.trace import Trace
from isr_visual.sources import Source, source
from isr_visual.states import ChangeLine, changed_cells, expressions
from isr_visual.strip import Strip


class Turn(TypedDict):
    """A step of the schedule there. `refused`: the guard that says no, with its values; `apart`: in which cells the
    state is another than the trace's; `broken`: the promises that the state or the step into it breaks."""

    values: dict[str, Json]
    refused: ReasonEntry | None
    apart: list[ChangeLine]
    broken: list[str]


class Counterfactual(TypedDict):
    """`label`: the design, and the settings in which it differs; `parts`: the first step after which the states differ,
    or that is refused, None if there is none. `put_off`: of a trace that goes round, what would have to happen there.
    """

    design: str
    label: str
    summary: str
    parts: int | None
    put_off: str
    source: Source | None
    turns: list[Turn]


def counterfactual(trace: Trace, states: tuple[Values, ...], here: Evaluator, there: Evaluator) -> Counterfactual:
    """The schedule of the trace under another design at the same bounds."""
    replay, strip = Replay(there), Strip(there)
    state = replay.start(tuple(trace.initial.values()))
    turns = [_turn(None, state, strip, here, states[0], None)]
    for step, own_state in zip(trace.steps, states[1:], strict=True):
        move = Move(step.action, tuple(step.parameters.values()))
        successor = replay.successors(state).get(move)
        refused = _refusal(there, state, move) if successor is None else None
        before, state = state, state if successor is None else successor
        turns.append(_turn(None if successor is None else before, state, strip, here, own_state, refused))
    parts = next((i for i, t in enumerate(turns) if t["refused"] is not None or t["apart"]), None)
    action = trace.steps[parts - 1].action if parts else ""
    parting_action = next((a.action for a in there.instance.actions if a.name == action), None)
    put_off = put_off_there(trace, there)
    return Counterfactual(
        design=there.instance.design.name,
        label=_label(here, there),
        summary=there.instance.design.summary,
        parts=parts,
        put_off="" if put_off is None else str(put_off),
        source=source(parting_action.where) if parting_action is not None else None,
        turns=turns,
    )


TELLING = ("log", "high_watermark", "committed", "controller_leader", "controller_isr")
"""Of the cells in which two designs differ, those that a reader knows from the picture, the best first."""


def keeps_promise(alternative: Counterfactual, trace: Trace) -> bool:
    """Whether the other design keeps the promise under this schedule, and does something else than the trace, or would
    have to leave its loop."""
    if trace.loop is not None:
        return bool(alternative["put_off"])
    return alternative["parts"] is not None and not breaks_promise(alternative, trace)


def breaks_promise(alternative: Counterfactual, trace: Trace) -> bool:
    """Whether the other design breaks the promise under this schedule."""
    return any(trace.property_name in turn["broken"] for turn in alternative["turns"])


def mending(trace: Trace, alternative: Counterfactual) -> str:
    """A sentence on what the other design does instead: the rule in words, then what it refuses or where it differs."""
    parts = alternative["parts"]
    if alternative["put_off"]:
        return f"{alternative['label']} has to leave this loop: there {alternative['put_off']}."
    if parts is None or not trace.property_name or trace.loop is not None:
        return ""
    broken = next((i for i, turn in enumerate(alternative["turns"]) if trace.property_name in turn["broken"]), None)
    rule = f": {alternative['summary'].rstrip('.')}" if alternative["design"] != trace.design else ""
    if broken is not None:
        return f"{alternative['label']} does not help{rule}; there the promise breaks at T{broken}."
    refused = next((i for i, turn in enumerate(alternative["turns"]) if turn["refused"] is not None), None)
    if refused is not None:
        sentence = f"There T{refused} is refused ({phrase(trace, trace.steps[refused - 1])})"
    else:
        cell = min(alternative["turns"][parts]["apart"], key=lambda c: _rank(c["path"]))
        name, text = cell["path"], cell["after"] or f"without {cell['before']}"
        sentence = f"It does otherwise at T{parts}: {name} is {text}" + (
            f", not {cell['before']}" if cell["after"] else ""
        )
    return f"{alternative['label']} keeps the promise{rule}. {sentence.removesuffix(', not ')}."


def _rank(path: str) -> int:
    name = path.split("[")[0].split(".")[0]
    return TELLING.index(name) if name in TELLING else len(TELLING)


def _label(here: Evaluator, there: Evaluator) -> str:
    ours, theirs = here.instance.constants, there.instance.constants
    other = [option(name, value) for name, value in theirs.items() if name in ours and ours[name] != value]
    return " ".join([there.instance.design.name, *other])


def _turn(
    before: Values | None, state: Values, strip: Strip, here: Evaluator, own_state: Values, refusal: ReasonEntry | None
) -> Turn:
    there = expressions(strip.evaluator.instance, state)
    ours = expressions(here.instance, own_state)
    both = {name: value for name, value in ours.items() if name in there}
    apart = changed_cells(both, {name: there[name] for name in both})
    return Turn(values=there, refused=refusal, apart=apart, broken=strip.broken_promises(before, state))


def _refusal(there: Evaluator, state: Values, move: Move) -> ReasonEntry:
    """The first guard that does not hold, explained."""
    action = next((a for a in there.instance.actions if a.name == move.action), None)
    if action is None or len(action.parameters) != len(move.parameters):
        return _nothing(f"there is no step {move.action} in {there.instance.design.name}")
    explainer = Explainer(there, state, None)
    for condition in _conditions(action, move):
        if not there.evaluate(condition, state):
            return entry(explainer.why(condition, holds=False))
    return _nothing(f"{move.action} has no such outcome")


def _conditions(action: FoldedAction, move: Move) -> list[Node]:
    values = zip(action.parameters, move.parameters, strict=True)
    given = cast("dict[object, Node]", {name: literal(value, type) for (name, type), value in values})
    return [substitute(guard.condition, given) for guard in action.guards]


def _nothing(text: str) -> ReasonEntry:
    return ReasonEntry(text=text, says="", holds=False, binding="", note="", values={}, because=[])


def without_states(alternative: Counterfactual) -> Counterfactual:
    """Each turn with only the variables that changed since the turn before, which is what a page needs."""
    known: dict[str, Json] = {}
    turns: list[Turn] = []
    for turn in alternative["turns"]:
        turns.append({**turn, "values": {n: v for n, v in turn["values"].items() if n not in known or known[n] != v}})
        known = turn["values"]
    return {**alternative, "turns": turns}
