"""A made-up protocol that uses every part of the language: nodes copy a log from an owner that may change.

Not a protocol to learn from. `gossip` brings two variables more. `careless` lets values leave their ranges,
by one: the guard against more adds before it compares, as a comparison that no value in range fails is
dropped.
"""

from __future__ import annotations

from typing import ClassVar

from isr_lang import (
    NONE,
    Bool,
    Choice,
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
    smallest,
    sometimes,
    sometimes_step,
    step,
    switch,
    var,
    when,
)
from isr_lang.blank import blank

NODES = bound("nodes", "nodes", default=2, low=1, high=4)
LENGTH = bound("length", "items of a log", default=2, low=0, high=4)
TERMS = bound("terms", "owners, one after the other", default=2, low=1, high=4)
CARELESS = switch("careless", "items are added without looking at the length", default=False)
GOSSIP = switch("gossip", "nodes tell each other what they hold", default=False)


class Node(Sort, size=NODES, prefix="n"):
    """A node."""


class Position(Number, high=LENGTH):
    """How many items, or the place of one."""


class Term(Number, low=1, high=TERMS):
    """Counts owners."""


class Mood(Choice):
    """What a node is doing."""

    IDLE: ClassVar[Mood]
    COPYING: ClassVar[Mood]
    LOST: ClassVar[Mood]


class State(Struct):
    log: Map[Node, Seq[Position, Term]] = var("what each node holds")
    seen: Map[Node, Map[Node, Position]] = var("how much each node thinks each holds", when=GOSSIP)
    told: Map[Node, Bool] = var("who has told", when=GOSSIP)
    owner: Maybe[Node] = var("who may add")
    last: Maybe[Term] = var("the last term in which something was added")
    term: Term = var("now")
    mood: Map[Node, Mood] = var("of each")
    keepers: Set[Node] = var("whom the owner counts")
    best: Seq[Position, Term] = var("the longest log there was", ghost=True)


@initial
def start(new: State, first: Node) -> Step:
    return (
        new.log == Map.build(Node, lambda n: Seq.empty(Position, Term)),
        new.seen == blank(new.seen),
        new.told == Map.build(Node, lambda n: Bool.false),
        new.owner == first,
        new.last == NONE,
        new.term == 1,
        new.mood == Map.build(Node, lambda n: Mood.IDLE),
        new.keepers == Node.all(),
        new.best == Seq.empty(Position, Term),
    )


@define
def ahead(s: State, n: Node, by: Position) -> Bool:
    """Somebody's log is longer than n's by at least so much."""
    return exists(s.log[n].length() + by <= s.log[m].length() for m in Node.all())


@define
def common(s: State) -> Position:
    """How much every keeper holds."""
    return smallest((s.log[n].length() for n in s.keepers), or_else=0)


@define
def joined(s: State, n: Node) -> Seq[Position, Term]:
    """n's log with the term added."""
    return s.log[n].append(s.term)


@define
def agree(s: State, a: Node, b: Node) -> Bool:
    """Every item that both hold is the same, counted item by item so that this is not small."""
    both = smallest((s.log[x].length() for x in Set.of(a, b)), or_else=0)
    return forall((s.log[a][i] == s.log[b][i]) | ~(i < both) for i in Position.all()) & (
        count((s.log[a][i] == s.log[b][i]) & (i < both) for i in Position.all()) == both
    )


@action
def owner_adds(old: State, new: State, n: Node) -> Step:
    return (
        old.owner == n,
        CARELESS | (old.log[n].length() < LENGTH),
        old.log[n].length() + 1 < LENGTH + 2,
        new.log[n] == joined(old, n),
        new.last == old.term,
        new.best == when(joined(old, n).length() > old.best.length(), joined(old, n), old.best),
    )


