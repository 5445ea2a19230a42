"""docs/redundant-guards.toml and docs/mutation-bounds.toml tell the truth about the designs."""

import tomllib
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import cast

import attrs
import pytest

from insync_cli import registry
from insync_cli.main import main
from insync_cli.model import guards
from isr_check.engine import Limits
from isr_check.mutation import Baseline, Campaign, Fate, Part, mutants
from isr_check.native import explore
from isr_lang import Value
from isr_protocol.promises.worth import with_every_premise

pytestmark = [pytest.mark.explores, pytest.mark.processes]

TOP = Path(__file__).resolve().parents[2]
DESIGN = "kip-966"

LONE: Mapping[str, Value] = {"replicas": 2, "min_insync": 1}
"""Two replicas, of which one may be enough."""

EPOCH_KNOWN = "epoch_not_above(leader, old.fetch_last_epoch[follower]) == old.fetch_last_epoch[follower]"
INCARNATION = (
    "forall(old.alter_broker_epoch[leader] == old.broker_epoch[f] for f in old.alter_isr[leader] - old.controller_isr)"
)
PLAIN: Mapping[str, Value] = {"replicas": 2}
TWO_LEADERS: Mapping[str, Value] = {"replicas": 2, "crashes": 0, "acks": "1", "records": 2}
FLUSHED: Mapping[str, Value] = {
    **LONE,
    "crashes": 0,
    "lossy_crashes": 1,
    "flush": "always",
    "epochs": 2,
    "isr_changes": 4,
}

SAMPLE: list[tuple[Mapping[str, Value], str, str, tuple[str, ...]]] = [
    (TWO_LEADERS, "leader_appends", "log_end(leader) < LOG", ("type-ok",)),
    (
        TWO_LEADERS,
        "leader_answers_fetch",
        "continues(leader, follower)",
        ("leaders-complete", "weak-isr", "strong-isr"),
    ),
    (TWO_LEADERS, "leader_rolls_back", "old.alter[leader] == refused", ("maximal-isr-covers",)),
    (TWO_LEADERS, "controller_accepts_alter_partition", "current(leader)", ("leader-in-isr",)),
    (PLAIN, "leader_appends", "ACKS != all | enough(leader, old.isr[leader])", ("writes-meet-minimum",)),
    (PLAIN, "controller_accepts_alter_partition", "eligible(leader)", ("fenced-out-of-isr",)),
    (FLUSHED, "broker_loses_power", "FLUSH == never", ("leaders-complete",)),
    ({**LONE, "epochs": 2, "isr_changes": 3}, "controller_elects_unclean", "UNCLEAN", ("clean-election",)),
    (PLAIN, "leader_answers_fetch", "old.fetch[follower] == requested", ()),
    (PLAIN, "controller_fences_leader", "successor != r", ()),
]
"""At these constants, this guard of this action, when dropped, is noticed by these promises."""


CLOSING: Mapping[str, Value] = {**LONE, "crashes": 0, "shutdowns": 1, "epochs": 2}
EPOCH_BETWEEN: Mapping[str, Value] = {
    **LONE,
    "crashes": 0,
    "sessions_lost": 1,
    "epochs": 2,
    "isr_changes": 3,
    "log": 2,
    "records": 3,
}
POWER: Mapping[str, Value] = {"replicas": 2, "crashes": 0, "lossy_crashes": 1}

TERMS: list[tuple[str, Mapping[str, Value], str, str, tuple[str, ...]]] = [
    ("kip-966", CLOSING, "eligible", "old.shutting_down", ("leaving-does-not-join",)),
    ("kip-966", CLOSING, "available", "old.shutting_down", ("elected-is-available",)),
    ("kip-966", PLAIN, "eligible", "old.fenced", ("fenced-out-of-isr",)),
    ("kip-966", PLAIN, "caught_up", "old.follower_end[leader][f] != none", ()),
    ("kip-966", EPOCH_BETWEEN, "continues", EPOCH_KNOWN, ("leaders-complete", "weak-isr", "strong-isr")),
    ("kraft-3.5", POWER, "eligible", INCARNATION, ("strong-isr",)),
    ("kraft-3.5", PLAIN, "electable", "isr == {}", ()),
    ("kraft-3.5", PLAIN, "electable", "elr.has(r)", ()),
    ("kip-320", PLAIN, "caught_up", "old.follower_end[leader][f] != none", ()),
    ("kip-320", TWO_LEADERS, "electable", "isr.has(r) | isr == {} & elr.has(r)", ("clean-election", "leader-in-isr")),
]
"""At these constants, this term of this definition of a design, when dropped, is noticed by these promises."""


@pytest.mark.parametrize(
    ("design", "constants", "definition", "term", "killers"),
    [pytest.param(*row, marks=pytest.mark.slow if n > 2 else ()) for n, row in enumerate(TERMS)],
)
def test_a_sample_of_terms(
    design: str, constants: Mapping[str, Value], definition: str, term: str, killers: tuple[str, ...]
) -> None:
    engine = partial(explore, workers=1)
    job = Campaign(registry.design_named(design), (dict(constants),), engine, Limits(), (Part.TERM,))
    mutant = next(m for m in job.mutants() if (m.action, m.guard) == (definition, term))
    outcome = job.run(mutant, [job.baseline(0)])
    assert outcome.fate == (Fate.KILLED if killers else Fate.SURVIVED)
    assert set(outcome.killers) == set(killers)
    redundant = guards.redundant(TOP / guards.REDUNDANT, design, Part.TERM)
    assert ((definition, term) in redundant) == (not killers)


