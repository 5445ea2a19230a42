"""Steps on controllers, and on brokers that are controllers, too, by a rule: while a majority of the voters is up and
all disks are kept, they change nothing. Beyond that the answer is UNKNOWN: the quorum has a model of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from isr_audit.cluster import Cluster
from isr_audit.voters import DYNAMIC_DISK, STATIC_DISK, VOTERS, has_dynamic_voters, voters_of

NO_VOTERS: Final = f"who votes was not told; give a server.properties with {VOTERS}, or the quorum's status"
UNTOLD_VOTERS: Final = (
    "who votes was not told, so the controllers are taken to be other processes than the brokers; "
    "kafka-metadata-quorum.sh describe --status tells it"
)
POWER: Final = "what a voter loses with its power is not carried; ask with kill"


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
        return f"{DYNAMIC_DISK}; the quorum is not carried" if self.dynamic else STATIC_DISK

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
