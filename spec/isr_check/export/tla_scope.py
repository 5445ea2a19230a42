"""Which names mean what where an expression of a module stands, and how variables are primed there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from isr_check.export.layout import Term
from isr_check.export.ranges import NOWHERE

# Whether new.x is written x': as it stands; not, within (...)'; or every variable, as in the body of a
# primed definition.
Primes = Literal["written", "dropped", "all"]


@attrs.frozen
class Scope:
    """The local names in force where an expression stands, and the parameters that may be out of range."""

    local: Mapping[object, Term] = attrs.field(factory=dict[object, Term])
    primes: Primes = "written"
    taken: frozenset[str] = frozenset()
    doubtful: frozenset[str] = NOWHERE

    def binding(self, what: object, name: str) -> Scope:
        return attrs.evolve(self, local={**self.local, what: Term((name,))}, taken=self.taken | {name})
