"""An off variable begins with the parameter of `@initial`, and an action has a parameter of the same name.

Folding put the one for the other: `takes` was impossible, and a promise that it breaks was said to hold.
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
def init(new: State, r: Process) -> Step:
    return (new.holder == NONE, new.leader == r, new.level == 0)


@action
def takes(old: State, new: State, r: Process) -> Step:
    """Anybody but the leader takes it."""
    return (old.holder == NONE, old.leader != r, new.holder == r, new.level == 1)


@always
def nobody_takes(s: State) -> Bool:
    """Nobody ever takes it; which is wrong."""
    return s.level == 0


DESIGN = Design("captured", "A leader for ever.", State, init, (takes,), (nobody_takes,))
CONSTANTS: dict[str, Value] = {}
