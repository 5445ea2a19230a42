"""Every folder of counterexamples/ is what cases.toml and the model say today.

Without these, a change of the model would leave counterexamples that no longer happen, fixes that fix nothing, and
commands in READMEs that answer something else than they say.

After a change of either, write them again and read the difference:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/isr_trace/test_counterexamples.py
"""

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from tests.support.expected import Run, table
from tests.support.sample import sample

from insync_cli.main import main
from isr_check.engine import Exploration
from isr_check.native import explore
from isr_check.reference import Evaluator
from isr_lang import Instance, Value
from isr_protocol.by_name import DESIGNS
from isr_trace.case_folder import TRACE_FILE, index, stale, tell, write_files
from isr_trace.cases import Case, load_cases
from isr_trace.itf import trace_from_text
from isr_trace.replay import record

pytestmark = pytest.mark.explores

EXPECTED = table()
FOLDER = Path(__file__).resolve().parents[2] / "counterexamples" / "cases"
CORPUS = load_cases(FOLDER / "cases.toml")
REWRITE = os.environ.get("INSYNC_REWRITE", "") not in ("", "0")

HOLDS = None
"""In place of a number of steps: the property holds in every reachable state."""


def instance(case: Case, design: str, settings: Mapping[str, Value]) -> Instance:
    """A design at the bounds of the case, and without the actions that it leaves out."""
    return Instance(DESIGNS[design].without(*case.without), {**case.settings, **settings})


def fixed(case: Case) -> Instance:
    assert case.fixed_by is not None, f"{case.name} has a design that keeps the promise"
    return instance(case, case.fixed_by.design, case.fixed_by.settings)


@cache
def told(name: str) -> Mapping[str, str]:
    """The files of a case's folder, from scratch."""
    case = CORPUS.case(name)
    evaluator = Evaluator(instance(case, case.design, {}))
    found = explore(evaluator.instance, (case.property_name,)).finding(case.property_name)
    assert found.path is not None, f"{case.command} finds nothing, but {case.name} is a case"
    trace = record(
        evaluator,
        found.path.initial,
        found.path.steps,
        property_name=found.name,
        verdict=found.verdict,
        shortest=True,
        without=case.without,
    )
    return tell(case, trace, evaluator)


def compared(folder: Path, files: Mapping[str, str]) -> None:
    if REWRITE:
        write_files(folder, files)
    outdated = stale(folder, files)
    assert not outdated, f"{', '.join(outdated)} in {folder.name}/ is outdated; see the top of this file"


@pytest.mark.parametrize("case", CORPUS.cases, ids=lambda c: c.name)
def test_the_folder_of_a_case_is_what_the_model_says_today(case: Case) -> None:
    compared(FOLDER / case.name, told(case.name))


def test_the_index_lists_what_there_is() -> None:
    traces = {case.name: trace_from_text(told(case.name)[TRACE_FILE]) for case in CORPUS.cases}
    compared(FOLDER, {"README.md": index(CORPUS, traces)})


def test_every_folder_belongs_to_a_case() -> None:
    folders = {path.parent.name for path in FOLDER.glob(f"*/{TRACE_FILE}")}
    assert folders == {case.name for case in CORPUS.cases}


# What fixed it, at the same bounds.


@pytest.mark.parametrize("case", CORPUS.cases, ids=lambda c: c.name)
def test_what_fixed_a_case_keeps_the_promise_in_every_reachable_state(case: Case) -> None:
    """The table says so of the fix; tests/isr_protocol/test_expected.py explores each row of the table."""
    assert case.fixed_by is not None
    fix = Run(case.fixed_by.design, {**case.settings, **case.fixed_by.settings}, case.without)
    [said] = [said for run, said, _ in EXPECTED if run.name == fix.name]
    assert case.property_name in said.holds


@pytest.mark.parametrize("case", CORPUS.cases, ids=lambda c: c.name)
def test_the_two_designs_of_a_case_differ_in_nothing_but_what_the_case_says(case: Case) -> None:
    """Defaults differ between designs, so whatever counts has to be said."""
    broken, kept = instance(case, case.design, {}), fixed(case)
    differing = {name for name, value in broken.constants.items() if kept.constants[name] != value}
    assert case.fixed_by is not None
    assert differing == set(case.fixed_by.settings)


