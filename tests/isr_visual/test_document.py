"""The data of a page: the same as the command line says, and nothing that the model does not do.

Without these, a page could show a message that nobody sent, or a trace that the model does not have.
"""

import json
from pathlib import Path

import attrs
import pytest
from py_mini_racer import MiniRacer
from tests.support.models import copied_log, thermostat
from tests.support.pages import CORPUS, document_of, page_text, plain_page, trace_file
from tests.support.traces import evaluator, violation

from insync_cli.main import main
from insync_cli.tracefiles import replayable
from isr_lang import show
from isr_lang.nodes import OPERATORS
from isr_lang.types import ChoiceType, MapType
from isr_model import KIP_966
from isr_trace.itf import read_itf, trace_from_text
from isr_trace.replay import Replay, run_of
from isr_trace.trace import TraceError
from isr_visual.document import Document, Model, document
from isr_visual.model_script import MEANING, model_script
from isr_visual.page import HERE, SCRIPT, SCRIPTS, STYLE, STYLES, page
from isr_visual.roles import ACKED, CONTROLLER, FOLLOWER_END, LEADER, LOG, MAIL, METADATA, ROOM
from isr_visual.states import expressions

pytestmark = pytest.mark.explores

CASE = "hw-truncation-loss"


@pytest.fixture(scope="module")
def told() -> Document:
    return document_of(CASE)


def lost(told: Document) -> list[int]:
    return [i for i, lines in enumerate(told["lost"]) if lines]


def test_the_document_says_what_the_command_line_says(tmp_path: Path, told: Document) -> None:
    assert main(["show", str(trace_file(CASE)), "--html", str(tmp_path / "p.html"), "--json", str(tmp_path / "p")]) == 0
    report = json.loads((tmp_path / "p").read_text())
    assert [
        {"step": s["step"], "action": s["action"], "parameters": s["parameters"], "changes": s["changes"]}
        for s in told["steps"]
    ] == report["steps"]
    assert {p["name"]: p["holds"] for p in told["properties"]} == report["properties"]
    assert main(["explain", str(trace_file(CASE)), "--json", str(tmp_path / "e")]) == 0
    explained = json.loads((tmp_path / "e").read_text())
    broken = next(p for p in told["properties"] if p["name"] == told["property"])
    at = broken["reasons"][-1]
    assert at is not None
    assert told["reasons"][at] == explained["reason"]
    assert [(s["role"], s["enables"]) for s in told["steps"]] == [(s["role"], s["enables"]) for s in explained["steps"]]


def test_the_first_step_into_a_broken_state_is_the_last_of_a_shortest_trace(told: Document) -> None:
    broken = next(p for p in told["properties"] if p["name"] == told["property"])
    assert broken["holds"].index(False) == len(told["steps"])
    assert lost(told) == [8, 9], "at risk as soon as the controller elects who does not have the record"
    assert [told["lost"][i][0].split(":")[0] for i in (8, 9)] == ["AT RISK", "LOST"]


def test_a_message_is_an_arrow_from_the_step_that_sent_it_to_the_one_that_took_it(told: Document) -> None:
    said = [(a["text"], a["source"], a["target"], a["sent"], a["taken"], a["lost"]) for a in told["arrows"]]
    assert ("fetch", "r2", "r1", 0, 2, False) in said, "it was there from the start"
    assert ("records", "r1", "r2", 2, 3, False) in said
    assert ("records", "r1", "r2", 4, 5, True) in said, "r2 crashed before it read the answer"
    assert ("fetch", "r2", "r1", 7, None, False) in said, "still under way in the end"
    assert ("metadata 1", "controller", "r2", 8, 9, False) in said
    assert ("ack 0", "r1", "clients", 4, 4, False) in said


def test_the_other_design_parts_where_the_log_is_not_cut(told: Document) -> None:
    against = told["against"]
    assert against is not None
    assert (against["label"], against["parts"]) == ("kip-101", 7)
    assert {"path": "log[r2]", "before": "", "after": "0"} in against["turns"][7]["apart"]
    assert not any(told["property"] in turn["broken"] for turn in against["turns"])


