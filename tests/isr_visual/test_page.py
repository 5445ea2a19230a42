"""The page in a browser, opened from the disk without a network: it says what the command line says, every key works,
and whoever sees little, uses no mouse or wants no motion can read it, too.

Without these, the page's own evaluator of the model could show another step or another reason than the command line,
and a page that only its author's browser can use would go out with every counterexample.
"""

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import attrs
import pytest
from playwright.sync_api import Browser, ViewportSize
from tests.support.models import copied_log
from tests.support.pages import CORPUS, NARROW, Opened, opened, page_text, plain_page, trace_file, with_data
from tests.support.traces import violation

from insync_cli.main import main
from isr_trace.itf import itf_text, read_itf, trace_from_text

pytestmark = pytest.mark.browser

CASE, LAST = "hw-truncation-loss", 9
START = "#t=0"
"""Where a test begins that walks; a page opens where the promise breaks."""
HASH = str(json.loads(trace_file(CASE).read_text())["#meta"]["model_hash"])
OTHER = "8" if HASH[0] == "7" else "7"
FOREIGN = """{"vars": ["big", "who"], "states": [
  {"big": 0, "who": {"#set": ["a"]}}, {"big": {"#bigint": "5"}, "who": {"#set": ["a", "b"]}},
  {"big": 2, "who": {"#map": [["x", {"#tup": [1, "<b>"]}]]}}]}"""
