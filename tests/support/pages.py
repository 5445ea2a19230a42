"""Pages of traces, opened in a real Chromium without a network, for the tests of the visualiser."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import attrs
from playwright.sync_api import Browser, Page, Route, ViewportSize, sync_playwright

from insync_cli.view.pages import trace_document
from isr_trace.itf import itf_text, read_itf
from isr_trace.trace import Trace
from isr_visual.document import Document, document
from isr_visual.page import page

COUNTEREXAMPLES = Path(__file__).resolve().parents[2] / "counterexamples"
CORPUS, QUORUM_CORPUS = COUNTEREXAMPLES / "cases", COUNTEREXAMPLES / "quorum_cases"
CHROMIUM = "/usr/bin/chromium"
CHECKS = Path(__file__).resolve().parent / "page_checks.js"
WIDE, NARROW = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=844)


def trace_file(case: str) -> Path:
    corpus = QUORUM_CORPUS if (QUORUM_CORPUS / case).is_dir() else CORPUS
    return corpus / case / "trace.itf.json"


def document_of(case: str) -> Document:
    path = trace_file(case)
    return trace_document(path, read_itf(path))


def page_text(case: str) -> str:
    return page([(document_of(case), itf_text(read_itf(trace_file(case))))], case)


def plain_page(trace: Trace, name: str = "trace") -> str:
    """The page of a trace whose model is not at hand."""
    return page([(document(trace, name), itf_text(trace))], name)


@attrs.define
class Opened:
    """A page in the browser, and what should not have happened on it."""

    page: Page
    requests: list[str] = attrs.field(factory=list[str])
    complaints: list[str] = attrs.field(factory=list[str])

    def value(self, script: str) -> object:
        return cast("object", self.page.evaluate(script))

    def check(self, call: str) -> object:
        """What one of the functions of page_checks.js says: `small()`."""
        return self.value(f"{CHECKS.read_text(encoding='utf-8').rstrip().rstrip(';')}.{call}")

    def at(self) -> int:
        return cast("int", self.value("insync.view.at"))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_text_contents()


@contextmanager
def chromium() -> Generator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser,
    file: Path,
    link: str = "",
    *,
    size: ViewportSize = WIDE,
    dark: bool = False,
    still: bool = False,
) -> Generator[Opened]:
    """The file as a reader opens it: from the disk, and without a network; `still`: who wants no motion."""
    context = browser.new_context(
        viewport=size,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce" if still else "no-preference",
        offline=True,
    )
    tab = context.new_page()
    found = Opened(tab)

    def refuse(route: Route) -> None:
        found.requests.append(route.request.url)
        route.abort()

    tab.route(lambda url: not url.startswith(("file:", "blob:")), refuse)
    tab.on("console", lambda message: found.complaints.append(message.text))
    tab.on("pageerror", lambda error: found.complaints.append(str(error)))
    tab.goto(file.as_uri() + link)
    yield found
    assert not found.requests, "a page loads nothing"
    assert not found.complaints, "a page complains about nothing"
    context.close()


def with_data(text: str, kind: str, old: str, new: str) -> str:
    """The page with something replaced in its data, and nowhere else."""
    start = text.index(f'<script type="application/json" class="{kind}"')
    end = text.index("</script>", start)
    data = text[start:end]
    assert json.dumps(old)[1:-1] in data or old in data
    return text[:start] + data.replace(old, new) + text[end:]
