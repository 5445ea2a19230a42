"""The page of an audit in a browser: every answer, and the shortest way to each loss one click away.

Without these the page could lack what the terminal says, or a link could open another loss than it stands by.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.support.pages import NARROW, opened

from insync_cli.main import main

pytestmark = pytest.mark.browser

TOP = Path(__file__).parents[2]
EXAMPLE = [str(TOP / "docs/examples/audit" / name) for name in ("topics.txt", "features.txt", "server.properties")]
NOTHING_LOST = """\
Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: 1\tEpoch: 1
Topic: <b>\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: <b>\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "audit.html"
    assert main(["audit", "--describe", *EXAMPLE, "--html", str(path), "--plain"]) == 2
    return path


def test_every_answer_and_the_way_to_every_loss(browser: Browser, file: Path) -> None:
    with opened(browser, file) as tab:
        assert tab.texts("#overview h1") == ["What can this cluster lose?"]
        summary = tab.page.locator("#overview table").first
        answers = summary.locator("tbody tr").nth(1).locator(".answer").all_text_contents()
        assert answers == ["survives"] * 4 + ["MAY BE LOST"] * 2 + ["survives"]
        ways = tab.page.locator("#overview .way")
        assert ways.count() == 5
        assert all(0 < len(way.locator("li").all()) <= 5 for way in ways.all())
        for n in range(ways.count()):
            way = tab.page.locator("#overview .way").nth(n)
            steps = way.locator("li").last.inner_text().split(":")[0]
            way.get_by_text("Walk through it").click()
            # the browser follows a link after the click is over
            tab.page.locator("#overview").wait_for(state="hidden")
            assert f"T{tab.at()}" == steps, "the link opens the step at which the record is lost"
            tab.press("g")
            assert tab.page.locator("#overview").is_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_whoever_sees_little_or_has_a_telephone_can_read_it(browser: Browser, file: Path, dark: bool) -> None:
    with opened(browser, file, size=NARROW, dark=dark) as tab:
        assert tab.value("document.documentElement.scrollWidth") == 390
        assert tab.check("faint()") == []
        assert tab.check("nameless()") == []


CUT_OFF = """() => [...document.querySelectorAll("#overview *")].filter((node) => {
  const box = node.getBoundingClientRect();
  return box.width && (box.right > innerWidth || box.left < 0 || node.scrollWidth > Math.max(node.clientWidth, 1) + 1)
    && getComputedStyle(node).display !== "inline";
}).map((node) => `${node.tagName}.${node.className} ${node.textContent.slice(0, 40)}`)"""


def test_no_column_is_cut_off_on_a_telephone(browser: Browser, file: Path) -> None:
    """Every cell is within 390 px without scrolling sideways, and says of which column it is."""
    with opened(browser, file, size=NARROW) as tab:
        assert tab.page.evaluate(CUT_OFF) == []
        cells = tab.page.locator("#overview table").first.locator("tbody tr").first.locator("td")
        heads = [cell.get_attribute("data-head") for cell in cells.all()]
        assert heads == ["topics", "nothing", "one crash", "one power loss", "one disk lost",
                         "a crash and a power loss", "two power losses", "a restart of all"]  # fmt: skip
        shown = [cell.evaluate("c => getComputedStyle(c, '::before').content") for cell in cells.all()]
        assert all(head in text for head, text in zip(heads, shown, strict=True))
    with opened(browser, file) as tab:
        assert tab.page.locator("#overview thead").first.is_visible()


def test_the_decision_and_what_to_type_are_on_the_page(browser: Browser, file: Path) -> None:
    with opened(browser, file, size=NARROW) as tab:
        assert tab.texts("#overview .result")[0].startswith("BROKEN NOW: 1 partition")
        assert any("--add-config min.insync.replicas=2" in text for text in tab.texts("#overview code"))
        assert "Not judged: clients" in tab.page.locator("#overview").inner_text()


def test_a_page_on_which_one_failure_loses_nothing(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(NOTHING_LOST, encoding="utf-8")
    html = tmp_path / "audit.html"
    assert main(["audit", "--describe", str(tmp_path / "t.txt"), "--html", str(html), "--plain"]) == 0
    with opened(browser, html) as tab:
        assert tab.texts("#overview .result")[0].startswith("FINE: ")
        assert any(text.startswith("<b>: 3 replicas") for text in tab.texts("#overview h2"))
        answers = tab.page.locator("#overview table").first.locator(".answer").all_text_contents()
        assert answers == ["survives"] * 4 + ["MAY BE LOST"] * 2 + ["survives"]