LOGS = """{"vars": ["log", "leader", "acked"], "loop": 1, "states": [
  {"log": {"#map": [["a", ["m1"]], ["b", []]]}, "leader": "a", "acked": {"#set": ["m1"]}},
  {"log": {"#map": [["a", ["m1"]], ["b", []]]}, "leader": "b", "acked": {"#set": ["m1"]},
   "more": {"x": {"y": [true]}}}]}"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "case.html"
    path.write_text(page_text(CASE), encoding="utf-8")
    return path


@pytest.fixture
def tab(browser: Browser, file: Path) -> Generator[Opened]:
    with opened(browser, file, START) as found:
        yield found


@pytest.fixture(scope="module")
def shared(browser: Browser, file: Path) -> Generator[Opened]:
    """One page for tests that start by opening the trace anew."""
    with opened(browser, file) as found:
        yield found


# The same answers as elsewhere


@pytest.mark.parametrize("case", ["planned-move-20554", "kip-320-first-try"])
def test_the_diff_and_the_strip_of_every_step_are_those_of_the_command_line(
    browser: Browser, tmp_path: Path, case: str
) -> None:
    html, told = tmp_path / "page.html", tmp_path / "told.json"
    assert main(["show", str(trace_file(case)), "--html", str(html), "--json", str(told)]) == 0
    report = json.loads(told.read_text())
    with opened(browser, html) as tab:
        tab.page.get_by_label("All promises").check()
        for i in range(len(report["steps"]) + 1):
            tab.value(f"insync.go({i})")
            assert tab.check("shownChanges()") == (report["steps"][i - 1]["changes"] if i else [])
            assert tab.check(f"shownTruths({i})") == {name: holds[i] for name, holds in report["properties"].items()}


@pytest.mark.parametrize("case", [CASE, "jepsen-2013"])
def test_what_the_page_computes_itself_is_what_the_model_computed(browser: Browser, tmp_path: Path, case: str) -> None:
    html = tmp_path / "page.html"
    html.write_text(page_text(case))
    with opened(browser, html) as tab:
        assert tab.check("otherwise()") == []


def test_the_reason_names_the_conjunct_and_the_witness(tab: Opened) -> None:
    tab.press("b")
    assert tab.at() == LAST
    said = tab.page.locator(".why").inner_text()
    assert "committed.is_prefix_of(log[r2])" in said
    assert "log[r2] = []" in said
    tab.page.locator("tr.property", has_text="weak-isr").locator('td[data-step="7"]').click()
    assert tab.at() == 7
    assert "weak-isr is broken at T7" in tab.page.locator(".why-head").inner_text()


def test_the_first_screen_is_the_moment_it_breaks_with_its_story(browser: Browser, file: Path) -> None:
    for size in (ViewportSize(width=1440, height=900), ViewportSize(width=1024, height=768)):
        with opened(browser, file, size=size) as tab:
            assert tab.at() == LAST
            told = tab.texts(".story li")
            assert len(told) == 5
            assert "T7cause" in told[1]
            assert "r2 began to follow, and lost record 0, and only r1 has it" in told[1]
            assert "Without this step all others happen and the promise holds" in told[1]
            assert "T9breaks" in told[3]
            assert "the leader r2 does not have it: committed-on-new-leader is broken" in told[3]
            assert "kip-101 keeps the promise" in told[4]
            assert tab.texts(".caption .loss") == [
                "LOST: record 0 was acknowledged, and the leader r2 does not have it"
            ]
            for part in ("#scene svg.scene", "#story .story"):
                box = tab.page.locator(part).bounding_box()
                assert box is not None
                assert box["y"] + box["height"] <= size["height"], f"{part} is on the first screen"


def test_the_page_says_what_to_do_now_and_with_which_command(tab: Opened) -> None:
    assert tab.texts(".todo p") == [
        "kip-101 keeps the promise: Truncation by the leader epoch, looked up in the leader's log. "
        "It does otherwise at T7: log[r2] is 0.",
        "which Kafka: docs/versions.md says which releases of Kafka have this design",
        "ask whether that is always so: insync check kip-101 --log 1 --records 1 --crashes 1 --unnoticed 1 "
        "--property committed-on-new-leader",
    ]


def test_the_banner_of_a_loss_comes_with_the_broken_promise(tab: Opened) -> None:
    tab.value("insync.go(8)")
    assert tab.texts(".caption .loss")[0].startswith("AT RISK: ")
    tab.press("n")
    assert tab.texts(".caption .loss")[0].startswith("LOST: ")
    assert "acked-survives" in tab.texts(".caption .broken")[0]
    assert "leaders-complete" not in tab.texts(".caption .broken")[0], "which was broken before this step"


def test_play_plays_to_the_end_and_stops(browser: Browser, file: Path) -> None:
    with opened(browser, file, "#t=6") as tab:
        tab.page.get_by_role("button", name="Play").click()
        place = tab.page.locator("output.place")
        place.get_by_text("T8 / 9").wait_for()
        assert tab.page.get_by_role("button", name="Stop").is_visible()
        place.get_by_text("T9 / 9").wait_for()
        tab.page.get_by_role("button", name="Play").wait_for()
        tab.page.get_by_role("button", name="Play").click()
        assert tab.at() == 0, "from the end it starts again"
        tab.press("n")
        assert tab.value("insync.timers.playing") == 0, "whoever walks stops it"


def test_the_scene_says_what_the_state_is(tab: Opened) -> None:
    tab.value("insync.go(9)")
    said = str(tab.page.locator("#scene svg").get_attribute("aria-label"))
    assert said == "r1 leads, log [0], watermark 1; r2 leads, log [], watermark 0; in sync {r1, r2}"
    assert tab.page.locator("#scene .hole.gone").count() == 1, "where the record should be"
    assert tab.texts("#scene .badge.deposed text") == ["thinks it leads"]
    assert "LOST: record 0" in tab.page.locator("#live").inner_text()


def test_the_code_that_ran_stands_beside_the_scene(tab: Opened) -> None:
    tab.value("insync.go(4)")
    assert "def leader_answers_fetch" in tab.page.locator("#step .code").first.inner_text()
    lit = [line.strip() for line in tab.texts("#step .code .line.lit")]
    assert any("new.follower_end[leader] == ends" in line for line in lit)


# Keys, links, branches


@pytest.mark.parametrize(
    ("keys", "at"),
    [
        (("ArrowRight",), 1),
        (("n", "n", "p"), 1),
        (("End",), LAST),
        (("End", "ArrowLeft"), LAST - 1),
        (("End", "Home"), 0),
        (("ArrowLeft",), 0),
        (("End", "ArrowRight"), LAST),
        (("e",), 4),
        (("e", "e"), 5),
        (("End", "E"), 8),
        (("b",), LAST),
        (("/", *"crashes", "Enter"), 5),
        (("/", *"size(log[r2]) > 0", "Enter"), 3),
        (("/", *"r2 in old.alive and not r2 in alive", "Enter"), 5),
        (("/", *"crashes", "Escape", "u"), 5),
        (("/", *"restarts", "Enter", "Escape", "End", "u"), 6),
    ],
)
def test_a_key_leads_there(shared: Opened, keys: tuple[str, ...], at: int) -> None:
    shared.value("insync.open(0, 0)")
    shared.press(*keys)
    assert shared.at() == at
    assert shared.page.locator("output.place").inner_text() == f"T{at} / {LAST}"


def test_each_colour_is_stated_once_for_light_and_dark() -> None:
    """Stated twice, one of them is forgotten."""
    sheets = [p for p in (CORPUS.parent / "isr_visual" / "style").glob("*.css") if p.name != "print.css"]
    sheets.append(CORPUS.parent / "isr_report" / "templates" / "report.css")
    stated = [
        found for sheet in sheets for found in re.findall(r"^\s*(--[\w-]+): (.*);", sheet.read_text(), re.MULTILINE)
    ]
    assert len({name for name, _ in stated}) == len(stated) > 20
    assert {value.split("(")[0] for name, value in stated if name not in ("--sans", "--mono")} == {"light-dark"}


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_a_lane_says_whose_minimum_it_takes_and_nothing_runs_into_its_log(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    (tmp_path / "page.html").write_text(page_text("last-replica-standing"), encoding="utf-8")
    with opened(browser, tmp_path / "page.html", size=ViewportSize(width=width, height=800)) as tab:
        assert any(text.startswith("ISR {r1}: min LEO = ") for text in tab.texts("#scene .rule"))
        tab.value("insync.go(5)")
        assert any(text.startswith("maximal ISR {r1, r2}: min LEO") for text in tab.texts("#scene .rule"))
        crossing = """[...document.querySelectorAll('#scene svg text.t-small')].filter((text) => {
            const a = text.getBoundingClientRect();
            return [...document.querySelectorAll('#scene svg .cell rect')].some((cell) => {
                const b = cell.getBoundingClientRect();
                return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
            });
        }).map((text) => text.textContent)"""
        assert tab.value(crossing) == []


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_is_that_of_the_reader_until_it_is_turned(browser: Browser, file: Path, dark: bool) -> None:
    with opened(browser, file, dark=dark) as tab:
        grounds = [tab.value("getComputedStyle(document.body).backgroundColor")]
        for _ in range(2):
            tab.press("t")
            grounds.append(tab.value("getComputedStyle(document.body).backgroundColor"))
    light, night = "rgb(246, 246, 244)", "rgb(18, 20, 23)"
    assert grounds == ([night, light, night] if dark else [light, night, light])


def test_the_other_keys_do_what_they_say(tab: Opened) -> None:
    for key, section in (("1", "scene"), ("2", "lanes"), ("3", "variables"), ("w", "whatif")):
        tab.press(key)
        assert tab.value("document.activeElement.id") == section
    tab.press("n", "c")
    assert tab.page.locator("#variables tbody tr").count() == 2, "log and written_in"
    tab.press("c", "t")
    assert tab.value("document.documentElement.dataset.theme") == "dark"
    tab.press("t", "?")
    assert tab.page.locator("dialog.help").is_visible()
    tab.press("Escape")
    assert not tab.page.locator("dialog.help").is_visible()
    tab.press("g")
    assert tab.at() == 1, "one trace is no gallery"
    tab.press("l")
    assert "#t=1" in str(tab.value("location.hash"))


def test_a_question_comes_before_an_event_if_one_wants_it(tab: Opened) -> None:
    tab.press("a", "n", "n", "n")
    assert tab.at() == 3
    tab.press("n")
    assert (tab.at(), "which producer" in tab.page.locator(".question").inner_text().lower()) == (3, True)
    tab.page.get_by_role("button", name="Reveal").click()
    assert tab.at() == 4


def test_a_link_leads_to_its_step_and_says_when_the_model_is_another(browser: Browser, file: Path) -> None:
    with opened(browser, file, START) as tab:
        tab.press("n", "n")
        link = str(tab.value("insync.link()"))
    with opened(browser, file, link) as tab:
        assert (tab.at(), tab.texts(".banner")) == (2, [])
    with opened(browser, file, link.replace(f"model={HASH[0]}", f"model={OTHER}")) as tab:
        assert f"The link was made for model {OTHER}" in tab.texts(".banner")[0]
    with opened(browser, file, "#t=77") as tab:
        assert "leads to step 77" in tab.texts(".banner")[0]


@pytest.mark.parametrize(
    ("kind", "old", "new", "said"),
    [
        ("document", f'"model_hash":"{HASH[0]}', f'"model_hash":"{OTHER}', f"The trace names model {HASH[0]}"),
        ("itf", HASH, 16 * "0", "its checksum does not fit"),
        ("itf", '[\\"r1\\", [0]]', '[\\"r1\\", [ ]]', "its checksum does not fit"),
    ],
)
def test_a_page_that_was_tampered_with_says_so(
    browser: Browser, file: Path, tmp_path: Path, kind: str, old: str, new: str, said: str
) -> None:
    planted = tmp_path / "planted.html"
    planted.write_text(with_data(file.read_text(), kind, old, new))
    with opened(browser, planted) as tab:
        assert said in "\n".join(tab.texts(".banner"))


def test_an_old_trace_says_that_the_model_has_changed(browser: Browser, tmp_path: Path) -> None:
    old, html = tmp_path / "old.itf.json", tmp_path / "old.html"
    old.write_text(trace_file(CASE).read_text().replace(HASH, "00000000deadbeef"))
    assert main(["show", str(old), "--html", str(html)]) == 65
    with opened(browser, html, "#t=4") as tab:
        assert "The model has changed since" in tab.texts(".banner")[0]
        assert tab.page.locator("#scene svg .cell.e0").count() > 0, "the file still opens"


def test_a_reader_can_leave_the_trace_and_come_back(tab: Opened) -> None:
    tab.value("insync.go(6)")
    tab.page.locator("#whatif .way", has_text="controller moves leadership").click()
    assert "off it" in tab.page.locator("#scene .off").inner_text()
    assert tab.value("insync.view.here.changes.map((c) => c.path)") == [
        "controller_leader",
        "controller_epoch",
        "controller_partition_epoch",
    ]
    assert any("leader r2" in text for text in tab.texts("#scene svg text"))
    link = str(tab.value("insync.link()"))
    tab.press("Escape")
    assert tab.page.locator("#scene .off").count() == 0
    tab.value(f"history.replaceState(null, '', '#'); location.hash = {json.dumps(link)}")
    tab.page.locator("#scene .off").wait_for()


def test_from_any_state_a_reader_goes_on_as_far_as_the_model_allows(tab: Opened) -> None:
    tab.value("insync.go(0)")
    for i in range(25):
        ways = tab.page.locator("#whatif .way")
        if ways.count() == 0:
            break
        ways.nth(i % ways.count()).click()
    assert (
        cast("int", tab.value("insync.view.trail.length")) > 15
        or "no action" in tab.page.locator("#whatif").inner_text()
    )
    before = cast("int", tab.value("insync.view.trail.length"))
    tab.page.get_by_role("button", name="One step back").click()
    assert tab.value("insync.view.trail.length") == before - 1


def test_what_else_lists_what_it_breaks_newly(tab: Opened) -> None:
    tab.value("insync.go(8)")
    said = {str(tab.value(f"document.querySelectorAll('#whatif li')[{i}].textContent")) for i in range(2)}
    told = next(text for text in said if "the trace" in text)
    assert "breaks acked-survives, committed-on-new-leader" in told
    assert "leaders-complete" not in told, "which is broken already"


def test_the_other_design_stands_beside_the_trace_and_the_first_difference_is_marked(tab: Opened) -> None:
    assert tab.texts("#against .turn.parts") == ["T7"]
    tab.page.locator("#against .turn.parts").click()
    assert "def becomes_follower_truncating" in tab.page.locator("#against .code").inner_text()
    assert tab.value("new Roles(insync.trace.about.roles, insync.trace.otherValues[7]).log('r2')") == ["0"]
    tab.press("End")
    assert "Every promise is kept" in tab.page.locator("#against").inner_text()


def test_variables_can_be_pinned_hidden_and_watched(tab: Opened) -> None:
    first = "#variables tbody tr:first-child code"
    tab.page.get_by_label("pin acked").click()
    assert tab.page.locator(first).inner_text() == "acked"
    tab.value("insync.go(4)")
    tab.page.get_by_label("hide acked").first.click()
    assert "acked" not in tab.texts("#step .changes th")
    tab.page.get_by_label("Search text or predicate").fill("committed - log[r2]")
    tab.page.get_by_role("button", name="Watch", exact=True).click()
    tab.value("insync.go(9)")
    assert tab.page.locator(".watches b").inner_text() == "[0]"
    tab.page.get_by_label("Search text or predicate").fill("log[r2")
    tab.page.get_by_role("button", name="Watch", exact=True).click()
    assert tab.page.locator(".note").inner_text() == "']' expected at the end"


# Taking along


def test_the_trace_comes_out_as_it_went_in(tab: Opened, tmp_path: Path) -> None:
    with tab.page.expect_download() as taken:
        tab.press("i")
    taken.value.save_as(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == trace_file(CASE).read_text() == itf_text(read_itf(trace_file(CASE)))


def test_the_scene_comes_out_as_a_picture_that_stands_alone(tab: Opened, tmp_path: Path) -> None:
    tab.value("insync.go(9)")
    with tab.page.expect_download() as taken:
        tab.press("s")
    taken.value.save_as(tmp_path / "out.svg")
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "class=" not in (tmp_path / "out.svg").read_text()
    assert "no 0" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_on_paper_every_step_has_its_picture(tab: Opened) -> None:
    tab.value("window.dispatchEvent(new Event('beforeprint'))")
    tab.page.emulate_media(media="print")
    assert tab.page.locator("#sheet li svg").count() == LAST + 1
    assert not tab.page.locator(".bar").is_visible()
    assert len(tab.page.pdf()) > 10_000


# Other traces


def test_a_trace_of_another_program_opens(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "foreign.html"
    html.write_text(plain_page(trace_from_text(FOREIGN), "jugs"))
    with opened(browser, html) as tab:
        tab.press("End")
        assert tab.texts("#scene dd") == ["2", "x[1, <b>]"]
        assert tab.texts("#step .changes th") == ["big", "who"]
        assert tab.page.locator("#lanes .dot").count() == 4
        assert tab.texts(".banner") == []


def test_a_trace_of_another_program_with_logs_has_a_scene(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "logs.html"
    html.write_text(plain_page(trace_from_text(LOGS), "logs"))
    with opened(browser, html, "#t=1") as tab:
        assert tab.texts("#scene .badge text") == ["follower", "leader"]
        assert tab.texts("#scene .hole.gone text") == ["no m1"]
        assert tab.page.locator("#scene .chip").count() == 0, "it says nothing of an in-sync set"
        assert "LOST: record m1" in tab.page.locator("#step").inner_text()
        assert tab.texts("#variables tbody th") == ["log", "leader", "acked", "more"]


@pytest.mark.parametrize(
    ("loop", "head", "said"),
    [
        (2, ["T3loop", "T4loop", "T5loop"], "Then T2 again, for ever, and what was promised never comes."),
        (5, ["T5stays"], "T5 for ever: nothing happens any more, and what was promised never comes."),
    ],
)
def test_what_happens_for_ever_has_a_band(
    browser: Browser, tmp_path: Path, loop: int, head: list[str], said: str
) -> None:
    html = tmp_path / "lasso.html"
    lasso = attrs.evolve(violation(copied_log.UNCLEAN), loop=loop, kind="eventually")
    html.write_text(plain_page(lasso, "lasso"))
    with opened(browser, html) as tab:
        assert tab.texts(".timeline th.loop") == head
        assert said in tab.page.locator(".story").inner_text()
        tab.press("End")
        assert ("then nothing, for ever" in tab.page.locator("#step").inner_text()) is (loop == 5)


# For everybody


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("step", [7, LAST])
def test_all_text_stands_out_from_what_is_behind_it(browser: Browser, file: Path, dark: bool, step: int) -> None:
    with opened(browser, file, f"#t={step}", dark=dark) as tab:
        assert tab.check("faint()") == []


def test_everything_that_can_be_used_has_a_name(tab: Opened) -> None:
    assert tab.check("nameless()") == []
    assert tab.check("sameIds()") == []
    assert tab.value("document.documentElement.lang") == "en"
    assert tab.texts("h1") == ["Truncating to the high watermark loses a committed record"]


def test_the_focus_goes_where_the_eye_goes_and_stays_through_a_step(tab: Opened) -> None:
    tab.press("Tab")
    assert tab.value("document.activeElement.className") == "skip"
    places: list[str] = []
    for _ in range(24):
        tab.press("Tab")
        places.append(str(tab.check("part()")))
        shown = tab.value("getComputedStyle(document.activeElement).outlineStyle")
        assert shown != "none", "one sees where one is"
    order = list(dict.fromkeys(places))
    assert order[:2] == ["top", "bar"]
    tab.page.get_by_label("pin acked").focus()
    tab.press("n")
    assert tab.value("document.activeElement.getAttribute('aria-label')") == "pin acked"


def test_who_wants_no_motion_gets_none(browser: Browser, file: Path) -> None:
    for still, moving in ((True, 0), (False, 1)):
        with opened(browser, file, START, still=still) as tab:
            tab.press("n")
            moved = cast("int", tab.value("document.getAnimations().length"))
            assert (moved > 0) is bool(moving)


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_telephone_nothing_is_cut_off(browser: Browser, file: Path, dark: bool) -> None:
    with opened(browser, file, "#t=9", size=NARROW, dark=dark) as tab:
        assert tab.value("document.documentElement.scrollWidth") == 390
        assert tab.check("small()") == [], "text keeps its size"
