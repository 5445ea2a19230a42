"""The Jepsen experiment: 2013 and today in one run each, and no cell passes that has shown nothing.

Without these, an experiment whose faults do not bite, or whose runs were stopped early, would count as evidence that
nothing is lost.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import attrs
import pytest
from playwright.sync_api import Browser
from tests.support.pages import NARROW, opened

from insync_cli.main import main
from isr_broker.core.message_json import encode
from isr_broker.storage.disk_files import RealDisk
from isr_broker.wire.protocol import API_VERSIONS, FETCH, ask
from isr_cluster.ports import HOST
from isr_experiment import campaign
from isr_experiment.catalogue import EXPERIMENTS, jepsen
from isr_experiment.cell_run import Options, Result, conduct, empty
from isr_experiment.cells import Cell, Expected
from isr_experiment.conclusions import CellConclusion, Verdict, totals
from isr_experiment.model import Prediction, prediction
from isr_experiment.namespaces import missing_requirement, run_in_namespace
from isr_experiment.nemesis import KINDS, choose_kinds
from isr_experiment.network import CLIENTS, Proxies, source_of
from isr_experiment.page import page
from isr_experiment.power import Tail, durable, lose_power
from isr_experiment.recorder import Recorder
from isr_experiment.stage import Stage
from isr_experiment.stalls import stalls
from isr_experiment.verdicts import Fate, fates, judge_history, leaderless, windows
from isr_experiment.watch import Observation
from isr_report.html import style

pytestmark = [pytest.mark.processes, pytest.mark.sockets]

# Whole runs


@pytest.mark.parametrize("others", [(), pytest.param(("kip-966, min 2",), marks=pytest.mark.slow)])
def test_the_design_of_2013_loses_what_the_leader_alone_acknowledged_and_today_s_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: tuple[str, ...]
) -> None:
    cells = [word for cell in ("kafka-0.8", *others) for word in ("--cell", cell)]
    words = ["--network", "proxies", "--out", str(tmp_path), "--no-model", "--plain"]
    code = main(["experiment", "quick", *cells, *words])
    said = capsys.readouterr().out
    assert code == 0, said
    document = json.loads((tmp_path / "experiment.json").read_text())
    old, *safe = document["cells"]
    assert len(safe) == len(others)
    (run,) = (r for r in old["runs"] if r["valid"])
    fates = {f["phase"]: f for f in run["fates"]}
    assert fates["leader alone"]["lost"] > 20, said
    assert fates["leader alone"]["lost"] >= 0.8 * fates["all"]["lost"], said
    assert fates["leader gone"]["survived"] > 20, said
    assert run["dropped"] > 0
    assert run["changes"]["leaders"] >= 1
    assert run["changes"]["isrs"] >= 1
    for cell in safe:
        assert cell["lost"] == 0
        (run,) = (r for r in cell["runs"] if r["valid"])
        assert run["fates"][0]["acknowledged"] > 1_000
    for history in sorted(tmp_path.glob("*/history.jsonl")):
        assert _agrees(history, capsys), history
    for cell in (old, *safe):
        (traces,) = (r["traces"] for r in cell["runs"] if r["valid"])
        assert traces["accepted"], traces
        assert traces["steps"] > 100
    assert {"no-progress", "acks-contract"} <= set(run["checks"]["HOLDS"]), (
        "clients went on, and brokers told their part"
    )
    shown = "% of them" in (tmp_path / "experiment.html").read_text() or document["totals"]["bound"] is not None
    assert shown is bool(safe), "how much is lost at most is said of cells that are to lose nothing"
    for picture in tmp_path.glob("*/timeline.svg"):
        assert ET.parse(picture).getroot().tag.endswith("svg")


def _agrees(history: Path, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether `insync history` counts in a stored run what the experiment counted in it."""
    main(["history", str(history), "--json", "-", "--plain"])
    said = capsys.readouterr().out
    counts = json.loads(said[said.index("{\n") :])["counts"]
    whole = json.loads((history.parent / "run.json").read_text())["fates"][0]
    assert counts["lost-write"] == counts["lost"] + counts["lost_unacknowledged"]
    return all(counts[n] == whole[n] for n in ("lost", "lost_unacknowledged"))


def _bites_nothing(stage: Stage) -> None:
    stage.phase("nothing")
    stage.begins("partition that is none", "dropped")
    stage.sleep(0.5)
    stage.recorder.phase("until somebody stops it")
    stage.over.set()
    stage.sleep(60)


