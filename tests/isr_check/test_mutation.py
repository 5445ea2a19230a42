"""Dropping a guard: some promise notices, or the guard is listed as redundant with a reason."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import attrs
import pytest
from tests.support.models.ticket_desk import CAREFUL, JAMS, Desk

from insync_cli.main import main
from isr_check import mutation, native
from isr_check.engine import Limits
from isr_check.explorer import explore
from isr_check.mutation import LARGE, Baseline, Campaign, Fate, Part, baselines, mutants, outcomes, room_for
from isr_lang import Bool, Property, Step, Value, action, always, define
from isr_protocol.designs.history import KIP_320

pytestmark = pytest.mark.processes

FATES = {
    ("draws", "old.open"): (Fate.KILLED, ("closed-is-done",), 2),
    ("draws", "old.drawn < TICKETS"): (Fate.KILLED, ("type-ok",), 4),
    ("serves", "old.served < old.drawn"): (Fate.KILLED, ("never-ahead",), 1),
    ("serves", "CALLS != silent"): (Fate.SETTLED, (), None),
    ("hurries", "old.served + RUSH < old.drawn"): (Fate.SURVIVED, (), None),
    ("jams", "old.jams < PAPER_JAMS"): (Fate.KILLED, ("type-ok",), 4),
    ("jams", "old.served < old.drawn"): (Fate.KILLED, ("type-ok",), 1),  # nothing else is asked of that state
    ("closes", "old.open"): (Fate.SURVIVED, (), None),
    ("closes", "old.served == old.drawn"): (Fate.KILLED, ("closed-is-done",), 2),
    ("reopens", "REOPEN"): (Fate.SURVIVED, (), None),
    ("reopens", "~old.open"): (Fate.SETTLED, (), None),
}

BOUNDS = """
[[bounds]]
design = "careful"
constants = { tickets = 2 }
[[bounds]]
design = "careful"
constants = { rush = 1, reopen = "on" }
[[bounds]]
design = "hasty"
constants = { tickets = 2 }
"""

REDUNDANT = """
[[guard]]
design = "careful"
action = "hurries"
guard = "old.served + RUSH < old.drawn"
reason = "serving all who wait is never wrong"
[[guard]]
design = "careful"
action = "closes"
guard = "old.open"
reason = "closing a closed desk changes nothing"
[[guard]]
design = "careful"
action = "reopens"
guard = "REOPEN"
reason = "an open desk breaks no promise"
[[guard]]
design = "hasty"
action = "gone"
guard = "old.open"
reason = "of another design, so of no concern here"
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_every_guard_has_its_fate_whatever_the_number_of_workers(workers: int) -> None:
    job = Campaign(CAREFUL, ({},), explore, Limits())
    known = list(baselines(job, workers))
    assert [b.complete for b in known] == [True]
    done = list(outcomes(job, known, workers))
    assert [o.mutant for o in done] == mutants(CAREFUL)
    assert {(o.mutant.action, o.mutant.guard): (o.fate, o.killers, o.depth) for o in done} == FATES


def test_a_guard_is_noticed_at_the_first_choice_that_can() -> None:
    choices: tuple[Mapping[str, Value], ...] = (
        {"tickets": 2},
        {"paper_jams": 3, "reopen": "on"},
        {"calls": "all", "reopen": "on"},
    )
    job = Campaign(CAREFUL, choices, explore, Limits())
    known = list(baselines(job))
    done = {(o.mutant.action, o.mutant.guard): o for o in outcomes(job, known)}
    assert done["draws", "old.open"].choice == 0
    assert done["reopens", "~old.open"].fate is Fate.SURVIVED, "settled at the first choice only"
    survivor = done["closes", "old.open"]
    assert (survivor.fate, survivor.choice) == (Fate.SURVIVED, 1), "told of the choice with most states"


def test_an_assignment_that_is_dropped_leaves_the_variable_as_it_was() -> None:
    job = Campaign(CAREFUL, ({},), explore, Limits(), (Part.ASSIGNMENT,))
    known = list(baselines(job))
    done = {(o.mutant.action, o.mutant.guard): o for o in outcomes(job, known)}
    assert [o.mutant.part for o in done.values()] == [Part.ASSIGNMENT] * len(job.mutants())
    assert done["hurries", "new.served == old.drawn"].fate is Fate.NARROWER
    jam = done["jams", "new.jams == old.jams + 1"]
    assert jam.fate is Fate.NARROWER, "more tickets are torn than the budget allows, and no promise counts them"


