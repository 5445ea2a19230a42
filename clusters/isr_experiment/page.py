"""One page of an experiment: the table of cells, what became of the writes, and the timelines, from the document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final, cast

from isr_experiment.stalls import stalls
from isr_experiment.timeline import timeline

Row = Mapping[str, object]

COUNTS: Final = {
    "attempted": "attempted",
    "acknowledged": "acknowledged",
    "survived": "survived",
    "lost": "lost",
    "lost_unacknowledged": "read and lost, never acknowledged",
    "recovered": "found, though not acknowledged",
}
RATES: Final = ("acknowledged of attempted", "lost of acknowledged", "found of unacknowledged")
GOOD: Final = "AS EXPECTED"
KINDS: Final = {GOOD: "holds", "INVALID": "open"}
"""How each verdict is shown; any other is bad."""


def page(document: Row, style: str = "") -> str:
    """HTML without scripts; `style` is the style sheet that all pages share."""
    cells = cast("list[Row]", document["cells"])
    runs = [r for cell in cells for r in cast("list[Row]", cell["runs"])]
    name = _t(document["experiment"])
    words = " ".join(cast("list[str]", document["command"]))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>insync experiment {name}</title><style>{style}</style></head>"
        '<body><div id="app"><header class="hero"><p class="eyebrow">insync experiment '
        f"{name} on {_t(document['system'])}: real brokers, real clients</p><h1>{_t(document['says'])}</h1>"
        f'<div class="command"><code>{_t(words)}</code></div></header>'
        f'<section class="block"><h2>What was lost</h2><p>{_badge(document["verdict"])} {_sums(document)}</p>'
        f"{_table(('cell', 'expected', 'the model', 'valid runs', *COUNTS.values(), 'verdict'), map(_row, cells), 4)}"
        f"{_rates(cells)}</section>{_waits(cells)}{_availability(document)}"
        f'<section class="block"><h2>Run by run</h2>{"".join(map(_run, runs))}</section></div></body></html>\n'
    )


def _sums(document: Row) -> str:
    sums = cast("Row", document["totals"])
    bound = sums["bound"]
    sure = (
        "" if bound is None else f"; where nothing was lost, with 95 % confidence less than {bound:.1e} of the writes"
    )
    return (
        f"{sums['runs']} runs, {sums['valid']} valid; {sums['acknowledged']:,} writes acknowledged, "
        f"{sums['lost']:,} lost{sure}; {sums['leaders']} changes of the leader, {sums['isrs']} of the ISR, "
        f"{sums['dropped']:,} bytes dropped; traces of {sums['validated']} runs compared with the model, "
        f"{sums['rejected']} rejected."
    )


def _badge(word: object) -> str:
    return f'<span class="verdict {KINDS.get(str(word), "violated")}">{_t(word)}</span>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> str:
    """Cells are HTML; after the first `words` columns they are numbers, but for a verdict."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="number"' if i >= words and "<span" not in cell else "" for i, cell in enumerate(cells)]
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    head = f"<thead><tr>{line(header, 'th')}</tr></thead>"
    return f'<div class="scroll"><table class="plain">{head}<tbody>{body}</tbody></table></div>'


def _row(cell: Row) -> Sequence[str]:
    runs = cast("list[Row]", cell["runs"])
    wholes = [cast("list[Row]", r["fates"])[0] for r in runs]
    model = cast("Row | None", cell["model"])
    says = "not asked"
    if model is not None:
        says = {True: "loses", False: "holds", None: "does not say"}[cast("bool | None", model["loses"])]
    valid = f"{sum(bool(r['valid']) for r in runs)} of {len(runs)}"
    sums = [f"{sum(cast('int', w[c]) for w in wholes):,}" for c in COUNTS]
    return (f"<b>{_t(cell['name'])}</b>", _t(cell["expected"]), says, valid, *sums, _badge(cell["verdict"]))


def _rates(cells: Iterable[Row]) -> str:
    """The three of Jepsen's table, each with what it is a part of."""
    rows = [(f"<b>{_t(cell['name'])}</b>", *map(_rate, cast("list[Row]", cell["rates"]))) for cell in cells]
    return _table(("cell", *RATES), rows, 4)


def _rate(rate: Row) -> str:
    part, of = cast("int", rate["part"]), cast("int", rate["of"])
    return f"{part:,} of {of:,}" + (f", {100 * part / of:.1f} %" if of else "")


def _waits(cells: Iterable[Row]) -> str:
    """How long writes waited, of the cells that are about that."""
    rows = [
        (f"<b>{_t(cell['name'])}</b>", _t(w["phase"]), *_spread(w["acknowledged"]), *_spread(w["majority"]))
        for cell in cells
        if cell["timed"]
        for run in cast("list[Row]", cell["runs"])
        for w in cast("list[Row]", run["waits"])
    ]
    if not rows:
        return ""
    header = ("cell", "phase", "acknowledged, p50", "p99", "longest", "a majority had it, p50", "p99", "longest")
    says = "<p>In milliseconds: from sent to acknowledged; and from the leader's append until a majority had it, by "
    says += "the brokers' traces, without the fetch that tells the leader.</p>"
    return f'<section class="block"><h2>How long writes waited</h2>{says}{_table(header, rows, 2)}</section>'


def _spread(spread: object) -> Sequence[str]:
    if spread is None:
        return ("-", "-", "-")
    return tuple(f"{cast('Row', spread)[name]:,}" for name in ("p50", "p99", "longest"))


def _run(run: Row) -> str:
    fates = cast("list[Row]", run["fates"])[1:]
    rows = [(_t(f["phase"]), str(f["began"]), *(f"{f[c]:,}" for c in COUNTS)) for f in fates]
    faults = "".join(
        f"<li>{_t(f['kind'])}: {_t('; '.join(cast('Sequence[str]', f['hit'])))}; "
        f"{_t(', '.join(f'{k} {v}' for k, v in cast('Row', f['evidence']).items()))}</li>"
        for f in cast("list[Row]", run["faults"])
    )
    why = "; ".join(cast("list[str]", run["invalid"]))
    invalid = f'<p><b class="flagged">Shows nothing</b> {_t(why)}</p>' if why else ""
    name = f"{_t(run['cell'])}, run {run['number']}"
    return (
        f'<h3 id="{_t(run["cell"])}-{run["number"]}">{name}</h3>{invalid}'
        f'<figure class="chart run-chart">{timeline(run)}</figure><ul>{faults}</ul>'
        f"{_table(('phase', 'from (s)', *COUNTS.values()), rows, 1)}"
    )


def _availability(document: Row) -> str:
    measurements = cast("list[Row]", document["availability"])
    if not measurements:
        return ""
    seconds = ("session_seconds", "lag_seconds", "leaderless_seconds", "silent_seconds")
    rows = [(_t(a["cell"]), _t(a["fault"]), *(str(a[name]) for name in seconds)) for a in measurements]
    header = ("cell", "fault", "session (s)", "lag (s)", "without a leader (s)", "without acknowledgements (s)")
    picture = stalls(measurements)
    drawn = f'<figure class="chart">{picture}</figure>' if picture else ""
    return f'<section class="block"><h2>Time without service</h2>{drawn}{_table(header, rows, 2)}</section>'


def _t(text: object) -> str:
    return escape(str(text))
