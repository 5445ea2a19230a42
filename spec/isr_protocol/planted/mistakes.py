"""Known mistakes: what is planted in a design to see which bounds would notice it (`planted.notice`).

Three kinds: a part is dropped, as `insync mutate` drops it (docs/mutation.md); a planted bug (`planted.bugs`); or a
definition that is slightly wrong. Each is one sentence, and what sort of harm it does. A design in which a mistake has
no place, such as one without an ELR, does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache

import attrs

from isr_check.mutation import Part, mutants, without_part
from isr_lang import NONE, Action, Bool, Design, ModelError, Set, Step, Value, action, define, smallest, when
from isr_lang.blank import blank
from isr_lang.override import DefinitionFunction
from isr_model import KIP_966
from isr_protocol.designs.dropped_rules import becomes_follower_truncating_for_a_new_leader, no_start_of_epoch
from isr_protocol.designs.zookeeper import (
    follower_truncates_to_offset,
    follower_truncates_to_watermark,
    leader_answers_next_epoch_start,
    leader_answers_undefined_epoch,
)
from isr_protocol.metadata import becomes_follower
from isr_protocol.planted.bugs import PLANTED
from isr_protocol.replication import sends
from isr_protocol.state import (
    MIN_INSYNC,
    Fetch,
    LeaderEpoch,
    Offset,
    Replica,
    State,
    epoch_at,
    epoch_not_above,
    log_end,
    smaller,
)


class Harm(StrEnum):
    """What sort of promise a mistake breaks first."""

    LOSS = "loss"
    DIVERGENCE = "divergence"
    LEADERSHIP = "leadership"
    MEMBERSHIP = "membership"
    ACKNOWLEDGEMENT = "acknowledgement"


@attrs.frozen
class Mistake:
    """A mistake. `plant` makes the design that has it, and raises ModelError where it has no place.

    `shows_at`: settings and budgets at which it does harm, where those of a design are not enough. Where it
    `is_setting`, these are all of it: what people set breaks promises, too.
    """

    name: str
    what: str
    harm: Harm
    plant: Callable[[Design], Design]
    shows_at: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    is_setting: bool = False


def planted_in(mistake: Mistake, design: Design) -> Design | None:
    """The design with the mistake, its promises as they were; None where the mistake has no place in it."""
    try:
        return mistake.plant(design)
    except ModelError:
        return None


def _without(part: Part, owner: str, text: str) -> Callable[[Design], Design]:
    """Drops the first such part of an action or definition whose text begins so."""

    def plant(design: Design) -> Design:
        for mutant in mutants(design, (part,)):
            if mutant.action == owner and mutant.guard.startswith(text):
                return without_part(design, mutant)
        raise ModelError(f"{design.name} has no {part} '{text}' in {owner}")

    return plant


def _with_parts(
    parts: dict[str, Action | DefinitionFunction], more: tuple[Action, ...] = ()
) -> Callable[[Design], Design]:
    """Replaces parts of the actions. What is promised keeps the definitions as they were, as with what is dropped."""

    def plant(design: Design) -> Design:
        mistaken = design.replacing(design.name, design.summary, because="a mistake planted on purpose.", **parts)
        return attrs.evolve(mistaken.adding(*more), properties=design.properties, expected=design.expected)

    return plant


def _before_kip_595(plant: Callable[[Design], Design]) -> Callable[[Design], Design]:
    """Plants only where followers ask where an epoch ends before they fetch."""

    def plant_if_asked(design: Design) -> Design:
        design.action_named("leader_answers_epoch_end")
        return plant(design)

    return plant_if_asked


def _guard(name: str, action_name: str, text: str, harm: Harm, what: str) -> Mistake:
    return Mistake(name, what, harm, _without(Part.GUARD, action_name, text))


def _term(name: str, definition: str, text: str, harm: Harm, what: str) -> Mistake:
    return Mistake(name, what, harm, _without(Part.TERM, definition, text))


def _assignment(name: str, action_name: str, text: str, harm: Harm, what: str) -> Mistake:
    return Mistake(name, what, harm, _without(Part.ASSIGNMENT, action_name, text))


def _bug(name: str, harm: Harm) -> Mistake:
    bug = PLANTED[name]
    if bug.design is None:
        raise ValueError(f"the model has no {name}")
    usual = KIP_966.defaults
    shows_at = {n: v for n, v in bug.design.defaults.items() if usual.get(n) != v}
    return Mistake(name, bug.what, harm, _with_parts(dict(bug.parts), bug.more), shows_at)


def _setting(name: str, harm: Harm, what: str, at: Mapping[str, Value]) -> Mistake:
    def plant(design: Design) -> Design:
        missing = set(at) - {c.name for c in design.constants()}
        if missing:
            raise ModelError(f"{design.name} has no {', '.join(sorted(missing))}")
        return design

    return Mistake(name, what, harm, plant, at, is_setting=True)


# Slightly wrong.


@define
def by_offset(s: State, leader: Replica, follower: Replica) -> Bool:
    """The fetch offset is not past the leader's log end; epochs are not looked at."""
    return s.fetch_offset[follower] <= log_end(s, leader)


