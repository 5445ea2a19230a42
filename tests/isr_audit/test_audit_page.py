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
Topic: <b>\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: flush.messages=1
\tTopic: <b>\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1
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
        assert answers == ["survives", "survives", "survives", "MAY BE LOST", "MAY BE LOST", "survives"]
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


def test_a_page_without_any_loss_has_its_answers(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(NOTHING_LOST, encoding="utf-8")
    html = tmp_path / "audit.html"
    assert main(["audit", "--describe", str(tmp_path / "t.txt"), "--html", str(html), "--plain"]) == 0
    with opened(browser, html) as tab:
        assert tab.page.locator("#app").count() == 0
        assert "<b>: 1 replica" in tab.texts("#overview h2")[2]
        assert set(tab.texts("#overview .answer")) == {"survives"}