STILL: Mapping[str, Value] = {"replicas": 2, "crashes": 0, "epochs": 0, "isr_changes": 1}

ASSIGNMENTS: list[tuple[str, str, Fate, tuple[str, ...]]] = [
    ("leader_answers_fetch", "new.fetch_offset[follower]", Fate.EQUIVALENT, ()),
    ("follower_sends_fetch", "new.fetch_record[follower]", Fate.EQUIVALENT, ()),
    ("leader_answers_fetch", "new.acked", Fate.KILLED, ("record-is-acknowledged",)),
    ("leader_appends", "new.log[leader]", Fate.KILLED, ("writes-meet-minimum",)),
    ("controller_accepts_alter_partition", "new.controller_partition_epoch", Fate.NARROWER, ()),
]
"""With this action's assignment dropped, at STILL: its fate, and who notices; a premise that is never met counts."""


@pytest.mark.parametrize(("action", "target", "fate", "killers"), ASSIGNMENTS)
def test_a_sample_of_assignments(action: str, target: str, fate: Fate, killers: tuple[str, ...]) -> None:
    design = with_every_premise(registry.design_named(DESIGN))
    job = Campaign(design, (dict(STILL),), partial(explore, workers=1), Limits(), (Part.ASSIGNMENT,))
    mutant = next(m for m in job.mutants() if (m.action, m.listed_as) == (action, target))
    outcome = job.run(mutant, [job.baseline(0)])
    assert (outcome.fate, outcome.killers) == (fate, killers)


@pytest.mark.parametrize("part", [Part.TERM, Part.ASSIGNMENT])
def test_what_is_listed_beside_guards_exists(part: Part) -> None:
    for name in ("kip-966", "kraft-3.5", "kip-320"):
        design = registry.design_named(name)
        known = {(m.action, m.listed_as) for m in mutants(design, (part,))}
        assert guards.redundant(TOP / guards.REDUNDANT, name, part).keys() <= known


def listed(file: str, key: str) -> list[dict[str, object]]:
    table = cast("dict[str, object]", tomllib.loads((TOP / file).read_text(encoding="utf-8")))
    return cast("list[dict[str, object]]", table[key])


@pytest.mark.parametrize("entry", listed(guards.REDUNDANT, "guard"), ids=lambda e: f"{e['action']}: {e['guard']}")
def test_a_redundant_guard_exists(entry: dict[str, object]) -> None:
    design = registry.design_named(cast("str", entry["design"]))
    assert (entry["action"], entry["guard"]) in {(m.action, m.guard) for m in mutants(design)}


def test_shares_have_every_mutant_once() -> None:
    whole = Campaign(registry.design_named(DESIGN), ({},), partial(explore, workers=1), Limits())
    shares = [attrs.evolve(whole, share=(k, 5)).mutants() for k in range(1, 6)]
    assert sorted(str(mutant) for share in shares for mutant in share) == sorted(map(str, whole.mutants()))


def test_no_guard_is_listed_twice() -> None:
    names = [(e["design"], e["action"], e["guard"]) for e in listed(guards.REDUNDANT, "guard")]
    assert len(set(names)) == len(names)


def test_the_bounds_are_bounds_of_their_designs() -> None:
    names = {cast("str", entry["design"]) for entry in listed(guards.BOUNDS, "bounds")}
    assert DESIGN in names
    for name in names:
        assert guards.choices(TOP / guards.BOUNDS, registry.design_named(name))


@cache
def campaign(constants: tuple[tuple[str, Value], ...]) -> tuple[Campaign, Baseline]:
    job = Campaign(registry.design_named(DESIGN), (dict(constants),), partial(explore, workers=1), Limits())
    return job, job.baseline(0)


@pytest.mark.parametrize(("constants", "action", "guard", "killers"), SAMPLE)
def test_a_sample_of_mutants(constants: Mapping[str, Value], action: str, guard: str, killers: tuple[str, ...]) -> None:
    job, baseline = campaign(tuple(constants.items()))
    mutant = next(m for m in mutants(job.design) if (m.action, m.guard) == (action, guard))
    outcome = job.run(mutant, [baseline])
    assert (outcome.fate, outcome.killers) == (Fate.KILLED if killers else Fate.SURVIVED, killers)
    redundant = guards.redundant(TOP / guards.REDUNDANT, DESIGN)
    assert ((action, guard) in redundant) == (not killers)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("design", "part", "share"),
    [
        (DESIGN, Part.GUARD, "1/1"),
        *(
            (design, Part.ASSIGNMENT, share)
            for design, share in ((DESIGN, "1/8"), ("kraft-3.5", "4/8"), ("kip-320", "7/8"))
        ),
    ],
)
def test_every_part_is_noticed_or_listed(monkeypatch: pytest.MonkeyPatch, design: str, part: Part, share: str) -> None:
    """All assignments of one design take half an hour, for most are read by nothing and are explored to the end.

    So an eighth of each is asked. Whoever changes the designs or docs/mutation.md asks all: `insync mutate kip-966
    --drop assignments`.
    """
    monkeypatch.chdir(TOP)
    assert main(["mutate", design, "--drop", f"{part}s", "--share", share, "--quiet"]) == 0
