"""Experiments on real processes: `experiment.json` as the table of what was lost, a picture of each run, and how long
nobody answered. The schema is `insync/experiment/1`; a key that is absent is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import cast

import attrs

from isr_report import charts
from isr_report.charts import ACCENT, BAD, Series
from isr_report.html import code, command, count_text, link, table
from isr_report.material import IncludedReport

SCHEMA = "insync/experiment/1"
Json = Mapping[str, object]
COUNTS = ("attempted", "acknowledged", "survived", "lost", "recovered")
CONFIDENCE = 0.95
RULES = {"acknowledged": "acknowledged", "majority": "a majority had it"}
GOOD = "AS EXPECTED"
EXAMPLE = "jepsen-2013"


def is_experiment(report: Json) -> bool:
    return report.get("schema") == SCHEMA


def section(included_reports: Sequence[IncludedReport]) -> str:
    """Every experiment that was given, or how one is made."""
    reports = [i for i in included_reports if is_experiment(i["report"])]
    if not reports:
        return (
            '<p class="quiet">No experiment was given to this report. One is made, and added, by</p>'
            + command(f"insync experiment {EXAMPLE} --json experiment.json")
            + command("insync report --include experiment.json")
        )
    return "".join(_experiment(i) for i in reports)


def rows_of(report: Json, key: str) -> list[Json]:
    """A list of tables in a report; empty where it has none."""
    found = report.get(key)
    return cast("list[Json]", found) if isinstance(found, list) else []


def number(row: Json, key: str) -> float:
    """Zero where there is none."""
    value = row.get(key)
    return value if isinstance(value, int | float) else 0


def _experiment(i: IncludedReport) -> str:
    r = i["report"]
    cells = rows_of(r, "cells")
    every = [(cell, run) for cell in cells for run in rows_of(cell, "runs")]
    runs = "".join(_run(cell, run, is_open=n < PICTURES) for n, (cell, run) in enumerate(every))
    word = str(r.get("verdict", ""))
    return (
        f"<h3>{link(i['file'], escape(str(r.get('experiment', ''))))}: {escape(str(r.get('says', '')))}</h3>"
        f"<p>{_badge(word)} {_totals(r)}</p>{_losses(cells)}{_rates(cells)}{_waits(cells)}{_silence(r)}{runs}"
        + command(" ".join(str(w) for w in cast("list[object]", r.get("command") or [])))
    )


def _badge(word: str) -> str:
    kind = "holds" if word == GOOD else "open" if word == "INVALID" else "violated"
    return f'<span class="verdict {kind}">{escape(word)}</span>'


def _totals(report: Json) -> str:
    sums = cast("Json", report.get("totals") or {})
    bound = sums.get("bound")
    sure = ""
    if isinstance(bound, float):
        sure = f"; where nothing was lost, less than {bound:.1e} of the writes are, with {CONFIDENCE:.0%} confidence"
    if more := number(sums, "lost_unacknowledged"):
        sure = f", and {more:,} that somebody read, though they were never acknowledged{sure}"
    n = {key: f"{number(sums, key):,}" for key in sums}
    get = n.get
    return (
        f"{get('runs', '?')} runs, {get('valid', '?')} valid; {get('acknowledged', '?')} writes acknowledged, "
        f"{get('lost', '?')} of them lost{sure}. {get('leaders', '?')} changes of the leader, {get('isrs', '?')} of "
        f"the ISR; traces of {get('validated', '?')} runs held against the model, {get('rejected', '?')} rejected."
    )


def _losses(cells: Sequence[Json]) -> str:
    """Expected and measured, and what the model says of the same question."""
    lines: list[tuple[str, ...]] = []
    for cell in cells:
        wholes = [rows_of(run, "fates")[0] for run in rows_of(cell, "runs") if rows_of(run, "fates")]
        sums = [f"{sum(int(number(w, key)) for w in wholes):,}" for key in COUNTS]
        lost = sum(number(w, "lost") for w in wholes)
        sums[3] = f'<b class="lost-number">{sums[3]}</b>' if lost else sums[3]
        runs = rows_of(cell, "runs")
        valid = sum(bool(run.get("valid")) for run in runs)
        lines.append(
            (
                f"<b>{_field_text(cell, 'name')}</b><br><span class='quiet'>{_field_text(cell, 'because')}</span>",
                _field_text(cell, "expected"),
                _model(cell),
                f"{valid} of {len(runs)}",
                *sums,
                _badge(str(cell.get("verdict", ""))),
            )
        )
    header = ("cell", "expected", "the model", "valid runs", *COUNTS[:4], "found, though not acknowledged", "verdict")
    return table(header, lines, numbers=(4, 5, 6, 7, 8))


def _rates(cells: Sequence[Json]) -> str:
    """Jepsen's three, each with its own whole."""
    told = [(cell, rows_of(cell, "rates")) for cell in cells if rows_of(cell, "rates")]
    if not told:
        return ""
    lines = [(f"<b>{_field_text(cell, 'name')}</b>", *map(_rate, found)) for cell, found in told]
    return table(("cell", *(_field_text(rate, "says") for rate in told[0][1])), lines, numbers=(1, 2, 3))


