"""Termination detection on a ring, after Dijkstra, Feijen and van Gasteren (EWD 840), as EWD840.tla has it.

A token travels from the last node down to node 0. A node that woke a higher one up is black, and blackens
the token; when a white token comes back to a white and passive node 0, everyone is passive.

Not modelled: messages in transit; a message arrives when it is sent.
"""

from typing import ClassVar

from isr_lang import (
    Bool,
    Choice,
    Design,
    Number,
    Set,
    Step,
    Struct,
    action,
    always,
    bound,
    define,
    forall,
    initial,
    leads_to,
    sometimes,
    var,
    when,
)

LAST = bound("last", "The last node; the nodes are 0 to this one.", default=3, low=1, high=5)


class Node(Number, high=LAST):
    """A place on the ring."""


class Color(Choice):
    """The color of the token."""

    WHITE: ClassVar["Color"]
    BLACK: ClassVar["Color"]


class State(Struct):
    active: Set[Node] = var("The nodes that compute.")
    black: Set[Node] = var("The nodes that woke up a higher one; the others are white.")
    at: Node = var("Where the token is.")
    token: Color = var("The color of the token.")


@initial
def init(new: State, active: Set[Node], black: Set[Node], at: Node) -> Step:
    """Anything may be going on; but the token is black."""
    return (
        new.active == active,
        new.black == black,
        new.at == at,
        new.token == Color.BLACK,
    )


@action
def probe_starts(old: State, new: State) -> Step:
    """Node 0 has learned nothing from the last round and sends a white token around."""
    return (
        old.at == 0,
        (old.token == Color.BLACK) | old.black.has(Node.of(0)),
        new.at == Node.of(LAST),
        new.token == Color.WHITE,
        new.black == old.black.excluding(Node.of(0)),
    )


@action
def token_passes(old: State, new: State, i: Node) -> Step:
    """A node that is passive, or that spoils the round anyway, hands the token down."""
    return (
        i > 0,
        old.at == i,
        ~old.active.has(i) | old.black.has(i) | (old.token == Color.BLACK),
        new.at == i - 1,
        new.token == when(old.black.has(i), Color.BLACK, old.token),
        new.black == old.black.excluding(i),
    )


@action
def message_is_sent(old: State, new: State, i: Node, j: Node) -> Step:
    """An active node wakes another one up."""
    return (
        old.active.has(i),
        i != j,
        new.active == old.active.including(j),
        new.black == when(j > i, old.black.including(i), old.black),
    )


@action
def node_rests(old: State, new: State, i: Node) -> Step:
    """An active node has nothing left to do."""
    return (old.active.has(i), new.active == old.active.excluding(i))


@define
def detected(s: State) -> Bool:
    """Node 0 concludes that everyone is passive."""
    quiet = ~s.black.has(Node.of(0)) & ~s.active.has(Node.of(0))
    return (s.at == 0) & (s.token == Color.WHITE) & quiet


@define
def terminated(s: State) -> Bool:
    """Everyone is passive."""
    return s.active.is_empty()


@always
def detection_is_right(s: State) -> Bool:
    """What node 0 concludes is so."""
    return detected(s).implies(terminated(s))


@always
def dijkstras_invariant(s: State) -> Bool:
    """Above the token all is quiet, or the round is spoilt."""
    quiet = forall((s.at < i).implies(~s.active.has(i)) for i in Node.all())
    spoilt = ~s.black.where(lambda j: j <= s.at).is_empty()
    return quiet | spoilt | (s.token == Color.BLACK)


@sometimes
def it_is_detected(s: State) -> Bool:
    """Node 0 can come to its conclusion."""
    return detected(s)


detection_is_live = leads_to(
    "detection-is-live",
    "When everyone is passive node 0 will know.",
    terminated,
    detected,
    state=State,
    fair=(probe_starts, token_passes),
)

DESIGN = Design(
    "ewd840",
    "Termination detection on a ring.",
    State,
    init,
    (probe_starts, token_passes, message_is_sent, node_rests),
    (detection_is_right, dijkstras_invariant, it_is_detected, detection_is_live),
)

PUBLISHED = {2: 302, 3: 1566}
"""Last node -> distinct states: EWD840 and EWD840_json in the manifest of the TLA+ examples."""
