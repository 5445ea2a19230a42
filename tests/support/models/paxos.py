"""Single-decree Paxos after Lamport, "The Part-Time Parliament", as Paxos.tla has it.

In a ballot acceptors promise not to vote in earlier ones and tell their last vote; a quorum of answers shows
which value is safe to ask for; whoever is asked, and promised nothing later, votes. What a quorum votes for
in one ballot is chosen. Messages stay, and can be received again and again, as there. An acceptor answers a ballot
once and a ballot asks for one value, so the set of messages is kept as maps, without losing a state.

Not modelled: leaders and learners as processes of their own, lost messages (not to receive one is the same),
acceptors that forget.
"""

from isr_lang import (
    NONE,
    Bool,
    Design,
    Map,
    Maybe,
    Number,
    Set,
    Sort,
    Step,
    Struct,
    action,
    always,
    blank,
    bound,
    count,
    define,
    exists,
    forall,
    initial,
    sometimes,
    step,
    var,
)

ACCEPTORS = bound("acceptors", "Acceptors.", default=3, low=1, high=4)
VALUES = bound("values", "Values to choose from.", default=2, low=1, high=3)
LAST = bound("last", "The last ballot; they are 0 to this one.", default=1, low=0, high=3)


class Acceptor(Sort, size=ACCEPTORS, prefix="a", symmetric=True):
    """Who votes."""


class Value(Sort, size=VALUES, prefix="v", symmetric=True):
    """What may be chosen."""


class Ballot(Number, high=LAST):
    """A round of voting."""


class State(Struct):
    joined: Map[Acceptor, Maybe[Ballot]] = var("The latest ballot that each acceptor took part in.")
    vote_at: Map[Acceptor, Maybe[Ballot]] = var("The ballot of each acceptor's last vote.")
    vote_for: Map[Acceptor, Maybe[Value]] = var("What it was for.")
    begun: Set[Ballot] = var("The ballots for which answers were asked.")
    answered: Map[Acceptor, Set[Ballot]] = var("The ballots that each acceptor answered.")
    told_at: Map[Acceptor, Map[Ballot, Maybe[Ballot]]] = var("The ballot of the last vote, as told in each answer.")
    told_for: Map[Acceptor, Map[Ballot, Maybe[Value]]] = var("What it was for.")
    asked: Map[Ballot, Maybe[Value]] = var("The value for which each ballot asks votes.")
    voted: Map[Acceptor, Map[Ballot, Maybe[Value]]] = var("The votes that were sent.")


@initial
def init(new: State) -> Step:
    """Nobody has said anything."""
    return (
        new.joined == blank(new.joined),
        new.vote_at == blank(new.vote_at),
        new.vote_for == blank(new.vote_for),
        new.begun == blank(new.begun),
        new.answered == blank(new.answered),
        new.told_at == blank(new.told_at),
        new.told_for == blank(new.told_for),
        new.asked == blank(new.asked),
        new.voted == blank(new.voted),
    )


@action
def ballot_begins(old: State, new: State, b: Ballot) -> Step:
    """Phase 1a: a ballot asks for answers."""
    return (new.begun == old.begun.including(b),)


@action
def acceptor_answers(old: State, new: State, a: Acceptor, b: Ballot) -> Step:
    """Phase 1b: an acceptor joins a later ballot and tells its last vote."""
    return (
        old.begun.has(b),
        (old.joined[a] == NONE) | (old.joined[a].or_else(b) < b),
        new.joined[a] == b,
        new.answered[a] == old.answered[a].including(b),
        new.told_at[a][b] == old.vote_at[a],
        new.told_for[a][b] == old.vote_for[a],
    )


def hears(old: State, b: Ballot, quorum: Set[Acceptor]) -> Step:
    """The ballot has asked for nothing yet, and a smallest majority has answered it."""
    twice = quorum.size() + quorum.size()
    return (
        (twice > ACCEPTORS) & (twice <= ACCEPTORS + 2),
        old.asked[b] == NONE,
        forall(old.answered[a].has(b) for a in quorum),
    )


@action
def ballot_asks_for_any(old: State, new: State, b: Ballot, v: Value, quorum: Set[Acceptor]) -> Step:
    """Phase 2a: nobody in a quorum has voted, so any value is safe."""
    return (
        *hears(old, b, quorum),
        forall(old.told_at[a][b] == NONE for a in quorum),
        new.asked[b] == v,
    )