@pytest.mark.parametrize("name", ["jepsen-2013", "power-loss-divergence", "acks-one-lost", "offsets-go-back-2334"])
def test_the_commands_of_a_readme_do_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CORPUS.case(name)
    monkeypatch.chdir(tmp_path)
    readme = told(name)["README.md"]
    kept = {"HOLDS": 0, "TOO SMALL": 23}  # the README says of both what they mean
    for command, codes in ((case.command, {"VIOLATED": 12}), (case.fixed_command, kept)):
        assert f"\n{command}\n" in readme
        code = main([*command.split()[1:], "--quiet", "--out", "out"])
        run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
        ((promise, verdict),) = [(p["name"], p["verdict"]) for p in run["properties"]]
        assert promise == case.property_name
        assert codes[verdict] == code
        assert run["bounds"].get("without", "") == " ".join(case.without)
    assert main(["explain", str(FOLDER / name / TRACE_FILE)]) == 0
    assert main(["show", str(FOLDER / name / TRACE_FILE)]) == 0


# What the prose of the READMEs says beside its own case: these designs, changed settings, this many steps.

Claim = tuple[str, str, str, dict[str, Value], int | None]
NO_FAULT: dict[str, Value] = {"crashes": 0, "unnoticed": 0}
CLAIMS: list[Claim] = [
    ("jepsen-2013", "kafka-0.8", "acked-survives", {"unclean": False}, 8),
    ("jepsen-2013", "kip-966", "acked-survives", {"min_insync": 2}, HOLDS),
    ("hw-truncation-loss", "zookeeper", "weak-isr", {**NO_FAULT, "epochs": 2, "isr_changes": 2}, 7),
    ("hw-truncation-loss", "zookeeper", "committed-on-new-leader", {**NO_FAULT, "epochs": 3, "isr_changes": 3}, 9),
    ("hw-truncation-loss", "zookeeper", "committed-on-new-leader", {**NO_FAULT, "epochs": 2, "isr_changes": 2}, HOLDS),
    ("power-loss-divergence", "zookeeper", "no-divergence", {"lossy_crashes": 1}, 12),
    ("power-loss-divergence", "kip-101", "no-divergence", {}, 14),
    ("fast-failover-divergence", "kip-101", "no-divergence", {"records": 2}, HOLDS),
    ("fast-failover-divergence", "kip-101", "weak-isr", {"records": 2}, 11),
    ("fast-failover-divergence", "kip-101", "no-divergence", {"epochs": 1}, HOLDS),
    ("unfenced-fetch", "kip-279", "strong-isr", {"epochs": 1}, HOLDS),
    ("kip-320-first-try", "kip-320-first-try", "strong-isr", {"replicas": 2}, HOLDS),
    ("lagging-watermark-join", "kip-320-joins-at-watermark", "committed-on-new-leader", {"replicas": 2}, HOLDS),
    ("lagging-watermark-join", "kip-320-joins-at-watermark", "strong-isr", {"replicas": 2}, HOLDS),
    ("lagging-watermark-join", "kip-320-joins-at-watermark", "strong-isr", {"epochs": 1}, 11),
    ("lagging-watermark-join", "kip-279", "strong-isr", {"epochs": 1}, 11),
    ("committed-isr-watermark", "kip-497-committed-isr", "leaders-complete", {}, 7),
    ("fenced-rejoin", "kip-841", "leaders-complete", {"epochs": 1, "isr_changes": 3}, 7),
    ("unsynced-suffix", "kip-497", "acked-survives", {"flush": "always"}, HOLDS),
    ("unsynced-suffix", "kip-497", "acked-survives", {"lossy_crashes": 0, "crashes": 1}, HOLDS),
    ("unsynced-suffix", "kip-497", "acked-survives", {"unnoticed": 0}, HOLDS),
    ("unsynced-suffix", "kip-841", "acked-survives", {}, HOLDS),
    ("unsynced-suffix", "kip-903", "acked-survives", {"epochs": 2, "isr_changes": 3}, 9),
    ("follower-read-back-in-time", "kip-392-no-wait", "reads-stable", {"replicas": 2}, 6),
    ("minimum-of-one", "kip-966", "acked-survives", {"lossy_crashes": 0, "crashes": 1}, HOLDS),
    ("forgotten-epoch-7415", "kafka-7415", "committed-on-new-leader", {"epochs": 2}, HOLDS),
    ("forgotten-epoch-7415", "kafka-7415", "committed-on-new-leader", {"log": 1}, HOLDS),
    ("skipped-truncation-7164", "kafka-7164", "no-divergence", {"replicas": 2}, HOLDS),
    ("skipped-truncation-7164", "kafka-7164", "leaders-complete", {}, 17),
    ("unnoticed-bounce-7235", "kip-841", "no-divergence", {}, HOLDS),
    ("overtaken-request", "request-expires", "acked-survives", {}, HOLDS),
    ("overtaken-request", "kafka-overtaken-request", "acked-survives", {"sessions_lost": 1}, HOLDS),
    ("overtaken-request", "kafka-overtaken-request", "acked-survives", {"own_view": False, "sessions_lost": 1}, 13),
    ("kept-positions", "kafka-resets-skipped", "acked-survives", {}, HOLDS),
    ("kept-positions", "kafka-keeps-positions", "acks-meet-minimum", {}, 11),
    ("kept-positions", "kafka-keeps-positions", "acked-survives", {"producers_wait": False}, HOLDS),
    ("last-leader-lost-more", "recovery-manual", "acked-survives", {}, HOLDS),
    ("recovery-asks-too-few", "kip-966", "acked-survives", {}, 9),
    ("aggressive-recovery", "kip-966", "acked-survives", {}, HOLDS),
    ("aggressive-recovery", "kip-966", "acked-survives", {"unclean": True}, 7),
    ("bounded-isr-trusts-the-dead", "jepsen-bounded-halt", "acked-survives", {"lossy_crashes": 0, "crashes": 1}, HOLDS),
    ("all-in-sync-and-lost", "zookeeper", "acked-survives", {}, 11),
    (
        "bounded-isr-trusts-the-dead",
        "jepsen-bounded-struck",
        "acked-survives",
        {"sessions_lost": 1, "isr_changes": 4},
        10,
    ),
]


