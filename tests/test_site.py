"""The site of `make site`: every link leads somewhere, every page is found by reader and question, all offline.

Without these a page that moves, or a file that a page links to, leaves a reader of the site at a dead end.
"""

import os
import re
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import pytest
from docs.site import build, examples
from docs.site.navigation import UnlistedPages, navigation
from docs.site.pages import NoSuchTarget, Pages, spaced_lists
from playwright.sync_api import Browser
from tests.support.pages import NARROW, WIDE, opened

ELSEWHERE = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="?(?:https?:)?//')


def repository(top: Path, **files: str) -> Pages:
    """Pages of a repository of a few files; a name has `__` for `/`."""
    texts = {
        "README.md": "# It\n",
        "docs__README.md": "## I read\n\n[it](page.md)\n",
        "docs__page.md": "# Page\n",
    } | files
    for name, text in texts.items():
        file = top / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Pages(top)


def page_of(pages: Pages, path: str) -> str:
    pages.gather()
    return pages.texts[PurePosixPath(path)]


def test_every_page_of_the_repository_has_its_links_and_its_place() -> None:
    pages = Pages(build.TOP)
    pages.gather()
    sections = {title for entry in navigation(pages.texts, ()) for title in entry}
    assert {"Start", "I run Kafka"} < sections
    assert len(pages.texts) > 100


def test_a_link_to_a_page_stays_and_one_to_a_source_leads_to_a_page_that_shows_it(tmp_path: Path) -> None:
    links = "# Page\n\n[p](README.md#i) [s](../spec/a.py) [f](other) ![i](i.png)\n"
    more = {"spec__a.py": "x = '```'\n", "docs__other__a.txt": "x\n", "docs__i.png": "png"}
    pages = repository(tmp_path, **{"docs__page.md": links}, **more)
    text = page_of(pages, "docs/page.md")
    assert text.splitlines()[2] == "[p](README.md#i) [s](../spec/a.py.md) [f](other/index.md) ![i](i.png)"
    assert "````python\nx = '```'\n````" in pages.texts[PurePosixPath("spec/a.py.md")]
    assert "[a.txt](a.txt.md)" in pages.texts[PurePosixPath("docs/other/index.md")]
    assert pages.pictures == {PurePosixPath("docs/i.png")}


@pytest.mark.parametrize("target", ["gone.md", "gone.py", "../../outside.md", "gone/"])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, target: str) -> None:
    with pytest.raises(NoSuchTarget, match=r"docs/page\.md: .* is no file of the repository"):
        repository(tmp_path, **{"docs__page.md": f"[x]({target})\n"}).gather()


def test_what_looks_like_a_link_in_code_is_none(tmp_path: Path) -> None:
    text = "`[x](a)` and\n\n```sh\n[x](b)\n```\n\n``[`x`](c)``\n"
    assert page_of(repository(tmp_path, **{"docs__page.md": text}), "docs/page.md") == text


def test_a_page_to_which_no_question_leads_is_named(tmp_path: Path) -> None:
    pages = repository(tmp_path, **{"docs__hidden.md": "# Hidden\n"})
    pages.gather()
    with pytest.raises(UnlistedPages, match=r"docs/hidden\.md"):
        navigation(pages.texts, ())


def test_a_folder_brings_its_pages_into_the_navigation(tmp_path: Path) -> None:
    files = {"docs__README.md": "## I read\n\n[it](page.md) [all](adr)\n", "docs__adr__1.md": "# One\n"}
    pages = repository(tmp_path, **files)
    pages.gather()
    (_, section) = navigation(pages.texts, ())
    assert section == {
        "I read": [
            {"Page": "docs/page.md"},
            {"Decisions": [{"Overview": "docs/adr/index.md"}, {"One": "docs/adr/1.md"}]},
        ]
    }


def test_a_list_below_a_paragraph_is_one_for_mkdocs_too() -> None:
    assert spaced_lists("Text:\n- a\n- b\n  c\n- d\n") == "Text:\n\n- a\n- b\n  c\n- d\n"
    assert spaced_lists("```\nText:\n- a\n```\n") == "```\nText:\n- a\n```\n"


def require_mkdocs() -> None:
    """Skip the calling test without MkDocs; fail it under CI."""
    if find_spec("mkdocs") is None:
        reason = "MkDocs is not installed (make site-tools)"
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{reason}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(reason)


@pytest.mark.processes
@pytest.mark.browser
def test_the_site_is_built_without_a_warning_and_works_from_a_folder(browser: Browser, tmp_path: Path) -> None:
    """MkDocs is strict: a link or an anchor that leads nowhere ends it."""
    require_mkdocs()
    site = tmp_path / "site"
    assert build.build(tmp_path / "pages", site) == 0
    pages = [*site.rglob("*.html")]
    assert len(pages) > 100
    assert not [page for page in pages if ELSEWHERE.search(page.read_text(encoding="utf-8"))]
    for path in ("index.html", "docs/audit.html", "api/isr_lang.html", "spec/isr_model.py.html"):
        for dark in (False, True):
            with opened(browser, site / path, size=NARROW, dark=dark) as shown:
                assert shown.value("document.documentElement.scrollWidth") == NARROW["width"], path
    with opened(browser, site / "docs" / "glossary.html", size=WIDE) as shown:
        shown.page.locator(".md-search__input").click()
        shown.page.keyboard.type("lagging follower")
        shown.page.locator(".md-search-result__item").first.wait_for(timeout=60_000)


@pytest.mark.long
def test_what_must_not_be_shown_to_others_is_seen(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.mkdir()
    (report / "index.html").write_text('<a href="a%20b.html#part">', encoding="utf-8")
    assert examples.reasons_to_hide(report) == ["a b.html is no file of it"]
    (report / "a b.html").write_text("made in /home/somebody", encoding="utf-8")
    assert examples.reasons_to_hide(report) == ["a b.html names a machine"]
    (report / "a b.html").write_text("x" * (examples.LARGEST + 1), encoding="utf-8")
    assert len(examples.reasons_to_hide(report)) == 1
    (report / "a b.html").write_text("x", encoding="utf-8")
    assert not examples.reasons_to_hide(report)


def test_a_link_of_any_page_of_the_example_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "index.html").write_text('<a href="gallery.html#trace=ab&amp;step=1">', encoding="utf-8")
    (tmp_path / "gallery.html").write_text('{"digest":"abcd"}', encoding="utf-8")
    (tmp_path / "pages" / "a.html").write_text('<a href="../index.html#top"><a href="b.html">', encoding="utf-8")
    assert examples.reasons_to_hide(tmp_path) == ["pages/b.html is no file of it"]
    (tmp_path / "pages" / "b.html").write_text('<a href="#here">', encoding="utf-8")
    (tmp_path / "gallery.html").write_text('{"digest":"cdef"}', encoding="utf-8")
    assert examples.reasons_to_hide(tmp_path) == ["gallery.html has no trace ab"]
