"""`insync scenes`: teaching scenes, captioned schedules that the model plays, so that no picture can lie."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from insync_cli.tracefiles import steps_of, write
from isr_check.reference import Evaluator
from isr_report.scenes import STANDARD, Scene, load_scenes, played
from isr_trace.itf import itf_text, write_text
from isr_trace.scene import LEGEND, scene
from isr_trace.trace import Trace, TraceError

EXAMPLE = """\
insync scenes
insync scenes isr-is-not-a-quorum
insync scenes last-replica-standing --html scene.html
insync scenes isr-is-not-a-quorum --itf scene.itf.json"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("scenes", "Teaching scenes: each is played on the model before it is shown.", EXAMPLE)
    p.add_argument("scene", metavar="SCENE", nargs="?", help="one of them; without it, all are checked and listed")
    p.add_argument("--scenes", metavar="FILE", help=f"other scenes than the standard ones ({STANDARD.name})")
    p.add_argument("--html", metavar="FILE", help="a page to walk through, with the captions")
    p.add_argument("--itf", metavar="FILE", help="the trace")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    known = loaded(cast("str | None", given.scenes))
    target = cast("str | None", given.json)
    terminal.check_json_target(target)
    name = cast("str | None", given.scene)
    if name is None and (given.html or given.itf):
        raise UsageError(f"which scene? They are {', '.join(s.name for s in known)}")
    chosen = [s for s in known if name in (None, s.name)]
    if not chosen:
        raise UsageError(f"there is no scene '{name}'{did_you_mean(str(name), [s.name for s in known])}")
    traces = {s.name: trace_of(s) for s in chosen}
    terminal.write_json(target, {"schema": "insync/scenes/1", "scenes": [entry(s, traces[s.name]) for s in chosen]})
    if target != "-":
        tell(chosen, traces, given, one=name is not None)
    return written(chosen[0], traces, given)


def entry(s: Scene, trace: Trace) -> dict[str, object]:
    """A scene as JSON: its captions, and the steps with what they changed."""
    about: dict[str, object] = {"name": s.name, "title": s.title, "lesson": s.lesson.strip(), "breaks": s.breaks}
    return {**about, "says": [b.says for b in s.beats], "trace": steps_of(trace)}


def tell(chosen: Sequence[Scene], traces: Mapping[str, Trace], given: Namespace, *, one: bool) -> None:
    """The list of them, or one with all its captions."""
    out = terminal.console(plain=cast("bool", given.plain))
    for s in chosen:
        out.print(f"{s.name}: {s.title}", style="bold", soft_wrap=True)
        terminal.print_wrapped(out, " ".join(s.lesson.split()), 2)
        if not one:
            out.print(f"  {s.design}, {terminal.count(len(s.beats), 'step')}, played on the model\n", soft_wrap=True)
            continue
        out.print(f"  {LEGEND}\n", style="dim", soft_wrap=True)
        for line in told(s, traces[s.name]):
            out.print(line, soft_wrap=True)


def written(s: Scene, traces: Mapping[str, Trace], given: Namespace) -> Exit:
    """The trace and the page of a scene, where asked for."""
    if given.itf:
        write(traces[s.name], Path(cast("str", given.itf)))
    if given.html:
        try:
            write_text(Path(cast("str", given.html)), page_of(s, traces[s.name]))
        except TraceError as problem:
            raise UsageError(str(problem)) from None
    return Exit.HOLDS


def loaded(path: str | None = None) -> tuple[Scene, ...]:
    try:
        return load_scenes(Path(path) if path else STANDARD)
    except TraceError as problem:
        raise InputError(str(problem)) from None


def evaluator_of(s: Scene) -> Evaluator:
    return Evaluator(registry.instance_of(registry.design_less(s.design, s.without), s.settings))


def trace_of(s: Scene) -> Trace:
    """The scene, played; InputError where the model does not do what it says."""
    try:
        return played(s, evaluator_of(s))
    except TraceError as problem:
        raise InputError(str(problem)) from None


def told(s: Scene, trace: Trace) -> list[str]:
    """The captions, each above the state that it speaks of."""
    lines: list[str] = []
    for i, beat in enumerate(s.beats, 1):
        drawn = scene(trace, i)
        lines += [f"T{i}  {beat.says}", f"    {beat.do}"]
        lines += [f"      {line}" for line in drawn.lines()] if drawn is not None else []
        lines.append("")
    ending = f"{s.breaks} is broken now, and was not before" if s.breaks else "no promise is broken at any step"
    refused = [f"refused here: {step}" for step in s.refused]
    return [*lines, ending, *refused]


def page_of(s: Scene, trace: Trace) -> str:
    """The page of the visualiser, which says the scene's captions instead of the actions' sentences."""
    from isr_visual.document import Model, document
    from isr_visual.page import page

    evaluator = evaluator_of(s)
    made = document(trace, s.name, model=Model(evaluator, evaluator))
    for step, beat in zip(made["steps"], s.beats, strict=True):
        step["says"] = beat.says
    return page([(made, itf_text(trace))], s.title)
