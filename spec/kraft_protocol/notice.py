"""The known mistakes of a quorum: which bounds notice them, so that a promise that holds says what it is worth.

One table serves the verdicts, the tests of the counterexamples, and docs/kraft.md. How bounds are judged by it is in
`isr_check.mistake_table`. What a row does not name is the least that there is: a log of one record, and no client.
"""

from __future__ import annotations

from collections.abc import Mapping

from isr_check.mistake_table import Mistake, MistakeTable
from isr_lang import Value

Bounds = Mapping[str, Value]

THREE: Bounds = {"voters": 3, "epochs": 1}
STATIC_LOSS: Bounds = {"lost_disks": 1, "dynamic": False}
"""With directory ids a lost disk is another question."""
CHANGE: Bounds = {"dynamic": True, "changes": 1}
TWO_CHANGES: Bounds = {"dynamic": True, "changes": 2}
TWO_EPOCHS: Bounds = {**THREE, "epochs": 2, "log": 2}
CHANGE_OF_TWO: Bounds = {"voters": 2, "epochs": 1, "log": 2, **CHANGE}
ZERO_DIRECTORY: Bounds = {**THREE, "log": 3, "lost_disks": 1, "dynamic": True}
OBSTACLE = "resigned-leader-is-no-obstacle"
ELECTS = "majority-elects-a-leader"
STAYS_OUT = "removed-voter-stays-out"
COUNTS_NEXT = "leader-counts-next-voters"

