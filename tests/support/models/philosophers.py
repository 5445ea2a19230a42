"""Dining philosophers who hand their forks to each other, after Chandy and Misra, as DiningPhilosophers.tla.

Fork p lies between philosophers p - 1 and p. Whoever holds a dirty fork cleans it and gives it away, so
nobody who has eaten keeps a neighbour from eating.

Not modelled: requests for a fork; a dirty fork is given away unasked.
"""

from typing import ClassVar

from isr_lang import (
    Bool,
    Choice,
    Design,
    Map,
    Number,
    Step,
    Struct,
    action,
    always,
    bound,
    define,
    forall,
    initial,
    sometimes,
    var,
    when,
)

SEATS = bound("seats", "Philosophers, and forks.", default=5, low=2, high=6)


class Seat(Number, low=1, high=SEATS):
    """A philosopher, and the fork to the left."""


class Doing(Choice):
    """What a philosopher does next."""

    LOOK: ClassVar["Doing"]
    EAT: ClassVar["Doing"]
    THINK: ClassVar["Doing"]


class State(Struct):
    holder: Map[Seat, Seat] = var("Who holds each fork.")
    clean: Map[Seat, Bool] = var("Whether each fork is clean.")
    doing: Map[Seat, Doing] = var("What each philosopher does next.")
    hungry: Map[Seat, Bool] = var("Whether each philosopher is hungry.")


@define
def right(p: Seat) -> Seat:
    """The philosopher, and the fork, to the right."""
    return when(p == SEATS, Seat.of(1), p + 1)


@define
def left(p: Seat) -> Seat:
    """The philosopher to the left."""
    return when(p == 1, Seat.of(SEATS), p - 1)


@define
def dirty(s: State, p: Seat, fork: Seat) -> Bool:
    """The philosopher holds this fork, and it is dirty."""
    return (s.holder[fork] == p) & ~s.clean[fork]


@define
def can_eat(s: State, p: Seat) -> Bool:
    """The philosopher holds two clean forks."""
    both = (s.holder[p] == p) & (s.holder[right(p)] == p)
    return both & s.clean[p] & s.clean[right(p)]


@initial
def init(new: State) -> Step:
    """Every fork is dirty and with the lower of its two philosophers."""
    return (
        new.holder == Map.build(Seat, lambda f: when(f == 2, Seat.of(1), f)),
        new.clean == Map.build(Seat, lambda f: Bool.false),
        new.doing == Map.build(Seat, lambda p: Doing.LOOK),
        new.hungry == Map.build(Seat, lambda p: Bool.true),
    )


@action
def looks_around(old: State, new: State, p: Seat) -> Step:
    """A philosopher gives one dirty fork away, and eats if hungry with two clean forks (as they lay before)."""
    given = when(dirty(old, p, p), p, right(p))
    taker = when(dirty(old, p, p), left(p), right(p))
    gives = dirty(old, p, p) | dirty(old, p, right(p))
    return (
        old.doing[p] == Doing.LOOK,
        new.holder == when(gives, old.holder.put(given, taker), old.holder),
        new.clean == when(gives, old.clean.put(given, Bool.true), old.clean),
        new.doing[p] == when(old.hungry[p], when(can_eat(old, p), Doing.EAT, Doing.LOOK), Doing.THINK),
    )


@action
def eats(old: State, new: State, p: Seat) -> Step:
    """A philosopher eats, which makes both forks dirty."""
    return (
        old.doing[p] == Doing.EAT,
        new.hungry[p] == Bool.false,
        new.clean == old.clean.put(p, Bool.false).put(right(p), Bool.false),
        new.doing[p] == Doing.LOOK,
    )


@action
def thinks(old: State, new: State, p: Seat) -> Step:
    """A philosopher becomes hungry again."""
    return (
        old.doing[p] == Doing.THINK,
        new.hungry[p],
        new.doing[p] == Doing.LOOK,
    )


@always
def neighbours_do_not_eat_together(s: State) -> Bool:
    """Two who share a fork never eat at the same time."""
    return forall(~((s.doing[p] == Doing.EAT) & (s.doing[right(p)] == Doing.EAT)) for p in Seat.all())


@sometimes
def somebody_is_full(s: State) -> Bool:
    """Somebody has eaten."""
    return ~forall(s.hungry[p] for p in Seat.all())


DESIGN = Design(
    "philosophers",
    "Dining philosophers who hand their forks to each other.",
    State,
    init,
    (looks_around, eats, thinks),
    (neighbours_do_not_eat_together, somebody_is_full),
)

PUBLISHED = {5: 67}
"""Philosophers -> distinct states: the manifest of the TLA+ examples, which counts 336 states in all."""
