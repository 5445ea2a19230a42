"""A counter that leaves its range far behind, under a guard that its range decides.

Folding dropped the guard and decided the promise, and the reference explored without end.
"""

from isr_lang import Bool, Design, Number, Step, Struct, Value, action, always, initial, sometimes, var


class Level(Number, high=2):
    """A number."""


class State(Struct):
    level: Level = var("A number.")


@initial
def init(new: State) -> Step:
    return (new.level == 0,)


@action
def grows(old: State, new: State) -> Step:
    """One more, up to 5000."""
    return (old.level < 5000, new.level == old.level + 1)


@always
def not_far(s: State) -> Bool:
    """It stays below 4500."""
    return s.level < 4500


@sometimes
def far(s: State) -> Bool:
    """It can be 4500."""
    return s.level == 4500


DESIGN = Design("far", "A counter.", State, init, (grows,), (not_far, far))
CONSTANTS: dict[str, Value] = {}
