"""What is proved by induction unless somebody asks otherwise: which promises, from what, for which bounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from isr_lang import Bool, Conjunct, Count, Design, always, forall
from isr_lang.override import DefinitionFunction, Override, definition_of
from isr_protocol.designs.wider_state import (
    Adjusted,
    Calmed,
    Moving,
    Operating,
    Reassigned,
    enough_by_minimum,
    members_are_replicas,
    minimum_is_positive,
    newest_version_has_newest_minimum,
)
from isr_protocol.membership import controller_accepts_alter_partition
from isr_protocol.promises.committed_log import implements_committed_log
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    committed_only_grows,
    leader_in_isr,
    leaders_complete,
    maximal_isr_covers,
    no_divergence,
    one_leader_per_epoch,
    reads_committed,
    reads_stable,
    strong_isr,
    watermark_within_log,
)
from isr_protocol.proof.assignments import (
    asked_for_are_replicas,
    enough_of_newest_replicas,
    enough_of_replicas,
    heard_are_replicas,
    heard_have_positions,
    moved_are_replicas,
    newest_version_has_newest_replicas,
    nobody_in_both,
)
from isr_protocol.proof.calm import BESIDES, FOLLOWS_IN_CALM, STEPS_OF_RETURN
from isr_protocol.proof.envelope import few_are_down, keeps_envelope, within_envelope
from isr_protocol.proof.invariant import FOLLOWS as FOLLOWS_TODAY
from isr_protocol.proof.invariant import INVARIANT
from isr_protocol.proof.sets import no_elr_beside_enough
from isr_protocol.replication import may_commit
from isr_protocol.state import (
    CONSUMERS,
    CRASHES,
    EPOCHS,
    FOLLOWER_READS,
    ISR_CHANGES,
    LOG,
    LOSSY_CRASHES,
    RECORDS,
    REPLICAS,
    SESSIONS_LOST,
    SHUTDOWNS,
    UNNOTICED,
    Replica,
    State,
    leads,
)

PROMISES: tuple[str, ...] = tuple(
    p.name
    for p in (
        committed_on_new_leader,
        acked_survives,
        no_divergence,
        leader_in_isr,
        leaders_complete,
        one_leader_per_epoch,
        strong_isr,
        maximal_isr_covers,
        watermark_within_log,
        committed_only_grows,
        implements_committed_log,
        reads_committed,
        reads_stable,
    )
)


OF_DESIGNS: tuple[str, ...] = STEPS_OF_RETURN
"""Promises that single designs make besides, and that are proved of these."""


def _names(*bounds: Count | Bool) -> tuple[str, ...]:
    return tuple(b.node.attr.name for b in bounds)


OPEN: tuple[str, ...] = _names(LOG, RECORDS, EPOCHS, ISR_CHANGES, CRASHES, SESSIONS_LOST)
"""Bounds for every value of which the proof is meant to hold."""

FIXED_CONSTANTS: dict[str, int] = {
    **dict.fromkeys(_names(REPLICAS), 3),
    **dict.fromkeys(_names(LOSSY_CRASHES, SHUTDOWNS, UNNOTICED), 0),
    **dict.fromkeys(_names(CONSUMERS), 1),
    **dict.fromkeys(_names(FOLLOWER_READS), True),
}
"""Others that do not have a design's default: what the invariant does not speak of does not happen."""


@always
def replaced_leaders_are_behind(s: State) -> Bool:
    """A leader that was replaced has an older version of the metadata, which is all that fences it in ZooKeeper."""
    return forall(
        (s.leader_epoch[r] <= s.controller_epoch)
        & (s.partition_epoch[r] <= s.controller_partition_epoch)
        & (leads(s, r) & (s.leader_epoch[r] < s.controller_epoch)).implies(
            s.partition_epoch[r] < s.controller_partition_epoch
        )
        for r in Replica.all()
    )


Lemmas = Mapping[str, tuple[str, ...]]
"""Names of lemmas by action (isr_lang.Conjunct.by)."""

_OF_VERSIONS = ("epochs-are-the-controllers", "requests-of-isr", "one-epoch-one-leader", "blanks")
_OF_REPLICAS = ("newest-version-has-newest-replicas", "heard-are-replicas", "members-are-replicas")

