"""The pictures of docs/pages, made by a browser: `python -m tests.support.screenshots [REPORT]`.

Four pages at three sizes, light and dark; of a report (the folder that `insync report` made) its first screen, too,
and docs/report.png, its summary.
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
SIZES = (
    ViewportSize(width=1440, height=900),
    ViewportSize(width=1024, height=768),
    ViewportSize(width=390, height=844),
)
CASES = ("overtaken-request", "jepsen-2013", "last-replica-standing", "kept-positions")
"""The gallery is of all of them; the first three have pictures of their own."""


def taken(browser: Browser, file: Path, name: str, folder: Path) -> None:
    """The first screen of a page at all sizes, light and dark."""
    for size in SIZES:
        for dark in (False, True):
            page = opened(browser, file, size, dark=dark)
            path = folder / f"{name}-{size['width']}{'-dark' if dark else ''}.png"
            page.screenshot(path=path)
            small(path)
            page.context.close()


def opened(browser: Browser, file: Path, size: ViewportSize, *, dark: bool, scale: float = 1.0) -> Page:
    """The file in a window, without motion and without a network."""
    context = browser.new_context(
        viewport=size,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        offline=True,
        device_scale_factor=scale,
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
    folder = DOCS / "pages"
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        files = [str(trace_file(case)) for case in CASES]
        shown = {"gallery": files} | {case: [file] for case, file in zip(CASES[:-1], files[:-1], strict=True)}
        for name, of in shown.items():
            html = Path(made) / f"{name}.html"
            assert main(["show", *of, "--html", str(html), "--plain"]) == 0
            taken(browser, html, name, folder)
        if report is not None:
            index = report.resolve() / "index.html"
            taken(browser, index, "report", folder)
            page = opened(browser, index, SIZES[0], dark=False, scale=1.2)
            page.locator(".framed:has(.overview)").screenshot(path=DOCS / "report.png")
            small(DOCS / "report.png")


if __name__ == "__main__":
    run(Path(sys.argv[1]) if sys.argv[1:] else None)
