"""Makes the table of which bounds notice which known mistake: `python -m tests.support.notice_table [DESIGN ...]`.

It takes about half an hour for all designs on one core. A mistake that nothing notices is no known one: remove it.
Each design in the table has the hash of its model and of what each mistake makes of it. So a test can say that a row is
stale, and only what has changed is explored again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import cast
from unittest.mock import patch

from isr_check.engine import TYPE_OK, Exploration, Limits, Unsound, Verdict
from isr_check.mutation import replay
from isr_check.native import explore
from isr_check.native.machine import Machine
from isr_check.reference import Evaluator, State
from isr_lang import Design, Instance, Value
from isr_protocol.by_name import DESIGNS
from isr_protocol.planted.mistakes import MISTAKES, Mistake, planted_in
from isr_protocol.planted.notice import (
    FILE,
    Row,
    TableOfDesign,
    hashes,
    is_setting,
    notice,
    noticing_constants,
    read_tables,
    table_text,
)
from isr_protocol.promises.room import following

PROMISES = ("always", "step")
BASES = ("kip-966", "kraft-3.5", "kip-320", "kip-101", "zookeeper", "kafka-0.8")
MOST_STATES = 1_000_000
"""What is not noticed among so many orbits counts as not noticed."""

Point = dict[str, Value]

SMALL, LARGE = {"log": 1, "records": 1}, {"log": 2, "records": 2}
BUDGETS = ("crashes", "lossy_crashes", "sessions_lost", "unnoticed", "shutdowns")
FEW = {"epochs": 1, "isr_changes": 2}
MANY = {"epochs": 2, "isr_changes": 4}
CALM = {"crashes": 0, "unnoticed": 0}
ONE_CRASH = {"crashes": 1, "unnoticed": 0}


def after_one(fault: str) -> Point:
    """Two replicas, one such fault, and room for two elections."""
    return {"replicas": 2, "crashes": 0, "unnoticed": 1, fault: 1, **MANY, **LARGE}


SECONDS: tuple[Point, ...] = (
    {"replicas": 3, "crashes": 1, "unnoticed": 0, **FEW, **LARGE},
    after_one("crashes"),
    after_one("lossy_crashes"),
    after_one("sessions_lost"),
    after_one("shutdowns"),
    {"replicas": 2, "crashes": 1, "unnoticed": 0, "epochs": 2, "isr_changes": 5, **LARGE},
    {"replicas": 2, "crashes": 0, "unnoticed": 0, "sessions_lost": 2, "epochs": 1, "isr_changes": 3, **LARGE},
)
"""Where the designs themselves take seconds; `docs/bounds.md` has the figures."""


class Looking:
    """Which promises a mistake breaks at which point, each asked of the engine once."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.own: dict[str, tuple[str, ...]] = {}

    def kept(self, point: Mapping[str, Value]) -> tuple[str, ...]:
        """The promises that the design itself keeps at this point."""
        key = json.dumps(point, sort_keys=True)
        if key not in self.own:
            instance = Instance(self.design, point)
            names = (*(p.name for p in instance.properties if p.kind in PROMISES), TYPE_OK)
            exploration = search(instance, names, 10 * MOST_STATES)
            self.own[key] = tuple(f.name for f in exploration.findings if f.verdict is Verdict.HOLDS)
        return self.own[key]

    def broken(self, mistake: Mistake, mistaken: Design, point: Point, before: Collection[str]) -> list[Row]:
        """What the mistake breaks at this point, beyond `before`: a row for each need of a shortest counterexample."""
        without = {n: v for n, v in point.items() if not (mistake.is_setting and n in mistake.shows_at)}
        asked = tuple(name for name in self.kept(without) if name not in before)
        instance = instance_at(mistaken, point)
        try:
            exploration = search(instance, asked, MOST_STATES)
        except OverflowError:
            return [] if TYPE_OK in before else [Row(mistake.name, point, (TYPE_OK,))]
        evaluator, rows = Evaluator(instance), dict[str, Row]()
        for finding in exploration.findings:
            if finding.verdict is not Verdict.VIOLATED or finding.path is None:
                continue
            used = use(evaluator, replay(evaluator, finding.path))
            at = {**point, **{n: min(cast("int", v), cast("int", point.get(n, v))) for n, v in used.items()}}
            key = json.dumps(at, sort_keys=True)
            rows[key] = Row(mistake.name, at, (*(rows[key].by if key in rows else ()), finding.name))
        return [row if self.breaks(mistaken, row) else Row(mistake.name, point, row.by) for row in rows.values()]

    def breaks(self, mistaken: Design, row: Row) -> bool:
        """Whether the row is so: a mistake that does not count what it uses needs more than its behaviour shows."""
        findings = search(instance_at(mistaken, row.at), row.by, MOST_STATES).findings
        return all(f.verdict is Verdict.VIOLATED for f in findings)


