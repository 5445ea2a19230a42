"""Hints: which conjuncts a proof needs, found with small bounds.

Where every bound has a small value, a solver decides each obligation quickly. There the conjuncts that it needs are
collected: each counterexample adds a conjunct that the counterexample violates. If one violates none, the obligation is
refuted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import attrs

from isr_check.smt.induction import Induction, Obligation, Query
from isr_check.smt.solver import Answer, ask
from isr_lang import Design, Property
from isr_lang import Value as Setting

SMALL = 3
"""The value that a bound gets if it was left open."""


@attrs.frozen(eq=False)
class Hint:
    """Conjuncts that suffice with small bounds; or a counterexample there, which is the `answer` to `query`."""

    using: tuple[str, ...]
    query: Query | None = None
    answer: Answer | None = None


class Guide:
    """The same obligations with every open bound given a small value."""

    def __init__(
        self, design: Design, constants: Mapping[str, Setting | None], conjuncts: Sequence[Property], small: int = SMALL
    ) -> None:
        high = {c.name: c.high for c in design.constants()}
        low = {c.name: c.low for c in design.constants()}
        given = {k: max(low[k], min(high[k], small)) if v is None else v for k, v in constants.items()}
        self.induction = Induction(design, given, conjuncts)
        self._arguments = design, constants, conjuncts
        self._smaller: dict[int, Guide] = {}
        self.small = small
        self.properties_by_name = {p.name: p for p in design.properties}
        self.properties_by_name |= {p.name: p for p in conjuncts}
        self._obligations: dict[tuple[str, str, str | None], Obligation] = {}

    def obligation(self, o: Obligation) -> Obligation | None:
        """The obligation of the same name with small bounds."""
        key = o.kind, o.conjunct, o.action
        if key not in self._obligations:
            wanted = [self.properties_by_name[o.conjunct]] if o.kind == "implies" else []
            actions = [o.action] if o.action else []
            only = ["-"] if o.kind == "implies" else [o.conjunct]
            for made in self.induction.obligations(wanted, only, actions):
                self._obligations[made.kind, made.conjunct, made.action] = made
        return self._obligations.get(key)

    def hint(self, obligation: Obligation, query: Query, seconds: float) -> Hint | None:
        """The hint for a query; None if there was no time to find it."""
        same = self.obligation(obligation)
        queries = [] if same is None else [q for q in same.queries if _chosen_elements(q) == _chosen_elements(query)]
        if not queries:
            return Hint((obligation.conjunct,))
        end, using = time.process_time() + seconds, dict[str, None]()
        conjunct_names = {c.name for c in self.induction.conjuncts}
        if obligation.conjunct in conjunct_names and obligation.kind == "preserved":
            using[obligation.conjunct] = None
        while (left := end - time.process_time()) > 0:
            answer = ask(self.induction.assertions(queries[0], using), left)
            if answer.status == "unsat":
                core = ask(self.induction.assertions(queries[0], using), max(left, 1.0), with_core=True).used_names
                return Hint(tuple(n for n in using if n in core or not core))
            if answer.status != "sat" or answer.value is None:
                return None
            false = [
                n for n, x in queries[0].hypotheses if n in conjunct_names and n not in using and not answer.value(x)
            ]
            if not false:
                return Hint(tuple(using), queries[0], answer)
            using[false[0]] = None
        return None

    def least(self, obligation: Obligation, query: Query, seconds: float) -> tuple[Guide, Hint | None]:
        """The hint. Smaller bounds come first: a counterexample there is found sooner and read more easily."""
        end = time.process_time() + seconds
        for small in range(self.small):
            if small not in self._smaller:
                self._smaller[small] = Guide(*self._arguments, small)
            hint = self._smaller[small].hint(obligation, query, end - time.process_time())
            if hint is not None and hint.query is not None:
                return self._smaller[small], hint
        return self, self.hint(obligation, query, end - time.process_time())


def _chosen_elements(query: Query) -> tuple[object, ...]:
    """The elements of sorts among the parameters."""
    return tuple(v for v in query.choice.values.values() if isinstance(v, int))
