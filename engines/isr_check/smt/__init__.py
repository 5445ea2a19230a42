"""Proofs by induction: the expression graph as terms of z3, for bounds that may be left open.

    from isr_check.smt import table
    table(design, {"size": 3, "top": None}, conjuncts, wanted)      # None: for every value of this bound

`Translation` is the same graph as terms, `Induction` makes the obligations, `prove` decides them, `table` prints
them as they are decided. Nothing here knows what a design is about.
"""

from isr_check.smt.induction import Induction, Obligation, Query
from isr_check.smt.matrix import described, instance_of, matrix, table
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
    "decide",
    "described",
    "instance_of",
    "matrix",
    "prove",
    "table",
]
