"""The programs that Kafka needs, and where things are kept; each missing one is one sentence."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Final

OLDEST_JAVA: Final = 17
"""Kafka 4's servers are compiled for it."""


class Unavailable(Exception):
    """Kafka cannot be had here; the message says what is missing, and what would help."""


def cache_folder(of: str = "kafka") -> Path:
    """Where jars and classes, or others' test suites, are kept: INSYNC_CACHE, else the user's cache folder."""
    chosen = os.environ.get("INSYNC_CACHE")
    if chosen:
        return Path(chosen) / of
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "insync" / of


@contextlib.contextmanager
def lock_folder(folder: Path) -> Generator[None]:
    """One process at a time fills a folder of the cache."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def java() -> str:
    """The Java runtime: JAVA_HOME's, else the one on the PATH."""
    program = _program("java", "a Java runtime is missing")
    said = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise Unavailable(f"{program} is older than Java {OLDEST_JAVA}, which Kafka needs ({_install()})")
    return program


def javac() -> str:
    """The Java compiler."""
    return _program("javac", "the Java compiler is missing")


def maven() -> str:
    """Maven, which fetches jars."""
    program = shutil.which("mvn")
    if program is None:
        raise Unavailable(
            "Maven, which fetches Kafka's jars, is missing (Debian: apt-get install maven; or use --kafka-home)"
        )
    return program


def _program(name: str, missing: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin") if home else None
    found = found or shutil.which(name)
    if found is None:
        raise Unavailable(f"{missing} ({_install()})")
    return found


def _install() -> str:
    return "Debian: apt-get install openjdk-17-jdk-headless"