def _rate(rate: Json) -> str:
    part, of = int(number(rate, "part")), int(number(rate, "of"))
    return f"{part:,} of {of:,}" + (f", {part / of:.1%}" if of else "")


def _waits(cells: Sequence[Json]) -> str:
    """How long writes waited, and would have for a majority; of the cells that are about that."""
    lines: list[tuple[str, ...]] = []
    names = list[str]()
    for cell in (c for c in cells if c.get("timed")):
        for waited in (w for run in rows_of(cell, "runs") for w in rows_of(run, "waits")):
            spreads = [cast("Json", waited.get(rule) or {}) for rule in RULES]
            names = names or [key for key in spreads[0] if key != "writes"]
            told = [f"{number(s, key):,g}" if s else "" for s in spreads for key in names]
            lines.append((f"<b>{_field_text(cell, 'name')}</b>", _field_text(waited, "phase"), *told))
    header = ("cell", "phase", *(f"{said}, {name}, ms" for said in RULES.values() for name in names))
    return table(header, lines, numbers=range(2, len(header))) if lines else ""


def _field_text(row: Json, key: str) -> str:
    return escape(str(row.get(key, "")))


def _model(cell: Json) -> str:
    model = cell.get("model")
    if not isinstance(model, Mapping):
        return "not asked"
    said = cast("Json", model)
    word = {True: "loses", False: "loses nothing"}.get(cast("bool", said.get("loses")), "does not say")
    answers = rows_of(said, "answers")
    steps = cast("list[object]", answers[0].get("steps") or []) if answers else []
    return f"{word} <small>in {count_text(len(steps), 'step')}</small>" if steps else word


def _silence(report: Json) -> str:
    """How long nothing was acknowledged after each fault, against the time after which it may be noticed."""
    rows = rows_of(report, "availability")
    if not rows or not charts.available():
        return ""
    names = list(dict.fromkeys(str(r.get("cell", "")) for r in rows))
    places = {name: n for n, name in enumerate(names)}
    at = [places[str(r["cell"])] for r in rows]
    silent, leaderless = _seconds(rows, "silent_seconds"), _seconds(rows, "leaderless_seconds")
    series = [
        Series("without an acknowledgement", ACCENT, [n - BESIDE for n in at], silent),
        Series("without a leader", BAD, [n + BESIDE for n in at], leaderless, marker="s"),
    ]
    about = "Seconds without an acknowledgement and without a leader, by cell; a mark for each fault"
    svg = charts.chart(
        series, "", "seconds", logs="", ticks=range(len(names)), labels=names, about=about, size=(9.2, 3.4)
    )
    session, lag = report.get("session_seconds"), report.get("lag_seconds")
    says = f"A mark for each fault. A session ends after {session} s, a follower lags after {lag} s."
    return f'<figure class="chart wide">{svg}<figcaption>{says}</figcaption></figure>'


def _seconds(rows: Sequence[Json], key: str) -> list[float]:
    return [float(number(r, key)) for r in rows]


# The picture of a run


WIDTH, MARGIN, BARS = 960, 92, 92
LANE = 20
BESIDE = 0.1
"""How far the two marks of a fault are from its tick."""
PICTURES = 6
"""Runs of an experiment whose pictures are open."""
TONES = 6
"""Shades of the page, one for each broker."""


@attrs.frozen
class Scale:
    """Where a moment of the run is in the picture."""

    end: float

    def __call__(self, at: float) -> float:
        return round(MARGIN + (WIDTH - MARGIN - 12) * min(max(at, 0.0), self.end) / self.end, 1)


def _run(cell: Json, run: Json, *, is_open: bool) -> str:
    name = f"{run.get('cell', cell.get('name', ''))}, run {run.get('number', '')}"
    fates = rows_of(run, "fates")
    phases = [(escape(str(f.get("phase"))), *(f"{int(number(f, key)):,}" for key in COUNTS)) for f in fates]
    invalid = "; ".join(str(why) for why in cast("list[object]", run.get("invalid") or []))
    doubt = f'<p><b class="flagged">Shows nothing</b> {escape(invalid)}</p>' if invalid else ""
    checks = cast("Json", run.get("checks") or {})
    broken = ", ".join(code(str(c)) for c in cast("list[object]", checks.get("VIOLATED") or []))
    anomalies = f"<p>Anomalies that the claims exclude: {broken}</p>" if broken else ""
    header = ("phase", *COUNTS[:4], "found, though not acknowledged")
    anchor = escape("run-" + "-".join(name.replace(",", "").split()), quote=True)
    told = table(header, phases, (1, 2, 3, 4, 5))
    return (
        f'<details class="fold run" id="{anchor}"{" open" if is_open else ""}><summary>{escape(name)}</summary>'
        f'<figure class="chart">{picture(run)}</figure>{doubt}{anomalies}'
        f"<details class='fold'><summary>Phase by phase</summary>{told}</details></details>"
    )


