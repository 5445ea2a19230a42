"""A run as one static picture (SVG): faults, who led, who was in sync, what was acknowledged, and what of it was lost.

Made from `run.json` alone, so that anybody can make it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log10
from typing import Final, cast

import attrs

Row = Mapping[str, object]

WIDTH: Final = 960
LEFT_MARGIN: Final = 120
COLOURS: Final = {2: "var(--e0-line, #4477aa)", 3: "var(--e2-line, #228833)", 4: "var(--e3-line, #aa3377)"}
_GROUND, _INK, _OTHER = "var(--surface, #ffffff)", "var(--ink, #333333)", "var(--quiet, #888888)"
_FAULT, _IDLE, _ACKED = "var(--bad, #cc3311)", "var(--line, #bbbbbb)", "var(--e0-line, #66ccee)"
_MIDDLE, _SLOWEST = "var(--accent, #004488)", "var(--e1-line, #ddaa33)"
"""Colours of the page in which the picture stands; those after the comma where it stands alone."""
_HEIGHT: Final = 110
"""Of the bars of acknowledgements."""


@attrs.frozen
class Axis:
    """Where a moment of the run is in the picture."""

    end: float

    def __call__(self, at: float) -> float:
        return LEFT_MARGIN + (WIDTH - LEFT_MARGIN - 20) * min(max(at, 0.0), self.end) / self.end


def timeline(run: Row) -> str:
    """The picture; its title says what a screen reader reads."""
    windows, faults, controller = _rows(run, "windows"), _rows(run, "faults"), _rows(run, "controller")
    x = Axis(max([_number(w, "at") + 1 for w in windows] + [1.0]))
    top = 40 + 17 * len(faults)
    parts = list(_faults(faults, x))
    parts.append(_label(top + 22, "leader"))
    parts += _lane([(s, _leader(s)) for s in controller], x, top + 10, 16)
    parts.append(_label(top + 52, "in sync"))
    for place, broker in enumerate(COLOURS):
        members = [(s, broker if broker in cast("Sequence[int]", s["isr"]) else None) for s in controller]
        parts += _lane(members, x, top + 38 + 9 * place, 8)
    parts += _acknowledged(windows, x, top + 75)
    parts += _latencies(windows, x, top + 95 + _HEIGHT)
    bottom = top + 190 + _HEIGHT
    for at in range(0, int(x.end) + 1, 5 if x.end > 20 else 1):
        parts.append(f'<text x="{x(at):.1f}" y="{bottom + 12}" {_TEXT} text-anchor="middle">{at} s</text>')
    title = f"{run['cell']}, run {run['number']}"
    whole = _rows(run, "fates")[0]
    says = f"{whole['acknowledged']} writes acknowledged, {whole['lost']} of them lost"
    legend = "red above: faults; blue: acknowledged; red below: acknowledged and lost; lanes: brokers 2, 3, 4"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 24}" width="{WIDTH}" role="img" '
        f'font-family="sans-serif"><title>{_t(title)}: {_t(says)}</title>'
        f'<rect width="{WIDTH}" height="{bottom + 24}" fill="{_GROUND}"/>'
        f'<text x="8" y="18" font-size="14" fill="{_INK}">{_t(title)}</text><text x="8" y="33" {_TEXT}>'
        f"{_t(legend)}</text>{''.join(parts)}</svg>\n"
    )


_TEXT: Final = f'font-size="11" fill="{_INK}"'


def _faults(faults: Sequence[Row], x: Axis) -> Iterator[str]:
    """A bar for each fault from its beginning until it was healed, and a line down through everything."""
    for place, fault in enumerate(faults):
        y = 40 + 17 * place
        a = x(_number(fault, "began"))
        b = x.end if fault.get("healed") is None else _number(fault, "healed")
        colour, says = (_FAULT, "") if fault["bit"] else (_IDLE, " (did not bite)")
        yield f'<rect x="{a:.1f}" y="{y}" width="{max(2, x(b) - a):.1f}" height="14" fill="{colour}" opacity="0.6"/>'
        yield f'<line x1="{a:.1f}" y1="{y}" x2="{a:.1f}" y2="{y + 330}" stroke="{colour}" stroke-dasharray="2 3"/>'
        yield f'<text x="{a + 3:.1f}" y="{y + 11}" font-size="11" fill="{_INK}">{_t(fault["kind"])}{says}</text>'


def _lane(spans: Sequence[tuple[Row, int | None]], x: Axis, y: float, height: int) -> Iterator[str]:
    """Who was it, from each decision of the controller until the next."""
    for n, (seen, broker) in enumerate(spans):
        until = _number(spans[n + 1][0], "at") if n + 1 < len(spans) else x.end
        a, b = x(_number(seen, "at")), x(until)
        if broker is None:
            continue
        colour = COLOURS.get(broker, _OTHER)
        yield f'<rect x="{a:.1f}" y="{y}" width="{max(0.5, b - a):.1f}" height="{height}" fill="{colour}"/>'
        if height > 10 and b - a > 14:
            yield f'<text x="{a + 3:.1f}" y="{y + 12}" font-size="11" fill="{_GROUND}">{broker}</text>'


def _acknowledged(windows: Sequence[Row], x: Axis, y: float) -> Iterator[str]:
    most = max([int(_number(w, "acked")) for w in windows] + [1])
    yield _label(y + 20, "acknowledged") + _label(y + 34, f"a second ({most:,})")
    for w in windows:
        a = x(_number(w, "at"))
        width = max(1.0, x(_number(w, "at") + 1) - a - 1)
        for name, colour in (("acked", _ACKED), ("lost", _FAULT)):
            h = _HEIGHT * _number(w, name) / most
            top = y + _HEIGHT - h
            yield f'<rect x="{a:.1f}" y="{top:.1f}" width="{width:.1f}" height="{h:.1f}" fill="{colour}"/>'


def _latencies(windows: Sequence[Row], x: Axis, y: float) -> Iterator[str]:
    yield _label(y + 20, "latency p50, p99") + _label(y + 34, "(log, 1 ms to 30 s)")
    for name, colour in (("p50", _MIDDLE), ("p99", _SLOWEST)):
        points: list[str] = []
        for w in [*windows, {name: None}]:
            if w.get(name) is not None:
                points.append(f"{x(_number(w, 'at') + 0.5):.1f},{y + 80 - 80 * _log(_number(w, name)):.1f}")
            elif points:
                # Where nothing was acknowledged there is no latency, and no line.
                yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-linecap="round"/>'
                points = []


def _leader(observation: Row) -> int | None:
    return cast("int | None", observation["leader"])


def _log(ms: float) -> float:
    return min(1.0, log10(max(ms, 1.0)) / log10(30_000))


def _label(y: float, text: str) -> str:
    return f'<text x="8" y="{y}" {_TEXT}>{_t(text)}</text>'


def _rows(table: Row, name: str) -> list[Row]:
    return cast("list[Row]", table[name])


def _number(table: Row, name: str) -> float:
    return float(cast("float", table[name]))


def _t(text: object) -> str:
    return escape(str(text))
