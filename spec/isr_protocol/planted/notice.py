"""What a verdict within bounds would notice: known mistakes, and the bounds at which each promise breaks of them.

"No two logs differ" says nothing where a log holds one record and one record is written. So a promise that holds is
worth as much as the mistakes that would have broken it. The known ones are in `planted.mistakes`. Which of them breaks
which promise within which bounds was found once, by exploring each, and is in FILE (`tests.support.notice_table` makes
it). Larger bounds notice what smaller ones do, for they only add behaviours: so a row answers for all above it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import attrs

from isr_check.engine import Exploration, Verdict
from isr_check.family import Notice
from isr_check.mistake_table import judged_by_notice
from isr_lang import Constant, Design, Instance, Value
from isr_lang.instance import check_constants
from isr_protocol.promises.room import ELECTION, following

FILE = Path(__file__).with_name("notice.json")
HASH_LETTERS = 12


@attrs.frozen
class Row:
    """At these constants the mistake of this name breaks these promises, and at no smaller ones in the table."""

    mistake: str
    at: Mapping[str, Value]
    by: tuple[str, ...]


@attrs.frozen
class TableOfDesign:
    """What was found of one design. `hashes` are those of the models when they were explored: the design's own under
    its name, and those that a mistake makes of it under the mistake's."""

    design: str
    hashes: Mapping[str, str]
    settings: Mapping[str, Value]
    """The settings at which it was made: the design's own."""
    seconds: tuple[Mapping[str, Value], ...]
    """Bounds and budgets at which the design itself was explored, by symmetry and reduction, in seconds."""
    rows: tuple[Row, ...]


def hashes(design: Design) -> dict[str, str]:
    """Of the design's model, and of every model that a mistake makes of it."""
    from isr_protocol.planted.mistakes import MISTAKES, planted_in

    planted = ((m.name, planted_in(m, design)) for m in MISTAKES)
    models = {design.name: design, **{name: mistaken for name, mistaken in planted if mistaken is not None}}
    return {name: model.model_hash()[:HASH_LETTERS] for name, model in models.items()}


def read_tables() -> dict[str, TableOfDesign]:
    """The tables by the name of the design; none where there is no file."""
    if not FILE.exists():
        return {}
    whole = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: TableOfDesign(
            name,
            table["hashes"],
            table["settings"],
            tuple(table["seconds"]),
            tuple(Row(r["mistake"], r["at"], tuple(r["by"])) for r in table["rows"]),
        )
        for name, table in whole.items()
    }


