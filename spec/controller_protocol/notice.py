"""The known mistakes of controllers on a quorum, and those of the partition below them: which bounds notice them.

What breaks a promise of the partition with one reliable controller was tried in `kip-966`
(`isr_protocol.planted.notice`). Its brokers are the same, and its controller's decisions. So bounds of the same sizes
would notice it here, where the metadata log has room for the records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

import attrs

from controller_protocol.room import FAULTS, has_partition
from isr_check.engine import Exploration
from isr_check.family import Notice
from isr_check.mistake_table import Mistake, MistakeTable, judged_by_notice, promises_that_hold
from isr_lang import Design, Instance, Value
from isr_lang.instance import check_constants

Bounds = Mapping[str, Value]

TERM: Bounds = {"voters": 3, "metadata_log": 3, "isr_changes": 1}
"""A change of the metadata, and a second controller that is elected."""
SHORT_TERM: Bounds = {**TERM, "metadata_log": 2}
CRASH: Bounds = {**TERM, "crashes": 1}
SESSION: Bounds = {"voters": 2, "sessions_lost": 1, "metadata_log": 4, "isr_changes": 2}
"""A living broker is fenced, and two controllers."""
TERMS: Bounds = {"voters": 3, "terms": 3, "metadata_log": 4}
"""Three elections, of the quorum alone."""
RETURN: Bounds = {"voters": 3, "crashes": 1, "metadata_log": 6, "isr_changes": 2}
"""A broker crashes, and is in sync again."""
ALONE: Bounds = {"voters": 3, "terms": 2, "metadata_log": 2}
"""Two elections, from an empty log."""
TWICE: Bounds = {**ALONE, "metadata_log": 1}
ONCE: Bounds = {**TWICE, "terms": 1}
"""One election, and as much is enough for whoever votes again."""
BEHIND = "kraft-controllers-elect-behind"
QUORUM = "kraft-controllers"

OF_PARTITION = (
    Mistake(BEHIND, "leaders-have-committed", 4, TERM, QUORUM, least=(SHORT_TERM,)),
    Mistake(BEHIND, "leader-knows-what-is-committed", 7, TERM, QUORUM, least=(SHORT_TERM,)),
    Mistake(BEHIND, "quorum-only-grows", 10, TERM, QUORUM),
    Mistake(BEHIND, "acked-survives", 14, TERM, QUORUM),
    Mistake(
        "kraft-controllers-vote-again",
        "one-leader-a-term",
        2,
        TERM,
        QUORUM,
        least=({"voters": 3, "metadata_log": 1},),
    ),
    *(
        Mistake("kraft-controllers-ask-back", promise, steps, RETURN, QUORUM)
        for promise, steps in (
            ("maximal-isr-covers", 21),
            ("leaders-complete", 22),
            ("strong-isr", 22),
            ("weak-isr", 23),
        )
    ),
    Mistake(
        "kraft-controllers-static",
        "acked-survives",
        14,
        {**CRASH, "lost_disks": 1, "dynamic": False},
        "kraft-controllers-853",
        {"dynamic": True},
    ),
    Mistake("kafka-14154", "no-leader-is-stuck", 10, TERM, QUORUM),
    Mistake(
        "kafka-18138",
        "stopped-brokers-have-sessions",
        5,
        CRASH,
        "kraft-sessions",
        least=({"voters": 3, "metadata_log": 2, "crashes": 1},),
    ),
    Mistake("kafka-19130", "fenced-brokers-may-register", 6, CRASH, "kraft-sessions"),
    Mistake("kafka-13959", "living-brokers-are-unfenced", 6, SESSION, "kraft-busy-log"),
)
OF_QUORUM = (
    *(
        Mistake(f"abstract-quorum-{name}", promise, steps, ALONE, "abstract-quorum", least=least)
        for name, promise, steps, least in (
            ("elects-behind", "leaders-have-committed", 5, (TWICE,)),
            ("elects-behind", "leader-knows-what-is-committed", 8, (TWICE,)),
            ("elects-behind", "quorum-only-grows", 9, (ALONE,)),
            ("votes-again", "one-leader-a-term", 2, (ONCE,)),
            ("votes-again", "one-vote-a-term", 2, ({**ONCE, "voters": 2}, ONCE)),
            ("votes-again", "quorum-logs-match", 7, (ALONE,)),
        )
    ),
    Mistake("kafka-13104", "leaders-have-not-given-up", 5, TERMS, "kraft-renouncing", least=(ONCE,)),
    Mistake(
        "kafka-15345",
        "decisions-follow-a-commit",
        3,
        TERMS,
        "kraft-activation",
        least=({**ONCE, "metadata_log": 2},),
    ),
    Mistake("kafka-20839", "metadata-begin-with-the-bootstrap", 13, TERMS, "kraft-activation"),
    Mistake("kafka-17608", "deposed-find-a-snapshot", 8, TERMS, "kraft-activation", least=(ALONE,)),
)
MISTAKES = (*OF_PARTITION, *OF_QUORUM)
"""One table for verdicts, tests and docs/kraft.md: those with a partition, and those of the quorum alone."""


def table_for(design: Design) -> MistakeTable:
    """The mistakes that say something of designs with a partition, or of those without."""
    rows = OF_PARTITION if has_partition(design) else OF_QUORUM
    return MistakeTable(rows, FAULTS, exact=("voters",), most_unasked={"voters": 3}, usual={})


def noticing(
    instance: Instance, exploration: Exploration, property_names: Collection[str]
) -> tuple[Exploration, Notice | None]:
    """The findings, and what the bounds notice; None where nothing is said to hold."""
    names = promises_that_hold(exploration, tuple(property_names))
    if not names:
        return exploration, None
    answer = notice(instance.design, instance.constants, names)
    return judged_by_notice(exploration, answer), answer


def notice(design: Design, constants: Mapping[str, Value], names: Collection[str]) -> Notice:
    """What these constants notice of the mistakes of controllers, and of a partition's."""
    own = table_for(design).notice(constants, names, is_own=bool(design.file))
    if not has_partition(design):
        return own
    below = notice_of_partition(constants, names)
    if not below.mistakes:
        return own
    unnoticed = {**below.beyond_by_promise, **below.unnoticed_by_promise} if design.file else below.unnoticed_by_promise
    return Notice(
        (*own.mistakes, *below.mistakes),
        (*own.noticed_mistakes, *below.noticed_mistakes),
        _together(own.unnoticed_by_promise, unnoticed),
        _together(own.beyond_by_promise, {} if design.file else below.beyond_by_promise),
        _larger(below.enough, own.enough),
        below.settings,
        tuple(name for name in own.without_mistake if name in below.without_mistake),
        f"{QUORUM} and {below.base}" if own.mistakes else below.base,
        tuple(name for name in own.short_of_base if name in below.without_mistake),
    )