SAID_OF_STEPS = {
    "kept-positions": {
        4: "leader_answers_fetch",
        5: "controller_moves_leadership",
        8: "leader_answers_diverging",
        9: "controller_fences_leader",
        10: "becomes_leader",
        11: "controller_moves_leadership",
        12: "follower_truncates",
        13: "becomes_leader",
    },
    "overtaken-request": {
        5: "controller_fences_follower",
        6: "controller_unfences",
        8: "leader_proposes_expansion",
        9: "controller_fences_outsider",
        11: "leader_learns_brokers",
        12: "leader_answers_fetch",
        13: "controller_unfences",
        14: "controller_accepts_alter_partition",
    },
    "raised-min-insync": {
        1: "controller_sets_minimum",
        2: "controller_fences_follower",
        3: "leader_appends",
        4: "leader_learns_isr",
        5: "controller_unfences",
        6: "controller_fences_leader",
        7: "becomes_leader",
    },
    "answered-before-metadata": {
        2: "leader_proposes_shrink",
        3: "controller_sets_minimum",
        4: "controller_accepts_alter_partition",
        5: "controller_fences_leader",
        6: "leader_adopts_isr",
        7: "becomes_leader",
    },
    "last-leader-lost-more": {
        5: "broker_loses_power",
        6: "broker_crashes",
        7: "controller_fences_follower",
        8: "controller_fences_last_leader",
        9: "broker_restarts",
        10: "broker_restarts",
        11: "controller_elects_last_known_leader",
        12: "becomes_leader",
    },
    "recovery-asks-too-few": {
        3: "follower_appends",
        4: "leader_proposes_shrink",
        5: "leader_answers_fetch",
        6: "broker_loses_power",
        7: "controller_accepts_alter_partition",
        8: "controller_fences_last_leader",
        9: "broker_restarts",
        10: "controller_unfences",
        11: "controller_recovers",
    },
    "aggressive-recovery": {
        4: "controller_fences_last_leader",
        5: "controller_recovers",
        6: "leader_adopts_isr",
        7: "becomes_leader",
    },
    "all-in-sync-and-lost": {
        6: "leader_answers_fetch",
        7: "leader_answers_fetch",
        8: "controller_moves_leadership",
        9: "becomes_follower",
        10: "controller_moves_leadership",
        11: "becomes_leader",
    },
    "evicted-alone": {2: "leader_evicts_alone", 3: "controller_moves_leadership", 4: "becomes_leader"},
    "bounded-isr-trusts-the-dead": {
        5: "broker_loses_power",
        6: "controller_fences_leader",
        7: "broker_restarts",
        8: "controller_unfences",
        9: "controller_moves_leadership",
        10: "becomes_leader",
    },
    "removed-replica": {
        1: "controller_removes_replica",
        2: "becomes_leader",
        3: "leader_appends",
        4: "controller_adds_replica",
        5: "controller_fences_leader",
    },
    "assigned-directory": {
        4: "broker_asks_to_shut_down",
        9: "broker_shuts_down",
        10: "disk_is_replaced",
        11: "broker_restarts",
        13: "controller_learns_directory",
        14: "controller_elects_last_known_leader",
    },
    "removed-directory": {
        6: "controller_fences_leader",
        8: "broker_shuts_down",
        9: "directory_is_removed",
        10: "broker_restarts",
        12: "controller_fences_leader",
        13: "becomes_leader",
    },
    "forgotten-proposal": {
        4: "leader_proposes_shrink",
        6: "controller_accepts_alter_partition",
        7: "leader_adopts_isr",
        8: "leader_proposes_expansion",
        9: "leader_answers_fetch",
        10: "leader_hears_known_version",
        11: "controller_accepts_alter_partition",
        12: "controller_moves_leadership",
    },
    "reassigned-below-minimum-15665": {1: "controller_fences_follower", 2: "controller_reassigns_at_once"},
    "reassignment-held-up-19975": {
        1: "controller_fences_follower",
        2: "controller_starts_reassignment",
        7: "controller_accepts_alter_partition",
    },
    "completed-below-minimum": {
        1: "controller_fences_follower",
        2: "controller_starts_reassignment",
        5: "leader_answers_fetch",
        6: "leader_proposes_expansion",
        7: "controller_accepts_and_completes",
    },
    "replaced-target": {1: "controller_starts_reassignment", 2: "controller_starts_reassignment"},
    "back-before-fenced-18106": {5: "broker_replaces_registration", 7: "leader_appends", 9: "follower_appends"},
    "clean-shutdown-struck-18635": {
        6: "broker_loses_power",
        9: "broker_shuts_down",
        10: "broker_restarts",
        11: "broker_restarts",
        12: "controller_elects_last_known_leader",
    },
    "absent-last-leader-19522": {4: "broker_restarts", 5: "controller_elects_absent_last_leader"},
    "own-minimum-16540": {
        1: "controller_fences_follower",
        3: "broker_overrides_minimum",
        4: "leader_learns_isr",
        6: "controller_fences_leader",
        7: "becomes_leader",
    },
    "cleared-elr": {2: "controller_fences_last_leader", 3: "controller_sets_minimum"},
    "recreated-replica-16234": {
        1: "controller_fences_follower",
        3: "leader_learns_isr",
        4: "directory_fails",
        5: "controller_fences_last_leader",
        6: "replica_is_recreated",
        7: "controller_elects_returned",
    },
    "misplaced-replica-16297": {1: "replica_moves", 2: "directory_fails", 3: "controller_hears_of_directory"},
}
"""What the prose of a found bug says that its steps do; the steps that it names are these."""


