"""A number below its range in a Maybe, and one above it in a set.

The number below became NONE without a word, so type-ok was said to hold.
"""

from isr_lang import NONE, Bool, Design, Maybe, Number, Set, Step, Struct, Value, action, always, initial, var


class Level(Number, high=2):
    """A number."""


class State(Struct):
    mark: Maybe[Level] = var("Perhaps a number.")
    level: Level = var("A number.")
    marks: Set[Level] = var("Some numbers.")
    turn: Level = var("What happened.")


@initial
def init(new: State) -> Step:
    return (new.mark == NONE, new.level == 0, new.marks == Set.empty(Level), new.turn == 0)


@action
def below(old: State, new: State) -> Step:
    """Stores -1 in a Maybe."""
    return (old.turn == 0, new.mark == Maybe.of(old.level - 1), new.turn == 1)


@action
def above(old: State, new: State) -> Step:
    """Stores 3 in a set."""
    return (old.turn == 0, new.marks == old.marks.including(old.level + 3), new.turn == 2)


@always
def a_mark_after_it(s: State) -> Bool:
    """A mark is there once it was made."""
    return (s.turn == 1).implies(s.mark != NONE)


@always
def the_mark_is_below(s: State) -> Bool:
    """The mark is what was stored."""
    return (s.turn == 1).implies(s.mark.or_else(2) < 0)


@always
def marks_are_there(s: State) -> Bool:
    """What was included is there; which is wrong, for it is no Level."""
    return (s.turn == 2).implies(~s.marks.is_empty())


PROMISES = (a_mark_after_it, the_mark_is_below, marks_are_there)
DESIGN = Design("below", "A Maybe below its range.", State, init, (below, above), PROMISES)
CONSTANTS: dict[str, Value] = {}
