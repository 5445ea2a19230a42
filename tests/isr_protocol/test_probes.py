"""A probe stands for something that happens: without some action it is never reached.

A probe that only restates a guard, or the start, would be "reached" in a model in which what it names never happens.
Then it would vouch for promises that speak of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from tests.support.sample import sample

from isr_check import native
from isr_lang import Bool, Design, Instance, Value, exists, sometimes
from isr_protocol.by_name import DESIGNS
from isr_protocol.promises.premises import PRECURSOR, PREMISES, election_happens
from isr_protocol.promises.safety import (
    elr_member_elected,
    isr_grows_back,
    isr_shrinks_to_one,
    leads_now,
    write_refused,
)
from isr_protocol.state import Replica, State

if TYPE_CHECKING:
    from isr_check.engine import Path

pytestmark = pytest.mark.explores

TWO: Mapping[str, Value] = {"replicas": 2}
READING: Mapping[str, Value] = {**TWO, "crashes": 0, "consumers": 1, "shutdowns": 1, "follower_reads": True}
LOSING: Mapping[str, Value] = {**TWO, "crashes": 0, "lossy_crashes": 1, "min_insync": 1, "epochs": 2, "isr_changes": 4}

EXCEPTIONS = {
    write_refused.name: "it restates what makes a leader refuse, and is reached though no leader ever could append",
    isr_shrinks_to_one.name: "it is true at the start with one replica, or where the only one is to be replaced",
}
"""Probes that no action decides. To state them otherwise would change the hash of every model."""

ALTERNATIVES = {
    elr_member_elected.name: re.compile("controller_(fences|elects|moves|reassigns|cancels|accepts)_.*"),
    isr_grows_back.name: re.compile("controller_(accepts_.*|recovers|elects_.*)"),
    election_happens.name: re.compile("controller_.*"),
}
"""Where several actions do what a probe names, and each is enough: the actions that do it in some design."""


def witnesses(design: Design, settings: Mapping[str, Value], probes: tuple[str, ...]) -> dict[str, Path]:
    """A shortest behaviour for each of these probes that is reached; the others are not reached at all."""
    findings = native.explore(Instance(design, settings), probes).findings
    return {f.name: f.path for f in findings if f.path is not None}


def actions_of(path: Path) -> set[str]:
    return {name for name, _ in path.steps}


def restatements(design: Design, settings: Mapping[str, Value]) -> set[str]:
    """The probes that are reached whichever action is left out, or all its alternatives, but for the exceptions.

    Only an action of its shortest witness can be one without which a probe is not reached. The action that is on most
    of them is tried first.
    """
    design = design.promising(*dict.fromkeys(PREMISES.values()))
    probes = [p.name for p in Instance(design, settings).properties if p.kind.startswith("sometimes")]
    paths = witnesses(design, settings, tuple(name for name in probes if name not in EXCEPTIONS))
    attempts = {name: actions_of(path) for name, path in paths.items()}
    pending = set(paths)
    while untried := sorted(action for name in pending for action in attempts[name]):
        action = max(untried, key=untried.count)
        question = tuple(sorted(name for name in pending if action in attempts[name]))
        pending -= set(question) - set(witnesses(design.without(action), settings, question))
        for name in question:
            attempts[name].remove(action)
    for name in pending & set(ALTERNATIVES):
        group = [a.name for a in design.actions if ALTERNATIVES[name].fullmatch(a.name)]
        pending -= {name} - set(witnesses(design.without(*group), settings, (name,)))
    return pending


@pytest.mark.parametrize("name", sample(DESIGNS, every=9))
def test_each_probe_is_never_reached_without_some_action(name: str) -> None:
    assert restatements(DESIGNS[name], TWO) == set()


@pytest.mark.parametrize(
    ("name", "settings", "probe"),
    sample(
        [
            ("kip-966", READING, "record-is-read"),
            ("kip-966", READING, "broker-shuts-down"),
            ("kafka-0.8", TWO, "unclean-election"),
            ("recovery-asks-all", LOSING, "replica-is-recovered"),
        ],
        every=3,
    ),
)
def test_those_that_want_a_setting_are_among_them(name: str, settings: Mapping[str, Value], probe: str) -> None:
    design = DESIGNS[name].promising(*dict.fromkeys(PREMISES.values()))
    assert probe in witnesses(design, settings, (probe,))
    assert probe not in restatements(DESIGNS[name], settings)


# the exceptions are what their reasons say


def test_a_refusal_is_reached_though_nobody_can_append() -> None:
    assert write_refused.name in witnesses(DESIGNS["kip-966"].without("leader_appends"), TWO, (write_refused.name,))


@pytest.mark.parametrize(
    ("name", "settings"),
    [("kip-966", {"replicas": 1, "min_insync": 1}), ("kafka-15665", TWO)],
    ids=["alone", "replaced"],
)
def test_an_isr_of_one_is_there_at_the_start(name: str, settings: Mapping[str, Value]) -> None:
    path = witnesses(DESIGNS[name], settings, (isr_shrinks_to_one.name,))[isr_shrinks_to_one.name]
    assert path.steps == ()


# what the search is there for


@sometimes
def minimum_is_unmet(s: State) -> Bool:
    """A guard again: a leader's in-sync set has one member."""
    return exists(leads_now(s, r) & (s.isr[r].size() == 1) for r in Replica.all())


@sometimes
def everybody_is_in_sync(s: State) -> Bool:
    """The start again."""
    return s.controller_isr == Replica.all()


def test_a_planted_restatement_is_noticed() -> None:
    design = DESIGNS["kip-966"].promising(minimum_is_unmet, everybody_is_in_sync)
    assert restatements(design, TWO) == {minimum_is_unmet.name, everybody_is_in_sync.name}


@pytest.mark.parametrize(
    ("promise", "settings", "enough"),
    [
        ("clean-election", {"replicas": 1, "min_insync": 1, "epochs": 1}, {"epochs": 2, "isr_changes": 4}),
        ("elected-is-available", {"replicas": 1, "min_insync": 1, "epochs": 1}, {"epochs": 2, "isr_changes": 4}),
        ("one-leader-per-epoch", {"replicas": 1, "min_insync": 1, "epochs": 1}, {"epochs": 2, "isr_changes": 4}),
        ("committed-on-new-leader", {"replicas": 2, "epochs": 0}, {"epochs": 1}),
    ],
)
def test_a_premise_is_what_the_promise_speaks_of(
    promise: str, settings: Mapping[str, Value], enough: Mapping[str, Value]
) -> None:
    """That nobody leads any more is no election, and a commit alone needs no new leader."""
    design, premise = DESIGNS["kip-966"], PREMISES[promise]
    assert not witnesses(design.promising(premise), settings, (premise.name,))
    assert witnesses(design.promising(premise), {**settings, **enough}, (premise.name,))


def test_a_premise_has_no_name_of_a_promise() -> None:
    """Else the finding on the one would be taken for that on the other."""
    names = {p.name for design in DESIGNS.values() for p in design.properties}
    assert not {p.name for p in (*PREMISES.values(), PRECURSOR)} & names