def test_a_fault_that_did_not_bite_and_a_run_that_was_stopped_are_invalid_and_leave_no_process(tmp_path: Path) -> None:
    cell = Cell(name="nothing", schedule=_bites_nothing, leaders=0, isrs=0)
    lines: list[str] = []
    result = conduct(cell, 0, tmp_path, Options(), threading.Event(), lines.append)
    assert result.cut_short
    assert any("did not bite: no dropped" in why for why in result.invalid), result.invalid
    assert any("stopped before its schedule ended" in why for why in result.invalid)
    assert result.whole.acknowledged > 0, "it ends with what it has"
    assert result.whole.lost == 0
    assert conclude(cell, result).verdict is Verdict.INVALID
    assert not _brokers_of(tmp_path)


def _brokers_of(root: Path) -> list[str]:
    commands = (path / "cmdline" for path in Path("/proc").glob("[0-9]*"))
    found: list[str] = []
    for command in commands:
        try:
            text = command.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(root) in text and "isr_broker" in text:
            found.append(text)
    return found


def test_a_value_that_a_reader_saw_and_that_is_gone_is_lost_in_history_and_experiment(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history.jsonl", {"acks": "all"})
    for value in range(4):
        recorder.phase(f"phase {value}")
        recorder.sends("w", value, "all")
        if value != 3:
            recorder.note_outcome("w", value, value)
    for kind, more in (("invoke", {}), ("ok", {"records": {"t-0": [[0, 0], [1, 1], [2, 2], [3, 3]]}})):
        recorder.says("poll", kind, "reader", **more)
    recorder.says("final-read", "invoke", "end", partition="t-0")
    recorder.says("final-read", "ok", "end", partition="t-0", records=[[0, 0]], end=1)
    recorder.close()
    answer, lost = judge_history(recorder.path)
    assert lost == {1, 2, 3}
    whole, *phases = fates(recorder, {0}, lost)
    assert (whole.acknowledged, whole.survived, whole.lost, whole.lost_unacknowledged) == (3, 1, 2, 1)
    assert [(f.lost, f.lost_unacknowledged) for f in phases] == [(0, 0), (1, 0), (1, 0), (0, 1)]
    assert sum(w.lost for w in windows(recorder, lost)) == 2, "of those acknowledged"
    assert (answer.counts.lost, answer.counts.lost_unacknowledged, answer.fates["lost-write"]) == (2, 1, 3)


# What cells conclude


def result(lost: int = 0, invalid: tuple[str, ...] = (), violated: tuple[str, ...] = ()) -> Result:
    fate = Fate(
        phase="all",
        began=0,
        attempted=12,
        acknowledged=10,
        survived=10 - lost,
        lost=lost,
        lost_unacknowledged=0,
        recovered=1,
    )
    return Result(
        cell="c",
        number=0,
        invalid=invalid,
        fates=(fate,),
        faults=(),
        leaders=1,
        epochs=1,
        isrs=1,
        dropped_bytes=1,
        observations=(),
        windows=(),
        leaderless=(),
        silences=(),
        verdict="HOLDS",
        words={"VIOLATED": list(violated)} if violated else {},
        trace_verdict=None,
        resets=0,
        cut_short=False,
        seconds=1.0,
    )


def _nothing(stage: Stage) -> None:
    """Never played."""


CELL = Cell(name="c", schedule=_nothing)


def conclude(cell: Cell, *results: Result, model: bool | None = None, wanted: int = 1) -> CellConclusion:
    foreseen = None if model is None else Prediction(model, ())
    return CellConclusion(cell=cell, results=results, prediction=foreseen, required_runs=wanted)


@pytest.mark.parametrize(
    ("expected", "results", "model", "verdict"),
    [
        (Expected.NOTHING, [result()], None, Verdict.AS_EXPECTED),
        (Expected.NOTHING, [result()], False, Verdict.AS_EXPECTED),
        (Expected.NOTHING, [result(lost=1)], None, Verdict.LOST),
        (Expected.NOTHING, [result(violated=("duplicate",))], None, Verdict.LOST),
        (Expected.NOTHING, [result(lost=1, invalid=("no fault struck",))], None, Verdict.LOST),
        (Expected.NOTHING, [result(invalid=("no fault struck",))], None, Verdict.INVALID),
        (Expected.NOTHING, [result(invalid=("no fault struck",)), result()], None, Verdict.AS_EXPECTED),
        (Expected.NOTHING, [result()], True, Verdict.DISAGREES),
        (Expected.NOTHING, [], None, Verdict.INVALID),
        (Expected.LOSS, [result(lost=2)], True, Verdict.AS_EXPECTED),
        (Expected.LOSS, [result(lost=2)], False, Verdict.DISAGREES),
        (Expected.LOSS, [result(lost=2), result()], True, Verdict.NO_LOSS),
        (Expected.LOSS, [result(lost=2, invalid=("x",))], True, Verdict.INVALID),
        (Expected.CAUGHT, [result(violated=("read-then-lost",))], None, Verdict.AS_EXPECTED),
        (Expected.CAUGHT, [result()], None, Verdict.NOT_CAUGHT),
    ],
)
def test_a_cell_passes_only_if_its_runs_showed_what_was_expected(
    expected: Expected, results: list[Result], model: bool | None, verdict: Verdict
) -> None:
    assert conclude(attrs.evolve(CELL, expected=expected), *results, model=model).verdict is verdict


def test_a_model_that_could_not_say_agrees_with_nothing() -> None:
    undecided = CellConclusion(cell=CELL, results=(result(),), prediction=Prediction(None, ()), required_runs=1)
    assert undecided.verdict is Verdict.INVALID


def test_the_bound_counts_only_valid_runs_of_cells_that_are_to_lose_nothing() -> None:
    loses = conclude(attrs.evolve(CELL, expected=Expected.LOSS), result(lost=5))
    safe = conclude(CELL, result(), result(invalid=("x",)), result())
    assert totals([loses, safe]).bound == 3 / 20
    assert totals([conclude(CELL, result(lost=1))]).bound is None


def test_time_without_a_leader_is_what_the_controller_says() -> None:
    seen = [
        Observation(0, 2, 1, (2,), ()),
        Observation(10, None, 2, (), (2,)),
        Observation(15, None, 2, (), ()),
        Observation(30, 3, 3, (3,), ()),
    ]
    assert leaderless(seen, 100) == [(10, 30)]
    assert leaderless([*seen, Observation(90, None, 4, (), ())], 100) == [(10, 30), (90, 100)]


# The model beside it


def test_the_model_names_the_loss_of_2013() -> None:
    (old,) = (cell for cell in jepsen() if cell.name == "kafka-0.8")
    found = prediction(old)
    assert found is not None
    assert found.loses
    (answer,) = found.answers
    assert "controller_elects_unclean" in answer.steps
    assert answer.command.startswith("insync check kafka-0.8 --replicas 3")


def test_every_cell_of_the_sweep_is_asked_of_the_model() -> None:
    cells = EXPERIMENTS["sweep"].cells(0)
    assert len(cells) == 16
    assert all(cell.questions for cell in cells)
    assert {cell.expected for cell in cells} == {Expected.NOTHING, Expected.LOSS}


def test_successive_runs_go_through_every_kind_of_fault() -> None:
    kinds = tuple(KINDS)
    drawn = [kind for seed in range(len(kinds)) for kind in choose_kinds(seed, 3, kinds)]
    assert drawn == [kind for seed in range(len(kinds)) for kind in choose_kinds(seed, 3, kinds)], "the seed decides"
    assert {kind: drawn.count(kind) for kind in kinds} == dict.fromkeys(kinds, 3)


# Pictures


def test_after_each_run_it_is_told_how_long_the_others_take(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock = [0.0]
    told: list[str] = []

    def run(*_: object) -> SimpleNamespace:
        clock[0] += 150.0
        return SimpleNamespace(invalid=())

    quick = EXPERIMENTS["quick"]
    cells = [cell.name for cell in quick.cells(0)][:2]
    stand_ins = {
        "conduct": run,
        "CellConclusion": SimpleNamespace,
        "time": MagicMock(monotonic=MagicMock(side_effect=lambda: clock[0])),
        "page": MagicMock(return_value=""),
        "conclusions": MagicMock(document=MagicMock(return_value={}), availability=MagicMock(return_value={})),
        "_result_line": MagicMock(return_value="a run"),
        "_keep": MagicMock(),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(campaign, name, stand_in)
    campaign.perform_experiment(
        quick, tmp_path, 2, Options(), [], threading.Event(), told.append, only=cells, ask_model=False
    )
    assert [line for line in told if line != "a run"] == [
        "1 of 4 runs are done; estimate 8 min more",
        "2 of 4 runs are done; estimate 5 min more",
        "3 of 4 runs are done; estimate 2 min more",
        "4 runs are done",
    ]


def test_an_experiment_that_is_stopped_has_the_answers_that_the_model_gave_and_none_of_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    over, written = threading.Event(), list[list[str]]()
    quick = EXPERIMENTS["quick"]
    cells = [cell.name for cell in quick.cells(0)][:2]

    def run(*_: object) -> SimpleNamespace:
        assert not (tmp_path / campaign.FILE).exists(), "what an earlier experiment found"
        return SimpleNamespace(invalid=())

    def answered(cell: Cell, stop: Callable[[], bool]) -> Prediction:
        over.set()
        return Prediction(True, ())

    def document(_name: str, _says: str, done: list[CellConclusion], *_: object) -> dict[str, object]:
        written.append([c.cell.name for c in done if c.prediction is not None])
        return {}

    stand_ins = {
        "conduct": run,
        "prediction": answered,
        "CellConclusion": SimpleNamespace,
        "page": MagicMock(return_value=""),
        "conclusions": MagicMock(document=document, availability=MagicMock(return_value={})),
        "_result_line": MagicMock(return_value="a run"),
        "_keep": MagicMock(),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(campaign, name, stand_in)
    (tmp_path / campaign.FILE).write_text("{}")
    campaign.perform_experiment(quick, tmp_path, 1, Options(), [], over, lambda _: None, only=cells)
    assert written == [[], cells[:1]]


def test_a_run_begins_without_the_logs_and_traces_of_an_earlier_one(tmp_path: Path) -> None:
    mine, strange = tmp_path / "cell-0", tmp_path / "notes"
    for file in (mine / "history.jsonl", mine / "trace" / "2.1.jsonl", strange / "trace" / "2.1.jsonl"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}\n")
    for folder in (mine, strange, tmp_path / "new"):
        empty(folder)
    assert not list(mine.iterdir())
    assert (strange / "trace" / "2.1.jsonl").exists(), "a folder that is not a run's is left alone"
    assert (tmp_path / "new").is_dir()


def test_stalls_are_drawn_against_their_timeouts() -> None:
    row = {"session_seconds": 2.0, "lag_seconds": 4.0}
    rows = [{**row, "fault": kind, "silent_seconds": 2.5} for kind in ("kill leader", "cut off a follower", "other")]
    picture = ET.fromstring(stalls(rows))
    titles = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[1:] == ["kill leader: 2.5 s at 2 s", "cut off a follower: 2.5 s at 4 s"]
    assert stalls([]) == ""


def recorded() -> dict[str, object]:
    """A small document of an experiment: a cell with one run that loses."""
    fate = {"phase": "all", "began": 0.0, "attempted": 12, "acknowledged": 10, "survived": 7, "lost": 3,
            "lost_unacknowledged": 1, "recovered": 0}  # fmt: skip
    fault = {"kind": "leader cut off", "began": 1.0, "healed": None, "bit": True, "hit": ["links 2"],
             "evidence": {"dropped": 7}}  # fmt: skip
    waits = {"phase": "all", "acknowledged": {"p50": 1.0, "p99": 2.0, "longest": 3.0}, "majority": None}
    run = {"cell": "kafka-0.8", "number": 0, "valid": True, "invalid": [], "fates": [fate, {**fate, "phase": "alone"}],
           "faults": [fault], "controller": [{"at": 0.0, "leader": 2, "isr": [2, 3]}],
           "windows": [{"at": 0.0, "acked": 10, "lost": 3, "p50": 1.0, "p99": 2.0}],
           "waits": [waits]}  # fmt: skip
    rate = {"says": "lost of acknowledged", "part": 3, "of": 10}
    cell = {"name": "kafka-0.8", "expected": "loses", "verdict": "AS EXPECTED", "model": None, "runs": [run],
            "rates": [rate, rate, rate], "timed": True}  # fmt: skip
    sums = {"runs": 1, "valid": 1, "acknowledged": 10, "lost": 3, "leaders": 1, "isrs": 1, "dropped": 7, "validated": 0,
            "rejected": 0, "bound": None}  # fmt: skip
    row = {"cell": "kafka-0.8", "fault": "kill leader", "session_seconds": 1.5, "lag_seconds": 3.0,
           "leaderless_seconds": 0.0, "silent_seconds": 2.0}  # fmt: skip
    return {"experiment": "quick", "says": "2013 and today", "system": "insync", "command": ["insync", "experiment"],
            "totals": sums, "verdict": "AS EXPECTED", "cells": [cell], "availability": [row]}  # fmt: skip


def test_the_page_of_an_experiment_has_the_style_of_all_pages_and_no_colour_of_its_own() -> None:
    shown = page(recorded(), style())
    assert f"<style>{style()}</style>" in shown
    body = shown[shown.index("<body>") :]
    assert not re.findall(r"#[0-9a-f]{3,6}", re.sub(r"var\(--[\w-]+, #[0-9a-f]+\)", "", body)), "right in the dark, too"
    named = set(re.findall(r"var\((--[\w-]+),", body))
    assert named
    assert all(f"{name}: light-dark(" in style() for name in named)
    used = {word for classes in re.findall(r'class="([^"]+)"', body) for word in classes.split()}
    assert not {word for word in used if f".{word}" not in style()}, "classes that the style sheet does not know"


@pytest.mark.browser
def test_the_page_of_an_experiment_is_dark_in_the_dark_and_fits_a_phone(browser: Browser, tmp_path: Path) -> None:
    """Without it a page that is white in the dark, or wider than a phone, would go unnoticed."""
    (tmp_path / "experiment.html").write_text(page(recorded(), style()), encoding="utf-8")
    grounds: list[object] = []
    for dark in (False, True):
        with opened(browser, tmp_path / "experiment.html", size=NARROW, dark=dark) as tab:
            assert tab.value("document.documentElement.scrollWidth <= innerWidth") is True
            grounds.append(tab.value("getComputedStyle(document.querySelector('.run-chart rect')).fill"))
    assert grounds[0] == "rgb(255, 255, 255)"
    assert grounds[1] == "rgb(26, 29, 34)"


# Links


@pytest.fixture
def proxies() -> Iterator[tuple[Proxies, list[bytes]]]:
    """A proxy before a broker that only listens."""
    network, heard = Proxies((1, 2)), list[bytes]()
    listener = socket.create_server((HOST, network.ports[2]))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=hear, args=(connection,), daemon=True).start()

    def hear(connection: socket.socket) -> None:
        while data := connection.recv(4096):
            heard.append(data)
            connection.sendall(b"heard")

    threading.Thread(target=serve, daemon=True).start()
    yield network, heard
    network.close()
    listener.close()


def _until(so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not so():
        assert time.monotonic() < end
        time.sleep(0.01)


CLIENT_FRAME = b"\x00\x00\x00\x0a" + b"\x00\x12" + b"12345678"


def test_a_cut_link_drops_and_counts_and_the_other_direction_goes_on(proxies: tuple[Proxies, list[bytes]]) -> None:
    network, heard = proxies
    with socket.create_connection(network.advertised[2]) as client:
        client.settimeout(30)
        client.sendall(CLIENT_FRAME)
        assert client.recv(100) == b"heard"
        network.cut(2, CLIENTS)
        client.sendall(b"one way")
        _until(lambda: b"one way" in heard)
        _until(lambda: network.dropped_bytes() == {(2, CLIENTS): len(b"heard")})
        network.mend()
        assert client.recv(100) == b"", "a stream with a hole is closed"
    network.cut(CLIENTS, 2)
    with socket.create_connection(network.advertised[2]) as client:
        client.sendall(CLIENT_FRAME)
        _until(lambda: network.dropped_bytes().get((CLIENTS, 2)) == len(CLIENT_FRAME))
    assert heard.count(CLIENT_FRAME) == 1


def test_a_slow_link_is_late_and_keeps_the_order(proxies: tuple[Proxies, list[bytes]]) -> None:
    network, heard = proxies
    with socket.create_connection(network.advertised[2]) as client:
        network.slow(CLIENTS, 2, 0.3)
        began = time.monotonic()
        client.sendall(CLIENT_FRAME)
        _until(lambda: bool(heard))
        assert time.monotonic() - began >= 0.29
    assert network.delayed_bytes()


def test_who_connects_is_known_by_its_first_frame() -> None:
    assert source_of(CLIENT_FRAME) == CLIENTS
    assert source_of(CLIENT_FRAME[:5]) is None
    assert source_of(encode([], "")[:12]) is None
    for source, node in ((3, 3), (-1, 1)):
        frame = b"\x00\x00\x00\x20" + b"\x7d\x00\x00\x00\x00\x00\x00\x10" + b"[[%d, 2, 0, {}]]" % source
        assert source_of(frame) == node
    fetch = ask(FETCH, 17, 1, "broker-3-fetcher-1", {})
    assert source_of(fetch) == 3, "a broker's requests in Kafka's protocol have its number in their client id"
    assert source_of(fetch[:20]) is None
    assert source_of(ask(API_VERSIONS, 0, 1, "rdkafka", {})) == CLIENTS


IN_A_NAMESPACE = """
import socket, subprocess, sys
from isr_experiment.namespaces import Namespaces
from isr_experiment.network import CLIENTS

network = Namespaces((1, 2))
serve = "import socket; s = socket.create_server(('10.77.2.2', 9092)); print(1, flush=True)"
serve += "\\nwhile 1: s.accept()[0].sendall(b'x')"
broker = subprocess.Popen([*network.inside[2], sys.executable, "-c", serve], stdout=subprocess.PIPE)
broker.stdout.readline()

def reached(node):
    ask = "import socket; print(socket.create_connection(('10.77.2.2', 9092), 1.5).recv(1))"
    inside = network.inside[node] if node else ()
    return subprocess.run([*inside, sys.executable, "-c", ask], capture_output=True).returncode == 0

assert reached(CLIENTS) and reached(1)
network.cut(1, 2)
assert reached(CLIENTS) and not reached(1), "only the one link"
network.cut(2, CLIENTS)
assert not reached(CLIENTS), "no answer comes back"
dropped = network.dropped_bytes()
assert set(dropped) == {(1, 2), (2, CLIENTS)} and all(count > 50 for count in dropped.values()), dropped
network.mend()
assert reached(CLIENTS) and reached(1)
broker.kill()
network.close()
print("done")
"""


def test_namespaces_cut_one_direction_of_one_link_and_count_what_is_lost(tmp_path: Path) -> None:
    why = missing_requirement()
    if why is not None:
        pytest.skip(why)
    script = tmp_path / "script.py"
    script.write_text(IN_A_NAMESPACE)
    assert (
        run_in_namespace(
            [sys.executable, str(script)], {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        )
        == 0
    )


# Power


def test_a_power_failure_takes_what_no_flush_made_durable_and_nothing_else(tmp_path: Path) -> None:
    data, record = tmp_path / "data", tmp_path / "record"
    disk = RealDisk(data, str(record))
    disk.make_folder("t-0")
    log, other = disk.open("t-0/00000000000000000000.log"), disk.open("other")
    log.append(b"durable")
    log.flush()
    log.append(b" and not")
    other.append(b"never flushed")
    assert durable(record) == {"t-0/00000000000000000000.log": 7}
    torn = lose_power(data, record, Tail.TORN)
    assert torn.bytes == 8
    assert log.read(0, 100) == b"durable and" + bytes(4)
    lost = lose_power(data, record)
    assert (lost.bytes, lost.segments) == (8, 1)
    assert log.read(0, 100) == b"durable"
    assert other.read(0, 100) == b"never flushed"
    assert lose_power(data, record).bytes == 0


# The command


def test_the_list_names_cells_that_are_to_lose_and_cells_that_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "--list", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)["experiments"]
    wanted = "jepsen-2013 safe-settings acks-1 unclean last-replica-standing power-loss rolling-restart"
    assert set(f"{wanted} controller-loss follower-reads sweep planted-bug availability".split()) <= set(listed)
    for name in ("jepsen-2013", "acks-1", "unclean", "power-loss", "rolling-restart", "controller-loss"):
        cells = EXPERIMENTS[name].cells(0)
        assert {Expected.NOTHING, Expected.LOSS} <= {cell.expected for cell in cells}, name


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "a NAME is required"),
        (["jepsen"], "there is no experiment 'jepsen'"),
        (["unclean", "--cell", "unclean of"], "has no cell 'unclean of'; did you mean 'unclean off'?"),
    ],
)
def test_wrong_usage_is_one_sentence(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", *words]) == 64
    assert says in capsys.readouterr().err