@action
def ballot_asks_for_the_latest(old: State, new: State, b: Ballot, v: Value, quorum: Set[Acceptor], a: Acceptor) -> Step:
    """Phase 2a: what an acceptor of the quorum voted for is safe, if nobody there voted later."""
    latest = old.told_at[a][b]
    return (
        *hears(old, b, quorum),
        quorum.has(a) & (latest != NONE) & (old.told_for[a][b] == v),
        forall(old.told_at[o][b].or_else(0) <= latest.or_else(0) for o in quorum),
        new.asked[b] == v,
    )


@action
def acceptor_votes(old: State, new: State, a: Acceptor, b: Ballot) -> Step:
    """Phase 2b: an acceptor that promised nothing later votes as it is asked."""
    return (
        old.asked[b] != NONE,
        old.joined[a].or_else(b) <= b,
        new.joined[a] == b,
        new.vote_at[a] == b,
        new.vote_for[a] == old.asked[b],
        new.voted[a][b] == old.asked[b],
    )


@define
def many(s: State, v: Value, b: Ballot) -> Bool:
    """A majority has voted for the value in the ballot."""
    votes = count(s.voted[a][b] == v for a in Acceptor.all())
    return votes + votes > ACCEPTORS


@define
def chosen(s: State, v: Value) -> Bool:
    """A majority has voted for the value in one ballot."""
    return exists(many(s, v, b) for b in Ballot.all())


@define
def closed_to_others(s: State, v: Value, b: Ballot) -> Bool:
    """A majority has voted for the value in the ballot or will not vote in it."""
    voters = count(
        (s.voted[a][b] == v) | ((s.voted[a][b] == NONE) & (s.joined[a].or_else(0) > b)) for a in Acceptor.all()
    )
    return voters + voters > ACCEPTORS


@always
def agreement(s: State) -> Bool:
    """No two values are chosen."""
    return forall((chosen(s, v) & chosen(s, w)).implies(v == w) for v in Value.all() for w in Value.all())


@always
def one_value_per_ballot(s: State) -> Bool:
    """Whoever votes in a ballot votes for what it asks."""
    return forall((s.voted[a][b] == NONE) | (s.voted[a][b] == s.asked[b]) for a in Acceptor.all() for b in Ballot.all())


@always
def a_vote_is_remembered(s: State) -> Bool:
    """An acceptor's last vote was sent, in no later ballot than it took part in."""
    return forall(
        (s.vote_at[a] == b).implies((s.voted[a][b] == s.vote_for[a]) & (s.joined[a].or_else(0) >= b))
        for a in Acceptor.all()
        for b in Ballot.all()
    )


@always
def what_is_told_was_voted(s: State) -> Bool:
    """An answer tells of a vote that was sent, for the same value."""
    return forall(
        (s.told_at[a][b] == c).implies(s.voted[a][c] == s.told_for[a][b])
        for a in Acceptor.all()
        for b in Ballot.all()
        for c in Ballot.all()
    )


@always
def what_is_asked_is_safe(s: State) -> Bool:
    """In no earlier ballot is another value chosen, nor can it be any more."""
    return forall(
        ((s.asked[b] == v) & (c < b)).implies(closed_to_others(s, v, c))
        for v in Value.all()
        for b in Ballot.all()
        for c in Ballot.all()
    )


@step
def chosen_for_good(old: State, new: State) -> Bool:
    """What is chosen stays chosen."""
    return forall(chosen(old, v).implies(chosen(new, v)) for v in Value.all())


@sometimes
def a_value_is_chosen(s: State) -> Bool:
    """A value can be chosen."""
    return exists(chosen(s, v) for v in Value.all())


DESIGN = Design(
    "paxos",
    "Acceptors choose one value by voting in ballots.",
    State,
    init,
    (
        ballot_begins,
        acceptor_answers,
        ballot_asks_for_any,
        ballot_asks_for_the_latest,
        acceptor_votes,
    ),
    (
        agreement,
        one_value_per_ballot,
        a_vote_is_remembered,
        what_is_told_was_voted,
        what_is_asked_is_safe,
        chosen_for_good,
        a_value_is_chosen,
    ),
)

PUBLISHED = {(1, 1, 1): (25, 82, 9), (3, 2, 1): (3921, 23563, 17)}
"""(Acceptors, values, last ballot) -> distinct states, steps with the initial state, states on the longest of the
shortest paths: MCPaxos and MCPaxosTiny in the manifests of the TLA+ examples, which give them in these words."""

LARGER = {(3, 2, 2): (185369, 1361380, 25)}
"""The same for MCPaxosSmall, which has no counts in the manifest: they are what TLC counts on it."""
