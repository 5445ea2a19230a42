"""A trace for the terminal: T0 to Tn, each with what was done, what that means and what it changed.

Everything is lines of `rich` text, so one rendering serves a colour terminal, a log and a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from isr_lang import show as show_value
from isr_trace.diff import Change, changes, expression, text_of
from isr_trace.scene import Scene, legend, scene
from isr_trace.trace import Minimisation, Step, Trace

ADDITION, REMOVAL, CHANGE, QUIET = "green", "red", "yellow", "dim"


def print_trace(trace: Trace, console: Console | None = None, *, scenes: bool = True, full: bool = False) -> None:
    """Print the story; without colour where `NO_COLOR` is set or nobody watches."""
    out = console or Console(highlight=False, markup=False, emoji=False)
    for line in story(trace, scenes=scenes, full=full):
        out.print(line, soft_wrap=True, highlight=False)


def plain_text(lines: Iterable[Text]) -> str:
    return "".join(line.plain.rstrip() + "\n" for line in lines)


def story(trace: Trace, *, scenes: bool = True, full: bool = False) -> Iterator[Text]:
    """The whole trace; `full` shows every variable at every step, not only what changed."""
    yield from heading(trace)
    if scenes and scene(trace, 0) is not None:
        yield Text(f"  {legend(trace)}", style=QUIET)
    for index in range(len(trace.states)):
        yield Text()
        yield from beat(trace, index, scenes=scenes, full=full)
    if trace.loop is not None:
        yield Text()
        yield ending(trace)


def ending(trace: Trace) -> Text:
    """How a behaviour that never ends goes on."""
    last = len(trace.states) - 1
    if trace.loop == last and not trace.foreign:
        return Text(
            f"and so it stays for ever: T{last} again and again, and no fair action could change it", style="bold"
        )
    if trace.loop is not None and not trace.foreign and trace.states[trace.loop] == trace.states[last]:
        return Text(f"T{last} is T{trace.loop} again: what happened since then happens for ever", style="bold")
    return Text(f"then T{trace.loop} again, for ever", style="bold")


def heading(trace: Trace) -> Iterator[Text]:
    """What the trace is of and what it shows."""
    count = _steps(len(trace.states) - 1)
    if trace.foreign:
        yield Text(f"a trace of another program, {count}, {len(trace.variables)} variables", style="bold")
        return
    about = f": {trace.property_name} {trace.verdict}".rstrip() if trace.property_name else ""
    yield Text(f"{trace.design}{about}, {count}", style="bold")
    if trace.promise:
        yield Text(f"  {trace.promise}")
    if trace.constants:
        yield Text("  " + " ".join(f"{k}={_plain(v)}" for k, v in trace.constants.items()), style=QUIET)
    for what, actions in (("without", trace.without), ("not fair:", trace.unfair), ("strongly fair:", trace.strong)):
        if actions:
            yield Text(f"  {what} {', '.join(actions)}", style=QUIET)
    if trace.anywhere:
        yield Text("  from a state that satisfies the invariant, and that perhaps nothing leads to", style=QUIET)
    if trace.minimisation is not None:
        yield Text(f"  {minimality(trace.minimisation)}", style=QUIET)


def minimality(m: Minimisation) -> str:
    """How short the trace is, and how sure that is."""
    how = f"minimised from {m.before} to {_steps(m.after)}" if m.after < m.before else _steps(m.after)
    return f"{how}, and no shorter trace exists" if m.shortest else f"{how}, of which none can be left out"


def _steps(n: int) -> str:
    return "1 step" if n == 1 else f"{n} steps"


def _plain(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def beat(trace: Trace, index: int, *, scenes: bool = True, full: bool = False) -> Iterator[Text]:
    """One moment: T0 with all variables, or a step with what it changed."""
    picture = scene(trace, index) if scenes else None
    title = Text(f"T{index}", style="bold")
    if trace.loop is not None and index > trace.loop:
        title.append("  loop", style=CHANGE)
    if index and trace.steps:
        step = trace.steps[index - 1]
        yield title.append("  ").append(step.action).append(_parameters_text(trace, step), style="default not bold")
        sentence = narration(trace, step)
        if sentence:
            yield Text("    " + sentence)
    else:
        yield title.append("  somewhere" if trace.anywhere and not index else "  start" if not index else "")
    if index:
        yield from _change_lines(changes(trace, index))
    if full or (not index and picture is None):
        yield from table(trace, index)
    if picture is not None:
        yield from _scene_lines(picture)


def _parameters_text(trace: Trace, step: Step) -> str:
    return f"({trace.parameters_text(step)})"


def narration(trace: Trace, step: Step) -> str:
    """The action's sentence, its `parameters` in backquotes replaced by their values."""
    note = trace.actions.get(step.action)
    if note is None or not note.does:
        return ""
    values = {name: show_value(value, note.parameters[name]) for name, value in step.parameters.items()}
    return re.sub(r"`(\w+)`", lambda m: values.get(m[1], m[0]), note.does)


def _change_lines(cell_changes: list[Change]) -> Iterator[Text]:
    if not cell_changes:
        yield Text("      nothing that is recorded changes", style=QUIET)
    width = max((len(c.path) for c in cell_changes), default=0)
    for change in cell_changes:
        line = Text("      " + change.path.ljust(width) + "  ")
        if not change.before:
            yield line.append(f"+ {change.after}", style=ADDITION)
        elif not change.after:
            yield line.append(f"- {change.before}", style=REMOVAL)
        else:
            yield line.append(change.before).append(" -> ", style=QUIET).append(change.after, style=CHANGE)


def table(trace: Trace, index: int) -> Iterator[Text]:
    """Every variable with its value."""
    width = max(map(len, trace.variables), default=0)
    for name in trace.variables:
        value = expression(trace, index, name)
        if value is not None:
            yield Text(f"      {name.ljust(width)}  {text_of(value)}", style=QUIET)


def _scene_lines(picture: Scene) -> Iterator[Text]:
    lines, lost = picture.lines(), len(picture.losses)
    for i, line in enumerate(lines):
        yield Text("      " + line, style="bold red" if i >= len(lines) - lost else "")
