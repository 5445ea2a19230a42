"""The pages that a report links to: stories with their controls, counterexamples and witnesses of cells, scenes."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import attrs

from insync_cli import options, registry, runfile, terminal
from insync_cli.families import family_of
from insync_cli.progress import Ticker
from insync_cli.room_line import notice_line, precursor_line, room_line
from insync_cli.version import version
from insync_cli.view import pages, scenes
from isr_check.engine import Limits
from isr_check.reference import Evaluator
from isr_report.html import HOLDS
from isr_report.material import CheckAnswer, Control, PlayedScene, Question, Story, Together
from isr_report.matrix.coverage import probes
from isr_report.matrix.grid import VIOLATED, CellEntry, Matrix, is_probe, verdict_of
from isr_report.scenes import Scene
from isr_trace.cases import Case
from isr_trace.itf import itf_text, read_itf, write_text
from isr_trace.replay import Replay, run_of, trace_of
from isr_trace.trace import Trace
from isr_visual.document import Document
from isr_visual.page import page as visual_page
from isr_visual.schedule import counterfactual, keeps_promise

MATRIX, CASES, CELLS, ANSWERS, GALLERY = "matrix", "cases", "cells", "answers", "gallery.html"
TODAY = "kip-966"
CELLS_TRIED = 4
"""Of the cells where a promise holds, how many are tried for one that stops the schedule."""


@attrs.frozen
class Shelf:
    """Where the pages of stories and scenes go: each into a file of its own, or (`one`) all into one gallery, which has
    its script once."""

    folder: Path
    one: bool
    documents: list[tuple[Document, str]] = attrs.field(factory=list[tuple[Document, str]])

    def put(self, document: Document, itf: str, target: str, title: str) -> str:
        """Where the page is then, relative to the folder."""
        if not self.one:
            write_text(self.folder / target, visual_page([(document, itf)], title))
            return target
        self.documents.append((document, itf))
        place = {
            "t": str(len(document["states"]) - 1),
            "model": document["model_hash"] or "none",
            "trace": document["digest"][:12],
        }
        return f"{GALLERY}#{urlencode(place)}"

    def close(self) -> None:
        """Write the gallery, if there is one."""
        if self.documents:
            write_text(self.folder / GALLERY, visual_page(self.documents, "Stories and scenes"))


def story(case: Case, corpus: Path, running: options.RunningEach, shelf: Shelf) -> Story:
    """A case with its page, its trace, and both of its controls run again."""
    folder = shelf.folder
    source = corpus / case.name / "trace.itf.json"
    itf, target = f"{CASES}/{case.name}.itf.json", f"{CASES}/{case.name}.html"
    terminal.make_folder(folder / CASES)
    shutil.copyfile(source, folder / itf)
    trace = read_itf(source)
    target = shelf.put(pages.trace_document(source, trace), itf_text(trace), target, case.title)
    found = control(case.command, f"{CASES}/{case.name}-broken.json", running, folder)
    fixed = control(case.fixed_command, f"{CASES}/{case.name}-mended.json", running, folder) if case.fixed_by else None
    return Story(case, trace, target, itf, found, fixed)


def control(command: str, target: str, running: options.RunningEach, folder: Path) -> Control:
    """Run `insync check ...` of a case, judged as that command judges; its run file goes into the report's folder."""
    from insync_cli.model import check

    invocation = options.read_options(check.Options, check.USAGE, shlex.split(command)[2:])
    design = invocation.world.design
    instance, family = registry.instance_with_room(design, invocation.world.constants), family_of(design)
    probes = family.probes(invocation.properties)
    probed, wanted = instance.promising(*probes), (*invocation.properties, *(p.name for p in probes))
    engine = running.engine_name
    explore, workers = registry.engine_named(engine, running.workers or 1)
    result = explore(probed, wanted, Limits(running.max_states, running.max_seconds), lambda _: None)
    judge, _ = registry.engine_named(registry.default_engine(), workers)
    worth = family.worth(instance, result, invocation.properties, judge, Limits())
    result, notice = family.noticing(instance, worth.exploration, invocation.properties)
    answer = runfile.run_file(
        instance,
        result,
        command=shlex.split(command),
        version=version(),
        engine=engine,
        workers=workers,
        room=room_line(worth.room),
        precursor=precursor_line(worth.precursor),
        notice=notice_line(notice),
        findings=result.findings,
        traces={},
    )
    terminal.write_json(str(folder / target), answer)
    line = answer["properties"][0]
    return Control(design.name, command, line["verdict"], line["depth"], answer["stats"]["distinct"], target)


