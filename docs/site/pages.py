"""The pages of the site, where the repository has them: a copy of every Markdown file, in which every link works.

A page keeps its path, so a link from page to page stays as it is. What else of the repository a link names comes along:
a picture as it is, a file of text as a page that shows it, a folder as its README or as a page that lists it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os.path import relpath
from pathlib import Path, PurePosixPath

PICTURES = frozenset({".png", ".svg"})
LANGUAGES = {
    ".py": "python", ".java": "java", ".go": "go", ".mod": "text", ".toml": "toml", ".json": "json", ".tla": "tla",
}  # fmt: skip
"""What a source is coloured as, by its suffix; text if it is not listed."""
INDEX = "README.md"
PIECE = re.compile(
    r"(?P<fence>^ *(?P<mark>```+|~~~+).*?^ *(?P=mark)[`~]*[ \t]*$)"
    r"|(?P<code>(?<!`)(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`))"
    r"|\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)
"""A block of code, code in a line, or the target of a link: links in code are none."""
ITEM = re.compile(r"^(?:[-*+]|\d+[.)]) ")


class NoSuchTarget(Exception):
    """A link of a page leads nowhere."""


def page_paths(top: Path) -> Iterator[PurePosixPath]:
    """Every Markdown file that is a page, relative to the repository."""
    files = [*top.glob("*.md")]
    for folder in ("docs", "found", "counterexamples/cases", "counterexamples/quorum_cases"):
        files += (top / folder).rglob("*.md")
    for file in sorted(files):
        path = PurePosixPath(file.relative_to(top).as_posix())
        if path.parts[:2] != ("docs", "site") and not any(part.startswith(".") for part in path.parts):
            yield path


def title_of(text: str) -> str:
    """The first heading of a page."""
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def source_page(path: PurePosixPath) -> PurePosixPath:
    """The page that shows a file of text: spec/isr_model.py.md of spec/isr_model.py, so isr_model.py.html."""
    return path.with_name(f"{path.name}.md")


@dataclass
class Pages:
    """The files of the site before MkDocs has seen them, by path; those that links name join while pages are read.

    `extra` are pages that the repository does not have, by their path in the site; MkDocs reads them as they are.
    """

    top: Path
    extra: dict[PurePosixPath, str] = field(default_factory=dict[PurePosixPath, str])
    texts: dict[PurePosixPath, str] = field(default_factory=dict[PurePosixPath, str])
    pictures: set[PurePosixPath] = field(default_factory=set[PurePosixPath])
    problems: list[str] = field(default_factory=list[str])

    def gather(self) -> None:
        """Read every page, and what its links name, and what those name; NoSuchTarget with every dead link."""
        own = set(page_paths(self.top))
        self.texts = dict.fromkeys(own, "")
        for path in sorted(own):
            self.texts[path] = self.with_links(path, (self.top / path).read_text(encoding="utf-8"))
        self.texts |= self.extra
        if self.problems:
            raise NoSuchTarget("\n".join(self.problems))

    def with_links(self, page: PurePosixPath, text: str) -> str:
        """The page as MkDocs has to read it: every link names a file of the site, every list is seen as one."""

        def piece(match: re.Match[str]) -> str:
            target = match["target"]
            if target is None or "://" in target or target.startswith("mailto:"):
                return match[0]
            try:
                leads_to = self.target_of(page, target)
            except NoSuchTarget as problem:
                self.problems.append(str(problem))
                return match[0]
            return f"]({relpath(leads_to, page.parent)}{match['anchor'] or ''})"

        return spaced_lists(PIECE.sub(piece, text))

    def target_of(self, page: PurePosixPath, target: str) -> PurePosixPath:
        """The file of the site that a link means, which joins the site if it is new; NoSuchTarget if there is none."""
        path = PurePosixPath(relpath((self.top / page.parent / target).resolve(), self.top.resolve()))
        file = self.top / path
        if path in self.texts:
            return path
        if ".." in path.parts or not file.exists():
            raise NoSuchTarget(f"{page}: {target} is no file of the repository")
        if file.is_dir():
            return self.folder_page(path)
        if file.suffix in PICTURES:
            self.pictures.add(path)
            return path
        shown = source_page(path)
        if shown not in self.texts:
            self.texts[shown] = source_text(path, file.read_text(encoding="utf-8"))
        return shown

    def folder_page(self, folder: PurePosixPath) -> PurePosixPath:
        """The README of a folder; of one without, a page that lists what is in it."""
        if folder / INDEX in self.texts:
            return folder / INDEX
        page = folder / "index.md"
        if page not in self.texts:
            self.texts[page] = ""  # a file of the folder may link to it
            lines = [f"# {folder}", ""]
            for entry in sorted((self.top / folder).iterdir()):
                if entry.name.startswith((".", "__pycache__")):
                    continue
                target = self.target_of(page, entry.name)
                name = title_of(self.texts.get(target, "")) if entry.suffix == ".md" else ""
                lines.append(f"- [{name or entry.name}]({relpath(target, folder)})")
            self.texts[page] = "\n".join(lines) + "\n"
        return page

    def write(self, folder: Path) -> None:
        """All of it, into an empty folder."""
        for path, text in self.texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        for path in self.pictures:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes((self.top / path).read_bytes())


def source_text(path: PurePosixPath, text: str) -> str:
    """A page that shows a file of text, and is not searched: the search is for what was written to be read."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    language = LANGUAGES.get(path.suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def spaced_lists(text: str) -> str:
    """An empty line before each list: GitHub sees a list right below a paragraph, and Python-Markdown does not."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code ^= line.lstrip().startswith(("```", "~~~"))
        before = lines[-1] if lines else ""
        begins = (
            ITEM.match(line) and before.strip() and not before.startswith((" ", "#", "|")) and not ITEM.match(before)
        )
        if begins and not code:
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"