@action
def closes_carefully(old: Desk, new: Desk) -> Step:
    """The desk closes, and nothing is torn any more."""
    return (old.open, old.served == old.drawn, ~new.open, new.jams == JAMS)


@always
def little_is_torn(s: Desk) -> Bool:
    """A desk that is closed has torn no more than it may."""
    return s.open | (s.jams < JAMS) | (s.jams == JAMS)


@pytest.mark.parametrize(("promises", "fate"), [((), Fate.NARROWER), ((little_is_torn,), Fate.SURVIVED)])
def test_what_shows_a_promise_something_new_that_it_does_not_notice_survives(
    promises: tuple[Property, ...], fate: Fate
) -> None:
    closes = attrs.evolve(closes_carefully, name="closes")
    strict = CAREFUL.replacing("strict", "", because="paper is dear.", closes=closes)
    strict = attrs.evolve(strict, properties=(*strict.properties, *promises))
    job = Campaign(strict, ({"reopen": "on"},), explore, Limits(), (Part.ASSIGNMENT,))
    mutant = next(m for m in job.mutants() if (m.action, m.listed_as) == ("closes", "new.jams"))
    outcome = job.run(mutant, [job.baseline(0)])
    assert outcome.fate is fate, (
        "a closed desk that has torn nothing is new, and only one promise looks at what is torn"
    )


def test_an_assignment_that_only_liveness_misses_is_noticed_by_it() -> None:
    job = Campaign(KIP_320, ({"replicas": 2, "crashes": 0},), native.explore, Limits(), (Part.ASSIGNMENT,))
    mutant = next(m for m in job.mutants() if (m.action, m.listed_as) == ("follower_appends", "new.fetch[follower]"))
    known = job.baseline(0)
    outcome = job.run(mutant, [known])
    assert (outcome.fate, outcome.killers) == (Fate.KILLED, ("lagging-follower-returns",))
    assert set(outcome.killers) <= set(known.comes)
    deaf = attrs.evolve(known, comes=())
    assert job.run(mutant, [deaf]).fate is not Fate.KILLED, "nothing else notices"


