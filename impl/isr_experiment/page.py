"""One page of an experiment: the table of cells, what became of the writes, and the timelines, from the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import cast

from isr_experiment.stalls import stalls
from isr_experiment.timeline import timeline

Row = Mapping[str, object]

_STYLE = (
    "body{font:15px/1.45 sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:3px 8px;text-align:right}"
    "td:first-child,th:first-child,.l{text-align:left}.bad{color:#b00;font-weight:bold}svg{max-width:100%;height:auto}"
)


def page(document: Row) -> str:
    """HTML without scripts."""
    cells = cast("list[Row]", document["cells"])
    sums = cast("Row", document["totals"])
    bound = sums["bound"]
    sure = (
        "" if bound is None else f"; where nothing was lost, with 95 % confidence less than {bound:.1e} of the writes"
    )
    rows = "".join(_row(cell) for cell in cells)
    pictures = "".join(
        f'<h3 id="{_t(r["cell"])}-{r["number"]}">{_t(r["cell"])}, run {r["number"]}</h3>{timeline(r)}{_phases(r)}'
        for cell in cells
        for r in cast("list[Row]", cell["runs"])
    )
    name = _t(document["experiment"])
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>insync experiment {name}</title>'
    return (
        f"{head}<style>{_STYLE}</style><h1>{name}</h1><p>{_t(document['says'])}</p>"
        f"<p><code>{_t(' '.join(cast('list[str]', document['command'])))}</code></p>"
        f"<p>{sums['runs']} runs, {sums['valid']} valid; {sums['acknowledged']:,} writes acknowledged, "
        f"{sums['lost']:,} lost{sure}; {sums['leaders']} changes of the leader, {sums['isrs']} of the ISR, "
        f"{sums['dropped']:,} bytes dropped; traces of {sums['validated']} runs compared with the model, "
        f"{sums['rejected']} rejected.</p>"
        "<table><tr><th>cell<th>expected<th>model<th>runs<th>attempted<th>acknowledged<th>survived<th>lost"
        f"<th>found, not acknowledged<th>verdict</tr>{rows}</table>{_availability(document)}{pictures}</html>\n"
    )


def _row(cell: Row) -> str:
    runs = cast("list[Row]", cell["runs"])
    wholes = [cast("list[Row]", r["fates"])[0] for r in runs]
    columns = ("attempted", "acknowledged", "survived", "lost", "recovered")
    sums = "".join(f"<td>{sum(cast('int', w[c]) for w in wholes):,}" for c in columns)
    model = cast("Row | None", cell["model"])
    says = "-" if model is None else {True: "loses", False: "holds", None: "?"}[cast("bool | None", model["loses"])]
    good = cell["verdict"] == "AS EXPECTED"
    return (
        f'<tr><td>{_t(cell["name"])}<td class="l">{_t(cell["expected"])}<td class="l">{says}'
        f"<td>{sum(bool(r['valid']) for r in runs)}/{len(runs)}{sums}"
        f'<td class="l{"" if good else " bad"}">{_t(cell["verdict"])}</tr>'
    )


def _phases(run: Row) -> str:
    fates = cast("list[Row]", run["fates"])[1:]
    rows = "".join(
        f"<tr><td>{_t(f['phase'])}<td>{f['began']}"
        + "".join(f"<td>{f[c]:,}" for c in ("attempted", "acknowledged", "survived", "lost", "recovered"))
        for f in fates
    )
    faults = "".join(
        f"<li>{_t(f['kind'])}: {_t('; '.join(cast('Sequence[str]', f['hit'])))}; "
        f"{_t(', '.join(f'{k} {v}' for k, v in cast('Row', f['evidence']).items()))}"
        for f in cast("list[Row]", run["faults"])
    )
    head = "<tr><th>phase<th>from (s)<th>attempted<th>acknowledged<th>survived<th>lost<th>found, not acknowledged</tr>"
    why = "; ".join(cast("list[str]", run["invalid"]))
    invalid = f'<p class="bad">INVALID: {_t(why)}</p>' if why else ""
    return f"{invalid}<ul>{faults}</ul><table>{head}{rows}</table>"


def _availability(document: Row) -> str:
    rows = "".join(
        f'<tr><td>{_t(a["cell"])}<td class="l">{_t(a["fault"])}<td>{a["session_seconds"]}<td>{a["lag_seconds"]}'
        f"<td>{a['leaderless_seconds']}<td>{a['silent_seconds']}"
        for a in cast("list[Row]", document["availability"])
    )
    head = (
        "<tr><th>cell<th>fault<th>session (s)<th>lag (s)<th>without a leader (s)<th>without acknowledgements (s)</tr>"
    )
    picture = stalls(cast("list[Row]", document["availability"]))
    return f"<h2>Time without service</h2>{picture}<table>{head}{rows}</table>"


def _t(text: object) -> str:
    return escape(str(text))