def picture(run: Json) -> str:
    """Faults as bands, the leader and the size of the ISR as lanes, acknowledgements of each second as bars."""
    windows, faults = rows_of(run, "windows"), rows_of(run, "faults")
    x = Scale(max([number(w, "at") + 1 for w in windows] + [1.0]))
    top = 10 + 18 * len(faults)
    lanes, bars = top + 6, top + 2 * LANE + 18
    base = bars + BARS
    parts = [
        *_bands(faults, x, base),
        *_leaders(rows_of(run, "controller"), x, lanes),
        *_acknowledged(windows, x, bars, base),
        *_axis(x, base),
    ]
    lost = number(rows_of(run, "fates")[0], "lost") if rows_of(run, "fates") else 0
    about = f"{run.get('cell')}: {count_text(len(faults), 'fault')}, {int(lost):,} acknowledged writes lost"
    return (
        f'<svg class="run" viewBox="0 0 {WIDTH} {base + 28}" role="img" aria-label="{escape(about, quote=True)}">'
        f"{''.join(parts)}</svg>"
    )


def _box(kind: str, x: float, y: float, width: float, height: float, inside: str = "") -> str:
    return f'<rect class="{kind}" x="{x}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">{inside}</rect>'


def _bands(faults: Sequence[Json], x: Scale, base: int) -> Iterator[str]:
    for n, fault in enumerate(faults):
        began = number(fault, "began")
        healed = number(fault, "healed") if fault.get("healed") is not None else x.end
        left, width, y = x(began), max(x(healed) - x(began), 2.0), 6 + 18 * n
        said = escape(str(fault.get("kind", "")))
        yield _box("fault-band", left, y, width, base - y)
        end = ' text-anchor="end"' if left > WIDTH * 0.6 else ""
        yield f'<text class="fault-name" x="{left - 4 if end else left + 5}" y="{y + 12}"{end}>{said}</text>'


def _leaders(observations: Sequence[Json], x: Scale, y: int) -> Iterator[str]:
    """Who leads, and below it who is in the ISR."""
    yield f'<text class="axis" x="{MARGIN - 10}" y="{y + 13}" text-anchor="end">leader</text>'
    yield f'<text class="axis" x="{MARGIN - 10}" y="{y + LANE + 15}" text-anchor="end">ISR</text>'
    ends = [*(number(s, "at") for s in observations[1:]), x.end]
    for one, end in zip(observations, ends, strict=False):
        left_edge, width = x(number(one, "at")), x(end) - x(number(one, "at"))
        leader, isr = one.get("leader"), cast("list[object]", one.get("isr") or [])
        tone = f"e{leader % TONES}" if isinstance(leader, int) else "gone"
        yield _box(f"lead {tone}", left_edge, y, max(width, 1), LANE - 3)
        named = str(leader) if leader is not None else "none"
        members = " ".join(str(m) for m in isr)
        if width > 8 * len(named):
            yield f'<text class="lead-name {tone}" x="{left_edge + 5}" y="{y + 13}">{escape(named)}</text>'
        yield _box("isr", left_edge, y + LANE, max(width - 1, 1), LANE - 2)
        if width > 8 * len(members):
            yield f'<text class="lead-name" x="{left_edge + 5}" y="{y + LANE + 14}">{escape(members)}</text>'


def _acknowledged(windows: Sequence[Json], x: Scale, top: int, base: int) -> Iterator[str]:
    most = max([number(w, "acked") for w in windows] + [1])
    yield f'<text class="axis" x="{MARGIN - 10}" y="{top + 10}" text-anchor="end">{most:,.0f} acks/s</text>'
    for w in windows:
        acked, loss_count, at = number(w, "acked"), number(w, "lost"), number(w, "at")
        width = max(x(at + 1) - x(at) - 1, 0.6)
        height, loss_height = (base - top) * acked / most, (base - top) * min(loss_count, acked) / most
        if acked:
            yield _box("acked", x(at), base - height, width, height)
        if loss_height:
            told = f"<title>{loss_count:,.0f} of {acked:,.0f} acknowledged in this second are lost</title>"
            yield _box("lost", x(at), base - loss_height, width, loss_height, told)


def _axis(x: Scale, base: int) -> Iterator[str]:
    yield f'<line class="base" x1="{MARGIN}" x2="{WIDTH - 12}" y1="{base}" y2="{base}"/>'
    step = next(s for s in (5, 10, 30, 60, 300, 3600) if x.end / s <= 14 or s == 3600)
    for at in range(0, int(x.end) + 1, step):
        yield f'<text class="axis" x="{x(at)}" y="{base + 17}" text-anchor="middle">{at} s</text>'
