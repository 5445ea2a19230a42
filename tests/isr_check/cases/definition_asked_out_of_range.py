"""A guard asks a definition about a number that may be out of its range, and a set gets all there are."""

from isr_lang import Bool, Design, Number, Set, Step, Struct, Value, action, define, initial, sometimes, var


class Level(Number, high=2):
    """A number."""


class State(Struct):
    level: Level = var("A number.")
    marks: Set[Level] = var("Some numbers.")


@define
def is_level(_: State, level: Level) -> Bool:
    """Whether it is one."""
    return level <= 2


@initial
def init(new: State) -> Step:
    return (new.level == 0, new.marks == Set.empty(Level))


@action
def rises(old: State, new: State) -> Step:
    """One higher, if that is a level; then all are marked."""
    return (is_level(old, old.level + 1), new.level == old.level + 1, new.marks == old.marks | Level.all())


@sometimes
def all_marked(s: State) -> Bool:
    """All can be marked."""
    return s.marks == Level.all()


DESIGN = Design("levels", "A level that rises.", State, init, (rises,), (all_marked,))
CONSTANTS: dict[str, Value] = {}
