"""The picture of a state: what it says of each record, and that the command line's file stands alone."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser
from tests.support.pages import opened, plain_page, trace_file

from insync_cli.main import main
from isr_trace.itf import read_itf, trace_from_text
from isr_trace.trace import Trace
from isr_visual.picture import drawing

LAST = 9
SVG = "{http://www.w3.org/2000/svg}"


def logs(*each: tuple[list[int], list[int]], committed: int = 3) -> Trace:
    """A trace of two logs, of another program."""
    states = [
        {
            "log": {"#map": [["a", a], ["b", b]]},
            "leader": "a",
            "acked": {"#set": a[:2]},
            "committed": a[:committed],
            "consumed": a[:1],
            "high_watermark": {"#map": [["a", committed], ["b", 1]]},
        }
        for a, b in each
    ]
    return trace_from_text(json.dumps({"vars": list(states[0]), "states": states}))


LONG = logs((list(range(9)), list(range(6))), (list(range(13)), list(range(6))), (list(range(2)), []))


@pytest.mark.browser
@pytest.mark.parametrize("case", ["overtaken-request", "jepsen-2013"])
def test_the_command_line_draws_with_the_page_s_own_script(browser: Browser, tmp_path: Path, case: str) -> None:
    trace, file = read_itf(trace_file(case)), tmp_path / "page.html"
    file.write_text(plain_page(trace), encoding="utf-8")
    with opened(browser, file) as tab:
        for i in range(len(trace.states)):
            shown = json.loads(
                str(tab.value(f"JSON.stringify(insync.trace.picture({i}, 760).getAttribute('aria-label'))"))
            )
            drawn = drawing(trace, i)
            assert drawn is not None
            assert drawn.get("aria-label") == shown


def kinds(trace: Trace, index: int, row: int) -> list[str]:
    """How safe the records in a replica's log are said to be."""
    drawn = drawing(trace, index)
    assert drawn is not None
    replica = [part for part in drawn if str(part.get("class")).startswith("replica")][row]
    cells = [str(cell.get("class")).split() for cell in replica.iter("g") if "cell" in str(cell.get("class")).split()]
    return [words[2] for words in cells if words[1] != "hole"]


def test_a_record_is_appended_then_copied_then_committed() -> None:
    trace = logs(([0, 1, 2, 3, 4], [0, 1, 2, 3]), ([0, 1], [0, 7]))
    assert kinds(trace, 0, 0) == ["committed", "committed", "committed", "copied", "appended"]
    assert kinds(trace, 0, 1) == ["committed", "copied", "copied", "copied"], "as far as it knows"
    assert kinds(trace, 1, 1) == ["committed", "appended"], "another record at the same offset is no copy"


def test_what_there_is_no_room_for_is_counted() -> None:
    drawn = drawing(LONG, 1)
    assert drawn is not None
    said = [text.text for text in drawn.iter("text")]
    assert said.count("6 before") == 2
    assert "3 before" in said, "of the committed sequence"
    assert "12" in said
    assert "5" not in said
    narrow = drawing(LONG, 1, 334)
    assert narrow is not None
    edges = [float(cell.get("x", 0)) + float(cell.get("width", 0)) for cell in narrow.iter("rect")]
    assert max(edges) <= 334


def test_a_picture_stands_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "scene.svg"
    assert main(["show", str(trace_file("hw-truncation-loss")), "--svg", str(target)]) == 0
    assert f"T{LAST} of {LAST}" in capsys.readouterr().out
    text = target.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert "no 0" in [node.text for node in root.iter(f"{SVG}text")]
    assert "var(" not in text, "it brings its colours along"
    assert "prefers-color-scheme: dark" in text
    assert text.count("http") == 1, "the namespace, and no address"
    assert main(["show", str(trace_file("hw-truncation-loss")), "--svg", str(target), "--step", "0"]) == 0
    assert "no 0" not in target.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--svg", "x.svg", "--step", "10"], "there is no step 10: the trace has 9"),
        (["--svg", "x.svg", "--step", "-1"], "there is no step -1"),
        (["--step", "3"], "--step is for --svg"),
        (["--svg", "x.svg", "--mermaid"], "not allowed with argument"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(trace_file("hw-truncation-loss")), *arguments]) == 64
    assert said in capsys.readouterr().err


@pytest.mark.explores
def test_a_trace_without_logs_has_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "jugs.itf.json"
    file.write_text('{"vars": ["big"], "states": [{"big": 0}, {"big": 3}]}', encoding="utf-8")
    assert main(["show", str(file), "--svg", str(tmp_path / "x.svg")]) == 64
    assert "no logs of replicas to draw" in capsys.readouterr().err
    assert not (tmp_path / "x.svg").exists()
