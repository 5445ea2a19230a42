"""`insync scenes`: teaching scenes, captioned schedules that the model plays, so that no picture can lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from insync_cli.options import Usage, group, option, optional_argument
from insync_cli.terminal import Output
from insync_cli.tracefiles import steps_of, write
from insync_cli.view.remedy import at
from isr_check.reference import Evaluator
from isr_report.scenes import STANDARD, Scene, load_scenes, play_scene
from isr_trace.itf import itf_text, write_text
from isr_trace.scene import LEGEND, scene
from isr_trace.trace import Trace, TraceError

if TYPE_CHECKING:
    from rich.console import Console

    from isr_visual.document import Document

EXAMPLE = """\
insync scenes
insync scenes isr-is-not-a-quorum
insync scenes last-replica-standing --html scene.html
insync scenes isr-is-not-a-quorum --itf scene.itf.json"""
USAGE = Usage("scenes", "Teaching scenes: each is played on the model before it is shown.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    scene: str | None = optional_argument("SCENE", "one of them; without it, all are checked and listed", str)
    scenes: Path = option("FILE", "other scenes than the standard ones", Path, STANDARD)
    own: options.OwnDesigns = group(options.OwnDesigns)
    html: Path | None = option("FILE", "a page to walk through, with the captions", Path)
    itf: Path | None = option("FILE", "the trace", Path)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    all_scenes, name = read_scenes(invocation.scenes), invocation.scene
    invocation.output.check()
    if name is None and (invocation.html or invocation.itf):
        raise UsageError(f"which scene? They are {', '.join(s.name for s in all_scenes)}")
    chosen_scenes = [s for s in all_scenes if name in (None, s.name)]
    if not chosen_scenes:
        raise UsageError(f"there is no scene '{name}'{did_you_mean(str(name), [s.name for s in all_scenes])}")
    traces = {s.name: trace_of(s) for s in chosen_scenes}
    invocation.output.write({"schema": "insync/scenes/1", "scenes": [entry(s, traces[s.name]) for s in chosen_scenes]})
    if invocation.output.for_people:
        tell(chosen_scenes, traces, invocation.output.console(), one=name is not None)
    if invocation.itf:
        write(traces[chosen_scenes[0].name], invocation.itf)
    if invocation.html:
        write_page(chosen_scenes[0], traces[chosen_scenes[0].name], invocation.html)
    return Exit.HOLDS


def entry(s: Scene, trace: Trace) -> dict[str, object]:
    """A scene as JSON: its captions, and the steps with what they changed."""
    about: dict[str, object] = {"name": s.name, "title": s.title, "lesson": s.lesson.strip(), "breaks": s.breaks}
    return {**about, "says": [b.says for b in s.beats], "trace": steps_of(trace)}


def tell(chosen_scenes: Sequence[Scene], traces: Mapping[str, Trace], out: Console, *, one: bool) -> None:
    """The list of them, or one with all its captions."""
    for s in chosen_scenes:
        out.print(f"{s.name}: {s.title}", style="bold", soft_wrap=True)
        terminal.print_wrapped(out, " ".join(s.lesson.split()), 2)
        if not one:
            out.print(f"  {s.design}, {terminal.count(len(s.beats), 'step')}, played on the model\n", soft_wrap=True)
            continue
        out.print(f"  {LEGEND}\n", style="dim", soft_wrap=True)
        for line in caption_lines(s, traces[s.name]):
            out.print(line, soft_wrap=True)


def write_page(s: Scene, trace: Trace, file: Path) -> None:
    try:
        write_text(file, page_of(s, trace))
    except TraceError as problem:
        raise UsageError(str(problem)) from None


def read_scenes(path: Path = STANDARD) -> tuple[Scene, ...]:
    try:
        return load_scenes(path)
    except TraceError as problem:
        raise InputError(str(problem)) from None


def evaluator_of(s: Scene) -> Evaluator:
    return Evaluator(registry.instance_of(registry.design_less(s.design, s.without), s.settings))


def trace_of(s: Scene) -> Trace:
    """The scene, played; InputError where the model does not do what it says."""
    try:
        return play_scene(s, evaluator_of(s))
    except TraceError as problem:
        raise InputError(str(problem)) from None


def caption_lines(s: Scene, trace: Trace) -> list[str]:
    """The captions, each above the state that it speaks of."""
    lines: list[str] = []
    for i, beat in enumerate(s.beats, 1):
        drawn = scene(trace, i)
        lines += [f"T{i}  {beat.says}", f"    {beat.do}"]
        lines += [f"      {line}" for line in drawn.lines()] if drawn is not None else []
        lines.append("")
    ending = f"{s.breaks} is broken now, and was not before" if s.breaks else "no promise is broken at any step"
    refused = [f"refused here: {step}" for step in s.refused_steps]
    return [*lines, ending, *refused]


def beside(s: Scene, trace: Trace) -> Evaluator | None:
    """The model under which the scene is played once more, if it names one."""
    if not s.beside:
        return None
    return at(registry.design_named(s.beside), {**trace.constants, **s.beside_settings}, trace.without)


def page_of(s: Scene, trace: Trace) -> str:
    """The page of the visualiser, which says the scene's captions instead of the actions' sentences."""
    from isr_visual.page import page

    return page([(document_of(s, trace), itf_text(trace))], s.title)


def document_of(s: Scene, trace: Trace) -> Document:
    """What the page is made from."""
    from isr_visual.document import Model, document

    evaluator = evaluator_of(s)
    made = document(trace, s.name, model=Model(evaluator, evaluator, beside(s, trace)))
    for step, beat in zip(made["steps"], s.beats, strict=True):
        step["says"] = beat.says
    return made
