"""Our Java, compiled against one release of Kafka and kept until a source or a jar changes.

The sources are written for the newest release. What differs in an older one is kept by its first two numbers:

- `renamed/4.1.txt` lists classes that Kafka has moved after 4.1, one a line (`new.name old.name`), but for those that
  a later list has so already. The old names take their place before the compiler sees a source.
- `main-4.1` beside a folder of sources `main` has those of its files that are otherwise in 4.1 and all before it.

A release whose first two numbers have no list is compiled as if it were the nearest older one, and then as the nearest
newer one. Only when neither compiles is it refused.
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
BRANCHES: Final = tuple(path.stem for path in RENAMES_FOLDER.glob("*.txt"))
"""The branches of Kafka (a release's first two numbers) of whose classes it is listed what they were called."""


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
    path = classpath(kafka_jars, beside)
    candidates = neighbours(release, BRANCHES)
    refusals: list[str] = []
    for branch in candidates:
        texts = _texts(sources, branch)
        folder = cache_folder() / "classes" / _key(texts, path, options)
        if not folder.is_dir():
            with lock_folder(folder.parent):
                refusal = None if folder.is_dir() else _compile(texts, path, options, folder)
            if refusal is not None:
                refusals.append(refusal)
                continue
        return folder
    raise Unavailable(_refusal(release, candidates, refusals))


def neighbours(release: str, branches: Iterable[str]) -> tuple[str, ...]:
    """As which branches (`4.1`) a release is compiled: its own, else the nearest older and the nearest newer one."""
    ordered = sorted(branches, key=order)
    own = order(release)[:2]
    if (same := [name for name in ordered if order(name) == own]) != []:
        return tuple(same)
    return (*[name for name in ordered if order(name) < own][-1:], *[name for name in ordered if order(name) > own][:1])


def overlays(source: Path, branch: str) -> list[Path]:
    """A folder of sources, and those beside it with files as they were until a branch, or a later one.

    A file in a later folder of the answer takes the place of an earlier one's.
    """
    older = sorted(
        (folder for folder in source.parent.glob(f"{source.name}-*") if folder.is_dir()),
        key=lambda folder: order(folder.name.removeprefix(f"{source.name}-")),
        reverse=True,
    )
    return [source, *(f for f in older if order(branch) <= order(f.name.removeprefix(f"{source.name}-")))]


def order(version: str) -> tuple[int, ...]:
    """The numbers of a version, at most three, by which releases are in order."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _texts(sources: Sequence[Path], branch: str) -> dict[str, str]:
    """The text of each file, by its path below its folder, in the names of a branch."""
    names = _old_names(branch)
    return {
        path.relative_to(top).as_posix(): _with(names, path.read_text())
        for source in sources
        for top in overlays(source, branch)
        for path in sorted(top.rglob("*.java"))
    }


def _refusal(release: str, candidates: Sequence[str], refusals: Sequence[str]) -> str:
    if order(release)[:2] in map(order, candidates):
        return f"our Java does not compile against Kafka {release}:\n{refusals[0][:4000]}"
    tries = " nor ".join(
        f"as for {branch} ({refusal.count(': error:')} errors)"
        for branch, refusal in zip(candidates, refusals, strict=True)
    )
    first = next(iter(refusals[0].splitlines()), "")
    return f"our Java does not know Kafka {release}, and does not compile against it {tries}; the first: {first}"


def _old_names(branch: str) -> dict[str, str]:
    """What each class was called in a branch: in its own list, or else in that of the nearest later one."""
    names: dict[str, str] = {}
    for later in sorted((b for b in BRANCHES if order(branch) <= order(b)), key=order):
        lines = (RENAMES_FOLDER / f"{later}.txt").read_text().splitlines()
        names = dict(line.split() for line in lines if line and not line.startswith("#")) | names
    return names


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


def _compile(texts: dict[str, str], path: str, options: Sequence[str], folder: Path) -> str | None:
    """Compile into a folder; None, or what the compiler says."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        for name, text in texts.items():
            file = Path(work) / "src" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        files = [str(Path(work) / "src" / name) for name in texts]
        command = [javac(), "-encoding", "UTF-8", "-nowarn", "-d", f"{work}/classes", "-cp", path, *options, *files]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            return ran.stderr.replace(f"{work}/src/", "").strip() or f"javac ends with exit code {ran.returncode}"
        shutil.move(f"{work}/classes", folder)
    return None
