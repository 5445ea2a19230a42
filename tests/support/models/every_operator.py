"""A model of nothing in particular: every operator and type of the language at least once, also out of range.

It is for comparing engines and exports. Two queues of small numbers, some flags, a set that grows and
shrinks, a table of tables, and variables that exist only under a switch. Names are chosen to collide where
a target language would mind.
"""

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
    assume,
    bound,
    count,
    define,
    exists,
    forall,
    initial,
    largest,
    leads_to,
    setting,
    smallest,
    sometimes,
    sometimes_step,
    step,
    switch,
    var,
    when,
)
from isr_lang.blank import blank

NODES = bound("nodes", "How many nodes there are.", default=2, low=1, high=3)
DEPTH = bound("depth", "How long a queue can be.", default=2, low=1, high=3)
EXTRA = switch("extra", "Whether the extra variables exist.", default=True)


class Node(Sort, size=NODES, prefix="n"):
    """Who has a queue."""


class Place(Number, high=DEPTH):
    """A position in a queue."""


class Item(Number, low=1, high=2):
    """What is in a queue."""


class Mode(Choice):
    """What the whole does."""

    IDLE: ClassVar["Mode"]
    BUSY: ClassVar["Mode"]
    DONE: ClassVar["Mode"]


POLICY = setting("policy", "When it is done.", values={"early": Mode.IDLE, "late": Mode.BUSY}, default="late")


class State(Struct):
    queue: Map[Node, Seq[Place, Item]] = var("What each node holds.")
    seen: Map[Node, Map[Item, Bool]] = var("What each node ever held.")
    mode: Mode = var("What is going on.")
    owner: Maybe[Node] = var("Who holds the token, if anyone.")
    mark: Maybe[Place] = var("A remembered position.")
    members: Set[Node] = var("Who takes part.")
    marks: Set[Place] = var("Positions seen full.", when=EXTRA)
    turns: Map[Place, Place] = var("How often each place was cut, at most the depth.", when=EXTRA)
    sides: Map[Bool, Mode] = var("What went on when either side came up.", when=EXTRA)
    last: Maybe[Bool] = var("The last side.", ghost=True)


@define
def filled(s: State, n: Node, i: Place) -> Bool:
    """The node holds something at the position."""
    return s.queue[n].length() > i


@define
def top(s: State, n: Node) -> Item:
    """The newest item of a node, or 1."""
    return s.queue[n][s.queue[n].length() - 1]


@define
def agreed(s: State) -> Place:
    """The shortest queue among the members."""
    return smallest((s.queue[n].length() for n in s.members), or_else=0)


@define
def turned(s: State, i: Place) -> Place:
    """How often a place was cut; asked also beyond the last place."""
    return s.turns[i]


@define
def lagging(s: State, than: Node) -> Set[Node]:
    """The members whose queue is shorter."""
    return s.members.where(lambda n: s.queue[n].length() < s.queue[than].length())


def nothing(i: Item) -> Bool:
    return i == 3


@initial
def start(new: State, n: Node, side: Bool) -> Step:
    """A node has the token and takes part alone; either side was last."""
    return (
        new.queue == blank(new.queue),
        new.seen == Map.build(Node, lambda n: Map.build(Item, nothing)),
        new.mode == Mode.IDLE,
        new.owner == n,
        new.mark == NONE,
        new.members == Set.of(n),
        new.marks == blank(new.marks),
        new.turns == blank(new.turns),
        new.sides == Map.build(Bool, lambda b: when(b, Mode.IDLE, Mode.DONE)),
        new.last == side,
    )


@action
def item_arrives(old: State, new: State, n: Node, i: Item) -> Step:
    """A member takes one item, if it is not behind another or all is busy."""
    return (
        old.members.has(n),
        old.queue[n].length() < DEPTH,
        lagging(old, n).is_empty() | (old.mode == Mode.BUSY),
        new.queue[n] == old.queue[n].append(i),
        new.seen[n][i],
        new.mark == old.queue[n].length(),
        new.marks == old.marks.including(old.queue[n].length() + 1),
    )


