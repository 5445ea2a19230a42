"""Two-phase commit after Gray and Lamport, "Consensus on Transaction Commit", as TwoPhase.tla has it.

A transaction manager asks resource managers to prepare; when all of them have, it commits, and it may abort
before that. A message that was sent can be received again and again, as there.

Not modelled: crashes and timeouts; a resource manager that aborts on its own says nothing.
"""

from typing import ClassVar

from isr_lang import (
    Bool,
    Choice,
    Design,
    Map,
    Set,
    Sort,
    Step,
    Struct,
    action,
    always,
    bound,
    forall,
    initial,
    sometimes,
    var,
)

RMS = bound("rms", "Resource managers.", default=3, low=1, high=8)


class RM(Sort, size=RMS, prefix="rm", symmetric=True):
    """A resource manager."""


class Managed(Choice):
    """What a resource manager did about the transaction."""

    WORKING: ClassVar["Managed"]
    PREPARED: ClassVar["Managed"]
    COMMITTED: ClassVar["Managed"]
    ABORTED: ClassVar["Managed"]


class Outcome(Choice):
    """What the transaction manager decided."""

    INIT: ClassVar["Outcome"]
    COMMITTED: ClassVar["Outcome"]
    ABORTED: ClassVar["Outcome"]


class State(Struct):
    rm: Map[RM, Managed] = var("What each resource manager did.")
    tm: Outcome = var("What the transaction manager decided.")
    tm_prepared: Set[RM] = var("Those of which the transaction manager knows that they are prepared.")
    prepared_sent: Set[RM] = var("Those that sent 'prepared'.")
    commit_sent: Bool = var("Whether 'commit' was sent.")
    abort_sent: Bool = var("Whether 'abort' was sent.")


@initial
def init(new: State) -> Step:
    """Everyone works and nobody has said anything."""
    return (
        new.rm == Map.build(RM, lambda r: Managed.WORKING),
        new.tm == Outcome.INIT,
        new.tm_prepared == Set.empty(RM),
        new.prepared_sent == Set.empty(RM),
        ~new.commit_sent,
        ~new.abort_sent,
    )


@action
def tm_receives_prepared(old: State, new: State, r: RM) -> Step:
    """The transaction manager notes that r is prepared."""
    return (
        old.tm == Outcome.INIT,
        old.prepared_sent.has(r),
        new.tm_prepared == old.tm_prepared.including(r),
    )


@action
def tm_commits(old: State, new: State) -> Step:
    """The transaction manager commits once everyone is prepared."""
    return (
        old.tm == Outcome.INIT,
        old.tm_prepared == RM.all(),
        new.tm == Outcome.COMMITTED,
        new.commit_sent,
    )


@action
def tm_aborts(old: State, new: State) -> Step:
    """The transaction manager aborts for reasons of its own."""
    return (
        old.tm == Outcome.INIT,
        new.tm == Outcome.ABORTED,
        new.abort_sent,
    )


@action
def rm_prepares(old: State, new: State, r: RM) -> Step:
    """A resource manager prepares and says so."""
    return (
        old.rm[r] == Managed.WORKING,
        new.rm[r] == Managed.PREPARED,
        new.prepared_sent == old.prepared_sent.including(r),
    )


@action
def rm_chooses_to_abort(old: State, new: State, r: RM) -> Step:
    """A resource manager that is not prepared yet gives up."""
    return (
        old.rm[r] == Managed.WORKING,
        new.rm[r] == Managed.ABORTED,
    )


@action
def rm_receives_commit(old: State, new: State, r: RM) -> Step:
    """A resource manager does as it is told: commit."""
    return (
        old.commit_sent,
        new.rm[r] == Managed.COMMITTED,
    )


@action
def rm_receives_abort(old: State, new: State, r: RM) -> Step:
    """A resource manager does as it is told: abort."""
    return (
        old.abort_sent,
        new.rm[r] == Managed.ABORTED,
    )


@always
def consistent(s: State) -> Bool:
    """No resource manager commits while another aborts."""
    return forall(~((s.rm[a] == Managed.ABORTED) & (s.rm[b] == Managed.COMMITTED)) for a in RM.all() for b in RM.all())


@sometimes
def all_commit(s: State) -> Bool:
    """The transaction can succeed."""
    return forall(s.rm[r] == Managed.COMMITTED for r in RM.all())


@sometimes
def all_abort(s: State) -> Bool:
    """The transaction can fail."""
    return forall(s.rm[r] == Managed.ABORTED for r in RM.all())


DESIGN = Design(
    "two-phase-commit",
    "A transaction manager commits once every resource manager is prepared.",
    State,
    init,
    (
        tm_receives_prepared,
        tm_commits,
        tm_aborts,
        rm_prepares,
        rm_chooses_to_abort,
        rm_receives_commit,
        rm_receives_abort,
    ),
    (consistent, all_commit, all_abort),
)

PUBLISHED = {3: 288, 4: 1568, 5: 8832}
"""Resource managers -> distinct states, as TLC and stateright count them."""