@define
def by_nothing(s: State, leader: Replica, follower: Replica) -> Bool:
    """Any log goes on."""
    return Bool.true


@define
def by_epoch_alone(s: State, leader: Replica, follower: Replica) -> Bool:
    """The leader has the epoch of the follower's last record; where it ends is not looked at."""
    epoch = s.fetch_last_epoch[follower]
    return (s.fetch_offset[follower] == 0) | (epoch_not_above(s, leader, epoch) == epoch)


@define
def end_one_later(s: State, r: Replica, e: LeaderEpoch) -> Offset:
    """One record past the end of the epoch, as far as the log goes."""
    end = log_end(s, r)
    later = (when(epoch_at(s, r, o) > e, o, end) for o in Offset.below(end))
    first = smallest(later, or_else=end)
    return when(first < end, first + 1, end)


@define
def one_behind(s: State, leader: Replica, f: Replica) -> Bool:
    """The follower was seen at most one record below the leader's watermark."""
    seen = s.follower_end[leader][f]
    return (seen != NONE) & (s.high_watermark[leader] <= seen.or_else(0) + 1)


@define
def elr_at_minimum(s: State, isr: Set[Replica]) -> Set[Replica]:
    """The ELR beside a new ISR: kept at the minimum, and cleared only above it."""
    return when(isr.size() > MIN_INSYNC, blank(s.controller_elr), (s.controller_elr | s.controller_isr) - isr)


@action
def follower_truncates_as_told(old: State, new: State, follower: Replica) -> Step:
    """A follower cuts its log where the leader's epoch ends, and does not look where its own does."""
    point = smaller(old.fetch_offset[follower], log_end(old, follower))
    log = old.log[follower].take(point)
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        new.log[follower] == log,
        new.high_watermark[follower] == smaller(old.high_watermark[follower], point),
        *sends(old, new, follower, old.leader[follower], log, Fetch.REQUESTED),
    )


@action
def follower_appends_uncapped(old: State, new: State, follower: Replica) -> Step:
    """A follower takes over the leader's watermark, even one past its own log end."""
    record = old.fetch_record[follower]
    log = when(record == NONE, old.log[follower], old.log[follower].append(record.or_else(0)))
    return (
        old.fetch[follower] == Fetch.ANSWERED,
        new.log[follower] == log,
        new.high_watermark[follower] == old.fetch_watermark[follower],
        *sends(old, new, follower, old.leader[follower], log, Fetch.REQUESTED),
    )


LOSS, DIVERGENCE, LEADERSHIP, MEMBERSHIP = Harm.LOSS, Harm.DIVERGENCE, Harm.LEADERSHIP, Harm.MEMBERSHIP
ACKNOWLEDGEMENT = Harm.ACKNOWLEDGEMENT