def check_words(question: Question) -> list[str]:
    """What is typed after `insync` for the check that answers a question."""
    return ["check", *shlex.split(question.check)]


def check_answer(question: Question, number: int, running: options.RunningEach, shelf: Shelf) -> CheckAnswer:
    """A question's check, run as its command runs it; run file and counterexample go into the report's folder."""
    from insync_cli.model import check

    place, words = f"{ANSWERS}/{number}", check_words(question)
    limits = {"--max-states": running.max_states, "--max-seconds": running.max_seconds}
    more = [word for name, limit in limits.items() if limit is not None for word in (name, str(limit))]
    more += ["--engine", running.engine_name, "--out", str(shelf.folder / place), "--quiet"]
    answer = check.answer_of(options.read_options(check.Options, check.USAGE, [*words[1:], *more]))
    line, page = answer.run["properties"][0], ""
    if line["verdict"] == VIOLATED and line["trace"]:
        source = Path(line["trace"])
        trace = read_itf(source)
        page = shelf.put(pages.trace_document(source, trace), itf_text(trace), f"{place}.html", question.asks)
    lines = [{**p, "trace": p["trace"] and Path(p["trace"]).name} for p in answer.run["properties"]]
    told = {**answer.run, "command": ["insync", *words], "properties": lines}
    file = f"{place}/run.json"
    terminal.write_json(str(shelf.folder / file), told)  # as it is typed; its traces lie beside it
    design, distinct = answer.question.instance.design.name, answer.run["stats"]["distinct"]
    run = Control(design, shlex.join(["insync", *words]), line["verdict"], line["depth"], distinct, file)
    return CheckAnswer(line["name"], run, page)


def cell_pages(cell_matrix: Matrix, folder: Path, ticker: Ticker) -> dict[str, str]:
    """A page for the first promise that each cell breaks; cells whose stories are the same share it."""
    pages, stories = dict[str, str](), dict[object, str]()
    every = [(c, p) for c in cell_matrix["cells"] for p in c["promises"] if p["trace"] and not is_probe(p)]
    broken = [(c, p) for c, p in every if p["verdict"] == VIOLATED]
    for n, (cell, promise) in enumerate(broken, 1):
        ticker.count(n, len(broken), "counterexamples")
        name = str(promise["trace"])
        source = folder / MATRIX / name
        trace = read_itf(source)
        same = (cell["design"], promise["name"], tuple(trace.step_text(s) for s in trace.steps))
        if same not in stories:
            stories[same] = f"{CELLS}/{cell['name']}-{promise['name']}.html"
            if promise is next(p for p in cell["promises"] if p["verdict"] == VIOLATED):
                page_of_cell(source, trace, folder / stories[same], mending_cells(cell_matrix, cell, promise["name"]))
            else:
                del stories[same]
        if same in stories:
            pages[name] = stories[same]
    return pages


def mending_cells(cell_matrix: Matrix, cell: CellEntry, promise: str) -> list[CellEntry]:
    """The cells under the same fault and bounds where the promise holds, the nearest first: this design or a later one,
    with as few settings as possible changed, then as few designs as possible passed over."""
    names = [d["name"] for d in cell_matrix["designs"]]

    def settings_apart(c: CellEntry) -> int:
        return sum(c["settings"].get(n) != v for n, v in cell["settings"].items())

    def comparable(c: CellEntry) -> bool:
        said = verdict_of(c, promise)
        there, here = c["constants"], cell["constants"]
        same_world = all(there[n] == here[n] for n in there.keys() & here.keys() - cell["settings"].keys())
        later = names.index(c["design"]) >= names.index(cell["design"])
        return later and same_world and c["fault"] == cell["fault"] and said is not None and said["verdict"] in HOLDS

    good = [c for c in cell_matrix["cells"] if comparable(c)]
    return sorted(good, key=lambda c: (settings_apart(c), names.index(c["design"])))