OF_STATE: Mapping[type[State], tuple[Conjunct, ...]] = {
    Adjusted: (
        Conjunct(minimum_is_positive),
        Conjunct(newest_version_has_newest_minimum, {"*": _OF_VERSIONS}),
    ),
    Reassigned: (
        Conjunct(members_are_replicas, {"*": ("asked-for-are-replicas",)}),
        Conjunct(nobody_in_both),
        Conjunct(asked_for_are_replicas, {"*": (*_OF_VERSIONS, *_OF_REPLICAS, "own-isr", "heard-have-positions")}),
        Conjunct(newest_version_has_newest_replicas, {"*": _OF_VERSIONS}),
        Conjunct(heard_are_replicas, {"*": (*_OF_VERSIONS, *_OF_REPLICAS)}),
    ),
    Moving: (Conjunct(moved_are_replicas, {"*": ("members-are-replicas",)}),),
    Operating: (Conjunct(heard_have_positions, {"*": ("blanks",)}),),
    Calmed: BESIDES,
}
"""What a state with more variables needs besides."""

ENOUGH: Mapping[type[State], DefinitionFunction] = {
    Operating: enough_of_newest_replicas,
    Reassigned: enough_of_replicas,
    Adjusted: enough_by_minimum,
}
"""When the controller takes an ISR for large enough, by state; the first that fits."""


def _of_wider_state(design: Design) -> tuple[Conjunct, ...]:
    """The invariant where min.insync.replicas or the replicas change; what it says of leaders goes by their view."""
    enough = next((found for state, found in ENOUGH.items() if issubclass(design.state, state)), None)
    if enough is None:
        return INVARIANT
    override = Override({definition_of(may_commit): definition_of(enough)})
    return tuple(
        attrs.evolve(
            c,
            promise=override.property(c.promise) if c.promise is no_elr_beside_enough else c.promise,
            by=_with_lemmas(c, design),
        )
        for c in INVARIANT
    )


_OF_ELECTED = ("elected-leader", "members-are-replicas", *_OF_VERSIONS)

LEMMAS_OF_REPLICAS: Mapping[str, Lemmas] = {
    "one-epoch-one-leader": {"*": ("epochs-are-the-controllers",)},
    "no-elr-beside-enough": {"*": ("members-are-replicas", "nobody-in-both", "asked-for-are-replicas")},
    "leaders-count-candidates": {"controller_cancels_reassignment": _OF_ELECTED},
    "requests-tell-the-truth": {"replica_is_deleted": ("fetches-make-sense", "blanks")},
    "new-epochs-are-empty": {"replica_is_deleted": _OF_ELECTED},
}
"""What the proofs of these conjuncts take besides where not every broker has a replica."""


def _with_lemmas(c: Conjunct, design: Design) -> Lemmas:
    """The lemmas of a conjunct's proof, with those that it takes besides in the design's state."""
    more = LEMMAS_OF_REPLICAS.get(c.name) if issubclass(design.state, Reassigned) else None
    return c.by if more is None else {k: (*c.by.get(k, ()), *more.get(k, ())) for k in {**c.by, **more}}


FOLLOWS: dict[str, Mapping[str, tuple[str, ...]]] = {**FOLLOWS_TODAY, **FOLLOWS_IN_CALM}
"""What follows from all conjuncts together, and from which, in all designs."""


CORES = Path(__file__).with_name("cores.json")
"""What earlier proofs have learnt; `insync prove ... --learn` of this file adds to it."""


def invariant(design: Design, few: DefinitionFunction = few_are_down) -> tuple[Conjunct, ...]:
    """The conjuncts for a design: one more where leaders write the in-sync set themselves (before KIP-497), and where
    min.insync.replicas or the replicas change. `few`: how few brokers are down within the envelope.

    Of the older designs this is not enough: the invariant knows of no question that is asked before the first fetch.
    Nor is it of the designs that change more.
    """
    more = tuple(c for state, found in OF_STATE.items() if issubclass(design.state, state) for c in found)
    if not any(a.name == controller_accepts_alter_partition.name for a in design.actions):
        more = (*more, Conjunct(replaced_leaders_are_behind))
    if keeps_envelope(design):
        return (*within_envelope(_of_wider_state(design), few), *more)
    return (*_of_wider_state(design), *more)
