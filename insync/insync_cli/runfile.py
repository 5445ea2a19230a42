"""`run.json`: what one exploration found, schema first; the terminal text is rendered from it.

The schema is `insync/run/2`; its keys are those of `Run` and no others (tests/insync_cli/test_run_file.py).
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict

from insync_cli import registry
from insync_cli.exits import Exit
from isr_check.engine import DEADLOCK, Exploration, Finding, Verdict

if TYPE_CHECKING:
    from isr_check.walk_estimate import WalkEstimate
    from isr_lang import Design, Instance, Value

SCHEMA = "insync/run/2"
STRENGTH = list(Verdict)
"""From strongest to weakest."""

KINDS = {"step": "always", "sometimes-step": "sometimes"}
"""A promise about steps is an `always`, a probe for a step a `sometimes`."""


class PropertyLine(TypedDict):
    name: str
    kind: str
    verdict: str
    trace: str | None
    depth: int | None


class EstimateLine(TypedDict):
    """What random walks have not met, from what they met (isr_check.walk_estimate).

    `walks` were made, which met `meetings` states, each counted once a walk; `once` and `twice` count the states that
    one walk met, or two. One more walk would meet `new_per_walk` states that none of these met: a share `new_share`
    of its states, from 0 to 1. A walk can meet `least_states` at least.
    """

    walks: int
    meetings: int
    once: int
    twice: int
    new_per_walk: float
    new_share: float
    least_states: int


class Stats(TypedDict):
    generated: int
    distinct: int
    depth: int
    seconds: float
    distinct_per_second: float
    peak_rss_bytes: int
    collision_policy: str
    unreduced: int | None
    walks: int | None
    estimate: EstimateLine | None


class Coverage(TypedDict):
    actions: dict[str, int]
    guards: dict[str, dict[str, list[int]]]


class RoomLine(TypedDict):
    """`lacking`: what no behaviour within the bounds does, by its name in `promises.room`; null where there is room.

    `cut`: the bounds in its way. `enough`: at which values of them a behaviour was found that does it.
    """

    lacking: str | None
    cut: dict[str, Value]
    enough: dict[str, Value]
    complete: bool


class PrecursorLine(TypedDict):
    """What comes before harm, and was met: the probe by its name and its `text`, a witness of so many `steps`.

    `promises`: those that are not violated, and may be by what follows, within larger bounds.
    """

    name: str
    text: str
    steps: int
    promises: list[str]


class NoticeLine(TypedDict):
    """`known`: the mistakes that the promises asked about notice within some bounds. `noticed`: those within these.

    `unnoticed`: of each promise those that only larger bounds notice. `beyond`: those of more elections, which do not
    count against it. `enough`: bounds that notice all. `settings`: those at which the mistakes were tried, where they
    are other ones. `without_mistake`: the promises asked about that no known mistake breaks. `base`: the design in
    which they were tried, where it is not this model. `short_of_base`: promises of a design of somebody's own that say
    too little within bounds that would miss mistakes known of `base`.
    """

    known: list[str]
    noticed: list[str]
    unnoticed: dict[str, list[str]]
    beyond: dict[str, list[str]]
    enough: dict[str, Value]
    settings: dict[str, Value]
    without_mistake: list[str]
    base: str
    short_of_base: list[str]


class Run(TypedDict):
    """`verdict` is that of the weakest of the lines that count (`decisive_lines`).

    `slack`: of each promise of liveness that holds, how much of each bound was left when it came to pass.
    `without_encounter`: promises of which random walks met nothing that they speak about. `omissions`: promises of the
    design that nobody asked, or that the settings switch off; the verdict does not speak of them.
    """

    schema: str
    command: list[str]
    version: str
    model_hash: str
    design: str
    bounds: dict[str, Value]
    engine: str
    workers: int
    seed: int | None
    verdict: str
    properties: list[PropertyLine]
    stats: Stats
    coverage: Coverage
    room: RoomLine | None
    precursor: PrecursorLine | None
    notice: NoticeLine | None
    slack: dict[str, dict[str, int]]
    without_encounter: list[str]
    omissions: list[str]


def weakest(verdicts: Sequence[str]) -> str:
    """The verdict of the whole: as weak as its weakest line."""
    return max((Verdict(v) for v in verdicts), key=STRENGTH.index, default=Verdict.UNKNOWN).value


def decisive_lines(
    lines: Sequence[PropertyLine], named_properties: Sequence[str], *, strict: bool
) -> list[PropertyLine]:
    """The lines that decide the verdict of the whole, and so the exit code.

    A probe that is not reached, or a promise of liveness whose trigger never happens, counts where somebody asked for
    it by name or for `strict` coverage, or where there is nothing else.
    """
    decisive = [
        line
        for line in lines
        if line["verdict"] != Verdict.VACUOUS or strict or line["kind"] == "always" or line["name"] in named_properties
    ]
    return decisive or list(lines)


def property_line(finding: Finding, trace: str | None) -> PropertyLine:
    return PropertyLine(
        name=finding.name,
        kind=KINDS.get(finding.kind, finding.kind),
        verdict=finding.verdict.value,
        trace=trace,
        depth=len(finding.path.steps) if finding.path is not None else None,
    )


def estimate_line(estimate: WalkEstimate | None) -> EstimateLine | None:
    if estimate is None:
        return None
    return EstimateLine(
        walks=estimate.walks,
        meetings=estimate.meetings,
        once=estimate.once,
        twice=estimate.twice,
        new_per_walk=round(estimate.new_per_walk, 6),
        new_share=round(estimate.new_share, 9),
        least_states=estimate.least_states,
    )


def statistics(result: Exploration, walks: int | None = None) -> Stats:
    """By symmetry, `distinct` counts orbits and `unreduced` their states; `walks` are those of a simulation.

    `collision_policy`: states are compared whole (exact), or `distinct` is estimated from their hashes (estimated).
    """
    return Stats(
        generated=result.generated,
        distinct=result.distinct,
        depth=result.depth,
        seconds=round(result.seconds, 3),
        distinct_per_second=round(result.distinct / result.seconds, 1) if result.seconds > 0 else 0.0,
        peak_rss_bytes=peak_rss(),
        collision_policy="estimated" if result.is_estimate else "exact",
        unreduced=result.states_in_orbits,
        walks=walks,
        estimate=estimate_line(result.estimate),
    )


def coverage(result: Exploration) -> Coverage:
    """Per action how often it was taken; per guard how often it let through and how often it refused.

    Two guards of an action that read alike are told apart by their position.
    """
    guards: dict[str, dict[str, list[int]]] = {}
    for g in result.guards:
        table = guards.setdefault(g.action, {})
        table[g.text if g.text not in table else f"{g.text} (conjunct {g.index + 1})"] = [g.passes, g.refusals]
    return Coverage(actions=dict(result.steps_by_action), guards=guards)


def run_file(
    instance: Instance,
    result: Exploration,
    *,
    command: Sequence[str],
    version: str,
    engine: str,
    workers: int,
    findings: Sequence[Finding],
    traces: Mapping[str, str],
    seed: int | None = None,
    walks: int | None = None,
    room: RoomLine | None = None,
    precursor: PrecursorLine | None = None,
    notice: NoticeLine | None = None,
    slack: Mapping[str, Mapping[str, int]] | None = None,
    without_encounter: Sequence[str] = (),
    named_properties: Sequence[str] = (),
    strict: bool = False,
) -> Run:
    """`named_properties`, `strict`: what was asked by name, and whether coverage was; they say which lines count."""
    lines = [property_line(f, traces.get(f.name)) for f in findings]
    return Run(
        schema=SCHEMA,
        command=list(command),
        version=version,
        model_hash=instance.design.model_hash(),
        design=instance.design.name,
        bounds=registry.bounds_of(instance),
        engine=engine,
        workers=workers,
        seed=seed,
        verdict=weakest([line["verdict"] for line in decisive_lines(lines, named_properties, strict=strict)]),
        properties=lines,
        stats=statistics(result, walks),
        coverage=coverage(result),
        room=room,
        precursor=precursor,
        notice=notice,
        slack={name: dict(left) for name, left in (slack or {}).items()},
        without_encounter=list(without_encounter),
        omissions=promises_beside(instance.design, [f.name for f in findings]),
    )


def promises_beside(design: Design, names: Iterable[str]) -> list[str]:
    """The promises of a design but for these, of which no verdict speaks; probes promise nothing."""
    lines = set(names)
    return [p.name for p in design.properties if not p.kind.startswith("sometimes") and p.name not in lines]


def peak_rss() -> int:
    """The most memory this process ever held, in bytes.

    Linux says what the one that started it held, where that was more, to all who ask for the use of resources.
    """
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        held = next((line for line in status if line.startswith("VmHWM:")), None)
        if held is not None:
            return int(held.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def uncovered_findings(run: Run) -> list[str]:
    """What a complete exploration shows about a model that was never exercised, one sentence each."""
    sentences: list[str] = []
    for action, taken in run["coverage"]["actions"].items():
        guards = run["coverage"]["guards"].get(action, {})
        # The guards after one that never holds are never reached; naming that one says it all.
        shut = next((f", because this never holds: {text}" for text, (passed, _) in guards.items() if not passed), "")
        if taken == 0:
            sentences.append(f"action {action} is never enabled{shut}")
        else:
            sentences += [
                f"a guard of {action} never refuses: {t}" for t, (_, refused) in guards.items() if not refused
            ]
    return sentences


def exit_for_findings(
    run: Run, *, named_properties: Sequence[str], strict: bool, is_uncovered: bool, expected: Mapping[str, str]
) -> Exit:
    """The answer as a number. What an expectation names is judged by it, the rest by itself."""
    verdicts = {line["name"]: line["verdict"] for line in run["properties"]}
    if Verdict.ERROR in verdicts.values():
        return Exit.INTERNAL
    if any(verdicts.get(name) != verdict for name, verdict in expected.items()):
        return Exit.UNEXPECTED
    decisive = decisive_lines(run["properties"], named_properties, strict=strict)
    lines = [line for line in decisive if line["name"] not in expected]
    violated = [line for line in lines if line["verdict"] == Verdict.VIOLATED]
    if any(line["kind"] == "always" and line["name"] != DEADLOCK for line in violated):
        return Exit.SAFETY
    if violated:
        return Exit.LIVENESS if any(line["kind"] == "eventually" for line in violated) else Exit.DEADLOCK
    if any(line["verdict"] == Verdict.VACUOUS for line in lines):
        return Exit.UNCOVERED
    if any(line["verdict"] == Verdict.TOO_SMALL for line in lines):
        return Exit.TOO_SMALL
    if any(line["verdict"] in (Verdict.SAMPLED, Verdict.BUDGETED, Verdict.UNKNOWN) for line in lines):
        return Exit.INCONCLUSIVE
    return Exit.UNCOVERED if strict and is_uncovered else Exit.HOLDS
