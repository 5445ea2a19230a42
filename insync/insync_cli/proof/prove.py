"""`insync prove`: is the invariant inductive, and do the promises follow? Bounds may be left open."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, UsageError, Vacuous
from insync_cli.families import family_of
from insync_cli.options import Usage, command, flag, group, natural, option, seconds, workers_at_most
from insync_cli.progress import Brake
from insync_cli.proof import cross_check, implications, premises, prove_text, question
from insync_cli.proof.counterexamples import Examiner
from insync_cli.proof.learnt import Learner
from insync_cli.proof.proof_file import Keeper
from insync_cli.proof.question import ObligationLine, Question, Report
from insync_cli.runfile import promises_beside
from insync_cli.terminal import QuietOutput
from insync_cli.version import version
from isr_check.engine import Limits, Unsound

if TYPE_CHECKING:
    from isr_check.smt import Induction, Obligation, Result
    from isr_check.smt.obligations import Attempt, Decision
    from isr_check.smt.strategy import Strategy
    from isr_lang import Property

EXAMPLE = """\
insync prove kip-966
insync prove kip-966 --replicas any
insync prove kip-966 --replicas 5 --property acked-survives --core
insync prove kip-966 --only logs-match --only type-ok --action follower_appends
insync prove kafka-13141 --replicas 2 --action leader_answers_diverging
insync prove kip-966 --replicas 2 --log 1 --records 1 --epochs 1 --isr-changes 2 --crashes 1 --sessions-lost 0 \\
    --cross-check"""

LOOKED_AT = 3
"""So many counterexamples are shown in full, and their states looked for among those that can be reached."""
UNKNOWN_PART = 20
"""How much longer a part of a goal takes, about, of which it is not known what refutes it."""

USAGE = Usage("prove", "Prove promises by induction, a solver deciding each conjunct and action.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Running:
    """How hard to try."""

    seconds: float = option(
        "S",
        "processor time, at most for one attempt of the solver at one question; a proof asks hundreds",
        seconds,
        10.0,
    )
    workers: int | None = option("N", "questions at a time; without it, one per core", workers_at_most)
    core: bool = flag("say which conjuncts each proof uses")
    look: int = option(
        "S",
        f"seconds to look for the state of each of the first {LOOKED_AT} counterexamples among those that can be "
        "reached; 0: do not",
        natural,
        20,
    )
    cross_check: bool = flag("explore, too, at the bounds given or the design's own")


@attrs.frozen(kw_only=True)
class InPlace:
    """Another answer than a proof, for whoever works on the invariant."""

    graph: Path | None = option("FILE", "draw which property implies which: .svg, .pdf, .png or .dot", Path)


@attrs.frozen(kw_only=True)
class Options(question.ProofRequest):
    running: Running = group(Running, "running")
    in_place: InPlace = group(InPlace, "working on the invariant, in place of a proof")
    learn: Path | None = option("FILE", "begin with what FILE says of earlier proofs, and add what is found", Path)
    proof: Path | None = option("FILE", "store the proof, a zip file that insync certify checks again", Path)
    out: Path | None = option("DIR", "where prove.json and the traces go (without it, below runs/)", Path)
    output: QuietOutput = group(QuietOutput)
    command: tuple[str, ...] = command()


def check_question(invocation: Options) -> Options:
    """The options; UsageError for those that contradict each other."""
    partial = bool(invocation.part.only or invocation.part.action)
    left = [name for name in invocation.properties if invocation.part.only and name not in invocation.part.only]
    if left:
        raise UsageError(f"--only leaves out {left[0]}, which --property asks for; name it with --only, too")
    if invocation.running.cross_check and partial:
        raise UsageError("--cross-check compares the whole proof; leave out --only and --action")
    if invocation.proof and partial:
        raise UsageError("--proof stores the whole proof; leave out --only and --action")
    return invocation


@attrs.frozen(eq=False)
class Answer:
    """What was asked and what came of it; `report` and the traces that it names are in `folder`.

    `remarks`: of the stored proof, and of what was learnt, a sentence each.
    """

    question: Question
    report: Report
    folder: Path
    remarks: tuple[str, ...]
    core: bool
    code: Exit


def run(argv: Sequence[str]) -> int:
    invocation = check_question(options.read_options(Options, USAGE, argv))
    proof_question = question.question(invocation)
    if invocation.in_place.graph is not None:
        return draw_graph(invocation, proof_question, invocation.in_place.graph)
    output = invocation.output
    quiet = output.quiet or not output.for_people
    reporter = prove_text.RunText(
        output.console(), core=invocation.running.core, quiet=quiet, plain=output.plain, tells_progress=not quiet
    )
    answer = answer_of(invocation, proof_question, reporter)
    output.write(answer.report)
    if output.for_people:
        reporter.report(answer.report, answer.folder)
    for sentence in answer.remarks:
        print(f"insync: {sentence}", file=sys.stderr)
    return answer.code


def answer_of(invocation: Options, proof_question: Question, reporter: prove_text.RunText) -> Answer:
    """Prove what is asked, and write prove.json and the traces; the reporter is told how it goes."""
    invocation.output.check()
    folder = terminal.make_folder(invocation.out or Path(proof_question.folder()))
    learner = Learner(invocation.learn, family_of(proof_question.design).proof_plan().cores)
    with Brake() as brake, Keeper(invocation.proof) as keeper:
        proof = Proof(proof_question, invocation, reporter, brake)
        decided = [] if proof.says_nothing else proof.decide_obligations(keeper, learner)
        is_stored, about_it = keeper.store(decided, proof.claims())
        learnt = learner.store(decided)
        lines = [question.obligation_line(o, r) for o, r in decided]
        proof.examine(decided, lines, folder)
        answer = proof.report(lines, folder)
    terminal.write_json(str(folder / "prove.json"), answer)
    code = question.exit_code(answer) or (Exit.HOLDS if is_stored else Exit.INCONCLUSIVE)
    remarks = tuple(filter(None, (about_it, learnt)))
    return Answer(proof_question, answer, folder, remarks, invocation.running.core, code)


def draw_graph(invocation: Options, proof_question: Question, file: Path) -> int:
    out = invocation.output.console()

    def say(line: str) -> None:
        out.print(line, soft_wrap=True, markup=False, highlight=False)

    return implications.draw_implications(proof_question, file, invocation.running.seconds, say)


class Proof:
    """One run: the obligations made, decided, and looked at."""

    def __init__(
        self, proof_question: Question, invocation: Options, reporter: prove_text.RunText, brake: Callable[[], bool]
    ) -> None:
        self.proof_question, self.running, self.command, self.reporter, self.brake = (
            proof_question,
            invocation.running,
            invocation.command,
            reporter,
            brake,
        )
        self.workers = invocation.running.workers or os.cpu_count() or 1
        self.began = time.monotonic()
        self.premises = premises.Premises({})
        if not proof_question.partial:
            self.premises = self.look_for_premises()
            self.proof_question = proof_question.of_claims(p.name for p in self.claims())

    def look_for_premises(self) -> premises.Premises:
        """Whether what the promises speak about can happen; asked first, as it takes seconds and a proof minutes."""
        engine, _ = registry.engine_named(registry.default_engine(), self.workers)
        with self.reporter.ticker() as ticker:
            return premises.look(self.proof_question, engine, self.limits(premises.SECONDS), ticker)

    @property
    def says_nothing(self) -> bool:
        """Whether every promise is vacuous, so that no proof of it is worth minutes."""
        names, off = self.proof_question.promise_names, self.proof_question.instance.off_properties
        return bool(names) and all(name in off or self.premises.vacuous(name) for name in names)

    def claims(self) -> list[Property]:
        """The promises that a stored proof is of: none of what is vacuous."""
        off = self.proof_question.instance.off_properties
        return [p for p in self.proof_question.properties if p.name not in off and not self.premises.vacuous(p.name)]

    def decide_obligations(self, keeper: Keeper, learner: Learner) -> list[Decision]:
        """Every obligation with its result, each told as it comes."""
        from isr_check.smt import prove
        from isr_check.smt.finite_solver import Finite
        from isr_check.smt.hypotheses import Guide
        from isr_check.smt.learning import Learning

        proof_question = self.proof_question
        with self.reporter.ticker().meanwhile("stating what is to be proved"):
            induction, obligations = statement_of(proof_question, self.brake)
        if not obligations:
            raise UsageError("there is no such obligation: no conjunct that was named meets an action that was named")
        free = induction.translation.bounds
        strategy = strategy_of(induction, proof_question, learner, one_question_each=bool(keeper.file))
        sizes = {o.name: _size(o, strategy) for o in obligations if o.queries}
        decided, work, every = 0, 0, sum(map(_work, sizes.values())) or 1

        def progress(o: Obligation, result: Result) -> None:
            nonlocal decided, work
            if o.queries:
                decided, work = decided + 1, work + _work(sizes[o.name])
            self.reporter.obligation(question.obligation_line(o, result), decided, len(sizes), work / every)

        way: Attempt = Finite(induction).decide if strategy is None else strategy.decide
        if strategy is not None and learner.file is not None:
            way = Learning(strategy)
        self.reporter.begin(proof_question, len(obligations), sum(len(o.queries) for o in obligations))
        try:
            return prove(
                induction,
                obligations,
                self.running.seconds,
                self.workers,
                progress,
                self.running.core,
                Guide(proof_question.design, proof_question.constants, proof_question.promises) if free else None,
                keeper.attempt(induction, way),
                self.brake,
                (lambda _: ()) if strategy is None else (lambda o: sizes[o.name]),
            )
        except Unsound as problem:
            raise Vacuous(str(problem)) from None
        finally:
            self.reporter.close()

    def examine(self, decisions: Sequence[Decision], lines: Sequence[ObligationLine], folder: Path) -> None:
        """Counterexamples become traces; for the first few, whether anything leads to them."""
        from isr_check.smt import Counterexample

        counterexamples = [
            (line, o, r) for line, (o, r) in zip(lines, decisions, strict=True) if isinstance(r, Counterexample)
        ]
        examiner = Examiner(self.proof_question, folder)
        for line, o, r in counterexamples:
            examiner.write(line, o, r)
        look = self.running.look
        for line, o, r in counterexamples[: LOOKED_AT if look else 0]:
            engine, _ = registry.engine_named(registry.default_engine(), self.workers)
            examiner.reach(line, o, r, engine, self.limits(look), self.reporter.ticker())

    def limits(self, seconds: float) -> Limits:
        heavy = Brake(premises.MEMORY)
        return Limits(None, seconds, lambda: self.brake() or heavy())

    def report(self, lines: list[ObligationLine], folder: Path) -> Report:
        proof_question, design = self.proof_question, self.proof_question.design
        promises = question.promise_lines(
            proof_question, lines, proof_question.instance.off_properties, self.premises.doubt
        )
        explored = None
        if self.running.cross_check:
            limits, ticker = self.limits(10.0 * self.running.look or 200.0), self.reporter.ticker()
            explored = cross_check.explored(
                proof_question, lines, promises, self.command, self.workers, limits, ticker, folder / "explored"
            )
            for line in promises:
                if any(d.startswith(f"{line['name']} ") for d in explored["disagreements"]):
                    line["verdict"], line["reason"] = "ERROR", "it is proved, and violated where it is explored"
        bounds = registry.world(proof_question.closed(), registry.left_out(design))
        answer = Report(
            schema=question.SCHEMA,
            command=list(self.command),
            version=version(),
            model_hash=design.model_hash(),
            design=design.name,
            bounds={k: None if k in proof_question.open else v for k, v in bounds.items()},
            workers=self.workers,
            seconds=self.running.seconds,
            verdict=question.verdict(promises, lines),
            partial=proof_question.partial,
            line="",
            extent=prove_text.extent(design, proof_question.constants),
            not_covered=list(question.faults_not_covered(design, proof_question.constants)),
            omissions=promises_beside(design, [line["name"] for line in promises]),
            premises=self.premises.lines,
            promises=promises,
            obligations=lines,
            explored=explored,
            stats=question.ProofStats(
                obligations=len(lines),
                asked=sum(line["queries"] > 0 for line in lines),
                queries=sum(line["queries"] for line in lines),
                solver_seconds=round(sum(line["seconds"] for line in lines), 3),
                seconds=round(time.monotonic() - self.began, 3),
            ),
        )
        answer["line"] = prove_text.result_line(answer)
        return answer


def _size(o: Obligation, strategy: Strategy | None) -> tuple[int, int]:
    """The parts of an obligation of which it is not known what refutes them, and all its parts."""
    return (0, len(o.queries)) if strategy is None else strategy.count_unlearnt(o)


def _work(size: tuple[int, int]) -> int:
    """How long an obligation takes, in parts of which it is known what refutes them."""
    unknown, parts = size
    return parts + UNKNOWN_PART * unknown


def statement_of(proof_question: Question, stop: Callable[[], bool]) -> tuple[Induction, list[Obligation]]:
    """What is to be proved; UsageError if it cannot be said with these bounds open."""
    from isr_check.smt import Induction, NotTranslatable

    try:
        induction = Induction(proof_question.design, proof_question.constants, proof_question.promises)
        return induction, proof_question.obligations(induction, stop)
    except NotTranslatable as problem:
        raise UsageError(f"{proof_question.design.name} cannot be proved with these bounds open: {problem}") from None


def strategy_of(
    induction: Induction, proof_question: Question, learner: Learner, one_question_each: bool = False
) -> Strategy | None:
    """How the solver is asked first: with quantifiers by cores and by the hints of the conjuncts; None: all at once.

    `one_question_each`: what it refutes has to be known, which it is only of one question at a time.
    """
    if not induction.translation.bounds and not one_question_each:
        return None
    from isr_check.smt.strategy import Strategy

    lemmas = {c.name: c.by for c in proof_question.conjuncts} | dict(
        family_of(proof_question.design).proof_plan().lemmas
    )
    return Strategy(induction, lemmas, exchange=not one_question_each, cores=learner.cores)
