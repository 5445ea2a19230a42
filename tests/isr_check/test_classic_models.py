"""Models that others published, with the numbers that others published, by both engines."""

from functools import cache

import attrs
import pytest
from tests.support.models import ewd840, ewd998, paxos, philosophers, two_phase_commit

from isr_check import explorer, native
from isr_check.engine import Exploration, Verdict
from isr_check.mutation import mutants, without_part
from isr_lang import Design, Instance, Value


@attrs.frozen(eq=False)
class Classic:
    """A model at the bounds of its publication.

    As TLC counts: an initial state is one of those generated, and `depth` is of states, not of steps.
    """

    design: Design
    constants: dict[str, Value]
    distinct: int
    generated: int | None = None
    depth: int | None = None

    def __str__(self) -> str:
        return "-".join([self.design.name, *(str(v) for v in self.constants.values())])

    def instance(self) -> Instance:
        return Instance(self.design, self.constants)


def of_paxos(bounds: tuple[int, int, int], counts: tuple[int, int, int]) -> Classic:
    return Classic(paxos.DESIGN, dict(zip(("acceptors", "values", "last"), bounds, strict=True)), *counts)


def of_ewd998(last: int, anywhere: bool) -> Classic:
    return Classic(ewd998.DESIGN, {"last": last, "anywhere": anywhere}, *ewd998.PUBLISHED[last, anywhere])


SMALL = [
    *(Classic(two_phase_commit.DESIGN, {"rms": n}, distinct) for n, distinct in two_phase_commit.PUBLISHED.items()),
    *(Classic(ewd840.DESIGN, {"last": n}, distinct) for n, distinct in ewd840.PUBLISHED.items()),
    *(Classic(philosophers.DESIGN, {"seats": n}, distinct, 336, 29) for n, distinct in philosophers.PUBLISHED.items()),
    *(of_paxos(bounds, counts) for bounds, counts in paxos.PUBLISHED.items()),
    of_ewd998(1, anywhere=True),
]
"""Few enough states for the reference engine."""

LARGE = [
    Classic(two_phase_commit.DESIGN, {"rms": 7}, 296448),
    *(of_paxos(bounds, counts) for bounds, counts in paxos.LARGER.items()),
    of_ewd998(2, anywhere=True),
    of_ewd998(2, anywhere=False),
]

BROKEN = [
    (two_phase_commit.DESIGN, {"rms": 3}, "tm_commits", 1, "consistent"),
    (ewd840.DESIGN, {"last": 2}, "token_passes", 2, "detection-is-right"),
    (paxos.DESIGN, {"values": 2}, "acceptor_votes", 1, "agreement"),
    (paxos.DESIGN, {"values": 2}, "ballot_asks_for_any", 3, "agreement"),
    (ewd998.DESIGN, {"last": 1}, "token_passes", 2, "detection-is-right"),
    (ewd998.DESIGN, {"last": 1}, "token_passes", 2, "safras-invariant"),
]
"""A design, its bounds, the guard that it loses, and the promise that this breaks."""


@cache
def explored(classic: Classic) -> Exploration:
    return explorer.explore(classic.instance())


def untimed(found: Exploration) -> Exploration:
    return attrs.evolve(found, seconds=0)


def constrained(found: Exploration) -> int:
    """Messages that only a bound keeps a node of EWD998 from sending: TLC generates those steps and then drops them."""
    return sum(g.refusals for g in found.guards if g.action == "message_is_sent" and "MOST" in g.text)


def assert_as_published(found: Exploration, classic: Classic) -> None:
    assert (found.complete, found.distinct) == (True, classic.distinct)
    dropped = constrained(found) if classic.design is ewd998.DESIGN else 0
    assert classic.generated in (None, found.levels[0] + found.generated + dropped)
    assert classic.depth in (None, found.depth + 1)
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}


@pytest.mark.long
@pytest.mark.parametrize("classic", SMALL, ids=str)
def test_a_classic_is_as_published(classic: Classic) -> None:
    assert_as_published(explored(classic), classic)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("classic", SMALL, ids=str)
def test_the_native_engine_counts_every_step_and_guard_of_a_classic_alike(classic: Classic, workers: int) -> None:
    assert untimed(native.explore(classic.instance(), workers=workers)) == untimed(explored(classic))


@pytest.mark.long
@pytest.mark.parametrize("classic", LARGE, ids=str)
def test_a_large_classic_is_as_published(classic: Classic) -> None:
    assert_as_published(native.explore(classic.instance()), classic)


def test_paxos_has_as_many_states_by_symmetry() -> None:
    classic = next(c for c in LARGE if c.design is paxos.DESIGN)
    found = native.explore(classic.instance(), symmetry=True)
    assert found.distinct < classic.distinct == found.states_in_orbits


@pytest.mark.long
@pytest.mark.parametrize(
    ("design", "bounds", "action", "guard", "promise"), BROKEN, ids=lambda v: v.name if isinstance(v, Design) else None
)
def test_a_classic_without_a_guard_breaks_its_promise(
    design: Design, bounds: dict[str, Value], action: str, guard: int, promise: str
) -> None:
    lost = next(m for m in mutants(design) if (m.action, m.index) == (action, guard))
    instance = Instance(without_part(design, lost), bounds)
    expected = explorer.explore(instance, (promise,))
    assert expected.finding(promise).verdict is Verdict.VIOLATED
    assert untimed(native.explore(instance, (promise,))) == untimed(expected)


def test_safras_detection_is_live_if_the_token_is() -> None:
    name, instance = ewd998.detection_is_live.name, Instance(ewd998.DESIGN, {"last": 1})
    assert native.explore(instance, (name,)).finding(name).verdict is Verdict.HOLDS
    unfair = Instance(ewd998.DESIGN.with_fairness(unfair=("token_passes",)), {"last": 1})
    assert native.explore(unfair, (name,)).finding(name).verdict is Verdict.VIOLATED
