"""`insync certify`: a stored proof beside the model that it is of, and its queries asked of two solvers again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.omissions import omissions_text, subject_and_ending
from insync_cli.options import OwnDesigns, Usage, argument, choice, flag, group, option, seconds, workers_at_most
from insync_cli.progress import Brake
from insync_cli.proof import premises
from insync_cli.proof.question import SWITCHED_OFF, Question
from insync_cli.runfile import promises_beside
from insync_cli.terminal import QuietOutput
from isr_check.engine import Limits, Progress, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from isr_check.certify import StoredProof
    from isr_check.smt.certificate import Comparison
    from isr_lang import Value

LINES_SHOWN = 10
"""How many problems, or queries without an answer, are named."""

VACUITY = 3.0
"""Seconds to look for a contradiction among what is taken as given."""

TRUST = {
    True: "how insync makes formulas of the model",
    False: "that the formulas say what the model says, and that what is called unchanged or impossible is so",
}
"""What is taken on trust: where the model is at hand, and of a file alone."""
TRUST_OF_MANY = "that somebody may be called by the next free name, how conjuncts are worded after a step"
"""What is taken on trust besides, of any number of elements."""

EXAMPLE = """\
insync certify proof-kip-966-3.zip
insync certify proof-kip-966-3.zip --solver cvc5
insync certify proof-mine.zip --design-file mine.py"""
USAGE = Usage("certify", "A stored proof, compared with the model and asked of two solvers again.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    proof: Path = argument("FILE", "what `insync prove --proof FILE` wrote", Path)
    own: OwnDesigns = group(OwnDesigns)
    file_alone: bool = flag(
        "ask nothing of the model, only whether the file agrees with itself: never more than exit 20"
    )
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
    beside = None if invocation.file_alone or proof.problems else beside_model(proof, invocation.proof)
    problems = list(beside.comparison.problems if beside else proof.problems)
    if not problems and contradictory(proof.together, VACUITY):
        problems.append("what the queries take as given contradicts itself, so they would prove anything")
    if invocation.output.for_people:
        _claims(out, proof, beside, problems)
    answers: dict[str, object] = {}
    code = Exit.INPUT if problems else Exit.INCONCLUSIVE if beside is None else Exit.HOLDS
    for solver in solvers if not problems else []:
        answers[solver], answer = _ask_solver(out, proof, solver, invocation)
        code = max(code, answer)
    if beside is not None and not problems:
        with invocation.output.ticker() as ticker:
            beside = with_doubts(beside, ticker)
        code = max(code, beside.exit_code)
    report = _report(proof, beside) | {"problems": problems, "solvers": answers, "exit": int(code)}
    report["line"] = result_line(proof, beside, code, problems, list(answers))
    invocation.output.write(report)
    if invocation.output.for_people:
        terminal.print_wrapped(out, str(report["line"]), 0)
    return code


@attrs.frozen
class Beside:
    """The proof beside the model: of which worlds it is a proof, how the two compare, and what its promises are worth.

    `world`: the promises and the constants; None where they are not the model's.
    `doubts`: by promise why it says nothing (VACUOUS), or why nobody knows whether it says something (UNKNOWN).
    """

    extent: str
    comparison: Comparison
    world: Question | None = None
    doubts: Mapping[str, tuple[Verdict, str]] = attrs.field(factory=dict[str, "tuple[Verdict, str]"])

    @property
    def exit_code(self) -> Exit:
        """What becomes of the file where every solver agrees."""
        words = {verdict for verdict, _ in self.doubts.values()}
        return Exit.UNCOVERED if Verdict.VACUOUS in words else Exit.INCONCLUSIVE if words else Exit.HOLDS

    @property
    def omissions(self) -> list[str]:
        """The promises of the design that the file says nothing of."""
        return [] if self.world is None else promises_beside(self.world.design, [p.name for p in self.world.properties])


def beside_model(proof: StoredProof, file: Path) -> Beside:
    """Make the obligations of the proof again; InputError where its design, or this version of it, is not at hand."""
    from insync_cli.proof.prove_text import extent
    from isr_check.smt import Induction, NotTranslatable
    from isr_check.smt.certificate import Comparison, compare
    from isr_lang import SettingError

    m = proof.manifest
    name, without = str(m["design"]), [str(action) for action in cast("list[object]", m.get("without", []))]
    try:
        design = registry.design_less(name, without)
    except UsageError as problem:
        raise InputError(f"{file} is a proof of a design that is not at hand: {problem}") from None
    if design.model_hash() != m["model_hash"]:
        raise InputError(
            f"{file} is a proof of another {name}: its model is {m['model_hash']}, this one is {design.model_hash()}"
        )
    constants = {**cast("dict[str, Value]", m["constants"]), **dict.fromkeys(cast("list[str]", m["free"]))}
    promises = [str(p["name"]) for p in cast("list[Mapping[str, object]]", m["wanted"])]
    properties = {p.name: p for p in design.properties}
    unknown = [p for p in promises if p not in properties]
    if unknown:
        return Beside("", Comparison(tuple(f"{name} makes no promise {p}" for p in unknown)))
    try:
        induction = Induction(design, constants, [c.promise for c in registry.invariant_of(design, promises)])
    except (SettingError, NotTranslatable) as problem:
        return Beside("", Comparison((f"its constants are not those of a proof: {problem}",)))
    claims = [properties[p] for p in promises]
    try:
        instance = registry.instance_of(design, {name: v for name, v in constants.items() if v is not None})
    except UsageError as problem:
        return Beside("", Comparison((f"its constants are not those of a proof: {problem}",)))
    return Beside(
        extent(design, induction.translation.settings),
        compare(proof, induction, claims),
        Question(instance, constants, (), claims, (), (), ()),
    )


def with_doubts(beside: Beside, progress: Callable[[Progress], None]) -> Beside:
    """The claims that say nothing, or of which nobody saw that they say something. A proof does not see premises.

    This comes after the solvers, which are forks of this process and may not have the memory of an exploration.
    """
    if beside.world is None:
        return beside
    engine, _ = registry.engine_named(registry.default_engine())
    limits = Limits(None, premises.SECONDS, Brake(premises.MEMORY))
    answer = premises.look(beside.world, engine, limits, progress)
    off = beside.world.instance.off_properties
    doubts = {
        p.name: (Verdict.VACUOUS, SWITCHED_OFF) if p.name in off else answer.doubt(p.name)
        for p in beside.world.properties
    }
    return attrs.evolve(beside, doubts={name: doubt for name, doubt in doubts.items() if doubt is not None})


def _report(proof: StoredProof, beside: Beside | None) -> dict[str, object]:
    """What the file is, as data. `extent` and `compared` are of the model, and None of a file alone."""
    m = proof.manifest
    return {
        "schema": "insync/certify/1",
        "design": m["design"],
        "model_hash": m["model_hash"],
        "constants": m["constants"],
        "free": m["free"],
        "extent": beside.extent if beside else None,
        "compared": beside.comparison.formulas if beside else None,
        "doubts": {name: why for name, (_, why) in beside.doubts.items()} if beside else {},
        "queries": len(proof.queries),
        "unchanged": proof.unchanged,
        "impossible": proof.impossible,
        "definitions": proof.definitions,
        "namings": proof.namings,
        "goals_that_hold_in_every_state": proof.alone,
        "on_trust": on_trust(proof, beside),
    }


def on_trust(proof: StoredProof, beside: Beside | None) -> str:
    of_many = [TRUST_OF_MANY] if proof.manifest.get("any_number") else []
    return "; ".join([TRUST[beside is not None], *of_many])


def result_line(
    proof: StoredProof, beside: Beside | None, code: Exit, problems: Sequence[str], solvers: Sequence[str]
) -> str:
    """The last line: the verdict, of what, which solver was asked if only one was, and what is taken on trust."""
    words = {
        Exit.HOLDS: "AGREED",
        Exit.INCONCLUSIVE: "unknown",
        Exit.UNEXPECTED: "DISAGREES",
        Exit.UNCOVERED: Verdict.VACUOUS.value,
    }
    line = f"insync certify {proof.manifest['design']}: {words.get(code, 'REFUSED')} - "
    if problems:
        return f"{line}{terminal.count(len(problems), 'difference')}, first: {problems[0]}"
    if beside is None and code == Exit.INCONCLUSIVE:
        return f"{line}the file was checked alone, which says nothing of the model; on trust: {on_trust(proof, beside)}"
    doubts = beside.doubts if beside else dict[str, tuple[Verdict, str]]()
    if code == Exit.UNCOVERED:
        return line + "; ".join(f"{name}: {why}" for name, (word, why) in doubts.items() if word is Verdict.VACUOUS)
    claims = [str(p["name"]) for p in cast("list[Mapping[str, object]]", proof.manifest["wanted"])]
    promises, _ = (
        subject_and_ending(claims, "promise", by_name=True) if claims else ("no promise, its conjuncts alone,", "")
    )
    parts = [f"{promises} {beside.extent}".strip(" ,") if beside else promises.strip(",")]
    left = omissions_text((len(beside.omissions), "other promise", "")) if beside else ""
    parts += [left] if left else []
    parts += [f"{name}: {why}" for name, (_, why) in doubts.items()]
    parts += [f"asked of {solvers[0]} alone"] if len(solvers) == 1 else []
    return f"{line}{'; '.join(parts)}; on trust: {on_trust(proof, beside)}"


def _claims(out: Console, proof: StoredProof, beside: Beside | None, problems: Sequence[str]) -> None:
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
    quiet = f"unchanged {proof.unchanged}, impossible {proof.impossible}"
    if beside is None:
        terminal.print_wrapped(out, f"not compared with the model: definitions {proof.definitions}, {quiet}", 2)
    else:
        same = f"the model says the same: formulas {beside.comparison.formulas}, {quiet}"
        terminal.print_wrapped(out, same, 2)
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