def test_a_step_that_the_other_design_refuses_names_the_guard_and_its_values() -> None:
    against = document_of("kip-320-first-try")["against"]
    assert against is not None
    refused = against["turns"][9]["refused"]
    assert refused is not None
    while refused["because"]:
        refused = next(part for part in refused["because"] if not part["holds"])
    assert refused["text"] == "fetch_epoch[r2] == leader_epoch[r1]"
    assert refused["values"] == {"fetch_epoch[r2]": "0", "leader_epoch[r1]": "2"}


def test_the_same_design_with_another_setting_is_named_with_it() -> None:
    against = document_of("acks-one-lost")["against"]
    assert against is not None
    assert against["label"] == "kip-966 --acks all"


def test_the_survival_lane_says_who_could_lead_and_what_that_would_lose() -> None:
    fates = [{o["replica"]: o for o in outcomes} for outcomes in document_of("jepsen-2013")["survival"]]
    assert (fates[1]["r2"]["by"], fates[1]["r2"]["loses"]) == (["controller_moves_leadership"], [])
    assert (fates[2]["r2"]["by"], fates[2]["r2"]["loses"]) == ([], ["0"]), "acknowledged, and r2 is out of the ISR"
    assert (fates[4]["r2"]["by"], fates[4]["r2"]["loses"]) == (["controller_elects_unclean"], ["0"])
    assert fates[6]["r2"]["leads"], "it is no question of the highest epoch explored"


def running(script: str) -> MiniRacer:
    """The model as the page runs it, without a page."""
    engine = MiniRacer()
    parts = [(SCRIPT / name).read_text(encoding="utf-8") for name in ("values.js", "model.js")]
    engine.eval("".join(parts) + f"const MODEL = {script};")
    engine.eval(
        "const ask = (text) => { const state = JSON.parse(text); return JSON.stringify({ "
        "ways: waysFrom(MODEL, state).map((w) => [w.action, w.parameters, w.to, w.breaks]), "
        "values: valuesOf(MODEL, state) }); };"
    )
    return engine


@pytest.mark.parametrize("case", [CASE, "overtaken-request", "last-replica-standing", "follower-read-back-in-time"])
def test_the_model_in_the_page_does_what_the_reference_evaluator_does(case: str) -> None:
    trace, runs = replayable(trace_file(case))
    replay, engine = Replay(runs), running(model_script(runs.instance))
    types = {a.name: a.parameters for a in runs.instance.actions}
    states = list(dict.fromkeys(run_of(trace, replay).states))
    promises = [p for p in runs.instance.properties if p.kind in ("always", "step")]
    compared = broken = 0
    for state in states:
        told = json.loads(str(engine.call("ask", json.dumps(state))))
        before = {p.name for p in promises if p.kind == "always" and not runs.holds(p, state)}
        wanted: list[object] = []
        for move, after in replay.expand(state):
            pairs = zip(types[move.action], move.parameters, strict=True)
            given = ", ".join(f"{name}={show(value, type)}" for (name, type), value in pairs)
            ends = [
                p.name for p in promises if not runs.holds(p, *((after,) if p.kind == "always" else (state, after)))
            ]
            wanted.append([move.action, given, json.loads(json.dumps(after)), [n for n in ends if n not in before]])
            broken += bool(set(ends) - before)
            if len(states) < 400 and after not in states:
                states.append(after)
        assert told["ways"] == wanted
        assert told["values"] == expressions(runs.instance, state)
        compared += len(wanted)
    assert compared > 300
    assert broken, "some of these steps break a promise"


def test_every_operator_has_a_meaning_in_the_page() -> None:
    assert set(MEANING) == set(OPERATORS)


def test_a_trace_that_the_model_does_not_do_is_refused() -> None:
    runs, trace = evaluator(copied_log.UNCLEAN), violation(copied_log.UNCLEAN)
    states = list(trace.states)
    states[2] = {**states[2], "acked": 0 if states[2]["acked"] else 1}
    planted = attrs.evolve(trace, states=tuple(states))
    with pytest.raises(TraceError, match="after step 2 the trace has another 'acked'"):
        document(planted, "planted", model=Model(runs, runs))
    assert document(trace, "true", model=Model(runs, runs))["steps"]