@action
def queue_shortened(old: State, new: State, n: Node, p: Place) -> Step:
    """The owner cuts its queue at a place before its end, or before the remembered position."""
    until = old.mark.or_else(1) - 1
    more = turned(old, p + 1) + 1
    return (
        old.owner == n,
        (p < old.queue[n].length()) & (old.mode != Mode.DONE) & (old.mark != p),
        new.queue[n] == when(p == 0, old.queue[n].take(until), old.queue[n].take(p)),
        new.marks == old.marks.excluding(p) | Set.of(p + 1, p),
        new.turns[p + 1] == when(more > DEPTH, more - 1, more),
        new.sides[p == 0] == old.mode,
        new.last == (p == 0),
    )


@action
def members_change(old: State, new: State, joining: Set[Node]) -> Step:
    """Some join, those behind one of them leave; the token goes to nobody."""
    behind = Node.all().where(lambda n: exists(lagging(old, m).has(n) for m in joining))
    return (
        joining.size() >= 1,
        ~(joining <= old.members),
        new.members == (old.members - behind) | (joining & Node.all()),
        new.owner == NONE,
    )


@action
def token_taken(old: State, new: State, n: Node) -> Step:
    """A member with the longest queue takes the free token."""
    longest = largest((old.queue[m].length() for m in old.members), or_else=DEPTH)
    return (
        old.owner == NONE,
        old.members.has(n) & ~(longest > old.queue[n].length()),
        new.owner == n,
        new.mode == when(count(filled(old, m, agreed(old)) for m in Node.all()) == 0, Mode.BUSY, Mode.DONE),
    )


@action
def everything_copied(old: State, new: State, n: Node) -> Step:
    """The members get the queue of one node, which forgets that it ever saw the item on top."""
    return (
        old.mode == Mode.DONE,
        ~forall(old.queue[m].is_prefix_of(old.queue[n]) for m in old.members),
        new.queue == Map.build(Node, lambda m: when(old.members.has(m), old.queue[n], old.queue[m])),
        new.seen == old.seen.put(n, old.seen[n].put(top(old, n), False)),
        new.mode == POLICY,
    )


@always
def holds_what_it_saw(s: State) -> Bool:
    """Whatever a node holds it has seen; which forgetting breaks."""
    return forall(s.seen[n][s.queue[n][i]] for n in s.members for i in Place.below(s.queue[n].length()))


@always(when=EXTRA)
def marks_are_places(s: State) -> Bool:
    """Only places are marked, and one beyond the last place never is."""
    beyond = turned(s, agreed(s)) + (DEPTH + 1)
    return (s.marks <= Place.all()) & (Place.below(DEPTH + 1) == Place.all()) & ~s.marks.has(beyond)


@step
def tops_stay(old: State, new: State) -> Bool:
    """A longer queue has the old top in it: a definition of the new state asked about the old one."""
    return forall(
        (filled(new, n, old.queue[n].length()) & (old.queue[n].length() > 0)).implies(
            new.queue[n][old.queue[n].length() - 1] == top(old, n)
        )
        for n in Node.all()
    )


@step
def turns_grow(old: State, new: State) -> Bool:
    """No place is turned less often than before."""
    return forall(turned(new, turned(old, p)) >= turned(old, turned(old, p)) for p in Place.all())


@sometimes
def all_take_part(s: State) -> Bool:
    """Everyone can be a member at a time, with something in the queue."""
    nothing = Seq.empty(Place, Item)
    return (s.members == Node.all()) & forall(~s.queue[n].is_prefix_of(nothing) for n in Node.all())


@sometimes_step(when=EXTRA)
def a_place_is_cut(old: State, new: State) -> Bool:
    """A queue can be cut at a remembered side."""
    return exists(turned(old, p) < turned(new, p) for p in Place.all()) & (new.last == Bool.true)


@sometimes
def free(s: State) -> Bool:
    """The token can be free."""
    return s.owner == NONE


@sometimes
def held(s: State) -> Bool:
    """The token can be held."""
    return exists(s.owner == n for n in Node.all())


TOKEN_RETURNS = leads_to("token-returns", "A free token is taken.", free, held, fair=(token_taken,))

EVERYTHING = Design(
    "every-operator",
    "Two queues, a token, and every operator of the language.",
    State,
    start,
    (item_arrives, queue_shortened, members_change, token_taken, everything_copied),
    (
        holds_what_it_saw,
        marks_are_places,
        tops_stay,
        turns_grow,
        all_take_part,
        a_place_is_cut,
        free,
        held,
        TOKEN_RETURNS,
    ),
    assumptions=(assume(DEPTH <= 3, otherwise="the queues are short"),),
)
