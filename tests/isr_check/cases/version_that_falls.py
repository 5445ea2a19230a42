"""Requests name a version that falls again, so what a passed request asks for is read later."""

from isr_lang import Bool, Design, Map, Number, Sort, Step, Struct, Value, action, always, bound, initial, var

SIZE = bound("size", "Clients.", default=1, low=1, high=2)


class Client(Sort, size=SIZE, prefix="c"):
    """Who asks."""


class Version(Number, high=2):
    """A version."""


class State(Struct):
    now: Version = var("The current version.")
    version: Map[Client, Version] = var("The version that each request names.")
    wish: Map[Client, Version] = var("What it asks for.")
    taken: Version = var("What was taken.")
    has_fallen: Bool = var("Whether the version fell.")


@initial
def init(new: State) -> Step:
    return (
        new.now == 1,
        new.version == Map.build(Client, lambda _: Version.of(0)),
        new.wish == Map.build(Client, lambda _: Version.of(0)),
        new.taken == 0,
        ~new.has_fallen,
    )


@action
def asks(old: State, new: State, c: Client) -> Step:
    """A request of version 1."""
    return (old.now == 1, new.version[c] == 1, new.wish[c] == 2)


@action
def bumps(old: State, new: State) -> Step:
    """The version grows."""
    return (old.now == 1, new.now == 2)


@action
def falls(old: State, new: State, c: Client) -> Step:
    """The version falls, where a request is passed."""
    return (old.now == 2, old.version[c] == 1, new.now == 1, new.has_fallen)


@action
def takes(old: State, new: State, c: Client) -> Step:
    """A request of the current version is served once the version fell."""
    return (old.has_fallen, old.version[c] == old.now, new.taken == old.wish[c])


@always
def nothing_of_no_use(s: State) -> Bool:
    """Nothing is taken; which is wrong."""
    return s.taken == 0


DESIGN = Design("falls", "Versions that fall.", State, init, (asks, bumps, falls, takes), (nothing_of_no_use,))
CONSTANTS: dict[str, Value] = {}