def page_of_cell(source: Path, trace: Trace, target: Path, others: Sequence[CellEntry] = ()) -> None:
    """With the first of the other cells whose design, at its settings, does not come to the same end."""
    for other in others[:CELLS_TRIED]:
        settings = {n: other["constants"][n] for n in other["settings"]}
        document = pages.trace_document(source, trace, against=other["design"], settings=settings)
        against = document["against"]
        if against is not None and keeps_promise(against, trace):
            break
    else:
        document = pages.trace_document(source, trace)
    write_text(target, visual_page([(document, itf_text(trace))], f"{trace.design}: {trace.property_name}"))


def witness_pages(cell_matrix: Matrix, folder: Path) -> dict[str, str]:
    """A page for the shortest witness of each probe."""
    pages: dict[str, str] = {}
    for probe in probes(cell_matrix):
        if probe.shortest is not None and probe.shortest["trace"]:
            source = folder / MATRIX / probe.shortest["trace"]
            pages[probe.shortest["trace"]] = f"{CELLS}/witness-{probe.name}.html"
            page_of_cell(source, read_itf(source), folder / pages[probe.shortest["trace"]])
    return pages


def played_scene(s: Scene, shelf: Shelf) -> PlayedScene:
    trace = scenes.trace_of(s)
    target = shelf.put(scenes.document_of(s, trace), itf_text(trace), f"scenes/{s.name}.html", s.title)
    there = scenes.beside(s, trace)
    return PlayedScene(s, trace, target, side_by_side(trace, scenes.evaluator_of(s), there, target) if there else None)


def together(s: Story) -> Together:
    """The schedule of a story under today's design with its defaults."""
    here = Evaluator(registry.instance_of(registry.design_named(s.case.design), s.trace.constants))
    today = registry.design_named(TODAY)
    kept = {c.name for c in today.constants() if not c.names and c.name not in today.defaults}
    there = Evaluator(registry.instance_of(today, {n: v for n, v in s.trace.constants.items() if n in kept}))
    return side_by_side(s.trace, here, there, s.page)


def side_by_side(trace: Trace, here: Evaluator, there: Evaluator, page: str) -> Together:
    """A schedule under its own design and under another one, or at other settings."""
    states = run_of(trace, Replay(here)).states
    turns = counterfactual(trace, states, here, there)["turns"]
    refusals = [t["refused"]["text"] if t["refused"] is not None else "" for t in turns]
    off = {s.action for s in trace.steps} & set(there.instance.off_actions)
    refusals[1:] = [
        f"{step.action} is switched off at these settings" if step.action in off else said
        for step, said in zip(trace.steps, refusals[1:], strict=True)
    ]
    replay = Replay(there)
    moves = [m for m, no in zip(run_of(trace, Replay(here)).moves, refusals[1:], strict=True) if not no]
    run = replay.lenient(tuple(trace.initial.values()), moves)
    upto = [i - sum(bool(r) for r in refusals[1 : i + 1]) for i in range(len(refusals))]
    return Together(
        here=trace,
        there=trace_of(run, there.instance),
        here_label=f"{here.instance.design.name}, {settings_said(here)}",
        there_label=f"{there.instance.design.name}, {settings_said(there)}",
        upto=tuple(upto),
        refusals=tuple(refusals),
        page=page,
    )


def settings_said(evaluator: Evaluator) -> str:
    constants = evaluator.instance.constants
    return f"min ISR {constants.get('min_insync', 1)}, unclean {'on' if constants.get('unclean') else 'off'}"
