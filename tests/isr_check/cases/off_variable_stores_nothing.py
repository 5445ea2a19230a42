"""An action would write to a variable that is off, at a key that its map has not.

Nothing is stored there, but type-ok was said to be violated.
"""

from isr_lang import Bool, Design, Map, Number, Step, Struct, Value, action, always, initial, switch, var, when

SETTING = switch("setting", "Whether there are marks.", default=False)


class Level(Number, high=2):
    """A number."""


class State(Struct):
    level: Level = var("A number.")
    marks: Map[Level, Bool] = var("Where somebody was.", when=SETTING)


@initial
def init(new: State) -> Step:
    return (new.level == 0, new.marks == Map.build(Level, lambda _: Bool.false))


@action
def rises(old: State, new: State) -> Step:
    """One higher, or from the top to 0; the next is marked."""
    return (new.level == when(old.level < 2, old.level + 1, 0), new.marks[old.level + 1])


@always
def never_at_the_top(s: State) -> Bool:
    """It never is at the top; which is wrong."""
    return s.level < 2


DESIGN = Design("marks", "Marks that are not there.", State, init, (rises,), (never_at_the_top,))
CONSTANTS: dict[str, Value] = {}
