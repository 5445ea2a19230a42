"""Mistakes that mypy and pyright must both reject, at the lines marked so and nowhere else.

`and` and `or` are marked for mypy only, since pyright does not ask whether their operand has a truth; of
`a < b < c` neither does. Those are refused when a model is imported (tests/isr_lang/test_language_misuse.py). The
same sentences without the mistakes are in accepted.py.
"""

from typing import ClassVar

from isr_lang import (
    NONE,
    Bool,
    Choice,
    Count,
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
    define,
    exists,
    forall,
    initial,
    largest,
    setting,
    sometimes_step,
    var,
    when,
)

SIZE = bound("size", "How many workers.", default=2, high=3)


class Worker(Sort, size=SIZE, prefix="w"):
    """Who works."""


class Machine(Sort, size=SIZE, prefix="m"):
    """What is worked on."""


class Offset(Number, high=SIZE):
    """A position."""


class Epoch(Number, high=SIZE):
    """An age."""


class Light(Choice):
    """A light."""

    RED: ClassVar["Light"]
    GREEN: ClassVar["Light"]


class Mood(Choice):
    """A mood."""

    RED: ClassVar["Mood"]


class State(Struct):
    flag: Bool = var("A flag.")
    offset: Offset = var("A position.")
    epoch: Epoch = var("An age.")
    light: Light = var("A light.")
    mood: Mood = var("A mood.")
    done: Set[Worker] = var("Who is done.")
    idle: Set[Machine] = var("What is idle.")
    busy: Map[Worker, Bool] = var("Who is busy.")
    at: Map[Worker, Map[Machine, Offset]] = var("How far everyone is.")
    first: Maybe[Worker] = var("Who came first.")
    last: Maybe[Machine] = var("What was used last.")
    seen: Seq[Offset, Epoch] = var("What was seen.")


# declarations

HOW = setting("how", "How.", values={"go": Light.GREEN}, default="go")
HOW == Mood.RED  # reject


class Late(Sort, size=3, prefix="l"):  # reject
    """The size of a sort is a bound."""


class Unbounded(Number):  # reject
    """A number has a range."""


# names


def misspelt_variable(s: State) -> Bool:
    return s.flg  # reject


def misspelt_member(s: State) -> Bool:
    return s.light == Light.GREAN  # reject


def misspelt_operator(s: State, w: Worker) -> Bool:
    return s.done.contains(w)  # reject


# scalars


def two_kinds_of_number(s: State) -> Bool:
    return s.offset == s.epoch  # reject


def order_of_two_kinds(s: State) -> Bool:
    return s.offset < s.epoch  # reject


def sum_of_two_kinds(s: State) -> Epoch:
    return s.epoch + s.offset  # reject


def difference_of_two_kinds(s: State) -> Offset:
    return s.offset - s.epoch  # reject


def two_sorts(w: Worker, m: Machine) -> Bool:
    return w == m  # reject


def two_choices(s: State) -> Bool:
    return s.light == s.mood  # reject


def choice_as_text(s: State) -> Bool:
    return s.light == "RED"  # reject


def sort_and_number(s: State, w: Worker) -> Bool:
    return w == s.offset  # reject


def order_of_a_sort(w: Worker, v: Worker) -> Bool:
    return w < v  # reject


def product(s: State) -> Offset:
    return s.offset * 2  # reject


def condition_and_number(s: State) -> Bool:
    return s.flag & s.offset  # reject


def precedence(s: State) -> Bool:
    return s.offset == 1 & s.epoch == 2  # reject


def number_as_condition(s: State) -> Bool:
    return ~s.offset  # reject


# maps, sets, sequences


def map_by_the_wrong_sort(s: State, m: Machine) -> Bool:
    return s.busy[m]  # reject


def inner_map_by_the_wrong_sort(s: State, w: Worker) -> Offset:
    return s.at[w][w]  # reject


def value_of_a_map(s: State, w: Worker, m: Machine) -> Epoch:
    return s.at[w][m]  # reject


def map_with_the_wrong_value(s: State, w: Worker) -> Map[Worker, Bool]:
    return s.busy.put(w, s.offset)  # reject


def map_of_the_wrong_sort() -> Map[Worker, Bool]:
    return Map.build(Machine, lambda m: Bool.true)  # reject


def member_of_the_wrong_sort(s: State, m: Machine) -> Bool:
    return s.done.has(m)  # reject


def set_for_a_member(s: State) -> Bool:
    return s.done.has(s.done)  # reject