def table_text(tables: Iterable[TableOfDesign]) -> str:
    """The file: one row a line."""
    parts: list[str] = []
    for t in tables:
        rows = ",\n".join("  " + json.dumps({"mistake": r.mistake, "at": dict(r.at), "by": list(r.by)}) for r in t.rows)
        seconds = ",\n".join("  " + json.dumps(dict(at)) for at in t.seconds)
        head = f'"hashes": {json.dumps(dict(t.hashes))},\n"settings": {json.dumps(dict(t.settings))}'
        parts.append(f'{json.dumps(t.design)}: {{{head}, "seconds": [\n{seconds}\n], "rows": [\n{rows}\n]}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


SIZES = ("log", "records", "epochs", "isr_changes")
"""The bounds that may be chosen. The others say what is asked: how many replicas, which faults, which settings."""
PROMISES = ("always", "step")
FLOOR: Mapping[str, Value] = {"log": 2, "records": 2}
"""In logs of one record no two differ. So of somebody's own design less is never enough, whatever it changes."""


@cache
def tables() -> Mapping[str, TableOfDesign]:
    return read_tables()


def table_for(design: Design) -> TableOfDesign | None:
    """The table of the design, or of the nearest that it was made from. One of somebody's own always has one."""
    base: Design | None = design
    while base is not None:
        if base.name in tables():
            return tables()[base.name]
        base = base.based_on
    return next(iter(tables().values()), None) if design.file else None


def _is_of(design: Design, table: TableOfDesign) -> bool:
    """Whether the table was made of this very model, and not of one that has its name, or was made into it."""
    return design.model_hash()[:HASH_LETTERS] == table.hashes.get(table.design)


@cache
def _has_place(name: str, design: Design) -> bool:
    from isr_protocol.planted.mistakes import mistakes_by_name, planted_in

    return name in mistakes_by_name() and planted_in(mistakes_by_name()[name], design) is not None


@attrs.frozen
class Rows:
    """The rows of a table that speak about the question: its replicas, faults and settings."""

    rows: tuple[Row, ...]
    """Those of mistakes that have a place in the design."""
    of_table: tuple[Row, ...]
    """All of them: what a change takes away from a design takes its mistakes away, too, and may be the fault."""
    base: str
    """The design of which the table was made; empty where that is the model of the question."""
    elections: Mapping[str, int]
    """The bounds of elections that the question has, or its default."""
    settings: Mapping[str, Value]
    """The settings at which the table was made, where those are not the question's."""

    def is_beyond(self, row: Row) -> bool:
        """Whether the row needs more elections than the question, or its default, has room for."""
        return any(cast("int", row.at.get(name, 0)) > most for name, most in self.elections.items())


def rows_for(design: Design, constants: Mapping[str, Value]) -> Rows:
    """The rows about a world with these constants, all of which are given."""
    table = table_for(design)
    if table is None:
        return Rows((), (), "", {}, {})
    kinds = {c.name: c for c in design.constants()}
    free = {n: v for n, v in constants.items() if n not in SIZES}
    usual = check_constants(design, following(design, free))
    elections = {n: max(cast("int", usual[n]), cast("int", constants[n])) for n in ELECTION if n in usual}
    is_own = _is_of(design, table)
    of_table = tuple(r for r in table.rows if _is_about(r.at, constants, kinds))
    rows = tuple(r for r in of_table if is_own or _has_place(r.mistake, design))
    settings = {n: table.settings[n] for n, v in constants.items() if n in table.settings and table.settings[n] != v}
    return Rows(rows, of_table, "" if is_own else table.design, elections, settings)


def _is_about(at: Mapping[str, Value], constants: Mapping[str, Value], kinds: Mapping[str, Constant]) -> bool:
    """Whether the row has the question's settings, and at most its replicas and faults; its sizes are judged."""
    if any(value and name not in kinds for name, value in at.items()):
        return False
    asked = {name: value for name, value in at.items() if name in kinds and name not in SIZES}
    return all(
        value == constants[name] if is_setting(kinds[name]) else cast("int", value) <= cast("int", constants[name])
        for name, value in asked.items()
    )


def is_setting(constant: Constant) -> bool:
    """A switch, a choice, or the minimum: what is asked, and no size of the world."""
    return bool(constant.names) or constant.name == "min_insync"


def _is_within(at: Mapping[str, Value], constants: Mapping[str, Value]) -> bool:
    return all(cast("int", v) <= cast("int", constants[n]) for n, v in at.items() if n in SIZES and n in constants)


def _least(rows: Sequence[Row], constants: Mapping[str, Value]) -> Row:
    """The row that asks for the least beyond these constants."""

    def excess(row: Row) -> tuple[int, ...]:
        more = [max(0, cast("int", row.at.get(n, 0)) - cast("int", constants[n])) for n in SIZES if n in constants]
        return sum(more), *more

    return min(rows, key=excess)


def notice(design: Design, constants: Mapping[str, Value], promises: Collection[str]) -> Notice:
    """What these constants, all of which are given, notice of the known mistakes through these promises.

    Mistakes that take more elections than the question, or its default, has room for are counted as missed, and a
    promise of a listed design that misses one holds: what the listed designs keep there is asked elsewhere (at two
    replicas, and by `bench/bounds.py`). Of somebody's own design nobody asked it.
    """
    about = rows_for(design, constants)
    by_pair = _by_pair(about.rows, promises)
    missed_by, missed_beyond, hits = dict[str, list[str]](), dict[str, list[str]](), set[str]()
    for (promise, mistake), rows in by_pair.items():
        if any(_is_within(r.at, constants) for r in rows):
            hits.add(mistake)
            continue
        is_beyond = not design.file and all(map(about.is_beyond, rows))
        (missed_beyond if is_beyond else missed_by).setdefault(promise, []).append(mistake)
    mistakes = dict.fromkeys(mistake for _, mistake in by_pair)
    short, enough = _short_of_base(design, about.of_table, constants, promises)
    return Notice(
        mistakes=tuple(mistakes),
        noticed_mistakes=tuple(m for m in mistakes if m in hits),
        unnoticed_by_promise={promise: tuple(names) for promise, names in missed_by.items()},
        beyond_by_promise={promise: tuple(names) for promise, names in missed_beyond.items()},
        enough={**_enough(by_pair, constants), **enough},
        settings=about.settings,
        base=about.base,
        short_of_base=short,
        without_mistake=tuple(p for p in promises if not any(p == promise for promise, _ in by_pair)),
    )


def _short_of_base(
    design: Design, rows: Sequence[Row], constants: Mapping[str, Value], promises: Collection[str]
) -> tuple[tuple[str, ...], dict[str, Value]]:
    """The promises of somebody's own design within bounds that are too small for it, and those that are not.

    Nobody knows what the design changes. So the bounds are to hold FLOOR, and to notice all mistakes of the table that
    break the promise, whether they have a place or not. A promise that is not in the table may break of any of them.
    """
    if not design.file:
        return (), {}
    every = {promise for row in rows for promise in row.by}
    enough_by_promise = {
        p: {**_below_floor(constants), **_enough(_by_pair(rows, [p] if p in every else every), constants)}
        for p in promises
    }
    enough: dict[str, Value] = {}
    for bounds in enough_by_promise.values():
        enough |= {n: max(cast("int", v), cast("int", enough.get(n, v))) for n, v in bounds.items()}
    return tuple(p for p, bounds in enough_by_promise.items() if bounds), enough


def _below_floor(constants: Mapping[str, Value]) -> dict[str, Value]:
    """What FLOOR has of the bounds that are smaller."""
    return {n: v for n, v in FLOOR.items() if n in constants and cast("int", constants[n]) < cast("int", v)}


RowsByPair = Mapping[tuple[str, str], Sequence[Row]]
"""Promise and mistake -> the rows at which the mistake breaks the promise."""


def _by_pair(rows: Iterable[Row], promises: Collection[str]) -> RowsByPair:
    by_pair: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        for promise in row.by:
            if promise in promises:
                by_pair.setdefault((promise, row.mistake), []).append(row)
    return by_pair


def _enough(by_pair: RowsByPair, constants: Mapping[str, Value]) -> dict[str, Value]:
    """The least bounds at which each of these promises breaks of its mistake, where they are not these already."""
    enough: dict[str, Value] = {}
    for rows in by_pair.values():
        if any(_is_within(r.at, constants) for r in rows):
            continue
        for name, value in _least(rows, constants).at.items():
            if name in SIZES and name in constants:
                enough[name] = max(cast("int", value), cast("int", enough.get(name, constants[name])))
    return {n: v for n, v in enough.items() if v != constants[n]}


def noticing(
    instance: Instance, exploration: Exploration, property_names: Sequence[str]
) -> tuple[Exploration, Notice | None]:
    """The findings, and what their bounds notice: a promise that would keep its word of a mistake of its own says
    too little. None where nothing is said to hold.

    A mistake is of a promise's own kind if it breaks that promise within some bounds of the table.
    """
    held = [f.name for f in exploration.findings if f.kind in PROMISES and f.verdict is not Verdict.VIOLATED]
    if not any(f.kind in PROMISES and f.verdict in VERDICTS for f in exploration.findings):
        return exploration, None
    answer = notice(instance.design, instance.constants, [n for n in held if n in property_names])
    return judged_by_notice(exploration, answer), answer


VERDICTS = (Verdict.HOLDS, Verdict.TOO_SMALL, Verdict.SAMPLED)
"""Those with which it is said what the bounds notice."""


def noticing_constants(
    design: Design, constants: Mapping[str, Value], promises: Collection[str], *, whatever_it_takes: bool
) -> dict[str, Value]:
    """The constants, and the least of the bounds not given that notice all mistakes which these promises can notice.

    Where that would take more than seconds, those that notice all with as many elections as is usual. Where that would,
    too, and it may not take `whatever_it_takes`, those that notice each mistake which seconds are enough to notice.

    Of somebody's own design every promise and every mistake of the table counts, and FLOOR: its change may have taken
    away just what a mistake, or a promise, has its place in.
    """
    own = following(design, constants)
    complete = check_constants(design, own)
    about = rows_for(design, complete)
    rows = about.of_table if design.file else about.rows
    names = {promise for row in rows for promise in row.by} if design.file else promises
    least = _below_floor(complete) if design.file else {}

    def enough_for(rows: Iterable[Row]) -> dict[str, Value]:
        enough = {**least, **_enough(_by_pair(rows, names), complete)}
        return {n: v for n, v in enough.items() if n not in constants}

    usual_rows = [row for row in rows if not about.is_beyond(row)]
    with_usual_elections = enough_for(usual_rows)
    for more in (enough_for(rows), with_usual_elections):
        if _takes_seconds(design, {**complete, **more}):
            return {**own, **more}
    if whatever_it_takes:
        return {**own, **with_usual_elections}
    in_seconds = enough_for(row for row in usual_rows if _takes_seconds(design, {**complete, **enough_for([row])}))
    return {**own, **in_seconds} if _takes_seconds(design, {**complete, **in_seconds}) else own


def _takes_seconds(design: Design, constants: Mapping[str, Value]) -> bool:
    """Whether bounds measured to take seconds are at least as large."""
    table = table_for(design)
    return table is not None and any(
        all(cast("int", constants[n]) <= cast("int", at.get(n, 0)) for n in constants if _counts(design, n))
        for at in table.seconds
    )


def _counts(design: Design, name: str) -> bool:
    """A bound or a budget: a number that makes the world larger."""
    return not is_setting(next(c for c in design.constants() if c.name == name))
