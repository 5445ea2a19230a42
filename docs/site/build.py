"""`make site`: everything that there is to read here, as one static site; it opens from a folder and needs no network.

    python -m docs.site.build [--without-examples]

Without examples it is the site as tests build it: every page, every link, and nothing that takes minutes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.site import api, examples
from docs.site.navigation import Entry, UnlistedPages, navigation
from docs.site.pages import NoSuchTarget, Pages, title_of

TOP = Path(__file__).resolve().parents[2]
HERE = TOP / "docs" / "site"
BUILD = TOP / "build"


def more() -> list[Entry]:
    """What the navigation has beside the sections of docs/README.md."""
    reference: list[Entry] = [{title_of(text) or path.stem: path.as_posix()} for path, text in api.pages().items()]
    samples: list[Entry] = [
        {"Overview": examples.PAGE.as_posix()},
        {"A report": (examples.REPORT / "index.html").as_posix()},
        {"All cases": examples.GALLERY.as_posix()},
        {"Today's protocol in TLA+": "docs/kip-966.tla.md"},
    ]
    return [{"Examples": samples}, {"API": reference}]


def stage(folder: Path) -> Path:
    """Everything that MkDocs reads, in a folder that is made anew; the file of its settings is the answer."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = Pages(TOP, extra={examples.PAGE: examples.OVERVIEW} | api.pages())
    pages.gather()
    pages.write(folder / "pages")
    examples.placeholders(folder / "pages")
    shutil.copy(HERE / "style.css", folder / "pages")
    shutil.copy(HERE / "worker.js", folder / "pages" / "iframe-worker.js")  # Material knows it by this name
    settings = folder / "mkdocs.yml"
    own = {
        "INHERIT": str(HERE / "mkdocs.yml"),
        "docs_dir": str(folder / "pages"),
        "nav": navigation(pages.texts, more()),
    }
    settings.write_text(json.dumps(own, indent=1), encoding="utf-8")  # JSON is YAML
    return settings


def build(folder: Path, site: Path) -> int:
    """The site without examples; the exit code is that of MkDocs, which fails if a link or an anchor leads nowhere."""
    try:
        settings = stage(folder)
    except (NoSuchTarget, UnlistedPages, examples.Failed) as problem:
        print(problem, file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(settings)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # of Material's future, in every build
    return subprocess.run([*command, "--site-dir", str(site)], cwd=TOP, env=quiet, check=False).returncode


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make site", description=__doc__)
    parser.add_argument("--without-examples", action="store_true", help="no report and no gallery")
    parser.add_argument("--out", type=Path, default=BUILD / "site", metavar="DIR", help="the site (build/site)")
    arguments = parser.parse_args(argv)
    out: Path = arguments.out
    if code := build(BUILD / "site-pages", out):
        return code
    (out / ".nojekyll").touch()  # else GitHub Pages leaves out what begins with an underscore
    if not arguments.without_examples:
        examples.make(TOP, out, BUILD / "example-report")
    print(f"make site: {out}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
