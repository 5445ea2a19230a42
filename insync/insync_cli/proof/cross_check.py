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
    proof_question: Question,
    lines: Sequence[ObligationLine],
    promises: Sequence[PromiseLine],
    command: Sequence[str],
    workers: int,
    limits: Limits,
    progress: Callable[[Progress], None],
    folder: Folder,
) -> ExploredLine:
    """Every reachable state at the bounds given, or the design's own; the run file and traces go into the folder."""
    design = registry.promising(proof_question.design, proof_question.promises)
    instance = registry.instance_of(design, proof_question.closed())
    there = {p.name for p in instance.properties}
    names = [
        n
        for n in (*(p.name for p in proof_question.properties), *(c.name for c in proof_question.conjuncts))
        if n in there
    ]
    wanted = (TYPE_OK, *dict.fromkeys(names))
    engine = registry.default_engine()
    explore, workers = registry.engine_named(engine, workers)
    result = explore(instance, wanted, limits, progress)
    terminal.make_folder(folder)
    run = runfile.run_file(
        instance,
        result,
        command=command,
        version=version(),
        engine=engine,
        workers=workers,
        findings=result.findings,
        traces=_save_traces(proof_question, instance, result, folder),
    )
    run["model_hash"] = proof_question.design.model_hash()
    terminal.write_json(str(folder / "run.json"), run)
    return ExploredLine(
        bounds=registry.bounds_of(instance),
        verdict=run["verdict"],
        distinct=result.distinct,
        complete=result.complete,
        disagreements=disagreements(proof_question, lines, promises, result),
        run=str(folder / "run.json"),
    )


def disagreements(
    proof_question: Question, lines: Sequence[ObligationLine], promises: Sequence[PromiseLine], result: Exploration
) -> list[str]:
    """What is proved and yet violated: one of the two engines is wrong."""
    proved = {line["name"] for line in promises if line["verdict"] == Verdict.PROVED}
    if not proof_question.partial and all(line["verdict"] == "proved" for line in lines if line["kind"] != "implies"):
        proved |= {TYPE_OK, *(c.name for c in proof_question.conjuncts)}
    violated = [f for f in result.findings if f.verdict is Verdict.VIOLATED and f.name in proved]
    return [f"{f.name} is proved, and violated after {len(f.path.steps) if f.path else 0} steps" for f in violated]


def _save_traces(proof_question: Question, instance: Instance, result: Exploration, folder: Folder) -> dict[str, str]:
    """The counterexamples as traces of the design itself, which does not promise the conjuncts."""
    evaluator, trace_paths = Evaluator(instance), dict[str, str]()
    for f in result.findings:
        if f.path is None:
            continue
        trace = record(
            evaluator,
            f.path.initial,
            f.path.steps,
            property_name=f.name,
            verdict=f.verdict.value,
            shortest=True,
            without=registry.left_out(proof_question.design),
        )
        path = folder / f"{f.name}{SUFFIX}"
        write(attrs.evolve(trace, model_hash=proof_question.design.model_hash()), path)
        trace_paths[f.name] = str(path)
    return trace_paths
