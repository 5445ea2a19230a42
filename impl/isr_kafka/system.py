"""Kafka's classes as a system under test: the command that speaks the protocol of docs/conform.md.

The Java is `apache_kafka/` beside this package: `src/main` is written for the newest release, and `src/main-4.1` has
those of its files that are otherwise for 4.1 and all before it (`isr_kafka.compile`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from isr_kafka.compile import BRANCHES, build, order
from isr_kafka.jars import RELEASES, classpath, jars, no_such_release, release_of
from isr_kafka.programs import Unavailable, java

SOURCES: Final = Path(__file__).resolve().parent.parent / "apache_kafka" / "src"
EXPORTS: Final = ("--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED")
HEAP: Final = ("-Xmx1g", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
DRIVEN_RELEASES: Final = tuple(r for r in RELEASES if order(r)[:2] in map(order, BRANCHES))
"""The pinned releases of whose classes it is listed what they were called, the newest first."""


@attrs.frozen
class Kafka:
    """Which Kafka is driven: a pinned release, or the one whose jars lie at `home`."""

    release: str = RELEASES[0]
    home: Path | None = None

    def command(self, before: Sequence[Path] = (), properties: Mapping[str, str] | None = None) -> str:
        """What starts it; `before` are folders of classes that come before Kafka's, `properties` are the adapter's."""
        found = jars(self.release, self.home)
        classes = build(adapter_sources(), self.release, self.home, EXPORTS)
        given = [f"-D{name}={value}" for name, value in (properties or {}).items()]
        path = classpath(before, classes, found)
        return shlex.join([java(), *HEAP, *EXPORTS, *given, "-cp", path, "insync.kafka.Main"])


def adapter_sources() -> list[Path]:
    """The folders of the adapter's Java, compiled with `EXPORTS`."""
    main = SOURCES / "main"
    if not main.is_dir():
        raise Unavailable("our Java is not here: it comes with the checkout, in impl/apache_kafka")
    return [main]


def kafka_from_word(word: str, home: Path | None = None) -> Kafka | None:
    """What `kafka` or `kafka=4.4.0` means; None for any other command.

    Unavailable if no such release can be driven, or if the Kafka at `home` is another release.
    """
    match = re.fullmatch(r"kafka(?:=(\S+))?", word)
    if match is None:
        return None
    if home is not None:
        release = release_of(jars(home=home))
        if match[1] not in (None, release):
            raise Unavailable(f"{home} has Kafka {release}, not {match[1]}")
        return Kafka(release, home)
    if match[1] is not None and match[1] not in DRIVEN_RELEASES:
        raise no_such_release(match[1], "cannot be driven here", DRIVEN_RELEASES)
    return Kafka(match[1] or RELEASES[0])