MISTAKES: tuple[Mistake, ...] = (
    # How logs are matched.
    Mistake("matched-by-offset", "logs are matched by offset only", DIVERGENCE, _with_parts({"continues": by_offset})),
    _term("matched-by-end", "continues", "epoch_not_above", DIVERGENCE, "logs match by an epoch's end, not by epoch"),
    Mistake(
        "matched-by-epoch",
        "logs are matched by the epoch, wherever it ends",
        DIVERGENCE,
        _with_parts({"continues": by_epoch_alone}),
    ),
    Mistake(
        "epochs-never-compared",
        "whatever log a follower has, it goes on from there",
        DIVERGENCE,
        _with_parts({"continues": by_nothing}),
    ),
    Mistake(
        "epoch-ends-later",
        "an epoch ends one record later than it does",
        DIVERGENCE,
        _with_parts({"end_of_epoch": end_one_later}),
    ),
    Mistake(
        "truncates-as-told",
        "a follower cuts where the leader's epoch ends, not where its own does",
        DIVERGENCE,
        _with_parts({"follower_truncates": follower_truncates_as_told}),
    ),
    _assignment(
        "cut-undone", "follower_truncates", "new.log[", DIVERGENCE, "a follower that must cut its log does not"
    ),
    _bug("truncate-to-watermark", LOSS),
    _bug("next-epoch-start", DIVERGENCE),
    _bug("unfenced-fetch", DIVERGENCE),
    _bug("no-epoch-start", LOSS),
    Mistake(
        "asks-new-leaders-only",
        "a follower that finds its leader again does not truncate (KAFKA-7164)",
        DIVERGENCE,
        _before_kip_595(_with_parts({"becomes_follower": becomes_follower_truncating_for_a_new_leader})),
    ),
    Mistake(
        "never-asks",
        "a follower goes on from its log end, and never asks where its epoch ends",
        DIVERGENCE,
        _before_kip_595(_with_parts({"becomes_follower": becomes_follower})),
    ),
    Mistake(
        "epoch-not-started",
        "a new leader does not note where its epoch starts (KAFKA-7415)",
        LOSS,
        _with_parts(
            {"leader_answers_epoch_end": no_start_of_epoch},
            (leader_answers_undefined_epoch, follower_truncates_to_watermark),
        ),
    ),
    Mistake(
        "answers-next-start",
        "a leader answers where the next epoch starts, and not which one it has (before KIP-279)",
        DIVERGENCE,
        _with_parts(
            {
                "leader_answers_epoch_end": leader_answers_next_epoch_start,
                "follower_truncates": follower_truncates_to_offset,
            },
            (leader_answers_undefined_epoch, follower_truncates_to_watermark),
        ),
    ),
    # Who counts for the watermark.
    _bug("refused-fetch-counts", LOSS),
    _bug("committed-isr-only", LOSS),
    _bug("commit-under-minimum", LOSS),
    _bug("watermark-of-diverging", DIVERGENCE),
    _term("isr-not-counted", "maximal_isr", "old.isr", LOSS, "the watermark counts who is proposed alone"),
    Mistake(
        "watermark-uncapped",
        "a follower takes over a watermark past its log end",
        DIVERGENCE,
        _with_parts({"follower_appends": follower_appends_uncapped}),
    ),
    _guard("answers-anybody", "leader_answers_fetch", "takes(", LOSS, "any replica answers any fetch as a leader"),
    # Who joins the in-sync set.
    Mistake("joiner-one-behind", "a follower joins one record early", LOSS, _with_parts({"caught_up": one_behind})),
    _guard("joins-behind", "leader_proposes_expansion", "caught_up(", LOSS, "a follower joins that has not caught up"),
    _guard(
        "joins-any-epoch", "leader_proposes_expansion", "past_epoch_start", LOSS, "a follower joins at the watermark"
    ),
    _bug("join-at-watermark", LOSS),
    _guard("proposes-again", "leader_proposes_expansion", "free_to_ask", LOSS, "a leader proposes while it waits"),
    _guard("shrinks-itself", "leader_proposes_shrink", "lagging <=", MEMBERSHIP, "a leader drops itself"),
    _guard("shrink-again", "leader_proposes_shrink", "free_to_ask", LOSS, "a leader drops members while it waits"),
    # What the controller accepts.
    _guard("accepts-stale", "controller_accepts_alter_partition", "current(", LOSS, "a stale proposal is accepted"),
    _term("accepts-old-set", "current", "old.alter_partition_epoch", LOSS, "a proposal about an older set is accepted"),
    _guard("accepts-fenced", "controller_accepts_alter_partition", "eligible(", MEMBERSHIP, "a fenced replica joins"),
    _bug("no-broker-epoch-check", LOSS),
    _bug("no-partition-epoch-check", LOSS),
    Mistake(
        "elr-kept-at-minimum",
        "an ELR is cleared above the minimum only",
        LOSS,
        _with_parts({"elr_beside": elr_at_minimum}),
    ),
    # What a leader makes of the answer.
    _guard("adopts-unasked", "leader_adopts_isr", "old.alter", LOSS, "a leader adopts a set before it is accepted"),
    _guard("rolls-back-early", "leader_rolls_back", "old.alter", LOSS, "a leader rolls back without a refusal"),
    _bug("roll-back-on-unknown-outcome", LOSS),
    _guard(
        "learns-other-epoch", "leader_learns_isr", "old.leader_epoch", LOSS, "a zombie takes the newest set as its own"
    ),
    _guard("follower-learns-isr", "leader_learns_isr", "leads(", LOSS, "who does not lead commits as a leader would"),
    _guard("leads-again", "becomes_leader", "behind(", LOSS, "a leader begins its epoch anew at any time"),
    # Elections.
    _bug("elect-outside-isr", LEADERSHIP),
    _bug("ungated-last-leader", LOSS),
    _guard("elects-anybody", "controller_fences_leader", "electable(", LEADERSHIP, "any replica replaces the leader"),
    _guard("moves-to-anybody", "controller_moves_leadership", "electable(", LEADERSHIP, "leadership moves to anybody"),
    _guard("returned-takes-over", "controller_elects_returned", "awaited(", LEADERSHIP, "whoever returns is elected"),
    _term("elects-unavailable", "electable", "available(", LEADERSHIP, "a fenced replica is elected"),
    _assignment(
        "leader-stays-in", "controller_fences_leader", "new.controller_isr", MEMBERSHIP, "a fenced leader stays in sync"
    ),
    # Returns.
    _bug("keep-elr", LOSS),
    _bug("keep-clean-mark", LOSS),
    # What clients are told.
    _bug("ack-before-flush", LOSS),
    _bug("read-above-watermark", LOSS),
    _guard(
        "writes-under-minimum", "leader_appends", "ACKS != all", ACKNOWLEDGEMENT, "a leader appends below the minimum"
    ),
    # What people set.
    _setting("unclean-election-on", LOSS, "a replica out of sync may be elected", {"unclean": True}),
    _setting("acknowledged-by-one", LOSS, "the leader alone acknowledges", {"acks": "1"}),
    _setting("minimum-of-one", LOSS, "one replica in sync is enough", {"min_insync": 1}),
)


@cache
def mistakes_by_name() -> dict[str, Mistake]:
    return {m.name: m for m in MISTAKES}