SOME = [
    (Part.GUARD, "becomes_follower", {Fate.KILLED, Fate.SURVIVED}),
    pytest.param(Part.ASSIGNMENT, "leader_appends", {Fate.KILLED}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("part", "action", "fates"), SOME)
def test_a_mutant_has_the_same_fate_where_one_state_of_each_orbit_is_seen(
    monkeypatch: pytest.MonkeyPatch, part: Part, action: str, fates: set[Fate]
) -> None:
    monkeypatch.setattr(mutation, "MANY", 0)
    job = Campaign(KIP_320, ({"replicas": 2, "crashes": 0},), partial(native.explore, workers=1), Limits(), (part,))
    known = list(baselines(job))
    fewer = attrs.evolve(job, orbits=partial(native.explore, workers=1, symmetry=True))
    told = [(job.run(m, known), fewer.run(m, known)) for m in job.mutants() if m.action == action]
    assert {every.fate for every, _ in told} >= fates
    for every, by_orbit in told:
        assert (every.fate, every.depth, every.choice) == (by_orbit.fate, by_orbit.depth, by_orbit.choice)
        assert every.distinct == by_orbit.distinct or every.fate is Fate.KILLED, "which ends within a level"


def test_a_mutant_that_symmetry_is_unsound_for_is_explored_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """The desk has no symmetric sort."""
    monkeypatch.setattr(mutation, "MANY", 0)
    job = Campaign(CAREFUL, ({},), native.explore, Limits(), orbits=partial(native.explore, symmetry=True))
    assert {job.run(m, [job.baseline(0)]).fate for m in job.mutants()} >= {Fate.KILLED, Fate.SURVIVED}


@define
def may_join(s: Desk) -> Bool:
    """Nobody waits, and the desk is open."""
    return s.open & (s.served == s.drawn)


@action
def closes_if_it_may(old: Desk, new: Desk) -> Step:
    """The desk closes when nobody waits."""
    return (may_join(old), ~new.open)


@always
def may_join_means_what_it_says(s: Desk) -> Bool:
    """A promise that calls the definition, too."""
    return may_join(s).implies(s.served == s.drawn)


def test_a_term_is_dropped_for_actions_and_not_for_promises() -> None:
    design = CAREFUL.replacing("terms", "", because="it closes by a definition.", closes=closes_if_it_may)
    job = Campaign(design.promising(may_join_means_what_it_says), ({},), explore, Limits(), (Part.TERM,))
    done = {o.mutant.guard: o for o in outcomes(job, list(baselines(job)))}
    assert done.keys() == {"old.open", "old.served == old.drawn"}
    assert {o.mutant.action for o in done.values()} == {"may_join"}
    assert done["old.served == old.drawn"].killers == ("closed-is-done",)
    assert done["old.open"].fate is Fate.SURVIVED


def test_what_takes_behaviours_away_is_noticed_by_a_probe() -> None:
    drawn = next(m for m in mutants(CAREFUL, (Part.ASSIGNMENT,)) if (m.action, m.guard) == DRAWS)
    job = Campaign(CAREFUL, ({},), explore, Limits(), (Part.ASSIGNMENT,))
    (known,) = baselines(job)
    assert known.witnessed_probes
    outcome = job.run(drawn, [known])
    assert outcome.fate is Fate.KILLED
    assert outcome.depth is None
    assert set(outcome.killers) <= set(known.witnessed_probes)


DRAWS = ("draws", "new.drawn == old.drawn + 1")


def test_a_mutant_has_room_in_proportion() -> None:
    assert [room_for(n) for n in (1, 1000, LARGE, 3 * LARGE)] == [1000, 20_000, 2 * LARGE, 6 * LARGE]


def test_a_mutant_that_outgrows_its_room_is_undecided() -> None:
    job = Campaign(CAREFUL, ({"tickets": 60, "rush": 1},), explore, Limits(max_states=20))
    undecided = [o for o in outcomes(job, [Baseline((), True, 0)]) if o.fate is Fate.UNDECIDED]
    assert undecided
    assert all(o.distinct >= 20 for o in undecided)


def test_a_promise_that_the_design_breaks_anyway_notices_nothing(desk: Path) -> None:
    main(["mutate", "hasty", "--json", "out.json", "--quiet"])
    report = json.loads((desk / "out.json").read_text())
    assert "never-ahead" not in report["choices"][0]["promises"]
    assert all("never-ahead" not in m["killers"] for m in report["mutants"])


def test_unlisted_survivors_are_22(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutate", "careful"]) == 22
    said = capsys.readouterr().out
    assert "not noticed in 28 states, and no reason is listed" in said
    assert "noticed by never-ahead in 1 step\n" in said
    assert "3 not noticed and not listed" in said


def test_survivors_with_a_reason_are_0(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "redundant.toml").write_text(REDUNDANT)
    assert main(["mutate", "careful", "--redundant", "redundant.toml"]) == 0
    said = capsys.readouterr().out
    assert "listed as redundant: closing a closed desk changes nothing" in said
    assert "11 guards, 6 noticed, 3 redundant with a reason, 2 decided by the settings" in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('guard = "old.open"', 'guard = "old.shut"', "1 listed but gone"),
        ('action = "hurries"', 'action = "hurried"', "1 listed but gone"),
        (
            'guard = "old.open"',
            'guard = "old.served == old.drawn"',
            "1 listed as redundant but noticed",
        ),
    ],
)
def test_a_reason_that_is_no_longer_true_is_22(
    desk: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    (desk / "redundant.toml").write_text(REDUNDANT.replace(old, new, 1))
    assert main(["mutate", "careful", "--redundant", "redundant.toml"]) == 22
    assert says in capsys.readouterr().out


def test_bounds_are_tried_one_after_another(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "bounds.toml").write_text(BOUNDS)
    assert main(["mutate", "careful", "--bounds", "bounds.toml", "--json", "out.json"]) == 22
    report = json.loads((desk / "out.json").read_text())
    assert [c["bounds"]["tickets"] for c in report["choices"]] == [2, 3]
    assert {m["choice"] for m in report["mutants"]} == {0, 1}
    said = capsys.readouterr().out
    assert "(--tickets 2)" in said
    assert "(--rush 1 --reopen on)" in said


def test_a_bound_given_takes_the_place_of_the_file(desk: Path) -> None:
    (desk / "bounds.toml").write_text(BOUNDS)
    main(["mutate", "careful", "--bounds", "bounds.toml", "--tickets", "4", "--json", "out.json", "--quiet"])
    report = json.loads((desk / "out.json").read_text())
    assert [c["bounds"]["tickets"] for c in report["choices"]] == [4]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "bounds.toml: cannot be read: no such file or directory"),
        ('[[bounds]]\ndesign = "careful"', "every [[bounds]] has a design and a table of constants"),
        (
            '[[bounds]]\ndesign = "careful"\nconstants = { tickets = 0 }',
            "bounds.toml: --tickets is a whole number from 1 to 200, not 0",
        ),
        (
            '[[bounds]]\ndesign = "careful"\nconstants = { ticket = 1 }',
            "bounds.toml: careful has no bound or setting 'ticket'",
        ),
    ],
)
def test_bad_bounds_are_65(desk: Path, capsys: pytest.CaptureFixture[str], text: str | None, says: str) -> None:
    if text is not None:
        (desk / "bounds.toml").write_text(text)
    assert main(["mutate", "careful", "--bounds", "bounds.toml"]) == 65
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "redundant.toml: cannot be read: no such file or directory"),
        ("[[guard", "redundant.toml: not TOML"),
        ('[[guard]]\ndesign = "careful"', "every [[guard]] has a design, an action, a guard and a reason"),
        ("guard = 3", "every [[guard]] has a design, an action, a guard and a reason"),
    ],
)
def test_a_bad_list_of_reasons_is_65(
    desk: Path, capsys: pytest.CaptureFixture[str], text: str | None, says: str
) -> None:
    if text is not None:
        (desk / "redundant.toml").write_text(text)
    assert main(["mutate", "careful", "--redundant", "redundant.toml"]) == 65
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--share 9999/9999", "careful has {n} guards, so share 9999 of 9999 is empty"),
        ("--share {more}/9999", "careful has {n} guards, so share {more} of 9999 is empty"),
    ],
)
def test_an_empty_share_is_refused(desk: Path, capsys: pytest.CaptureFixture[str], words: str, says: str) -> None:
    """0 guards of 0 are noticed, which is no success."""
    n = len(mutants(CAREFUL))
    assert main(["mutate", "careful", *words.format(more=n + 1).split()]) == 64
    assert says.format(n=n, more=n + 1) in capsys.readouterr().err
    assert main(["mutate", "careful", "--share", f"{n}/9999", "--quiet"]) != 64