def test_the_names_that_mean_something_to_the_picture_are_those_of_the_model() -> None:
    design = KIP_966
    variables = {v.name for v in design.variables}
    named = {FOLLOWER_END, LEADER, LOG, ACKED, *(name for pair in METADATA for name in pair)}
    for mail in MAIL:
        named |= set(mail.variables()) - {CONTROLLER}
        kind = next(v.type for v in design.variables if v.name == mail.variable)
        assert isinstance(kind, MapType)
        assert isinstance(kind.value, ChoiceType)
        said = {*mail.questions, *mail.answers, "none"}
        assert said == {show(i, kind.value) for i in range(len(kind.value.members))}
        assert set(mail.fields) <= said
    assert named <= variables
    assert set(ROOM) <= {c.name for c in design.constants()}


def test_another_design_can_be_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert main(["show", str(trace_file(CASE)), "--html", str(target), "--against", "kip-320"]) == 0
    assert '"label":"kip-320"' in target.read_text()


def test_any_model_has_a_document() -> None:
    runs, trace = evaluator(thermostat.DESIGN), violation(thermostat.DESIGN, "never-hot")
    told = document(trace, "warm", model=Model(runs, runs))
    assert told["survival"] == []
    assert told["actions"][told["steps"][0]["action"]]["text"].startswith("@action")
    assert told["properties"][0]["source"]["file"] == "thermostat.py"


def test_a_text_of_another_program_cannot_end_its_element() -> None:
    evil = '{"vars": ["x"], "states": [{"x": "</script><script>alert(1)</script><!--"}]}'
    text = plain_page(trace_from_text(evil), "</title><b>")
    assert "alert(1)</script>" not in text
    assert text.count("<script") == 3
    assert "</title><b>" not in text


def test_the_page_is_small_and_names_no_address() -> None:
    files = [*(SCRIPT / name for name in SCRIPTS), *(STYLE / name for name in STYLES), HERE / "page.html"]
    assert sum(len(path.read_bytes()) for path in files) < 200_000
    sizes = {path.parent.name: path.stat().st_size for path in CORPUS.glob("*/trace.itf.json")}
    for case in sorted(sizes, key=lambda name: sizes[name])[-4:]:
        assert len(page_text(case).encode()) < 420_000 + sizes[case]
    assert not [
        path.name for path in files[:-1] if "http" in path.read_text().replace("http://www.w3.org/2000/svg", "")
    ]


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_every_case_fits_into_one_gallery(tmp_path: Path, every: int) -> None:
    files = [str(p) for p in sorted(CORPUS.glob("*/trace.itf.json"))][::every]
    target = tmp_path / "gallery.html"
    assert main(["show", *files, "--html", str(target)]) == 0
    assert target.read_text().count('class="document"') == len(files)
    assert target.stat().st_size < 210_000 * max(len(files), 20)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((str(trace_file(CASE)), str(trace_file(CASE))), "several traces fit on a page only"),
        ((str(trace_file(CASE)), "--against", "kip-101"), "--against is for --html"),
        ((str(trace_file(CASE)), "--html", "p.html", "--against", "kip-11"), "did you mean"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", *arguments]) == 64
    assert said in capsys.readouterr().err


def test_a_trace_of_another_version_is_shown_with_a_warning(tmp_path: Path) -> None:
    old = tmp_path / "old.itf.json"
    trace = read_itf(trace_file(CASE))
    old.write_text(trace_file(CASE).read_text().replace(trace.model_hash, "0" * 16))
    assert main(["show", str(old), "--html", str(tmp_path / "old.html")]) == 65
    assert "another version of zookeeper" in (tmp_path / "old.html").read_text()


def test_a_page_of_several_traces_has_all_of_them() -> None:
    trace = violation(copied_log.UNCLEAN)
    assert page([(document(trace, "a"), "{}"), (document(trace, "b"), "{}")], "two").count('class="itf"') == 2
