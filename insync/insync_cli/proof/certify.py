"""`insync certify`: a stored proof, checked again without the code that produced it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs

from insync_cli import options, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.options import Usage, argument, choice, group, option, seconds, workers_at_most
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from rich.console import Console

    from isr_check.certify import StoredProof

LINES_SHOWN = 10
"""How many problems, or queries without an answer, are named."""

VACUITY = 3.0
"""Seconds to look for a contradiction among what is taken as given."""

EXAMPLE = """\
insync certify proof-kip-966-3.zip
insync certify proof-kip-966-3.zip --solver cvc5"""
USAGE = Usage("certify", "A stored proof, checked again without the code that produced it.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    proof: Path = argument("FILE", "what `insync prove --proof FILE` wrote", Path)
    solver: str = choice(("z3", "cvc5", "both"), "who is asked", "both")
    seconds: float = option("S", "at most for one query to one solver", seconds, 150.0)
    workers: int = option("N", "queries at a time", workers_at_most, 2)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    from isr_check.certify import BadProof, read_certificate
    from isr_check.opinions import SOLVERS, contradictory, missing

    invocation.output.check()
    solvers = list(SOLVERS) if invocation.solver == "both" else [invocation.solver]
    for solver in solvers:
        if reason := missing(solver):
            others = " (or give --solver z3)" if solver == "cvc5" else ""
            raise UsageError(f"{reason}{others}")
    try:
        proof = read_certificate(invocation.proof)
    except BadProof as problem:
        raise InputError(str(problem)) from None
    out = invocation.output.console()
    report: dict[str, object] = {
        "schema": "insync/certify/1",
        "design": proof.manifest["design"],
        "model_hash": proof.manifest["model_hash"],
        "constants": proof.manifest["constants"],
        "free": proof.manifest["free"],
        "queries": len(proof.queries),
        "definitions": proof.definitions,
        "namings": proof.namings,
        "goals_that_hold_in_every_state": proof.alone,
    }
    problems = list(proof.problems)
    if not problems and contradictory(proof.together, VACUITY):
        problems.append("what the queries take as given contradicts itself, so they would prove anything")
    if invocation.output.for_people:
        _claims(out, proof, problems)
    answers: dict[str, object] = {}
    code = Exit.INPUT if problems else Exit.HOLDS
    for solver in solvers if not problems else []:
        answers[solver], said = _ask_solver(out, proof, solver, invocation)
        code = max(code, said)
    invocation.output.write(report | {"problems": problems, "solvers": answers, "exit": int(code)})
    return code


def _claims(out: Console, proof: StoredProof, problems: Sequence[str]) -> None:
    """What the proof is of, and what is wrong with it as a list of queries."""
    from isr_check.certify import START

    m = proof.manifest
    constants = cast("Mapping[str, object]", m["constants"])
    free = ", ".join(cast("list[str]", m["free"]))
    wanted = [str(p["name"]) for p in cast("list[Mapping[str, object]]", m["wanted"])]
    terminal.print_wrapped(out, f"{m['design']} (model {m['model_hash']})", 0)
    terminal.print_wrapped(out, ", ".join(f"{k}={v}" for k, v in constants.items()), 2)
    terminal.print_wrapped(out, f"for every value of: {free or 'nothing'}", 2)
    terminal.print_wrapped(out, f"it claims: {', '.join(wanted) or 'nothing but its conjuncts'}", 2)
    actions = [a for a in cast("Mapping[str, object]", m["steps"]) if a != START]
    sizes = [len(cast("list[object]", m[name])) for name in ("conjuncts", "obligations")]
    terminal.print_wrapped(
        out,
        f"conjuncts: {sizes[0]}, actions: {len(actions)}, obligations: {sizes[1]}, queries: {len(proof.queries)}",
        2,
    )
    if problems:
        terminal.print_lines(out, "INCOMPLETE or changed", problems[:LINES_SHOWN])
        if len(problems) > LINES_SHOWN:
            out.print(f"  and {len(problems) - LINES_SHOWN} more", soft_wrap=True)
        return
    terminal.print_wrapped(out, "every obligation is there once, each assertion is accounted for, the hashes agree", 2)
    taken = terminal.count(proof.definitions, "definition")
    if proof.namings:
        taken += f", {terminal.count(proof.namings, 'naming')}, how conjuncts are worded after a step"
    taken += ", and that queries say what the model says"
    terminal.print_wrapped(out, f"taken as given: {taken}", 2)
    if proof.alone:
        terminal.print_wrapped(out, f"goals that hold whatever the state: {proof.alone}", 2)


def _ask_solver(out: Console, proof: StoredProof, solver: str, invocation: Options) -> tuple[object, Exit]:
    """One solver's opinions, in a line."""
    from isr_check.opinions import opinions, version

    began = time.monotonic()
    with invocation.output.ticker() as ticker:
        asked = opinions(proof.queries, solver, invocation.seconds, invocation.workers)
        solver_opinions = list(ticker.count_each(asked, len(proof.queries), f"queries, {solver}"))
    count = Counter(o.answer for o in solver_opinions)
    wrong, open_ones = ([o for o in solver_opinions if o.answer == said] for said in ("sat", "unknown"))
    verdict = "DISAGREES" if wrong else "unknown" if open_ones else "agreed"
    if invocation.output.for_people:
        taken = time.monotonic() - began
        line = f"{solver} {version(solver)}: {verdict}; agreed on {count['unsat']} of {len(solver_opinions)}"
        line += f", unknown {len(open_ones)}, disagrees on {len(wrong)}; {taken:.1f} s"
        terminal.print_wrapped(out, line, 0)
        for o in (*wrong, *open_ones)[:LINES_SHOWN]:
            said = "a state satisfies it" if o.answer == "sat" else f"no answer: {o.reason}"
            out.print(f"  {o.query}: {said}", soft_wrap=True)
    answer = {
        "version": version(solver),
        "verdict": verdict,
        "agreed": count["unsat"],
        "unknown": [{"query": o.query, "reason": o.reason, "seconds": round(o.seconds, 3)} for o in open_ones],
        "disagrees": [o.query for o in wrong],
        "seconds": round(sum(o.seconds for o in solver_opinions), 3),
    }
    return answer, Exit.UNEXPECTED if wrong else Exit.INCONCLUSIVE if open_ones else Exit.HOLDS
