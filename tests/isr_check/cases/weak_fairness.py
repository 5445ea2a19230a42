"""A door that opens again and again need not be passed under weak fairness, though it is under strong fairness."""

from isr_lang import Bool, Design, Step, Struct, Value, action, initial, leads_to, var


class State(Struct):
    is_open: Bool = var("Whether the door is open.")
    is_through: Bool = var("Whether somebody passed.")


@initial
def init(new: State) -> Step:
    return (~new.is_open, ~new.is_through)


@action
def turns(old: State, new: State) -> Step:
    """The door opens or closes."""
    return (new.is_open == ~old.is_open,)


@action
def passes(old: State, new: State) -> Step:
    """Somebody passes the open door."""
    return (old.is_open, ~old.is_through, new.is_through)


def waiting(s: State) -> Bool:
    return ~s.is_through


def through(s: State) -> Bool:
    return s.is_through


PASSED = leads_to("passed", "Somebody passes.", waiting, through, state=State, fair=(turns, passes))
DESIGN = Design("door", "A door that turns.", State, init, (turns, passes), (PASSED,))
CONSTANTS: dict[str, Value] = {}
