"""The picture of the README, made by a browser: `python -m tests.support.screenshots [REPORT]`.

It is the first screen of a page. Of a report (the folder that `insync report` made), docs/report.png is its summary.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize
from tests.support.pages import chromium, trace_file

from insync_cli.main import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
SIZE = ViewportSize(width=1440, height=900)
CASE = "overtaken-request"


def opened(browser: Browser, file: Path, *, scale: float = 1.0) -> Page:
    """The file in a window, without motion and without a network."""
    context = browser.new_context(
        viewport=SIZE, color_scheme="light", reduced_motion="reduce", offline=True, device_scale_factor=scale
    )
    page = context.new_page()
    page.goto(file.as_uri())
    return page


def small(path: Path) -> None:
    """The same picture with few colours: half of the bytes."""
    with Image.open(path) as drawn:
        few = drawn.convert("RGB").quantize(256)
    few.save(path, optimize=True)


def run(report: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        html = Path(folder) / f"{CASE}.html"
        assert main(["show", str(trace_file(CASE)), "--html", str(html), "--plain"]) == 0
        picture = DOCS / "pages" / f"{CASE}-{SIZE['width']}.png"
        opened(browser, html).screenshot(path=picture)
        small(picture)
        if report is not None:
            page = opened(browser, report.resolve() / "index.html", scale=1.2)
            page.locator(".framed:has(.overview)").screenshot(path=DOCS / "report.png")
            small(DOCS / "report.png")


if __name__ == "__main__":
    run(Path(sys.argv[1]) if sys.argv[1:] else None)
