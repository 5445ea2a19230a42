"""Counterexamples to induction as traces, and whether anything leads to the state in which they start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path as Folder
from typing import TYPE_CHECKING, cast

import attrs

from insync_cli import registry
from insync_cli.proof.question import ObligationLine, Question
from insync_cli.tracefiles import SUFFIX, write
from isr_check.engine import Engine, Limits, Progress
from isr_check.reachability import reach
from isr_check.reference import Evaluator
from isr_trace.replay import Move, goal, record, record_step
from isr_trace.trace import Trace, TraceError

if TYPE_CHECKING:
    from isr_check.smt import Counterexample, Obligation
    from isr_lang import Value

NOT_INDUCTIVE = "NOT-INDUCTIVE"
"""What a counterexample to induction shows; no verdict on a promise."""
REACHABLE, UNREACHABLE, OPEN = "reachable", "unreachable", "undecided"


class Examiner:
    """Looks at the counterexamples of one proof, and writes their traces into a folder."""

    def __init__(self, proof_question: Question, folder: Folder) -> None:
        self.proof_question, self.folder = proof_question, folder
        self.design = registry.promising(proof_question.design, proof_question.promises)
        self._evaluators: dict[tuple[tuple[str, Value], ...], Evaluator] = {}

    def evaluator(self, constants: Mapping[str, Value]) -> Evaluator:
        key = tuple(sorted(constants.items()))
        if key not in self._evaluators:
            self._evaluators[key] = Evaluator(registry.instance_of(self.design, constants))
        return self._evaluators[key]

    def write(self, line: ObligationLine, obligation: Obligation, counterexample: Counterexample) -> None:
        """Run it again by the reference evaluator, and write its trace; a step that it does not do is an error."""
        if not counterexample.state:
            line["reason"] = "its state is too large to be shown"
            return
        try:
            trace = self._trace(obligation, counterexample)
        except TraceError as problem:
            line["verdict"], line["reason"] = "error", f"the engines disagree: {problem}"
            return
        line["trace"] = self._save(trace, obligation, "")

    def _trace(self, obligation: Obligation, counterexample: Counterexample) -> Trace:
        evaluator = self.evaluator(counterexample.constants)
        state = self._state(evaluator, counterexample.state)
        if obligation.kind == "initial":
            starts = [p for p, s in evaluator.initial_states() if s == state]
            if not starts:
                raise TraceError("the solver has an initial state that the model does not have")
            trace = record(evaluator, starts[0], (), property_name=obligation.conjunct, verdict="VIOLATED")
        else:
            trace = self._step(evaluator, state, obligation, counterexample)
        before = self._state(evaluator, trace.states[-2]) if trace.steps else None
        if not goal(evaluator, obligation.conjunct)(before, self._state(evaluator, trace.states[-1])):
            raise TraceError(f"the solver says that {obligation.conjunct} fails there, and it does not")
        return attrs.evolve(trace, model_hash=self.proof_question.design.model_hash())

    def _step(
        self, evaluator: Evaluator, state: tuple[object, ...], obligation: Obligation, counterexample: Counterexample
    ) -> Trace:
        promised = {p.name: p for p in evaluator.instance.properties}
        for c in self.proof_question.conjuncts:
            if c.name in promised and not evaluator.holds(promised[c.name], state):
                raise TraceError(f"the solver's state does not satisfy {c.name}")
        move = Move(obligation.action, counterexample.parameters) if obligation.action else None
        trace = record_step(
            evaluator,
            state,
            move,
            property_name=obligation.conjunct,
            verdict=NOT_INDUCTIVE,
            without=registry.left_out(self.design),
        )
        if move and self._state(evaluator, counterexample.successor) != self._state(evaluator, trace.states[-1]):
            raise TraceError(f"{obligation.action} leads to another state than the solver says")
        return trace

    def _state(self, evaluator: Evaluator, values: Mapping[str, object]) -> tuple[object, ...]:
        return tuple(values[v.name] for v in evaluator.instance.variables)

    def _save(self, trace: Trace, obligation: Obligation, more: str) -> str:
        path = self.folder / f"{obligation.conjunct}--{obligation.action or obligation.kind}{more}{SUFFIX}"
        write(trace, path)
        return str(path)

    def reach(
        self,
        line: ObligationLine,
        obligation: Obligation,
        counterexample: Counterexample,
        engine: Engine,
        limits: Limits,
        progress: Callable[[Progress], None],
    ) -> None:
        """Explore at the bounds of the counterexample: can its state be reached? Then write how."""
        if line["trace"] is None:
            return
        if obligation.kind == "initial":
            line["reached"] = REACHABLE
            return
        search = reach(
            self.proof_question.design, counterexample.constants, counterexample.state, engine, limits, progress
        )
        line["reached"] = REACHABLE if search.path else UNREACHABLE if search.complete else OPEN
        line["reason"] = f"{search.distinct:,} states were looked at"
        if search.path is None:
            return
        last = [(obligation.action, counterexample.parameters)] if obligation.action else []
        trace = record(
            self.evaluator(counterexample.constants),
            search.path.initial,
            cast("list[tuple[str, tuple[object, ...]]]", [*search.path.steps, *last]),
            property_name=obligation.conjunct,
            verdict="VIOLATED",
            without=registry.left_out(self.design),
        )
        trace = attrs.evolve(trace, model_hash=self.proof_question.design.model_hash())
        line["behaviour"] = self._save(trace, obligation, "--reached")
