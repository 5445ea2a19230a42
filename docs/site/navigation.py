"""The navigation of the site, which is that of docs/README.md: by reader and question."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from docs.site.pages import INDEX, title_of

Entry = dict[str, "str | list[Entry]"]
"""A title, and its page or the entries below it, as MkDocs reads them."""

GUIDE = PurePosixPath("docs", INDEX)
SECTION = re.compile(r"^(?:\*\*(?P<bold>.+?)\*\*|#{2,} (?P<heading>.+))$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s#]+)")
START: Entry = {"Start": [{"insync": INDEX}, {"All pages by question": GUIDE.as_posix()}]}
NAMED_BY_FOLDER = ("found", "counterexamples")
"""Their pages have long titles, and their folders short names, which the command line takes, too."""
CORPORA = (("found",), ("counterexamples", "cases"), ("counterexamples", "quorum_cases"))
"""Folders of such pages, whose own page has a short title."""


class UnlistedPages(Exception):
    """Pages to which docs/README.md does not lead."""


def navigation(texts: Mapping[PurePosixPath, str], more: Iterable[Entry]) -> list[Entry]:
    """The sections of docs/README.md with the pages that they link to, each page once; then `more`.

    UnlistedPages if a page would be in no section: who looks for it by reader and question would not find it.
    """
    pages_before = {PurePosixPath(INDEX), GUIDE}
    entries = [START]
    parts = SECTION.split(texts[GUIDE])
    for bold, heading, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        pages = list(entries_of(texts, LINK.findall(body), pages_before))
        if pages:
            entries.append({(bold or heading).rstrip("."): pages})
    left = sorted(path.as_posix() for path in texts if to_read(path) and path not in pages_before)
    if left:
        raise UnlistedPages(f"{GUIDE} leads to none of these: {', '.join(left)}")
    return [*entries, *more]


def to_read(path: PurePosixPath) -> bool:
    """Whether a page is one that the repository has, and neither a source nor the listing of a folder."""
    return (
        path.suffix == ".md"
        and "." not in path.stem
        and path.name != "index.md"
        and path.parts[0] not in ("api", "examples")
    )


def entries_of(
    texts: Mapping[PurePosixPath, str], links: Iterable[str], pages_before: set[PurePosixPath]
) -> Iterator[Entry]:
    """An entry for each page that a section links to; of a folder, or of its README, one for all of its pages."""
    for link in links:
        path = without_dots(GUIDE.parent / link)
        if path not in texts or path in pages_before:
            continue
        pages_before.add(path)
        below = [p for p in sorted(texts) if within(p, path) and p not in pages_before and to_read(p)]
        pages_before.update(below)
        title = name_of(path, texts[path])
        if below:
            listed: list[Entry] = [{name_of(p, texts[p]): p.as_posix()} for p in below]
            yield {title: [{"Overview": path.as_posix()}, *listed]}
        elif "." not in path.stem:
            yield {title: path.as_posix()}


def within(path: PurePosixPath, index: PurePosixPath) -> bool:
    """Whether a page is in the folder of an index: docs/ and the top are no such folders, for they hold everything."""
    folder = index.parent
    return (
        index.name in (INDEX, "index.md") and folder not in (GUIDE.parent, PurePosixPath()) and folder in path.parents
    )


def name_of(path: PurePosixPath, text: str) -> str:
    """What the navigation calls a page."""
    if path.name == "index.md":
        return {"adr": "Decisions", "measurements": "Measurements"}.get(path.parent.name, path.parent.name)
    if path.parts[0] in NAMED_BY_FOLDER and path.parts[:-1] not in CORPORA:
        return path.parent.name
    return title_of(text) or path.stem


def without_dots(path: PurePosixPath) -> PurePosixPath:
    """The path without `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return PurePosixPath(*parts)