def _together(a: Mapping[str, tuple[str, ...]], b: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {promise: (*a.get(promise, ()), *b.get(promise, ())) for promise in dict.fromkeys((*a, *b))}


def _larger(a: Bounds, b: Bounds) -> dict[str, Value]:
    return {n: max(cast("int", bounds[n]) for bounds in (a, b) if n in bounds) for n in dict.fromkeys((*a, *b))}


def notice_of_partition(constants: Mapping[str, Value], names: Collection[str]) -> Notice:
    """What one reliable controller would notice with as many changes as the metadata log has room for.

    Its first record creates the partition. Who crashes takes two records beside the change: it registers, and is
    unfenced. Who loses its session takes one.
    """
    from isr_model import KIP_966
    from isr_protocol.planted import notice as of_partition

    shared = {c.name: constants[c.name] for c in KIP_966.constants() if c.name in constants}
    more = 1 + sum(count * cast("int", constants[name]) for name, count in RECORDS_OF_FAULTS.items())
    changes = cast("int", constants["isr_changes"])
    room = max(0, min(changes, cast("int", constants["metadata_log"]) - more))
    answer = of_partition.notice(KIP_966, check_constants(KIP_966, {**shared, "isr_changes": room}), names)
    enough = dict(answer.enough)
    if enough:
        enough["isr_changes"] = max(changes, cast("int", enough.get("isr_changes", room)))
        wanted = cast("int", enough.get("isr_changes", room)) if "isr_changes" in answer.enough else room
        enough["metadata_log"] = more + wanted
    enough = {n: v for n, v in enough.items() if v != constants[n] and cast("int", v) > cast("int", constants[n])}
    return attrs.evolve(answer, enough=enough, base=KIP_966.name)


RECORDS_OF_FAULTS = {"crashes": 2, "lossy_crashes": 2, "sessions_lost": 1, "unnoticed": 0}