MISTAKES = (
    Mistake("kraft-votes-again", "one-leader-per-epoch", 10, THREE, "kraft"),
    Mistake(
        "kraft-votes-again",
        "one-vote-per-epoch",
        8,
        {"epochs": 1},
        "kraft",
        least=({**THREE, "voters": 2}, THREE),
    ),
    Mistake("kraft-vote-not-flushed", "one-leader-per-epoch", 12, {**THREE, "restarts": 1}, "kraft"),
    Mistake("kraft-any-fetch", "logs-match", 14, {**TWO_EPOCHS, "writes": 1}, "kraft"),
    Mistake("kraft-unknown-watermark", "watermark-only-grows", 17, TWO_EPOCHS, "kraft"),
    Mistake(
        "kraft-longer-log",
        "leaders-complete",
        22,
        {**THREE, "epochs": 3, "log": 3, "writes": 1},
        "kraft",
        is_shortest=False,
    ),
    Mistake("kraft-commits-any-epoch", "leaders-complete", 27, {**TWO_EPOCHS, "epochs": 4}, "kraft", is_shortest=False),
    Mistake("kafka-12619", "leaders-complete", 26, {**TWO_EPOCHS, "epochs": 4}, "kraft"),
    Mistake("kafka-14077", "one-leader-per-epoch", 12, {**THREE, **STATIC_LOSS}, "kraft", {"lost_disks": 0}),
    Mistake(
        "kafka-10533",
        "leaders-complete",
        18,
        {"epochs": 2, "restarts": 1},
        "kraft",
        least=tuple({"voters": n, "epochs": 2, "restarts": 1} for n in (2, 3)),
    ),
    Mistake(
        "kafka-10527",
        "leader-has-its-epoch",
        13,
        {"voters": 2, "epochs": 2, "restarts": 1},
        "kafka-10533",
        least=tuple(
            {"voters": 2, "epochs": epochs, "log": 2, "writes": writes, "restarts": 1}
            for epochs, writes in ((1, 1), (2, 0))
        ),
    ),
    Mistake("kafka-12460", "watermark-within-log", 19, {**THREE, "epochs": 2, **STATIC_LOSS}, "kraft"),
    Mistake("kafka-20895", OBSTACLE, 15, THREE, "kraft-notes-end"),
    Mistake("kraft-end-clears-fetch", OBSTACLE, 15, THREE, "kraft-notes-end"),
    Mistake(
        "kraft-prospective-refuses",
        ELECTS,
        6,
        {"epochs": 2},
        "kraft",
        least=({**TWO_EPOCHS, "voters": 2, "writes": 1}, THREE),
    ),
    Mistake("kraft-hears-at-once", ELECTS, 22, {**THREE, "log": 2, "restarts": 1}, "kraft"),
    Mistake(
        "kafka-15489",
        "cut-off-leader-resigns",
        7,
        {"voters": 2, "epochs": 2},
        "kraft-cut-off",
        least=({**TWO_EPOCHS, "voters": 2}, {**THREE, "log": 2}),
    ),
    Mistake(
        "kafka-16530",
        "committed-by-majority",
        10,
        {"epochs": 1, "log": 2, **CHANGE},
        "kraft-853",
        least=(CHANGE_OF_TWO, {**CHANGE_OF_TWO, "voters": 3}),
    ),
    Mistake("kafka-16531", "only-a-majority-suffices", 12, {**THREE, "log": 2, **CHANGE}, "kraft-check-quorum"),
    Mistake("kafka-17426", "one-leader-per-epoch", 12, ZERO_DIRECTORY, "kraft-853"),
    Mistake("kraft-changes-at-once", COUNTS_NEXT, 11, {**THREE, "log": 3, **TWO_CHANGES}, "kraft-853"),
    Mistake(
        "kraft-adds-all",
        "neighbouring-voters-overlap",
        12,
        {**THREE, "log": 2, "joiners": 2, **CHANGE},
        "kraft-853",
    ),
    *(
        Mistake(
            "kraft-changes-early",
            promise,
            32,
            {"voters": 4, "epochs": 3, "log": 4, **TWO_CHANGES},
            "kraft-853",
            is_shortest=False,
            least=({"voters": 4, "epochs": 3, "log": 3, **TWO_CHANGES},),
        )
        for promise in (COUNTS_NEXT, "leaders-complete")
    ),
    Mistake(
        "kraft-lists-differ",
        "one-leader-per-epoch",
        4,
        {"voters": 2, "epochs": 1, "omissions": 2, "dynamic": True},
        "kraft-lists-differ",
        {"omissions": 0},
    ),
    Mistake(
        "kraft-lists-of-three",
        "one-leader-per-epoch",
        12,
        {"voters": 4, "epochs": 1, "omissions": 2, "dynamic": True},
        "kraft-lists-of-three",
        {"omissions": 0},
    ),
    *(
        Mistake(
            "kraft-formatted-alone",
            promise,
            steps,
            {"voters": 2, "epochs": 2, "log": 3, "lost_disks": 1, "lone_disks": 1, "dynamic": True},
            "kraft-formatted-alone",
            {"lone_disks": 0},
            least=({"voters": 2, "epochs": epochs, "lost_disks": 1, "lone_disks": 1, "dynamic": True},),
        )
        for promise, steps, epochs in (
            ("one-leader-per-epoch", 8, 1),
            ("leaders-complete", 11, 2),
            ("watermark-is-committed", 15, 2),
        )
    ),
    *(
        Mistake(
            "kraft-upgrades-early",
            promise,
            15,
            {"voters": 3, "epochs": 2, "log": 2, "upgrades": 1, "dynamic": True},
            "kraft-version-upgrade",
        )
        for promise in (COUNTS_NEXT, "leaders-complete")
    ),
    Mistake("kafka-19850", STAYS_OUT, 11, {"voters": 2, "epochs": 1, "log": 3, **TWO_CHANGES}, "kraft-joins-once"),
    Mistake(
        "kraft-joins-once",
        STAYS_OUT,
        12,
        {"voters": 2, "epochs": 1, "log": 3, **TWO_CHANGES, "snapshots": 1},
        "kraft-joins-once",
        {"snapshots": 0},
    ),
)
"""Each breaks its promise at the default bounds of its design, of which `bounds` has what the row is about."""

TABLE = MistakeTable(
    MISTAKES,
    faults=("restarts", "lost_disks", "snapshots"),
    exact=("voters",),
    most_unasked={"voters": 3},
    usual={"epochs": 2},
)
"""Changes and joiners are sizes, as epochs are: where one voter leaves, no two voter sets differ in two."""
