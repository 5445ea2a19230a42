"""Which family a design is of; a model of another kind takes a row in `families`, and nothing else here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from isr_check.family import Family
from isr_lang import Design

UNKNOWN = Family()
"""The family of a design that no model claims, such as one in a file of somebody's own with a state of its own."""


def families() -> Iterator[Family]:
    """Every family, each imported when somebody has come so far."""
    from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS

    yield IN_SYNC_REPLICAS
    from kraft_protocol.quorum import QUORUM

    yield QUORUM
    from controller_protocol.controllers import CONTROLLERS

    yield CONTROLLERS
    yield UNKNOWN


def family_of(design: Design) -> Family:
    """The family of the nearest state that this design's state extends.

    Of a state all of whose nearer ones are of the same package, no family after its own is imported.
    """
    ancestry, candidates = design.state.__mro__, list[Family]()
    for family in families():
        if family.state in ancestry:
            candidates.append(family)
            if {_package(s) for s in ancestry[: ancestry.index(family.state)]} <= {_package(family.state)}:
                break
    return min(candidates, key=lambda family: ancestry.index(family.state))


def _package(state: type) -> str:
    return state.__module__.partition(".")[0]


class _Tables(Mapping[str, Design]):
    """A table of every family as one: that of the first stands first, and none is read that need not be."""

    def __init__(self, table: Callable[[Family], Mapping[str, Design]]) -> None:
        self.table = table

    @property
    def tables(self) -> Iterator[Mapping[str, Design]]:
        return map(self.table, families())

    def __getitem__(self, name: str) -> Design:
        return next((table for table in self.tables if name in table), dict[str, Design]())[name]

    def __contains__(self, name: object) -> bool:
        return any(name in table for table in self.tables)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.tables)

    def __len__(self) -> int:
        return sum(map(len, self.tables))


def designs_of_all() -> Mapping[str, Design]:
    """The designs of every family by name."""
    return _Tables(lambda family: family.designs())


def planted_bugs_of_all() -> Mapping[str, Design]:
    """The designs of every family that have a planted bug, by name."""
    return _Tables(lambda family: family.planted_bugs())
