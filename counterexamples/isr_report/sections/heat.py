"""The heat map of `insync mutate`: each part of each action, and how soon a promise notices that it is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import cast

from isr_report.html import code, command, table
from isr_report.material import IncludedReport, Material

SHADES = 5
"""Shades of the map, the darkest for what is noticed soonest."""


def guards(m: Material) -> str:
    """The maps of all campaigns that were given; without one, what is known to be redundant."""
    title = "<h3>Guards: which promise notices when one is dropped</h3>"
    found = [i for i in m.included_reports if i["report"].get("schema") == "insync/mutate/1"]
    if found:
        return title + "".join(_campaign(i) for i in found)
    rows = [(code(d), code(a), code(g), escape(reason)) for d, a, g, reason in m.redundant]
    redundant_guards = (
        f'<details class="fold"><summary>The {len(rows)} guards that are known to be redundant, and why</summary>'
        + table(("design", "action", "guard", "why no promise needs it"), rows)
        + "</details>"
    )
    return (
        title
        + '<p class="quiet">No campaign was given to this report. One is made, and added, by</p>'
        + command("insync mutate kip-966 --json mutate.json")
        + command("insync report --include mutate.json")
        + (redundant_guards if rows else "")
    )


def _campaign(entry: IncludedReport) -> str:
    lines = cast("list[Mapping[str, object]]", entry["report"]["mutants"])
    alone = [line for line in lines if kind(line) == "alone"]
    counts = {k: sum(kind(line) == k for line in lines) for k in KINDS}
    legend = "".join(
        f'<li><i class="heat {"sample" if k == "noticed" else k}" aria-hidden="true"></i><b>{n}</b> {KINDS[k]}</li>'
        for k, n in counts.items()
        if n
    )
    flagged = "".join(
        f'<li>{code(str(line["action"]))} <b class="flagged">{code(str(line["guard"]))}</b></li>' for line in alone
    )
    gaps = f"<p>What nothing notices, and for no listed reason:</p><ul>{flagged}</ul>" if alone else ""
    part = str(lines[0].get("part", "guard")) if lines else "guard"
    about = f"Design {code(str(entry['report']['design']))}, {len(lines)} {part}s, a square each in the order of the "
    about += "action; the number is the steps after which a promise is broken."
    return (
        f'<p class="quiet">{about}</p><ul class="heat-key">{legend}</ul><div class="heatmap">{_rows(lines)}</div>{gaps}'
        f'<details class="fold"><summary>All of them, with the promises that notice and the reasons</summary>'
        f"{_table(lines)}</details>"
    )


KINDS = {
    "noticed": "are noticed by a promise",
    "reasoned": "are redundant, for a reason that is on file",
    "equivalent": "change nothing that an action or a promise reads",
    "settled": "are decided by the settings",
    "unsure": "are undecided, the run was cut",
    "alone": "nothing notices",
}


def kind(line: Mapping[str, object]) -> str:
    if line["killers"]:
        return "noticed"
    if line["fate"] == "survived":
        return "reasoned" if line["reason"] else "alone"
    return str(line["fate"]) if line["fate"] in ("equivalent", "settled") else "unsure"


def _rows(lines: Sequence[Mapping[str, object]]) -> str:
    depths = sorted({cast("int", line["depth"]) for line in lines if line["killers"] and line["depth"]})
    rows: list[str] = []
    for action, own in groupby(lines, key=lambda line: str(line["action"])):
        squares = "".join(_square(line, depths) for line in own)
        rows.append(f"<div><span>{code(action)}</span><span class='squares'>{squares}</span></div>")
    return "".join(rows)


def _square(line: Mapping[str, object], depths: Sequence[int]) -> str:
    """The sooner noticed the darker."""
    which, depth = kind(line), line["depth"]
    killers = ", ".join(cast("list[str]", line["killers"]))
    told = str(line["reason"] or KINDS[which])
    if killers:
        told = f"noticed by {killers} in {depth} steps" if depth else f"{killers} has no witness any more"
    label = escape(f"{line['guard']}: {told}", quote=True)
    if which != "noticed":
        sign = {"unsure": "?", "alone": "!"}.get(which, "")
        return f'<i class="heat {which}" role="img" title="{label}" aria-label="{label}">{sign}</i>'
    shade = SHADES - depths.index(cast("int", depth)) * SHADES // len(depths) if depth else 1
    return f'<i class="heat d{shade}" role="img" title="{label}" aria-label="{label}">{depth or ""}</i>'


def _table(lines: Sequence[Mapping[str, object]]) -> str:
    rows = [
        (
            code(str(line["action"])),
            code(str(line["guard"])),
            ", ".join(code(k) for k in cast("list[str]", line["killers"])),
            f"{line['depth'] or ''}",
            escape(str(line["reason"] or "")) if line["reason"] or line["killers"] else KINDS[kind(line)],
        )
        for line in lines
    ]
    return table(("action", "guard", "noticed by", "steps", ""), rows, numbers=(3,))
