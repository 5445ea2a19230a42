"""The functions: each puts its arguments into the words of a command, and asks what that command asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insync.errors import as_errors

if TYPE_CHECKING:
    from rich.console import Console

    from insync.answers import (
        AuditAnswer,
        CheckAnswer,
        DrillAnswer,
        HistoryAnswer,
        ProofAnswer,
        ReplayAnswer,
        View,
    )

Names = str | Sequence[str]
"""One name, or several."""
Files = str | Path | Sequence[str | Path]
"""One file, or several."""


def check(
    design: str,
    *,
    properties: Names = (),
    expect: Mapping[str, str] | None = None,
    liveness: bool = False,
    deadlock: bool = False,
    strict: bool = False,
    without: Names = (),
    unfair: Names = (),
    strong: Names = (),
    design_file: Files = (),
    engine: str | None = None,
    workers: int | None = None,
    max_states: int | None = None,
    max_seconds: float | None = None,
    symmetry: bool | None = None,
    reduction: bool | None = None,
    memory: str | None = None,
    simulate: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    **bounds: int | str | bool,
) -> CheckAnswer:
    """Explore every reachable state of a design, as `insync check` does, which says more of each argument.

    `design`: its name. `properties`: these only. `expect`: a verdict by property, else exit code 22. `liveness`: also
    what must come to pass. `deadlock`: also states without a next step. `strict`: a gap of coverage is exit code 21.
    `without`, `unfair`, `strong`: actions. `design_file`: Python with more designs. `engine`: native, reference or
    spark. `workers`: how many. `max_states`, `max_seconds`: limits. `symmetry`, `reduction`: fewer states. `memory`: as
    "2G". `simulate`: so many random walks instead, by `seed`. `out`: the folder for `run.json` and the traces, else one
    below `runs/`. `bounds`: bounds and settings by name, such as `replicas=2`. Exit codes: 0 holds, 12 safety and 13
    liveness violated, 20 inconclusive, 23 too small. Raises: InsyncError. Source: docs/commands.md.
    """
    options = {
        "property": properties,
        "expect": [f"{name}={verdict}" for name, verdict in (expect or {}).items()],
        "liveness": liveness or None,
        "coverage": "strict" if strict else None,
        **{"without": without, "unfair": unfair, "strong": strong, "design_file": design_file, "engine": engine},
        **{"workers": workers, "max_states": max_states, "max_seconds": max_seconds, "symmetry": symmetry},
        **{"reduction": reduction, "memory": memory, "simulate": simulate, "seed": seed, "out": out},
        **bounds,
    }
    with as_errors():
        import attrs

        from insync.answers import CheckAnswer, answer_from
        from insync.words import SILENT, check_bounds, command_of, words_of
        from insync_cli import registry
        from insync_cli.model import check as verb
        from insync_cli.options import read_options

        check_bounds(bounds, verb.Options, verb.USAGE)
        words = words_of([design], options, {"deadlock": deadlock})
        invocation = attrs.evolve(read_options(verb.Options, verb.USAGE, words), output=SILENT)
        answer = verb.answer_of(invocation)
        traces = [file for _, file in verb.violations(answer.run)]
        page = _page_of_traces(traces, registry.own_files()) if traces else None
        stats = answer.run["stats"]
        more: dict[str, object] = {
            "states": stats["distinct"],
            "transitions": stats["generated"],
            "depth": stats["depth"],
        }
        more |= {"seconds": stats["seconds"], "folder": answer.folder, "exit_code": int(answer.code)}
        view = _view(answer.run, lambda out: verb.show(out, answer), page)
        return answer_from(CheckAnswer, {**answer.run}, **more, view=view, command=command_of(verb.USAGE, words))


def prove(
    design: str,
    *,
    properties: Names = (),
    only: Names = (),
    actions: Names = (),
    without: Names = (),
    design_file: Files = (),
    seconds: float | None = None,
    workers: int | None = None,
    core: bool = False,
    look: int | None = None,
    cross_check: bool = False,
    learn: str | Path | None = None,
    proof: str | Path | None = None,
    out: str | Path | None = None,
    **bounds: int | str | bool,
) -> ProofAnswer:
    """Prove promises by induction, as `insync prove` does, which says more of each argument. It takes about a minute.

    `design`: its name. `properties`: these promises only. `only`, `actions`: a part of the proof, by conjunct and
    action. `without`: actions that are left out. `design_file`: Python with more designs. `seconds`: at most for one
    question. `workers`: processes. `core`: say which conjuncts each proof uses. `look`: seconds to look for the state
    of a counterexample. `cross_check`: explore, too. `learn`: a file of what earlier proofs found. `proof`: store it in
    this file. `out`: the folder for `prove.json` and the traces, else one below `runs/`. `bounds`: by name; "any"
    leaves one open. Exit codes: 0 proved, 12 violated, 14 a counterexample to induction, 20 not decided. Raises:
    InsyncError. Source: docs/proof.md.
    """
    options = {
        **{"property": properties, "only": only, "action": actions, "without": without, "design_file": design_file},
        **{"seconds": seconds, "workers": workers, "look": look, "learn": learn, "proof": proof, "out": out},
        **bounds,
    }
    with as_errors():
        import attrs

        from insync.answers import ProofAnswer, answer_from
        from insync.words import SILENT, check_bounds, command_of, words_of
        from insync_cli.options import read_options
        from insync_cli.proof import prove as verb
        from insync_cli.proof.prove_text import RunText
        from insync_cli.proof.question import question

        check_bounds(bounds, verb.Options, verb.USAGE)
        words = words_of([design], options, {"core": core, "cross_check": cross_check})
        invocation = verb.check_question(attrs.evolve(read_options(verb.Options, verb.USAGE, words), output=SILENT))
        silent = RunText(invocation.output.console(), core=core, quiet=True)
        answer = verb.answer_of(invocation, question(invocation), silent)
        view = _view(
            answer.report, lambda out: RunText(out, core=core).whole(answer.question, answer.report, answer.folder)
        )
        more: dict[str, object] = {
            "seconds": answer.report["stats"]["seconds"],
            "folder": answer.folder,
            "exit_code": int(answer.code),
        }
        return answer_from(ProofAnswer, {**answer.report}, **more, view=view, command=command_of(verb.USAGE, words))


def audit(
    describe: Files = (),
    *,
    bootstrap: str | None = None,
    client: str | Path | None = None,
    racks: str | Path | None = None,
    topics: Names = (),
    kafka: str | None = None,
    elr: bool | None = None,
    kraft: bool | None = None,
    brokers: bool = False,
    seconds: float | None = None,
) -> AuditAnswer:
    """What a cluster can lose, as `insync audit` says, from files, from the cluster, or from both.

    `describe`: files with what Kafka's tools print, or with settings of a broker. `bootstrap`: HOST:PORT of a cluster
    that is asked as an admin client. `client`: a client.properties for that. `racks`: a file of brokers and their
    racks, where they are not told. `topics`: these only. `kafka`: the release, where it is not told. `elr`: whether
    there are eligible leader replicas, likewise. `kraft`: whether there is KRaft, likewise; False is ZooKeeper.
    `brokers`: also which of them may be restarted now. `seconds`: explore what is not stored for so long each. Exit
    codes: 0 fine, 1 at risk, 2 a partition has no leader or refuses writes, or the cluster does not answer, 20 not
    decided. Raises: InsyncError. Source: docs/audit.md.
    """
    options = {
        **{"describe": describe, "bootstrap": bootstrap, "client": client, "racks": racks, "topic": topics},
        **{"kafka": kafka, "elr": elr, "kraft": kraft, "seconds": seconds},
    }
    with as_errors():
        import attrs

        from insync.answers import AuditAnswer, answer_from
        from insync.words import SILENT, command_of, words_of
        from insync_cli.clusters import audit as verb
        from insync_cli.clusters.audit_page import page_of
        from insync_cli.clusters.audit_short import exit_code
        from insync_cli.options import read_options

        words = words_of([], options, {"brokers": brokers})
        invocation = attrs.evolve(read_options(verb.Options, verb.USAGE, words), output=SILENT)
        report = verb.answer_of(invocation)
        whose = tuple(verb.outlooks_of(report, invocation)) if brokers else None
        told = verb.document(report, whose)
        view = _view(told, lambda out: verb.show(out, report, whose), lambda: page_of(report, whose))
        more: dict[str, object] = {"exit_code": int(exit_code(report)), "command": command_of(verb.USAGE, words)}
        return answer_from(AuditAnswer, told, **more, view=view)


def drill(
    steps: Names | Path,
    *,
    describe: Files = (),
    bootstrap: str | None = None,
    client: str | Path | None = None,
    racks: str | Path | None = None,
    topics: Names = (),
    kafka: str | None = None,
    elr: bool | None = None,
    kraft: bool | None = None,
    seconds: float | None = None,
) -> DrillAnswer:
    """What is lost by these steps, from the state that a cluster is in now, as `insync drill` says.

    `steps`: such as "stop 3" or "destroy 3 7; start 3 7", several of these, or a file of them. `describe`: files with
    what kafka-topics.sh --describe prints, and its like. `bootstrap`, `client`: a cluster that is asked, as of `audit`.
    `racks`: a file of brokers and their racks. `topics`: these only. `kafka`, `elr`, `kraft`: the release, eligible
    leader replicas and KRaft, where they are not told. `seconds`: explore each class of partitions for so long at most.
    Exit codes: 0 safe, 1 a partition may have no leader or refuse writes, 12 records may be lost, 20 unknown. Raises:
    InsyncError. Source: docs/drill.md.
    """
    options = {
        **{"describe": describe, "bootstrap": bootstrap, "client": client, "racks": racks, "topic": topics},
        **{"kafka": kafka, "elr": elr, "kraft": kraft, "seconds": seconds},
    }
    with as_errors():
        import attrs

        from insync.answers import DrillAnswer, answer_from
        from insync.words import SILENT, command_of, several, words_of
        from insync_cli.clusters import drill as verb
        from insync_cli.clusters.drill_page import page_of
        from insync_cli.clusters.drill_text import document
        from insync_cli.options import read_options

        words = words_of(["; ".join(map(str, several(steps)))], options, {})
        answer = verb.answer_of(attrs.evolve(read_options(verb.Options, verb.USAGE, words), output=SILENT))
        view = _view(document(answer), lambda out: verb.show(out, answer), lambda: page_of(answer))
        return answer_from(DrillAnswer, document(answer), view=view, command=command_of(verb.USAGE, words))


def history(
    file: str | Path,
    *,
    anomalies: Names | Sequence[int] = (),
    acks: str | int | None = None,
    isolation: str | None = None,
    idempotence: bool | None = None,
    exactly_once: bool | None = None,
    unclean: bool | None = None,
    min_insync: int | None = None,
    progress_acks: int | None = None,
    progress_within: float | None = None,
    max_lag: float | None = None,
    max_unavailable: float | None = None,
) -> HistoryAnswer:
    """Check what clients of any Kafka did and saw for the anomalies of a log, as `insync history` does.

    `file`: JSON lines, or EDN of Jepsen's kafka workload; it may be in a store (s3://...). `anomalies`: look for these
    only, by name or number. What the clients claim, instead of what the file says: `acks`, `isolation` (a level),
    `idempotence`, `exactly_once`, `unclean`, `min_insync`. Limits: `progress_acks` after a healing, and in seconds
    `progress_within`, `max_lag` and `max_unavailable`. No file is written. Exit codes: 0 no anomaly, 12 one that the
    claims forbid, 20 undecided, 21 vacuous. Raises: InsyncError. Source: docs/history.md.
    """
    options = {
        **{"anomaly": anomalies, "acks": acks, "isolation": isolation, "idempotence": idempotence},
        **{"exactly_once": exactly_once, "unclean": unclean, "min_insync": min_insync},
        **{"progress_acks": progress_acks, "progress_within": progress_within},
        **{"max_lag": max_lag, "max_unavailable": max_unavailable},
    }
    with as_errors():
        import attrs

        from insync.answers import HistoryAnswer, answer_from
        from insync.words import SILENT, command_of, words_of
        from insync_cli.clusters import history as verb
        from insync_cli.clusters.history_text import render
        from insync_cli.options import read_options

        words = words_of([file], options, {})
        invocation = attrs.evolve(read_options(verb.Options, verb.USAGE, words), output=SILENT)
        ((_, report, code),) = verb.judgements(verb.anomalies_of(invocation.anomaly), invocation)
        view = _view(report, lambda out: render(out, report, None, quiet=False))
        more: dict[str, object] = {"exit_code": int(code), "command": command_of(verb.USAGE, words)}
        return answer_from(HistoryAnswer, {**report}, **more, view=view)


def replay(
    design: str,
    *,
    design_file: Files = (),
    max_states: int | None = None,
    own_look: bool = False,
    **bounds: int | str | bool,
) -> ReplayAnswer:
    """Take every edge of the model within the bounds on the reference broker's cores, as `insync replay` does.

    `design`: its name. `design_file`: Python with more designs. `max_states`: stop after so many states of the cores.
    `own_look`: leaders look themselves who is fenced, as Kafka's do. `bounds`: bounds and settings by name, such as
    `replicas=2`. Exit codes: 0 broker and model agree, 12 they differ, 20 not explored to the end. Raises: InsyncError.
    Source: docs/replay.md.
    """
    with as_errors():
        import attrs

        from insync.answers import ReplayAnswer, answer_from
        from insync.words import SILENT, check_bounds, command_of, words_of
        from insync_cli.conformance import replay as verb
        from insync_cli.options import read_options

        options = {"design_file": design_file, "max_states": max_states, **bounds}
        check_bounds(bounds, verb.Options, verb.USAGE)
        words = words_of([design], options, {"own_look": own_look})
        invocation = attrs.evolve(read_options(verb.Options, verb.USAGE, words), output=SILENT)
        answer = verb.answer_of(invocation)
        actions = [
            {"action": name, "count": count, "edges": edges}
            for name, (count, edges) in answer.result.edges_by_action.items()
        ]
        mismatches = {kind.value: n for kind, n in answer.result.count.items() if n}
        more: dict[str, object] = {"exit_code": int(answer.code), "command": command_of(verb.USAGE, words)}
        view = _view(answer.report, lambda out: verb.show(out, answer))
        return answer_from(ReplayAnswer, answer.report, **more, actions=actions, mismatches=mismatches, view=view)


def _view(report: object, show: Callable[[Console], None], page: Callable[[], str] | None = None) -> View:
    """What a command prints and writes of its report."""
    from insync.answers import View
    from insync_cli.terminal import json_text, sheet_of

    sheet = sheet_of(show)
    return View(sheet.text, sheet.html, json_text(report), page)


def _page_of_traces(files: Sequence[Path], own: Sequence[tuple[Path, str]]) -> Callable[[], str]:
    """Makes the page of these traces; `own`: files of designs, with what was in them."""

    def page() -> str:
        from insync_cli import registry
        from insync_cli.exits import InputError
        from insync_cli.tracefiles import load
        from insync_cli.view.pages import page_of
        from isr_trace.trace import TraceError

        registry.take_own([file for file, _ in own], dict(own))
        try:
            return page_of([(file, load(file), "") for file in files])
        except TraceError as problem:
            raise InputError(str(problem)) from None

    return page
