"""Termination detection with messages in transit, after Safra (EWD 998), as EWD998.tla has it.

As in EWD 840 a token travels from the last node down to node 0. Each node counts the messages that it sent
less those that it received; the token adds these up, and a node that received one is black and blackens it.
When a white token comes back to a white and passive node 0 and all adds up to nothing, nothing is in transit.

Counters grow without end, so no node sends when its counter, or what is in transit to the receiver, has
reached a bound: the states are those that the constraint of EWD998.tla admits. The constraint on the token's
sum follows from this.

Not modelled: which messages are in transit, only how many; the steps to what the constraint excludes, which
TLC counts as generated and forgets.
"""

from collections.abc import Callable
from typing import ClassVar

from isr_lang import (
    Bool,
    Choice,
    Design,
    Map,
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
    switch,
    var,
    when,
)

HIGHEST = 3
LAST = bound("last", "The last node; the nodes are 0 to this one.", default=2, low=1, high=HIGHEST)
MOST = bound("most", "The most that a node counts, and the most messages on their way to one.", default=3, high=3)
ANYWHERE = switch("anywhere", "The token starts at any node, and not at node 0.", default=True)


class Node(Number, high=LAST):
    """A place on the ring."""


class Tally(Number, low=-27, high=9):
    """How many messages: those received count less than nothing."""


class Color(Choice):
    """The color of the token."""

    WHITE: ClassVar["Color"]
    BLACK: ClassVar["Color"]


class Doubt(Choice):
    """Why a round of the token showed nothing."""

    TOKEN_BLACK: ClassVar["Doubt"]
    NODE_BLACK: ClassVar["Doubt"]
    IN_TRANSIT: ClassVar["Doubt"]


class State(Struct):
    active: Set[Node] = var("The nodes that compute.")
    black: Set[Node] = var("The nodes that received a message since the token left them; the others are white.")
    counter: Map[Node, Tally] = var("Messages sent less messages received, by each node.")
    pending: Map[Node, Tally] = var("Messages in transit to each node.")
    at: Node = var("Where the token is.")
    token: Color = var("The color of the token.")
    collected: Tally = var("What the token has added up.")


@initial
def init(new: State, active: Set[Node], black: Set[Node], at: Node) -> Step:
    """Anything may be going on, but nothing was sent, and the token is black."""
    return (
        new.active == active,
        new.black == black,
        new.counter == Map.build(Node, lambda i: Tally.of(0)),
        new.pending == Map.build(Node, lambda i: Tally.of(0)),
        new.at == when(ANYWHERE, at, Node.of(0)),
        new.token == Color.BLACK,
        new.collected == 0,
    )


@define
def doubtful(s: State, why: Doubt) -> Bool:
    """There is this reason not to conclude anything."""
    in_transit = s.counter[Node.of(0)] + s.collected > 0
    black = when(why == Doubt.TOKEN_BLACK, s.token == Color.BLACK, s.black.has(Node.of(0)))
    return when(why == Doubt.IN_TRANSIT, in_transit, black)


@action
def probe_starts(old: State, new: State, why: Doubt) -> Step:
    """Node 0 has learned nothing from the last round and sends a white token around."""
    return (
        old.at == 0,
        doubtful(old, why),
        new.at == Node.of(LAST),
        new.token == Color.WHITE,
        new.collected == 0,
        new.black == old.black.excluding(Node.of(0)),
    )


@action
def token_passes(old: State, new: State, i: Node) -> Step:
    """A passive node adds its count and its blackness to the token and hands it down."""
    return (
        i > 0,
        old.at == i,
        ~old.active.has(i),
        new.at == i - 1,
        new.token == when(old.black.has(i), Color.BLACK, old.token),
        new.collected == old.collected + old.counter[i],
        new.black == old.black.excluding(i),
    )


@action
def message_is_sent(old: State, new: State, i: Node, j: Node) -> Step:
    """An active node sends a message to another."""
    return (
        old.active.has(i),
        i != j,
        old.counter[i] < MOST,
        old.pending[j] < MOST,
        new.counter[i] == old.counter[i] + 1,
        new.pending[j] == old.pending[j] + 1,
    )


@action
def message_arrives(old: State, new: State, i: Node) -> Step:
    """A message wakes its receiver up and blackens it."""
    return (
        old.pending[i] > 0,
        new.pending[i] == old.pending[i] - 1,
        new.counter[i] == old.counter[i] - 1,
        new.black == old.black.including(i),
        new.active == old.active.including(i),
    )


@action
def node_rests(old: State, new: State, i: Node) -> Step:
    """An active node has nothing left to do."""
    return (old.active.has(i), new.active == old.active.excluding(i))


def total(of: Map[Node, Tally], counts: Callable[[Node], Bool] = lambda i: Bool.true) -> Tally:
    """The sum over the nodes that count."""
    so_far = Tally.of(0)
    for i in map(Node.of, range(HIGHEST + 1)):
        so_far = so_far + when((i <= LAST) & counts(i), of[i], 0)
    return so_far


@define
def detected(s: State) -> Bool:
    """Node 0 concludes that everyone is passive and nothing is in transit."""
    zero = Node.of(0)
    quiet = ~s.black.has(zero) & ~s.active.has(zero) & (s.collected + s.counter[zero] == 0)
    return (s.at == 0) & (s.token == Color.WHITE) & quiet


@define
def terminated(s: State) -> Bool:
    """Everyone is passive and nothing is in transit."""
    return s.active.is_empty() & forall(s.pending[i] == 0 for i in Node.all())


@always
def detection_is_right(s: State) -> Bool:
    """What node 0 concludes is so."""
    return detected(s).implies(terminated(s))


@always
def messages_are_counted(s: State) -> Bool:
    """The counters add up to the messages in transit."""
    return total(s.counter) == total(s.pending)


@always
def safras_invariant(s: State) -> Bool:
    """Above the token all is quiet and counted, or a message is in transit to the others, or the round is spoilt."""
    quiet = forall((s.at < i).implies(~s.active.has(i)) for i in Node.all())
    counted = s.collected == total(s.counter, lambda i: s.at < i)
    in_transit = total(s.counter, lambda i: i <= s.at) + s.collected > 0
    spoilt = ~s.black.where(lambda j: j <= s.at).is_empty()
    return (quiet & counted) | in_transit | spoilt | (s.token == Color.BLACK)


@sometimes
def it_is_detected(s: State) -> Bool:
    """Node 0 can come to its conclusion."""
    return detected(s)


detection_is_live = leads_to(
    "detection-is-live",
    "When everyone is passive and nothing is in transit node 0 will know.",
    terminated,
    detected,
    state=State,
    fair=(probe_starts, token_passes),
)

DESIGN = Design(
    "ewd998",
    "Termination detection on a ring, with messages in transit.",
    State,
    init,
    (probe_starts, token_passes, message_is_sent, message_arrives, node_rests),
    (detection_is_right, messages_are_counted, safras_invariant, it_is_detected, detection_is_live),
)

PUBLISHED = {
    (1, True): (6876, 33664, 28),
    (2, True): (1520618, 11238019, 59),
    (2, False): (1384582, 10150343, 60),
}
"""(Last node, anywhere) -> distinct states, states generated, and how many lie on the longest of the shortest paths.

With True, what TLC counts on EWD998.tla with the configuration EWD998Small, which has three nodes, and with two. With
False, what it counts on the version of January 2021, which starts at node 0 and says of itself 1.3m, 10.1m and 60.
"""
