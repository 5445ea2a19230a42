"""A long trace stays smooth: only what is near is drawn, and while a key is held only what is in sight."""

import json
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser
from tests.support.pages import NARROW, opened, page_text, plain_page

from isr_trace.itf import trace_from_text

pytestmark = pytest.mark.browser


def test_a_thousand_steps_stay_smooth(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "long.html"
    states = [{"x": i % 7, "y": {"#map": [[k, i // (k + 1)] for k in range(9)]}} for i in range(1001)]
    html.write_text(plain_page(trace_from_text(json.dumps({"vars": ["x", "y"], "states": states})), "long"))
    with opened(browser, html) as tab:
        times = cast("list[float]", tab.check("times(400, 200)"))
        assert tab.at() == 599
        assert cast("int", tab.value("document.querySelectorAll('*').length")) < 1500, "only what is near is drawn"
        assert times[100] < 100, "milliseconds for half of the steps, on a busy machine"
        held = cast("list[float]", tab.check("held(600, 60)"))
        assert tab.at() == 659
        assert held[30] < 100
        tab.page.locator('#lanes .lane-row.now[data-step="659"]').wait_for()
        assert "T659" in str(tab.page.locator("#lanes .lane-row.now").text_content()), (
            "what had to wait is there in the end"
        )


def test_while_a_key_is_held_what_is_out_of_sight_waits(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "case.html"
    html.write_text(page_text("hw-truncation-loss"))
    with opened(browser, html, "#t=0", size=NARROW) as tab:
        drawn = "document.querySelectorAll('#variables tbody tr.changed, #step .code').length"
        assert tab.value(f"(insync.rush(), insync.go(4), {drawn})") == 0, "neither the table, which is below, nor code"
        tab.page.locator("#step .code").first.wait_for()
        assert "acked" in tab.texts("#variables tbody tr.changed code")
        assert tab.page.locator("#step .code").count() > 0
