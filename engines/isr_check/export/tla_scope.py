"""The scope of an expression in a TLA+ module: which local names it has, and how variables are primed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from isr_check.export.layout import Term
from isr_lang.extents import NOWHERE

# How new.x is written. "written": x'. "dropped": x, because a prime outside covers it, as in D(x)'. "all": x', and so
# is old.x, because the expression is the body of a primed definition.
Primes = Literal["written", "dropped", "all"]


@attrs.frozen
class Scope:
    """The scope: terms of local names, how variables are primed, and the parameters that may be out of range."""

    local: Mapping[object, Term] = attrs.field(factory=dict[object, Term])
    primes: Primes = "written"
    names_in_use: frozenset[str] = frozenset()
    doubtful: frozenset[str] = NOWHERE

    def binding(self, what: object, name: str) -> Scope:
        return attrs.evolve(self, local={**self.local, what: Term((name,))}, names_in_use=self.names_in_use | {name})