def use(evaluator: Evaluator, states: Sequence[State]) -> Point:
    """How much of each bound a behaviour uses: it is one of the design at these bounds, too."""
    names = [v.name for v in evaluator.instance.variables]
    named = [dict(zip(names, state, strict=True)) for state in states]
    last = named[-1]
    logs = [len(log) for state in named for log in cast("tuple[tuple[int, ...], ...]", state["log"])]
    budgets: Point = {n: cast("int", last[n]) for n in BUDGETS if n in last}
    return {
        **budgets,
        "log": max(1, *logs),
        "records": max(1, len(cast("tuple[int, ...]", last["written_in"]))),
        "epochs": cast("int", last["controller_epoch"]),
        "isr_changes": cast("int", last["controller_partition_epoch"]),
    }


def instance_at(mistaken: Design, point: Mapping[str, Value]) -> Instance:
    """At the constants that are left: a mistake may be that a setting is not looked at."""
    known = {c.name for c in mistaken.constants()}
    return Instance(mistaken, {n: v for n, v in point.items() if n in known})


def search(instance: Instance, names: tuple[str, ...], most: int) -> Exploration:
    """An exploration by the code that is made first: the better one takes longer to make than these searches."""
    with patch.object(Machine, "improve"):
        return _search(instance, names, most)


def _search(instance: Instance, names: tuple[str, ...], most: int) -> Exploration:
    return explore(instance, names, Limits(max_states=most), lambda _: None, symmetry=True, reduction=True)


def ladders_of(design: Design, shows_at: Mapping[str, Value]) -> tuple[list[list[Point]], list[list[Point]]]:
    """Ladders of points, climbed from small to large; the second ones for what nothing notices on the first.

    The last one is where the mistake is known to show.
    """
    known = {c.name for c in design.constants()}

    def ladder(replicas: int, *parts: Mapping[str, Value]) -> list[Point]:
        merged: Point = {"replicas": replicas}
        for part in parts:
            merged |= part
        return [{n: v for n, v in {**merged, **size}.items() if n in known} for size in (SMALL, LARGE)]

    later = [
        ladder(2, ONE_CRASH, MANY),
        ladder(2, CALM, {"sessions_lost": 1, "epochs": 2, "isr_changes": 3}),
        ladder(2, CALM, {"lossy_crashes": 1}, MANY),
        ladder(3, ONE_CRASH, FEW),
    ]
    if shows_at and set(shows_at) <= known:
        there = Instance(design, shows_at).constants
        calm = {name: there[name] for name in (*BUDGETS, "consumers", "epochs", "isr_changes") if name in known}
        last = ladder(cast("int", there["replicas"]), calm, shows_at)
        later.append([{**point, "records": max(cast("int", point["records"]), 2)} for point in last])
    return [ladder(2, ONE_CRASH, FEW)], later


def rows_of_setting(looking: Looking, mistake: Mistake) -> list[Row]:
    """What a setting breaks that is kept without it, under each fault, with up to three records."""
    rows, before, known = list[Row](), set[str](), {c.name for c in looking.design.constants()}
    for faults in (CALM, ONE_CRASH, {**CALM, "sessions_lost": 1}, {**CALM, "lossy_crashes": 1}):
        for size in (SMALL, LARGE, {"log": 2, "records": 3}):
            point: Point = {"replicas": 2, **faults, **MANY, **size, **mistake.shows_at}
            at = {n: v for n, v in point.items() if n in known}
            more = looking.broken(mistake, looking.design, at, before)
            before |= {name for row in more for name in row.by}
            rows += more
    return rows


def rows_of(looking: Looking, mistake: Mistake, mistaken: Design) -> list[Row]:
    if mistake.is_setting:
        return rows_of_setting(looking, mistake)
    rows: list[Row] = []
    first, later = ladders_of(looking.design, mistake.shows_at)
    for ladder in (*first, *later):
        if rows and ladder in later:
            break
        before: set[str] = set()
        for point in ladder:
            more = looking.broken(mistake, mistaken, point, before)
            before |= {name for row in more for name in row.by}
            rows += more
    return rows


OF_RECORDS = ("acked-survives", "committed-on-new-leader", "committed-only-grows", "implements-committed-log")
"""Promises about records that are lost: it takes an election more to lose one than to be about to."""


