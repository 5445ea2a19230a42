"""Learning: of every part that was proved, the core that a next proof can begin with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import attrs

from isr_check.smt.cores import GUARDS, Core, Learnt
from isr_check.smt.induction import GOAL, Obligation, Query
from isr_check.smt.smtlib import smaller
from isr_check.smt.solver import Answer, Proof
from isr_check.smt.strategy import FIRST, MARK, PLAIN, SOME, WAYS, Strategy, ask
from isr_check.smt.terms.logic import Term, identity

FOLLOWS = ("bounds", "defined", GOAL, MARK)
"""Assertions that a core need not name."""


QUICK, PATIENCE = 0.1, 3.0
"""Seconds that any question may take, and how many times as long a question may take that assumes less."""


class Learning:
    """A way to prove (obligations.Attempt): that of a strategy, whose answers tell the cores that it did not know."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    def __call__(self, obligation: Obligation, query: Query, seconds: float, core: bool) -> Answer:
        answer = self.strategy.decide(obligation, query, seconds, core)
        if answer.status != "unsat":
            return answer
        question, learnt = self.strategy.question(obligation, query), list[Learnt]()
        for proof in answer.proofs:
            found = None if proof.core else self.core(obligation, attrs.evolve(query, goal=proof.goal), proof)
            if found is not None:
                learnt.append((question, proof.part, found))
        return attrs.evolve(answer, learnt=tuple(learnt))

    def core(self, obligation: Obligation, query: Query, proof: Proof) -> Core | None:
        """The core of a proof of one part, tried again as the next proof will try it; None if it does not suffice."""
        uses: list[tuple[str, int]] = []
        some: tuple[tuple[str, ...], int] | None = None
        for name, x in smaller(proof)[0].assertions:
            if name == SOME:
                some = proof.named_by, self._witness(obligation, query, proof.named_by, x)
            elif name not in FOLLOWS:
                uses.append(self._place(obligation, query, name, x))
        way = next(k for k, options in enumerate(WAYS) if {**PLAIN, **options} == proof.way)
        for sizes, view in product((False, True), repeat=2):
            core = Core(_uses(uses), some, sizes, view, way)
            for wider in (False, True) if sizes and view else (False,):
                asked = self.strategy.core_assertions(obligation, query, core, wider)
                answer = None if asked is None else ask(asked, FIRST, WAYS[way])
                if answer is not None and answer.status == "unsat":
                    return core if wider else self.fewer(obligation, query, core, answer.seconds)
        return None

    def fewer(self, obligation: Obligation, query: Query, core: Core, seconds: float) -> Core:
        """A part of the core that suffices, too: halves of it are left out, then quarters, and at last one at a time.

        A solver names more than it takes, and what it does not take holds up the next one.
        """
        limit = PATIENCE * max(seconds, QUICK)
        uses = [(name, place) for name, places in core.uses for place in places]
        size = len(uses) // 2
        while size:
            at = 0
            while at < len(uses):
                left = uses[:at] + uses[at + size :]
                asked = self.strategy.core_assertions(obligation, query, attrs.evolve(core, uses=_uses(left)))
                if asked is not None and ask(asked, limit, WAYS[core.way]).status == "unsat":
                    uses = left
                else:
                    at += size
            size //= 2
        return attrs.evolve(core, uses=_uses(uses))

    def _place(self, obligation: Obligation, query: Query, name: str, x: Term) -> tuple[str, int]:
        """The name of a hypothesis as cores call it, and its place among those of this name."""
        for called in (GUARDS, name):
            for place, (_, other) in enumerate(self.strategy.formulas(obligation, query, called)):
                if identity(other) == identity(x):
                    return called, place
        raise AssertionError(f"{name} is no hypothesis of {obligation.name}")

    def _witness(self, obligation: Obligation, query: Query, names: tuple[str, ...], x: Term) -> int:
        """The place of a witness among those that these properties give."""
        found = self.strategy.witnesses(obligation, query, names)
        return next(k for k, (w, _) in enumerate(found) if identity(w.term) == identity(x))


def _uses(uses: Sequence[tuple[str, int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Hypotheses by name, each with its places."""
    found: dict[str, set[int]] = {}
    for name, place in uses:
        found.setdefault(name, set()).add(place)
    return tuple((name, tuple(sorted(places))) for name, places in sorted(found.items()))
