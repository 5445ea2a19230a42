"""A run as one static picture (SVG): faults, who led, who was in sync, what was acknowledged, and what of it was lost.

Made from `run.json` alone, so that anybody can make it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, cast

Row = Mapping[str, object]

WIDTH: Final = 960
LEFT: Final = 120
COLOURS: Final = {2: "#4477aa", 3: "#228833", 4: "#aa3377", 1: "#888888"}
_INK: Final = "#333333"


def timeline(run: Row) -> str:
    """The picture; its title says what a screen reader reads."""
    windows, faults = _rows(run, "windows"), _rows(run, "faults")
    controller = _rows(run, "controller")
    end = max([float(_number(w, "at")) + 1 for w in windows] + [1.0])

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * min(max(at, 0.0), end) / end

    parts: list[str] = []
    y = 40
    for fault in faults:
        a, b = x(_number(fault, "began")), x(_number(fault, "healed") if fault.get("healed") is not None else end)
        colour, says = ("#cc3311", "") if fault["bit"] else ("#bbbbbb", " (did not bite)")
        parts += [
            f'<rect x="{a:.1f}" y="{y}" width="{max(2, b - a):.1f}" height="14" fill="{colour}" opacity="0.75"/>',
            f'<text x="{a + 3:.1f}" y="{y + 11}" font-size="11" fill="#000">{_t(fault["kind"])}{says}</text>',
            f'<line x1="{a:.1f}" y1="{y}" x2="{a:.1f}" y2="{y + 400}" stroke="{colour}" stroke-dasharray="2 3"/>',
        ]
        y += 17
    top = y
    parts.append(_label(y + 22, "leader"))
    parts += _spans(controller, end, x, y + 10, lambda s: [s.get("leader")] if s.get("leader") is not None else [])
    parts.append(_label(y + 52, "in sync"))
    for place, broker in enumerate((2, 3, 4)):
        parts += _spans(
            controller,
            end,
            x,
            y + 38 + 9 * place,
            lambda s, b=broker: [b] if b in cast("Sequence[int]", s["isr"]) else [],
            8,
        )
    y += 75
    height = 110
    most = max([int(_number(w, "acked")) for w in windows] + [1])
    parts.append(_label(y + 20, "acknowledged") + _label(y + 34, f"a second ({most:,})"))
    for w in windows:
        a, width = x(_number(w, "at")), max(1.0, x(_number(w, "at") + 1) - x(_number(w, "at")) - 1)
        for name, colour in (("acked", "#66ccee"), ("lost", "#cc3311")):
            h = height * _number(w, name) / most
            parts.append(
                f'<rect x="{a:.1f}" y="{y + height - h:.1f}" width="{width:.1f}" height="{h:.1f}" fill="{colour}"/>'
            )
    y += height + 20
    parts.append(_label(y + 20, "latency p50, p99") + _label(y + 34, "(log, 1 ms to 30 s)"))
    for name, colour in (("p50", "#004488"), ("p99", "#ddaa33")):
        points = [
            f"{x(_number(w, 'at') + 0.5):.1f},{y + 80 - 80 * _log(_number(w, name)):.1f}"
            for w in windows
            if w.get(name) is not None
        ]
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}"/>')
    y += 95
    step = 5 if end > 20 else 1
    for at in range(0, int(end) + 1, step):
        parts.append(
            f'<text x="{x(at):.1f}" y="{y + 12}" font-size="11" text-anchor="middle" fill="{_INK}">{at} s</text>'
            f'<line x1="{x(at):.1f}" y1="{top}" x2="{x(at):.1f}" y2="{y}" stroke="#ccc" stroke-width="0.5"/>'
        )
    title = f"{run['cell']}, run {run['number']}"
    legend = "red bars: faults; blue: acknowledged; red: acknowledged and lost; lanes: brokers 2, 3, 4"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 24}" width="{WIDTH}" role="img" '
        f'font-family="sans-serif"><title>{_t(title)}: {_t(_summary(run))}</title>'
        f'<rect width="{WIDTH}" height="{y + 24}" fill="#fff"/><text x="8" y="18" font-size="14">{_t(title)}</text>'
        f'<text x="8" y="33" font-size="11" fill="{_INK}">{_t(legend)}</text>{"".join(parts)}</svg>\n'
    )


def _spans(controller: Sequence[Row], end: float, x, y: float, who, height: int = 16) -> list[str]:  # type: ignore[no-untyped-def]
    found: list[str] = []
    for n, seen in enumerate(controller):
        until = _number(controller[n + 1], "at") if n + 1 < len(controller) else end
        a, b = x(_number(seen, "at")), x(until)
        for broker in who(seen):
            colour = COLOURS.get(broker, "#888")
            found.append(f'<rect x="{a:.1f}" y="{y}" width="{max(0.5, b - a):.1f}" height="{height}" fill="{colour}"/>')
            if height > 10 and b - a > 14:
                found.append(f'<text x="{a + 3:.1f}" y="{y + 12}" font-size="11" fill="#fff">{broker}</text>')
    return found


def _summary(run: Row) -> str:
    whole = _rows(run, "fates")[0]
    return f"{whole['acknowledged']} writes acknowledged, {whole['lost']} of them lost"


def _log(ms: float) -> float:
    from math import log10

    return min(1.0, max(0.0, log10(max(ms, 1.0)) / log10(30_000)))


def _label(y: float, text: str) -> str:
    return f'<text x="8" y="{y}" font-size="11" fill="{_INK}">{_t(text)}</text>'


def _rows(table: Row, name: str) -> list[Row]:
    return cast("list[Row]", table[name])


def _number(table: Row, name: str) -> float:
    return float(cast("float", table[name]))


def _t(text: object) -> str:
    return escape(str(text))