@pytest.mark.parametrize("name", SAID_OF_STEPS)
def test_the_steps_that_the_prose_names_do_what_it_says(name: str) -> None:
    named = {int(n) for n in re.findall(r"\bT(\d+)\b", CORPUS.case(name).why_fails)}
    done = [step.action for step in trace_from_text((FOLDER / name / TRACE_FILE).read_text()).steps]
    assert {n: done[n - 1] for n in named} == SAID_OF_STEPS[name]


def steps(found: Exploration, name: str) -> int | None:
    path = found.finding(name).path
    assert found.complete or path is not None
    return len(path.steps) if path is not None else HOLDS


@pytest.mark.parametrize(
    "claim", sample(((c,) for c in CLAIMS), 4), ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}-{'-'.join(c[3])}"
)
def test_what_a_readme_says_of_other_settings_is_so(claim: Claim) -> None:
    name, design, property_name, settings, expected = claim
    found = explore(instance(CORPUS.case(name), design, settings), (property_name,))
    assert steps(found, property_name) == expected


@pytest.mark.parametrize(
    ("name", "design", "without", "settings", "expected"),
    [
        ("unfenced-fetch", "kip-279", (), {}, 11),
        pytest.param("overtaken-request", "kafka-overtaken-request", (), {}, 16, marks=pytest.mark.slow),
        pytest.param("power-loss-divergence", "zookeeper", (), {}, 11, marks=pytest.mark.slow),
        pytest.param("power-loss-divergence", "kip-279", (), {}, HOLDS, marks=pytest.mark.slow),
        pytest.param("fenced-rejoin", "kip-497", (), {}, 10, marks=pytest.mark.slow),
        pytest.param("fenced-rejoin", "kip-841", (), {}, 11, marks=pytest.mark.slow),
        (
            "lagging-watermark-join",
            "kip-320-joins-at-watermark",
            ("controller_moves_leadership",),
            {"sessions_lost": 2},
            HOLDS,
        ),
    ],
)
def test_what_a_readme_says_with_other_actions_left_out_is_so(
    name: str, design: str, without: tuple[str, ...], settings: dict[str, Value], expected: int | None
) -> None:
    case = CORPUS.case(name)
    other = Instance(DESIGNS[design].without(*without), {**case.settings, **settings})
    assert steps(explore(other, (case.property_name,)), case.property_name) == expected


