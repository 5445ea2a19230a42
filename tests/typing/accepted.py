"""What mistakes.py gets wrong, right: both type checkers accept every line, with types this narrow."""

from typing import ClassVar, assert_type

from isr_lang import (
    NONE,
    Bool,
    Choice,
    Count,
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
    largest,
    setting,
    sometimes,
    sometimes_step,
    step,
    switch,
    var,
    when,
)

SIZE = bound("size", "How many workers.", default=2, high=3)
FAST = switch("fast", "Whether it is fast.", default=False)


class Worker(Sort, size=SIZE, prefix="w", symmetric=True):
    """Who works."""


class Machine(Sort, size=SIZE + 1, prefix="m", symmetric=False):
    """What is worked on."""


class Offset(Number, high=SIZE):
    """A position."""


class Epoch(Number, low=1, high=3):
    """An age."""


class Light(Choice):
    """A light."""

    RED: ClassVar["Light"]
    GREEN: ClassVar["Light"]


HOW = setting("how", "How.", values={"stop": Light.RED, "go": Light.GREEN}, default="go")
assert_type(HOW, Light)


class State(Struct):
    flag: Bool = var("A flag.")
    offset: Offset = var("A position.")
    epoch: Epoch = var("An age.", when=FAST)
    light: Light = var("A light.", ghost=True)
    done: Set[Worker] = var("Who is done.")
    busy: Map[Worker, Bool] = var("Who is busy.")
    at: Map[Worker, Map[Machine, Offset]] = var("How far everyone is.")
    first: Maybe[Worker] = var("Who came first.")
    seen: Seq[Offset, Epoch] = var("What was seen.")


@define
def reached(s: State, n: Offset) -> Bool:
    """Whether the position is at least n."""
    return s.offset >= n


def values(s: State, w: Worker, m: Machine) -> None:
    assert_type(s.offset, Offset)
    assert_type(s.offset + 1, Offset)
    assert_type(s.offset - s.offset, Offset)
    assert_type(s.offset + SIZE, Offset)
    assert_type(SIZE + 1, Count)
    assert_type(s.at[w], Map[Machine, Offset])
    assert_type(s.at[w][m], Offset)
    assert_type(s.seen[0], Epoch)
    assert_type(s.seen[s.offset], Epoch)
    assert_type(s.seen.length(), Offset)
    assert_type(s.seen.append(s.epoch).take(2), Seq[Offset, Epoch])
    assert_type(s.first.or_else(w), Worker)
    assert_type(s.done.size(), Count)
    assert_type(s.done | Set.of(w) - Worker.all(), Set[Worker])
    assert_type(Maybe.of(w), Maybe[Worker])
    assert_type(when(s.flag, Maybe.of(w), NONE), Maybe[Worker])
    assert_type(Offset.of(SIZE), Offset)
    assert_type(Set.empty(Bool), Set[Bool])
    assert_type(Seq.empty(Offset, Epoch), Seq[Offset, Epoch])
    assert_type(Map.build(Worker, lambda v: s.at[v][m]), Map[Worker, Offset])
    assert_type(s.busy.put(w, Bool.true), Map[Worker, Bool])
    assert_type(s.done.where(lambda v: s.busy[v]), Set[Worker])
    assert_type(Offset.below(s.offset), Set[Offset])
    assert_type(when(s.flag, s.offset, 0), Offset)
    assert_type(largest((s.at[v][m] for v in s.done), or_else=0), Offset)
    assert_type(count(s.busy[v] for v in Worker.all()), Count)
    assert_type(reached(s, s.offset + 1), Bool)


def conditions(s: State, w: Worker) -> Step:
    return (
        s.flag & ~s.busy[w] | (s.offset == 1),
        s.flag == False,  # noqa: E712
        (s.offset < SIZE) & (s.offset <= s.done.size()),
        SIZE > s.offset,
        (s.epoch >= 1).implies(s.epoch != 2),
        s.light != Light.RED,
        HOW == Light.GREEN,
        s.done.has(w) & s.done.including(w).excluding(w).is_empty(),
        s.done <= Worker.all(),
        (s.first == w) | (s.first == NONE) | (w == s.first) | (s.first != s.first),
        s.seen.take(1).is_prefix_of(s.seen),
        s.seen[0] == 1,
        exists((v != w) & s.busy[v] for v in s.done),
        forall(s.at[v][m] == 0 for v in Worker.all() for m in Machine.all()),
        forall(Bool.true for _ in Epoch.all()),
    )


@initial
def init(new: State) -> Step:
    return (
        ~new.flag,
        new.offset == 0,
        new.epoch == 1,
        new.light == Light.RED,
        new.done == Set.empty(Worker),
        new.busy == Map.build(Worker, lambda w: Bool.false),
        new.at == Map.build(Worker, lambda w: Map.build(Machine, lambda m: Offset.of(0))),
        new.first == NONE,
        new.seen == Seq.empty(Offset, Epoch),
    )


@action
def act(old: State, new: State, w: Worker, m: Machine, these: Set[Worker]) -> Step:
    """A worker does something."""
    return (
        *conditions(old, w),
        reached(old, old.at[w][m]),
        new.flag,
        ~new.busy[w],
        new.at[w][m] == old.offset + 1,
        new.done == old.done | these,
        new.first == w,
        new.seen == old.seen.append(old.epoch),
    )


@always
def flagged(s: State) -> Bool:
    """It is."""
    return s.flag


@always(when=FAST)
def aged(s: State) -> Bool:
    """It does."""
    return s.epoch > 0


@step
def grows(old: State, new: State) -> Bool:
    """It does."""
    return (old.offset <= new.offset) & (old.done <= new.done)


@sometimes
def finished(s: State) -> Bool:
    """They are."""
    return s.done == Worker.all()


@sometimes_step(when=FAST)
def restarts(old: State, new: State) -> Bool:
    """It does."""
    return old.flag & ~new.flag


DESIGN = Design("d", "d", State, init, (act,), (flagged, aged, grows, finished, restarts))
