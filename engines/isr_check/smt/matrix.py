"""The table of obligations, conjunct by action, while it fills, with counterexamples to induction in full."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from isr_check.smt.hypotheses import Guide
from isr_check.smt.induction import Induction, Obligation
from isr_check.smt.obligations import Counterexample, Decision, Proved, Result, prove
from isr_lang import Design, Instance, Property, show
from isr_lang import Value as Setting

MARKS = {"proved": ".", "counterexample": "X", "unknown": "?"}


def verdict(result: Result) -> str:
    if isinstance(result, Proved):
        return "proved"
    return "counterexample" if isinstance(result, Counterexample) else "unknown"


def table(
    design: Design,
    constants: Mapping[str, Setting | None],
    conjuncts: Sequence[Property],
    properties: Sequence[Property] = (),
    *,
    only: Collection[str] = (),
    actions: Collection[str] = (),
    seconds: float = 10.0,
    workers: int = 2,
    core: bool = False,
    most_counterexamples: int = 3,
    say: Callable[[str], None] = lambda line: print(line, flush=True),
) -> list[Decision]:
    """Decide all obligations; print what is not proved, the first `most_counterexamples` in full, and the matrix."""
    began = time.monotonic()
    induction = Induction(design, constants, conjuncts)
    obligations = list(induction.obligations(properties, only, actions))
    queries = sum(len(o.queries) for o in obligations)
    say(f"{len(obligations)} obligations, {queries} queries, translated in {time.monotonic() - began:.1f} s")
    counterexamples_left = [most_counterexamples]

    def progress(o: Obligation, result: Result) -> None:
        if isinstance(result, Proved):
            if core and result.core:
                say(f"{o.name}: proved in {result.seconds:.2f} s by {', '.join(result.core)}")
            return
        reason = "" if isinstance(result, Counterexample) else f" ({result.reason})"
        say(f"{o.name}: {verdict(result).upper()}{reason} in {result.seconds:.2f} s")
        if isinstance(result, Counterexample) and result.state and counterexamples_left[0] > 0:
            counterexamples_left[0] -= 1
            for line in counterexample_lines(induction, o, result):
                say(f"    {line}")

    guide = Guide(design, constants, conjuncts) if induction.translation.bounds else None
    decisions = prove(induction, obligations, seconds, workers, progress, core, guide)
    for line in matrix(decisions):
        say(line)
    totals = Counter(verdict(r) for _, r in decisions)
    solver = sum(r.seconds for _, r in decisions)
    said = ", ".join(f"{n} {v}" for v, n in totals.items())
    say(f"{said}; solver {solver:.1f} s, in all {time.monotonic() - began:.1f} s")
    return decisions


def matrix(decisions: Sequence[Decision]) -> list[str]:
    """One row per conjunct, one column per action: . proved, X counterexample, ? unknown."""
    columns = list(dict.fromkeys(o.action or o.kind for o, _ in decisions))
    rows = list(dict.fromkeys(o.conjunct for o, _ in decisions))
    marks = {(o.conjunct, o.action or o.kind): MARKS[verdict(r)] for o, r in decisions}
    width = max(map(len, rows), default=0)
    lines = [f"{i + 1:3} {c}" for i, c in enumerate(columns)]
    lines.append(" " * width + " " + "".join(f"{i + 1:3}" for i in range(len(columns))))
    return lines + [f"{r:{width}} " + "".join(f"{marks.get((r, c), ' '):>3}" for c in columns) for r in rows]


def counterexample_lines(induction: Induction, obligation: Obligation, counterexample: Counterexample) -> list[str]:
    """The lines of a counterexample: open bounds, the action with its parameters, each variable and its change."""
    instance = instance_of(induction, counterexample)
    blank = {v.name: instance.first(v.type) for v in instance.variables}
    free = induction.translation.bounds
    lines = [", ".join(f"{k}={v}" for k, v in instance.constants.items() if k in free)]
    action = next((a for a in induction.design.actions if a.name == obligation.action), None)
    if action:
        named = zip(action.parameters, counterexample.parameters, strict=True)
        values = ", ".join(f"{n}={show(v, t)}" for (n, t), v in named)
        lines.append(f"{action.name}({values})")
    for v in instance.variables:
        old, new = counterexample.state[v.name], counterexample.successor.get(v.name, counterexample.state[v.name])
        if old != new:
            lines.append(f"  {v.name}: {show(old, v.type)}  ->  {show(new, v.type)}")
        elif old != blank[v.name]:
            lines.append(f"  {v.name}: {show(old, v.type)}")
    return [line for line in lines if line]


def instance_of(induction: Induction, counterexample: Counterexample) -> Instance:
    """The instance of the design in which a counterexample is a state."""
    return Instance(induction.design, counterexample.constants)
