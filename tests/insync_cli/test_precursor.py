"""What `insync check` says of promises that a leader may break which lacks a committed record.

Without these HOLDS would be printed where the bounds end before what such a leader commits next.
"""

import re
from pathlib import Path

import pytest
from tests.support.check_runs import check, run_of

from insync_cli.options import RunningEach
from insync_cli.review.matrix import explored
from isr_audit.answers import explored as answered
from isr_audit.questions import Question
from isr_check import explorer, native
from isr_check.engine import Engine, Limits, silent
from isr_lang import Instance, Value
from isr_protocol.by_name import DESIGNS
from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS
from isr_protocol.promises import safety
from isr_protocol.promises.premises import OF_COMMITTED_RECORDS, PRECURSOR
from isr_report.matrix.plan import Cell

TOP = Path(__file__).resolve().parents[2]
GROWS = "committed-only-grows"
LACKS = "a leader lacks a committed record here (in 14 steps)"
SMALL: dict[str, Value] = {"replicas": 2, "log": 1, "records": 1}


def verdicts(folder: Path) -> dict[str, str]:
    return {line["name"]: line["verdict"] for line in run_of(folder)["properties"]}


@pytest.mark.explores
def test_a_promise_alone_is_too_small_beside_a_leader_that_lacks_a_committed_record(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With twice the room it is violated; nobody asked of committed-on-new-leader, which is violated here."""
    assert check(f"kafka-7415 --property {GROWS}") == 23
    run = run_of(folder)
    assert [line["name"] for line in run["properties"]] == [GROWS], "the probe is no property that anybody asked about"
    assert run["precursor"] == {
        "name": "leader-lacks-committed",
        "text": "A leader lacks a committed record.",
        "steps": 14,
        "promises": [GROWS],
    }
    out = capsys.readouterr().out
    assert f"not violated, but {LACKS}, and these bounds may cut off what follows" in " ".join(out.split())
    assert out.splitlines()[-1].startswith(
        f"insync check kafka-7415: TOO SMALL - {GROWS} may break later: {LACKS}, and what follows may take larger "
        "--log, --records, --epochs or --isr-changes"
    )
    assert out.splitlines()[-1] in " ".join((TOP / "docs" / "bounds.md").read_text(encoding="utf-8").split())


def test_the_page_names_the_promises() -> None:
    page = (TOP / "docs" / "bounds.md").read_text(encoding="utf-8")
    rows = page.partition("| promises about committed records |\n|---|\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([^`]+)`", rows)) == OF_COMMITTED_RECORDS


@pytest.mark.explores
@pytest.mark.parametrize(
    ("command", "too_small"),
    [
        ("kafka-7415", {GROWS, "no-divergence", "implements-committed-log"}),
        ("kafka-7415 --acks 1", {GROWS, "no-divergence", "implements-committed-log"}),
        ("kip-497-committed-isr --unclean on", {GROWS}),
        ("zookeeper", {GROWS}),
    ],
)
def test_what_larger_bounds_violate_does_not_hold_beside_what_is_violated(
    folder: Path, command: str, too_small: set[str]
) -> None:
    assert check(f"{command} --quiet") == 12
    said = verdicts(folder)
    assert said["committed-on-new-leader"] == "VIOLATED"
    assert {name for name, verdict in said.items() if verdict == "TOO SMALL"} == too_small
    assert not {name for name, verdict in said.items() if verdict == "HOLDS"} & OF_COMMITTED_RECORDS
    assert {said["type-ok"], said["one-leader-per-epoch"], said["watermark-within-log"]} == {"HOLDS"}, "of other things"


@pytest.mark.explores
@pytest.mark.parametrize(
    "command",
    [
        f"kip-966 --replicas 2 --property {GROWS} --property no-divergence --property writes-meet-minimum",
        "kafka-7415 --property writes-meet-minimum",
    ],
)
def test_a_promise_holds_where_no_leader_lacks_a_record_or_where_it_speaks_of_something_else(
    folder: Path, command: str
) -> None:
    assert check(f"{command} --quiet") == 0
    assert set(verdicts(folder).values()) == {"HOLDS"}
    assert run_of(folder)["precursor"] is None


@pytest.mark.explores
def test_what_a_limit_leaves_undecided_stays_so(folder: Path) -> None:
    assert check(f"kafka-7415 --property {GROWS} --max-states 20000 --quiet") == 20
    assert verdicts(folder) == {GROWS: "BUDGETED"}
    assert run_of(folder)["precursor"] is None


@pytest.mark.explores
@pytest.mark.parametrize("engine", [native.explore, explorer.explore])
def test_an_exploration_ends_as_early_as_without_the_probe(engine: Engine) -> None:
    """No leader ever lacks a committed record here, so whoever waits for one sees every state."""
    instance = Instance(DESIGNS["kafka-0.8"], {**SMALL, "epochs": 1, "isr_changes": 2, "crashes": 1})
    names, premises = ("leaders-complete",), IN_SYNC_REPLICAS.premises(["leaders-complete"])
    probes = IN_SYNC_REPLICAS.probes(names)
    assert probes == (*premises, PRECURSOR)
    few = engine(instance.promising(*premises), (*names, *(p.name for p in premises)), Limits(), silent)
    same = engine(instance.promising(*probes), (*names, *(p.name for p in probes)), Limits(), silent)
    whole = engine(instance.promising(*probes), (), Limits(), silent)
    assert whole.complete
    assert same.distinct == few.distinct < whole.distinct
    assert PRECURSOR.name not in {f.name for f in same.findings}, "it is not decided"


def test_the_probe_is_what_committed_on_new_leader_denies() -> None:
    instance = Instance(DESIGNS["kafka-7415"], {}).promising(PRECURSOR)
    names = (safety.committed_on_new_leader.name, PRECURSOR.name)
    findings = native.explore(instance, names, Limits(), silent).findings
    assert [len(f.path.steps) for f in findings if f.path is not None] == [14, 14]


@pytest.mark.explores
def test_the_audit_and_the_matrix_say_so_too(tmp_path: Path) -> None:
    design = DESIGNS["kafka-7415"]
    instance = Instance(design, IN_SYNC_REPLICAS.noticing_constants(design, {}, [GROWS], whatever_it_takes=False))
    assert answered(Question(design.name, GROWS, instance.constants), Limits(), silent).verdict == "TOO SMALL"
    cell = Cell(design.name, {}, "none", instance.constants, (GROWS,))
    entry, _ = explored(cell, instance, RunningEach(), tmp_path, "0")
    assert [p["verdict"] for p in entry["promises"]] == ["TOO SMALL"]
