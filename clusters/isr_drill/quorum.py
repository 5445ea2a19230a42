"""Steps on controllers, and on brokers that are controllers, too, by a rule: while a majority of the voters is up and
all disks are kept, they change nothing. Beyond that the answer is UNKNOWN: the quorum has a model of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from isr_audit.cluster import Cluster

VOTERS: Final = "controller.quorum.voters"
STATIC_DISK: Final = (
    "a voter of a static quorum that comes back with an empty disk votes again, and nothing tells it from the one that "
    "it was, so a committed change of the metadata may be forgotten (KAFKA-14077; "
    "insync check kraft-controllers-static --property acked-survives shows it)"
)
DYNAMIC_DISK: Final = (
    "a voter that comes back with an empty disk votes no more until it is added again (KIP-853), and the quorum is not "
    "carried; format it with --no-initial-controllers, for --initial-controllers with the same directory id makes it "
    "the voter that it was, and on 4.4.0 and 4.0.1 acknowledged records were lost with that (docs/kraft.md)"
)
NO_VOTERS: Final = f"who votes was not told; give a server.properties with {VOTERS}, or the quorum's status"
UNTOLD_VOTERS: Final = (
    "who votes was not told, so the controllers are taken to be other processes than the brokers; "
    "kafka-metadata-quorum.sh describe --status tells it"
)
KRAFT_FEATURE: Final = "kraft.version"
POWER: Final = "what a voter loses with its power is not carried; ask with kill"


def voters_of(cluster: Cluster) -> frozenset[int] | None:
    """The voters, by the settings of a static quorum or as the quorum told them; None where they were not told, or the
    settings differ."""
    texts = {s[VOTERS].replace(" ", "") for s in (*cluster.brokers.values(), cluster.defaults) if s.get(VOTERS)}
    sets = {frozenset(int(v) for v in re.findall(r"(?:^|,)(\d{1,9})@", text, re.ASCII)) for text in texts}
    return (next(iter(sets)) or None if len(sets) == 1 else None) if sets else cluster.voters


def has_dynamic_voters(cluster: Cluster) -> bool:
    """Whether voters are known by the directory ids of their disks, too (KIP-853)."""
    return cluster.features.get(KRAFT_FEATURE, "0") != "0"


@attrs.frozen
class Voters:
    """The voters that were told, None where nobody did, those of them that are down, and whether they are dynamic."""

    names: frozenset[int] | None
    down: frozenset[int] = frozenset()
    dynamic: bool = False

    def without(self, ids: Iterable[int]) -> Voters:
        """The same with these down, as far as they vote."""
        return attrs.evolve(self, down=self.down | (frozenset(ids) & (self.names or frozenset())))

    def with_these(self, ids: Iterable[int]) -> Voters:
        """The same with these up."""
        return attrs.evolve(self, down=self.down - frozenset(ids))

    @property
    def disk(self) -> str:
        """What of a destroyed disk is not carried."""
        return DYNAMIC_DISK if self.dynamic else STATIC_DISK

    @property
    def gap(self) -> str:
        """Why nothing can be said while these are down; "" while a majority is up."""
        names = self.names or frozenset()
        up = len(names) - len(self.down)
        if not self.down or 2 * up > len(names):
            return ""
        return f"{up} of {len(names)} controllers would be up, which is no majority, and the quorum is not carried"


def quorum_of(cluster: Cluster) -> Voters:
    """The voters before the first step, all of them up."""
    return Voters(voters_of(cluster), dynamic=has_dynamic_voters(cluster))


def after_controller_step(voters: Voters, deed: str, broker: int) -> tuple[Voters, str]:
    """The voters after a step on a controller, and why what follows is UNKNOWN."""
    if voters.names is None:
        return voters, NO_VOTERS
    if deed == "start":
        return voters.with_these([broker]), ""
    later = voters.without([broker])
    return later, later.disk if deed == "destroy" else later.gap


LEAVES: Final[Mapping[str, Callable[[Voters], str]]] = {
    **dict.fromkeys(("STOP", "KILL", "PAUSE"), lambda _: ""),
    "POWER_LOSS": lambda _: POWER,
    "DESTROY": lambda voters: voters.disk,
}
"""A happening that takes a voter away -> what of it is not carried."""


def after_broker_stage(voters: Voters, kind: str, brokers: Iterable[int]) -> tuple[Voters, str]:
    """The same of a happening at brokers, of which some may be voters, too."""
    ids = frozenset(brokers) & (voters.names or frozenset())
    if not ids:
        return voters, ""
    if kind in ("START", "RESUME"):
        return voters.with_these(ids), ""
    if kind not in LEAVES:
        return voters, voters.gap
    later = voters.without(ids)
    return later, LEAVES[kind](later) or later.gap
