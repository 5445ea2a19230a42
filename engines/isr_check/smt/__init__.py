"""Proofs by induction: the expression graph as terms of z3, for bounds that may be left open.

    from isr_check.smt import Proved, table
    from isr_lang import *

    TOP = bound("top", "The last hour.", default=3, high=9)

    class Hour(Number, high=TOP):
        "An hour."

    class State(Struct):
        hour: Hour = var("What a clock shows.")
        seen: Hour = var("What somebody has read from it.")

    @initial
    def init(new: State) -> Step:
        return (new.hour == 0, new.seen == 0)

    @action
    def ticks(old: State, new: State) -> Step:
        "The clock goes on."
        return (old.hour < TOP, new.hour == old.hour + 1)

    @action
    def reads(old: State, new: State) -> Step:
        "Somebody looks."
        return (new.seen == old.hour,)

    @always
    def nobody_is_ahead(s: State) -> Bool:
        return s.seen <= s.hour

    CLOCK = Design("clock", "One clock.", State, init, (ticks, reads), (nobody_is_ahead,))
    decided = table(CLOCK, {"top": None}, [nobody_is_ahead])        # None: for every value of this bound
    assert all(isinstance(result, Proved) for _, result in decided)

`Translation` is the same graph as terms, `Induction` makes the obligations, `prove` decides them, `table` prints
them as they are decided. Nothing here knows what a design is about.

Reading order: `terms/` (a design as terms of z3), `induction` (the obligations), `obligations` (deciding them),
`matrix` (the table), `__main__` (the same from a shell).

- How one is decided: `strategy` (with which hypotheses, for how long), `hypotheses` and `cores` (which are needed),
  `goals`, `orbits` and `equal_goals` (a few elements for all), `solver`, `finite_solver` and `step_solver` (one solver
  for one question, or for many), `processor_time` (their limits).
- What is kept: `learning` (cores for the next proof), `proof_file` and `smtlib` (a proof for other solvers),
  `certificate` (a stored proof beside the model).
- What implies what: `property_graph` (decided by the solver), `property_drawing` (for graphviz).
"""

from isr_check.smt.induction import Induction, Obligation, Query
from isr_check.smt.matrix import counterexample_lines, instance_of, matrix, table
from isr_check.smt.obligations import Counterexample, Proved, Result, Unknown, decide, prove
from isr_check.smt.terms.design_terms import Choice, Step, Translation
from isr_check.smt.terms.values import NotTranslatable

__all__ = [
    "Choice",
    "Counterexample",
    "Induction",
    "NotTranslatable",
    "Obligation",
    "Proved",
    "Query",
    "Result",
    "Step",
    "Translation",
    "Unknown",
    "counterexample_lines",
    "decide",
    "instance_of",
    "matrix",
    "prove",
    "table",
]