def test_a_design_without_such_parts_is_refused(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("isr_check.mutation.mutants", Mock(return_value=[]))
    assert main(["mutate", "careful", "--drop", "terms"]) == 64
    assert "careful has no term that could be dropped" in capsys.readouterr().err


def test_a_design_that_was_not_explored_to_the_end_is_20(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutate", "careful", "--max-states", "3"]) == 20
    assert "careful itself was not explored to the end" in capsys.readouterr().err


def test_what_is_dropped_is_chosen(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutate", "careful", "--drop", "assignments", "--json", "out.json"]) == 0
    report = json.loads((desk / "out.json").read_text())
    assert {m["part"] for m in report["mutants"]} == {"assignment"}
    said = capsys.readouterr().out
    assert "of which there is no witness any more" in said
    assert f"insync mutate careful: {len(report['mutants'])} assignments" in said


def test_a_reason_for_an_assignment_is_on_file_under_its_own_name(desk: Path) -> None:
    entry = '[[assignment]]\ndesign = "careful"\naction = "hurries"\nassignment = "new.served"\n'
    (desk / "redundant.toml").write_text(f'{entry}reason = "who hurries need not serve"\n')
    main(["mutate", "careful", "--drop", "assignments", "--redundant", "redundant.toml", "--json", "out.json"])
    report = json.loads((desk / "out.json").read_text())
    assert {m["guard"]: m["reason"] for m in report["mutants"]}[
        "new.served == old.drawn"
    ] == "who hurries need not serve"
    assert report["stale"] == []


def test_a_bad_entry_for_a_term_names_its_keys(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "redundant.toml").write_text('[[term]]\ndesign = "careful"\n')
    assert main(["mutate", "careful", "--drop", "terms", "--redundant", "redundant.toml"]) == 65
    assert "every [[term]] has a design, a definition, a term and a reason" in capsys.readouterr().err
