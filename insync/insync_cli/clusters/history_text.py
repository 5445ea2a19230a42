"""The report on a history, and the same as text: never a stronger word than the report has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import attrs

from insync_cli import terminal
from insync_cli.omissions import MOST_NAMES
from insync_cli.version import version
from isr_anomalies import ANOMALIES, Answer, Claims, Finding, Judgement, Verdict
from isr_anomalies.results import Counts

if TYPE_CHECKING:
    from rich.console import Console

    from isr_pipeline.locations import Location

LONGEST_QUOTE = 160
"""The most characters of a quoted line that are printed. The report has the whole line."""


TIMES = ("progress_within", "max_lag", "max_unavailable")
"""Claims that are nanoseconds."""


class Quote(TypedDict):
    """A line of the history."""

    line: int
    text: str


class Witness(TypedDict):
    """One instance of an anomaly, and the operations that show it."""

    permitted: bool
    partition: str | None
    says: str
    size: int
    operations: list[Quote]


class Line(TypedDict):
    """The verdict on one anomaly. `why` is what could not be judged, or the figure."""

    number: int
    name: str
    verdict: str
    found: int
    forbidden: int
    largest: int
    why: str
    witnesses: list[Witness]


class Report(TypedDict):
    """`history.json`. Times are nanoseconds. `omissions`: the anomalies that nobody asked for."""

    schema: str
    command: list[str]
    version: str
    history: str
    claims: dict[str, object]
    verdict: str
    operations: int
    partitions: int
    counts: dict[str, int]
    lag: dict[str, int] | None
    availability: dict[str, object]
    anomalies: list[Line]
    omissions: list[str]


def report(
    path: Path | Location, answer: Answer, claims: Claims, quotes: dict[int, str], command: Sequence[str]
) -> Report:
    counts = {field.name: int(getattr(answer.counts, field.name)) for field in attrs.fields(Counts)}
    return {
        "schema": "insync/history/1",
        "command": list(command),
        "version": version(),
        "history": str(path),
        "claims": dict(attrs.asdict(claims)),
        "verdict": answer.verdict.value,
        "operations": answer.operations,
        "partitions": answer.partitions,
        "counts": counts | answer.fates,
        "lag": None if answer.lag is None else {"worst": answer.lag[0], "last": answer.lag[1]},
        "availability": dict(attrs.asdict(answer.availability)),
        "anomalies": [_line(judgement, quotes) for judgement in answer.judgements],
        "omissions": [a.name for a in ANOMALIES if a.name not in {one.name for one in answer.judgements}],
    }


def _line(judgement: Judgement, quotes: dict[int, str]) -> Line:
    return {
        "number": judgement.number,
        "name": judgement.name,
        "verdict": judgement.verdict.value,
        "found": judgement.finding_count,
        "forbidden": judgement.forbidden,
        "largest": judgement.largest,
        "why": judgement.why,
        "witnesses": [_witness(finding, quotes) for finding in judgement.witnesses],
    }


def _witness(finding: Finding, quotes: dict[int, str]) -> Witness:
    return {
        "permitted": finding.is_permitted,
        "partition": finding.partition or None,
        "says": finding.says,
        "size": finding.size,
        "operations": [{"line": line, "text": quotes.get(line, "")} for line in finding.lines],
    }


def anomaly_entries() -> list[dict[str, object]]:
    """The table of anomalies for machines."""
    names = ("number", "name", "severity", "definition", "impossible", "source")
    return [{name: getattr(anomaly, name) for name in names} for anomaly in ANOMALIES]


def print_list(out: Console) -> None:
    header = ("", "anomaly", "severity", "what it is; when it is impossible; where the definition comes from")
    rows = [
        (str(a.number), a.name, a.severity, f"{a.definition}\nimpossible: {a.impossible}\nfrom {a.source}")
        for a in ANOMALIES
    ]
    terminal.print_table(out, header, rows)


def render(out: Console, answer: Report, report_path: Path | Location | None, *, quiet: bool) -> None:
    if not quiet:
        out.print(f"{answer['history']}: {terminal.count(answer['operations'], 'operation')}", style="bold")
        claims = [f"{name} {claim_text(name, value)}" for name, value in answer["claims"].items() if value is not None]
        terminal.print_wrapped(out, ", ".join(claims), 2)
        out.print()
        rows = [(line["verdict"], str(line["number"]), line["name"], remark(line)) for line in answer["anomalies"]]
        terminal.print_table(out, ("verdict", "", "anomaly", ""), rows)
        for line in answer["anomalies"]:
            if line["verdict"] == Verdict.VIOLATED:
                _print_witness(out, line)
        out.print()
        terminal.print_wrapped(out, ", ".join(f"{name} {n:,}" for name, n in answer["counts"].items()), 0)
        if report_path is not None:
            out.print(f"\nwritten to {report_path}", soft_wrap=True)
    out.print(result_line(answer), soft_wrap=True)


def claim_text(name: str, value: object) -> str:
    """A claim for people."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and name in TIMES:
        return f"{value / 1e9:g} s"
    return str(value)


def remark(line: Line) -> str:
    seen = f"{line['found']:,} found" if line["found"] else ""
    if 0 < line["forbidden"] < line["found"]:
        seen += f", {line['forbidden']:,} of them forbidden"
    return "; ".join(part for part in (seen, line["why"]) if part)


def _print_witness(out: Console, line: Line) -> None:
    """The least witness, with its operations quoted."""
    least = line["witnesses"][0]
    where = f" in {least['partition']}" if least["partition"] else ""
    out.print(f"\n{line['name']}{where}: {least['says']}", style="bold red", soft_wrap=True)
    for quote in least["operations"]:
        text = quote["text"] if len(quote["text"]) <= LONGEST_QUOTE else quote["text"][: LONGEST_QUOTE - 3] + "..."
        out.print(f"  line {quote['line']:<7}{text}", soft_wrap=True)


def result_line(answer: Report) -> str:
    """The one line to grep for: the worst verdict, and how many have which."""
    lines = answer["anomalies"]
    of = {word: [line for line in lines if line["verdict"] == word] for word in Verdict}
    parts: list[str] = []
    if of[Verdict.VIOLATED]:
        parts.append(", ".join(f"{line['name']} ({line['forbidden']:,})" for line in of[Verdict.VIOLATED]))
    if of[Verdict.UNKNOWN]:
        parts.append(f"{', '.join(line['name'] for line in of[Verdict.UNKNOWN])} undecided")
    words = {Verdict.HOLDS: "never seen", Verdict.PERMITTED: "seen and permitted", Verdict.MEASURED: "measured"}
    rest = answer["omissions"]
    counted = [f"{_names_or_count(of[word], by_name=bool(rest))} {words[word]}" for word in words if of[word]]
    parts += [", ".join(counted)] if counted else []
    vacuous = of[Verdict.VACUOUS]
    parts += [f"{_names_or_count(vacuous, by_name=bool(rest))} vacuous"] if vacuous else []
    if answer["verdict"] == Verdict.VACUOUS and counted:
        parts.append("nothing that was judged can be VIOLATED")
    parts += [f"not judged: {len(rest)} other anomal{'ies' if rest[1:] else 'y'}"] if rest else []
    return f"insync history {answer['history']}: {answer['verdict']} - {'; '.join(parts)}"


def _names_or_count(lines: Sequence[Line], *, by_name: bool) -> str:
    """Which anomalies, where somebody asked for some by name, or else how many."""
    return ", ".join(line["name"] for line in lines) if by_name and len(lines) <= MOST_NAMES else f"{len(lines)}"
