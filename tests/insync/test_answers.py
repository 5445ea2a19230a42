"""Answers in Python are those of the command: its text, its JSON, its exit code, and its sentence where it has none.

Without it the two would drift apart, and a notebook would say what no command says.
"""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from tests.support.histories import Story

import insync
from insync.answers import Answer
from insync.errors import InsyncError
from insync.frames import frame
from insync_cli.main import main

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AUDIT = Path(__file__).resolve().parents[2] / "docs" / "examples" / "audit"
TOPICS = AUDIT / "topics.txt"
FILES = [TOPICS, AUDIT / "features.txt", AUDIT / "server.properties"]
MEASURED = re.compile(r" *[\d.,]+ (?:s|GB|MB|KB)\b|[\d.,]+ states/s|[\d,]+ edges per second")
SLOWEST = re.compile(r"^Slowest\n(?: +[\d.]+ s .*\n)*", re.MULTILINE)
VOLATILE = (
    "seconds",
    "processor_seconds",
    "solver_seconds",
    "distinct_per_second",
    "peak_rss_bytes",
    "line",
    "command",
)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder with a history in it."""
    monkeypatch.chdir(tmp_path)
    story = Story(acks="all").send(1, 0).send(2, 1).final({1: 2})
    (tmp_path / "history.jsonl").write_text("\n".join(story.lines), encoding="utf-8")
    return tmp_path


def steady(text: str) -> list[str]:
    """The lines without what is measured anew each time, and without where a report was written beside a history.

    Questions to a solver are listed as the slowest where they took a second, as on a busy machine.
    """
    lines = [MEASURED.sub("", line).rstrip() for line in SLOWEST.sub("", text).splitlines()]
    return [line for line in lines if line and line != "written to history.json"]


def without_measures(value: object) -> object:
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        return {key: without_measures(one) for key, one in table.items() if key not in VOLATILE}
    return [without_measures(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


def answer_like_its_command(ask: Callable[[], Answer], capsys: pytest.CaptureFixture[str]) -> Answer:
    """The answer, of which nothing was printed; the command that it names says the same, as text and as JSON."""
    import shlex

    answer = ask()
    assert capsys.readouterr() == ("", "")
    words = shlex.split(answer.command)[1:]
    assert main(words) == answer.exit_code
    assert steady(capsys.readouterr().out) == steady(str(answer)) == steady(repr(answer))
    assert main([*words, "--json", "-"]) == answer.exit_code
    report = without_measures(json.loads(capsys.readouterr().out))
    assert report == without_measures(json.loads(answer.to_json()))
    return answer


@pytest.mark.usefixtures("desk")
def test_check(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_like_its_command(lambda: insync.check("hasty"), capsys)
    assert isinstance(answer, insync.CheckAnswer)
    assert (answer.verdict, answer.exit_code) == ("VIOLATED", 12)
    verdict = answer.property_named("never-ahead")
    assert (verdict.verdict, verdict.steps, verdict.kind) == ("VIOLATED", 1, "always")
    assert verdict.trace is not None
    assert verdict.trace == answer.folder / "never-ahead.itf.json"
    assert verdict.trace.is_file()
    report = json.loads(answer.to_json())
    assert answer.bounds == report["bounds"]
    assert (answer.states, answer.transitions, answer.depth) == tuple(
        report["stats"][name] for name in ("distinct", "generated", "depth")
    )
    with pytest.raises(InsyncError, match="no property 'never-ahed'; did you mean 'never-ahead'"):
        answer.property_named("never-ahed")


@pytest.mark.usefixtures("desk")
def test_every_argument_of_check_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    def ask() -> Answer:
        return insync.check(
            "hasty",
            properties=["never-ahead"],
            expect={"never-ahead": "VIOLATED"},
            deadlock=True,
            strict=True,
            engine="reference",
            max_states=50,
            out="out",
            calls=1,
        )

    answer = answer_like_its_command(ask, capsys)
    for part in ("--deadlock", "--calls 1", "--max-states 50", "--expect never-ahead=VIOLATED", "--coverage strict"):
        assert part in answer.command


@pytest.mark.solver
@pytest.mark.processes
def test_prove(capsys: pytest.CaptureFixture[str]) -> None:
    def ask() -> Answer:
        return insync.prove("kip-966", replicas=2, log="any", only="logs-match", actions="follower_appends")

    answer = answer_like_its_command(ask, capsys)
    assert isinstance(answer, insync.ProofAnswer)
    assert (answer.verdict, answer.exit_code, answer.promises) == ("PARTIAL", 20, ())
    assert [(o.conjunct, o.action, o.verdict) for o in answer.obligations] == [
        ("logs-match", "follower_appends", "proved")
    ]
    assert answer.bounds["log"] is None
    assert answer.bounds["replicas"] == 2


def test_audit(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_like_its_command(lambda: insync.audit(FILES), capsys)
    assert isinstance(answer, insync.AuditAnswer)
    assert answer.exit_code == 2
    assert next((t.trouble, t.partition) for t in answer.now) == ("offline", "orders-0")
    row = next(row for row in answer.rows if "clicks" in row.topics)
    assert row.at_risk
    assert row.settings.replicas == 3
    loss = next(one for one in row.answers if one.verdict == "lost" and one.acks == "all")
    assert loss.story
    assert loss.change is None or loss.change.settings
    ways = {deed.deed: deed.verdict for deed in row.as_released}
    assert (ways["minimum-changes"], ways["reassignments"]) == ("lost", "none")
    page = answer.page()
    assert page.startswith("<!doctype html>")
    assert "Walk through it" in page


def test_audit_of_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_like_its_command(lambda: insync.audit(FILES, brokers=True), capsys)
    assert isinstance(answer, insync.AuditAnswer)
    assert answer.brokers is not None
    assert [o.broker for o in answer.brokers] == [1, 2, 3]
    first = answer.brokers[0]
    assert isinstance(first, insync.BrokerOutlook)
    assert isinstance(first.restart, insync.BrokerDeed)
    assert "orders-1" in first.restart.stops
    assert "Which brokers may be restarted now" in answer.page()
    assert insync.audit(FILES).brokers is None


def test_drill(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_like_its_command(lambda: insync.drill(["stop 2", "start 2"], describe=TOPICS), capsys)
    assert isinstance(answer, insync.DrillAnswer)
    assert answer.exit_code == 1
    assert answer.steps == ("stop 2", "start 2")
    assert answer.decision.startswith("NOT NOW")
    before = {one.partition: one.outcomes[0].service for one in answer.partitions}
    assert before["orders-0"] == "leaderless"
    assert all(len(one.outcomes) == 3 for one in answer.partitions)


def test_history(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    answer = answer_like_its_command(lambda: insync.history("history.jsonl"), capsys)
    assert isinstance(answer, insync.HistoryAnswer)
    assert (answer.verdict, answer.exit_code, answer.operations) == ("VIOLATED", 12, 3)
    loss = next(one for one in answer.anomalies if one.name == "lost-write")
    assert (loss.verdict, loss.count, loss.violations) == ("VIOLATED", 1, 1)
    assert all(quote.line and quote.text for quote in loss.witnesses[0].operations)
    (folder / "history.json").unlink()
    insync.history("history.jsonl", acks=1, anomalies=[3])
    assert not (folder / "history.json").exists(), "the command wrote it, and Python does not"


def test_replay(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_like_its_command(
        lambda: insync.replay("kip-966", own_look=True, replicas=2, crashes=0, isr_changes=0), capsys
    )
    assert isinstance(answer, insync.ReplayAnswer)
    assert answer.complete
    assert answer.exit_code == 0
    assert answer.count == answer.edges == sum(one.edges for one in answer.actions) > 0
    assert answer.mismatches == {}


# Where there is no answer

WRONG: dict[str, Callable[[], object]] = {
    "check kip-96": lambda: insync.check("kip-96"),
    "check kip-966 --replcas 2": lambda: insync.check("kip-966", replcas=2),
    "check kip-966 --replicas 9": lambda: insync.check("kip-966", replicas=9),
    "check kip-966 --unclean maybe": lambda: insync.check("kip-966", unclean="maybe"),
    "check kip-966 --property acked": lambda: insync.check("kip-966", properties="acked"),
    "check kip-966 --replicas=-1": lambda: insync.check("kip-966", replicas=-1),
    "check -- --help": lambda: insync.check("--help"),
    "prove kip-966 --cross-check --only logs-match": lambda: insync.prove(
        "kip-966", cross_check=True, only="logs-match"
    ),
    "prove kip-966 --only log-matches": lambda: insync.prove("kip-966", only="log-matches"),
    "audit": insync.audit,
    "audit --describe none.txt": lambda: insync.audit("none.txt"),
    f"audit --describe {TOPICS} --kafka new": lambda: insync.audit(TOPICS, kafka="new"),
    f"drill hop --describe {TOPICS}": lambda: insync.drill("hop", describe=TOPICS),
    "history none.jsonl": lambda: insync.history("none.jsonl"),
    "history history.jsonl --anomaly lost-writ": lambda: insync.history("history.jsonl", anomalies="lost-writ"),
    "replay kafka-0.8": lambda: insync.replay("kafka-0.8"),
}


@pytest.mark.parametrize("command", WRONG)
def test_a_mistake_is_the_sentence_and_the_exit_code_of_the_command(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InsyncError) as caught:
        WRONG[command]()
    assert main(command.split()) == caught.value.exit_code
    assert caught.value.exit_code in (64, 65)
    assert capsys.readouterr().err == f"insync: {caught.value}\n"


NO_BOUNDS: dict[str, Callable[[], object]] = {
    "help": lambda: insync.check("kip-966", help=True),
    "resume": lambda: insync.check("kip-966", resume="x"),
    "json": lambda: insync.prove("kip-966", json="x"),
    "quiet": lambda: insync.replay("kip-966", quiet=True),
    "master": lambda: insync.check("kip-966", master="x"),
    "property": lambda: insync.check("kip-966", property="x"),
}


@pytest.mark.parametrize("name", NO_BOUNDS)
def test_what_is_no_bound_is_no_way_to_other_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InsyncError, match=f"'{name}' is no bound or setting"):
        NO_BOUNDS[name]()
    assert capsys.readouterr() == ("", "")


# In a notebook


def notebook_html(answer: Answer) -> str:
    """What a notebook asks for, by the name that IPython gave it."""
    return str(methodcaller("_repr_html_")(answer))


class Loads(HTMLParser):
    """What a text of HTML would ask for, or run, where a browser shows it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "srcset", "data", "action", "srcdoc")]


