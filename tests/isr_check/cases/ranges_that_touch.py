"""Two numbers whose ranges have the last and the first two values in common, so that either may be the larger.

Folding that takes "at most" for true where it is one short of true said that the promise holds.
"""

from isr_lang import Bool, Design, Number, Step, Struct, Value, action, always, initial, var


class Low(Number, high=1):
    """0 or 1."""


class State(Struct):
    demand: Low = var("How much is asked for.")
    supply: Low = var("How much there is.")


@initial
def init(new: State) -> Step:
    return (new.demand == 0, new.supply == 0)


@action
def demand_rises(old: State, new: State) -> Step:
    """Somebody asks."""
    return (old.demand < 1, new.demand == old.demand + 1)


@action
def supply_rises(old: State, new: State) -> Step:
    """There is more."""
    return (old.supply < 1, new.supply == old.supply + 1)


@always
def demand_is_met(s: State) -> Bool:
    """There is as much as is asked for; which is wrong."""
    return s.demand <= s.supply


DESIGN = Design("market", "Demand and supply.", State, init, (demand_rises, supply_rises), (demand_is_met,))
CONSTANTS: dict[str, Value] = {}