WRITING = [name for name, design in DESIGNS.items() if "acked-survives" in [p.name for p in design.properties]]


def test_nothing_is_written_in_the_designs_of_reassignment_alone() -> None:
    assert len(DESIGNS) - len(WRITING) == 3


@pytest.mark.parametrize("name", sample(WRITING, 8))
def test_acks_of_one_are_lost_in_every_design_that_writes(name: str) -> None:
    settings = {**CORPUS.case("acks-one-lost").settings, "replicas": 3 if name == "majority" else 2}
    found = explore(Instance(DESIGNS[name], settings), ("acked-survives",))
    assert steps(found, "acked-survives") == (2 if name == "majority" else 3)


# The corpus is complete.

ROWS = (
    "jepsen-2013",
    "hw-truncation-loss",
    "power-loss-divergence",
    "fast-failover-divergence",
    "unfenced-fetch",
    "kip-320-first-try",
    "lagging-watermark-join",
    "committed-isr-watermark",
    "stale-partition-epoch",
    "stale-broker-epoch",
    "fenced-rejoin",
    "last-replica-standing",
    "unsynced-suffix",
    "follower-read-back-in-time",
    "acks-one-lost",
    "minimum-of-one",
)
NUMBERS = (
    7164, 7415, 2334, 7235, 12367, 13091, 13141, 14704, 15510, 15583, 15221,
    16540, 19996, 15021, 14144, 14154, 13587, 10101, 7786, 20554, 9672, 6638,
    15665, 19975, 16757, 16952, 18106, 18635, 19522, 16234, 16297,
)  # fmt: skip


def test_the_sixteen_bugs_to_be_found_by_name_come_first() -> None:
    assert tuple(case.name for case in CORPUS.cases[:16]) == ROWS


def test_every_number_of_the_wider_list_is_a_case_or_waits_for_a_part() -> None:
    listed = [case.name for case in CORPUS.cases] + [waiting.name for waiting in CORPUS.waiting]
    for number in NUMBERS:
        found = [name for name in listed if name.endswith(f"-{number}")]
        assert len(found) == 1, f"KAFKA-{number}: {found}"
    assert len(CORPUS.cases) >= len(ROWS) + 8
