"""Which design a cluster runs: by its release, and by what was turned on in it (docs/versions.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from isr_audit.cluster import ELR_FEATURE, METADATA_FEATURE, Cluster, Release, ids_text, release_text
from isr_audit.contradictions import (
    SINCE_KRAFT,
    WITHOUT_ZOOKEEPER,
    eligibility_contradictions,
    zookeeper_contradictions,
)

PROTOCOL: Final = "inter.broker.protocol.version"
TODAY: Final = "kip-966"
BEFORE_ELR: Final = "kraft-3.5"
KRAFT: Final[tuple[tuple[Release, str], ...]] = (((3, 5), BEFORE_ELR), ((3, 3), "kip-841"))
"""From which release on which design, newest first."""
ZOOKEEPER: Final[tuple[tuple[Release, str], ...]] = (
    ((2, 7), "kip-497"),
    ((2, 1), "kip-320"),
    ((2, 0), "kip-279"),
    ((0, 11), "kip-101"),
    ((0, 9), "zookeeper"),
    ((0, 8), "kafka-0.8"),
)
LEVELS: Final[Mapping[int, Release]] = {
    **{
        1: (3, 0),
        2: (3, 1),
        3: (3, 2),
        4: (3, 3),
        8: (3, 4),
        9: (3, 5),
        12: (3, 6),
        15: (3, 7),
        20: (3, 8),
        21: (3, 9),
    },
    **{22: (4, 0), 26: (4, 1), 28: (4, 2), 30: (4, 3), 31: (4, 4)},
}
"""The first level of metadata.version of each release (MetadataVersion of 4.4.0)."""
BEFORE_LEVELS: Final[tuple[Release, ...]] = (
    *((0, n) for n in range(8, 12)),
    *((1, n) for n in range(2)),
    *((2, n) for n in range(9)),
)
"""The releases before metadata.version, from the oldest with a design on."""
ELR_BY_DEFAULT: Final[Release] = (4, 1)
UNCLEAN_BY_DEFAULT: Final[Release] = (0, 11)
"""Before it, unclean election was on by default."""


@attrs.frozen
class Running:
    """`release` is the oldest that fits what was told, None where nothing was. `notes`: what had to be assumed.

    `doubt`: why a design that keeps less may run as well, so that nothing is said to survive; "" where none may.
    `also`: designs that may run as well, and with which only what both say is said. `open_designs`: those that may run,
    too, for whether there is ZooKeeper, or which release, was not told. Of these known bugs are listed, and no more.
    """

    release: Release | None
    design: str
    notes: tuple[str, ...] = ()
    doubt: str = ""
    also: tuple[str, ...] = ()
    open_designs: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The release as it is written, or "unknown"."""
        return release_text(self.release) if self.release is not None else "unknown"

    @property
    def elr(self) -> bool:
        return self.design == TODAY

    @property
    def elr_text(self) -> str:
        """Whether eligible leader replicas are on, in a word or two."""
        is_open = len({design == TODAY for design in (self.design, *self.also)}) > 1
        return "not known" if is_open else "on" if self.elr else "off"

    @property
    def world(self) -> str:
        """What runs, in words."""
        if self.elr:
            return "with eligible leader replicas"
        is_kraft = self.design in dict(KRAFT).values()
        return "with KRaft, without eligible leader replicas" if is_kraft else "with ZooKeeper"

    @property
    def worlds(self) -> tuple[Running, ...]:
        """Each design that may run, alone."""
        return tuple(Running(self.release, d) for d in dict.fromkeys((self.design, *self.also, *self.open_designs)))

    @property
    def unclean_by_default(self) -> bool:
        return self.release is not None and self.release < UNCLEAN_BY_DEFAULT


