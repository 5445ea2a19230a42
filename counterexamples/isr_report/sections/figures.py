"""The sections with numbers of their own: availability, the state space, proofs and other reports, assumptions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from fractions import Fraction
from html import escape
from typing import cast

from isr_check.engine import Verdict
from isr_report import charts
from isr_report.availability import (
    in_sync_unavailable,
    lost_per_year,
    majority_unavailable,
    no_acks_nearly,
    no_leader_nearly,
    stall_fraction,
)
from isr_report.charts import ACCENT, BAD, GOOD, WARM, Series
from isr_report.html import code, command, link, prose, table, verdict
from isr_report.material import IncludedReport, Material
from isr_report.matrix.coverage import covered_table
from isr_report.sections.conformance import is_conformance
from isr_report.sections.experiments import is_experiment
from isr_report.sections.heat import guards

DOWN = Fraction(1, 100)
NODES, MINIMUMS = (3, 5), (1, 2, 3)
DISKS_LOST, REPAIR_YEARS = 0.04, 1 / 365
FAILURES_PER_YEAR, NOTICE, ELECTED = 12, 9, 3

MEANING = {
    Verdict.PROVED: "a solver shows it for every value of the bounds that were left open",
    Verdict.HOLDS: "every state that can be reached within the bounds was looked at",
    Verdict.TOO_SMALL: "nothing breaks it, but the bounds leave no room for the faults that were asked for, "
    "would miss a known mistake, or end where a leader lacks a committed record",
    Verdict.BUDGETED: "the run was cut short; so far nothing was found",
    Verdict.VACUOUS: "nothing ever came to where it would have been tested",
    Verdict.UNKNOWN: "no answer, which is never a success",
    Verdict.VIOLATED: "there is a behaviour that breaks it, and it is shown",
}


def availability() -> str:
    text = _odds_table()
    if not charts.available():
        return f'{text}<p class="quiet">{charts.MISSING}</p>'
    front = (
        f'<figure class="chart">{_frontier()}<figcaption>Writes that wait, against records that are lost: stalls of '
    )
    front += f"{NOTICE} s until a failure is noticed are part of it (a majority: elections of {ELECTED} s), with "
    front += f"{FAILURES_PER_YEAR} failures and {DISKS_LOST:g} lost disks per node and year, repaired in a day."
    front += "</figcaption></figure>"
    return f'{text}<div class="charts">{front}</div>'


def _odds_table() -> str:
    rows: list[tuple[str, ...]] = []
    for n in NODES:
        for minimum in MINIMUMS:
            odds = in_sync_unavailable(n, minimum, DOWN)
            rows.append(
                (
                    f"{n}",
                    f"{minimum}",
                    f"{float(majority_unavailable(n, DOWN)):.2e}",
                    f"{float(odds.no_acks):.2e}",
                    f"{float(no_acks_nearly(n, minimum, DOWN)):.2e}",
                    f"{float(odds.no_leader):.2e}",
                    f"{float(no_leader_nearly(n, minimum, DOWN)):.2e}",
                    f"{n - minimum}",
                    f"{minimum - 1}",
                )
            )
    header = (
        "nodes",
        "min ISR",
        "majority: nothing works",
        "ISR: no acks=all (chain)",
        "(formula)",
        "ISR: no leader (chain)",
        "(formula)",
        "failures that writes survive",
        "disks that a record survives",
    )
    about = f"<p>The part of all time, where each node is down for {float(DOWN):.0%} of it:</p>"
    return about + table(header, rows, numbers=tuple(range(9)))


def _frontier() -> str:
    series: list[Series] = []
    for n, colour, offset in zip(NODES, (ACCENT, GOOD), ((7, 6), (7, -14)), strict=True):
        points = [
            (
                float(in_sync_unavailable(n, m, DOWN).no_acks)
                + stall_fraction(n, FAILURES_PER_YEAR, NOTICE, every_member=True),
                lost_per_year(m, DISKS_LOST, REPAIR_YEARS),
            )
            for m in MINIMUMS
        ]
        labels = [f"{n} nodes, min {m}" for m in MINIMUMS]
        series.append(
            Series(f"ISR, {n} nodes", colour, [p[0] for p in points], [p[1] for p in points], labels, offset=offset)
        )
    majority = [
        (
            float(majority_unavailable(n, DOWN)) + stall_fraction(n, FAILURES_PER_YEAR, ELECTED, every_member=False),
            lost_per_year(n // 2 + 1, DISKS_LOST, REPAIR_YEARS),
        )
        for n in NODES
    ]
    labels = [f"majority of {n}" for n in NODES]
    series.append(
        Series("majority", BAD, [x for x, _ in majority], [y for _, y in majority], labels, marker="^", offset=(-7, 6))
    )
    about = "Unavailability of writes against loss of records: in-sync sets and majorities of several sizes"
    return charts.chart(series, "part of all time without acks=all", "records lost per year, worst case", about=about)


def space(m: Material) -> str:
    rows: list[tuple[str, ...]] = []
    for design in m.matrix["designs"]:
        own = [c for c in m.matrix["cells"] if c["design"] == design["name"]]
        if not own:
            continue
        largest = max(own, key=lambda c: c["distinct"])
        rows.append(
            (
                f"<b>{design['name']}</b><br><span class='quiet'>{escape(design['summary'])}</span>",
                f"{len(own)}",
                f"{sum(c['distinct'] for c in own):,}",
                f"{sum(c['generated'] for c in own):,}",
                link(f"{m.folder}/{largest['run']}", f"{largest['distinct']:,}"),
                f"{max(c['depth'] for c in own)}",
                f"{sum(c['seconds'] for c in own):.1f}",
            )
        )
    header = ("design", "runs", "states", "steps taken", "largest run", "depth", "seconds")
    drawn = _space_chart(m) + table(header, rows, numbers=(1, 2, 3, 4, 5, 6))
    return f"{drawn}<h3>What the runs exercised</h3>{covered_table(m.covered)}"


def _space_chart(m: Material) -> str:
    if not charts.available():
        return ""
    whole = [c for c in m.matrix["cells"] if c["complete"]]
    cut = [c for c in m.matrix["cells"] if not c["complete"]]
    series = [
        Series(name, colour, [c["depth"] for c in some], [max(1, c["distinct"]) for c in some], marker=".")
        for name, colour, some in (("seen to the end", ACCENT, whole), ("ended when all was decided", WARM, cut))
        if some
    ]
    about = "The runs of the matrix by depth and number of states"
    drawn = charts.chart(series, "depth, in steps", "states", logs="y", about=about, size=(9.2, 3.2))
    return f'<figure class="chart wide">{drawn}</figure>'


def proofs(m: Material) -> str:
    parts = [_proofs(m), guards(m)]
    known = ("insync/prove/1", "insync/mutate/1")
    others = [i for i in m.included_reports if i["report"].get("schema") not in known and not _elsewhere(i["report"])]
    parts += [_other(i) for i in others]
    parts.append(_graphs(m))
    return "".join(parts)


def _elsewhere(report: Mapping[str, object]) -> bool:
    """Whether another section shows it."""
    return is_conformance(report) or is_experiment(report)


def _proofs(m: Material) -> str:
    rows: list[tuple[str, ...]] = []
    for i in m.included_reports:
        r = i["report"]
        if r.get("schema") != "insync/prove/1":
            continue
        promises = cast("list[dict[str, object]]", r["promises"])
        stats = cast("dict[str, float]", r["stats"])
        bounds = cast("dict[str, object]", r["bounds"])
        left_open = [name for name, value in bounds.items() if value is None]
        proved = [str(p["name"]) for p in promises if p["verdict"] == Verdict.PROVED]
        stale = "" if r.get("model_hash") == m.hashes.get(str(r["design"])) else " (of another version of the model)"
        promise_list = ", ".join(code(name) for name in proved) or "none"
        if proved and r.get("extent"):
            promise_list += f' <span class="quiet">{escape(str(r["extent"]))}</span>'
        rows.append(
            (
                link(i["file"], escape(str(r["design"]))) + stale,
                verdict(str(r["verdict"])) + (" in part" if r.get("partial") and r["verdict"] != "PARTIAL" else ""),
                promise_list,
                f"{len(left_open)}",
                f"{stats['obligations']:,.0f}",
                f"{stats['solver_seconds']:,.0f}",
                command(" ".join(cast("list[str]", r["command"]))),
            )
        )
    if not rows:
        return (
            '<h3>Proofs</h3><p class="quiet">No proof was given to this report. One is made, and added, by</p>'
            + command("insync prove kip-966 --json prove.json")
            + command("insync report --include prove.json")
        )
    header = ("design", "verdict", "promises proved", "open bounds", "obligations", "solver, s", "the same again")
    return "<h3>Proofs</h3>" + table(header, rows, numbers=(3, 4, 5))


def _graphs(m: Material) -> str:
    """Drawings of graphviz, as pictures: their own style must not leak into the page."""
    title = "<h3>Which promise implies which</h3>"
    if not m.graphs:
        return (
            f'{title}<p class="quiet">No graph was given. A solver decides each edge; it is drawn, and added, by</p>'
            + command("insync prove kip-966 --graph graph.svg")
            + command("insync report --include graph.svg")
        )
    drawn = [
        f'<img src="data:image/svg+xml;base64,{b64encode(text.encode()).decode()}" alt="{escape(name)}">'
        for name, text in m.graphs
    ]
    return title + "".join(f'<figure class="chart graph">{picture}</figure>' for picture in drawn)


def _other(entry: IncludedReport) -> str:
    r = entry["report"]
    words = cast("list[str]", r.get("command", []))
    said = ", ".join(f"{escape(str(k))} {escape(str(v))}" for k, v in r.items() if isinstance(v, int | float))
    head = f"<h3>{link(entry['file'], escape(str(r.get('schema', entry['file']))))}</h3><p>{said}</p>"
    return head + (command(" ".join(words)) if words else "")


def assumptions(m: Material) -> str:
    words = table(("verdict", "what it says"), [(verdict(v), escape(text)) for v, text in MEANING.items()])
    faults = table(
        ("fault budget", "what may happen"), [(code(f["name"]), escape(f["says"])) for f in m.matrix["faults"]]
    )
    typed = _bounds(m.bounds)
    return (
        f'<div class="two"><div><h3>What a verdict says</h3>{words}</div><div><h3>Faults</h3>{faults}</div></div>'
        f'<div class="two"><div><h3>What is not modelled</h3>{prose(m.assumptions)}</div>'
        f"<div><h3>Bounds of the matrix</h3>{typed}</div></div>{_versions(m)}"
    )


def _versions(m: Material) -> str:
    """What the words of each design meant when this page was made."""
    rows = [(code(d["name"]), escape(d["summary"]), code(m.hashes.get(d["name"], ""))) for d in m.matrix["designs"]]
    return f"<h3>Versions of the semantics</h3>{table(('design', 'what it is', 'hash of its model'), rows)}"


def _bounds(bounds: Mapping[str, str]) -> str:
    return table(("bound", "value"), [(escape(name), escape(value)) for name, value in bounds.items()])
