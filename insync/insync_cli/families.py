"""Which family a design is of; a model of another kind takes a row in `families`, and nothing else here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from isr_check.family import Family
from isr_lang import Design

UNKNOWN = Family()
"""The family of a design that no model claims, such as one in a file of somebody's own with a state of its own."""


def families() -> tuple[Family, ...]:
    from controller_protocol.controllers import CONTROLLERS
    from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS
    from kraft_protocol.quorum import QUORUM

    return IN_SYNC_REPLICAS, QUORUM, CONTROLLERS, UNKNOWN


def family_of(design: Design) -> Family:
    """The family of the nearest state that this design's state extends."""
    by_state = {family.state: family for family in families()}
    return next(by_state[state] for state in design.state.__mro__ if state in by_state)


class _Tables(Mapping[str, Design]):
    """Several tables as one: those of the first stand first, and no table is read that need not be."""

    def __init__(self, *tables: Mapping[str, Design]) -> None:
        self.tables = tables

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
    return _Tables(*(family.designs() for family in families()))


def planted_bugs_of_all() -> Mapping[str, Design]:
    """The designs of every family that have a planted bug, by name."""
    return _Tables(*(family.planted_bugs() for family in families()))
