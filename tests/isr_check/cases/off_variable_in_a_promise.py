"""An off variable begins with the parameter of `@initial`, which no action and no promise has.

Folding left the name of that parameter where there was none, and every engine crashed.
"""

from isr_lang import (
    NONE,
    Bool,
    Design,
    Maybe,
    Number,
    Sort,
    Step,
    Struct,
    Value,
    action,
    always,
    bound,
    initial,
    switch,
    var,
)

SETTING = switch("setting", "Whether somebody leads.", default=False)
SIZE = bound("size", "Processes.", default=2, low=1, high=4)


class Process(Sort, size=SIZE, prefix="p"):
    """A process."""


class Level(Number, high=2):
    """A number."""


class State(Struct):
    holder: Maybe[Process] = var("Who has it.")
    leader: Maybe[Process] = var("Who leads for ever.", when=SETTING)
    level: Level = var("How often it was taken.")


@initial
def init(new: State, f: Process) -> Step:
    return (new.holder == NONE, new.leader == f, new.level == 0)


@action
def takes(old: State, new: State, r: Process) -> Step:
    """The leader takes it."""
    return (old.holder == NONE, old.leader == r, new.holder == r, new.level == 1)


@always
def taken_by_the_leader(s: State) -> Bool:
    """Only the leader takes it."""
    return (s.holder == NONE) | (s.holder == s.leader)


DESIGN = Design("off-parameter", "A leader for ever.", State, init, (takes,), (taken_by_the_leader,))
CONSTANTS: dict[str, Value] = {}
