"""Kafka's classes as a system under test: the command that speaks the protocol of docs/conform.md.

The Java is `apache_kafka/` beside this package. A part of Kafka has a folder of sources that is written for the newest
release: `src/main` for the replication of a partition, `src/raft` for the quorum, that with `src/raft-on-files`
for the same on Kafka's own files, and that with `src/controllers` for the controllers on it. `src/main-4.1` has those
of its files that are otherwise for 4.1 and all before it (`isr_kafka.compile`). `src/conform` is the protocol, which
all have.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from isr_kafka import known_raft_differences
from isr_kafka.compile import BRANCHES, build, order
from isr_kafka.jars import RELEASES, classpath, jars, no_such_release, release_of
from isr_kafka.known_differences import Explain, explain_in
from isr_kafka.programs import Unavailable, java

SOURCES: Final = Path(__file__).resolve().parent.parent / "apache_kafka" / "src"
EXPORTS: Final = ("--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED")
HEAP: Final = ("-Xmx1g", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def _releases_from(oldest: str) -> tuple[str, ...]:
    """The pinned releases of whose classes it is listed what they were called, from `oldest` on, the newest first."""
    listed = [order(branch) for branch in BRANCHES]
    return tuple(r for r in RELEASES if order(r)[:2] in listed and order(r) >= order(oldest))


DRIVEN_RELEASES: Final = _releases_from("4.0.0")
"""The releases whose replication of a partition is driven."""


@attrs.frozen
class EarlierDesign:
    """The design along which releases of a branch, such as 3.9, are driven, and why along no other."""

    branch: str
    design: str
    why: str

    def has(self, release: str) -> bool:
        """Whether a release is of the branch."""
        return release.startswith(f"{self.branch}.")


@attrs.frozen
class Part:
    """A part of Kafka that is driven: by which Java, in which releases, and along which designs.

    `folders`: its sources below `SOURCES`. `main`: the class that speaks the protocol. `design`: the design along which
    it is driven where none is named; others are of the same family. `explain_in`: what is known of the differences
    of a release, None where nothing is, and `page` tells of them.
    `unlike`: settings with which designs that have a certain constant are known to differ, or cannot be driven, each
    with that and with why. `absent`: constants of designs along which it is not driven at all, each with why.
    `earlier`: the designs of releases that have another than `design`.
    """

    word: str
    folders: tuple[str, ...]
    main: str
    design: str
    releases: tuple[str, ...]
    explain_in: Callable[[str], Explain] | None = None
    page: str = "docs/kafka-classes.md"
    unlike: tuple[tuple[str, str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    earlier: tuple[EarlierDesign, ...] = ()

    def design_of(self, release: str) -> str:
        """The design along which a release is driven where none is named."""
        return next((old.design for old in self.earlier if old.has(release)), self.design)


OWN_VIEW: Final = ("own_view", "minimum_changes", "its leaders wait for followers for whom Kafka's do not")
NO_UPGRADE: Final = ("upgrades", "its adapter upgrades no kraft.version")
PARTITION: Final = Part(
    "kafka",
    ("main",),
    "insync.kafka.Main",
    "kip-966",
    DRIVEN_RELEASES,
    explain_in,
    unlike=(OWN_VIEW,),
)
QUORUM: Final = Part(
    "kafka-raft",
    ("raft",),
    "insync.raft.Main",
    "kraft",
    _releases_from("3.9.1"),
    known_raft_differences.explain_in,
    page="docs/kraft-classes.md",
    absent=(NO_UPGRADE,),
    earlier=(EarlierDesign("3.9", "kraft-3.9", "it has no pre-votes"),),
)
QUORUM_ON_FILES: Final = Part(
    "kafka-raft-files",
    ("raft", "raft-on-files"),
    "insync.raft.MainOnFiles",
    "kraft",
    _releases_from("4.3.0"),
    known_raft_differences.explain_in,
    page="docs/kraft-classes.md",
    absent=(NO_UPGRADE,),
    unlike=(
        ("dynamic", "dynamic", "its adapter has no voters with directory ids on files"),
        ("snapshots", "snapshots", "its adapter takes no snapshots on files"),
    ),
)
CONTROLLERS: Final = Part(
    "kafka-controllers",
    ("raft", "controllers"),
    "insync.controllers.Main",
    "kraft-controllers",
    DRIVEN_RELEASES,
    page="docs/kraft-classes.md",
    unlike=(("dynamic", "dynamic", "its adapter has no voters with directory ids"),),
)
PARTS: Final = {part.word: part for part in (PARTITION, QUORUM, QUORUM_ON_FILES, CONTROLLERS)}
"""The parts of Kafka by the word that names them on the command line."""


@attrs.frozen
class Kafka:
    """Which Kafka is driven: a pinned release, or the one whose jars lie at `home`; and which part of it."""

    release: str = RELEASES[0]
    home: Path | None = None
    part: Part = PARTITION

    def explain(self) -> Explain | None:
        """What is known of its differences; None where nothing is."""
        return None if self.part.explain_in is None else self.part.explain_in(self.release)

    def command(self, before: Sequence[Path] = (), properties: Mapping[str, str] | None = None) -> str:
        """What starts it; `before` are folders of classes that come before Kafka's, `properties` are the adapter's."""
        found = jars(self.release, self.home)
        classes = build(adapter_sources(self.part), self.release, self.home, EXPORTS)
        given = [f"-D{name}={value}" for name, value in (properties or {}).items()]
        path = classpath(before, classes, found)
        return shlex.join([java(), *HEAP, *EXPORTS, *given, "-cp", path, self.part.main])


def adapter_sources(part: Part = PARTITION) -> list[Path]:
    """The folders of a part's Java, compiled with `EXPORTS`."""
    folders = [SOURCES / "conform", *(SOURCES / folder for folder in part.folders)]
    if not all(folder.is_dir() for folder in folders):
        raise Unavailable("our Java is not here: it comes with the checkout, in impl/apache_kafka")
    return folders


def part_word(word: str) -> str:
    """What `kafka-raft=4.4.0` calls a part of Kafka, whether there is one or not; nothing of any other command."""
    return word.partition("=")[0] if re.fullmatch(r"[\w-]+(=\S+)?", word) else ""


def part_from_word(word: str) -> Part | None:
    """Which part `kafka` or `kafka-raft=4.4.0` means; None for any other command."""
    return PARTS.get(part_word(word))


def kafka_from_word(word: str, home: Path | None = None) -> Kafka | None:
    """What `kafka` or `kafka-raft=4.4.0` means; None for any other command.

    Unavailable if no such release can be driven, or if the Kafka at `home` is another release.
    """
    part, release = part_from_word(word), word.partition("=")[2]
    if part is None:
        return None
    if home is not None:
        of_home = release_of(jars(home=home))
        if release not in ("", of_home):
            raise Unavailable(f"{home} has Kafka {of_home}, not {release}")
        return Kafka(of_home, home, part)
    if release and release not in part.releases:
        raise no_such_release(release, "cannot be driven here", part.releases)
    return Kafka(release or RELEASES[0], part=part)
