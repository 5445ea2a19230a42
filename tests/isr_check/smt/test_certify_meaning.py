"""What a stored query says is what the reference evaluator says; and queries of the protocol, asked of two solvers."""

from pathlib import Path
from typing import cast

import pytest
from tests.isr_check.smt.test_smt import same_symbols
from tests.isr_check.test_random_models import some_states
from tests.support.models import two_phase_commit as tpc

from isr_check.certify import Query as StoredQuery
from isr_check.opinions import SOLVERS, opinions
from isr_check.reference import Evaluator
from isr_check.smt import Induction
from isr_check.smt.induction import GOAL, Query
from isr_check.smt.proof_file import Keeping
from isr_check.smt.smtlib import query_text
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms.logic import Term, z3
from isr_lang import Bool, Instance, always, forall
from isr_model import KIP_966
from isr_protocol.proof.invariant import INVARIANT

pytestmark = [pytest.mark.solver, pytest.mark.processes]


@always
def nobody_commits(s: tpc.State) -> Bool:
    """Not so, after a while."""
    return forall(s.rm[r] != tpc.Managed.COMMITTED for r in tpc.RM.all())


@always
def some_are_not_known_to_be_prepared(s: tpc.State) -> Bool:
    """Not so, after a while."""
    return (s.tm_prepared != tpc.RM.all()) | s.abort_sent


class Text:
    """One query as text, read again and asked of states."""

    def __init__(self, i: Induction, query: Query) -> None:
        guards = [("guard", name, x) for name, x in query.hypotheses[len(i.hypotheses) :]]
        asserted = cast("list[Term]", list(z3.parse_smt2_string(query_text([*guards, (GOAL, "", query.goal)]))))
        *self.guards, self.goal_fails = asserted
        assert len(self.guards) == len(guards)
        self.parameters = tuple(cast("int", v) for v in query.choice.values.values())

    def says(self, bindings: list[tuple[Term, Term]]) -> tuple[bool, bool]:
        """Whether the step can be taken, and whether the goal holds after it."""
        return all(_true(g, bindings) for g in self.guards), not _true(self.goal_fails, bindings)


def _true(x: Term, bindings: list[tuple[Term, Term]]) -> bool:
    found = z3.simplify(z3.substitute(x, *bindings))
    assert z3.is_true(found) or z3.is_false(found), found
    return bool(z3.is_true(found))


def test_stored_queries_say_what_the_reference_says_of_states() -> None:
    i = Induction(tpc.DESIGN, {"rms": 2}, [nobody_commits, some_are_not_known_to_be_prepared])
    instance = Instance(tpc.DESIGN, {"rms": 2})
    evaluator, names = Evaluator(instance), [v.name for v in instance.variables]
    conditions = {c.name: instance.fold(c.condition) for c in i.conjuncts}
    number = {a.name: k for k, a in enumerate(instance.actions)}
    texts = [(o, Text(i, q)) for o in i.obligations() if o.conjunct in conditions and o.action for q in o.queries]
    assert len(texts) >= 2
    seen = set[tuple[bool, bool]]()
    for state in some_states(evaluator, 200):
        if not all(evaluator.evaluate(c, state) for c in conditions.values()):
            continue  # what the step leaves alone is not part of the goal
        lifted = i.translation.lifted_state(dict(zip(names, state, strict=True)))
        bindings = [pair for n in names for pair in same_symbols(i.old[n], lifted[n])]
        after = {(k, p): s for k, p, s in evaluator.successors(state)}
        for o, text in texts:
            can, holds = text.says(bindings)
            successor = after.get((number[o.action or ""], text.parameters))
            assert can == (successor is not None), (o.name, state)
            if successor is not None:
                assert holds == bool(evaluator.evaluate(conditions[o.conjunct], successor)), (o.name, state)
                seen.add((can, holds))
    assert seen == {(True, True), (True, False)}


def test_two_solvers_agree_on_some_of_the_protocol(tmp_path: Path) -> None:
    free = dict.fromkeys(("log", "records", "epochs", "isr_changes", "crashes", "sessions_lost"))
    conjuncts = [KIP_966.restated_property(c.promise) for c in INVARIANT]
    i = Induction(KIP_966, {"replicas": 2, **free}, conjuncts)
    keeping = Keeping(i, Strategy(i, {c.name: c.by for c in INVARIANT}).decide, tmp_path)
    stored: list[StoredQuery] = []
    for o in i.obligations((), ["logs-match", "leaders-count-candidates"], ["leader_appends", "becomes_leader"]):
        for q in o.queries:
            assert keeping(o, q, 20.0, False).status == "unsat", o.name
            kept = keeping.stored_parts(o, q)
            assert kept, "the strategy tells what was refuted"
            for part in kept:
                text = (tmp_path / str(part["file"])).read_text(encoding="utf-8")
                assert len(text) < 100_000
                stored.append(StoredQuery(str(part["file"]), text, ()))
    assert len(stored) >= 2
    for solver in SOLVERS:
        for opinion in opinions(stored, solver, 20.0, 2):
            assert opinion.answer == "unsat", opinion
