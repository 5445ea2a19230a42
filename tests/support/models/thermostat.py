"""Rooms that are heated degree by degree: properties of every form that an explanation takes apart."""

from isr_lang import (
    Bool,
    Design,
    Map,
    Maybe,
    Number,
    Seq,
    Set,
    Sort,
    Step,
    Struct,
    action,
    always,
    bound,
    count,
    define,
    exists,
    forall,
    initial,
    sometimes,
    step,
    var,
    when,
)
from isr_lang.blank import blank

ROOMS = bound("rooms", "Rooms.", default=3, low=1, high=4)


class Room(Sort, size=ROOMS, prefix="room"):
    """A room."""


class Degree(Number, high=3):
    """How warm it is."""


class State(Struct):
    warmth: Map[Room, Degree] = var("How warm each room is.")
    heated: Maybe[Room] = var("The room that was heated last.")
    occupied: Set[Room] = var("Where people are.")
    order: Seq[Degree, Degree] = var("The warmth that the rooms had when they were heated, up to three.")


@initial
def cold(new: State) -> Step:
    """All is cold and empty."""
    return (
        new.warmth == blank(new.warmth),
        new.heated == blank(new.heated),
        new.occupied == blank(new.occupied),
        new.order == blank(new.order),
    )


@action
def heat(old: State, new: State, room: Room) -> Step:
    """Heat `room` by one degree."""
    return (
        old.warmth[room] < 3,
        old.order.length() < 3,
        new.warmth[room] == old.warmth[room] + 1,
        new.heated == room,
        new.order == old.order.append(old.warmth[room]),
    )


@action
def enter(old: State, new: State, room: Room) -> Step:
    """Someone comes into `room`."""
    return (~old.occupied.has(room), new.occupied == old.occupied.including(room))


@define
def comfortable(s: State, room: Room) -> Bool:
    """Two degrees are comfortable."""
    return s.warmth[room] == 2


@define
def warmer(s: State, room: Room, other: Room) -> Bool:
    """One room is warmer than another."""
    return s.warmth[room] > s.warmth[other]


@always
def never_hot(s: State) -> Bool:
    """No room is ever hot."""
    return forall(s.warmth[room] < 3 for room in Room.all())


@always
def someone_sees_to_it(s: State) -> Bool:
    """A room where people are is comfortable, or some other room is warmer."""
    return forall(
        s.occupied.has(room).implies(comfortable(s, room) | exists(warmer(s, o, room) for o in Room.all()))
        for room in Room.all()
    )


@always
def at_most_one_is_warm(s: State) -> Bool:
    """One room is warm at a time, and the last one heated is not cold."""
    last = forall((s.heated == room).implies(s.warmth[room] > 0) for room in Room.all())
    return (count(s.warmth[room] > 0 for room in Room.all()) <= 1) & last


@always
def order_is_kept(s: State) -> Bool:
    """Unless nothing was heated, it began with a cold room."""
    return when(s.order.length() == 0, s.occupied == s.occupied, s.order[0] == 0)


@step
def nobody_enters_a_cold_room(old: State, new: State) -> Bool:
    """Whoever comes in finds it warm, and nobody leaves."""
    return (old.occupied <= new.occupied) & forall(
        (~old.occupied.has(room) & new.occupied.has(room)).implies(~(old.warmth[room] == 0)) for room in Room.all()
    )


@step
def comfort_stays(old: State, new: State) -> Bool:
    """A comfortable room stays comfortable."""
    return forall(comfortable(old, room).implies(comfortable(new, room)) for room in Room.all())


@sometimes
def everyone_is_comfortable(s: State) -> Bool:
    """Two rooms with people in them can be warm."""
    return exists(
        s.occupied.has(a) & s.occupied.has(b) & (s.warmth[a] == 1) & (s.warmth[b] == 1) & ~(a == b)
        for a in Room.all()
        for b in Room.all()
    )


DESIGN = Design(
    "thermostat",
    "Rooms that are heated.",
    State,
    cold,
    (heat, enter),
    (
        never_hot,
        someone_sees_to_it,
        at_most_one_is_warm,
        order_is_kept,
        nobody_enters_a_cold_room,
        comfort_stays,
        everyone_is_comfortable,
    ),
)
