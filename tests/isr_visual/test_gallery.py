"""Several traces on one page: a gallery, with a control for every counterexample.

Without these, a gallery could leave out a counterexample, or show one without the behaviour that keeps its promise.
"""

import json
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser
from tests.support.pages import NARROW, opened, trace_file

from insync_cli.main import main

pytestmark = pytest.mark.browser

CASE = "hw-truncation-loss"


def test_several_traces_are_a_gallery(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "gallery.html"
    assert main(["show", *(str(trace_file(c)) for c in (CASE, "jepsen-2013")), "--html", str(html)]) == 0
    with opened(browser, html) as tab:
        assert tab.page.locator("#counterexamples .thumb svg").count() == 2
        tab.page.locator("#counterexamples .thumb button").nth(1).click()
        assert "an acknowledged write with it" in tab.page.locator("h1").inner_text()
        tab.press("n", "g")
        assert tab.page.locator("#counterexamples .thumb").count() == 2


def test_a_gallery_is_grouped_and_filtered_and_read_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "gallery.html"
    cases = (CASE, "jepsen-2013", "kip-320-first-try", "power-loss-divergence")
    assert main(["show", *(str(trace_file(c)) for c in cases), "--html", str(html)]) == 0
    with opened(browser, html, size=NARROW) as tab:
        tab.page.get_by_label("Filter traces").fill("power loss")
        assert tab.texts("h2.group") == ["Counterexamples, 1", "Controls, 1"]
        tab.page.get_by_label("Filter traces").fill("nothing says this")
        assert "No trace says" in tab.page.locator("main").inner_text()
        tab.page.get_by_label("Filter traces").fill("")
        tab.page.get_by_label("Group by").select_option("design")
        assert tab.texts("h2.group")[:3] == ["zookeeper, 2", "kafka-0.8, 1", "kip-320-first-try, 1"]
        assert tab.check("small()") == []
        assert tab.value("document.documentElement.scrollWidth") == 390


def test_the_gallery_has_a_control_for_every_counterexample(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "gallery.html"
    cases = (CASE, "jepsen-2013", "kip-320-first-try")
    assert main(["show", *(str(trace_file(c)) for c in cases), "--html", str(html)]) == 0
    with opened(browser, html) as tab:
        controls = tab.page.locator("#controls .thumb")
        assert [text.split(":")[0] for text in tab.texts("#controls h3")] == [
            "kip-101",
            "jepsen-halt --unclean off",
            "kip-320",
        ]
        assert all("is kept to the end" in text for text in tab.texts("#controls .kept"))
        assert tab.page.locator("#controls .broken").count() == 0
        assert controls.locator("svg .hole.gone").count() == 0, "nothing that was promised is missing"
        assert tab.page.locator("#counterexamples svg .hole.gone").count() >= 2
        assert "It differs from T7 on" in controls.nth(0).inner_text()
        assert "It refuses T9" in controls.nth(2).inner_text()
        controls.nth(2).locator("button").click()
        assert tab.at() == len(cast("list[object]", json.loads(trace_file(cases[2]).read_text())["states"])) - 1
        assert tab.page.locator("#against").is_visible()
        assert tab.check("faint()") == []


def test_five_behaviours_show_what_it_looks_like_when_it_works(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "works.html"
    asked = ["sample", "kip-966", "--replicas", "2", "--count", "5", "--steps", "12", "--out", str(tmp_path)]
    assert main([*asked, "--html", str(html)]) == 0
    with opened(browser, html) as tab:
        assert tab.texts("h1") == ["5 behaviours"]
        assert "What it looks like when it works" in tab.page.locator(".gallery-head").inner_text()
        tab.page.locator(".thumb button").nth(0).click()
        assert (tab.at(), tab.texts(".caption .broken")) == (0, [])
