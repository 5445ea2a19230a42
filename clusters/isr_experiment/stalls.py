"""Time without acknowledgements against the timeout that it waits for, as one static picture (SVG).

After the loss of a leader that is the session (`broker.session.timeout.ms`); after the loss of a follower the time for
which it may lag (`replica.lag.time.max.ms`), at which the leader looks every half of it: it may take half as long more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, TypeAlias, cast

Row = Mapping[str, object]
Place: TypeAlias = Callable[[float, float], tuple[float, float]]

_SIZE: Final = 420
_MARGIN: Final = 50
_GROUND, _INK, _QUIET = "var(--surface, #ffffff)", "var(--ink, #333333)", "var(--quiet, #777777)"
_KINDS: Final = {
    "kill leader": ("session_seconds", "var(--e0-line, #4477aa)", "leader killed, against the session"),
    "cut off a follower": ("lag_seconds", "var(--e3-line, #aa3377)", "follower cut off, against the lag"),
}


def stalls(rows: Sequence[Row]) -> str:
    """The picture; empty if nothing was measured that belongs into it."""
    points = [
        (float(cast("float", row[_KINDS[kind][0]])), float(cast("float", row["silent_seconds"])), kind)
        for row in rows
        if (kind := str(row["fault"])) in _KINDS
    ]
    if not points:
        return ""
    most = 1.1 * max(max(x, y) for x, y, _ in points)

    def at(value: float) -> float:
        return (_SIZE - 2 * _MARGIN) * value / most

    def place(x: float, y: float) -> tuple[float, float]:
        return _MARGIN + at(x), _SIZE - _MARGIN - at(y)

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" width="{_SIZE}" role="img" '
        f'font-family="sans-serif" font-size="11"><title>Time without acknowledgements against timeouts</title>'
        f"{''.join(_axes(most, place))}{''.join(_points(points, place))}</svg>\n"
    )


def _axes(most: float, place: Place) -> Iterator[str]:
    (x0, y0), (x1, y1) = place(0, 0), place(most, most)
    yield f'<rect width="{_SIZE}" height="{_SIZE}" fill="{_GROUND}"/>'
    yield f'<path d="M{x0} {y1}V{y0}H{x1}" fill="none" stroke="{_INK}"/>'
    for slope, says in ((1.0, "as long"), (1.5, "half as long more")):
        x, y = place(most / slope, most)
        yield f'<line x1="{x0}" y1="{y0}" x2="{x:.1f}" y2="{y:.1f}" stroke="{_QUIET}" stroke-dasharray="3 3"/>'
        yield f'<text x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle" fill="{_QUIET}">{says}</text>'
    for second in range(0, int(most) + 1, 2):
        (x, _), (_, y) = place(second, 0), place(0, second)
        yield f'<text x="{x:.1f}" y="{y0 + 14:.1f}" text-anchor="middle" fill="{_INK}">{second}</text>'
        yield f'<text x="{x0 - 6:.1f}" y="{y + 4:.1f}" text-anchor="end" fill="{_INK}">{second}</text>'
    yield f'<text x="{_SIZE / 2}" y="{_SIZE - 18}" text-anchor="middle" fill="{_INK}">timeout, in seconds</text>'
    yield f'<text x="8" y="{_MARGIN - 30}" fill="{_INK}">without acknowledgements, in seconds</text>'


def _points(points: Sequence[tuple[float, float, str]], place: Place) -> Iterator[str]:
    for x, y, kind in points:
        a, b = place(x, y)
        yield (
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{_KINDS[kind][1]}">'
            f"<title>{escape(kind)}: {y:g} s at {x:g} s</title></circle>"
        )
    for n, kind in enumerate(dict.fromkeys(kind for _, _, kind in points)):
        y = _SIZE - _MARGIN - 40 + 14 * n
        yield f'<text x="{_SIZE - 10}" y="{y}" text-anchor="end" fill="{_KINDS[kind][1]}">{_KINDS[kind][2]}</text>'
