"""A promise that says what a declared range says, of a variable that leaves it.

Folding made it true, so it was said to hold beside a range that is left.
"""

from isr_lang import Bool, Design, Number, Step, Struct, Value, action, always, bound, initial, var

TOP = bound("top", "The highest level.", default=2, low=1, high=4)


class Level(Number, high=TOP):
    """A level."""


class Time(Number, high=6):
    """A time."""


class State(Struct):
    level: Level = var("A level.")
    time: Time = var("A time.")


@initial
def init(new: State) -> Step:
    return (new.level == 0, new.time == 0)


@action
def rises(old: State, new: State) -> Step:
    """One higher, of which the top is no guard."""
    return (old.time < 4, new.level == old.level + 1, new.time == old.time + 1)


@always
def never_above_the_top(s: State) -> Bool:
    """The top is not passed; which is wrong."""
    return s.level <= TOP


@always
def level_is_time(s: State) -> Bool:
    """One of both is low; which is wrong, too."""
    return (s.level < 3) | (s.time < 3)


DESIGN = Design("rises", "A level that rises.", State, init, (rises,), (never_above_the_top, level_is_time))
CONSTANTS: dict[str, Value] = {}