def release_of(text: str) -> Release | None:
    """The numbers of `4.1.1`, `3.9-IV0` or `2.8`; None where it does not begin so."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?!\d)", text, re.ASCII)
    return tuple(int(n) for n in match.groups() if n is not None) if match is not None else None


def nearest_release(release: Release) -> Release | None:
    """The release of Kafka that is nearest to one that is not known, which is the last before it; None where it is
    known. Only the first two numbers count."""
    known = (*BEFORE_LEVELS, *LEVELS.values())
    return None if release[:2] in known else max((r for r in known if r < release), default=min(known))


def release_of_level(level: int) -> Release:
    """The release that brought a level of metadata.version; of levels that are newer than known the newest."""
    return max(release for first, release in LEVELS.items() if first <= max(level, 1))


def running(
    cluster: Cluster, release: Release | None = None, elr: bool | None = None, kraft: bool | None = None
) -> Running:
    """What runs, by what was said on the command line, else by what the cluster tells. `kraft`: False is ZooKeeper.

    Where it is not told whether eligible leader replicas are on, both may be: `Running.also` is the design with them.
    What contradicts itself is a note, and a doubt.
    """
    exact = release if release is not None else _release_of_cluster(cluster)
    on = elr if elr is not None else _elr(cluster)
    has_kraft = _kraft(cluster, exact) if kraft is None else kraft
    notes, doubt = _unknown_release(cluster, on) if exact is None else _release_of_some(cluster, release)
    newest = max(LEVELS.values())
    if exact is not None and exact[:2] > newest:
        says = f"the release is {release_text(exact)}, and {release_text(newest)} is the newest whose design is known"
        notes, doubt = [*notes, f"{says}, so what survives is UNKNOWN"], doubt or says
    runs = _without_contradictions(cluster, exact, on, has_kraft)
    runs = attrs.evolve(runs, notes=(*notes, *runs.notes), doubt=doubt)
    return _with_contradictions(runs, cluster, release, elr, kraft)


def _without_contradictions(cluster: Cluster, exact: Release | None, on: bool | None, kraft: bool | None) -> Running:
    """What runs where nothing contradicts itself, with notes on what has to be assumed; no doubt is told yet."""
    open_designs = () if on else _open_designs(cluster, exact, on, kraft)
    kraft = True if kraft is None and exact is None else kraft
    if on and (kraft is None or kraft):
        return Running(exact, TODAY)
    notes: list[str] = []
    if kraft is None:
        kraft = False
        notes.append("whether there is ZooKeeper was not told, and is taken so (--kraft on or off tells it)")
    if on is None and exact is not None and exact[:2] >= ELR_BY_DEFAULT:
        notes.append(
            "whether eligible leader replicas are on was not told, so what depends on them is UNKNOWN "
            "(give the output of kafka-features.sh describe, or --elr on)"
        )
    assumed_release: Release = (3, 5) if exact is None else exact
    design = _newest(KRAFT if kraft else ZOOKEEPER, assumed_release)
    if not design:
        design = ZOOKEEPER[0][1] if kraft else ZOOKEEPER[-1][1]
        notes.append(f"no design of this release is known, and {design} is the nearest")
    untold = on is None and kraft and (exact is None or exact[:2] >= ELR_BY_DEFAULT)
    return Running(exact, design, tuple(notes), also=(TODAY,) if untold else (), open_designs=open_designs)


def _open_designs(cluster: Cluster, exact: Release | None, on: bool | None, kraft: bool | None) -> tuple[str, ...]:
    """The designs that may run for what was told, where that leaves ZooKeeper or KRaft open, or the release."""
    if exact is not None:
        return tuple(to.design for to in may_run(exact, on)) if kraft is None else ()
    if kraft and any(p.elr is not None for p in cluster.partitions):
        return ()
    tables = (KRAFT,) if kraft else (KRAFT, ZOOKEEPER) if kraft is None else (ZOOKEEPER,)
    return (
        *(design for table in tables for _, design in table),
        *((TODAY,) if on is None and kraft is not False else ()),
    )


def _with_contradictions(
    runs: Running, cluster: Cluster, release: Release | None, elr: bool | None, kraft: bool | None
) -> Running:
    """The same with what contradicts itself: the designs of both sides may run, and nothing is said to survive."""
    text = _release_of_cluster(cluster)
    of_elr = list(eligibility_contradictions(cluster, release, elr, runs.release))
    of_zookeeper = list(zookeeper_contradictions(cluster, elr, kraft, runs.release))
    of_release: list[str] = []
    others: list[str] = []
    is_zookeeper = runs.design in [design for _, design in ZOOKEEPER]
    if of_elr:
        others.append(_newest(KRAFT, runs.release or (3, 5)) or BEFORE_ELR if runs.elr else TODAY)
    if release is not None and text is not None and _differ(release, text):
        name = METADATA_FEATURE if METADATA_FEATURE in cluster.features else PROTOCOL
        of_release.append(f"--kafka {release_text(release)}, but {name} tells {release_text(text)}")
        others.append(_newest(ZOOKEEPER if is_zookeeper else KRAFT, text))
    if of_zookeeper and is_zookeeper:
        others.append(BEFORE_ELR)
    sentences = (*of_elr, *of_release, *of_zookeeper)
    if not sentences:
        return runs
    more = [to.design for to in may_run(runs.release or (3, 5))] if of_zookeeper else []
    return attrs.evolve(
        runs,
        notes=(
            *runs.notes,
            *(f"{says}: what was told contradicts itself, and what survives is UNKNOWN" for says in sentences),
        ),
        doubt=runs.doubt or "what was told of the release, or of eligible leader replicas, contradicts itself",
        also=tuple(dict.fromkeys(d for d in (*runs.also, *others) if d and d != runs.design)),
        open_designs=(*runs.open_designs, *more),
    )


def _differ(one: Release, other: Release) -> bool:
    """Whether two releases run other designs."""
    return any(_newest(table, one) != _newest(table, other) for table in (KRAFT, ZOOKEEPER))


def may_run(release: Release, elr: bool | None = None) -> tuple[Running, ...]:
    """Whatever a release may run: with ZooKeeper, with KRaft, with eligible leader replicas; `elr` tells the last.

    Before 4.0 eligible leader replicas are not for production, and run only where they are said to.
    """
    designs: list[str] = []
    if elr is not True and release < WITHOUT_ZOOKEEPER:
        designs.append(_newest(ZOOKEEPER, release))
    if elr is not True:
        designs.append(_newest(KRAFT, release))
    if elr or (elr is None and release >= WITHOUT_ZOOKEEPER):
        designs.append(TODAY)
    return tuple(Running(release, design) for design in designs if design)


def _unknown_release(cluster: Cluster, elr: bool | None) -> tuple[list[str], str]:
    """Notes on a release that was not told, and the doubt that is left.

    A column Elr that has a list, or is empty, was told by a broker of 3.8 or later without ZooKeeper: TopicCommand
    prints N/A where DescribeTopicPartitions was not answered, and only such brokers answer it.
    """
    tells = "--kafka 4.1.1 tells it"
    if elr:
        return [
            f"the release was not told, and is taken to be 4.1 or later, for eligible leader replicas are on ({tells})"
        ], ""
    if any(p.elr is not None for p in cluster.partitions):
        return [f"the release was not told; by the column Elr it is 3.8 or later with KRaft ({tells})"], ""
    if any(t.source and t.has_heading and not t.topic_id for t in cluster.topics):
        why = "there is no TopicId, which kafka-topics.sh prints since 2.8, so it may be older"
    else:
        why = "neither features nor the column Elr tell it, so it may be older, or have ZooKeeper"
    note = f"the release was not told; {why}. Runs are of {BEFORE_ELR}, and what survives there is UNKNOWN ({tells})"
    return [note], "the release was not told, and an older one may lose it"


def _release_of_some(cluster: Cluster, release: Release | None) -> tuple[list[str], str]:
    """Notes, and the doubt that is left, where another release was said than the cluster tells, or where brokers told
    theirs by inter.broker.protocol.version, and not all of them."""
    finalized = _release_of_cluster(cluster)
    if release is not None and finalized is not None and release[:2] != finalized[:2]:
        by = METADATA_FEATURE if METADATA_FEATURE in cluster.features else PROTOCOL
        says = f"--kafka says {release_text(release)}, and {by} of the description {release_text(finalized)}"
        return [f"{says}: everything here is judged by --kafka"], ""
    is_told = release is not None or METADATA_FEATURE in cluster.features
    silent = () if is_told else cluster.brokers_without(PROTOCOL)
    if not silent:
        return [], ""
    note = f"{PROTOCOL} was not told of {ids_text(silent)}, and what survives is UNKNOWN (--kafka 2.8 tells it)"
    return [note], f"the release of {ids_text(silent)} was not told, and an older one may lose it"


def _newest(table: tuple[tuple[Release, str], ...], release: Release) -> str:
    return next((design for since, design in table if release[:2] >= since), "")


def _release_of_cluster(cluster: Cluster) -> Release | None:
    """The release whose protocol runs: the finalized metadata.version, else inter.broker.protocol.version."""
    version_texts = (
        [cluster.features[METADATA_FEATURE]]
        if METADATA_FEATURE in cluster.features
        else cluster.broker_values(PROTOCOL)
    )
    return min((r for r in map(release_of, version_texts) if r is not None), default=None)


def _elr(cluster: Cluster) -> bool | None:
    if ELR_FEATURE in cluster.features:
        return cluster.features[ELR_FEATURE] != "0"
    return True if any(p.elr for p in cluster.partitions) else None


def _kraft(cluster: Cluster, release: Release | None) -> bool | None:
    settings: Mapping[str, str] = {
        n: v for c in (cluster.defaults, *cluster.brokers.values(), *cluster.dynamic.values()) for n, v in c.items()
    }
    if METADATA_FEATURE in cluster.features or settings.get("process.roles") or cluster.has_quorum:
        return True
    if release is not None and (release >= WITHOUT_ZOOKEEPER or release < SINCE_KRAFT):
        return release >= WITHOUT_ZOOKEEPER
    if any(p.elr is not None for p in cluster.partitions):
        return True
    return False if settings.get("zookeeper.connect") else None
