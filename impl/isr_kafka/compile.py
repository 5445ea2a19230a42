"""Our Java, compiled against one release of Kafka and kept until a source or a jar changes.

Between releases Kafka moves classes from one package to another. `renamed/VERSION.txt` lists those moves, one a line
(`new.name old.name`), and the sources, written for the newest release, are compiled with the old names in their place.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from isr_kafka.jars import classpath, jars, release_of
from isr_kafka.programs import Unavailable, cache_folder, javac, lock_folder

RENAMES_FOLDER: Final = Path(__file__).parent / "renamed"


def build(
    sources: Sequence[Path],
    version: str | None = None,
    home: Path | None = None,
    options: Sequence[str] = (),
    beside: Iterable[Path] = (),
) -> Path:
    """The folder of classes of all Java files under `sources`, which are folders; `beside` are jars besides Kafka's."""
    kafka_jars = jars(version, home)
    release = release_of(kafka_jars)
    names = _old_names(release)
    texts = {
        path.relative_to(top).as_posix(): _with(names, path.read_text())
        for top in sources
        for path in sorted(top.rglob("*.java"))
    }
    path = classpath(kafka_jars, beside)
    folder = cache_folder() / "classes" / _key(texts, path, options)
    if not folder.is_dir():
        with lock_folder(folder.parent):
            if not folder.is_dir():
                _compile(texts, path, options, folder, release)
    return folder


def nearest(release: str, releases: Iterable[str]) -> str | None:
    """Of some releases the newest that is not above this one; the oldest if all are above; None if there are none."""
    ordered = sorted(releases, key=order)
    return max((v for v in ordered if order(v) <= order(release)), key=order, default=next(iter(ordered), None))


def order(version: str) -> tuple[int, ...]:
    """The numbers of a version, at most three, by which releases are in order."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _old_names(release: str) -> dict[str, str]:
    chosen = nearest(release, (path.stem for path in RENAMES_FOLDER.glob("*.txt")))
    if chosen is None:
        return {}
    lines = (
        line.split() for line in (RENAMES_FOLDER / f"{chosen}.txt").read_text().splitlines() if not line.startswith("#")
    )
    return dict(line for line in lines if line)


def _with(names: dict[str, str], text: str) -> str:
    for new, old in names.items():
        text = re.sub(rf"\b{re.escape(new)}\b", old, text)
    return text


def _key(texts: dict[str, str], path: str, options: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in (*(f"{name}\0{text}" for name, text in texts.items()), *options):
        digest.update(part.encode() + b"\0")
    for jar in path.split(os.pathsep):
        status = Path(jar).stat()
        digest.update(f"{jar} {status.st_size} {status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:24]


def _compile(texts: dict[str, str], path: str, options: Sequence[str], folder: Path, release: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        for name, text in texts.items():
            file = Path(work) / "src" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        files = [str(Path(work) / "src" / name) for name in texts]
        command = [javac(), "-encoding", "UTF-8", "-nowarn", "-d", f"{work}/classes", "-cp", path, *options, *files]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            said = ran.stderr.replace(f"{work}/src/", "").strip()
            raise Unavailable(f"our Java does not compile against Kafka {release}:\n{said[:4000]}")
        shutil.move(f"{work}/classes", folder)