@pytest.mark.usefixtures("desk")
def test_tables_are_tables_and_text_is_escaped() -> None:
    answer = insync.check("careful")
    html = notebook_html(answer)
    loads = Loads(html)
    assert loads.addresses == []
    assert loads.tags.count("table") > 1
    assert {"script", "iframe", "link", "img", "style"}.isdisjoint(loads.tags)
    assert "HOLDS</span></td>" in html
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert steady(str(answer))[-1] in words.replace("&gt;", ">")
    assert "<b>" not in insync_sheet("<b>bold</b>")


@pytest.mark.usefixtures("desk")
def test_a_kernel_of_a_notebook_shows_an_answer_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There rich shows what is printed on any console but one that is told not to."""
    elsewhere = insync.check("careful")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    answer = insync.check("careful")
    assert steady(str(answer)) == steady(str(elsewhere)) != []
    assert re.sub(r"[\d.,]+", "", notebook_html(answer)) == re.sub(r"[\d.,]+", "", notebook_html(elsewhere))
    assert capsys.readouterr() == ("", "")


def insync_sheet(cell: str) -> str:
    from insync_cli.terminal import print_table, sheet_of

    return sheet_of(lambda out: print_table(out, ("", ""), [(cell, cell)])).html


@pytest.mark.usefixtures("desk")
def test_an_answer_without_a_page_of_its_own_is_a_page() -> None:
    answer = insync.check("careful")
    assert answer.verdict == "HOLDS"
    page = answer.page()
    assert notebook_html(answer) in page
    assert "default-src 'none'" in page
    assert Loads(page).addresses == []


@pytest.mark.usefixtures("desk")
def test_a_violation_has_its_page_in_a_frame_while_its_trace_is_there() -> None:
    answer = insync.check("hasty", properties="never-ahead")
    (address,) = Loads(notebook_html(answer)).addresses
    assert address.startswith("data:text/html;charset=utf-8;base64,")
    trace = answer.property_named("never-ahead").trace
    assert trace is not None
    trace.unlink()
    with pytest.raises(InsyncError) as caught:
        answer.page()
    assert caught.value.exit_code == 65
    assert Loads(notebook_html(answer)).addresses == []


@pytest.mark.browser
@pytest.mark.usefixtures("desk")
def test_in_a_browser_the_frame_opens_walks_through_the_trace_and_asks_for_nothing(
    browser: "Browser", folder: Path
) -> None:
    from tests.support.pages import opened

    notebook = folder / "notebook.html"
    part = notebook_html(insync.check("hasty", properties="never-ahead"))
    notebook.write_text(f"<!doctype html><title>notebook</title>{part}", encoding="utf-8")
    with opened(browser, notebook) as tab:
        tab.page.locator("summary").first.click()
        inner = tab.page.frames[1]
        inner.wait_for_selector("#app svg", state="attached")
        assert "never-ahead" in inner.locator("#app").inner_text()
        inner.evaluate("insync.go(0)")
        for _ in range(100):
            if "t=0" in str(inner.evaluate("location.hash")):
                break
            tab.page.wait_for_timeout(100)
        else:
            pytest.fail(f"the page in the frame notes another step: {inner.evaluate('location.hash')}")
        assert tab.page.frames[0].evaluate("location.hash") == ""


def test_a_frame_cannot_be_left_by_its_text() -> None:
    assert Loads(frame('"></iframe><script src="https://example.org"></script>', "<i>")).tags == [
        "details",
        "summary",
        "iframe",
    ]
