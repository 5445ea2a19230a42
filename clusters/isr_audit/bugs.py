"""Bugs that the running release has, from the corpus and from those found here, with what triggers them."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import attrs
import cattrs

from isr_audit.cluster import Release, release_text
from isr_audit.releases import KRAFT, TODAY, ZOOKEEPER, Running, release_of

TABLE = Path(__file__).parent / "bugs.toml"


NEWEST: Final = 9_999


@attrs.frozen
class Bug:
    """`page`: where a checkout describes it; `show`: the command that shows it. See the top of bugs.toml."""

    name: str
    page: str
    trigger: str
    show: str
    designs: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    read: str = ""
    reproduced: tuple[str, ...] = ()
    affected: tuple[str, ...] = ()
    mended: str = ""
    elr: bool = False
    kraft: bool = False

    def applies(self, to: Running) -> bool:
        """Whether what runs may have it: its design has, or its release lies where the code was read to be.

        A release that is not told may be any, with eligible leader replicas 4.1 or later, and `2.0` any of 2.0.0, ...
        """
        may_run = (to.design, *to.also)
        if self.elr and TODAY not in may_run:
            return False
        if self.kraft and to.design not in (TODAY, *dict(KRAFT).values()):
            return False
        if self.designs and not set(self.designs) & set(may_run):
            return False
        if to.release is None:
            return bool(self.designs) or self.elr or not (self.until or self.affected) or to.design != TODAY
        if self.affected:
            version = f"{to.version}."
            return any(version.startswith(f"{one}.") or f"{one}.".startswith(version) for one in self.affected)
        newest = (*to.release, *(NEWEST,) * 3)[:3]
        oldest = (*to.release, 0, 0, 0)[:3]
        return _release(self.since) <= newest and (not self.until or oldest < _release(self.until))

    @property
    def releases(self) -> str:
        """Which releases have it; of a bug that the model finds on designs, those that run one (docs/versions.md)."""
        if self.affected:
            return f"{', '.join(self.affected)}; mended in {self.mended}"
        condition = " with eligible leader replicas" * self.elr or " with KRaft" * self.kraft
        if self.designs:
            return ", and ".join(_spans(self.designs, self.until))
        return f"from {self.since} {f'to before {self.until}' if self.until else 'on'}{condition}"

    def evidence(self, to: Running) -> str:
        """On what it was seen, and whether that is what runs."""
        if self.designs:
            runs = next(d for d in (to.design, *to.also) if d in self.designs)
            return f"found by the model on {runs}" + (f"; until {self.until}, by reading" if self.until else "")
        if self.affected:
            return f"in {', '.join(self.affected)}; mended in {self.mended}"
        reading = f"by reading from {self.since} on" + (f" and until {self.until}" if self.until else "")
        if not self.reproduced:
            return f"{reading}; not run"
        ran = to.release is None or any(f"{release}.".startswith(f"{to.version}.") for release in self.reproduced)
        seen = f"{reading}, run on {', '.join(self.reproduced)}"
        return seen if ran else f"{seen}; {to.version} was not run"


@attrs.frozen
class Listing:
    """A bug that something which may run has: on what it was seen, and what has to run, nothing where all has it."""

    bug: Bug
    evidence: str
    worlds: tuple[str, ...] = ()


def worlds_text(worlds: Sequence[str]) -> str:
    """What has to run, as the end of a sentence."""
    return f", only {' or '.join(worlds)}" if worlds else ""


def listing_of(bug: Bug, worlds: Sequence[Running]) -> Listing | None:
    """What is said of a bug where any of these may run; None where none has it."""
    have = [to for to in worlds if bug.applies(to)]
    if not have:
        return None
    some = dict.fromkeys(to.world for to in have) if len(have) < len(worlds) else ()
    return Listing(bug, bug.evidence(have[0]), tuple(some))


def listings(worlds: Sequence[Running]) -> tuple[Listing, ...]:
    """All that any of these has."""
    return tuple(listing for bug in bugs() if (listing := listing_of(bug, worlds)) is not None)


def _release(text: str) -> Release:
    """The release as numbers; the oldest of all where the table has none."""
    return release_of(text) or (0,)


def _spans(designs: Collection[str], until: str) -> Iterator[str]:
    """From which release on one of these designs runs, and to before which."""
    for table, world in ((ZOOKEEPER, "with ZooKeeper"), (KRAFT, "with KRaft and without eligible leader replicas")):
        have = [i for i, (_, design) in enumerate(table) if design in designs]
        if have:
            end = until or (release_text(table[have[0] - 1][0]) if have[0] else "")
            yield f"from {release_text(table[have[-1]][0])} {f'to before {end}' if end else 'on'} {world}"
    if TODAY in designs:
        yield "with eligible leader replicas"


@attrs.frozen
class Elsewhere:
    """A case of the corpus that is not in the list, and why."""

    name: str
    why: str


@cache
def bugs() -> tuple[Bug, ...]:
    """All of them, those found here first."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(cattrs.structure(entry, Bug) for entry in table["bug"])


@cache
def elsewhere() -> tuple[Elsewhere, ...]:
    """The cases that are not in the list."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(cattrs.structure(entry, Elsewhere) for entry in table["elsewhere"])
