"""What was proved is explored, too: two engines that share nothing but the model have to agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path as Folder

import attrs

from insync_cli import registry, runfile, terminal
from insync_cli.proof.question import ExploredLine, ObligationLine, PromiseLine, Question
from insync_cli.tracefiles import SUFFIX, write
from insync_cli.version import version
from isr_check.engine import TYPE_OK, Exploration, Limits, Progress, Verdict
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_trace.replay import record


def explored(
    asked: Question,
    lines: Sequence[ObligationLine],
    promises: Sequence[PromiseLine],
    command: Sequence[str],
    workers: int,
    limits: Limits,
    progress: Callable[[Progress], None],
    folder: Folder,
) -> ExploredLine:
    """Every reachable state at the bounds given, or the design's own; the run file and traces go into the folder."""
    design = registry.promising(asked.design, asked.promises)
    instance = registry.instance_of(design, asked.closed())
    there = {p.name for p in instance.properties}
    names = [n for n in (*(p.name for p in asked.wanted), *(c.name for c in asked.conjuncts)) if n in there]
    wanted = (TYPE_OK, *dict.fromkeys(names))
    engine = registry.default_engine()
    explore, workers = registry.engine_named(engine, workers)
    found = explore(instance, wanted, limits, progress)
    terminal.make_folder(folder)
    run = runfile.run_file(
        instance,
        found,
        command=command,
        version=version(),
        engine=engine,
        workers=workers,
        findings=found.findings,
        traces=_saved(asked, instance, found, folder),
    )
    run["model_hash"] = asked.design.model_hash()
    terminal.write_json(str(folder / "run.json"), run)
    return ExploredLine(
        bounds=registry.bounds_of(instance),
        verdict=run["verdict"],
        distinct=found.distinct,
        complete=found.complete,
        disagreements=disagreements(asked, lines, promises, found),
        run=str(folder / "run.json"),
    )


def disagreements(
    asked: Question, lines: Sequence[ObligationLine], promises: Sequence[PromiseLine], found: Exploration
) -> list[str]:
    """What is proved and yet violated: one of the two engines is wrong."""
    proved = {line["name"] for line in promises if line["verdict"] == Verdict.PROVED}
    if not asked.partial and all(line["verdict"] == "proved" for line in lines if line["kind"] != "implies"):
        proved |= {TYPE_OK, *(c.name for c in asked.conjuncts)}
    violated = [f for f in found.findings if f.verdict is Verdict.VIOLATED and f.name in proved]
    return [f"{f.name} is proved, and violated after {len(f.path.steps) if f.path else 0} steps" for f in violated]


def _saved(asked: Question, instance: Instance, found: Exploration, folder: Folder) -> dict[str, str]:
    """The counterexamples as traces of the design itself, which does not promise the conjuncts."""
    evaluator, saved = Evaluator(instance), dict[str, str]()
    for f in found.findings:
        if f.path is None:
            continue
        trace = record(
            evaluator,
            f.path.initial,
            f.path.steps,
            property_name=f.name,
            verdict=f.verdict.value,
            shortest=True,
            without=registry.left_out(asked.design),
        )
        path = folder / f"{f.name}{SUFFIX}"
        write(attrs.evolve(trace, model_hash=asked.design.model_hash()), path)
        saved[f.name] = str(path)
    return saved
