"""Parts of the report: what is traced to what, what changed since, and reports of other verbs as tables."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from insync_cli import registry
from insync_cli.main import main
from insync_cli.review.report import EVERYTHING
from isr_model import KIP_966
from isr_report.html import picture
from isr_report.material import IncludedReport, Material, questions
from isr_report.matrix.grid import CellEntry, Matrix, PromiseEntry
from isr_report.matrix.plan import load_plan
from isr_report.matrix.since import since
from isr_report.sections import conformance, experiments, overview
from isr_report.sections.distance import distance
from isr_report.sections.findings import signs
from isr_report.traceability import TraceabilityTable, mentions, trace_to_sources
from isr_trace.itf import read_itf

pytestmark = [pytest.mark.explores, pytest.mark.processes]

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def traced() -> TraceabilityTable:
    instances = [registry.instance_of(KIP_966, settings) for settings in EVERYTHING]
    return trace_to_sources(instances, TOP, ["impl/isr_broker"], "tests", killers={}, replayed={"leader_appends": 7})


def test_every_action_and_promise_of_the_model_has_its_row(traced: TraceabilityTable) -> None:
    assert [a.name for a in traced.actions] == [a.name for a in KIP_966.actions]
    assert [p.name for p in traced.promises] == [p.name for p in KIP_966.properties]


def test_the_function_that_is_an_action_is_found(traced: TraceabilityTable) -> None:
    rows = {a.name: a for a in traced.actions}
    assert [(p.file, p.symbol) for p in rows["leader_appends"].broker] == [
        ("impl/isr_broker/core/leader.py", "leader_appends")
    ]
    assert rows["leader_appends"].replayed == 7
    assert any(p.file.endswith("elections.py") for p in rows["controller_fences_leader"].broker), "by what it names"


def test_the_actions_of_a_promise_are_those_that_write_what_it_reads(traced: TraceabilityTable) -> None:
    rows = {p.name: p for p in traced.promises}
    assert "leader_answers_fetch" in rows["committed-only-grows"].actions
    assert "controller_unfences" not in rows["committed-only-grows"].actions
    assert all(p.actions for p in traced.promises), "with the settings together every promise reads something"


def test_what_nobody_names_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "code" / "a.py").write_text('def leader_appends():\n    """Model: follower_appends."""\n')
    (tmp_path / "tests" / "test_a.py").write_text(
        'def test_it():\n    assert "acked-survives"\n\ndef helper():\n    "x"\n'
    )
    found = trace_to_sources([registry.instance_of(KIP_966, {})], tmp_path, ["code"], "tests", killers={}, replayed={})
    assert "no function of the broker names the action leader_answers_fetch" in found.missing
    assert "no test names the promise leaders-complete" in found.missing
    assert not [line for line in found.missing if "action leader_appends" in line and "broker" in line]
    assert not [line for line in found.missing if "follower_appends" in line and "broker" in line], (
        "a docstring says so"
    )
    assert "no test names the promise acked-survives" not in found.missing
    assert mentions(tmp_path, ["tests"], ["x"], tests=True) == {}, "a helper is no test"


def matrix(*, verdict: str = "HOLDS", distinct: int = 10, seconds: float = 2.0, model: str = "m") -> Matrix:
    promise = PromiseEntry(
        name="p", kind="always", verdict=verdict, depth=3 if verdict == "VIOLATED" else None, trace=None
    )
    cell = CellEntry(
        name="d-crash", design="d", model_hash=model, settings={}, fault="crash", constants={}, run="r", command=["c"],
        distinct=distinct, generated=20, depth=4, seconds=seconds, complete=True, promises=[promise],
    )  # fmt: skip
    return Matrix(
        schema="s", version="v", designs=[], promises={}, settings={}, faults=[], usual={}, client={}, cells=[cell]
    )


def test_what_changed_since_an_earlier_report_is_named() -> None:
    same = since(matrix(), matrix())
    assert (same.verdicts, same.sizes, same.models, same.unusual) == ((), (), (), {})
    other = since(matrix(), matrix(verdict="VIOLATED", distinct=11, seconds=9.0, model="n"))
    assert [(c.what, c.before.strip(), c.after) for c in other.verdicts] == [("p", "HOLDS", "VIOLATED 3")]
    assert [(c.before, c.after) for c in other.sizes] == [("10", "11")]
    assert other.models == ("d",)
    assert other.unusual == {"d": (2.0, 9.0)}, "outside of the band"
    assert since(matrix(seconds=0.01), matrix(seconds=0.09)).unusual == {}, "too short to say anything"


def given(**report: object) -> IncludedReport:
    return IncludedReport(file="included/x.json", report=cast("Mapping[str, object]", report))


def test_reports_of_conformance_are_tables_and_what_is_not_given_is_said() -> None:
    nothing = conformance.section([])
    assert nothing.count("Nothing was given to this report") == 4
    replay = given(
        schema="insync/replay/1", design="kip-966", bounds={"replicas": 3, "crashes": 0}, complete=True, states=1000,
        edges=5000, replayed=4990, pairs={"replayed": 7, "of": 8}, explained={"why": 10},
        mismatches={"missing action": 0},
    )  # fmt: skip
    shown = conformance.section([replay])
    assert "HOLDS" in shown
    assert all(f"{word}<" in shown for word in ("replicas 3", "1,000", "5,000", "4,990", "7 of 8"))
    assert conformance.section([given(schema="insync/replay/1")]).count("not said") >= 4, (
        "verbs grow, and others shrink"
    )
    broken: dict[str, object] = {**replay["report"], "mismatches": {"missing action": 2}, "examples": [
        {"kind": "missing action", "action": "b", "parameters": [1], "path": [["a", []]]}]}  # fmt: skip
    assert (
        "<b>missing action</b> after</p><ol><li><code>a()</code></li><li><b><code>b(1)</code>"
        in conformance.section([given(**broken)])
    )


def test_a_rejected_trace_stands_out() -> None:
    no = {"life": "2.1", "line": 9, "action": "a", "why": "b", "guards": ["g < h"]}
    shown = conformance.section([given(schema="insync/validate/1", lives=3, events=40, rejected=no)])
    assert "2.1.jsonl:9" in shown
    assert "<code>g &lt; h</code>" in shown


def test_what_insync_kills_writes_is_the_kill_table_and_a_bug_that_nobody_finds_stands_out(tmp_path: Path) -> None:
    written = tmp_path / "kills.json"
    asked = ["kills", "join-at-watermark", "keep-elr", "--layer", "model", "--quiet", "--json", str(written)]
    assert main(asked) == 0
    report = cast("dict[str, object]", json.loads(written.read_text(encoding="utf-8")))
    bugs = cast("dict[str, dict[str, dict[str, str] | None]]", report["bugs"])
    assert conformance.is_conformance(report)
    shown = conformance.section([given(**report)])
    found = bugs["join-at-watermark"]["model"]
    assert found is not None
    assert f"<code>join-at-watermark</code></td><td><code>{found['what']}</code>" in shown
    assert found["where"] in shown
    assert "nothing notices" not in shown
    assert "2 of 2 planted bugs are found" in shown
    bugs["keep-elr"]["model"] = None
    shown = conformance.section([given(**report)])
    assert shown.count("nothing notices") == 1
    assert "1 of 2 planted bugs are found" in shown


def test_an_experiment_is_a_table_of_losses_and_a_picture_of_each_run() -> None:
    fate = {"phase": "all", "began": 0.0, "attempted": 1000, "acknowledged": 987, "survived": 467, "lost": 520}
    run: dict[str, object] = {
        "cell": "kafka-0.8", "number": 0, "valid": True, "fates": [fate],
        "faults": [{"kind": "leader cut off", "began": 1.0, "healed": None}],
        "controller": [{"at": 0.0, "leader": 2, "isr": [2, 3]}, {"at": 1.5, "leader": None, "isr": []}],
        "windows": [{"at": 0.0, "acked": 400, "lost": 0}, {"at": 1.0, "acked": 587, "lost": 520}],
    }  # fmt: skip
    cell = {"name": "kafka-0.8", "expected": "loses", "model": {"loses": True}, "verdict": "AS EXPECTED", "runs": [run]}
    shown = experiments.section([given(schema=experiments.SCHEMA, experiment="jepsen", cells=[cell])])
    row = shown[shown.index("<b>kafka-0.8</b>") :]
    assert [f">{n}<" in row for n in ("1,000", "987", "467", "520")] == [True] * 4
    assert "loses</td>" in row
    picture = experiments.picture(run)
    assert picture.count('class="acked"') == 2
    assert picture.count('class="lost"') == 1
    assert "520 of 587 acknowledged in this second are lost" in picture
    assert 'class="lead gone"' in picture, "while nobody leads"
    assert "1 fault, 520 acknowledged writes lost" in picture
    assert "No experiment was given" in experiments.section([])
    sums: dict[str, object] = {"acknowledged": 987, "lost": 520, "lost_unacknowledged": 2}
    shown = experiments.section([given(schema=experiments.SCHEMA, experiment="jepsen", cells=[], totals=sums)])
    assert "520 of them lost, and 2 that somebody read, though they were never acknowledged." in shown


def test_an_experiment_says_three_rates_with_their_wholes_and_how_long_writes_waited() -> None:
    rates = [{"says": "lost of acknowledged", "part": 520, "of": 987}, {"says": "found", "part": 0, "of": 0}]
    spread = {"writes": 9, "p50": 2.5, "p99": 4_100.0, "longest": 4_200.5}
    waits = [{"phase": "cut", "acknowledged": spread, "majority": None}]
    cell = {"name": "acks=all", "rates": rates, "timed": True, "runs": [{"waits": waits}]}
    shown = experiments.section([given(schema=experiments.SCHEMA, experiment="latency", cells=[cell])])
    assert "520 of 987, 52.7%" in shown
    assert ">0 of 0<" in shown
    assert "acknowledged, p99, ms" in shown
    assert ">4,100<" in shown
    assert "a majority had it, p50, ms" in shown
    quiet = experiments.section([given(schema=experiments.SCHEMA, experiment="x", cells=[{**cell, "timed": False}])])
    assert "a majority" not in quiet


def of_two_faults() -> Material:
    """A design that bears one fault and not two, and what it does at the recommended settings."""
    whole = matrix()
    [cell] = whole["cells"]
    whole["usual"], whole["client"], whole["designs"] = (
        {"acks": "all"},
        {"p": "It survives"},
        [{"name": "d", "summary": ""}],
    )
    whole["faults"], whole["cells"] = [], []
    for name, count, verdict, replicas in (
        ("none", 0, "VACUOUS", 2),
        ("crash", 1, "HOLDS", 2),
        ("crash-twice", 2, "VIOLATED", 2),
        ("three-crashes", 2, "VIOLATED", 3),
    ):
        says = f"what {name} is"
        whole["faults"].append({"name": name, "says": says, "count": count, "recommended": replicas == 3})
        broken = verdict == "VIOLATED"
        entry: PromiseEntry = {"name": "p", "kind": "always", "verdict": verdict, "depth": 12 if broken else None,
                               "trace": f"{name}.json" if broken else None}  # fmt: skip
        more = {"fault": name, "name": name, "settings": {"acks": "all"}, "constants": {"replicas": replicas}}
        whole["cells"].append(cast("CellEntry", {**cell, **more, "promises": [entry]}))
    return cast("Material", SimpleNamespace(matrix=whole, folder="matrix", pages={}))


def test_the_summary_says_what_two_faults_do_and_each_mark_is_a_word() -> None:
    shown = overview.overview(of_two_faults())
    [square] = re.findall(r"<td>(<p class=.said.*?)</td>", shown)
    words = re.findall(r'<span class="verdict \w+">(\w+( \w+)?)</span> <small>([^<]*)', square)
    assert [(word, many) for word, _, many in words] == [("HOLDS", "one fault"), ("VIOLATED", "two faults")]
    assert re.findall(r">([\w-]+) <b>(\d+)</b></a>", square) == [("crash-twice", "12")]
    assert 'aria-label="what crash-twice is: VIOLATED in 12 steps"' in square
    assert "untested: no fault" in square
    assert not set(square) & set("".join(overview.SIGNS.values())), "no bare symbol"
    assert "<dt>crash-twice</dt><dd>what crash-twice is</dd>" in shown
    line = overview.summary_line(of_two_faults(), "d", "p")
    assert line.startswith("d, p: one fault HOLDS; two faults VIOLATED (crash-twice in 12 steps); 3 replicas, acks all")


def test_the_recommended_settings_are_three_replicas_and_a_minimum_of_two() -> None:
    shown = overview.overview(of_two_faults())
    first = shown[: shown.index("In the smallest world: 2 replicas, acks all")]
    assert "The recommended settings: 3 replicas, acks all" in first
    assert first.count("in 12 steps") == 1
    found = [f for f in load_plan().faults if f.is_recommended]
    assert {f.count for f in found} == {1, 2}
    for fault in found:
        assert fault.bounds["replicas"] == 3
        assert fault.only == {"min_insync": "2", "unclean": "off", "acks": "all"}
    asked = [q for q in questions() if q.fault in {f.name for f in found}]
    assert asked, "a card speaks of them, too"


def test_each_question_is_understood_without_the_others() -> None:
    for q in questions():
        assert re.match(r"(Can|Did|Does) [^?]+\?$", q.asks), q.asks
        assert not re.search(r"\b(it|there|that change|besides)\b", q.asks), q.asks
        assert re.search(r"\b(records?|replicas)\b", q.asks), q.asks


def test_every_sign_of_the_grid_has_a_word() -> None:
    assert set(overview.SIGN_MEANINGS) == set(overview.SIGNS)
    assert all(f"<dd>{says}</dd>" in signs() for says in overview.SIGN_MEANINGS.values())


def test_a_lane_says_what_follows_from_it() -> None:
    trace = read_itf(TOP / "counterexamples" / "cases" / "jepsen-2013" / "trace.itf.json")
    lanes = [re.findall(r'class="derived">([^<]*)', picture(trace, at)) for at in range(len(trace.states))]
    assert lanes[0] == ["LEO 0, HW 0, ISR {r1, r2}", "LEO 0, HW 0"]
    assert any(lane[0].endswith(", ISR {r1}") for lane in lanes), "it shrinks"
    trace = read_itf(TOP / "counterexamples" / "cases" / "overtaken-request" / "trace.itf.json")
    lanes = [re.findall(r'class="derived">([^<]*)', picture(trace, at)) for at in range(len(trace.states))]
    assert any("maximal ISR {" in lane[0] for lane in lanes), "while a change is under way"


def test_the_fewest_faults_are_those_of_the_calmest_run_that_shows_it() -> None:
    calm, crash, two = (matrix(), matrix(verdict="VIOLATED"), matrix(verdict="VIOLATED"))
    whole = matrix()
    for n, (name, one) in enumerate({"none": calm, "crash": crash, "twice": two}.items()):
        one["cells"][0]["fault"] = name
        whole["faults"].append({"name": name, "says": "", "count": n, "recommended": False})
    whole["cells"] = [*calm["cells"], *crash["cells"], *two["cells"]]
    found = distance(whole, "d", {}, "p")
    assert found is not None
    assert (found.faults, found.beyond, found.cell) == (1, 2, crash["cells"][0])
    whole["cells"] = [*calm["cells"]]
    found = distance(whole, "d", {}, "p")
    assert found is not None
    assert found.faults is None, "it was not seen"
    assert distance(whole, "d", {}, "q") is None, "it was not asked"
