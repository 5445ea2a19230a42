"""How much random walks have not met, estimated from what they have met.

The walks of a seed are independent draws of one experiment, a walk. So what the last of them added to all the others
is what one more would add. A state that no other walk met is one that its walk added. Hence `once` / `walks` is
the mean number of new states of a walk, without bias (Good, Biometrika 1953, for one draw; Chao and Colwell, 2017, for
draws of several, as here). States of one walk depend on each other, so each counts once a walk.

It measures by the walks: how often they meet a state, and not how many states there are. A state that a walk hardly
ever meets counts hardly at all, and one farther away than a walk is long counts nothing.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class WalkEstimate:
    """What `walks` walks met: `distinct` states, `once` of them in one walk only, `twice` in exactly two.

    `meetings`: the distinct states of each walk, summed over all walks.
    """

    walks: int
    meetings: int
    distinct: int
    once: int
    twice: int

    @property
    def new_per_walk(self) -> float:
        """How many states one more walk would meet that none of these met, in the mean (Good and Turing)."""
        return self.once / self.walks

    @property
    def new_share(self) -> float:
        """The same as a share of the states of a walk: from 0 to 1, which is all of them."""
        return self.once / self.meetings

    @property
    def least_states(self) -> int:
        """So many states a walk can meet, at least, as far as an estimate goes (Chao2: Chao, Biometrics 1987)."""
        unmet = (self.walks - 1) * self.once * (self.once - 1) // (2 * self.walks * (self.twice + 1))
        return self.distinct + unmet