@action
def copies_one(old: State, new: State, n: Node, m: Node) -> Step:
    at = old.log[n].length()
    return (
        old.owner == m,
        n != m,
        ahead(old, n, at - at + 1),
        at < old.log[m].length(),
        old.log[n].is_prefix_of(old.log[m]),
        new.log[n] == old.log[n].append(old.log[m][at]),
        new.mood[n] == Mood.COPYING,
        new.seen[n] == old.seen[n].put(m, at + 1),
    )


@action
def cuts(old: State, new: State, n: Node, m: Node) -> Step:
    keep = largest((i + 1 for i in Position.below(old.log[m].length())), or_else=0) - 1
    return (
        old.owner == m,
        old.mood[n] == Mood.LOST,
        new.log[n] == old.log[n].take(keep),
        new.mood == old.mood.put(n, Mood.IDLE),
    )


@action
def is_lost(old: State, new: State, n: Node) -> Step:
    return (
        old.mood[n] != Mood.LOST,
        old.keepers.where(lambda k: old.mood[k] != Mood.LOST).size() > 1,
        new.mood[n] == Mood.LOST,
        new.keepers == old.keepers.excluding(n),
        new.owner == when(old.owner != n, old.owner, NONE),
    )


@action
def takes_over(old: State, new: State, n: Node, keepers: Set[Node]) -> Step:
    return (
        old.owner == NONE,
        keepers.has(n),
        keepers <= old.keepers.including(n),
        forall((old.log[k].length() <= old.log[n].length()) & ~(old.mood[k] == Mood.LOST) for k in keepers),
        CARELESS | (old.term < TERMS),
        old.term + 1 < TERMS + 2,
        new.term == old.term + 1,
        new.owner == n,
        new.keepers == keepers,
    )


@action
def tells(old: State, new: State, n: Node, m: Node) -> Step:
    return (
        GOSSIP,
        ~old.told[n] | (old.last.or_else(1) == old.term),
        old.seen[m][n] != old.log[n].length(),
        old.log[n].length() <= LENGTH,
        new.seen[m][n] == old.log[n].length(),
        new.told[n],
    )


@always
def logs_agree(s: State) -> Bool:
    return forall(agree(s, a, b) for a in Node.all() for b in Node.all())


@always
def best_is_somewhere(s: State) -> Bool:
    return exists(s.log[n] == s.best for n in Node.all())


@always
def common_is_kept(s: State) -> Bool:
    return forall(s.log[n].take(common(s)).is_prefix_of(s.best) for n in s.keepers)


@step
def terms_grow(old: State, new: State) -> Bool:
    return old.term <= new.term


@step
def logs_grow(old: State, new: State) -> Bool:
    return forall(old.log[n].is_prefix_of(new.log[n]) for n in Node.all())


@sometimes
def all_hold_all(s: State) -> Bool:
    full = count(s.log[n].length() == LENGTH for n in Node.all())
    return full == Node.all().size()


@sometimes
def two_terms_in_one_log(s: State) -> Bool:
    return exists((s.log[n][0] != s.log[n][1]) & (s.log[n].length() > 1) for n in Node.all())


@sometimes_step
def a_log_shrinks(old: State, new: State) -> Bool:
    return exists(new.log[n].length() < old.log[n].length() for n in Node.all())


@sometimes_step
def common_shrinks(old: State, new: State) -> Bool:
    return common(new) < common(old)


@sometimes
def never_so_many(s: State) -> Bool:
    return s.keepers.size() > NODES


ALL = (
    logs_agree,
    best_is_somewhere,
    common_is_kept,
    terms_grow,
    logs_grow,
    all_hold_all,
    two_terms_in_one_log,
    a_log_shrinks,
    common_shrinks,
    never_so_many,
)

DESIGN = Design(
    "copies",
    "nodes copy a log",
    State,
    start,
    (owner_adds, copies_one, cuts, is_lost, takes_over, tells),
    ALL,
)


@action
def term_passes(old: State, new: State) -> Step:
    """Terms go on for ever, out of their range."""
    return (new.term == old.term + 1,)


ENDLESS = DESIGN.adding(term_passes).with_defaults(nodes=1, length=0)
