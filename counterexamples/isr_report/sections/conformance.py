"""The conformance page: what replay, conform and validate wrote, what nobody gave, and what Kafka's releases can take.

Each kind of JSON report has its table; a key that a report lacks is shown as not said, for the verbs grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import cast

from isr_report.html import code, command, link, table, verdict
from isr_report.material import IncludedReport
from isr_report.sections import kafka_stories

Json = Mapping[str, object]

REPLAY, CONFORM, VALIDATE, KILLS = "insync/replay/1", "insync/conform/1", "insync/validate/1", "insync/kills/1"
SECTIONS = {
    REPLAY: (
        "The cores of the broker against the model",
        "Every step of the model within the bounds was taken on the cores, and every step of theirs looked for in it.",
        ("insync replay kip-966 --json replay.json", "insync report --include replay.json"),
    ),
    CONFORM: (
        "Any implementation against the model",
        "A system that speaks the protocol was driven along the edges of the model.",
        ("insync conform --sut COMMAND --json conform.json", "insync report --include conform.json"),
    ),
    VALIDATE: (
        "Traces of brokers against the model",
        "Every line that running brokers wrote was looked for as a step of the model.",
        ("insync validate DIR --json validate.json", "insync report --include validate.json"),
    ),
    KILLS: (
        "Planted bugs: which check notices",
        "Each bug was planted in the model and in the broker, wherever it has a place; an empty square found nothing.",
        ("insync kills --json kills.json", "insync report --include kills.json"),
    ),
}
NOT_SAID = '<span class="quiet">not said</span>'


def is_conformance(report: Json) -> bool:
    return str(report.get("schema", "")) in SECTIONS


def section(included_reports: Sequence[IncludedReport]) -> str:
    """Every kind in turn; of what was not given the command that makes it."""
    parts: list[str] = []
    for schema, (title, says, made_by) in SECTIONS.items():
        reports = [i for i in included_reports if i["report"].get("schema") == schema]
        head = f"<h3>{title}</h3>"
        if not reports:
            commands = "".join(command(words) for words in made_by)
            parts.append(
                f'{head}<p class="quiet">Nothing was given to this report. It is made, and added, by</p>{commands}'
            )
            continue
        shown = {REPLAY: _replays, CONFORM: _conforms, VALIDATE: _validations, KILLS: _kill_tables}[schema](reports)
        parts.append(f'{head}<p class="quiet">{says}</p>{shown}')
    return "".join(parts) + kafka_stories.section(kafka_stories.read_stories())


def number(report: Json, *path: str) -> str:
    """A number in a report, or that it does not say."""
    here: object = report
    for key in path:
        here = _under(here, key)
    return f"{here:,}" if isinstance(here, int) else f"{here:,.1f}" if isinstance(here, float) else NOT_SAID


def _under(value: object, key: str) -> object:
    return cast("Json", value).get(key) if isinstance(value, Mapping) else None


def bounds_of(report: Json) -> str:
    """Bounds and settings of a report, as one types them; those that are off or zero are left out."""
    given = report.get("bounds")
    if not isinstance(given, Mapping):
        return NOT_SAID
    shown = {k: v for k, v in cast("Json", given).items() if v not in (False, 0)}
    words = [f"{k.replace('_', '-')} {'on' if v is True else v}" for k, v in shown.items()]
    return escape(", ".join(words)) or "the defaults"


def total(report: Json, key: str) -> int:
    """The sum of a table of counts."""
    counts = report.get(key)
    return sum(v for v in cast("Json", counts).values() if isinstance(v, int)) if isinstance(counts, Mapping) else 0


def _replays(reports: Sequence[IncludedReport]) -> str:
    rows: list[tuple[str, ...]] = []
    for i in reports:
        r = i["report"]
        wrong = total(r, "mismatches")
        word = "VIOLATED" if wrong else "HOLDS" if r.get("complete") is True else "BUDGETED"
        rows.append(
            (
                link(i["file"], escape(str(r.get("design", "")))),
                bounds_of(r),
                verdict(word),
                number(r, "states"),
                number(r, "edges"),
                number(r, "replayed"),
                f"{total(r, 'explained'):,}",
                f"{wrong:,}",
                f"{number(r, 'pairs', 'replayed')} of {number(r, 'pairs', 'of')}",
            )
        )
    header = (
        "design",
        "bounds",
        "verdict",
        "states",
        "edges",
        "replayed",
        "explained",
        "differences",
        "pairs of actions",
    )
    explained = [f"<li>{escape(why)}: {n:,}</li>" for i in reports for why, n in _counts(i["report"], "explained")]
    told = f"<details><summary>What was explained</summary><ul>{''.join(explained)}</ul></details>" if explained else ""
    return table(header, rows, numbers=(3, 4, 5, 6, 7)) + told + "".join(_examples(i, "mismatches") for i in reports)


def _counts(report: Json, key: str) -> list[tuple[str, int]]:
    counts = report.get(key)
    return list(cast("Mapping[str, int]", counts).items()) if isinstance(counts, Mapping) else []


def _conforms(reports: Sequence[IncludedReport]) -> str:
    rows: list[tuple[str, ...]] = []
    for i in reports:
        r = i["report"]
        wrong = total(r, "differences")
        word = "VIOLATED" if wrong else "HOLDS" if r.get("complete") is True else "BUDGETED"
        rows.append(
            (
                link(i["file"], escape(str(r.get("system", "")))),
                escape(str(r.get("design", ""))),
                bounds_of(r),
                verdict(word),
                f"{number(r, 'edges', 'driven')} of {number(r, 'edges', 'of')}",
                f"{number(r, 'states', 'driven')} of {number(r, 'states', 'of')}",
                number(r, "steps"),
                f"{wrong:,}",
            )
        )
    header = ("system", "model", "bounds", "verdict", "edges driven", "states", "steps", "differences")
    return table(header, rows, numbers=(4, 5, 6, 7)) + "".join(_examples(i, "differences") for i in reports)


def _examples(i: IncludedReport, counts_key: str) -> str:
    """The first difference of a report that has some: how one gets there, and the step."""
    listed = cast("list[Json]", i["report"].get("examples") or [])
    if not listed or not total(i["report"], counts_key):
        return ""
    first = listed[0]
    path = cast("list[tuple[str, list[object]]]", first.get("path") or [])
    steps = [f"{name}({', '.join(str(p) for p in parameters)})" for name, parameters in path]
    last = f"{first.get('action')}({', '.join(str(p) for p in cast('list[object]', first.get('parameters') or []))})"
    ways = "".join(f"<li>{code(step)}</li>" for step in steps)
    return f"<p><b>{escape(str(first.get('kind')))}</b> after</p><ol>{ways}<li><b>{code(last)}</b></li></ol>"


def _validations(reports: Sequence[IncludedReport]) -> str:
    rows: list[tuple[str, ...]] = []
    for i in reports:
        r = i["report"]
        rejected = r.get("rejected")
        outside = r.get("outside")
        word = (
            '<span class="verdict violated">rejected</span>'
            if rejected
            else '<span class="verdict holds">accepted</span>'
        )
        rows.append(
            (
                link(i["file"], escape(i["file"].rpartition("/")[2])),
                word if "rejected" in r else NOT_SAID,
                number(r, "lives"),
                number(r, "events"),
                f"{total(r, 'steps'):,}",
                f"{total(r, 'stutters'):,}",
                f"{len(cast('list[object]', outside)):,}" if isinstance(outside, list) else NOT_SAID,
                number(r, "unchecked"),
            )
        )
    header = (
        "trace",
        "",
        "lives of brokers",
        "events",
        "steps of the model",
        "stutters",
        "outside of the model",
        "unchecked",
    )
    return table(header, rows, numbers=(2, 3, 4, 5, 6, 7)) + "".join(_rejection(i["report"]) for i in reports)


def _rejection(report: Json) -> str:
    no = report.get("rejected")
    if not isinstance(no, Mapping):
        return ""
    said = cast("Json", no)
    where = f"{said.get('life')}.jsonl:{said.get('line')}"
    guards = "".join(f"<li>{code(str(g))}</li>" for g in cast("list[object]", said.get("guards") or []))
    about = f"{code(where)}, {code(str(said.get('action')))}: {escape(str(said.get('why')))}"
    return f"<p><b>Rejected</b> at {about}</p><ul>{guards}</ul>"


def _kill_tables(reports: Sequence[IncludedReport]) -> str:
    return "".join(_kill_table(i) for i in reports)


def _kill_table(i: IncludedReport) -> str:
    """A row for each planted bug, a column for each layer: what said so, and where; what nobody finds is flagged."""
    bugs = cast("Mapping[str, Mapping[str, Mapping[str, str] | None]]", i["report"].get("bugs") or {})
    layers = list(dict.fromkeys(layer for found in bugs.values() for layer in found))
    rows = [
        (
            code(bug),
            *(_kill(found.get(layer)) for layer in layers),
            f"{sum(f is not None for f in found.values())} of {len(found)}"
            if any(found.values())
            else '<b class="flagged">nothing notices</b>',
        )
        for bug, found in bugs.items()
    ]
    caught = sum(any(found.values()) for found in bugs.values())
    said = f"<p>{caught} of {len(bugs)} planted bugs are found; {link(i['file'], 'the report')}.</p>"
    return said + table(("planted bug", *(escape(layer) for layer in layers), "found by"), rows)


def _kill(finding: Mapping[str, str] | None) -> str:
    if finding is None:
        return ""
    return f'{code(str(finding.get("what", "")))}<br><span class="quiet">{escape(str(finding.get("where", "")))}</span>'