def rows_of_loss(looking: Looking, mistake: Mistake, mistaken: Design, rows: Sequence[Row]) -> list[Row]:
    """What a mistake that something notices loses where there is room for it: two elections and two records."""
    before = {name for row in rows for name in row.by} | {p.name for p in mistaken.properties} - set(OF_RECORDS)
    known = {c.name for c in looking.design.constants()}
    point: Point = {"replicas": 2, **ONE_CRASH, **MANY, "log": 1, "records": 2}
    if not rows or not set(OF_RECORDS) - before:
        return []
    return looking.broken(mistake, mistaken, {n: v for n, v in point.items() if n in known}, {*before, TYPE_OK})


def table_of(design: Design) -> TableOfDesign:
    """The table: rows of models that were explored before stay, the others are made."""
    hashes_now, before = hashes(design), read_tables().get(design.name)
    looking, rows = Looking(design), list[Row]()
    for mistake in MISTAKES:
        mistaken = planted_in(mistake, design)
        if mistaken is None:
            continue
        if before is not None and all(before.hashes.get(n) == hashes_now[n] for n in (design.name, mistake.name)):
            rows += [row for row in before.rows if row.mistake == mistake.name]
            continue
        try:
            more = rows_of(looking, mistake, mistaken)
            more += [] if mistake.is_setting else rows_of_loss(looking, mistake, mistaken, more)
        except Unsound as problem:
            print(f"  {mistake.name}: {problem}", flush=True)
            continue
        rows += more
        where = "; ".join(f"{' '.join(map(str, r.at.values()))} {','.join(r.by)}" for r in more)
        print(f"  {design.name} {mistake.name}: {where or 'not noticed'}", flush=True)
    settings = {c.name: Instance(design, {}).constants[c.name] for c in design.constants() if is_setting(c)}
    return TableOfDesign(design.name, hashes_now, settings, SECONDS, tuple(rows))


def mistakes_of_page() -> str:
    """The mistakes as docs/bounds.md lists them."""
    lines = ["| mistake | what is wrong | harm | least | noticed in |", "|---|---|---|---|---|"]
    every = read_tables().values()
    for mistake in MISTAKES:
        rows = [r for t in every for r in t.rows if r.mistake == mistake.name]
        if not rows:
            continue
        designs = [f"`{t.design}`" for t in every if any(r.mistake == mistake.name for r in t.rows)]
        least = min(rows, key=lambda r: (sum(sizes := [v for v in r.at.values() if isinstance(v, int)]), sizes))
        names = ("replicas", "log", "records", "epochs", "isr_changes")
        faults = [f"{n.replace('_', '-')} {v}" for n, v in least.at.items() if n in BUDGETS and v]
        bounds = ", ".join((" ".join(str(least.at[n]) for n in names), *faults))
        lines.append(f"| `{mistake.name}` | {mistake.what} | {mistake.harm} | {bounds} | {', '.join(designs)} |")
    return "\n".join(lines)


def summary_of_page() -> str:
    """What the usual bounds of each design notice with one record and with those that are chosen."""
    lines = ["| design | replicas | known mistakes | noticed with one record | chosen |", "|---|---|---|---|---|"]
    for name in read_tables():
        design = DESIGNS[name]
        promises = [p.name for p in design.properties if p.kind in PROMISES] + [TYPE_OK]
        for replicas in (2, 3):
            small = Instance(design, following(design, {"replicas": replicas, "log": 1, "records": 1})).constants
            chosen = noticing_constants(design, {"replicas": replicas}, promises, whatever_it_takes=True)
            few, all_of_them = (
                notice(design, small, promises),
                notice(design, Instance(design, chosen).constants, promises),
            )
            sizes = {n: Instance(design, chosen).constants[n] for n in ("log", "records", "epochs", "isr_changes")}
            words = " ".join(f"{n.replace('_', '-')} {v}" for n, v in sizes.items())
            counts = f"{len(all_of_them.mistakes)} | {len(few.noticed_mistakes)}"
            lines.append(f"| `{name}` | {replicas} | {counts} | {words} |")
    return "\n".join(lines)


def main(names: list[str]) -> None:
    for name in names or BASES:
        tables = read_tables()
        if name in tables and tables[name].hashes == hashes(DESIGNS[name]):
            continue
        made = table_of(DESIGNS[name])
        tables = {**read_tables(), name: made}
        Path(FILE).write_text(table_text(tables[n] for n in BASES if n in tables), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
