"""The page of a drill in a browser: a lane for each broker, on a telephone, too.

Without this a column could be cut off, or a colour could say something else than the table.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.support.pages import NARROW, opened

from insync_cli.main import main

pytestmark = pytest.mark.browser

TOPICS = """\
Topic: <b>\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=1
\tTopic: <b>\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr:\x20
\tTopic: <b>\tPartition: 1\tLeader: 2\tReplicas: 2,3,4\tIsr: 2,3,4\tElr: \tLastKnownElr:\x20
"""
CUT_OFF = """() => [...document.querySelectorAll("#overview *")].filter((node) => {
  const box = node.getBoundingClientRect();
  return box.width && (box.right > innerWidth || box.left < 0) && getComputedStyle(node).display !== "inline";
}).map((node) => `${node.tagName}.${node.className} ${node.textContent.slice(0, 40)}`)"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drill")
    (folder / "topics.txt").write_text(TOPICS, encoding="utf-8")
    words = ["--describe", str(folder / "topics.txt"), "--kafka", "4.4", "--elr", "on", "--plain"]
    assert main(["drill", *words, "stop 4; destroy 1; start 1 4", "--html", str(folder / "drill.html")]) == 12
    return folder / "drill.html"


def test_a_lane_for_each_broker_and_a_column_for_each_step(browser: Browser, file: Path) -> None:
    with opened(browser, file) as tab:
        assert tab.texts("#overview .result")[0].startswith("NO: acknowledged records of 1 of 2 partitions")
        assert tab.texts(".lane-step .lane-head") == ["now", "1 stop 4", "2 destroy 1", "3 start 1 4"]
        assert tab.texts(".lane-names .lane-name") == [f"broker {b}" for b in (1, 2, 3, 4)]
        third = tab.page.locator(".lane-step").nth(2).locator(".lane-cell")
        assert third.first.get_attribute("title") == "broker 1: disk gone; 1 may be lost"
        assert third.nth(1).get_attribute("title") == "broker 2: runs; 1 may be lost, 1 safe"
        assert [cell.locator("i.lost").count() for cell in third.all()] == [1, 1, 1, 0]
        last = tab.page.locator(".lane-step").nth(3).locator(".lane-cell").first
        assert last.get_attribute("title") == "broker 1: empty disk; 1 may be lost"
        assert any("1 is gone with its disk" in text for text in tab.texts("#overview .way li"))


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off_on_a_telephone(browser: Browser, file: Path, dark: bool) -> None:
    with opened(browser, file, size=NARROW, dark=dark) as tab:
        assert tab.value("document.documentElement.scrollWidth") == 390
        assert tab.page.evaluate(CUT_OFF) == []
        assert not tab.page.locator(".lane-names").is_visible()
        assert tab.page.locator(".lane-cell .who").first.is_visible()
