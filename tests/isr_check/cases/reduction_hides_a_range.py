"""A request that is passed holds a number out of range.

The reduction blanked what nothing reads, and with it the number, so type-ok was said to hold.
"""

from isr_lang import Bool, Design, Map, Number, Sort, Step, Struct, Value, action, always, bound, initial, var, when

SIZE = bound("size", "Clients.", default=2, low=1, high=4)


class Client(Sort, size=SIZE, prefix="c"):
    """Who asks."""


class Version(Number, high=2):
    """A version."""


class Amount(Number, high=2):
    """What is asked for."""


class State(Struct):
    now: Version = var("The current version.")
    version: Map[Client, Version] = var("The version that each request names.")
    wish: Map[Client, Amount] = var("What it asks for.")
    taken: Amount = var("What was taken.")


@initial
def init(new: State) -> Step:
    return (
        new.now == 0,
        new.version == Map.build(Client, lambda c: Version.of(0)),
        new.wish == Map.build(Client, lambda c: Amount.of(0)),
        new.taken == 0,
    )


@action
def bumps(old: State, new: State) -> Step:
    """The version grows."""
    return (old.now < 2, new.now == old.now + 1)


@action
def asks(old: State, new: State, c: Client, v: Version, n: Amount) -> Step:
    """A request names any version up to the current, and asks for one more where that is passed."""
    return (v <= old.now, new.version[c] == v, new.wish[c] == when(v < old.now, n + 1, n))


@action
def takes(old: State, new: State, c: Client) -> Step:
    """A request of the current version is served."""
    return (old.version[c] == old.now, new.taken == old.wish[c])


@always
def taken_is_itself(s: State) -> Bool:
    """What was taken is what was taken."""
    return s.taken + 0 <= s.taken


DESIGN = Design("stale", "Requests that name a version.", State, init, (bumps, asks, takes), (taken_is_itself,))
CONSTANTS: dict[str, Value] = {}
