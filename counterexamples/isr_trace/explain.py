"""Why a trace ends where it does: the parts of the property that fail, and the steps that were needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import attrs
from rich.text import Text

from isr_lang import Instance, Where, show
from isr_lang.types import MapType, MaybeType, NumberType, SeqType, SortType, Type, position_in
from isr_trace.lasso import Loop, checked_run, loop_of
from isr_trace.reasons import Explainer, Reason
from isr_trace.replay import DEADLOCK, TYPE_OK, Evaluator, Replay, Run, Tell, check_goal, goal, tell_nobody
from isr_trace.trace import Trace

VALUES_ON_THE_LINE = 60


@attrs.frozen
class StepRole:
    """What the trace would be without this step.

    needed: everything else still happens, but the property is no longer decided; enabling: steps that come
    later (`enables`) cannot happen; removable: the property is decided all the same.
    """

    index: int
    text: str
    role: str
    enables: tuple[int, ...]


@attrs.frozen
class Explanation:
    """`reason` is about the last state, or for a property of steps the last step.

    Where the trace goes round it is about the state `at` which its `loop` begins, and no step has a role.
    """

    property_name: str
    verdict: str
    promise: str
    where: Where | None
    at: int
    reason: Reason
    steps: tuple[StepRole, ...]
    loop: Loop | None = None


def explain(trace: Trace, evaluator: Evaluator) -> Explanation:
    """Explain the trace by running it again; TraceError when it does not decide its property."""
    replay = Replay(evaluator)
    run = checked_run(trace, replay)
    loop = loop_of(trace, run, replay)
    if loop is None:
        check_goal(run, evaluator, trace.property_name)
    at = len(run.moves) if loop is None else loop.start
    declaration = next((p for p in evaluator.instance.properties if p.name == trace.property_name), None)
    return Explanation(
        trace.property_name,
        trace.verdict,
        declaration.doc if declaration is not None else trace.promise,
        declaration.where if declaration is not None else None,
        at,
        _reason(run, evaluator, trace.property_name, at),
        step_roles(trace, run, replay) if loop is None else (),
        loop,
    )


def _reason(run: Run, evaluator: Evaluator, name: str, at: int) -> Reason:
    instance, last = evaluator.instance, run.states[at]
    if name == TYPE_OK:
        outliers = [
            (path, f"{value}, outside {low}..{high}")
            for v, x in zip(instance.variables, last, strict=True)
            for path, value, low, high in _out_of_range(v.name, x, v.type, instance)
        ]
        return Reason("every variable is in its range", False, values=tuple(outliers))
    if name == DEADLOCK:
        return Reason("some step is possible", False, note="no action is possible in this state")
    p = next(p for p in instance.properties if p.name == name)
    holds = p.kind.startswith("sometimes")
    if p.kind.endswith("step"):
        return Explainer(evaluator, run.states[-2], last, "old.").why(p.condition, holds=holds)
    return Explainer(evaluator, last, None).why(p.condition, holds=holds)


def _out_of_range(path: str, value: object, type: Type, instance: Instance) -> Iterator[tuple[str, str, int, int]]:
    match type, value:
        case ((NumberType() | SortType()), int()):
            low, high = instance.bounds(type)
            if not low <= value <= high:
                yield path, show(value, type), low, high
        case MaybeType(), int() if value != 0:
            low, high = instance.bounds(type.of)
            if not low <= position_in(value) + low <= high:
                yield path, show(value, type), low, high
        case MapType(), tuple():
            entries = cast("tuple[object, ...]", value)
            for i, x in enumerate(entries, instance.bounds(type.key)[0]):
                yield from _out_of_range(f"{path}[{show(i, type.key)}]", x, type.value, instance)
        case SeqType(), tuple():
            cells, longest = cast("tuple[object, ...]", value), instance.bounds(type.index)[1]
            if len(cells) > longest:
                yield f"the length of {path}", str(len(cells)), 0, longest
            for i, x in enumerate(cells):
                yield from _out_of_range(f"{path}[{i}]", x, type.of, instance)
        case _:
            pass


# which steps were needed


def step_roles(trace: Trace, run: Run, replay: Replay, tell: Tell = tell_nobody) -> tuple[StepRole, ...]:
    """The role of each step: the trace without it, and without what then is impossible. `tell`: how far that is."""
    is_goal = goal(replay.evaluator, trace.property_name)
    roles: list[StepRole] = []
    for i in range(len(run.moves)):
        tell("steps left out for a trial", i, len(run.moves))
        state, states, impossible = run.states[i], list(run.states[: i + 1]), list[int]()
        for j in range(i + 1, len(run.moves)):
            successor = replay.successors(state).get(run.moves[j])
            if successor is None:
                impossible.append(j + 1)
            else:
                state = successor
                states.append(state)
        decided = any(is_goal(states[k - 1] if k else None, states[k]) for k in range(len(states)))
        role = "removable" if decided else "enabling" if impossible else "needed"
        roles.append(StepRole(i + 1, trace.step_text(trace.steps[i]), role, tuple(impossible)))
    return tuple(roles)


# as data and as text


def as_json(explanation: Explanation) -> dict[str, object]:
    """The explanation for `--json`: the tree of reasons and the roles of the steps; lines as `file:line`."""

    def plain(_owner: type, _field: object, value: object) -> object:
        return str(value) if isinstance(value, Where) else value

    return attrs.asdict(explanation, value_serializer=plain)


def explanation_lines(explanation: Explanation) -> Iterator[Text]:
    """The explanation for the terminal."""
    e = explanation
    # The reason of a promise that something is not so begins with what is so, and that holds.
    fails = e.verdict in ("VIOLATED", "NOT-INDUCTIVE")
    when = f"after T{e.at}" if e.loop is None else f"from T{e.at} on, for ever"
    yield Text(f"{e.property_name} {'fails' if fails else 'holds'} {when}", style="bold")
    for line in e.promise.splitlines():
        yield Text(f"  {line}")
    if e.where is not None:
        yield Text(f"  {e.where}", style="dim")
    yield Text()
    yield from reason_lines(e.reason, 1)
    if e.loop is not None:
        yield Text()
        yield Text("Why that is fair", style="bold")
        yield from (Text(f"  {line}") for line in loop_lines(e.loop))
    if not e.steps:
        return
    yield Text()
    yield Text("Which steps it took", style="bold")
    width = max(len(s.text) for s in e.steps)
    for s in e.steps:
        enables = f" T{', T'.join(map(str, s.enables))}" if s.role == "enabling" else ""
        style = "dim" if s.role == "removable" else ""
        yield Text(f"  {f'T{s.index}':<4} {s.text.ljust(width)}  {s.role}{enables}", style=style)


def loop_lines(loop: Loop) -> Iterator[str]:
    """What fairness asks for, and how the loop gives it."""
    for what, actions in loop.fairness():
        yield f"{what}: {', '.join(actions)}"
    for step in loop.fair_steps:
        yield (
            f"{step.text}: {'possible for ever' if step.always else f'possible at {step_names(step.possible_at)}'}, "
            + (f"taken at {step_names(step.taken_at)}" if step.taken_at else "never taken")
        )
    if not loop.fair_steps:
        yield "None of them is possible in the loop."


def step_names(steps: Iterable[int]) -> str:
    """`T3, T4`."""
    return ", ".join(f"T{i}" for i in steps)


def reason_lines(reason: Reason, depth: int = 0, *, lines: bool = True) -> Iterator[Text]:
    """The tree of reasons, what decides indented below what it decides; `lines`: with lines of the model."""
    pad = "  " * depth
    line = Text(pad)
    if reason.binding:
        line.append(f"{reason.binding}: ", style="bold")
    line.append(reason.text)
    line.append("  holds" if reason.holds else "  fails", style="green" if reason.holds else "red")
    if reason.note:
        line.append(f": {reason.note}", style="dim")
    shown = ", ".join(f"{name} = {value}" for name, value in reason.values)
    inline = len(shown) <= VALUES_ON_THE_LINE
    if shown and inline:
        line.append(f"  {shown}", style="yellow")
    yield line
    at = f" ({reason.where})" if lines and reason.where is not None else ""
    if reason.doc or at:
        yield Text(f"{pad}  {reason.doc}{at}".rstrip(), style="dim")
    for name, value in () if inline else reason.values:
        yield Text(f"{pad}  {name} = ").append(value, style="yellow")
    for part in reason.because:
        yield from reason_lines(part, depth + 1, lines=lines)
