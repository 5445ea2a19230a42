"""A desk that draws tickets and serves them in order, for tests of everything around a model.

`careful` keeps its promises and `hasty`, which serves tickets nobody drew, does not. Together they have one
of everything: a bound, a fault budget, a switch, a setting with names like numbers, settings that contradict
each other, promises of every kind, one that is made only under a setting, guards that are redundant.
"""

from typing import ClassVar

from isr_lang import (
    Bool,
    Choice,
    Design,
    Number,
    Step,
    Struct,
    action,
    always,
    assume,
    bound,
    initial,
    leads_to,
    setting,
    sometimes,
    step,
    switch,
    var,
)

TICKETS = bound("tickets", "Tickets on the roll.", default=3, low=1, high=200)
RUSH = bound("rush", "How many may wait before the desk hurries.", default=2, low=1, high=200)
JAMS = bound("paper_jams", "Tickets torn by the machine.", default=1, high=3, budget=True)
REOPEN = switch("reopen", "Whether a closed desk opens again.", default=False)


class Calls(Choice):
    """How a ticket is called."""

    SILENT: ClassVar["Calls"]
    ONCE: ClassVar["Calls"]
    EVERYONE: ClassVar["Calls"]


CALLS = setting(
    "calls",
    "How often a ticket is called.",
    values={"0": Calls.SILENT, "1": Calls.ONCE, "all": Calls.EVERYONE},
    default="1",
)


class Ticket(Number, high=TICKETS):
    """How many tickets."""


class Jam(Number, high=JAMS):
    """How many jams."""


class Desk(Struct):
    drawn: Ticket = var("How many tickets were drawn.")
    served: Ticket = var("How many tickets were served.")
    jams: Jam = var("How many tickets were torn.")
    open: Bool = var("Whether tickets can be drawn.")


@initial
def morning(new: Desk) -> Step:
    """Nobody is there yet."""
    return (new.drawn == 0, new.served == 0, new.jams == 0, new.open)


@action
def draws(old: Desk, new: Desk) -> Step:
    """Somebody draws a ticket."""
    return (old.open, old.drawn < TICKETS, new.drawn == old.drawn + 1)


@action
def serves(old: Desk, new: Desk) -> Step:
    """The desk serves the next ticket."""
    return (old.served < old.drawn, CALLS != Calls.SILENT, new.served == old.served + 1)


@action
def serves_anyone(old: Desk, new: Desk) -> Step:
    """The desk serves whether a ticket was drawn or not."""
    return (old.served < TICKETS, CALLS != Calls.SILENT, new.served == old.served + 1)


@action
def hurries(old: Desk, new: Desk) -> Step:
    """The desk serves three at once."""
    return (old.served + RUSH < old.drawn, new.served == old.drawn)


@action
def jams(old: Desk, new: Desk) -> Step:
    """The machine tears a ticket that waits."""
    return (
        old.jams < JAMS,
        old.served < old.drawn,
        new.jams == old.jams + 1,
        new.drawn == old.drawn - 1,
    )


@action
def closes(old: Desk, new: Desk) -> Step:
    """The desk closes when nobody waits."""
    return (old.open, old.served == old.drawn, ~new.open)


@action
def reopens(old: Desk, new: Desk) -> Step:
    """The desk opens again."""
    return (REOPEN, ~old.open, new.open)


@always
def never_ahead(s: Desk) -> Bool:
    """No ticket is served before it was drawn."""
    return s.served <= s.drawn


@step
def never_back(old: Desk, new: Desk) -> Bool:
    """What is served stays served."""
    return old.served <= new.served


@always(when=~REOPEN)
def closed_is_done(s: Desk) -> Bool:
    """When the desk is closed nobody waits."""
    return s.open | (s.served == s.drawn)


@sometimes
def roll_used_up(s: Desk) -> Bool:
    """Every ticket can be served."""
    return s.served == TICKETS


@sometimes
def crowd(s: Desk) -> Bool:
    """Three can wait at once."""
    return s.served + 2 < s.drawn


ends = leads_to(
    "everybody-served",
    "Whoever waits is served.",
    never_ahead,
    roll_used_up,
    fair=(serves,),
    when=CALLS != Calls.SILENT,
)

CAREFUL = Design(
    "careful",
    "Serves in order.",
    Desk,
    morning,
    (draws, serves, hurries, jams, closes, reopens),
    (never_ahead, never_back, closed_is_done, roll_used_up, crowd, ends),
    assumptions=(assume(RUSH <= TICKETS, otherwise="the desk hurries for more tickets than there are"),),
)
HASTY = (
    CAREFUL.replacing("hasty", "Serves anyone.", because="looking at the roll takes time", serves=serves_anyone)
    .with_defaults(tickets=2)
    .failing("a ticket may be served before it is drawn", never_ahead)
)


class Nothing(Number, low=1, high=JAMS):
    """A number that does not exist without jams."""


class Drawer(Struct):
    first: Nothing = var("Which.")


@initial
def opened(new: Drawer, n: Nothing) -> Step:
    """Any."""
    return (new.first == n,)


@always
def something(s: Drawer) -> Bool:
    """There is something."""
    return s.first >= 1


EMPTY = Design("empty", "Has no state without jams.", Drawer, opened, (), (something,), defaults={"paper_jams": 0})
DESIGNS = {d.name: d for d in (CAREFUL, HASTY, EMPTY)}