def sort_for_a_set(s: State) -> Bool:
    return s.done == Worker  # reject


def union_of_two_sorts(s: State) -> Set[Worker]:
    return s.done | s.idle  # reject


def sets_of_two_sorts(s: State) -> Bool:
    return s.done == s.idle  # reject


def subset_of_another_sort(s: State) -> Bool:
    return s.done <= s.idle  # reject


def python_set(s: State) -> Bool:
    return s.done == {1, 2}  # reject


def empty_set_of_the_wrong_sort() -> Set[Worker]:
    return Set.empty(Machine)  # reject


def mixed_set(w: Worker, m: Machine) -> Set[Worker]:
    return Set.of(w, m)  # reject


def position_of_the_wrong_kind(s: State) -> Epoch:
    return s.seen[s.epoch]  # reject


def item_of_the_wrong_kind(s: State) -> Seq[Offset, Epoch]:
    return s.seen.append(s.offset)  # reject


def item_as_the_wrong_kind(s: State) -> Offset:
    return s.seen[0]  # reject


def size_as_another_number(s: State) -> Offset:
    return s.done.size()  # reject


# maybe


def maybe_of_the_wrong_sort(s: State, m: Machine) -> Bool:
    return s.first == m  # reject


def maybes_of_two_sorts(s: State) -> Bool:
    return s.first == s.last  # reject


def none_of_python(s: State) -> Bool:
    return s.first == None  # noqa: E711  # reject


def none_for_a_sort(w: Worker) -> Bool:
    return w == NONE  # reject


def maybe_as_a_value(s: State) -> Bool:
    return s.busy[s.first]  # reject


def instead_of_the_wrong_sort(s: State, m: Machine) -> Worker:
    return s.first.or_else(m)  # reject


# truth


def branch(s: State) -> Bool:
    if s.flag:  # reject
        return s.flag
    return ~s.flag


def conditional_expression(s: State) -> Bool:
    return s.flag if s.busy[s.first.or_else(Worker.all())] else s.flag  # reject


def and_of_python(s: State) -> Bool:
    return s.flag and s.offset == 1  # reject by mypy


def or_of_python(s: State) -> Bool:
    return s.flag or s.offset == 1  # reject by mypy


def not_of_python(s: State) -> Bool:
    return not s.flag  # reject


def member_of_python(s: State, w: Worker) -> Bool:
    return w in s.done  # reject


# quantifiers


def body_that_is_no_condition(s: State) -> Bool:
    return forall(s.at[w] for w in Worker.all())  # reject


def wrong_domain(s: State) -> Bool:
    return exists(s.busy[m] for m in Machine.all())  # reject


def sort_as_domain(s: State) -> Bool:
    return exists(s.busy[w] for w in Worker)  # reject


def filtered(s: State) -> Bool:
    return forall(s.busy[w] for w in Worker.all() if s.done.has(w))  # reject


def largest_of_a_sort() -> Worker:
    return largest((w for w in Worker.all()), or_else=0)  # reject


def choice_between_two_kinds(s: State) -> Offset:
    return when(s.flag, s.offset, s.epoch)  # reject


# definitions, actions and properties


@define
def reached(s: State, n: Offset) -> Bool:
    """Whether the position is at least n."""
    return s.offset >= n


def wrong_argument(s: State) -> Bool:
    return reached(s, s.epoch)  # reject


def missing_argument(s: State) -> Bool:
    return reached(s)  # reject


def missing_state(s: State) -> Bool:
    return reached(s.offset)  # reject


@initial  # reject
def not_a_step(new: State) -> Bool:
    return new.flag


@action
def wrong_update(old: State, new: State) -> Step:
    return (new.offset == old.epoch,)  # reject


@action
def wrong_update_of_a_map(old: State, new: State, w: Worker) -> Step:
    return (new.busy[w] == old.offset,)  # reject


@action
def wrong_update_of_a_set(old: State, new: State, w: Worker) -> Step:
    return (new.done == w,)  # reject


@action
def not_a_conjunct(old: State, new: State) -> Step:
    return (old.flag, new.offset)  # reject


@action
def python_truth(old: State, new: State) -> Step:
    return (old.flag, True)  # reject


@always  # reject
def of_a_number(s: State) -> Offset:
    return s.offset


@sometimes_step  # reject
def of_python(old: State, new: State) -> bool:
    return True


def count_as_bound(n: Count, s: State) -> Offset:
    return s.offset + s.done  # reject
