"""Kafka's jars: of a release, from Maven Central and held to pinned checksums, or of a downloaded Kafka."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from isr_kafka.programs import Unavailable, cache_folder, lock_folder, maven

PINNED_FOLDER: Final = Path(__file__).parent / "pinned"
RELEASES: Final = tuple(
    sorted(
        (path.stem for path in PINNED_FOLDER.glob("*.*.*.txt")),
        key=lambda v: tuple(map(int, v.split("."))),
        reverse=True,
    )
)
"""The releases of Apache Kafka with pinned jars, the newest first."""

COMMAND_LINE: Final = "4.3.1"
"""The release of the pinned command line tools."""

UNIT_TESTS: Final = "4.3.1"
"""The newest release whose test jars Maven Central has."""

BINDINGS: Final = re.compile(r"(slf4j-(reload4j|log4j12|simple|nop)|log4j-slf4j2?-impl|logback-classic)-[\d.]+\.jar")
"""What a downloaded Kafka logs with: it would write to where the protocol is spoken."""


@attrs.frozen
class PinnedJar:
    """One jar of Maven Central: where it is, its SHA-256, and its classifier, as `test`, if it has one."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str | None = None

    @property
    def file(self) -> str:
        """Its file name."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.jar"


def pinned_jars(name: str) -> tuple[PinnedJar, ...]:
    """The jars of a release, or of our tools; Unavailable if there is no such list."""
    path = PINNED_FOLDER / f"{name}.txt"
    if not path.is_file():
        raise no_such_release(name, "is not pinned here", RELEASES)
    pins: list[PinnedJar] = []
    for line in path.read_text().splitlines():
        sha256, where = line.split()
        group, artifact, version, *classifier = where.split(":")
        pins.append(PinnedJar(group, artifact, version, sha256, *classifier))
    return tuple(pins)


def no_such_release(release: str, why: str, releases: Sequence[str]) -> Unavailable:
    """What to raise for a release that is not there: the nearest one, all that are, and the way out."""
    near = difflib.get_close_matches(release, releases, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return Unavailable(
        f"Kafka {release} {why}{hint}; there are {', '.join(releases)}. "
        f"Another one that was downloaded or built is tried with --kafka-home DIR"
    )


def jars(version: str | None = None, home: Path | None = None) -> list[Path]:
    """The jars of a release (the newest pinned one if none is named), or those of a downloaded Kafka at `home`."""
    return _downloaded_jars(home) if home is not None else _provided_jars(version or RELEASES[0])


def tools() -> list[Path]:
    """What our Java needs beside Kafka: ByteBuddy, which plants mistakes."""
    return _provided_jars("tools")


def command_line() -> list[Path]:
    """Kafka's command line tools, with the jars of their release: the newest one whose tools Maven Central has."""
    return [*_provided_jars("command-line"), *_provided_jars(COMMAND_LINE)]


def unit_tests() -> list[Path]:
    """What unit tests of Kafka need beside its jars: JUnit, Mockito, and the test jars of `UNIT_TESTS`."""
    return _provided_jars("unit-tests")


def logging(home: Path | None = None) -> list[Path]:
    """What a node writes its log with, to its standard output: slf4j-simple, or what a downloaded Kafka brings."""
    if home is None:
        return _provided_jars("logging")
    folder = home / "libs" if (home / "libs").is_dir() else home
    return sorted(path for path in folder.glob("*.jar") if BINDINGS.fullmatch(path.name))


def release_of(paths: Iterable[Path]) -> str:
    """The version that the broker's jar names itself, 4.5.0-SNAPSHOT too; Unavailable if there is none."""
    for path in paths:
        if (match := re.fullmatch(r"kafka_2\.1\d-(\d+\.\d+\.\d+.*)\.jar", path.name)) is not None:
            return match[1]
    raise Unavailable("among these jars there is no kafka_2.13-VERSION.jar")


def classpath(*parts: Path | Iterable[Path]) -> str:
    """A class path: folders of classes and lists of jars, those that come first win."""
    paths = (path for part in parts for path in ([part] if isinstance(part, Path) else part))
    return os.pathsep.join(map(str, paths))


def cached(version: str) -> bool:
    """Whether the jars of a release are on this machine."""
    return all((_folder(version) / jar.file).is_file() for jar in pinned_jars(version))


def _folder(name: str) -> Path:
    return cache_folder() / "jars" / name


def _downloaded_jars(home: Path) -> list[Path]:
    folder = home / "libs" if (home / "libs").is_dir() else home
    found = sorted(path for path in folder.glob("*.jar") if not BINDINGS.fullmatch(path.name))
    if not found:
        raise Unavailable(f"{home} has no libs/ with Kafka's jars")
    release_of(found)
    return found


def _provided_jars(name: str) -> list[Path]:
    pins = pinned_jars(name)
    folder = _folder(name)
    files = [folder / jar.file for jar in pins]
    if not all(path.is_file() for path in files):
        with lock_folder(folder):
            _fetch(name, pins, folder)
    return files


def _fetch(name: str, pins: tuple[PinnedJar, ...], folder: Path) -> None:
    """Have Maven copy the jars, and keep those that are what they should be."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        (Path(work) / "pom.xml").write_text(_project(pins))
        command = [maven(), "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={work}/jars"]
        ran = subprocess.run(command, cwd=work, capture_output=True, text=True)
        if ran.returncode != 0:
            said = next((line for line in ran.stdout.splitlines() if "ERROR" in line), "it does not say why")
            reason = re.sub(r"\x1b\[[\d;]*m", "", said).removeprefix("[ERROR]").strip()
            raise Unavailable(f"Maven cannot fetch the jars of {name}: {reason[:200]}")
        for jar in pins:
            path = Path(work) / "jars" / jar.file
            if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
                raise Unavailable(f"Maven's {jar.file} is not the file that is pinned: its SHA-256 differs")
            shutil.move(path, folder / jar.file)


def _project(pins: tuple[PinnedJar, ...]) -> str:
    """A project that depends on exactly these, and on nothing that they depend on."""
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    dependencies = "".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version>{_classifier(jar)}{alone}</dependency>\n"
        for jar in pins
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>insync</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


def _classifier(jar: PinnedJar) -> str:
    return f"<classifier>{jar.classifier}</classifier>" if jar.classifier else ""
