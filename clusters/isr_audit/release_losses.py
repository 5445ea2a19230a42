"""Ways in which Kafka as it is released loses a record of a topic, by what is done to its cluster or comes late.

The other answers of an audit are of the protocol as it is meant. These are of the designs of releases
(isr_protocol.designs.releases), which have every bug that was found here. Each is one exploration within small bounds,
with no failure but elections and orderly stops. They come with the package, made by
`python -m tests.support.release_losses`. That no way was found is no promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from isr_audit.answers import Answer, read_table
from isr_audit.cluster import MIN_INSYNC, Release, Topic
from isr_audit.kinds import Kind
from isr_audit.questions import LOSS, MOST_REPLICAS, RELEASE_DESIGNS, Question, constants_of
from isr_audit.releases import BEFORE_ELR, TODAY
from isr_check.engine import Verdict
from isr_lang import Value
from isr_lang.instance import check_constants
from isr_protocol.by_name import DESIGNS

TABLE: Final = Path(__file__).parent / "release_losses.json"
_NEWEST, _BEFORE_4_3, _BEFORE_4_3_WITHOUT_ELR, _WITHOUT_ELR = RELEASE_DESIGNS
SPANS: Final[tuple[tuple[str, bool, Release, Release], ...]] = (
    (_NEWEST, True, (4, 3), (4, 5)),
    (_BEFORE_4_3, True, (4, 1), (4, 3)),
    (_BEFORE_4_3_WITHOUT_ELR, False, (3, 9), (4, 3)),
    (_WITHOUT_ELR, False, (4, 3), (4, 5)),
)
"""Each design, whether with eligible leader replicas, and from which release on, to before which, in KRaft mode
(docs/measurements/releases.md)."""


@attrs.frozen
class Deed:
    """What is done, or comes late. `bug`: the bug of that name (bugs.toml) that it shows.

    `budgets`: of the design, with the bounds that it needs. `least`: from which min.insync.replicas on it is asked; a
    log that is gone is no loss of the protocol where an acknowledgement takes one log, so the designs leave it out.
    `beside`: brokers beside those with a replica. A deed that has some is asked of as many replicas as its least
    minimum, and of no other: of a topic with more replicas the others lag, out of the ISR. `without`: actions that are
    left out, for with them there are too many states. So of such a deed only losses are said.
    """

    name: str
    says: str
    bug: str
    budgets: Mapping[str, Value]
    least: int = 1
    beside: int = 0
    without: tuple[str, ...] = ()

    def is_asked(self, min_insync: int) -> bool:
        """Whether anything is known of it at this minimum."""
        return min_insync == self.least if self.beside else min_insync >= self.least


DEEDS: Final = (
    Deed(
        "elections",
        "leaders are elected, and nothing else is done",
        "kept-positions",
        {"sessions_lost": 1, "epochs": 3, "isr_changes": 3, "producers_wait": True},
    ),
    Deed(
        "late-news",
        "a leader has the answer to its AlterPartition before its metadata bring the change",
        "forgotten-proposal",
        {"late_news": 1, "sessions_lost": 1, "epochs": 1, "isr_changes": 4},
    ),
    Deed(
        "copies",
        "an AlterPartition is sent again",
        "overtaken-request",
        {"copies": 1, "own_view": True, "producers_wait": True, "sessions_lost": 1, "epochs": 1, "isr_changes": 4},
    ),
    Deed(
        "minimum-changes",
        "min.insync.replicas is set",
        "raised-min-insync",
        {"minimum_changes": 1, "sessions_lost": 1, "epochs": 1, "isr_changes": 3},
    ),
    Deed(
        "reassignments",
        "replicas are reassigned twice, to as few as one",
        "removed-replica",
        {"reassignments": 2, "sessions_lost": 1, "epochs": 2, "isr_changes": 3},
    ),
    Deed(
        "moves",
        "a partition is moved to as many replicas while its ISR is below min.insync.replicas, and is moved back",
        "removed-replica",
        {
            "reassignments": 2,
            "spares": 1,
            "least_replicas": 2,
            "sessions_lost": 2,
            "epochs": 2,
            "isr_changes": 5,
        },
        least=2,
        beside=1,
        without=(
            "controller_cancels_reassignment",
            "controller_reassigns_at_once",
            "leader_proposes_shrink",
            "controller_moves_leadership",
            "controller_unfences",
            "controller_refuses_alter_partition",
            "leader_rolls_back",
        ),
    ),
    Deed(
        "directories-removed",
        "a broker that stopped in order starts without one of its log directories",
        "removed-directory",
        {"directories_removed": 1, "shutdowns": 2, "epochs": 2, "isr_changes": 5},
        least=2,
    ),
    Deed(
        "disks-replaced",
        "a broker that stopped in order starts with an empty disk",
        "assigned-directory",
        {"disks_replaced": 1, "shutdowns": 2, "epochs": 2, "isr_changes": 5},
        least=2,
    ),
)
"""What is asked of each design."""
_BARE: Final[Mapping[str, Value]] = {"log": 1, "records": 1, "acks": "all", "unclean": False}


@attrs.frozen
class Way:
    """What was found of a deed: VIOLATED is a way to a loss, HOLDS none within the bounds, UNKNOWN an early end."""

    deed: Deed
    answer: Answer


def design_of(kind: Kind) -> str:
    """The design of the release that these topics run on; "" where none is known, or more than one may run."""
    release = kind.release
    if release is None or kind.doubt or kind.also or kind.design not in (TODAY, BEFORE_ELR):
        return ""
    has_elr = kind.design == TODAY
    return next((d for d, elr, since, until in SPANS if elr == has_elr and since <= release < until), "")


def questions_of(design: str, replicas: int, min_insync: int) -> Iterator[tuple[Deed, Question]]:
    """Whether a record of such a topic is lost by each deed that is asked of it, with every other budget 0."""
    constants: dict[str, Value] = {c.name: 0 for c in constants_of(design) if c.budget}
    for deed in (d for d in DEEDS if d.is_asked(min_insync)):
        brokers = deed.least + deed.beside if deed.beside else replicas
        asked = {**constants, **_BARE, **deed.budgets, "replicas": brokers, "min_insync": min_insync}
        yield deed, Question(design, LOSS, check_constants(DESIGNS[design], asked), deed.without)


def questions() -> Iterator[Question]:
    """All that are stored, small ones first."""
    for replicas in range(2, MOST_REPLICAS + 1):
        for min_insync in range(1, replicas + 1):
            for design in RELEASE_DESIGNS:
                yield from (asked for _, asked in questions_of(design, replicas, min_insync))


@cache
def release_answers() -> tuple[Answer, ...]:
    """The answers whose designs are what they were."""
    return tuple(read_table(TABLE))


def ways_of(kind: Kind, topics: Sequence[Topic] = ()) -> tuple[Way, ...]:
    """What is known of each deed to these topics of this kind; nothing where their release or minimum was not told.

    Nothing is said either of more replicas than are explored, and of topics of which some partitions have more replicas
    than others. Unclean election adds elections, so with it only losses are said, as of deeds that leave actions out.
    """
    design, settings = design_of(kind), kind.settings
    if not design or MIN_INSYNC in kind.open or settings.replicas > MOST_REPLICAS:
        return ()
    if any(len(p.replicas) != settings.replicas for t in topics for p in t.partitions):
        return ()
    asked = questions_of(design, settings.replicas, settings.min_insync)
    ways = (Way(deed, a) for deed, q in asked for a in release_answers() if a.question == q)
    return tuple(w for w in ways if w.answer.verdict == Verdict.VIOLATED or not (settings.unclean or w.deed.without))
